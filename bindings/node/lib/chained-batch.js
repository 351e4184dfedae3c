'use strict'

const { AbstractChainedBatch } = require('abstract-level')
const { PackedBatch } = require('./packed')

/** A batch that is filled call by call. It crosses into the native part once, when it is written. */
class EskerChainedBatch extends AbstractChainedBatch {
  #packed = new PackedBatch()
  #write

  constructor (db, write) {
    super(db)
    this.#write = write
  }

  _put (key, value) {
    this.#packed.put(key, value)
  }

  _del (key) {
    this.#packed.del(key)
  }

  _clear () {
    this.#packed.clear()
  }

  async _write (options) {
    return this.#write(this.#packed, options)
  }

  async _close () {
    this.#packed.release()
  }
}

exports.EskerChainedBatch = EskerChainedBatch

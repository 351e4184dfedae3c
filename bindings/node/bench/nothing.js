'use strict'

// A database that stores nothing and gives the same entry whatever is asked: what abstract-level itself, its promises and its walks take of
// each figure, and so what no store below it can do without.

const { AbstractIterator, AbstractLevel } = require('abstract-level')

class Nothing extends AbstractLevel {
  #entry
  #count

  /**
   * @param {[string, string]} entry What it gives
   * @param {number} count How many of it a walk over all has
   */
  constructor (entry, count) {
    super({ encodings: { utf8: true }, getSync: true, seek: false })
    this.#entry = entry
    this.#count = count
  }

  async _open () {}
  async _close () {}
  async _put () {}
  async _batch () {}
  async _get () { return this.#entry[1] }
  _getSync () { return this.#entry[1] }
  async _getMany (keys) { return keys.map(() => this.#entry[1]) }
  _iterator (options) { return new Same(this, options, this.#entry, this.#count) }
}

class Same extends AbstractIterator {
  #entry
  #left

  constructor (db, options, entry, count) {
    super(db, options)
    this.#entry = entry
    this.#left = count
  }

  async _next () { return this.#left-- > 0 ? this.#entry : undefined }

  async _nextv (size) {
    const some = new Array(Math.min(size, this.#left)).fill(this.#entry)
    this.#left -= some.length
    return some
  }
}

module.exports = { Nothing }

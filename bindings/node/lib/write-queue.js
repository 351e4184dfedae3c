'use strict'

// Writes that were begun before others had ended. A crossing into the native part costs several times what the store needs to
// write an entry, so whatever comes while one is under way is gathered, and crosses as one batch when that has come back. Writes
// take effect in the order in which they were begun.

// Not `instanceof`: test runners load this file in another realm than the native part's.
const { isPromise } = require('node:util').types
const { PackedBatch } = require('./packed')

/** A batch takes no more writes when it is as long: it would keep the ones behind it waiting. */
const BATCH_BYTES = 1 << 20

/** Writes that cross together, and what all of them wait for. */
class Group {
  packed = new PackedBatch()

  constructor (sync) {
    this.sync = sync
    this.written = new Promise((resolve, reject) => {
      this.resolve = resolve
      this.reject = reject
    })
  }
}

class WriteQueue {
  #send
  #waiting = []
  #isBusy = false

  /** `send` takes a packed batch and whether to wait for the device, and promises that it was written. */
  constructor (send) {
    this.#send = send
  }

  /**
   * Writes now what `alone` writes (at once, where it gives no promise), or, where something is under way, what `add` puts into a
   * batch. `bytes` is how long that is, where it is longer than an entry.
   */
  write (sync, alone, add, bytes = 0) {
    if (!this.#isBusy) {
      const written = alone()
      return isPromise(written) ? this.#run(written) : undefined
    }
    const last = this.#waiting.at(-1)
    const fits = last !== undefined && last.sync === sync && last.packed.length + bytes < BATCH_BYTES
    const group = fits ? last : new Group(sync)
    // What cannot be written is told to its writer alone, and the others' batch is as it was.
    add(group.packed)
    if (!fits) this.#waiting.push(group)
    return group.written
  }

  /** Ends when all that was begun before has ended, well or not. */
  async idle () {
    const last = this.#waiting.at(-1)
    await (last?.written ?? this.#current)?.catch(() => {})
  }

  #current

  #run (written) {
    this.#isBusy = true
    this.#current = written
    const next = () => this.#next()
    written.then(next, next)
    return written
  }

  #next () {
    const group = this.#waiting.shift()
    if (group === undefined) {
      this.#isBusy = false
      this.#current = undefined
      return
    }
    // An error of the call itself is as one of the write.
    const send = async () => this.#send(group.packed, group.sync)
    this.#run(send()).then(group.resolve, group.reject)
  }
}

exports.WriteQueue = WriteQueue

'use strict'

// Single reads that were begun while others are under way. As many as libuv's pool has threads go alone; what comes beyond is gathered, and
// the next thread that is free reads all of it in one crossing. A read sees the store as it is when it is begun, or later.

const THREADS = 4
/** What is gathered is bounded, so that a thread is not kept for long. */
const MOST_KEYS = 1000

/** Keys that are read together, and those who wait for their values. */
class Group {
  keys = []
  waiting = []

  constructor (asString) {
    this.asString = asString
  }
}

class ReadQueue {
  #one
  #many
  #groups = []
  #underWay = 0

  /** `one` promises the value of a key, `many` those of several; null stands for none. Both are told whether values are strings. */
  constructor (one, many) {
    this.#one = one
    this.#many = many
  }

  read (key, asString) {
    if (this.#underWay < THREADS) return this.#run(this.#one(key, asString))
    let group = this.#groups.at(-1)
    if (group === undefined || group.asString !== asString || group.keys.length >= MOST_KEYS) {
      group = new Group(asString)
      this.#groups.push(group)
    }
    // The caller may change the bytes of a key as soon as the call has returned.
    group.keys.push(typeof key === 'string' ? key : Buffer.from(key))
    return new Promise((resolve, reject) => group.waiting.push({ resolve, reject }))
  }

  #run (reading) {
    this.#underWay++
    const next = () => {
      this.#underWay--
      const group = this.#groups.shift()
      if (group !== undefined) this.#run(this.#readAll(group))
    }
    reading.then(next, next)
    return reading
  }

  async #readAll ({ keys, waiting, asString }) {
    try {
      const values = await this.#many(keys, asString)
      waiting.forEach(({ resolve }, i) => resolve(values[i]))
    } catch {
      // Which of them it was is found by reading each alone; the others have their values.
      for (const [i, { resolve, reject }] of waiting.entries()) {
        await this.#one(keys[i], asString).then(resolve, reject)
      }
    }
  }
}

exports.ReadQueue = ReadQueue

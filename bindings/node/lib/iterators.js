'use strict'

// Iterators over entries, keys and values. Each reads ahead in chunks, which a thread of the pool fills: one crossing for many
// entries. What a chunk holds is bounded by a number of entries and by bytes.

const { AbstractIterator, AbstractKeyIterator, AbstractValueIterator } = require('abstract-level')
const ModuleError = require('module-error')
const binding = require('./binding')
const { Chunk, nothing } = require('./packed')
const { walkOptions } = require('./range')

const DEFAULT_CHUNK_BYTES = 64 * 1024
/** Entries that are read ahead for next(). */
const CHUNK_ENTRIES = 1000
/** For all(), which keeps everything anyway. */
const ALL_CHUNK_BYTES = 1 << 20
const ALL_CHUNK_ENTRIES = 10_000

function chunkBytes (options) {
  const given = options.highWaterMarkBytes
  if (given === undefined || given === null) return DEFAULT_CHUNK_BYTES
  if (!(Number.isSafeInteger(given) || given === Infinity) || given < 0) {
    throw new TypeError("The option 'highWaterMarkBytes' must be a number of bytes from 0 on, or Infinity")
  }
  return given
}

/** What the three kinds of iterators share: where they are, and how they read on. */
class Reader {
  #walk
  #limitBytes
  #take
  #chunk = nothing
  #isFirst = true
  #signal
  #onAbort

  constructor (walk, options, take) {
    this.#walk = walk
    this.#limitBytes = chunkBytes(options)
    this.#take = take
    this.#signal = options.signal ?? null
    if (this.#signal !== null) {
      this.#onAbort = () => binding.walkStop(walk)
      this.#signal.addEventListener('abort', this.#onAbort, { once: true })
    }
  }

  async #read (count, limitBytes) {
    // When the end was met nothing is read again before a seek.
    if (this.#chunk.isLast) return
    this.#chunk = new Chunk(await binding.walkRead(this.#walk, count, limitBytes))
    if (this.#signal?.aborted) throw new AbortError()
  }

  #takeUpTo (count, entries) {
    const chunk = this.#chunk
    for (; entries.length < count && chunk.left > 0; chunk.left--) entries.push(this.#take(chunk))
    return entries
  }

  async next (remaining) {
    if (this.#chunk.left === 0) {
      // Often one entry is all that is wanted, at first and after a seek.
      const count = this.#isFirst ? 1 : Math.min(CHUNK_ENTRIES, remaining)
      this.#isFirst = false
      await this.#read(count, this.#limitBytes)
      if (this.#chunk.left === 0) return undefined
    }
    this.#chunk.left--
    return this.#take(this.#chunk)
  }

  async nextv (size) {
    this.#isFirst = false
    if (this.#chunk.left === 0) await this.#read(Math.min(size, 2 ** 32 - 1), this.#limitBytes)
    return this.#takeUpTo(size, [])
  }

  async all (remaining) {
    const entries = this.#takeUpTo(remaining, [])
    while (entries.length < remaining && !this.#chunk.isLast) {
      const count = Math.min(ALL_CHUNK_ENTRIES, remaining - entries.length)
      await this.#read(count, Math.max(this.#limitBytes, ALL_CHUNK_BYTES))
      this.#takeUpTo(remaining, entries)
    }
    return entries
  }

  get left () {
    return this.#chunk.left
  }

  seek (target) {
    this.#isFirst = true
    this.#chunk = nothing
    binding.walkSeek(this.#walk, target)
  }

  close () {
    this.#chunk = nothing
    this.#signal?.removeEventListener('abort', this.#onAbort)
    this.#signal = null
    // At once: that is less work than to hand it to a thread.
    binding.walkClose(this.#walk)
  }
}

/** The error of an iterator whose signal was aborted, as abstract-level's own is. */
class AbortError extends ModuleError {
  constructor () {
    super('Operation has been aborted', { code: 'LEVEL_ABORTED' })
  }

  get name () {
    return 'AbortError'
  }
}

/** What an iterator takes of a chunk for one entry. */
function taking (keys, values, options) {
  const keysAsStrings = options.keyEncoding === 'utf8'
  const valuesAsStrings = options.valueEncoding === 'utf8'
  return (chunk) => [
    keys ? chunk.take(keysAsStrings) : undefined,
    values ? chunk.take(valuesAsStrings) : undefined
  ]
}

/** Gives a class of abstract-level's the methods that do the work. */
function reading (Base, open) {
  return class extends Base {
    #reader

    constructor (db, store, options, snapshot) {
      super(db, options)
      try {
        this.#reader = open(store, options, snapshot)
      } catch (err) {
        db.detachResource(this)
        throw err
      }
    }

    /** Entries that were read ahead: for tests, as other Level databases have it. */
    get cached () {
      return this.#reader.left
    }

    async _next () {
      return this.#reader.next(this.limit - this.count)
    }

    async _nextv (size) {
      return this.#reader.nextv(size)
    }

    async _all () {
      return this.#reader.all(this.limit - this.count)
    }

    _seek (target) {
      this.#reader.seek(target)
    }

    async _close () {
      this.#reader.close()
    }
  }
}

function open (store, options, snapshot, keys, values, take) {
  chunkBytes(options)
  return new Reader(binding.walkNew(store, walkOptions(options, keys, values), snapshot), options, take)
}

/** Iterates over entries. */
class EskerIterator extends reading(AbstractIterator, (store, options, snapshot) => {
  const { keys, values } = options
  // Where neither is asked for, the keys still count the entries.
  if (!keys && !values) return open(store, options, snapshot, true, false, skipping(options))
  return open(store, options, snapshot, keys, values, taking(keys, values, options))
}) {}

function skipping (options) {
  const take = taking(true, false, options)
  return (chunk) => {
    take(chunk)
    return [undefined, undefined]
  }
}

/** Iterates over keys. */
class EskerKeyIterator extends reading(AbstractKeyIterator, (store, options, snapshot) => {
  const asStrings = options.keyEncoding === 'utf8'
  return open(store, options, snapshot, true, false, (chunk) => chunk.take(asStrings))
}) {}

/** Iterates over values. */
class EskerValueIterator extends reading(AbstractValueIterator, (store, options, snapshot) => {
  const asStrings = options.valueEncoding === 'utf8'
  return open(store, options, snapshot, false, true, (chunk) => chunk.take(asStrings))
}) {}

exports.EskerIterator = EskerIterator
exports.EskerKeyIterator = EskerKeyIterator
exports.EskerValueIterator = EskerValueIterator

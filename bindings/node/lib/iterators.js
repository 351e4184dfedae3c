'use strict'

// Iterators over entries, keys and values. Each reads ahead in chunks: one crossing for many entries. What a chunk holds is bounded by
// a number of entries and by bytes; a thread of the pool fills it, or, where that costs more than the few entries, this one.

const { AbstractIterator, AbstractKeyIterator, AbstractValueIterator } = require('abstract-level')
const ModuleError = require('module-error')
const binding = require('./binding')
const { Chunk, nothing } = require('./packed')
const { walkOptions } = require('./range')
const { isYoung } = require('./turn')

const DEFAULT_CHUNK_BYTES = 64 * 1024
/** Entries that are read ahead for next(): at first, and when those were taken. */
const FIRST_CHUNK_ENTRIES = 64
const CHUNK_ENTRIES = 1000
/** For all(), which keeps everything anyway. */
const ALL_CHUNK_BYTES = 1 << 20
/** So many entries, and bytes, at most are read on this thread. */
const HERE_ENTRIES = 100
const HERE_BYTES = ALL_CHUNK_BYTES
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
  /** How many entries next() reads ahead. */
  #ahead = 1
  #inPlace
  #signal
  #onAbort

  constructor (walk, options, take, inPlace) {
    this.#walk = walk
    this.#inPlace = inPlace
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
    const here = this.#inPlace && count <= HERE_ENTRIES && limitBytes <= HERE_BYTES && isYoung()
    // Awaited also where it is done: whoever asked may abort in the same turn.
    this.#chunk = new Chunk(await binding.walkRead(this.#walk, count, limitBytes, here))
    if (this.#signal?.aborted) throw new AbortError()
  }

  #takeUpTo (count, entries) {
    const chunk = this.#chunk
    for (; entries.length < count && chunk.left > 0; chunk.left--) entries.push(this.#take(chunk))
    return entries
  }

  /** The next entry, or, where it has to be read, the promise of it. */
  next (remaining) {
    if (this.#chunk.left === 0) return this.#nextOfNewChunk(remaining)
    this.#chunk.left--
    return this.#take(this.#chunk)
  }

  async #nextOfNewChunk (remaining) {
    // Often one entry is all that is wanted, at first and after a seek.
    const count = Math.min(this.#ahead, remaining)
    this.#ahead = this.#ahead === 1 ? FIRST_CHUNK_ENTRIES : CHUNK_ENTRIES
    await this.#read(count, this.#limitBytes)
    return this.#chunk.left === 0 ? undefined : this.next(remaining)
  }

  async nextv (size) {
    this.#ahead = CHUNK_ENTRIES
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
    this.#ahead = 1
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

    constructor (db, store, options, snapshot, inPlace) {
      super(db, options)
      try {
        this.#reader = open(store, options, snapshot, inPlace)
      } catch (err) {
        db.detachResource(this)
        throw err
      }
    }

    /** Entries that were read ahead: for tests, as other Level databases have it. */
    get cached () {
      return this.#reader.left
    }

    _next () {
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

function open (store, options, snapshot, inPlace, keys, values, take) {
  chunkBytes(options)
  return new Reader(binding.walkNew(store, walkOptions(options, keys, values), snapshot), options, take, inPlace)
}

/** Iterates over entries. */
class EskerIterator extends reading(AbstractIterator, (store, options, snapshot, inPlace) => {
  const { keys, values } = options
  // Where neither is asked for, the keys still count the entries.
  if (!keys && !values) return open(store, options, snapshot, inPlace, true, false, skipping(options))
  return open(store, options, snapshot, inPlace, keys, values, taking(keys, values, options))
}) {}

function skipping (options) {
  const take = taking(true, false, options)
  return (chunk) => {
    take(chunk)
    return [undefined, undefined]
  }
}

/** Iterates over keys. */
class EskerKeyIterator extends reading(AbstractKeyIterator, (store, options, snapshot, inPlace) => {
  const asStrings = options.keyEncoding === 'utf8'
  return open(store, options, snapshot, inPlace, true, false, (chunk) => chunk.take(asStrings))
}) {}

/** Iterates over values. */
class EskerValueIterator extends reading(AbstractValueIterator, (store, options, snapshot, inPlace) => {
  const asStrings = options.valueEncoding === 'utf8'
  return open(store, options, snapshot, inPlace, false, true, (chunk) => chunk.take(asStrings))
}) {}

exports.EskerIterator = EskerIterator
exports.EskerKeyIterator = EskerKeyIterator
exports.EskerValueIterator = EskerValueIterator

'use strict'

// Iterators over entries, keys and values. Each reads ahead in chunks: one crossing for many entries. What a chunk holds is bounded by
// a number of entries and by bytes; a thread of the pool fills it, or, where that costs more than the few entries, this one. The next of
// many long ones is filled while the entries of the last are taken.

const { AbstractIterator, AbstractKeyIterator, AbstractValueIterator } = require('abstract-level')
const ModuleError = require('module-error')
const binding = require('./binding')
const { toBytes } = require('./bytes')
const { Chunk, nothing } = require('./packed')
const { walkOptions } = require('./range')
const { isYoung } = require('./turn')

const DEFAULT_CHUNK_BYTES = 64 * 1024
/** Entries that are read ahead for next(): after the first one, and when those were taken. */
const FIRST_CHUNK_ENTRIES = 64
const CHUNK_ENTRIES = 1000
/** For all(), which keeps everything anyway. */
const ALL_CHUNK_BYTES = 1 << 20
/** So many entries, and bytes, at most are read on this thread. */
const HERE_ENTRIES = 100
const HERE_BYTES = ALL_CHUNK_BYTES
const ALL_CHUNK_ENTRIES = 10_000

function noop () {}

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
  /** How many long chunks were read in a row. */
  #long = 0
  /** The promise of a chunk that was begun before it was asked for. */
  #begun = null
  /** Where to go on once that is there, as it was begun before a seek. */
  #target
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

  /** The next chunk, of so many entries and bytes; `remaining` entries will be asked for at most. */
  async #read (count, limitBytes, remaining) {
    // When the end was met nothing is read again before a seek.
    if (this.#chunk.isLast) return
    if (this.#target !== undefined) await this.#seekNow()
    const begun = this.#begun ?? this.#begin(count, limitBytes, this.#inPlace && isYoung())
    this.#begun = null
    // Awaited also where it is done: whoever asked may abort in the same turn.
    this.#chunk = new Chunk(await begun)
    if (this.#signal?.aborted) throw new AbortError()
    this.#long = count > HERE_ENTRIES ? this.#long + 1 : 0
    const more = Math.min(count, remaining - this.#chunk.left)
    // Whoever took two of them takes another.
    if (this.#long > 1 && more > 0 && !this.#chunk.isLast) {
      this.#begun = this.#begin(more, limitBytes, false)
      // It is told when the chunk is asked for.
      this.#begun.catch(noop)
    }
  }

  #begin (count, limitBytes, here) {
    return binding.walkRead(this.#walk, count, limitBytes, here && count <= HERE_ENTRIES && limitBytes <= HERE_BYTES)
  }

  async #seekNow () {
    await this.#begun.catch(noop)
    const target = this.#target
    this.#begun = null
    this.#target = undefined
    binding.walkSeek(this.#walk, target)
  }

  #takeUpTo (count, entries) {
    const chunk = this.#chunk
    while (entries.length < count && chunk.left > 0) {
      // Counted first, as in next(): the place in the chunk moves on also where the value cannot be a string.
      chunk.left--
      entries.push(this.#take(chunk))
    }
    return entries
  }

  /** The next entry, or, where it has to be read, the promise of it. */
  next (remaining) {
    if (this.#chunk.left === 0) return this.#nextOfNewChunk(remaining)
    this.#chunk.left--
    return this.#take(this.#chunk)
  }

  async #nextOfNewChunk (remaining) {
    // Often one entry is all that is wanted, at first and after a seek. A low limit says what is wanted.
    const count = remaining <= HERE_ENTRIES ? remaining : Math.min(this.#ahead, remaining)
    this.#ahead = this.#ahead === 1 ? FIRST_CHUNK_ENTRIES : CHUNK_ENTRIES
    await this.#read(count, this.#limitBytes, remaining)
    return this.#chunk.left === 0 ? undefined : this.next(remaining)
  }

  async nextv (size, remaining) {
    this.#ahead = CHUNK_ENTRIES
    if (this.#chunk.left === 0) await this.#read(Math.min(size, 2 ** 32 - 1), this.#limitBytes, remaining)
    return this.#takeUpTo(size, [])
  }

  async all (remaining) {
    const entries = this.#takeUpTo(remaining, [])
    while (entries.length < remaining && !this.#chunk.isLast) {
      const count = Math.min(ALL_CHUNK_ENTRIES, remaining - entries.length)
      await this.#read(count, Math.max(this.#limitBytes, ALL_CHUNK_BYTES), remaining - entries.length)
      this.#takeUpTo(remaining, entries)
    }
    return entries
  }

  get left () {
    return this.#chunk.left
  }

  seek (target) {
    this.#ahead = 1
    this.#long = 0
    this.#chunk = nothing
    if (this.#begun === null) binding.walkSeek(this.#walk, target)
    else this.#target = target
  }

  async close () {
    this.#chunk = nothing
    this.#signal?.removeEventListener('abort', this.#onAbort)
    this.#signal = null
    if (this.#begun !== null) {
      binding.walkStop(this.#walk)
      await this.#begun.catch(noop)
    }
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
      return this.#reader.nextv(size, this.limit - this.count)
    }

    async _all () {
      return this.#reader.all(this.limit - this.count)
    }

    _seek (target) {
      this.#reader.seek(toBytes(target))
    }

    async _close () {
      return this.#reader.close()
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

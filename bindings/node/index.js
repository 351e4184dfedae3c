'use strict'

// Esker as a database of the Level ecosystem: abstract-level has the interface, events, encodings and sublevels, native/src the store.

const { isPromise } = require('node:util').types
const { AbstractLevel, AbstractSnapshot } = require('abstract-level')
const ModuleError = require('module-error')
const binding = require('./lib/binding')
const { toBytes } = require('./lib/bytes')
const { EskerChainedBatch } = require('./lib/chained-batch')
const { EskerIterator, EskerKeyIterator, EskerValueIterator } = require('./lib/iterators')
const { inPlace, openOptions, repairOptions } = require('./lib/options')
const { PackedBatch } = require('./lib/packed')
const { walkOptions } = require('./lib/range')
const { isYoung } = require('./lib/turn')
const { WriteQueue } = require('./lib/write-queue')

const kHandle = Symbol('handle')

function assertLocation (location) {
  if (typeof location !== 'string' || location === '') {
    throw new TypeError("The first argument 'location' must be a non-empty string")
  }
  if (location.includes('\0')) throw new TypeError("The first argument 'location' must not contain null characters")
}

function orUndefined (found) {
  return found ?? undefined
}

function isString (encoding) {
  return encoding === 'utf8'
}

/** Whether to wait for the device; undefined is as the store was opened. */
function sync (options) {
  return typeof options.sync === 'boolean' ? options.sync : undefined
}

/** The native part's handle on the snapshot that a read is to see. */
function snapshotOf (options) {
  const snapshot = options.snapshot
  if (snapshot === undefined || snapshot === null) return undefined
  if (!(snapshot instanceof EskerSnapshot)) throw new TypeError("The option 'snapshot' must be a snapshot of this database")
  return snapshot[kHandle]
}

class EskerSnapshot extends AbstractSnapshot {
  constructor (store, options) {
    super(options)
    try {
      this[kHandle] = binding.snapshotNew(store)
    } catch (err) {
      options.owner.detachResource(this)
      throw err
    }
  }

  async _close () {
    // At once: that is less work than to hand it to a thread.
    binding.snapshotClose(this[kHandle])
  }
}

class EskerLevel extends AbstractLevel {
  #location
  #store = binding.storeNew()
  #writes = new WriteQueue((packed, wait) => this.#send(packed, wait))
  #inPlace = true

  constructor (location, options) {
    assertLocation(location)
    super({
      encodings: { buffer: true, utf8: true, view: true },
      has: true,
      createIfMissing: true,
      errorIfExists: true,
      explicitSnapshots: true,
      getSync: true,
      additionalMethods: {
        approximateSize: true,
        checkpoint: true,
        compactRange: true,
        flush: true,
        resume: true,
        sync: true
      },
      signals: { iterators: true }
    }, options)
    this.#location = location
  }

  get location () {
    return this.#location
  }

  async _open (options) {
    const native = openOptions(options)
    this.#inPlace = inPlace(options)
    return binding.storeOpen(this.#store, this.#location, native)
  }

  async _close () {
    await this.#writes.idle()
    await binding.storeClose(this.#store)
  }

  // What is done at once is given at once: abstract-level awaits it, and another promise for each call would cost as much as the call.

  _get (key, options) {
    const found = binding.get(this.#store, toBytes(key), isString(options.valueEncoding), snapshotOf(options), this.#isHere())
    return isPromise(found) ? found.then(orUndefined) : orUndefined(found)
  }

  _getSync (key, options) {
    return binding.getSync(this.#store, toBytes(key), isString(options.valueEncoding), snapshotOf(options)) ?? undefined
  }

  async _getMany (keys, options) {
    const values = await binding.getMany(this.#store, keys.map(toBytes), isString(options.valueEncoding), snapshotOf(options))
    for (let i = 0; i < values.length; i++) values[i] ??= undefined
    return values
  }

  _has (key, options) {
    return binding.has(this.#store, toBytes(key), snapshotOf(options), this.#isHere())
  }

  async _hasMany (keys, options) {
    return Array.from(await binding.hasMany(this.#store, keys.map(toBytes), snapshotOf(options)), (found) => found === 1)
  }

  _put (key, value, options) {
    const wait = sync(options)
    const alone = () => binding.put(this.#store, toBytes(key), toBytes(value), wait, this.#isHere())
    return this.#writes.write(wait, alone, (packed) => packed.put(key, value))
  }

  _del (key, options) {
    const wait = sync(options)
    const alone = () => binding.del(this.#store, toBytes(key), wait, this.#isHere())
    return this.#writes.write(wait, alone, (packed) => packed.del(key))
  }

  async _batch (operations, options) {
    const packed = new PackedBatch()
    for (const { type, key, value } of operations) {
      if (type === 'put') packed.put(key, value)
      else packed.del(key)
    }
    return this.#writeBatch(packed, sync(options))
  }

  #writeBatch (packed, wait) {
    const add = (group) => group.append(packed)
    const written = this.#writes.write(wait, () => this.#send(packed, wait), add, packed.length)
    packed.release()
    return written
  }

  /** The native part has read all of it when its call returns; the promise, if there is one, is of the writing. */
  #send (packed, wait) {
    const written = binding.writePacked(this.#store, packed.buffer, packed.length, wait, this.#isHere())
    packed.release()
    return written
  }

  _chainedBatch () {
    return new EskerChainedBatch(this, (packed, options) => this.#writeBatch(packed, sync(options)))
  }

  /** Whether a call may run at once, on the thread of the event loop. */
  #isHere () {
    return this.#inPlace && isYoung()
  }

  /** In batches of bounded size; between them other calls, and the end of a worker, have their turn. */
  async _clear (options) {
    const walk = binding.walkNew(this.#store, walkOptions(options, true, false), snapshotOf(options))
    try {
      let left = options.limit >= 0 ? options.limit : Infinity
      let deleted
      do {
        deleted = await binding.walkDelete(this.#store, walk, left)
        left -= deleted
      } while (deleted > 0 && left > 0)
      if (options.sync === true) await binding.syncLog(this.#store)
    } finally {
      binding.walkClose(walk)
    }
  }

  _iterator (options) {
    return new EskerIterator(this, this.#store, options, snapshotOf(options), this.#inPlace)
  }

  _keys (options) {
    return new EskerKeyIterator(this, this.#store, options, snapshotOf(options), this.#inPlace)
  }

  _values (options) {
    return new EskerValueIterator(this, this.#store, options, snapshotOf(options), this.#inPlace)
  }

  _snapshot (options) {
    return new EskerSnapshot(this.#store, options)
  }

  async approximateSize (start, end, options) {
    return this.#ranged('approximateSize', arguments, binding.approximateSize)
  }

  async compactRange (start, end, options) {
    return this.#ranged('compactRange', arguments, binding.compactRange)
  }

  async checkpoint (location) {
    assertLocation(location)
    return this.#whenOpen('checkpoint', () => binding.checkpoint(this.#store, location))
  }

  async flush () {
    return this.#whenOpen('flush', () => binding.flush(this.#store))
  }

  async sync () {
    return this.#whenOpen('sync', () => binding.syncLog(this.#store))
  }

  async resume () {
    return this.#whenOpen('resume', () => binding.resume(this.#store))
  }

  getProperty (property) {
    if (typeof property !== 'string') throw new TypeError("The first argument 'property' must be a string")
    this.#assertOpen('getProperty')
    return binding.property(this.#store, property) ?? ''
  }

  stats () {
    this.#assertOpen('stats')
    return binding.stats(this.#store)
  }

  #assertOpen (method) {
    if (this.status === 'open') return
    throw new ModuleError(`Database is not open: cannot call ${method}()`, { code: 'LEVEL_DATABASE_NOT_OPEN' })
  }

  /** Calls it now, or when the opening that is under way has ended. */
  async #whenOpen (method, call) {
    if (this.status === 'opening') return this.deferAsync(() => this.#whenOpen(method, call))
    this.#assertOpen(method)
    return (await call()) ?? undefined
  }

  async #ranged (method, [start, end, options], call) {
    if (start === undefined || end === undefined) throw new TypeError("The arguments 'start' and 'end' are required")
    this._assertValidKey(start)
    this._assertValidKey(end)
    const encoding = this.keyEncoding(options?.keyEncoding)
    const encoded = (key) => toBytes(encoding.encode(key))
    return this.#whenOpen(method, async () => call(this.#store, encoded(start), encoded(end)))
  }

  static async destroy (location) {
    assertLocation(location)
    await binding.destroy(location)
  }

  static async repair (location, options) {
    assertLocation(location)
    return binding.repair(location, repairOptions(options ?? {}))
  }

  static async verify (location) {
    assertLocation(location)
    return binding.verify(location)
  }
}

exports.EskerLevel = EskerLevel
// What the package `level` calls its class, so that a program changes one word.
exports.Level = EskerLevel

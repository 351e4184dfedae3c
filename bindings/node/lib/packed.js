'use strict'

// Many entries in one buffer, so that a crossing into the native part costs little for each. What the bytes are stands in
// native/src/packed.rs.

const ModuleError = require('module-error')
const { toBytes } = require('./bytes')

const MAX_KEY_BYTES = 65536
const MAX_VALUE_BYTES = 2 ** 30
/** A batch is refused by the library from 4 GiB on; so much is not copied together before it is. */
const MAX_BATCH_BYTES = 2 ** 32 - 1
const HEAD_BYTES = 9
const FIRST_BYTES = 4096
/** A buffer up to so many bytes is kept for the next batch. */
const KEPT_BYTES = 1 << 20

const ENDED = 1
const ASCII = 2

let kept = null

/** Operations of a batch, in the bytes that the native part reads. */
class PackedBatch {
  constructor () {
    this.buffer = kept ?? Buffer.allocUnsafeSlow(FIRST_BYTES)
    kept = null
    this.length = 0
  }

  put (key, value) {
    this.#add(1, toBytes(key), toBytes(value))
  }

  del (key) {
    this.#add(0, toBytes(key), null)
  }

  clear () {
    this.length = 0
  }

  /** Adds all that is in another one, whose memory an empty one takes over. */
  append (other) {
    if (this.length === 0) {
      const { buffer, length } = other
      other.buffer = null
      this.release()
      this.buffer = buffer
      this.length = length
      return
    }
    const length = this.length + other.length
    if (length > this.buffer.byteLength) this.#reserve(length, length)
    this.buffer.set(other.buffer.subarray(0, other.length), this.length)
    this.length = length
  }

  /** Gives the memory to the next batch. Not while the native part may still read it: that has ended when its call returned. */
  release () {
    if (this.buffer !== null && this.buffer.byteLength <= KEPT_BYTES) kept = this.buffer
    this.buffer = null
  }

  #add (kind, key, value) {
    const keyMost = mostBytes(key)
    const valueMost = value === null ? 0 : mostBytes(value)
    const at = this.length + HEAD_BYTES
    if (at + keyMost + valueMost > this.buffer.byteLength) {
      // What a string may take is an overestimate; the exact length decides before memory is taken for it.
      this.#reserve(at + byteLength(key) + (value === null ? 0 : byteLength(value)), at + keyMost + valueMost)
    }
    const keyBytes = write(this.buffer, key, at)
    if (keyBytes > MAX_KEY_BYTES) {
      throw new ModuleError(`a key of ${keyBytes} bytes is over the limit of ${MAX_KEY_BYTES} bytes`, {
        code: 'LEVEL_INVALID_KEY'
      })
    }
    const valueBytes = value === null ? 0 : write(this.buffer, value, at + keyBytes)
    if (valueBytes > MAX_VALUE_BYTES) {
      throw new ModuleError(
        `a value of ${valueBytes} bytes is over the limit of ${MAX_VALUE_BYTES} bytes; split it over several keys`,
        { code: 'LEVEL_INVALID_VALUE' }
      )
    }
    const { buffer } = this
    buffer[this.length] = kind
    buffer.writeUInt32LE(keyBytes, this.length + 1)
    buffer.writeUInt32LE(valueBytes, this.length + 5)
    this.length = at + keyBytes + valueBytes
  }

  #reserve (exact, most) {
    if (exact > MAX_BATCH_BYTES) {
      throw new ModuleError(`a batch of ${exact} bytes is over the limit of ${MAX_BATCH_BYTES} bytes; split it`, {
        code: 'ESKER_BATCH_TOO_LARGE'
      })
    }
    // Strings of three bytes a character are seldom long: where they are, the exact length is taken.
    const needed = most <= Math.min(2 * exact, MAX_BATCH_BYTES) ? most : exact
    const size = Math.min(Math.max(needed, 2 * this.buffer.byteLength), MAX_BATCH_BYTES)
    const larger = Buffer.allocUnsafeSlow(Math.max(size, needed))
    larger.set(this.buffer.subarray(0, this.length))
    this.buffer = larger
  }
}

function isBytes (data) {
  return typeof data !== 'string'
}

/** How many bytes it may take at most. */
function mostBytes (data) {
  return isBytes(data) ? data.byteLength : data.length * 3
}

function byteLength (data) {
  return isBytes(data) ? data.byteLength : Buffer.byteLength(data)
}

function write (buffer, data, at) {
  if (!isBytes(data)) return buffer.utf8Write(data, at)
  // Before the copy: shared memory that grows meanwhile must not count bytes that were not copied. What was detached cannot be copied.
  const { byteLength } = data
  if (byteLength > 0) buffer.set(data, at)
  return byteLength
}

/** A chunk of a walk: entries are taken from it one after the other. */
class Chunk {
  #buffer
  #at = 5
  #isAscii

  /** Entries that were not taken yet. */
  left

  constructor (buffer) {
    this.#buffer = buffer
    this.#isAscii = (buffer[0] & ASCII) !== 0
    this.left = buffer.readUInt32LE(1)
  }

  /** Whether the walk has nothing behind it. */
  get isLast () {
    return (this.#buffer[0] & ENDED) !== 0
  }

  /** The next key or value of the entry that is taken. It is a copy: one that is kept keeps no chunk. */
  take (asString) {
    const buffer = this.#buffer
    const start = this.#at + 4
    const end = start + buffer.readUInt32LE(this.#at)
    this.#at = end
    if (asString) return this.#text(start, end)
    const copy = Buffer.allocUnsafe(end - start)
    buffer.copy(copy, 0, start, end)
    return copy
  }

  #text (start, end) {
    try {
      return this.#isAscii ? this.#buffer.latin1Slice(start, end) : this.#buffer.utf8Slice(start, end)
    } catch (cause) {
      throw new ModuleError(`a value of ${end - start} bytes is too long for a string; read it as a buffer`, {
        code: 'LEVEL_DECODE_ERROR',
        cause
      })
    }
  }
}

/** The chunk of a walk that has not begun, or was told to go on elsewhere. */
const nothing = new Chunk(Buffer.alloc(5))

exports.PackedBatch = PackedBatch
exports.Chunk = Chunk
exports.nothing = nothing

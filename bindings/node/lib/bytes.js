'use strict'

// What encodings give, as what the store takes.

const { isUint8Array } = require('node:util').types
const ModuleError = require('module-error')

const NOTHING = new Uint8Array(0)

/**
 * A key or a value as a string or a `Uint8Array`: of any other view its bytes. Lengths and copies of typed arrays count elements, so
 * this comes before anything is measured.
 */
function toBytes (data) {
  // Not `instanceof`: test runners load this file in another realm than the data's.
  if (typeof data === 'string' || isUint8Array(data)) return data
  if (!ArrayBuffer.isView(data)) {
    throw new ModuleError('keys and values are strings or views of bytes once they are encoded', { code: 'ESKER_INVALID_ARGUMENT' })
  }
  try {
    return new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
  } catch {
    // Its memory was detached, or is shorter by now: as of a Uint8Array there are no bytes.
    return NOTHING
  }
}

exports.toBytes = toBytes

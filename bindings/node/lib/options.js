'use strict'

// The options that open a store. Those of other Level databases that mean nothing here (cacheSize, writeBufferSize ...) are left aside,
// so that a program can change its store and nothing else.

const ModuleError = require('module-error')

const COMPRESSIONS = ['none', 'lz4', 'zstd']
const DURABILITIES = ['buffered', 'synced']

function invalid (name, what) {
  return new ModuleError(`The option '${name}' must be ${what}`, { code: 'ESKER_INVALID_OPTION' })
}

function bytes (options, name) {
  const given = options[name]
  if (given === undefined || given === null) return undefined
  if (!Number.isSafeInteger(given) || given < 0) throw invalid(name, 'a number of bytes')
  return given
}

function flag (options, name) {
  const given = options[name]
  if (given === undefined || given === null) return undefined
  if (typeof given !== 'boolean') throw invalid(name, 'true or false')
  return given
}

function word (options, name, known) {
  const given = options[name]
  if (given === undefined || given === null) return undefined
  if (!known.includes(given)) throw invalid(name, `one of ${known.join(', ')}`)
  return given
}

/** `true` and `false` are what other Level databases take. */
function compression (options) {
  if (options.compression === true) return undefined
  if (options.compression === false) return 'none'
  return word(options, 'compression', COMPRESSIONS)
}

/** The options of the native part. Throws where one cannot be. */
function openOptions (options) {
  return {
    createIfMissing: options.createIfMissing,
    errorIfExists: options.errorIfExists,
    readOnly: flag(options, 'readOnly') ?? false,
    multithreading: flag(options, 'multithreading') ?? false,
    paranoidChecks: flag(options, 'paranoidChecks'),
    flushOnClose: flag(options, 'flushOnClose'),
    compression: compression(options),
    durability: word(options, 'durability', DURABILITIES),
    memory: bytes(options, 'memory'),
    blockSize: bytes(options, 'blockSize'),
    segmentSize: bytes(options, 'segmentSize'),
    blobThreshold: bytes(options, 'blobThreshold')
  }
}

/** The options of a repair, for the tables that it writes. */
function repairOptions (options) {
  return { compression: compression(options), blockSize: bytes(options, 'blockSize') }
}

/** Whether reads and writes of single entries may run on the thread of the event loop. */
function inPlace (options) {
  return flag(options, 'inPlace') ?? true
}

exports.inPlace = inPlace
exports.openOptions = openOptions
exports.repairOptions = repairOptions

'use strict'

// Loads the native part. Node loads it once for the process, and each worker thread gets its own functions of it.

const fs = require('node:fs')
const ModuleError = require('module-error')
const { file, folder } = require('./binding-place')

function load () {
  const place = file()
  if (!fs.existsSync(place)) {
    throw new ModuleError(
      `The package esker has no native part for ${folder()} (${place} is missing); build it with 'npm run build' in bindings/node`,
      { code: 'ESKER_NO_NATIVE_PART' }
    )
  }
  try {
    return require(place)
  } catch (cause) {
    throw new ModuleError(`The native part of the package esker could not be loaded: ${cause.message}`, {
      code: 'ESKER_NO_NATIVE_PART',
      cause
    })
  }
}

module.exports = load()

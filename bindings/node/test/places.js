'use strict'

// Directories for the tests, which are gone when the process ends.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')

let root = null
let count = 0

/** A path in which there is nothing yet. */
function temporary () {
  if (root === null) {
    root = fs.mkdtempSync(path.join(os.tmpdir(), 'esker-node-'))
    // First: tape ends the process in its own.
    process.prependListener('exit', () => fs.rmSync(root, { recursive: true, force: true }))
  }
  return path.join(root, `store-${++count}`)
}

exports.temporary = temporary

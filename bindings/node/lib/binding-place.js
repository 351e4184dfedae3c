'use strict'

const path = require('node:path')

/** Whether this Node is linked with musl's C library, for which programs are built apart. */
function isMusl () {
  if (process.platform !== 'linux') return false
  return process.report.getReport().header.glibcVersionRuntime === undefined
}

/** The folder of the native part for this system. */
function folder () {
  return `${process.platform}-${process.arch}${isMusl() ? '-musl' : ''}`
}

/** The file of the native part for this system, whether it is there or not. */
function file () {
  return path.join(__dirname, '..', 'prebuilds', folder(), 'esker.node')
}

exports.folder = folder
exports.file = file

'use strict'

// Runs the tests of level-read-stream or classic-level, as they are, on our stores: node of-checkout.js DIRECTORY, where that is a checkout
// of one of the two with its packages installed (npm install --ignore-scripts).

const { spawnSync } = require('node:child_process')
const fs = require('node:fs')
const Module = require('node:module')
const os = require('node:os')
const path = require('node:path')

const FILE_SECONDS = 120

/** Puts our stores in the place of others, in this process: preloaded into each, and into its workers. */
function standIn () {
  const { EskerLevel } = require('../..')
  class MemoryLevel extends EskerLevel {
    constructor (options) {
      super(path.join(fs.mkdtempSync(path.join(os.tmpdir(), 'memory-')), 'store'), options)
    }
  }
  const checkout = path.join(process.env.ESKER_STAND_IN, path.sep)
  const load = Module._load
  Module._load = function (request, parent, isMain) {
    const isOfTests = parent?.filename?.startsWith(checkout) && !parent.filename.includes('node_modules')
    if (isOfTests && request === 'memory-level') return { MemoryLevel }
    if (isOfTests && request === '..') return { ClassicLevel: EskerLevel }
    return load.call(this, request, parent, isMain)
  }
}

function files (directory) {
  if (fs.existsSync(path.join(directory, 'test.js'))) return [path.join(directory, 'test.js')]
  const tests = path.join(directory, 'test')
  // The suite of abstract-level is run apart, and the build of LevelDB is none of ours.
  const leftOut = ['abstract-level-test.js', 'port-libuv-fix-test.js']
  return fs.readdirSync(tests).filter((name) => name.endsWith('-test.js') && !leftOut.includes(name)).map((name) => path.join(tests, name))
}

function number (output, word) {
  return Number(new RegExp(`^# ${word} +(\\d+)$`, 'm').exec(output)?.[1] ?? 0)
}

function runAll (directory) {
  let [run, passed] = [0, 0]
  const scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'esker-suites-'))
  const preload = `--require ${JSON.stringify(__filename)}`
  const env = { ...process.env, TMPDIR: scratch, ESKER_STAND_IN: fs.realpathSync(directory), NODE_OPTIONS: preload }
  for (const file of files(fs.realpathSync(directory))) {
    const done = spawnSync(process.execPath, ['--expose-gc', file], { encoding: 'utf8', env, timeout: FILE_SECONDS * 1000 })
    const [all, good] = [number(done.stdout, 'tests'), number(done.stdout, 'pass')]
    run += all
    passed += good
    console.log(`${path.basename(file)}: ${good} of ${all}${done.signal || (all === 0 && done.status !== 0) ? ', and it did not end well' : ''}`)
    for (const line of done.stdout.match(/^not ok .*$/mg) ?? []) console.log(`    ${line}`)
    if (all === 0 && done.status !== 0) console.log(done.stderr)
  }
  console.log(`${passed} of ${run}`)
  fs.rmSync(scratch, { recursive: true, force: true })
}

if (process.env.ESKER_STAND_IN) standIn()
else runAll(process.argv[2])

'use strict'

// Programs that run in a process of their own, for what a process can go through only once.

const { spawn } = require('node:child_process')
const path = require('node:path')

const PACKAGE = path.join(__dirname, '..')

/**
 * Runs a program, given as a function's body; `esker` is the package there and `args` what is passed here. Resolves with how it ended
 * and what it said. A program that says nothing more within a minute is ended, and that shows as its signal.
 */
function run (body, args = [], { flags = [], env = {}, onLine = () => {} } = {}) {
  const program = `(async () => { const esker = require(${JSON.stringify(PACKAGE)}); const args = ${JSON.stringify(args)}
${body} })().catch((err) => { console.error(err); process.exit(99) })`
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [...flags, '-e', program], {
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe']
    })
    const timer = setTimeout(() => child.kill('SIGKILL'), 60_000)
    let out = ''
    let err = ''
    child.stdout.on('data', (data) => {
      out += data
      onLine(String(data), child)
    })
    child.stderr.on('data', (data) => { err += data })
    child.on('error', reject)
    child.on('close', (code, signal) => {
      clearTimeout(timer)
      resolve({ code, signal, out: out.trim(), err: err.trim() })
    })
  })
}

exports.run = run

'use strict'

// Builds the native part in release (ESKER_PROFILE=dev: as tests want it), and puts it where the package looks for it:
// prebuilds/<system>-<processor>/esker.node.

const { spawnSync } = require('node:child_process')
const fs = require('node:fs')
const path = require('node:path')

const { folder } = require('../lib/binding-place')

const root = path.join(__dirname, '..')
const native = path.join(root, 'native')
const library = { darwin: 'libesker_node.dylib', win32: 'esker_node.dll' }[process.platform] ?? 'libesker_node.so'

// The repository's own, so that the library is compiled once for all that is made of it.
const target = process.env.CARGO_TARGET_DIR ?? path.join(root, '..', '..', 'target')

function cargo (args) {
  const env = { ...process.env, CARGO_TARGET_DIR: target }
  const done = spawnSync('cargo', args, { cwd: native, env, stdio: ['ignore', 'inherit', 'inherit'] })
  if (done.error) throw done.error
  if (done.status !== 0) process.exit(done.status ?? 1)
}

// The lines that a debugger wants are as large as the code, and stay here.
const profile = process.env.ESKER_PROFILE ?? 'release'
cargo(['rustc', '--profile', profile, '--locked', '--quiet', '--', '-C', 'strip=debuginfo'])

const place = path.join(root, 'prebuilds', folder())
fs.mkdirSync(place, { recursive: true })
// Renamed into place: a process that has the old one loaded keeps it.
const made = path.join(place, 'esker.node')
fs.copyFileSync(path.join(target, profile === 'dev' ? 'debug' : profile, library), made + '.new')
fs.renameSync(made + '.new', made)
for (const license of ['LICENSE-APACHE', 'LICENSE-MIT']) {
  fs.copyFileSync(path.join(root, '..', '..', license), path.join(root, license))
}

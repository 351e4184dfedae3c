'use strict'

// Runs the programs of the README in a project that has the package installed: node readme.js PROJECT. As CommonJS, as a module, and the
// TypeScript compiled.

const { execFileSync } = require('node:child_process')
const fs = require('node:fs')
const path = require('node:path')
const assert = require('node:assert/strict')

const readme = fs.readFileSync(path.join(__dirname, '..', 'README.md'), 'utf8')
const project = path.resolve(process.argv[2])

/** The blocks of a language, in their order. */
function blocks (language) {
  const found = [...readme.matchAll(new RegExp('^```' + language + '\\n(.*?)^```$', 'gms'))].map((match) => match[1])
  assert.ok(found.length > 0, `the README has a block of ${language || 'output'}`)
  return found
}

function node (file) {
  return execFileSync(process.execPath, [file], { cwd: project, encoding: 'utf8' })
}

function write (file, text) {
  fs.writeFileSync(path.join(project, file), text)
  return file
}

function clean () {
  for (const store of ['trees', 'forest']) fs.rmSync(path.join(project, store), { recursive: true, force: true })
}

const [program] = blocks('js')
const printed = /^It prints\n\n```\n(.*?)^```$/ms.exec(readme)[1]

clean()
assert.equal(node(write('first.cjs', program)), printed)
clean()
const imported = program.replace("const { EskerLevel } = require('esker')", "import { EskerLevel } from 'esker'")
assert.notEqual(imported, program)
assert.equal(node(write('first.mjs', imported)), printed)

const [typed] = blocks('ts')
write('typed.mts', typed)
write('tsconfig.json', JSON.stringify({
  compilerOptions: { target: 'ES2022', module: 'Node16', strict: true, types: ['node'], typeRoots: [path.join(__dirname, '..', 'node_modules', '@types')] },
  files: ['typed.mts']
}))
const tsc = path.join(__dirname, '..', 'node_modules', 'typescript', 'bin', 'tsc')
execFileSync(process.execPath, [tsc, '-p', project], { stdio: 'inherit' })
assert.equal(node('typed.mjs'), '40 41\n')
console.log('the README: 3 programs of 3 ran as it says')

'use strict'

// The package loaded as test runners do it: its JavaScript in a realm of its own, with other built-in objects than the native part
// knows.

const { createRequire } = require('node:module')
const fs = require('node:fs')
const path = require('node:path')
const test = require('tape')
const vm = require('node:vm')
const { temporary } = require('./places')

/** A `require` for one realm, with modules of its own; native ones and those of Node are everybody's. */
function realm () {
  const context = vm.createContext({})
  const has = new Set(vm.runInContext('Object.getOwnPropertyNames(globalThis)', context))
  for (const name of Object.getOwnPropertyNames(globalThis)) {
    if (!has.has(name)) Object.defineProperty(context, name, Object.getOwnPropertyDescriptor(globalThis, name))
  }
  // Buffers are of the main realm.
  Object.assign(context, { ArrayBuffer, Uint8Array })
  const modules = new Map()
  function load (file) {
    if (modules.has(file)) return modules.get(file).exports
    const module = { exports: {} }
    modules.set(file, module)
    const resolver = createRequire(file)
    const require = (name) => {
      const found = resolver.resolve(name)
      return path.extname(found) === '.js' && path.isAbsolute(found) ? load(found) : resolver(name)
    }
    require.resolve = resolver.resolve
    const names = ['exports', 'require', 'module', '__filename', '__dirname']
    const run = vm.compileFunction(fs.readFileSync(file, 'utf8'), names, { parsingContext: context, filename: file })
    run(module.exports, require, module, file, path.dirname(file))
    return module.exports
  }
  return load
}

test('a store of a package in another realm ends calls when they have ended', async (t) => {
  const { EskerLevel } = realm()(require.resolve('..'))
  t.not(EskerLevel, require('..').EskerLevel, 'it is another realm\'s')
  for (const inPlace of [true, false]) {
    const db = new EskerLevel(temporary(), { inPlace })
    for (let i = 0; i < 20; i++) {
      await db.put('key', `v${i}`, { sync: true })
      t.equal(await db.get('key'), `v${i}`)
    }
    const writes = []
    for (let i = 0; i < 500; i++) writes.push(db.put('key', `w${i}`, { sync: i % 100 === 0 }))
    await Promise.all(writes)
    t.equal(await db.get('key'), 'w499', 'in the order in which they were begun')
    t.equal(await db.get('nope'), undefined)
    await db.close()
  }
})

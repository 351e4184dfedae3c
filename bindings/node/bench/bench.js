'use strict'

// Esker beside classic-level and lmdb: writes, reads and scans, of entries of 16 and 100 bytes, in random order.
//
//   npm install && node bench.js [--entries 1000000] [--value 100] [--rounds 3] [--dir DIRECTORY] [--only esker,classic-level,lmdb]
//
// Each store is filled in a directory of its own, with the settings that its package has by default but for LMDB's compression, which is
// off there too. Rounds go over the stores in turn, and the table has the median of them. What is not installed is left out.
// A store of the name `nothing`, which has to be asked for, shows what abstract-level takes where no store does anything.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { parseArgs } = require('node:util')
const { Nothing } = require('./nothing')

const { values: options } = parseArgs({
  options: {
    entries: { type: 'string', default: '1000000' },
    value: { type: 'string', default: '100' },
    rounds: { type: 'string', default: '3' },
    dir: { type: 'string', default: os.tmpdir() },
    only: { type: 'string', default: 'esker,classic-level,lmdb' }
  }
})
const ENTRIES = positive('entries')
const VALUE_BYTES = positive('value')
const ROUNDS = positive('rounds')
const BATCH = 1000
/** Calls that are under way at the same time where a program would have many. */
const TOGETHER = 64

function positive (name) {
  const given = Number(options[name])
  if (!Number.isSafeInteger(given) || given < 1) throw new TypeError(`--${name} is a number from 1 on`)
  return given
}

/** Key of the entry with this number, in an order that is the same in each run and looks random. */
function key (number) {
  const mixed = (number * 2654435761) % 4294967296
  return `${mixed.toString(16).padStart(8, '0')}${number.toString(16).padStart(8, '0')}`
}

/** Half of it can be compressed away. */
function value (number) {
  const half = VALUE_BYTES >>> 1
  const text = (number * 40503 + 12345).toString(36)
  return text.repeat(Math.ceil(half / text.length)).slice(0, half) + 'x'.repeat(VALUE_BYTES - half)
}

/** Of abstract-level: `make` gives one in a directory. */
function level (make) {
  return async (directory) => {
    const db = make(directory)
    await db.open()
    return {
      put: (k, v) => db.put(k, v),
      putSynced: (k, v) => db.put(k, v, { sync: true }),
      batch: (entries) => db.batch(entries.map(([k, v]) => ({ type: 'put', key: k, value: v }))),
      get: (k) => db.get(k),
      getSync: (k) => db.getSync(k),
      getMany: (keys) => db.getMany(keys),
      async scan (from, limit) {
        let bytes = 0
        for await (const [k, v] of db.iterator({ gte: from, limit })) bytes += k.length + v.length
        return bytes
      },
      async all () {
        let bytes = 0
        const iterator = db.iterator()
        for (let some; (some = await iterator.nextv(1000)).length > 0;) for (const [k, v] of some) bytes += k.length + v.length
        await iterator.close()
        return bytes
      },
      close: () => db.close()
    }
  }
}

function lmdb ({ open }) {
  return async (directory) => {
    const db = open({ path: directory, encoding: 'string' })
    return {
      put: (k, v) => db.put(k, v),
      async putSynced (k, v) {
        await db.put(k, v)
        await db.flushed
      },
      batch: (entries) => db.transaction(() => { for (const [k, v] of entries) db.put(k, v) }),
      get: async (k) => db.get(k),
      getSync: (k) => db.get(k),
      getMany: (keys) => db.getMany(keys),
      async scan (from, limit) {
        let bytes = 0
        for (const { key: k, value: v } of db.getRange({ start: from, limit })) bytes += k.length + v.length
        return bytes
      },
      async all () {
        let bytes = 0
        for (const { key: k, value: v } of db.getRange({})) bytes += k.length + v.length
        return bytes
      },
      close: () => db.close()
    }
  }
}

const STORES = {
  esker: () => {
    const { EskerLevel } = require('..')
    return level((directory) => new EskerLevel(directory))
  },
  'classic-level': () => {
    const { ClassicLevel } = require('classic-level')
    return level((directory) => new ClassicLevel(directory))
  },
  lmdb: () => lmdb(require('lmdb')),
  nothing: () => level(() => new Nothing([key(0), value(0)], ENTRIES))
}

async function together (count, call) {
  let next = 0
  const lane = async () => { while (next < count) await call(next++) }
  await Promise.all(Array.from({ length: TOGETHER }, lane))
}

/** What is measured, in this order. Each gives how many entries it handled. */
const WORK = {
  async 'write, batches of 1000' (db) {
    for (let at = 0; at < ENTRIES; at += BATCH) {
      const entries = Array.from({ length: Math.min(BATCH, ENTRIES - at) }, (_, i) => [key(at + i), value(at + i)])
      await db.batch(entries)
    }
    return ENTRIES
  },
  async 'write, one by one' (db) {
    const count = Math.ceil(ENTRIES / 20)
    for (let i = 0; i < count; i++) await db.put(key(i), value(i + 1))
    return count
  },
  async 'write, 64 at a time' (db) {
    const count = Math.ceil(ENTRIES / 20)
    await together(count, (i) => db.put(key(i), value(i + 2)))
    return count
  },
  async 'write, synced' (db) {
    const count = Math.ceil(ENTRIES / 200)
    for (let i = 0; i < count; i++) await db.putSynced(key(i), value(i + 3))
    return count
  },
  async 'get, one by one' (db) {
    const count = Math.ceil(ENTRIES / 20)
    for (let i = 0; i < count; i++) found(await db.get(key(scattered(i))))
    return count
  },
  async 'get, 64 at a time' (db) {
    const count = Math.ceil(ENTRIES / 20)
    await together(count, async (i) => found(await db.get(key(scattered(i)))))
    return count
  },
  async 'getSync' (db) {
    const count = Math.ceil(ENTRIES / 4)
    for (let i = 0; i < count; i++) found(db.getSync(key(scattered(i))))
    return count
  },
  async 'getMany, 100 each' (db) {
    const rounds = Math.ceil(ENTRIES / 1000)
    for (let round = 0; round < rounds; round++) {
      const values = await db.getMany(Array.from({ length: 100 }, (_, i) => key(scattered(round * 100 + i))))
      values.forEach(found)
    }
    return rounds * 100
  },
  async 'scan of all' (db) {
    found(await db.all() || undefined)
    return ENTRIES
  },
  async 'scans of 50' (db) {
    const count = Math.ceil(ENTRIES / 50)
    for (let i = 0; i < count; i++) await db.scan(key(scattered(i)), 50)
    return count * 50
  }
}

function scattered (number) {
  return (number * 7919) % ENTRIES
}

/** A store that gives nothing would be the fastest. */
function found (got) {
  if (got === undefined) throw new Error('an entry is missing')
}

async function main () {
  const stores = {}
  for (const name of options.only.split(',')) {
    if (STORES[name] === undefined) throw new TypeError(`no such store: ${name}`)
    try {
      stores[name] = STORES[name]()
    } catch (err) {
      console.error(`${name} is left out: ${err.message.split('\n')[0]}`)
    }
  }
  const root = fs.mkdtempSync(path.join(options.dir, 'esker-bench-node-'))
  const rates = {}
  try {
    for (let round = 0; round < ROUNDS; round++) {
      for (const [name, open] of Object.entries(stores)) {
        const directory = path.join(root, `${name}-${round}`)
        const db = await open(directory)
        for (const [work, run] of Object.entries(WORK)) {
          global.gc?.()
          const begun = process.hrtime.bigint()
          const count = await run(db)
          const seconds = Number(process.hrtime.bigint() - begun) / 1e9
          ;((rates[work] ??= {})[name] ??= []).push(count / seconds)
        }
        await db.close()
        fs.rmSync(directory, { recursive: true, force: true })
      }
    }
  } finally {
    fs.rmSync(root, { recursive: true, force: true })
  }
  report(rates, Object.keys(stores))
}

function median (numbers) {
  const sorted = numbers.toSorted((a, b) => a - b)
  return sorted[sorted.length >>> 1]
}

function report (rates, names) {
  console.log(`entries a second: ${ENTRIES} entries, values of ${VALUE_BYTES} bytes, the median of ${ROUNDS}\n`)
  console.log(`| | ${names.join(' | ')} |\n|---${'|---:'.repeat(names.length)}|`)
  for (const [work, of] of Object.entries(rates)) {
    console.log(`| ${work} | ${names.map((name) => Math.round(median(of[name])).toLocaleString('en')).join(' | ')} |`)
  }
}

main().catch((err) => {
  console.error(err)
  process.exit(1)
})

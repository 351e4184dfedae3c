'use strict'

// What the event loop has of its time while a program puts and gets in a loop, with calls at once and with calls in the pool: how long a
// timer of a millisecond takes to have its turn.
//
//   node event-loop.js [SECONDS] [MEMORY IN MIB]

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { EskerLevel } = require('..')

const SECONDS = Number(process.argv[2] ?? 20)
const MEMORY = Number(process.argv[3] ?? 16) * 2 ** 20
const KEYS = 2_000_000

function key () {
  return `key ${(Math.floor(Math.random() * KEYS) * 2654435761) % 4294967296}`
}

async function measure (inPlace, location) {
  const db = new EskerLevel(location, { inPlace, memory: MEMORY })
  await db.open()
  const delays = []
  let last = performance.now()
  const timer = setInterval(() => {
    const now = performance.now()
    delays.push(now - last)
    last = now
  }, 1)
  const value = 'x'.repeat(200)
  const until = performance.now() + SECONDS * 1000
  let calls = 0
  for (; performance.now() < until; calls += 2) {
    await db.put(key(), value)
    await db.get(key())
  }
  clearInterval(timer)
  await db.close()
  delays.sort((a, b) => a - b)
  const at = (share) => delays[Math.min(delays.length - 1, Math.floor(delays.length * share))].toFixed(1)
  console.log(`inPlace: ${inPlace}: ${Math.round(calls / SECONDS)} calls a second; the timer after ${at(0.5)} ms, 99 of 100 within ${at(0.99)}, at worst ${at(1)}`)
}

async function main () {
  const root = fs.mkdtempSync(path.join(os.tmpdir(), 'esker-event-loop-'))
  try {
    for (const inPlace of [true, false]) await measure(inPlace, path.join(root, String(inPlace)))
  } finally {
    fs.rmSync(root, { recursive: true, force: true })
  }
}

main().catch((err) => {
  console.error(err)
  process.exit(1)
})

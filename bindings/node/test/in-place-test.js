'use strict'

// Calls that run on the thread of the event loop: what they must leave as it was.

const test = require('tape')
const { EskerLevel } = require('..')
const { temporary } = require('./places')

async function filled (options) {
  const db = new EskerLevel(temporary(), options)
  await db.batch(Array.from({ length: 1000 }, (_, i) => ({ type: 'put', key: `key ${String(i).padStart(4, '0')}`, value: `v${i}` })))
  return db
}

/** How many rounds of `work` were awaited when a timer of five milliseconds had its turn, and `most` when it had none. */
async function roundsBesideATimer (most, work) {
  let hadItsTurn = false
  const timer = setTimeout(() => { hadItsTurn = true }, 5)
  let rounds = 0
  while (!hadItsTurn && rounds < most) await work(rounds++)
  clearTimeout(timer)
  return rounds
}

test('a program that awaits nothing but the store lets timers have their turn', async (t) => {
  const db = await filled()
  const most = 1_000_000
  const works = {
    get: (i) => db.get(`key ${String(i % 1000).padStart(4, '0')}`),
    has: () => db.has('key 0001'),
    put: (i) => db.put('one', `v${i}`),
    del: () => db.del('one'),
    batch: (i) => db.batch([{ type: 'put', key: 'two', value: `v${i}` }]),
    'chained batch': (i) => db.batch().put('two', `v${i}`).write(),
    'short walks': () => db.keys({ gte: 'key 05', limit: 10 }).all(),
    nextv: async () => {
      const iterator = db.iterator()
      await iterator.nextv(20)
      await iterator.close()
    }
  }
  for (const [name, work] of Object.entries(works)) {
    const rounds = await roundsBesideATimer(most, work)
    t.ok(rounds < most, `${name}: ${rounds} rounds`)
  }
  await db.close()
})

test('writes of all kinds take effect in the order in which they were begun, some of them at once', async (t) => {
  const db = await filled()
  const last = new Map()
  const big = 'x'.repeat(40_000)
  let writes = []
  for (let i = 0; i < 3000; i++) {
    const key = `k${(i * 7919) % 11}`
    // What waits for the device, and what is long, goes to the pool: what is begun behind it must not come before it.
    const options = { sync: i % 97 === 0 }
    const value = `v${i}`
    const kind = i % 5
    if (kind === 0) writes.push(db.put(key, value, options))
    else if (kind === 1) writes.push(db.batch([{ type: 'put', key: 'long', value: big }, { type: 'put', key, value }], options))
    else if (kind === 2) writes.push(db.batch().put(key, value).write(options))
    else if (kind === 3) writes.push(db.del(key, options))
    else writes.push(db.batch([{ type: 'del', key }], options))
    last.set(key, kind < 3 ? value : undefined)
    if (i % 250 === 249) {
      await Promise.all(writes)
      writes = []
      for (const [key, value] of last) t.is(await db.get(key), value, `${key} after ${i}`)
    }
  }
  await db.close()
})

test('a batch that cannot be is refused alone, and leaves nothing', async (t) => {
  const db = await filled()
  const busy = db.put('first', 'v', { sync: true })
  const before = db.put('before', 'v')
  const refused = db.batch([{ type: 'put', key: 'half', value: 'v' }, { type: 'put', key: 'k'.repeat(70_000), value: 'v' }])
  const after = db.batch([{ type: 'put', key: 'after', value: 'v' }])
  t.is(await refused.then(() => 'written', (err) => err.code), 'LEVEL_INVALID_KEY')
  await Promise.all([busy, before, after])
  t.same(await db.getMany(['first', 'before', 'half', 'after']), ['v', 'v', undefined, 'v'])
  await db.close()
})

test('with inPlace: false everything is as with it', async (t) => {
  for (const inPlace of [false, true, undefined, null]) {
    const db = await filled({ inPlace })
    t.is(await db.get('key 0007'), 'v7')
    t.is(await db.get('none'), undefined)
    t.same([await db.has('key 0007'), await db.has('none')], [true, false])
    const snapshot = db.snapshot()
    await db.put('key 0007', 'new')
    await db.del('key 0008')
    t.same([await db.get('key 0007', { snapshot }), await db.has('key 0008', { snapshot })], ['v7', true])
    t.same([await db.get('key 0007'), await db.has('key 0008')], ['new', false])
    t.same(await db.iterator({ gte: 'key 0006', limit: 3, snapshot }).all(), [['key 0006', 'v6'], ['key 0007', 'v7'], ['key 0008', 'v8']])
    t.is(Buffer.compare(await db.get('key 0007', { valueEncoding: 'buffer' }), Buffer.from('new')), 0)
    let seen = 0
    for await (const [key] of db.iterator()) if (key.startsWith('key ')) seen++
    t.is(seen, 999)
    await snapshot.close()
    for (const call of [() => db.put('k'.repeat(70_000), 'v'), () => db.get('k'.repeat(70_000))]) {
      try {
        await call()
        t.fail('a key over the limit')
      } catch (err) {
        t.is(err.code, 'LEVEL_INVALID_KEY')
      }
    }
    await db.close()
    try {
      await db.get('key 0007')
      t.fail('it is closed')
    } catch (err) {
      t.is(err.code, 'LEVEL_DATABASE_NOT_OPEN')
    }
  }
})

test('a write that waits for the device is not made on this thread', async (t) => {
  for (const [options, write] of [[{}, { sync: true }], [{ durability: 'synced' }, {}]]) {
    const db = await filled(options)
    const before = db.stats().logSyncs
    let isDone = false
    const put = db.put('k', 'v', write).then(() => { isDone = true })
    // What is done at once is known after the promises of this turn.
    for (let i = 0; i < 20; i++) await null
    t.notOk(isDone)
    await put
    t.ok(db.stats().logSyncs > before)
    await db.close()
  }
})

'use strict'

// What Esker has beside the interface of abstract-level, and what it promises about it.

const fs = require('node:fs')
const path = require('node:path')
const test = require('tape')
const { EntryStream, KeyStream } = require('level-read-stream')
const { pipeline } = require('node:stream/promises')
const { EskerLevel, Level } = require('..')
const { temporary } = require('./places')
const { run } = require('./processes')

async function filled (count, options) {
  const db = new EskerLevel(temporary(), options)
  await db.batch(Array.from({ length: count }, (_, i) => ({ type: 'put', key: `key ${String(i).padStart(6, '0')}`, value: 'v'.repeat(100) })))
  return db
}

test('names, places and what is supported', async (t) => {
  t.is(Level, EskerLevel, 'a program that uses the package level changes one word')
  const location = path.join(temporary(), 'below', 'others')
  const db = new EskerLevel(location)
  t.is(db.location, location)
  await db.open()
  t.ok(fs.existsSync(location), 'directories above are made')
  const { supports } = db
  t.ok(supports.implicitSnapshots && supports.explicitSnapshots && supports.getSync && supports.permanence && supports.seek && supports.has)
  for (const method of Object.keys(supports.additionalMethods)) t.is(typeof db[method], 'function', method)
  await db.close()
})

test('each kind of durability, for the store and for a write', async (t) => {
  const db = await filled(0)
  const syncs = () => db.stats().logSyncs
  await db.open()
  const before = syncs()
  await db.put('a', '1')
  await db.batch().put('b', '2').write()
  t.is(syncs(), before, 'buffered by default')
  await db.put('a', '1', { sync: true })
  await db.del('a', { sync: true })
  await db.batch([{ type: 'put', key: 'b', value: '2' }], { sync: true })
  await db.batch().put('c', '3').write({ sync: true })
  t.is(syncs(), before + 4, 'each synced write is one sync')
  await db.put('d', '4')
  await db.clear({ sync: true })
  t.is(syncs(), before + 5, 'clear makes one, at its end')
  await db.close()
  await db.open({ durability: 'synced' })
  const synced = syncs()
  await db.put('a', '1')
  t.is(syncs(), synced + 1, 'synced as the store was opened')
  await db.put('a', '1', { sync: false })
  t.is(syncs(), synced + 1, 'unless the write says otherwise')
  await db.close()
})

test('writes that are begun together take effect in their order, and share crossings', async (t) => {
  const db = await filled(0)
  const last = new Map()
  const writes = []
  for (let i = 0; i < 5000; i++) {
    const key = `k${(i * 7919) % 37}`
    const value = i % 3 === 0 ? undefined : `v${i}${'x'.repeat(i % 500)}`
    writes.push(value === undefined ? db.del(key) : db.put(key, value))
    last.set(key, value)
  }
  await Promise.all(writes)
  for (const [key, value] of last) t.is(await db.get(key), value, key)
  const before = db.stats().logSyncs
  await Promise.all(Array.from({ length: 100 }, (_, i) => db.put(`s${i}`, 'v', { sync: true })))
  t.is(db.stats().logSyncs, before + 2, '99 synced writes behind one wait for the device together')
  t.is((await db.keys({ gte: 's', lt: 't' }).all()).length, 100)
  await db.close()
})

test('one of many writes that cannot be is told to its writer alone', async (t) => {
  const db = await filled(0)
  const writes = Array.from({ length: 100 }, (_, i) => db.put(i % 10 === 5 ? 'k'.repeat(70_000) : `key ${i}`, 'v'))
  const ended = await Promise.allSettled(writes)
  for (const [i, { status, reason }] of ended.entries()) {
    if (i % 10 === 5) t.is(reason?.code, 'LEVEL_INVALID_KEY', `${i}`)
    else t.is(status, 'fulfilled', `${i}`)
  }
  t.is((await db.keys().all()).length, 90)
  await db.close()
})

test('writes that were begun before close are written', async (t) => {
  const location = temporary()
  const db = new EskerLevel(location)
  await db.open()
  const writes = Array.from({ length: 1000 }, (_, i) => db.put(`key ${i}`, 'v'.repeat(5000)))
  await Promise.all([db.close(), ...writes])
  await db.open()
  t.is((await db.keys().all()).length, 1000)
  await db.close()
})

test('a read sees the store as it was when it was called, however many are under way', async (t) => {
  const db = await filled(500)
  const key = (i) => `key ${String(i).padStart(6, '0')}`
  const reads = Array.from({ length: 3000 }, (_, i) => db.get(key(i % 600), i % 4 === 0 ? { valueEncoding: 'buffer' } : {}))
  const writes = Array.from({ length: 600 }, (_, i) => db.put(key(i), 'later'))
  const wrong = (await Promise.all(reads)).filter((value, i) => {
    if (i % 600 >= 500) return value !== undefined
    return Buffer.isBuffer(value) !== (i % 4 === 0) || String(value) !== 'v'.repeat(100)
  })
  t.is(wrong.length, 0)
  await Promise.all(writes)
  const pairs = await Promise.all(Array.from({ length: 100 }, async (_, i) => {
    await db.put(`own ${i}`, `${i}`)
    return db.get(`own ${i}`)
  }))
  t.ok(pairs.every((value, i) => value === `${i}`), 'each sees what was written before it was begun')
  await db.close()
})

test('what was written survives kill -9', async (t) => {
  const location = temporary()
  const { signal } = await run(`
    const db = new esker.EskerLevel(args[0])
    for (let i = 0; i < 200; i++) await db.put('k' + i, 'v')
    process.kill(process.pid, 'SIGKILL')`, [location])
  t.is(signal, 'SIGKILL')
  const db = new EskerLevel(location)
  t.is((await db.keys().all()).length, 200)
  await db.close()
})

test('an iterator reads ahead in chunks of bounded size', async (t) => {
  const db = await filled(3000)
  const read = async (options, size) => {
    const iterator = db.iterator(options)
    const entries = await iterator.nextv(size)
    await iterator.close()
    return entries.length
  }
  const entry = 'key 000000'.length + 100
  t.is(await read({}, 3000), Math.floor(64 * 1024 / entry) + 1, '64 KiB by default')
  t.is(await read({ highWaterMarkBytes: 0 }, 10), 1, 'one entry at least')
  t.is(await read({ highWaterMarkBytes: 2 * entry }, 10), 3, 'it must be exceeded')
  t.is(await read({ highWaterMarkBytes: 2 * entry - 1 }, 10), 2)
  t.is(await read({ highWaterMarkBytes: Infinity }, 3000), 3000, 'no bound')
  t.is(await read({ highWaterMarkBytes: 1e9 }, 7), 7, 'nor more than was asked for')
  t.is((await db.iterator({ highWaterMarkBytes: 0 }).all()).length, 3000, 'all() is of all')
  t.is((await db.keys({ limit: 10, reverse: true }).all()).length, 10)
  await db.close()
})

test('what an iterator has begun to read when it is aborted or closed is nothing that anybody sees', async (t) => {
  const db = await filled(5000)
  const reading = async (options) => {
    const iterator = db.iterator(options)
    for (let i = 0; i < 3; i++) t.ok((await iterator.nextv(1000)).length > 500)
    return iterator
  }
  const aborter = new AbortController()
  const aborted = await reading({ signal: aborter.signal })
  aborter.abort()
  const err = await aborted.nextv(1000).then(() => null, (err) => err)
  t.is(err?.code, 'LEVEL_ABORTED')
  await aborted.close()
  const closed = await reading({})
  await closed.close()
  t.is((await closed.next().catch((err) => err)).code, 'LEVEL_ITERATOR_NOT_OPEN')
  const left = await reading({})
  await db.close()
  t.is((await left.next().catch((err) => err)).code, 'LEVEL_ITERATOR_NOT_OPEN', 'closed with its store')
})

test('what is read is a copy: a key that is kept keeps no chunk', async (t) => {
  const db = await filled(1000)
  const keys = await db.keys({ keyEncoding: 'buffer' }).all()
  t.ok(keys.every((key) => key.buffer.byteLength <= Buffer.poolSize), 'at most what Node keeps for any small buffer')
  const values = await db.values({ valueEncoding: 'buffer' }).all()
  const before = String(await db.get('key 000000'))
  values[0].fill(0)
  t.is(String(await db.get('key 000000')), before, 'and it can be written to')
  const large = Buffer.alloc(3 << 20, 1)
  await db.put('large', large, { valueEncoding: 'buffer' })
  const got = await db.get('large', { valueEncoding: 'buffer' })
  got.fill(2)
  t.ok((await db.get('large', { valueEncoding: 'buffer' })).equals(large), 'a large one too')
  t.ok(db.getSync('large', { valueEncoding: 'buffer' }).equals(large))
  t.ok((await db.getMany(['large'], { valueEncoding: 'view' }))[0].length === large.length)
  await db.close()
})

test('text of every kind comes back as it was, by every way', async (t) => {
  const texts = ['', 'a', 'ä', '漢', '😀', '\0', 'a'.repeat(124), 'a'.repeat(127), 'a'.repeat(128), 'ä'.repeat(62), 'ä'.repeat(64), '😀'.repeat(31),
    '😀'.repeat(32), '漢'.repeat(42), '漢'.repeat(43) + 'a', 'x' + '漢'.repeat(20_000)]
  const db = await filled(0)
  for (const text of texts) {
    await db.put(text, text)
    t.is(await db.get(text), text, `${text.length} characters`)
    t.is(db.getSync(text), text)
    t.is(String(await db.get(text, { valueEncoding: 'buffer' })), text)
    await db.clear()
    await db.batch().put(text, text).write()
    t.same(await db.iterator().all(), [[text, text]])
    await db.batch([{ type: 'del', key: text }])
    t.is(await db.has(text), false)
  }
  await db.put('half \ud800', 'half \udc00')
  t.is(await db.get('half \ufffd'), 'half \ufffd', 'half a character is replaced, as Node does')
  await db.batch().put('half \ud801', 'x').write()
  t.is((await db.keys().all()).length, 1, 'also in batches')
  await db.close()
})

test('clear deletes a range in batches, and sees what was there when it began', async (t) => {
  const db = await filled(10_000)
  await db.clear({ gte: 'key 000010', lt: 'key 009990', limit: 5000 })
  t.is((await db.keys().all()).length, 5000)
  const snapshot = db.snapshot()
  await db.put('later', 'x')
  await db.clear({ snapshot })
  t.same(await db.keys().all(), ['later'])
  await snapshot.close()
  const cleared = db.clear()
  await db.put('meanwhile', 'x')
  await cleared
  t.same(await db.keys().all(), ['meanwhile'])
  await db.close()
})

test('sizes, compaction, properties and figures', async (t) => {
  const db = await filled(20_000, { compression: false })
  await db.flush()
  const [whole, half] = [await db.approximateSize('key', 'l'), await db.approximateSize('key', 'key 010000')]
  t.ok(whole > 2_000_000 && whole < 4_000_000, `${whole} bytes`)
  t.ok(half > whole * 0.35 && half < whole * 0.65, `${half} bytes are half of it`)
  t.is(await db.approximateSize('x', 'z'), 0)
  await db.clear({ limit: 19_000 })
  await db.compactRange('key', 'l')
  t.ok(await db.approximateSize('key', 'l') < whole / 5, 'a compaction gives space back')
  t.match(db.getProperty('esker.stats'), /table_bytes/)
  const stats = db.stats()
  t.is(db.getProperty('esker.sequence'), String(stats.sequence))
  t.ok(stats.tableBytes > 0 && stats.bytesWritten > 2_000_000 && stats.snapshots === 0, 'figures')
  await db.compactRange('z', 'a')
  t.pass('a range of nothing')
  await db.resume()
  t.pass('resuming what never stopped')
  await db.close()
})

test('checkpoint, verify, destroy', async (t) => {
  const db = await filled(1000)
  const copy = temporary()
  await db.checkpoint(copy)
  try {
    await db.checkpoint(copy)
    t.fail('twice into one directory')
  } catch (err) {
    t.ok(err.code, err.message)
  }
  await db.clear()
  await db.close()
  const other = new EskerLevel(copy)
  t.is((await other.keys().all()).length, 1000, 'the checkpoint is as the store was')
  await other.close()
  const found = await EskerLevel.verify(copy)
  t.ok(found.files > 0 && found.bytes > 0 && found.entries >= 1000 && found.problems.length === 0, JSON.stringify(found))
  t.is((await EskerLevel.repair(copy)).changed, false, 'a sound store stays as it is')

  fs.writeFileSync(path.join(copy, 'mine'), 'x')
  await EskerLevel.destroy(copy)
  t.same(fs.readdirSync(copy), ['mine'], 'files of others stay')
  await EskerLevel.destroy(copy)
  await EskerLevel.destroy(temporary())
  t.pass('where there is no store there is none to remove')
  await EskerLevel.destroy(db.location)
  t.notOk(fs.existsSync(db.location), 'nothing is left')
})

test('sublevels, also in one batch', async (t) => {
  const db = await filled(0, { valueEncoding: 'json' })
  const users = db.sublevel('users', { valueEncoding: 'json' })
  const byAge = db.sublevel('age', { keyEncoding: 'utf8' })
  await db.batch([
    { type: 'put', sublevel: users, key: 'ada', value: { age: 36 } },
    { type: 'put', sublevel: byAge, key: '036 ada', value: '' }
  ])
  t.same(await users.get('ada'), { age: 36 })
  t.same(users.getSync('ada'), { age: 36 })
  t.same(await byAge.keys({ gte: '030' }).all(), ['036 ada'])
  const snapshot = users.snapshot()
  await users.del('ada')
  t.same(await users.get('ada', { snapshot }), { age: 36 })
  await snapshot.close()
  await byAge.clear()
  t.same(await db.keys().all(), [])
  await db.close()
})

test('calls before the opening has ended wait for it', async (t) => {
  const db = new EskerLevel(temporary())
  const checkpoint = temporary()
  const all = Promise.all([
    db.put('a', '1'), db.flush(), db.sync(), db.resume(), db.compactRange('a', 'b'), db.approximateSize('a', 'b'), db.checkpoint(checkpoint), db.clear()
  ])
  t.is(db.status, 'opening')
  await all
  t.is(db.status, 'open')
  t.ok(fs.existsSync(checkpoint))
  await db.close()
})

test('a read sees what was there when it was called', async (t) => {
  const db = await filled(0)
  let wrong = 0
  for (let i = 0; i < 300; i++) {
    await db.put('a', `${i}`)
    const before = [db.get('a'), db.getMany(['a']), db.has('b'), db.hasMany(['b']), db.iterator().all()]
    await Promise.all([db.put('a', 'later'), db.put('b', 'later')])
    const [one, [many], has, [hasMany], [[, walked], ...more]] = await Promise.all(before)
    if (one !== `${i}` || many !== `${i}` || has || hasMany || walked !== `${i}` || more.length > 0) wrong++
    await db.del('b')
  }
  t.is(wrong, 0)
  await db.close()
})

test('options of LevelDB are left aside', async (t) => {
  const leveldb = { cacheSize: 8 << 20, writeBufferSize: 4 << 20, maxOpenFiles: 10, blockRestartInterval: 16, maxFileSize: 1 }
  const db = await filled(10, leveldb)
  t.is((await db.keys().all()).length, 10)
  await db.close()
})

test('reads at once, while writes are under way', async (t) => {
  const db = await filled(5000)
  let writing = true
  const writes = Promise.all(Array.from({ length: 200 }, (_, i) => db.put(`large ${i}`, 'v'.repeat(100_000), { sync: true })))
  const written = writes.finally(() => { writing = false })
  let missing = 0
  for (let i = 0; writing; i = (i + 1) % 5000) {
    if (db.getSync(`key ${String(i).padStart(6, '0')}`)?.length !== 100) missing++
    await new Promise(setImmediate)
  }
  await written
  t.is(missing, 0)
  t.is((await db.keys({ gte: 'large' }).all()).length, 200)
  await db.close()
})

test('the longest values', { skip: !process.env.ESKER_CAMPAIGN }, async (t) => {
  const db = await filled(0)
  const binary = { valueEncoding: 'buffer' }
  await db.put('text', Buffer.alloc(2 ** 29 + 1, 'x'), binary)
  for (const read of [() => db.get('text'), async () => db.getSync('text'), () => db.getMany(['text']), () => db.values().all()]) {
    try {
      await read()
      t.fail('a string of 512 MiB')
    } catch (err) {
      t.is(err.code, 'LEVEL_DECODE_ERROR', err.message)
    }
  }
  t.is((await db.get('text', binary)).length, 2 ** 29 + 1)
  const value = Buffer.alloc(2 ** 30, 1)
  await db.put('longest', value, binary)
  await db.batch([{ type: 'put', key: 'batched', value, ...binary }])
  t.is((await db.get('batched', binary)).length, 2 ** 30)
  try {
    await db.batch(['a', 'b', 'c', 'd'].map((key) => ({ type: 'put', key, value, ...binary })))
    t.fail('a batch of 4 GiB')
  } catch (err) {
    t.is(err.code, 'ESKER_BATCH_TOO_LARGE')
  }
  t.is(await db.has('a'), false)
  await db.close()
})

test('streams of level-read-stream, which wait for those who read', async (t) => {
  const db = await filled(5000)
  let read = 0
  await pipeline(new EntryStream(db, { highWaterMark: 100, highWaterMarkBytes: 1000 }), async function (entries) {
    for await (const { key } of entries) {
      if (++read % 1000 === 0) await new Promise((resolve) => setTimeout(resolve, 1))
      if (key === 'key 004000') break
    }
  })
  t.is(read, 4001)
  const keys = []
  for await (const key of new KeyStream(db, { reverse: true, limit: 3 })) keys.push(key)
  t.same(keys, ['key 004999', 'key 004998', 'key 004997'])
  await db.close()
})

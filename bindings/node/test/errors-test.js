'use strict'

// What a program can do wrong, and what it is told.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const test = require('tape')
const { EskerLevel } = require('..')
const { temporary } = require('./places')
const { run } = require('./processes')

/** What a promise is rejected with. */
async function failure (promise) {
  try {
    await promise
  } catch (err) {
    return err
  }
  throw new Error('it did not fail')
}

async function opened (options) {
  const db = new EskerLevel(temporary(), options)
  await db.open()
  return db
}

test('each call after close says that the database is not open', async (t) => {
  const db = await opened()
  await db.put('a', '1')
  const iterator = db.iterator()
  const snapshot = db.snapshot()
  const batch = db.batch().put('b', '2')
  await db.close()
  await db.close()

  const calls = {
    get: () => db.get('a'),
    getMany: () => db.getMany(['a']),
    has: () => db.has('a'),
    hasMany: () => db.hasMany(['a']),
    put: () => db.put('a', '1'),
    del: () => db.del('a'),
    batch: () => db.batch([{ type: 'del', key: 'a' }]),
    clear: () => db.clear(),
    approximateSize: () => db.approximateSize('a', 'b'),
    compactRange: () => db.compactRange('a', 'b'),
    checkpoint: () => db.checkpoint(temporary()),
    flush: () => db.flush(),
    sync: () => db.sync(),
    resume: () => db.resume(),
    getSync: async () => db.getSync('a'),
    getProperty: async () => db.getProperty('esker.stats'),
    stats: async () => db.stats(),
    iterator: async () => db.iterator(),
    snapshot: async () => db.snapshot()
  }
  for (const [name, call] of Object.entries(calls)) {
    t.is((await failure(call())).code, 'LEVEL_DATABASE_NOT_OPEN', name)
  }
  t.is((await failure(iterator.next())).code, 'LEVEL_ITERATOR_NOT_OPEN', 'its iterators')
  t.is((await failure(batch.write())).code, 'LEVEL_BATCH_NOT_OPEN', 'its batches')

  await db.open()
  t.is(await db.get('a'), '1', 'and it can be opened again')
  t.is((await failure(db.get('a', { snapshot }))).code, 'LEVEL_SNAPSHOT_NOT_OPEN', 'its snapshots stay closed')
  await db.close()
})

test('null and undefined are no keys and no values', async (t) => {
  const db = await opened()
  for (const bad of [null, undefined]) {
    t.is((await failure(db.get(bad))).code, 'LEVEL_INVALID_KEY')
    t.is((await failure(db.put(bad, 'v'))).code, 'LEVEL_INVALID_KEY')
    t.is((await failure(db.put('k', bad))).code, 'LEVEL_INVALID_VALUE')
    t.is((await failure(db.del(bad))).code, 'LEVEL_INVALID_KEY')
    t.is((await failure(db.getMany([bad]))).code, 'LEVEL_INVALID_KEY')
    t.is((await failure(db.approximateSize(bad, 'b'))).name, bad === undefined ? 'TypeError' : 'Error')
    t.throws(() => db.getSync(bad), (err) => err.code === 'LEVEL_INVALID_KEY')
    t.throws(() => db.batch().put(bad, 'v'), (err) => err.code === 'LEVEL_INVALID_KEY')
  }
  await db.close()
})

test('keys of up to 65,536 bytes, and no longer ones', async (t) => {
  const db = await opened()
  for (const encoding of ['utf8', 'buffer', 'view']) {
    const key = (length) => encoding === 'utf8' ? 'x'.repeat(length) : Buffer.alloc(length, 'x')
    const options = { keyEncoding: encoding }
    await db.put(key(65536), encoding, options)
    t.is(await db.get(key(65536), options), encoding, `${encoding}: the longest`)
    const bad = key(65537)
    t.is((await failure(db.put(bad, 'v', options))).code, 'LEVEL_INVALID_KEY', 'put')
    t.is((await failure(db.get(bad, options))).code, 'LEVEL_INVALID_KEY', 'get')
    t.is((await failure(db.getMany([bad], options))).code, 'LEVEL_INVALID_KEY', 'getMany')
    t.is((await failure(db.has(bad, options))).code, 'LEVEL_INVALID_KEY', 'has')
    t.is((await failure(db.hasMany([bad], options))).code, 'LEVEL_INVALID_KEY', 'hasMany')
    t.is((await failure(db.del(bad, options))).code, 'LEVEL_INVALID_KEY', 'del')
    t.is((await failure(db.batch([{ type: 'put', key: bad, value: 'v', ...options }]))).code, 'LEVEL_INVALID_KEY', 'batch')
    t.throws(() => db.batch().put(bad, 'v', options), (err) => err.code === 'LEVEL_INVALID_KEY', 'chained batch')
    t.throws(() => db.getSync(bad, options), (err) => err.code === 'LEVEL_INVALID_KEY', 'getSync')
    t.is((await db.keys({ gte: bad, ...options }).all()).length, 0, 'but they bound ranges')
  }
  const { message } = await failure(db.put('x'.repeat(65537), 'v'))
  t.is(message, 'a key of 65537 bytes is over the limit of 65536 bytes')
  await db.close()
})

test('values of more than 1 GiB are refused, and nothing of their batch is written', async (t) => {
  const db = await opened({ valueEncoding: 'buffer' })
  // Memory that is never touched, and so never there.
  const bad = Buffer.from(new ArrayBuffer(2 ** 30 + 1))
  t.is((await failure(db.put('k', bad))).code, 'LEVEL_INVALID_VALUE')
  const { code, message } = await failure(db.batch([{ type: 'put', key: 'a', value: Buffer.from('1') }, { type: 'put', key: 'k', value: bad }]))
  t.is(code, 'LEVEL_INVALID_VALUE')
  t.match(message, /^a value of 1073741825 bytes is over the limit of 1073741824 bytes/)
  t.same(await db.keys().all(), [])
  await db.close()
})

test('bytes that are no longer there are no bytes, and shared ones are copied', async (t) => {
  const db = await opened({ keyEncoding: 'view', valueEncoding: 'view' })
  const shared = new Uint8Array(new SharedArrayBuffer(3)).fill(65)
  await db.put(shared, shared)
  shared.fill(66)
  t.is(String(await db.get(Buffer.from('AAA'))), 'AAA')
  const moved = new Uint8Array([1, 2, 3])
  structuredClone(moved.buffer, { transfer: [moved.buffer] })
  await db.put(moved, Buffer.from('detached'))
  t.is(String(await db.get(new Uint8Array(0))), 'detached', 'the empty key')
  const resizable = new Uint8Array(new ArrayBuffer(2, { maxByteLength: 16 })).fill(67)
  const written = db.put(resizable, resizable)
  resizable.buffer.resize(0)
  await written
  t.is(String(await db.get(Buffer.from('CC'))), 'CC')
  await db.close()
})

/** Views that are no Uint8Array. */
const VIEWS = {
  'a Uint16Array': () => Uint16Array.of(0x4142, 0x4344, 0x4546),
  'a Float32Array': () => Float32Array.of(1.5, -2),
  'a BigInt64Array': () => BigInt64Array.of(-3n),
  'a Uint8ClampedArray': () => Uint8ClampedArray.of(1, 255, 3),
  'an Int8Array': () => Int8Array.of(-1, 2),
  'a DataView': () => new DataView(Uint8Array.of(1, 2, 3, 4, 5).buffer),
  'a view into a buffer': () => new Uint16Array(Uint8Array.of(9, 9, 1, 2, 3, 4, 9, 9).buffer, 2, 2),
  'a DataView into a buffer': () => new DataView(Uint8Array.of(9, 9, 1, 2, 3, 9).buffer, 2, 3),
  'an empty view': () => new Uint16Array(0)
}

/** Each way to write an entry: alone, in a batch of each kind, and behind a write that is under way. */
const WRITES = {
  batch: (db, key, value) => db.batch([{ type: 'put', key, value }]),
  'chained batch': (db, key, value) => db.batch().put(key, value).write(),
  put: (db, key, value) => db.put(key, value),
  'put behind another': (db, key, value) => Promise.all([db.put(Buffer.from('other'), Buffer.alloc(0), { sync: true }), db.put(key, value)])
}

const DELETES = {
  del: (db, key) => db.del(key),
  batch: (db, key) => db.batch([{ type: 'del', key }]),
  'chained batch': (db, key) => db.batch().del(key).write(),
  'del behind another': (db, key) => Promise.all([db.put(Buffer.from('other'), Buffer.alloc(0), { sync: true }), db.del(key)])
}

/** A database with `options`, whose next batches are packed in memory that other writes have used. */
async function dirty (options) {
  const db = await opened(options)
  await db.batch([{ type: 'put', key: Buffer.from('dirt'), value: Buffer.alloc(4080, 0xee) }])
  await db.del(Buffer.from('dirt'))
  return db
}

test('a view of any kind is its bytes in each kind of write: batches and queued puts wrote stale memory', async (t) => {
  const encoding = { encode: (data) => data, decode: (data) => data, format: 'buffer', name: 'any view' }
  for (const keyEncoding of ['view', encoding]) {
    const options = { keyEncoding, valueEncoding: keyEncoding, inPlace: false }
    for (const [name, make] of Object.entries(VIEWS)) {
      const view = make()
      const bytes = Buffer.from(new Uint8Array(view.buffer, view.byteOffset, view.byteLength))
      for (const [how, write] of Object.entries(WRITES)) {
        const db = await dirty(options)
        await write(db, view, view)
        await db.del(Buffer.from('other'))
        const found = await db.iterator().all()
        t.same(found.map((entry) => entry.map((data) => Buffer.from(data).toString('hex'))), [[bytes.toString('hex'), bytes.toString('hex')]], `${how} of ${name}`)
        await db.close()
      }
      for (const [how, remove] of Object.entries(DELETES)) {
        const db = await dirty(options)
        await db.put(bytes, bytes)
        await remove(db, view)
        t.is(await db.has(bytes), false, `${how} of ${name}`)
        await db.close()
      }
    }
  }
})

test('a view of any kind finds what stands under its bytes', async (t) => {
  const db = await opened({ keyEncoding: 'view', valueEncoding: 'utf8' })
  for (const [name, make] of Object.entries(VIEWS)) {
    const view = make()
    const bytes = Buffer.from(new Uint8Array(view.buffer, view.byteOffset, view.byteLength))
    await db.put(bytes, name)
    t.is(await db.get(view), name, name)
    t.is(db.getSync(view), name)
    t.same(await db.getMany([view, Buffer.from('none')]), [name, undefined])
    t.is(await db.has(view), true)
    t.same(await db.hasMany([view, Buffer.from('none')]), [true, false])
    t.same(await db.values({ gte: view, lte: view }).all(), [name])
    t.same(await db.keys({ gt: view, lte: view }).all(), [])
    t.same(await db.keys({ gte: view, lt: view }).all(), [])
    const iterator = db.values()
    iterator.seek(view)
    t.is(await iterator.next(), name, 'seek')
    await iterator.close()
    t.is(typeof await db.approximateSize(view, view), 'number')
    await db.compactRange(view, view)
    await db.clear({ gte: view, lte: view })
    t.same(await db.keys().all(), [], 'clear')
  }
  await db.close()
})

test('a view whose memory is gone has no bytes, in a batch as alone', async (t) => {
  for (const Kind of [Uint8Array, Uint16Array, DataView]) {
    for (const [how, write] of Object.entries(WRITES)) {
      const db = await dirty({ keyEncoding: 'view', valueEncoding: 'view' })
      const gone = new Kind(new ArrayBuffer(8))
      structuredClone(gone.buffer, { transfer: [gone.buffer] })
      await write(db, gone, gone)
      t.is((await db.get(new Uint8Array(0)))?.byteLength, 0, `${how} of a ${Kind.name}`)
      await db.close()
    }
  }
})

test('what an encoding gives that is neither text nor bytes is refused, by each call alike', async (t) => {
  for (const bad of [new ArrayBuffer(4), [1, 2], { byteLength: 4 }, 7, null, undefined]) {
    const encoding = { encode: (data) => data === 'bad' ? bad : Buffer.from(data), decode: String, format: 'buffer', name: 'odd' }
    const db = await opened({ keyEncoding: encoding, valueEncoding: encoding })
    const calls = {
      get: () => db.get('bad'),
      getSync: async () => db.getSync('bad'),
      getMany: () => db.getMany(['bad']),
      has: () => db.has('bad'),
      hasMany: () => db.hasMany(['bad']),
      del: () => db.del('bad'),
      'del in a batch': () => db.batch([{ type: 'del', key: 'bad' }]),
      'del in a chained batch': async () => db.batch().del('bad'),
      approximateSize: () => db.approximateSize('bad', 'z'),
      compactRange: () => db.compactRange('a', 'bad'),
      seek: async () => db.iterator().seek('bad')
    }
    if (bad !== null && bad !== undefined) {
      calls.iterator = async () => db.iterator({ gte: 'bad' })
      calls.clear = () => db.clear({ lt: 'bad' })
    }
    for (const [how, write] of Object.entries(WRITES)) {
      calls[`${how}, key`] = async () => write(db, 'bad', 'v')
      calls[`${how}, value`] = async () => write(db, 'k', 'bad')
    }
    for (const [name, call] of Object.entries(calls)) t.is((await failure(call())).code, 'ESKER_INVALID_ARGUMENT', name)
    t.same((await db.keys().all()).filter((key) => key !== 'other'), [], 'and nothing is written')
    await db.close()
  }
})

test('options that cannot be are named', async (t) => {
  const cases = [
    { memory: 'much' }, { memory: -1 }, { memory: 1.5 }, { memory: NaN }, { memory: 1 }, { blockSize: 1000 }, { durability: 'none' },
    { compression: 'gzip' }, { readOnly: 'yes' }, { multithreading: 1 }, { flushOnClose: 'no' }, { blobThreshold: 1 }, { segmentSize: 2 ** 40 }
  ]
  for (const options of cases) {
    const err = await failure(new EskerLevel(temporary(), options).open())
    t.is(err.code, 'LEVEL_DATABASE_NOT_OPEN', JSON.stringify(options))
    t.is(err.cause.code, 'ESKER_INVALID_OPTION', err.cause.message)
  }
  for (const location of [undefined, null, '', 7, {}, 'a\0b']) {
    t.throws(() => new EskerLevel(location), TypeError, String(location))
    t.is((await failure(EskerLevel.destroy(location))).name, 'TypeError')
    t.is((await failure(EskerLevel.repair(location))).name, 'TypeError')
    t.is((await failure(EskerLevel.verify(location))).name, 'TypeError')
  }
  const db = await opened()
  t.throws(() => db.iterator({ highWaterMarkBytes: -1 }), TypeError)
  t.throws(() => db.getProperty(7), TypeError)
  t.is(db.getProperty('leveldb.stats'), '', 'no such property')
  await db.close()
})

test('a directory that another has open', async (t) => {
  const db = await opened()
  const here = await failure(new EskerLevel(db.location).open())
  t.is(here.code, 'LEVEL_DATABASE_NOT_OPEN')
  t.is(here.cause.code, 'LEVEL_LOCKED', 'in this process')
  const there = await run('await new esker.EskerLevel(args[0]).open().catch((err) => console.log(err.cause.code))', [db.location])
  t.is(there.out, 'LEVEL_LOCKED', 'in another')
  await db.close()
  const after = await run('await new esker.EskerLevel(args[0]).open(); console.log("opened")', [db.location])
  t.is(after.out, 'opened', 'until it is closed')
})

test('directories that are not as expected', async (t) => {
  const files = temporary()
  fs.mkdirSync(files)
  fs.writeFileSync(path.join(files, 'CURRENT'), 'MANIFEST-000002\n')
  fs.writeFileSync(path.join(files, 'MANIFEST-000002'), 'x')
  t.is((await failure(new EskerLevel(files).open())).cause.code, 'ESKER_FOREIGN_STORE', 'of LevelDB')
  const file = temporary()
  fs.writeFileSync(file, '')
  const { cause } = await failure(new EskerLevel(file).open())
  t.is(cause.code, 'LEVEL_IO_ERROR', 'a file')
  t.is(cause.errno, os.constants.errno.ENOTDIR, cause.message)
  const deep = path.join(file, 'deep')
  t.is((await failure(new EskerLevel(deep).open())).cause.code, 'LEVEL_IO_ERROR', 'below a file')
  const db = await opened()
  await db.close()
  t.is((await failure(db.open({ errorIfExists: true }))).cause.code, 'ESKER_STORE_EXISTS')
  await db.open({ readOnly: true })
  t.is((await failure(db.put('a', '1'))).code, 'LEVEL_READONLY')
  await db.close()
})

test('damage is told as damage, and repaired', async (t) => {
  const db = await opened({ compression: false })
  for (let i = 0; i < 500; i++) await db.put(`key ${i}`, 'value '.repeat(20))
  await db.flush()
  await db.close()
  t.same((await EskerLevel.verify(db.location)).problems, [], 'sound')
  const table = fs.readdirSync(db.location).map((name) => path.join(db.location, name))
    .filter((name) => /\.(tbl|table|sst|et)$|table/i.test(name) || fs.statSync(name).size > 30_000)
    .sort((a, b) => fs.statSync(b).size - fs.statSync(a).size)[0]
  const bytes = fs.readFileSync(table)
  bytes.fill(0xff, 4096, Math.min(bytes.length, 40_000))
  fs.writeFileSync(table, bytes)
  t.ok((await EskerLevel.verify(db.location)).problems.length > 0, 'found')
  let met
  try {
    await db.open()
    met = await failure(db.iterator().all())
  } catch (err) {
    met = err.cause ?? err
  }
  t.is(met.code, 'LEVEL_CORRUPTION', met.message)
  await db.close()
  const done = await EskerLevel.repair(db.location)
  t.ok(done.changed && done.lost.length > 0, 'repair says what is lost')
  await db.open()
  t.ok((await db.keys().all()).length <= 500, 'and it can be read')
  await db.close()
})

test('a repair writes its tables as it is told', async (t) => {
  const db = await opened({ compression: false })
  for (let i = 0; i < 500; i++) await db.put(`key ${i}`, 'value '.repeat(20))
  await db.flush()
  await db.close()
  const [table, ...others] = fs.readdirSync(db.location).filter((name) => name.endsWith('.tbl'))
  t.same(others, [])
  for (const options of [{ compression: 'gzip' }, { compression: 7 }, { blockSize: 'large' }, { blockSize: 5000 }]) {
    t.is((await failure(EskerLevel.repair(db.location, options))).code, 'ESKER_INVALID_OPTION', JSON.stringify(options))
  }
  const sizes = {}
  for (const compression of [undefined, 'lz4', false, 'none']) {
    const copy = `${db.location}-${compression}`
    fs.cpSync(db.location, copy, { recursive: true })
    const file = fs.openSync(path.join(copy, table), 'r+')
    fs.writeSync(file, Buffer.alloc(4096, 0xff), 0, 4096, 4096)
    fs.closeSync(file)
    t.ok((await EskerLevel.repair(copy, { compression })).changed)
    const repaired = new EskerLevel(copy, { readOnly: true })
    await repaired.open()
    sizes[compression] = repaired.stats().tableBytes
    await repaired.close()
  }
  t.is(sizes.undefined, sizes.lz4, JSON.stringify(sizes))
  t.is(sizes.false, sizes.none, JSON.stringify(sizes))
  t.ok(sizes.none > 30_000 && sizes.lz4 < sizes.none, JSON.stringify(sizes))
})

test('of many reads that are begun together only those that meet damage fail', async (t) => {
  const db = await opened({ compression: false })
  const keys = Array.from({ length: 1000 }, (_, i) => `key ${i}`)
  await db.batch(keys.map((key) => ({ type: 'put', key, value: 'value '.repeat(20) })))
  await db.flush()
  await db.close()
  const tables = fs.readdirSync(db.location).filter((name) => name.endsWith('.tbl'))
  t.is(tables.length, 1)
  const table = path.join(db.location, tables[0])
  const bytes = fs.readFileSync(table)
  bytes.fill(0xff, 16_384, 17_000)
  fs.writeFileSync(table, bytes)
  await db.open()
  const ended = await Promise.allSettled(keys.map((key) => db.get(key)))
  const failed = ended.filter(({ status }) => status === 'rejected')
  t.ok(failed.length > 0 && failed.length < 200, `${failed.length} failed`)
  t.ok(failed.every(({ reason }) => reason.code === 'LEVEL_CORRUPTION'))
  t.ok(ended.every(({ status, value }) => status === 'rejected' || value === 'value '.repeat(20)), 'the others have their values')
  // A walk gives all that comes before: up to 999 entries were thrown away with the error.
  const sorted = [...keys].sort()
  const bad = new Set(keys.filter((_, i) => ended[i].status === 'rejected'))
  const walk = db.keys()
  const walked = []
  const met = await failure((async () => {
    for (let key = await walk.next(); key !== undefined; key = await walk.next()) walked.push(key)
  })())
  t.is(met.code, 'LEVEL_CORRUPTION')
  t.same(walked, sorted.slice(0, sorted.findIndex((key) => bad.has(key))))
  await walk.close()
  await db.close()
})

test('a snapshot of another database is refused', async (t) => {
  const one = await opened()
  const two = await opened()
  const snapshot = two.snapshot()
  await one.put('a', '1')
  t.is((await failure(one.get('a', { snapshot }))).code, 'LEVEL_SNAPSHOT_NOT_OPEN')
  t.throws(() => one.getSync('a', { snapshot }), (err) => err.code === 'LEVEL_SNAPSHOT_NOT_OPEN')
  t.is((await failure(one.get('a', { snapshot: { ref () {}, unref () {} } }))).name, 'TypeError', 'and so is what is none')
  await one.close()
  await two.close()
})

test('without its native part the package says so', async (t) => {
  const copy = temporary()
  fs.cpSync(path.join(__dirname, '..'), copy, {
    recursive: true,
    filter: (name) => !/[/\\](native|node_modules|prebuilds|bench)$/.test(name)
  })
  fs.symlinkSync(path.join(__dirname, '..', 'node_modules'), path.join(copy, 'node_modules'))
  const load = 'try { require(args[0]) } catch (err) { console.log(err.code + " " + err.message) }'
  t.match((await run(load, [copy])).out, /^ESKER_NO_NATIVE_PART The package esker has no native part for \S+ \(.* is missing\)/)
  const { file } = require(path.join(copy, 'lib', 'binding-place'))
  fs.mkdirSync(path.dirname(file()), { recursive: true })
  fs.writeFileSync(file(), 'no library')
  t.match((await run(load, [copy])).out, /^ESKER_NO_NATIVE_PART .* could not be loaded/, 'nor with another file in its place')
})

test('nextv and all go on behind a value that is too long for a string', async (t) => {
  const db = await opened()
  await db.batch(['a', 'b', 'c', 'd'].map((key) => ({ type: 'put', key, value: key === 'b' ? 'too long for a string' : key })))
  // A string of 512 MiB takes a while: one of these bytes is refused in its place.
  const { latin1Slice } = Buffer.prototype
  Buffer.prototype.latin1Slice = function (start, end) {
    const text = latin1Slice.call(this, start, end)
    if (text.startsWith('too long')) throw new RangeError('Cannot create a string longer than it may be')
    return text
  }
  try {
    for (const rest of ['nextv', 'all']) {
      const iterator = db.iterator()
      t.is((await failure(iterator.nextv(10))).code, 'LEVEL_DECODE_ERROR')
      t.same(await (rest === 'all' ? iterator.all() : iterator.nextv(10)), [['c', 'c'], ['d', 'd']], rest)
      // all() has closed it.
      if (rest === 'nextv') t.same(await iterator.nextv(10), [])
      await iterator.close()
    }
  } finally {
    Buffer.prototype.latin1Slice = latin1Slice
  }
  await db.close()
})

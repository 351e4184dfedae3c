'use strict'

// The ends of things: of calls, iterators, stores, workers and processes. Node never dies, and nothing that was written is lost.

const { once } = require('node:events')
const { Worker } = require('node:worker_threads')
const path = require('node:path')
const test = require('tape')
const { EskerLevel } = require('..')
const { temporary } = require('./places')
const { run } = require('./processes')

const PACKAGE = JSON.stringify(path.join(__dirname, '..'))

async function keysIn (location) {
  const db = new EskerLevel(location)
  const keys = await db.keys().all()
  await db.close()
  return keys
}

/** A worker that runs a function's body, with the package as `esker`, `location`, and `say` to send a word. */
function worker (body, location) {
  const program = `const { parentPort, workerData } = require('node:worker_threads')
const esker = require(${PACKAGE})
const say = (word) => parentPort.postMessage(word);
(async (location) => { ${body} })(workerData)`
  return new Worker(program, { eval: true, workerData: location })
}

test('close waits for the calls that are under way', async (t) => {
  const db = new EskerLevel(temporary())
  await db.open()
  const started = []
  for (let i = 0; i < 50; i++) {
    started.push(db.put(`k${i}`, 'v'), db.batch().put(`b${i}`, 'v').write(), db.get('k0'), db.getMany(['k1', 'k2']), db.has('k0'))
  }
  started.push(db.flush(), db.compactRange('a', 'z'), db.sync(), db.approximateSize('a', 'z'), db.checkpoint(temporary()))
  const iterator = db.iterator()
  started.push(iterator.next())
  await db.close()
  // What was still under way would have the directory locked, or be missing.
  t.is((await keysIn(db.location)).length, 100)
  // That a call has ended may be told a moment after the end of close is, but none was refused.
  t.is((await Promise.all(started)).length, started.length, 'all of them ended well')
})

test('clear that is under way ends when the database is closed', async (t) => {
  const db = new EskerLevel(temporary())
  await db.batch(Array.from({ length: 30_000 }, (_, i) => ({ type: 'put', key: `key ${i}`, value: '' })))
  const cleared = db.clear().then(() => 'whole', (err) => err.code)
  await db.close()
  const how = await cleared
  t.ok(['whole', 'LEVEL_DATABASE_NOT_OPEN'].includes(how), how)
  const left = await keysIn(db.location)
  t.is((30_000 - left.length) % 4096 === 0 || left.length === 0, true, `${left.length} are left: whole batches went`)
})

test('an iterator whose signal is aborted stops within a chunk', async (t) => {
  const db = new EskerLevel(temporary())
  await db.batch(Array.from({ length: 20_000 }, (_, i) => ({ type: 'put', key: `key ${i}`, value: 'v'.repeat(100) })))
  const aborter = new AbortController()
  const iterator = db.iterator({ signal: aborter.signal })
  const all = iterator.all()
  aborter.abort()
  try {
    await all
    t.fail('it went on')
  } catch (err) {
    t.is(err.code, 'LEVEL_ABORTED')
    t.is(err.name, 'AbortError')
  }
  await db.close()
})

test('iterators, snapshots and stores that nobody closed are collected', async (t) => {
  const { code, out, err } = await run(`
    for (let round = 0; round < 20; round++) {
      let db = new esker.EskerLevel(args[0] + round)
      await db.batch([{ type: 'put', key: 'a', value: '1' }, { type: 'put', key: 'b', value: '2' }])
      const iterator = db.iterator()
      await iterator.next()
      db.snapshot()
      db.batch().put('c', '3')
      db.keys({ limit: 1 }).next()
      db = null
      await new Promise((resolve) => setTimeout(resolve, 1))
      global.gc()
    }
    // The thread that closes a collected store may still be about it.
    for (let round = 0; round < 19; round++) {
      for (let tries = 0; ; tries++) {
        global.gc()
        const db = new esker.EskerLevel(args[0] + round)
        try { await db.open(); await db.close(); break } catch (err) { if (tries === 500) throw err }
        await new Promise((resolve) => setTimeout(resolve, 10))
      }
    }
    console.log('collected')`, [temporary()], { flags: ['--expose-gc'] })
  t.is(`${code} ${out} ${err}`, '0 collected ', 'and their directories are free')
})

test('a process may end with everything open, in each way', async (t) => {
  const open = `
    const db = new esker.EskerLevel(args[0])
    await db.put('before', 'x'.repeat(10))
    const iterator = db.iterator()
    await iterator.next()
    db.snapshot()
    db.batch().put('never', 'written')
    for (let i = 0; i < 100; i++) { db.put('k' + i, 'v'); iterator.nextv(1).catch(() => {}); db.get('before') }
    db.compactRange('a', 'z').catch(() => {})
    await db.put('last', 'v')
    console.log('ready');`
  const ways = {
    'process.exit': [`process.exit(7)`, 7, null],
    'the end of the program': [``, 0, null],
    'an error that nobody catches': [`setImmediate(() => { throw new Error('mine') })`, 1, null],
    'kill -9': [`process.kill(process.pid, 'SIGKILL')`, null, 'SIGKILL'],
    'SIGINT': [`process.kill(process.pid, 'SIGINT'); setTimeout(() => {}, 10_000)`, null, 'SIGINT'],
    'SIGTERM with a handler': [`process.on('SIGTERM', () => process.exit(3)); process.kill(process.pid, 'SIGTERM'); setTimeout(() => {}, 10_000)`, 3, null]
  }
  for (const [name, [end, code, signal]] of Object.entries(ways)) {
    const location = temporary()
    const done = await run(open + end, [location])
    t.same([done.out, done.code, done.signal], ['ready', code, signal], `${name} ${/mine/.test(done.err) ? '' : done.err}`)
    const keys = await keysIn(location)
    t.ok(keys.includes('before') && keys.includes('last') && !keys.includes('never'), `${name}: what was written is there`)
  }
})

test('several workers, each with a store of its own', async (t) => {
  const workers = Array.from({ length: 4 }, () => worker(`
    const db = new esker.EskerLevel(location)
    for (let i = 0; i < 200; i++) await db.put('k' + i, 'v' + i)
    const keys = await db.keys().all()
    await db.close()
    say(keys.length)`, temporary()))
  const said = await Promise.all(workers.map(async (each) => (await once(each, 'message'))[0]))
  t.same(said, [200, 200, 200, 200])
  await Promise.all(workers.map((each) => each.terminate()))
})

test('a worker that is terminated in the middle of calls leaves the directory free', async (t) => {
  const rounds = process.env.ESKER_CAMPAIGN ? 200 : 8
  for (let round = 0; round < rounds; round++) {
    const location = temporary()
    const each = worker(`
      const db = new esker.EskerLevel(location)
      await db.open()
      await db.batch(Array.from({ length: 5000 }, (_, i) => ({ type: 'put', key: 'key ' + i, value: 'v'.repeat(100) })))
      const again = (call) => call().catch(() => {}).then(() => again(call))
      let i = 0
      for (let n = 0; n < 8; n++) again(() => db.put('new ' + i++, 'v'))
      again(() => db.iterator().all())
      again(() => db.getMany(['key 1', 'key 2']))
      again(() => db.compactRange('a', 'z'))
      again(() => db.clear({ gte: 'key 4', lt: 'key 5' }))
      again(() => db.flush())
      setImmediate(function spin () { db.getSync('key 1'); db.snapshot(); setImmediate(spin) })
      say('busy')`, location)
    await once(each, 'message')
    await new Promise((resolve) => setTimeout(resolve, (round * 7) % 60))
    await each.terminate()
    const keys = await keysIn(location)
    t.ok(keys.includes('key 1'), `round ${round}: it opens, with ${keys.length} keys`)
  }
})

test('workers that ask for it share one store', async (t) => {
  const location = temporary()
  const db = new EskerLevel(location, { multithreading: true })
  await db.put('main', '0')
  const workers = Array.from({ length: 3 }, (_, n) => {
    const each = worker(`
      const db = new esker.EskerLevel(location, { multithreading: true })
      await db.open()
      parentPort.on('message', async (n) => {
        for (let i = 0; i < 100; i++) await db.put('worker ' + n + ' ' + i, await db.get('main'))
        if (n === 0) await db.close()
        say('done')
      })`, location)
    each.postMessage(n)
    return each
  })
  await Promise.all(workers.map((each) => once(each, 'message')))
  t.is((await db.keys().all()).length, 301, 'it sees what they wrote')
  await Promise.all(workers.map((each) => each.terminate()))
  t.is(await db.get('main'), '0', 'and goes on when they are gone, closed or not')
  try {
    await new EskerLevel(location).open()
    t.fail('opened alone')
  } catch (err) {
    t.is(err.cause.code, 'LEVEL_LOCKED', 'one that does not ask is refused')
  }
  await db.close()
  t.is((await keysIn(location)).length, 301, 'the last one closes it')
})

test('with one thread in the pool nothing waits for itself', async (t) => {
  const { out } = await run(`
    const db = new esker.EskerLevel(args[0])
    const calls = []
    for (let i = 0; i < 200; i++) calls.push(db.put('k' + i, 'v'), db.get('k' + i), db.keys().all())
    calls.push(db.compactRange('a', 'z'), db.clear())
    const all = Promise.allSettled(calls)
    await calls[0]
    await db.close()
    console.log((await all).length)`, [temporary()], { env: { UV_THREADPOOL_SIZE: '1' } })
  t.is(out, '602')
})

test('callbacks that throw are the program\'s own errors', async (t) => {
  const db = new EskerLevel(temporary())
  await db.open()
  const hook = () => { throw new Error('from a hook') }
  db.hooks.prewrite.add(hook)
  try {
    await db.put('a', '1')
    t.fail('written')
  } catch (err) {
    t.is(err.code, 'LEVEL_HOOK_ERROR')
  }
  db.hooks.prewrite.delete(hook)
  const encoding = { name: 'bad', format: 'utf8', encode () { throw new Error('from an encoding') }, decode: String }
  t.throws(() => db.batch().put('a', '1', { valueEncoding: encoding }), /from an encoding/)
  try {
    for await (const key of db.keys()) throw new Error(key)
    t.pass('nothing is there')
  } finally {
    await db.close()
  }
})

'use strict'

// Random calls on a store and on a sorted map, which must agree. ESKER_SEED repeats a run, ESKER_CAMPAIGN makes more of them.

const test = require('tape')
const { EskerLevel } = require('..')
const { temporary } = require('./places')

const STEPS = process.env.ESKER_CAMPAIGN ? 60_000 : 2500

/** Numbers that a seed decides (xorshift). */
class Random {
  constructor (seed) {
    this.state = seed >>> 0 || 1
  }

  below (count) {
    this.state ^= this.state << 13
    this.state ^= this.state >>> 17
    this.state ^= this.state << 5
    return (this.state >>> 0) % count
  }

  chance (oneIn) {
    return this.below(oneIn) === 0
  }

  of (choices) {
    return choices[this.below(choices.length)]
  }

  key () {
    const length = this.chance(8) ? this.below(200) : 1 + this.below(3)
    return Buffer.from(Array.from({ length }, () => this.of([0, 1, 97, 98, 127, 128, 195, 255])))
  }

  value () {
    const length = this.chance(30) ? this.below(100_000) : this.below(30)
    return Buffer.alloc(length, this.below(256))
  }

  range () {
    const range = { reverse: this.chance(2) }
    if (this.chance(2)) range[this.of(['gt', 'gte'])] = this.key()
    if (this.chance(2)) range[this.of(['lt', 'lte'])] = this.key()
    if (this.chance(3)) range.limit = this.below(8)
    return range
  }
}

/** A map in the order of its keys' bytes. */
class Model {
  entries = []

  static of (entries) {
    const model = new Model()
    model.entries = entries.slice()
    return model
  }

  place (key) {
    let low = 0
    let high = this.entries.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (Buffer.compare(this.entries[middle][0], key) < 0) low = middle + 1
      else high = middle
    }
    return low
  }

  get (key) {
    const entry = this.entries[this.place(key)]
    return entry?.[0].equals(key) ? entry[1] : undefined
  }

  put (key, value) {
    const at = this.place(key)
    this.entries.splice(at, this.entries[at]?.[0].equals(key) ? 1 : 0, [key, value])
  }

  del (key) {
    const at = this.place(key)
    if (this.entries[at]?.[0].equals(key)) this.entries.splice(at, 1)
  }

  apply (operations) {
    for (const { type, key, value } of operations) type === 'put' ? this.put(key, value) : this.del(key)
  }

  range ({ gt, gte, lt, lte, reverse, limit = Infinity }) {
    const found = this.entries.filter(([key]) =>
      (gte === undefined || Buffer.compare(key, gte) >= 0) && (gt === undefined || Buffer.compare(key, gt) > 0) &&
      (lte === undefined || Buffer.compare(key, lte) <= 0) && (lt === undefined || Buffer.compare(key, lt) < 0))
    if (reverse) found.reverse()
    return found.slice(0, limit)
  }
}

/** A short text that is the same for the same entries. */
function text (entries) {
  return entries.map((part) => Array.isArray(part) ? part.map((bytes) => show(bytes)).join('=') : show(part)).join(' ')
}

function show (bytes) {
  if (bytes === undefined) return 'none'
  return bytes.length > 40 ? `${bytes.length} of ${bytes[0]}` : Buffer.from(bytes).toString('hex')
}

function writes (random, model) {
  const known = () => model.entries.length > 0 && random.chance(2) ? random.of(model.entries)[0] : random.key()
  return Array.from({ length: 1 + random.below(12) }, () => random.chance(3)
    ? { type: 'del', key: known() }
    : { type: 'put', key: known(), value: random.value() })
}

/** Reads a range in one of the ways in which that can be done. */
async function walk (db, random, range) {
  const options = { ...range, highWaterMarkBytes: random.of([undefined, 0, 1, 50, 1e6]) }
  const iterator = db.iterator(options)
  const found = []
  switch (random.below(4)) {
    case 0:
      return iterator.all()
    case 1:
      for await (const entry of iterator) found.push(entry)
      return found
    case 2:
      for (let some; (some = await iterator.nextv(1 + random.below(5))).length > 0;) found.push(...some)
      break
    default:
      for (let one; (one = await iterator.next()) !== undefined;) {
        found.push(one)
        if (random.chance(3)) found.push(...await iterator.nextv(2))
      }
  }
  await iterator.close()
  return found
}

/** One random call; what it says, and what it should. */
const CALLS = {
  async put (db, model, random) {
    for (const { type, key, value } of writes(random, model).slice(0, 2)) {
      if (type === 'put') await db.put(key, value, { sync: random.chance(50) })
      else await db.del(key)
      model.apply([{ type, key, value }])
    }
  },
  async batch (db, model, random) {
    const operations = writes(random, model)
    if (random.chance(2)) {
      await db.batch(operations)
    } else {
      const batch = db.batch()
      for (const { type, key, value } of operations) type === 'put' ? batch.put(key, value) : batch.del(key)
      await batch.write()
    }
    model.apply(operations)
  },
  async get (db, model, random) {
    const keys = Array.from({ length: 5 }, () => random.chance(2) ? random.key() : model.entries[random.below(model.entries.length)]?.[0] ?? random.key())
    const expected = keys.map((key) => model.get(key))
    return [
      [text(await db.getMany(keys)), text(expected)],
      [text(await Promise.all(keys.map((key) => db.get(key)))), text(expected)],
      [text(keys.map((key) => db.getSync(key))), text(expected)],
      [String(await db.hasMany(keys)), String(expected.map((value) => value !== undefined))],
      [await db.has(keys[0]), expected[0] !== undefined]
    ]
  },
  async range (db, model, random) {
    const range = random.range()
    const expected = model.range(range)
    return [
      [text(await walk(db, random, range)), text(expected)],
      [text(await db.keys(range).all()), text(expected.map(([key]) => key))],
      [text(await db.values(range).all()), text(expected.map(([, value]) => value))]
    ]
  },
  async seek (db, model, random) {
    const range = { ...random.range(), limit: undefined, highWaterMarkBytes: Infinity }
    const iterator = db.iterator(range)
    const answers = []
    for (let i = 0; i < 3; i++) {
      const target = random.key()
      iterator.seek(target)
      const side = range.reverse ? 'lte' : 'gte'
      const inside = Model.of([[target, target]]).range(range).length === 1
      const expected = inside ? model.range(range).filter((entry) => Model.of([entry]).range({ [side]: target }).length === 1) : []
      answers.push([text(await iterator.nextv(4)), text(expected.slice(0, 4))])
    }
    await iterator.close()
    return answers
  },
  async clear (db, model, random) {
    if (!random.chance(6)) return
    const range = random.range()
    await db.clear(range)
    for (const [key] of model.range(range)) model.del(key)
  },
  async snapshot (db, model, random) {
    const snapshot = db.snapshot()
    const then = Model.of(model.entries)
    const walkThen = db.iterator()
    const operations = writes(random, model)
    await db.batch(operations)
    model.apply(operations)
    const range = { ...random.range(), snapshot }
    const key = operations[0].key
    const answers = [
      [text(await walkThen.all()), text(then.entries)],
      [text(await db.iterator(range).all()), text(then.range(range))],
      [text([await db.get(key, { snapshot }), db.getSync(key, { snapshot })]), text([then.get(key), then.get(key)])],
      [text(await db.getMany([key], { snapshot })), text([then.get(key)])]
    ]
    await snapshot.close()
    return answers
  },
  async maintenance (db, model, random) {
    if (!random.chance(12)) return
    await random.of([() => db.flush(), () => db.compactRange(Buffer.alloc(0), Buffer.alloc(9, 255)), () => db.sync(), () => reopen(db)])()
    return [[text(await db.iterator().all()), text(model.entries)]]
  }
}

test('an iterator that reads long chunks ahead goes where it is told, as often as it is told', async (t) => {
  const seed = Number(process.env.ESKER_SEED ?? Date.now() % 2 ** 31)
  t.comment(`ESKER_SEED=${seed}`)
  const random = new Random(seed)
  const count = 5000
  const key = (number) => String(number).padStart(6, '0')
  const db = new EskerLevel(temporary())
  await db.batch(Array.from({ length: count }, (_, i) => ({ type: 'put', key: key(i), value: '' })))
  const rounds = process.env.ESKER_CAMPAIGN ? 2000 : 100
  let wrong = 0
  for (let round = 0; round < rounds && wrong === 0; round++) {
    const reverse = random.chance(2)
    const limit = random.chance(3) ? 200 + random.below(3000) : Infinity
    const iterator = db.keys({ reverse, limit: limit === Infinity ? -1 : limit, highWaterMarkBytes: random.of([undefined, 700, Infinity]) })
    let at = reverse ? count - 1 : 0
    let left = limit
    const expect = (got) => {
      if (got !== (left > 0 ? key(at) : undefined) && wrong++ === 0) t.is(got, key(at), `round ${round}, ESKER_SEED=${seed}`)
      at += reverse ? -1 : 1
      left--
    }
    for (let step = 0; step < 12 && left > 0; step++) {
      if (random.chance(4)) iterator.seek(key(at = random.below(count)))
      if (random.chance(3)) {
        for (let i = 0; i < 300 && left > 0 && at >= 0 && at < count; i++) expect(await iterator.next())
      } else {
        const some = await iterator.nextv(101 + random.below(400))
        for (const got of some.length > 0 ? some : [undefined]) expect(got)
      }
      if (at < 0 || at >= count) {
        t.is(await iterator.next(), undefined, 'the end')
        iterator.seek(key(at = random.below(count)))
      }
    }
    await iterator.close()
  }
  t.is(wrong, 0)
  await db.close()
})

async function reopen (db) {
  await db.close()
  await db.open()
}

test('a store and a sorted map agree, whatever is called', async (t) => {
  const seed = Number(process.env.ESKER_SEED ?? Date.now() % 2 ** 31)
  t.comment(`ESKER_SEED=${seed}`)
  const random = new Random(seed)
  const encodings = { keyEncoding: random.of(['buffer', 'view']), valueEncoding: random.of(['buffer', 'view']) }
  const root = new EskerLevel(temporary(), { ...encodings, memory: 1 << 20, blobThreshold: 512, compression: random.of(['none', 'lz4', 'zstd']) })
  const db = random.chance(3) ? root.sublevel('sub', encodings) : root
  await db.open()
  const model = new Model()
  let wrong = 0
  let compared = 0
  for (let step = 0; step < STEPS && wrong === 0; step++) {
    const name = random.of(Object.keys(CALLS))
    if (db !== root && name === 'maintenance') continue
    const answers = await CALLS[name](db, model, random) ?? []
    for (const [said, expected] of answers) {
      compared++
      if (said !== expected) {
        wrong++
        t.is(said, expected, `step ${step}, ${name}; ESKER_SEED=${seed}`)
      }
    }
  }
  t.is(text(await db.iterator().all()), text(model.entries), 'at the end too')
  t.is(wrong, 0, `${compared} answers compared`)
  t.ok(compared > STEPS / 2, 'and they were many')
  await root.close()
})

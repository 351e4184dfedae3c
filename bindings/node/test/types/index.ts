// What programs write, as TypeScript sees it. Lines behind @ts-expect-error must not compile.

import { EskerLevel, Level, type EskerErrorCode, type Stats } from '../..'
import { AbstractLevel } from 'abstract-level'

export async function typed (): Promise<void> {
  const db = new EskerLevel<string, { age: number }>('./db', { valueEncoding: 'json', memory: 64 << 20, durability: 'synced' })
  const isDatabase: boolean = db instanceof AbstractLevel
  await db.open({ createIfMissing: true, readOnly: false, compression: 'zstd' })
  await db.put('ada', { age: 36 }, { sync: true })
  // @ts-expect-error a value of another type
  await db.put('ada', 36)
  const ada: { age: number } | undefined = await db.get('ada')
  const now: { age: number } | undefined = db.getSync('ada')
  const bytes: Buffer | undefined = await db.get<string, Buffer>('ada', { valueEncoding: 'buffer' })
  const many: Array<{ age: number } | undefined> = await db.getMany(['ada'])

  await db.batch([{ type: 'put', key: 'a', value: { age: 1 } }, { type: 'del', key: 'b' }], { sync: false })
  await db.batch().put('a', { age: 1 }).del('b').write({ sync: true })
  for await (const [key, value] of db.iterator({ gte: 'a', highWaterMarkBytes: 1 << 20 })) key.slice(value.age)
  for await (const key of db.keys({ reverse: true, limit: 3 })) key.slice()
  for await (const value of db.values()) value.age.toFixed()

  const users = db.sublevel<string, number>('users', { valueEncoding: 'json' })
  const age: number | undefined = await users.get('ada')
  const snapshot = db.snapshot()
  await db.get('ada', { snapshot })
  await snapshot.close()

  const size: number = await db.approximateSize('a', 'b')
  await db.compactRange(Buffer.from('a'), Buffer.from('b'), { keyEncoding: 'buffer' })
  await db.checkpoint('./copy')
  await db.clear({ lt: 'b', sync: true })
  const stats: Stats = db.stats()
  const { problems } = await EskerLevel.verify('./db')
  const { lost } = await Level.repair('./db', { compression: 'none', blockSize: 8192 })
  await Level.destroy('./db')
  await db.close()
  console.log(isDatabase, ada, now, bytes, many, age, size, stats.diskBytes, problems, lost, db.location, db.getProperty('esker.stats'))
}

export function refused (): void {
  // @ts-expect-error no such durability
  new EskerLevel('./db', { durability: 'none' })
  // @ts-expect-error a repair takes no memory
  void EskerLevel.repair('./db', { memory: 1 << 20 })
  // @ts-expect-error a location is text
  new EskerLevel(7)
  // @ts-expect-error no such code
  const code: EskerErrorCode = 'ESKER_NONE'
  console.log(code)
}

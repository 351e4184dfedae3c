import {
  AbstractBatchOperation,
  AbstractBatchOptions,
  AbstractChainedBatch,
  AbstractChainedBatchWriteOptions,
  AbstractClearOptions,
  AbstractDatabaseOptions,
  AbstractDelOptions,
  AbstractIterator,
  AbstractIteratorOptions,
  AbstractKeyIterator,
  AbstractKeyIteratorOptions,
  AbstractLevel,
  AbstractOpenOptions,
  AbstractPutOptions,
  AbstractValueIterator,
  AbstractValueIteratorOptions,
  Transcoder
} from 'abstract-level'

/**
 * A store of Esker's: an ordered, persistent map of keys to values in a directory, as a database of the Level ecosystem.
 *
 * Calls that wait for the disk run in other threads. Errors have a `code`: one of
 * {@link https://github.com/Level/abstract-level#errors Level's}, or of {@link EskerErrorCode} where Level has none.
 *
 * @template KDefault The type of keys where a call names no other encoding.
 * @template VDefault The type of values where a call names no other encoding.
 */
export class EskerLevel<KDefault = string, VDefault = string>
  extends AbstractLevel<string | Buffer | Uint8Array, KDefault, VDefault> {
  /**
   * Names a store, which is opened soon after, or by {@link open}. Calls that come before it is open wait for that.
   *
   * @param location The directory, relative or absolute.
   */
  constructor (location: string, options?: DatabaseOptions<KDefault, VDefault> | undefined)

  /** The directory, as it was given. */
  get location (): string

  open (): Promise<void>
  open (options: OpenOptions): Promise<void>

  put (key: KDefault, value: VDefault): Promise<void>
  put<K = KDefault, V = VDefault> (key: K, value: V, options: PutOptions<K, V>): Promise<void>

  del (key: KDefault): Promise<void>
  del<K = KDefault> (key: K, options: DelOptions<K>): Promise<void>

  batch (operations: Array<AbstractBatchOperation<typeof this, KDefault, VDefault>>): Promise<void>
  batch<K = KDefault, V = VDefault> (
    operations: Array<AbstractBatchOperation<typeof this, K, V>>,
    options: BatchOptions<K, V>
  ): Promise<void>
  batch (): ChainedBatch<typeof this, KDefault, VDefault>

  clear (): Promise<void>
  clear<K = KDefault> (options: ClearOptions<K>): Promise<void>

  iterator (): AbstractIterator<typeof this, KDefault, VDefault>
  iterator<K = KDefault, V = VDefault> (options: IteratorOptions<K, V>): AbstractIterator<typeof this, K, V>

  keys (): AbstractKeyIterator<typeof this, KDefault>
  keys<K = KDefault> (options: KeyIteratorOptions<K>): AbstractKeyIterator<typeof this, K>

  values (): AbstractValueIterator<typeof this, KDefault, VDefault>
  values<K = KDefault, V = VDefault> (options: ValueIteratorOptions<K, V>): AbstractValueIterator<typeof this, K, V>

  /** Bytes on the disk from `start` on and before `end`, about, with what is not flushed yet. */
  approximateSize (start: KDefault, end: KDefault): Promise<number>
  approximateSize<K = KDefault> (start: K, end: K, options: RangeOptions<K>): Promise<number>

  /** Rewrites the files of the range, `start` and `end` included, and leaves out what is deleted. May take long. */
  compactRange (start: KDefault, end: KDefault): Promise<void>
  compactRange<K = KDefault> (start: K, end: K, options: RangeOptions<K>): Promise<void>

  /**
   * Makes a second store in a directory that does not exist yet: as this one is now, by hard links where that can be. It is durable
   * when the promise is fulfilled.
   */
  checkpoint (location: string): Promise<void>

  /** Writes what is in memory into tables, durably. */
  flush (): Promise<void>

  /** Makes everything that was written until now durable. */
  sync (): Promise<void>

  /** Goes on writing after `ESKER_HALTED`, once the cause is removed. */
  resume (): Promise<void>

  /**
   * A property as text, the empty string when there is none of the name: `esker.stats`, `esker.levels`, `esker.sequence`,
   * `esker.disk-bytes`, `esker.memory-used`, `esker.write-amplification`, `esker.halted`.
   */
  getProperty (property: string): string

  /** Figures of the store, at once: of its files only the sizes are asked for. */
  stats (): Stats

  /** Removes the store in a directory: its files, and the directory when nothing else is in it. Close the store first. */
  static destroy (location: string): Promise<void>

  /** Saves what is intact of a damaged store, and makes it open again; a sound one stays as it is. Close the store first. */
  static repair (location: string, options?: RepairOptions | undefined): Promise<RepairReport>

  /** Reads the whole of a store that is not open for writing, and lists what is wrong. */
  static verify (location: string): Promise<VerifyReport>
}

/** The same class by the name that the package `level` has for it. */
export { EskerLevel as Level }

/** Codes of errors for which Level has none. */
export type EskerErrorCode =
  /** A batch takes more bytes than one can. */
  | 'ESKER_BATCH_TOO_LARGE'
  /** The store is kept in an order of its own. */
  | 'ESKER_COMPARATOR'
  /** The directory holds a store of LevelDB or its kin, or some of its files. */
  | 'ESKER_FOREIGN_STORE'
  /** Writes stopped after a failure, which the message names; reads go on. */
  | 'ESKER_HALTED'
  /** A bug in Esker: please report it. */
  | 'ESKER_INTERNAL'
  | 'ESKER_INVALID_ARGUMENT'
  | 'ESKER_INVALID_OPTION'
  /** The directory holds no store, and none is to be made. */
  | 'ESKER_NOT_A_STORE'
  /** The package has nothing for this system, or it cannot be loaded. */
  | 'ESKER_NO_NATIVE_PART'
  | 'ESKER_NO_MEMORY'
  /** There is a store, and `errorIfExists` is set. */
  | 'ESKER_STORE_EXISTS'
  | 'ESKER_ERROR'

/** Options of {@link EskerLevel.open}, which the constructor takes too. Those of other stores are left aside. */
export interface OpenOptions extends AbstractOpenOptions {
  /** Memory for the store's own use, in bytes, from 1 MiB on. @defaultValue 128 MiB */
  memory?: number | undefined
  /**
   * What writes survive that do not say it: `buffered` the end of the process in any way, `synced` a power cut too.
   * @defaultValue `'buffered'`
   */
  durability?: 'buffered' | 'synced' | undefined
  /** How values are packed; `true` is `lz4`, `false` is `none`. @defaultValue `'lz4'` */
  compression?: boolean | 'none' | 'lz4' | 'zstd' | undefined
  /** Write nothing; others may read at the same time. @defaultValue `false` */
  readOnly?: boolean | undefined
  /**
   * Share the store with other threads of this process that open it with this option too. The options of the first one count.
   * @defaultValue `false`
   */
  multithreading?: boolean | undefined
  /**
   * Run `get`, `has`, writes that do not wait for the device, and an iterator's reads of few entries on the thread of the event
   * loop, until one of them waits; then in libuv's pool for twenty times as long as that took. `false`: always in the pool.
   * @defaultValue `true`
   */
  inPlace?: boolean | undefined
  /** Verify the whole store at open. @defaultValue `false` */
  paranoidChecks?: boolean | undefined
  /** Closing leaves nothing in the log that the next opening has to recover. @defaultValue `true` */
  flushOnClose?: boolean | undefined
  /** The smallest block of a table in bytes: a multiple of 4096, to 65,536. @defaultValue 4096 */
  blockSize?: number | undefined
  /** A log segment in bytes, from 64 KiB to 4 GiB. @defaultValue a quarter of `memory` up to 32 MiB, a 16th from 512 MiB of it on up to 64 MiB, a 128th from 8 GiB on */
  segmentSize?: number | undefined
  /** From so many bytes on, 64 at least, a value stays in the log where it was written. @defaultValue 4096 */
  blobThreshold?: number | undefined
}

/** Options of {@link EskerLevel.repair}, for the tables that it writes: what the store is opened with. */
export interface RepairOptions extends Pick<OpenOptions, 'compression' | 'blockSize'> {}

/** Options of the constructor. */
export interface DatabaseOptions<K, V> extends AbstractDatabaseOptions<K, V>, OpenOptions {}

/** Options of each write. */
export interface WriteOptions {
  /** Whether the write survives a power cut when its promise is fulfilled. @defaultValue as the store was opened */
  sync?: boolean | undefined
}

export interface PutOptions<K, V> extends AbstractPutOptions<K, V>, WriteOptions {}
export interface DelOptions<K> extends AbstractDelOptions<K>, WriteOptions {}
export interface BatchOptions<K, V> extends AbstractBatchOptions<K, V>, WriteOptions {}
/** With `sync`, one sync at the end. */
export interface ClearOptions<K> extends AbstractClearOptions<K>, WriteOptions {}
export interface ChainedBatchWriteOptions extends AbstractChainedBatchWriteOptions, WriteOptions {}

/** A batch that is filled call by call. */
export interface ChainedBatch<TDatabase, KDefault, VDefault> extends AbstractChainedBatch<TDatabase, KDefault, VDefault> {
  write (): Promise<void>
  write (options: ChainedBatchWriteOptions): Promise<void>
}

/** What iterators of each kind take beside the options of abstract-level. */
export interface ReadAheadOptions {
  /**
   * Bytes of keys and values that an iterator reads ahead, the entry that exceeds them included. 0 is one entry at a time, `Infinity`
   * no bound in bytes; there are never more than 1000 entries, or what `nextv()` was asked for. From the second long chunk on there may be
   * two: the next is read while the entries of the last are taken.
   * @defaultValue 64 KiB
   */
  highWaterMarkBytes?: number | undefined
}

export interface IteratorOptions<K, V> extends AbstractIteratorOptions<K, V>, ReadAheadOptions {}
export interface KeyIteratorOptions<K> extends AbstractKeyIteratorOptions<K>, ReadAheadOptions {}
export interface ValueIteratorOptions<K, V> extends AbstractValueIteratorOptions<K, V>, ReadAheadOptions {}

/** Options of calls on a range. */
export interface RangeOptions<K> {
  /** The encoding of `start` and `end`. */
  keyEncoding?: string | Transcoder.PartialEncoder<K> | undefined
}

/**
 * Figures of a store; those of what was done count since it was opened. They are exact up to `Number.MAX_SAFE_INTEGER`;
 * `getProperty('esker.sequence')` has all digits of the sequence.
 */
export interface Stats {
  /** The number of the last write. */
  sequence: number
  logSegments: number
  logBytes: number
  /** Bytes of large values in the log, and of dead ones that were not given back yet. */
  blobBytes: number
  blobGarbageBytes: number
  /** Bytes of files that only iterators still need. */
  pinnedBytes: number
  tableBytes: number
  /** Bytes that the directory takes on the disk. */
  diskBytes: number
  memoryBudget: number
  memoryUsed: number
  bytesWritten: number
  logBytesWritten: number
  compactionBytesRead: number
  compactionBytesWritten: number
  compactions: number
  logSyncs: number
  /** Nanoseconds that writers waited for flushes. */
  writeStallNs: number
  snapshots: number
  openFiles: number
  /** Mapped files. */
  mappings: number
}

/** What {@link EskerLevel.verify} found. */
export interface VerifyReport {
  files: number
  bytes: number
  entries: number
  /** What is wrong, a line each. */
  problems: string[]
}

/** What {@link EskerLevel.repair} did. */
export interface RepairReport {
  /** Whether anything had to be done. */
  changed: boolean
  tables: number
  entries: number
  /** What was wrong, what could not be saved, and what could not be looked at, a line each. */
  problems: string[]
  lost: string[]
  unchecked: string[]
}

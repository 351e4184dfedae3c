//! RocksDB through its C interface, as its wiki calls it fastest: block-based tables with a full
//! bloom filter of 10 bits and a hash index in data blocks, mapped files where nothing is
//! compressed (LZ4 where it is, from the second level on) and the store fits in memory, pinned values, as many
//! background jobs as there are cores; levels in proportion to the write buffer, as its tuning guide says, and blob
//! files for values from 4 KiB on.
//!
//! `RocksDb<true>` has a prefix extractor besides, so that tables and memtables have prefix bloom
//! filters. A seek there must still see keys of other prefixes, as every engine's does, so it asks
//! for total order.
//!
//! Tuning: `write_buffer` (bytes of each of two) and `cache` (bytes), `mmap_reads` (0 or 1), `verify_checksums` (0 or 1, at
//! each read of a block), `wal_recovery` (`WALRecoveryMode`, 0 to 3), `defaults` (1: none of all this is set).

use super::built::{self, Loaded};
use super::library::{self, View, c_api};
use super::rocksdb_settings::{self, Settings};
use crate::engine::{Access, Class, Config, Direction, Engine, Hint, Reader, Sync, Writer};
use crate::system;
use anyhow::{Context, Result, bail};
use libloading::Library;
use std::ffi::{CStr, CString, c_char, c_double, c_int, c_uchar, c_void};
use std::path::Path;
use std::ptr;

type Handle = *mut c_void;
type Error = *mut c_char;

c_api! {
    /// The part of `rocksdb/c.h` used here.
    Api {
        fn rocksdb_free(*mut c_void);
        fn rocksdb_options_create() -> Handle;
        fn rocksdb_options_destroy(Handle);
        fn rocksdb_options_increase_parallelism(Handle, c_int);
        fn rocksdb_options_set_create_if_missing(Handle, c_uchar);
        fn rocksdb_options_set_write_buffer_size(Handle, usize);
        fn rocksdb_options_set_max_write_buffer_number(Handle, c_int);
        fn rocksdb_options_set_level_compaction_dynamic_level_bytes(Handle, c_uchar);
        fn rocksdb_options_set_bytes_per_sync(Handle, u64);
        fn rocksdb_options_set_compression(Handle, c_int);
        fn rocksdb_options_set_compression_per_level(Handle, *const c_int, usize);
        fn rocksdb_options_set_max_bytes_for_level_base(Handle, u64);
        fn rocksdb_options_set_target_file_size_base(Handle, u64);
        fn rocksdb_options_set_enable_blob_files(Handle, c_uchar);
        fn rocksdb_options_set_min_blob_size(Handle, u64);
        fn rocksdb_options_set_blob_compression_type(Handle, c_int);
        fn rocksdb_options_set_enable_blob_gc(Handle, c_uchar);
        fn rocksdb_options_set_wal_recovery_mode(Handle, c_int);
        fn rocksdb_options_set_allow_mmap_reads(Handle, c_uchar);
        fn rocksdb_options_set_block_based_table_factory(Handle, Handle);
        fn rocksdb_options_set_prefix_extractor(Handle, Handle);
        fn rocksdb_options_set_memtable_prefix_bloom_size_ratio(Handle, c_double);
        fn rocksdb_options_set_memtable_whole_key_filtering(Handle, c_uchar);
        fn rocksdb_slicetransform_create_fixed_prefix(usize) -> Handle;
        fn rocksdb_block_based_options_create() -> Handle;
        fn rocksdb_block_based_options_destroy(Handle);
        fn rocksdb_block_based_options_set_block_size(Handle, usize);
        fn rocksdb_block_based_options_set_block_cache(Handle, Handle);
        fn rocksdb_block_based_options_set_filter_policy(Handle, Handle);
        fn rocksdb_block_based_options_set_data_block_index_type(Handle, c_int);
        fn rocksdb_block_based_options_set_data_block_hash_ratio(Handle, c_double);
        fn rocksdb_block_based_options_set_format_version(Handle, c_int);
        fn rocksdb_filterpolicy_create_bloom_full(c_double) -> Handle;
        fn rocksdb_cache_create_lru(usize) -> Handle;
        fn rocksdb_cache_destroy(Handle);
        fn rocksdb_writeoptions_create() -> Handle;
        fn rocksdb_writeoptions_destroy(Handle);
        fn rocksdb_writeoptions_set_sync(Handle, c_uchar);
        fn rocksdb_readoptions_create() -> Handle;
        fn rocksdb_readoptions_destroy(Handle);
        fn rocksdb_readoptions_set_verify_checksums(Handle, c_uchar);
        fn rocksdb_readoptions_set_total_order_seek(Handle, c_uchar);
        fn rocksdb_open(Handle, *const c_char, *mut Error) -> Handle;
        fn rocksdb_close(Handle);
        fn rocksdb_put(Handle, Handle, *const u8, usize, *const u8, usize, *mut Error);
        fn rocksdb_delete(Handle, Handle, *const u8, usize, *mut Error);
        fn rocksdb_write(Handle, Handle, Handle, *mut Error);
        fn rocksdb_get_pinned(Handle, Handle, *const u8, usize, *mut Error) -> Handle;
        fn rocksdb_pinnableslice_value(Handle, *mut usize) -> *const u8;
        fn rocksdb_pinnableslice_destroy(Handle);
        fn rocksdb_compact_range(Handle, *const u8, usize, *const u8, usize);
        fn rocksdb_writebatch_create() -> Handle;
        fn rocksdb_writebatch_destroy(Handle);
        fn rocksdb_writebatch_clear(Handle);
        fn rocksdb_writebatch_put(Handle, *const u8, usize, *const u8, usize);
        fn rocksdb_create_iterator(Handle, Handle) -> Handle;
        fn rocksdb_iter_destroy(Handle);
        fn rocksdb_iter_valid(Handle) -> c_uchar;
        fn rocksdb_iter_seek_to_first(Handle);
        fn rocksdb_iter_seek_to_last(Handle);
        fn rocksdb_iter_seek(Handle, *const u8, usize);
        fn rocksdb_iter_next(Handle);
        fn rocksdb_iter_prev(Handle);
        fn rocksdb_iter_key(Handle, *mut usize) -> *const u8;
        fn rocksdb_iter_value(Handle, *mut usize) -> *const u8;
        fn rocksdb_iter_get_error(Handle, *mut Error);
    }
}

c_api! {
    /// What came to `rocksdb/c.h` after the versions of distributions.
    Newer {
        fn rocksdb_wait_for_compact(Handle, Handle, *mut Error);
        fn rocksdb_wait_for_compact_options_create() -> Handle;
        fn rocksdb_wait_for_compact_options_destroy(Handle);
        fn rocksdb_wait_for_compact_options_set_flush(Handle, c_uchar);
        fn rocksdb_iter_refresh(Handle, *mut Error);
    }
}

const NO_COMPRESSION: c_int = 0;
const LZ4: c_int = 4;
const BINARY_SEARCH_AND_HASH: c_int = 1;
const STEM: &str = "librocksdb.so";

fn api() -> Result<&'static Api> {
    static API: Loaded<Api> = Loaded::new();
    API.get(&built::ROCKSDB, system, Api::load)
}

/// What the library has of it: all or nothing.
fn newer() -> Option<&'static Newer> {
    static NEWER: Loaded<Newer> = Loaded::new();
    NEWER.get(&built::ROCKSDB, system, Newer::load).ok()
}

fn system() -> Result<&'static Library> {
    library::load_any_version(STEM, "librocksdb-dev")
}

impl Api {
    /// Turns an error string into an error, and frees it.
    #[inline]
    fn check(&self, error: Error) -> Result<()> {
        if error.is_null() {
            return Ok(());
        }
        // SAFETY: RocksDB set it to a string of its own allocation, which is freed once.
        let text = unsafe {
            let text = CStr::from_ptr(error).to_string_lossy().into_owned();
            (self.rocksdb_free)(error.cast());
            text
        };
        bail!("{text}")
    }
}

/// A RocksDB database with the options it needs for as long as it is open.
pub struct RocksDb<const PREFIX: bool> {
    api: &'static Api,
    newer: Option<&'static Newer>,
    db: Handle,
    cache: Handle,
    read: Handle,
    write: Handle,
    settings: Settings,
    config: Config,
}

// SAFETY: a database, and options that are not changed any more, may be shared by threads
// (wiki, "Basic Operations", concurrency).
unsafe impl<const PREFIX: bool> std::marker::Sync for RocksDb<PREFIX> {}
// SAFETY: nothing in it belongs to a thread.
unsafe impl<const PREFIX: bool> Send for RocksDb<PREFIX> {}

impl<const PREFIX: bool> Drop for RocksDb<PREFIX> {
    fn drop(&mut self) {
        let api = self.api;
        // SAFETY: handles borrow the database, so none is left; the cache goes after the database
        // that uses it.
        unsafe {
            if !self.db.is_null() {
                (api.rocksdb_close)(self.db);
            }
            (api.rocksdb_cache_destroy)(self.cache);
            (api.rocksdb_readoptions_destroy)(self.read);
            (api.rocksdb_writeoptions_destroy)(self.write);
        }
    }
}

impl<const PREFIX: bool> RocksDb<PREFIX> {
    /// The options of the database; the caller destroys them.
    fn options(&self) -> Handle {
        let (api, settings) = (self.api, &self.settings);
        // SAFETY: the filter policy and the prefix extractor belong to the options they are given
        // to; the table options are copied; the cache is shared.
        unsafe {
            let options = (api.rocksdb_options_create)();
            (api.rocksdb_options_set_create_if_missing)(options, 1);
            if settings.defaults {
                if !self.config.compression {
                    (api.rocksdb_options_set_compression)(options, NO_COMPRESSION);
                }
                return options;
            }
            let table = (api.rocksdb_block_based_options_create)();
            (api.rocksdb_block_based_options_set_block_size)(table, rocksdb_settings::BLOCK);
            (api.rocksdb_block_based_options_set_block_cache)(table, self.cache);
            let filter = (api.rocksdb_filterpolicy_create_bloom_full)(10.0);
            (api.rocksdb_block_based_options_set_filter_policy)(table, filter);
            let index = BINARY_SEARCH_AND_HASH;
            (api.rocksdb_block_based_options_set_data_block_index_type)(table, index);
            (api.rocksdb_block_based_options_set_data_block_hash_ratio)(table, 0.75);
            (api.rocksdb_block_based_options_set_format_version)(table, 5);

            (api.rocksdb_options_increase_parallelism)(options, system::cores().max(2) as c_int);
            (api.rocksdb_options_set_write_buffer_size)(options, settings.write_buffer);
            (api.rocksdb_options_set_max_write_buffer_number)(options, 2);
            (api.rocksdb_options_set_level_compaction_dynamic_level_bytes)(options, 1);
            (api.rocksdb_options_set_bytes_per_sync)(options, 1 << 20);
            (api.rocksdb_options_set_max_bytes_for_level_base)(options, settings.level_base);
            (api.rocksdb_options_set_target_file_size_base)(options, settings.file_size);
            let compression = if self.config.compression { LZ4 } else { NO_COMPRESSION };
            (api.rocksdb_options_set_compression)(options, compression);
            // What is merged again soon is not worth it; the last of them holds for all deeper levels.
            let levels = [NO_COMPRESSION, compression];
            (api.rocksdb_options_set_compression_per_level)(options, levels.as_ptr(), levels.len());
            (api.rocksdb_options_set_enable_blob_files)(options, 1);
            (api.rocksdb_options_set_min_blob_size)(options, rocksdb_settings::BLOB);
            (api.rocksdb_options_set_blob_compression_type)(options, compression);
            (api.rocksdb_options_set_enable_blob_gc)(options, 1);
            if let Some(mode) = settings.wal_recovery {
                (api.rocksdb_options_set_wal_recovery_mode)(options, mode as c_int);
            }
            (api.rocksdb_options_set_allow_mmap_reads)(options, settings.mmap_reads as c_uchar);
            if PREFIX {
                let length = rocksdb_settings::PREFIX;
                let prefix = (api.rocksdb_slicetransform_create_fixed_prefix)(length);
                (api.rocksdb_options_set_prefix_extractor)(options, prefix);
                (api.rocksdb_options_set_memtable_prefix_bloom_size_ratio)(options, 0.1);
                (api.rocksdb_options_set_memtable_whole_key_filtering)(options, 1);
            }
            (api.rocksdb_options_set_block_based_table_factory)(options, table);
            (api.rocksdb_block_based_options_destroy)(table);
            options
        }
    }
}

impl<const PREFIX: bool> Engine for RocksDb<PREFIX> {
    type Writer<'a> = RocksWriter<'a, PREFIX>;
    type Reader<'a> = RocksReader<'a, PREFIX>;

    fn version() -> Result<String> {
        api()?;
        let built = built::ROCKSDB;
        if built.is_taken() {
            return Ok(built.told(built.version));
        }
        let version = library::version_of_file(STEM);
        Ok(built.told(version.as_deref().unwrap_or("of unknown version")))
    }

    fn open(dir: &Path, config: &Config) -> Result<Self> {
        let api = api()?;
        let path = CString::new(dir.as_os_str().as_encoded_bytes()).context("path")?;
        let settings = Settings::of(config)?;
        // SAFETY: every handle is created here and destroyed by `drop`.
        unsafe {
            let mut rocks = RocksDb {
                api,
                newer: newer(),
                db: ptr::null_mut(),
                cache: (api.rocksdb_cache_create_lru)(settings.cache),
                read: (api.rocksdb_readoptions_create)(),
                write: (api.rocksdb_writeoptions_create)(),
                settings,
                config: config.clone(),
            };
            // By default it verifies.
            let verify = rocks.settings.verify_checksums || rocks.settings.defaults;
            (api.rocksdb_readoptions_set_verify_checksums)(rocks.read, verify as c_uchar);
            (api.rocksdb_readoptions_set_total_order_seek)(rocks.read, PREFIX as c_uchar);
            let synced = config.sync == Sync::Synced;
            (api.rocksdb_writeoptions_set_sync)(rocks.write, synced as c_uchar);
            let options = rocks.options();
            let mut error = ptr::null_mut();
            rocks.db = (api.rocksdb_open)(options, path.as_ptr(), &mut error);
            (api.rocksdb_options_destroy)(options);
            api.check(error)?;
            Ok(rocks)
        }
    }

    fn settings(&self) -> String {
        let settled = match self.newer {
            Some(_) => "settled by WaitForCompact with flush",
            None => "settled by CompactRange",
        };
        format!("{}, {settled}", self.settings.words(&self.config, PREFIX))
    }

    fn class(&self) -> Class {
        if self.config.sync == Sync::Synced { Class::F } else { Class::K }
    }

    fn compresses(&self) -> bool {
        self.config.compression
    }

    fn writer(&self, _hint: Hint) -> Result<RocksWriter<'_, PREFIX>> {
        // SAFETY: destroyed by the writer's `drop`.
        Ok(RocksWriter { db: self, batch: unsafe { (self.api.rocksdb_writebatch_create)() } })
    }

    fn reader(&self, access: Access) -> Result<RocksReader<'_, PREFIX>> {
        Ok(RocksReader {
            db: self,
            iter: ptr::null_mut(),
            view: View::new(access != Access::Quiet),
        })
    }

    /// Flushes, and waits for what its background threads have set themselves to compact; an old library cannot wait.
    fn settle(&self) -> Result<()> {
        let Some(newer) = self.newer else { return self.compact() };
        let mut error = ptr::null_mut();
        // SAFETY: options of our own, freed once.
        unsafe {
            let options = (newer.rocksdb_wait_for_compact_options_create)();
            (newer.rocksdb_wait_for_compact_options_set_flush)(options, 1);
            (newer.rocksdb_wait_for_compact)(self.db, options, &mut error);
            (newer.rocksdb_wait_for_compact_options_destroy)(options);
        }
        self.api.check(error)
    }

    fn compact(&self) -> Result<()> {
        // SAFETY: no bounds: the whole database, its memtable too.
        unsafe { (self.api.rocksdb_compact_range)(self.db, ptr::null(), 0, ptr::null(), 0) };
        Ok(())
    }
}

/// Writes; holds a batch that is cleared, not freed, between uses.
pub struct RocksWriter<'a, const PREFIX: bool> {
    db: &'a RocksDb<PREFIX>,
    batch: Handle,
}

impl<const PREFIX: bool> Writer for RocksWriter<'_, PREFIX> {
    #[inline]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let (api, db) = (self.db.api, self.db);
        let mut error = ptr::null_mut();
        let (k, v) = (key.as_ptr(), value.as_ptr());
        // SAFETY: RocksDB copies both before it returns.
        unsafe {
            (api.rocksdb_put)(db.db, db.write, k, key.len(), v, value.len(), &mut error);
        }
        api.check(error)
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        let (api, db) = (self.db.api, self.db);
        let mut error = ptr::null_mut();
        // SAFETY: as in `put`.
        unsafe { (api.rocksdb_delete)(db.db, db.write, key.as_ptr(), key.len(), &mut error) };
        api.check(error)
    }

    #[inline]
    fn batch_put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let (k, v) = (key.as_ptr(), value.as_ptr());
        // SAFETY: the batch is ours; RocksDB copies both before it returns.
        unsafe { (self.db.api.rocksdb_writebatch_put)(self.batch, k, key.len(), v, value.len()) };
        Ok(())
    }

    fn batch_commit(&mut self) -> Result<()> {
        let (api, db) = (self.db.api, self.db);
        let mut error = ptr::null_mut();
        // SAFETY: the batch is ours, and stays valid after it was written.
        unsafe {
            (api.rocksdb_write)(db.db, db.write, self.batch, &mut error);
            (api.rocksdb_writebatch_clear)(self.batch);
        }
        api.check(error)
    }
}

impl<const PREFIX: bool> Drop for RocksWriter<'_, PREFIX> {
    fn drop(&mut self) {
        // SAFETY: created by `writer`, used by nobody else.
        unsafe { (self.db.api.rocksdb_writebatch_destroy)(self.batch) }
    }
}

/// Reads, with an iterator for seeks that is kept between them; beside a writer, for a while.
pub struct RocksReader<'a, const PREFIX: bool> {
    db: &'a RocksDb<PREFIX>,
    iter: Handle,
    view: View,
}

impl<const PREFIX: bool> RocksReader<'_, PREFIX> {
    /// Hands over entries from where `iter` stands, up to `count`.
    #[inline]
    fn walk(
        &self,
        iter: Handle,
        direction: Direction,
        count: u64,
        mut see: impl FnMut(&[u8], &[u8]),
    ) -> Result<u64> {
        let api = self.db.api;
        let mut seen = 0;
        // SAFETY: the iterator is open and ours; key and value are looked at only while it is
        // valid and before it moves.
        unsafe {
            while seen < count && (api.rocksdb_iter_valid)(iter) != 0 {
                let (mut key_len, mut value_len) = (0, 0);
                let key = (api.rocksdb_iter_key)(iter, &mut key_len);
                let value = (api.rocksdb_iter_value)(iter, &mut value_len);
                see(library::bytes(key, key_len), library::bytes(value, value_len));
                seen += 1;
                if seen == count {
                    break;
                }
                match direction {
                    Direction::Forward => (api.rocksdb_iter_next)(iter),
                    Direction::Reverse => (api.rocksdb_iter_prev)(iter),
                }
            }
            let mut error = ptr::null_mut();
            (api.rocksdb_iter_get_error)(iter, &mut error);
            api.check(error)?;
        }
        Ok(seen)
    }

    fn drop_iterator(&mut self) {
        if !self.iter.is_null() {
            // SAFETY: created by `seek`, used by nobody else.
            unsafe { (self.db.api.rocksdb_iter_destroy)(self.iter) }
            self.iter = ptr::null_mut();
        }
    }
}

impl<const PREFIX: bool> Reader for RocksReader<'_, PREFIX> {
    #[inline]
    fn get<R>(&mut self, key: &[u8], see: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        let (api, db) = (self.db.api, self.db);
        let (mut error, mut len) = (ptr::null_mut(), 0);
        // SAFETY: the slice pins `len` bytes until it is destroyed, after they were looked at.
        unsafe {
            let slice =
                (api.rocksdb_get_pinned)(db.db, db.read, key.as_ptr(), key.len(), &mut error);
            api.check(error)?;
            if slice.is_null() {
                return Ok(None);
            }
            let value = (api.rocksdb_pinnableslice_value)(slice, &mut len);
            let seen = see(library::bytes(value, len));
            (api.rocksdb_pinnableslice_destroy)(slice);
            Ok(Some(seen))
        }
    }

    #[inline]
    fn seek(&mut self, key: &[u8], count: u64, see: impl FnMut(&[u8], &[u8])) -> Result<u64> {
        let api = self.db.api;
        if self.view.is_due() {
            self.renew()?;
        }
        // SAFETY: created here, destroyed by `drop_iterator`.
        unsafe {
            if self.iter.is_null() {
                self.iter = (api.rocksdb_create_iterator)(self.db.db, self.db.read);
            }
            (api.rocksdb_iter_seek)(self.iter, key.as_ptr(), key.len());
        }
        self.walk(self.iter, Direction::Forward, count, see)
    }

    fn scan(&mut self, direction: Direction, see: impl FnMut(&[u8], &[u8])) -> Result<u64> {
        let api = self.db.api;
        // SAFETY: an iterator of our own, destroyed below.
        unsafe {
            let iter = (api.rocksdb_create_iterator)(self.db.db, self.db.read);
            match direction {
                Direction::Forward => (api.rocksdb_iter_seek_to_first)(iter),
                Direction::Reverse => (api.rocksdb_iter_seek_to_last)(iter),
            }
            let seen = self.walk(iter, direction, u64::MAX, see);
            (api.rocksdb_iter_destroy)(iter);
            seen
        }
    }

    fn renew(&mut self) -> Result<()> {
        let Some(newer) = self.db.newer.filter(|_| !self.iter.is_null()) else {
            self.drop_iterator();
            return Ok(());
        };
        let mut error = ptr::null_mut();
        // SAFETY: an open iterator of our own.
        unsafe { (newer.rocksdb_iter_refresh)(self.iter, &mut error) };
        self.db.api.check(error)
    }
}

impl<const PREFIX: bool> Drop for RocksReader<'_, PREFIX> {
    fn drop(&mut self) {
        self.drop_iterator();
    }
}

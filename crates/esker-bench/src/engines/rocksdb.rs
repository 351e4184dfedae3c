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
//! each read of a block), `wal_recovery` (`WALRecoveryMode`, 0 to 3), `scan_flush` (dead entries of a memtable that a step of an
//! iterator passes before it is flushed, and files full of deletions compacted), `defaults` (1: none of all this is set).

use super::built::{self, Loaded};
use super::leveldb_interface::{Api, Dialect, Error, Handle, Opening, Store};
use super::library::{self, c_api};
use super::rocksdb_settings::{self, Settings};
use crate::engine::{Config, Engine};
use crate::system;
use anyhow::Result;
use libloading::Library;
use std::ffi::{c_double, c_int, c_uchar};
use std::ptr;

c_api! {
    /// What RocksDB alone has of `rocksdb/c.h`, or LevelDB otherwise.
    Own {
        fn rocksdb_options_increase_parallelism(Handle, c_int);
        fn rocksdb_options_set_max_write_buffer_number(Handle, c_int);
        fn rocksdb_options_set_level_compaction_dynamic_level_bytes(Handle, c_uchar);
        fn rocksdb_options_set_bytes_per_sync(Handle, u64);
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
        fn rocksdb_readoptions_set_total_order_seek(Handle, c_uchar);
        fn rocksdb_get_pinned(Handle, Handle, *const u8, usize, *mut Error) -> Handle;
        fn rocksdb_pinnableslice_value(Handle, *mut usize) -> *const u8;
        fn rocksdb_pinnableslice_destroy(Handle);
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

c_api! {
    /// What came later still (10.5), for stores in which much is deleted.
    Newest {
        fn rocksdb_options_set_memtable_op_scan_flush_trigger(Handle, u32);
        fn rocksdb_options_add_compact_on_deletion_collector_factory(Handle, usize, usize);
    }
}

const NO_COMPRESSION: c_int = 0;
const LZ4: c_int = 4;
const BINARY_SEARCH_AND_HASH: c_int = 1;
const STEM: &str = "librocksdb.so";

/// RocksDB, with a prefix extractor or without.
pub type RocksDb<const PREFIX: bool> = Store<RocksDbDialect<PREFIX>>;

/// What every version has.
fn functions() -> Result<&'static (Api, Own)> {
    static FUNCTIONS: Loaded<(Api, Own)> = Loaded::new();
    FUNCTIONS.get(&built::ROCKSDB, system, |library| {
        Ok((Api::load_as(library, "rocksdb_")?, Own::load(library)?))
    })
}

/// What the library has of it: all or nothing.
fn newer() -> Option<&'static Newer> {
    static NEWER: Loaded<Newer> = Loaded::new();
    NEWER.get(&built::ROCKSDB, system, Newer::load).ok()
}

/// The same of what came later still.
fn newest() -> Option<&'static Newest> {
    static NEWEST: Loaded<Newest> = Loaded::new();
    NEWEST.get(&built::ROCKSDB, system, Newest::load).ok()
}

fn system() -> Result<&'static Library> {
    library::load_any_version(STEM, "librocksdb-dev")
}

/// What RocksDB has in a way of its own.
pub struct RocksDbDialect<const PREFIX: bool> {
    own: &'static Own,
    newer: Option<&'static Newer>,
    newest: Option<&'static Newest>,
    settings: Settings,
}

impl<const PREFIX: bool> Dialect for RocksDbDialect<PREFIX> {
    fn version() -> Result<String> {
        functions()?;
        let built = built::ROCKSDB;
        if built.is_taken() {
            return Ok(built.told(built.version));
        }
        let version = library::version_of_file(STEM);
        Ok(built.told(version.as_deref().unwrap_or("of unknown version")))
    }

    fn load(config: &Config) -> Result<Opening<Self>> {
        let (api, own) = functions()?;
        let settings = Settings::of(config)?;
        Ok(Opening {
            api,
            cache_bytes: settings.cache,
            // By default it verifies.
            verifies_checksums: settings.verify_checksums || settings.defaults,
            dialect: RocksDbDialect { own, newer: newer(), newest: newest(), settings },
        })
    }

    fn set(&self, store: &Store<Self>, options: Handle) {
        let (api, own, settings) = (store.api, self.own, &self.settings);
        // SAFETY: the filter policy and the prefix extractor belong to the options they are given
        // to; the table options are copied; the cache is shared.
        unsafe {
            (own.rocksdb_readoptions_set_total_order_seek)(store.read, PREFIX as c_uchar);
            if settings.defaults {
                if !store.config.compression {
                    (api.options_set_compression)(options, NO_COMPRESSION);
                }
                return;
            }
            let table = (own.rocksdb_block_based_options_create)();
            (own.rocksdb_block_based_options_set_block_size)(table, rocksdb_settings::BLOCK);
            (own.rocksdb_block_based_options_set_block_cache)(table, store.cache);
            let filter = (own.rocksdb_filterpolicy_create_bloom_full)(10.0);
            (own.rocksdb_block_based_options_set_filter_policy)(table, filter);
            let index = BINARY_SEARCH_AND_HASH;
            (own.rocksdb_block_based_options_set_data_block_index_type)(table, index);
            (own.rocksdb_block_based_options_set_data_block_hash_ratio)(table, 0.75);
            (own.rocksdb_block_based_options_set_format_version)(table, 5);

            (own.rocksdb_options_increase_parallelism)(options, system::cores().max(2) as c_int);
            (api.options_set_write_buffer_size)(options, settings.write_buffer);
            (own.rocksdb_options_set_max_write_buffer_number)(options, 2);
            (own.rocksdb_options_set_level_compaction_dynamic_level_bytes)(options, 1);
            (own.rocksdb_options_set_bytes_per_sync)(options, 1 << 20);
            (own.rocksdb_options_set_max_bytes_for_level_base)(options, settings.level_base);
            (own.rocksdb_options_set_target_file_size_base)(options, settings.file_size);
            let compression = if store.config.compression { LZ4 } else { NO_COMPRESSION };
            (api.options_set_compression)(options, compression);
            // What is merged again soon is not worth it; the last of them holds for all deeper levels.
            let levels = [NO_COMPRESSION, compression];
            (own.rocksdb_options_set_compression_per_level)(options, levels.as_ptr(), levels.len());
            (own.rocksdb_options_set_enable_blob_files)(options, 1);
            (own.rocksdb_options_set_min_blob_size)(options, rocksdb_settings::BLOB);
            (own.rocksdb_options_set_blob_compression_type)(options, compression);
            (own.rocksdb_options_set_enable_blob_gc)(options, 1);
            if let (Some(newest), Some(passed)) = (self.newest, settings.passed) {
                (newest.rocksdb_options_set_memtable_op_scan_flush_trigger)(options, passed);
                let (window, deleted) = (rocksdb_settings::WINDOW, rocksdb_settings::DELETED);
                let add = newest.rocksdb_options_add_compact_on_deletion_collector_factory;
                add(options, window, deleted);
            }
            if let Some(mode) = settings.wal_recovery {
                (own.rocksdb_options_set_wal_recovery_mode)(options, mode as c_int);
            }
            (own.rocksdb_options_set_allow_mmap_reads)(options, settings.mmap_reads as c_uchar);
            if PREFIX {
                let length = rocksdb_settings::PREFIX;
                let prefix = (own.rocksdb_slicetransform_create_fixed_prefix)(length);
                (own.rocksdb_options_set_prefix_extractor)(options, prefix);
                (own.rocksdb_options_set_memtable_prefix_bloom_size_ratio)(options, 0.1);
                (own.rocksdb_options_set_memtable_whole_key_filtering)(options, 1);
            }
            (own.rocksdb_options_set_block_based_table_factory)(options, table);
            (own.rocksdb_block_based_options_destroy)(table);
        }
    }

    fn settings(&self, config: &Config) -> String {
        let settled = match self.newer {
            Some(_) => "settled by WaitForCompact with flush",
            None => "settled by CompactRange",
        };
        let dead = match (self.newest, self.settings.passed) {
            (Some(_), Some(passed)) if !self.settings.defaults => format!(
                "a memtable flushed where a step of an iterator passes {passed} dead entries, files compacted with {} deletions among {} \
                 entries, ",
                rocksdb_settings::DELETED,
                rocksdb_settings::WINDOW
            ),
            _ => String::new(),
        };
        format!("{}, {dead}{settled}", self.settings.words(config, PREFIX))
    }

    /// Flushes, and waits for what its background threads have set themselves to compact; an old library cannot wait.
    fn settle(&self, store: &Store<Self>) -> Result<()> {
        let Some(newer) = self.newer else { return store.compact() };
        let mut error = ptr::null_mut();
        // SAFETY: options of our own, freed once.
        unsafe {
            let options = (newer.rocksdb_wait_for_compact_options_create)();
            (newer.rocksdb_wait_for_compact_options_set_flush)(options, 1);
            (newer.rocksdb_wait_for_compact)(store.db, options, &mut error);
            (newer.rocksdb_wait_for_compact_options_destroy)(options);
        }
        store.api.check(error)
    }

    #[inline]
    fn get<R>(
        &self,
        store: &Store<Self>,
        key: &[u8],
        see: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        let (own, mut error, mut len) = (self.own, ptr::null_mut(), 0);
        // SAFETY: the slice pins `len` bytes until it is destroyed, after they were looked at.
        unsafe {
            let (k, get) = (key.as_ptr(), own.rocksdb_get_pinned);
            let slice = get(store.db, store.read, k, key.len(), &mut error);
            store.api.check(error)?;
            if slice.is_null() {
                return Ok(None);
            }
            let value = (own.rocksdb_pinnableslice_value)(slice, &mut len);
            let seen = see(library::bytes(value, len));
            (own.rocksdb_pinnableslice_destroy)(slice);
            Ok(Some(seen))
        }
    }

    fn refresh(&self, api: &Api, iter: Handle) -> Result<bool> {
        let Some(newer) = self.newer else { return Ok(false) };
        let mut error = ptr::null_mut();
        // SAFETY: an open iterator of the caller's.
        unsafe { (newer.rocksdb_iter_refresh)(iter, &mut error) };
        api.check(error).map(|()| true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Sync;

    #[test]
    fn what_is_dead_is_flushed_and_compacted_where_that_is_set() {
        if newest().is_none() {
            return;
        }
        let mut config = crate::conformance::config(Sync::Buffered, false);
        let told = |config: &Config| {
            let dir = tempfile::tempdir().unwrap();
            RocksDb::<false>::open(dir.path(), config).unwrap().settings()
        };
        assert!(!told(&config).contains("dead"));
        config.tuning.insert("rocksdb.scan_flush".into(), "300".into());
        let words = told(&config);
        assert!(words.contains("passes 300 dead entries"), "{words}");
        config.tuning.insert("defaults".into(), "1".into());
        assert!(!told(&config).contains("dead"));
    }
}

//! LevelDB through its C interface, with the memory split of its own report (128 MB: a 120 MB write
//! buffer and an 8 MB cache), which tables of documents change where they have another, and the bloom
//! filter of 10 bits that its manual recommends. Its forks have the same interface, and are called the
//! same way ([`super::leveldb_interface`]); of Basho's, which maps no table and reads all blocks into its cache, each half of the memory is one of both.
//!
//! Tuning: `write_buffer` and `cache` (bytes), `verify_checksums` (at each read) and `paranoid_checks` (0 or 1;
//! both 0 by default), `defaults` (1: neither memory nor the filter is set).

use super::built::{self, Built, Loaded};
use super::leveldb_interface::{Api, Dialect, Error, Handle, Opening, Store};
use super::leveldb_rest as rest;
use super::library::{self, c_api};
use crate::engine::{Config, Sync};
use anyhow::Result;
use std::ffi::{c_char, c_int, c_uchar};
use std::ptr;
use std::time::Duration;

c_api! {
    /// What LevelDB alone has of `leveldb/c.h`, or RocksDB otherwise.
    Own {
        fn leveldb_major_version() -> c_int;
        fn leveldb_minor_version() -> c_int;
        fn leveldb_options_set_cache(Handle, Handle);
        fn leveldb_options_set_paranoid_checks(Handle, c_uchar);
        fn leveldb_options_set_filter_policy(Handle, Handle);
        fn leveldb_filterpolicy_create_bloom(c_int) -> Handle;
        fn leveldb_filterpolicy_destroy(Handle);
        fn leveldb_get(Handle, Handle, *const u8, usize, *mut usize, *mut Error) -> *mut u8;
        fn leveldb_property_value(Handle, *const c_char) -> *mut c_char;
    }
}

/// LevelDB or a fork of it.
struct Fork {
    /// What `--setup` makes.
    built: Built,
    /// The distribution's library, which a fork has none of: its names, and its package.
    system: Option<(&'static [&'static str], &'static str)>,
    /// Its release, where that is not the version that its library names.
    release: Option<&'static str>,
    /// What one should know of it beside its settings.
    remark: &'static str,
}

/// By their numbers.
const FORKS: [Fork; 3] = [
    Fork {
        built: built::LEVELDB,
        system: Some((&["libleveldb.so.1d", "libleveldb.so.1", "libleveldb.so"], "libleveldb1d")),
        release: None,
        remark: "",
    },
    // Its writers publish their entries in turn, and spin until it is theirs: with more of them than cores a synced write
    // waits for whole time slices. Nor does one wait for a sync that another has begun, even where that came too early for
    // it (`util/env_posix.cc`): with several writers its class F is a promise, not a fact.
    Fork {
        built: built::HYPERLEVELDB,
        system: None,
        release: Some("1.0.2"),
        remark: ", LevelDB 1.14, writers spin in turn and do not wait for each other's syncs",
    },
    // Of Riak.
    Fork {
        built: built::BASHO,
        system: None,
        release: None,
        remark: ", from leveldown-basho 0.10.1",
    },
];

/// What the settings of all of them are called by.
const NAME: &str = "leveldb";

const ORIGINAL: usize = 0;
const HYPER: usize = 1;
const BASHO: usize = 2;

/// LevelDB.
pub type LevelDb = Store<LevelDbDialect<ORIGINAL>>;

/// HyperLevelDB, as `--setup` builds it.
pub type HyperLevelDb = Store<LevelDbDialect<HYPER>>;

/// Basho's LevelDB, as `--setup` builds it.
pub type BashoLevelDb = Store<LevelDbDialect<BASHO>>;

/// The functions of a fork, loaded once.
fn functions(fork: usize) -> Result<&'static (Api, Own)> {
    static FUNCTIONS: [Loaded<(Api, Own)>; FORKS.len()] = [const { Loaded::new() }; FORKS.len()];
    let Fork { built, system, .. } = &FORKS[fork];
    let of_system = || match system {
        Some((names, package)) => library::load(names, package),
        None => built.load(),
    };
    FUNCTIONS[fork].get(built, of_system, |library| {
        Ok((Api::load_as(library, "leveldb_")?, Own::load(library)?))
    })
}

/// How the memory is split, in bytes.
struct Memory {
    /// As the library has it, and no filter: nothing is set.
    defaults: bool,
    write_buffer: u64,
    cache: u64,
}

impl Memory {
    /// With so many sixteenths for the write buffer where no document splits the memory.
    fn of(config: &Config, to_write: u64) -> Result<Memory> {
        let write_buffer = config.number(NAME, "write_buffer")?;
        let parts = if config.only_reads { 1 } else { to_write };
        let write_buffer =
            write_buffer.unwrap_or((config.memory / 16 * parts).min(super::MOST_TO_WRITE));
        let cache = config.number(NAME, "cache")?;
        let cache = cache.unwrap_or(config.memory.saturating_sub(write_buffer));
        Ok(Memory { defaults: config.as_it_comes(NAME)?, write_buffer, cache })
    }
}

/// What LevelDB, or a fork of it, has in a way of its own.
pub struct LevelDbDialect<const FORK: usize> {
    own: &'static Own,
    filter: Handle,
    memory: Memory,
    paranoid_checks: bool,
}

impl<const FORK: usize> Drop for LevelDbDialect<FORK> {
    fn drop(&mut self) {
        // SAFETY: its store, which closes the database before, was the only one that used it.
        unsafe { (self.own.leveldb_filterpolicy_destroy)(self.filter) }
    }
}

impl<const FORK: usize> LevelDbDialect<FORK> {
    /// Sixteenths of the memory for the write buffer of a store that is written to. Basho's cache has all that it reads, as it
    /// maps no table.
    fn to_write() -> u64 {
        if FORK == BASHO { 8 } else { 15 }
    }

    /// Its files, level by level, in its own words.
    fn tables(&self, store: &Store<Self>) -> String {
        // SAFETY: a string of LevelDB's own allocation, which is freed once.
        unsafe {
            let text = (self.own.leveldb_property_value)(store.db, c"leveldb.sstables".as_ptr());
            if text.is_null() { String::new() } else { store.api.take(text) }
        }
    }
}

/// Writes the memtable to a file: asked to compact what lies behind all keys, LevelDB does that first and finds nothing more.
fn flush<D>(store: &Store<D>) {
    let end = [0xff; 64];
    let (key, len) = (end.as_ptr(), end.len());
    // SAFETY: the bound is only read.
    unsafe { (store.api.compact_range)(store.db, key, len, key, len) };
}

impl<const FORK: usize> Dialect for LevelDbDialect<FORK> {
    fn version() -> Result<String> {
        let (_, own) = functions(FORK)?;
        // SAFETY: two functions without arguments.
        let (major, minor) =
            unsafe { ((own.leveldb_major_version)(), (own.leveldb_minor_version)()) };
        let version =
            FORKS[FORK].release.map_or_else(|| format!("{major}.{minor}"), str::to_string);
        Ok(FORKS[FORK].built.told(&version))
    }

    fn load(config: &Config) -> Result<Opening<Self>> {
        let (api, own) = functions(FORK)?;
        let dialect = LevelDbDialect {
            own,
            memory: Memory::of(config, Self::to_write())?,
            paranoid_checks: config.is_on(NAME, "paranoid_checks")?,
            // SAFETY: destroyed by `drop`.
            filter: unsafe { (own.leveldb_filterpolicy_create_bloom)(10) },
        };
        Ok(Opening {
            api,
            cache_bytes: dialect.memory.cache as usize,
            // Not the default of Basho's.
            verifies_checksums: config.is_on(NAME, "verify_checksums")?,
            dialect,
        })
    }

    fn set(&self, store: &Store<Self>, options: Handle) {
        let (api, own) = (store.api, self.own);
        // SAFETY: the cache and the filter go after the database that uses them.
        unsafe {
            if !self.memory.defaults {
                (api.options_set_write_buffer_size)(options, self.memory.write_buffer as usize);
                (own.leveldb_options_set_cache)(options, store.cache);
                (own.leveldb_options_set_filter_policy)(options, self.filter);
            }
            (api.options_set_compression)(options, store.config.compression as c_int);
            (own.leveldb_options_set_paranoid_checks)(options, self.paranoid_checks as c_uchar);
        }
    }

    fn settings(&self, config: &Config) -> String {
        let memory = match &self.memory {
            Memory { defaults: true, .. } => "the library's defaults, its memory too".to_string(),
            memory => format!(
                "write buffer {}, cache {}, bloom 10 bits",
                super::mib(memory.write_buffer),
                super::mib(memory.cache)
            ),
        };
        // The fork that maps none tells the system that it reads at random.
        let maps = config.larger_than_memory && FORK != BASHO;
        format!(
            "{memory}, compression {}, sync {}, C interface, settled by {}{}{}",
            if config.compression { "snappy" } else { "off" },
            if config.sync == Sync::Synced { "on" } else { "off" },
            if FORK == ORIGINAL {
                "waiting until no level is too large"
            } else {
                "waiting until it compacts no more"
            },
            FORKS[FORK].remark,
            if maps {
                ", tables mapped without advice: a miss reads as far ahead as the device does"
            } else {
                ""
            },
        )
    }

    /// Flushes, and waits until its background thread has no level above its limit. A fork has other rules.
    fn settle(&self, store: &Store<Self>) -> Result<()> {
        flush(store);
        if FORK != ORIGINAL {
            return rest::wait_until_quiet(|| self.tables(store));
        }
        while rest::owes(&self.tables(store)) {
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    #[inline]
    fn get<R>(
        &self,
        store: &Store<Self>,
        key: &[u8],
        see: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        let api = store.api;
        let (k, mut len, mut error) = (key.as_ptr(), 0, ptr::null_mut());
        // SAFETY: the value is LevelDB's allocation of `len` bytes, looked at before it is freed.
        unsafe {
            let get = self.own.leveldb_get;
            let value = get(store.db, store.read, k, key.len(), &mut len, &mut error);
            api.check(error)?;
            if value.is_null() {
                return Ok(None);
            }
            let seen = see(library::bytes(value, len));
            (api.free)(value.cast());
            Ok(Some(seen))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::engine::{Engine, Hint, Writer};
    use std::path::Path;

    type ForkStore<const FORK: usize> = Store<LevelDbDialect<FORK>>;

    /// A store of 1 MiB of memory with twenty in it, not settled.
    fn loaded<const FORK: usize>(dir: &Path) -> ForkStore<FORK> {
        let mut config = crate::conformance::config(Sync::Buffered, false);
        config.memory = 1 << 20;
        let db = ForkStore::<FORK>::open(dir, &config).unwrap();
        let mut writer = db.writer(Hint::Any).unwrap();
        for i in 0..100_000u32 {
            writer.put(&i.wrapping_mul(0x9E37_79B1).to_be_bytes(), &[7; 200]).unwrap();
        }
        drop(writer);
        db
    }

    fn tables<const FORK: usize>(db: &ForkStore<FORK>) -> String {
        db.dialect.tables(db)
    }

    fn bytes_of(tables: &str) -> u64 {
        let sizes = tables.lines().filter_map(|line| line.split_once(':')?.1.split('[').next());
        sizes.filter_map(|size| size.trim().parse::<u64>().ok()).sum()
    }

    fn a_fork_flushes_and_comes_to_rest<const FORK: usize>() {
        if ForkStore::<FORK>::version().is_err() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let db = loaded::<FORK>(dir.path());
        let unsettled = bytes_of(&tables(&db));
        db.settle().unwrap();
        let settled = tables(&db);
        assert!(bytes_of(&settled) >= 20 << 20, "{unsettled} bytes before, then {settled}");
        std::thread::sleep(Duration::from_secs(1));
        assert_eq!(settled, tables(&db), "it went on");
    }

    #[test]
    fn settling_a_fork_flushes_and_waits_until_nothing_changes() {
        a_fork_flushes_and_comes_to_rest::<HYPER>();
        a_fork_flushes_and_comes_to_rest::<BASHO>();
    }

    #[test]
    fn settling_flushes_and_leaves_no_level_too_large() {
        if LevelDb::version().is_err() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let db = loaded::<ORIGINAL>(dir.path());
        db.settle().unwrap();
        let tables = tables(&db);
        assert!(tables.lines().count() > 10 && !rest::owes(&tables), "{tables}");
        assert_eq!(tables.matches("--- level").count(), 7, "{tables}");
    }

    #[test]
    fn a_document_splits_the_memory_and_the_command_line_overrules_it() {
        let mut config = crate::conformance::config(Sync::Buffered, true);
        let split =
            |config: &Config| Memory::of(config, 15).map(|m| (m.write_buffer, m.cache)).unwrap();
        assert_eq!(split(&config), (15 << 20, 1 << 20));
        let basho = Memory::of(&config, LevelDbDialect::<BASHO>::to_write()).unwrap();
        assert_eq!((basho.write_buffer, basho.cache), (8 << 20, 8 << 20));
        let mut set = |name: &str, bytes: u64| {
            config.tuning.insert(name.to_string(), bytes.to_string());
            split(&config)
        };
        assert_eq!(set("leveldb.write_buffer", 2 << 20), (2 << 20, 14 << 20));
        assert_eq!(set("leveldb.cache", 128 << 20), (2 << 20, 128 << 20));
        assert_eq!(set("write_buffer", 3 << 20), (3 << 20, 128 << 20));
    }
}

//! LevelDB through its C interface, with the memory split of its own report (128 MB: a 120 MB write
//! buffer and an 8 MB cache), which tables of documents change where they have another, and the bloom
//! filter of 10 bits that its manual recommends. Its forks have the same interface, and are called the
//! same way; of Basho's, which maps no table and reads all blocks into its cache, each half of the memory is one of both.
//!
//! Tuning: `write_buffer` and `cache` (bytes), `verify_checksums` (at each read) and `paranoid_checks` (0 or 1;
//! both 0 by default), `defaults` (1: neither memory nor the filter is set).

use super::built::{self, Built, Loaded};
use super::leveldb_rest as rest;
use super::library::{self, View, c_api};
use crate::engine::{Access, Class, Config, Direction, Engine, Hint, Reader, Sync, Writer};
use anyhow::{Context, Result, bail};
use std::ffi::{CStr, CString, c_char, c_int, c_uchar, c_void};
use std::marker::PhantomData;
use std::path::Path;
use std::ptr;
use std::time::Duration;

type Handle = *mut c_void;
type Error = *mut c_char;

c_api! {
    /// The part of `leveldb/c.h` used here.
    pub Api {
        fn leveldb_major_version() -> c_int;
        fn leveldb_minor_version() -> c_int;
        fn leveldb_free(*mut c_void);
        fn leveldb_options_create() -> Handle;
        fn leveldb_options_destroy(Handle);
        fn leveldb_options_set_create_if_missing(Handle, c_uchar);
        fn leveldb_options_set_write_buffer_size(Handle, usize);
        fn leveldb_options_set_cache(Handle, Handle);
        fn leveldb_options_set_compression(Handle, c_int);
        fn leveldb_options_set_paranoid_checks(Handle, c_uchar);
        fn leveldb_options_set_filter_policy(Handle, Handle);
        fn leveldb_cache_create_lru(usize) -> Handle;
        fn leveldb_cache_destroy(Handle);
        fn leveldb_filterpolicy_create_bloom(c_int) -> Handle;
        fn leveldb_filterpolicy_destroy(Handle);
        fn leveldb_writeoptions_create() -> Handle;
        fn leveldb_writeoptions_destroy(Handle);
        fn leveldb_writeoptions_set_sync(Handle, c_uchar);
        fn leveldb_readoptions_create() -> Handle;
        fn leveldb_readoptions_destroy(Handle);
        fn leveldb_readoptions_set_verify_checksums(Handle, c_uchar);
        fn leveldb_open(Handle, *const c_char, *mut Error) -> Handle;
        fn leveldb_close(Handle);
        fn leveldb_put(Handle, Handle, *const u8, usize, *const u8, usize, *mut Error);
        fn leveldb_delete(Handle, Handle, *const u8, usize, *mut Error);
        fn leveldb_write(Handle, Handle, Handle, *mut Error);
        fn leveldb_get(Handle, Handle, *const u8, usize, *mut usize, *mut Error) -> *mut u8;
        fn leveldb_property_value(Handle, *const c_char) -> *mut c_char;
        fn leveldb_compact_range(Handle, *const u8, usize, *const u8, usize);
        fn leveldb_writebatch_create() -> Handle;
        fn leveldb_writebatch_destroy(Handle);
        fn leveldb_writebatch_clear(Handle);
        fn leveldb_writebatch_put(Handle, *const u8, usize, *const u8, usize);
        fn leveldb_create_iterator(Handle, Handle) -> Handle;
        fn leveldb_iter_destroy(Handle);
        fn leveldb_iter_valid(Handle) -> c_uchar;
        fn leveldb_iter_seek_to_first(Handle);
        fn leveldb_iter_seek_to_last(Handle);
        fn leveldb_iter_seek(Handle, *const u8, usize);
        fn leveldb_iter_next(Handle);
        fn leveldb_iter_prev(Handle);
        fn leveldb_iter_key(Handle, *mut usize) -> *const u8;
        fn leveldb_iter_value(Handle, *mut usize) -> *const u8;
        fn leveldb_iter_get_error(Handle, *mut Error);
    }
}

/// LevelDB or a fork of it.
pub trait Fork: 'static {
    /// Its library, loaded once.
    fn api() -> Result<&'static Api>;
    /// What `--setup` makes.
    const BUILT: Built;
    /// Its release, where that is not the version that its library names.
    const RELEASE: Option<&'static str>;
    /// What one should know of it beside its settings.
    const REMARK: &'static str;
}

/// Declares a fork, with a function that loads its library.
macro_rules! fork {
    ($(#[$doc:meta])* $name:ident, $built:expr, $release:expr, $remark:literal, $load:expr) => {
        $(#[$doc])*
        pub enum $name {}
        impl Fork for $name {
            fn api() -> Result<&'static Api> {
                static API: Loaded<Api> = Loaded::new();
                API.get(&Self::BUILT, || $load, Api::load)
            }
            const BUILT: Built = $built;
            const RELEASE: Option<&'static str> = $release;
            const REMARK: &'static str = $remark;
        }
    };
}

fork! {
    /// LevelDB itself.
    Original, built::LEVELDB, None, "", {
        let names = ["libleveldb.so.1d", "libleveldb.so.1", "libleveldb.so"];
        library::load(&names, "libleveldb1d")
    }
}
fork! {
    /// HyperLevelDB, as `--setup` builds it. Its writers publish their entries in turn, and spin
    /// until it is theirs: with more of them than cores a synced write waits for whole time slices.
    /// Nor does one wait for a sync that another has begun, even where that came too early for it
    /// (`util/env_posix.cc`): with several writers its class F is a promise, not a fact.
    Hyper, built::HYPERLEVELDB, Some("1.0.2"),
    ", LevelDB 1.14, writers spin in turn and do not wait for each other's syncs", {
        built::HYPERLEVELDB.load()
    }
}
fork! {
    /// Basho's LevelDB of Riak, as `--setup` builds it.
    Basho, built::BASHO, None, ", from leveldown-basho 0.10.1", { built::BASHO.load() }
}

/// LevelDB.
pub type LevelDb = Store<Original>;

/// HyperLevelDB.
pub type HyperLevelDb = Store<Hyper>;

/// Basho's LevelDB.
pub type BashoLevelDb = Store<Basho>;

impl Api {
    /// Turns an error string into an error, and frees it.
    #[inline]
    fn check(&self, error: Error) -> Result<()> {
        if error.is_null() {
            return Ok(());
        }
        // SAFETY: LevelDB set it to a string of its own allocation, which is freed once.
        let text = unsafe {
            let text = CStr::from_ptr(error).to_string_lossy().into_owned();
            (self.leveldb_free)(error.cast());
            text
        };
        bail!("{text}")
    }
}

/// A LevelDB database with the options it needs for as long as it is open.
pub struct Store<F> {
    fork: PhantomData<fn() -> F>,
    api: &'static Api,
    db: Handle,
    cache: Handle,
    filter: Handle,
    read: Handle,
    write: Handle,
    memory: Memory,
    config: Config,
}

// SAFETY: a database, and options that are not changed any more, may be shared by threads
// (leveldb/c.h, doc/index.md "Concurrency").
unsafe impl<F> std::marker::Sync for Store<F> {}
// SAFETY: nothing in it belongs to a thread.
unsafe impl<F> Send for Store<F> {}

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
        let write_buffer = super::tuned_for(config, "leveldb", "write_buffer")?;
        let parts = if config.only_reads { 1 } else { to_write };
        let write_buffer = write_buffer.unwrap_or(config.memory / 16 * parts);
        let cache = super::tuned_for(config, "leveldb", "cache")?;
        let cache = cache.unwrap_or(config.memory.saturating_sub(write_buffer));
        Ok(Memory { defaults: super::as_it_comes(config)?, write_buffer, cache })
    }
}

impl<F: Fork> Store<F> {
    /// Whether it compacts by the rules that [`owes`] knows.
    fn is_original() -> bool {
        F::BUILT.name == built::LEVELDB.name
    }

    /// Sixteenths of the memory for the write buffer of a store that is written to. Basho's cache has all that it reads, as it
    /// maps no table.
    fn to_write() -> u64 {
        if F::BUILT.name == built::BASHO.name { 8 } else { 15 }
    }

    /// Writes the memtable to a file: asked to compact what lies behind all keys, it does that first and finds nothing more.
    fn flush(&self) {
        let end = [0xff; 64];
        let (key, len) = (end.as_ptr(), end.len());
        // SAFETY: the bound is only read.
        unsafe { (self.api.leveldb_compact_range)(self.db, key, len, key, len) };
    }

    /// Its files, level by level, in its own words.
    fn tables(&self) -> String {
        // SAFETY: a string of LevelDB's own allocation, which is freed once.
        unsafe {
            let text = (self.api.leveldb_property_value)(self.db, c"leveldb.sstables".as_ptr());
            if text.is_null() {
                return String::new();
            }
            let told = CStr::from_ptr(text).to_string_lossy().into_owned();
            (self.api.leveldb_free)(text.cast());
            told
        }
    }
}

impl<F> Drop for Store<F> {
    fn drop(&mut self) {
        let api = self.api;
        // SAFETY: handles borrow the database, so none is left; the cache and the filter go after
        // the database that uses them.
        unsafe {
            if !self.db.is_null() {
                (api.leveldb_close)(self.db);
            }
            (api.leveldb_cache_destroy)(self.cache);
            (api.leveldb_filterpolicy_destroy)(self.filter);
            (api.leveldb_readoptions_destroy)(self.read);
            (api.leveldb_writeoptions_destroy)(self.write);
        }
    }
}

impl<F: Fork> Engine for Store<F> {
    type Writer<'a> = LevelDbWriter<'a, F>;
    type Reader<'a> = LevelDbReader<'a, F>;

    fn version() -> Result<String> {
        let api = F::api()?;
        // SAFETY: two functions without arguments.
        let (major, minor) =
            unsafe { ((api.leveldb_major_version)(), (api.leveldb_minor_version)()) };
        let version = F::RELEASE.map_or_else(|| format!("{major}.{minor}"), str::to_string);
        Ok(F::BUILT.told(&version))
    }

    fn open(dir: &Path, config: &Config) -> Result<Self> {
        let api = F::api()?;
        let path = CString::new(dir.as_os_str().as_encoded_bytes()).context("path")?;
        let is_on = |name| Ok::<bool, anyhow::Error>(super::tuned(config, name)?.unwrap_or(0) != 0);
        let (verify, paranoid) = (is_on("verify_checksums")?, is_on("paranoid_checks")?);
        let memory = Memory::of(config, Self::to_write())?;
        // SAFETY: every handle is created here and destroyed by `drop`, in the order c.h asks for.
        unsafe {
            let mut leveldb = Store {
                fork: PhantomData,
                api,
                db: ptr::null_mut(),
                cache: (api.leveldb_cache_create_lru)(memory.cache as usize),
                filter: (api.leveldb_filterpolicy_create_bloom)(10),
                read: (api.leveldb_readoptions_create)(),
                write: (api.leveldb_writeoptions_create)(),
                memory,
                config: config.clone(),
            };
            // The default of LevelDB; Basho's is to verify.
            (api.leveldb_readoptions_set_verify_checksums)(leveldb.read, verify as c_uchar);
            (api.leveldb_writeoptions_set_sync)(leveldb.write, (config.sync == Sync::Synced) as u8);
            let options = (api.leveldb_options_create)();
            (api.leveldb_options_set_create_if_missing)(options, 1);
            if !leveldb.memory.defaults {
                let write_buffer = leveldb.memory.write_buffer as usize;
                (api.leveldb_options_set_write_buffer_size)(options, write_buffer);
                (api.leveldb_options_set_cache)(options, leveldb.cache);
                (api.leveldb_options_set_filter_policy)(options, leveldb.filter);
            }
            (api.leveldb_options_set_compression)(options, config.compression as c_int);
            (api.leveldb_options_set_paranoid_checks)(options, paranoid as c_uchar);
            let mut error = ptr::null_mut();
            leveldb.db = (api.leveldb_open)(options, path.as_ptr(), &mut error);
            (api.leveldb_options_destroy)(options);
            api.check(error)?;
            Ok(leveldb)
        }
    }

    fn settings(&self) -> String {
        let memory = match &self.memory {
            Memory { defaults: true, .. } => "the library's defaults, its memory too".to_string(),
            memory => format!(
                "write buffer {}, cache {}, bloom 10 bits",
                super::mib(memory.write_buffer),
                super::mib(memory.cache)
            ),
        };
        // The fork that maps none tells the system that it reads at random.
        let maps = self.config.larger_than_memory && F::BUILT.name != built::BASHO.name;
        format!(
            "{memory}, compression {}, sync {}, C interface, settled by {}{}{}",
            if self.config.compression { "snappy" } else { "off" },
            if self.config.sync == Sync::Synced { "on" } else { "off" },
            if Self::is_original() {
                "waiting until no level is too large"
            } else {
                "waiting until it compacts no more"
            },
            F::REMARK,
            if maps {
                ", tables mapped without advice: a miss reads as far ahead as the device does"
            } else {
                ""
            },
        )
    }

    fn class(&self) -> Class {
        if self.config.sync == Sync::Synced { Class::F } else { Class::K }
    }

    fn compresses(&self) -> bool {
        self.config.compression
    }

    fn writer(&self, _hint: Hint) -> Result<LevelDbWriter<'_, F>> {
        // SAFETY: destroyed by the writer's `drop`.
        Ok(LevelDbWriter { db: self, batch: unsafe { (self.api.leveldb_writebatch_create)() } })
    }

    fn reader(&self, access: Access) -> Result<LevelDbReader<'_, F>> {
        Ok(LevelDbReader {
            db: self,
            iter: ptr::null_mut(),
            view: View::new(access != Access::Quiet),
        })
    }

    /// Flushes, and waits until its background thread has no level above its limit. A fork has other rules.
    fn settle(&self) -> Result<()> {
        self.flush();
        if !Self::is_original() {
            return rest::wait_until_quiet(|| self.tables());
        }
        while rest::owes(&self.tables()) {
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    fn compact(&self) -> Result<()> {
        // SAFETY: no bounds: the whole database.
        unsafe { (self.api.leveldb_compact_range)(self.db, ptr::null(), 0, ptr::null(), 0) };
        Ok(())
    }
}

/// Writes; holds a batch that is cleared, not freed, between uses.
pub struct LevelDbWriter<'a, F> {
    db: &'a Store<F>,
    batch: Handle,
}

impl<F> Writer for LevelDbWriter<'_, F> {
    #[inline]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let (api, db) = (self.db.api, self.db);
        let mut error = ptr::null_mut();
        let (k, v) = (key.as_ptr(), value.as_ptr());
        // SAFETY: LevelDB copies both before it returns.
        unsafe {
            (api.leveldb_put)(db.db, db.write, k, key.len(), v, value.len(), &mut error);
        }
        api.check(error)
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        let (api, db) = (self.db.api, self.db);
        let mut error = ptr::null_mut();
        // SAFETY: as in `put`.
        unsafe { (api.leveldb_delete)(db.db, db.write, key.as_ptr(), key.len(), &mut error) };
        api.check(error)
    }

    #[inline]
    fn batch_put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let (k, v) = (key.as_ptr(), value.as_ptr());
        // SAFETY: the batch is ours; LevelDB copies both before it returns.
        unsafe {
            (self.db.api.leveldb_writebatch_put)(self.batch, k, key.len(), v, value.len());
        }
        Ok(())
    }

    fn batch_commit(&mut self) -> Result<()> {
        let (api, db) = (self.db.api, self.db);
        let mut error = ptr::null_mut();
        // SAFETY: the batch is ours, and stays valid after it was written.
        unsafe {
            (api.leveldb_write)(db.db, db.write, self.batch, &mut error);
            (api.leveldb_writebatch_clear)(self.batch);
        }
        api.check(error)
    }
}

impl<F> Drop for LevelDbWriter<'_, F> {
    fn drop(&mut self) {
        // SAFETY: created by `writer`, used by nobody else.
        unsafe { (self.db.api.leveldb_writebatch_destroy)(self.batch) }
    }
}

/// Reads, with an iterator for seeks that is kept between them; beside a writer, for a while.
pub struct LevelDbReader<'a, F> {
    db: &'a Store<F>,
    iter: Handle,
    view: View,
}

impl<F> LevelDbReader<'_, F> {
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
            while seen < count && (api.leveldb_iter_valid)(iter) != 0 {
                let (mut key_len, mut value_len) = (0, 0);
                let key = (api.leveldb_iter_key)(iter, &mut key_len);
                let value = (api.leveldb_iter_value)(iter, &mut value_len);
                see(
                    std::slice::from_raw_parts(key, key_len),
                    std::slice::from_raw_parts(value, value_len),
                );
                seen += 1;
                if seen == count {
                    break;
                }
                match direction {
                    Direction::Forward => (api.leveldb_iter_next)(iter),
                    Direction::Reverse => (api.leveldb_iter_prev)(iter),
                }
            }
            let mut error = ptr::null_mut();
            (api.leveldb_iter_get_error)(iter, &mut error);
            api.check(error)?;
        }
        Ok(seen)
    }

    fn drop_iterator(&mut self) {
        if !self.iter.is_null() {
            // SAFETY: created by `seek`, used by nobody else.
            unsafe { (self.db.api.leveldb_iter_destroy)(self.iter) }
            self.iter = ptr::null_mut();
        }
    }
}

impl<F> Reader for LevelDbReader<'_, F> {
    #[inline]
    fn get<R>(&mut self, key: &[u8], see: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        let (api, db) = (self.db.api, self.db);
        let (mut error, mut len) = (ptr::null_mut(), 0);
        // SAFETY: the value is LevelDB's allocation of `len` bytes, looked at before it is freed.
        unsafe {
            let value =
                (api.leveldb_get)(db.db, db.read, key.as_ptr(), key.len(), &mut len, &mut error);
            api.check(error)?;
            if value.is_null() {
                return Ok(None);
            }
            let seen = see(std::slice::from_raw_parts(value, len));
            (api.leveldb_free)(value.cast());
            Ok(Some(seen))
        }
    }

    #[inline]
    fn seek(&mut self, key: &[u8], count: u64, see: impl FnMut(&[u8], &[u8])) -> Result<u64> {
        let api = self.db.api;
        if self.view.is_due() {
            self.drop_iterator();
        }
        // SAFETY: created here, destroyed by `drop_iterator`.
        unsafe {
            if self.iter.is_null() {
                self.iter = (api.leveldb_create_iterator)(self.db.db, self.db.read);
            }
            (api.leveldb_iter_seek)(self.iter, key.as_ptr(), key.len());
        }
        self.walk(self.iter, Direction::Forward, count, see)
    }

    fn scan(&mut self, direction: Direction, see: impl FnMut(&[u8], &[u8])) -> Result<u64> {
        let api = self.db.api;
        // SAFETY: an iterator of our own, destroyed below.
        unsafe {
            let iter = (api.leveldb_create_iterator)(self.db.db, self.db.read);
            match direction {
                Direction::Forward => (api.leveldb_iter_seek_to_first)(iter),
                Direction::Reverse => (api.leveldb_iter_seek_to_last)(iter),
            }
            let seen = self.walk(iter, direction, u64::MAX, see);
            (api.leveldb_iter_destroy)(iter);
            seen
        }
    }

    fn renew(&mut self) -> Result<()> {
        self.drop_iterator();
        Ok(())
    }
}

impl<F> Drop for LevelDbReader<'_, F> {
    fn drop(&mut self) {
        self.drop_iterator();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A store of 1 MiB of memory with twenty in it, not settled.
    fn loaded<F: Fork>(dir: &Path) -> Store<F> {
        let mut config = crate::conformance::config(Sync::Buffered, false);
        config.memory = 1 << 20;
        let db = Store::<F>::open(dir, &config).unwrap();
        let mut writer = db.writer(Hint::Any).unwrap();
        for i in 0..100_000u32 {
            writer.put(&i.wrapping_mul(0x9E37_79B1).to_be_bytes(), &[7; 200]).unwrap();
        }
        drop(writer);
        db
    }

    fn bytes_of(tables: &str) -> u64 {
        let sizes = tables.lines().filter_map(|line| line.split_once(':')?.1.split('[').next());
        sizes.filter_map(|size| size.trim().parse::<u64>().ok()).sum()
    }

    fn a_fork_flushes_and_comes_to_rest<F: Fork>() {
        if Store::<F>::version().is_err() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let db = loaded::<F>(dir.path());
        let unsettled = bytes_of(&db.tables());
        db.settle().unwrap();
        let settled = db.tables();
        assert!(bytes_of(&settled) >= 20 << 20, "{unsettled} bytes before, then {settled}");
        std::thread::sleep(Duration::from_secs(1));
        assert_eq!(settled, db.tables(), "it went on");
    }

    #[test]
    fn settling_a_fork_flushes_and_waits_until_nothing_changes() {
        a_fork_flushes_and_comes_to_rest::<Hyper>();
        a_fork_flushes_and_comes_to_rest::<Basho>();
    }

    #[test]
    fn settling_flushes_and_leaves_no_level_too_large() {
        if LevelDb::version().is_err() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let db = loaded::<Original>(dir.path());
        db.settle().unwrap();
        let tables = db.tables();
        assert!(tables.lines().count() > 10 && !rest::owes(&tables), "{tables}");
        assert_eq!(tables.matches("--- level").count(), 7, "{tables}");
    }

    #[test]
    fn a_document_splits_the_memory_and_the_command_line_overrules_it() {
        let mut config = crate::conformance::config(Sync::Buffered, true);
        let split =
            |config: &Config| Memory::of(config, 15).map(|m| (m.write_buffer, m.cache)).unwrap();
        assert_eq!(split(&config), (15 << 20, 1 << 20));
        let basho = Memory::of(&config, BashoLevelDb::to_write()).unwrap();
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

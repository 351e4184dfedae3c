//! LMDB, as its manual (`lmdb.h`) calls it fastest: a writable mapping, appends for ascending keys,
//! one read transaction and cursor per reader.
//!
//! Buffered: `MDB_WRITEMAP | MDB_NOSYNC`; a commit is a store to the mapping and survives a killed
//! process. Without `MDB_WRITEMAP` where the store is larger than memory; a commit writes then. Synced: the default, two `fdatasync`-class waits a commit.
//!
//! Tuning: `page_size` (bytes, from version 1.0 on).

use super::built::{self, Loaded};
use super::library::{self, c_api};
use crate::engine::{Access, Class, Config, Direction, Engine, Hint, Reader, Sync, Writer};
use anyhow::{Context, Result, bail};
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::path::Path;
use std::ptr;

#[repr(C)]
struct Val {
    size: usize,
    data: *const c_void,
}

impl Val {
    fn new(bytes: &[u8]) -> Val {
        Val { size: bytes.len(), data: bytes.as_ptr().cast() }
    }
    fn empty() -> Val {
        Val { size: 0, data: ptr::null() }
    }
    /// # Safety
    /// It was filled in by LMDB and its transaction is still open.
    unsafe fn bytes<'a>(&self) -> &'a [u8] {
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts(self.data.cast(), self.size) }
    }
}

type Env = *mut c_void;
type Txn = *mut c_void;
type Cursor = *mut c_void;
type Dbi = c_uint;

c_api! {
    /// The part of `lmdb.h` used here.
    Api {
        fn mdb_version(*mut c_int, *mut c_int, *mut c_int) -> *const c_char;
        fn mdb_strerror(c_int) -> *const c_char;
        fn mdb_env_create(*mut Env) -> c_int;
        fn mdb_env_open(Env, *const c_char, c_uint, u32) -> c_int;
        fn mdb_env_set_mapsize(Env, usize) -> c_int;
        fn mdb_env_set_maxreaders(Env, c_uint) -> c_int;
        fn mdb_env_close(Env);
        fn mdb_env_copy2(Env, *const c_char, c_uint) -> c_int;
        fn mdb_txn_begin(Env, Txn, c_uint, *mut Txn) -> c_int;
        fn mdb_txn_commit(Txn) -> c_int;
        fn mdb_txn_abort(Txn);
        fn mdb_txn_reset(Txn);
        fn mdb_txn_renew(Txn) -> c_int;
        fn mdb_dbi_open(Txn, *const c_char, c_uint, *mut Dbi) -> c_int;
        fn mdb_get(Txn, Dbi, *mut Val, *mut Val) -> c_int;
        fn mdb_put(Txn, Dbi, *mut Val, *mut Val, c_uint) -> c_int;
        fn mdb_del(Txn, Dbi, *mut Val, *mut Val) -> c_int;
        fn mdb_cursor_open(Txn, Dbi, *mut Cursor) -> c_int;
        fn mdb_cursor_renew(Txn, Cursor) -> c_int;
        fn mdb_cursor_close(Cursor);
        fn mdb_cursor_get(Cursor, *mut Val, *mut Val, c_int) -> c_int;
        fn mdb_cursor_put(Cursor, *mut Val, *mut Val, c_uint) -> c_int;
    }
}

c_api! {
    /// What came with version 1.0.
    Newer {
        fn mdb_env_set_pagesize(Env, c_int) -> c_int;
    }
}

const NOSYNC: c_uint = 0x10000;
const RDONLY: c_uint = 0x20000;
const WRITEMAP: c_uint = 0x80000;
const NOTLS: c_uint = 0x200000;
const NORDAHEAD: c_uint = 0x800000;
const APPEND: c_uint = 0x20000;
/// A copy with pages in the order of their keys and no free ones between them.
const CP_COMPACT: c_uint = 1;
const NOTFOUND: c_int = -30798;
const FIRST: c_int = 0;
const LAST: c_int = 6;
const NEXT: c_int = 8;
const PREV: c_int = 12;
const SET_RANGE: c_int = 17;

/// The files of an environment.
const DATA: &str = "data.mdb";
const LOCK: &str = "lock.mdb";

/// What the distribution's library is called.
const NAMES: [&str; 2] = ["liblmdb.so.0", "liblmdb.so"];

/// Reads between two renewals beside a writer: a third of a millisecond, so that pages are reused.
const RENEW_EVERY: u32 = 256;

/// What the library has of it.
fn newer() -> Option<&'static Newer> {
    static NEWER: Loaded<Newer> = Loaded::new();
    NEWER.get(&built::LMDB, || library::load(&NAMES, "liblmdb0"), Newer::load).ok()
}

/// Bytes of a page, where that is not the system's 4,096: of entries of 1 KB three fit into that and leave a quarter empty. An entry
/// of half a page or more has pages of its own, and in a store larger than memory a page is to come with one fault. What is asked for
/// and cannot be set is an error.
fn page_size(config: &Config, can_be_set: bool) -> Result<Option<u64>> {
    let asked = config.number("lmdb", "page_size")?;
    if let Some(bytes) = asked.filter(|_| !can_be_set) {
        bail!("--set page_size={bytes}: this LMDB is older than 1.0, and has no such setting");
    }
    let larger = (512..2048).contains(&config.entry_bytes) && !config.larger_than_memory;
    Ok(asked.or((larger && can_be_set).then_some(8192)))
}

fn api() -> Result<&'static Api> {
    static API: Loaded<Api> = Loaded::new();
    API.get(&built::LMDB, || library::load(&NAMES, "liblmdb0"), Api::load)
}

impl Api {
    fn check(&self, code: c_int, call: &str) -> Result<()> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: `mdb_strerror` gives a static string for any code.
        let text = unsafe { CStr::from_ptr((self.mdb_strerror)(code)) };
        bail!("{call}: {}", text.to_string_lossy())
    }
}

/// An LMDB environment with its unnamed database.
pub struct Lmdb {
    api: &'static Api,
    env: Env,
    dbi: Dbi,
    flags: c_uint,
    map_bytes: usize,
    page_size: Option<u64>,
}

// SAFETY: an environment is made to be shared by threads; transactions stay with the thread that
// began them, or, read-only with MDB_NOTLS, are used by one thread at a time.
unsafe impl std::marker::Sync for Lmdb {}
// SAFETY: nothing in an environment belongs to the thread that opened it.
unsafe impl Send for Lmdb {}

impl Lmdb {
    fn begin(&self, flags: c_uint) -> Result<Txn> {
        let mut txn = ptr::null_mut();
        // SAFETY: the environment is open.
        let code = unsafe { (self.api.mdb_txn_begin)(self.env, ptr::null_mut(), flags, &mut txn) };
        self.api.check(code, "mdb_txn_begin")?;
        Ok(txn)
    }
    fn commit(&self, txn: Txn) -> Result<()> {
        // SAFETY: `txn` is open, and freed by this whatever it returns.
        self.api.check(unsafe { (self.api.mdb_txn_commit)(txn) }, "mdb_txn_commit")
    }
    fn cursor(&self, txn: Txn) -> Result<Cursor> {
        let mut cursor = ptr::null_mut();
        // SAFETY: the transaction is open and the database handle belongs to the environment.
        let code = unsafe { (self.api.mdb_cursor_open)(txn, self.dbi, &mut cursor) };
        self.api.check(code, "mdb_cursor_open")?;
        Ok(cursor)
    }
}

impl Drop for Lmdb {
    fn drop(&mut self) {
        // SAFETY: handles borrow the environment, so none is left.
        unsafe { (self.api.mdb_env_close)(self.env) }
    }
}

impl Engine for Lmdb {
    type Writer<'a> = LmdbWriter<'a>;
    type Reader<'a> = LmdbReader<'a>;

    fn version() -> Result<String> {
        let (mut a, mut b, mut c) = (0, 0, 0);
        // SAFETY: three places for three numbers.
        unsafe { (api()?.mdb_version)(&mut a, &mut b, &mut c) };
        Ok(built::LMDB.told(&format!("{a}.{b}.{c}")))
    }

    fn open(dir: &Path, config: &Config) -> Result<Self> {
        let api = api()?;
        std::fs::create_dir_all(dir)?;
        let path = CString::new(dir.as_os_str().as_encoded_bytes()).context("path")?;
        let mut flags = match config.sync {
            // lmdb.h: a writable mapping is slower for stores that are larger than memory.
            Sync::Buffered if config.larger_than_memory => NOTLS | NOSYNC,
            Sync::Buffered => NOTLS | WRITEMAP | NOSYNC,
            Sync::Synced => NOTLS,
        };
        if config.larger_than_memory {
            flags |= NORDAHEAD;
        }
        // Address space, not disk: random fills leave pages two thirds full, and old pages wait
        // for readers. The file is sparse where it was never written.
        let map_bytes = (config.expected_bytes as usize * 4).max(1 << 30).next_multiple_of(1 << 20);
        let newer = newer();
        let page_size = page_size(config, newer.is_some())?;
        let mut env = ptr::null_mut();
        // SAFETY: the calls in the order that lmdb.h asks for, on an environment of our own.
        unsafe {
            api.check((api.mdb_env_create)(&mut env), "mdb_env_create")?;
            let mut lmdb = Lmdb { api, env, dbi: 0, flags, map_bytes, page_size };
            if let (Some(newer), Some(bytes)) = (newer, page_size) {
                let bytes = c_int::try_from(bytes).context("page_size")?;
                api.check((newer.mdb_env_set_pagesize)(env, bytes), "mdb_env_set_pagesize")?;
            }
            api.check((api.mdb_env_set_mapsize)(env, map_bytes), "mdb_env_set_mapsize")?;
            api.check((api.mdb_env_set_maxreaders)(env, 256), "mdb_env_set_maxreaders")?;
            api.check((api.mdb_env_open)(env, path.as_ptr(), flags, 0o644), "mdb_env_open")?;
            let txn = lmdb.begin(0)?;
            let code = (api.mdb_dbi_open)(txn, ptr::null(), 0, &mut lmdb.dbi);
            api.check(code, "mdb_dbi_open")?;
            lmdb.commit(txn)?;
            Ok(lmdb)
        }
    }

    fn settings(&self) -> String {
        let sync = match (self.flags & NOSYNC != 0, self.flags & WRITEMAP != 0) {
            (true, true) => "WRITEMAP|NOSYNC",
            (true, false) => "NOSYNC",
            (false, _) => "default sync",
        };
        let ahead = if self.flags & NORDAHEAD != 0 { "|NORDAHEAD" } else { "" };
        let pages = self.page_size.map_or_else(String::new, |bytes| format!(", pages of {bytes}"));
        format!(
            "{sync}{ahead}|NOTLS, map {} MiB{pages}, APPEND for ascending keys, a transaction per put or \
             batch, a read transaction per reader, renewed every {RENEW_EVERY} reads beside a writer",
            self.map_bytes >> 20
        )
    }

    fn class(&self) -> Class {
        if self.flags & NOSYNC != 0 { Class::K } else { Class::F }
    }

    fn writer(&self, hint: Hint) -> Result<LmdbWriter<'_>> {
        let put_flags = if hint == Hint::Ascending { APPEND } else { 0 };
        Ok(LmdbWriter { lmdb: self, put_flags, batch: None })
    }

    fn reader(&self, access: Access) -> Result<LmdbReader<'_>> {
        let txn = self.begin(RDONLY)?;
        let (cursor, reads, is_reset) = (ptr::null_mut(), 0, false);
        let mut reader = LmdbReader { lmdb: self, txn, cursor, access, reads, is_reset };
        reader.cursor = self.cursor(txn)?;
        Ok(reader)
    }

    /// In the place of the environment a compacting copy of it, which is what its manual has for that.
    fn put_in_order(dir: &Path, config: &Config) -> Result<()> {
        let copy = dir.join("copy");
        std::fs::create_dir(&copy).context("a directory for the copy")?;
        let lmdb = Self::open(dir, config)?;
        let path = CString::new(copy.as_os_str().as_encoded_bytes()).context("path")?;
        // SAFETY: an open environment; the path ends with a zero.
        let code = unsafe { (lmdb.api.mdb_env_copy2)(lmdb.env, path.as_ptr(), CP_COMPACT) };
        lmdb.api.check(code, "mdb_env_copy2")?;
        drop(lmdb);
        std::fs::rename(copy.join(DATA), dir.join(DATA))?;
        // It knows the transactions of the file that is gone, and is made anew.
        std::fs::remove_file(dir.join(LOCK))?;
        Ok(std::fs::remove_dir(copy)?)
    }
}

/// Writes; holds the transaction of a batch under way.
pub struct LmdbWriter<'a> {
    lmdb: &'a Lmdb,
    put_flags: c_uint,
    batch: Option<(Txn, Cursor)>,
}

impl Writer for LmdbWriter<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let lmdb = self.lmdb;
        let txn = lmdb.begin(0)?;
        let (mut k, mut v) = (Val::new(key), Val::new(value));
        // SAFETY: an open write transaction; LMDB copies both before it returns.
        let code = unsafe { (lmdb.api.mdb_put)(txn, lmdb.dbi, &mut k, &mut v, self.put_flags) };
        if code != 0 {
            // SAFETY: open, and not used again.
            unsafe { (lmdb.api.mdb_txn_abort)(txn) };
        }
        lmdb.api.check(code, "mdb_put")?;
        lmdb.commit(txn)
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        let lmdb = self.lmdb;
        let txn = lmdb.begin(0)?;
        // SAFETY: an open write transaction.
        let code =
            unsafe { (lmdb.api.mdb_del)(txn, lmdb.dbi, &mut Val::new(key), ptr::null_mut()) };
        if code != 0 {
            // SAFETY: open, and not used again.
            unsafe { (lmdb.api.mdb_txn_abort)(txn) };
            return if code == NOTFOUND { Ok(()) } else { lmdb.api.check(code, "mdb_del") };
        }
        lmdb.commit(txn)
    }

    fn batch_put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let lmdb = self.lmdb;
        let (_, cursor) = match self.batch {
            Some(batch) => batch,
            None => {
                let txn = lmdb.begin(0)?;
                *self.batch.insert((txn, lmdb.cursor(txn)?))
            }
        };
        let (mut k, mut v) = (Val::new(key), Val::new(value));
        // SAFETY: the cursor of the open transaction; LMDB copies both before it returns.
        let code = unsafe { (lmdb.api.mdb_cursor_put)(cursor, &mut k, &mut v, self.put_flags) };
        lmdb.api.check(code, "mdb_cursor_put")
    }

    fn batch_commit(&mut self) -> Result<()> {
        let Some((txn, cursor)) = self.batch.take() else { return Ok(()) };
        // SAFETY: the cursor is open and its transaction too; a cursor goes first.
        unsafe { (self.lmdb.api.mdb_cursor_close)(cursor) };
        self.lmdb.commit(txn)
    }
}

impl Drop for LmdbWriter<'_> {
    fn drop(&mut self) {
        if let Some((txn, cursor)) = self.batch.take() {
            // SAFETY: both open; an open write transaction would block every later writer.
            unsafe {
                (self.lmdb.api.mdb_cursor_close)(cursor);
                (self.lmdb.api.mdb_txn_abort)(txn);
            }
        }
    }
}

/// Reads in one transaction, with one cursor.
pub struct LmdbReader<'a> {
    lmdb: &'a Lmdb,
    txn: Txn,
    cursor: Cursor,
    access: Access,
    reads: u32,
    /// Whether the transaction was reset, and a read has to renew it.
    is_reset: bool,
}

impl LmdbReader<'_> {
    #[inline]
    fn renew_if_due(&mut self) -> Result<()> {
        if self.is_reset {
            return self.renew();
        }
        if self.access != Access::BesideWriter {
            return Ok(());
        }
        self.reads += 1;
        if self.reads < RENEW_EVERY { Ok(()) } else { self.renew() }
    }

    /// Moves the cursor; the entry there, `None` past the end.
    #[inline]
    fn step<'b>(&self, op: c_int, key: Val) -> Result<Option<(&'b [u8], &'b [u8])>> {
        let (mut k, mut v) = (key, Val::empty());
        // SAFETY: the cursor's transaction is open; LMDB fills in both or returns a code.
        unsafe {
            match (self.lmdb.api.mdb_cursor_get)(self.cursor, &mut k, &mut v, op) {
                0 => Ok(Some((k.bytes(), v.bytes()))),
                NOTFOUND => Ok(None),
                code => self.lmdb.api.check(code, "mdb_cursor_get").map(|()| None),
            }
        }
    }
}

impl Reader for LmdbReader<'_> {
    #[inline]
    fn get<R>(&mut self, key: &[u8], see: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        self.renew_if_due()?;
        let lmdb = self.lmdb;
        let (mut k, mut v) = (Val::new(key), Val::empty());
        // SAFETY: the transaction is open, and stays so while `see` looks at the bytes.
        unsafe {
            match (lmdb.api.mdb_get)(self.txn, lmdb.dbi, &mut k, &mut v) {
                0 => Ok(Some(see(v.bytes()))),
                NOTFOUND => Ok(None),
                code => lmdb.api.check(code, "mdb_get").map(|()| None),
            }
        }
    }

    #[inline]
    fn seek(&mut self, key: &[u8], count: u64, mut see: impl FnMut(&[u8], &[u8])) -> Result<u64> {
        self.renew_if_due()?;
        let mut seen = 0;
        let mut entry = self.step(SET_RANGE, Val::new(key))?;
        while let Some((k, v)) = entry {
            see(k, v);
            seen += 1;
            if seen == count {
                break;
            }
            entry = self.step(NEXT, Val::empty())?;
        }
        Ok(seen)
    }

    fn scan(&mut self, direction: Direction, mut see: impl FnMut(&[u8], &[u8])) -> Result<u64> {
        let (start, on) = match direction {
            Direction::Forward => (FIRST, NEXT),
            Direction::Reverse => (LAST, PREV),
        };
        if self.is_reset {
            self.renew()?;
        }
        let mut seen = 0;
        let mut entry = self.step(start, Val::empty())?;
        while let Some((k, v)) = entry {
            see(k, v);
            seen += 1;
            entry = self.step(on, Val::empty())?;
        }
        Ok(seen)
    }

    fn renew(&mut self) -> Result<()> {
        self.yield_view()?;
        self.reads = 0;
        let api = self.lmdb.api;
        // SAFETY: the transaction is reset; between the calls nothing reads from it. A cursor that is not
        // renewed with it would look at pages that the writer has taken meanwhile.
        unsafe {
            api.check((api.mdb_txn_renew)(self.txn), "mdb_txn_renew")?;
            api.check((api.mdb_cursor_renew)(self.txn, self.cursor), "mdb_cursor_renew")?;
        }
        self.is_reset = false;
        Ok(())
    }

    fn yield_view(&mut self) -> Result<()> {
        if !self.is_reset {
            // SAFETY: the transaction is open, and renewed before anything reads from it.
            unsafe { (self.lmdb.api.mdb_txn_reset)(self.txn) };
            self.is_reset = true;
        }
        Ok(())
    }
}

impl Drop for LmdbReader<'_> {
    fn drop(&mut self) {
        // SAFETY: both were opened by `reader` and are used by nobody else.
        unsafe {
            if !self.cursor.is_null() {
                (self.lmdb.api.mdb_cursor_close)(self.cursor);
            }
            (self.lmdb.api.mdb_txn_abort)(self.txn);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_larger_where_few_entries_fit() {
        let mut config = crate::conformance::config(Sync::Buffered, false);
        let mut of = |entry_bytes, change: fn(&mut Config)| {
            config.entry_bytes = entry_bytes;
            change(&mut config);
            page_size(&config, true).unwrap()
        };
        assert_eq!(of(116, |_| ()), None);
        assert_eq!(of(1016, |_| ()), Some(8192));
        assert_eq!(of(100_016, |_| ()), None);
        assert_eq!(of(1016, |config| config.larger_than_memory = true), None);
        let asked = of(116, |config| {
            config.tuning.insert("lmdb.page_size".into(), "16384".into());
        });
        assert_eq!(asked, Some(16384));
    }

    #[test]
    fn a_size_of_pages_that_is_set_and_cannot_be_is_an_error() {
        let mut config = crate::conformance::config(Sync::Buffered, false);
        config.entry_bytes = 1016;
        assert_eq!(page_size(&config, false).unwrap(), None);
        config.tuning.insert("lmdb.page_size".into(), "16384".into());
        let error = page_size(&config, false).unwrap_err().to_string();
        assert!(error.contains("page_size") && error.contains("1.0"), "{error}");
    }

    #[test]
    fn a_store_with_larger_pages_is_put_in_order_as_it_is() {
        if Lmdb::version().is_err() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let mut config = crate::conformance::config(Sync::Buffered, false);
        config.entry_bytes = 1016;
        if newer().is_none() {
            config.tuning.insert("lmdb.page_size".into(), "8192".into());
            assert!(Lmdb::open(dir.path(), &config).is_err());
            return;
        }
        let lmdb = Lmdb::open(dir.path(), &config).unwrap();
        let mut writer = lmdb.writer(Hint::Any).unwrap();
        for key in 0..200u16 {
            writer.put(&key.to_be_bytes(), &[7; 1000]).unwrap();
        }
        drop(writer);
        drop(lmdb);
        Lmdb::put_in_order(dir.path(), &config).unwrap();
        let lmdb = Lmdb::open(dir.path(), &config).unwrap();
        assert!(lmdb.settings().contains("pages of 8192"), "{}", lmdb.settings());
        let seen = lmdb.reader(Access::Quiet).unwrap().scan(Direction::Forward, |_, _| {}).unwrap();
        assert_eq!(seen, 200);
    }

    #[test]
    fn a_reader_that_let_go_of_its_view_sees_what_was_written_since() {
        if Lmdb::version().is_err() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let config = crate::conformance::config(Sync::Buffered, false);
        let lmdb = Lmdb::open(dir.path(), &config).unwrap();
        let mut writer = lmdb.writer(Hint::Any).unwrap();
        for access in [Access::BesideWriter, Access::Quiet] {
            let mut reader = lmdb.reader(access).unwrap();
            for round in 0..9u8 {
                reader.yield_view().unwrap();
                writer.put(b"key", &[round]).unwrap();
                let mut seen = Vec::new();
                let mut see = |_: &[u8], value: &[u8]| seen.extend_from_slice(value);
                let found = match round % 3 {
                    0 => reader.get(b"key", |value| see(b"key", value)).unwrap().is_some() as u64,
                    1 => reader.seek(b"key", 1, see).unwrap(),
                    _ => reader.scan(Direction::Reverse, see).unwrap(),
                };
                assert_eq!(found, 1);
                assert_eq!(seen, [round]);
            }
            reader.yield_view().unwrap();
        }
    }
}

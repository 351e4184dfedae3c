//! Kyoto Cabinet's TreeDB through its C interface, tuned as its manual says: linear chaining and
//! small addresses, buckets for as many pages as are expected, its page cache as large as the
//! memory given, a mapped file, and visitors, which see records without copying them.
//!
//! Buffered: what is in its page cache is lost with the process, hence class V. Synced: each write
//! is a transaction that ends with a sync.
//!
//! Tuning: `psiz` (bytes of a page).

use super::built::Loaded;
use super::library::{self, c_api};
use crate::engine::{Access, Class, Config, Direction, Engine, Hint, Reader, Sync, Writer};
use anyhow::{Context, Result, bail, ensure};
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::path::Path;
use std::ptr;

type Db = *mut c_void;
type Cursor = *mut c_void;
/// `KCVISITFULL`: key, its length, value, its length, where a new length would go, our data.
type SeeFull = unsafe extern "C" fn(
    *const u8,
    usize,
    *const u8,
    usize,
    *mut usize,
    *mut c_void,
) -> *const c_char;
/// `KCVISITEMPTY`: the same without a value.
type SeeNone = unsafe extern "C" fn(*const u8, usize, *mut usize, *mut c_void) -> *const c_char;

c_api! {
    /// The part of `kclangc.h` used here.
    Functions {
        fn kcdbnew() -> Db;
        fn kcdbdel(Db);
        fn kcdbopen(Db, *const c_char, c_uint) -> c_int;
        fn kcdbclose(Db) -> c_int;
        fn kcdbecode(Db) -> c_int;
        fn kcdbemsg(Db) -> *const c_char;
        fn kcdbset(Db, *const u8, usize, *const u8, usize) -> c_int;
        fn kcdbremove(Db, *const u8, usize) -> c_int;
        fn kcdbaccept(Db, *const u8, usize, SeeFull, SeeNone, *mut c_void, c_int) -> c_int;
        fn kcdbiterate(Db, SeeFull, *mut c_void, c_int) -> c_int;
        fn kcdbsync(Db, c_int, *const c_void, *mut c_void) -> c_int;
        fn kcdbbegintran(Db, c_int) -> c_int;
        fn kcdbendtran(Db, c_int) -> c_int;
        fn kcdbcursor(Db) -> Cursor;
        fn kccurdel(Cursor);
        fn kccuraccept(Cursor, SeeFull, *mut c_void, c_int, c_int) -> c_int;
        fn kccurjumpkey(Cursor, *const u8, usize) -> c_int;
        fn kccurjumpback(Cursor) -> c_int;
        fn kccurstepback(Cursor) -> c_int;
    }
}

/// Functions, and the value with which a visitor says that it leaves a record alone.
struct Api {
    call: Functions,
    version: String,
    nop: usize,
}

const OWRITER: c_uint = 2;
const OCREATE: c_uint = 4;
const OAUTOTRAN: c_uint = 16;
const OAUTOSYNC: c_uint = 32;
const NO_RECORD: c_int = 7;

fn api() -> Result<&'static Api> {
    static API: Loaded<Api> = Loaded::new();
    API.get_by(false, load)
}

fn load() -> Result<Api> {
    let names = ["libkyotocabinet.so.16", "libkyotocabinet.so"];
    let library = library::load(&names, "libkyotocabinet16v5")?;
    // SAFETY: both are constants of type `const char*`, set when the library is loaded.
    unsafe {
        let nop = library::variable(library, "KCVISNOP")?.cast::<*const c_char>().read();
        let version = library::variable(library, "KCVERSION")?.cast::<*const c_char>().read();
        Ok(Api {
            call: Functions::load(library)?,
            version: CStr::from_ptr(version).to_string_lossy().into_owned(),
            nop: nop as usize,
        })
    }
}

/// A visitor's data: what to call, and what to return.
struct Visit<F> {
    see: F,
    nop: *const c_char,
}

/// # Safety
/// Kyoto Cabinet calls it with a record and the `Visit<F>` that was handed to it.
unsafe extern "C" fn see_full<F: FnMut(&[u8], &[u8])>(
    key: *const u8,
    key_len: usize,
    value: *const u8,
    value_len: usize,
    _new_len: *mut usize,
    visit: *mut c_void,
) -> *const c_char {
    // SAFETY: the promise above; the record stays in place until this returns.
    unsafe {
        let visit = &mut *visit.cast::<Visit<F>>();
        (visit.see)(library::bytes(key, key_len), library::bytes(value, value_len));
        visit.nop
    }
}

/// # Safety
/// As for [`see_full`].
unsafe extern "C" fn see_none<F: FnMut(&[u8], &[u8])>(
    _key: *const u8,
    _key_len: usize,
    _new_len: *mut usize,
    visit: *mut c_void,
) -> *const c_char {
    // SAFETY: the promise above.
    unsafe { (*visit.cast::<Visit<F>>()).nop }
}

/// A TreeDB file.
pub struct Kyoto {
    api: &'static Api,
    db: Db,
    parameters: String,
    config: Config,
}

// SAFETY: a database object may be used by many threads at once (kcplantdb.h, thread safety).
unsafe impl std::marker::Sync for Kyoto {}
// SAFETY: nothing in it belongs to a thread.
unsafe impl Send for Kyoto {}

impl Kyoto {
    #[cold]
    fn failure(&self, call: &str) -> anyhow::Error {
        // SAFETY: the database object is there; the message is static.
        let (code, text) = unsafe {
            let text = CStr::from_ptr((self.api.call.kcdbemsg)(self.db));
            ((self.api.call.kcdbecode)(self.db), text.to_string_lossy())
        };
        anyhow::anyhow!("{call}: {text} ({code})")
    }

    #[inline]
    fn check(&self, done: c_int, call: &str) -> Result<()> {
        if done != 0 { Ok(()) } else { Err(self.failure(call)) }
    }

    /// What a call came to that fails where there is no record: whether there was one.
    #[inline]
    fn found(&self, done: c_int, call: &str) -> Result<bool> {
        if done != 0 {
            return Ok(true);
        }
        // SAFETY: the database object is there; the code is this thread's own.
        match unsafe { (self.api.call.kcdbecode)(self.db) } {
            NO_RECORD => Ok(false),
            _ => Err(self.failure(call)),
        }
    }

    fn visit<F>(&self, see: F) -> Visit<F> {
        Visit { see, nop: self.api.nop as *const c_char }
    }

    fn hard(&self) -> c_int {
        (self.config.sync == Sync::Synced) as c_int
    }

    fn shut(&mut self) -> Result<()> {
        // SAFETY: handles borrow the database, so none is left; it is closed and freed once.
        unsafe {
            let done = (self.api.call.kcdbclose)(self.db);
            let outcome = self.check(done, "close");
            (self.api.call.kcdbdel)(self.db);
            self.db = ptr::null_mut();
            outcome
        }
    }
}

impl Drop for Kyoto {
    fn drop(&mut self) {
        if !self.db.is_null() {
            // Whoever wants to know calls `close`.
            let _ = self.shut();
        }
    }
}

/// Parameters of the file as they stand behind its path.
fn parameters(config: &Config) -> Result<String> {
    let page = config.number("kyoto", "psiz")?.unwrap_or(8192).max(128);
    let buckets = (config.expected_bytes / page * 4).max(1 << 16);
    let map = match config.larger_than_memory {
        // Buckets only: a page fault in a mapping reads ahead, which costs more than it gives
        // where little of the store stays in memory.
        true => buckets * 8 + (1 << 20),
        false => (config.expected_bytes * 2).clamp(64 << 20, 16 << 30),
    };
    let options = if config.compression { "slc#zcomp=lzo" } else { "sl" };
    let cache = config.memory;
    Ok(format!("#opts={options}#bnum={buckets}#psiz={page}#pccap={cache}#msiz={map}#dfunit=8"))
}

impl Engine for Kyoto {
    type Writer<'a> = KyotoWriter<'a>;
    type Reader<'a> = KyotoReader<'a>;

    fn version() -> Result<String> {
        Ok(format!("{} system", api()?.version))
    }

    fn open(dir: &Path, config: &Config) -> Result<Self> {
        let api = api()?;
        std::fs::create_dir_all(dir)?;
        let path = dir.join("store.kct");
        let path = path.to_str().context("Kyoto Cabinet takes paths of UTF-8 only")?;
        ensure!(!path.contains('#'), "Kyoto Cabinet takes no path with a # in it: {path}");
        let parameters = parameters(config)?;
        let path = CString::new(format!("{path}{parameters}")).context("path")?;
        let durable = if config.sync == Sync::Synced { OAUTOTRAN | OAUTOSYNC } else { 0 };
        // SAFETY: an object of our own, freed by `shut`.
        let db = unsafe { (api.call.kcdbnew)() };
        let kyoto = Kyoto { api, db, parameters, config: config.clone() };
        // SAFETY: the path ends with a zero.
        let done = unsafe { (api.call.kcdbopen)(db, path.as_ptr(), OWRITER | OCREATE | durable) };
        kyoto.check(done, "open")?;
        Ok(kyoto)
    }

    fn settings(&self) -> String {
        let durable = match self.config.sync {
            Sync::Buffered => "no transaction for a single write",
            Sync::Synced => "OAUTOTRAN|OAUTOSYNC",
        };
        format!("TreeDB {}, {durable}, a transaction per batch", self.parameters)
    }

    fn class(&self) -> Class {
        if self.config.sync == Sync::Synced { Class::F } else { Class::V }
    }

    fn compresses(&self) -> bool {
        self.config.compression
    }

    fn writer(&self, _hint: Hint) -> Result<KyotoWriter<'_>> {
        Ok(KyotoWriter { kyoto: self, in_batch: false })
    }

    fn reader(&self, _access: Access) -> Result<KyotoReader<'_>> {
        Ok(KyotoReader { kyoto: self, cursor: ptr::null_mut() })
    }

    /// Hands what is in the page cache to the operating system.
    fn settle(&self) -> Result<()> {
        // SAFETY: no callback.
        let done = unsafe { (self.api.call.kcdbsync)(self.db, 0, ptr::null(), ptr::null_mut()) };
        self.check(done, "sync")
    }

    fn close(mut self) -> Result<()> {
        self.shut()
    }
}

/// Writes.
pub struct KyotoWriter<'a> {
    kyoto: &'a Kyoto,
    in_batch: bool,
}

impl Writer for KyotoWriter<'_> {
    #[inline]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let kyoto = self.kyoto;
        // An empty slice may point to address 1, which here means that the record is removed.
        let v = if value.is_empty() { c"".as_ptr().cast() } else { value.as_ptr() };
        let k = key.as_ptr();
        // SAFETY: Kyoto Cabinet copies both before it returns.
        let done = unsafe { (kyoto.api.call.kcdbset)(kyoto.db, k, key.len(), v, value.len()) };
        kyoto.check(done, "set")
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        let kyoto = self.kyoto;
        // SAFETY: the key is only read.
        let done = unsafe { (kyoto.api.call.kcdbremove)(kyoto.db, key.as_ptr(), key.len()) };
        kyoto.found(done, "remove").map(|_| ())
    }

    #[inline]
    fn batch_put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        if !self.in_batch {
            let kyoto = self.kyoto;
            // SAFETY: an open database.
            let done = unsafe { (kyoto.api.call.kcdbbegintran)(kyoto.db, kyoto.hard()) };
            kyoto.check(done, "begin")?;
            self.in_batch = true;
        }
        self.put(key, value)
    }

    fn batch_commit(&mut self) -> Result<()> {
        if !std::mem::take(&mut self.in_batch) {
            return Ok(());
        }
        // SAFETY: a transaction is open.
        let done = unsafe { (self.kyoto.api.call.kcdbendtran)(self.kyoto.db, 1) };
        self.kyoto.check(done, "commit")
    }
}

impl Drop for KyotoWriter<'_> {
    fn drop(&mut self) {
        if self.in_batch {
            // SAFETY: a transaction is open; left so, it would take in everybody's writes.
            unsafe { (self.kyoto.api.call.kcdbendtran)(self.kyoto.db, 0) };
        }
    }
}

/// Reads, with a cursor for seeks that is kept between them.
pub struct KyotoReader<'a> {
    kyoto: &'a Kyoto,
    cursor: Cursor,
}

impl KyotoReader<'_> {
    fn cursor(&mut self) -> Result<Cursor> {
        if self.cursor.is_null() {
            // SAFETY: an open database; freed by `drop`.
            self.cursor = unsafe { (self.kyoto.api.call.kcdbcursor)(self.kyoto.db) };
        }
        if self.cursor.is_null() {
            bail!("no cursor");
        }
        Ok(self.cursor)
    }

    /// Shows the record under the cursor; whether there is one.
    #[inline]
    fn accept<F: FnMut(&[u8], &[u8])>(&self, visit: &mut Visit<F>, step: bool) -> Result<bool> {
        let data = ptr::from_mut(visit).cast();
        // SAFETY: the visitor gets its own data and leaves the record alone.
        let done = unsafe {
            (self.kyoto.api.call.kccuraccept)(self.cursor, see_full::<F>, data, 0, step as c_int)
        };
        self.kyoto.found(done, "cursor")
    }

    fn scan_back(&mut self, see: impl FnMut(&[u8], &[u8])) -> Result<u64> {
        let cursor = self.cursor()?;
        let kyoto = self.kyoto;
        let mut visit = kyoto.visit(see);
        let mut seen = 0;
        // SAFETY: a cursor of our own.
        let mut done = unsafe { (kyoto.api.call.kccurjumpback)(cursor) };
        while kyoto.found(done, "jump back")? && self.accept(&mut visit, false)? {
            seen += 1;
            // SAFETY: as above.
            done = unsafe { (kyoto.api.call.kccurstepback)(cursor) };
        }
        Ok(seen)
    }
}

impl Reader for KyotoReader<'_> {
    #[inline]
    fn get<R>(&mut self, key: &[u8], see: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        fn call<F: FnMut(&[u8], &[u8])>(kyoto: &Kyoto, key: &[u8], visit: &mut Visit<F>) -> c_int {
            let data = ptr::from_mut(visit).cast();
            let accept = kyoto.api.call.kcdbaccept;
            // SAFETY: the visitor gets its own data and leaves the record alone.
            unsafe {
                let (k, len) = (key.as_ptr(), key.len());
                accept(kyoto.db, k, len, see_full::<F>, see_none::<F>, data, 0)
            }
        }
        let mut see = Some(see);
        let mut seen = None;
        let done = call(
            self.kyoto,
            key,
            &mut self.kyoto.visit(|_: &[u8], value: &[u8]| {
                if let Some(see) = see.take() {
                    seen = Some(see(value));
                }
            }),
        );
        self.kyoto.check(done, "get")?;
        Ok(seen)
    }

    #[inline]
    fn seek(&mut self, key: &[u8], count: u64, see: impl FnMut(&[u8], &[u8])) -> Result<u64> {
        let cursor = self.cursor()?;
        let kyoto = self.kyoto;
        // SAFETY: a cursor of our own.
        let done = unsafe { (kyoto.api.call.kccurjumpkey)(cursor, key.as_ptr(), key.len()) };
        if !kyoto.found(done, "jump")? {
            return Ok(0);
        }
        let mut visit = kyoto.visit(see);
        let mut seen = 0;
        while seen < count && self.accept(&mut visit, true)? {
            seen += 1;
        }
        Ok(seen)
    }

    fn scan(&mut self, direction: Direction, mut see: impl FnMut(&[u8], &[u8])) -> Result<u64> {
        fn iterate<F: FnMut(&[u8], &[u8])>(kyoto: &Kyoto, visit: &mut Visit<F>) -> c_int {
            let data = ptr::from_mut(visit).cast();
            // SAFETY: as in `get`.
            unsafe { (kyoto.api.call.kcdbiterate)(kyoto.db, see_full::<F>, data, 0) }
        }
        if direction == Direction::Reverse {
            return self.scan_back(see);
        }
        let mut seen = 0;
        let done = iterate(
            self.kyoto,
            &mut self.kyoto.visit(|key: &[u8], value: &[u8]| {
                see(key, value);
                seen += 1;
            }),
        );
        self.kyoto.check(done, "iterate")?;
        Ok(seen)
    }
}

impl Drop for KyotoReader<'_> {
    fn drop(&mut self) {
        if !self.cursor.is_null() {
            // SAFETY: made by `cursor`, freed once, before the database.
            unsafe { (self.kyoto.api.call.kccurdel)(self.cursor) }
        }
    }
}

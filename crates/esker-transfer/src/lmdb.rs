//! LMDB environments, by its library.
//!
//! One read transaction is one moment of the environment, whatever is written meanwhile. The data file
//! is mapped to be read and never changed; in the lock file, where there is one, LMDB notes that there is a
//! reader. Where there is none nobody else has it open, and none is made. LMDB keeps no checksums: of
//! damage its library knows nothing, and may crash.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::path::Path;
use std::ptr;
use std::sync::OnceLock;

use crate::error::{Error, Report, Result, shown};
use crate::kind::{Kind, kind_of};
use crate::library::{self, bytes, c_path, c_text, functions};
use crate::peer::{Ascending, Opened, Walk};

type Env = *mut c_void;
type Txn = *mut c_void;
type Cursor = *mut c_void;
type Dbi = c_uint;

/// Bytes, as `MDB_val` has them.
#[repr(C)]
struct Val {
    len: usize,
    data: *const u8,
}

impl Val {
    const NONE: Val = Val { len: 0, data: ptr::null() };

    /// # Safety
    /// LMDB set it, and its transaction neither ended nor wrote since.
    unsafe fn bytes(&self) -> &[u8] {
        // SAFETY: the caller's promise.
        unsafe { bytes(self.data, self.len) }
    }
}

/// `MDB_stat`.
#[repr(C)]
#[derive(Default)]
struct Stat {
    page_size: c_uint,
    depth: c_uint,
    branch_pages: usize,
    leaf_pages: usize,
    overflow_pages: usize,
    entries: usize,
}

functions! {
    /// The part of `lmdb.h` used here.
    struct Api {
        fn mdb_strerror(c_int) -> *const c_char;
        fn mdb_env_create(*mut Env) -> c_int;
        fn mdb_env_set_maxdbs(Env, Dbi) -> c_int;
        fn mdb_env_open(Env, *const c_char, c_uint, c_uint) -> c_int;
        fn mdb_env_close(Env);
        fn mdb_txn_begin(Env, Txn, c_uint, *mut Txn) -> c_int;
        fn mdb_txn_abort(Txn);
        fn mdb_dbi_open(Txn, *const c_char, c_uint, *mut Dbi) -> c_int;
        fn mdb_dbi_flags(Txn, Dbi, *mut c_uint) -> c_int;
        fn mdb_stat(Txn, Dbi, *mut Stat) -> c_int;
        fn mdb_cursor_open(Txn, Dbi, *mut Cursor) -> c_int;
        fn mdb_cursor_get(Cursor, *mut Val, *mut Val, c_int) -> c_int;
        fn mdb_cursor_close(Cursor);
    }
}

const NOSUBDIR: c_uint = 0x4000;
const RDONLY: c_uint = 0x2_0000;
const NOTLS: c_uint = 0x20_0000;
const NOLOCK: c_uint = 0x40_0000;

const REVERSEKEY: c_uint = 0x02;
const INTEGERKEY: c_uint = 0x08;

const NEXT: c_int = 8;
const NOTFOUND: c_int = -30798;

/// What the main database has in place of a value where the key is the name of another.
const RECORD_BYTES: usize = 48;
/// How many names are looked for; as many databases are opened to see that they are there.
const MOST_NAMES: usize = 64;

fn api() -> Result<&'static Api> {
    static API: OnceLock<Api> = OnceLock::new();
    if let Some(api) = API.get() {
        return Ok(api);
    }
    let names = ["liblmdb.so.0", "liblmdb.so", "liblmdb.dylib"].map(str::to_owned);
    let api = Api::load(library::load("LMDB", &names, "liblmdb0")?)?;
    Ok(API.get_or_init(|| api))
}

impl Api {
    fn check(&self, path: &Path, doing: &str, code: c_int) -> Result<()> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: the text is LMDB's, or the C library's, and read at once.
        let text = unsafe { CStr::from_ptr((self.mdb_strerror)(code)) }.to_string_lossy();
        Err(Error::Refused(format!("{doing} {}: {text}", path.display())))
    }
}

/// An environment with a transaction that reads, and a cursor once there is one.
struct Reader {
    api: &'static Api,
    env: Env,
    txn: Txn,
    cursor: Cursor,
    path: std::path::PathBuf,
}

impl Drop for Reader {
    fn drop(&mut self) {
        // SAFETY: each is open or null, and closed once, the inner ones first.
        unsafe {
            if !self.cursor.is_null() {
                (self.api.mdb_cursor_close)(self.cursor);
            }
            if !self.txn.is_null() {
                (self.api.mdb_txn_abort)(self.txn);
            }
            (self.api.mdb_env_close)(self.env);
        }
    }
}

/// Opens a database of the environment at `path`, a directory or a file: that of this name, or the main
/// one, which is refused where it has the names of others.
pub fn open(path: &Path, db: Option<&str>) -> Result<Opened> {
    match kind_of(path) {
        Some(Kind::Lmdb) | None if path.exists() => {}
        Some(kind) => return Err(Error::Refused(format!("{} is {kind}", path.display()))),
        None => return Err(Error::Refused(format!("{} is not there", path.display()))),
    }
    let mut reader = begin(path)?;
    if db.is_none() {
        let names = reader.names()?;
        if !names.is_empty() {
            return Err(Error::Refused(format!(
                "{} has named databases: {}; choose one with --db NAME",
                path.display(),
                names.join(", ")
            )));
        }
    }
    let dbi = reader.database(db)?;
    reader.check_order(dbi)?;
    let mut stat = Stat::default();
    // SAFETY: transaction and database are open.
    let code = unsafe { (reader.api.mdb_stat)(reader.txn, dbi, &mut stat) };
    reader.api.check(path, "read", code)?;
    reader.open_cursor(dbi)?;
    let whose = path.display().to_string();
    let entries = Ascending::entries(reader, whose);
    Ok(Opened { entries, total: Some(stat.entries as u64), report: Report::default() })
}

fn begin(path: &Path) -> Result<Reader> {
    let api = api()?;
    let (mut flags, lock) = match path.is_dir() {
        true => (RDONLY | NOTLS, path.join("lock.mdb")),
        false => {
            let mut lock = path.as_os_str().to_owned();
            lock.push("-lock");
            (RDONLY | NOTLS | NOSUBDIR, lock.into())
        }
    };
    if !lock.exists() {
        flags |= NOLOCK;
    }
    let mut env = ptr::null_mut();
    // SAFETY: LMDB sets the pointer, or says why not.
    let code = unsafe { (api.mdb_env_create)(&mut env) };
    api.check(path, "open", code)?;
    let (txn, cursor) = (ptr::null_mut(), ptr::null_mut());
    let mut reader = Reader { api, env, txn, cursor, path: path.to_owned() };
    let c_path = c_path(path)?;
    // SAFETY: the environment is set up before it is opened, and `reader` closes it whatever happens;
    // the path ends with 0 and outlives the call.
    unsafe {
        api.check(path, "open", (api.mdb_env_set_maxdbs)(env, MOST_NAMES as Dbi + 1))?;
        api.check(path, "open", (api.mdb_env_open)(env, c_path.as_ptr(), flags, 0o600))?;
        let code = (api.mdb_txn_begin)(env, ptr::null_mut(), RDONLY, &mut reader.txn);
        api.check(path, "read", code)?;
    }
    Ok(reader)
}

impl Reader {
    fn database(&self, name: Option<&str>) -> Result<Dbi> {
        let text = name.map(|name| c_text("a name", name.as_bytes())).transpose()?;
        let pointer = text.as_ref().map_or(ptr::null(), |text| text.as_ptr());
        let mut dbi = 0;
        // SAFETY: the transaction is open; the name ends with 0, or is null for the main one.
        let code = unsafe { (self.api.mdb_dbi_open)(self.txn, pointer, 0, &mut dbi) };
        if code == NOTFOUND {
            return Err(Error::Refused(format!(
                "{} has no database {:?}",
                self.path.display(),
                name.unwrap_or_default()
            )));
        }
        self.api.check(&self.path, "read", code)?;
        Ok(dbi)
    }

    fn check_order(&self, dbi: Dbi) -> Result<()> {
        let mut flags = 0;
        // SAFETY: transaction and database are open.
        let code = unsafe { (self.api.mdb_dbi_flags)(self.txn, dbi, &mut flags) };
        self.api.check(&self.path, "read", code)?;
        let order = match flags {
            f if f & INTEGERKEY != 0 => "as integers of this machine (MDB_INTEGERKEY)",
            f if f & REVERSEKEY != 0 => "from their last byte to the first (MDB_REVERSEKEY)",
            _ => return Ok(()),
        };
        Err(Error::Refused(format!(
            "{}: its keys are ordered {order}, not by their bytes; `mdb_dump` and `esker load \
             --format dbdump` take them in the order of their bytes",
            self.path.display()
        )))
    }

    fn open_cursor(&mut self, dbi: Dbi) -> Result<()> {
        // SAFETY: the transaction is open, and there is no cursor of it.
        let code = unsafe { (self.api.mdb_cursor_open)(self.txn, dbi, &mut self.cursor) };
        self.api.check(&self.path, "read", code)
    }

    fn step(&mut self, key: &mut Val, value: &mut Val) -> Result<bool> {
        // SAFETY: the cursor is open; the values are set to what its transaction has.
        let code = unsafe { (self.api.mdb_cursor_get)(self.cursor, key, value, NEXT) };
        if code == NOTFOUND {
            return Ok(false);
        }
        self.api.check(&self.path, "read", code)?;
        Ok(true)
    }

    /// The names of other databases among the keys of the main one.
    fn names(&mut self) -> Result<Vec<String>> {
        let main = self.database(None)?;
        self.open_cursor(main)?;
        let mut names = Vec::new();
        let (mut key, mut value) = (Val::NONE, Val::NONE);
        while names.len() < MOST_NAMES && self.step(&mut key, &mut value)? {
            if value.len != RECORD_BYTES {
                continue;
            }
            // SAFETY: the cursor has just set it, and nothing is written.
            let name = unsafe { key.bytes() };
            let Ok(text) = c_text("a name", name) else { continue };
            let mut dbi = 0;
            // SAFETY: the transaction is open and the name ends with 0.
            if unsafe { (self.api.mdb_dbi_open)(self.txn, text.as_ptr(), 0, &mut dbi) } == 0 {
                names.push(shown(name));
            }
        }
        let cursor = std::mem::replace(&mut self.cursor, ptr::null_mut());
        // SAFETY: it is open, and now nobody else's.
        unsafe { (self.api.mdb_cursor_close)(cursor) };
        Ok(names)
    }
}

impl Walk for Reader {
    fn next(&mut self, key: &mut Vec<u8>, value: &mut Vec<u8>) -> Result<bool> {
        let (mut k, mut v) = (Val::NONE, Val::NONE);
        if !self.step(&mut k, &mut v)? {
            return Ok(false);
        }
        key.clear();
        value.clear();
        // SAFETY: the cursor has just set both, and nothing is written.
        unsafe {
            key.extend_from_slice(k.bytes());
            value.extend_from_slice(v.bytes());
        }
        Ok(true)
    }
}

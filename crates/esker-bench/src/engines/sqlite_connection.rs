//! A connection to SQLite: its C interface, statements and transactions.

use super::built::{self, Loaded};
use super::library::{self, c_api};
use anyhow::{Context, Result, bail, ensure};
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicU8, Ordering};

type Db = *mut c_void;
/// A prepared statement.
pub type Stmt = *mut c_void;
type Destructor = *mut c_void;

c_api! {
    /// The part of `sqlite3.h` used here.
    Api {
        fn sqlite3_libversion() -> *const c_char;
        fn sqlite3_threadsafe() -> c_int;
        fn sqlite3_open_v2(*const c_char, *mut Db, c_int, *const c_char) -> c_int;
        fn sqlite3_close(Db) -> c_int;
        fn sqlite3_errmsg(Db) -> *const c_char;
        fn sqlite3_busy_timeout(Db, c_int) -> c_int;
        fn sqlite3_exec(Db, *const c_char, *mut c_void, *mut c_void, *mut *mut c_char) -> c_int;
        fn sqlite3_prepare_v3(
            Db, *const c_char, c_int, c_uint, *mut Stmt, *mut *const c_char,
        ) -> c_int;
        fn sqlite3_finalize(Stmt) -> c_int;
        fn sqlite3_step(Stmt) -> c_int;
        fn sqlite3_reset(Stmt) -> c_int;
        fn sqlite3_bind_blob(Stmt, c_int, *const u8, c_int, Destructor) -> c_int;
        fn sqlite3_column_blob(Stmt, c_int) -> *const u8;
        fn sqlite3_column_bytes(Stmt, c_int) -> c_int;
    }
}

const OPEN_READWRITE: c_int = 2;
const OPEN_CREATE: c_int = 4;
const OPEN_NOMUTEX: c_int = 0x8000;
const PREPARE_PERSISTENT: c_uint = 1;
const ROW: c_int = 100;
const DONE: c_int = 101;

fn api() -> Result<&'static Api> {
    static API: Loaded<Api> = Loaded::new();
    let names = ["libsqlite3.so.0", "libsqlite3.so"];
    API.get(&built::SQLITE, || library::load(&names, "libsqlite3-0"), Api::load)
}

/// The library's version.
pub fn version() -> Result<String> {
    let api = api()?;
    // SAFETY: functions without arguments; the string is static.
    unsafe {
        ensure!((api.sqlite3_threadsafe)() != 0, "this libsqlite3 was built without threads");
        let version = CStr::from_ptr((api.sqlite3_libversion)()).to_string_lossy();
        Ok(built::SQLITE.told(&version))
    }
}

/// A connection, used by one thread at a time.
pub struct Connection {
    api: &'static Api,
    db: Db,
}

// SAFETY: without its own mutex a connection may be used by any thread, one at a time
// (SQLITE_OPEN_NOMUTEX, "multi-thread" mode).
unsafe impl Send for Connection {}

impl Connection {
    /// Opens or makes a database.
    pub fn open(path: &Path) -> Result<Connection> {
        let api = api()?;
        let path = CString::new(path.as_os_str().as_encoded_bytes()).context("path")?;
        let flags = OPEN_READWRITE | OPEN_CREATE | OPEN_NOMUTEX;
        let mut connection = Connection { api, db: ptr::null_mut() };
        // SAFETY: SQLite sets the handle even when it fails, and `drop` closes it.
        unsafe {
            let db = &mut connection.db;
            let code = (api.sqlite3_open_v2)(path.as_ptr(), db, flags, ptr::null());
            connection.check(code, 0, "open")?;
            // A checkpoint may make others wait for a moment.
            (api.sqlite3_busy_timeout)(connection.db, 60_000);
        }
        Ok(connection)
    }

    /// An error unless the code is the good one.
    #[inline]
    fn check(&self, code: c_int, good: c_int, what: &str) -> Result<()> {
        if code == good {
            return Ok(());
        }
        // SAFETY: the message belongs to the connection and lives until its next call.
        let text = unsafe { CStr::from_ptr((self.api.sqlite3_errmsg)(self.db)) };
        bail!("{what}: {} ({code})", text.to_string_lossy())
    }

    /// Runs statements that give no rows.
    pub fn exec(&self, sql: &str) -> Result<()> {
        let text = CString::new(sql).context("SQL")?;
        let null = ptr::null_mut();
        // SAFETY: no callback; the message is taken from the connection instead.
        let code =
            unsafe { (self.api.sqlite3_exec)(self.db, text.as_ptr(), null, null, ptr::null_mut()) };
        self.check(code, 0, sql)
    }

    /// Prepares a statement, which its owner finalizes.
    pub fn prepare(&self, sql: &str) -> Result<Stmt> {
        let text = CString::new(sql).context("SQL")?;
        let mut stmt = ptr::null_mut();
        // SAFETY: the text ends with a zero; the statement is finalized by its owner.
        let code = unsafe {
            let flags = PREPARE_PERSISTENT;
            let (text, tail) = (text.as_ptr(), ptr::null_mut());
            (self.api.sqlite3_prepare_v3)(self.db, text, -1, flags, &mut stmt, tail)
        };
        self.check(code, 0, sql)?;
        Ok(stmt)
    }

    /// Binds bytes that stay where they are until the statement is reset.
    #[inline]
    pub fn bind(&self, stmt: Stmt, place: c_int, bytes: &[u8]) -> Result<()> {
        let len = c_int::try_from(bytes.len()).context("SQLite takes at most 2 GiB")?;
        // SAFETY: no destructor (SQLITE_STATIC): callers reset before they give the bytes up.
        let code = unsafe {
            (self.api.sqlite3_bind_blob)(stmt, place, bytes.as_ptr(), len, ptr::null_mut())
        };
        self.check(code, 0, "bind")
    }

    /// Runs a statement that gives no rows.
    #[inline]
    pub fn run(&self, stmt: Stmt, what: &str) -> Result<()> {
        // SAFETY: a prepared statement of this connection.
        let code = unsafe { (self.api.sqlite3_step)(stmt) };
        let outcome = self.check(code, DONE, what);
        // SAFETY: as above; a reset reports the step's error once more.
        unsafe { (self.api.sqlite3_reset)(stmt) };
        outcome
    }

    /// A blob of the row under the statement.
    ///
    /// # Safety
    /// The statement is on a row; the bytes live until it is stepped or reset.
    #[inline]
    unsafe fn column<'a>(&self, stmt: Stmt, place: c_int) -> &'a [u8] {
        // SAFETY: the caller's promise; the pointer is asked for before the length, as the manual
        // says.
        unsafe {
            let data = (self.api.sqlite3_column_blob)(stmt, place);
            library::bytes(data, (self.api.sqlite3_column_bytes)(stmt, place) as usize)
        }
    }

    /// Hands over the first column of the first row, if there is one.
    #[inline]
    pub fn first<R>(&self, stmt: Stmt, see: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        // SAFETY: a prepared statement; its column is looked at before it is reset.
        let outcome = unsafe {
            match (self.api.sqlite3_step)(stmt) {
                ROW => Ok(Some(see(self.column(stmt, 0)))),
                code => self.check(code, DONE, "get").map(|()| None),
            }
        };
        // SAFETY: a prepared statement.
        unsafe { (self.api.sqlite3_reset)(stmt) };
        outcome
    }

    /// Hands over up to `count` rows of key and value.
    #[inline]
    pub fn rows(&self, stmt: Stmt, count: u64, mut see: impl FnMut(&[u8], &[u8])) -> Result<u64> {
        let mut seen = 0;
        let mut outcome = Ok(());
        while seen < count {
            // SAFETY: a prepared statement; its columns are looked at before the next step.
            unsafe {
                let code = (self.api.sqlite3_step)(stmt);
                if code != ROW {
                    outcome = self.check(code, DONE, "step");
                    break;
                }
                see(self.column(stmt, 0), self.column(stmt, 1));
            }
            seen += 1;
        }
        // SAFETY: a prepared statement.
        unsafe { (self.api.sqlite3_reset)(stmt) };
        outcome.map(|()| seen)
    }

    /// Frees statements; null is none.
    pub fn finalize(&self, stmts: &[Stmt]) {
        for stmt in stmts {
            // SAFETY: each was prepared by this connection and is not used any more.
            unsafe { (self.api.sqlite3_finalize)(*stmt) };
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // SAFETY: owners finalize their statements first.
        unsafe { (self.api.sqlite3_close)(self.db) };
    }
}

/// What a connection's transaction is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum State {
    /// There is none.
    Nothing,
    /// A reader's view.
    Reading,
    /// A batch.
    Writing,
}

/// A connection, which handles of one thread may have in common, and the transaction that it is in.
pub struct Link {
    /// The connection.
    pub connection: Connection,
    begin: Stmt,
    begin_write: Stmt,
    commit: Stmt,
    state: AtomicU8,
}

// SAFETY: used by one thread at a time: the one that made a handle of its own, or the only one that a store
// has (`Sqlite::link`), or whoever has the turn.
unsafe impl std::marker::Sync for Link {}
// SAFETY: as for a connection, to which its statements belong.
unsafe impl Send for Link {}

impl Link {
    /// In no transaction.
    pub fn new(connection: Connection) -> Result<Link> {
        let begin = connection.prepare("BEGIN")?;
        let begin_write = connection.prepare("BEGIN IMMEDIATE")?;
        let commit = connection.prepare("COMMIT")?;
        Ok(Link {
            connection,
            begin,
            begin_write,
            commit,
            state: AtomicU8::new(State::Nothing as u8),
        })
    }

    /// Whether it is in such a transaction.
    #[inline]
    pub fn is(&self, state: State) -> bool {
        self.state.load(Ordering::Relaxed) == state as u8
    }

    /// Notes what transaction it is in.
    fn set(&self, state: State) {
        self.state.store(state as u8, Ordering::Relaxed);
    }

    /// Begins a transaction.
    pub fn enter(&self, state: State) -> Result<()> {
        let begin = if state == State::Writing { self.begin_write } else { self.begin };
        self.connection.run(begin, "begin")?;
        self.set(state);
        Ok(())
    }

    /// Ends the transaction that it is in.
    pub fn commit(&self) -> Result<()> {
        self.set(State::Nothing);
        self.connection.run(self.commit, "commit")
    }

    /// Undoes the transaction that it is in.
    pub fn roll_back(&self) -> Result<()> {
        self.set(State::Nothing);
        self.connection.exec("ROLLBACK")
    }

    /// Ends the transaction of a reader of the same thread: what is written must not become a part of it.
    #[inline]
    pub fn stop_reading(&self) -> Result<()> {
        if self.is(State::Reading) { self.commit() } else { Ok(()) }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.connection.finalize(&[self.begin, self.begin_write, self.commit]);
    }
}

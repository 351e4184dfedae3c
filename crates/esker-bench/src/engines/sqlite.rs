//! SQLite as its manual calls it fastest for a table of keys and values: a write-ahead log, one
//! clustered table (`WITHOUT ROWID`) with a blob as its key, a mapped file, statements prepared
//! once, a transaction for each batch, a connection for each thread.
//!
//! Buffered: `synchronous=OFF`; a commit has written its pages to the log file, so it survives a
//! killed process, but a power cut may damage the file (`--set synchronous=1` means NORMAL: it
//! then loses the last commits only). Synced: `synchronous=FULL`, a sync of the log per commit.
//! `--set mmap=BYTES` maps as much of the file, or nothing of it.
//!
//! Writers take turns by a lock of our own: SQLite lets one of them write at a time, and its own
//! way to wait for that is to sleep.

use super::built::{self, Loaded};
use super::library::{self, View, c_api};
use crate::engine::{Access, Class, Config, Direction, Engine, Hint, Reader, Sync, Writer};
use anyhow::{Context, Result, bail, ensure};
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

type Db = *mut c_void;
type Stmt = *mut c_void;
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
/// As far as SQLite maps a file (`SQLITE_MAX_MMAP_SIZE`).
const MAX_MMAP: u64 = 0x7fff_0000;
const PAGE: u64 = 4096;

fn api() -> Result<&'static Api> {
    static API: Loaded<Api> = Loaded::new();
    let names = ["libsqlite3.so.0", "libsqlite3.so", "libsqlite3.dylib"];
    API.get(&built::SQLITE, || library::load(&names, "libsqlite3-0"), Api::load)
}

/// A connection, used by one thread at a time.
struct Connection {
    api: &'static Api,
    db: Db,
}

// SAFETY: without its own mutex a connection may be used by any thread, one at a time
// (SQLITE_OPEN_NOMUTEX, "multi-thread" mode).
unsafe impl Send for Connection {}

impl Connection {
    fn open(path: &Path) -> Result<Connection> {
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

    #[inline]
    fn check(&self, code: c_int, good: c_int, what: &str) -> Result<()> {
        if code == good {
            return Ok(());
        }
        // SAFETY: the message belongs to the connection and lives until its next call.
        let text = unsafe { CStr::from_ptr((self.api.sqlite3_errmsg)(self.db)) };
        bail!("{what}: {} ({code})", text.to_string_lossy())
    }

    fn exec(&self, sql: &str) -> Result<()> {
        let text = CString::new(sql).context("SQL")?;
        let null = ptr::null_mut();
        // SAFETY: no callback; the message is taken from the connection instead.
        let code =
            unsafe { (self.api.sqlite3_exec)(self.db, text.as_ptr(), null, null, ptr::null_mut()) };
        self.check(code, 0, sql)
    }

    fn prepare(&self, sql: &str) -> Result<Stmt> {
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
    fn bind(&self, stmt: Stmt, place: c_int, bytes: &[u8]) -> Result<()> {
        let len = c_int::try_from(bytes.len()).context("SQLite takes at most 2 GiB")?;
        // SAFETY: no destructor (SQLITE_STATIC): callers reset before they give the bytes up.
        let code = unsafe {
            (self.api.sqlite3_bind_blob)(stmt, place, bytes.as_ptr(), len, ptr::null_mut())
        };
        self.check(code, 0, "bind")
    }

    /// Runs a statement that gives no rows.
    #[inline]
    fn run(&self, stmt: Stmt, what: &str) -> Result<()> {
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

    /// Hands over up to `count` rows of key and value.
    #[inline]
    fn rows(&self, stmt: Stmt, count: u64, mut see: impl FnMut(&[u8], &[u8])) -> Result<u64> {
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
    fn finalize(&self, stmts: &[Stmt]) {
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

/// A database of one table.
pub struct Sqlite {
    path: PathBuf,
    /// Keeps the log open between other connections.
    base: Mutex<Connection>,
    /// Held by whoever writes.
    turn: Mutex<()>,
    synchronous: u64,
    checkpoint_pages: u64,
    mmap: u64,
    config: Config,
}

impl Sqlite {
    /// A connection with its share of the memory.
    fn connect(&self, cache: u64) -> Result<Connection> {
        let connection = Connection::open(&self.path)?;
        connection.exec(&format!(
            "PRAGMA synchronous={}; PRAGMA mmap_size={}; PRAGMA wal_autocheckpoint={}; \
             PRAGMA cache_size=-{}",
            self.synchronous,
            self.mmap,
            self.checkpoint_pages,
            cache >> 10
        ))?;
        Ok(connection)
    }
}

impl Engine for Sqlite {
    type Writer<'a> = SqliteWriter<'a>;
    type Reader<'a> = SqliteReader<'a>;

    fn version() -> Result<String> {
        let api = api()?;
        // SAFETY: functions without arguments; the string is static.
        unsafe {
            ensure!((api.sqlite3_threadsafe)() != 0, "this libsqlite3 was built without threads");
            let version = CStr::from_ptr((api.sqlite3_libversion)()).to_string_lossy();
            Ok(built::SQLITE.told(&version))
        }
    }

    fn open(dir: &Path, config: &Config) -> Result<Self> {
        Self::version()?;
        std::fs::create_dir_all(dir)?;
        let path = dir.join("store.sqlite");
        let base = Connection::open(&path)?;
        let page = super::tuned(config, "page_size")?.unwrap_or(PAGE);
        base.exec(&format!("PRAGMA page_size={page}; PRAGMA journal_mode=WAL"))?;
        base.exec(
            "CREATE TABLE IF NOT EXISTS kv(k BLOB PRIMARY KEY NOT NULL, v BLOB NOT NULL) \
             WITHOUT ROWID",
        )?;
        let synchronous = match config.sync {
            Sync::Synced => 2,
            Sync::Buffered => super::tuned(config, "synchronous")?.unwrap_or(0),
        };
        ensure!(synchronous <= 3, "--set synchronous={synchronous}: 0 to 3");
        Ok(Sqlite {
            path,
            base: Mutex::new(base),
            turn: Mutex::new(()),
            synchronous,
            checkpoint_pages: (config.memory / 4 / page).max(1000),
            // A page fault in a mapping reads ahead, which costs more than it gives where little
            // of the store stays in memory.
            mmap: match (super::tuned(config, "mmap")?, config.larger_than_memory) {
                (Some(bytes), _) => bytes,
                (None, true) => 0,
                (None, false) => (config.expected_bytes * 4).clamp(256 << 20, MAX_MMAP),
            },
            config: config.clone(),
        })
    }

    fn settings(&self) -> String {
        let synchronous = match self.synchronous {
            0 => "OFF (a power cut may damage the file)",
            1 => "NORMAL (a power cut loses the last commits)",
            _ => "FULL",
        };
        format!(
            "WAL, synchronous {synchronous}, WITHOUT ROWID, mmap {} MiB, cache {} MiB for the \
             writer and as much for readers, checkpoint every {} pages, prepared statements, a \
             connection per thread",
            self.mmap >> 20,
            self.config.memory >> 21,
            self.checkpoint_pages
        )
    }

    fn class(&self) -> Class {
        if self.config.sync == Sync::Synced { Class::F } else { Class::K }
    }

    fn compresses(&self) -> bool {
        false
    }

    fn writer(&self, _hint: Hint) -> Result<SqliteWriter<'_>> {
        let connection = self.connect(self.config.memory / 2)?;
        let mut writer = SqliteWriter {
            turn: &self.turn,
            connection,
            put: ptr::null_mut(),
            delete: ptr::null_mut(),
            begin: ptr::null_mut(),
            commit: ptr::null_mut(),
            batch: None,
        };
        writer.put = writer.connection.prepare("REPLACE INTO kv(k, v) VALUES(?1, ?2)")?;
        writer.delete = writer.connection.prepare("DELETE FROM kv WHERE k = ?1")?;
        writer.begin = writer.connection.prepare("BEGIN IMMEDIATE")?;
        writer.commit = writer.connection.prepare("COMMIT")?;
        Ok(writer)
    }

    fn reader(&self, access: Access) -> Result<SqliteReader<'_>> {
        // One reader at a time where nothing is written, up to 16 beside a writer.
        let share = if access == Access::Quiet { 2 } else { 32 };
        let connection = self.connect(self.config.memory / share)?;
        let mut reader = SqliteReader {
            connection,
            stmts: [ptr::null_mut(); 6],
            view: View::new(access),
            in_view: false,
            _store: std::marker::PhantomData,
        };
        for (stmt, sql) in reader.stmts.iter_mut().zip(READS) {
            *stmt = reader.connection.prepare(sql)?;
        }
        Ok(reader)
    }

    /// Moves the log into the table.
    fn settle(&self) -> Result<()> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let base = self.base.lock().unwrap_or_else(PoisonError::into_inner);
        base.exec("PRAGMA wal_checkpoint(TRUNCATE)")
    }

    fn close(self) -> Result<()> {
        Ok(())
    }
}

/// Writes; holds the turn for as long as a batch is under way.
pub struct SqliteWriter<'a> {
    turn: &'a Mutex<()>,
    connection: Connection,
    put: Stmt,
    delete: Stmt,
    begin: Stmt,
    commit: Stmt,
    batch: Option<MutexGuard<'a, ()>>,
}

impl<'a> SqliteWriter<'a> {
    fn turn(&self) -> MutexGuard<'a, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    fn write(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.connection.bind(self.put, 1, key)?;
        self.connection.bind(self.put, 2, value)?;
        self.connection.run(self.put, "put")
    }
}

impl Writer for SqliteWriter<'_> {
    #[inline]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let _turn = self.turn();
        self.write(key, value)
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        let _turn = self.turn();
        self.connection.bind(self.delete, 1, key)?;
        self.connection.run(self.delete, "delete")
    }

    #[inline]
    fn batch_put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        if self.batch.is_none() {
            let turn = self.turn();
            self.connection.run(self.begin, "begin")?;
            self.batch = Some(turn);
        }
        self.write(key, value)
    }

    fn batch_commit(&mut self) -> Result<()> {
        let Some(_turn) = self.batch.take() else { return Ok(()) };
        self.connection.run(self.commit, "commit")
    }
}

impl Drop for SqliteWriter<'_> {
    fn drop(&mut self) {
        if self.batch.is_some() {
            // Closing would undo it too, but only after the turn was given up.
            let _ = self.connection.exec("ROLLBACK");
        }
        self.connection.finalize(&[self.put, self.delete, self.begin, self.commit]);
    }
}

/// Statements of a reader, in the order of [`Read`].
const READS: [&str; 6] = [
    "BEGIN",
    "COMMIT",
    "SELECT v FROM kv WHERE k = ?1",
    "SELECT k, v FROM kv WHERE k >= ?1 ORDER BY k",
    "SELECT k, v FROM kv ORDER BY k",
    "SELECT k, v FROM kv ORDER BY k DESC",
];

/// Places in [`READS`].
#[derive(Clone, Copy)]
enum Read {
    Begin,
    Commit,
    Get,
    Seek,
    Forward,
    Reverse,
}

/// Reads inside a transaction, which spares each read the locking.
pub struct SqliteReader<'a> {
    connection: Connection,
    stmts: [Stmt; 6],
    view: View,
    in_view: bool,
    _store: std::marker::PhantomData<&'a Sqlite>,
}

impl SqliteReader<'_> {
    fn stmt(&self, read: Read) -> Stmt {
        self.stmts[read as usize]
    }

    /// Begins a transaction, or another one when its view is old.
    #[inline]
    fn enter(&mut self) -> Result<()> {
        if self.in_view && !self.view.is_due() {
            return Ok(());
        }
        if self.in_view {
            self.connection.run(self.stmt(Read::Commit), "end of a read")?;
        }
        self.connection.run(self.stmt(Read::Begin), "begin of a read")?;
        self.in_view = true;
        Ok(())
    }
}

impl Reader for SqliteReader<'_> {
    #[inline]
    fn get<R>(&mut self, key: &[u8], see: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        self.enter()?;
        let (connection, stmt) = (&self.connection, self.stmt(Read::Get));
        connection.bind(stmt, 1, key)?;
        // SAFETY: a prepared statement; its column is looked at before it is reset.
        let outcome = unsafe {
            match (connection.api.sqlite3_step)(stmt) {
                ROW => Ok(Some(see(connection.column(stmt, 0)))),
                code => connection.check(code, DONE, "get").map(|()| None),
            }
        };
        // SAFETY: a prepared statement.
        unsafe { (connection.api.sqlite3_reset)(stmt) };
        outcome
    }

    #[inline]
    fn seek(&mut self, key: &[u8], count: u64, see: impl FnMut(&[u8], &[u8])) -> Result<u64> {
        self.enter()?;
        let stmt = self.stmt(Read::Seek);
        self.connection.bind(stmt, 1, key)?;
        self.connection.rows(stmt, count, see)
    }

    fn scan(&mut self, direction: Direction, see: impl FnMut(&[u8], &[u8])) -> Result<u64> {
        self.enter()?;
        let read = match direction {
            Direction::Forward => Read::Forward,
            Direction::Reverse => Read::Reverse,
        };
        self.connection.rows(self.stmt(read), u64::MAX, see)
    }
}

impl Drop for SqliteReader<'_> {
    fn drop(&mut self) {
        self.connection.finalize(&self.stmts);
    }
}

//! SQLite as its manual calls it fastest for a table of keys and values: a write-ahead log, one
//! table with a blob as its key, clustered (`WITHOUT ROWID`) where entries are small, a mapped file, statements prepared
//! once, a transaction for each batch. Where one thread has the store to itself, one connection locks it for
//! good (`locking_mode=EXCLUSIVE`), which spares each transaction the locks of the file and the shared index of
//! the log; otherwise each thread has a connection.
//!
//! Buffered: `synchronous=OFF`; a commit has written its pages to the log file, so it survives a
//! killed process, but a power cut may damage the file. Synced: `synchronous=FULL`, a sync of the log per commit.
//! `--set mmap=BYTES` maps as much of the file, or nothing of it, `--set defaults=1` leaves all but the log and
//! `synchronous` as it comes.
//!
//! Where there are several, writers take turns by a lock of our own: SQLite lets one of them write at a time, and its own
//! way to wait for that is to sleep.

use super::library::View;
use super::sqlite_connection::{self, Connection, Link, State, Stmt};
use crate::engine::{Access, Class, Config, Direction, Engine, Hint, Reader, Sync, Writer};
use anyhow::{Context, Result, ensure};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;

/// What its settings are called by.
const NAME: &str = "sqlite";
/// The database, in a store's directory.
const FILE: &str = "store.sqlite";
/// As far as SQLite maps a file (`SQLITE_MAX_MMAP_SIZE`).
const MAX_MMAP: u64 = 0x7fff_0000;
/// Its default; pages are larger where fewer entries than nine in ten would fit into one.
const PAGE: u64 = 4096;
const LARGEST_PAGE: u64 = 65536;
/// Its other defaults: bytes of cache for a connection, and pages of log.
const DEFAULT_CACHE: u64 = 2000 << 10;
const DEFAULT_CHECKPOINT_PAGES: u64 = 1000;
/// For entries that no page holds: its authors measured 8,192 and 16,384 bytes to be best for large values.
const PAGE_OF_LARGE: u64 = 16384;
/// Pages of log from which on it is moved into the table, at least: what LevelDB's authors gave it.
const CHECKPOINT_PAGES: u64 = 4096;

/// The smallest page that keeps an entry of so many bytes in one piece, without a chain of pages of its own: a page of a
/// `WITHOUT ROWID` table is one of an index, of which an entry may have a quarter
/// (<https://www.sqlite.org/fileformat2.html>, "B-tree Pages"). A table with rowids gets the same, and has four of them or
/// more in a page.
fn page_for(entry_bytes: u64) -> u64 {
    // The header of the record: its own length, and the types of a key and a value.
    const HEADER: u64 = 1 + 2 + 3;
    let holds = |page: &u64| (page - 12) * 64 / 255 - 23 >= entry_bytes + HEADER;
    let pages = std::iter::successors(Some(PAGE), |page| Some(page * 2));
    pages.take_while(|page| *page <= LARGEST_PAGE).find(holds).unwrap_or(PAGE_OF_LARGE)
}

/// Whether the entries lie in the tree of the keys. Its manual is for that up to a twentieth of a page
/// (<https://www.sqlite.org/withoutrowid.html>, "When To Use WITHOUT ROWID"): pages between the root and the leaves hold
/// whole entries too, and with larger ones lead to few pages each. Otherwise an index has the keys, a table the entries.
fn is_clustered(entry_bytes: u64, page: u64) -> bool {
    entry_bytes <= page / 20
}

/// A database of one table.
pub struct Sqlite {
    path: PathBuf,
    /// The only connection, or the one that keeps the log open between others.
    base: Arc<Link>,
    /// The thread that has the store to itself.
    only: Option<ThreadId>,
    /// Held by whoever writes.
    turn: Mutex<()>,
    page: u64,
    clustered: bool,
    checkpoint_pages: u64,
    mmap: u64,
    /// All but the log and `synchronous` is as it comes.
    defaults: bool,
    config: Config,
}

impl Sqlite {
    /// A connection for a handle, with its share of the memory where it is one of several.
    fn link(&self, cache: u64) -> Result<Arc<Link>> {
        if self.is_only_thread()? {
            return Ok(self.base.clone());
        }
        let connection = Connection::open(&self.path)?;
        self.configure(&connection, cache)?;
        Ok(Arc::new(Link::new(connection)?))
    }

    /// Whether one thread has the store to itself; it is that one then.
    fn is_only_thread(&self) -> Result<bool> {
        let is_other = |only: ThreadId| only != std::thread::current().id();
        ensure!(!self.only.is_some_and(is_other), "opened for one thread, used by another");
        Ok(self.only.is_some())
    }

    fn configure(&self, connection: &Connection, cache: u64) -> Result<()> {
        connection.exec(&format!(
            "PRAGMA synchronous={}; PRAGMA mmap_size={}; PRAGMA wal_autocheckpoint={}; \
             PRAGMA cache_size=-{}",
            if self.config.sync == Sync::Synced { "FULL" } else { "OFF" },
            self.mmap,
            self.checkpoint_pages,
            if self.defaults { DEFAULT_CACHE } else { cache } >> 10
        ))
    }

    fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Engine for Sqlite {
    type Writer<'a> = SqliteWriter<'a>;
    type Reader<'a> = SqliteReader<'a>;

    fn version() -> Result<String> {
        sqlite_connection::version()
    }

    fn open(dir: &Path, config: &Config) -> Result<Self> {
        Self::version()?;
        std::fs::create_dir_all(dir)?;
        let path = dir.join(FILE);
        let base = Connection::open(&path)?;
        let defaults = config.as_it_comes(NAME)?;
        let page = if defaults { PAGE } else { page_for(config.entry_bytes) };
        let exclusive = !config.shared && !defaults;
        if exclusive {
            // Before the log is touched, or its index is shared after all.
            base.exec("PRAGMA locking_mode=EXCLUSIVE")?;
        }
        base.exec(&format!("PRAGMA page_size={page}; PRAGMA journal_mode=WAL"))?;
        let clustered = is_clustered(config.entry_bytes, page);
        base.exec(&format!(
            "CREATE TABLE IF NOT EXISTS kv(k BLOB PRIMARY KEY NOT NULL, v BLOB NOT NULL) {}",
            if clustered { "WITHOUT ROWID" } else { "" }
        ))?;
        let store = Sqlite {
            path,
            base: Arc::new(Link::new(base)?),
            only: exclusive.then(|| std::thread::current().id()),
            turn: Mutex::new(()),
            page,
            clustered,
            checkpoint_pages: match defaults {
                true => DEFAULT_CHECKPOINT_PAGES,
                false => (config.memory / 4 / page).max(CHECKPOINT_PAGES),
            },
            defaults,
            // A page fault in a mapping reads ahead, which costs more than it gives where little
            // of the store stays in memory.
            mmap: match (config.number(NAME, "mmap")?, config.larger_than_memory || defaults) {
                (Some(bytes), _) => bytes,
                (None, true) => 0,
                (None, false) => (config.expected_bytes * 4).clamp(256 << 20, MAX_MMAP),
            },
            config: config.clone(),
        };
        if exclusive {
            store.configure(&store.base.connection, config.memory)?;
        }
        Ok(store)
    }

    fn settings(&self) -> String {
        let synchronous = match self.config.sync {
            Sync::Buffered => "OFF (a power cut may damage the file)",
            Sync::Synced => "FULL",
        };
        let locking = match self.only {
            Some(_) => {
                format!("EXCLUSIVE, one connection, cache {}", super::mib(self.config.memory))
            }
            None if self.defaults => {
                format!("NORMAL, a connection per thread, cache {} each", super::mib(DEFAULT_CACHE))
            }
            None => format!(
                "NORMAL, a connection per thread, cache {} for the writer and as much for readers",
                super::mib(self.config.memory / 2)
            ),
        };
        format!(
            "WAL, synchronous {synchronous}, locking {locking}, {}, pages of {} bytes, \
             mmap {} MiB, checkpoint every {} pages, prepared statements",
            if self.clustered { "WITHOUT ROWID" } else { "rowids and an index of keys" },
            self.page,
            self.mmap >> 20,
            self.checkpoint_pages
        )
    }

    fn class(&self) -> Class {
        if self.config.sync == Sync::Synced { Class::F } else { Class::K }
    }

    fn writer(&self, _hint: Hint) -> Result<SqliteWriter<'_>> {
        let link = self.link(self.config.memory / 2)?;
        let put = link.connection.prepare(if self.clustered { REPLACE } else { UPSERT })?;
        let delete = link.connection.prepare("DELETE FROM kv WHERE k = ?1")?;
        Ok(SqliteWriter { store: self, link, put, delete, batch: None })
    }

    fn reader(&self, access: Access) -> Result<SqliteReader<'_>> {
        // One reader at a time where nothing is written, up to 16 beside a writer.
        let beside_writer = access == Access::BesideWriter;
        let share = if beside_writer { 32 } else { 2 };
        let link = self.link(self.config.memory / share)?;
        let stmts = [ptr::null_mut(); 4];
        // Beside writes of the same thread each read is a transaction of its own: with the file locked it
        // costs less than to begin one again after each of them.
        let alone = self.only.is_some() && beside_writer;
        Ok(SqliteReader { link, stmts, alone, view: View::new(beside_writer), _store: PhantomData })
    }

    /// Moves the log into the table.
    fn settle(&self) -> Result<()> {
        let _turn = self.turn();
        self.is_only_thread()?;
        self.base.stop_reading()?;
        self.base.connection.exec("PRAGMA wal_checkpoint(TRUNCATE)")
    }

    /// `VACUUM`, beside the database and then in its place: within it the whole would go through the log, and before that
    /// into a temporary file that lies elsewhere.
    fn put_in_order(dir: &Path, config: &Config) -> Result<()> {
        if config.as_it_comes(NAME)? {
            return Ok(());
        }
        let (path, copy) = (dir.join(FILE), dir.join("copy.sqlite"));
        let name = copy.to_str().context("a path that is no text")?.replace('\'', "''");
        let connection = Connection::open(&path)?;
        connection.exec(&format!("PRAGMA synchronous=OFF; VACUUM INTO '{name}'"))?;
        // Whoever closes it last takes the log away, which is empty.
        drop(connection);
        ensure!(!dir.join(format!("{FILE}-wal")).exists(), "the log is still in use");
        Ok(std::fs::rename(copy, path)?)
    }
}

/// Writes; holds the turn for as long as a batch is under way.
pub struct SqliteWriter<'a> {
    store: &'a Sqlite,
    link: Arc<Link>,
    put: Stmt,
    delete: Stmt,
    batch: Option<MutexGuard<'a, ()>>,
}

impl SqliteWriter<'_> {
    #[inline]
    fn write(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let connection = &self.link.connection;
        connection.bind(self.put, 1, key)?;
        connection.bind(self.put, 2, value)?;
        connection.run(self.put, "put")
    }
}

impl Writer for SqliteWriter<'_> {
    #[inline]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let _turn = self.store.turn();
        self.link.stop_reading()?;
        self.write(key, value)
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        let _turn = self.store.turn();
        self.link.stop_reading()?;
        self.link.connection.bind(self.delete, 1, key)?;
        self.link.connection.run(self.delete, "delete")
    }

    #[inline]
    fn batch_put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        if self.batch.is_none() {
            let turn = self.store.turn();
            self.link.stop_reading()?;
            self.link.enter(State::Writing)?;
            self.batch = Some(turn);
        }
        self.write(key, value)
    }

    fn batch_commit(&mut self) -> Result<()> {
        let Some(_turn) = self.batch.take() else { return Ok(()) };
        self.link.commit()
    }
}

impl Drop for SqliteWriter<'_> {
    fn drop(&mut self) {
        if self.batch.is_some() {
            // Closing would undo it too, but only after the turn was given up.
            let _ = self.link.roll_back();
        }
        self.link.connection.finalize(&[self.put, self.delete]);
    }
}

/// The key that is there is written over, with no look for it before.
const REPLACE: &str = "REPLACE INTO kv(k, v) VALUES(?1, ?2)";
/// Keeps the row of a key that is there, and so its place in the table and in the index.
const UPSERT: &str = "INSERT INTO kv(k, v) VALUES(?1, ?2) \
                      ON CONFLICT(k) DO UPDATE SET v = excluded.v";

/// Statements of a reader, in the order of [`Read`].
const READS: [&str; 4] = [
    "SELECT v FROM kv WHERE k = ?1",
    "SELECT k, v FROM kv WHERE k >= ?1 ORDER BY k",
    "SELECT k, v FROM kv ORDER BY k",
    "SELECT k, v FROM kv ORDER BY k DESC",
];

/// Places in [`READS`].
#[derive(Clone, Copy)]
enum Read {
    Get,
    Seek,
    Forward,
    Reverse,
}

/// Reads, inside a transaction where that spares each read the locking.
pub struct SqliteReader<'a> {
    link: Arc<Link>,
    /// Prepared when they are first used.
    stmts: [Stmt; 4],
    alone: bool,
    view: View,
    _store: PhantomData<&'a Sqlite>,
}

impl SqliteReader<'_> {
    #[inline]
    fn stmt(&mut self, read: Read) -> Result<Stmt> {
        let place = read as usize;
        if self.stmts[place].is_null() {
            self.stmts[place] = self.link.connection.prepare(READS[place])?;
        }
        Ok(self.stmts[place])
    }

    /// Begins a transaction, or another one when its view is old; that of a batch of the same thread goes on.
    #[inline]
    fn enter(&mut self) -> Result<()> {
        if self.alone
            || self.link.is(State::Writing)
            || (self.link.is(State::Reading) && !self.view.is_due())
        {
            return Ok(());
        }
        self.link.stop_reading()?;
        self.link.enter(State::Reading)
    }
}

impl Reader for SqliteReader<'_> {
    #[inline]
    fn get<R>(&mut self, key: &[u8], see: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        self.enter()?;
        let stmt = self.stmt(Read::Get)?;
        let connection = &self.link.connection;
        connection.bind(stmt, 1, key)?;
        connection.first(stmt, see)
    }

    #[inline]
    fn seek(&mut self, key: &[u8], count: u64, see: impl FnMut(&[u8], &[u8])) -> Result<u64> {
        self.enter()?;
        let stmt = self.stmt(Read::Seek)?;
        self.link.connection.bind(stmt, 1, key)?;
        self.link.connection.rows(stmt, count, see)
    }

    fn scan(&mut self, direction: Direction, see: impl FnMut(&[u8], &[u8])) -> Result<u64> {
        self.enter()?;
        let read = match direction {
            Direction::Forward => Read::Forward,
            Direction::Reverse => Read::Reverse,
        };
        let stmt = self.stmt(read)?;
        self.link.connection.rows(stmt, u64::MAX, see)
    }

    fn renew(&mut self) -> Result<()> {
        self.link.stop_reading()
    }
}

impl Drop for SqliteReader<'_> {
    fn drop(&mut self) {
        self.link.connection.finalize(&self.stmts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_small_entries_lie_in_the_tree_of_the_keys() {
        assert!(is_clustered(116, 4096) && is_clustered(204, 4096));
        assert!(!is_clustered(205, 4096) && is_clustered(205, 8192));
        assert!(!is_clustered(1016, page_for(1016)), "records of YCSB");
        assert!(!is_clustered(100_016, page_for(100_016)));
    }

    #[test]
    fn entries_of_any_size_are_written_and_read_in_order() {
        if Sqlite::version().is_err() {
            return;
        }
        for entry_bytes in [128, 1016, 100_016] {
            let dir = tempfile::tempdir().unwrap();
            let mut config = crate::conformance::config(Sync::Buffered, false);
            config.entry_bytes = entry_bytes;
            crate::conformance::check::<Sqlite>(dir.path(), &config).unwrap();
        }
    }

    #[test]
    fn an_entry_has_a_page_that_holds_it_in_one_piece() {
        assert_eq!(page_for(116), 4096);
        assert_eq!((page_for(996), page_for(997)), (4096, 8192), "1,002 bytes with the header");
        assert_eq!(page_for(1016), 8192, "records of YCSB");
        assert_eq!(page_for(2500), 16384);
        assert_eq!(page_for(16_416), 65536);
        assert_eq!((page_for(16_417), page_for(100_016)), (16384, 16384), "no page holds these");
    }
}

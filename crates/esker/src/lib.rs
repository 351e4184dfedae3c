//! Esker: an embedded, ordered, persistent key-value store.
//!
//! A store is a directory. It maps keys to values, both any bytes, keeps them in the order of the
//! keys, and is used from one process by any number of threads. Writes cost what a log-structured
//! store's cost, reads what a memory-mapped B-tree's cost; two settings matter: how much memory it
//! may use, and how durable a write is when it returns.
//!
//! # Putting and getting
//!
//! ```
//! # fn main() -> esker::Result<()> {
//! # let dir = tempfile::tempdir().unwrap();
//! # let path = dir.path().join("trees");
//! use esker::Db;
//!
//! let db = Db::open(&path)?; // made when it is missing
//! db.put("ash", "Fraxinus excelsior")?;
//! db.put("beech", "Fagus sylvatica")?;
//!
//! assert_eq!(db.get("ash")?.unwrap(), b"Fraxinus excelsior");
//! assert!(db.get("elm")?.is_none());
//!
//! db.delete("ash")?;
//! assert!(!db.contains_key("ash")?);
//! db.close()?; // dropping the last handle does the same, but has nobody to report an error to
//! # Ok(()) }
//! ```
//!
//! [`Db`] is cheap to clone and to share between threads. [`Db::get`] hands out a
//! [`Slice`], which derefs to bytes and points into the store's mapped files; what is short or was packed
//! it holds itself.
//!
//! # Ranges
//!
//! Keys are ordered by their bytes, so numbers sort as numbers when they are written big-endian.
//!
//! ```
//! # fn main() -> esker::Result<()> {
//! # let dir = tempfile::tempdir().unwrap();
//! # let db = esker::Db::open(dir.path().join("db"))?;
//! for (key, value) in [("user/1", "Ada"), ("user/2", "Grace"), ("user/3", "Edsger"), ("zone", "")] {
//!     db.put(key, value)?;
//! }
//! // All keys that begin so, from the first to the last ...
//! let users: Vec<_> = db.prefix("user/").collect::<esker::Result<_>>()?;
//! assert_eq!(users.len(), 3);
//! // ... or a range, from either end.
//! let (key, value) = db.range("user/".."user/3").next_back().unwrap()?;
//! assert_eq!((&key[..], &value[..]), (&b"user/2"[..], &b"Grace"[..]));
//!
//! // A cursor lends keys and values, and goes where it is told.
//! let mut cursor = db.cursor();
//! assert!(cursor.seek_for_prev("user/9")?); // the last key at or before
//! assert_eq!(cursor.key(), b"user/3");
//! assert!(cursor.prev()?);
//! assert_eq!(cursor.value(), b"Grace");
//! # Ok(()) }
//! ```
//!
//! Iterators and cursors see the store as it was when they were made, whatever is written meanwhile.
//!
//! # Batches and durability
//!
//! A [`WriteBatch`] is applied as a whole or not at all, also when the machine fails in between.
//! A [`Buffered`](Durability::Buffered) write survives the end of the process, however it ends. A
//! [`Synced`](Durability::Synced) one also survives a power cut, and with it everything written
//! before it. Threads that wait for the device at the same time share one sync.
//!
//! ```
//! # fn main() -> esker::Result<()> {
//! # let dir = tempfile::tempdir().unwrap();
//! # let db = esker::Db::open(dir.path().join("db"))?;
//! use esker::{Durability, WriteBatch};
//!
//! # db.put("account/1", "100")?;
//! let mut transfer = WriteBatch::new();
//! transfer.put("account/1", "70");
//! transfer.put("account/2", "30");
//! db.write_with(transfer, Durability::Synced)?;
//!
//! db.put("last seen", "now")?; // the store's default: buffered, unless the options say otherwise
//! db.sync()?; // everything up to here
//! # Ok(()) }
//! ```
//!
//! # Keyspaces
//!
//! A store holds several named maps, each with its own order and compression. They share one log, so
//! one batch can write to several of them.
//!
//! ```
//! # fn main() -> esker::Result<()> {
//! # let dir = tempfile::tempdir().unwrap();
//! # let db = esker::Db::open(dir.path().join("db"))?;
//! use esker::{Compression, KeyOrder, KeyspaceOptions, WriteBatch};
//!
//! let log = KeyspaceOptions::new().comparator(KeyOrder::Reverse).compression(Compression::Zstd);
//! let log = db.create_keyspace("log", log)?;
//!
//! let mut batch = WriteBatch::new();
//! batch.put("state", "open"); // in the default keyspace
//! batch.put_in(&log, 1u64.to_be_bytes(), "opened");
//! batch.put_in(&log, 2u64.to_be_bytes(), "read");
//! db.write(batch)?;
//!
//! let (_, newest) = log.iter().next().unwrap()?; // the reverse order begins at the end
//! assert_eq!(newest, b"read");
//! # Ok(()) }
//! ```
//!
//! # Snapshots
//!
//! ```
//! # fn main() -> esker::Result<()> {
//! # let dir = tempfile::tempdir().unwrap();
//! # let db = esker::Db::open(dir.path().join("db"))?;
//! db.put("stock", "17")?;
//! let before = db.snapshot(); // all keyspaces, one moment
//! db.put("stock", "16")?;
//! assert_eq!(db.at(&before).get("stock")?.unwrap(), b"17");
//! # Ok(()) }
//! ```
//!
//! # Loading much at once
//!
//! [`bulk_load`](Db::bulk_load) writes ascending keys straight into tables, past the log; all of
//! them appear together when it returns.
//!
//! ```
//! # fn main() -> esker::Result<()> {
//! # let dir = tempfile::tempdir().unwrap();
//! # let db = esker::Db::open(dir.path().join("db"))?;
//! let squares = (0..10_000u32).map(|n| (n.to_be_bytes(), (u64::from(n) * u64::from(n)).to_be_bytes()));
//! assert_eq!(db.bulk_load(squares)?, 10_000);
//! assert_eq!(db.get(9_999u32.to_be_bytes())?.unwrap(), 99_980_001u64.to_be_bytes());
//! # Ok(()) }
//! ```
//!
//! # Settings
//!
//! ```
//! # fn main() -> esker::Result<()> {
//! # let dir = tempfile::tempdir().unwrap();
//! # let path = dir.path().join("db");
//! let db = esker::Options::new()
//!     .memory(512 << 20) // bytes
//!     .durability(esker::Durability::Synced)
//!     .open(&path)?;
//! # drop(db);
//! # Ok(()) }
//! ```
//!
//! All others have defaults that need no change; [`Options`] lists them with units.
//!
//! # Errors
//!
//! [`Error`] says what to do, and where a file is at fault which one and where in it. A failed sync, or a failure of the
//! background work, stops writes ([`Error::Halted`]); reads go on, and [`Db::resume`] continues once the cause is gone.
//! Damaged bytes are an [`Error::Corruption`] when they are first read, not a wrong value. [`Db::verify_path`] finds
//! all damage there is, [`Db::verify`] that in the tables of an open store, [`Db::repair`] saves what is intact and lists
//! what is lost.
//!
//! # Limits
//!
//! Keys have up to [`MAX_KEY_LEN`] bytes (64 KiB), values up to [`MAX_VALUE_LEN`] (1 GiB); both may
//! be empty. A batch has less than 4 GiB. One process at a time writes to a store, or any number
//! [read](Options::read_only) it. In a child that was forked while a store is open reads and writes of it are [`Error::Closed`],
//! and closing and dropping it do nothing. There are no transactions that read and write; a batch is the unit of change.

#[cfg(not(unix))]
compile_error!(
    "Esker needs a Unix system: Linux, or macOS. It relies on shared mappings of files that are renamed \
     and removed while they are mapped, and on syncing directories, which Windows does not offer"
);

mod batch;
mod bulk_load;
mod checkpoint;
mod compaction;
mod comparator;
#[cfg(test)]
mod crash_tests;
mod cursor_home;
mod db;
mod delete_obsolete;
mod destroy;
mod dir_sync;
mod entry_chunk;
mod env;
mod error;
#[cfg(test)]
mod fault_tests;
mod filename;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
mod gap_finder;
mod handle;
mod key;
mod keyspace;
mod keyspace_changes;
mod memtable;
#[cfg(test)]
mod numbers_tests;
mod obsolete_files;
mod options;
mod read;
mod recovery;
mod repair;
mod resume;
mod snapshot;
#[cfg(test)]
mod sources_tests;
mod stall;
mod stats;
mod store;
mod table;
mod util;
mod verify;
#[cfg(test)]
mod verify_tests;
mod version;
mod wal;
mod write;

pub use batch::WriteBatch;
pub use db::Db;
pub use error::{Error, Finding, Result};
pub use key::{Comparator, KeyOrder, MAX_KEY_LEN, MAX_VALUE_LEN};
pub use keyspace::{Keyspace, ReadableKeyspace, View};
pub use options::{Compression, Durability, KeyspaceOptions, Options};
pub use read::cursor::Cursor;
pub use read::iter::Iter;
pub use read::slice::Slice;
pub use repair::RepairReport;
pub use snapshot::Snapshot;
pub use stats::{KeyspaceStats, RunStats, Stats};
#[doc(hidden)] // For bindings, whose objects must not be used in a forked child either.
pub use util::forks::forks;
pub use verify::VerifyReport;

/// The examples of the project's pages are tests too.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../../README.md")]
    struct Readme;
    #[doc = include_str!("../../../docs/GUIDE.md")]
    struct Guide;
}

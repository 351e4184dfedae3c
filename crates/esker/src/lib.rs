//! Esker: an embedded, ordered, persistent key-value store.
#![allow(dead_code, unused_imports)] // while it is being built

mod batch;
mod check;
mod db;
mod env;
mod error;
mod handle;
mod key;
mod keyspace;
mod log;
mod maintenance;
mod memtable;
mod merge;
mod options;
mod purge;
mod read;
mod recovery;
mod repair;
mod segments;
mod snapshot;
mod stats;
mod store;
mod table;
mod util;
mod version;
mod worker;
mod write;

pub use batch::WriteBatch;
pub use check::VerifyReport;
pub use db::Db;
pub use error::{Error, Result};
pub use key::{Comparator, KeyOrder, MAX_KEY_LEN, MAX_VALUE_LEN};
pub use keyspace::{Keyspace, View};
pub use options::{Compression, Durability, KeyspaceOptions, Options};
pub use read::cursor::Cursor;
pub use read::iter::Iter;
pub use read::slice::Slice;
pub use repair::RepairReport;
pub use snapshot::Snapshot;
pub use stats::{KeyspaceStats, RunStats, Stats};

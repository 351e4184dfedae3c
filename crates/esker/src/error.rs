//! What can go wrong, where it went wrong, and the way out.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The result of every fallible call of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of the store. Cheap to clone: a failed sync is reported to every waiting writer.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused a call.
    #[error("{op} {}: {source}{}", path.display(), io_hint(source))]
    Io {
        /// What was tried, as a verb ("open", "sync", "allocate 16777216 bytes for").
        op: String,
        /// The file or directory.
        path: PathBuf,
        /// The system's own error.
        source: Arc<io::Error>,
    },
    /// Stored bytes are not what was written.
    #[error(
        "{} is damaged at byte {offset}: {what}; `esker verify` lists all damage, `esker repair` saves what is intact",
        path.display()
    )]
    Corruption {
        /// The damaged file.
        path: PathBuf,
        /// Where in it, in bytes from its start.
        offset: u64,
        /// What was found.
        what: String,
    },
    /// The directory holds no store.
    #[error("{} is not an Esker store (it has no CURRENT file); check the path, or allow creation with create_if_missing", path.display())]
    NotAStore {
        /// The directory that was opened.
        path: PathBuf,
    },
    /// `error_if_exists` was asked for and a store is there.
    #[error("{} already holds a store, and error_if_exists is set", path.display())]
    StoreExists {
        /// The directory that was opened.
        path: PathBuf,
    },
    /// Another handle, here or in another process, has the store open.
    #[error("{} is open in another process or handle; close it first, or clone that handle", path.display())]
    Locked {
        /// The lock file.
        path: PathBuf,
    },
    /// The store was written by a newer version of Esker.
    #[error("{} has format {found}, this build reads up to {supported}; open it with a newer Esker", path.display())]
    NewerFormat {
        /// The file that names the format.
        path: PathBuf,
        /// The format found.
        found: u32,
        /// The newest format this build reads.
        supported: u32,
    },
    /// A table holds values packed with Zstandard, and this build has no feature `zstd`.
    #[error("{} holds values packed with Zstandard; build esker with its feature `zstd` to read them", path.display())]
    NoZstd {
        /// The table.
        path: PathBuf,
    },
    /// A keyspace is ordered by another comparator than the one given.
    #[error(
        "keyspace {keyspace:?} is ordered by comparator {stored:?}, it was opened with {given:?}; pass the comparator it was created with"
    )]
    ComparatorMismatch {
        /// The keyspace.
        keyspace: String,
        /// The comparator it was created with.
        stored: String,
        /// The comparator passed at open.
        given: String,
    },
    /// A key is longer than [`crate::MAX_KEY_LEN`].
    #[error("a key of {len} bytes is over the limit of {} bytes", crate::MAX_KEY_LEN)]
    KeyTooLong {
        /// Its length in bytes.
        len: usize,
    },
    /// A value is longer than [`crate::MAX_VALUE_LEN`].
    #[error(
        "a value of {len} bytes is over the limit of {} bytes; split it over several keys",
        crate::MAX_VALUE_LEN
    )]
    ValueTooLong {
        /// Its length in bytes.
        len: usize,
    },
    /// A batch holds more than one log segment can.
    #[error("a batch of {len} bytes is over the limit of {max} bytes; split it")]
    BatchTooLarge {
        /// Its encoded length in bytes.
        len: u64,
        /// The limit in bytes.
        max: u64,
    },
    /// No keyspace has this name.
    #[error("there is no keyspace {name:?}; `keyspaces()` lists those there are")]
    UnknownKeyspace {
        /// The name that was asked for.
        name: String,
    },
    /// A keyspace of this name is there already.
    #[error("keyspace {name:?} exists already")]
    KeyspaceExists {
        /// The name.
        name: String,
    },
    /// An option has a value it cannot have.
    #[error("option {option}: {why}")]
    InvalidOption {
        /// The option's name.
        option: &'static str,
        /// What is wrong and what is allowed.
        why: String,
    },
    /// `bulk_load` was given keys out of order, or one twice.
    #[error(
        "bulk_load needs strictly ascending keys; entry {position} is not above the one before it"
    )]
    NotSorted {
        /// Its position in the input, from 0.
        position: u64,
    },
    /// A write to a store opened read-only.
    #[error("the store was opened read-only")]
    ReadOnly,
    /// An earlier failure stopped all writes; reads go on.
    #[error("writes are stopped since: {cause}; remove the cause, then call resume()")]
    Halted {
        /// The failure that stopped them.
        cause: Arc<Error>,
    },
    /// The store was closed through another handle.
    #[error("the store is closed")]
    Closed,
}

impl Error {
    /// An I/O error at `path`; `op` is a verb.
    pub(crate) fn io(op: impl Into<String>, path: &Path, source: io::Error) -> Error {
        Error::Io { op: op.into(), path: path.to_path_buf(), source: Arc::new(source) }
    }

    /// Damage in `path` at `offset`.
    pub(crate) fn corrupt(path: &Path, offset: u64, what: impl Into<String>) -> Error {
        Error::Corruption { path: path.to_path_buf(), offset, what: what.into() }
    }

    /// Whether stored bytes are damaged (as opposed to a call that failed).
    pub fn is_corruption(&self) -> bool {
        matches!(self, Error::Corruption { .. })
    }
}

fn io_hint(e: &io::Error) -> &'static str {
    match e.kind() {
        io::ErrorKind::StorageFull => "; free some space, then call resume() or open again",
        io::ErrorKind::PermissionDenied => {
            "; check the owner and mode of the file and its directory"
        }
        _ => "",
    }
}

//! What can go wrong, where it went wrong, and the way out.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::io::Errno;

use crate::util::forks::forks;

/// The result of every fallible call of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of the store. Cheap to clone: a failed sync is reported to every waiting writer.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused a call, or the disk has too little room for it to be tried.
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
    /// The directory holds a store of LevelDB, RocksDB or another of that family, or some of its files.
    #[error(
        "{} holds files of a store of LevelDB, RocksDB or another of that family, not of Esker; take a new directory, into which `esker import leveldb` copies a store of LevelDB's",
        path.display()
    )]
    ForeignStore {
        /// The directory.
        path: PathBuf,
    },
    /// `error_if_exists` was asked for and a store is there.
    #[error("{} already holds a store, and error_if_exists is set", path.display())]
    StoreExists {
        /// The directory that was opened.
        path: PathBuf,
    },
    /// Another handle, here or in another process, has the store open. Readers
    /// ([`Options::read_only`](crate::Options::read_only), `verify_path`) keep only writers out, a
    /// writer keeps out everybody.
    #[error("{}", locked(path, *for_reading))]
    Locked {
        /// The lock file.
        path: PathBuf,
        /// Whether those who have the store open only read it.
        for_reading: bool,
    },
    /// The store was written by a version of Esker with another format.
    #[error("{} has format {found}, this build reads format {supported}; open it with the version of Esker that wrote it, and dump it there to load it here", path.display())]
    UnsupportedFormat {
        /// The file that names the format.
        path: PathBuf,
        /// The format found.
        found: u32,
        /// The format this build reads.
        supported: u32,
    },
    /// A table holds values packed with Zstandard, and this build has no feature `zstd`.
    #[error("{} holds values packed with Zstandard; build esker with its feature `zstd` to read them", path.display())]
    NoZstd {
        /// The table.
        path: PathBuf,
    },
    /// A keyspace is kept in a compression that this build cannot write.
    #[error(
        "keyspace {keyspace:?} is kept in compression {compression}, which this build cannot write; build esker with its feature `zstd` or take a newer Esker, or open the store read-only"
    )]
    UnsupportedCompression {
        /// The keyspace.
        keyspace: String,
        /// Its compression: a name, or a number where this build knows none.
        compression: String,
    },
    /// The store was opened without the comparator of one of its keyspaces.
    #[error(
        "keyspace {keyspace:?} is ordered by comparator {comparator:?}, which was not given; pass it to Options::comparator (of the default keyspace) or Options::keyspace_comparator"
    )]
    ComparatorMissing {
        /// The keyspace.
        keyspace: String,
        /// The name of the comparator it was created with.
        comparator: String,
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
    /// The comparator of a keyspace panicked. A write that gives this has written nothing; what reads
    /// or compactions left nothing behind.
    #[error(
        "the comparator of keyspace {keyspace:?} panicked: {what}; it must order all keys of its keyspace"
    )]
    ComparatorPanicked {
        /// The keyspace.
        keyspace: String,
        /// What the panic said, and where it matters what was being done.
        what: String,
    },
    /// A comparator called the store, which may hold locks while it compares.
    #[error("a comparator called the store that it orders keys for; a comparator may only compare")]
    CalledFromComparator,
    /// A batch names keyspaces of another store, or of this one when it was open before.
    #[error(
        "the batch names keyspaces of another store, or of an earlier opening of this one; fill it with handles of the store it is written to"
    )]
    ForeignBatch,
    /// A snapshot is of another store, or of this one when it was open before.
    #[error("the snapshot is of another store, or of an earlier opening of this one")]
    ForeignSnapshot,
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
    /// The keyspace of a handle, or one that a batch writes to, was dropped.
    #[error("keyspace {name:?} was dropped")]
    KeyspaceDropped {
        /// Its name. A batch knows only its number, and says `#` and that.
        name: String,
    },
    /// The default keyspace cannot be dropped: every store has it.
    #[error(
        "the default keyspace cannot be dropped; compact_range gives back what deleting all its keys frees"
    )]
    DefaultKeyspace,
    /// A keyspace cannot have such a name.
    #[error("a keyspace cannot have a name of {len} bytes; 1 to 255 are allowed")]
    InvalidKeyspaceName {
        /// The length of the name in bytes.
        len: usize,
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
    /// An earlier failure stopped all writes; reads go on. A write that gives this although writing
    /// went on before it may be there after the next open.
    #[error("writes are stopped since: {cause}{}", way_on(cause))]
    Halted {
        /// The failure that stopped them.
        cause: Arc<Error>,
    },
    /// The store's directory was moved or replaced while the store was open; or its file `LOCK` was
    /// removed, on a file system that locks no directories.
    #[error(
        "{} was moved or replaced, or its LOCK removed, while the store was open; close the store, and open it where it is now",
        path.display()
    )]
    DirectoryMoved {
        /// Where it was.
        path: PathBuf,
    },
    /// Something that cannot happen did: a bug in Esker, which is to be reported.
    #[error("a bug in Esker: {what}")]
    Internal {
        /// What happened.
        what: String,
    },
    /// The store was closed through another handle; or it was opened before this process was forked, and is its parent's.
    #[error("{}", closed())]
    Closed,
}

impl Error {
    /// An I/O error at `path`; `op` is a verb.
    pub(crate) fn io(op: impl Into<String>, path: &Path, source: io::Error) -> Error {
        Error::Io { op: op.into(), path: path.to_path_buf(), source: Arc::new(source) }
    }

    /// Why a file cannot be opened that the store has: that it is gone is damage.
    pub(crate) fn opening(path: &Path, source: io::Error) -> Error {
        match source.kind() {
            io::ErrorKind::NotFound => {
                Error::corrupt(path, 0, "it is missing, and the store needs it")
            }
            _ => Error::io("open", path, source),
        }
    }

    /// Damage in `path` at `offset`.
    pub(crate) fn corrupt(path: &Path, offset: u64, what: impl Into<String>) -> Error {
        Error::Corruption { path: path.to_path_buf(), offset, what: what.into() }
    }

    /// Whether there was no room for a file, or it may not be so large.
    pub(crate) fn is_no_space(&self) -> bool {
        use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        let full = |e: &io::Error| matches!(e.kind(), StorageFull | QuotaExceeded | FileTooLarge);
        matches!(self, Error::Io { source, .. } if full(source))
    }

    /// Whether the system refused for the moment, for want of space, descriptors or rights: that says
    /// nothing about the file.
    pub(crate) fn is_passing(&self) -> bool {
        use io::ErrorKind::{
            Interrupted, OutOfMemory, PermissionDenied, ReadOnlyFilesystem, StorageFull,
        };
        let Error::Io { source, .. } = self else { return false };
        no_descriptors_left(source)
            || matches!(
                source.kind(),
                Interrupted | OutOfMemory | PermissionDenied | ReadOnlyFilesystem | StorageFull
            )
    }

    /// Whether a sync could not even open its file, for want of descriptors or rights: nothing is lost by that. The sync
    /// itself answers none of these.
    pub(crate) fn was_not_tried(&self) -> bool {
        let Error::Io { source, .. } = self else { return false };
        source.kind() == io::ErrorKind::PermissionDenied || no_descriptors_left(source)
    }

    /// Whether stored bytes are damaged (as opposed to a call that failed).
    pub fn is_corruption(&self) -> bool {
        matches!(self, Error::Corruption { .. })
    }

    /// The operating system's number (`errno`) of an [`Error::Io`], if it has one, and of the one that stopped
    /// writes ([`Error::Halted`]). That the disk is too full or memory is wanting has its number also where the
    /// store found it before the system did.
    pub fn os_code(&self) -> Option<i32> {
        match self {
            Error::Io { source, .. } => source.raw_os_error().or(match source.kind() {
                io::ErrorKind::StorageFull => Some(Errno::NOSPC.raw_os_error()),
                io::ErrorKind::OutOfMemory => Some(Errno::NOMEM.raw_os_error()),
                _ => None,
            }),
            Error::Halted { cause } => cause.os_code(),
            _ => None,
        }
    }
}

/// For functions that return [`io::Result`], as readers of a program's input do. Keeps
/// what kind of refusal it was, and the error itself as the source.
impl From<Error> for io::Error {
    fn from(e: Error) -> io::Error {
        let kind = match &e {
            Error::Io { source, .. } => source.kind(),
            Error::Corruption { .. } => io::ErrorKind::InvalidData,
            Error::NotAStore { .. } => io::ErrorKind::NotFound,
            Error::StoreExists { .. } => io::ErrorKind::AlreadyExists,
            _ => io::ErrorKind::Other,
        };
        io::Error::new(kind, e)
    }
}

/// Something wrong with a store's files, or lost from them: what [`Db::verify`](crate::Db::verify)
/// and [`Db::repair`](crate::Db::repair) list. Shown as one line of text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The file, named within the store's directory; empty when it is not about one.
    pub file: String,
    /// Where in it, in bytes from its start; `None` when it is about the file as a whole.
    pub offset: Option<u64>,
    /// The lowest and the highest key that it may be about; both may be intact.
    pub keys: Option<(Vec<u8>, Vec<u8>)>,
    /// What is wrong, or lost, in words.
    pub what: String,
}

impl Finding {
    /// About a file as a whole, or about none.
    pub(crate) fn new(file: impl Into<String>, what: impl Into<String>) -> Finding {
        Finding { file: file.into(), what: what.into(), ..Finding::default() }
    }

    /// At a place in the file.
    pub(crate) fn at(mut self, offset: u64) -> Finding {
        self.offset = Some(offset);
        self
    }

    /// About these keys.
    pub(crate) fn keys(mut self, from: &[u8], to: &[u8]) -> Finding {
        self.keys = Some((from.to_vec(), to.to_vec()));
        self
    }
}

impl From<&Error> for Finding {
    fn from(e: &Error) -> Finding {
        let name = |p: &Path| p.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match e {
            Error::Corruption { path, offset, what } => {
                Finding::new(name(path), what.as_str()).at(*offset)
            }
            Error::Io { path, .. } => Finding::new(name(path), e.to_string()),
            _ => Finding::new("", e.to_string()),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(offset) = self.offset {
            write!(f, " at byte {offset}")?;
        }
        f.write_str(if self.file.is_empty() { "" } else { ": " })?;
        f.write_str(&self.what)?;
        match &self.keys {
            Some((from, to)) if from == to => write!(f, "; key {}", Shown(from)),
            Some((from, to)) => write!(f, "; keys {} to {}", Shown(from), Shown(to)),
            None => Ok(()),
        }
    }
}

/// The beginning of a key, as text.
pub(crate) struct Shown<'a>(pub(crate) &'a [u8]);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cut = &self.0[..self.0.len().min(64)];
        write!(f, "\"{}\"{}", cut.escape_ascii(), if self.0.len() > 64 { "..." } else { "" })
    }
}

fn closed() -> &'static str {
    match forks() {
        0 => "the store is closed",
        _ => {
            "the store is closed, or was opened before this process was forked and is its parent's: open it in one process only"
        }
    }
}

/// What to do about stopped writes.
fn way_on(cause: &Error) -> &'static str {
    match cause {
        // Another halt has said it.
        Error::DirectoryMoved { .. } | Error::Halted { .. } => "",
        Error::ComparatorPanicked { .. } => {
            "; close the store, and open it with one that does not panic"
        }
        _ => "; remove the cause, then call resume()",
    }
}

fn locked(path: &Path, for_reading: bool) -> String {
    let (how, hint) = match for_reading {
        true => ("reading", "close it there first"),
        false => ("writing", "close it there first, or clone that handle"),
    };
    format!("{} is open for {how} in another process or handle; {hint}", path.display())
}

/// Whether the process or the system has as many files open as it may.
pub(crate) fn no_descriptors_left(e: &io::Error) -> bool {
    matches!(Errno::from_io_error(e), Some(Errno::MFILE | Errno::NFILE))
}

fn io_hint(e: &io::Error) -> &'static str {
    match e.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "; free some space and try again"
        }
        _ if no_descriptors_left(e) => {
            "; raise the limit of open files (ulimit -n) or close some: a store needs sixteen at most, and one for each bulk load"
        }
        io::ErrorKind::PermissionDenied => {
            "; check the owner and mode of the file and its directory"
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A halt that is told as the cause of another had the way on said twice, or one that is none.
    #[test]
    fn the_way_on_is_said_once_and_by_the_first_cause() {
        let twice = |cause| {
            let halted = Error::Halted { cause: Arc::new(cause) };
            Error::Halted { cause: Arc::new(halted) }.to_string()
        };
        let moved = twice(Error::DirectoryMoved { path: PathBuf::from("/db") });
        assert!(!moved.contains("resume()"), "{moved}");
        let failed = twice(Error::io("sync", Path::new("/db"), io::Error::other("gone")));
        assert_eq!(failed.matches("resume()").count(), 1, "{failed}");
    }

    #[test]
    fn an_error_has_the_number_of_the_system() {
        let code = |source: io::Error| {
            let failed = Error::io("write to", Path::new("/db"), source);
            let halted = Error::Halted { cause: Arc::new(failed.clone()) };
            assert_eq!(failed.os_code(), halted.os_code());
            failed.os_code()
        };
        let (full, memory) = (Errno::NOSPC.raw_os_error(), Errno::NOMEM.raw_os_error());
        assert_eq!(code(Errno::ROFS.into()), Some(Errno::ROFS.raw_os_error()));
        assert_eq!(code(Errno::NOSPC.into()), Some(full));
        assert_eq!(code(io::Error::new(io::ErrorKind::StorageFull, "no space left")), Some(full));
        assert_eq!(code(io::Error::new(io::ErrorKind::OutOfMemory, "no memory")), Some(memory));
        assert_eq!(code(io::Error::other("gone")), None);
        assert_eq!(Error::Closed.os_code(), None);
    }
}

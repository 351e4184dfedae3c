//! What can go wrong with a source or a target, and what a salvage had to leave behind.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The result of everything here that may fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why data could not be moved.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system refused.
    #[error("{doing} {}: {source}", path.display())]
    Io {
        /// What was tried, such as `read`.
        doing: &'static str,
        /// Of which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Bytes of the source are not what they were.
    #[error("{0} (--salvage takes what is intact)")]
    Damaged(Lost),
    /// The source is in order and cannot be taken, or the target cannot be made; says why, and what
    /// can be done.
    #[error("{0}")]
    Refused(String),
    /// Another program wrote to the source while it was read.
    #[error("{} changed while it was read; end what writes to it, and import again", .0.display())]
    Changed(PathBuf),
}

impl Error {
    /// For `map_err`, of an operation on a file.
    pub(crate) fn io<'p>(
        doing: &'static str,
        path: &'p Path,
    ) -> impl FnOnce(io::Error) -> Error + use<'p> {
        move |source| Error::Io { doing, path: path.to_owned(), source }
    }

    /// Damage of a file at a place in it.
    pub(crate) fn damaged(
        path: &Path,
        offset: impl Into<Option<u64>>,
        what: impl Into<String>,
    ) -> Error {
        Error::Damaged(Lost::new(path, offset, what))
    }
}

/// A part of a source that is damaged: where, and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    /// The file.
    pub path: PathBuf,
    /// Where in it, if it is not all of it.
    pub offset: Option<u64>,
    /// What is wrong.
    pub what: String,
}

impl Lost {
    pub(crate) fn new(
        path: &Path,
        offset: impl Into<Option<u64>>,
        what: impl Into<String>,
    ) -> Lost {
        Lost { path: path.to_owned(), offset: offset.into(), what: what.into() }
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        if let Some(offset) = self.offset {
            write!(f, " is damaged at byte {offset}")?;
        }
        write!(f, ": {}", self.what)
    }
}

/// What was found beside entries.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// What a salvage left behind; the first of them.
    pub lost: Vec<Lost>,
    /// How many there were.
    pub lost_count: u64,
    /// What is worth knowing and no loss; the first of it.
    pub notes: Vec<String>,
}

impl Report {
    /// As many are kept: a disk that fails may have millions.
    const MOST: usize = 1000;

    pub(crate) fn note(&mut self, note: String) {
        if self.notes.len() < Self::MOST {
            self.notes.push(note);
        }
    }

    pub(crate) fn lose(&mut self, lost: Lost) {
        self.lost_count += 1;
        if self.lost.len() < Self::MOST {
            self.lost.push(lost);
        }
    }
}

/// Bytes of a key for a message: in quotes, and not a screen long.
pub(crate) fn shown(key: &[u8]) -> String {
    const MOST: usize = 40;
    let dots = if key.len() > MOST { "..." } else { "" };
    format!("\"{}\"{dots}", key[..key.len().min(MOST)].escape_ascii())
}

//! A dump of all keyspaces of a store: for each its name, order, compression and threshold, then its
//! entries. There is one as text and one as binary.
//!
//! TSV has a line of five fields before the entries of a keyspace, which no entry can be taken for:
//!
//! ```text
//! #keyspace   NAME   ORDER   COMPRESSION   THRESHOLD      (tabs between them)
//! ```
//!
//! Name and order are escaped as keys are; compression is `none`, `lz4` or `zstd`; the threshold, in
//! bytes, is the length from which on values stay in the log.
//!
//! The binary form puts a count before all, so that a missing end is noticed wherever it is, and a
//! dump of one keyspace ([`bin`](super::bin)) behind each head:
//!
//! ```text
//! file     = magic count: u32 keyspace{count}
//! magic    = 45 53 4b 45 52 44 42 01          "ESKERDB", then the version of the format, 1
//! keyspace = len: u32 name  len: u32 order  compression: u8  threshold: u64  dump
//! ```
//!
//! Compression is 0 for none, 1 for LZ4, 2 for Zstandard. All numbers are little-endian.

use std::io;

use super::{ReadEntries, ReadError, WriteEntries, WriteError};

/// A keyspace as a dump describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// Its name.
    pub name: String,
    /// The name of its order, which is a comparator's where it is not a built-in one.
    pub order: String,
    /// One of [`CODECS`].
    pub compression: String,
    /// From how many bytes on its values stay in the log.
    pub blob_threshold: u64,
}

/// The names of compressions, each at its number in the binary form.
pub const CODECS: [&str; 3] = ["none", "lz4", "zstd"];

/// The longest names of keyspaces and orders that are read.
pub(super) const LONGEST_NAME: u32 = 64 << 10;

/// Reads the entries of one keyspace after the other.
pub trait ReadKeyspaces: ReadEntries {
    /// Goes to the next keyspace; none at the end of the input. To be called first, and whenever
    /// the entries of a keyspace have ended.
    fn next_keyspace(&mut self) -> Result<Option<Head>, ReadError>;
}

/// Writes the entries of one keyspace after the other.
pub trait WriteKeyspaces: WriteEntries {
    /// Says how many keyspaces there will be. To be called first.
    fn begin(&mut self, keyspaces: u32) -> io::Result<()>;
    /// Begins a keyspace.
    fn begin_keyspace(&mut self, head: &Head) -> Result<(), WriteError>;
    /// Ends the keyspace that was begun.
    fn end_keyspace(&mut self) -> io::Result<()>;
}

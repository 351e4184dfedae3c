//! Tables: immutable, sorted, memory-mapped files of entries, laid out for reading.
//!
//! A point read asks the [`hash_index`] (a hash table of fingerprints, one cache line) for page and
//! slot, then reads the record: two cache misses in a row when all goes as guessed. A range read
//! finds its block through the [`block_index`] and walks [`block`]s that hold whole keys behind one
//! common prefix. Everything is checked against its checksum and validated the first time it is
//! touched, and never again.
//!
//! The format is described in `docs/format/table.md`, the reasons in `docs/design/table.md`.
//!
//! [`hash_index`]: self::hash_index
//! [`block_index`]: self::block_index
//! [`block`]: self::block

use std::sync::Arc;

use crate::key::{KeyOrder, Kind, Seq, Stored};
use crate::options::Compression;

mod block;
mod block_builder;
mod block_index;
mod block_search;
mod builder;
mod codec;
mod cursor;
mod dictionary;
mod footer;
mod hash_index;
mod lz4;
mod memory;
mod meta;
mod page_hints;
mod read_ahead;
mod reader;
mod salvage;
mod sample;
mod tally;
mod verify;
mod wire;
mod zstd;

#[cfg(test)]
mod bench;
#[cfg(test)]
mod block_tests;
#[cfg(test)]
mod builder_tests;
#[cfg(test)]
mod codec_tests;
#[cfg(test)]
mod damage_tests;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzz;
#[cfg(test)]
mod lost_block_tests;
#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod verify_tests;

pub(crate) use crate::key::SegmentRef;
pub(crate) use builder::TableBuilder;
pub(crate) use cursor::TableCursor;
pub(crate) use dictionary::{Dictionaries, Dictionary, SAMPLE};
pub(crate) use reader::Table;
pub(crate) use salvage::{DamagedTable, Remains};

/// How a table is written.
#[derive(Debug, Clone)]
pub(crate) struct TableOptions {
    /// The order of keys.
    pub order: KeyOrder,
    /// The keyspace all entries belong to.
    pub keyspace: u32,
    /// Smallest block in bytes: a multiple of 4096 up to 65536.
    pub block_size: usize,
    /// How values that come inline are packed.
    pub compression: Compression,
    /// The dictionary they are packed with.
    pub dictionary: Option<Arc<Dictionary>>,
}

impl Default for TableOptions {
    fn default() -> Self {
        TableOptions {
            order: KeyOrder::Bytewise,
            keyspace: 0,
            block_size: 4096,
            compression: Compression::None,
            dictionary: None,
        }
    }
}

/// What [`Table::get`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TableEntry<'a> {
    /// The sequence of the version.
    pub seq: Seq,
    /// Put or delete.
    pub kind: Kind,
    /// The value as it lies in the table.
    pub stored: Stored<'a>,
}

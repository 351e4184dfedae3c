//! LevelDB's files, read and written without its library.
//!
//! A database is a directory. `CURRENT` names a *manifest* ([`edit`]), whose records say which *tables*
//! ([`table`]) there are, at which level, and from which *log* on ([`batch`]) entries are not in
//! tables yet. Manifest and logs have one form, [`record`]. An entry is a *version*: its key is followed
//! by eight bytes that hold a sequence and whether it is a value or a deletion ([`internal_key`]).
//!
//! [`LevelDb`] reads a database ([`source`] has what keeps others out of it meanwhile) and [`Writer`]
//! makes one.

mod batch;
mod block;
mod coding;
mod compression;
mod edit;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzz;
mod internal_key;
mod name;
mod read;
mod record;
mod salvage;
mod source;
mod table;
mod table_builder;
mod tables;
mod write;

pub use read::{LevelDb, Settings};
pub(crate) use source::hold_lock;
pub use write::Writer;

/// The order of keys that LevelDB has when a program names no other.
pub const BYTEWISE: &str = "leveldb.BytewiseComparator";

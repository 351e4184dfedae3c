//! Reading: from the sources of a keyspace (memtables, runs of tables) to the values a reader sees.
//!
//! [`super_version`] holds the sources, [`get`] looks one key up in them; [`run_cursor`],
//! [`merge_cursor`] and [`visible`] stack up to the public [`cursor`] and [`iter`]; long walks go by chunks
//! ([`chunk_merge`], [`visible_chunks`]); [`gaps`] says where a walk need not look, [`refresh`] when a cursor that is kept
//! takes newer sources.

pub(crate) mod boundary;
mod chunk_merge;
mod chunk_walk;
pub(crate) mod cursor;
mod entry_view;
mod gap_set;
pub(crate) mod gaps;
pub(crate) mod get;
pub(crate) mod iter;
mod last_puts;
pub(crate) mod loaded;
pub(crate) mod merge_cursor;
mod merge_queue;
pub(crate) mod passed;
pub(crate) mod refresh;
pub(crate) mod run_cursor;
pub(crate) mod slice;
pub(crate) mod source;
pub(crate) mod super_version;
pub(crate) mod visible;
mod visible_chunks;

#[cfg(test)]
mod conformance;

pub(crate) use loaded::{Dead, LoadedRun, LoadedTable, RepeatedShare};
pub(crate) use super_version::SuperVersion;

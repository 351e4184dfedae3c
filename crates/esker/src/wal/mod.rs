//! The log: the memtable's storage, and level 0.
//!
//! A write is copied once, into a preallocated, memory-mapped file (a *segment*), and stays there:
//! the memtable's index points at it, a full segment becomes level 0 as it stands, and a large
//! value remains in it when the rest is in tables. `docs/format/log.md` describes the bytes, `docs/design/log.md` the
//! decisions.
//!
//! Data flows through the files of this folder in this order:
//!
//! - [`format`]: sizes, fields and checksums of the file's parts;
//! - [`record`]: one key with its value, read in place;
//! - [`segment`]: a mapped file;
//! - [`place`]: where a record is, by reference: what reads of a memtable pass;
//! - [`writer`]: the one writer of a segment;
//! - [`frames`]: what a segment holds, for recovery: never trusts a byte;
//! - [`scanner`]: which segments are the log, and whether a crash explains its end;
//! - [`verified`]: which separated values were checked;
//! - [`sync`]: group commit over several segments; [`waiters`]: the threads that wait for one;
//! - [`manager`]: the life of the segments, from creation to recycling; [`log_segment`]: one of those that recovery reads;
//!   [`blob_segments`]: those that are kept for their large values; [`pool`]: the files that new ones are made from;
//! - [`rotate`]: from one to the next, with [`room`] for it on the disk.

mod blob_segments;
mod format;
mod frames;
pub(crate) mod log_segment;
pub(crate) mod manager;
mod place;
mod pool;
pub(crate) mod record;
pub(crate) mod room;
pub(crate) mod rotate;
mod scanner;
mod segment;
mod sync;
mod verified;
mod waiters;
mod writer;

#[cfg(test)]
mod file_tests;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzz;
#[cfg(all(test, esker_models))]
mod models;
#[cfg(test)]
mod reach_tests;
#[cfg(test)]
mod room_tests;
#[cfg(test)]
mod speed;
#[cfg(test)]
mod sync_tests;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub(crate) use format::{
    FIRST_FRAME_OFFSET as FIRST_FRAME, FRAME_HEADER, MAX_FRAME_PAYLOAD, Position, record_len,
    record_words, segment_bytes_for,
};
pub(crate) use frames::{End, Frame, StopReason};
pub(crate) use place::Place;
pub(crate) use record::Record;
pub(crate) use scanner::{LogReader, LogSpan, Lookup, damaged_at, read_segment, scan};
pub(crate) use segment::{LARGEST as LARGEST_SEGMENT, Segment};
pub(crate) use sync::SyncGroup;
pub(crate) use writer::LogWriter;

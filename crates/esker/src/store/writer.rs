//! The end of the log.

use std::sync::Arc;

use crate::key::Seq;
use crate::memtable::Memtable;
use crate::store::room::SegmentClaim;
use crate::wal::{FIRST_FRAME, LogWriter, Segment};

/// The end of the log. Whoever holds it is the one writer.
pub(crate) struct Writer {
    /// `None` when the store is open read-only.
    pub log_writer: Option<LogWriter>,
    pub segment: Option<Arc<Segment>>,
    pub last_seq: Seq,
    /// Bytes of the log in the segments before, since the store was opened.
    pub log_before: u64,
    /// How many syncs there were when the log was last told how far it is durable.
    pub marker_round: u64,
    /// The memtable last written to, of the active segment: usually the next one too.
    pub recent: Option<(u32, Arc<Memtable>)>,
    /// What was claimed for tables of the active segment, and what of it no table takes yet.
    pub claimed_for_tables: (u64, u64),
    /// Bytes of memory of all memtables over the active segment, about.
    pub index_bytes: u64,
}

/// A segment that the log may go on in.
pub(crate) struct NewSegment {
    pub segment: Arc<Segment>,
    /// Whether its name, size and header are durable.
    pub durable: bool,
    /// Of the room that its tables need.
    pub claim: SegmentClaim,
}

impl Writer {
    /// Without a segment yet.
    pub(crate) fn new(last_seq: Seq) -> Writer {
        Writer {
            log_writer: None,
            segment: None,
            last_seq,
            log_before: 0,
            marker_round: 0,
            recent: None,
            claimed_for_tables: (0, 0),
            index_bytes: 0,
        }
    }

    /// Whether the active segment holds anything. Entries of no bytes count too.
    pub(crate) fn has_entries(&self) -> bool {
        self.log_writer.as_ref().is_some_and(|log| log.end() > FIRST_FRAME)
    }

    /// What was written to is followed by another segment.
    pub(crate) fn end_segment(&mut self) -> Option<LogWriter> {
        self.log_before += self.log_writer.as_ref().map_or(0, LogWriter::end);
        self.log_writer.take()
    }

    /// Number of the active segment; all memtables over lower ones are sealed.
    pub(crate) fn active_number(&self) -> u64 {
        self.segment.as_ref().map_or(u64::MAX, |s| s.number())
    }
}

//! Space of segments that is given back once nobody reads it any more.

use std::sync::{Arc, Weak};

use super::Segment;
use crate::memtable::Memtable;
use crate::read::SuperVersion;

/// Parts of a segment: offset and length, in bytes.
pub(crate) type Ranges = Vec<(u64, u64)>;

/// Ranges of a segment that no present super version leads to. Older super versions may: those of the compaction's inputs,
/// and those of *their* inputs, whose tables are long gone from any version. But only those that read
/// the segment at all: were any old super version waited for, one that is held for long would keep the space of
/// all that dies while it is.
#[derive(Debug)]
pub(super) struct PendingReclaim {
    pub segment: Arc<Segment>,
    pub gaps: Ranges,
    memtables: Vec<Weak<Memtable>>,
    super_versions: Vec<Weak<SuperVersion>>,
}

impl PendingReclaim {
    pub(super) fn new(
        segment: Arc<Segment>,
        gaps: Ranges,
        memtables: Vec<Weak<Memtable>>,
        old_super_versions: &[Weak<SuperVersion>],
    ) -> PendingReclaim {
        let number = segment.number();
        let reads = |v: &&Weak<SuperVersion>| v.upgrade().is_some_and(|v| v.reads_segment(number));
        let super_versions = old_super_versions.iter().filter(reads).cloned().collect();
        PendingReclaim { segment, gaps, memtables, super_versions }
    }

    pub(super) fn is_read(&self) -> bool {
        self.memtables.iter().any(|m| m.strong_count() > 0)
            || self.super_versions.iter().any(|v| v.strong_count() > 0)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.gaps.iter().map(|(_, len)| len).sum()
    }
}

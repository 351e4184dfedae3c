//! A segment of the log: who has entries in it, and what it leaves behind when all of them are in tables.

use std::collections::HashSet;
use std::sync::{Arc, Weak};

use super::Segment;
use crate::memtable::Memtable;

/// Parts of a segment: offset and length, in bytes.
pub(super) type Ranges = Vec<(u64, u64)>;

/// What a table takes beside its entries, in bytes, where no key is longer than [`SHORT_KEY`]: the rest of its last page of
/// entries, a page of indexes and properties, and its part of the manifest.
const TABLE: u64 = 9 << 10;
/// The properties and the manifest say the first and the last key each.
const KEYS_SAID: u64 = 4;
/// So long a key may be before it counts beside what any table takes.
pub(crate) const SHORT_KEY: usize = 256;

/// What a table with keys of at most so many bytes takes beside its entries.
pub(crate) fn table_overhead(longest_key: usize) -> u64 {
    TABLE + KEYS_SAID * longest_key.saturating_sub(SHORT_KEY) as u64
}

#[derive(Debug)]
pub(super) struct LogSegment {
    pub segment: Arc<Segment>,
    /// Keyspaces with a memtable in it that is not in tables yet.
    pub unflushed: HashSet<u32>,
    /// The memtables over it, flushed ones too.
    pub memtables: Vec<Weak<Memtable>>,
    /// Values that flushes left in it (offset, length).
    pub live: Ranges,
    /// Whether `live` is all there is. Not after a reopen: tables may point into it already.
    pub live_known: bool,
    /// Bytes of frames in it, once sealed.
    pub bytes: u64,
    /// As long as it is written to, what writers have claimed for its tables beside their entries.
    pub claimed: u64,
    /// What was in it then.
    sealed: Option<SegmentContent>,
}

/// Bytes of keys and values in a segment, by what a flush does with them.
#[derive(Debug, Clone, Copy, Default)]
struct SegmentContent {
    /// Goes into tables.
    moved: u64,
    /// Stays where it is.
    staying: u64,
}

impl LogSegment {
    /// A new one, or one found at recovery.
    pub(super) fn new(segment: Arc<Segment>, recovered: bool) -> LogSegment {
        LogSegment {
            bytes: segment.capacity(),
            segment,
            unflushed: HashSet::new(),
            memtables: Vec::new(),
            live: Vec::new(),
            live_known: !recovered,
            claimed: 0,
            sealed: None,
        }
    }

    /// It was sealed with so many bytes of frames.
    pub(super) fn seal(&mut self, bytes: u64) {
        let content = self.content();
        self.bytes = bytes;
        self.claimed = 0;
        self.sealed = Some(SegmentContent { staying: content.staying.min(bytes), ..content });
    }

    /// The memtables that still exist.
    pub(super) fn memtables(&self) -> impl Iterator<Item = Arc<Memtable>> {
        self.memtables.iter().filter_map(Weak::upgrade)
    }

    /// What is in it; kept when it is sealed, as memtables go.
    fn content(&self) -> SegmentContent {
        self.sealed.unwrap_or_else(|| {
            self.memtables().fold(SegmentContent::default(), |sum, m| SegmentContent {
                moved: sum.moved + m.inline_bytes(),
                staying: sum.staying + m.blob_bytes(),
            })
        })
    }

    /// Bytes of values that no flush will move.
    pub(super) fn blob_bytes(&self) -> u64 {
        self.content().staying
    }

    /// What the tables of those that are not flushed may take beside their entries.
    pub(super) fn tables_overhead(&self) -> u64 {
        let long_keys = |m: Arc<Memtable>| table_overhead(m.longest_key()) - table_overhead(0);
        let tables = self.unflushed.len() as u64 * table_overhead(0);
        self.claimed.max(tables + self.memtables().map(long_keys).sum::<u64>())
    }

    /// How many of its bytes a flush of this memtable moves into tables: frames belong to the memtables by what is in them.
    pub(super) fn moved_share(&mut self, memtable: &Memtable) -> u64 {
        // One that was recovered is not sealed, but nothing is written to it.
        let (all, own) = (self.content(), memtable.inline_bytes());
        self.sealed = Some(all);
        let frames = self.segment.used().saturating_sub(all.staying);
        (frames as f64 * (own as f64 / all.moved.max(own).max(1) as f64)) as u64
    }
}

//! What is under way that takes room on the disk, and what found none. Who may take it is decided where
//! segments are made (`wal/room`).

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::error::Error;
use crate::util::AtEnd;

/// What is under way that takes room, and what found none.
#[derive(Debug, Default)]
pub(crate) struct Room {
    /// Bytes that the compaction under way may yet write, beside what it flushes.
    pub merging: AtomicU64,
    /// Why the flush that was last tried found no room, and what was free then.
    pub flush_failed: Mutex<Option<(Error, u64)>>,
    /// What a compaction that was tried in hope, and found no room, had to spare.
    pub hope_failed: Mutex<Option<i128>>,
}

impl Room {
    /// A compaction takes so many bytes until what is returned is dropped.
    pub(crate) fn claim(&self, bytes: u64) -> AtEnd<impl FnMut() + '_> {
        // One compaction at a time, and a flush within it.
        let before = self.merging.load(Ordering::Relaxed);
        self.merging.store(before.saturating_add(bytes), Ordering::Relaxed);
        AtEnd(move || self.merging.store(before, Ordering::Relaxed))
    }

    /// Whether a compaction is under way that takes room.
    pub(crate) fn is_claimed(&self) -> bool {
        self.merging.load(Ordering::Relaxed) > 0
    }

    /// A table of the compaction is on the disk.
    pub(crate) fn took(&self, bytes: u64) {
        let left = self.merging.load(Ordering::Relaxed).saturating_sub(bytes);
        self.merging.store(left, Ordering::Relaxed);
    }

    /// Why what waits cannot be flushed, if it was tried since this was last forgotten.
    pub(crate) fn why_no_flush(&self) -> Option<Error> {
        self.flush_failed.lock().as_ref().map(|(e, _)| e.clone())
    }

    /// Somebody asks for a flush: it is worth another attempt.
    pub(crate) fn forget(&self) {
        *self.flush_failed.lock() = None;
    }
}

//! What is under way that takes room on the disk, and what found none. Who may take it is decided where
//! segments are made (`wal/room`).

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};

use crate::env::Env;
use crate::error::Error;
use crate::util::AtEnd;

/// What is under way that takes room, and what found none.
#[derive(Debug, Default)]
pub(crate) struct Room {
    /// Bytes that the compaction under way may yet write, beside what it flushes.
    pub merging: AtomicU64,
    /// Bytes of segments that are made and not yet in the log.
    made: Arc<AtomicU64>,
    /// Held by who makes a segment from its look at what is free until the segment counts, and by a compaction that
    /// looks.
    look: Mutex<()>,
    /// Why the flush that was last tried found no room, and what was free then.
    pub flush_failed: Mutex<Option<(Error, u64)>>,
    /// Where the last attempt to make a spare segment found none.
    pub spare_refused: Mutex<Option<Refused>>,
    /// What a compaction that was tried in hope, and found no room, had to spare.
    pub hope_failed: Mutex<Option<i128>>,
}

/// What found no room, and is not tried again at once: a compaction that lacks some, or was refused it where the system said that
/// there was some, as under a quota, so that it would write as much in vain each time; or a spare segment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Refused {
    /// How long the next attempt waits.
    rest: Duration,
    /// Until when that is, by the clock of [`Env`].
    until: Duration,
    /// What was free.
    free: u64,
    /// So much more than was free is worth an attempt before.
    lacks: u64,
}

impl Refused {
    const FIRST: Duration = Duration::from_millis(200);
    const LONGEST: Duration = Duration::from_secs(10);

    /// It was refused once more, after `before`, and lacks so many bytes, or may lack them.
    pub(crate) fn again(before: Option<Refused>, env: &dyn Env, dir: &Path, lacks: u64) -> Refused {
        let rest = before.map_or(Refused::FIRST, |r| (2 * r.rest).min(Refused::LONGEST));
        Refused { rest, until: env.now() + rest, free: env.available(dir), lacks: lacks.max(1) }
    }

    /// Whether the next attempt still waits.
    pub(crate) fn rests(&self, env: &dyn Env, dir: &Path) -> bool {
        env.now() < self.until && env.available(dir).saturating_sub(self.free) < self.lacks
    }
}

/// The room that the tables need to which a segment goes, until it is in the log and counts there.
#[derive(Debug)]
pub(crate) struct SegmentClaim {
    made: Arc<AtomicU64>,
    bytes: u64,
}

impl Drop for SegmentClaim {
    fn drop(&mut self) {
        self.made.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl Room {
    /// A compaction takes so many bytes until what is returned is dropped. It says so before it looks how much is free:
    /// of it and a writer that makes a segment one at least sees the other.
    pub(crate) fn claim(&self, bytes: u64) -> AtEnd<impl FnMut() + '_> {
        // One compaction at a time, and a flush within it.
        let before = self.merging.load(Ordering::Relaxed);
        self.merging.store(before.saturating_add(bytes), Ordering::Relaxed);
        AtEnd(move || self.merging.store(before, Ordering::Relaxed))
    }

    /// What is free stays so meanwhile, but for what was claimed.
    pub(crate) fn look(&self) -> MutexGuard<'_, ()> {
        self.look.lock()
    }

    /// A segment of so many bytes was made: what it is to hold will go into tables. The caller holds `look`.
    pub(crate) fn claim_segment(&self, bytes: u64) -> SegmentClaim {
        self.made.fetch_add(bytes, Ordering::Relaxed);
        SegmentClaim { made: Arc::clone(&self.made), bytes }
    }

    /// What the segments that are made and not yet in the log will hold.
    pub(crate) fn made(&self) -> u64 {
        self.made.load(Ordering::Relaxed)
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

//! What is to be given back to the file system once the last reader has let go of it.
//!
//! Readers drop their views at any time and on any thread, and must not pay for unlinking a table.
//! So a drop only notes here what can go, and the background worker does it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::env::Env;
use crate::wal::Segment;

/// One thing to give back.
#[derive(Debug)]
pub(crate) enum Obsolete {
    /// A file that no version names.
    Remove(PathBuf),
    /// Ranges (offset, length in bytes) of a segment that no version points into.
    Punch(Arc<Segment>, Vec<(u64, u64)>),
}

impl Obsolete {
    fn run(self, env: &dyn Env) {
        match self {
            Obsolete::Remove(path) => drop(env.remove(&path)),
            Obsolete::Punch(segment, ranges) => {
                let pages = ranges.into_iter().map(|(at, len)| whole_pages(at, len));
                let pages = pages.filter(|(start, end)| start < end);
                drop(segment.punch(pages.map(|(start, end)| (start, end - start))));
            }
        }
    }
}

/// The list of things to give back.
#[derive(Debug, Default)]
pub(crate) struct ObsoleteFiles {
    tasks: Mutex<Vec<Obsolete>>,
    /// Bytes of tables that no version names and a reader may still hold.
    pinned: AtomicU64,
}

impl ObsoleteFiles {
    /// A table of so many bytes waits for its last reader.
    pub(crate) fn note_pinned(&self, bytes: u64) {
        self.pinned.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Its last reader has let go of it.
    pub(crate) fn note_free(&self, bytes: u64) {
        self.pinned.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Bytes of tables that only readers keep.
    pub(crate) fn pinned(&self) -> u64 {
        self.pinned.load(Ordering::Relaxed)
    }

    pub(crate) fn push(&self, task: Obsolete) {
        self.tasks.lock().push(task);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.tasks.lock().is_empty()
    }

    /// Does what is noted. What fails is left as it is: an orphan is removed at the next open,
    /// a hole not punched only costs space.
    ///
    /// A version that lost the edits which let go of a file misses it. Of one with holes it would see no more than
    /// a log that ends early, so nothing is punched, but waits here, until `tell_end` has said where the
    /// manifest ends now.
    pub(crate) fn run(&self, env: &dyn Env, tell_end: impl FnOnce() -> bool) {
        let tasks = std::mem::take(&mut *self.tasks.lock());
        let (punches, removals): (Vec<_>, Vec<_>) =
            tasks.into_iter().partition(|task| matches!(task, Obsolete::Punch(..)));
        // These first: they may make the room on a full disk that telling takes.
        removals.into_iter().for_each(|task| task.run(env));
        if !punches.is_empty() && !tell_end() {
            self.tasks.lock().extend(punches);
        } else {
            punches.into_iter().for_each(|task| task.run(env));
        }
    }
}

/// The whole pages inside a range: the edges may hold a neighbour's bytes.
fn whole_pages(offset: u64, len: u64) -> (u64, u64) {
    (offset.next_multiple_of(4096), (offset + len) & !4095)
}

/// The parts of `0..end` from `start` on that none of `live` (offset, length) covers.
pub(crate) fn complement(start: u64, end: u64, live: &mut [(u64, u64)]) -> Vec<(u64, u64)> {
    live.sort_unstable();
    let mut gaps = Vec::new();
    let mut at = start;
    for &(offset, len) in live.iter() {
        if offset > at {
            gaps.push((at, offset - at));
        }
        at = at.max(offset + len);
    }
    if at < end {
        gaps.push((at, end - at));
    }
    gaps
}

/// Removes files by name; used where nobody can hold them.
pub(crate) fn remove_files(env: &dyn Env, dir: &Path, names: &[String]) {
    for name in names {
        drop(env.remove(&dir.join(name)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_complement_is_what_no_live_range_covers() {
        let mut live = [(8000, 1000), (4096, 100), (8500, 2000)];
        assert_eq!(complement(4096, 16384, &mut live), [(4196, 3804), (10500, 5884)]);
        assert_eq!(complement(0, 10, &mut []), [(0, 10)]);
        assert_eq!(complement(0, 10, &mut [(0, 10)]), []);
    }

    #[test]
    fn only_whole_pages_are_given_back() {
        assert_eq!(whole_pages(4096, 4096), (4096, 8192));
        assert_eq!(whole_pages(4097, 8191), (8192, 12288));
        let (start, end) = whole_pages(4097, 100);
        assert!(start >= end);
    }
}

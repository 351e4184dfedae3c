//! What is to be given back to the file system once the last reader has let go of it.
//!
//! Readers drop their super versions at any time and on any thread, and must not pay for unlinking a table.
//! So a drop only notes here what can go, and the background worker does it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::env::Env;
use crate::wal::Segment;

/// So many files may wait for the next time: where they come faster than they go, their space would grow.
const REMOVALS_LEFT: usize = 16;

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

    /// Whether there are files to remove.
    pub(crate) fn has_files(&self) -> bool {
        self.tasks.lock().iter().any(|task| matches!(task, Obsolete::Remove(_)))
    }

    /// Does what is noted. What fails is left as it is: an orphan is removed at the next open,
    /// a hole not punched only costs space.
    ///
    /// A version that lost the edits which let go of a file misses it. Of one with holes it would see no more than
    /// a log that ends early, so nothing is punched, but waits here, until `tell_end` has said where the
    /// manifest ends now.
    ///
    /// `enough`: whoever waits for the caller cannot wait longer. Files are then removed the next time, and holes not made
    /// at all: a compaction that empties their segments gives that space back.
    pub(crate) fn run(
        &self,
        env: &dyn Env,
        tell_end: impl FnOnce() -> bool,
        enough: impl Fn() -> bool,
    ) {
        let tasks = std::mem::take(&mut *self.tasks.lock());
        let (punches, removals): (Vec<_>, Vec<_>) =
            tasks.into_iter().partition(|task| matches!(task, Obsolete::Punch(..)));
        // These first: they may make the room on a full disk that telling takes.
        let mut removals = removals.into_iter();
        while !(enough() && removals.len() <= REMOVALS_LEFT)
            && let Some(task) = removals.next()
        {
            task.run(env);
        }
        self.tasks.lock().extend(removals);
        if !punches.is_empty() && !tell_end() {
            self.tasks.lock().extend(punches);
        } else {
            punches.into_iter().take_while(|_| !enough()).for_each(|task| task.run(env));
        }
    }
}

/// The whole pages inside a range: the edges may hold a neighbour's bytes.
fn whole_pages(offset: u64, len: u64) -> (u64, u64) {
    (offset.next_multiple_of(4096), (offset + len) & !4095)
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

    /// Whoever flushes waited for two seconds while what a burst had left was removed.
    #[test]
    fn what_cannot_be_removed_in_time_is_removed_the_next_time() {
        let dir = tempfile::tempdir().unwrap();
        let env = crate::env::OsEnv::new();
        let obsolete = ObsoleteFiles::default();
        for n in 0..20 {
            let path = dir.path().join(n.to_string());
            std::fs::write(&path, "").unwrap();
            obsolete.push(Obsolete::Remove(path));
        }
        let left = || std::fs::read_dir(dir.path()).unwrap().count();
        let asked = std::cell::Cell::new(0);
        let enough = || {
            asked.set(asked.get() + 1);
            asked.get() > 2
        };
        obsolete.run(&env, || true, enough);
        assert_eq!((left(), obsolete.is_empty()), (16, false));
        obsolete.run(&env, || true, || false);
        assert_eq!((left(), obsolete.is_empty()), (0, true));
    }

    #[test]
    fn only_whole_pages_are_given_back() {
        assert_eq!(whole_pages(4096, 4096), (4096, 8192));
        assert_eq!(whole_pages(4097, 8191), (8192, 12288));
        let (start, end) = whole_pages(4097, 100);
        assert!(start >= end);
    }
}

//! What this process has of memory, by kind, and the most it had. The kernel keeps no such peaks, so a thread looks.

use procfs::process::{MMapPath, Process};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Between two looks at anonymous memory: each takes some 30 µs.
const EVERY: Duration = Duration::from_millis(20);
/// Between two looks at everything, at least. These walk through all pages that are mapped, so the more they
/// take the rarer they are: at most a part in so many of a processor's time.
const EVERYTHING_EVERY: Duration = Duration::from_millis(200);
const PART: u32 = 200;

/// Bytes that are resident, by kind. The kinds overlap: a page of a mapped file that was written to is mapped,
/// dirty and, where no other process maps it, private.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// What the process took for itself, files aside.
    pub anonymous: u64,
    /// Pages that no other process has.
    pub private: u64,
    /// Pages of the store's files.
    pub mapped: u64,
    /// Pages that are nowhere but in memory as they are now.
    pub dirty: u64,
}

impl Memory {
    /// What each kind comes to with the same kind of another.
    fn with(self, other: Memory, of_kind: fn(u64, u64) -> u64) -> Memory {
        Memory {
            anonymous: of_kind(self.anonymous, other.anonymous),
            private: of_kind(self.private, other.private),
            mapped: of_kind(self.mapped, other.mapped),
            dirty: of_kind(self.dirty, other.dirty),
        }
    }

    /// What is there beyond `base`.
    fn beyond(self, base: Memory) -> Memory {
        self.with(base, u64::saturating_sub)
    }

    /// All kinds now; nothing where the system does not tell.
    fn now(store: &Path) -> Memory {
        let mapped = mappings(store).unwrap_or_default();
        Memory { anonymous: anonymous().unwrap_or(0), ..mapped }
    }
}

/// `RssAnon` of `/proc/self/status`.
fn anonymous() -> Option<u64> {
    Some(Process::myself().ok()?.status().ok()?.rssanon? << 10)
}

/// The sums of `/proc/self/smaps`, of which only this file says what each mapping is of.
fn mappings(store: &Path) -> Option<Memory> {
    let mut sum = Memory::default();
    for map in Process::myself().ok()?.smaps().ok()? {
        let bytes = |name: &str| map.extension.map.get(name).copied().unwrap_or(0);
        let dirty = bytes("Private_Dirty");
        sum.private += bytes("Private_Clean") + dirty;
        sum.dirty += bytes("Shared_Dirty") + dirty;
        if matches!(&map.pathname, MMapPath::Path(path) if path.starts_with(store)) {
            sum.mapped += bytes("Rss");
        }
    }
    Some(sum)
}

/// Watches this process's memory.
#[derive(Debug)]
pub struct MemoryWatch {
    watched: Arc<Watched>,
    base: Memory,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Watched {
    store: PathBuf,
    peak: Mutex<Memory>,
    asked: AtomicBool,
    stop: AtomicBool,
}

impl Watched {
    fn peak(&self) -> MutexGuard<'_, Memory> {
        self.peak.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn look_at_everything(&self) {
        let now = Memory::now(&self.store);
        let mut peak = self.peak();
        *peak = peak.with(now, u64::max);
    }

    fn watch(&self) {
        let mut due = Instant::now();
        while !self.stop.load(Ordering::Relaxed) {
            let start = Instant::now();
            if self.asked.swap(false, Ordering::Relaxed) || start >= due {
                self.look_at_everything();
                due = start + EVERYTHING_EVERY.max(start.elapsed() * PART);
            } else {
                let now = anonymous().unwrap_or(0);
                let mut peak = self.peak();
                peak.anonymous = peak.anonymous.max(now);
            }
            std::thread::sleep(EVERY);
        }
    }
}

impl MemoryWatch {
    /// Starts, before the store in a directory is opened; what is resident now counts as the benchmark's own.
    pub fn start(store: &Path) -> Self {
        // As mappings name it. It may not be there yet.
        let whole = |dir: &Path| Some(dir.parent()?.canonicalize().ok()?.join(dir.file_name()?));
        let store = whole(store).unwrap_or_else(|| store.to_path_buf());
        let base = Memory::now(&store);
        let (peak, asked, stop) = Default::default();
        let watched = Arc::new(Watched { store, peak, asked, stop });
        let theirs = watched.clone();
        let thread = Some(std::thread::spawn(move || theirs.watch()));
        MemoryWatch { watched, base, thread }
    }
    /// So many bytes that were taken since the start, and are kept, are the benchmark's own.
    pub fn set_aside(&mut self, bytes: u64) {
        for own in [&mut self.base.anonymous, &mut self.base.private, &mut self.base.dirty] {
            *own += bytes;
        }
    }
    /// Forgets the most there was.
    pub fn forget(&self) {
        *self.watched.peak() = Memory::default();
    }
    /// The most that was seen so far, for who has no time to look: the thread does so at once.
    pub fn seen(&self) -> Memory {
        self.watched.asked.store(true, Ordering::Relaxed);
        self.watched.peak().beyond(self.base)
    }
    /// The most there was of each kind since the start, less what was there before.
    pub fn peak(&self) -> Memory {
        self.watched.look_at_everything();
        self.watched.peak().beyond(self.base)
    }
}

impl Drop for MemoryWatch {
    fn drop(&mut self) {
        self.watched.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    const BYTES: usize = 192 << 20;
    /// What other tests of this process may take or give back meanwhile. It was 48 MiB, and they gave back more.
    const OTHERS: u64 = 160 << 20;

    fn file(path: &Path) -> File {
        let file =
            File::options().read(true).write(true).create(true).truncate(true).open(path).unwrap();
        file.set_len(BYTES as u64).unwrap();
        file
    }

    #[test]
    fn what_is_mapped_and_written_is_told_apart_from_what_is_allocated() {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("store");
        let watch = MemoryWatch::start(&store);
        std::fs::create_dir(&store).unwrap();
        let (own, other) = (file(&store.join("own")), file(&dir.path().join("other")));
        {
            // SAFETY: files of this test, which nobody truncates.
            let mut maps = [&own, &other].map(|f| unsafe { memmap2::MmapMut::map_mut(f) }.unwrap());
            maps.iter_mut().for_each(|map| map.fill(1));
            let peak = watch.peak();
            let bytes = BYTES as u64;
            assert_eq!(peak.mapped, bytes, "the file outside the store does not count");
            let least = 2 * bytes - OTHERS;
            assert!(peak.dirty >= least && peak.private >= least, "{peak:?}");
            assert!(peak.anonymous < least, "{peak:?}");
        }
        let mut taken = vec![1u8; BYTES];
        std::hint::black_box(taken.as_mut_slice());
        let peak = watch.peak();
        assert_eq!(peak.mapped, BYTES as u64, "it was the most, and is gone");
        assert!(peak.anonymous >= BYTES as u64 - OTHERS, "{peak:?}");
        watch.forget();
        assert_eq!(watch.peak().mapped, 0);
    }

    #[test]
    fn what_was_there_for_a_moment_is_seen_by_nobody_but_the_watch() {
        let dir = tempfile::tempdir().unwrap();
        // What other tests give back meanwhile is missing: again, with another beginning.
        let seen = || {
            let watch = MemoryWatch::start(dir.path());
            let mut taken = vec![1u8; BYTES];
            std::hint::black_box(taken.as_mut_slice());
            let until = Instant::now() + Duration::from_secs(2);
            while watch.watched.peak().anonymous < BYTES as u64 && Instant::now() < until {
                std::thread::sleep(EVERY);
            }
            drop(taken);
            (watch.peak().anonymous >= BYTES as u64 - OTHERS).then_some(watch)
        };
        let mut watch = (0..10).find_map(|_| seen()).expect("it is seen");
        // Nobody looks any more: what other tests take meanwhile was in the difference.
        watch.watched.stop.store(true, Ordering::Relaxed);
        watch.thread.take().unwrap().join().unwrap();
        let whole = watch.seen();
        watch.set_aside(1 << 20);
        let less = [whole.anonymous - watch.seen().anonymous, whole.mapped - watch.seen().mapped];
        assert_eq!(less, [1 << 20, 0]);
    }
}

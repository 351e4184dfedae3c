//! The life of log segments: active, sealed, kept for their separated values, retired, reused.
//!
//! ```text
//!  create ──► log (active, then sealed) ──► all keyspaces flushed ─┬─► values: tables point into it ─┐
//!     ▲                                                            └─► retired ◄── no pointers left ──┘
//!     └────────────── pool ◄── no reader holds it ────────────────────────┘
//! ```
//!
//! This module keeps the books; who may read what is decided by who holds the `Arc`s.

use std::cell::LazyCell;
use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::compaction::picker::SegmentUse;
use crate::env::Env;
use crate::error::Result;
use crate::memtable::Memtable;
use crate::stall::cost::CostModel;
use crate::wal::blob_segments::{BlobSegments, PendingReclaim};
use crate::wal::log_segment::{LogSegment, Ranges};
use crate::wal::pool::FilePool;
use crate::wal::{Position, Segment};

use crate::obsolete_files::{Obsolete, ObsoleteFiles};
use crate::read::SuperVersion;
use crate::version::SegmentRef;

/// What a table holds of an entry whose value stays in the log, beside its key, in bytes: the pointer,
/// lengths, its part of the indexes.
const POINTER_IN_TABLE: u64 = 48;

/// The segments of a store.
#[derive(Debug)]
pub(crate) struct SegmentManager {
    env: Arc<dyn Env>,
    dir: PathBuf,
    obsolete: Arc<ObsoleteFiles>,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// Segments that recovery would replay, oldest first; the last may be active.
    log: VecDeque<LogSegment>,
    /// Segments that only hold separated values.
    blobs: BlobSegments,
    /// Segments that nothing refers to; reused when the last reader lets go.
    retired: Vec<Arc<Segment>>,
    /// Files to make new segments from.
    pool: FilePool,
}

/// What the shape of the log looks like, for statistics and pacing.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SegmentTotals {
    pub log_segments: usize,
    pub open_files: usize,
    pub log_bytes: u64,
    pub value_bytes: u64,
    pub value_disk_bytes: u64,
    pub pool_bytes: u64,
    /// What is kept for nothing but old super versions.
    pub pinned_bytes: u64,
    /// Segments that are mapped: those of the log, those kept for their values, and those that a reader
    /// still holds.
    pub mapped: usize,
}

impl SegmentManager {
    pub(crate) fn new(
        env: Arc<dyn Env>,
        dir: PathBuf,
        obsolete: Arc<ObsoleteFiles>,
        may_repeat_below: u64,
    ) -> SegmentManager {
        let inner = Inner { blobs: BlobSegments::new(may_repeat_below), ..Inner::default() };
        SegmentManager { env, dir, obsolete, inner: Mutex::new(inner) }
    }

    /// Makes the segment `number` of at least `bytes`, from a reused file where there is one.
    /// It is not part of the log until [`add`](SegmentManager::add).
    pub(crate) fn create(&self, number: u64, bytes: u64) -> Result<Arc<Segment>> {
        let recycled = self.inner.lock().pool.take(bytes);
        let result = Segment::create(
            &self.env,
            &self.dir,
            number,
            bytes,
            recycled.as_ref().map(|(path, _)| path.as_path()),
        );
        if let Some((path, bytes)) = recycled {
            match &result {
                Ok(segment) if segment.recycled() => {}
                // It has a second name, as in a checkpoint, or cannot be opened: no segment will be made from it.
                Ok(_) => self.obsolete.push(Obsolete::Remove(path)),
                Err(_) if self.env.exists(&path).unwrap_or(false) => self.recycle(path, bytes),
                Err(_) => {}
            }
        }
        Ok(Arc::new(result?))
    }

    /// A segment that was made and is not wanted: the next one is made from its file. Not left for `collect`: a
    /// background thread that is busy makes spares too late again and again, and each would stay open and mapped.
    pub(crate) fn discard(&self, segment: Arc<Segment>) {
        self.let_go(segment, false);
    }

    /// Appends a segment to the log: a new active one, or one found at recovery.
    pub(crate) fn add(&self, segment: Arc<Segment>, recovered: bool) {
        let mut inner = self.inner.lock();
        inner.log.push_back(LogSegment::new(segment, recovered));
        let segments = inner.log.len();
        inner.pool.note_log(segments);
    }

    /// A keyspace has its first entry in segment `number`.
    pub(crate) fn note_memtable(&self, number: u64, keyspace: u32, memtable: &Arc<Memtable>) {
        let mut inner = self.inner.lock();
        if let Some(s) = inner.log.iter_mut().rev().find(|s| s.segment.number() == number) {
            s.unflushed.insert(keyspace);
            s.memtables.push(Arc::downgrade(memtable));
        }
    }

    /// Whether another keyspace than this one has entries up to segment `upto` that are not in
    /// tables.
    pub(crate) fn others_wait(&self, keyspace: u32, upto: u64) -> bool {
        let inner = self.inner.lock();
        let upto = inner.log.iter().take_while(|s| s.segment.number() <= upto);
        upto.flat_map(|s| &s.unflushed).any(|k| *k != keyspace)
    }

    /// The end of a segment of the log.
    pub(crate) fn end_of(&self, number: u64) -> Option<Position> {
        let inner = self.inner.lock();
        let s = inner.log.iter().find(|s| s.segment.number() == number)?;
        Some(Position { segment: number, end: s.segment.end() })
    }

    /// A segment found at recovery that only holds values.
    pub(crate) fn add_values(&self, segment: Arc<Segment>) {
        self.inner.lock().blobs.add(segment);
    }

    /// A file of no use any more that a new segment can be made from; removed when enough are kept.
    pub(crate) fn recycle(&self, path: PathBuf, bytes: u64) {
        let too_many = self.inner.lock().pool.keep(path, bytes, self.env.now());
        too_many.into_iter().for_each(|path| self.obsolete.push(Obsolete::Remove(path)));
    }

    /// The segment of that number, for a table that points into it.
    pub(crate) fn get(&self, number: u64) -> Option<Arc<Segment>> {
        let inner = self.inner.lock();
        inner.blobs.segments.get(&number).cloned().or_else(|| {
            inner.log.iter().find(|s| s.segment.number() == number).map(|s| Arc::clone(&s.segment))
        })
    }

    /// Tables have come into a version (`added`) and gone from it (`removed`).
    pub(crate) fn account<'a>(
        &self,
        added: impl Iterator<Item = &'a SegmentRef>,
        removed: impl Iterator<Item = &'a SegmentRef>,
    ) {
        let inner = &mut *self.inner.lock();
        inner.retired.extend(inner.blobs.account(added, removed));
    }

    /// A flush left values in a segment.
    pub(crate) fn note_live(&self, number: u64, ranges: impl IntoIterator<Item = (u64, u64)>) {
        let mut inner = self.inner.lock();
        if let Some(s) = inner.log.iter_mut().find(|s| s.segment.number() == number) {
            s.live.extend(ranges);
        }
    }

    /// A compaction dropped values. Their space is given back once no reader holds one of the super versions.
    pub(crate) fn mark_dead(
        &self,
        dead: HashMap<u64, Ranges>,
        super_versions: &[Weak<SuperVersion>],
    ) {
        let punchable = {
            let inner = &mut *self.inner.lock();
            inner.blobs.mark_dead(&mut inner.log, dead)
        };
        // Each super version is asked, and writers wait for the lock.
        let reclaims = PendingReclaim::of_dead(punchable, super_versions);
        self.inner.lock().blobs.reclaim(reclaims);
    }

    /// Nobody waits for the memtables of `keyspace` up to segment `upto`: they are in tables, or the keyspace is gone.
    pub(crate) fn note_flushed(&self, keyspace: u32, upto: u64) {
        let mut inner = self.inner.lock();
        for s in inner.log.iter_mut().filter(|s| s.segment.number() <= upto) {
            s.unflushed.remove(&keyspace);
        }
    }

    /// The first segment that recovery still needs, given that those below `active` are sealed and
    /// that flushes are about to strike each (`keyspace`, `upto`).
    pub(crate) fn log_start_after(&self, active: u64, flushed: &[(u32, u64)]) -> u64 {
        let inner = self.inner.lock();
        for s in &inner.log {
            let number = s.segment.number();
            let waits = s
                .unflushed
                .iter()
                .any(|k| !flushed.iter().any(|(f, upto)| f == k && number <= *upto));
            if number >= active || waits {
                return number;
            }
        }
        active
    }

    /// Takes the segments below `log_start` out of the log, once the manifest says so durably. Those that tables point into
    /// are kept for their values: see [`BlobSegments::keep`].
    pub(crate) fn advance(
        &self,
        log_start: u64,
        old_super_versions: impl FnOnce() -> Vec<Weak<SuperVersion>>,
    ) {
        // For all of them once: they are those of all keyspaces.
        let old_super_versions = LazyCell::new(old_super_versions);
        let inner = &mut *self.inner.lock();
        while inner.log.front().is_some_and(|s| s.segment.number() < log_start) {
            let Some(s) = inner.log.pop_front() else { break };
            inner.retired.extend(inner.blobs.keep(s, &old_super_versions));
        }
    }

    /// Whether there are retired segments that no reader holds.
    pub(crate) fn has_free(&self) -> bool {
        self.inner.lock().retired.iter().any(|s| Arc::strong_count(s) == 1)
    }

    /// Moves retired segments that no reader holds to the pool of reusable files. With `trim`,
    /// removes the pool's files instead (the store is idle and should not hoard space).
    pub(crate) fn collect(&self, trim: bool) {
        let (free, trimmed) = {
            let mut inner = self.inner.lock();
            inner.blobs.take_unread().into_iter().for_each(|punch| self.obsolete.push(punch));
            let (free, held): (Vec<_>, Vec<_>) = std::mem::take(&mut inner.retired)
                .into_iter()
                .partition(|s| Arc::strong_count(s) == 1);
            inner.retired = held;
            let now = self.env.now();
            let trimmed: Vec<PathBuf> = match trim {
                true => inner.pool.empty(),
                false => inner.pool.expired(now).into_iter().collect(),
            };
            (free, trimmed)
        };
        for segment in free {
            self.let_go(segment, trim);
        }
        for path in trimmed {
            self.obsolete.push(Obsolete::Remove(path));
        }
    }

    /// Lets go of all segments, whose files stay: what no reader holds is unmapped.
    pub(crate) fn close(&self) {
        let all = std::mem::take(&mut *self.inner.lock());
        drop(all);
    }

    /// Closes a segment, unless a reader holds it, and keeps its file for a new one, or has it removed.
    fn let_go(&self, segment: Arc<Segment>, remove: bool) {
        let segment = match Arc::try_unwrap(segment) {
            Ok(segment) => segment,
            Err(held) => return self.inner.lock().retired.push(held),
        };
        let (path, bytes) = (segment.path().to_path_buf(), segment.capacity());
        // A file with a second name belongs to a checkpoint too and must not change.
        let shared = segment.links().map_or(true, |n| n > 1);
        // Nor is one used again that a sync failed for.
        let failed = segment.sync_failed();
        drop(segment);
        if shared || failed || remove {
            self.obsolete.push(Obsolete::Remove(path));
        } else {
            self.recycle(path, bytes);
        }
    }

    /// What the sealed bytes weigh that wait to be flushed: what pacing works on. Small entries weigh
    /// by their indexes, which are memory.
    pub(crate) fn pending_cost(&self, active: u64, cost_model: CostModel) -> u64 {
        let inner = self.inner.lock();
        let cost = |s: &LogSegment| {
            let index: u64 = s.memtables().map(|m| m.memory() as u64).sum();
            let staying = s.blob_bytes().min(s.bytes);
            cost_model.waiting(cost_model.cost_of(s.bytes - staying, staying).max(2 * index))
        };
        // What nobody waits for, as its keyspace was dropped, is no debt.
        let waits = |s: &&LogSegment| s.segment.number() < active && !s.unflushed.is_empty();
        inner.log.iter().filter(waits).map(cost).sum()
    }

    /// Whether the active segment is filled so far that the next one will soon be wanted.
    pub(crate) fn next_is_due(&self) -> bool {
        let inner = self.inner.lock();
        inner.log.back().is_some_and(|s| s.segment.end() > s.segment.capacity() / 4)
    }

    /// How large the next segment should be, given the usual size and what the active one holds. From
    /// the first, small one on each has four times the size of the one before that was filled.
    pub(crate) fn next_bytes(&self, base: u64, cost_model: CostModel) -> u64 {
        let inner = self.inner.lock();
        let Some(active) = inner.log.back() else { return base };
        let (bytes, capacity) = (active.segment.end(), active.segment.capacity());
        let staying = active.blob_bytes().min(bytes);
        let usual = cost_model.segment_bytes(base, bytes - staying, staying);
        // A quarter: a spare one is made by then.
        let grown = if bytes > capacity / 4 { capacity.saturating_mul(4) } else { capacity };
        usual.min(grown)
    }

    /// How many bytes of the log a flush of this memtable moves into tables.
    pub(crate) fn moved_share(&self, memtable: &Memtable) -> u64 {
        let mut inner = self.inner.lock();
        let number = memtable.segment().number();
        let log = inner.log.iter_mut().find(|s| s.segment.number() == number);
        log.map_or(memtable.inline_bytes(), |s| s.moved_share(memtable))
    }

    /// Whether memtables over segments below `active` are not in tables yet.
    pub(crate) fn waits_below(&self, active: u64) -> bool {
        let inner = self.inner.lock();
        inner.log.iter().any(|s| s.segment.number() < active && !s.unflushed.is_empty())
    }

    /// What flushing the log may write at most: of the active segment all that it holds or, where that
    /// is to be filled yet, may come to hold.
    pub(crate) fn unflushed_bytes(&self, filled: bool) -> u64 {
        let inner = self.inner.lock();
        let writes = |s: &LogSegment| {
            let bytes = if filled { s.bytes } else { s.bytes.min(s.segment.used()) };
            let stays = s.blob_bytes().min(bytes);
            // Of a value that stays a table gets a pointer.
            let entries: u64 = s.memtables().map(|m| m.len() as u64).sum();
            let pointers = if stays > 0 { entries * POINTER_IN_TABLE } else { 0 };
            (bytes - stays + pointers).min(bytes) + s.tables_overhead()
        };
        // Nothing is in the newest yet, or in a moment something is.
        let newest = inner.log.back().map(|s| s.segment.number()).filter(|_| filled);
        let waits = |s: &&LogSegment| !s.unflushed.is_empty() || Some(s.segment.number()) == newest;
        inner.log.iter().filter(waits).map(writes).sum()
    }

    /// Claims room that tables of segment `number`, which is written to, may take beside their entries.
    pub(crate) fn claim_for_tables(&self, number: u64, bytes: u64) {
        let mut inner = self.inner.lock();
        if let Some(s) = inner.log.back_mut().filter(|s| s.segment.number() == number) {
            s.claimed += bytes;
        }
    }

    /// So much of it is not taken after all.
    pub(crate) fn give_claim_back(&self, number: u64, bytes: u64) {
        let mut inner = self.inner.lock();
        if let Some(s) = inner.log.back_mut().filter(|s| s.segment.number() == number) {
            s.claimed -= bytes;
        }
    }

    /// A segment was sealed with this many bytes of frames.
    pub(crate) fn note_sealed(&self, number: u64, bytes: u64) {
        let mut inner = self.inner.lock();
        if let Some(s) = inner.log.iter_mut().find(|s| s.segment.number() == number) {
            s.seal(bytes);
        }
    }

    /// How much of each segment that is kept for its values is in use, for the picker.
    pub(crate) fn usage(&self) -> Vec<SegmentUse> {
        self.inner.lock().blobs.usage()
    }

    pub(crate) fn totals(&self) -> SegmentTotals {
        let inner = self.inner.lock();
        let retired =
            |held: bool| inner.retired.iter().filter(move |s| (Arc::strong_count(s) > 1) == held);
        SegmentTotals {
            log_segments: inner.log.len(),
            open_files: inner.log.iter().filter(|s| s.segment.is_open()).count(),
            log_bytes: inner.log.iter().map(|s| s.segment.capacity()).sum(),
            value_bytes: inner.blobs.live_bytes(),
            value_disk_bytes: inner
                .blobs
                .segments
                .values()
                .map(|s| s.allocated().unwrap_or(0))
                .sum(),
            pool_bytes: inner.pool.bytes() + retired(false).map(|s| s.capacity()).sum::<u64>(),
            pinned_bytes: inner.blobs.pinned_bytes()
                + retired(true).map(|s| s.allocated().unwrap_or(0)).sum::<u64>(),
            mapped: inner.log.len() + inner.blobs.segments.len() + inner.retired.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wal;

    /// They waited, with their files open, for the background thread, which was too busy to make spares in time.
    #[test]
    #[cfg_attr(miri, ignore = "Miri knows no file mappings")]
    fn spares_that_came_too_late_waited_with_their_files_open() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().canonicalize().unwrap();
        let env: Arc<dyn Env> = Arc::new(crate::env::OsEnv::new());
        let obsolete = Arc::new(ObsoleteFiles::default());
        let manager = SegmentManager::new(Arc::clone(&env), path.clone(), obsolete, 0);
        for number in 1..=2 * wal::pool::POOL_FILES as u64 {
            manager.discard(Arc::new(Segment::create(&env, &path, number, 1 << 16, None).unwrap()));
            assert_eq!(manager.totals().mapped, 0, "after {number}");
            let open = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
            let open =
                open.filter(|e| std::fs::read_link(e.path()).is_ok_and(|to| to.starts_with(&path)));
            assert_eq!(open.count(), 0, "after {number}");
        }
        assert_eq!(manager.inner.lock().pool.len(), wal::pool::POOL_FILES);
    }

    /// It was in the pool no more, and stayed in the directory until the next open.
    #[test]
    #[cfg_attr(miri, ignore = "Miri knows no file mappings")]
    fn a_pooled_file_that_somebody_linked_stayed_with_nobody_to_remove_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().canonicalize().unwrap();
        let env: Arc<dyn Env> = Arc::new(crate::env::OsEnv::new());
        let obsolete = Arc::new(ObsoleteFiles::default());
        let manager = SegmentManager::new(Arc::clone(&env), path.clone(), Arc::clone(&obsolete), 0);
        let first = manager.create(1, 1 << 16).unwrap();
        let pooled = first.path().to_path_buf();
        manager.discard(first);
        std::fs::hard_link(&pooled, path.join("elsewhere")).unwrap();
        let second = manager.create(2, 1 << 16).unwrap();
        obsolete.run(&*env, || true, || false);
        assert!(!pooled.exists() && second.path().exists() && path.join("elsewhere").exists());
        // One that is used again has its name no more.
        manager.discard(second);
        let third = manager.create(3, 1 << 16).unwrap();
        assert!(third.recycled() && obsolete.is_empty());
    }
}

//! Where blob values live: segments that the log does not need any more, kept for the large values in them, which tables
//! point to.
//!
//! A flush leaves a large value where it was written. Then, in the order of this file:
//!
//! - tables that come and go are counted; a segment that none points into goes as a whole;
//! - when a segment leaves the log, what is in it beside live values is given back;
//! - what a compaction drops of the values later is given back, too. Both wait until nobody reads it;
//! - a segment with much that is dead is emptied: the picker asks how much of each is in use, and has a compaction move the rest.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Deref;
use std::sync::{Arc, Weak};

use super::log_segment::{LogSegment, Ranges};
use super::{FIRST_FRAME, Segment};
use crate::compaction::picker::SegmentUse;
use crate::memtable::Memtable;
use crate::obsolete_files::Obsolete;
use crate::read::SuperVersion;
use crate::util::sum_of;
use crate::version::SegmentRef;

/// Between the values of a segment of large ones no smaller hole is made, unless there are few. Each is a call, an extent
/// more, and on some file systems a wait for the device when it is made and when the file goes. Segments with much that is
/// dead in small pieces are emptied instead.
const PUNCHED_BETWEEN: u64 = 64 << 10;
/// So few are made all the same.
const FEW_HOLES: usize = 16;
/// Of a value that dies by itself no smaller hole is made.
const PUNCHED_LEAST: u64 = 16 << 10;

/// The segments that are kept for their values.
#[derive(Debug, Default)]
pub(super) struct BlobSegments {
    pub segments: BTreeMap<u64, Arc<Segment>>,
    /// How many tables of the present versions point into a segment, of the log's too, and to how many bytes.
    references: HashMap<u64, Reference>,
    /// Ranges that nothing points to, until no reader holds an old super version of them.
    pending_reclaim: Vec<PendingReclaim>,
    /// Of values in segments below this one two tables may know: that one drops them says nothing of the other. These segments
    /// give back their space when no table points into them, and not before.
    may_repeat_below: u64,
}

#[derive(Debug, Default, Clone, Copy)]
struct Reference {
    tables: u64,
    bytes: u64,
}

impl BlobSegments {
    pub(super) fn new(may_repeat_below: u64) -> BlobSegments {
        BlobSegments { may_repeat_below, ..BlobSegments::default() }
    }

    /// One that is not part of the log.
    pub(super) fn add(&mut self, segment: Arc<Segment>) {
        segment.release();
        self.segments.insert(segment.number(), segment);
    }

    /// Tables have come into a version (`added`) and gone from it (`removed`). Returns the segments that none points into
    /// any more.
    pub(super) fn account<'a>(
        &mut self,
        added: impl Iterator<Item = &'a SegmentRef>,
        removed: impl Iterator<Item = &'a SegmentRef>,
    ) -> Vec<Arc<Segment>> {
        for r in added {
            let e = self.references.entry(r.segment).or_default();
            e.tables += 1;
            e.bytes = e.bytes.saturating_add(r.bytes);
        }
        for r in removed {
            if let Some(e) = self.references.get_mut(&r.segment) {
                e.tables = e.tables.saturating_sub(1);
                e.bytes = e.bytes.saturating_sub(r.bytes);
                if e.tables == 0 {
                    self.references.remove(&r.segment);
                }
            }
        }
        let is_orphan = |n: &&u64| !self.references.contains_key(n);
        let orphans: Vec<u64> = self.segments.keys().filter(is_orphan).copied().collect();
        orphans.iter().filter_map(|number| self.segments.remove(number)).collect()
    }

    /// A segment leaves the log. Where tables point into it, what they do not point to is punched as soon as no reader
    /// holds a memtable over it, nor one of the `old_super_versions`. Otherwise it is returned.
    pub(super) fn keep(
        &mut self,
        mut s: LogSegment,
        old_super_versions: &impl Deref<Target = Vec<Weak<SuperVersion>>>,
    ) -> Option<Arc<Segment>> {
        if !self.references.contains_key(&s.segment.number()) {
            return Some(s.segment);
        }
        if s.live_known {
            let gaps = gaps(&mut s);
            // Without one there is nothing to wait for, nor to tell the manifest's end for.
            if !gaps.is_empty() {
                let segment = Arc::clone(&s.segment);
                let reclaim = PendingReclaim::new(segment, gaps, s.memtables, old_super_versions);
                self.pending_reclaim.push(reclaim);
            }
        }
        self.add(s.segment);
        None
    }

    /// A compaction dropped values. In a segment that is still part of the log they are only struck from
    /// the live ones, as recovery must be able to read the frames; the others are returned.
    pub(super) fn mark_dead(
        &self,
        log: &mut VecDeque<LogSegment>,
        dead: HashMap<u64, Ranges>,
    ) -> Vec<(Arc<Segment>, Ranges)> {
        let mut punchable = Vec::new();
        let known_once = |(number, _): &(u64, Ranges)| *number >= self.may_repeat_below;
        for (number, mut ranges) in dead.into_iter().filter(known_once) {
            if let Some(s) = log.iter_mut().find(|s| s.segment.number() == number) {
                take_out(&mut s.live, &mut ranges);
            } else if let Some(segment) = self.segments.get(&number) {
                punchable.push((Arc::clone(segment), ranges));
            }
        }
        punchable
    }

    /// Gives the space of dropped values back, once nobody reads them.
    pub(super) fn reclaim(&mut self, reclaims: Vec<PendingReclaim>) {
        // Or the segment would wait for it, as does one that goes as a whole.
        let stays = |q: &PendingReclaim| self.segments.contains_key(&q.segment.number());
        self.pending_reclaim.extend(reclaims.into_iter().filter(stays));
    }

    /// What was to be given back and nobody reads any more.
    pub(super) fn take_unread(&mut self) -> Vec<Obsolete> {
        let (quiet, read): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.pending_reclaim).into_iter().partition(|q| !q.is_read());
        self.pending_reclaim = read;
        quiet.into_iter().map(|q| Obsolete::Punch(q.segment, q.gaps)).collect()
    }

    /// How much of each is in use, for the picker. Some of what is dead has been punched, so what counts is what the file
    /// system has set aside.
    pub(super) fn usage(&self) -> Vec<SegmentUse> {
        let use_of = |(number, segment): (&u64, &Arc<Segment>)| {
            let live = self.references.get(number).map_or(0, |r| r.bytes);
            let disk = segment.allocated().unwrap_or(live);
            // Pages at the edges of values cannot be punched.
            let dead = disk.saturating_sub(sum_of([live, live / 8, 64 * 1024]));
            SegmentUse { segment: *number, live, dead }
        };
        self.segments.iter().map(use_of).collect()
    }

    /// Bytes that tables point to, those in the log too.
    pub(super) fn live_bytes(&self) -> u64 {
        sum_of(self.references.values().map(|r| r.bytes))
    }

    /// What is kept for nothing but readers.
    pub(super) fn pinned_bytes(&self) -> u64 {
        let stays = |q: &&PendingReclaim| self.segments.contains_key(&q.segment.number());
        self.pending_reclaim.iter().filter(stays).map(PendingReclaim::bytes).sum()
    }
}

/// Removes the `dead` ranges from the live ones. There may be hundreds of thousands of either.
fn take_out<T: Ord>(live: &mut Vec<T>, dead: &mut [T]) {
    dead.sort_unstable();
    live.retain(|range| dead.binary_search(range).is_err());
}

/// What no table points to, which is given back. Small holes too where the rest is small entries, which would stay for good
/// otherwise, though nothing died; where it is values they are garbage like any other.
fn gaps(s: &mut LogSegment) -> Ranges {
    let mut gaps = complement(FIRST_FRAME, s.segment.capacity(), &mut s.live);
    let mostly_large = s.blob_bytes() / 3 >= s.bytes / 4;
    if mostly_large && gaps.len() > FEW_HOLES {
        gaps.retain(|(_, len)| *len >= PUNCHED_BETWEEN);
    }
    gaps
}

/// The parts of `0..end` from `start` on that none of `live` (offset, length) covers.
fn complement(start: u64, end: u64, live: &mut [(u64, u64)]) -> Ranges {
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

/// Ranges of a segment that no present super version leads to. Older super versions may: those of the compaction's inputs,
/// and those of *their* inputs, whose tables are long gone from any version. But only those that read
/// the segment at all: were any old super version waited for, one that is held for long would keep the space of
/// all that dies while it is.
#[derive(Debug)]
pub(super) struct PendingReclaim {
    segment: Arc<Segment>,
    gaps: Ranges,
    memtables: Vec<Weak<Memtable>>,
    super_versions: Vec<Weak<SuperVersion>>,
}

impl PendingReclaim {
    fn new(
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

    /// Those of values that a compaction dropped.
    pub(super) fn of_dead(
        dead: Vec<(Arc<Segment>, Ranges)>,
        super_versions: &[Weak<SuperVersion>],
    ) -> Vec<PendingReclaim> {
        let reclaims = dead.into_iter().filter_map(|(segment, mut gaps)| {
            gaps.retain(|(_, len)| *len >= PUNCHED_LEAST);
            let some = !gaps.is_empty();
            some.then(|| PendingReclaim::new(segment, gaps, Vec::new(), super_versions))
        });
        reclaims.collect()
    }

    fn is_read(&self) -> bool {
        self.memtables.iter().any(|m| m.strong_count() > 0)
            || self.super_versions.iter().any(|v| v.strong_count() > 0)
    }

    fn bytes(&self) -> u64 {
        self.gaps.iter().map(|(_, len)| len).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts how often it is compared.
    #[derive(Debug, Clone, Copy, Eq)]
    struct Counted(u64);

    thread_local!(static COMPARED: std::cell::Cell<u64> = const { std::cell::Cell::new(0) });

    impl Ord for Counted {
        fn cmp(&self, other: &Counted) -> std::cmp::Ordering {
            COMPARED.set(COMPARED.get() + 1);
            self.0.cmp(&other.0)
        }
    }

    impl PartialEq for Counted {
        fn eq(&self, other: &Counted) -> bool {
            self.cmp(other).is_eq()
        }
    }

    impl PartialOrd for Counted {
        fn partial_cmp(&self, other: &Counted) -> Option<std::cmp::Ordering> {
            Some(self.cmp(other))
        }
    }

    #[test]
    fn striking_many_values_takes_no_work_that_grows_with_their_square() {
        let count = 2_000;
        let mut live: Vec<Counted> = (0..count).map(Counted).collect();
        let mut dead: Vec<Counted> = (0..count).rev().filter(|n| n % 3 > 0).map(Counted).collect();
        take_out(&mut live, &mut dead);
        assert!(live.iter().map(|c| c.0).eq((0..count).step_by(3)));
        // Sorting one and searching it for each of the other: some eleven comparisons each.
        assert!(COMPARED.get() < 30 * count, "{} comparisons of {count}", COMPARED.get());
    }

    #[test]
    fn the_complement_is_what_no_live_range_covers() {
        let mut live = [(8000, 1000), (4096, 100), (8500, 2000)];
        assert_eq!(complement(4096, 16384, &mut live), [(4196, 3804), (10500, 5884)]);
        assert_eq!(complement(0, 10, &mut []), [(0, 10)]);
        assert_eq!(complement(0, 10, &mut [(0, 10)]), []);
    }
}

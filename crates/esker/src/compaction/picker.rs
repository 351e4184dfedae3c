//! What to merge next: a pure function of what one keyspace looks like.
//!
//! The store keeps sorted runs, newest first, and merges *neighbours* only, so that ages never
//! change places. In order of urgency:
//!
//! 1. Memtables wait: flush all of them together into a new newest run, and swallow the runs that
//!    follow while each costs little beside what is being written anyway. How little depends on
//!    the debt: at ease few runs are worth more, under pressure a quick flush is. Next to nothing is
//!    always swallowed: a store that is opened for each write has few tables all the same.
//! 2. Dead separated values pass their cap: empty the segments that hold most of them. Too many
//!    segments: empty those that hold least.
//! 3. Too many runs, and the fewer are too many the more readers search: merge the neighbours whose compaction makes
//!    most of its writes. The newer runs hold too many versions of what is in the oldest: merge all, and move values
//!    as 2 does by the way. This also follows each flush, as 2 does, or writers would leave no time for it.
//! 4. Tombstones hide much of what lies below them: merge them down.
//! 5. The store is idle: on towards one run, in pieces, as far as that is worth its bytes; drop tombstones
//!    and old versions that nothing needs any more; empty half-dead segments.
//!
//! Costs are bytes *written*: tables that meet nothing move for free ([`groups`]).
//!
//! Every chain of plans ends: 1 uses memtables up, 3 to 5 lower the number of runs, or rewrite
//! tables into such as need no rewriting, and 2 moves values out of segments for good.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use super::overlap::{self, OverlapGroup, TINY, WaitingMemtable};
use crate::key::{KeyOrder, Seq};
use crate::util::sum_of;
use crate::version::{HasMeta, Run, TableMeta};

/// Above so many runs some neighbours are merged when nothing is more urgent.
pub(crate) const RUNS_SOFT: usize = 8;
/// The same where readers search all the time, in a store that is not large.
const RUNS_SEARCHED: usize = 3;
/// No flush leaves more runs than this, whatever it costs; those that are being merged count as one.
pub(crate) const RUNS_HARD: usize = 12;
/// Whoever adds runs by other means than a flush merges first when there are as many.
pub(crate) const RUNS_MOST: usize = 32;
/// Runs and memtables that one compaction takes, but for one by hand. More are no faster: each entry is
/// compared with those of many sources; and no such compaction ends soon.
const RUNS_AT_ONCE: usize = 16;
const MEMTABLES_AT_ONCE: usize = 64;
/// Below this debt there is time to keep runs few.
const EASE: f64 = 0.5;
/// Swallow a run that costs this many times what is written already: without debt, and from
/// `EASE` on.
const RATIO_IDLE: f64 = 2.0;
const RATIO_PRESSED: f64 = 0.5;
/// Runs, and bytes of old versions beside live ones, at which compactions begin to press, and press most.
const PRESSING_RUNS: (f64, f64) = (4.0, RUNS_HARD as f64);
const PRESSING_SPACE: (f64, f64) = (0.2, 0.6);
/// The runs where readers search all the time.
const PRESSING_SEARCHES: (f64, f64) = (2.0, 6.0);
/// How many times the oldest run the newer ones together may be, whatever they hold.
const SPACE: u64 = 2;
/// What newer versions may take beside the rest, in percent; of separated values, which cost a compaction nothing,
/// beside those that live in tables or segments.
const REPEATED_PERCENT: u64 = 30;
/// A compaction of all runs whose largest overlap group is less than this part of it goes in small steps.
const STEPS: u64 = 8;
/// No flush writes more than this many times the pending cap of its own accord: writers wait for
/// it. What is larger is merged between flushes.
const FLUSH_CAPS: u64 = 4;
/// A store of this size is written anew with each flush while there is time, which takes a millisecond: where it is opened for
/// each write it has one table all the same.
const SMALL_STORE: u64 = 1 << 20;
/// An idle store is merged into one run when its smaller runs weigh this share of the largest, in percent.
const WORTH_PERCENT: u64 = 7;
/// In one step, if that writes no more than this. A store of this size also when so much came since it came to rest,
/// however it lies: else how long the last flush of a load was would decide how fast it is read.
const IDLE_STEP: u64 = 512 << 20;
/// So many bytes of old versions, or of newer runs, are borne whatever share of the store they are.
const SPACE_FLOOR: u64 = 256 << 20;
/// The newest runs are next to nothing below this part of those they would be merged with.
const GLUE_SHARE: u64 = 64;
/// One entry in this many must be a tombstone for a table to be rewritten on their account.
const SHED_SHARE: u64 = 20;
/// Dead separated values are borne up to half the live ones and this.
const GARBAGE_FLOOR: u64 = 64 << 20;
/// Writers bear so much instead: one flush of large values can leave as much, most of which is given back at once.
const GARBAGE_AT_ONCE: u64 = 256 << 20;
/// Live values that one plan moves at most (one segment always).
const GARBAGE_STEP: u64 = 256 << 20;
/// Above so many segments are kept for their values, the values of some go into tables: each is a
/// mapping, of which a process has 65,530, and punching leaves it one however little is in it.
const SEGMENTS_MOST: usize = 16 << 10;
/// So many of them at a time.
const SEGMENTS_STEP: usize = 256;

/// A log segment whose entries are all in tables and that is kept for the values in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SegmentUse {
    /// Its number.
    pub segment: u64,
    /// Bytes of values that tables still point to.
    pub live: u64,
    /// Bytes of values that none does.
    pub dead: u64,
}

/// All the picker sees.
#[derive(Debug, Clone)]
pub(crate) struct PickerInput<'a, T> {
    /// The keyspace's order.
    pub order: &'a KeyOrder,
    /// Sealed memtables with entries of this keyspace that no job is writing yet, oldest first.
    pub memtables: &'a [WaitingMemtable],
    /// The runs, newest first.
    pub runs: &'a [Arc<Run<T>>],
    /// Runs that another job is merging; not to be touched.
    pub being_compacted: Range<usize>,
    /// About how many bytes are dead for the newer runs: newer versions of entries in the oldest, and half of what tombstones
    /// hide there.
    pub repeated: u64,
    /// The same of their values that stayed in log segments.
    pub repeated_values: u64,
    /// By how many bytes flushes and loads have made it larger since nothing was left to do when it was idle.
    pub since_rest: u64,
    /// Hard cap of sealed log bytes that wait for a flush.
    pub pending_cap: u64,
    /// Waiting bytes / `pending_cap`, 0 to 1.
    pub debt: f64,
    /// How much searches would gain from fewer sources, 0 to 1.
    pub readers: f64,
    /// No user has called for a while.
    pub idle: bool,
    /// Below so many bytes a table is better written again beside another than left alone.
    pub small_table: u64,
    /// Of the versions of a key at or below this sequence, no reader needs any but the newest; nor
    /// a tombstone below which nothing lies.
    pub oldest_snapshot: Seq,
    /// Segments that could be freed, of all keyspaces.
    pub segments: &'a [SegmentUse],
}

/// Why a compaction was picked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum CompactionReason {
    /// Memtables wait.
    Flush,
    /// Too many runs.
    Runs,
    /// The newer runs hold too many versions of what is in the oldest.
    Space,
    /// Tombstones hide much of what lies below.
    Tombstones,
    /// Dead values in log segments.
    Garbage,
    /// Nothing better to do.
    Idle,
    /// Old versions or tombstones that nothing needs any more.
    Bottommost,
}

/// One compaction: the oldest `memtables` of those waiting, and neighbouring runs.
///
/// The output is one run in the place of its inputs: with memtables a new newest run (then `runs`
/// starts at 0), otherwise the one that has the number of the oldest input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Compaction {
    /// How many of the oldest waiting memtables.
    pub memtables: usize,
    /// Which runs, as indexes into the runs of the input.
    pub runs: Range<usize>,
    /// Why.
    pub reason: CompactionReason,
    /// Segments whose values are to be moved elsewhere.
    pub relocate: Vec<u64>,
}

impl Compaction {
    fn new(memtables: usize, runs: Range<usize>, reason: CompactionReason) -> Option<Compaction> {
        Some(Compaction { memtables, runs, reason, relocate: Vec::new() })
    }

    /// Whether nothing older lies below the output, so that tombstones can go.
    pub(crate) fn at_bottom<T>(&self, s: &PickerInput<'_, T>) -> bool {
        self.runs.end == s.runs.len()
    }

    /// Leaves one segment to be emptied: the first that may be, which gives back most beside what it takes.
    pub(crate) fn empty_one<T: HasMeta>(&mut self, s: &PickerInput<'_, T>) {
        if let Some(one) = self.relocate.iter().find_map(|segment| moving(s, vec![*segment])) {
            *self = one;
        }
    }

    /// The compaction in independent parts.
    pub(crate) fn groups<T: HasMeta>(&self, s: &PickerInput<'_, T>) -> Vec<OverlapGroup> {
        let bottom = self.at_bottom(s);
        let rewrite = |t: &TableMeta| {
            t.references.iter().any(|r| self.relocate.contains(&r.segment)) || bottom && sheds(s, t)
        };
        let memtables = &s.memtables[..self.memtables];
        overlap::groups(s.order, memtables, s.runs, self.runs.clone(), s.small_table, rewrite)
    }
}

/// Whether rewriting a table of the oldest run surely drops enough.
fn sheds<T>(s: &PickerInput<'_, T>, t: &TableMeta) -> bool {
    let tombstones = t.tombstones.saturating_mul(SHED_SHARE) >= t.entries;
    (tombstones || !t.unique_keys) && t.max_seq <= s.oldest_snapshot
}

/// The next compaction, if there is any to do.
pub(crate) fn pick<T: HasMeta>(s: &PickerInput<'_, T>) -> Option<Compaction> {
    if !s.memtables.is_empty() {
        return flush(s);
    }
    garbage(s, false)
        .or_else(|| too_many_segments(s))
        .or_else(|| too_many_runs(s))
        .or_else(|| tombstones(s))
        .or_else(|| if s.idle { towards_one_run(s, 0..s.runs.len()) } else { None })
        .or_else(|| bottommost(s))
        .or_else(|| if s.idle { garbage(s, true) } else { None })
}

/// The waiting memtables, and as many of the newest runs as go along cheaply.
pub(crate) fn flush<T: HasMeta>(s: &PickerInput<'_, T>) -> Option<Compaction> {
    if s.memtables.is_empty() {
        return None;
    }
    let memtables = s.memtables.len().min(MEMTABLES_AT_ONCE);
    // A run that is being compacted is a wall; beyond it nothing can be swallowed.
    let free = if s.being_compacted.is_empty() { s.runs.len() } else { s.being_compacted.start };
    let counted = s.runs.len() - s.being_compacted.len().saturating_sub(1);
    let crowded = counted > RUNS_HARD;
    let must = if crowded { 0 } else { (counted + 1).saturating_sub(RUNS_HARD).min(free) };
    let small = s.debt < EASE && s.runs.iter().map(|r| r.bytes()).sum::<u64>() <= SMALL_STORE;
    // In a crowd no run is added that is as small as the one before: they would be as many as flushes.
    let ratio = if crowded { RATIO_IDLE } else { between(ratio(s.debt), RATIO_IDLE, s.readers) };
    let most = s.pending_cap.saturating_mul(FLUSH_CAPS);
    let cost = |end: usize| cost(s, memtables, 0..end);
    let mut end = 0;
    let mut sum = cost(0);
    while end < free.min(RUNS_AT_ONCE) {
        let next = cost(end + 1);
        let cheap = next.saturating_sub(sum) as f64 <= ratio * sum.max(TINY) as f64;
        if !(small || cheap && next <= most) {
            break;
        }
        (end, sum) = (end + 1, next);
    }
    if end < must {
        // The cap forces it: as many as pay best, lest the newest run is rewritten every time.
        let per_run = |end: usize| cost(end) as f64 / end as f64;
        let best = (must..=free).min_by(|&a, &b| per_run(a).total_cmp(&per_run(b)));
        end = best.unwrap_or(end);
    }
    Compaction::new(memtables, 0..end, CompactionReason::Flush)
}

/// The next step towards less space or fewer runs, memtables or not.
pub(crate) fn thin_out<T: HasMeta>(s: &PickerInput<'_, T>) -> Option<Compaction> {
    // Old versions first: their values are not known to be dead, and would be moved for nothing.
    let first = if too_many_old_values(s) { old_versions(s) } else { None };
    // Nor may values that die all the time leave the runs to grow.
    let crowded = || if s.runs.len() + 2 > RUNS_HARD { too_many_runs(s) } else { None };
    first
        .or_else(crowded)
        .or_else(|| garbage(s, false))
        .or_else(|| too_many_segments(s))
        .or_else(|| too_many_runs(s))
}

/// Bytes of dead values beside the live ones. Old versions that no compaction has met are none of these.
fn borne_garbage<T>(s: &PickerInput<'_, T>) -> u64 {
    let live = sum_of(s.segments.iter().map(|g| g.live));
    live.saturating_sub(s.repeated_values) / 2
}

/// How urgent compactions are, by the runs there are and the space that old versions and dead values take. Up to 1 they
/// are given more of the time and flushes less. Beyond it, where dead values grow all the same, writers slow down for the
/// compactions that give them back ([`pressure_of`]).
pub(crate) fn pressure<T: HasMeta>(s: &PickerInput<'_, T>) -> f64 {
    let runs = s.runs.len() as f64;
    let from = between(PRESSING_RUNS.0, PRESSING_SEARCHES.0, s.readers);
    let to = between(PRESSING_RUNS.1, PRESSING_SEARCHES.1, s.readers);
    let by_runs = (runs - from) / (to - from);
    let total: u64 = s.runs.iter().map(|r| r.bytes()).sum();
    let live = total.saturating_sub(s.repeated).max(s.pending_cap) as f64;
    let repeated = s.repeated as f64 / live;
    let by_space = (repeated - PRESSING_SPACE.0) / (PRESSING_SPACE.1 - PRESSING_SPACE.0);
    let dead = sum_of(s.segments.iter().map(|g| g.dead));
    let share = dead as f64 / (borne_garbage(s) + GARBAGE_AT_ONCE) as f64;
    // From half of what is borne on to all of it, and beyond.
    let by_garbage = if share < 1.0 { 2.0 * share - 1.0 } else { share.min(2.0) };
    by_runs.max(by_space).clamp(0.0, 1.0).max(by_garbage)
}

/// How urgent the next compaction is: one that only makes the store tidier is not, and nobody slows down for dead values
/// that it leaves where they are.
pub(crate) fn pressure_of<T: HasMeta>(plan: &Compaction, s: &PickerInput<'_, T>) -> f64 {
    let most = if plan.relocate.is_empty() { 1.0 } else { f64::INFINITY };
    match plan.reason {
        CompactionReason::Garbage | CompactionReason::Space | CompactionReason::Runs => {
            pressure(s).min(most)
        }
        _ => 0.0,
    }
}

fn ratio(debt: f64) -> f64 {
    between(RATIO_IDLE, RATIO_PRESSED, (debt / EASE).min(1.0))
}

/// The number that lies this share of the way from one to another.
fn between(from: f64, to: f64, share: f64) -> f64 {
    from + (to - from) * share
}

/// Bytes that the compaction would write.
fn cost<T: HasMeta>(s: &PickerInput<'_, T>, memtables: usize, runs: Range<usize>) -> u64 {
    let memtables = &s.memtables[..memtables];
    let list = overlap::groups(s.order, memtables, s.runs, runs, s.small_table, |_| false);
    overlap::written(&list)
}

/// Whether the newer runs hold too many versions of what is in the oldest. How many is an estimate, and only
/// of keys that the oldest has, so they may not be `SPACE` times as large in any case.
fn too_much_space<T: HasMeta>(s: &PickerInput<'_, T>) -> bool {
    let Some((oldest, newer)) = s.runs.split_last() else { return false };
    let newer: u64 = newer.iter().map(|r| r.bytes()).sum();
    let live = (newer + oldest.bytes()).saturating_sub(s.repeated);
    let repeats = s.repeated > s.pending_cap.min(SPACE_FLOOR)
        && s.repeated.saturating_mul(100) > live.saturating_mul(REPEATED_PERCENT)
        || too_many_old_values(s);
    let meets = || cost(s, 0, 0..s.runs.len()) > newer;
    repeats || newer > SPACE_FLOOR && newer / SPACE > oldest.bytes() && meets()
}

/// Whether the values in segments that the newer runs replace are too many.
fn too_many_old_values<T: HasMeta>(s: &PickerInput<'_, T>) -> bool {
    let tables = s.runs.iter().flat_map(|r| r.tables());
    let bytes = |t: &T| t.meta().size.saturating_add(t.meta().separated_bytes());
    let all = tables.fold(0u64, |sum, t| sum.saturating_add(bytes(t)));
    let live = all.saturating_sub(s.repeated_values.saturating_add(s.repeated));
    s.repeated_values > GARBAGE_FLOOR
        && s.repeated_values.saturating_mul(100) > live.saturating_mul(REPEATED_PERCENT)
}

/// All runs, but for the newest where these are small and each of their tables meets those of many others:
/// without them the rest is merged in steps that each free what they replace.
fn all_in_steps<T: HasMeta>(s: &PickerInput<'_, T>) -> Range<usize> {
    let n = s.runs.len();
    let start = (0..n.saturating_sub(1)).find(|start| has_small_pieces(s, *start..n, STEPS));
    start.unwrap_or(0)..n
}

/// Whether a compaction of these runs falls into pieces that are small, by themselves or as parts of the store.
fn has_small_pieces<T: HasMeta>(s: &PickerInput<'_, T>, runs: Range<usize>, part: u64) -> bool {
    let list = overlap::groups(s.order, &[], s.runs, runs, s.small_table, |_| false);
    let largest = list.iter().map(|g| g.bytes).max().unwrap_or(0);
    let total: u64 = s.runs.iter().map(|r| r.bytes()).sum();
    largest <= s.pending_cap.saturating_mul(FLUSH_CAPS).max(total / part)
}

/// Above how many runs there are too many. In a large store each run less costs more, so more are borne.
fn runs_soft<T: HasMeta>(s: &PickerInput<'_, T>) -> usize {
    let total: u64 = s.runs.iter().map(|r| r.bytes()).sum();
    let size = total / s.pending_cap.saturating_mul(16).max(1);
    let searched = (RUNS_SEARCHED + size.max(1).ilog2() as usize).min(RUNS_SOFT);
    between(RUNS_SOFT as f64, searched as f64, s.readers) as usize
}

/// The next step towards fewer runs, memtables or not.
pub(crate) fn too_many_runs<T: HasMeta>(s: &PickerInput<'_, T>) -> Option<Compaction> {
    let all = 0..s.runs.len();
    if all.len() > runs_soft(s) {
        return Compaction::new(0, best_group(s, all)?, CompactionReason::Runs);
    }
    old_versions(s)
}

fn old_versions<T: HasMeta>(s: &PickerInput<'_, T>) -> Option<Compaction> {
    if is_free(s, &(0..s.runs.len())) && too_much_space(s) {
        // Where there is one compaction for each flush, and each time this, no segment would be emptied otherwise.
        let runs = all_in_steps(s);
        let relocate = to_empty(s, &s.runs[runs.clone()], false);
        let compaction = Compaction::new(0, runs, CompactionReason::Space)?;
        return Some(Compaction { relocate, ..compaction });
    }
    None
}

/// The neighbours whose compaction brings most per byte written; among equals the newest. No
/// piece of it is half of the store, if that can be had.
///
/// On its way from a flush into the largest run a byte climbs log(largest / flush) in all, whatever
/// the compactions in between; each compaction that it takes part in costs one write of it. A compaction of sizes
/// s1, s2, .. into S lifts each byte of si by log(S / si). So the sum of si log(S / si) over the
/// bytes written says how well a compaction uses its writes: best for many runs of equal size, badly for
/// a small one beside a large one. Taking the smallest instead rewrites the newest runs over and
/// over (128 GiB at random: 46 writes per byte, not 8).
fn best_group<T: HasMeta>(s: &PickerInput<'_, T>, within: Range<usize>) -> Option<Range<usize>> {
    let mut best: Option<((bool, f64), Range<usize>)> = None;
    for start in within.clone() {
        for end in start + 2..=within.end.min(start + RUNS_AT_ONCE) {
            if !is_free(s, &(start..end)) {
                break;
            }
            let use_of_writes = lift(s, start..end) / (cost(s, 0, start..end) + 1) as f64;
            let in_pieces = has_small_pieces(s, start..end, 2);
            let use_of_writes = (in_pieces, use_of_writes);
            if best.as_ref().is_none_or(|(most, _)| use_of_writes > *most) {
                best = Some((use_of_writes, start..end));
            }
        }
    }
    best.map(|(_, group)| group)
}

/// The sum of si log(S / si).
fn lift<T: HasMeta>(s: &PickerInput<'_, T>, group: Range<usize>) -> f64 {
    let sizes = || s.runs[group.clone()].iter().map(|r| r.bytes().max(1) as f64);
    let sum: f64 = sizes().sum();
    sizes().map(|size| size * (sum / size).ln()).sum()
}

fn is_free<T>(s: &PickerInput<'_, T>, group: &Range<usize>) -> bool {
    s.being_compacted.is_empty()
        || group.end <= s.being_compacted.start
        || s.being_compacted.end <= group.start
}

/// Tombstones above the oldest run that could hide half of it: a scan would wade through them.
fn tombstones<T: HasMeta>(s: &PickerInput<'_, T>) -> Option<Compaction> {
    let (oldest, newer) = s.runs.split_last()?;
    let hidden: u64 = newer.iter().map(|r| r.tombstones()).sum();
    let all = 0..s.runs.len();
    if hidden > 0 && hidden.saturating_mul(2) >= oldest.entries() && is_free(s, &all) {
        return Compaction::new(0, all, CompactionReason::Tombstones);
    }
    None
}

/// What a run costs its readers, in bytes: a tombstone counts as the entry it hides.
fn weight<T: HasMeta>(run: &Run<T>, hidden_entry: u64) -> u64 {
    run.bytes().saturating_add(run.tombstones().saturating_mul(hidden_entry))
}

/// A compaction on the way to one run, where the smaller runs weigh enough beside the largest. Where
/// they do not, the largest stays and its newer and older neighbours are looked at by themselves.
fn towards_one_run<T: HasMeta>(s: &PickerInput<'_, T>, within: Range<usize>) -> Option<Compaction> {
    if within.len() < 2 {
        return None;
    }
    let runs = &s.runs[within.clone()];
    let total: u64 = runs.iter().map(|r| r.bytes()).sum();
    let (at, largest) = runs.iter().enumerate().max_by_key(|(_, r)| r.bytes())?;
    let entry = largest.bytes() / largest.entries().max(1);
    let smaller = runs.iter().enumerate().filter(|(i, _)| *i != at);
    let smaller: u64 = smaller.map(|(_, r)| weight(r, entry)).fold(0, u64::saturating_add);
    // Of parts of the store it is not known.
    let all = runs.len() == s.runs.len();
    let came = if all && total <= IDLE_STEP { s.since_rest } else { 0 };
    let worth = total <= SMALL_STORE
        || smaller.max(came).saturating_mul(100) >= largest.bytes().saturating_mul(WORTH_PERCENT)
        || cost(s, 0, within.clone()) <= total / 100
        || all && s.repeated_values > cost(s, 0, within.clone());
    if worth && is_free(s, &within) && cost(s, 0, within.clone()) <= IDLE_STEP {
        return Compaction::new(0, within, CompactionReason::Idle);
    }
    if worth && let Some(group) = glue(s, &within).or_else(|| best_group(s, within.clone())) {
        return Compaction::new(0, group, CompactionReason::Idle);
    }
    let at = within.start + at;
    towards_one_run(s, within.start..at).or_else(|| towards_one_run(s, at + 1..within.end))
}

/// The newest of some runs, where they are next to nothing and yet make one piece of a compaction of all, with the run
/// behind them: what comes out ends its tables at the guards, and the rest falls into pieces.
fn glue<T: HasMeta>(s: &PickerInput<'_, T>, within: &Range<usize>) -> Option<Range<usize>> {
    let bytes = |runs: Range<usize>| s.runs[runs].iter().map(|r| r.bytes()).sum::<u64>();
    let in_pieces = |start: &usize| has_small_pieces(s, *start..within.end, 2);
    let start = (within.start..within.end - 1).find(in_pieces)?;
    let (newest, group) = (bytes(within.start..start), within.start..start + 1);
    let total = bytes(within.clone());
    let is_glue =
        newest > 0 && newest <= total / GLUE_SHARE && cost(s, 0, group.clone()) <= total / 2;
    (is_glue && is_free(s, &group)).then_some(group)
}

/// Tables of the oldest run that hold what nothing needs any more: half of their entries
/// tombstones, or as few as [`SHED_SHARE`] says when idle.
fn bottommost<T: HasMeta>(s: &PickerInput<'_, T>) -> Option<Compaction> {
    let last = s.runs.len().checked_sub(1)?;
    let due = |t: &TableMeta| sheds(s, t) && (s.idle || t.tombstones * 2 >= t.entries);
    let tables = s.runs[last].tables();
    if is_free(s, &(last..last + 1)) && tables.iter().any(|t| due(t.meta())) {
        return Compaction::new(0, last..last + 1, CompactionReason::Bottommost);
    }
    None
}

/// A run that keeps values in segments that are to be emptied.
fn garbage<T: HasMeta>(s: &PickerInput<'_, T>, idle: bool) -> Option<Compaction> {
    moving(s, to_empty(s, s.runs, idle))
}

/// The segments that these runs keep values in and that are to be emptied: those with the largest dead share,
/// until the rest is bearable. When idle, those of which half is dead.
fn to_empty<T: HasMeta>(s: &PickerInput<'_, T>, runs: &[Arc<Run<T>>], idle: bool) -> Vec<u64> {
    let borne = borne_garbage(s);
    let mut dead = sum_of(s.segments.iter().map(|g| g.dead));
    let mut relocate = Vec::new();
    if !idle && dead <= borne + GARBAGE_FLOOR {
        return relocate;
    }
    let mut by_share: Vec<&SegmentUse> = s.segments.iter().filter(|g| g.dead > 0).collect();
    let share = |g: &SegmentUse| g.dead as f64 / (g.dead as f64 + g.live as f64);
    by_share.sort_by(|a, b| share(b).total_cmp(&share(a)).then(a.segment.cmp(&b.segment)));
    let mut moved = 0u64;
    for g in by_share {
        // Below the cap by half, so that one byte more does not start it again.
        let enough = match idle {
            true => g.dead < g.live,
            false => dead <= borne + GARBAGE_FLOOR / 2,
        };
        if enough || (moved > 0 && moved.saturating_add(g.live) > GARBAGE_STEP) {
            break;
        }
        // Segments that only other runs or keyspaces use are theirs to empty.
        if runs.iter().any(|r| uses(r, &[g.segment])) {
            relocate.push(g.segment);
            moved = moved.saturating_add(g.live);
        }
        dead -= g.dead;
    }
    relocate
}

/// The runs' values in the segments that hold least, where there are too many of these.
fn too_many_segments<T: HasMeta>(s: &PickerInput<'_, T>) -> Option<Compaction> {
    let over = s.segments.len().saturating_sub(SEGMENTS_MOST);
    if over == 0 {
        return None;
    }
    let tables = s.runs.iter().flat_map(|r| r.tables());
    let used: HashSet<u64> = tables.flat_map(|t| &t.meta().references).map(|r| r.segment).collect();
    let mut least: Vec<&SegmentUse> =
        s.segments.iter().filter(|g| used.contains(&g.segment)).collect();
    least.sort_by_key(|g| (g.live, g.segment));
    let mut moved = 0u64;
    let mut relocate: Vec<u64> = Vec::new();
    for g in least.into_iter().take(over.min(SEGMENTS_STEP)) {
        if moved > 0 && moved.saturating_add(g.live) > GARBAGE_STEP {
            break;
        }
        moved = moved.saturating_add(g.live);
        relocate.push(g.segment);
    }
    moving(s, relocate)
}

/// A compaction of the newest run that may be read and has values in these segments: it moves them.
fn moving<T: HasMeta>(s: &PickerInput<'_, T>, relocate: Vec<u64>) -> Option<Compaction> {
    let run =
        (0..s.runs.len()).find(|&i| uses(&s.runs[i], &relocate) && is_free(s, &(i..i + 1)))?;
    let compaction = Compaction::new(0, run..run + 1, CompactionReason::Garbage)?;
    Some(Compaction { relocate, ..compaction })
}

fn uses<T: HasMeta>(run: &Run<T>, segments: &[u64]) -> bool {
    let mut references = run.tables().iter().flat_map(|t| &t.meta().references);
    references.any(|r| segments.contains(&r.segment))
}

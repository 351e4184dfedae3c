//! A store of numbers: runs of tables without contents, changed by the picker's plans.
//!
//! Keys are 8-byte numbers, spread evenly. It counts bytes and runs, and applies every plan through
//! [`KeyspaceVersion::edit`], so that a plan that breaks an invariant of a version is found out.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::overlap::{OverlapGroup, WaitingMemtable, written};
use super::picker::{self, Compaction, CompactionReason, PickerInput, RUNS_HARD, SegmentUse};
use crate::key::KeyOrder;
use crate::version::{KeyspaceVersion, SegmentRef, TableMeta};

pub(super) const ENTRY: u64 = 100;
pub(super) const KEYS: u64 = 1 << 60;

/// What the load writes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum WritePattern {
    /// New keys all over the key space.
    Random,
    /// New keys in order.
    Sequential,
    /// Keys all over, out of this many.
    Overwrite(u64),
}

pub(super) struct Sim {
    pub version: KeyspaceVersion<Arc<TableMeta>>,
    pub cap: u64,
    pub since_rest: u64,
    /// How much searches press.
    pub readers: f64,
    pub table: u64,
    pub written: u64,
    pub flushed: u64,
    pub largest_plan: u64,
    pub max_runs: usize,
    pub max_bytes: u64,
    pub plans: u64,
    pub segments: BTreeMap<u64, u64>,
    next_table: u64,
    seq: u64,
    next_key: u64,
    load: WritePattern,
}

pub(super) fn key(n: u64) -> Vec<u8> {
    n.to_be_bytes().to_vec()
}

pub(super) fn number(key: &[u8]) -> u64 {
    u64::from_be_bytes(key.try_into().unwrap())
}

impl Sim {
    pub(super) fn new(load: WritePattern, cap: u64, table: u64) -> Sim {
        Sim {
            version: KeyspaceVersion::default(),
            cap,
            since_rest: 0,
            readers: 0.0,
            table,
            written: 0,
            flushed: 0,
            largest_plan: 0,
            max_runs: 0,
            max_bytes: 0,
            plans: 0,
            segments: BTreeMap::new(),
            next_table: 1,
            seq: 1,
            next_key: 0,
            load,
        }
    }

    /// The next full memtable of this many bytes.
    pub(super) fn memtable(&mut self, bytes: u64) -> WaitingMemtable {
        let (low, high) = match self.load {
            WritePattern::Sequential => {
                let low = self.next_key;
                self.next_key += bytes;
                (low, self.next_key - 1)
            }
            _ => (0, KEYS),
        };
        WaitingMemtable { bytes, smallest: key(low), largest: key(high) }
    }

    /// Picks and applies; the plan, unless there was none.
    pub(super) fn step(
        &mut self,
        memtables: &[WaitingMemtable],
        debt: f64,
        idle: bool,
    ) -> Option<Compaction> {
        let plan = self.step_with(memtables, debt, idle, picker::pick)?;
        assert!(self.version.runs().len() <= RUNS_HARD);
        Some(plan)
    }

    /// The same with another picker, of which the bound on runs is not asked.
    pub(super) fn step_with(
        &mut self,
        memtables: &[WaitingMemtable],
        debt: f64,
        idle: bool,
        pick: impl Fn(&PickerInput<'_, Arc<TableMeta>>) -> Option<Compaction>,
    ) -> Option<Compaction> {
        let version = self.version.clone();
        let uses: Vec<SegmentUse> = self.segment_uses();
        let picker_input = PickerInput {
            order: &KeyOrder::Bytewise,
            memtables,
            runs: version.runs(),
            being_compacted: 0..0,
            repeated: self.repeated(),
            repeated_values: 0,
            since_rest: self.since_rest,
            pending_cap: self.cap,
            debt,
            readers: self.readers,
            idle,
            small_table: self.table / 8,
            oldest_snapshot: self.seq,
            segments: &uses,
        };
        let plan = pick(&picker_input);
        if plan.is_none() && idle && memtables.is_empty() {
            self.since_rest = 0;
        }
        let plan = plan?;
        self.apply(&plan, &picker_input);
        self.since_rest += memtables[..plan.memtables].iter().map(|m| m.bytes).sum::<u64>();
        self.max_runs = self.max_runs.max(self.version.runs().len());
        let bytes = self.version.runs().iter().map(|r| r.bytes()).sum();
        self.max_bytes = self.max_bytes.max(bytes);
        Some(plan)
    }

    /// Steps until there is nothing to do.
    pub(super) fn settle(&mut self, debt: f64, idle: bool) {
        for _ in 0..1000 {
            if self.step(&[], debt, idle).is_none() {
                return;
            }
        }
        panic!("the chain of plans does not end");
    }

    /// Bytes of the newer runs that repeat the oldest.
    fn repeated(&self) -> u64 {
        let (WritePattern::Overwrite(keys), Some((oldest, newer))) =
            (self.load, self.version.runs().split_last())
        else {
            return 0;
        };
        let share = (oldest.entries() as f64 / keys as f64).min(1.0);
        (newer.iter().map(|r| r.bytes()).sum::<u64>() as f64 * share) as u64
    }

    fn segment_uses(&self) -> Vec<SegmentUse> {
        let mut live = BTreeMap::<u64, u64>::new();
        for r in self.version.tables().flat_map(|t| &t.references) {
            *live.entry(r.segment).or_default() += r.bytes;
        }
        let uses = self.segments.iter().map(|(&segment, &bytes)| {
            let live = live.get(&segment).copied().unwrap_or(0);
            SegmentUse { segment, live, dead: bytes - live.min(bytes) }
        });
        uses.filter(|g| g.live > 0).collect()
    }

    fn apply(&mut self, plan: &Compaction, s: &PickerInput<'_, Arc<TableMeta>>) {
        let list = plan.groups(s);
        let target = match plan.memtables {
            0 => self.version.merged_run(plan.runs.clone()).unwrap(),
            _ => self.version.next_run(),
        };
        let mut removed = Vec::new();
        let mut added = Vec::new();
        for group in &list {
            for &(run, i) in &group.tables {
                let table = &s.runs[run].tables()[i];
                removed.push(table.number);
                if group.trivial_move {
                    added.push((target, table.clone()));
                }
            }
            if !group.trivial_move {
                added.extend(self.compact(group, plan, s).into_iter().map(|t| (target, t)));
            }
        }
        self.written += added.iter().map(|(_, t)| t.size).sum::<u64>();
        for group in list.iter().filter(|c| c.trivial_move) {
            self.written -= group.bytes;
        }
        self.flushed += s.memtables[..plan.memtables].iter().map(|m| m.bytes).sum::<u64>();
        self.largest_plan = self.largest_plan.max(written(&list));
        self.plans += 1;
        self.version = self.version.edit(Some(s.order), &removed, added).unwrap();
    }

    fn compact(
        &mut self,
        group: &OverlapGroup,
        plan: &Compaction,
        s: &PickerInput<'_, Arc<TableMeta>>,
    ) -> Vec<Arc<TableMeta>> {
        // Entries, tombstones and the range, per input run.
        let mut per_run = BTreeMap::<usize, (u64, u64)>::new();
        let (mut low, mut high) = (u64::MAX, 0);
        let (mut min_seq, mut max_seq) = (u64::MAX, 0);
        let mut references = BTreeMap::<u64, u64>::new();
        for &(run, i) in &group.tables {
            let t = &s.runs[run].tables()[i];
            let sums = per_run.entry(run).or_default();
            *sums = (sums.0 + t.entries, sums.1 + t.tombstones);
            (low, high) = (low.min(number(&t.smallest)), high.max(number(&t.largest)));
            (min_seq, max_seq) = (min_seq.min(t.min_seq), max_seq.max(t.max_seq));
            for r in t.references.iter().filter(|r| !plan.relocate.contains(&r.segment)) {
                *references.entry(r.segment).or_default() += r.bytes;
            }
        }
        for &m in &group.memtables {
            let m = &s.memtables[m];
            per_run.insert(usize::MAX - self.seq as usize, (m.bytes / ENTRY, 0));
            (low, high) = (low.min(number(&m.smallest)), high.max(number(&m.largest)));
            (min_seq, max_seq) = (min_seq.min(self.seq), max_seq.max(self.seq));
            self.seq += 1;
        }
        let mut entries: u64 = per_run.values().map(|r| r.0).sum();
        let mut tombstones: u64 = per_run.values().map(|r| r.1).sum();
        if let WritePattern::Overwrite(keys) = self.load {
            let here = keys as f64 * ((high - low) as f64 / KEYS as f64).min(1.0);
            let absent =
                per_run.values().fold(1.0, |p, r| p * (1.0 - (r.0 as f64 / here).min(1.0)));
            entries = entries.min((here * (1.0 - absent)) as u64);
        }
        if plan.at_bottom(s) {
            entries = entries.saturating_sub(tombstones * 2);
            tombstones = 0;
        }
        if entries == 0 {
            return Vec::new();
        }
        let n = (entries * ENTRY).div_ceil(self.table).min(high - low + 1);
        let width = (high - low + 1) / n;
        let share = |total: u64, i: u64| total / n + u64::from(i < total % n);
        let mut out = Vec::new();
        for i in 0..n {
            let first = low + i * width;
            let last = if i + 1 == n { high } else { first + width - 1 };
            let references = references
                .iter()
                .map(|(&segment, &bytes)| SegmentRef { segment, bytes: share(bytes, i) });
            out.push(self.table(first, last, share(entries, i).max(1), share(tombstones, i)));
            let t = out.last_mut().unwrap();
            (t.min_seq, t.max_seq) = (min_seq, max_seq);
            t.references = references.filter(|r| r.bytes > 0).collect();
        }
        out.into_iter().map(Arc::new).collect()
    }

    pub(super) fn table(&mut self, first: u64, last: u64, entries: u64, tombs: u64) -> TableMeta {
        self.next_table += 1;
        TableMeta {
            number: self.next_table,
            size: entries * ENTRY,
            entries,
            tombstones: tombs.min(entries),
            raw_bytes: entries * ENTRY,
            smallest: key(first),
            largest: key(last),
            min_seq: self.seq,
            max_seq: self.seq,
            base_seq: self.seq,
            unique_keys: true,
            references: Vec::new(),
        }
    }

    /// Sequences below this one are in use.
    pub(super) fn skip_seq(&mut self, seq: u64) {
        self.seq = self.seq.max(seq);
    }

    pub(super) fn amplification(&self) -> f64 {
        self.written as f64 / self.flushed as f64
    }

    /// `flushes` memtables of `bytes`, `together` at a time; between them, with time to spare,
    /// everything is picked that there is. Under pressure one step towards fewer runs or less space is.
    pub(super) fn fill(&mut self, flushes: u64, bytes: u64, together: u64, spare: bool) {
        for _ in 0..flushes / together {
            let waiting: Vec<WaitingMemtable> =
                (0..together).map(|_| self.memtable(bytes)).collect();
            let debt = (together * bytes) as f64 / self.cap as f64;
            let plan = self.step(&waiting, debt, false).unwrap();
            assert_eq!(plan.reason, CompactionReason::Flush);
            if spare {
                self.settle(0.0, false);
            } else {
                self.step_with(&[], debt, false, picker::thin_out);
            }
        }
    }
}

/// Bytes written per byte flushed by classic leveled merging with fanout 10: four flushes in
/// level 0, a first level of four flushes, each level ten times the one above. Random new keys.
pub(super) fn leveled(flushes: u64, bytes: u64) -> f64 {
    let bytes = bytes as f64;
    let mut levels = [0.0f64; 8];
    let (mut zero, mut written) = (0, 0.0);
    for _ in 0..flushes {
        written += bytes;
        zero += 1;
        if zero < 4 {
            continue;
        }
        written += 4.0 * bytes + levels[0];
        levels[0] += 4.0 * bytes;
        zero = 0;
        for i in 0..7 {
            let target = 4.0 * bytes * 10f64.powi(i as i32);
            let excess = levels[i] - target;
            if excess > 0.0 {
                written += excess * (1.0 + levels[i + 1] / levels[i]);
                levels[i] -= excess;
                levels[i + 1] += excess;
            }
        }
    }
    written / (bytes * flushes as f64)
}

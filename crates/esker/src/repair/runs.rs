//! Tables into runs: as few as their keys and ages allow, and no more than a reader asks gladly.
//!
//! Where tables overlap, the newer run must have the newer entries. A table goes right above the
//! highest one that it overlaps, from the oldest on; so tables that share no key are one run. Tables
//! that overlap and are neither older nor newer than each other (the inputs of a compaction beside what
//! came out of it, say, when the manifest is lost) are merged into one that is both.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::collections::VecDeque;
use std::sync::Arc;

use super::Repair;
use crate::error::Result;
use crate::filename;
use crate::key::{InternalCursor, KeyOrder, Seq, Stored};
use crate::table::{Table, TableCursor};
use crate::version::TableMeta;

/// More runs than this are merged, the newest into one: as many as a store at rest has.
const MOST_RUNS: usize = 8;

/// Tables that share no key, ascending.
type Level = Vec<TableMeta>;

/// What [`levels`] made of the tables.
enum Levels {
    /// Runs, oldest first.
    Fit(Vec<Level>),
    /// These have to be merged; those do not.
    Tangled(Vec<TableMeta>, Vec<TableMeta>),
}

impl Repair<'_> {
    /// The tables of a keyspace, oldest first, as runs.
    pub(super) fn arrange(
        &mut self,
        id: u32,
        order: &KeyOrder,
        mut tables: Vec<TableMeta>,
    ) -> Result<Vec<Level>> {
        loop {
            match levels(order, tables) {
                Levels::Fit(mut runs) => {
                    if runs.len() > MOST_RUNS {
                        let newest = runs.split_off(MOST_RUNS - 1);
                        runs.push(self.merge(id, order, newest)?);
                    }
                    return Ok(runs);
                }
                Levels::Tangled(tangle, rest) => {
                    let each = tangle.into_iter().map(|t| vec![t]).collect();
                    tables = rest;
                    tables.extend(self.merge(id, order, each)?);
                }
            }
        }
    }

    /// Merges levels, oldest first, into one. Nothing is left out but what is there twice.
    fn merge(&mut self, id: u32, order: &KeyOrder, levels: Vec<Level>) -> Result<Level> {
        let inputs: Vec<u64> = levels.iter().flatten().map(|t| t.number).collect();
        let largest = levels.iter().flatten().max_by_key(|t| t.size).cloned();
        let dictionary = match largest {
            Some(meta) => self.open_table(order, &meta)?.dictionary().cloned(),
            None => None,
        };
        let mut copy = self.copy(id, order.clone(), dictionary);
        let mut heads = BinaryHeap::new();
        for (age, level) in levels.into_iter().enumerate() {
            let mut head = Head { age, order: order.clone(), at: None, rest: level.into() };
            if head.next_table(self)? {
                heads.push(Reverse(head));
            }
        }
        let mut buf = Vec::new();
        while let Some(Reverse(mut head)) = heads.pop() {
            if let Some((t, cursor)) = &head.at {
                let (seq, stored) = (cursor.seq(), cursor.stored());
                let value = if copy.takes(&stored) {
                    stored
                } else {
                    t.decompress(stored, &mut buf)?;
                    Stored::Inline(&buf)
                };
                copy.add(cursor.key(), (seq > 0).then_some(seq), cursor.kind(), value)?;
            }
            if head.step(self)? {
                heads.push(Reverse(head));
            }
        }
        let merged = copy.finish(0)?;
        inputs.into_iter().for_each(|number| self.files.release(number));
        Ok(merged)
    }

    fn open_table(&self, order: &KeyOrder, meta: &TableMeta) -> Result<Arc<Table>> {
        let path = self.files.dir.join(filename::table(meta.number));
        let (number, size) = (meta.number, meta.size);
        let t = Table::open(&*self.files.env, &path, number, size, order.clone(), meta.base_seq)?;
        Ok(Arc::new(t))
    }
}

/// Where a compaction is in one of its levels. The least of them is the entry that comes next.
struct Head {
    /// The higher, the newer: of two entries of one key and sequence the newer counts.
    age: usize,
    order: KeyOrder,
    at: Option<(Arc<Table>, TableCursor)>,
    rest: VecDeque<TableMeta>,
}

impl Head {
    /// To the first entry of the next table; `false` when there is none.
    fn next_table(&mut self, repair: &Repair<'_>) -> Result<bool> {
        self.at = None;
        while let Some(meta) = self.rest.pop_front() {
            let t = repair.open_table(&self.order, &meta)?;
            let mut cursor = t.cursor();
            cursor.first()?;
            if cursor.valid() {
                self.at = Some((t, cursor));
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn step(&mut self, repair: &Repair<'_>) -> Result<bool> {
        if let Some((_, cursor)) = &mut self.at {
            cursor.next()?;
            if cursor.valid() {
                return Ok(true);
            }
        }
        self.next_table(repair)
    }

    fn place(&self) -> (&[u8], Seq) {
        self.at.as_ref().map_or((&[], 0), |(_, cursor)| (cursor.key(), cursor.seq()))
    }
}

impl Ord for Head {
    fn cmp(&self, other: &Head) -> Ordering {
        let ((key, seq), (other_key, other_seq)) = (self.place(), other.place());
        let side = self.order.compare(key, other_key).then(other_seq.cmp(&seq));
        side.then(other.age.cmp(&self.age))
    }
}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Head) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Head {
    fn eq(&self, other: &Head) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Head {}

/// The tables of a level that share a key with `t`, as indexes.
fn overlapping(order: &KeyOrder, level: &Level, t: &TableMeta) -> std::ops::Range<usize> {
    let from = level.partition_point(|o| order.compare(&o.largest, &t.smallest).is_lt());
    let len = level[from..].partition_point(|o| order.compare(&o.smallest, &t.largest).is_le());
    from..from + len
}

/// What tables are sorted by, oldest first. Where sequences say nothing, numbers are the best guess.
pub(super) fn age(t: &TableMeta) -> (Seq, Seq, u64) {
    (t.max_seq, t.min_seq, t.number)
}

fn levels(order: &KeyOrder, mut tables: Vec<TableMeta>) -> Levels {
    tables.sort_by_key(age);
    let mut levels: Vec<Level> = Vec::new();
    for t in &tables {
        let mut above = 0;
        for (at, level) in levels.iter().enumerate() {
            let others = &level[overlapping(order, level, t)];
            if others.iter().any(|o| o.max_seq > t.min_seq) {
                let (tangle, rest) = tangle_around(order, t.clone(), tables);
                return Levels::Tangled(tangle, rest);
            }
            above = if others.is_empty() { above } else { at + 1 };
        }
        if above == levels.len() {
            levels.push(Level::new());
        }
        let level = &mut levels[above];
        let at = overlapping(order, level, t).start;
        level.insert(at, t.clone());
    }
    Levels::Fit(levels)
}

/// Divides the tables into those that cannot be told apart by age from `t`, or from others of them,
/// and the rest. What comes of merging the first is again older or newer than each of the rest.
fn tangle_around(
    order: &KeyOrder,
    t: TableMeta,
    mut rest: Vec<TableMeta>,
) -> (Vec<TableMeta>, Vec<TableMeta>) {
    let mut hull = t;
    let mut tangle = Vec::new();
    loop {
        let belongs = |o: &TableMeta| {
            order.compare(&o.smallest, &hull.largest).is_le()
                && order.compare(&hull.smallest, &o.largest).is_le()
                && o.max_seq > hull.min_seq
                && hull.max_seq > o.min_seq
                || o.number == hull.number
        };
        let (more, others): (Vec<_>, Vec<_>) = rest.into_iter().partition(belongs);
        rest = others;
        if more.is_empty() {
            tangle.sort_by_key(age);
            return (tangle, rest);
        }
        for o in &more {
            hull.min_seq = hull.min_seq.min(o.min_seq);
            hull.max_seq = hull.max_seq.max(o.max_seq);
            if order.compare(&o.smallest, &hull.smallest).is_lt() {
                hull.smallest.clone_from(&o.smallest);
            }
            if order.compare(&o.largest, &hull.largest).is_gt() {
                hull.largest.clone_from(&o.largest);
            }
        }
        tangle.extend(more);
    }
}

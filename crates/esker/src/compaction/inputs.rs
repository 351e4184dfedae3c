//! What one compaction reads, chosen from a super version.

use std::ops::Range;
use std::sync::Arc;

use super::overlap::{self, OverlapGroup};
use crate::memtable::Memtable;
use crate::read::{LoadedTable, SuperVersion};

/// Memtables and neighbouring runs that become one run. It keeps them, until a job has taken over what it reads.
pub(crate) struct CompactionInputs {
    /// Where the runs are from.
    pub super_version: Arc<SuperVersion>,
    /// Sealed memtables, oldest first: the oldest of those that wait.
    pub memtables: Vec<Arc<Memtable>>,
    /// The runs, as indexes; right below the memtables when there are any.
    pub runs: Range<usize>,
    /// What is written of both, in parts that share no key.
    pub groups: Vec<OverlapGroup>,
    /// Segments whose values are to be moved elsewhere: into the tables.
    pub relocate: Vec<u64>,
}

/// The inputs of one group.
pub(super) struct GroupInputs {
    pub memtables: Vec<Arc<Memtable>>,
    /// By input run, newest first.
    pub tables: Vec<Vec<Arc<LoadedTable>>>,
}

impl CompactionInputs {
    /// Numbers of the runs, newest first.
    pub fn run_ids(&self) -> Vec<u64> {
        self.super_version.runs()[self.runs.clone()].iter().map(|r| r.id()).collect()
    }

    /// Whether nothing older lies below the output.
    pub fn at_bottom(&self) -> bool {
        self.runs.end == self.super_version.runs().len()
    }

    /// Bytes written at most, beside values that move.
    pub fn written(&self) -> u64 {
        overlap::written(&self.groups)
    }

    /// Those of them that a flush would write anyway.
    pub fn flushed(&self) -> u64 {
        self.memtables.iter().map(|m| m.inline_bytes()).sum()
    }

    /// Bytes that are likely to be written, beside values that move: each tombstone that reaches the bottom takes an entry
    /// along.
    pub fn likely_written(&self) -> u64 {
        if !self.at_bottom() {
            return self.written();
        }
        let runs = self.super_version.runs();
        let likely = |g: &OverlapGroup| {
            let metas = g.tables.iter().map(|&(run, table)| &runs[run].tables()[table].meta);
            let (entries, dead) =
                metas.fold((0, 0), |(all, dead), m| (all + m.entries, dead + 2 * m.tombstones));
            let share = entries.saturating_sub(dead) as f64 / entries.max(1) as f64;
            (g.bytes as f64 * share) as u64
        };
        self.groups.iter().filter(|g| !g.trivial_move).map(likely).sum()
    }

    /// Whether a part lies in the output run already and meets nothing.
    pub fn stays(&self, group: &OverlapGroup) -> bool {
        let in_output = || group.tables[0].0 + 1 == self.runs.end;
        self.memtables.is_empty() && group.trivial_move && in_output()
    }

    /// What is read for a part.
    pub(super) fn of_group(&self, group: &OverlapGroup) -> GroupInputs {
        let mut tables = vec![Vec::new(); self.runs.len()];
        for &(run, table) in &group.tables {
            let found = &self.super_version.runs()[run].tables()[table];
            tables[run - self.runs.start].push(Arc::clone(found));
        }
        let memtables = group.memtables.iter().map(|m| Arc::clone(&self.memtables[*m])).collect();
        GroupInputs { memtables, tables }
    }
}

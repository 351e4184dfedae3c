//! Where tables end, so that those of different runs end at the same keys.
//!
//! Tables of runs that were written at different times would overlap like bricks: a compaction of the
//! runs is one piece then, however large, and until its end the disk holds its inputs and its output. So
//! there are *guards* (PebblesDB, SOSP 2017), keys at which tables of all runs end, where those of the largest
//! run do, and a compaction falls into pieces that share no key, of which each is installed by itself.
//!
//! Between the last key of a table and the first of the next there is room, and in it lies what tables of other
//! runs begin with. The smallest of these is the guard: were it the largest run's own, runs cut at it would
//! overlap those that were cut before by a few keys, and all by way of each other.
//!
//! A run much smaller than the largest ends its tables at some of the guards only. Which ones the hash of
//! the guard says, so that it does not change when guards come and go, and the guards of a smaller run
//! are among those of a larger.

use std::ops::Bound;
use std::sync::Arc;

use crate::key::{KeyOrder, key_hash};
use crate::version::{HasMeta, Run};

/// The guards of these runs, in order.
pub(crate) fn of_runs<T: HasMeta>(order: &KeyOrder, runs: &[Arc<Run<T>>]) -> Vec<Vec<u8>> {
    let Some(largest) = runs.iter().max_by_key(|r| r.bytes()) else { return Vec::new() };
    let guard = |pair: &[T]| {
        let (last, mut guard) = (&pair[0].meta().largest[..], &pair[1].meta().smallest[..]);
        for run in runs.iter().filter(|r| !Arc::ptr_eq(r, largest)) {
            let behind = run.overlapping(order, Bound::Excluded(last), Bound::Excluded(guard));
            let firsts = run.tables()[behind].iter().map(|t| &t.meta().smallest[..]);
            let mut firsts = firsts.filter(|first| order.compare(first, last).is_gt());
            guard = firsts.next().unwrap_or(guard);
        }
        guard.to_vec()
    };
    largest.tables().windows(2).map(guard).collect()
}

/// The guards at which an output's tables may end, in order.
pub(crate) struct Guards<'a> {
    order: &'a KeyOrder,
    keys: Vec<&'a [u8]>,
    /// The first that has not been passed.
    next: usize,
}

impl<'a> Guards<'a> {
    /// Those of `all` for an output of about `bytes`, in tables of at least `least` bytes where its keys are
    /// spread as they are.
    pub(crate) fn new(
        order: &'a KeyOrder,
        all: &'a [Vec<u8>],
        bytes: u64,
        least: u64,
    ) -> Guards<'a> {
        let parts = all.len() as u64;
        let wanted = (bytes / least.max(1)).max(1);
        // One in 2^level of them.
        let level = (parts / wanted).max(1).ilog2();
        let used = |key: &&[u8]| key_hash(key).trailing_zeros() >= level;
        let keys = all.iter().map(|key| &key[..]).filter(used).collect();
        Guards { order, keys, next: 0 }
    }

    /// Whether a guard lies behind the keys passed so far and not behind `key`, which is passed now.
    pub(crate) fn pass(&mut self, key: &[u8]) -> bool {
        let before = self.next;
        while self.keys.get(self.next).is_some_and(|guard| self.order.compare(guard, key).is_le()) {
            self.next += 1;
        }
        self.next > before
    }

    /// Whether none is to come.
    pub(crate) fn is_passed(&self) -> bool {
        self.next == self.keys.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compaction::simulation::{Sim, WritePattern, number};
    use crate::version::{KeyspaceVersion, TableMeta};

    fn keys(n: u32) -> Vec<Vec<u8>> {
        (0..n).map(|i| (i * 10).to_be_bytes().to_vec()).collect()
    }

    fn guards<'a>(all: &'a [Vec<u8>], bytes: u64, least: u64) -> Guards<'a> {
        Guards::new(&KeyOrder::Bytewise, all, bytes, least)
    }

    #[test]
    fn a_guard_lies_where_tables_of_most_runs_begin() {
        let mut sim = Sim::new(WritePattern::Random, 64 << 20, 32 << 20);
        let mut tables = |run: u64, entries: u64, ranges: &[(u64, u64)]| -> Vec<_> {
            ranges.iter().map(|r| (run, Arc::new(sim.table(r.0, r.1, entries, 0)))).collect()
        };
        let mut added = tables(1, 900, &[(0, 99), (103, 199), (209, 299), (300, 400)]);
        added.extend(tables(2, 10, &[(50, 98), (101, 202), (206, 298)]));
        added.extend(tables(3, 10, &[(60, 99), (102, 203), (207, 250), (299, 300)]));
        let version = KeyspaceVersion::default().edit(None, &[], added).unwrap();
        let found = of_runs(&KeyOrder::Bytewise, version.runs());
        assert_eq!(found.iter().map(|k| number(k)).collect::<Vec<_>>(), [101, 206, 300]);
        assert_eq!(of_runs::<Arc<TableMeta>>(&KeyOrder::Bytewise, &[]), Vec::<Vec<u8>>::new());
    }

    #[test]
    fn an_output_as_large_as_the_largest_run_ends_its_tables_at_each_guard() {
        let firsts = keys(100);
        let mut all = guards(&firsts, 100 << 20, 1 << 20);
        assert_eq!(all.keys.len(), 100);
        let passed: Vec<bool> =
            [0u32, 5, 10, 11, 35, 36, 2000].iter().map(|k| all.pass(&k.to_be_bytes())).collect();
        assert_eq!(passed, [true, false, true, false, true, false, true]);
        assert!(all.is_passed());
    }

    #[test]
    fn the_guards_of_a_smaller_output_are_among_those_of_a_larger() {
        let firsts = keys(1000);
        let mut larger = guards(&firsts, 1 << 40, 1);
        for shift in 1..=6 {
            let smaller = guards(&firsts, 1000 >> shift, 1);
            assert!(smaller.keys.iter().all(|k| larger.keys.contains(k)));
            let expected = 1000 >> (shift - 1);
            assert!((expected / 4..=2 * expected).contains(&smaller.keys.len()), "{shift}");
            larger = smaller;
        }
    }

    #[test]
    fn guards_that_come_do_not_change_which_of_the_others_are_used() {
        let (few, many) = (keys(100), keys(128));
        let (few, many) = (guards(&few, 10, 1), guards(&many, 10, 1));
        assert!(few.keys.iter().all(|k| many.keys.contains(k)));
    }

    #[test]
    fn a_store_without_tables_has_none() {
        assert!(!guards(&[], 1 << 30, 1 << 20).pass(b"a"));
    }
}

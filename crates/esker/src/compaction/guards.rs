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

/// The guards at which an output's tables may end. They are found one after the other as its keys pass: a
/// large store has thousands, and an output of a few keys asks for those near it only.
pub(crate) struct Guards<'a, T> {
    order: &'a KeyOrder,
    runs: &'a [Arc<Run<T>>],
    /// Tables of the largest run: a guard lies behind each but the last.
    tables: &'a [T],
    /// Of the guards one in 2^level is used.
    level: u32,
    /// The table behind which the search goes on, once a key has passed.
    at: Option<usize>,
    /// The next guard in use.
    next: Option<Vec<u8>>,
}

impl<'a, T: HasMeta> Guards<'a, T> {
    /// The guards of `runs` for an output of at most `bytes`, in tables of at least `least` bytes where its
    /// keys are spread as those of the largest run are. An output of less than that is one table.
    pub(crate) fn new(
        order: &'a KeyOrder,
        runs: &'a [Arc<Run<T>>],
        bytes: u64,
        least: u64,
    ) -> Guards<'a, T> {
        let largest = runs.iter().max_by_key(|r| r.bytes()).filter(|_| bytes >= least);
        let tables = largest.map_or(&[][..], |r| r.tables());
        let wanted = (bytes / least.max(1)).max(1);
        let level = (tables.len().saturating_sub(1) as u64 / wanted).max(1).ilog2();
        Guards { order, runs, tables, level, at: None, next: None }
    }

    /// Whether a guard lies behind the keys passed so far and not behind `key`, which is passed now.
    pub(crate) fn pass(&mut self, key: &[u8]) -> bool {
        if self.at.is_none() {
            let begins = |t: &T| self.order.compare(&t.meta().smallest, key).is_le();
            self.at = Some(self.tables.partition_point(begins).saturating_sub(1));
            self.advance();
        }
        let mut passed = false;
        while self.next.as_ref().is_some_and(|guard| self.order.compare(guard, key).is_le()) {
            passed = true;
            self.advance();
        }
        passed
    }

    /// Whether none is to come.
    pub(crate) fn is_passed(&self) -> bool {
        self.next.is_none()
    }

    /// Goes to the next guard in use.
    fn advance(&mut self) {
        let at = self.at.unwrap_or(0);
        let rest = self.tables.windows(2).enumerate().skip(at);
        let mut guards = rest.map(|(i, pair)| (i + 1, self.between(pair)));
        let used = guards.find(|(_, guard)| key_hash(guard).trailing_zeros() >= self.level);
        self.at = Some(used.map_or(self.tables.len(), |(behind, _)| behind));
        self.next = used.map(|(_, guard)| guard.to_vec());
    }

    /// The guard between two neighbours of the largest run.
    fn between(&self, pair: &'a [T]) -> &'a [u8] {
        let (last, mut guard) = (&pair[0].meta().largest[..], &pair[1].meta().smallest[..]);
        for run in self.runs {
            let behind = run.overlapping(self.order, Bound::Excluded(last), Bound::Excluded(guard));
            let mut firsts = run.tables()[behind].iter().map(|t| &t.meta().smallest[..]);
            guard = firsts.find(|first| self.order.compare(first, last).is_gt()).unwrap_or(guard);
        }
        guard
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compaction::simulation::{Sim, WritePattern, number};
    use crate::version::{KeyspaceVersion, TableMeta};

    type Version = KeyspaceVersion<Arc<TableMeta>>;

    /// A version of runs, oldest first, whose tables have these first and last keys and so many entries.
    fn version(runs: &[(u64, &[(u64, u64)])]) -> Version {
        let mut sim = Sim::new(WritePattern::Random, 64 << 20, 32 << 20);
        let added = runs.iter().zip(1..).flat_map(|((entries, tables), run)| {
            tables.iter().map(move |table| (run, *entries, *table)).collect::<Vec<_>>()
        });
        let added = added
            .map(|(run, entries, (first, last))| {
                (run, Arc::new(sim.table(first, last, entries, 0)))
            })
            .collect();
        KeyspaceVersion::default().edit(None, &[], added).unwrap()
    }

    /// One run of `n` tables that begin at 0, 10, 20, ...
    fn one_run(n: u64) -> Version {
        version(&[(10, &(0..n).map(|i| (i * 10, i * 10 + 5)).collect::<Vec<_>>())])
    }

    fn guards(version: &Version, bytes: u64, least: u64) -> Guards<'_, Arc<TableMeta>> {
        Guards::new(&KeyOrder::Bytewise, version.runs(), bytes, least)
    }

    /// All guards in use.
    fn keys(version: &Version, bytes: u64, least: u64) -> Vec<u64> {
        let mut guards = guards(version, bytes, least);
        guards.advance();
        let mut keys = Vec::new();
        while let Some(key) = guards.next.take() {
            keys.push(number(&key));
            guards.advance();
        }
        keys
    }

    #[test]
    fn a_guard_lies_where_tables_of_most_runs_begin() {
        let version = version(&[
            (900, &[(0, 99), (103, 199), (209, 299), (300, 400)]),
            (10, &[(50, 98), (101, 202), (206, 298)]),
            (10, &[(60, 99), (102, 203), (207, 250), (299, 300)]),
        ]);
        assert_eq!(keys(&version, 1 << 30, 1), [101, 206, 300]);
    }

    #[test]
    fn an_output_as_large_as_the_largest_run_ends_its_tables_at_each_guard() {
        let version = one_run(100);
        assert_eq!(keys(&version, 100 << 20, 1 << 20).len(), 99);
        let mut all = guards(&version, 100 << 20, 1 << 20);
        let key = |k: u64| k.to_be_bytes();
        let passed: Vec<bool> =
            [0, 5, 10, 11, 35, 36, 2000].iter().map(|k| all.pass(&key(*k))).collect();
        assert_eq!(passed, [false, false, true, false, true, false, true]);
        assert!(all.is_passed());
    }

    #[test]
    fn an_output_begins_at_the_guards_near_its_first_key() {
        let version = one_run(100);
        let mut all = guards(&version, 100 << 20, 1 << 20);
        assert!(!all.pass(&705u64.to_be_bytes()));
        assert_eq!(all.next.as_deref(), Some(&710u64.to_be_bytes()[..]));
        assert_eq!(all.at, Some(71));
    }

    #[test]
    fn the_guards_of_a_smaller_output_are_among_those_of_a_larger() {
        let version = one_run(1001);
        let mut larger = keys(&version, 1 << 40, 1);
        for shift in 1..=6 {
            let smaller = keys(&version, 1000 >> shift, 1);
            assert!(smaller.iter().all(|k| larger.contains(k)));
            let expected = 1000 >> (shift - 1);
            assert!((expected / 4..=2 * expected).contains(&smaller.len()), "{shift}");
            larger = smaller;
        }
    }

    #[test]
    fn guards_that_come_do_not_change_which_of_the_others_are_used() {
        let (few, many) = (keys(&one_run(101), 10, 1), keys(&one_run(129), 10, 1));
        assert!(!few.is_empty() && few.iter().all(|k| many.contains(k)));
    }

    #[test]
    fn an_output_of_less_than_a_table_has_none_and_neither_has_a_store_without_tables() {
        assert!(!guards(&Version::default(), 1 << 30, 1 << 20).pass(b"a"));
        let version = one_run(100);
        let mut none = guards(&version, (1 << 20) - 1, 1 << 20);
        assert!(none.is_passed() && !none.pass(&2000u64.to_be_bytes()));
    }
}

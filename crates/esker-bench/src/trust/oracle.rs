//! What must be in a store after its process was killed: every operation that was acknowledged, the
//! one under way whole or not at all, nothing else.

use super::entry::told;
use super::script::Op;
use std::collections::{BTreeMap, BTreeSet};

/// The last operation on a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Last {
    op: u64,
    there: bool,
}

/// What is known of a store.
#[derive(Debug)]
pub struct Oracle {
    seed: u64,
    keys: BTreeMap<u32, Last>,
}

/// How a store differs from what it must be.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Acknowledged operations whose effect is not there. One whose keys were all written again later
    /// cannot be missed.
    pub lost: u64,
    /// Batches of which some entries are there and others not.
    pub half: u64,
    /// Entries that no operation up to the kill wrote.
    pub wrong: u64,
    /// The first of all these, in words.
    pub first: Option<String>,
}

impl Oracle {
    /// Of a store that is empty.
    pub fn new(seed: u64) -> Self {
        Oracle { seed, keys: BTreeMap::new() }
    }

    /// An operation was acknowledged.
    pub fn acknowledged(&mut self, number: u64) {
        let op = Op::of(self.seed, number);
        let last = Last { op: number, there: op.writes() };
        self.keys.extend(op.keys().iter().map(|key| (*key, last)));
    }

    /// Compares with what was found, which write of each key that is there; `under_way` is the number
    /// of the operation that was not acknowledged. Goes on from what was found.
    pub fn compare(&mut self, found: &BTreeMap<u32, u64>, under_way: u64) -> Verdict {
        self.take_in(found, under_way);
        let mut verdict = Verdict::default();
        let (mut lost, mut kept) = (BTreeSet::new(), BTreeSet::new());
        let all: BTreeSet<u32> = self.keys.keys().chain(found.keys()).copied().collect();
        for key in all {
            let expected = self.keys.get(&key).copied().unwrap_or(Last { op: 0, there: false });
            let (is, must) = (found.get(&key).copied(), expected.there.then_some(expected.op));
            if is == must {
                if expected.op > 0 {
                    kept.insert(expected.op);
                }
                continue;
            }
            let older = is.is_none_or(|op| op < expected.op && self.wrote(op, key));
            if older {
                lost.insert(expected.op);
            } else {
                verdict.wrong += 1;
            }
            let what = if older { "lost" } else { "wrong" };
            verdict.first.get_or_insert_with(|| {
                let (is, must, by) = (told(is), told(must), expected.op);
                format!("{what}: key {key} gives {is} and must give {must}, by operation {by}")
            });
            let last = Last { op: is.unwrap_or(under_way), there: is.is_some() };
            self.keys.insert(key, last);
        }
        // The one under way is no loss, but half of it is half a batch.
        let half = lost.intersection(&kept).filter(|number| self.is_batch(**number)).count();
        verdict.half = half as u64;
        lost.remove(&under_way);
        verdict.lost = lost.len() as u64;
        verdict
    }

    /// If any of the operation under way can be seen, all of it must be.
    fn take_in(&mut self, found: &BTreeMap<u32, u64>, under_way: u64) {
        let op = Op::of(self.seed, under_way);
        let seen = |key: &u32| match op.writes() {
            true => found.get(key) == Some(&under_way),
            false => !found.contains_key(key),
        };
        if op.keys().iter().any(seen) {
            self.acknowledged(under_way);
        }
    }

    fn wrote(&self, number: u64, key: u32) -> bool {
        let op = Op::of(self.seed, number);
        number > 0 && op.writes() && op.keys().contains(&key)
    }

    fn is_batch(&self, number: u64) -> bool {
        matches!(Op::of(self.seed, number), Op::Batch(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEED: u64 = 9;

    /// What is in a store that did all operations up to `last`.
    fn store(last: u64) -> BTreeMap<u32, u64> {
        let mut found = BTreeMap::new();
        for number in 1..=last {
            let op = Op::of(SEED, number);
            for key in op.keys() {
                match op.writes() {
                    true => found.insert(*key, number),
                    false => found.remove(key),
                };
            }
        }
        found
    }

    fn oracle(last: u64) -> Oracle {
        let mut oracle = Oracle::new(SEED);
        (1..=last).for_each(|number| oracle.acknowledged(number));
        oracle
    }

    fn next(from: u64, like: fn(&Op) -> bool) -> u64 {
        (from..).find(|number| like(&Op::of(SEED, *number))).unwrap()
    }

    #[test]
    fn with_or_without_the_operation_under_way_it_is_right() {
        for last in 1..300 {
            for done in [last, last + 1] {
                let mut oracle = oracle(last);
                assert_eq!(oracle.compare(&store(done), last + 1), Verdict::default(), "{last}");
                // It goes on from there.
                let (mut more, again) = (store(done), last + 2);
                oracle.acknowledged(again);
                let op = Op::of(SEED, again);
                for key in op.keys() {
                    more.remove(key);
                    if op.writes() {
                        more.insert(*key, again);
                    }
                }
                assert_eq!(oracle.compare(&more, again + 1), Verdict::default(), "{last}");
            }
        }
    }

    #[test]
    fn a_lost_put_a_lost_delete_and_a_lost_batch_are_lost() {
        let put = next(100, |op| matches!(op, Op::Put(_)));
        let Op::Put(key) = Op::of(SEED, put) else { unreachable!() };
        let mut found = store(put);
        found.remove(&key);
        let verdict = oracle(put).compare(&found, put + 1);
        assert_eq!((verdict.lost, verdict.half, verdict.wrong), (1, 0, 0), "{verdict:?}");

        // A delete of a key that was there.
        let delete = (100..)
            .find(|n| match Op::of(SEED, *n) {
                Op::Delete(key) => store(n - 1).contains_key(&key),
                _ => false,
            })
            .unwrap();
        let verdict = oracle(delete).compare(&store(delete - 1), delete + 1);
        assert_eq!((verdict.lost, verdict.half, verdict.wrong), (1, 0, 0), "{verdict:?}");

        let batch = next(100, |op| matches!(op, Op::Batch(_)));
        let verdict = oracle(batch).compare(&store(batch - 1), batch + 1);
        assert_eq!((verdict.lost, verdict.half, verdict.wrong), (1, 0, 0), "{verdict:?}");
    }

    #[test]
    fn half_a_batch_is_seen_acknowledged_or_not() {
        let batch = next(100, |op| matches!(op, Op::Batch(_)));
        let Op::Batch(keys) = Op::of(SEED, batch) else { unreachable!() };
        let mut found = store(batch - 1);
        found.insert(keys[3], batch);
        let verdict = oracle(batch - 1).compare(&found, batch);
        assert_eq!((verdict.lost, verdict.half, verdict.wrong), (0, 1, 0), "{verdict:?}");
        let verdict = oracle(batch).compare(&found, batch + 1);
        assert_eq!((verdict.lost, verdict.half, verdict.wrong), (1, 1, 0), "{verdict:?}");
    }

    #[test]
    fn what_nobody_wrote_or_not_yet_is_wrong() {
        let last = next(100, |op| matches!(op, Op::Put(_)));
        let Op::Put(key) = Op::of(SEED, last) else { unreachable!() };
        for version in [last + 5, last - 1] {
            let mut found = store(last);
            assert_eq!(found.insert(key, version), Some(last));
            let verdict = oracle(last).compare(&found, last + 1);
            let of_that_key = Op::of(SEED, version).keys().contains(&key);
            assert!(!of_that_key && verdict.wrong == 1 && verdict.lost == 0, "{verdict:?}");
        }
    }
}

//! Gaps in the order of their keys: where they are kept, joined, cut and given up. Pure.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Bound;

use crate::key::{KeyOrder, Seq};

/// About what a gap takes beside its keys, in bytes.
const GAP_BYTES: usize = 128;

/// The key behind a gap; `None` is behind all keys.
#[derive(Clone)]
struct EndKey {
    key: Option<Vec<u8>>,
    order: KeyOrder,
}

impl EndKey {
    fn new(order: &KeyOrder, key: Option<Vec<u8>>) -> EndKey {
        EndKey { key, order: order.clone() }
    }
}

impl Ord for EndKey {
    fn cmp(&self, other: &EndKey) -> Ordering {
        match (&self.key, &other.key) {
            (Some(a), Some(b)) => self.order.compare(a, b),
            (a, b) => a.is_none().cmp(&b.is_none()),
        }
    }
}

impl PartialOrd for EndKey {
    fn partial_cmp(&self, other: &EndKey) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for EndKey {
    fn eq(&self, other: &EndKey) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for EndKey {}

/// What is known of a gap, but for the key behind it.
#[derive(Clone)]
pub(super) struct Gap {
    /// The key before it; `None` is before all keys.
    after: Option<Vec<u8>>,
    pub(super) since: Seq,
    /// Whether it was of use since it was last considered for giving up, and ever.
    used: bool,
    ever_used: bool,
}

/// A gap that was found.
pub(super) struct FoundGap<'a> {
    gap: &'a mut Gap,
    before: &'a Option<Vec<u8>>,
}

impl FoundGap<'_> {
    pub(super) fn since(&self) -> Seq {
        self.gap.since
    }

    /// The key at the end that a walk comes to. Whether the gap was of use for the first time is said too.
    pub(super) fn leap(self, forward: bool) -> (Option<Vec<u8>>, bool) {
        self.gap.used = true;
        let first_use = !std::mem::replace(&mut self.gap.ever_used, true);
        let end = if forward { self.before } else { &self.gap.after };
        (end.clone(), first_use)
    }
}

/// Gaps that share no key.
#[derive(Default)]
pub(super) struct GapSet {
    by_end: BTreeMap<EndKey, Gap>,
    bytes: usize,
    /// The last that was considered for giving up: the next is behind it.
    hand: Option<EndKey>,
}

/// Whether one gap begins before another ends.
fn begins_before(order: &KeyOrder, after: &Option<Vec<u8>>, before: &Option<Vec<u8>>) -> bool {
    match (after, before) {
        (Some(a), Some(b)) => order.compare(a, b).is_lt(),
        _ => true,
    }
}

fn bytes_of(after: &Option<Vec<u8>>, before: &Option<Vec<u8>>) -> usize {
    let len = |end: &Option<Vec<u8>>| end.as_ref().map_or(0, Vec::len);
    GAP_BYTES + len(after) + len(before)
}

impl GapSet {
    pub(super) fn is_empty(&self) -> bool {
        self.by_end.is_empty()
    }

    /// The gap that `key` is in.
    pub(super) fn find(&mut self, order: &KeyOrder, key: &[u8]) -> Option<FoundGap<'_>> {
        if self.is_empty() {
            return None;
        }
        let from = Bound::Excluded(EndKey::new(order, Some(key.to_vec())));
        let (end, gap) = self.by_end.range_mut((from, Bound::Unbounded)).next()?;
        let inside = gap.after.as_ref().is_none_or(|a| order.compare(a, key).is_lt());
        inside.then_some(FoundGap { gap, before: &end.key })
    }

    /// The gap before all keys.
    pub(super) fn first(&mut self) -> Option<FoundGap<'_>> {
        let (end, gap) = self.by_end.iter_mut().next()?;
        gap.after.is_none().then_some(FoundGap { gap, before: &end.key })
    }

    /// The gap behind all keys.
    pub(super) fn last(&mut self) -> Option<FoundGap<'_>> {
        let (end, gap) = self.by_end.iter_mut().next_back()?;
        end.key.is_none().then_some(FoundGap { gap, before: &end.key })
    }

    /// Adds a gap. Those that it overlaps become one with it, which is as true as the youngest of them.
    pub(super) fn add(
        &mut self,
        order: &KeyOrder,
        since: Seq,
        after: Option<Vec<u8>>,
        before: Option<Vec<u8>>,
    ) {
        let mut new = Gap { after, since, used: false, ever_used: false };
        let mut end = EndKey::new(order, before);
        loop {
            let from = match &new.after {
                Some(after) => Bound::Excluded(EndKey::new(order, Some(after.clone()))),
                None => Bound::Unbounded,
            };
            let Some((met, gap)) = self.by_end.range((from, Bound::Unbounded)).next() else {
                break;
            };
            if !begins_before(order, &gap.after, &end.key) {
                break;
            }
            let met = met.clone();
            let Some(gap) = self.remove(&met) else { return self.clear() };
            new.since = new.since.max(gap.since);
            new.used |= gap.used;
            new.ever_used |= gap.ever_used;
            let begins_earlier = match (&gap.after, &new.after) {
                (Some(a), Some(b)) => order.compare(a, b).is_lt(),
                (earlier, _) => earlier.is_none(),
            };
            if begins_earlier {
                new.after = gap.after;
            }
            end = end.max(met);
        }
        self.insert(end, new);
    }

    /// A put: of a gap that it falls into two are left.
    pub(super) fn cut(&mut self, order: &KeyOrder, key: &[u8]) {
        let Some(FoundGap { gap, .. }) = self.find(order, key) else { return };
        let rest = gap.clone();
        let left = gap.after.replace(key.to_vec());
        self.bytes = (self.bytes + key.len()).saturating_sub(left.map_or(0, |key| key.len()));
        self.insert(EndKey::new(order, Some(key.to_vec())), rest);
    }

    fn insert(&mut self, end: EndKey, gap: Gap) {
        self.bytes += bytes_of(&gap.after, &end.key);
        self.by_end.insert(end, gap);
    }

    fn remove(&mut self, end: &EndKey) -> Option<Gap> {
        let gap = self.by_end.remove(end)?;
        self.bytes = self.bytes.saturating_sub(bytes_of(&gap.after, &end.key));
        Some(gap)
    }

    pub(super) fn clear(&mut self) {
        *self = GapSet::default();
    }

    /// Gives up gaps until they take at most so many bytes, first those of which nobody made use for longest, or
    /// nearly so. How many of these never were of use.
    pub(super) fn shrink(&mut self, most: usize) -> u32 {
        let mut useless = 0;
        while self.bytes > most {
            if self.by_end.is_empty() {
                self.clear();
                break;
            }
            let from = self.hand.take().map_or(Bound::Unbounded, Bound::Excluded);
            let Some((end, gap)) = self.by_end.range_mut((from, Bound::Unbounded)).next() else {
                continue;
            };
            let end = end.clone();
            if !std::mem::take(&mut gap.used) {
                // An order that contradicts itself may not find what is there.
                let Some(gap) = self.remove(&end) else {
                    self.clear();
                    break;
                };
                useless += u32::from(!gap.ever_used);
            }
            self.hand = Some(end);
        }
        useless
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::util::Rng;
    use KeyOrder::Bytewise;

    /// 0 and 100 stand for the ends of the keyspace.
    fn end(n: usize) -> Option<Vec<u8>> {
        (n != 0 && n != 100).then(|| vec![n as u8])
    }

    /// A model knows for each key between 0 and 100 since when it is known to be dead.
    #[test]
    fn gaps_that_are_added_joined_and_cut_are_those_of_a_model() {
        for seed in 0..200 {
            let mut rng = Rng::new(seed);
            let mut gaps = GapSet::default();
            let mut dead: BTreeSet<usize> = BTreeSet::new();
            for seq in 1..60 {
                if rng.below(3) == 0 {
                    let key = 1 + rng.below(99);
                    gaps.cut(&Bytewise, &[key as u8]);
                    dead.remove(&key);
                } else {
                    let after = rng.below(99);
                    let before = (after + 2 + rng.below(15)).min(100);
                    gaps.add(&Bytewise, seq, end(after), end(before));
                    dead.extend(after + 1..before);
                }
                for key in 1..100 {
                    let found = gaps.find(&Bytewise, &[key as u8]);
                    assert_eq!(found.is_some(), dead.contains(&key), "seed {seed}, key {key}");
                    let Some(found) = found else { continue };
                    assert!(found.since() <= seq);
                    let (forward, _) = found.leap(true);
                    // All up to the end is dead; the end itself is not, or nothing lies behind it.
                    let to = forward.map_or(100, |k| usize::from(k[0]));
                    assert!((key..to).all(|n| dead.contains(&n)), "seed {seed}, {key} to {to}");
                    let (back, _) = gaps.find(&Bytewise, &[key as u8]).unwrap().leap(false);
                    let to = back.map_or(0, |k| usize::from(k[0]));
                    assert!((to + 1..key).all(|n| dead.contains(&n)), "seed {seed}, {to} to {key}");
                }
                assert!(gaps.by_end.len() < 100);
            }
            let sum: usize = gaps.by_end.iter().map(|(e, g)| bytes_of(&g.after, &e.key)).sum();
            assert_eq!(gaps.bytes, sum, "seed {seed}");
        }
    }

    #[test]
    fn what_overlaps_is_as_old_as_the_youngest_of_it() {
        let mut gaps = GapSet::default();
        gaps.add(&Bytewise, 9, end(10), end(20));
        gaps.add(&Bytewise, 5, end(15), end(30));
        assert_eq!(gaps.find(&Bytewise, &[29]).unwrap().since(), 9);
        assert_eq!(gaps.find(&Bytewise, &[29]).unwrap().leap(false).0, end(10));
    }

    #[test]
    fn however_long_its_keys_are_a_set_takes_no_more_than_it_may() {
        for long in [0, 500, 60_000] {
            let mut gaps = GapSet::default();
            let key = |n: usize| [format!("{n:04}").into_bytes(), vec![b'k'; long]].concat();
            let most = 200_000;
            let mut useless = 0;
            for n in (0..4000).step_by(2) {
                gaps.add(&Bytewise, 1, Some(key(n)), Some(key(n + 1)));
                // One of them is of use all the time.
                assert!(gaps.find(&Bytewise, &key(0)[..4]).is_none());
                let first = [&key(0)[..], b"x"].concat();
                gaps.find(&Bytewise, &first).expect("in use").leap(true);
                useless += gaps.shrink(most);
                assert!(gaps.bytes <= most);
            }
            assert_eq!(useless as usize + gaps.by_end.len(), 2000);
        }
    }
}

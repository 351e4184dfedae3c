//! Gaps in the order of their keys: where they are kept, joined, cut and given up. Pure.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Bound;

use super::boundary::Boundary;
use crate::key::{KeyOrder, Seq};

/// About what a gap takes beside its keys, in bytes.
const GAP_BYTES: usize = 128;
/// Bytes of a key whose memory is kept from one look to the next.
const LONGEST_PROBE: usize = 512;

/// Where a gap ends.
#[derive(Clone)]
struct GapEnd {
    at: Boundary,
    order: KeyOrder,
}

impl GapEnd {
    fn new(order: &KeyOrder, at: Boundary) -> GapEnd {
        GapEnd { at, order: order.clone() }
    }
}

impl Ord for GapEnd {
    fn cmp(&self, other: &GapEnd) -> Ordering {
        self.at.compare(&self.order, &other.at)
    }
}

impl PartialOrd for GapEnd {
    fn partial_cmp(&self, other: &GapEnd) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for GapEnd {
    fn eq(&self, other: &GapEnd) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for GapEnd {}

/// What is known of a gap, but for where it ends.
#[derive(Clone)]
struct Gap {
    from: Boundary,
    since: Seq,
    /// Whether it was of use since it was last considered for giving up, and ever.
    used: bool,
    ever_used: bool,
}

/// A gap that was found.
pub(super) struct FoundGap<'a> {
    gap: &'a mut Gap,
    to: &'a Boundary,
}

impl FoundGap<'_> {
    pub(super) fn since(&self) -> Seq {
        self.gap.since
    }

    /// The end that a walk comes to. Whether the gap was of use for the first time is said too.
    pub(super) fn leap(self, forward: bool) -> (Boundary, bool) {
        self.gap.used = true;
        let first_use = !std::mem::replace(&mut self.gap.ever_used, true);
        let end = if forward { self.to } else { &self.gap.from };
        (end.clone(), first_use)
    }
}

/// Gaps that neither overlap nor touch.
#[derive(Default)]
pub(super) struct GapSet {
    by_end: BTreeMap<GapEnd, Gap>,
    bytes: usize,
    /// The last that was considered for giving up: the next is behind it.
    hand: Option<GapEnd>,
    /// What was looked for last, kept for its memory.
    probe: Option<GapEnd>,
}

fn bytes_of(from: &Boundary, to: &Boundary) -> usize {
    GAP_BYTES + from.len() + to.len()
}

impl GapSet {
    pub(super) fn is_empty(&self) -> bool {
        self.by_end.is_empty()
    }

    /// Whether the first one that ends at `from` or behind it is known since `seq` or longer.
    pub(super) fn reaches_back_to(&self, order: &KeyOrder, seq: Seq, from: &Boundary) -> bool {
        let from = Bound::Included(GapEnd::new(order, from.clone()));
        let first = self.by_end.range((from, Bound::Unbounded)).next();
        first.is_some_and(|(_, gap)| gap.since <= seq)
    }

    /// The gap that `key` is in.
    pub(super) fn find(&mut self, order: &KeyOrder, key: &[u8]) -> Option<FoundGap<'_>> {
        if self.is_empty() {
            return None;
        }
        let long;
        let from = match &mut self.probe {
            _ if key.len() > LONGEST_PROBE => {
                long = GapEnd::new(order, Boundary::Behind(key.to_vec()));
                &long
            }
            Some(GapEnd { at: Boundary::Behind(own), .. }) => {
                own.clear();
                own.extend_from_slice(key);
                self.probe.as_ref()?
            }
            other => other.insert(GapEnd::new(order, Boundary::Behind(key.to_vec()))),
        };
        let (end, gap) = self.by_end.range_mut((Bound::Included(from), Bound::Unbounded)).next()?;
        gap.from.is_before(order, key).then_some(FoundGap { gap, to: &end.at })
    }

    /// The gap before all keys.
    pub(super) fn first(&mut self) -> Option<FoundGap<'_>> {
        let (end, gap) = self.by_end.iter_mut().next()?;
        (gap.from == Boundary::Front).then_some(FoundGap { gap, to: &end.at })
    }

    /// The gap behind all keys.
    pub(super) fn last(&mut self) -> Option<FoundGap<'_>> {
        let (end, gap) = self.by_end.iter_mut().next_back()?;
        (end.at == Boundary::Back).then_some(FoundGap { gap, to: &end.at })
    }

    /// Adds a gap. Those that it overlaps or touches become one with it, which is as true as the youngest of them.
    pub(super) fn add(&mut self, order: &KeyOrder, since: Seq, from: Boundary, to: Boundary) {
        let mut new = Gap { from, since, used: false, ever_used: false };
        let mut end = GapEnd::new(order, to);
        loop {
            let from = GapEnd::new(order, std::mem::replace(&mut new.from, Boundary::Front));
            let met = self.by_end.range((Bound::Included(&from), Bound::Unbounded)).next();
            let met = met.filter(|(_, gap)| gap.from.compare(order, &end.at).is_le());
            let met = met.map(|(met, _)| met.clone());
            new.from = from.at;
            let Some(met) = met else { break };
            // An order that contradicts itself may not find what is there.
            let Some(gap) = self.remove(&met) else { return self.clear() };
            new = Gap {
                from: new.from.min(order, gap.from),
                since: new.since.max(gap.since),
                used: new.used | gap.used,
                ever_used: new.ever_used | gap.ever_used,
            };
            end = end.max(met);
        }
        self.insert(end, new);
    }

    /// A put: of a gap that it falls into the parts on both sides are left.
    pub(super) fn cut(&mut self, order: &KeyOrder, key: &[u8]) {
        let Some(FoundGap { gap, to }) = self.find(order, key) else { return };
        let (before, behind) = (Boundary::Before(key.to_vec()), Boundary::Behind(key.to_vec()));
        let left = gap.clone();
        if behind.compare(order, to).is_lt() {
            gap.from = behind;
            self.bytes = (self.bytes + key.len()).saturating_sub(left.from.len());
        } else {
            let end = GapEnd::new(order, to.clone());
            self.remove(&end);
        }
        if left.from.compare(order, &before).is_lt() {
            self.insert(GapEnd::new(order, before), left);
        }
    }

    fn insert(&mut self, end: GapEnd, gap: Gap) {
        self.bytes += bytes_of(&gap.from, &end.at);
        self.by_end.insert(end, gap);
    }

    fn remove(&mut self, end: &GapEnd) -> Option<Gap> {
        let gap = self.by_end.remove(end)?;
        self.bytes = self.bytes.saturating_sub(bytes_of(&gap.from, &end.at));
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
    use Boundary::{Back, Before, Behind, Front};
    use KeyOrder::Bytewise;

    /// Places between 0, which is before all keys, and 200, behind them: key n lies between 2n and 2n + 1.
    fn boundary(place: usize) -> Boundary {
        let key = vec![(place / 2) as u8];
        match place {
            0 => Front,
            200 => Back,
            _ if place.is_multiple_of(2) => Before(key),
            _ => Behind(key),
        }
    }

    fn place(boundary: &Boundary) -> usize {
        match boundary {
            Front => 0,
            Before(key) => usize::from(key[0]) * 2,
            Behind(key) => usize::from(key[0]) * 2 + 1,
            Back => 200,
        }
    }

    /// A model knows which keys between 0 and 100 are known to be dead.
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
                    let from = rng.below(198);
                    let to = (from + 1 + rng.below(30)).min(200);
                    gaps.add(&Bytewise, seq, boundary(from), boundary(to));
                    dead.extend((1..100).filter(|key| from <= 2 * key && 2 * key < to));
                }
                for key in 1..100 {
                    let found = gaps.find(&Bytewise, &[key as u8]);
                    assert_eq!(found.is_some(), dead.contains(&key), "seed {seed}, key {key}");
                    let Some(found) = found else { continue };
                    assert!(found.since() <= seq);
                    // All up to the end is dead.
                    let to = place(&found.leap(true).0).div_ceil(2);
                    assert!((key..to).all(|n| dead.contains(&n)), "seed {seed}, {key} to {to}");
                    let (back, _) = gaps.find(&Bytewise, &[key as u8]).unwrap().leap(false);
                    let from = place(&back).div_ceil(2);
                    assert!((from.max(1)..key).all(|n| dead.contains(&n)), "seed {seed}, {from}");
                }
                assert!(gaps.by_end.len() < 100);
            }
            let sum: usize = gaps.by_end.iter().map(|(e, g)| bytes_of(&g.from, &e.at)).sum();
            assert_eq!(gaps.bytes, sum, "seed {seed}");
        }
    }

    #[test]
    fn what_overlaps_or_touches_is_as_old_as_the_youngest_of_it() {
        let mut gaps = GapSet::default();
        gaps.add(&Bytewise, 9, boundary(20), boundary(40));
        gaps.add(&Bytewise, 5, boundary(30), boundary(60));
        gaps.add(&Bytewise, 7, boundary(60), boundary(70));
        for (from, seq, known) in [(20, 9, true), (70, 9, true), (20, 8, false), (71, 9, false)] {
            let found = gaps.reaches_back_to(&Bytewise, seq, &boundary(from));
            assert_eq!(found, known, "from {from}, {seq}");
        }
        assert_eq!(gaps.find(&Bytewise, &[34]).unwrap().since(), 9);
        assert_eq!(gaps.find(&Bytewise, &[34]).unwrap().leap(false).0, boundary(20));
        // Between those two lives a key.
        gaps.add(&Bytewise, 10, boundary(71), boundary(80));
        assert_eq!(gaps.find(&Bytewise, &[34]).unwrap().leap(true).0, boundary(70));
        assert_eq!(gaps.find(&Bytewise, &[36]).unwrap().leap(false).0, boundary(71));
    }

    #[test]
    fn however_long_its_keys_are_a_set_takes_no_more_than_it_may() {
        for long in [0, 500, 60_000] {
            let mut gaps = GapSet::default();
            let key = |n: usize| [format!("{n:04}").into_bytes(), vec![b'k'; long]].concat();
            let most = 200_000;
            let mut useless = 0;
            for n in (0..4000).step_by(2) {
                gaps.add(&Bytewise, 1, Behind(key(n)), Before(key(n + 1)));
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

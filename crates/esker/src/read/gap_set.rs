//! Gaps in the order of their keys: where they are kept, joined, cut and given up. Pure.

use super::boundary::Boundary;
use crate::key::{KeyOrder, Seq};

/// About what a gap takes beside its keys, in bytes.
const GAP_BYTES: usize = 128;

/// Nothing lives between two places.
#[derive(Clone)]
pub(super) struct Gap {
    from: Boundary,
    to: Boundary,
    since: Seq,
    /// Whether it was of use since it was last considered for giving up, and ever.
    used: bool,
    ever_used: bool,
}

impl Gap {
    pub(super) fn since(&self) -> Seq {
        self.since
    }

    /// The end that a walk comes to. Whether the gap was of use for the first time is said too.
    pub(super) fn leap(&mut self, forward: bool) -> (Boundary, bool) {
        self.used = true;
        let first_use = !std::mem::replace(&mut self.ever_used, true);
        let end = if forward { &self.to } else { &self.from };
        (end.clone(), first_use)
    }

    fn bytes(&self) -> usize {
        GAP_BYTES + self.from.len() + self.to.len()
    }
}

/// Gaps that neither overlap nor touch.
#[derive(Default)]
pub(super) struct GapSet {
    /// Ascending. Some thousands at most: one that comes or goes moves the pointers behind it.
    #[expect(clippy::vec_box, reason = "a put that cuts a gap moves 24 KB and not 200")]
    gaps: Vec<Box<Gap>>,
    bytes: usize,
    /// The next that is considered for giving up.
    hand: usize,
}

impl GapSet {
    pub(super) fn is_empty(&self) -> bool {
        self.gaps.is_empty()
    }

    /// The first one that ends at `from` or behind it.
    fn first_to(&self, order: &KeyOrder, from: &Boundary) -> usize {
        self.gaps.partition_point(|gap| gap.to.compare(order, from).is_lt())
    }

    /// Whether the first one that ends at `from` or behind it is known since `seq` or longer.
    pub(super) fn reaches_back_to(&self, order: &KeyOrder, seq: Seq, from: &Boundary) -> bool {
        self.gaps.get(self.first_to(order, from)).is_some_and(|gap| gap.since <= seq)
    }

    /// Which gap `key` is in.
    fn position(&self, order: &KeyOrder, key: &[u8]) -> Option<usize> {
        let at = self.gaps.partition_point(|gap| gap.to.is_before(order, key));
        self.gaps.get(at)?.from.is_before(order, key).then_some(at)
    }

    /// The gap that `key` is in.
    pub(super) fn find(&mut self, order: &KeyOrder, key: &[u8]) -> Option<&mut Gap> {
        let at = self.position(order, key)?;
        Some(&mut self.gaps[at])
    }

    /// The gap before all keys.
    pub(super) fn first(&mut self) -> Option<&mut Gap> {
        let gap = self.gaps.first_mut()?;
        (gap.from == Boundary::Front).then_some(gap)
    }

    /// The gap behind all keys.
    pub(super) fn last(&mut self) -> Option<&mut Gap> {
        let gap = self.gaps.last_mut()?;
        (gap.to == Boundary::Back).then_some(gap)
    }

    /// Adds a gap. Those that it overlaps or touches become one with it, which is as true as the youngest of them.
    pub(super) fn add(&mut self, order: &KeyOrder, since: Seq, from: Boundary, to: Boundary) {
        let at = self.first_to(order, &from);
        let mut new = Gap { from, to, since, used: false, ever_used: false };
        let meets = |gap: &Gap, new: &Gap| gap.from.compare(order, &new.to).is_le();
        while self.gaps.get(at).is_some_and(|gap| meets(gap, &new)) {
            let met = self.remove(at);
            new = Gap {
                from: new.from.min(order, met.from),
                to: new.to.max(order, met.to),
                since: new.since.max(met.since),
                used: new.used | met.used,
                ever_used: new.ever_used | met.ever_used,
            };
        }
        self.insert(at, new);
    }

    /// A put: of a gap that it falls into the parts on both sides are left.
    pub(super) fn cut(&mut self, order: &KeyOrder, key: &[u8]) {
        let Some(at) = self.position(order, key) else { return };
        let gap = &mut self.gaps[at];
        let (before, behind) = (Boundary::Before(key.to_vec()), Boundary::Behind(key.to_vec()));
        let is_before = gap.from.compare(order, &before).is_lt();
        if behind.compare(order, &gap.to).is_ge() {
            let whole = self.remove(at);
            if is_before {
                self.insert(at, Gap { to: before, ..whole });
            }
            return;
        }
        self.bytes -= gap.bytes();
        let from = std::mem::replace(&mut gap.from, behind);
        self.bytes += gap.bytes();
        if is_before {
            let part = Gap { from, to: before, ..**gap };
            self.insert(at, part);
        }
    }

    fn insert(&mut self, at: usize, gap: Gap) {
        self.bytes += gap.bytes();
        self.hand += usize::from(at < self.hand);
        self.gaps.insert(at, Box::new(gap));
    }

    fn remove(&mut self, at: usize) -> Gap {
        let gap = self.gaps.remove(at);
        self.bytes -= gap.bytes();
        self.hand -= usize::from(at < self.hand);
        *gap
    }

    /// Gives up gaps until they take at most so many bytes, first those of which nobody made use for longest, or
    /// nearly so. How many of these never were of use.
    pub(super) fn shrink(&mut self, most: usize) -> u32 {
        let mut useless = 0;
        while self.bytes > most {
            if self.hand >= self.gaps.len() {
                self.hand = 0;
            }
            if std::mem::take(&mut self.gaps[self.hand].used) {
                self.hand += 1;
            } else {
                useless += u32::from(!self.remove(self.hand).ever_used);
            }
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
                assert!(gaps.gaps.len() < 100);
            }
            let sum: usize = gaps.gaps.iter().map(|gap| gap.bytes()).sum();
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
            assert_eq!(useless as usize + gaps.gaps.len(), 2000);
        }
    }
}

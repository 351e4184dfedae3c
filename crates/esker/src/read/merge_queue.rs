//! The sources of a merge in the order of their current keys, told apart by abbreviated keys.
//!
//! An abbreviated key is eight bytes behind a prefix that the current keys of all sources share. Most sources
//! are put in order by it, without a look at the keys themselves, which lie all over memory. A custom
//! order has none: there every decision is the comparator's.
//!
//! The prefix follows the walk. It becomes shorter when a key comes that does not begin with it, and is
//! measured again, from the first key and the last, when abbreviated keys have often been equal.

use std::cmp::Ordering;

use crate::key::KeyOrder;
use crate::util::abbreviated_key::{Heads, begins_with, common_prefix};

/// A source that is on an entry.
#[derive(Clone, Copy)]
pub(super) struct Front {
    /// Its current key, abbreviated; complemented in a walk backwards. The smallest is the next.
    word: u64,
    /// Which source it is.
    pub(super) source: u32,
}

/// Sources, the next one first. It does not know them: whoever holds them says what their keys are.
pub(super) struct MergeQueue {
    heads: Heads,
    /// Complements words in a walk backwards.
    direction: u64,
    /// What the current keys of all sources begin with.
    prefix: Vec<u8>,
    fronts: Vec<Front>,
    /// Decisions since the prefix was measured that needed the keys.
    ties: u32,
}

/// After so many decisions by whole keys the prefix is measured anew.
const REMEASURE_AFTER: u32 = if cfg!(test) { 2 } else { 32 };
/// So much shorter than it could be is the prefix kept: the next keys may share a little less.
const ROOM: usize = 2;
/// Bytes of prefix at most, which each step compares.
const LONGEST_PREFIX: usize = 256;

impl MergeQueue {
    pub(super) fn new(order: &KeyOrder, sources: usize) -> MergeQueue {
        let fronts = Vec::with_capacity(sources);
        MergeQueue { heads: Heads::new(order), direction: 0, prefix: Vec::new(), fronts, ties: 0 }
    }

    #[inline]
    pub(super) fn fronts(&self) -> &[Front] {
        &self.fronts
    }

    #[inline]
    pub(super) fn clear(&mut self) {
        self.fronts.clear();
    }

    /// Whether the first key is known to be another than the second. `false` says nothing.
    #[inline]
    pub(super) fn first_differs(&self) -> bool {
        match &self.fronts[..] {
            [] => false,
            [_] => true,
            [first, second, ..] => first.word != second.word,
        }
    }

    /// Begins again with these sources in this direction. `before` decides by the keys.
    pub(super) fn fill<'k>(
        &mut self,
        forward: bool,
        sources: impl Iterator<Item = u32>,
        key: impl Fn(u32) -> &'k [u8],
        before: impl Fn(u32, u32) -> bool,
    ) {
        self.direction = if forward { 0 } else { !0 };
        self.fronts.clear();
        self.fronts.extend(sources.map(|source| Front { word: 0, source }));
        self.measure(key);
        if self.heads.of_bytes() {
            let by_key = |a: &Front, b: &Front| match before(a.source, b.source) {
                true => Ordering::Less,
                false => Ordering::Greater,
            };
            self.fronts.sort_unstable_by(|a, b| a.word.cmp(&b.word).then_with(|| by_key(a, b)));
            self.ties = 0;
            return;
        }
        // Each source stands here once at all times, and an order that contradicts itself does no harm.
        for end in 1..self.fronts.len() {
            let mut at = end;
            while at > 0 && self.is_before(at, at - 1, &before) {
                self.fronts.swap(at, at - 1);
                at -= 1;
            }
        }
        self.ties = 0;
    }

    /// Whether one front comes before another.
    #[inline]
    fn is_before(&self, a: usize, b: usize, before: &impl Fn(u32, u32) -> bool) -> bool {
        let (a, b) = (self.fronts[a], self.fronts[b]);
        if a.word == b.word { before(a.source, b.source) } else { a.word < b.word }
    }

    /// The first source has moved to another entry: puts it where it belongs now. Whether that is where it was.
    #[inline]
    pub(super) fn sift_first<'k>(
        &mut self,
        key: impl Fn(u32) -> &'k [u8],
        before: impl Fn(u32, u32) -> bool,
    ) -> bool {
        let source = self.fronts[0].source;
        if self.fronts.len() == 1 {
            return true;
        }
        let bytes = key(source);
        if !begins_with(bytes, &self.prefix) {
            self.shorten(&key);
        }
        let moved = Front { word: self.word(bytes), source };
        // Each source stands here once at all times: the comparator may panic.
        self.fronts[0] = moved;
        let mut at = 0;
        while let Some(next) = self.fronts.get(at + 1).copied() {
            if next.word > moved.word {
                break;
            }
            if next.word == moved.word {
                self.ties += 1;
                if !before(next.source, source) {
                    break;
                }
            }
            (self.fronts[at], self.fronts[at + 1]) = (next, moved);
            at += 1;
        }
        if self.ties >= REMEASURE_AFTER {
            self.remeasure(key);
        }
        at == 0
    }

    /// The first source is at its end.
    pub(super) fn remove_first(&mut self) {
        self.fronts.remove(0);
    }

    #[inline]
    fn word(&self, key: &[u8]) -> u64 {
        self.heads.head(key, self.prefix.len()) ^ self.direction
    }

    /// The key of the first source does not begin with the prefix.
    #[cold]
    fn shorten<'k>(&mut self, key: impl Fn(u32) -> &'k [u8]) {
        let shared = common_prefix(key(self.fronts[0].source), &self.prefix);
        self.prefix.truncate(shared.saturating_sub(ROOM));
        self.abbreviate(key);
    }

    #[cold]
    fn remeasure<'k>(&mut self, key: impl Fn(u32) -> &'k [u8]) {
        if self.heads.of_bytes() {
            self.measure(key);
        }
        self.ties = 0;
    }

    /// Finds the prefix.
    fn measure<'k>(&mut self, key: impl Fn(u32) -> &'k [u8]) {
        self.ties = 0;
        self.prefix.clear();
        if let [first, others @ ..] = &self.fronts[..]
            && self.heads.of_bytes()
        {
            let first = key(first.source);
            let shared = others.iter().map(|f| common_prefix(first, key(f.source))).min();
            let shared = shared.unwrap_or(0).saturating_sub(ROOM).min(LONGEST_PREFIX);
            self.prefix.extend_from_slice(&first[..shared]);
        }
        self.abbreviate(key);
    }

    fn abbreviate<'k>(&mut self, key: impl Fn(u32) -> &'k [u8]) {
        for at in 0..self.fronts.len() {
            self.fronts[at].word = self.word(key(self.fronts[at].source));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::util::Rng;

    /// Merges sources of keys with a queue; also says how often it had to ask for a comparison.
    fn merged(order: &KeyOrder, forward: bool, sources: &[Vec<Vec<u8>>]) -> (Vec<Vec<u8>>, u32) {
        let mut at = vec![0; sources.len()];
        let asked = Cell::new(0);
        let mut queue = MergeQueue::new(order, sources.len());
        let mut out = Vec::new();
        let before = |at: &[usize], a: u32, b: u32| {
            asked.set(asked.get() + 1);
            let (x, y) =
                (&sources[a as usize][at[a as usize]], &sources[b as usize][at[b as usize]]);
            let by_key = order.compare(x, y).then(a.cmp(&b));
            if forward { by_key.is_lt() } else { by_key.is_gt() }
        };
        let valid = (0..sources.len()).filter(|s| !sources[*s].is_empty()).map(|s| s as u32);
        queue.fill(forward, valid, |s| &sources[s as usize][0][..], |a, b| before(&at, a, b));
        asked.set(0);
        while let Some(first) = queue.fronts().first() {
            let s = first.source as usize;
            out.push(sources[s][at[s]].clone());
            if let [a, b, ..] = queue.fronts() {
                let key = |f: &Front| &sources[f.source as usize][at[f.source as usize]];
                assert!(!queue.first_differs() || key(a) != key(b));
            }
            at[s] += 1;
            if at[s] == sources[s].len() {
                queue.remove_first();
            } else {
                queue
                    .sift_first(|s| &sources[s as usize][at[s as usize]], |a, b| before(&at, a, b));
            }
        }
        (out, asked.get())
    }

    /// Keys of a few shapes: short ones, ones that begin alike for long, one the beginning of another.
    fn key(rng: &mut Rng) -> Vec<u8> {
        let mut key = match rng.below(4) {
            0 => Vec::new(),
            1 => b"some/rather/long/path/that/many/keys/share/".to_vec(),
            2 => b"some/rather/long/path/that/other/keys/share/".repeat(9),
            _ => b"some/".to_vec(),
        };
        key.extend((0..rng.below(4)).map(|_| [0, 1, b'a', 0xFF][rng.below(4)]));
        key
    }

    #[test]
    fn sources_of_all_shapes_of_keys_are_merged_in_both_directions() {
        for seed in 0..300 {
            let mut rng = Rng::new(seed);
            let order = if rng.below(2) == 0 { KeyOrder::Bytewise } else { KeyOrder::Reverse };
            let forward = rng.below(2) == 1;
            let sources: Vec<Vec<Vec<u8>>> = (0..rng.below(6))
                .map(|_| {
                    let mut keys: Vec<_> = (0..rng.below(30)).map(|_| key(&mut rng)).collect();
                    keys.sort_by(|a, b| order.compare(a, b));
                    if !forward {
                        keys.reverse();
                    }
                    keys
                })
                .collect();
            let mut expected: Vec<Vec<u8>> = sources.iter().flatten().cloned().collect();
            expected.sort_by(|a, b| order.compare(a, b));
            if !forward {
                expected.reverse();
            }
            assert_eq!(merged(&order, forward, &sources).0, expected, "seed {seed}");
        }
    }

    #[test]
    fn abbreviated_keys_decide_nearly_always_however_long_the_prefix() {
        for prefix in ["", "tenant/4711/", "a/path/that/is/longer/than/any/abbreviated/key/is/"] {
            let key = |n: u32| format!("{prefix}{:08}", n).into_bytes();
            let sources: Vec<Vec<_>> =
                (0..5).map(|s| (s..50_000).step_by(5).map(key).collect()).collect();
            let (out, asked) = merged(&KeyOrder::Bytewise, true, &sources);
            assert!(out.is_sorted() && out.len() == 50_000);
            assert!(asked < 500, "{asked} of {} by whole keys, behind {prefix:?}", out.len());
        }
    }
}

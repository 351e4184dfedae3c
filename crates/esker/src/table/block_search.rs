//! The search for a key among the entries of a block, in steps.
//!
//! A step makes three comparisons, of records that were asked for before it, and asks for those of the next. Whoever
//! searches blocks of several tables takes a step in each of them in turn, so that they wait for memory at the same time.

use std::cmp::Ordering;

use super::block::Block;
use super::memory;
use crate::key::KeyOrder;
use crate::util::abbreviated_key::word_at;

/// Comparisons of a step; what [`Block::ask_for_probes`] asks for goes as deep.
const TOGETHER: u32 = 3;

/// How far a search has come.
#[derive(Clone, Copy)]
pub(super) struct BlockSearch {
    /// Entries before this one sort before the key.
    base: u32,
    /// Of so many from there on it is not known; those behind do not.
    len: u32,
}

impl BlockSearch {
    /// One that is over.
    pub const NONE: BlockSearch = BlockSearch { base: 0, len: 0 };

    /// Whether there is another step to take.
    #[inline]
    pub fn goes_on(&self) -> bool {
        self.len > 0
    }

    /// In the end: the number of entries whose key sorts before the key or, with `or_equal`, is at it.
    #[inline]
    pub fn rank(&self) -> u32 {
        self.base
    }

    /// One comparison, which says whether an entry sorts before the key.
    #[inline(always)]
    fn halve(&mut self, before: impl FnOnce(u32) -> bool) {
        let half = self.len / 2;
        if before(self.base + half) {
            self.base += half + 1;
            self.len -= half + 1;
        } else {
            self.len = half;
        }
    }
}

impl<'a> Block<'a> {
    /// Begins a search: compares what all keys share, and asks for the records of the first step.
    pub fn search(&self, order: &KeyOrder, key: &[u8]) -> BlockSearch {
        let all = BlockSearch { base: 0, len: self.count };
        let prefix = self.prefix();
        let common = prefix.len().min(key.len());
        let side = prefix[..common].cmp(&key[..common]);
        // The key is shorter than the prefix it begins: every entry is above it, bytewise.
        let side = if side.is_eq() && key.len() < prefix.len() { Ordering::Greater } else { side };
        match (side, order) {
            (_, KeyOrder::Custom(_)) | (Ordering::Equal, _) => {
                self.ask_for_probes(all.base, all.len);
                all
            }
            (Ordering::Less, KeyOrder::Bytewise) | (Ordering::Greater, KeyOrder::Reverse) => {
                BlockSearch { base: self.count, len: 0 }
            }
            _ => BlockSearch::NONE,
        }
    }

    /// A step of a search for the same key, which [`goes on`](BlockSearch::goes_on).
    pub fn narrow(&self, search: &mut BlockSearch, order: &KeyOrder, key: &[u8], or_equal: bool) {
        let reverse = match order {
            KeyOrder::Bytewise => false,
            KeyOrder::Reverse => true,
            KeyOrder::Custom(c) => {
                let shared = self.prefix().len();
                let mut whole = self.prefix().to_vec();
                while search.goes_on() {
                    search.halve(|i| {
                        whole.truncate(shared);
                        whole.extend(self.record(i).suffix());
                        let side = c.compare(&whole, key);
                        side.is_lt() || (or_equal && side.is_eq())
                    });
                }
                return;
            }
        };
        let rest = &key[self.prefix().len()..];
        let head = word_at(rest, 0);
        let before = if reverse { Ordering::Greater } else { Ordering::Less };
        for _ in 0..TOGETHER {
            if !search.goes_on() {
                return;
            }
            search.halve(|i| {
                let r = self.record(i);
                // SAFETY: the suffix is in the block, which has the slack behind it.
                let side = unsafe { memory::compare(r.suffix_at, r.suffix_len, rest, head) };
                side == before || (or_equal && side.is_eq())
            });
        }
        self.ask_for_probes(search.base, search.len);
    }

    /// The whole search: the number of entries whose key sorts before `key`, and with `or_equal` those at it.
    pub fn rank(&self, order: &KeyOrder, key: &[u8], or_equal: bool) -> u32 {
        let mut search = self.search(order, key);
        while search.goes_on() {
            self.narrow(&mut search, order, key, or_equal);
        }
        search.rank()
    }

    /// Asks for the records that a step among `len` entries from `base` on may look at.
    #[inline]
    fn ask_for_probes(&self, base: u32, len: u32) {
        self.ask_for_middle(base, len, |base, len| {
            self.ask_for_middle(base, len, |base, len| self.ask_for_middle(base, len, |_, _| {}));
        });
    }

    /// Asks for the record in the middle; `halves` is told where the next one may be.
    #[inline(always)]
    fn ask_for_middle(&self, base: u32, len: u32, halves: impl Fn(u32, u32)) {
        if len > 0 {
            let half = len / 2;
            self.prefetch(base + half);
            halves(base, half);
            halves(base + half + 1, len - half - 1);
        }
    }
}

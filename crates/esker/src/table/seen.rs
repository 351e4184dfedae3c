//! Which parts of a table were checked: a bit for each, set at its first touch.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// So many pages are asked for when the first of them is touched: a fault of its own reads one page
/// only, and a store that was not read for a while would come back page by page. A group is read
/// around once in a table's life at most, and not while memory is short. A part of 64.
pub(super) const GROUP: u32 = 16;

/// A set of small numbers that only grows.
pub(super) struct AtomicBits(Vec<AtomicU64>);

impl AtomicBits {
    /// For the numbers below `n`.
    pub fn new(n: usize) -> AtomicBits {
        AtomicBits((0..n.div_ceil(64)).map(|_| AtomicU64::new(0)).collect())
    }

    /// False for numbers that are out of range too.
    #[inline(always)]
    pub fn has(&self, i: u32) -> bool {
        // Relaxed: the bytes a bit vouches for never change, nothing is published with it.
        self.0.get(i as usize / 64).is_some_and(|w| w.load(Relaxed) >> (i % 64) & 1 != 0)
    }

    /// Whether none of the numbers in the group of [`GROUP`] that `i` is in was seen.
    pub fn group_is_new(&self, i: u32) -> bool {
        let word = self.0.get(i as usize / 64).map_or(0, |w| w.load(Relaxed));
        let bits = (1 << GROUP) - 1;
        word >> (i % 64 / GROUP * GROUP) & bits == 0
    }

    /// Puts a number in.
    pub fn insert(&self, i: u32) {
        if let Some(w) = self.0.get(i as usize / 64) {
            w.fetch_or(1 << (i % 64), Relaxed);
        }
    }

    /// Its bytes.
    pub fn memory(&self) -> usize {
        self.0.len() * 8
    }
}

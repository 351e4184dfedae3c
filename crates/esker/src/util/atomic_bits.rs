//! A set of small numbers that threads share without waiting: a bit for each.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A set of small numbers that only grows: what was found sound, and is not to be checked again.
///
/// Two threads may check the same thing at the same time; that costs work and nothing else. The bytes that
/// a number vouches for do not change after that, and nothing is published with it: no order is needed.
#[derive(Debug)]
pub(crate) struct AtomicBits(Vec<AtomicU64>);

impl AtomicBits {
    /// For the numbers below `n`.
    pub(crate) fn new(n: usize) -> AtomicBits {
        AtomicBits((0..n.div_ceil(64)).map(|_| AtomicU64::new(0)).collect())
    }

    /// False for numbers that are out of range too.
    #[inline(always)]
    pub(crate) fn has(&self, i: u32) -> bool {
        self.0.get(i as usize / 64).is_some_and(|w| w.load(Relaxed) >> (i % 64) & 1 != 0)
    }

    /// Whether none of the numbers in the group of `size` (a part of 64) that `i` is in is there.
    pub(crate) fn group_is_new(&self, i: u32, size: u32) -> bool {
        let word = self.0.get(i as usize / 64).map_or(0, |w| w.load(Relaxed));
        let bits = (1 << size) - 1;
        word >> (i % 64 / size * size) & bits == 0
    }

    /// Puts a number in.
    pub(crate) fn insert(&self, i: u32) {
        if let Some(w) = self.0.get(i as usize / 64) {
            w.fetch_or(1 << (i % 64), Relaxed);
        }
    }

    /// Its bytes.
    pub(crate) fn memory(&self) -> usize {
        self.0.len() * 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_has_its_bit() {
        // The last word is used in part only, and there is one; what lies outside is never in.
        for n in [1u32, 64, 65, 768] {
            let bits = AtomicBits::new(n as usize);
            assert_eq!(bits.memory(), n.div_ceil(64) as usize * 8);
            for i in 0..n {
                assert_eq!(bits.group_is_new(i, 16), i.is_multiple_of(16), "{i} of {n}");
                assert!(!bits.has(i));
                bits.insert(i);
                assert!(bits.has(i) && !bits.group_is_new(i, 16), "{i} of {n}");
            }
            bits.insert(n + 64);
            assert!(!bits.has(n + 64));
        }
    }
}

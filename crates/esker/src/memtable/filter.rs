//! A small filter in front of a memtable: most reads of other keys end in one cache line.
//!
//! A Bloom filter with one 64-bit word a key ("register-blocked": Putze, Sanders, Singler, "Cache-,
//! Hash- and Space-Efficient Bloom Filters", 2007). A word is changed by one atomic `or`, so readers
//! need no lock.

use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of log that an entry takes at least, for choosing a size: 16 bytes of key and value and
/// the two headers.
const SMALL_ENTRY: u64 = 64;
/// Bits a small entry gets.
const BITS: u64 = 10;

#[derive(Debug)]
pub(super) struct Filter {
    words: Box<[AtomicU64]>,
}

impl Filter {
    /// For a segment of so many bytes.
    pub(super) fn new(segment_bytes: u64) -> Filter {
        let words =
            (segment_bytes / SMALL_ENTRY * BITS / 64).clamp(64, 1 << 20).next_power_of_two();
        Filter { words: (0..words).map(|_| AtomicU64::new(0)).collect() }
    }

    #[inline]
    fn word(&self, hash: u64) -> &AtomicU64 {
        // The length is a power of two.
        &self.words[(hash >> 32) as usize & (self.words.len() - 1)]
    }

    /// Four bits out of 24 bits of the hash that do not choose the word.
    #[inline]
    fn mask(hash: u64) -> u64 {
        1 << (hash & 63) | 1 << (hash >> 6 & 63) | 1 << (hash >> 12 & 63) | 1 << (hash >> 18 & 63)
    }

    #[inline]
    pub(super) fn insert(&self, hash: u64) {
        let word = self.word(hash);
        // One writer: no locked instruction needed.
        word.store(word.load(Ordering::Relaxed) | Self::mask(hash), Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn may_contain(&self, hash: u64) -> bool {
        let mask = Self::mask(hash);
        self.word(hash).load(Ordering::Relaxed) & mask == mask
    }

    pub(super) fn memory(&self) -> usize {
        self.words.len() * 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::key_hash;

    #[test]
    fn it_never_denies_a_key_and_rarely_grants_a_stranger() {
        let filter = Filter::new(16 << 20);
        for n in 0..110_000u32 {
            filter.insert(key_hash(&n.to_le_bytes()));
        }
        assert!((0..110_000u32).all(|n| filter.may_contain(key_hash(&n.to_le_bytes()))));
        let wrong = (1_000_000..1_100_000u32)
            .filter(|n| filter.may_contain(key_hash(&n.to_le_bytes())))
            .count();
        assert!(wrong < 3_000, "{wrong} of 100,000 strangers granted");
    }
}

//! A small filter in front of a memtable: most reads of other keys end in one cache line.
//!
//! A Bloom filter with one 64-bit word a key ("register-blocked": Putze, Sanders, Singler, "Cache-,
//! Hash- and Space-Efficient Bloom Filters", 2007). A word is changed by one atomic `or`, so readers
//! need no lock.
//!
//! It grows with the keys, as a store may have many keyspaces with a few keys each: a level is
//! followed by one of eight times its size, into which the hashes of all keys are put before readers
//! are led there. A reader that is still on the level before misses only keys that were put in later
//! than it looked for its sequence.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::util::prefetch;
use crate::util::sync::OnceLock;

/// Bytes of log that an entry takes at least, for choosing the largest size: 16 bytes of key and
/// value and the two headers.
const SMALL_ENTRY: u64 = 64;
/// Bits a key gets.
const BITS: u64 = 10;
/// Words of the first level.
const FIRST: u64 = 64;
/// From one level to the next.
const GROWTH: u64 = 8;
/// Words at most.
const MOST: u64 = 1 << 20;
/// Levels from `FIRST` to `MOST`.
const LEVELS: usize = 6;
const _: () = assert!(FIRST * GROWTH.pow(LEVELS as u32 - 1) >= MOST);

#[derive(Debug)]
pub(super) struct Filter {
    /// Those before the present one stay for readers that are still there.
    levels: [OnceLock<Box<[AtomicU64]>>; LEVELS],
    /// The present one.
    at: AtomicUsize,
    /// Words at most.
    most: u64,
}

impl Filter {
    /// For a segment of so many bytes. It begins with a level, which may be too high.
    pub(super) fn new(segment_bytes: u64, level: usize) -> Filter {
        let most = (segment_bytes / SMALL_ENTRY * BITS / 64).clamp(FIRST, MOST).next_power_of_two();
        let filter = Filter { levels: Default::default(), at: AtomicUsize::new(0), most };
        let last = (0..LEVELS).find(|l| filter.words_of(*l) == most).unwrap_or(0);
        let level = level.min(last);
        filter.levels[level].get_or_init(|| filter.empty(level));
        filter.at.store(level, Ordering::Relaxed);
        filter
    }

    fn words_of(&self, level: usize) -> u64 {
        (FIRST * GROWTH.pow(level as u32)).min(self.most)
    }

    fn empty(&self, level: usize) -> Box<[AtomicU64]> {
        (0..self.words_of(level)).map(|_| AtomicU64::new(0)).collect()
    }

    /// The present level.
    pub(super) fn level(&self) -> usize {
        self.at.load(Ordering::Relaxed)
    }

    /// How many keys a level has room for.
    pub(super) fn room(&self, level: usize) -> usize {
        let words = self.words_of(level);
        if words == self.most { usize::MAX } else { (words * 64 / BITS) as usize }
    }

    /// Goes on to the next level, given the hashes of all keys. One caller at a time.
    pub(super) fn grow(&self, hashes: impl Iterator<Item = u64>) {
        let level = self.level() + 1;
        let words = self.empty(level);
        hashes.for_each(|hash| insert(&words, hash));
        self.levels[level].get_or_init(|| words);
        // Release: whoever is led there finds all that was put in.
        self.at.store(level, Ordering::Release);
    }

    #[inline]
    fn words(&self) -> &[AtomicU64] {
        self.levels[self.at.load(Ordering::Acquire)]
            .get()
            .expect("readers are led to what is there")
    }

    #[inline]
    pub(super) fn insert(&self, hash: u64) {
        insert(self.words(), hash);
    }

    /// Asks for the word of a hash.
    #[inline]
    pub(super) fn prefetch(&self, hash: u64) {
        prefetch(std::ptr::from_ref(word(self.words(), hash)).cast());
    }

    #[inline]
    pub(super) fn may_contain(&self, hash: u64) -> bool {
        let mask = mask(hash);
        word(self.words(), hash).load(Ordering::Relaxed) & mask == mask
    }

    pub(super) fn memory(&self) -> usize {
        self.levels.iter().filter_map(|l| l.get()).map(|l| l.len() * 8).sum()
    }
}

#[inline]
fn word(words: &[AtomicU64], hash: u64) -> &AtomicU64 {
    // The length is a power of two.
    &words[(hash >> 32) as usize & (words.len() - 1)]
}

/// Four bits out of 24 bits of the hash that do not choose the word.
#[inline]
fn mask(hash: u64) -> u64 {
    1 << (hash & 63) | 1 << (hash >> 6 & 63) | 1 << (hash >> 12 & 63) | 1 << (hash >> 18 & 63)
}

#[inline]
fn insert(words: &[AtomicU64], hash: u64) {
    let word = word(words, hash);
    // One writer: no locked instruction needed.
    word.store(word.load(Ordering::Relaxed) | mask(hash), Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::key_hash;

    fn hashes(count: u32) -> impl Iterator<Item = u64> {
        (0..count).map(|n| key_hash(&n.to_le_bytes()))
    }

    /// A filter of so many keys that grew with them.
    fn filled(segment_bytes: u64, count: u32, level: usize) -> Filter {
        let filter = Filter::new(segment_bytes, level);
        for (n, hash) in hashes(count).enumerate() {
            filter.insert(hash);
            if n + 1 >= filter.room(filter.level()) {
                filter.grow(hashes(n as u32 + 1));
            }
        }
        filter
    }

    #[test]
    fn it_never_denies_a_key_and_rarely_grants_a_stranger() {
        for (segment, count, level) in [
            (16 << 20, 110_000u32, 0),
            (16 << 20, 110_000, 9),
            (16 << 20, 400, 0),
            (1 << 16, 900, 0),
        ] {
            let filter = filled(segment, count, level);
            assert!(hashes(count).all(|hash| filter.may_contain(hash)));
            let strangers = (1_000_000..1_100_000u32).map(|n| key_hash(&n.to_le_bytes()));
            let wrong = strangers.filter(|hash| filter.may_contain(*hash)).count();
            assert!(wrong < 3_000, "{wrong} of 100,000 strangers granted, {count} keys");
        }
    }

    #[test]
    fn it_is_as_large_as_its_keys_need() {
        for (count, most) in [(1, 512), (400, 512), (3_000, 5 << 10), (20_000, 40 << 10)] {
            let memory = filled(64 << 20, count, 0).memory();
            assert!(memory <= most, "{memory} bytes for {count} keys");
        }
        // Never larger than the segment can fill, however many overwrites there were.
        assert!(filled(64 << 10, 100_000, 0).memory() <= 4 << 10);
    }
}

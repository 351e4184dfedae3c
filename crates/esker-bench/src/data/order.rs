//! In which order keys come.

use super::file::FileData;
use super::rng::{Rng, mix};
use std::sync::Arc;

/// The order of a row's keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// 0, 1, 2, ...
    Sequential,
    /// Each key drawn from all of them, so some come twice and a third of them never; what the
    /// classic reports call random.
    Uniform,
    /// Each key once, in random order.
    Shuffled,
    /// As a file has them; without a file, ascending.
    File,
}

/// Indexes of keys, one after the other.
#[derive(Debug, Clone)]
pub struct KeyStream {
    order: Order,
    entries: u64,
    next: u64,
    rng: Rng,
    shuffle: Shuffle,
    file: Option<Arc<FileData>>,
}

impl KeyStream {
    /// A stream over `0..entries`; equal seeds give equal streams.
    pub fn new(order: Order, entries: u64, seed: u64) -> Self {
        let shuffle = Shuffle::new(entries, seed);
        KeyStream { order, entries, next: 0, rng: Rng::new(seed), shuffle, file: None }
    }
    /// The same over the keys of a file, whose order is asked for.
    pub fn over(self, file: Arc<FileData>) -> Self {
        KeyStream { file: Some(file), ..self }
    }
    /// The next index. Sequential and shuffled streams begin anew after the last.
    #[inline]
    pub fn next_index(&mut self) -> u64 {
        match self.order {
            Order::Uniform => self.rng.below(self.entries),
            Order::Sequential => self.step(),
            Order::File => {
                let at = self.step();
                self.file.as_ref().map_or(at, |file| file.in_file_order(at))
            }
            Order::Shuffled => {
                let at = self.step();
                self.shuffle.at(at)
            }
        }
    }
    #[inline]
    fn step(&mut self) -> u64 {
        let at = self.next;
        self.next = if at + 1 == self.entries { 0 } else { at + 1 };
        at
    }
}

/// A permutation computed in place of a table, whose cache misses would be charged to the engines:
/// four Feistel rounds over the next even power of two, repeated until the result is in range.
#[derive(Debug, Clone)]
struct Shuffle {
    entries: u64,
    half_bits: u32,
    keys: [u64; 4],
}

impl Shuffle {
    fn new(entries: u64, seed: u64) -> Self {
        let bits = 64 - entries.max(2).leading_zeros();
        let half_bits = bits.div_ceil(2).max(1);
        Shuffle { entries, half_bits, keys: [1, 2, 3, 4].map(|i| mix(seed ^ mix(i))) }
    }
    #[inline]
    fn at(&self, index: u64) -> u64 {
        let mask = (1u64 << self.half_bits) - 1;
        let mut x = index;
        loop {
            let (mut left, mut right) = (x >> self.half_bits, x & mask);
            for key in self.keys {
                let scrambled = (right ^ key).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
                (left, right) = (right, left ^ (scrambled & mask));
            }
            x = (left << self.half_bits) | right;
            if x < self.entries {
                return x;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shuffle_gives_every_index_once() {
        for entries in [1, 2, 3, 1000, 65_536, 100_003] {
            let mut seen = vec![false; entries as usize];
            let mut stream = KeyStream::new(Order::Shuffled, entries, 42);
            for _ in 0..entries {
                let i = stream.next_index() as usize;
                assert!(!std::mem::replace(&mut seen[i], true));
            }
        }
    }

    #[test]
    fn a_shuffle_is_not_nearly_sorted() {
        let mut stream = KeyStream::new(Order::Shuffled, 10_000, 1);
        let all: Vec<u64> = (0..10_000).map(|_| stream.next_index()).collect();
        let rising = all.windows(2).filter(|w| w[0] < w[1]).count();
        assert!((4800..5200).contains(&rising), "{rising}");
    }

    #[test]
    fn uniform_draws_leave_out_a_third() {
        let mut stream = KeyStream::new(Order::Uniform, 10_000, 1);
        let drawn: std::collections::HashSet<u64> =
            (0..10_000).map(|_| stream.next_index()).collect();
        assert!((6200..6450).contains(&drawn.len()), "{}", drawn.len());
    }
}

//! What the experiments share: a small random generator, key formatting, timing.

use std::time::Instant;

/// SplitMix64: small, seedable, good enough for picking keys.
#[derive(Debug, Clone)]
pub struct Random(pub u64);

impl Random {
    /// The next number.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
    /// A number below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        (((self.next_u64() as u128) * (n as u128)) >> 64) as u64
    }
}

/// The 16-byte decimal key of the classic benchmarks.
pub fn key16(n: u64) -> [u8; 16] {
    let mut key = [b'0'; 16];
    let mut n = n;
    for b in key.iter_mut().rev() {
        *b = b'0' + (n % 10) as u8;
        n /= 10;
    }
    key
}

/// Runs `f` over `ops` operations, `rounds` times, and returns the median cost of one in ns.
pub fn median_ns(rounds: usize, ops: u64, mut f: impl FnMut()) -> f64 {
    let mut costs: Vec<f64> = (0..rounds)
        .map(|_| {
            let start = Instant::now();
            f();
            start.elapsed().as_nanos() as f64 / ops as f64
        })
        .collect();
    costs.sort_by(f64::total_cmp);
    costs[costs.len() / 2]
}

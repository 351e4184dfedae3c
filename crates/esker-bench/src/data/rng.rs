//! A small generator, so that drawing a key costs a nanosecond and never the engine's cache.

/// Scrambles 64 bits (the finalizer of SplitMix64, Steele et al. 2014).
#[inline]
pub fn mix(x: u64) -> u64 {
    let mut z = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// SplitMix64.
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    /// A generator; equal seeds give equal streams.
    pub fn new(seed: u64) -> Self {
        Rng(mix(seed))
    }
    /// The next 64 bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let out = mix(self.0);
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        out
    }
    /// Uniform in `0..n`, by multiplication: the bias is below n / 2^64.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        ((self.next_u64() as u128 * n as u128) >> 64) as u64
    }
}

//! Random numbers that a seed repeats (SplitMix64: Steele, Lea, Flood, "Fast Splittable Pseudorandom
//! Number Generators", 2014).

/// A generator; its clone goes on with the same numbers.
#[derive(Debug, Clone)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    /// A generator of its own for part `n` of what `seed` stands for.
    #[cfg(test)]
    pub(crate) fn part(seed: u64, n: u64) -> Rng {
        let mut rng = Rng(seed ^ n.wrapping_mul(0xD6E8_FEB8_6659_FD93));
        Rng(rng.next())
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// From 0 up to but not including `n`.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.next()) * n as u128) >> 64) as usize
    }

    /// True once in `n` times.
    #[cfg(test)]
    pub(crate) fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

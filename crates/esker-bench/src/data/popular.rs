//! Keys of unequal popularity.

use super::rng::{Rng, mix};

/// How unequal: the customary constant of the Yahoo! benchmark.
const THETA: f64 = 0.99;

/// Ranks drawn by Zipf's law: rank 0 most often (the method of Gray et al., "Quickly Generating
/// Billion-Record Synthetic Databases", 1994, section 3.2).
#[derive(Debug, Clone)]
pub struct Zipfian {
    n: u64,
    alpha: f64,
    zeta: f64,
    eta: f64,
    second: f64,
}

impl Zipfian {
    /// Ranks in `0..n`.
    pub fn new(n: u64) -> Self {
        let n = n.max(2);
        let zeta = zeta(n);
        let eta = (1.0 - (2.0 / n as f64).powf(1.0 - THETA)) / (1.0 - zeta_of_two() / zeta);
        let second = 1.0 + 0.5f64.powf(THETA);
        Zipfian { n, alpha: 1.0 / (1.0 - THETA), zeta, eta, second }
    }
    /// The next rank.
    #[inline]
    pub fn rank(&self, rng: &mut Rng) -> u64 {
        let u = (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        let uz = u * self.zeta;
        if uz < 1.0 {
            return 0;
        }
        if uz < self.second {
            return 1;
        }
        let rank = self.n as f64 * (self.eta * u - self.eta + 1.0).powf(self.alpha);
        (rank as u64).min(self.n - 1)
    }
    /// The next index: a rank, scattered over all keys, so that popular ones are not neighbours.
    #[inline]
    pub fn scattered(&self, rng: &mut Rng) -> u64 {
        mix(self.rank(rng)) % self.n
    }
}

fn zeta_of_two() -> f64 {
    1.0 + 0.5f64.powf(THETA)
}

/// The sum of `1 / i^theta`; beyond a million terms their integral, which is as exact as the rest.
fn zeta(n: u64) -> f64 {
    let exact = n.min(1_000_000);
    let sum: f64 = (1..=exact).map(|i| (i as f64).powf(-THETA)).sum();
    let integral = |x: f64| x.powf(1.0 - THETA) / (1.0 - THETA);
    sum + integral(n as f64) - integral(exact as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_follow_the_law() {
        let (n, draws) = (10_000, 400_000);
        let zipf = Zipfian::new(n);
        let mut counts = vec![0u32; n as usize];
        let mut rng = Rng::new(1);
        for _ in 0..draws {
            counts[zipf.rank(&mut rng) as usize] += 1;
        }
        for rank in [0, 1] {
            let expected = draws as f64 / ((rank + 1) as f64).powf(THETA) / zeta(n);
            let off = counts[rank] as f64 / expected - 1.0;
            assert!(off.abs() < 0.03, "rank {rank}: {} not {expected}", counts[rank]);
        }
        let share = |ranks: std::ops::Range<usize>| {
            counts[ranks].iter().map(|&c| c as f64).sum::<f64>() / draws as f64
        };
        let expected = zeta(100) / zeta(n);
        assert!((share(0..100) / expected - 1.0).abs() < 0.05, "{} {expected}", share(0..100));
    }

    #[test]
    fn the_integral_continues_the_sum() {
        let sum: f64 = (1..=1_100_000u64).map(|i| (i as f64).powf(-THETA)).sum();
        assert!((zeta(1_100_000) / sum - 1.0).abs() < 1e-6);
    }
}

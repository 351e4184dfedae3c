//! Values: half compressible, each derived from its key's number and how often the key was written,
//! so that a read can be checked against what must be there without keeping a copy.

use super::file::FileData;
use super::rng::{Rng, mix};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Up to here a value is made of its own random bytes; a longer one is a slice of a pool, because
/// making it would cost as much as storing it.
const MADE_UP_TO: usize = 1024;
const POOL_BYTES: usize = 8 << 20;

/// How long values are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ValueSize {
    /// Always this many bytes.
    Fixed(usize),
    /// Every length in the range is as likely.
    Uniform(usize, usize),
    /// A length's probability falls with its inverse (Zipf, exponent 1): mostly short, a long tail.
    Zipf(usize, usize),
    /// The six parts of a JSON document of about 1.7 KB, one after the other.
    Json,
}

/// Lengths of the parts of a document: two large ones, four small ones.
const PARTS: [usize; 6] = [34, 1000, 38, 30, 40, 600];

impl ValueSize {
    fn bounds(self) -> (usize, usize) {
        match self {
            ValueSize::Fixed(n) => (n, n),
            ValueSize::Uniform(a, b) | ValueSize::Zipf(a, b) => (a, b),
            ValueSize::Json => (PARTS[3], PARTS[1]),
        }
    }
}

impl FromStr for ValueSize {
    type Err = String;
    fn from_str(s: &str) -> Result<Self, String> {
        let number = |t: &str| {
            t.trim().parse::<usize>().map_err(|_| format!("'{t}' is not a number of bytes"))
        };
        if s == "json" {
            return Ok(ValueSize::Json);
        }
        let (zipf, rest) = match s.strip_prefix("zipf") {
            Some(rest) => (true, if rest.is_empty() { "16..4096" } else { rest }),
            None => (false, s),
        };
        let size = match rest.trim_start_matches(':').split_once("..") {
            Some((a, b)) if zipf => ValueSize::Zipf(number(a)?, number(b)?),
            Some((a, b)) => ValueSize::Uniform(number(a)?, number(b)?),
            None if zipf => return Err("give a range: zipf:16..4096".into()),
            None => ValueSize::Fixed(number(rest)?),
        };
        match size.bounds() {
            (a, b) if a > b => Err(format!("{a} is larger than {b}")),
            (0, _) => Err("a value has at least one byte, which the reads touch".into()),
            _ => Ok(size),
        }
    }
}

impl fmt::Display for ValueSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ValueSize::Fixed(n) => write!(f, "{n}"),
            ValueSize::Uniform(a, b) => write!(f, "{a}..{b}"),
            ValueSize::Zipf(a, b) => write!(f, "zipf:{a}..{b}"),
            ValueSize::Json => f.write_str("json"),
        }
    }
}

/// Makes values.
pub struct Values {
    size: ValueSize,
    seed: u64,
    /// Lengths of a varying size, drawn from by hash: a power function per value would be timed too.
    lengths: Vec<u32>,
    pool: Vec<u8>,
    /// The user's values, instead of all of this.
    file: Option<Arc<FileData>>,
}

impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Values({})", self.size)
    }
}

impl Values {
    /// Values of the given size, from a seed.
    pub fn new(size: ValueSize, seed: u64) -> Self {
        const STEPS: usize = 4096;
        let (min, max) = size.bounds();
        let at = |i: usize| (i as f64 + 0.5) / STEPS as f64;
        let lengths = match size {
            ValueSize::Fixed(_) | ValueSize::Json => Vec::new(),
            ValueSize::Uniform(..) => {
                (0..STEPS).map(|i| min as u32 + ((max - min + 1) as f64 * at(i)) as u32).collect()
            }
            // The inverse of the cumulative distribution of 1/x is exponential in x.
            ValueSize::Zipf(..) => (0..STEPS)
                .map(|i| (min as f64 * (max as f64 / min as f64).powf(at(i))) as u32)
                .collect(),
        };
        let pool = match size {
            ValueSize::Json => json_pool(seed),
            _ if max > MADE_UP_TO => pool(POOL_BYTES.max(4 * max), seed),
            _ => Vec::new(),
        };
        Values { size, seed, lengths, pool, file: None }
    }
    /// The values of a file.
    pub fn of_file(file: Arc<FileData>) -> Self {
        let (size, lengths, pool) = (ValueSize::Fixed(1), Vec::new(), Vec::new());
        Values { size, seed: 0, lengths, pool, file: Some(file) }
    }

    /// How long values are, in words.
    pub fn size(&self) -> String {
        if self.file.is_some() { "file".to_string() } else { self.size.to_string() }
    }

    /// How long the value of key `index` in `generation` is.
    #[inline]
    pub fn len_of(&self, index: u64, generation: u32) -> usize {
        match self.size {
            _ if self.file.is_some() => {
                self.file.as_ref().map_or(0, |file| file.value(index, generation).len())
            }
            ValueSize::Fixed(n) => n,
            ValueSize::Json => PARTS[(index % 6) as usize],
            _ => self.lengths[(self.hash(index, generation) & 4095) as usize] as usize,
        }
    }

    #[inline]
    fn hash(&self, index: u64, generation: u32) -> u64 {
        mix(index ^ self.seed ^ ((generation as u64) << 48))
    }

    /// The value of key `index` in `generation`: in `buf`, which is reused, or in the pool.
    #[inline]
    pub fn value<'a>(&'a self, index: u64, generation: u32, buf: &'a mut Vec<u8>) -> &'a [u8] {
        if let Some(file) = &self.file {
            return file.value(index, generation);
        }
        let len = self.len_of(index, generation);
        let hash = self.hash(index, generation);
        if len > MADE_UP_TO || self.size == ValueSize::Json {
            let start = (hash >> 13) as usize % (self.pool.len() - len);
            return &self.pool[start..start + len];
        }
        if buf.len() < MADE_UP_TO + 8 {
            buf.resize(MADE_UP_TO + 8, 0);
        }
        half_random(&mut buf[..], len, hash);
        &buf[..len]
    }
}

/// Random bytes in the first half, the same again in the second: compresses to half by any
/// dictionary coder. `out` is at least eight bytes longer than `len`.
#[inline]
fn half_random(out: &mut [u8], len: usize, seed: u64) {
    let half = len.div_ceil(2);
    let mut at = 0;
    let mut state = seed;
    while at < half {
        out[at..at + 8].copy_from_slice(&mix(state).to_le_bytes());
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        at += 8;
    }
    let (first, second) = out.split_at_mut(half);
    second[..len - half].copy_from_slice(&first[..len - half]);
}

/// Half-compressible pieces of 100 bytes, one after the other.
fn pool(bytes: usize, seed: u64) -> Vec<u8> {
    let mut pool = Vec::with_capacity(bytes + 100);
    let mut piece = [0; 108];
    while pool.len() < bytes {
        half_random(&mut piece, 100, mix(seed ^ pool.len() as u64));
        pool.extend_from_slice(&piece[..100]);
    }
    pool
}

/// JSON objects, one after the other: names that repeat, contents that do not.
fn json_pool(seed: u64) -> Vec<u8> {
    const WORDS: [&str; 12] = [
        "harbour", "lantern", "copper", "morning", "of the", "river", "seldom", "a letter",
        "northern", "window", "and then", "quiet",
    ];
    let mut rng = Rng::new(seed);
    let mut pool = String::with_capacity(POOL_BYTES + 400);
    while pool.len() < POOL_BYTES {
        let id = rng.next_u64() >> 20;
        pool.push_str(&format!("{{\"id\":{id},\"active\":{},\"text\":\"", id.is_multiple_of(2)));
        for _ in 0..8 + rng.below(16) {
            pool.push_str(WORDS[rng.below(12) as usize]);
            pool.push(' ');
        }
        pool.push_str(&format!("\",\"score\":{}}},", rng.below(1_000_000)));
    }
    pool.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_repeat_and_differ_by_key_and_generation() {
        for size in ["100", "1..300", "zipf:16..4096", "100000", "json"] {
            let values = Values::new(size.parse().unwrap(), 7);
            let (mut a, mut b) = (Vec::new(), Vec::new());
            for i in 0..200 {
                let first = values.value(i, 1, &mut a).to_vec();
                assert_eq!(first, values.value(i, 1, &mut b), "{size}");
                assert_eq!(first.len(), values.len_of(i, 1));
                if first.len() > 8 {
                    assert_ne!(first, values.value(i, 2, &mut b), "{size}");
                    assert_ne!(first, values.value(i + 1, 1, &mut b), "{size}");
                }
            }
        }
    }

    #[test]
    fn the_second_half_is_the_first_again() {
        let values = Values::new(ValueSize::Fixed(101), 1);
        let mut b = Vec::new();
        let v = values.value(3, 1, &mut b);
        assert_eq!(v[..50], v[51..]);
    }

    #[test]
    fn zipf_is_mostly_short_with_a_long_tail() {
        let values = Values::new("zipf".parse().unwrap(), 1);
        let mut lens: Vec<usize> = (0..10_000).map(|i| values.len_of(i, 1)).collect();
        lens.sort_unstable();
        assert!(
            (200..320).contains(&lens[5000]),
            "the median is the geometric mean: {}",
            lens[5000]
        );
        assert!(lens[0] < 20 && lens[9_999] > 3900);
    }

    #[test]
    fn a_bad_size_is_refused_in_words() {
        assert!("0".parse::<ValueSize>().unwrap_err().contains("at least one"));
        assert!("9..3".parse::<ValueSize>().is_err());
        assert!("zipf:9".parse::<ValueSize>().is_err());
    }
}

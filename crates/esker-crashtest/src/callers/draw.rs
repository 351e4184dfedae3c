//! Keys and values.

use crate::script::Rng;

pub type Key = Vec<u8>;

/// One of these.
pub fn pick<T: Clone>(rng: &mut Rng, from: &[T]) -> T {
    from[rng.below(from.len() as u64) as usize].clone()
}

/// A value by what it is made from: no two alike, and the oracle stays small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value {
    seed: u64,
    len: u32,
}

impl Value {
    pub fn of_len(rng: &mut Rng, len: u64) -> Value {
        Value { seed: rng.next(), len: len as u32 }
    }

    /// Mostly small, now and then from nothing to 20 KB.
    pub fn draw(rng: &mut Rng) -> Value {
        let len = match rng.below(32) {
            0 => 0,
            1..=24 => rng.below(200),
            25..=30 => rng.below(3000),
            _ => rng.below(20_000),
        };
        Value::of_len(rng, len)
    }

    pub fn len(self) -> u64 {
        u64::from(self.len)
    }

    /// Half of it compresses.
    pub fn bytes(self) -> Vec<u8> {
        let mut rng = Rng::new(self.seed);
        let mut bytes = Vec::with_capacity(self.len as usize + 8);
        while bytes.len() < self.len as usize {
            bytes.extend_from_slice(&(rng.next() & 0xffff_ffff).to_le_bytes());
        }
        bytes.truncate(self.len as usize);
        bytes
    }
}

/// Keys of one writer: `n` of them, of several lengths, that no other writer has.
#[derive(Clone, Copy, Debug)]
pub struct Keys {
    pub n: u64,
    pub writer: usize,
}

impl Keys {
    pub fn key(self, number: u64) -> Key {
        let mut key = format!("{:06}/{}", number, self.writer).into_bytes();
        if number.is_multiple_of(17) {
            // Beyond what an index keeps of a key.
            key.extend(std::iter::repeat_n(b'k', (number % 300) as usize));
        }
        key
    }

    pub fn draw(self, rng: &mut Rng) -> Key {
        self.key(rng.below(self.n))
    }
}

//! The data every engine is given: the same keys, values and order, from one seed.

mod file;
mod keys;
mod model;
mod order;
mod popular;
mod rng;
mod values;

pub use file::{FileData, FileFormat, pack};
pub use keys::{KeyBuf, KeyShape, Keys};
pub use model::{Model, verify, verify_sample};
pub use order::{KeyStream, Order};
pub use popular::Zipfian;
pub use rng::{Rng, mix};
pub use values::{ValueSize, Values};

/// Keys, values and how many of them: all that a row needs to know about its data.
#[derive(Debug)]
pub struct Dataset {
    /// What a key looks like.
    pub keys: Keys,
    /// What a value looks like.
    pub values: Values,
    /// How many distinct keys there are.
    pub entries: u64,
    /// Everything random is drawn from this.
    pub seed: u64,
}

impl Dataset {
    /// Indexes of keys in an order; equal seeds give equal streams.
    pub fn stream(&self, order: Order, seed: u64) -> KeyStream {
        let stream = KeyStream::new(order, self.entries, seed);
        match &self.keys {
            Keys::File(file) => stream.over(file.clone()),
            Keys::Shape(_) => stream,
        }
    }
    /// As many bytes of key and value together as nine of ten entries have at most, by a sample.
    pub fn usual_entry_bytes(&self) -> u64 {
        const SAMPLE: u64 = 1000;
        // Drawn, since the lengths of neighbours may follow a pattern.
        let mut rng = Rng::new(mix(self.seed ^ 9));
        let mut key = KeyBuf::new();
        let drawn = (0..SAMPLE.min(self.entries)).map(|_| rng.below(self.entries));
        let bytes_of = |i| (self.keys.write(i, &mut key).len() + self.values.len_of(i, 1)) as u64;
        let mut bytes: Vec<u64> = drawn.map(bytes_of).collect();
        bytes.sort_unstable();
        bytes.get(bytes.len() * 9 / 10).copied().unwrap_or(0)
    }
    /// Bytes of all keys and values, were each key stored once in generation `generation`.
    pub fn raw_bytes(&self, generation: u32) -> u64 {
        let mut key = KeyBuf::new();
        (0..self.entries)
            .map(|i| {
                let key_len = self.keys.write(i, &mut key).len();
                (key_len + self.values.len_of(i, generation)) as u64
            })
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_entry_is_as_long_as_nine_of_ten_are_at_most() {
        let usual = |size: &str| {
            let values = Values::new(size.parse().unwrap(), 7);
            let keys = Keys::Shape(KeyShape::Decimal);
            Dataset { keys, values, entries: 100_000, seed: 7 }.usual_entry_bytes()
        };
        assert_eq!(usual("1000"), 1016);
        assert_eq!(usual("json"), 1016, "a sixth of the parts of a document is that long");
        let zipf = usual("zipf:16..4096");
        assert!((1500..3500).contains(&zipf), "{zipf}: the longest are rare");
    }
}

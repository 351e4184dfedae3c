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

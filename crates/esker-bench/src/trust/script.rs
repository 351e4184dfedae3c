//! What a process that is going to be killed writes: each operation follows from the seed and its
//! number, so whoever watches knows it by its number alone.

use crate::data::{Rng, mix};

/// Keys that are written, again and again.
pub const KEYS: u32 = 2000;

/// Entries of a batch.
const BATCH: usize = 10;

/// One operation. What it writes is [`super::entry::value`] of the key and the operation's number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// Writes one key.
    Put(u32),
    /// Deletes one key, which may not be there.
    Delete(u32),
    /// Writes several keys, all or none.
    Batch(Vec<u32>),
}

impl Op {
    /// The operation of a number.
    pub fn of(seed: u64, number: u64) -> Op {
        let mut rng = Rng::new(mix(seed) ^ number);
        let mut key = || rng.below(u64::from(KEYS)) as u32;
        match key() % 20 {
            0..11 => Op::Put(key()),
            11..15 => Op::Delete(key()),
            _ => {
                let mut keys: Vec<u32> = (0..BATCH).map(|_| key()).collect();
                keys.sort_unstable();
                keys.dedup();
                Op::Batch(keys)
            }
        }
    }
    /// Keys that it changes.
    pub fn keys(&self) -> &[u32] {
        match self {
            Op::Put(key) | Op::Delete(key) => std::slice::from_ref(key),
            Op::Batch(keys) => keys,
        }
    }
    /// Whether these keys are there afterwards.
    pub fn writes(&self) -> bool {
        !matches!(self, Op::Delete(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_some_of_everything_and_always_the_same() {
        let ops: Vec<Op> = (1..1000).map(|number| Op::of(3, number)).collect();
        let count = |like: fn(&Op) -> bool| ops.iter().filter(|op| like(op)).count();
        assert!(count(|op| matches!(op, Op::Put(_))) > 400);
        assert!(count(|op| matches!(op, Op::Delete(_))) > 100);
        assert!(count(|op| matches!(op, Op::Batch(keys) if keys.len() > 5)) > 100);
        assert_eq!(ops[17], Op::of(3, 18));
        assert_ne!(ops, (1..1000).map(|number| Op::of(4, number)).collect::<Vec<_>>());
    }
}

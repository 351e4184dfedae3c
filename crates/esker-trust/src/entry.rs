//! Keys and values that prove themselves: a value says which write wrote it, and every other byte of it
//! follows from that and from the key.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Rng, mix};

/// A keyspace of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Space {
    /// That which is always there; stores without keyspaces have no other.
    Default,
    /// Made once, shared by all threads.
    Other,
    /// Made and dropped by its thread.
    Own(u8),
}

/// A key: only its thread writes it. Keys sort as their bytes do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Key {
    /// Where it is.
    pub space: Space,
    /// Which it is. The threads' keys lie between each other's.
    pub number: u32,
    /// Whose it is.
    pub thread: u8,
}

impl Key {
    /// In place of the keyspace of a thread, which is there or not as a key is.
    pub fn keyspace_of(thread: u8) -> Key {
        Key { space: Space::Own(thread), number: u32::MAX, thread }
    }

    /// What the store is given.
    pub fn bytes(&self) -> Vec<u8> {
        format!("{:06}/{}", self.number, self.thread).into_bytes()
    }

    /// The key of these bytes; `None` when there is none.
    pub fn of(space: Space, bytes: &[u8]) -> Option<Key> {
        let (number, thread) = std::str::from_utf8(bytes).ok()?.split_once('/')?;
        let key = Key { space, number: number.parse().ok()?, thread: thread.parse().ok()? };
        (key.bytes() == bytes).then_some(key)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Key::keyspace_of(self.thread) {
            return write!(f, "the keyspace of thread {}", self.thread);
        }
        write!(f, "key {}/{}", self.number, self.thread)?;
        if self.space == Space::Default { Ok(()) } else { write!(f, " of {:?}", self.space) }
    }
}

/// A write: the number of its operation, its place in it, how long its value may be. A later one of the same
/// thread is larger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Write(u64);

impl Write {
    /// Any write of nothing: an empty value does not say whose it is.
    pub const EMPTY: Write = Write(0);
    /// The number in front of each value, and something of what follows from the key.
    const LEAST: u64 = 12;

    /// A write of an operation, which is numbered from 1; of nothing, or of up to so many bytes more
    /// than the least.
    pub fn new(number: u32, place: usize, more: u16) -> Write {
        Write(u64::from(number) << 24 | (place as u64) << 16 | u64::from(more))
    }

    /// The number of its operation.
    pub fn number(self) -> u32 {
        (self.0 >> 24) as u32
    }

    /// What its value says of it.
    pub fn seen(self) -> Write {
        if self.0 as u16 == 0 { Write::EMPTY } else { self }
    }

    /// What it writes to a key. No two are alike.
    pub fn value(self, key: Key) -> Vec<u8> {
        let space = match key.space {
            Space::Default => 0,
            Space::Other => 1,
            Space::Own(thread) => 2 + u64::from(thread),
        };
        let whose = u64::from(key.number) << 32 | space << 8 | u64::from(key.thread);
        let mut rng = Rng::new(mix(self.0) ^ mix(whose));
        if self.seen() == Write::EMPTY {
            return Vec::new();
        }
        let len = (Write::LEAST + rng.below(u64::from(self.0 as u16))) as usize;
        let mut bytes = Vec::with_capacity(len + 8);
        bytes.extend_from_slice(&self.0.to_le_bytes());
        while bytes.len() < len {
            // Half of it compresses.
            bytes.extend_from_slice(&(rng.next() & 0xffff_ffff).to_le_bytes());
        }
        bytes.truncate(len);
        bytes
    }

    /// The write that wrote a value of a key; `None` when a byte is not as it was written, or of another key.
    pub fn of(key: Key, value: &[u8]) -> Option<Write> {
        let Some(number) = value.first_chunk() else {
            return value.is_empty().then_some(Write::EMPTY);
        };
        let write = Write(u64::from_le_bytes(*number));
        (write.value(key) == value).then_some(write)
    }
}

impl fmt::Display for Write {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Write::EMPTY => write!(f, "an empty value"),
            write => write!(f, "a write of operation {}", write.number()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_changed_byte_is_seen() {
        let key = Key { space: Space::Other, number: 7, thread: 1 };
        for more in [1, 150, 12_000] {
            let write = Write::new(9, 3, more);
            let good = write.value(key);
            assert_eq!(Write::of(key, &good), Some(write));
            for at in 0..good.len() {
                let mut bad = good.clone();
                bad[at] ^= 0x10;
                assert_eq!(Write::of(key, &bad), None, "byte {at}");
            }
            for other in [Key { number: 8, ..key }, Key { space: Space::Default, ..key }] {
                assert_eq!(Write::of(other, &good), None, "of another key");
            }
            assert_eq!(Write::of(key, &good[..good.len() - 1]), None, "cut");
        }
        assert_eq!(Write::of(key, b""), Some(Write::EMPTY));
        assert_eq!(Key::of(key.space, &key.bytes()), Some(key));
        assert!([&b"7/1"[..], b"", b"000007"].iter().all(|b| Key::of(Space::Other, b).is_none()));
    }
}

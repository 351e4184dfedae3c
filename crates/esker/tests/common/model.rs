//! What a store should be: a sorted map for each keyspace, in plain memory.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use esker::{Comparator as _, KeyOrder};

use super::rng::Rng;
use super::{NoCase, no_case};

/// The orders that tests use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    Bytewise,
    Reverse,
    NoCase,
}

impl Order {
    pub fn key_order(self) -> KeyOrder {
        match self {
            Order::Bytewise => KeyOrder::Bytewise,
            Order::Reverse => KeyOrder::Reverse,
            Order::NoCase => no_case(),
        }
    }

    pub fn compare(self, a: &[u8], b: &[u8]) -> Ordering {
        match self {
            Order::Bytewise => a.cmp(b),
            Order::Reverse => b.cmp(a),
            Order::NoCase => NoCase.compare(a, b),
        }
    }
}

/// A key that knows its order.
#[derive(Debug, Clone)]
pub struct Key(Order, Vec<u8>);

impl PartialEq for Key {
    fn eq(&self, other: &Key) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for Key {}
impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Key) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Key {
    fn cmp(&self, other: &Key) -> Ordering {
        self.0.compare(&self.1, &other.1)
    }
}

/// One keyspace: the key as it was last spelled, and its value.
#[derive(Debug, Clone)]
pub struct Map {
    pub order: Order,
    map: BTreeMap<Key, Entry>,
}

pub type Entry = (Arc<[u8]>, Arc<[u8]>);

impl Map {
    pub fn new(order: Order) -> Map {
        Map { order, map: BTreeMap::new() }
    }

    fn key(&self, key: &[u8]) -> Key {
        Key(self.order, key.to_vec())
    }

    pub fn put(&mut self, key: &[u8], value: &[u8]) {
        self.map.insert(self.key(key), (key.into(), value.into()));
    }

    pub fn delete(&mut self, key: &[u8]) {
        self.map.remove(&self.key(key));
    }

    pub fn get(&self, key: &[u8]) -> Option<&[u8]> {
        self.map.get(&self.key(key)).map(|e| &*e.1)
    }

    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// All entries in order.
    pub fn entries(&self) -> Vec<Entry> {
        self.map.values().cloned().collect()
    }

    /// The entries of a range, also of one that is upside down (then none).
    pub fn range(&self, low: Bound<&[u8]>, high: Bound<&[u8]>) -> Vec<Entry> {
        let above = |k: &[u8]| match low {
            Bound::Unbounded => true,
            Bound::Included(l) => self.order.compare(k, l).is_ge(),
            Bound::Excluded(l) => self.order.compare(k, l).is_gt(),
        };
        let below = |k: &[u8]| match high {
            Bound::Unbounded => true,
            Bound::Included(h) => self.order.compare(k, h).is_le(),
            Bound::Excluded(h) => self.order.compare(k, h).is_lt(),
        };
        self.map.values().filter(|e| above(&e.0) && below(&e.0)).cloned().collect()
    }

    /// The entries whose keys, as spelled, start so.
    pub fn prefix(&self, prefix: &[u8]) -> Vec<Entry> {
        self.map.values().filter(|e| e.0.starts_with(prefix)).cloned().collect()
    }
}

/// How the keys of a keyspace look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Up to three letters, the empty key among them.
    Short,
    /// Bytes at the edges of their range: 0, 1, 0x7f, 0x80, 0xff.
    Edges,
    /// A long prefix that most share.
    Prefixed,
    /// Numbers in order.
    Numbers,
    /// Words in both cases, which one order takes for the same.
    Words,
    /// A few hundred bytes, some far more.
    Long,
}

pub const SHAPES: [Shape; 6] =
    [Shape::Short, Shape::Edges, Shape::Prefixed, Shape::Numbers, Shape::Words, Shape::Long];

impl Shape {
    /// Key number `n` of this shape: always the same.
    pub fn key(self, n: u64) -> Vec<u8> {
        let mut rng = Rng::new(n.wrapping_mul(0xA24B_AED4_963E_E407) ^ self as u64);
        let letters = |rng: &mut Rng, alphabet: &[u8], len: usize| -> Vec<u8> {
            (0..len).map(|_| rng.pick(alphabet)).collect()
        };
        match self {
            Shape::Short => {
                let len = rng.below(4);
                letters(&mut rng, b"abcABC", len)
            }
            Shape::Edges => {
                let len = rng.below(14);
                letters(&mut rng, &[0, 1, 0x7f, 0x80, 0xff], len)
            }
            Shape::Prefixed => {
                let mut key = b"/a/common/beginning/of/most/keys/".to_vec();
                key.truncate(if rng.one_in(8) { rng.below(key.len()) } else { key.len() });
                key.extend_from_slice(format!("{:05}", n % 100_000).as_bytes());
                key
            }
            Shape::Numbers => n.to_be_bytes().to_vec(),
            Shape::Words => {
                let len = 1 + rng.below(6);
                letters(&mut rng, b"abcdefABCDEF", len)
            }
            Shape::Long => {
                let len = if rng.one_in(64) { 8000 } else { 200 } + rng.below(200);
                let mut key = rng.bytes(len);
                key[..150].fill(b'x');
                key
            }
        }
    }
}

/// A value no other call makes (unless it is shorter than eight bytes), at the sizes that matter:
/// nothing, small, around the threshold of separation, large.
pub fn value(rng: &mut Rng, serial: u64, threshold: usize) -> Vec<u8> {
    let len = match rng.below(20) {
        0 => 0,
        1..=9 => rng.below(100),
        10..=14 => rng.below(700),
        15..=17 => (threshold + rng.below(5)).saturating_sub(2),
        18 => rng.below(6_000),
        _ => rng.below(20_000),
    };
    let mut value = match rng.below(3) {
        0 => rng.bytes(len),
        1 => vec![b'v'; len],
        _ => b"field=some text that repeats; ".iter().copied().cycle().take(len).collect(),
    };
    let stamp = serial.to_le_bytes();
    let n = len.min(8);
    value[..n].copy_from_slice(&stamp[..n]);
    value
}

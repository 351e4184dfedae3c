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

/// A key as it was spelled, which knows its order.
#[derive(Debug, Clone)]
pub struct Key(Order, Arc<[u8]>);

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

/// One keyspace: keys as they were last spelled, and their values. A clone stays as it is; it costs
/// nothing until one of the two is written to.
#[derive(Debug, Clone)]
pub struct Map {
    pub order: Order,
    map: Arc<BTreeMap<Key, Arc<[u8]>>>,
}

pub type Entry = (Arc<[u8]>, Arc<[u8]>);

impl Map {
    pub fn new(order: Order) -> Map {
        Map { order, map: Arc::default() }
    }

    fn key(&self, key: &[u8]) -> Key {
        Key(self.order, key.into())
    }

    pub fn put(&mut self, key: &[u8], value: &[u8]) {
        let key = self.key(key);
        let map = Arc::make_mut(&mut self.map);
        // An entry that stays would keep its key as it was spelled before.
        map.remove(&key);
        map.insert(key, value.into());
    }

    pub fn delete(&mut self, key: &[u8]) {
        let key = self.key(key);
        Arc::make_mut(&mut self.map).remove(&key);
    }

    pub fn get(&self, key: &[u8]) -> Option<&[u8]> {
        self.map.get(&self.key(key)).map(|value| &**value)
    }

    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// All entries in order, from both ends.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Entry> {
        self.map.iter().map(entry)
    }

    /// The entries of a range, also of one that is upside down (then none), from both ends.
    pub fn range<'a>(
        &'a self,
        low: Bound<&[u8]>,
        high: Bound<&[u8]>,
    ) -> impl DoubleEndedIterator<Item = Entry> + use<'a> {
        let (low, high) = (low.map(|k| self.key(k)), high.map(|k| self.key(k)));
        let none = match (&low, &high) {
            (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
            (Bound::Excluded(l), Bound::Excluded(h)) => l >= h,
            (Bound::Included(l) | Bound::Excluded(l), Bound::Included(h) | Bound::Excluded(h)) => {
                l > h
            }
        };
        (!none).then(|| self.map.range((low, high)).map(entry)).into_iter().flatten()
    }

    /// The entries whose keys, as spelled, start so. Under some orders they are not side by side.
    pub fn prefix(&self, prefix: &[u8]) -> impl DoubleEndedIterator<Item = Entry> {
        self.map.iter().filter(move |(key, _)| key.1.starts_with(prefix)).map(entry)
    }

    pub fn first(&self) -> Option<Entry> {
        self.iter().next()
    }

    pub fn last(&self) -> Option<Entry> {
        self.iter().next_back()
    }

    /// The first entry at a key or behind it; behind it only, without `or_at`.
    pub fn after(&self, key: &[u8], or_at: bool) -> Option<Entry> {
        let low = if or_at { Bound::Included(key) } else { Bound::Excluded(key) };
        self.range(low, Bound::Unbounded).next()
    }

    /// The last entry at a key or before it; before it only, without `or_at`.
    pub fn before(&self, key: &[u8], or_at: bool) -> Option<Entry> {
        let high = if or_at { Bound::Included(key) } else { Bound::Excluded(key) };
        self.range(Bound::Unbounded, high).next_back()
    }
}

fn entry((key, value): (&Key, &Arc<[u8]>)) -> Entry {
    (Arc::clone(&key.1), Arc::clone(value))
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

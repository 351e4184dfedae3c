//! What a writer thread does: the same sequence of operations for the same seed, so that the
//! parent knows each of them by its number alone.

use std::collections::BTreeMap;

/// Random numbers that a seed repeats (SplitMix64).
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// From 0 up to but not including `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }

    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// The threads that write. Each has keys and one keyspace of its own.
pub const THREADS: usize = 4;
/// Keys of a thread in each keyspace.
const KEYS: u64 = 300;

/// A keyspace of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Space {
    Default,
    /// Made once, shared by all threads.
    Other,
    /// Made and dropped by its thread.
    Own(usize),
}

impl Space {
    pub fn name(self) -> String {
        match self {
            Space::Default => "default".to_string(),
            Space::Other => "other".to_string(),
            Space::Own(thread) => format!("own-{thread}"),
        }
    }
}

/// A value by what it is made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Value(u64);

impl Value {
    /// Nothing.
    const EMPTY: Value = Value(0);

    /// From nothing to beyond the separation threshold; no two alike.
    pub fn bytes(self) -> Vec<u8> {
        let mut rng = Rng::new(self.0);
        let len = match rng.below(16) {
            _ if self == Value::EMPTY => return Vec::new(),
            0..=11 => 8 + rng.below(150),
            12..=14 => 8 + rng.below(2000),
            _ => 8 + rng.below(12_000),
        };
        let mut bytes = Vec::with_capacity(len as usize + 8);
        bytes.extend_from_slice(&self.0.to_le_bytes());
        while bytes.len() < len as usize {
            // Half of it compresses.
            bytes.extend_from_slice(&(rng.next() & 0xffff_ffff).to_le_bytes());
        }
        bytes.truncate(len as usize);
        bytes
    }
}

/// A key of a thread: (keyspace, bytes).
pub type Key = (Space, Vec<u8>);
/// What keys become; `None` is deleted.
pub type Changes = BTreeMap<Key, Option<Value>>;

#[derive(Debug, Clone)]
pub enum Op {
    Put(Key, Value, bool),
    Delete(Key, bool),
    /// In this order; a key may come twice.
    Batch(Vec<(Key, Option<Value>)>, bool),
    /// Ascending.
    Load(Space, BTreeMap<Vec<u8>, Value>),
    Create,
    Drop,
    Flush,
    Compact(Space),
    Checkpoint,
    Settle,
    /// Taken, and held for some operations.
    Snapshot,
}

impl Op {
    pub fn name(&self) -> &'static str {
        match self {
            Op::Put(..) => "a put",
            Op::Delete(..) => "a delete",
            Op::Batch(..) => "a batch",
            Op::Load(..) => "a bulk load",
            Op::Create => "the making of a keyspace",
            Op::Drop => "the drop of a keyspace",
            Op::Flush => "a flush",
            Op::Compact(_) => "a compaction",
            Op::Checkpoint => "a checkpoint",
            Op::Settle => "settling",
            Op::Snapshot => "a snapshot",
        }
    }

    /// What the operation makes of keys, when it is done.
    pub fn changes(&self) -> Changes {
        match self {
            Op::Put(key, value, _) => BTreeMap::from([(key.clone(), Some(*value))]),
            Op::Delete(key, _) => BTreeMap::from([(key.clone(), None)]),
            Op::Batch(writes, _) => writes.iter().cloned().collect(),
            Op::Load(space, entries) => {
                entries.iter().map(|(k, v)| ((*space, k.clone()), Some(*v))).collect()
            }
            _ => BTreeMap::new(),
        }
    }
}

/// The operations of one thread in one cycle.
#[derive(Debug)]
pub struct Script {
    rng: Rng,
    thread: usize,
    /// Whether the thread's own keyspace is there.
    own: bool,
}

impl Script {
    /// `own`: whether the thread's keyspace is there when the cycle begins.
    pub fn new(seed: u64, cycle: u64, thread: usize, own: bool) -> Script {
        let rng = Rng::new(seed ^ (cycle << 16) ^ (thread as u64) << 8);
        Script { rng, thread, own }
    }

    fn key(&mut self, space: Space) -> Key {
        let (n, thread) = (self.rng.below(KEYS), self.thread);
        // The threads' keys lie between each other's.
        (space, format!("{n:04}/{thread}").into_bytes())
    }

    fn any_key(&mut self) -> Key {
        let space = match self.rng.below(5) {
            0 | 1 => Space::Default,
            2 if self.own => Space::Own(self.thread),
            _ => Space::Other,
        };
        self.key(space)
    }

    fn value(&mut self) -> Value {
        if self.rng.one_in(16) { Value::EMPTY } else { Value(self.rng.next()) }
    }

    pub fn next(&mut self) -> Op {
        let synced = self.rng.one_in(8);
        match self.rng.below(200) {
            0..110 => Op::Put(self.any_key(), self.value(), synced),
            110..140 => Op::Delete(self.any_key(), synced),
            140..185 => {
                let n = if self.rng.one_in(6) { 200 } else { 12 };
                let write = |s: &mut Script| (s.any_key(), (!s.rng.one_in(4)).then(|| s.value()));
                let n = self.rng.below(n);
                Op::Batch((0..n).map(|_| write(self)).collect(), synced)
            }
            185..188 => {
                let space = if self.rng.one_in(2) { Space::Default } else { Space::Other };
                let n = self.rng.below(100);
                Op::Load(space, (0..n).map(|_| (self.key(space).1, self.value())).collect())
            }
            188..190 => {
                self.own = !self.own;
                if self.own { Op::Create } else { Op::Drop }
            }
            190..193 => Op::Flush,
            193..195 => Op::Compact(if synced { Space::Other } else { Space::Default }),
            195 if self.thread == 0 => Op::Checkpoint,
            196 if self.thread == 1 => Op::Settle,
            _ => Op::Snapshot,
        }
    }
}

/// The thread whose key this is.
pub fn owner(key: &[u8]) -> Option<usize> {
    let text = std::str::from_utf8(key).ok()?;
    text.split_once('/')?.1.parse().ok().filter(|t| *t < THREADS)
}

//! What is written: each operation follows from the script, its thread and its number, so whoever
//! watches knows it by these alone.

use serde::{Deserialize, Serialize};

use crate::{Key, Rng, Space, Write, mix};

/// What writers write, and with which seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Script {
    /// What every engine can: one thread puts, deletes, and writes batches of ten, without end.
    Plain(u64),
    /// All that Esker can, in four threads, without end.
    Whole(u64),
    /// The store that is going to be damaged, of about 3,000 entries: half of it at rest in tables or
    /// pages, half where an engine keeps what was written last; with overwritten and deleted entries, so
    /// that an old one can come back.
    Specimen,
}

/// What an operation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// One key is written.
    Put,
    /// One key, which may not be there, is deleted.
    Delete,
    /// Several keys at once; one may come twice.
    Batch,
    /// Ascending keys, in bulk.
    Load(Space),
    /// The thread's keyspace is made.
    Create,
    /// The thread's keyspace is dropped, with all in it.
    Drop,
    /// Memory goes to tables.
    Flush,
    /// Tables of a keyspace are merged.
    Compact(Space),
    /// A copy of the store is made.
    Checkpoint,
    /// Whatever writing left to be done is done.
    Settle,
    /// Taken, and held for some operations.
    Snapshot,
}

/// A key, the write, and whether the key is there after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Change {
    /// What is written or deleted.
    pub key: Key,
    /// By which write.
    pub write: Write,
    /// Whether it is written.
    pub there: bool,
}

impl Change {
    /// The value, if the key is there.
    pub fn value(&self) -> Option<Vec<u8>> {
        self.there.then(|| self.write.value(self.key))
    }
}

/// An operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Op {
    /// Its number, from 1.
    pub number: u32,
    /// What it does.
    pub act: Act,
    /// To which keys, in this order.
    pub changes: Vec<Change>,
    /// Whether it waits for the device, where each can be asked for that by itself.
    pub synced: bool,
}

impl Script {
    /// How many threads write.
    pub fn threads(self) -> u8 {
        if matches!(self, Script::Whole(_)) { 4 } else { 1 }
    }

    /// How many keys a thread has in a keyspace.
    pub fn keys(self) -> u32 {
        match self {
            Script::Plain(_) => 2000,
            Script::Whole(_) => 300,
            Script::Specimen => 3300,
        }
    }

    /// Whether this is a key that it may write.
    pub fn has(self, key: Key) -> bool {
        let own = matches!(key.space, Space::Own(thread) if thread != key.thread);
        key.number < self.keys() && key.thread < self.threads() && !own
    }

    /// An operation of a thread; `None` behind the last. `own`: whether the thread's keyspace is there.
    pub fn op(self, thread: u8, number: u32, own: bool) -> Option<Op> {
        let (seed, whole) = match self {
            Script::Plain(seed) => (seed, false),
            Script::Whole(seed) => (seed, true),
            Script::Specimen => return specimen(number, self.keys()),
        };
        let rng = Rng::new(mix(seed) ^ u64::from(number) << 8 ^ u64::from(thread));
        let mut op = Op { number, act: Act::Settle, changes: Vec::new(), synced: false };
        op.act = Draw { rng, thread, keys: self.keys(), own, whole, op: &mut op }.act();
        Some(op)
    }
}

/// Every second key in batches; then, after these came to rest, most of them again, and the others; then
/// each tenth is deleted.
fn specimen(number: u32, keys: u32) -> Option<Op> {
    const BATCH: usize = 100;
    let those = |like: fn(&u32) -> bool| (0..keys).filter(like).collect::<Vec<u32>>();
    let first = those(|n| n.is_multiple_of(2));
    let second = those(|n| n % 2 == 1 || n.is_multiple_of(10));
    let batches = |keys: Vec<u32>| keys.chunks(BATCH).map(<[u32]>::to_vec).collect::<Vec<_>>();
    let steps = batches(first).into_iter().map(|keys| (Act::Batch, keys));
    let steps = steps.chain([(Act::Settle, Vec::new())]);
    let steps = steps.chain(batches(second).into_iter().map(|keys| (Act::Batch, keys)));
    let gone = those(|n| n % 10 == 4).into_iter().map(|key| (Act::Delete, vec![key]));
    let (act, keys) = steps.chain(gone).nth((number as usize).checked_sub(1)?)?;
    let mut op = Op { number, act, changes: Vec::new(), synced: false };
    for key in keys {
        let long = mix(u64::from(number) << 32 | u64::from(key)).is_multiple_of(40);
        let key = Key { space: Space::Default, number: key, thread: 0 };
        op.change(key, if long { 12_000 } else { 150 }, act == Act::Batch);
    }
    Some(op)
}

impl Op {
    fn change(&mut self, key: Key, more: u16, there: bool) {
        let write = Write::new(self.number, self.changes.len(), more);
        self.changes.push(Change { key, write, there });
    }
}

/// An operation in the making.
struct Draw<'a> {
    rng: Rng,
    thread: u8,
    keys: u32,
    own: bool,
    whole: bool,
    op: &'a mut Op,
}

impl Draw<'_> {
    fn act(&mut self) -> Act {
        self.op.synced = self.rng.one_in(8);
        // What comes behind the batches is Esker's.
        match self.rng.below(if self.whole { 200 } else { 185 }) {
            0..110 => self.change(true, Act::Put),
            110..140 => self.change(false, Act::Delete),
            140..185 => self.batch(),
            185..188 => self.load(),
            188..190 => {
                let act = if self.own { Act::Drop } else { Act::Create };
                self.op.change(Key::keyspace_of(self.thread), 0, !self.own);
                act
            }
            190..193 => Act::Flush,
            193..195 => Act::Compact(self.shared_space()),
            195 if self.thread == 0 => Act::Checkpoint,
            196 if self.thread == 1 => Act::Settle,
            _ => Act::Snapshot,
        }
    }

    fn change(&mut self, there: bool, act: Act) -> Act {
        let space = match self.rng.below(5) {
            _ if !self.whole => Space::Default,
            0 | 1 => Space::Default,
            2 if self.own => Space::Own(self.thread),
            _ => Space::Other,
        };
        self.change_in(space, there);
        act
    }

    fn change_in(&mut self, space: Space, there: bool) {
        let number = self.rng.below(u64::from(self.keys)) as u32;
        // From nothing to beyond the size from which engines treat values apart.
        let more = match self.rng.below(160) {
            0..10 if self.whole => 0,
            10..40 if self.whole => 2000,
            40..50 if self.whole => 12_000,
            0..4 => 12_000,
            _ => 150,
        };
        self.op.change(Key { space, number, thread: self.thread }, more, there);
    }

    fn batch(&mut self) -> Act {
        let n = match self.whole {
            false => 10,
            true if self.rng.one_in(6) => self.rng.below(200),
            true => self.rng.below(12),
        };
        for _ in 0..n {
            let there = !self.whole || !self.rng.one_in(4);
            self.change(there, Act::Batch);
        }
        if !self.whole {
            self.sort();
        }
        Act::Batch
    }

    fn load(&mut self) -> Act {
        let space = self.shared_space();
        (0..self.rng.below(100)).for_each(|_| self.change_in(space, true));
        self.sort();
        Act::Load(space)
    }

    fn shared_space(&mut self) -> Space {
        if self.rng.one_in(2) { Space::Default } else { Space::Other }
    }

    /// Ascending, and each key once.
    fn sort(&mut self) {
        self.op.changes.sort_unstable();
        self.op.changes.dedup_by_key(|change| change.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_some_of_everything_and_always_the_same() {
        let all = |script: Script, thread| -> Vec<Op> {
            (1..4000).map_while(|n| script.op(thread, n, n % 2 == 0)).collect()
        };
        let whole: Vec<Op> = (0..4).flat_map(|thread| all(Script::Whole(3), thread)).collect();
        let count = |ops: &[Op], like: fn(&Op) -> bool| ops.iter().filter(|op| like(op)).count();
        for act in [
            Act::Put,
            Act::Delete,
            Act::Batch,
            Act::Load(Space::Default),
            Act::Load(Space::Other),
            Act::Create,
            Act::Drop,
            Act::Flush,
            Act::Compact(Space::Other),
            Act::Checkpoint,
            Act::Settle,
            Act::Snapshot,
        ] {
            assert!(whole.iter().any(|op| op.act == act), "{act:?}");
        }
        let plain = all(Script::Plain(3), 0);
        assert!(count(&plain, |op| op.act == Act::Put) > 1600);
        assert!(count(&plain, |op| op.act == Act::Delete) > 400);
        assert!(count(&plain, |op| op.act == Act::Batch && op.changes.len() > 5) > 400);
        assert_eq!(plain.iter().map(|op| op.number).sum::<u32>(), 3999 * 2000);
        assert!(plain.iter().flat_map(|op| &op.changes).all(|c| Script::Plain(3).has(c.key)));
        assert_eq!(plain, all(Script::Plain(3), 0));
        assert_ne!(plain, all(Script::Plain(4), 0));
        assert_eq!(all(Script::Specimen, 0).len(), 17 + 1 + 20 + 330);
    }
}

//! What a writer does to a store: a stream of operations that a seed repeats, so that another
//! process knows each of them by its number.

use esker::{Db, Durability, KeyOrder, Keyspace, Result, WriteBatch};

use super::api;
use super::draw::{Key, Keys, Value};
use super::tally::{Of, count};
use crate::script::Rng;

/// Where (by the position of the keyspace in the model), which key, which value: `None` deletes.
pub type Change = (usize, Key, Option<Value>);

#[derive(Clone, Debug)]
pub enum Op {
    /// A put or delete if it is one change, else a batch.
    Write(Vec<Change>, Durability),
    Load(Vec<Change>),
    Flush,
    Compact(usize),
    Settle,
    Sync,
}

/// The operations of one writer.
#[derive(Clone, Debug)]
pub struct Ops {
    rng: Rng,
    /// Of the keyspaces that are written to.
    orders: Vec<KeyOrder>,
    keys: Keys,
}

impl Ops {
    pub fn new(seed: u64, orders: Vec<KeyOrder>, keys: Keys) -> Ops {
        Ops { rng: Rng::new(seed ^ (keys.writer as u64) << 40), orders, keys }
    }

    fn space(&mut self) -> usize {
        self.rng.below(self.orders.len() as u64) as usize
    }

    fn change(&mut self) -> Change {
        let space = self.space();
        let value = (!self.rng.one_in(5)).then(|| Value::draw(&mut self.rng));
        (space, self.keys.draw(&mut self.rng), value)
    }

    pub fn next(&mut self) -> Op {
        let durability = match self.rng.one_in(12) {
            true => Durability::Synced,
            false => Durability::Buffered,
        };
        match self.rng.below(1000) {
            0..700 => Op::Write(vec![self.change()], durability),
            700..970 => {
                let n = 2 + self.rng.below(40);
                Op::Write((0..n).map(|_| self.change()).collect(), durability)
            }
            970..978 => {
                let space = self.space();
                let from = self.rng.below(self.keys.n);
                let to = (from + 1 + self.rng.below(300)).min(self.keys.n);
                let mut keys: Vec<Key> = (from..to).map(|n| self.keys.key(n)).collect();
                keys.sort_by(|a, b| self.orders[space].compare(a, b));
                let value = |ops: &mut Ops| Some(Value::draw(&mut ops.rng));
                Op::Load(keys.into_iter().map(|key| (space, key, value(self))).collect())
            }
            978..988 => Op::Flush,
            988..996 => Op::Compact(self.space()),
            996..998 => Op::Settle,
            _ => Op::Sync,
        }
    }
}

impl Op {
    /// Carries it out in the store with these keyspaces.
    pub fn perform(&self, db: &Db, spaces: &[Keyspace]) -> Result<()> {
        count(Of::Operations, 1);
        match self {
            Op::Write(changes, durability) => match &changes[..] {
                [(space, key, Some(value))] => {
                    spaces[*space].put_with(key, value.bytes(), *durability)
                }
                [(space, key, None)] => spaces[*space].delete_with(key, *durability),
                changes => {
                    let mut batch = WriteBatch::new();
                    for (space, key, value) in changes {
                        match value {
                            Some(value) => batch.put_in(&spaces[*space], key, value.bytes()),
                            None => batch.delete_in(&spaces[*space], key),
                        }
                    }
                    api::write(db, &batch, *durability)
                }
            },
            Op::Load(changes) => {
                count(Of::Loads, 1);
                let Some((space, ..)) = changes.first() else { return Ok(()) };
                let entry =
                    |(_, key, value): &Change| (key.clone(), value.map_or(vec![], Value::bytes));
                spaces[*space].bulk_load(changes.iter().map(entry)).map(drop)
            }
            Op::Flush => db.flush(),
            Op::Compact(space) => spaces[*space].compact_range::<&[u8]>(..),
            Op::Settle => db.wait_for_compactions(),
            Op::Sync => db.sync(),
        }
    }

    /// What it makes of keys, when it is done.
    pub fn changes(&self) -> &[Change] {
        match self {
            Op::Write(changes, _) | Op::Load(changes) => changes,
            _ => &[],
        }
    }
}

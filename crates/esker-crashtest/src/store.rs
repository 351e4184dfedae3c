//! Esker as the store under test, with everything that it can.

use std::path::Path;

use esker::{Db, Durability, Error, Keyspace, KeyspaceOptions, Snapshot, WriteBatch};
use esker_trust::{Act, Key, Op, Player, Result, Source, Space};

/// What a keyspace is called.
pub fn name(space: Space) -> String {
    match space {
        Space::Default => "default".to_string(),
        Space::Other => "other".to_string(),
        Space::Own(thread) => format!("own-{thread}"),
    }
}

/// A thread that writes.
pub struct Writer<'a> {
    db: &'a Db,
    checkpoints: &'a Path,
    thread: u8,
    snapshots: Vec<Snapshot>,
}

impl<'a> Writer<'a> {
    /// Of a store, with a directory for copies of it.
    pub fn new(db: &'a Db, checkpoints: &'a Path, thread: u8) -> Writer<'a> {
        Writer { db, checkpoints, thread, snapshots: Vec::new() }
    }

    fn space(&self, space: Space) -> esker::Result<Keyspace> {
        self.db.keyspace(&name(space))
    }

    fn act(&mut self, op: &Op) -> esker::Result<()> {
        let durability = if op.synced { Durability::Synced } else { Durability::Buffered };
        let own = name(Space::Own(self.thread));
        match op.act {
            Act::Put | Act::Delete => op.changes.iter().try_for_each(|change| {
                let (keyspace, key) = (self.space(change.key.space)?, change.key.bytes());
                match change.value() {
                    Some(value) => keyspace.put_with(&key, value, durability),
                    None => keyspace.delete_with(&key, durability),
                }
            }),
            Act::Batch => {
                let mut batch = WriteBatch::new();
                for change in &op.changes {
                    let (keyspace, key) = (self.space(change.key.space)?, change.key.bytes());
                    match change.value() {
                        Some(value) => batch.put_in(&keyspace, &key, value),
                        None => batch.delete_in(&keyspace, &key),
                    }
                }
                self.db.write_with(batch, durability)
            }
            Act::Load(space) => {
                let entries = op.changes.iter().filter_map(|c| Some((c.key.bytes(), c.value()?)));
                self.space(space)?.bulk_load(entries).map(drop)
            }
            Act::Create => self.db.create_keyspace(&own, KeyspaceOptions::new()).map(drop),
            Act::Drop => self.db.drop_keyspace(&own),
            Act::Flush => self.db.flush(),
            Act::Compact(space) => self.space(space)?.compact_range::<&[u8]>(..),
            Act::Checkpoint => self.db.checkpoint(self.checkpoints.join(op.number.to_string())),
            Act::Settle => self.db.wait_for_compactions(),
            Act::Snapshot => {
                self.snapshots.push(self.db.snapshot());
                if self.snapshots.len() > 3 {
                    self.snapshots.remove(0);
                }
                Ok(())
            }
        }
    }
}

impl Player for Writer<'_> {
    fn perform(&mut self, op: &Op) -> Result<()> {
        self.act(op).map_err(|e| e.to_string())
    }

    fn look_back(&mut self, op: &Op) -> Result<()> {
        if matches!(op.act, Act::Create | Act::Drop) {
            return Ok(());
        }
        for (at, change) in op.changes.iter().enumerate() {
            let again = op.changes[at + 1..].iter().any(|later| later.key == change.key);
            if !again && Reader(self.db).get(change.key)? != change.value() {
                return Err(format!("{} right after {op:?}", change.key));
            }
        }
        Ok(())
    }
}

/// Reads a store.
pub struct Reader<'a>(pub &'a Db);

impl Source for Reader<'_> {
    fn get(&mut self, key: Key) -> Result<Option<Vec<u8>>> {
        let value = self.0.keyspace(&name(key.space)).and_then(|k| k.get(key.bytes()));
        Ok(value.map_err(|e| e.to_string())?.map(|value| value.to_vec()))
    }

    fn scan(
        &mut self,
        space: Space,
        back: bool,
        see: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<bool> {
        let text = |e: Error| e.to_string();
        let keyspace = self.0.keyspace(&name(space)).map_err(text)?;
        let mut all = keyspace.iter().copied_out();
        while let Some(entry) = if back { all.next_back() } else { all.next() } {
            let (key, value) = entry.map_err(text)?;
            see(&key, &value);
        }
        Ok(true)
    }

    fn spaces(&mut self) -> (Vec<Space>, Vec<String>) {
        let known = [Space::Default, Space::Other].into_iter().chain((0..4).map(Space::Own));
        let (mut spaces, mut strange) = (Vec::new(), self.0.keyspaces());
        for space in known {
            let before = strange.len();
            strange.retain(|there| *there != name(space));
            spaces.extend((strange.len() < before).then_some(space));
        }
        (spaces, strange)
    }
}

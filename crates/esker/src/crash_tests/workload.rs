//! Operations of all kinds on a simulated disk, with a record of what each must leave.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::oracle::{History, State};
use crate::env::sim::{Promise, Rng, SimEnv};
use crate::{Compression, Db, Durability, KeyspaceOptions, Options, Result, WriteBatch};

pub(super) const DIR: &str = "/db";

/// A value that is written once only, and tells its number.
fn value(number: usize, len: usize) -> Arc<Vec<u8>> {
    let word = format!("{number}:{len}.");
    Arc::new(word.bytes().cycle().take(len).collect())
}

/// The beginning of a value, which tells it from all others.
pub(super) fn name_of(value: &[u8]) -> String {
    String::from_utf8_lossy(&value[..value.len().min(12)]).into_owned()
}

/// Settings under which much happens after few writes.
pub(super) fn options(rng: &mut Rng) -> Options {
    Options::new()
        .memory(1 << 20)
        .segment_size(64 << 10)
        .blob_threshold([1000, 4096][rng.below(2)])
        .compression([Compression::None, Compression::Lz4][rng.below(2)])
        .table_size([4 << 20, 8 << 10][rng.below(2)])
}

/// A store and what is to be found in it.
pub(super) struct World {
    pub env: SimEnv,
    pub options: Options,
    pub db: Option<Db>,
    pub history: History,
    pub promise: Promise,
    /// Directory and number of operations of each checkpoint that was begun.
    pub checkpoints: Vec<(PathBuf, usize)>,
    pub rng: Rng,
    /// Whether background work is done in steps.
    stepped: bool,
    /// Numbers for values and checkpoints that were given out.
    given: usize,
}

/// What a workload does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Op {
    Put,
    Delete,
    Batch,
    Flush,
    Sync,
    BulkLoad,
    Compact,
    Create,
    Drop,
    Checkpoint,
    Reopen,
    /// Lets background work be done, as if nothing had been written for so many milliseconds.
    Rest(u64),
}

impl World {
    pub(super) fn new(seed: u64, env: SimEnv, stepped: bool) -> World {
        let mut rng = Rng::part(seed, 1);
        World {
            env,
            options: options(&mut rng),
            db: None,
            history: History::new(),
            promise: Promise::default(),
            checkpoints: Vec::new(),
            rng,
            stepped,
            given: 0,
        }
    }

    pub(super) fn open(&mut self) -> Result<()> {
        self.env.forget_failures();
        let env = Arc::new(self.env.clone());
        self.db = Some(Db::open_in(env, Path::new(DIR), self.options.clone())?);
        Ok(())
    }

    fn db(&self) -> Db {
        self.db.clone().expect("the store is open")
    }

    /// One random operation.
    pub(super) fn act(&mut self) -> Result<()> {
        let op = match self.rng.below(100) {
            0..50 => Op::Put,
            50..60 => Op::Delete,
            60..75 => Op::Batch,
            75..78 => Op::Flush,
            78..82 => Op::Sync,
            82..85 => Op::BulkLoad,
            85..88 => Op::Compact,
            88..90 => Op::Create,
            90..91 => Op::Drop,
            91..92 => Op::Checkpoint,
            92..93 => Op::Reopen,
            _ => Op::Rest([0, 0, 0, 100, 3000][self.rng.below(5)]),
        };
        self.run(op)
    }

    /// One operation, of random keys and values.
    pub(super) fn run(&mut self, op: Op) -> Result<()> {
        match op {
            Op::Put => self.put(),
            Op::Delete => self.delete(),
            Op::Batch => self.batch(),
            Op::Flush => self.simple(Db::flush),
            Op::Sync => self.simple(Db::sync),
            Op::BulkLoad => self.bulk_load(),
            Op::Compact => self.compact(),
            Op::Create => self.create(),
            Op::Drop => self.drop_keyspace(),
            Op::Checkpoint => self.checkpoint(),
            Op::Reopen => self.reopen(),
            Op::Rest(quiet) => {
                self.rest(Duration::from_millis(quiet));
                Ok(())
            }
        }
    }

    /// Lets background work be done, as if nothing had been written for so long.
    fn rest(&self, quiet: Duration) {
        if self.stepped {
            self.db().store().step(quiet);
        } else {
            std::thread::sleep(quiet / 1000);
        }
    }

    fn keyspace(&mut self) -> String {
        let names: Vec<_> = self.history.last().keys().cloned().collect();
        match self.rng.one_in(2) {
            true => "default".to_string(),
            false => names[self.rng.below(names.len())].clone(),
        }
    }

    fn key(&mut self) -> Vec<u8> {
        format!("key {:02}", self.rng.below(40)).into_bytes()
    }

    fn value(&mut self) -> Arc<Vec<u8>> {
        let len = match self.rng.below(40) {
            0..14 => self.rng.below(100),
            14..26 => self.rng.below(900),
            26..34 => 1000 + self.rng.below(3000),
            34..39 => 4096 + self.rng.below(9000),
            _ => 66_000 + self.rng.below(9000),
        };
        self.given += 1;
        value(self.given, len)
    }

    fn durability(&mut self) -> Durability {
        if self.rng.one_in(6) { Durability::Synced } else { Durability::Buffered }
    }

    /// An operation begins that leads to `next`.
    fn begin(&mut self, next: State) {
        self.history.push(Arc::new(next));
        self.promise.begun = self.history.len();
        self.env.set_promise(self.promise);
    }

    /// The operation has returned.
    fn end(&mut self, durable: bool) {
        self.promise.acknowledged = self.history.len();
        if durable {
            self.promise.durable = self.history.len();
        }
        self.env.set_promise(self.promise);
    }

    fn next(&self) -> State {
        State::clone(self.history.last())
    }

    fn put(&mut self) -> Result<()> {
        let (space, key, value) = (self.keyspace(), self.key(), self.value());
        let durability = self.durability();
        let mut next = self.next();
        next.get_mut(&space).expect("it is there").insert(key.clone(), Arc::clone(&value));
        self.begin(next);
        self.db().keyspace(&space)?.put_with(&key, &*value, durability)?;
        self.end(durability == Durability::Synced);
        Ok(())
    }

    fn delete(&mut self) -> Result<()> {
        let (space, key, durability) = (self.keyspace(), self.key(), self.durability());
        let mut next = self.next();
        next.get_mut(&space).expect("it is there").remove(&key);
        self.begin(next);
        self.db().keyspace(&space)?.delete_with(&key, durability)?;
        self.end(durability == Durability::Synced);
        Ok(())
    }

    fn batch(&mut self) -> Result<()> {
        let durability = self.durability();
        let mut next = self.next();
        let mut batch = WriteBatch::new();
        for _ in 0..2 + self.rng.below(6) {
            let (name, key, value) = (self.keyspace(), self.key(), self.value());
            let keyspace = self.db().keyspace(&name)?;
            let space = next.get_mut(&name).expect("it is there");
            if self.rng.one_in(4) {
                batch.delete_in(&keyspace, &key);
                space.remove(&key);
            } else {
                batch.put_in(&keyspace, &key, &*value);
                space.insert(key, value);
            }
        }
        self.begin(next);
        self.db().write_with(batch, durability)?;
        self.end(durability == Durability::Synced);
        Ok(())
    }

    /// What changes nothing, and makes everything durable.
    fn simple(&mut self, act: impl Fn(&Db) -> Result<()>) -> Result<()> {
        self.begin(self.next());
        act(&self.db())?;
        self.end(true);
        Ok(())
    }

    fn bulk_load(&mut self) -> Result<()> {
        let name = self.keyspace();
        let mut next = self.next();
        let space = next.get_mut(&name).expect("it is there");
        let mut entries = super::oracle::Space::new();
        for _ in 0..1 + self.rng.below(8) {
            entries.insert(self.key(), self.value());
        }
        space.extend(entries.clone());
        self.begin(next);
        self.db().keyspace(&name)?.bulk_load(entries.iter().map(|(k, v)| (k, v.as_slice())))?;
        self.end(true);
        Ok(())
    }

    fn compact(&mut self) -> Result<()> {
        let name = self.keyspace();
        self.begin(self.next());
        self.db().keyspace(&name)?.compact_range::<&str>(..)?;
        self.end(false);
        Ok(())
    }

    fn create(&mut self) -> Result<()> {
        let name = ["one", "two", "three"][self.rng.below(3)];
        let mut next = self.next();
        if next.contains_key(name) {
            return Ok(());
        }
        next.insert(name.to_string(), Default::default());
        self.begin(next);
        self.db().create_keyspace(name, KeyspaceOptions::new())?;
        self.promise.named = self.history.len();
        self.end(false);
        Ok(())
    }

    fn drop_keyspace(&mut self) -> Result<()> {
        let name = self.keyspace();
        if name == "default" {
            return Ok(());
        }
        let mut next = self.next();
        next.remove(&name);
        self.begin(next);
        self.db().drop_keyspace(&name)?;
        self.promise.named = self.history.len();
        self.end(true);
        Ok(())
    }

    fn checkpoint(&mut self) -> Result<()> {
        self.given += 1;
        let dir = PathBuf::from(format!("/copy {}", self.given));
        self.begin(self.next());
        self.checkpoints.push((dir.clone(), self.history.len()));
        self.db().checkpoint(&dir)?;
        self.promise.checkpoints = self.checkpoints.len();
        self.end(true);
        Ok(())
    }

    fn reopen(&mut self) -> Result<()> {
        self.begin(self.next());
        if let Some(db) = self.db.take() {
            db.close()?;
        }
        self.open()?;
        self.end(true);
        Ok(())
    }

    /// An operation failed that began after the first `before`: what is there now is what was before
    /// it, or after it. Where writes have stopped the other may be found when the store is opened
    /// again: the manifest's last edit may be durable or not.
    pub(super) fn settle(&mut self, before: usize, now: &State) -> Result<(), String> {
        let Some(after) = self.history.since(before) else { return Ok(()) };
        self.checkpoints.truncate(self.promise.checkpoints);
        if *after != *now {
            self.history.take_back();
            if self.history.last().as_ref() != now {
                return Err(self.history.not_last(now));
            }
            if self.db.as_ref().is_none_or(|db| db.store().halt_cause().is_some()) {
                self.history.admit(after);
            }
        }
        self.promise.begun = self.history.len();
        self.env.set_promise(self.promise);
        Ok(())
    }

    /// Writes go on, or the store was opened again: what is there now is what is.
    pub(super) fn resumed(&mut self, now: &State) -> Result<(), String> {
        let promise = Promise { durable: self.promise.acknowledged, ..self.promise };
        self.history.judge(now, &promise)?;
        self.history.admit_no_more();
        if self.history.last().as_ref() != now {
            self.history.push(Arc::new(now.clone()));
            self.promise.begun = self.history.len();
            self.promise.acknowledged = self.history.len();
            self.env.set_promise(self.promise);
        }
        Ok(())
    }
}

//! The process that is killed: opens the store and lets each thread play its script. It says what
//! it is about to do and what it has done on its standard output, and nothing else counts.

use std::io::Write;
use std::path::Path;

use esker::{Compression, Db, Durability, Keyspace, KeyspaceOptions, Options, Result, WriteBatch};

use crate::script::{Op, Rng, Script, Space, THREADS};

/// One line of eight bytes: what, which thread, a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message {
    /// The store is open.
    Opened,
    /// A thread begins its operation of this number.
    Intent(usize, u32),
    /// It was done.
    Done(usize, u32),
}

impl Message {
    pub const LEN: usize = 8;

    fn encode(self) -> [u8; Message::LEN] {
        let (what, thread, number) = match self {
            Message::Opened => (b'O', 0, 0),
            Message::Intent(thread, number) => (b'I', thread, number),
            Message::Done(thread, number) => (b'D', thread, number),
        };
        let mut bytes = [what, thread as u8, 0, 0, 0, 0, 0, b'\n'];
        bytes[2..6].copy_from_slice(&number.to_le_bytes());
        bytes
    }

    pub fn decode(bytes: [u8; Message::LEN]) -> Option<Message> {
        let thread = bytes[1] as usize;
        let number = u32::from_le_bytes(bytes[2..6].try_into().ok()?);
        match bytes[0] {
            b'O' => Some(Message::Opened),
            b'I' => Some(Message::Intent(thread, number)),
            b'D' => Some(Message::Done(thread, number)),
            _ => None,
        }
    }

    pub fn say(self) {
        // One call of `write`, under the lock of the stream: a kill leaves whole lines.
        let mut out = std::io::stdout().lock();
        out.write_all(&self.encode()).and_then(|()| out.flush()).expect("the parent listens");
    }
}

/// Options of a cycle: small, so that everything happens often.
pub fn options(seed: u64, cycle: u64) -> Options {
    let mut rng = Rng::new(seed ^ cycle.rotate_left(32));
    let mut pick = |from: &[u64]| from[rng.below(from.len() as u64) as usize];
    let compression = [Compression::None, Compression::Lz4, Compression::Zstd];
    Options::new()
        .memory(1 << 20)
        .segment_size(pick(&[64, 128, 256, 1024]) << 10)
        .blob_threshold(1000)
        .compression(compression[pick(&[0, 1, 2]) as usize])
        .paranoid_checks(pick(&[0, 0, 1]) == 1)
}

/// Opens the store in `dir` and writes until killed. `checkpoints` is where copies go.
pub fn run(dir: &Path, checkpoints: &Path, seed: u64, cycle: u64) -> Result<()> {
    let db = options(seed, cycle).open(dir)?;
    if db.keyspace(&Space::Other.name()).is_err() {
        db.create_keyspace(&Space::Other.name(), KeyspaceOptions::new())?;
    }
    Message::Opened.say();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let player = Player { db: &db, checkpoints, thread, cycle, snapshots: Vec::new() };
            scope.spawn(move || {
                let own = player.db.keyspace(&Space::Own(thread).name()).is_ok();
                let script = Script::new(seed, cycle, thread, own);
                if let Err(e) = player.play(script) {
                    // With this the parent knows that it was no kill.
                    eprintln!("thread {thread}: {e}");
                    std::process::exit(1);
                }
            });
        }
    });
    Ok(())
}

struct Player<'a> {
    db: &'a Db,
    checkpoints: &'a Path,
    thread: usize,
    cycle: u64,
    snapshots: Vec<esker::Snapshot>,
}

impl Player<'_> {
    fn play(mut self, mut script: Script) -> Result<()> {
        for number in 0.. {
            let op = script.next();
            Message::Intent(self.thread, number).say();
            self.perform(&op, number)?;
            Message::Done(self.thread, number).say();
            self.look_back(&op)?;
        }
        Ok(())
    }

    fn space(&self, space: Space) -> Result<Keyspace> {
        self.db.keyspace(&space.name())
    }

    fn perform(&mut self, op: &Op, number: u32) -> Result<()> {
        let durability = |synced: &bool| match synced {
            true => Durability::Synced,
            false => Durability::Buffered,
        };
        match op {
            Op::Put((space, key), value, synced) => {
                self.space(*space)?.put_with(key, value.bytes(), durability(synced))
            }
            Op::Delete((space, key), synced) => {
                self.space(*space)?.delete_with(key, durability(synced))
            }
            Op::Batch(writes, synced) => {
                let mut batch = WriteBatch::new();
                for ((space, key), value) in writes {
                    match value {
                        Some(value) => batch.put_in(&self.space(*space)?, key, value.bytes()),
                        None => batch.delete_in(&self.space(*space)?, key),
                    }
                }
                self.db.write_with(batch, durability(synced))
            }
            Op::Load(space, entries) => {
                let entries = entries.iter().map(|(key, value)| (key, value.bytes()));
                self.space(*space)?.bulk_load(entries).map(drop)
            }
            Op::Create => {
                let name = Space::Own(self.thread).name();
                self.db.create_keyspace(&name, KeyspaceOptions::new()).map(drop)
            }
            Op::Drop => self.db.drop_keyspace(&Space::Own(self.thread).name()),
            Op::Flush => self.db.flush(),
            Op::Compact(space) => self.space(*space)?.compact_range::<&[u8]>(..),
            Op::Checkpoint => {
                self.db.checkpoint(self.checkpoints.join(format!("{}-{number}", self.cycle)))
            }
            Op::Settle => self.db.wait_for_compactions(),
            Op::Snapshot => {
                self.snapshots.push(self.db.snapshot());
                if self.snapshots.len() > 3 {
                    self.snapshots.remove(0);
                }
                Ok(())
            }
        }
    }

    /// What was just written is there: nobody else writes these keys.
    fn look_back(&self, op: &Op) -> Result<()> {
        for ((space, key), value) in op.changes() {
            let found = self.space(space)?.get(&key)?;
            assert!(
                found.as_deref() == value.map(|v| v.bytes()).as_deref(),
                "{space:?} {} right after {op:?}",
                key.escape_ascii()
            );
        }
        Ok(())
    }
}

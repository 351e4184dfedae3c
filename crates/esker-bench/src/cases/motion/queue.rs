//! Queues: an entry is put at the tail, the first is looked for and deleted, again and again. Each call by itself, and
//! the first entry looked for by a reader that moves on to the newest view before each look, as programs do which keep work in a
//! store. Some look for the first key of all; others remember which they took last and look behind that, as RocksDB's manual
//! advises for its tombstones ("Implement Queue Service Using RocksDB").

use crate::cases::{finish, touch};
use crate::child::Ctx;
use crate::data::{KeyBuf, Model};
use crate::engine::{Access, Engine, Hint, Reader, Sync, Writer};
use crate::measure::{Recorder, Timing, Until};
use crate::plan::CaseId;
use crate::protocol::Sample;
use anyhow::{Context, Result, ensure};

/// Entries that wait in a queue that is worked off as it is filled, and in one that is always behind.
const SHORT: u64 = 1;
const DEEP: u64 = 1000;

/// Takes as many entries as there are keys, less those that wait at the end.
pub fn run<E: Engine>(ctx: &Ctx) -> Result<()> {
    let data = ctx.plan().data()?;
    let backlog = match ctx.spec.case {
        CaseId::QueueDrain => data.entries,
        CaseId::QueueDeep => DEEP.min(data.entries / 2),
        _ => SHORT,
    };
    let drains = backlog == data.entries;
    let wanted = if drains { backlog } else { data.entries - backlog };
    let engine: E = ctx.open(&data, Sync::Buffered)?;
    let mut queue = Queue { data: &data, head: 0, tail: 0, remembers: ctx.plan().remembers };
    let mut recorder = Recorder::new(Timing::Every);
    {
        let mut writer = engine.writer(Hint::Ascending)?;
        ctx.doing("filling the queue");
        while queue.tail < backlog {
            queue.push(&mut writer)?;
        }
        // Not before: LMDB keeps every page that a transaction of a reader could still see.
        let mut reader = engine.reader(Access::BesideWriter)?;
        ctx.doing("taking");
        recorder.run(Until::ops_or(wanted, ctx.plan().deadline()), || {
            if !drains {
                queue.push(&mut writer)?;
            }
            queue.pop(&mut reader, &mut writer)
        })?;
    }
    let mut model = Model::empty(data.entries);
    (queue.head..queue.tail).for_each(|index| model.put(index, 1));
    let sample = Sample::of(ctx.row(), &recorder).of_wanted(wanted);
    finish(ctx, engine, &data, &model, [sample])
}

/// What waits: the entries from `head` to before `tail`.
struct Queue<'a> {
    data: &'a crate::data::Dataset,
    head: u64,
    tail: u64,
    remembers: bool,
}

impl Queue<'_> {
    fn push(&mut self, writer: &mut impl Writer) -> Result<()> {
        let (mut key, mut value) = (KeyBuf::new(), Vec::new());
        let value = self.data.values.value(self.tail, 1, &mut value);
        writer.put(self.data.keys.write(self.tail, &mut key), value)?;
        self.tail += 1;
        Ok(())
    }

    fn pop(&mut self, reader: &mut impl Reader, writer: &mut impl Writer) -> Result<()> {
        let (mut key, mut found) = (KeyBuf::new(), None);
        let from = self.data.keys.write(if self.remembers { self.head } else { 0 }, &mut key);
        reader.renew()?;
        reader.seek(from, 1, |key, value| found = Some((key.to_vec(), touch(value))))?;
        let (first, _) = found.context("the queue is empty")?;
        ensure!(first == self.data.keys.write(self.head, &mut key), "another entry is the first");
        reader.yield_view()?;
        writer.delete(&first)?;
        self.head += 1;
        Ok(())
    }
}

//! Writes that each wait for the device, from one thread or many at once.

use super::{at_once, finish};
use crate::child::Ctx;
use crate::data::{Dataset, KeyBuf, KeyStream, Model, Order};
use crate::device::{self, Beside, Waits};
use crate::engine::{Engine, Hint, Sync, Writer};
use crate::measure::{Recorder, Timing, Until};
use crate::plan::CaseId;
use crate::protocol::Sample;
use anyhow::{Context, Result};
use std::sync::Barrier;
use std::time::Instant;

/// What the threads share out: every key once, in one order, thread by thread in turn.
struct Work<'a> {
    data: &'a Dataset,
    order: Order,
    threads: u64,
    deadline: Option<Instant>,
}

/// Fills an empty store.
pub fn run<E: Engine>(ctx: &Ctx) -> Result<()> {
    let plan = ctx.plan();
    let (threads, order) = match ctx.spec.case {
        CaseId::FillSyncThreads => (plan.sync_threads, Order::Shuffled),
        CaseId::FillSyncSeq => (1, Order::Sequential),
        _ => (1, Order::Shuffled),
    };
    let data = plan.data_of((plan.sync_ops / threads * threads).max(threads))?;
    // Beside the store, and in the same minute: a device's temper changes.
    let beside = ctx.dir().parent().context("a store has a directory around it")?;
    let mut device = device::probe(beside).context("ask the device")?;
    let engine: E = ctx.open(&data, Sync::Synced)?;
    ctx.doing("filling, synced");
    let barrier = Barrier::new(threads as usize);
    let waits = Waits::count();
    let work = Work { data: &data, order, threads, deadline: plan.deadline() };
    let recorders = match ctx.spec.case.has_threads() {
        true => at_once(threads, |number| work.thread(&engine, number, &barrier))?,
        // The store was opened for this one.
        false => vec![work.thread(&engine, 0, &barrier)?],
    };
    let mut all = Recorder::new(Timing::Every);
    recorders.iter().for_each(|recorder| all.merge(recorder));
    let done: Vec<u64> = recorders.iter().map(Recorder::ops).collect();
    let waits_per_op = waits.per_op(all.ops())?;
    let mut sample = ctx.noted(Sample::of(ctx.row(), &all).of_wanted(data.entries));
    device.merge(&device::probe(beside).context("ask the device")?);
    let fdatasync_us = device.latency().p50_us;
    sample.device = Some(Beside { fdatasync_us, waits_per_op });
    finish(ctx, engine, &data, &work.written(&done), [sample])
}

impl Work<'_> {
    fn stream(&self) -> KeyStream {
        KeyStream::new(self.order, self.data.entries, self.data.seed)
    }

    /// Every `threads`-th key.
    fn thread<E: Engine>(&self, engine: &E, number: u64, barrier: &Barrier) -> Result<Recorder> {
        let data = self.data;
        let hint = if self.order == Order::Sequential { Hint::Ascending } else { Hint::Any };
        let writer = engine.writer(hint);
        let mut stream = self.stream();
        for _ in 0..number {
            stream.next_index();
        }
        let (mut key, mut value) = (KeyBuf::new(), Vec::new());
        let mut recorder = Recorder::new(Timing::Every);
        // Whatever happened: a thread that stays away would leave the others waiting for ever.
        barrier.wait();
        let mut writer = writer?;
        recorder.run(Until::ops_or(data.entries / self.threads, self.deadline), || {
            let index = stream.next_index();
            for _ in 1..self.threads {
                stream.next_index();
            }
            let value = data.values.value(index, 1, &mut value);
            writer.put(data.keys.write(index, &mut key), value)
        })?;
        Ok(recorder)
    }

    /// What must be there when thread `i` has done `done[i]` writes.
    fn written(&self, done: &[u64]) -> Model {
        let mut model = Model::empty(self.data.entries);
        let mut stream = self.stream();
        for at in 0..self.data.entries {
            let index = stream.next_index();
            if at / self.threads < done[(at % self.threads) as usize] {
                model.put(index, 1);
            }
        }
        model
    }
}

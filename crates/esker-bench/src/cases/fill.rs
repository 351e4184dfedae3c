//! Writing: ascending and random, one by one and in batches, buffered and synced, small and large.

use super::load;
use crate::child::Ctx;
use crate::data::{Dataset, KeyBuf, KeyStream, Model, Order, mix, verify};
use crate::engine::{Engine, Hint, Sync, Writer};
use crate::measure::{Recorder, Timing, Until};
use crate::plan::CaseId;
use crate::protocol::Sample;
use anyhow::Result;
use std::sync::Barrier;

/// Fills an empty store.
pub fn run<E: Engine>(ctx: &Ctx) -> Result<()> {
    let plan = ctx.plan();
    let (large, random, batched) = match ctx.spec.case {
        CaseId::FillBatch => (false, false, true),
        CaseId::FillRandom => (false, true, false),
        CaseId::FillRandBatch => (false, true, true),
        CaseId::LargeSeq => (true, false, false),
        CaseId::LargeRandom => (true, true, false),
        _ => (false, false, false),
    };
    let data = if large { plan.large_data() } else { plan.data() };
    let order = match (random, plan.unique) {
        (false, _) => Order::Sequential,
        (true, true) => Order::Shuffled,
        (true, false) => Order::Uniform,
    };
    let batch = if batched { plan.batch.min(data.entries) } else { 1 };
    let mut model = Model::empty(data.entries);
    let engine: E = ctx.open(&data, Sync::Buffered)?;
    ctx.doing("filling");
    let work = Work { data: &data, order, seed: data.seed, generation: 1, batch };
    let recorder =
        work.run(&engine, data.entries, if large { Timing::Every } else { timing(batch) })?;
    model.replay(order, data.seed, recorder.ops() * batch, 1);
    finish(ctx, engine, &data, &model, sample(ctx.row(), &recorder, batch))
}

/// Overwrites a settled store, each key drawn from all.
pub fn overwrite<E: Engine>(ctx: &Ctx) -> Result<()> {
    let data = ctx.plan().data();
    let engine: E = ctx.open(&data, Sync::Buffered)?;
    let mut model = load(ctx, &engine, &data, Order::Shuffled)?;
    engine.settle()?;
    ctx.doing("overwriting");
    let seed = mix(data.seed ^ 2);
    let work = Work { data: &data, order: Order::Uniform, seed, generation: 2, batch: 1 };
    let recorder = work.run(&engine, data.entries, Timing::Sampled)?;
    model.replay(Order::Uniform, seed, recorder.ops(), 2);
    finish(ctx, engine, &data, &model, sample(ctx.row(), &recorder, 1))
}

fn timing(batch: u64) -> Timing {
    if batch > 1 { Timing::Every } else { Timing::Sampled }
}

fn sample(row: &str, recorder: &Recorder, batch: u64) -> Sample {
    let sample = Sample::of(row, recorder);
    if batch > 1 { sample.times(batch) } else { sample }
}

fn finish<E: Engine>(
    ctx: &Ctx,
    engine: E,
    data: &Dataset,
    model: &Model,
    sample: Sample,
) -> Result<()> {
    ctx.doing("verifying");
    let verdict = verify(&engine, data, model);
    ctx.report(sample, &verdict);
    engine.close()
}

/// Writes of one thread.
pub struct Work<'a> {
    /// Keys and values.
    pub data: &'a Dataset,
    /// The order of keys.
    pub order: Order,
    /// The seed of the order.
    pub seed: u64,
    /// The generation of values.
    pub generation: u32,
    /// Entries written at once; 1: each by itself.
    pub batch: u64,
}

impl Work<'_> {
    /// Writes about `entries` entries: whole batches.
    pub fn run<E: Engine>(&self, engine: &E, entries: u64, timing: Timing) -> Result<Recorder> {
        self.run_until(engine, Until::Ops((entries / self.batch).max(1)), timing)
    }

    /// Writes until told to stop.
    pub fn run_until<E: Engine>(
        &self,
        engine: &E,
        until: Until,
        timing: Timing,
    ) -> Result<Recorder> {
        let data = self.data;
        let hint = if self.order == Order::Sequential { Hint::Ascending } else { Hint::Any };
        let mut writer = engine.writer(hint)?;
        let mut stream = KeyStream::new(self.order, data.entries, self.seed);
        let (mut key, mut value) = (KeyBuf::new(), Vec::new());
        let mut recorder = Recorder::new(timing);
        recorder.run(until, || {
            if self.batch == 1 {
                let index = stream.next_index();
                let value = data.values.value(index, self.generation, &mut value);
                return writer.put(data.keys.write(index, &mut key), value);
            }
            for _ in 0..self.batch {
                let index = stream.next_index();
                let value = data.values.value(index, self.generation, &mut value);
                writer.batch_put(data.keys.write(index, &mut key), value)?;
            }
            writer.batch_commit()
        })?;
        Ok(recorder)
    }
}

/// Random keys, each write waiting for the device, from one thread or many at once.
pub fn synced<E: Engine>(ctx: &Ctx) -> Result<()> {
    let plan = ctx.plan();
    let threads = if ctx.spec.case == CaseId::FillSync { 1 } else { plan.sync_threads };
    let data = plan.data_of(plan.sync_ops / threads * threads);
    let mut model = Model::empty(data.entries);
    model.replay(Order::Shuffled, data.seed, data.entries, 1);
    let engine: E = ctx.open(&data, Sync::Synced)?;
    ctx.doing("filling, synced");
    let barrier = Barrier::new(threads as usize);
    let mut all = Recorder::new(Timing::Every);
    std::thread::scope(|scope| -> Result<()> {
        let spawn = |thread| {
            let (engine, data, barrier) = (&engine, &data, &barrier);
            scope.spawn(move || synced_thread(engine, data, thread, threads, barrier))
        };
        let handles: Vec<_> = (0..threads).map(spawn).collect();
        for handle in handles {
            all.merge(&handle.join().map_err(|_| anyhow::anyhow!("a writer panicked"))??);
        }
        Ok(())
    })?;
    finish(ctx, engine, &data, &model, Sample::of(ctx.row(), &all))
}

/// Every `threads`-th key of one shuffle, so that together the threads write each key once.
fn synced_thread<E: Engine>(
    engine: &E,
    data: &Dataset,
    thread: u64,
    threads: u64,
    barrier: &Barrier,
) -> Result<Recorder> {
    let writer = engine.writer(Hint::Any);
    let mut stream = KeyStream::new(Order::Shuffled, data.entries, data.seed);
    for _ in 0..thread {
        stream.next_index();
    }
    let (mut key, mut value) = (KeyBuf::new(), Vec::new());
    let mut recorder = Recorder::new(Timing::Every);
    // Whatever happened: a thread that stays away would leave the others waiting for ever.
    barrier.wait();
    let mut writer = writer?;
    recorder.run(Until::Ops(data.entries / threads), || {
        let index = stream.next_index();
        for _ in 1..threads {
            stream.next_index();
        }
        let value = data.values.value(index, 1, &mut value);
        writer.put(data.keys.write(index, &mut key), value)
    })?;
    Ok(recorder)
}

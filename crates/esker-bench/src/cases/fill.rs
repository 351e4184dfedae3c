//! Writing: ascending and random, one by one and in batches, small and large. Each row ends at the last write; a second one,
//! `NAME.settled`, ends when nothing is owed any more.

use super::{finish, open_settled};
use crate::chains::SETTLED;
use crate::child::Ctx;
use crate::data::{Dataset, KeyBuf, Model, Order, mix};
use crate::engine::{Engine, Hint, Sync, Unsupported, Writer};
use crate::measure::{Recorder, Timing, Until};
use crate::plan::CaseId;
use crate::protocol::Sample;
use anyhow::Result;
use std::time::Instant;

/// Fills an empty store.
pub fn run<E: Engine>(ctx: &Ctx) -> Result<()> {
    let plan = ctx.plan();
    let case = ctx.spec.case;
    let large = matches!(case, CaseId::LargeSeq | CaseId::LargeRandom);
    let random = matches!(case, CaseId::FillRandom | CaseId::FillRandBatch | CaseId::LargeRandom);
    let batched = matches!(case, CaseId::FillBatch | CaseId::FillRandBatch);
    let data = if large { plan.large_data() } else { plan.data()? };
    let order = match (random, plan.unique) {
        _ if case == CaseId::FillFile => Order::File,
        (false, _) => Order::Sequential,
        (true, true) => Order::Shuffled,
        (true, false) => Order::Uniform,
    };
    let batch = if batched { plan.batch.min(data.entries) } else { 1 };
    let mut model = Model::empty(data.entries);
    let engine: E = ctx.open(&data, Sync::Buffered)?;
    ctx.doing("filling");
    let work = Work { data: &data, order, seed: data.seed, generation: 1, batch };
    let timing = if large { Timing::Every } else { timing(batch) };
    let recorder = work.run(ctx, &engine, data.entries, timing)?;
    let mut samples = samples(ctx, &engine, &recorder, batch, data.entries);
    work.replay(&mut model, recorder.ops());
    if engine.loads_in_bulk() && order == Order::Sequential {
        // Beside the ratio: it is not what the others do.
        let noted = |sample: Sample| sample.with_note("loaded in bulk, which is not logged");
        samples = samples.into_iter().map(noted).collect();
    }
    finish(ctx, engine, &data, &model, samples)
}

/// Overwrites a settled store, each key drawn from all.
pub fn overwrite<E: Engine>(ctx: &Ctx) -> Result<()> {
    let data = ctx.plan().data()?;
    let (engine, mut model) = open_settled::<E>(ctx, &data, Order::Shuffled)?;
    ctx.doing_clean("overwriting")?;
    let seed = mix(data.seed ^ 2);
    let work = Work { data: &data, order: Order::Uniform, seed, generation: 2, batch: 1 };
    let recorder = work.run(ctx, &engine, data.entries, Timing::Sampled)?;
    let samples = samples(ctx, &engine, &recorder, 1, data.entries);
    work.replay(&mut model, recorder.ops());
    finish(ctx, engine, &data, &model, samples)
}

fn timing(batch: u64) -> Timing {
    if batch > 1 { Timing::Every } else { Timing::Sampled }
}

/// The row of the writes; and, right after them, the one that pays what they left to be done.
pub(super) fn samples<E: Engine>(
    ctx: &Ctx,
    engine: &E,
    recorder: &Recorder,
    batch: u64,
    entries: u64,
) -> Vec<Sample> {
    // The engine is paying already.
    let start = Instant::now();
    let row = ctx.row().trim_end_matches(SETTLED);
    let batches = (entries / batch).max(1);
    let sample = Sample::of(row, recorder).of_wanted(batches);
    let filled = ctx.noted_in_passing(if batch > 1 { sample.times(batch) } else { sample });
    let mut samples = vec![filled];
    let settled = format!("{row}{SETTLED}");
    if ctx.wants(&settled) {
        let failed = engine.settle().err().map(|e| Unsupported::or_error(&e));
        let seconds = recorder.seconds() + start.elapsed().as_secs_f64();
        let sample = Sample::rate(&settled, samples[0].ops, seconds).of_wanted(batches * batch);
        samples.push(ctx.noted(Sample { failed, ..sample }));
    }
    samples
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
    /// Writes about `entries` entries: whole batches, and as far as the plan gives time.
    pub fn run<E: Engine>(
        &self,
        ctx: &Ctx,
        engine: &E,
        entries: u64,
        timing: Timing,
    ) -> Result<Recorder> {
        let ops = (entries / self.batch).max(1);
        self.run_until(engine, Until::ops_or(ops, ctx.plan().deadline()), timing)
    }

    /// Notes what `ops` of these writes have written.
    pub fn replay(&self, model: &mut Model, ops: u64) {
        let mut stream = self.data.stream(self.order, self.seed);
        for _ in 0..ops * self.batch {
            model.put(stream.next_index(), self.generation);
        }
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
        let mut stream = data.stream(self.order, self.seed);
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
        // What a bulk path leaves to its end is a part of the work.
        recorder.end_with(|| drop(writer));
        Ok(recorder)
    }
}

//! Readers beside one writer that is held to a rate: what a reader pays for writes going on.

use super::{load, touch};
use crate::child::Ctx;
use crate::data::{Dataset, KeyBuf, KeyStream, Order, Rng, mix, verify};
use crate::engine::{Access, Engine, Hint, Reader, Sync, Writer};
use crate::measure::{Recorder, Timing, Until};
use crate::plan::Plan;
use crate::protocol::{Sample, WriterSide};
use crate::system;
use anyhow::{Context, Result, ensure};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// One row for each number of readers, over one settled store.
pub fn run<E: Engine>(ctx: &Ctx) -> Result<()> {
    let plan = ctx.plan();
    let data = plan.data();
    let engine: E = ctx.open(&data, Sync::Buffered)?;
    let mut model = load(ctx, &engine, &data, Order::Shuffled)?;
    engine.settle()?;
    for (round, &readers) in plan.readers.iter().enumerate() {
        let row = format!("readwhilewriting{readers}");
        if !ctx.wants(&row) {
            continue;
        }
        ctx.doing(&row);
        let seed = mix(data.seed ^ (0x100 + round as u64));
        let (reads, writes) = beside(&engine, &data, plan, readers, seed)?;
        // Generation 2, 3, ...: what this round wrote differs from what the last one did.
        model.replay(Order::Uniform, seed, writes.ops(), generation(round));
        let verdict = verify(&engine, &data, &model);
        let writer = WriterSide {
            wanted_per_s: plan.writer_rate,
            ops_per_s: writes.ops() as f64 / writes.seconds().max(1e-9),
            latency: writes.latency(),
        };
        let mut sample = Sample::of(&row, &reads);
        if writer.ops_per_s < 0.95 * writer.wanted_per_s {
            sample = sample.with_note(format!("the writer did {:.0}/s", writer.ops_per_s));
        }
        ctx.report(Sample { writer: Some(writer), ..sample }, &verdict);
    }
    engine.close()
}

fn generation(round: usize) -> u32 {
    2 + round as u32 % 200
}

/// Runs readers and the writer at the same time; what each side recorded.
fn beside<E: Engine>(
    engine: &E,
    data: &Dataset,
    plan: &Plan,
    readers: u64,
    seed: u64,
) -> Result<(Recorder, Recorder)> {
    let generation = generation(
        plan.readers.iter().position(|&r| r == readers).context("one of the plan's rows")?,
    );
    let end = Instant::now() + Duration::from_secs_f64(plan.seconds);
    std::thread::scope(|scope| {
        let writer = scope.spawn(move || write(engine, data, plan, seed, generation, end));
        let readers: Vec<_> =
            (0..readers).map(|i| scope.spawn(move || read(engine, data, i, end))).collect();
        let mut reads = Recorder::new(Timing::Sampled);
        for reader in readers {
            reads.merge(&reader.join().ok().context("a reader panicked")??);
        }
        Ok((reads, writer.join().ok().context("the writer panicked")??))
    })
}

fn write<E: Engine>(
    engine: &E,
    data: &Dataset,
    plan: &Plan,
    seed: u64,
    generation: u32,
    end: Instant,
) -> Result<Recorder> {
    system::precise_sleeps();
    let mut writer = engine.writer(Hint::Any)?;
    let mut stream = KeyStream::new(Order::Uniform, data.entries, seed);
    let (mut key, mut value) = (KeyBuf::new(), Vec::new());
    let mut recorder = Recorder::new(Timing::Every);
    recorder.run_paced(plan.writer_rate, Until::Time(end), || {
        let index = stream.next_index();
        let value = data.values.value(index, generation, &mut value);
        writer.put(data.keys.write(index, &mut key), value)
    })?;
    Ok(recorder)
}

fn read<E: Engine>(engine: &E, data: &Dataset, number: u64, end: Instant) -> Result<Recorder> {
    let mut reader = engine.reader(Access::BesideWriter)?;
    let mut rng = Rng::new(mix(data.seed ^ (0x200 + number)));
    let mut key = KeyBuf::new();
    let mut sum = 0u64;
    let mut recorder = Recorder::new(Timing::Sampled);
    recorder.run(Until::Time(end), || {
        let index = rng.below(data.entries);
        let key = data.keys.write(index, &mut key);
        let touched = reader.get(key, touch)?;
        ensure!(touched.is_some(), "key {} was not there for a while", key.escape_ascii());
        sum = sum.wrapping_add(touched.unwrap_or(0));
        Ok(())
    })?;
    black_box(sum);
    Ok(recorder)
}

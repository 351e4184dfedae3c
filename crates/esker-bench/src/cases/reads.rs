//! Reads of every kind from one store of every key written once in random order: right after the
//! load, with whatever debts it left, and again when they are paid.

use super::{load, touch};
use crate::calls;
use crate::child::Ctx;
use crate::data::{Dataset, KeyBuf, Model, Order, Rng, mix, verify};
use crate::engine::{Access, Direction, Engine, Reader, Sync};
use crate::measure::{Recorder, Timing, Until};
use crate::protocol::Sample;
use crate::system;
use anyhow::{Result, ensure};
use std::hint::black_box;
use std::time::Instant;

/// Entries read after each seek.
const SEEK_ENTRIES: u64 = 11; // the one sought and ten more

/// Loads, reads, settles, reads again.
pub fn run<E: Engine>(ctx: &Ctx) -> Result<()> {
    let data = ctx.plan().data()?;
    let engine: E = ctx.open(&data, Sync::Buffered)?;
    let model = load(ctx, &engine, &data, Order::Shuffled)?;
    phase(ctx, &engine, &data, &model, "")?;

    ctx.doing("settling");
    let timed = ctx.wants("settle").then(calls::begin);
    let start = Instant::now();
    engine.settle()?;
    timed.into_iter().for_each(|timed| timed.end(1));
    ctx.report(Sample::figure("settle", start.elapsed().as_secs_f64()), &Ok(()));

    phase(ctx, &engine, &data, &model, ".settled")?;
    let peak = ctx.peak_memory();
    for (row, bytes) in
        [("memory", peak.anonymous), ("memory.mapped", peak.mapped), ("memory.dirty", peak.dirty)]
    {
        ctx.report(Sample::figure(row, bytes as f64), &Ok(()));
    }
    engine.close()
}

/// All kinds of reads; reported only once the whole store was found to be as it should.
fn phase<E: Engine>(
    ctx: &Ctx,
    engine: &E,
    data: &Dataset,
    model: &Model,
    suffix: &str,
) -> Result<()> {
    let mut samples = Vec::new();
    let mut failures = Vec::new();
    for name in ["readrandom", "readmissing", "readhot", "readseq", "readreverse", "seekrandom"] {
        let row = format!("{name}{suffix}");
        if !ctx.wants(&row) {
            continue;
        }
        ctx.doing(&row);
        let mut reader = engine.reader(Access::Quiet)?;
        let deadline = ctx.plan().deadline();
        match measure(&mut reader, name, &row, data, deadline) {
            Ok(sample) => samples.push(Sample { usage: Some(ctx.used()), ..sample }),
            Err(e) => failures.push((row, e)),
        }
    }
    ctx.verifying();
    let verdict = verify(engine, data, model);
    for sample in samples {
        ctx.report(sample, &verdict);
    }
    for (row, e) in failures {
        ctx.report(Sample::figure(&row, 0.0), &Err(e));
    }
    let disk = system::disk_bytes(ctx.dir()) as f64;
    ctx.report(Sample::figure(&format!("disk{suffix}"), disk), &verdict);
    Ok(())
}

fn measure(
    reader: &mut impl Reader,
    name: &str,
    row: &str,
    data: &Dataset,
    deadline: Option<Instant>,
) -> Result<Sample> {
    match name {
        "readseq" => scan(reader, Direction::Forward, row, data),
        "readreverse" => scan(reader, Direction::Reverse, row, data),
        "seekrandom" => seek_random(reader, row, data, deadline),
        _ => get_random(reader, name, row, data, deadline),
    }
}

/// Point reads of keys drawn from all; of keys that are not there; or of the hot hundredth in the
/// middle, which fits into whatever cache there is.
fn get_random(
    r: &mut impl Reader,
    name: &str,
    row: &str,
    data: &Dataset,
    deadline: Option<Instant>,
) -> Result<Sample> {
    let missing = name == "readmissing";
    let (from, range) = match name {
        "readhot" => (data.entries / 2, (data.entries / 100).max(1)),
        _ => (0, data.entries),
    };
    let mut rng = Rng::new(mix(data.seed ^ 3));
    let mut key = KeyBuf::new();
    let mut recorder = Recorder::new(Timing::Sampled);
    let (mut found, mut sum) = (0, 0u64);
    recorder.run(Until::ops_or(data.entries, deadline), || {
        let index = from + rng.below(range);
        let key = if missing {
            data.keys.write_missing(index, &mut key)
        } else {
            data.keys.write(index, &mut key)
        };
        if let Some(touched) = r.get(key, touch)? {
            found += 1;
            sum = sum.wrapping_add(touched);
        }
        Ok(())
    })?;
    black_box(sum);
    let expected = if missing { 0 } else { recorder.ops() };
    ensure!(found == expected, "found {found} keys, not {expected}");
    Ok(Sample::of(row, &recorder).of_wanted(data.entries))
}

fn scan(r: &mut impl Reader, way: Direction, row: &str, data: &Dataset) -> Result<Sample> {
    let mut sum = 0u64;
    let timed = calls::begin();
    let start = Instant::now();
    let seen = r.scan(way, |key, value| {
        sum = sum.wrapping_add(touch(key)).wrapping_add(touch(value));
    })?;
    let seconds = start.elapsed().as_secs_f64();
    timed.end(seen);
    black_box(sum);
    ensure!(seen == data.entries, "saw {seen} entries, not {}", data.entries);
    Ok(Sample::rate(row, seen, seconds))
}

fn seek_random(
    r: &mut impl Reader,
    row: &str,
    data: &Dataset,
    deadline: Option<Instant>,
) -> Result<Sample> {
    let wanted = (data.entries / 4).max(1);
    let mut rng = Rng::new(mix(data.seed ^ 4));
    let mut key = KeyBuf::new();
    let mut recorder = Recorder::new(Timing::Sampled);
    let (mut seen, mut expected, mut sum) = (0, 0, 0u64);
    recorder.run(Until::ops_or(wanted, deadline), || {
        let index = rng.below(data.entries);
        expected += SEEK_ENTRIES.min(data.entries - index);
        seen += r.seek(data.keys.write(index, &mut key), SEEK_ENTRIES, |k, v| {
            sum = sum.wrapping_add(touch(k)).wrapping_add(touch(v));
        })?;
        Ok(())
    })?;
    black_box(sum);
    ensure!(seen == expected, "saw {seen} entries, not {expected}");
    Ok(Sample::of(row, &recorder).of_wanted(wanted))
}

//! The mixes A to F of the Yahoo! Cloud Serving Benchmark, one thread, each over the store that the
//! one before left, in the order that its authors give: A, B, C, F, D, E. Popular keys are asked for
//! often; D reads what was inserted last. Whatever writes is settled before the next, as the load is: what that takes is in a row
//! of its own, `NAME.settled`.

use super::touch;
use crate::calls;
use crate::chains::SETTLED;
use crate::child::Ctx;
use crate::data::{Dataset, KeyBuf, KeyStream, Model, Order, Rng, Zipfian, mix, verify};
use crate::engine::{Access, Engine, Hint, Reader, Sync, Unsupported, Writer};
use crate::measure::{Recorder, Timing, Until};
use crate::protocol::{Sample, Shape};
use anyhow::{Result, ensure};
use std::hint::black_box;
use std::time::Instant;

/// A mix, in percent; the rest are plain reads.
struct Mix {
    row: &'static str,
    update: u64,
    /// Reads a record and writes it back.
    modify: u64,
    insert: u64,
    scan: u64,
    latest: bool,
}

const NONE: Mix = Mix { row: "", update: 0, modify: 0, insert: 0, scan: 0, latest: false };
const MIXES: [Mix; 6] = [
    Mix { row: "a", update: 50, ..NONE },
    Mix { row: "b", update: 5, ..NONE },
    Mix { row: "c", ..NONE },
    Mix { row: "f", modify: 50, ..NONE },
    Mix { row: "d", insert: 5, latest: true, ..NONE },
    Mix { row: "e", insert: 5, scan: 95, ..NONE },
];
/// The row of the load.
const LOAD: &str = "load";
/// Entries that a scan reads at most.
const SCAN_ENTRIES: u64 = 100;

/// Loads, then every mix up to the last that is wanted.
pub fn run<E: Engine>(ctx: &Ctx) -> Result<()> {
    let plan = ctx.plan();
    // Room for what D and E insert: a twentieth of each, and chance.
    let room = plan.entries / 8 + 100;
    let data = plan.data_of(plan.entries + room)?;
    let engine: E = ctx.open(&data, Sync::Buffered)?;
    let mut store = Store { records: plan.entries, model: Model::empty(data.entries), data: &data };
    // Of the keys that there is room for, so many are there.
    let shape = Shape::of(&plan.data_of(plan.entries)?);
    let report = |samples: Vec<Sample>, verdict: &Result<()>| {
        for sample in samples {
            ctx.report(Sample { shape: Some(shape.clone()), ..sample }, verdict);
        }
    };
    let loaded = store.load(ctx, &engine)?;
    let samples = with_settling(ctx, &engine, loaded, Instant::now());
    // Not what the engine owed, but what the mixes find.
    engine.compact()?;
    ctx.verifying();
    report(samples, &verify(&engine, &data, &store.model));
    for (number, mix) in MIXES.iter().enumerate() {
        // A mix finds the store as the ones before it leave that, whether anybody asked for them or not.
        if !MIXES[number..].iter().any(|mix| mix.is_wanted(ctx)) {
            break;
        }
        ctx.doing_clean(&format!("workload {}", mix.row))?;
        let generation = number as u32 + 2;
        let outcome = store.run_mix(ctx, &engine, mix, generation);
        let ended = Instant::now();
        match outcome {
            Ok(Mixed { recorder, short, written }) => {
                let mut sample = Sample::of(mix.row, &recorder).of_wanted(plan.entries);
                if short > 0 {
                    sample =
                        sample.with_note(format!("{short} scans missed what was just inserted"));
                }
                let samples = match mix.writes() {
                    true => with_settling(ctx, &engine, sample, ended),
                    false => vec![sample],
                };
                ctx.verifying();
                for index in written {
                    store.model.put(index, generation);
                }
                report(samples, &verify(&engine, &data, &store.model));
            }
            Err(e) => {
                ctx.verifying();
                let settled = format!("{}{SETTLED}", mix.row);
                let rows = [mix.row, &settled].map(|row| Sample::figure(row, 0.0));
                report(rows.to_vec(), &Err(e));
                // What was written before it failed is not known; the mixes after it start anew.
                anyhow::bail!("not measured, since workload {} failed", mix.row);
            }
        }
    }
    engine.close()
}

/// The row, and the one that pays what it left to be done: always, so that the mix after it finds the same store whichever rows
/// are asked for.
fn with_settling<E: Engine>(ctx: &Ctx, engine: &E, sample: Sample, ended: Instant) -> Vec<Sample> {
    let sample = ctx.noted_in_passing(sample);
    ctx.going_on("settling");
    let failed = engine.settle().err().map(|e| Unsupported::or_error(&e));
    let seconds = sample.seconds + ended.elapsed().as_secs_f64();
    let settled = Sample::rate(&format!("{}{SETTLED}", sample.row), sample.ops, seconds);
    let settled = ctx.noted(Sample { failed, note: sample.note.clone(), ..settled });
    vec![sample, settled]
}

impl Mix {
    fn writes(&self) -> bool {
        self.update + self.modify + self.insert > 0
    }
    fn is_wanted(&self, ctx: &Ctx) -> bool {
        ctx.wants(self.row) || ctx.wants(&format!("{}{SETTLED}", self.row))
    }
}

/// What a mix did.
struct Mixed {
    recorder: Recorder,
    /// Scans that did not see all that was inserted meanwhile.
    short: u64,
    /// What is to be in the store, in order.
    written: Vec<u64>,
}

/// What is in the store.
struct Store<'a> {
    data: &'a Dataset,
    records: u64,
    model: Model,
}

impl Store<'_> {
    /// The records there are at first; others are inserted after them.
    fn load<E: Engine>(&mut self, ctx: &Ctx, engine: &E) -> Result<Sample> {
        let keys = || KeyStream::new(Order::Shuffled, self.records, self.data.seed);
        // Looked up as they are written it would cost a cache miss each time.
        let mut stream = keys();
        for _ in 0..self.records {
            self.model.put(stream.next_index(), 1);
        }
        let (mut stream, batch) = (keys(), ctx.plan().batch);
        let (mut key, mut value) = (KeyBuf::new(), Vec::new());
        ctx.doing("loading");
        let timed = ctx.wants(LOAD).then(calls::begin);
        let start = Instant::now();
        let mut writer = engine.writer(Hint::Any)?;
        for done in 1..=self.records {
            let index = stream.next_index();
            let value = self.data.values.value(index, 1, &mut value);
            writer.batch_put(self.data.keys.write(index, &mut key), value)?;
            if done % batch == 0 {
                writer.batch_commit()?;
            }
        }
        writer.batch_commit()?;
        drop(writer);
        timed.into_iter().for_each(|timed| timed.end(self.records));
        let sample = Sample::rate(LOAD, self.records, start.elapsed().as_secs_f64());
        Ok(sample.with_note(format!("in random order, in batches of {batch}")))
    }

    /// As many operations as there were records at first. A tree of the log-structured kind may not owe scans all that is
    /// inserted meanwhile (WiredTiger's does not always).
    fn run_mix<E: Engine>(
        &mut self,
        ctx: &Ctx,
        engine: &E,
        kind: &Mix,
        generation: u32,
    ) -> Result<Mixed> {
        let (data, ops) = (self.data, ctx.plan().entries);
        let zipf = Zipfian::new(self.records);
        let mut rng = Rng::new(mix(data.seed ^ mix(generation as u64)));
        let mut writer = engine.writer(Hint::Any)?;
        let mut reader = engine.reader(Access::BesideWriter)?;
        let (mut key, mut value) = (KeyBuf::new(), Vec::new());
        // What was written, in order: looked up in the model it would cost a cache miss each time.
        let mut written: Vec<u64> = Vec::with_capacity(ops as usize);
        let (before, mut records, mut sum, mut short) = (self.records, self.records, 0u64, 0);
        let mut recorder = Recorder::new(Timing::Sampled);
        let outcome = recorder.run(Until::ops_or(ops, ctx.plan().deadline()), || {
            let choice = rng.below(100);
            if choice < kind.insert && records < data.entries {
                let value = data.values.value(records, generation, &mut value);
                writer.put(data.keys.write(records, &mut key), value)?;
                written.push(records);
                records += 1;
                // Whoever inserts sees it: the latest are asked for, and scans count them.
                return reader.renew();
            }
            let index = match kind.latest {
                true => records - 1 - zipf.rank(&mut rng).min(records - 1),
                false => zipf.scattered(&mut rng),
            };
            let asked = data.keys.write(index, &mut key);
            if choice < kind.insert + kind.scan {
                let count = 1 + rng.below(SCAN_ENTRIES);
                let seen = reader.seek(asked, count, |k, v| {
                    sum = sum.wrapping_add(touch(k)).wrapping_add(touch(v));
                })?;
                let expected = count.min(records - index);
                let least = count.min(before.saturating_sub(index));
                ensure!(
                    (least..=expected).contains(&seen),
                    "a scan saw {seen} entries, not {expected}"
                );
                short += u64::from(seen < expected);
                return Ok(());
            }
            if choice >= kind.insert + kind.scan + kind.update {
                let touched = reader.get(asked, touch)?;
                ensure!(touched.is_some(), "lost key {}", asked.escape_ascii());
                sum = sum.wrapping_add(touched.unwrap_or(0));
            }
            if choice < kind.insert + kind.scan + kind.update + kind.modify
                && choice >= kind.insert + kind.scan
            {
                writer.put(asked, data.values.value(index, generation, &mut value))?;
                written.push(index);
            }
            Ok(())
        });
        black_box(sum);
        self.records = records;
        outcome.map(|()| Mixed { recorder, short, written })
    }
}

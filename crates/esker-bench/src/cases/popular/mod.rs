//! The mixes A to F of the Yahoo! Cloud Serving Benchmark, by one client or several, each over the store that the
//! one before left, in the order that its authors give: A, B, C, F, D, E. Popular keys are asked for
//! often; D reads what was inserted last. Whatever writes is settled before the next, as the load is: what that takes is in a row
//! of its own, `NAME.settled`.

mod client;
mod inserts;
mod mixes;

use self::client::{Clients, Done};
use self::inserts::Inserts;
use self::mixes::{MIXES, Mix};
use super::{Patience, write_all};
use crate::calls;
use crate::chains::SETTLED;
use crate::child::Ctx;
use crate::data::{Dataset, KeyStream, Model, Order, verify};
use crate::engine::{Engine, Sync, Unsupported};
use crate::protocol::{Sample, Shape};
use anyhow::Result;
use std::time::Instant;

/// The row of the load.
const LOAD: &str = "load";

/// Loads, then every mix up to the last that is wanted.
pub fn run<E: Engine>(ctx: &Ctx) -> Result<()> {
    let plan = ctx.plan();
    // Room for what D and E insert: a twentieth of each, and chance.
    let room = plan.entries / 8 + 100;
    let data = plan.data_of(plan.entries + room)?;
    let engine: E = ctx.open(&data, Sync::Buffered)?;
    let mut store = Store { records: plan.entries, model: Model::empty(data.entries), data: &data };
    // Of the keys that there is room for, so many are there.
    let at_first = plan.data_of(plan.entries)?;
    let shape = Shape::of(&at_first);
    let report = |samples: Vec<Sample>, verdict: &Result<()>| {
        for sample in samples {
            ctx.report(Sample { shape: Some(shape.clone()), ..sample }, verdict);
        }
    };
    let loaded = store.load(ctx, &engine, &at_first)?;
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
            Ok(Done { recorder, short, written }) => {
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

/// What is in the store.
struct Store<'a> {
    data: &'a Dataset,
    records: u64,
    model: Model,
}

impl Store<'_> {
    /// The records there are at first; others are inserted after them.
    fn load<E: Engine>(&mut self, ctx: &Ctx, engine: &E, data: &Dataset) -> Result<Sample> {
        // Looked up as they are written it would cost a cache miss each time.
        let mut stream = KeyStream::new(Order::Shuffled, self.records, data.seed);
        for _ in 0..self.records {
            self.model.put(stream.next_index(), 1);
        }
        ctx.doing("loading");
        let timed = ctx.wants(LOAD).then(calls::begin);
        let start = Instant::now();
        write_all(ctx, engine, data, Order::Shuffled, data.seed, 1, Patience::endless())?;
        timed.into_iter().for_each(|timed| timed.end(self.records));
        let sample = Sample::rate(LOAD, self.records, start.elapsed().as_secs_f64());
        Ok(sample.with_note(format!("in random order, in batches of {}", ctx.plan().batch)))
    }

    /// As many operations as there were records at first, by one client or several.
    fn run_mix<E: Engine>(
        &mut self,
        ctx: &Ctx,
        engine: &E,
        kind: &Mix,
        generation: u32,
    ) -> Result<Done> {
        let plan = ctx.plan();
        let clients = Clients {
            data: self.data,
            kind,
            generation,
            inserts: Inserts::new(self.records, self.data.entries),
            count: if ctx.spec.case.has_threads() { plan.writers.max(1) } else { 1 },
            ops: plan.entries,
            deadline: plan.deadline(),
        };
        let outcome = clients.run(engine);
        self.records = clients.inserts.taken();
        outcome
    }
}

//! What engines do, one file per kind of case.

mod beside;
mod cold_warm;
mod delete;
mod fill;
mod lifecycle;
mod limited;
mod mixed;
mod popular;
mod race;
mod reading;
mod reads;
mod synced;
mod warm;

/// Stores that are written to as they are read, or were until a moment ago. One row a process, so that no
/// row is measured in what another one left.
mod motion {
    pub mod gaps;
    pub mod queue;
    pub mod reads;
    pub mod scans;
    pub mod sustained;
}

use crate::child::Ctx;
use crate::data::{Dataset, KeyBuf, KeyStream, Model, Order, verify};
use crate::engine::{Engine, Hint, Sync, Unsupported, Writer};
use crate::plan::CaseId;
use crate::protocol::Sample;
use anyhow::{Context, Result};
use std::time::Instant;

/// Runs the case of `ctx` with an engine.
pub fn run<E: Engine>(ctx: &Ctx) -> Result<()> {
    use CaseId::*;
    match ctx.spec.case {
        Machine | MachineSync => unreachable!("no engine takes part in the machine's limits"),
        FillSeq | FillBatch | FillRandom | FillRandBatch | FillFile | LargeSeq | LargeRandom => {
            fill::run::<E>(ctx)
        }
        Overwrite => fill::overwrite::<E>(ctx),
        FillSync | FillSyncSeq | FillSyncThreads => synced::run::<E>(ctx),
        Reads => reads::run::<E>(ctx),
        Mixed => mixed::run::<E>(ctx),
        Race => race::run::<E>(ctx),
        ColdWarm => cold_warm::run::<E>(ctx),
        Popular | PopularShared => popular::run::<E>(ctx),
        Delete => delete::run::<E>(ctx),
        Reopen => lifecycle::reopen::<E>(ctx),
        OpenKilled => lifecycle::open_killed::<E>(ctx),
        Compressed => lifecycle::compressed::<E>(ctx),
        LimitedReads => limited::reads::<E>(ctx),
        LimitedFill => limited::fill::<E>(ctx),
        Queue | QueueDeep | QueueDrain => motion::queue::run::<E>(ctx),
        LoadedReads | OverwrittenReads => motion::reads::after_writes::<E>(ctx),
        BesideWriter | BesideFlood => motion::reads::beside_writes::<E>(ctx),
        Gap | Gaps => motion::gaps::run::<E>(ctx),
        FreshOrdered | FreshRandom => motion::scans::fresh::<E>(ctx),
        FirstScan => motion::scans::first::<E>(ctx),
        Sustained => motion::sustained::run::<E>(ctx),
    }
}

/// Bytes of memory for loads that ask for more than the rows have, at least.
const LOAD_MEMORY: u64 = 64 << 20;

/// How long work may take that is not measured.
struct Patience {
    what: &'static str,
    start: Instant,
    seconds_max: f64,
}

impl Patience {
    /// From now on.
    fn of(ctx: &Ctx, what: &'static str) -> Patience {
        let seconds_max = ctx.plan().load_seconds_max.unwrap_or(f64::MAX);
        Patience { what, start: Instant::now(), seconds_max }
    }
    /// Without end, for work that is a row.
    fn endless() -> Patience {
        Patience { what: "", start: Instant::now(), seconds_max: f64::MAX }
    }
    /// An error if it took longer and there is more to do.
    fn check(&self, done: u64, wanted: u64) -> Result<()> {
        if done >= wanted || self.start.elapsed().as_secs_f64() <= self.seconds_max {
            return Ok(());
        }
        let (percent, seconds_max) = (done as f64 / wanted as f64 * 100.0, self.seconds_max);
        Err(Unsupported::too_slow(format!(
            "{} had done {percent:.0} % after {seconds_max} s (--load-seconds gives it more)",
            self.what
        ))
        .into())
    }
}

/// Puts every key once, in generation 1, untimed: the store that other rows start from.
fn load<E: Engine>(ctx: &Ctx, engine: &E, data: &Dataset, order: Order) -> Result<Model> {
    ctx.doing("loading");
    // Where the memory is part of what is measured it stays as it is, and where there is enough of it:
    // to change it empties an engine's cache.
    let raw = data.raw_bytes(1);
    let spacious = ctx.plan().memory_limit.is_none()
        && ctx.plan().memory < raw
        && engine.set_memory((raw * 2).max(LOAD_MEMORY))?;
    let model = put_all(ctx, engine, data, order, data.seed, 1, "the load")?;
    if spacious {
        engine.set_memory(ctx.plan().memory)?;
        ctx.forget_peak_memory();
    }
    Ok(model)
}

/// Opens a store, loads it, and lets it pay what that left: what rows of settled stores and of writes start from, and what is
/// in it.
fn open_settled<E: Engine>(ctx: &Ctx, data: &Dataset, order: Order) -> Result<(E, Model)> {
    let engine: E = ctx.open(data, Sync::Buffered)?;
    let model = load(ctx, &engine, data, order)?;
    ctx.doing("settling");
    engine.settle_fully().context("settle")?;
    Ok((engine, model))
}

/// Puts every key once, in batches, untimed: what is in the store then.
fn put_all<E: Engine>(
    ctx: &Ctx,
    engine: &E,
    data: &Dataset,
    order: Order,
    seed: u64,
    generation: u32,
    what: &'static str,
) -> Result<Model> {
    // Before anything is written: whoever measures right after the load is not kept waiting while the engine works on.
    let model = Model::filled(data.entries, order, seed, generation);
    ctx.set_aside(&model);
    write_all(ctx, engine, data, order, seed, generation, Patience::of(ctx, what))?;
    Ok(model)
}

/// Puts every key once, in batches, and does nothing else.
fn write_all<E: Engine>(
    ctx: &Ctx,
    engine: &E,
    data: &Dataset,
    order: Order,
    seed: u64,
    generation: u32,
    patience: Patience,
) -> Result<()> {
    let hint = if order == Order::Sequential { Hint::Ascending } else { Hint::Any };
    let mut writer = engine.writer(hint)?;
    let mut stream = KeyStream::new(order, data.entries, seed);
    let (mut key, mut value) = (KeyBuf::new(), Vec::new());
    for done in 1..=data.entries {
        let index = stream.next_index();
        let value = data.values.value(index, generation, &mut value);
        writer.batch_put(data.keys.write(index, &mut key), value)?;
        if done % ctx.plan().batch == 0 {
            writer.batch_commit()?;
            patience.check(done, data.entries)?;
        }
    }
    writer.batch_commit()
}

/// What each of so many threads at once comes to, by their numbers, or what the first of them failed at.
fn at_once<T: Send>(
    threads: u64,
    work: impl Fn(u64) -> Result<T> + std::marker::Sync,
) -> Result<Vec<T>> {
    std::thread::scope(|scope| {
        let work = &work;
        let spawn = |number| scope.spawn(move || work(number));
        let threads: Vec<_> = (0..threads).map(spawn).collect();
        let joined: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
        joined.into_iter().map(|done| done.ok().context("a thread panicked")?).collect()
    })
}

/// Verifies a store, reports rows of it, and closes it.
fn finish<E: Engine>(
    ctx: &Ctx,
    engine: E,
    data: &Dataset,
    model: &Model,
    samples: impl IntoIterator<Item = Sample>,
) -> Result<()> {
    ctx.verifying();
    let verdict = verify(&engine, data, model);
    for sample in samples {
        ctx.report(sample, &verdict);
    }
    engine.close()
}

/// Reports what a row came to, which may have failed by itself.
fn report_outcome(ctx: &Ctx, row: &str, outcome: Result<Sample>, verdict: &Result<()>) {
    match outcome {
        Ok(sample) => ctx.report(sample, verdict),
        Err(e) => ctx.report(Sample::figure(row, 0.0), &Err(e)),
    }
}

/// Closes a settled store that is to be read and no more written, with its files as their engine's manual puts them in order.
/// Seconds of that, which are more than the engine owed.
fn close_in_order<E: Engine>(ctx: &Ctx, engine: E, data: &Dataset) -> Result<f64> {
    engine.close()?;
    let config = ctx.config(data, Sync::Buffered);
    let start = Instant::now();
    E::put_in_order(ctx.dir(), &config).context("put in order")?;
    Ok(start.elapsed().as_secs_f64())
}

/// Tells it beside a row; less than a millisecond is as good as nothing, as with what is owed.
fn with_order(sample: Sample, seconds: f64) -> Sample {
    if seconds < 1e-3 {
        return sample;
    }
    sample.with_note(format!(
        "{seconds:.3} s more, not counted, to be in order for those who only read"
    ))
}

/// Told by every process that has its part in it; the largest counts.
fn peaks(ctx: &Ctx) -> [Sample; 3] {
    let peak = ctx.peak_memory();
    [("memory", peak.anonymous), ("memory.mapped", peak.mapped), ("memory.dirty", peak.dirty)]
        .map(|(row, bytes)| ctx.noted(Sample::figure(row, bytes as f64)))
}

/// Touches a value or a key as a user would: an engine that hands over bytes it has not read yet
/// reads them now.
#[inline]
fn touch(bytes: &[u8]) -> u64 {
    match bytes {
        [] => 0,
        [only] => *only as u64,
        [first, .., last] => *first as u64 + ((*last as u64) << 8),
    }
}

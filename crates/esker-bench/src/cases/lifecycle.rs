//! Opening a store, after a clean close and after a kill; and its size with compression.

use super::fill::Work;
use super::{close_in_order, open_settled};
use crate::calls;
use crate::child::Ctx;
use crate::data::{Dataset, KeyBuf, Model, Order, verify};
use crate::engine::{Access, Class, Engine, Reader, Sync};
use crate::measure::{Timing, Until};
use crate::plan::CaseId;
use crate::protocol::Sample;
use crate::system;
use anyhow::{Context, Result};
use std::time::{Duration, Instant};

/// Writes one by one and closes in the first process; opens in the second. Both count: what an engine does not put in order when
/// it closes it does when it opens.
pub fn reopen<E: Engine>(ctx: &Ctx) -> Result<()> {
    let data = ctx.plan().data()?;
    // Beside the store: what the second process has of the first.
    let told = ctx.dir().with_extension("closing");
    if ctx.spec.step == 0 {
        let engine = fill::<E>(ctx, &data)?;
        ctx.doing("closing");
        let start = Instant::now();
        engine.close()?;
        let nanos = start.elapsed().as_nanos();
        return std::fs::write(told, nanos.to_string()).context("note what closing took");
    }
    let nanos = std::fs::read_to_string(told)?.parse().context("what closing took")?;
    open::<E>(ctx, &data, Some(Duration::from_nanos(nanos)))
}

/// Writes one by one in the first process, which is killed; opens in the second.
pub fn open_killed<E: Engine>(ctx: &Ctx) -> Result<()> {
    let data = ctx.plan().data()?;
    if ctx.spec.step == 0 {
        let _held = fill::<E>(ctx, &data)?;
        ctx.ready();
        loop {
            std::thread::park();
        }
    }
    open::<E>(ctx, &data, None)
}

/// As many single, buffered puts as there are entries.
fn fill<E: Engine>(ctx: &Ctx, data: &Dataset) -> Result<E> {
    let engine: E = ctx.open(data, Sync::Buffered)?;
    ctx.doing("filling");
    let work = Work { data, order: Order::Shuffled, seed: data.seed, generation: 1, batch: 1 };
    work.run_until(&engine, Until::ops(data.entries), Timing::Sampled)?;
    Ok(engine)
}

/// The time until the store is open and has answered one read, and what closing took; then everything is verified.
fn open<E: Engine>(ctx: &Ctx, data: &Dataset, closing: Option<Duration>) -> Result<()> {
    let model = Model::filled(data.entries, Order::Shuffled, data.seed, 1);
    let mut key = KeyBuf::new();
    let key = data.keys.write(data.entries / 2, &mut key);
    ctx.doing("opening");
    let timed = calls::begin();
    let engine: E = ctx.open(data, Sync::Buffered)?;
    let start = Instant::now();
    let answer = engine.reader(Access::Quiet)?.get(key, |_| ());
    let elapsed = ctx.open_time() + start.elapsed() + closing.unwrap_or_default();
    timed.end(1);
    ctx.verifying();
    let mut verdict = answer.and_then(|_| verify(&engine, data, &model));
    let mut sample = Sample::figure(ctx.row(), elapsed.as_secs_f64() * 1000.0);
    sample.seconds = elapsed.as_secs_f64();
    if let Some(closing) = closing {
        let ms = closing.as_secs_f64() * 1000.0;
        sample = sample.with_note(format!("of which closing took {ms:.1} ms"));
    }
    if let (Err(e), Class::V, CaseId::OpenKilled) = (&verdict, engine.class(), ctx.spec.case) {
        // It promised no more.
        sample = sample.with_note(format!("class V: {e:#}"));
        verdict = Ok(());
    }
    ctx.report(sample, &verdict);
    engine.close()
}

/// Bytes on disk of the settled store when values may be compressed.
pub fn compressed<E: Engine>(ctx: &Ctx) -> Result<()> {
    let data = ctx.plan().data()?;
    let (engine, model) = open_settled::<E>(ctx, &data, Order::Shuffled)?;
    ctx.verifying();
    let verdict = verify(&engine, &data, &model);
    let compresses = engine.compresses();
    close_in_order(ctx, engine, &data)?;
    let mut sample = Sample::figure(ctx.row(), system::disk_bytes(ctx.dir()) as f64);
    if !compresses {
        sample = sample.with_note("does not compress");
    }
    ctx.report(sample, &verdict);
    Ok(())
}

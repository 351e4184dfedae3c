//! A store four times as large as memory and page cache together may be (a cgroup sees to that).
//! Measured by time, because some engines would take hours.

use super::fill::Work;
use super::open_settled;
use super::reading::Reading;
use crate::child::Ctx;
use crate::data::{Dataset, Model, Order, mix, verify_sample};
use crate::engine::{Access, Engine, Sync};
use crate::measure::{Recorder, Timing, Until};
use crate::protocol::Sample;
use anyhow::{Context, Result};
use std::time::{Duration, Instant};

/// How many times larger than the limit the store is.
const TIMES: u64 = 4;

/// Keys and values of `TIMES` the limit.
fn data(ctx: &Ctx) -> Result<Dataset> {
    let limit = ctx.plan().memory_limit.context("a limited row without a limit")?;
    let sample = ctx.plan().data_of(1000)?;
    ctx.plan().data_of((limit * TIMES * sample.entries / sample.raw_bytes(1)).max(1))
}

fn deadline(ctx: &Ctx, times: f64) -> Instant {
    Instant::now() + Duration::from_secs_f64(ctx.plan().seconds * times)
}

/// Loads in order, settles; then reads and overwrites at random.
pub fn reads<E: Engine>(ctx: &Ctx) -> Result<()> {
    let data = data(ctx)?;
    let (engine, mut model) = open_settled::<E>(ctx, &data, Order::Sequential)?;

    ctx.doing("readrandom.limited");
    let mut recorder = Recorder::new(Timing::Every);
    let mut reader = engine.reader(Access::Quiet)?;
    let until = Until::time(deadline(ctx, 2.0));
    let outcome = Reading::Point.again(&mut reader, &data, 6, &mut recorder, until);
    drop(reader);
    ctx.verifying();
    let outcome = outcome.and_then(|()| verify_sample(&engine, &data, &model));
    ctx.report(Sample::of("readrandom.limited", &recorder), &outcome);

    if ctx.wants("overwrite.limited") {
        ctx.doing_clean("overwrite.limited")?;
        let seed = mix(data.seed ^ 7);
        let work = Work { data: &data, order: Order::Uniform, seed, generation: 2, batch: 1 };
        let until = Until::time(deadline(ctx, 2.0));
        let recorder = work.run_until(&engine, until, Timing::Every)?;
        ctx.verifying();
        model.replay(Order::Uniform, seed, recorder.ops(), 2);
        let verdict = verify_sample(&engine, &data, &model);
        ctx.report(Sample::of("overwrite.limited", &recorder), &verdict);
    }
    engine.close()
}

/// Fills at random from empty, as far as it gets in the time there is.
pub fn fill<E: Engine>(ctx: &Ctx) -> Result<()> {
    let data = data(ctx)?;
    let engine: E = ctx.open(&data, Sync::Buffered)?;
    ctx.doing(ctx.row());
    let seed = mix(data.seed ^ 8);
    let work = Work { data: &data, order: Order::Uniform, seed, generation: 1, batch: 1 };
    let until = Until::ops_or(data.entries, Some(deadline(ctx, 6.0)));
    let recorder = work.run_until(&engine, until, Timing::Every)?;
    let mut sample = Sample::of(ctx.row(), &recorder);
    if recorder.ops() < data.entries {
        let percent = recorder.ops() as f64 / data.entries as f64 * 100.0;
        sample = sample.with_note(format!("stopped by time at {percent:.0} % of the fill"));
    }
    ctx.verifying();
    let mut model = Model::empty(data.entries);
    model.replay(Order::Uniform, seed, recorder.ops(), 1);
    ctx.report(sample, &verify_sample(&engine, &data, &model));
    engine.close()
}

//! Point reads and seeks of a store that was written to until a moment ago, or is as they go on.

use crate::cases::beside::Beside;
use crate::cases::reading::Reading;
use crate::cases::{load, open_settled, put_all};
use crate::child::Ctx;
use crate::data::{Order, mix, verify};
use crate::engine::{Access, Engine, Sync};
use crate::measure::{Recorder, Timing, Until};
use crate::over_time::{OverTime, watching_disk};
use crate::plan::CaseId;
use crate::protocol::Sample;
use anyhow::Result;
use std::time::{Duration, Instant};

/// Reads right after a random load, or right after every key was overwritten once in another random
/// order: with whatever debts that left, until as many reads are done as there are keys or the time
/// of a row is over.
pub fn after_writes<E: Engine>(ctx: &Ctx) -> Result<()> {
    let plan = ctx.plan();
    let data = plan.data()?;
    let engine: E = ctx.open(&data, Sync::Buffered)?;
    let mut model = load(ctx, &engine, &data, Order::Shuffled)?;
    if ctx.spec.case == CaseId::OverwrittenReads {
        let seed = mix(data.seed ^ 0x10);
        model = put_all(ctx, &engine, &data, Order::Shuffled, seed, 2, "the overwriting")?;
    }
    ctx.doing(ctx.row());
    let reading = Reading::of_row(ctx.row());
    let end = Instant::now() + Duration::from_secs_f64(plan.seconds);
    let mut recorder = Recorder::new(Timing::Sampled);
    let (outcome, disk) = watching_disk(ctx.dir(), || {
        let (mut reader, until) =
            (engine.reader(Access::Settling)?, Until::ops_or(data.entries, Some(end)));
        reading.again(&mut reader, &data, 0x11, &mut recorder, until)
    });
    outcome?;
    ctx.verifying();
    let verdict = verify(&engine, &data, &model);
    let over_time = OverTime::new(vec![recorder.side("reads")], disk, data.raw_bytes(1));
    let sample = Sample::of(ctx.row(), &recorder);
    ctx.report(Sample { over_time: Some(over_time), ..sample }, &verdict);
    engine.close()
}

/// One reader beside a writer of random keys, held to a rate or to none, over a settled store.
pub fn beside_writes<E: Engine>(ctx: &Ctx) -> Result<()> {
    let plan = ctx.plan();
    let data = plan.data()?;
    let (engine, mut model) = open_settled::<E>(ctx, &data, Order::Shuffled)?;
    ctx.doing(ctx.row());
    let (seed, generation) = (mix(data.seed ^ 0x12), 2);
    let beside = Beside {
        data: &data,
        readers: 1,
        reading: Reading::of_row(ctx.row()),
        seconds: plan.seconds,
        writer_rate: (ctx.spec.case == CaseId::BesideWriter).then_some(plan.writer_rate),
        seed,
        generation,
    };
    let (sides, disk) = watching_disk(ctx.dir(), || beside.run(&engine));
    let sides = sides?;
    ctx.verifying();
    model.replay(Order::Uniform, seed, sides.writer.ops(), generation);
    let verdict = verify(&engine, &data, &model);
    let both = vec![sides.reads().side("reads"), sides.writer.side("puts")];
    let over_time = Some(OverTime::new(both, disk, data.raw_bytes(1)));
    let sample = sides.sample(ctx.row(), beside.writer_rate);
    ctx.report(Sample { over_time, ..sample }, &verdict);
    engine.close()
}

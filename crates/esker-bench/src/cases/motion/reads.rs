//! Point reads and seeks of a store that was written to until a moment ago, or is as they go on.

use crate::cases::beside::Beside;
use crate::cases::reading::Reading;
use crate::cases::{load, put_all};
use crate::child::Ctx;
use crate::data::{KeyBuf, Order, Rng, mix, verify};
use crate::engine::{Access, Engine, Sync};
use crate::measure::{Recorder, Timing, Until};
use crate::over_time::{OverTime, watching_disk};
use crate::plan::CaseId;
use crate::protocol::Sample;
use anyhow::Result;
use std::hint::black_box;
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
        let mut reader = engine.reader(Access::Settling)?;
        let mut rng = Rng::new(mix(data.seed ^ 0x11));
        let (mut key, mut sum) = (KeyBuf::new(), 0u64);
        recorder.run(Until::Either(data.entries, end), || {
            let index = rng.below(data.entries);
            sum = sum.wrapping_add(reading.once(&mut reader, &data, index, &mut key)?);
            Ok(())
        })?;
        black_box(sum);
        anyhow::Ok(())
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
    let engine: E = ctx.open(&data, Sync::Buffered)?;
    let mut model = load(ctx, &engine, &data, Order::Shuffled)?;
    ctx.doing("settling");
    engine.settle_fully()?;
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
    let reads = sides.reads();
    let writer = sides.writer_side(beside.writer_rate);
    let mut sample = Sample::of(ctx.row(), &reads);
    if beside.writer_rate.is_none_or(|rate| writer.ops_per_s < 0.95 * rate) {
        sample = sample.with_note(format!("the writer did {:.0}/s", writer.ops_per_s));
    }
    let both = vec![reads.side("reads"), sides.writer.side("puts")];
    let over_time = Some(OverTime::new(both, disk, data.raw_bytes(1)));
    ctx.report(Sample { writer: Some(writer), over_time, ..sample }, &verdict);
    engine.close()
}

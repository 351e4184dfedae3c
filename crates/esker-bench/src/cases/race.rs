//! Readers beside a writer held to a rate: thread by thread over time, and how long it takes until the
//! last reader has read as many keys as the store has. All engines are watched for the same time,
//! so that their lines can be laid side by side. Rows: `reads` (all readers together), `writes`,
//! `time`; and what memory all of it came to, the load too.

use super::beside::{Beside, Sides};
use super::reading::Reading;
use super::{open_settled, peaks};
use crate::child::Ctx;
use crate::data::{Dataset, Order, mix, verify, verify_sample};
use crate::engine::Engine;
use crate::measure::Recorder;
use crate::plan::Plan;
use crate::protocol::Sample;
use anyhow::Result;

/// How many times the usual seconds the threads are watched.
const PATIENCE: f64 = 2.0;

/// Loads, settles, races.
pub fn run<E: Engine>(ctx: &Ctx) -> Result<()> {
    let plan = ctx.plan();
    let data = plan.data()?;
    // A store larger than memory is loaded in order: some engines would take hours otherwise.
    let limited = plan.memory_limit.is_some();
    let order = if limited { Order::Sequential } else { Order::Shuffled };
    let (engine, mut model) = open_settled::<E>(ctx, &data, order)?;

    ctx.doing("readers beside a writer");
    let seed = mix(data.seed ^ 9);
    let beside = Beside {
        data: &data,
        readers: plan.readers.first().copied().unwrap_or(1),
        reading: Reading::Point,
        seconds: plan.seconds * PATIENCE,
        writer_rate: Some(plan.writer_rate),
        seed,
        generation: 2,
    };
    let sides = beside.run(&engine)?;
    let peaks = peaks(ctx);
    ctx.verifying();
    model.replay(Order::Uniform, seed, sides.writer.ops(), 2);
    let verify = if limited { verify_sample } else { verify };
    let verdict = verify(&engine, &data, &model);
    report(ctx, plan, &data, &sides, &verdict);
    for peak in peaks {
        ctx.report(peak, &verdict);
    }
    engine.close()
}

fn report(ctx: &Ctx, plan: &Plan, data: &Dataset, sides: &Sides, verdict: &Result<()>) {
    let reads = sides.sample("reads", Some(plan.writer_rate));
    let read_s = reads.seconds;
    ctx.report(Sample { threads: Some(sides.threads()), ..reads }, verdict);
    ctx.report(Sample::of("writes", &sides.writer), verdict);
    let (seconds, estimated) = time_to_complete(sides, data.entries);
    let mut sample = Sample { seconds: read_s, ..Sample::figure("time", seconds) };
    if estimated {
        sample = sample.with_note(format!("estimated from the first {read_s:.1} s"));
    }
    ctx.report(sample, verdict);
}

/// Seconds until the last reader had read `wanted` keys; and whether one had not, and this is what
/// it would take at the pace it had.
fn time_to_complete(sides: &Sides, wanted: u64) -> (f64, bool) {
    let whole = |r: &Recorder| r.seconds() * wanted as f64 / r.ops().max(1) as f64;
    let seconds = |r: &Recorder| r.seconds_until(wanted).unwrap_or_else(|| whole(r));
    let last = sides.readers.iter().map(seconds).fold(0.0, f64::max);
    (last, sides.readers.iter().any(|r| r.ops() < wanted))
}

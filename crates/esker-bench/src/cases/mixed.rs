//! Readers beside a throttled writer, for a time: what a reader pays for writes going on.

use super::beside::Beside;
use super::load;
use super::reading::Reading;
use crate::child::Ctx;
use crate::data::{Order, mix, verify};
use crate::engine::{Engine, Sync};
use crate::protocol::Sample;
use anyhow::Result;

/// One row for each number of readers, over a settled store; a process is asked for one of them.
pub fn run<E: Engine>(ctx: &Ctx) -> Result<()> {
    let plan = ctx.plan();
    let data = plan.data()?;
    let engine: E = ctx.open(&data, Sync::Buffered)?;
    let mut model = load(ctx, &engine, &data, Order::Shuffled)?;
    engine.settle_fully()?;
    for (round, &readers) in plan.readers.iter().enumerate() {
        let row = format!("readwhilewriting{readers}");
        if !ctx.wants(&row) {
            continue;
        }
        ctx.doing(&row);
        let seed = mix(data.seed ^ (0x100 + round as u64));
        // Generation 2, 3, ...: what this round writes differs from what the last one did.
        let generation = 2 + round as u32 % 200;
        let (seconds, reading) = (plan.seconds, Reading::Point);
        let writer_rate = Some(plan.writer_rate);
        let beside =
            Beside { data: &data, readers, reading, seconds, writer_rate, seed, generation };
        let sides = beside.run(&engine)?;
        ctx.verifying();
        model.replay(Order::Uniform, seed, sides.writer.ops(), generation);
        let verdict = verify(&engine, &data, &model);
        let writer = sides.writer_side(writer_rate);
        let mut sample = Sample::of(&row, &sides.reads());
        if writer.ops_per_s < 0.95 * writer.wanted_per_s {
            sample = sample.with_note(format!("the writer did {:.0}/s", writer.ops_per_s));
        }
        let threads = Some(sides.threads());
        ctx.report(Sample { writer: Some(writer), threads, ..sample }, &verdict);
    }
    engine.close()
}

//! Readers beside a throttled writer, for a time: what a reader pays for writes going on.

use super::beside::Beside;
use super::open_settled;
use super::reading::Reading;
use crate::child::Ctx;
use crate::data::{Order, mix, verify};
use crate::engine::Engine;
use crate::protocol::Sample;
use anyhow::Result;

/// One row for each number of readers, over a settled store; a process is asked for one of them.
pub fn run<E: Engine>(ctx: &Ctx) -> Result<()> {
    let plan = ctx.plan();
    let data = plan.data()?;
    let (engine, mut model) = open_settled::<E>(ctx, &data, Order::Shuffled)?;
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
        let threads = Some(sides.threads());
        ctx.report(Sample { threads, ..sides.sample(&row, writer_rate) }, &verdict);
    }
    engine.close()
}

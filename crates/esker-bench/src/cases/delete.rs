//! Deleting keys drawn at random from a settled store; a third of the draws is gone already.

use super::load;
use crate::child::Ctx;
use crate::data::{KeyBuf, KeyStream, Order, mix, verify};
use crate::engine::{Engine, Hint, Sync, Writer};
use crate::measure::{Recorder, Timing, Until};
use crate::protocol::Sample;
use anyhow::Result;

/// As many deletes as there are keys.
pub fn run<E: Engine>(ctx: &Ctx) -> Result<()> {
    let data = ctx.plan().data()?;
    let engine: E = ctx.open(&data, Sync::Buffered)?;
    let mut model = load(ctx, &engine, &data, Order::Shuffled)?;
    engine.settle()?;
    ctx.doing("deleting");
    let seed = mix(data.seed ^ 5);
    let mut recorder = Recorder::new(Timing::Sampled);
    {
        let mut writer = engine.writer(Hint::Any)?;
        let mut stream = KeyStream::new(Order::Uniform, data.entries, seed);
        let mut key = KeyBuf::new();
        let until = Until::ops_or(data.entries, ctx.plan().deadline());
        recorder.run(until, || writer.delete(data.keys.write(stream.next_index(), &mut key)))?;
    }
    let mut stream = KeyStream::new(Order::Uniform, data.entries, seed);
    for _ in 0..recorder.ops() {
        model.delete(stream.next_index());
    }
    ctx.verifying();
    let verdict = verify(&engine, &data, &model);
    ctx.report(Sample::of(ctx.row(), &recorder).of_wanted(data.entries), &verdict);
    engine.close()
}

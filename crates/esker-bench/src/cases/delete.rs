//! Deleting keys drawn at random from a settled store; a third of the draws is gone already. As with writes, a second row
//! ends when nothing is owed any more.

use super::fill::samples;
use super::{finish, open_settled};
use crate::child::Ctx;
use crate::data::{KeyBuf, KeyStream, Order, mix};
use crate::engine::{Engine, Hint, Writer};
use crate::measure::{Recorder, Timing, Until};
use anyhow::Result;

/// As many deletes as there are keys.
pub fn run<E: Engine>(ctx: &Ctx) -> Result<()> {
    let data = ctx.plan().data()?;
    let (engine, mut model) = open_settled::<E>(ctx, &data, Order::Shuffled)?;
    ctx.doing_clean("deleting")?;
    let seed = mix(data.seed ^ 5);
    let mut recorder = Recorder::new(Timing::Sampled);
    {
        let mut writer = engine.writer(Hint::Any)?;
        let mut stream = KeyStream::new(Order::Uniform, data.entries, seed);
        let mut key = KeyBuf::new();
        let until = Until::ops_or(data.entries, ctx.plan().deadline());
        recorder.run(until, || writer.delete(data.keys.write(stream.next_index(), &mut key)))?;
    }
    let samples = samples(ctx, &engine, &recorder, 1, data.entries);
    let mut stream = KeyStream::new(Order::Uniform, data.entries, seed);
    for _ in 0..recorder.ops() {
        model.delete(stream.next_index());
    }
    finish(ctx, engine, &data, &model, samples)
}

//! One scan of everything, by the first reader there is: of what was written a moment ago, and of a store at
//! rest that nobody has read yet.

use crate::cases::{close_in_order, finish, load, open_settled, touch, warm};
use crate::child::Ctx;
use crate::data::{Model, Order};
use crate::engine::{Access, Direction, Engine, Reader, Sync};
use crate::plan::CaseId;
use crate::protocol::Sample;
use anyhow::{Result, ensure};
use std::hint::black_box;
use std::time::Instant;

/// Loads, in key order or at random, and scans at once.
pub fn fresh<E: Engine>(ctx: &Ctx) -> Result<()> {
    let data = ctx.plan().data()?;
    let order = match ctx.spec.case {
        CaseId::FreshOrdered => Order::Sequential,
        _ => Order::Shuffled,
    };
    let engine: E = ctx.open(&data, Sync::Buffered)?;
    let model = load(ctx, &engine, &data, order)?;
    let sample = scan(ctx, &engine, data.entries)?;
    finish(ctx, engine, &data, &model, [sample])
}

/// Whichever of two processes this is: one loads and settles, the other opens the store and scans. The files
/// are in the page cache.
pub fn first<E: Engine>(ctx: &Ctx) -> Result<()> {
    let data = ctx.plan().data()?;
    if ctx.spec.step == 0 {
        let (engine, _) = open_settled::<E>(ctx, &data, Order::Shuffled)?;
        return close_in_order(ctx, engine, &data).map(|_| ());
    }
    // Some write past the page cache as they put their files in order, or drop what they have written from it.
    warm::read_once(ctx.dir())?;
    let engine: E = ctx.open(&data, Sync::Buffered)?;
    let sample = scan(ctx, &engine, data.entries)?;
    let model = Model::filled(data.entries, Order::Shuffled, data.seed, 1);
    finish(ctx, engine, &data, &model, [sample])
}

/// Scans everything, the way that the row says; `expected` entries must be there. A new reader and its
/// first entry are part of it.
pub fn scan<E: Engine>(ctx: &Ctx, engine: &E, expected: u64) -> Result<Sample> {
    let backwards = ctx.row().starts_with("reverse.");
    let way = if backwards { Direction::Reverse } else { Direction::Forward };
    ctx.doing(ctx.row());
    let mut sum = 0u64;
    let start = Instant::now();
    let seen = engine.reader(Access::Quiet)?.scan(way, |key, value| {
        sum = sum.wrapping_add(touch(key)).wrapping_add(touch(value));
    })?;
    let seconds = start.elapsed().as_secs_f64();
    black_box(sum);
    ensure!(seen == expected, "saw {seen} entries, not {expected}");
    Ok(Sample::rate(ctx.row(), seen, seconds))
}

//! A store that is loaded and then only read. The first process loads it, settles and closes it; then
//! nothing of it is left in memory. The second reads at random (`cold`, the first few reads), scans everything, and reads
//! at random again (`warm`).

use super::reading::Reading;
use super::{Patience, close_in_order, report_outcome, with_order, write_all};
use crate::calls;
use crate::child::Ctx;
use crate::data::{Dataset, Model, Order, mix, verify_sample};
use crate::engine::{Access, Direction, Engine, Reader, Sync};
use crate::measure::{Recorder, Timing, Until};
use crate::protocol::Sample;
use crate::system;
use anyhow::{Context, Result, ensure};
use std::time::{Duration, Instant};

/// Whichever of the two processes this is.
pub fn run<E: Engine>(ctx: &Ctx) -> Result<()> {
    let data = ctx.plan().data()?;
    if ctx.spec.step == 0 { fill::<E>(ctx, &data) } else { read::<E>(ctx, &data) }
}

/// A store larger than memory is loaded in order: some engines would take hours otherwise.
fn order(ctx: &Ctx) -> Order {
    if ctx.plan().memory_limit.is_some() { Order::Sequential } else { Order::Shuffled }
}

/// What is in the store then.
fn loaded(ctx: &Ctx, data: &Dataset) -> Model {
    Model::filled(data.entries, order(ctx), data.seed, 1)
}

fn fill<E: Engine>(ctx: &Ctx, data: &Dataset) -> Result<()> {
    let engine: E = ctx.open(data, Sync::Buffered)?;
    let model = loaded(ctx, data);
    ctx.set_aside(&model);
    ctx.doing("loading");
    let timed = ctx.wants("load").then(calls::begin);
    let start = Instant::now();
    // It is a row: in the memory of the row, and nothing beside it is timed.
    let patience = Patience::of(ctx, "the load");
    write_all(ctx, &engine, data, order(ctx), data.seed, 1, patience)?;
    timed.into_iter().for_each(|timed| timed.end(data.entries));
    let note = match order(ctx) {
        Order::Sequential => "in batches of 1,000, in key order",
        _ => "in batches of 1,000, in random order",
    };
    let rate =
        |row: &str| Sample::rate(row, data.entries, start.elapsed().as_secs_f64()).with_note(note);
    let load = ctx.noted_in_passing(rate("load"));
    ctx.going_on("settling");
    engine.settle()?;
    let settled = ctx.noted(rate("load.settled"));
    ctx.verifying();
    let verdict = verify_sample(&engine, data, &model);
    ctx.report(load, &verdict);
    ctx.report(settled, &verdict);
    ctx.doing("compacting");
    engine.compact()?;
    // Each of the reads verifies what it finds.
    let seconds = close_in_order(ctx, engine, data)?;
    let disk = Sample::figure("disk", system::disk_bytes(ctx.dir()) as f64);
    ctx.report(with_order(disk, seconds), &verdict);
    system::make_cold(ctx.dir()).context("write the store out of memory")
}

fn read<E: Engine>(ctx: &Ctx, data: &Dataset) -> Result<()> {
    let model = loaded(ctx, data);
    let engine: E = ctx.open(data, Sync::Buffered)?;
    // Also where nobody asked for it: the warm reads come after it.
    ctx.doing("reading, cold");
    let reads = |pass, most| {
        let end = Instant::now() + Duration::from_secs_f64(ctx.plan().seconds / 3.0);
        random(&mut engine.reader(Access::Quiet)?, data, pass, Until::ops_or(most, Some(end)))
    };
    let outcome = reads(COLD, cold_reads(data.entries));
    report(ctx, "cold", outcome, &engine, data, &model);
    ctx.doing("warming up by a scan");
    let seen = engine.reader(Access::Quiet)?.scan(Direction::Forward, |_, _| {})?;
    ensure!(seen == data.entries, "saw {seen} entries, not {}", data.entries);
    // What a scan leaves behind is not what random reads keep.
    reads(WARM_UP, u64::MAX)?;
    ctx.doing("reading, warm");
    let outcome = reads(WARM, u64::MAX);
    report(ctx, "warm", outcome, &engine, data, &model);
    engine.close()
}

fn report<E: Engine>(
    ctx: &Ctx,
    row: &str,
    outcome: Result<Recorder>,
    engine: &E,
    data: &Dataset,
    model: &Model,
) {
    ctx.verifying();
    let outcome = outcome.map(|recorder| Sample::of(row, &recorder));
    report_outcome(ctx, row, outcome, &verify_sample(engine, data, model));
}

/// So many reads find most of what they need out of memory: afterwards a small store is in it.
fn cold_reads(entries: u64) -> u64 {
    (entries / 100).max(1000)
}

/// The times that the store is read at random: each asks for other keys, as reads are to find a warm store, and not themselves.
const COLD: u64 = 1;
const WARM_UP: u64 = 2;
const WARM: u64 = 3;

/// Point reads of keys that are drawn from all.
fn random(reader: &mut impl Reader, data: &Dataset, pass: u64, until: Until) -> Result<Recorder> {
    let mut recorder = Recorder::new(Timing::Every);
    Reading::Point.again(reader, data, mix(pass), &mut recorder, until)?;
    Ok(recorder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{KeyShape, Keys, Values};

    /// Has whatever is asked for, and notes what that was.
    #[derive(Default)]
    struct Noted(Vec<Vec<u8>>);

    impl Reader for Noted {
        fn get<R>(&mut self, key: &[u8], see: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
            self.0.push(key.to_vec());
            Ok(Some(see(b"value")))
        }
        fn seek(&mut self, _: &[u8], _: u64, _: impl FnMut(&[u8], &[u8])) -> Result<u64> {
            unreachable!("only points are read")
        }
        fn scan(&mut self, _: Direction, _: impl FnMut(&[u8], &[u8])) -> Result<u64> {
            unreachable!("only points are read")
        }
    }

    #[test]
    fn warm_reads_ask_for_other_keys_than_what_warmed_the_store() {
        let keys = Keys::Shape(KeyShape::Decimal);
        let values = Values::new("10".parse().unwrap(), 7);
        let data = Dataset { keys, values, entries: 1000, seed: 7 };
        let asked = |pass| {
            let mut noted = Noted::default();
            random(&mut noted, &data, pass, Until::ops_or(100, None)).unwrap();
            noted.0
        };
        let [cold, warm_up, warm] = [COLD, WARM_UP, WARM].map(asked);
        assert_eq!(warm, asked(WARM), "the same for each engine");
        assert!(cold != warm_up && warm_up != warm && cold != warm);
    }
}

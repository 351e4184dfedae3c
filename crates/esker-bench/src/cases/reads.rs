//! Reads of every kind from a store of every key written once in random order. A row is measured by a process of its own:
//! right after the load, with whatever debts that left, and then once more; or from a settled store that it opens.

use super::reading::seek;
use super::{close_in_order, finish, load, peaks, report_outcome, touch, warm, with_order};
use crate::calls;
use crate::chains::{SECOND, SETTLED, first_pass, reads};
use crate::child::Ctx;
use crate::data::{Dataset, KeyBuf, Model, Order, Rng, mix, verify};
use crate::engine::{Access, Direction, Engine, Reader, Sync};
use crate::measure::{Recorder, Timing, Until};
use crate::protocol::Sample;
use crate::system;
use anyhow::{Result, ensure};
use std::hint::black_box;
use std::time::Instant;

/// Entries read after each seek.
const SEEK_ENTRIES: u64 = 11; // the one sought and ten more

/// Whichever of its processes this is.
pub fn run<E: Engine>(ctx: &Ctx) -> Result<()> {
    let data = ctx.plan().data()?;
    match ctx.spec.step {
        reads::FRESH => fresh::<E>(ctx, &data),
        reads::STORE => store::<E>(ctx, &data),
        reads::SETTLED => settled::<E>(ctx, &data),
        _ => memory::<E>(ctx, &data),
    }
}

/// Loads, and reads at once; the second pass follows the first, which is measured or not but always there.
fn fresh<E: Engine>(ctx: &Ctx, data: &Dataset) -> Result<()> {
    let name = first_pass(ctx.row());
    let engine: E = ctx.open(data, Sync::Buffered)?;
    let model = load(ctx, &engine, data, Order::Shuffled)?;
    let mut outcomes = Vec::new();
    for row in [name.to_string(), format!("{name}{SECOND}")] {
        if row == name || ctx.wants(&row) {
            let outcome = pass(ctx, &engine, data, name, &row, 0.0);
            outcomes.push((row, outcome));
        }
    }
    ctx.verifying();
    let verdict = verify(&engine, data, &model);
    for (row, outcome) in outcomes {
        report_outcome(ctx, &row, outcome, &verdict);
    }
    engine.close()
}

/// Loads and settles: what other processes find.
fn store<E: Engine>(ctx: &Ctx, data: &Dataset) -> Result<()> {
    let engine: E = ctx.open(data, Sync::Buffered)?;
    let model = load(ctx, &engine, data, Order::Shuffled)?;
    // The engine is paying already, while what it came to is noted.
    let start = Instant::now();
    let disk = |row| Sample::figure(row, system::disk_bytes(ctx.dir()) as f64);
    let loaded = ctx.noted_in_passing(disk("disk"));
    ctx.doing("settling");
    let timed = ctx.wants("settle").then(calls::begin);
    engine.settle()?;
    let seconds = start.elapsed().as_secs_f64();
    timed.into_iter().for_each(|timed| timed.end(1));
    let paid = ctx.noted(Sample::figure("settle", seconds));
    // Not what the engine owed, but what its readers find.
    let start = Instant::now();
    engine.compact()?;
    let compacted_s = start.elapsed().as_secs_f64();
    let peaks = peaks(ctx);
    let more_s = compacted_s + close_in_order(ctx, engine, data)?;
    let paid = with_order(paid, more_s);
    let settled = ctx.noted(disk("disk.settled"));
    // As whoever reads it finds it.
    let engine: E = ctx.open(data, Sync::Buffered)?;
    finish(ctx, engine, data, &model, [loaded, paid, settled].into_iter().chain(peaks))
}

/// Opens the settled store and reads.
fn settled<E: Engine>(ctx: &Ctx, data: &Dataset) -> Result<()> {
    let name = ctx.row().trim_end_matches(SETTLED);
    warm::read_once(ctx.dir())?;
    let engine: E = ctx.open(data, Sync::Buffered)?;
    let least = ctx.plan().least_seconds();
    let outcome = pass(ctx, &engine, data, name, ctx.row(), least);
    ctx.verifying();
    let verdict = verify(&engine, data, &settled_model(data));
    report_outcome(ctx, ctx.row(), outcome, &verdict);
    engine.close()
}

/// Opens the settled store, reads it at random and scans it: what caches take counts as well as what writing did.
fn memory<E: Engine>(ctx: &Ctx, data: &Dataset) -> Result<()> {
    let engine: E = ctx.open(data, Sync::Buffered)?;
    for name in ["readrandom", "readseq"] {
        pass(ctx, &engine, data, name, name, 0.0)?;
    }
    let peaks = peaks(ctx);
    finish(ctx, engine, data, &settled_model(data), peaks)
}

fn settled_model(data: &Dataset) -> Model {
    Model::filled(data.entries, Order::Shuffled, data.seed, 1)
}

/// One kind of read by a reader of its own, until `least` seconds are full: once, where that is nothing.
fn pass<E: Engine>(
    ctx: &Ctx,
    engine: &E,
    data: &Dataset,
    name: &str,
    row: &str,
    least: f64,
) -> Result<Sample> {
    ctx.doing(row);
    // What was loaded is still being merged, and none is to be kept from what comes of that.
    let fresh = ctx.spec.step == reads::FRESH;
    let access = if fresh { Access::Settling } else { Access::Quiet };
    let measured = engine.reader(access).and_then(|mut reader| {
        let work = Work { data, least, deadline: ctx.plan().deadline() };
        work.measure(&mut reader, name, row)
    });
    measured.map(|sample| ctx.noted(sample))
}

/// What is read, and how long.
struct Work<'a> {
    data: &'a Dataset,
    least: f64,
    deadline: Option<Instant>,
}

impl Work<'_> {
    fn measure(&self, reader: &mut impl Reader, name: &str, row: &str) -> Result<Sample> {
        match name {
            "readseq" => self.scan(reader, Direction::Forward, row),
            "readreverse" => self.scan(reader, Direction::Reverse, row),
            "seekrandom" => self.seek_random(reader, row),
            _ => self.get_random(reader, name, row),
        }
    }

    /// So many operations, and as many again until there was work enough.
    fn run(&self, wanted: u64, mut op: impl FnMut() -> Result<()>) -> Result<Recorder> {
        let mut recorder = Recorder::new(Timing::Sampled);
        loop {
            recorder.run(Until::ops_or(wanted, self.deadline), &mut op)?;
            let late = self.deadline.is_some_and(|at| Instant::now() >= at);
            if recorder.seconds() >= self.least || late {
                return Ok(recorder);
            }
        }
    }

    /// Point reads of keys drawn from all; of keys that are not there; or of the hot hundredth in the
    /// middle, which fits into whatever cache there is.
    fn get_random(&self, r: &mut impl Reader, name: &str, row: &str) -> Result<Sample> {
        let data = self.data;
        let missing = name == "readmissing";
        let (from, range) = match name {
            "readhot" => (data.entries / 2, (data.entries / 100).max(1)),
            _ => (0, data.entries),
        };
        let mut rng = Rng::new(mix(data.seed ^ 3));
        let mut key = KeyBuf::new();
        let (mut found, mut sum) = (0, 0u64);
        let recorder = self.run(data.entries, || {
            let index = from + rng.below(range);
            let key = if missing {
                data.keys.write_missing(index, &mut key)
            } else {
                data.keys.write(index, &mut key)
            };
            if let Some(touched) = r.get(key, touch)? {
                found += 1;
                sum = sum.wrapping_add(touched);
            }
            Ok(())
        })?;
        black_box(sum);
        let expected = if missing { 0 } else { recorder.ops() };
        ensure!(found == expected, "found {found} keys, not {expected}");
        Ok(Sample::of(row, &recorder).of_wanted(data.entries))
    }

    /// Whole passes.
    fn scan(&self, r: &mut impl Reader, way: Direction, row: &str) -> Result<Sample> {
        let (mut all, mut sum) = (0, 0u64);
        let timed = calls::begin();
        let start = Instant::now();
        loop {
            let seen = r.scan(way, |key, value| {
                sum = sum.wrapping_add(touch(key)).wrapping_add(touch(value));
            })?;
            let seconds = start.elapsed().as_secs_f64();
            ensure!(seen == self.data.entries, "saw {seen} entries, not {}", self.data.entries);
            all += seen;
            if seconds >= self.least {
                timed.end(all);
                black_box(sum);
                return Ok(Sample::rate(row, all, seconds));
            }
        }
    }

    fn seek_random(&self, r: &mut impl Reader, row: &str) -> Result<Sample> {
        let data = self.data;
        let wanted = (data.entries / 4).max(1);
        let mut rng = Rng::new(mix(data.seed ^ 4));
        let mut key = KeyBuf::new();
        let (mut seen, mut expected, mut sum) = (0, 0, 0u64);
        let recorder = self.run(wanted, || {
            let index = rng.below(data.entries);
            expected += SEEK_ENTRIES.min(data.entries - index);
            let (touched, found) = seek(r, data.keys.write(index, &mut key), SEEK_ENTRIES)?;
            sum = sum.wrapping_add(touched);
            seen += found;
            Ok(())
        })?;
        black_box(sum);
        ensure!(seen == expected, "saw {seen} entries, not {expected}");
        Ok(Sample::of(row, &recorder).of_wanted(wanted))
    }
}

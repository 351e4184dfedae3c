//! Overwrites without limit, for as long as it takes until a store cannot live on what it puts off: rate, the worst
//! put, the disk beside what is alive, what was written for each byte put, and whether all that got worse in the end.

use crate::cases::{at_once, open_settled};
use crate::child::Ctx;
use crate::data::{Dataset, KeyBuf, KeyStream, Model, Order, mix, verify};
use crate::engine::{Engine, Hint, Writer};
use crate::measure::{Recorder, Timing, Until};
use crate::over_time::{OverTime, Sustained, debt_grew, growth, watching_disk};
use crate::protocol::Sample;
use crate::system;
use anyhow::{Context, Result};
use std::time::{Duration, Instant};

/// Loads, settles, overwrites, settles.
pub fn run<E: Engine>(ctx: &Ctx) -> Result<()> {
    let plan = ctx.plan();
    let data = plan.data()?;
    let (engine, mut model) = open_settled::<E>(ctx, &data, Order::Shuffled)?;
    let live_bytes = data.raw_bytes(1);

    ctx.doing_clean("overwriting")?;
    let flood = Flood { data: &data, writers: plan.writers.clamp(1, data.entries) };
    let end = Instant::now() + Duration::from_secs_f64(plan.seconds);
    let (writers, disk) = watching_disk(ctx.dir(), || flood.run(&engine, end));
    let (writers, start) = (writers?, Instant::now());
    let written = ctx.used().written_bytes;
    ctx.going_on("settling");
    engine.settle()?;
    let settle_s = start.elapsed().as_secs_f64();
    // What is deleted from here on was written.
    system::write_back(ctx.dir()).context("write the store to the device")?;
    let written_settled = ctx.used().written_bytes;

    ctx.verifying();
    flood.replay(&writers, &mut model);
    let verdict = verify(&engine, &data, &model);
    let mut all = Recorder::new(Timing::Sampled);
    writers.iter().for_each(|writer| all.merge(writer));
    let puts = all.side("puts");
    let (rate_growth, disk_growth) = (growth(&puts.ops_per_s), growth(&disk));
    let over_time = OverTime::new(vec![puts], disk, live_bytes);
    let (disk_to_live_max, disk_to_live_mean) = over_time.disk_to_live();
    let put_bytes = all.ops() as f64 * live_bytes as f64 / data.entries as f64;
    let sustained = Sustained {
        writers: flood.writers,
        puts_per_s: all.ops() as f64 / all.seconds().max(1e-9),
        worst_put_us: all.latency().max_us,
        p9999_put_us: all.quantile_us(0.9999),
        worst_quarter_puts_per_s: all.window_extremes().map(|(worst, _)| worst),
        disk_to_live_max,
        disk_to_live_mean,
        write_amplification: written as f64 / put_bytes,
        write_amplification_settled: written_settled as f64 / put_bytes,
        settle_s,
        disk_growth,
        rate_growth,
        debt_grew: debt_grew(disk_growth, rate_growth),
    };
    report(ctx, &all, sustained, over_time, &verdict);
    engine.close()
}

/// A row for each figure that engines are to be compared by; the first has all of them.
fn report(
    ctx: &Ctx,
    all: &Recorder,
    sustained: Sustained,
    over_time: OverTime,
    verdict: &Result<()>,
) {
    let figure = |row: &str, value: f64| {
        ctx.report(Sample { seconds: all.seconds(), ..Sample::figure(row, value) }, verdict);
    };
    let figures = sustained.clone();
    let sample = Sample::of("overwrite", all).with_note(words(&sustained));
    let (over_time, sustained) = (Some(over_time), Some(sustained));
    ctx.report(Sample { over_time, sustained, ..sample }, verdict);
    figure("worst_put", figures.worst_put_us / 1000.0);
    figure("p9999_put", figures.p9999_put_us / 1000.0);
    // A row that is shorter than a quarter of a second is all there is.
    figure("worst_quarter", figures.worst_quarter_puts_per_s.unwrap_or(figures.puts_per_s));
    figure("disk_to_live", figures.disk_to_live_max);
    figure("written_per_byte", figures.write_amplification_settled);
    figure("settle", figures.settle_s);
}

fn words(s: &Sustained) -> String {
    let times = |growth: Option<f64>| growth.map_or("unknown".to_string(), |g| format!("{g:.2}x"));
    format!(
        "disk {:.1}x of what is alive at most, {:.1}x on average; {:.1} bytes written for each byte put, {:.1} \
         until settled; last quarter beside the second: disk {}, rate {}",
        s.disk_to_live_max,
        s.disk_to_live_mean,
        s.write_amplification,
        s.write_amplification_settled,
        times(s.disk_growth),
        times(s.rate_growth),
    )
}

/// Threads that overwrite keys of their own: key number `i` belongs to writer `i % writers`, so that it is known
/// which put of a key was the last.
struct Flood<'a> {
    data: &'a Dataset,
    writers: u64,
}

/// Writes of one writer, in order: which key, and in which generation. As often as it has put as many as it has
/// keys, values are new.
struct Puts {
    stream: KeyStream,
    writers: u64,
    number: u64,
    keys: u64,
    left: u64,
    generation: u32,
}

impl Puts {
    #[inline]
    fn next(&mut self) -> (u64, u32) {
        if self.left == 0 {
            self.left = self.keys;
            // A model has one byte for it, and 0 means that a key is not there.
            self.generation = 2 + (self.generation - 1) % 200;
        }
        self.left -= 1;
        (self.stream.next_index() * self.writers + self.number, self.generation)
    }
}

impl Flood<'_> {
    fn puts(&self, number: u64) -> Puts {
        let keys = (self.data.entries - number).div_ceil(self.writers);
        let seed = mix(self.data.seed ^ (0x300 + number));
        let stream = KeyStream::new(Order::Uniform, keys, seed);
        Puts { stream, writers: self.writers, number, keys, left: keys, generation: 2 }
    }

    fn run<E: Engine>(&self, engine: &E, end: Instant) -> Result<Vec<Recorder>> {
        at_once(self.writers, |number| self.write(engine, number, end))
    }

    fn write<E: Engine>(&self, engine: &E, number: u64, end: Instant) -> Result<Recorder> {
        let data = self.data;
        let mut writer = engine.writer(Hint::Any)?;
        let mut puts = self.puts(number);
        let (mut key, mut value) = (KeyBuf::new(), Vec::new());
        let mut recorder = Recorder::new(Timing::Sampled);
        recorder.run(Until::time(end), || {
            let (index, generation) = puts.next();
            let value = data.values.value(index, generation, &mut value);
            writer.put(data.keys.write(index, &mut key), value)
        })?;
        Ok(recorder)
    }

    /// Notes what the writers have written.
    fn replay(&self, writers: &[Recorder], model: &mut Model) {
        for (number, writer) in writers.iter().enumerate() {
            let mut puts = self.puts(number as u64);
            for _ in 0..writer.ops() {
                let (index, generation) = puts.next();
                model.put(index, generation);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_key_has_one_writer_and_values_are_new_in_each_pass() {
        let mut plan = crate::suites::tests::base().plan;
        plan.entries = 103;
        let data = plan.data().unwrap();
        let flood = Flood { data: &data, writers: 4 };
        let mut seen = HashSet::new();
        for number in 0..4 {
            let mut puts = flood.puts(number);
            let mut generations = Vec::new();
            for _ in 0..210 * puts.keys {
                let (index, generation) = puts.next();
                assert!(index < 103 && index % 4 == number, "{index} of {number}");
                seen.insert(index);
                if generations.last() != Some(&generation) {
                    generations.push(generation);
                }
            }
            assert_eq!(generations.len(), 210, "a pass has a generation");
            assert_eq!(generations[..3], [2, 3, 4]);
            assert!(generations.iter().all(|g| (2..=201).contains(g)));
        }
        assert_eq!(seen.len(), 103);
    }
}

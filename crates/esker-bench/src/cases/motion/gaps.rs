//! Half of the keys of a settled store lie in a range in its middle. Either all of that range is deleted, or
//! every second key of it, in random order and one by one; then, at once, everything is scanned, or keys in the
//! range are sought.

use super::scans::scan;
use crate::cases::reading::{Reading, seek};
use crate::cases::{Patience, finish, open_settled};
use crate::child::Ctx;
use crate::data::{Dataset, KeyBuf, KeyStream, Model, Order, Rng, mix};
use crate::engine::{Access, Engine, Hint, Writer};
use crate::measure::{Recorder, Timing, Until};
use crate::plan::CaseId;
use crate::protocol::Sample;
use anyhow::{Result, ensure};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Deletes between two looks at the clock.
const LOOK_EVERY: u64 = 1000;

/// Loads, settles, deletes, reads.
pub fn run<E: Engine>(ctx: &Ctx) -> Result<()> {
    let data = ctx.plan().data()?;
    let (engine, mut model) = open_settled::<E>(ctx, &data, Order::Shuffled)?;
    let range = Range::new(data.entries, ctx.spec.case == CaseId::Gaps);
    range.delete(ctx, &engine, &data, &mut model)?;
    let sample = match Reading::of_row(ctx.row()) {
        Reading::Seek(count) => range.seek_into(ctx, &engine, &data, count)?,
        // What is no seek is the scan: a point read of a deleted key is one of a key that never was.
        Reading::Point => scan(ctx, &engine, model.count())?,
    };
    finish(ctx, engine, &data, &model, [sample])
}

/// The keys in the middle.
struct Range {
    entries: u64,
    from: u64,
    len: u64,
    /// Only every second one, from the second on, is deleted.
    every_second: bool,
}

impl Range {
    fn new(entries: u64, every_second: bool) -> Range {
        Range { entries, from: entries / 4, len: (entries / 2).max(1), every_second }
    }

    /// How many are deleted, and the index of the `n`-th.
    fn deleted(&self) -> u64 {
        if self.every_second { self.len / 2 } else { self.len }
    }
    fn index_of(&self, n: u64) -> u64 {
        self.from + if self.every_second { 2 * n + 1 } else { n }
    }

    /// How many keys are left from `at` in the range on, to the end of the store.
    fn left_from(&self, at: u64) -> u64 {
        let behind = self.entries - self.from - self.len;
        let within = at - self.from;
        let left = if self.every_second { self.len.div_ceil(2) - within.div_ceil(2) } else { 0 };
        left + behind
    }

    fn delete<E: Engine>(
        &self,
        ctx: &Ctx,
        engine: &E,
        data: &Dataset,
        model: &mut Model,
    ) -> Result<()> {
        ctx.doing("deleting");
        let patience = Patience::of(ctx, "the deleting");
        let mut writer = engine.writer(Hint::Any)?;
        let mut stream = KeyStream::new(Order::Shuffled, self.deleted(), mix(data.seed ^ 0x13));
        let mut key = KeyBuf::new();
        for done in 1..=self.deleted() {
            let index = self.index_of(stream.next_index());
            writer.delete(data.keys.write(index, &mut key))?;
            model.delete(index);
            if done % LOOK_EVERY == 0 {
                patience.check(done, self.deleted())?;
            }
        }
        Ok(())
    }

    /// As many seeks as there are keys in the range, or as there is time for.
    fn seek_into<E: Engine>(
        &self,
        ctx: &Ctx,
        engine: &E,
        data: &Dataset,
        count: u64,
    ) -> Result<Sample> {
        ctx.doing(ctx.row());
        let end = Instant::now() + Duration::from_secs_f64(ctx.plan().seconds);
        let mut reader = engine.reader(Access::Settling)?;
        let mut rng = Rng::new(mix(data.seed ^ 0x14));
        let (mut key, mut sum) = (KeyBuf::new(), 0u64);
        // Each by itself: a single one may take longer than all others.
        let mut recorder = Recorder::new(Timing::Every);
        recorder.run(Until::ops_or(self.len, Some(end)), || {
            let index = self.from + rng.below(self.len);
            let (touched, seen) = seek(&mut reader, data.keys.write(index, &mut key), count)?;
            let expected = count.min(self.left_from(index));
            ensure!(seen == expected, "saw {seen} entries, not {expected}");
            sum = sum.wrapping_add(touched);
            Ok(())
        })?;
        black_box(sum);
        Ok(Sample::of(ctx.row(), &recorder))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_what_was_not_deleted() {
        for entries in [1, 2, 3, 4, 5, 8, 11, 64, 101] {
            for every_second in [false, true] {
                let range = Range::new(entries, every_second);
                let mut there = vec![true; entries as usize];
                for n in 0..range.deleted() {
                    assert!(std::mem::take(&mut there[range.index_of(n) as usize]));
                }
                for at in range.from..range.from + range.len {
                    let left = there[at as usize..].iter().filter(|there| **there).count() as u64;
                    assert_eq!(range.left_from(at), left, "{entries} {every_second} {at}");
                }
            }
        }
    }
}

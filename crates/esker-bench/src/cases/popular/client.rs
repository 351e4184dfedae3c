//! A client of a mix: its part of the operations, in a thread of its own where there are several.

use super::inserts::Inserts;
use super::mixes::Mix;
use crate::cases::reading::seek;
use crate::cases::{at_once, touch};
use crate::data::{Dataset, KeyBuf, Rng, Zipfian, mix};
use crate::engine::{Access, Engine, Hint, Reader, Writer};
use crate::measure::{Recorder, Timing, Until};
use anyhow::{Result, ensure};
use std::hint::black_box;
use std::sync::Barrier;
use std::time::Instant;

/// Entries that a scan reads at most.
const SCAN_ENTRIES: u64 = 100;

/// What all clients of a mix go by.
pub(super) struct Clients<'a> {
    pub(super) data: &'a Dataset,
    pub(super) kind: &'a Mix,
    /// Generation of what they write.
    pub(super) generation: u32,
    pub(super) inserts: Inserts,
    /// How many there are.
    pub(super) count: u64,
    /// Operations of all together.
    pub(super) ops: u64,
    pub(super) deadline: Option<Instant>,
}

/// What a client did, or all of them.
pub(super) struct Done {
    pub(super) recorder: Recorder,
    /// Scans that did not see all that had been inserted before them.
    pub(super) short: u64,
    /// What is to be in the store.
    pub(super) written: Vec<u64>,
}

impl Clients<'_> {
    /// All of them at once. One alone works in the thread that opened the store.
    pub(super) fn run<E: Engine>(&self, engine: &E) -> Result<Done> {
        let barrier = Barrier::new(self.count as usize);
        if self.count == 1 {
            return self.client(engine, 0, &barrier);
        }
        let mut all =
            Done { recorder: Recorder::new(Timing::Sampled), short: 0, written: Vec::new() };
        for done in at_once(self.count, |number| self.client(engine, number, &barrier))? {
            all.recorder.merge(&done.recorder);
            all.short += done.short;
            all.written.extend(done.written);
        }
        Ok(all)
    }

    fn client<E: Engine>(&self, engine: &E, number: u64, barrier: &Barrier) -> Result<Done> {
        let (writer, reader) = (engine.writer(Hint::Any), engine.reader(Access::BesideWriter));
        let ops = self.ops / self.count + u64::from(number < self.ops % self.count);
        // What was written: looked up in a model it would cost a cache miss each time.
        let mut written: Vec<u64> = Vec::with_capacity(ops as usize);
        let zipf = Zipfian::new(self.inserts.first());
        let seed = self.data.seed ^ mix(u64::from(self.generation) | number << 32);
        let mut recorder = Recorder::new(Timing::Sampled);
        // Whatever happened: a client that stays away would leave the others waiting for ever.
        barrier.wait();
        let mut client = Client {
            all: self,
            writer: writer?,
            reader: reader?,
            rng: Rng::new(mix(seed)),
            zipf,
            key: KeyBuf::new(),
            value: Vec::new(),
            seen: self.inserts.first(),
            short: 0,
            sum: 0,
        };
        recorder.run(Until::ops_or(ops, self.deadline), || client.operation(&mut written))?;
        black_box(client.sum);
        Ok(Done { recorder, short: client.short, written })
    }
}

struct Client<'a, W, R> {
    all: &'a Clients<'a>,
    writer: W,
    reader: R,
    rng: Rng,
    zipf: Zipfian,
    key: KeyBuf,
    value: Vec<u8>,
    /// How many records its view has for certain.
    seen: u64,
    short: u64,
    sum: u64,
}

impl<W: Writer, R: Reader> Client<'_, W, R> {
    fn operation(&mut self, written: &mut Vec<u64>) -> Result<()> {
        let kind = self.all.kind;
        let choice = self.rng.below(100);
        if choice < kind.insert
            && let Some(index) = self.all.inserts.take()
        {
            self.put(index)?;
            written.push(index);
            self.all.inserts.put(index);
            // Whoever inserts sees it: the latest are asked for, and scans count them.
            return self.look_anew();
        }
        let index = match kind.latest {
            true => {
                let latest = self.all.inserts.known() - 1;
                latest - self.zipf.rank(&mut self.rng).min(latest)
            }
            false => self.zipf.scattered(&mut self.rng),
        };
        if choice < kind.insert + kind.scan {
            return self.scan(index);
        }
        if choice >= kind.insert + kind.scan + kind.update {
            self.read(index)?;
        }
        if (kind.insert + kind.scan..kind.insert + kind.scan + kind.update + kind.modify)
            .contains(&choice)
        {
            self.put(index)?;
            written.push(index);
        }
        Ok(())
    }

    fn put(&mut self, index: u64) -> Result<()> {
        let data = self.all.data;
        let value = data.values.value(index, self.all.generation, &mut self.value);
        self.reader.yield_view()?;
        self.writer.put(data.keys.write(index, &mut self.key), value)
    }

    fn read(&mut self, index: u64) -> Result<()> {
        self.see_up_to(index)?;
        let asked = self.all.data.keys.write(index, &mut self.key);
        let touched = self.reader.get(asked, touch)?;
        ensure!(touched.is_some(), "lost key {}", asked.escape_ascii());
        self.sum = self.sum.wrapping_add(touched.unwrap_or(0));
        Ok(())
    }

    /// A tree of the log-structured kind may not owe scans all that is inserted meanwhile (WiredTiger's does not always).
    fn scan(&mut self, index: u64) -> Result<()> {
        let inserts = &self.all.inserts;
        let count = 1 + self.rng.below(SCAN_ENTRIES);
        self.see_up_to((index + count).min(inserts.known()) - 1)?;
        let known = self.seen;
        let asked = self.all.data.keys.write(index, &mut self.key);
        let (sum, seen) = seek(&mut self.reader, asked, count)?;
        self.sum = self.sum.wrapping_add(sum);
        let (least, most) = (inserts.first().saturating_sub(index), inserts.taken() - index);
        ensure!(
            (count.min(least)..=count.min(most)).contains(&seen),
            "a scan saw {seen} entries, not {}",
            count.min(most)
        );
        self.short += u64::from(seen < count.min(known - index));
        Ok(())
    }

    /// What another client inserted is not in an older view.
    fn see_up_to(&mut self, index: u64) -> Result<()> {
        if index < self.seen { Ok(()) } else { self.look_anew() }
    }

    fn look_anew(&mut self) -> Result<()> {
        self.seen = self.all.inserts.known();
        self.reader.renew()
    }
}

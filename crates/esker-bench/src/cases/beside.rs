//! Readers beside one writer, held to a rate or not.

use super::at_once;
use super::reading::Reading;
use crate::data::{Dataset, KeyBuf, Order};
use crate::engine::{Access, Engine, Hint, Writer};
use crate::measure::{Recorder, Series, Timing, Until};
use crate::protocol::{Sample, WriterSide};
use crate::system;
use anyhow::Result;
use std::time::{Duration, Instant};

/// Who reads and writes, and until when.
#[derive(Debug, Clone, Copy)]
pub struct Beside<'a> {
    /// Keys and values.
    pub data: &'a Dataset,
    /// How many read.
    pub readers: u64,
    /// What they read.
    pub reading: Reading,
    /// Seconds after which all stop.
    pub seconds: f64,
    /// Writes a second; as many as it can where there is none.
    pub writer_rate: Option<f64>,
    /// Seed of the writer's keys.
    pub seed: u64,
    /// Generation of what is written.
    pub generation: u32,
}

/// What each thread did.
#[derive(Debug)]
pub struct Sides {
    /// The readers.
    pub readers: Vec<Recorder>,
    /// The writer.
    pub writer: Recorder,
}

impl Sides {
    /// All readers together.
    pub fn reads(&self) -> Recorder {
        let mut all = Recorder::new(Timing::Sampled);
        for reader in &self.readers {
            all.merge(reader);
        }
        all
    }
    /// Each thread's throughput over time.
    pub fn threads(&self) -> Vec<Series> {
        let readers = self.readers.iter().enumerate();
        let mut all: Vec<Series> =
            readers.map(|(i, r)| r.series(format!("reader {}", i + 1))).collect();
        all.push(self.writer.series("writer"));
        all
    }
    /// A row of all readers, which says how the writer fared that was held to a rate, or to none.
    pub fn sample(&self, row: &str, wanted_per_s: Option<f64>) -> Sample {
        let ops_per_s = self.writer.ops() as f64 / self.writer.seconds().max(1e-9);
        let mut sample = Sample::of(row, &self.reads());
        if wanted_per_s.is_none_or(|wanted| ops_per_s < 0.95 * wanted) {
            sample = sample.with_note(format!("the writer did {ops_per_s:.0}/s"));
        }
        let wanted_per_s = wanted_per_s.unwrap_or(0.0);
        let writer = WriterSide { wanted_per_s, ops_per_s, latency: self.writer.latency() };
        Sample { writer: Some(writer), ..sample }
    }
}

impl Beside<'_> {
    /// Runs all of them at the same time.
    pub fn run<E: Engine>(&self, engine: &E) -> Result<Sides> {
        let end = Instant::now() + Duration::from_secs_f64(self.seconds);
        let mut readers = at_once(1 + self.readers, |number| match number.checked_sub(1) {
            None => self.write(engine, end),
            Some(reader) => self.read(engine, reader, end),
        })?;
        let writer = readers.remove(0);
        Ok(Sides { readers, writer })
    }

    fn write<E: Engine>(&self, engine: &E, end: Instant) -> Result<Recorder> {
        system::precise_sleeps();
        let data = self.data;
        let mut writer = engine.writer(Hint::Any)?;
        let mut stream = data.stream(Order::Uniform, self.seed);
        let (mut key, mut value) = (KeyBuf::new(), Vec::new());
        let put = || {
            let index = stream.next_index();
            let value = data.values.value(index, self.generation, &mut value);
            writer.put(data.keys.write(index, &mut key), value)
        };
        let until = Until::time(end);
        let Some(rate) = self.writer_rate else {
            let mut recorder = Recorder::new(Timing::Sampled);
            recorder.run(until, put)?;
            return Ok(recorder);
        };
        let mut recorder = Recorder::new(Timing::Every);
        recorder.run_paced(rate, until, put)?;
        Ok(recorder)
    }

    fn read<E: Engine>(&self, engine: &E, number: u64, end: Instant) -> Result<Recorder> {
        let mut reader = engine.reader(Access::BesideWriter)?;
        let mut recorder = Recorder::new(Timing::Sampled);
        let (salt, until) = (0x200 + number, Until::time(end));
        self.reading.again(&mut reader, self.data, salt, &mut recorder, until)?;
        Ok(recorder)
    }
}

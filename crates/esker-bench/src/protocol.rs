//! What parent and child say to each other: a specification on the command line, JSON lines back.

use crate::calls::Called;
use crate::data::{Dataset, KeyBuf};
use crate::device;
use crate::engine::Class;
use crate::measure::{Latency, Recorder, Series};
use crate::memory::Memory;
use crate::over_time::{OverTime, Sustained};
use crate::plan::{CaseId, Plan};
use crate::system::Usage;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What a child is to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Spec {
    /// Which engine.
    pub engine: String,
    /// Which case.
    pub case: CaseId,
    /// Which of its processes.
    pub step: usize,
    /// Rows that are wanted.
    pub rows: Vec<String>,
    /// Where; empty before the first step.
    pub dir: PathBuf,
    /// Memory cgroup to join first.
    pub cgroup: Option<PathBuf>,
    /// Whether it says what it called, which costs time.
    #[serde(default)]
    pub audit: bool,
    /// Sizes and settings.
    pub plan: Plan,
}

/// What a child says.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "snake_case")]
pub enum Message {
    /// A row is measured, or failed.
    Row(Box<Sample>),
    /// What it is busy with.
    Doing {
        /// In words.
        what: String,
    },
    /// It waits to be killed.
    Ready,
    /// What it called of the engine, and what the adapter calls of the library.
    Called(Called),
}

/// One measurement of one row.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Sample {
    /// Its row.
    pub row: String,
    /// The figure, in the row's unit.
    pub value: f64,
    /// Operations behind it.
    pub ops: u64,
    /// Seconds behind it.
    pub seconds: f64,
    /// Latencies, where operations were timed.
    pub latency: Option<Latency>,
    /// Slowest and fastest quarter of a second, in operations a second.
    pub quarters: Option<(f64, f64)>,
    /// The writer beside readers.
    pub writer: Option<WriterSide>,
    /// Each thread's throughput over time, where several read and write.
    pub threads: Option<Vec<Series>>,
    /// Throughput, the slowest operation and the disk over time, where a store is in motion.
    pub over_time: Option<OverTime>,
    /// What overwriting without limit did.
    pub sustained: Option<Sustained>,
    /// Coefficient of variation of the quarters of a second.
    pub cv: Option<f64>,
    /// Whether the machine had not come to rest before it.
    #[serde(default)]
    pub restless: bool,
    /// What the row took of processor and device.
    pub usage: Option<Usage>,
    /// Bytes of memory that the engine was given.
    pub memory_bytes: u64,
    /// Whether each write waited for the device.
    pub sync: bool,
    /// The device beside it, where it did.
    pub device: Option<device::Beside>,
    /// Bytes the store occupied after it.
    pub disk_bytes: u64,
    /// Most memory of each kind so far, the benchmark's own aside.
    pub memory: Memory,
    /// What a write survives.
    pub class: Option<Class>,
    /// The data it was measured with.
    pub shape: Option<Shape>,
    /// The engine's settings.
    pub settings: String,
    /// What one should know of the figure.
    pub note: Option<String>,
    /// Why it does not count.
    pub failed: Option<String>,
}

/// The data of a row.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Shape {
    /// Distinct keys.
    pub entries: u64,
    /// Bytes of a key, the first one's.
    pub key_len: usize,
    /// Bytes of a value, as [`crate::ValueSize`] is written.
    pub value_size: String,
    /// Bytes of all keys and values.
    pub raw_bytes: u64,
}

impl Shape {
    /// The shape of a dataset.
    pub fn of(data: &Dataset) -> Self {
        Shape {
            entries: data.entries,
            key_len: data.keys.write(0, &mut KeyBuf::new()).len(),
            value_size: data.values.size(),
            raw_bytes: data.raw_bytes(1),
        }
    }
}

/// How a throttled writer fared.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WriterSide {
    /// Writes a second it was to do; 0 where it was held to no rate.
    pub wanted_per_s: f64,
    /// Writes a second it did.
    pub ops_per_s: f64,
    /// From when a write was due to when it was done.
    pub latency: Latency,
}

impl Sample {
    /// Operations a second from a recorder.
    pub fn of(row: &str, recorder: &Recorder) -> Self {
        Sample {
            latency: Some(recorder.latency()),
            quarters: recorder.window_extremes(),
            cv: recorder.variation(),
            ..Sample::rate(row, recorder.ops(), recorder.seconds())
        }
    }
    /// Operations a second.
    pub fn rate(row: &str, ops: u64, seconds: f64) -> Self {
        Sample { ops, seconds, ..Sample::figure(row, ops as f64 / seconds.max(1e-9)) }
    }
    /// A figure in the row's unit.
    pub fn figure(row: &str, value: f64) -> Self {
        Sample { row: row.to_string(), value, ..Sample::default() }
    }
    /// Counts each operation as `n`: a batch is timed as one, and is many entries.
    pub fn times(mut self, n: u64) -> Self {
        self.value *= n as f64;
        self.ops *= n;
        self.quarters = self.quarters.map(|(a, b)| (a * n as f64, b * n as f64));
        self.with_note(format!("latencies are those of a batch of {n}"))
    }
    /// Says so, if it was stopped before it had done all of `wanted` operations.
    pub fn of_wanted(self, wanted: u64) -> Self {
        if self.ops >= wanted {
            return self;
        }
        let percent = self.ops as f64 / wanted as f64 * 100.0;
        self.with_note(format!("stopped by time at {percent:.0} % of the operations"))
    }
    /// Adds a note.
    pub fn with_note(mut self, note: impl Into<String>) -> Self {
        let note = note.into();
        self.note = Some(self.note.map_or(note.clone(), |old| format!("{old}; {note}")));
        self
    }
}

//! What a case is told: sizes and settings, what it does, and which rows it reports. Which cases
//! there are is said in [`crate::suites`].

use crate::data::{Dataset, FileData, KeyShape, Keys, Values};
use crate::engine::{Config, Sync};
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// All sizes and settings of a case, as its process gets them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Plan {
    /// Distinct keys.
    pub entries: u64,
    /// Shape of keys.
    pub keys: KeyShape,
    /// Size of values, as [`crate::ValueSize`] is written.
    pub value_size: String,
    /// The user's own keys and values instead, packed by [`crate::data::pack`].
    pub file: Option<PathBuf>,
    /// Bytes of memory for the engine.
    pub memory: u64,
    /// Whether engines may compress.
    pub compression: bool,
    /// Random fills write each key once.
    pub unique: bool,
    /// Seed of everything random.
    pub seed: u64,
    /// Entries in a batch.
    pub batch: u64,
    /// Synced writes in all.
    pub sync_ops: u64,
    /// Threads that write synced at the same time.
    pub sync_threads: u64,
    /// Milliseconds that each wait for the device takes longer.
    pub sync_delay_ms: f64,
    /// Large values in all, and how long each is.
    pub large_ops: u64,
    /// Bytes of a large value.
    pub large_len: usize,
    /// How many readers read beside the writer, a row each.
    pub readers: Vec<u64>,
    /// Writes a second of the throttled writer.
    pub writer_rate: f64,
    /// Seconds of a row that is measured by time.
    pub seconds: f64,
    /// Seconds of work that a row takes at least, over all repetitions or within each where the store does not change.
    pub seconds_min: f64,
    /// Seconds after which a row that counts operations stops, and counts those it did.
    pub seconds_max: Option<f64>,
    /// Seconds after which a load that is not measured is given up, and with it what was to be
    /// measured then.
    pub load_seconds_max: Option<f64>,
    /// Bytes of memory and page cache together that the process may use.
    pub memory_limit: Option<u64>,
    /// Settings of a variant, by name.
    pub tuning: BTreeMap<String, String>,
    /// Seconds of a row in which a store is overwritten without limit.
    pub sustained_seconds: f64,
    /// How many threads overwrite there, or are the clients of mixes.
    pub writers: u64,
    /// Whether who takes from a queue remembers which entry it took last.
    pub remembers: bool,
}

impl Plan {
    /// With a document's setting for one engine, `ENGINE.NAME`; what the command line sets comes first.
    pub fn tuned(mut self, name: &str, value: impl ToString) -> Plan {
        self.tuning.entry(name.to_string()).or_insert_with(|| value.to_string());
        self
    }
    /// The data of most rows.
    pub fn data(&self) -> Result<Dataset> {
        self.data_of(self.entries)
    }
    /// The same with another number of keys; of a file at most those it has.
    pub fn data_of(&self, entries: u64) -> Result<Dataset> {
        if let Some(path) = &self.file {
            let file = FileData::open(path)?;
            let entries = entries.min(file.len());
            let (keys, values) = (Keys::File(file.clone()), Values::of_file(file));
            return Ok(Dataset { keys, values, entries, seed: self.seed });
        }
        let size = self.value_size.parse().map_err(anyhow::Error::msg)?;
        let values = Values::new(size, self.seed);
        Ok(Dataset { keys: Keys::Shape(self.keys), values, entries, seed: self.seed })
    }
    /// The data of the rows of large values.
    pub fn large_data(&self) -> Dataset {
        let size = crate::ValueSize::Fixed(self.large_len);
        let values = Values::new(size, self.seed);
        Dataset { keys: Keys::Shape(self.keys), values, entries: self.large_ops, seed: self.seed }
    }
    /// How an engine is opened for `data`, by a case of several threads.
    pub fn config(&self, data: &Dataset, sync: Sync) -> Config {
        // 64 bytes more for each entry's place in a page, so that small values have room too.
        let expected_bytes = data.raw_bytes(1) + data.entries * 64;
        Config {
            memory: self.memory_given(),
            compression: self.compression,
            sync,
            expected_bytes,
            entry_bytes: data.usual_entry_bytes(),
            larger_than_memory: self.memory_limit.is_some_and(|limit| expected_bytes > limit),
            shared: true,
            only_reads: false,
            tuning: self.tuning.clone(),
        }
    }
    /// The memory that an engine is really given. Under a limit that counts the page cache too it
    /// is a quarter of that at most, since the cache needs the rest: the same for every engine.
    pub fn memory_given(&self) -> u64 {
        self.memory.min(self.memory_limit.map_or(u64::MAX, |limit| limit / 4))
    }
    /// When a row that begins now stops at the latest.
    pub fn deadline(&self) -> Option<Instant> {
        Some(Instant::now() + Duration::from_secs_f64(self.seconds_max?))
    }
    /// Seconds of work of a row at least: no more than it may take.
    pub fn least_seconds(&self) -> f64 {
        self.seconds_min.min(self.seconds_max.unwrap_or(f64::INFINITY))
    }
    /// Bytes of a store of this plan, from a sample of its entries.
    pub fn raw_bytes_about(&self) -> Result<u64> {
        let large = self.large_ops * self.large_len as u64;
        let some = self.data_of(self.entries.min(1000))?;
        let entries = match &self.file {
            Some(_) => self.data()?.entries,
            None => self.entries,
        };
        Ok((some.raw_bytes(1) * entries / some.entries.max(1)).max(large))
    }
}

/// What a figure counts, and which way is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Operations a second; more is better.
    #[serde(rename = "ops_per_second")]
    OpsPerSecond,
    /// Seconds; less is better.
    Seconds,
    /// Milliseconds; less is better.
    Milliseconds,
    /// Bytes; less is better.
    Bytes,
    /// How many times something else; less is better.
    Times,
}

impl Unit {
    /// How many times better `a` is than `b`. Of seconds, what takes less than a millisecond counts as one: an engine with
    /// nothing to settle takes some nanoseconds to say so, and a ratio to that would say nothing. [`Unit::bound`] tells
    /// where that was done.
    pub fn ratio(self, a: f64, b: f64) -> f64 {
        match self {
            Unit::OpsPerSecond => a / b,
            _ => b.max(self.least()) / a.max(self.least()),
        }
    }
    /// What the ratio of these two says.
    pub fn bound(self, a: f64, b: f64) -> Bound {
        let nothing = |v: f64| v <= 0.0 || v < self.least();
        match (nothing(a), nothing(b)) {
            (true, true) => Bound::Neither,
            // No operation at all is a figure like any other.
            _ if self == Unit::OpsPerSecond => Bound::Exact,
            (false, false) => Bound::Exact,
            (false, true) => Bound::AtMost,
            (true, false) => Bound::AtLeast,
        }
    }
    /// The smallest figure that counts as different from none.
    pub(crate) fn least(self) -> f64 {
        match self {
            Unit::Seconds => 1e-3,
            Unit::OpsPerSecond | Unit::Milliseconds | Unit::Bytes | Unit::Times => 0.0,
        }
    }
    /// The better of two.
    pub fn better(self, a: f64, b: f64) -> f64 {
        if self == Unit::OpsPerSecond { a.max(b) } else { a.min(b) }
    }
}

/// What a ratio says of two figures of which one may be too small to count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// That many times.
    Exact,
    /// The other's figure is too small to count: that many times or less.
    AtMost,
    /// The figure is too small to count: that many times or more.
    AtLeast,
    /// Both are, and nobody is first.
    Neither,
}

/// What an engine does in one directory from a fresh process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum CaseId {
    /// The machine's own limits: copying, walking, one access.
    Machine,
    /// The machine's own limit of synced writes; measured beside them, because a device's temper
    /// changes within minutes.
    MachineSync,
    /// Ascending keys, one by one.
    FillSeq,
    /// Ascending keys, in batches.
    FillBatch,
    /// Random keys, one by one.
    FillRandom,
    /// Random keys, in batches.
    FillRandBatch,
    /// A file's entries, one by one, in the order of the file.
    FillFile,
    /// Random keys that are all there.
    Overwrite,
    /// Synced, one thread, random keys.
    FillSync,
    /// Synced, one thread, ascending keys.
    FillSyncSeq,
    /// Synced, many threads.
    FillSyncThreads,
    /// Large values, ascending keys.
    LargeSeq,
    /// Large values, random keys.
    LargeRandom,
    /// Reads of every kind, right after the load and settled; which of its processes does which is said in [`crate::chains`].
    Reads,
    /// Readers beside a throttled writer.
    Mixed,
    /// Readers that each read a given number of keys beside a throttled writer, thread by thread.
    Race,
    /// Load, then reads only: with nothing in memory, and again after a scan.
    ColdWarm,
    /// Mixes of operations over keys of unequal popularity.
    Popular,
    /// The same by several clients at once.
    PopularShared,
    /// Random deletes.
    Delete,
    /// A queue in which one entry waits.
    Queue,
    /// A queue that is always behind.
    QueueDeep,
    /// A backlog that is taken.
    QueueDrain,
    /// Closing and opening again.
    Reopen,
    /// Opening after `kill -9`.
    OpenKilled,
    /// Size on disk with compression.
    Compressed,
    /// Reads and overwrites of a store larger than memory.
    LimitedReads,
    /// Filling a store until it is larger than memory.
    LimitedFill,
    /// Reads right after a random load.
    LoadedReads,
    /// Reads right after everything was overwritten once.
    OverwrittenReads,
    /// Reads beside a writer that is held to a rate.
    BesideWriter,
    /// Reads beside a writer without limit.
    BesideFlood,
    /// Scans across, and seeks into, a range that was deleted a moment ago.
    Gap,
    /// The same where every second key of the range is left.
    Gaps,
    /// One scan right after a load in key order.
    FreshOrdered,
    /// One scan right after a random load.
    FreshRandom,
    /// The first scan, in a process of its own, of a store at rest.
    FirstScan,
    /// Overwrites without limit, for a time.
    Sustained,
}

impl CaseId {
    /// Whether it is the machine that is measured, and no engine.
    pub fn is_machine(self) -> bool {
        matches!(self, CaseId::Machine | CaseId::MachineSync)
    }

    /// Whether several threads use the store at once.
    pub fn has_threads(self) -> bool {
        use CaseId::*;
        matches!(
            self,
            Mixed | Race | PopularShared | FillSyncThreads | BesideWriter | BesideFlood | Sustained
        )
    }
}

/// One row of the result.
#[derive(Debug, Clone)]
pub struct Row {
    /// The suite it is of.
    pub suite: String,
    /// The suite's section it is of.
    pub section: String,
    /// Its name there.
    pub name: String,
    /// What the case that measures it calls it.
    pub key: String,
    /// What its figure counts.
    pub unit: Unit,
    /// The machine's limit for it, and how many times that can be had.
    pub limit: Option<(&'static str, f64)>,
    /// How many times better than the best peer Esker is to be; 0 where the row is there to be known
    /// and not to be won.
    pub target: f64,
}

impl Row {
    /// A row that its case calls `key`, and so does everybody until [`Row::called`].
    pub fn new(key: impl Into<String>, unit: Unit) -> Row {
        let key = key.into();
        let target = if unit == Unit::OpsPerSecond { 1.0 } else { 0.0 };
        let (suite, section) = (String::new(), String::new());
        Row { suite, section, name: key.clone(), key, unit, limit: None, target }
    }
    /// Operations a second.
    pub fn rate(key: impl Into<String>) -> Row {
        Row::new(key, Unit::OpsPerSecond)
    }
    /// The same beside one of the machine's limits.
    pub fn ops(key: impl Into<String>, limit: &'static str) -> Row {
        Row::rate(key).against(limit)
    }
    /// The name that people see.
    pub fn called(self, name: impl Into<String>) -> Row {
        Row { name: name.into(), ..self }
    }
    /// Beside one of the machine's limits.
    pub fn against(self, limit: &'static str) -> Row {
        Row { limit: Some((limit, 1.0)), ..self }
    }
    /// Where so many threads may reach the limit at once.
    pub fn times(self, factor: f64) -> Row {
        Row { limit: self.limit.map(|(name, f)| (name, f * factor)), ..self }
    }
    /// How far ahead Esker means to be.
    pub fn aiming_at(self, target: f64) -> Row {
        Row { target, ..self }
    }
    /// Its name among all rows of all suites.
    pub fn path(&self) -> String {
        format!("{}/{}/{}", self.suite, self.section, self.name)
    }
}

/// A case, its settings and its rows.
#[derive(Debug, Clone)]
pub struct Case {
    /// Which.
    pub id: CaseId,
    /// Sizes and settings.
    pub plan: Plan,
    /// What is reported of it.
    pub rows: Vec<Row>,
}

impl Case {
    /// The processes it takes, one after the other, in one directory; whether each is killed once
    /// it says that it is ready.
    pub fn steps(&self) -> &'static [Step] {
        match self.id {
            CaseId::Reopen | CaseId::ColdWarm | CaseId::FirstScan => &[Step::Whole, Step::Whole],
            CaseId::OpenKilled => &[Step::KillWhenReady, Step::Whole],
            _ => &[Step::Whole],
        }
    }
}

/// A process of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Runs to its end.
    Whole,
    /// Is killed (`SIGKILL`) when it says that it is ready.
    KillWhenReady,
}

/// Names of the machine's limits.
pub mod limits {
    /// A key formatted, a value made, both copied into a mapped, preallocated file whose pages are
    /// there, as in a recycled log.
    pub const COPY: &str = "limit.copy";
    /// The same on first touch of the pages; for information.
    pub const COPY_FRESH: &str = "limit.copy.fresh";
    /// The same for large values.
    pub const COPY_LARGE: &str = "limit.copy100k";
    /// 128 bytes and one `fdatasync` in a preallocated, fully written file.
    pub const SYNC: &str = "limit.fdatasync";
    /// A walk over the same bytes, touching every key and value.
    pub const SCAN: &str = "limit.scan";
    /// A key formatted and one dependent random access in a mapping of the same size.
    pub const ACCESS: &str = "limit.access";
    /// Bytes of keys and values.
    pub const RAW: &str = "limit.raw";
}

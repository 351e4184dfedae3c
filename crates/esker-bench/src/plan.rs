//! What is measured: sizes, and the rows, grouped into cases. A case is what one engine does in one
//! directory from a fresh process; its rows are what is reported of it.

use crate::data::{Dataset, KeyShape, Values};
use crate::engine::{Config, Sync};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// All sizes and settings of a run, as each child gets them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Plan {
    /// Distinct keys.
    pub entries: u64,
    /// Shape of keys.
    pub keys: KeyShape,
    /// Size of values, as [`crate::ValueSize`] is written.
    pub value_size: String,
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
    /// Bytes of memory and page cache together, for the rows larger than memory.
    pub memory_limit: Option<u64>,
    /// Settings of a variant, by name.
    pub tuning: BTreeMap<String, String>,
}

impl Plan {
    /// The data of most rows.
    pub fn data(&self) -> Dataset {
        self.data_of(self.entries)
    }
    /// The same with another number of keys.
    pub fn data_of(&self, entries: u64) -> Dataset {
        let size = self.value_size.parse().expect("the parent parsed it before");
        let values = Values::new(size, self.seed);
        Dataset { keys: self.keys, values, entries, seed: self.seed }
    }
    /// The data of the rows of large values.
    pub fn large_data(&self) -> Dataset {
        let size = crate::ValueSize::Fixed(self.large_len);
        let values = Values::new(size, self.seed);
        Dataset { keys: self.keys, values, entries: self.large_ops, seed: self.seed }
    }
    /// How an engine is opened for `data`.
    pub fn config(&self, data: &Dataset, sync: Sync) -> Config {
        // 64 bytes more for each entry's place in a page, so that small values have room too.
        let expected_bytes = data.raw_bytes(1) + data.entries * 64;
        Config {
            memory: self.memory,
            compression: self.compression,
            sync,
            expected_bytes,
            larger_than_memory: false,
            tuning: self.tuning.clone(),
        }
    }
}

/// What a figure counts, and which way is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Operations a second; more is better.
    OpsPerSecond,
    /// Seconds; less is better.
    Seconds,
    /// Milliseconds; less is better.
    Milliseconds,
    /// Bytes; less is better.
    Bytes,
}

impl Unit {
    /// How many times better `a` is than `b`.
    pub fn ratio(self, a: f64, b: f64) -> f64 {
        match self {
            Unit::OpsPerSecond => a / b,
            _ => b / a,
        }
    }
    /// The better of two.
    pub fn better(self, a: f64, b: f64) -> f64 {
        if self == Unit::OpsPerSecond { a.max(b) } else { a.min(b) }
    }
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
    /// Random keys that are all there.
    Overwrite,
    /// Synced, one thread.
    FillSync,
    /// Synced, many threads.
    FillSyncThreads,
    /// Large values, ascending keys.
    LargeSeq,
    /// Large values, random keys.
    LargeRandom,
    /// Reads of every kind, after the load and after settling.
    Reads,
    /// Readers beside a throttled writer.
    Mixed,
    /// Random deletes.
    Delete,
    /// Opening after a clean close.
    OpenClean,
    /// Opening after `kill -9`.
    OpenKilled,
    /// Size on disk with compression.
    Compressed,
    /// Reads and overwrites of a store larger than memory.
    LimitedReads,
    /// Filling a store until it is larger than memory.
    LimitedFill,
}

/// One row of the result.
#[derive(Debug, Clone)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// What its figure counts.
    pub unit: Unit,
    /// The machine's limit for it, and how many times that can be had.
    pub limit: Option<(&'static str, f64)>,
    /// How many times better than the best peer Esker is to be.
    pub target: f64,
}

impl Row {
    fn new(name: impl Into<String>, unit: Unit) -> Row {
        {
            let name = name.into();
            let target = target(&name);
            Row { name, unit, limit: None, target }
        }
    }
    fn ops(name: impl Into<String>, limit: &'static str) -> Row {
        Row { limit: Some((limit, 1.0)), ..Row::new(name, Unit::OpsPerSecond) }
    }
    fn times(self, factor: f64) -> Row {
        Row { limit: self.limit.map(|(name, f)| (name, f * factor)), ..self }
    }
}

/// A case and its rows.
#[derive(Debug, Clone)]
pub struct Case {
    /// Which.
    pub id: CaseId,
    /// What is reported of it.
    pub rows: Vec<Row>,
}

impl Case {
    /// The processes it takes, one after the other, in one directory; whether each is killed once
    /// it says that it is ready.
    pub fn steps(&self) -> &'static [Step] {
        match self.id {
            CaseId::OpenClean => &[Step::Whole, Step::Whole],
            CaseId::OpenKilled => &[Step::KillWhenReady, Step::Whole],
            _ => &[Step::Whole],
        }
    }
    /// Whether it runs inside the memory limit.
    pub fn limited(&self) -> bool {
        matches!(self.id, CaseId::LimitedReads | CaseId::LimitedFill)
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

/// Every case of a plan.
pub fn cases(plan: &Plan) -> Vec<Case> {
    use limits::*;
    let one = |id, row| Case { id, rows: vec![row] };
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get()) as u64;
    let threads = plan.sync_threads;
    let mut all = vec![
        Case {
            id: CaseId::Machine,
            rows: [COPY, COPY_FRESH, COPY_LARGE, SCAN, ACCESS]
                .map(|name| Row::new(name, Unit::OpsPerSecond))
                .into_iter()
                .chain([Row::new(RAW, Unit::Bytes)])
                .collect(),
        },
        one(CaseId::FillSeq, Row::ops("fillseq", COPY)),
        one(CaseId::FillBatch, Row::ops("fillbatch", COPY)),
        one(CaseId::FillRandom, Row::ops("fillrandom", COPY)),
        one(CaseId::FillRandBatch, Row::ops("fillrandbatch", COPY)),
        one(CaseId::Overwrite, Row::ops("overwrite", COPY)),
        one(CaseId::MachineSync, Row::new(SYNC, Unit::OpsPerSecond)),
        one(CaseId::FillSync, Row::ops("fillsync", SYNC)),
        // One sync can carry every waiting thread's write.
        one(
            CaseId::FillSyncThreads,
            Row::ops(format!("fillsync{threads}"), SYNC).times(threads as f64),
        ),
        one(CaseId::LargeSeq, Row::ops("fill100Kseq", COPY_LARGE)),
        one(CaseId::LargeRandom, Row::ops("fill100Krandom", COPY_LARGE)),
        reads_case(),
        mixed_case(plan, cores),
        one(CaseId::Delete, Row::ops("deleterandom", COPY)),
        one(CaseId::OpenClean, Row::new("open", Unit::Milliseconds)),
        one(CaseId::OpenKilled, Row::new("open.killed", Unit::Milliseconds)),
        one(
            CaseId::Compressed,
            Row { limit: Some((RAW, 1.0)), ..Row::new("disk.compressed", Unit::Bytes) },
        ),
    ];
    if plan.memory_limit.is_some() {
        let row = |name: &str| Row::new(name, Unit::OpsPerSecond);
        let rows = vec![row("readrandom.limited"), row("overwrite.limited")];
        all.push(Case { id: CaseId::LimitedReads, rows });
        all.push(one(CaseId::LimitedFill, row("fillrandom.limited")));
    }
    all
}

fn reads_case() -> Case {
    use limits::*;
    let mut rows = Vec::new();
    for suffix in ["", ".settled"] {
        for (name, limit) in [
            ("readrandom", ACCESS),
            ("readmissing", ACCESS),
            ("readseq", SCAN),
            ("readreverse", SCAN),
            ("seekrandom", ACCESS),
        ] {
            rows.push(Row::ops(format!("{name}{suffix}"), limit));
        }
        let disk = Row::new(format!("disk{suffix}"), Unit::Bytes);
        rows.push(Row { limit: Some((RAW, 1.0)), ..disk });
        if suffix.is_empty() {
            rows.push(Row::new("settle", Unit::Seconds));
        }
    }
    rows.push(Row::new("memory", Unit::Bytes));
    Case { id: CaseId::Reads, rows }
}

fn mixed_case(plan: &Plan, cores: u64) -> Case {
    let row = |&n: &u64| {
        Row::ops(format!("readwhilewriting{n}"), limits::ACCESS).times(n.min(cores) as f64)
    };
    Case { id: CaseId::Mixed, rows: plan.readers.iter().map(row).collect() }
}

/// How many times better than its best peer Esker means to be in a row; 0 where the row is there to
/// be known (space, memory, times of opening and settling) and not to be won.
fn target(row: &str) -> f64 {
    match row {
        "fillseq" | "fillrandom" | "overwrite" => 4.0,
        "fillbatch" | "fillrandbatch" => 2.0,
        "fill100Kseq" | "fill100Krandom" => 1.5,
        "readrandom.settled" | "readmissing.settled" => 2.0,
        "readseq" | "readreverse" | "readseq.settled" | "readreverse.settled" => 1.3,
        "seekrandom.settled" => 1.5,
        _ if row.starts_with("readwhilewriting") => 1.5,
        _ if ["disk", "settle", "memory", "open"].iter().any(|r| row.starts_with(r)) => 0.0,
        _ => 1.0,
    }
}

//! Suites: which tables of which document are repeated. A suite is a list of sections, one a table;
//! a section has settings of its own and rows with the document's own names. One suite a file.

mod core;
mod file;
mod first;
mod leveldb2011;
mod motion;
mod symas2014;
mod voldemort;
mod wiredtiger2013;
mod ycsb;

use crate::chains;
use crate::plan::{Case, CaseId, Plan, Row, Unit, limits};
use std::collections::HashSet;
use std::path::PathBuf;

/// A suite, as it is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Suite {
    /// The rows of Esker's own development: one size, every kind of operation
    Core,
    /// Every table of "LevelDB Benchmarks" (Google, 2011), and what it left out
    Leveldb2011,
    /// Every comparison of "LevelDB Benchmark" (WiredTiger, 2013)
    Wiredtiger2013,
    /// Readers beside a throttled writer, thread by thread (Symas, 2014)
    Symas2014,
    /// Read-only stores that outgrow the cache, cold and warm, and JSON in pieces (Voldemort)
    Voldemort,
    /// The mixes A to F of the Yahoo! Cloud Serving Benchmark
    Ycsb,
    /// Stores that are written to as they are read, or were until a moment ago
    Motion,
    /// Only the rows that a report begins with, of core, ycsb and motion: what stands for reads, writes, scans, mixes and
    /// motion
    First,
    /// Your own keys and values: needs --file
    File,
    /// All of these, the last one if there is a --file
    All,
}

impl Suite {
    const EACH: [Suite; 8] = [
        Suite::Core,
        Suite::Leveldb2011,
        Suite::Wiredtiger2013,
        Suite::Symas2014,
        Suite::Voldemort,
        Suite::Ycsb,
        Suite::Motion,
        Suite::File,
    ];

    /// What is asked for, each once, in the usual order. Nothing asked for: the file, if there is
    /// one, else the core.
    pub fn wanted(asked: &[Suite], has_file: bool) -> Vec<Suite> {
        let wanted = |suite: &Suite| match asked {
            [] => *suite == if has_file { Suite::File } else { Suite::Core },
            _ if asked.contains(suite) => true,
            _ => asked.contains(&Suite::All) && (*suite != Suite::File || has_file),
        };
        // Behind the suites whose rows it has, which count where they are asked for too.
        let first = asked.contains(&Suite::First).then_some(Suite::First);
        Suite::EACH.into_iter().filter(wanted).chain(first).collect()
    }

    /// Its sections, from the settings that the command line gives to all.
    pub fn sections(self, base: &Base) -> Vec<Section> {
        match self {
            Suite::Core => core::sections(base),
            Suite::First => first::sections(base),
            Suite::Leveldb2011 => leveldb2011::sections(base),
            Suite::Wiredtiger2013 => wiredtiger2013::sections(base),
            Suite::Symas2014 => symas2014::sections(base),
            Suite::Voldemort => voldemort::sections(base),
            Suite::Ycsb => ycsb::sections(base),
            Suite::Motion => motion::sections(base),
            Suite::File => file::sections(base),
            Suite::All => Suite::EACH.into_iter().flat_map(|suite| suite.sections(base)).collect(),
        }
    }
}

/// How many seconds a load may take in a document's suite.
const LOAD_SECONDS: f64 = 240.0;

/// What the command line says, for suites to start from.
#[derive(Debug, Clone)]
pub struct Base {
    /// Sizes and settings as given, or the defaults.
    pub plan: Plan,
    /// The user's own data, packed, and how many entries it has.
    pub file: Option<(PathBuf, u64)>,
    /// `--memory-limit`, in bytes.
    pub memory_limit: Option<u64>,
    /// Seconds after which a row of a document stops, unless the command line says otherwise.
    pub seconds_max: f64,
    /// What the command line multiplies sizes with.
    pub scale: f64,
}

impl Base {
    /// Settings of a document, over the given number of entries and seeds: what a suite has fixed,
    /// the command line does not change.
    pub fn document(&self, memory_mib: u64, compression: bool) -> Plan {
        let seconds_max = self.plan.seconds_max.unwrap_or(self.seconds_max);
        Plan {
            memory: memory_mib << 20,
            compression,
            value_size: "100".to_string(),
            unique: false,
            seconds_max: Some(seconds_max),
            load_seconds_max: self.plan.load_seconds_max.or(Some(LOAD_SECONDS)),
            ..self.plan.clone()
        }
    }
}

/// One table.
#[derive(Debug, Clone)]
pub struct Section {
    /// The suite's name.
    pub suite: &'static str,
    /// Short name within the suite.
    pub id: String,
    /// What it is about.
    pub title: String,
    /// Which table of which document it repeats; `None` where it goes beyond the documents.
    pub table: Option<String>,
    /// Its settings; those of a case may differ.
    pub plan: Plan,
    /// What is done.
    pub cases: Vec<Case>,
}

impl Section {
    fn new(
        suite: &'static str,
        id: impl Into<String>,
        title: impl Into<String>,
        plan: Plan,
    ) -> Self {
        let (id, title) = (id.into(), title.into());
        Section { suite, id, title, table: None, plan, cases: Vec::new() }
    }
    fn table(self, table: impl Into<String>) -> Self {
        Section { table: Some(table.into()), ..self }
    }
    /// Adds a case with the section's settings.
    fn case(self, id: CaseId, rows: impl IntoIterator<Item = Row>) -> Self {
        let plan = self.plan.clone();
        self.case_with(plan, id, rows)
    }
    /// Adds a case with settings of its own.
    fn case_with(mut self, plan: Plan, id: CaseId, rows: impl IntoIterator<Item = Row>) -> Self {
        let place = |row| Row { suite: self.suite.to_string(), section: self.id.clone(), ..row };
        let rows = rows.into_iter().map(place).collect();
        self.cases.push(Case { id, plan, rows });
        self
    }
    /// The rows of engines that are wanted, and the machine's limits that these need or that are wanted themselves; nothing where
    /// there are none.
    pub(crate) fn only(
        mut self,
        mut wants: impl FnMut(&Row) -> bool,
        wants_limit: impl Fn(&Row) -> bool,
    ) -> Option<Section> {
        let mut needed = HashSet::new();
        for case in self.cases.iter_mut().filter(|case| !case.id.is_machine()) {
            case.rows.retain(&mut wants);
            needed.extend(case.rows.iter().filter_map(|row| Some(row.limit?.0)));
        }
        for case in self.cases.iter_mut().filter(|case| case.id.is_machine()) {
            case.rows.retain(|row| needed.contains(row.key.as_str()) || wants_limit(row));
        }
        self.cases.retain(|case| !case.rows.is_empty());
        (!self.cases.is_empty()).then_some(self)
    }
    /// Puts the machine's limits before the rows that are compared with them.
    fn with_limits(mut self) -> Self {
        let all = self.cases.iter().flat_map(|case| &case.rows);
        let needed: HashSet<&str> = all.filter_map(|row| Some(row.limit?.0)).collect();
        if needed.is_empty() {
            return self;
        }
        let cases = std::mem::take(&mut self.cases);
        use limits::*;
        let rows = [COPY, COPY_FRESH, COPY_LARGE, SCAN, ACCESS].map(Row::rate);
        if needed.iter().any(|name| *name != SYNC) {
            self = self.case(CaseId::Machine, rows.into_iter().chain([Row::new(RAW, Unit::Bytes)]));
        }
        let mut sync_is_there = !needed.contains(SYNC);
        for case in cases {
            // Just before the synced rows, since a device's temper changes by the minute.
            if !sync_is_there && case.rows.iter().any(|row| row.limit.is_some_and(|l| l.0 == SYNC))
            {
                self = self.case(CaseId::MachineSync, [Row::rate(SYNC)]);
                sync_is_there = true;
            }
            self.cases.push(case);
        }
        self
    }
}

/// The reads of a store right after its load, those that are worth it once more, and all of it settled, with the names that a
/// document gives them: pairs of what the case calls it and what the document does.
fn reads(names: &[(&str, &str)]) -> Vec<Row> {
    let row = |(key, name): &(&str, &str)| {
        let row = match *key {
            key if SCANS.contains(&key) => Row::ops(key, limits::SCAN),
            key if UNBOUND.contains(&key) => Row::rate(key),
            key => Row::ops(key, limits::ACCESS),
        };
        row.called(*name)
    };
    let rows: Vec<Row> = names.iter().map(row).collect();
    [rows.clone(), second_passes(&rows), rows.iter().map(settled).collect()].concat()
}

const SCANS: [&str; 2] = ["readseq", "readreverse"];
/// Reads that need not touch the whole store: a filter answers for keys that are not there, and few hot ones stay close.
const UNBOUND: [&str; 2] = ["readmissing", "readhot"];
/// Reads that are measured a second time at once: what the first pass did for them is seen there.
const TWICE: [&str; 4] = ["readseq", "readreverse", "readrandom", "seekrandom"];

/// The second passes of those rows that have one.
fn second_passes(rows: &[Row]) -> Vec<Row> {
    let twice = rows.iter().filter(|row| TWICE.contains(&row.key.as_str()));
    twice.map(|row| variant(row, chains::SECOND, ", second pass")).collect()
}

/// The same when everything that writing left is done.
fn settled(row: &Row) -> Row {
    variant(row, chains::SETTLED, ", settled")
}

fn variant(row: &Row, suffix: &str, words: &str) -> Row {
    // Where a row has no other name than its case's, neither has this.
    let name = if row.name == row.key { suffix } else { words };
    Row { key: format!("{}{suffix}", row.key), name: format!("{}{name}", row.name), ..row.clone() }
}

/// What a store takes beside its reads: time to settle, disk, and memory of each kind, by these names.
fn taken(settle: &str, disk: &str, memory: &str) -> Vec<Row> {
    let disk_row = Row::new("disk", Unit::Bytes).against(limits::RAW).called(disk);
    let settled = settled(&disk_row).called(format!("{disk}, settled"));
    let mut rows = vec![Row::new("settle", Unit::Seconds).called(settle), disk_row, settled];
    rows.extend(memory_rows(memory));
    rows
}

/// What memory a store came to, of each kind.
fn memory_rows(name: &str) -> [Row; 3] {
    [("memory", ""), ("memory.mapped", ", mapped files"), ("memory.dirty", ", dirty pages")]
        .map(|(key, kind)| Row::new(key, Unit::Bytes).called(format!("{name}{kind}")))
}

/// A row of writes, and below it the one that counts the time until they are settled too.
fn writes(row: Row) -> [Row; 2] {
    let settled = settled(&row).aiming_at(1.0);
    [row, settled]
}

#[cfg(test)]
pub(crate) mod tests;

//! The LevelDB storage engine of Project Voldemort: stores that are loaded and then only read, as
//! they outgrow the memory there is, cold and warm; and JSON documents in six pieces.

use super::{Base, Section, writes};
use crate::data::KeyShape;
use crate::plan::{CaseId, Plan, Row, Unit};

const NAME: &str = "voldemort";
/// Memory and page cache together, where the command line gives none.
const LIMIT: u64 = 64 << 20;
/// MiB of LevelDB's write buffer and cache, of the document's configuration; smaller memories are split likewise.
const BUFFER: u64 = 20;
const CACHE: u64 = 300;
const LEAST_BUFFER: u64 = 4 << 20;
/// Sizes of the stores, in percent of that, where the command line does not ask for less.
const SIZES: [f64; 4] = [25.0, 100.0, 200.0, 400.0];

pub(super) fn sections(base: &Base) -> Vec<Section> {
    vec![
        outgrowing(base, "1a", "Values of 1 KB as the store outgrows memory", 1000),
        outgrowing(base, "1b", "Values of 80 bytes as the store outgrows memory", 80),
        pieces(base),
    ]
}

/// As many entries as make stores of a part of the limit, and of several times of it.
fn outgrowing(base: &Base, id: &str, title: &str, value: u64) -> Section {
    let limit = base.memory_limit.unwrap_or(LIMIT);
    let plan = Plan {
        value_size: value.to_string(),
        memory_limit: Some(limit),
        ..base.document(limit >> 22, true)
    };
    // No smaller than LevelDB has it where nobody says: a batch of this load would be all of it.
    let buffer = (plan.memory * BUFFER / (BUFFER + CACHE)).max(LEAST_BUFFER);
    let plan = plan.tuned("leveldb.write_buffer", buffer);
    let mut section =
        Section::new(NAME, id, title, plan.clone()).table(format!("Voldemort, test {id}"));
    for percent in SIZES.map(|percent| percent * base.scale.min(1.0)) {
        let bytes = limit as f64 * percent / 100.0;
        let entries = (bytes as u64 / (value + 16)).max(1);
        let size = format!("{} % of memory", (percent * 1e6).round() / 1e6);
        let reads = [("cold", "random reads, cold"), ("warm", "random reads, warm")];
        let plan = Plan { entries, ..plan.clone() };
        section = section.case_with(plan, CaseId::ColdWarm, rows(&size, &reads));
    }
    section
}

/// Documents of about 1.7 KB in six entries: half a million to three million entries in all, times
/// the scale.
fn pieces(base: &Base) -> Section {
    let plan = Plan {
        value_size: "json".to_string(),
        keys: KeyShape::Pieces,
        ..base.document(BUFFER + CACHE, true)
    };
    let plan = plan.tuned("leveldb.write_buffer", BUFFER << 20);
    let title = "JSON of 1.7 KB in six entries, 320 MB of memory";
    let mut section = Section::new(NAME, "2", title, plan.clone()).table("Voldemort, test 2");
    for halves in [1, 2, 4, 6] {
        let entries = (plan.entries * halves / 2).max(6);
        let size = format!("{} entries", short(entries));
        let plan = Plan { entries, ..plan.clone() };
        let rows = rows(&size, &[("warm", "random reads")]);
        section = section.case_with(plan, CaseId::ColdWarm, rows);
    }
    section
}

/// What is told of a store of some size: its load, these reads of it, and its disk.
fn rows(size: &str, reads: &[(&str, &str)]) -> Vec<Row> {
    let row = |key: &str, unit, what: &str| Row::new(key, unit).called(format!("{what}, {size}"));
    let reads = reads.iter().map(|(key, what)| row(key, Unit::OpsPerSecond, what));
    let load = writes(row("load", Unit::OpsPerSecond, "load"));
    load.into_iter().chain(reads).chain([row("disk", Unit::Bytes, "disk")]).collect()
}

/// 1,500,000 as 1.5m.
fn short(n: u64) -> String {
    match n {
        1_000_000.. => format!("{}m", n as f64 / 1e6),
        1_000.. => format!("{}k", n as f64 / 1e3),
        _ => n.to_string(),
    }
}

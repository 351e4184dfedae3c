//! "In-Memory Microbenchmark", Symas, June 2014: readers that each read as many keys as there are,
//! beside a writer held to 10,000 a second; each thread over time. The document has 20 and 100
//! million records: `--scale 20`. What memory an engine comes to is told beside what it was given, as the document tells the
//! size of each process.

use super::{Base, Section, memory_rows};
use crate::plan::{CaseId, Plan, Row, Unit};

const NAME: &str = "symas2014";
/// Less memory than this, page cache included, and several engines are killed.
const LEAST_LIMIT: u64 = 64 << 20;

pub(super) fn sections(base: &Base) -> Vec<Section> {
    let new = |id: &str, title: &str, plan: Plan| {
        let writes = Row::rate("writes").called("writes (10,000/s wanted)");
        let rows = [
            Row::rate("reads").called("reads, all readers"),
            writes.aiming_at(0.0),
            Row::new("time", Unit::Seconds).called("time to complete"),
        ];
        let rows = rows.into_iter().chain(memory_rows("peak memory"));
        Section::new(NAME, id, title, plan).case(CaseId::Race, rows)
    };
    let small = in_memory(base, 1, 4);
    let large = in_memory(base, 5, 16);
    vec![
        new("2", "Small set in memory: 4 readers and a writer", small).table("Symas 2014, 2"),
        new("3", "Larger set in memory: 16 readers and a writer", large).table("Symas 2014, 3"),
        new("4", "Small set on disk: 4 readers and a writer", on_disk(base)).table("Symas 2014, 4"),
    ]
}

/// Memory enough for all of it, in whatever form the engine keeps it.
fn in_memory(base: &Base, times: u64, readers: u64) -> Plan {
    let plan = base.document(128, false);
    let entries = plan.entries * times;
    let memory = plan.memory.max(entries * 116 * 2);
    Plan { entries, memory, readers: vec![readers], ..plan }
}

/// A quarter of it fits into memory and page cache together, unless the command line asks for less
/// than all entries.
fn on_disk(base: &Base) -> Plan {
    let plan = in_memory(base, 1, 4);
    let limit = base.memory_limit.unwrap_or((plan.entries * 116 / 4).max(LEAST_LIMIT));
    let larger = limit as f64 * 4.0 / 116.0 * base.scale.min(1.0);
    Plan { entries: plan.entries.max(larger as u64), memory_limit: Some(limit), ..plan }
}

//! The core workloads of the Yahoo! Cloud Serving Benchmark (Cooper et al., 2010): records of 1 KB,
//! one client and four, keys of unequal popularity. What writes has a row for the debts that it leaves, which the next mix does
//! not find.

use super::{Base, Section, writes};
use crate::plan::{CaseId, Plan, Row};

const NAME: &str = "ycsb";
/// Clients of the second table: twice as many as a machine of two cores can run at once.
const CLIENTS: u64 = 4;

pub(super) fn sections(base: &Base) -> Vec<Section> {
    let plan = base.document(128, false);
    // A tenth of the entries: each is ten times as long as elsewhere.
    let entries = (plan.entries / 10).max(1);
    let plan = Plan { entries, value_size: "1000".to_string(), ..plan };
    let shared = Plan { writers: CLIENTS, ..plan.clone() };
    let title = |clients| format!("Workloads A to F, records of 1 KB, {clients}");
    let sections = [
        Section::new(NAME, "1", title("one client"), plan).case(CaseId::Popular, rows()),
        Section::new(NAME, "4", title("four clients"), shared).case(CaseId::PopularShared, rows()),
    ];
    sections.map(|section| section.table("YCSB core workloads")).to_vec()
}

fn rows() -> Vec<Row> {
    let row = |key: &str, name: &str| Row::rate(key).called(name);
    [
        writes(row("load", "Load")).to_vec(),
        writes(row("a", "A: reads 50, updates 50")).to_vec(),
        writes(row("b", "B: reads 95, updates 5")).to_vec(),
        vec![row("c", "C: reads 100")],
        writes(row("f", "F: reads 50, read-modify-writes 50")).to_vec(),
        writes(row("d", "D: reads of the latest 95, inserts 5")).to_vec(),
        writes(row("e", "E: scans 95, inserts 5")).to_vec(),
    ]
    .concat()
}

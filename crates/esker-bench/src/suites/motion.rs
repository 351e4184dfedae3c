//! Stores that are written to as they are read, or were until a moment ago: queues; reads after writes and
//! beside them; ranges that were deleted; scans of what is fresh; overwrites without limit.

use super::{Base, LOAD_SECONDS, Section};
use crate::plan::{CaseId::*, Plan, Row, Unit};

const NAME: &str = "motion";
/// MiB of memory: much less than a store of some million entries, and more than one of a million.
const MEMORY: [(&str, u64); 2] = [("small", 32), ("ample", 512)];
/// What is read again and again, and which ways everything is scanned once.
const READS: [&str; 3] = ["read", "seek10", "seek50"];
const WAYS: [&str; 2] = ["scan", "reverse"];

pub(super) fn sections(base: &Base) -> Vec<Section> {
    let mut sections = vec![queue(base)];
    sections.extend(MEMORY.map(|(id, mib)| in_memory_of(base, id, mib)));
    sections
}

fn rate(key: impl Into<String>, name: impl Into<String>) -> Row {
    Row::rate(key).called(name)
}

fn queue(base: &Base) -> Section {
    // Where each operation is dearer than the one before, the count alone would end with nobody's patience.
    let seconds_max = Some(base.plan.seconds_max.unwrap_or(base.seconds_max));
    let plan = Plan { seconds_max, ..base.plan.clone() };
    let title = "Queues: put at the tail, take the first and delete it";
    let passed = past_the_dead(plan.clone());
    let section = Section::new(NAME, "queue", title, plan.clone())
        .case_with(passed.clone(), Queue, [rate("queue", "one waits")])
        .case_with(passed, QueueDeep, [rate("queue1000", "1,000 wait")])
        .case(QueueDrain, [rate("drain", "a backlog is taken")]);
    let plan = Plan { remembers: true, ..plan };
    let behind = |key: &str, name: &str| {
        [rate(format!("{key}.behind"), format!("{name}, looked for behind the last"))]
    };
    section
        .case_with(plan.clone(), Queue, behind("queue", "one waits"))
        .case_with(plan.clone(), QueueDeep, behind("queue1000", "1,000 wait"))
        .case_with(plan, QueueDrain, behind("drain", "a backlog is taken"))
}

/// One case, and so one process, for each row of reads: none is measured in what another has left.
fn in_memory_of(base: &Base, id: &str, mib: u64) -> Section {
    let plan = Plan {
        memory: mib << 20,
        compression: false,
        value_size: "100".to_string(),
        load_seconds_max: base.plan.load_seconds_max.or(Some(LOAD_SECONDS)),
        ..base.plan.clone()
    };
    let title = format!("In motion, with {mib} MiB of memory");
    let mut section = Section::new(NAME, id, title, plan.clone());
    let writes = plan.clone();
    for (case, key, name) in [
        (LoadedReads, "loaded", "after load"),
        (OverwrittenReads, "overwritten", "after overwriting"),
        (BesideFlood, "flood", "beside flood"),
    ] {
        for read in READS {
            let row = rate(format!("{read}.{key}"), format!("{read} {name}"));
            section = section.case_with(plan.clone(), case, [row]);
        }
    }
    for thousands in [10, 50] {
        let plan = Plan { writer_rate: f64::from(thousands) * 1000.0, ..plan.clone() };
        for read in READS {
            let row = rate(format!("{read}.{thousands}k"), format!("{read} beside {thousands}k"));
            section = section.case_with(plan.clone(), BesideWriter, [row]);
        }
    }
    for (case, key) in [(Gap, "gap"), (Gaps, "gaps")] {
        let scan = rate(format!("scan.{key}"), format!("scan across {key}"));
        let seek = rate(format!("seek10.{key}"), format!("seek10 into {key}"));
        section = section.case_with(for_scans(plan.clone()), case, [scan]).case_with(
            plan.clone(),
            case,
            [seek],
        );
    }
    for (case, key, name) in [
        (FreshOrdered, "ordered", "after ordered load"),
        (FreshRandom, "random", "after random load"),
        (FirstScan, "first", "at rest"),
    ] {
        for scan in WAYS {
            let row = rate(format!("{scan}.{key}"), format!("{scan} {name}"));
            section = section.case_with(for_scans(plan.clone()), case, [row]);
        }
    }
    for writers in [1, 4] {
        let plan = Plan { seconds: writes.sustained_seconds, writers, ..writes.clone() };
        section = section.case_with(plan, Sustained, sustained(writers));
    }
    section
}

/// Where each search is for the first entry behind all that were taken: RocksDB flushes these when a search has passed some hundred, and
/// compacts away what was deleted, as its manual has it for queues. Not where a backlog is in the buffer that it would write then.
fn past_the_dead(plan: Plan) -> Plan {
    plan.tuned("rocksdb.scan_flush", 300)
}

/// Where everything is read in order: WiredTiger's usual pages, which are larger than those that its adapter takes where a
/// cache holds few of them.
fn for_scans(plan: Plan) -> Plan {
    plan.tuned("wiredtiger.leaf_page_max", 32 << 10)
}

/// What is told of overwrites without limit.
fn sustained(writers: u64) -> Vec<Row> {
    [
        ("overwrite", "", Unit::OpsPerSecond),
        ("worst_put", " worst put", Unit::Milliseconds),
        ("p9999_put", " p99.99", Unit::Milliseconds),
        ("worst_quarter", " worst quarter", Unit::OpsPerSecond),
        ("disk_to_live", " disk", Unit::Times),
        ("written_per_byte", " written", Unit::Times),
        ("settle", " settle", Unit::Seconds),
    ]
    .map(|(key, figure, unit)| Row::new(key, unit).called(format!("overwrite{writers}{figure}")))
    .to_vec()
}

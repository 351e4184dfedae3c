//! The rows that Esker is developed by: one size, every kind of operation, all settings as given.

use super::{Base, Section, second_passes, settled, writes};
use crate::plan::{CaseId::*, Plan, Row, Unit, limits};
use crate::system;

const NAME: &str = "core";

pub(super) fn sections(base: &Base) -> Vec<Section> {
    use limits::*;
    let plan = base.plan.clone();
    let threads = plan.sync_threads;
    let readers = plan.readers.clone();
    let beside = readers.into_iter().map(|n| {
        // One reader a core reaches the limit.
        Row::ops(format!("readwhilewriting{n}"), ACCESS)
            .times(n.min(system::cores() as u64) as f64)
            .aiming_at(1.5)
    });
    let compressed = Plan { compression: true, ..plan.clone() };
    let mut section = Section::new(NAME, NAME, "Every kind of operation", plan)
        .case(FillSeq, writes(Row::ops("fillseq", COPY).aiming_at(4.0)))
        .case(FillBatch, writes(Row::ops("fillbatch", COPY).aiming_at(2.0)))
        .case(FillRandom, writes(Row::ops("fillrandom", COPY).aiming_at(4.0)))
        .case(FillRandBatch, writes(Row::ops("fillrandbatch", COPY).aiming_at(2.0)))
        .case(Overwrite, writes(Row::ops("overwrite", COPY).aiming_at(4.0)))
        .case(FillSync, [Row::ops("fillsync", SYNC)])
        .case(
            FillSyncThreads,
            // One sync can carry every waiting thread's write.
            [Row::ops(format!("fillsync{threads}"), SYNC).times(threads as f64)],
        )
        .case(LargeSeq, writes(Row::ops("fill100Kseq", COPY_LARGE).aiming_at(1.5)))
        .case(LargeRandom, writes(Row::ops("fill100Krandom", COPY_LARGE).aiming_at(1.5)))
        .case(Reads, reads())
        .case(Mixed, beside)
        .case(Delete, writes(Row::rate("deleterandom")))
        .case(Reopen, [Row::new("reopen", Unit::Milliseconds)])
        .case(OpenKilled, [Row::new("open.killed", Unit::Milliseconds)])
        .case_with(compressed, Compressed, [Row::new("disk.compressed", Unit::Bytes).against(RAW)]);
    if let Some(limit) = base.memory_limit {
        let plan = Plan { memory_limit: Some(limit), ..section.plan.clone() };
        let reads = ["readrandom.limited", "overwrite.limited"].map(Row::rate);
        section = section.case_with(plan.clone(), LimitedReads, reads).case_with(
            plan,
            LimitedFill,
            [Row::rate("fillrandom.limited")],
        );
    }
    vec![section.with_limits()]
}

fn reads() -> Vec<Row> {
    use limits::*;
    let row = |(name, limit, target): (&str, &'static str, f64)| match name {
        // A filter answers without the store.
        "readmissing" => Row::rate(name).aiming_at(target),
        _ => Row::ops(name, limit).aiming_at(target),
    };
    let reads = |random, seeks| {
        let of = [
            ("readrandom", ACCESS, random),
            ("readmissing", ACCESS, random),
            ("readseq", SCAN, 1.3),
            ("readreverse", SCAN, 1.3),
            ("seekrandom", ACCESS, seeks),
        ];
        of.map(row)
    };
    let disk = Row::new("disk", Unit::Bytes).against(RAW);
    let mut rows = reads(1.0, 1.0).to_vec();
    rows.extend(second_passes(&rows));
    rows.extend([disk.clone(), Row::new("settle", Unit::Seconds)]);
    rows.extend(reads(2.0, 1.5).iter().map(settled));
    rows.push(settled(&disk));
    rows.extend(
        ["memory", "memory.mapped", "memory.dirty"].map(|name| Row::new(name, Unit::Bytes)),
    );
    rows
}

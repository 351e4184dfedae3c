//! "LevelDB Benchmarks", Google, July 2011: every table, under its settings.

use super::{Base, Section, reads, taken, writes};
use crate::plan::{CaseId::*, Plan, Row, Unit, limits::*};

const NAME: &str = "leveldb2011";
const SEQUENTIAL: &str = "Sequential Writes";
const RANDOM: &str = "Random Writes";
const READS: [(&str, &str); 2] = [("readseq", "Sequential Reads"), ("readrandom", "Random Reads")];
/// What the report calls little memory and much, in MiB.
const SMALL: u64 = 4;
const LARGE: u64 = 128;
/// What LevelDB's write buffer has of it, in MiB; the rest is its cache. The report gives little of much
/// memory to whichever of the two a table does not ask for. RocksDB, whose two are the same, has them alike.
const BUFFER_OF_SMALL: u64 = 2;
const BUFFER_TO_WRITE: u64 = 120;
const BUFFER_TO_READ: u64 = 8;
/// Bytes of a page of Kyoto TreeDB, in every table. SQLite's of the report were those of its defaults, and are again.
const PAGE: u64 = 1024;

pub(super) fn sections(base: &Base) -> Vec<Section> {
    let new = |id: &str, title: &str, plan: Plan| {
        Section::new(NAME, id, title, plan).table(format!("LevelDB 2011, {id}"))
    };
    let baseline = document(base, SMALL, BUFFER_OF_SMALL, true);
    let fills = |section: Section| {
        section
            .case(FillSeq, writes(Row::ops("fillseq", COPY).called(SEQUENTIAL)))
            .case(FillRandom, writes(Row::ops("fillrandom", COPY).called(RANDOM)))
    };
    let read = |section: Section| section.case(Reads, reads(&READS));
    let sections = vec![
        fills(read(new("1", "Baseline: 4 MB of memory, compression, buffered", baseline.clone()))),
        new("2A", "Large values: 1,000 of 100,000 bytes", baseline.clone())
            .case(LargeSeq, writes(Row::ops("fill100Kseq", COPY_LARGE).called(SEQUENTIAL)))
            .case(LargeRandom, writes(Row::ops("fill100Krandom", COPY_LARGE).called(RANDOM))),
        new("2B", "Batches of 1,000 entries", baseline.clone())
            .case(FillBatch, writes(Row::ops("fillbatch", COPY).called(SEQUENTIAL)))
            .case(FillRandBatch, writes(Row::ops("fillrandbatch", COPY).called(RANDOM))),
        new("2C", "Synchronous writes", synced(&baseline))
            .case(FillSyncSeq, [Row::ops("fillsyncseq", SYNC).called(SEQUENTIAL)])
            .case(FillSync, [Row::ops("fillsync", SYNC).called(RANDOM)]),
        fills(new("2D", "Compression off", document(base, SMALL, BUFFER_OF_SMALL, false))),
        fills(new("2E", "More memory: 128 MB", document(base, LARGE, BUFFER_TO_WRITE, true))),
        read(new("3A", "Larger caches: 128 MB", document(base, LARGE, BUFFER_TO_READ, true))),
        // Without compression, and the memory of the baseline.
        read(new("3B", "Reads without compression", document(base, SMALL, BUFFER_OF_SMALL, false))),
        beyond(base),
    ];
    sections.into_iter().map(Section::with_limits).collect()
}

/// The report's settings, with the split of LevelDB's memory and of RocksDB's.
fn document(base: &Base, memory_mib: u64, buffer_mib: u64, compression: bool) -> Plan {
    base.document(memory_mib, compression)
        .tuned("leveldb.write_buffer", buffer_mib << 20)
        .tuned("rocksdb.write_buffer", buffer_mib << 20)
        .tuned("kyoto.psiz", PAGE)
}

/// "We stop after 10,000 writes": a hundredth of the report's entries.
fn synced(plan: &Plan) -> Plan {
    Plan { sync_ops: (plan.entries / 100).clamp(1, 10_000), ..plan.clone() }
}

/// What the report does not ask: the same store, under the settings of its baseline.
fn beyond(base: &Base) -> Section {
    let plan = document(base, SMALL, BUFFER_OF_SMALL, true);
    // These write one by one and without a limit of time, for the sake of the log they leave.
    let short = Plan { entries: (plan.entries / 10).max(1), ..plan.clone() };
    let mut rows = reads(&[
        ("readreverse", "Reverse Reads"),
        ("readmissing", "Missing Keys"),
        ("readhot", "Hot Reads"),
        ("seekrandom", "Seek and 10 Entries"),
    ]);
    rows.extend(taken("Settling", "Disk", "Peak Memory"));
    Section::new(NAME, "beyond", "What the report left out, under its baseline", plan)
        .case(Reads, rows)
        .case(Overwrite, writes(Row::ops("overwrite", COPY).called("Overwrites")))
        .case(Delete, writes(Row::rate("deleterandom").called("Deletes")))
        .case_with(
            short.clone(),
            Reopen,
            [Row::new("reopen", Unit::Milliseconds).called("Closing and Reopening")],
        )
        .case_with(
            short,
            OpenKilled,
            [Row::new("open.killed", Unit::Milliseconds).called("Reopening after kill -9")],
        )
}

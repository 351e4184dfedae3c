//! The user's own keys and values, under the settings given.

use super::{Base, Section, reads, taken, writes};
use crate::plan::{CaseId::*, Plan, Row, Unit, limits::*};

const NAME: &str = "file";

pub(super) fn sections(base: &Base) -> Vec<Section> {
    // Each key once: that is what the file says is in the store.
    let mut plan = Plan { unique: true, ..base.plan.clone() };
    if let Some((path, entries)) = &base.file {
        plan = Plan { file: Some(path.clone()), entries: *entries, ..plan };
    }
    let mut rows = reads(&[
        ("readrandom", "random reads"),
        ("readmissing", "missing keys"),
        ("readseq", "scan forward"),
        ("readreverse", "scan in reverse"),
        ("seekrandom", "seek and 10 entries"),
    ]);
    rows.extend(taken("settling", "disk", "peak memory"));
    let compressed = Plan { compression: true, ..plan.clone() };
    let section = Section::new(NAME, "1", "Your own keys and values", plan)
        .case(FillFile, writes(Row::ops("fillfile", COPY).called("load in the file's order")))
        .case(FillRandom, writes(Row::ops("fillrandom", COPY).called("load in random order")))
        .case(FillSeq, writes(Row::ops("fillseq", COPY).called("load in key order")))
        .case(Reads, rows)
        .case_with(
            compressed,
            Compressed,
            [Row::new("disk.compressed", Unit::Bytes).against(RAW).called("disk, compressed")],
        );
    vec![section.with_limits()]
}

//! "LevelDB Benchmark", WiredTiger wiki, January 2013: the classic rows at 128 MB, compressed. The
//! sequential insert is each engine's bulk path where it has one: the writer is told that keys
//! ascend, and WiredTiger may use its bulk cursor, which does not log.

use super::{Base, Section, reads, writes};
use crate::plan::{CaseId, Row, limits::*};

const NAME: &str = "wiredtiger2013";

pub(super) fn sections(base: &Base) -> Vec<Section> {
    let plan = base.document(128, true);
    let mut bulk = plan.clone();
    bulk.tuning.insert("bulk".to_string(), "1".to_string());
    let sequential = Row::ops("fillseq", COPY).called("sequential insert");
    let section = Section::new(NAME, "1", "128 MB of memory, compression", plan)
        .table("WiredTiger 2013")
        .case_with(bulk, CaseId::FillSeq, writes(sequential))
        .case(CaseId::FillRandom, writes(Row::ops("fillrandom", COPY).called("random insert")))
        .case(CaseId::Overwrite, writes(Row::ops("overwrite", COPY).called("random overwrite")))
        .case(
            CaseId::LargeRandom,
            writes(Row::ops("fill100Krandom", COPY_LARGE).called("random large value (100 KB)")),
        )
        .case(
            CaseId::Reads,
            reads(&[
                ("readseq", "sequential read"),
                ("readreverse", "sequential read reverse"),
                ("readrandom", "random read"),
            ]),
        );
    vec![section.with_limits()]
}

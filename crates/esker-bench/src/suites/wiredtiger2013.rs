//! "LevelDB Benchmark", WiredTiger wiki, January 2013: the classic rows at 128 MB, compressed. The
//! sequential insert is each engine's bulk path where it has one: the writer is told that keys
//! ascend, and WiredTiger may use its bulk cursor, which does not log.

use super::{Base, Section, reads, writes};
use crate::plan::{CaseId::*, Row, limits::*};

const NAME: &str = "wiredtiger2013";
/// MiB of cache, of either engine.
const MEMORY: u64 = 128;
/// The document's table; keys and values are bytes here and not its strings.
const TABLE: &str = "internal_page_max=16KB,leaf_page_max=16KB,memory_page_max=120795955,\
                     prefix_compression=false,checksum=off";
/// Bytes of a chunk of its LSM tree.
const CHUNK: u64 = 20 << 20;
/// The document sets LevelDB's cache and leaves it the write buffer of its defaults.
const WRITE_BUFFER: u64 = 4 << 20;

pub(super) fn sections(base: &Base) -> Vec<Section> {
    let plan = base
        .document(MEMORY, true)
        .tuned("wiredtiger.table", TABLE)
        .tuned("wiredtiger.chunk_size", CHUNK)
        .tuned("leveldb.write_buffer", WRITE_BUFFER)
        .tuned("leveldb.cache", MEMORY << 20)
        // As the document has it for LevelDB: the cache is all of the memory, and the write buffer is the default beside it.
        .tuned("rocksdb.write_buffer", 64 << 20)
        .tuned("rocksdb.cache", MEMORY << 20);
    let bulk = plan.clone().tuned("bulk", 1);
    let sequential = Row::ops("fillseq", COPY).called("sequential insert");
    let section = Section::new(NAME, "1", "128 MB of memory, compression", plan)
        .table("WiredTiger 2013")
        .case_with(bulk, FillSeq, writes(sequential))
        .case(FillRandom, writes(Row::ops("fillrandom", COPY).called("random insert")))
        .case(Overwrite, writes(Row::ops("overwrite", COPY).called("random overwrite")))
        .case(
            LargeRandom,
            writes(Row::ops("fill100Krandom", COPY_LARGE).called("random large value (100 KB)")),
        )
        .case(
            Reads,
            reads(&[
                ("readseq", "sequential read"),
                ("readreverse", "sequential read reverse"),
                ("readrandom", "random read"),
            ]),
        );
    vec![section.with_limits()]
}

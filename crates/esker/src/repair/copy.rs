//! Tables made of what is saved.

use std::path::PathBuf;
use std::sync::Arc;

use super::Repair;
use crate::env::Env;
use crate::error::Result;
use crate::key::{KeyOrder, Kind, Seq, Stored};
use crate::options::Compression;
use crate::table::{self, Table, TableBuilder, TableOptions, TableSummary};
use crate::version::{SegmentRef, TableMeta};

/// A table being written out of what is saved.
pub(super) struct Copy {
    env: Arc<dyn Env>,
    path: PathBuf,
    number: u64,
    options: TableOptions,
    builder: Option<TableBuilder>,
    /// Key and sequence of the last entry.
    last: Option<(Vec<u8>, Seq)>,
}

impl Copy {
    pub(super) fn new(repair: &mut Repair, keyspace: u32, order: KeyOrder) -> Result<Copy> {
        let number = repair.next_file;
        repair.next_file += 1;
        let options = TableOptions {
            order,
            keyspace,
            block_size: 4096,
            compression: Compression::Lz4,
            dictionary: None,
        };
        let path = repair.dir.join(table::file_name(number));
        Ok(Copy { env: Arc::clone(&repair.env), path, number, options, builder: None, last: None })
    }

    /// Adds an entry, unless it is out of order: one of the two is then not what was written.
    /// Verification, which comes first, has told it.
    pub(super) fn add(
        &mut self,
        key: &[u8],
        seq: Option<Seq>,
        kind: Kind,
        stored: Stored<'_>,
    ) -> Result<()> {
        let at = seq.unwrap_or(0);
        let follows = |(last, last_seq): &(Vec<u8>, Seq)| {
            self.options.order.compare(last, key).then(at.cmp(last_seq)).is_lt()
        };
        if !self.last.as_ref().is_none_or(follows) {
            return Ok(());
        }
        self.last = Some((key.to_vec(), at));
        if self.builder.is_none() {
            self.builder =
                Some(TableBuilder::new(&self.env, &self.path, self.number, self.options.clone())?);
        }
        match &mut self.builder {
            Some(b) => b.add(key, seq, kind, stored),
            None => Ok(()),
        }
    }

    pub(super) fn finish(self) -> Result<Option<TableSummary>> {
        self.builder.map(TableBuilder::finish).transpose()
    }
}

pub(super) fn meta_of_table(t: &Table, size: u64) -> TableMeta {
    TableMeta {
        number: t.number(),
        size,
        entries: t.entries(),
        tombstones: t.tombstones(),
        raw_bytes: t.raw_bytes(),
        smallest: t.smallest().to_vec(),
        largest: t.largest().to_vec(),
        min_seq: t.min_seq(),
        max_seq: t.max_seq(),
        base_seq: t.base_seq(),
        unique_keys: t.unique_keys(),
        references: t
            .references()
            .iter()
            .map(|r| SegmentRef { segment: r.segment, bytes: r.bytes, count: r.count })
            .collect(),
    }
}

pub(super) fn show(key: &[u8]) -> String {
    let cut = &key[..key.len().min(64)];
    format!("\"{}{}\"", cut.escape_ascii(), if key.len() > 64 { "..." } else { "" })
}

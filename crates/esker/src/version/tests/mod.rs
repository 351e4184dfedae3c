//! Tests of the folder: golden scripts, damage, crashes, failing calls.

mod crash;
mod damage;
mod edits;
mod limits;
mod mem_env;
mod records;
mod scripts;

use super::*;
use crate::wal::Position;

/// A small but valid table.
pub(super) fn table(number: u64, smallest: &str, largest: &str) -> TableMeta {
    TableMeta {
        number,
        size: 1000,
        entries: 10,
        tombstones: 0,
        raw_bytes: 2000,
        smallest: smallest.into(),
        largest: largest.into(),
        min_seq: number * 10,
        max_seq: number * 10 + 9,
        base_seq: number * 10,
        unique_keys: true,
        references: Vec::new(),
    }
}

pub(super) fn add_keyspace(id: u32, name: &str) -> Change {
    Change::AddKeyspace {
        id,
        name: name.into(),
        order_name: "esker.bytewise".into(),
        compression: Some(1),
        blob_threshold: Some(4096),
    }
}

pub(super) fn add(keyspace: u32, run: u64, meta: TableMeta) -> Change {
    Change::AddTable { keyspace, run, meta }
}

/// Edits that use every kind of change, each valid after the ones before it.
pub(super) fn history() -> Vec<VersionEdit> {
    let refs = vec![SegmentRef { segment: 3, bytes: 9000 }, SegmentRef { segment: 4, bytes: 1 }];
    let with_refs = TableMeta { references: refs, tombstones: 3, ..table(12, "b", "kk") };
    [
        vec![add_keyspace(0, "default")],
        vec![
            add(0, 1, table(10, "a", "m")),
            Change::Flushed { keyspace: 0, segment: 2 },
            Change::LogStart { segment: 3, durable: Position { segment: 3, end: 4096 } },
        ],
        vec![add_keyspace(1, "other"), add(1, 1, table(11, "x", "y"))],
        vec![add(0, 2, with_refs), Change::LastSeq { seq: 1000 }],
        vec![Change::CleanClose],
        vec![Change::Reopened],
        vec![
            Change::RemoveTable { keyspace: 0, number: 10 },
            Change::RemoveTable { keyspace: 0, number: 12 },
            add(0, 2, TableMeta { min_seq: 100, ..table(13, "a", "c") }),
            add(0, 2, TableMeta { min_seq: 100, ..table(14, "ca", "m") }),
        ],
        vec![Change::DropKeyspace { id: 1 }, Change::NextFile { number: 40 }],
        vec![Change::MayRepeat { below: 39 }, Change::NextKeyspace { id: 7 }],
        vec![Change::CleanClose],
    ]
    .into_iter()
    .map(VersionEdit::from)
    .collect()
}

/// The states before, between and after the edits of [`history`].
pub(super) fn states() -> Vec<State> {
    let mut list = vec![State::new(Orders::default())];
    for edit in history() {
        let next = list.last().unwrap().apply(&edit).unwrap();
        list.push(next);
    }
    list
}

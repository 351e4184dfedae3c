//! LevelDB's files of any bytes, for fuzzing: reading ends, and takes no more than is there.

use std::io::Write;
use std::path::Path;

use super::coding::{checksum, put_varint};
use super::compression::{MAX_BLOCK, unpack};
use super::edit::State;
use super::read::Position;
use super::record::{Event, RecordWriter, Records};
use super::salvage::Salvage;
use super::table::{FOOTER, MAGIC, Table, TableCursor};
use super::{batch, block};
use crate::error::Report;

use crate::sort::Sorter;

/// Reads the bytes as one of LevelDB's forms: the first says which.
pub fn leveldb(data: &[u8]) {
    let Some((&mode, data)) = data.split_first() else { return };
    match mode % 8 {
        0 => read_block(data),
        1 => drop(State::default().apply(data)),
        2 => drop(batch::versions::<()>(data, |_, _, _| Ok(()))),
        3 => read_records(data),
        4 => read_table(data),
        5 => read_table(&with_checksums(data)),
        6 => {
            let Some((&kind, bytes)) = data.split_first() else { return };
            const LIMIT: u64 = 1 << 20;
            assert!(
                unpack(kind, bytes, LIMIT).is_ok_and(|b| b.len() as u64 > LIMIT)
                    == (kind == 0 && bytes.len() as u64 > LIMIT)
            );
        }
        _ => round_trip(data),
    }
}

fn read_block(data: &[u8]) {
    let Ok(mut entries) = block::Entries::new(data) else { return };
    let mut steps = 0;
    while let Ok(true) = entries.advance() {
        assert!(entries.value().len() <= data.len());
        steps += 1;
        assert!(steps <= data.len());
    }
}

fn read_records(data: &[u8]) {
    let (mut records, mut record, mut events) = (Records::new(data), Vec::new(), 0);
    loop {
        let event = records.next(&mut record).expect("reading memory");
        assert!(record.len() <= data.len());
        if event == Event::End {
            return;
        }
        events += 1;
        assert!(events <= data.len() + 1);
    }
}

/// Strictly, and as a salvage does.
fn read_table(data: &[u8]) {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(data).expect("a file is written");
    // Each entry takes three bytes of a block that is packed by Snappy at most, and no block is read
    // twice.
    let most = data.len() * 22;
    if let Ok(mut cursor) = Table::open(file.path()).and_then(|t| TableCursor::new(t, true)) {
        let mut steps = 0;
        while let Ok(true) = cursor.advance() {
            steps += 1;
            assert!(
                steps <= most && cursor.key().len() + cursor.value().len() < MAX_BLOCK as usize
            );
        }
    }
    let mut sorter = Sorter::new(1 << 20, Path::new("/tmp"));
    let (mut report, position) = (Report::default(), Position::default());
    let mut salvage = Salvage {
        sorter: &mut sorter,
        report: &mut report,
        position: &position,
        strict: false,
        is_sorted: false,
    };
    salvage.table(file.path()).expect("a salvage goes on");
    let mut run = sorter.finish().expect("sorted");
    let mut steps = 0;
    while run.advance().expect("sorted") {
        steps += 1;
        assert!(steps <= most);
    }
}

/// A table of a block of data and one of an index, with all checksums set right.
fn with_checksums(data: &[u8]) -> Vec<u8> {
    let Some((head, blocks)) = data.split_first_chunk::<3>() else { return Vec::new() };
    let at = usize::from(u16::from_le_bytes([head[0], head[1]])).min(blocks.len());
    let (first, index) = blocks.split_at(at);
    let mut table = Vec::new();
    let mut footer = vec![0, 0];
    for (block, kind) in [(first, head[2] % 2), (index, 0)] {
        if kind == 0 && table.len() >= first.len() && !table.is_empty() {
            put_varint(&mut footer, table.len() as u64);
            put_varint(&mut footer, block.len() as u64);
        }
        table.extend_from_slice(block);
        table.push(kind);
        table.extend_from_slice(&checksum(&[block, &[kind]]).to_le_bytes());
    }
    footer.resize(FOOTER - 8, 0);
    table.extend_from_slice(&footer);
    table.extend_from_slice(&MAGIC.to_le_bytes());
    table
}

/// Bytes as records, written and read.
fn round_trip(data: &[u8]) {
    let mut out = RecordWriter::new(Vec::new());
    let all: Vec<Vec<u8>> =
        data.split(|b| *b == 0).map(|r| r.repeat(1 + r.len() * 3 % 1000)).collect();
    all.iter().for_each(|r| out.write(r).expect("writing memory"));
    let bytes = out.into_inner();
    let (mut records, mut record) = (Records::new(&bytes[..]), Vec::new());
    for expected in &all {
        assert!(matches!(records.next(&mut record), Ok(Event::Record(_))) && record == *expected);
    }
    assert!(matches!(records.next(&mut record), Ok(Event::End)));
}

#[cfg(test)]
mod tests {
    use super::super::block::BlockBuilder;
    use super::super::internal_key::tag;
    use super::super::table_builder::TableBuilder;
    use super::*;

    const TARGET: esker::fuzzing::Target = esker::fuzzing::Target { name: "leveldb", run: leveldb };

    fn table() -> Vec<u8> {
        let mut table = TableBuilder::new(Vec::new(), true);
        for n in 0..600u32 {
            table.add(format!("key/{n:05}").as_bytes(), tag(9, 1), &[n as u8; 30]).unwrap();
        }
        table.finish().unwrap().0
    }

    /// The two blocks that `with_checksums` makes a table of.
    fn blocks() -> Vec<u8> {
        let (mut data, mut index) = (BlockBuilder::new(16), BlockBuilder::new(1));
        let key = |n: u8| [&[b'k', n][..], &tag(u64::from(n), 1).to_le_bytes()].concat();
        (0..20).for_each(|n| data.add(&key(n), b"value"));
        let data = data.finish();
        let mut handle = vec![0];
        put_varint(&mut handle, data.len() as u64);
        index.add(&key(20), &handle);
        let len = (data.len() as u16).to_le_bytes();
        [&len[..], &[0], &data, &index.finish()].concat()
    }

    fn seeds() -> Vec<Vec<u8>> {
        let mut records = RecordWriter::new(Vec::new());
        (0..40).for_each(|n| records.write(&vec![n; usize::from(n) * 60]).unwrap());
        let zstd = zstd::bulk::compress(&[7; 5000], 1).unwrap();
        let with = |mode: u8, bytes: &[u8]| [&[mode], bytes].concat();
        vec![
            with(0, &blocks()[3..]),
            with(1, &super::super::edit::first_edit("leveldb.BytewiseComparator", 7, 9, &[])),
            with(2, b"\x05\0\0\0\0\0\0\0\x02\0\0\0\x01\x01a\x02bc\0\x01a"),
            with(3, &records.into_inner()),
            with(4, &table()),
            with(5, &blocks()),
            with(6, &[&[2][..], &zstd].concat()),
            with(6, &[&[1][..], &super::super::compression::pack(&[7; 5000]).unwrap()].concat()),
            with(6, b"\x02\x78\x9c\x4b\x04\x00\x00\x62\x00\x62"),
            with(7, b"some\0records\0\0of any length that is repeated"),
        ]
    }

    #[test]
    fn the_seeds_are_what_they_should_be() {
        let all = with_checksums(&blocks());
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&all).unwrap();
        let mut cursor = TableCursor::new(Table::open(file.path()).unwrap(), true).unwrap();
        let mut found = 0;
        while cursor.advance().unwrap() {
            found += 1;
        }
        assert_eq!(found, 20);
        assert_eq!(unpack(2, &seeds()[8][2..], 10).unwrap(), &b"a"[..]);
    }

    #[test]
    fn files_of_any_bytes() {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
        if std::env::var_os("ESKER_FUZZ_WRITE_SEEDS").is_some() {
            let dir = corpus.join(TARGET.name);
            std::fs::create_dir_all(&dir).expect("a directory");
            for (n, seed) in seeds().iter().enumerate() {
                std::fs::write(dir.join(format!("seed-{n:02}")), seed).expect("a seed");
            }
        }
        esker::fuzzing::testing::drive(&TARGET, &corpus);
    }
}

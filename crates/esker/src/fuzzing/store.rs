//! A whole directory of files of any bytes.
//!
//! The input is a list of files: what kind, number, length (u24), bytes. Their checksums are set
//! right, so that every length, number and offset in them is what the fuzzer made it.

use super::scratch::Scratch;
use crate::filename;
use crate::{Compression, Db, Options, table, version, wal};

/// Splits into parts, each behind its length (u16).
pub(super) fn parts(mut data: &[u8]) -> Vec<&[u8]> {
    let mut all = Vec::new();
    while let Some((&len, rest)) = data.split_first_chunk() {
        let (part, rest) = rest.split_at(usize::from(u16::from_le_bytes(len)).min(rest.len()));
        all.push(part);
        data = rest;
    }
    all
}

/// What [`parts`] splits.
pub(super) fn join(parts: &[Vec<u8>]) -> Vec<u8> {
    let mut all = Vec::new();
    for part in parts {
        all.extend((part.len() as u16).to_le_bytes());
        all.extend(part);
    }
    all
}

/// Kinds of files in the input; any other number is a file with one of [`NAMES`].
pub(super) const MANIFEST: u8 = 0;
pub(super) const LOG: u8 = 1;
pub(super) const TABLE: u8 = 2;

/// Names that nobody should trip over.
const NAMES: &[&str] = &[
    "CURRENT.tmp",
    "18446744073709551615.log",
    "18446744073709551615.tbl",
    "4611686018427387903.log",
    "MANIFEST-4611686018427387903",
    "MANIFEST-0000000002",
    "0000000000.log",
    "0000000000.tbl",
    "notes.txt",
];

/// Appends a file to an input.
pub(super) fn add(input: &mut Vec<u8>, kind: u8, number: u64, bytes: &[u8]) {
    input.extend([kind, number as u8]);
    input.extend(&(bytes.len() as u32).to_le_bytes()[..3]);
    input.extend(bytes);
}

fn write(scratch: &Scratch, kind: u8, number: u8, bytes: &[u8]) {
    let n = u64::from(number);
    match kind & 3 {
        MANIFEST => {
            let bytes = version::fuzz::of_payloads(parts(bytes).into_iter());
            scratch.write("CURRENT", version::fuzz::current().as_bytes());
            scratch.write("MANIFEST-0000000001", &bytes);
        }
        LOG => scratch.write(&filename::segment(n), &wal::fuzz::expand(bytes, n, kind & 4 == 0)),
        TABLE => {
            let mut bytes = bytes.to_vec();
            table::fuzz::reseal(&mut bytes, n);
            scratch.write(&filename::table(n), &bytes);
        }
        _ => scratch.write(NAMES[usize::from(number) % NAMES.len()], bytes),
    }
}

fn options() -> Options {
    Options::new().memory(1 << 20).segment_size(64 << 10).compression(Compression::None)
}

fn read(db: &Db) {
    for name in db.keyspaces() {
        let Ok(keyspace) = db.keyspace(&name) else { continue };
        let mut keys = Vec::new();
        for (at, entry) in keyspace.iter().enumerate() {
            assert!(at < 1 << 20, "an iterator that does not end");
            match entry {
                Ok((key, _)) => keys.push(key),
                Err(_) => break,
            }
        }
        for key in keys.iter().take(64) {
            drop(keyspace.get(key));
        }
        drop(keyspace.multi_get(&keys));
        assert!(keyspace.iter().rev().take_while(Result::is_ok).count() <= 1 << 20);
        drop(keyspace.approximate_size::<&[u8]>(..));
    }
    db.stats();
    db.property("esker.stats");
    let halted = db.stats().halted.unwrap_or_default();
    assert!(!halted.contains("panic"), "{halted}");
}

/// Opens, reads, writes, verifies and repairs it.
pub(super) fn store(data: &[u8]) {
    let scratch = Scratch::new();
    let mut rest = data;
    let mut files = 0;
    while let Some((&[kind, number, a, b, c], tail)) = rest.split_first_chunk() {
        let len = u32::from_le_bytes([a, b, c, 0]) as usize;
        let (bytes, tail) = tail.split_at(len.min(tail.len()));
        rest = tail;
        files += 1;
        if files > 16 {
            break;
        }
        write(&scratch, kind, number, bytes);
    }
    let dir = &scratch.dir;
    drop(Db::verify_path(dir));
    if let Ok(db) = options().read_only(true).open(dir) {
        read(&db);
    }
    drop(options().read_only(true).paranoid_checks(true).open(dir));
    if data.len().is_multiple_of(2)
        && let Ok(db) = options().open(dir)
    {
        read(&db);
        drop(db.put("key", "value"));
        drop(db.flush());
        read(&db);
        drop(db.close());
    }
    if Db::repair(dir).is_ok() {
        let opened = options().open(dir);
        if let Ok(db) = opened {
            read(&db);
            drop(db.put("key", "value"));
            read(&db);
        }
    }
}

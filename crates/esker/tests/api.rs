//! The public interface as a program meets it.

use std::io;

use esker::{Compression, Db, Error, Keyspace, Options, ReadableKeyspace, Slice};

fn open(dir: &std::path::Path) -> Db {
    Options::new().compression(Compression::None).blob_threshold(1000).open(dir).unwrap()
}

fn value(n: usize, round: u8) -> Vec<u8> {
    // Within a slice, in tables, and in the log.
    vec![round; [0, 5, 38, 39, 100, 5000][n % 6]]
}

fn fill(db: &Db, round: u8) {
    for n in 0..600 {
        db.put(format!("key {n:03}"), value(n, round)).unwrap();
    }
}

/// Entries of one round, in order, or from the end.
fn assert_round(entries: &[(Slice, Slice)], round: u8, backwards: bool) {
    assert_eq!(entries.len(), 600);
    for (at, (key, found)) in entries.iter().enumerate() {
        let n = if backwards { 599 - at } else { at };
        assert_eq!(*key, format!("key {n:03}"));
        assert_eq!(*found, value(n, round));
    }
}

#[test]
fn entries_outlive_what_they_were_read_from() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let db = open(&path);
    let mut held = Vec::new();
    // Of a log alone, of tables below one, and of one run.
    for (round, compact) in [(1, false), (2, false), (3, true)] {
        fill(&db, round);
        if compact {
            db.compact_range::<&str>(..).unwrap();
            db.wait_for_compactions().unwrap();
        }
        for backwards in [false, true] {
            let all = db.iter();
            let all: esker::Result<Vec<_>> =
                if backwards { all.rev().collect() } else { all.collect() };
            held.push((all.unwrap(), round, backwards));
        }
        if round == 1 {
            db.flush().unwrap();
        }
    }
    for round in 4..20 {
        fill(&db, round);
        db.compact_range::<&str>(..).unwrap();
    }
    let copies: Vec<(Vec<u8>, Vec<u8>)> =
        held[0].0.iter().cloned().map(|(k, v)| (k.into(), v.into())).collect();
    db.close().unwrap();
    for (entries, round, backwards) in &held {
        assert_round(entries, *round, *backwards);
    }
    assert!(matches!(Db::open(&path), Err(Error::Locked { .. })), "they keep the directory");
    drop(held);
    assert_eq!(copies[3].1, value(3, 1));
    assert_eq!(open(&path).iter().count(), 600);
}

#[test]
fn lent_entries_are_those_that_are_given() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir.path().join("db"));
    fill(&db, 1);
    let mut lent = db.range("key 100".."key 200");
    let mut given = db.range("key 100".."key 200");
    while let Some(entry) = lent.next_ref() {
        let (key, value) = entry.unwrap();
        let (k, v) = given.next().unwrap().unwrap();
        assert!(k == key && v == value);
    }
    assert!(given.next().is_none() && lent.next_ref().is_none());
    let mut lent = db.range("key 100".."key 200");
    let mut keys = db.range("key 100".."key 200").keys_only();
    let mut given = db.range("key 100".."key 200");
    let mut bytes = 0;
    while let Some(entry) = lent.next_back_ref() {
        let (key, value) = entry.unwrap();
        let (k, v) = given.next_back().unwrap().unwrap();
        assert!(k == key && v == value);
        let (k, v) = keys.next_back().unwrap().unwrap();
        assert!(k == key && v.is_empty());
        bytes += value.len();
    }
    assert!(bytes > 0);
    assert!(given.next().is_none() && lent.next_ref().is_none() && keys.next().is_none());

    let all: Vec<_> = db.iter().collect::<Result<_, _>>().unwrap();
    assert!(all.is_sorted(), "they are ordered as their bytes are");
}

#[test]
fn the_error_of_an_input_comes_back_and_nothing_is_loaded() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let db = open(&path);
    let files = || std::fs::read_dir(&path).unwrap().count();
    let before = files();
    // Within what is held back at first, and behind it.
    for good in [0, 3, 50_000u32] {
        let keys = (0..good).map(|n| Ok((n.to_be_bytes(), "value")));
        let input = keys.chain([Err(io::Error::other("the disk is gone"))]);
        let e: io::Error = db.try_bulk_load(input).unwrap_err();
        assert_eq!(e.to_string(), "the disk is gone");
        assert!(db.iter().next().is_none());
        assert_eq!(files(), before, "no table is left");
    }
    // One of the store's own, as the program's.
    let unsorted = ["b", "a"].map(|key| Ok((key, "")));
    let e: io::Error = db.try_bulk_load(unsorted).unwrap_err();
    let inner = e.into_inner().unwrap().downcast::<Error>().unwrap();
    assert!(matches!(*inner, Error::NotSorted { position: 1 }));

    db.put("key", "value").unwrap();
    let copy = db.create_keyspace("copy", Default::default()).unwrap();
    assert_eq!(copy.try_bulk_load(db.iter()).unwrap(), 1);
    assert_eq!(copy.get("key").unwrap().unwrap(), "value");
}

#[test]
fn one_function_reads_a_store_a_keyspace_and_a_view() {
    fn all(map: &impl ReadableKeyspace) -> [usize; 5] {
        assert_eq!(map.get("b").unwrap().is_some(), map.contains_key("b").unwrap());
        let mut cursor = map.cursor_keys_only();
        let (mut on, mut steps) = (cursor.first().unwrap(), 0);
        while on {
            (on, steps) = (cursor.next().unwrap(), steps + 1);
        }
        [
            map.iter().count(),
            map.range("b"..).count(),
            map.prefix("a").count(),
            map.multi_get(&["a", "b", "z"]).unwrap().iter().flatten().count(),
            steps + usize::from(map.cursor().seek("zz").unwrap()),
        ]
    }
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir.path().join("db"));
    let other: Keyspace = db.create_keyspace("other", Default::default()).unwrap();
    for key in ["a", "aa", "b"] {
        db.put(key, "x").unwrap();
    }
    let snapshot = db.snapshot();
    db.delete("b").unwrap();
    assert_eq!(all(&db), [2, 0, 2, 1, 2]);
    assert_eq!(all(&db.at(&snapshot)), [3, 1, 2, 2, 3]);
    assert_eq!(all(&other), [0; 5]);
}

//! Damaged files: nothing is dropped in silence.

use std::cmp::Ordering;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use esker::{Comparator, Db, Error, KeyOrder, KeyspaceOptions, WriteBatch};

use super::common::files::{self, copy, copy_as_killed};
use super::common::rng::Rng;
use super::{alone, contents, small};

fn key(n: u32) -> Vec<u8> {
    format!("key {n:05}").into_bytes()
}

/// A closed store of one run of many blocks.
fn closed(dir: &Path, keys: u32) {
    let db = small().open(dir).unwrap();
    for n in 0..keys {
        db.put(key(n), [n as u8; 150]).unwrap();
    }
    db.wait_for_compactions().unwrap();
    db.compact_range::<&str>(..).unwrap();
    db.close().unwrap();
}

fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 0x40;
    fs::write(path, bytes).unwrap();
}

/// Repair brought back the first part of a batch whose end was damaged.
/// <https://github.com/google/leveldb/issues/251>
#[test]
fn repair_returns_batches_whole_or_not_at_all() {
    let _alone = alone();
    let root = tempfile::tempdir().unwrap();
    let (alive, image) = (root.path().join("alive"), root.path().join("killed"));
    let db = small().memory(8 << 20).open(&alive).unwrap();
    for batch in 0..5u32 {
        let mut writes = WriteBatch::new();
        for n in 0..40u32 {
            writes.put(key(batch * 100 + n), [batch as u8; 60]);
        }
        db.write(writes).unwrap();
    }
    copy_as_killed(&alive, &image);
    let log = files::ending(&image, ".log")
        .into_iter()
        .find(|p| fs::read(p).unwrap()[4096..].iter().any(|b| *b != 0))
        .unwrap();
    let used = fs::read(&log).unwrap().iter().rposition(|b| *b != 0).unwrap();
    for (round, at) in (4096..used).step_by(700).enumerate() {
        let dir = root.path().join(format!("damaged {round}"));
        copy(&image, &dir);
        let log = dir.join(log.file_name().unwrap());
        if round % 3 == 2 {
            fs::OpenOptions::new().write(true).open(&log).unwrap().set_len(at as u64).unwrap();
        } else {
            flip(&log, at);
        }
        Db::repair(&dir).unwrap();
        let db = small().open(&dir).unwrap();
        let found = contents(&db);
        for batch in 0..5 {
            let there = (0..40).filter(|n| found.contains_key(&key(batch * 100 + n))).count();
            assert!(there == 0 || there == 40, "byte {at}: {there} of batch {batch}");
        }
        assert!(found.len() < 200, "byte {at}: damage went unnoticed");
    }
}

/// A merge took an error at the first byte of a table for its end, left the table out, and deleted
/// it. Fixed in RocksDB 2014 and again later (<https://github.com/facebook/rocksdb/blob/main/HISTORY.md>).
#[test]
fn a_merge_that_cannot_read_a_table_ends_with_an_error_and_keeps_it() {
    let _alone = alone();
    for at in [0, 9, 4096, 8192 + 30] {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("db");
        closed(&dir, 2000);
        let table = files::ending(&dir, ".tbl").pop().unwrap();
        flip(&table, at);
        let damaged = fs::read(&table).unwrap();
        let db = small().open(&dir).unwrap();
        for n in (0..2000).step_by(7) {
            db.put(key(n), "new").unwrap();
        }
        let merged = db.flush().and_then(|()| db.compact_range::<&str>(..));
        let error = merged.expect_err("a block cannot be read");
        assert!(error.is_corruption(), "byte {at}: {error}");
        let (mut lost, mut right) = (0, 0);
        for n in 0..2000u32 {
            let want = if n % 7 == 0 { b"new".to_vec() } else { vec![n as u8; 150] };
            match db.get(key(n)) {
                Ok(value) => {
                    right += u32::from(value.expect("no key is missing in silence") == want)
                }
                Err(_) => lost += 1,
            }
        }
        assert_eq!(right + lost, 2000, "byte {at}: a wrong value");
        assert!((1..100).contains(&lost), "byte {at}: {lost} values lost by one block");
        drop(db.close());
        assert!(fs::read(&table).is_ok_and(|now| now == damaged), "the table is gone");
    }
}

/// An iterator met an error and went on behind what it could not read, as if it were not there.
/// <https://github.com/cberner/redb/blob/master/CHANGELOG.md> (4.3)
#[test]
fn an_iterator_ends_at_its_first_error() {
    let _alone = alone();
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("db");
    closed(&dir, 2000);
    let table = files::ending(&dir, ".tbl").pop().unwrap();
    flip(&table, 10 * 4096 + 100);
    let db = small().open(&dir).unwrap();
    let forward: Vec<_> = db.iter().map(|e| e.map(|(k, _)| k)).collect();
    let backward: Vec<_> = db.iter().rev().map(|e| e.map(|(k, _)| k)).collect();
    for (keys, down) in [(forward, false), (backward, true)] {
        let at = keys.iter().position(|k| k.is_err()).expect("one block cannot be read");
        assert_eq!(at + 1, keys.len(), "nothing behind the error");
        for (n, found) in (0u32..).zip(&keys[..at]) {
            let n = if down { 1999 - n } else { n };
            assert_eq!(*found.as_ref().unwrap(), key(n), "nothing is left out before the error");
        }
    }
    // A cursor says it once more when it is asked once more, or is nowhere.
    let mut cursor = db.cursor();
    let mut on = cursor.first();
    let mut count = 0;
    while let Ok(true) = on {
        assert_eq!(cursor.key(), key(count), "nothing is left out");
        count += 1;
        on = cursor.next();
    }
    on.expect_err("the same block");
    for _ in 0..50 {
        if let Ok(true) = cursor.next() {
            assert!(cursor.key() <= &key(count)[..], "it went on behind what it could not read");
        }
    }
    // Both ends at once.
    let mut both = db.iter();
    let mut errors = 0;
    for _ in 0..2100 {
        for entry in [both.next(), both.next_back()].into_iter().flatten() {
            assert_eq!(errors, 0, "an entry behind an error");
            errors += usize::from(entry.is_err());
        }
    }
    assert_eq!(errors, 1);
}

/// Letters in either case; only a comparator of a program's own asks the blocks themselves where a search goes on.
struct NoCase;

impl Comparator for NoCase {
    fn name(&self) -> &str {
        "nocase"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.to_ascii_lowercase().cmp(&b.to_ascii_lowercase())
    }
}

/// One block that could not be read failed searches for keys in others. A cursor goes on behind it, in either
/// direction, and all that lies in other blocks is found by every way there is.
#[test]
fn a_walk_passes_damage_by_a_seek_to_a_key_behind_it() {
    let _alone = alone();
    let root = tempfile::tempdir().unwrap();
    for custom in [false, true] {
        let options = || match custom {
            true => small().comparator(KeyOrder::Custom(Arc::new(NoCase))),
            false => small(),
        };
        let dir = root.path().join(custom.to_string());
        let db = options().open(&dir).unwrap();
        // Eight bytes and more that they have in common, as keys of one kind do; and one that has not.
        (0..2000).for_each(|n| db.put(key(n), [n as u8; 150]).unwrap());
        db.put("a", "").unwrap();
        db.compact_range::<&str>(..).unwrap();
        db.close().unwrap();
        let table = files::ending(&dir, ".tbl").pop().unwrap();
        let blocks = fs::metadata(&table).unwrap().len() as usize / 4096;
        for block in [1, blocks / 4, blocks / 2, blocks * 2 / 3] {
            flip(&table, block * 4096 + 100);
            let db = options().open(&dir).unwrap();
            let lost: Vec<u32> = (0..2000).filter(|n| db.get(key(*n)).is_err()).collect();
            let (first, last) = (lost[0], lost[lost.len() - 1]);
            assert!(lost.len() < 60 && (first..=last).eq(lost.iter().copied()), "{lost:?}");
            let mut cursor = db.cursor();
            for n in 0..2000 {
                let (is_lost, wanted) = (lost.contains(&n), key(n));
                for forward in [true, false] {
                    let on =
                        if forward { cursor.seek(&wanted) } else { cursor.seek_for_prev(&wanted) };
                    assert_eq!(on.is_err(), is_lost, "{n}, {forward}: {on:?}");
                    assert!(is_lost || cursor.key() == wanted);
                }
            }
            // From end to end, but for what is lost: an error, and then a seek to the next key that can be read.
            let walk = |mut on: esker::Result<bool>, cursor: &mut esker::Cursor, forward: bool| {
                let mut seen = 0;
                while let Ok(true) = on {
                    seen += 1;
                    on = if forward { cursor.next() } else { cursor.prev() };
                }
                (seen, on.is_err())
            };
            let from = cursor.first();
            assert_eq!(walk(from, &mut cursor, true), (first + 1, true));
            let from = cursor.seek(key(last + 1));
            assert_eq!(walk(from, &mut cursor, true), (1999 - last, false));
            let from = cursor.last();
            assert_eq!(walk(from, &mut cursor, false), (1999 - last, true));
            let from = cursor.seek_for_prev(key(first - 1));
            assert_eq!(walk(from, &mut cursor, false), (first + 1, false));
            let problems = db.verify().unwrap().problems;
            assert_eq!(problems.len(), 1, "{problems:#?}");
            drop(cursor);
            drop(db.close());
            flip(&table, block * 4096 + 100);
        }
    }
}

/// The checker itself crashed on a file made to do so. <https://github.com/erthink/libmdbx/issues/217>
#[test]
fn verify_and_repair_survive_files_that_are_none() {
    let _alone = alone();
    let mut rng = Rng::new(super::common::seed("checker"));
    let root = tempfile::tempdir().unwrap();
    let sound = root.path().join("sound");
    closed(&sound, 500);
    let names = files::names(&sound);
    for round in 0..150 {
        let dir = root.path().join(round.to_string());
        copy(&sound, &dir);
        for _ in 0..1 + rng.below(3) {
            let path = dir.join(rng.pick(&names));
            let mut bytes = fs::read(&path).unwrap_or_default();
            let len = rng.pick(&[0, 1, 16, 40, 95, 96, 97, 4095, 4096, 4097, 20_000]);
            match rng.below(4) {
                0 => bytes = rng.bytes(len),
                1 => bytes = vec![0xFF; len],
                2 => bytes.extend(rng.bytes(len)),
                _ => {
                    // Numbers at their edges, where lengths and counts stand.
                    for _ in 0..8 {
                        let edge = rng.pick(&[0, 1, u32::MAX, u32::MAX - 1, 1 << 31, 0xFFFF]);
                        let at = rng.below(bytes.len().max(8) - 4);
                        bytes.resize(bytes.len().max(8), 0);
                        bytes[at..at + 4].copy_from_slice(&u32::to_le_bytes(edge));
                    }
                }
            }
            fs::write(&path, bytes).unwrap();
        }
        // Any answer but a crash.
        drop(Db::verify_path(&dir));
        if let Ok(db) = small().read_only(true).open(&dir) {
            drop(db.verify());
        }
        Db::repair(&dir).unwrap();
        super::assert_sound(&dir);
        fs::remove_dir_all(&dir).unwrap();
    }
}

/// A segment of a log that the manifest says is over: put back by hand from a copy, say. Its entries would
/// be gone without a word.
#[test]
fn a_closed_store_does_not_pass_over_a_segment_with_entries() {
    let _alone = alone();
    let root = tempfile::tempdir().unwrap();
    let (image, closed) = (root.path().join("image"), root.path().join("closed"));
    let db = small().open(root.path().join("db")).unwrap();
    db.put("key", "value").unwrap();
    copy_as_killed(&root.path().join("db"), &image);
    copy(&image, &closed);
    // One copy goes on for a while.
    let mut lives = image.clone();
    for life in 0..5u8 {
        let db = small().open(&lives).unwrap();
        db.put([life], "more").unwrap();
        let next = root.path().join(life.to_string());
        copy_as_killed(&lives, &next);
        lives = next;
    }
    // The other one is closed, and its manifest is the longer one.
    let db = small().open(&closed).unwrap();
    for _ in 0..20 {
        db.create_keyspace("passing", KeyspaceOptions::new()).unwrap();
        db.drop_keyspace("passing").unwrap();
    }
    db.close().unwrap();
    let used = |p: &PathBuf| fs::read(p).unwrap()[4096..].iter().any(|b| *b != 0);
    let newest = files::ending(&lives, ".log").into_iter().rfind(used).unwrap();
    let put_back = closed.join(newest.file_name().unwrap());
    fs::copy(&newest, &put_back).unwrap();
    for options in [small(), small().read_only(true)] {
        let e = options.open(&closed).unwrap_err();
        assert!(matches!(&e, Error::Corruption { path, .. } if *path == put_back), "{e}");
        assert!(e.to_string().contains("the store was closed before it"), "{e}");
    }
    fs::remove_file(&put_back).unwrap();
    assert_eq!(contents(&small().open(&closed).unwrap()).len(), 1);
}

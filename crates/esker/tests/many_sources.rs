//! Bugs found by use, one test each: more sources (segments that wait, runs, tables) than was
//! thought of.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::ops::Bound;
use std::path::{Path, PathBuf};

use common::{files, seed};
use esker::{Compression, Db, Options};
use tempfile::tempdir;

/// The table files of a store, by number.
fn tables(dir: &Path) -> BTreeMap<u64, PathBuf> {
    let paths = fs::read_dir(dir).unwrap().map(|e| e.unwrap().path());
    let number = |p: &PathBuf| {
        let name = p.file_name()?.to_str()?;
        name.strip_suffix(".tbl")?.parse().ok()
    };
    paths.filter_map(|p| Some((number(&p)?, p))).collect()
}

fn runs(db: &Db) -> usize {
    db.stats().keyspaces.iter().map(|k| k.runs.len()).max().unwrap()
}

#[test]
fn ranges_were_empty_and_writes_stopped_with_more_than_255_segments_waiting() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("db");
    let open = || Options::new().segment_size(64 << 10).open(&path).unwrap();
    let db = open();
    for n in 0..100u32 {
        db.put(format!("a{n:03}"), "settled").unwrap();
    }
    db.wait_for_compactions().unwrap();
    for n in 0..400_000u32 {
        db.put(format!("k{:08}", n.wrapping_mul(7919) % 400_000), [n as u8; 200]).unwrap();
        if n % 20_000 == 0 {
            assert_eq!(db.range("a".."b").filter(|e| e.is_ok()).count(), 100, "after {n} puts");
        }
    }
    let copy = dir.path().join("copy");
    files::copy_as_killed(&path, &copy);
    db.flush().unwrap();
    assert_eq!(db.stats().halted, None);
    assert_eq!(db.iter().count(), 400_100);
    db.close().unwrap();
    for at in [&path, &copy] {
        let db = Options::new().segment_size(64 << 10).open(at).unwrap();
        assert_eq!(db.range("a".."b").filter(|e| e.is_ok()).count(), 100);
        assert_eq!(db.iter().filter(|e| e.is_ok()).count(), 400_100);
        db.close().unwrap();
    }
}

/// A store without a manifest, of `count` tables that overlap, each over the whole range.
fn tables_without_a_manifest(dir: &Path, count: u32) -> PathBuf {
    let (path, bare) = (dir.join("db"), dir.join("bare"));
    let db = Options::new().compression(Compression::None).open(&path).unwrap();
    fs::create_dir(&bare).unwrap();
    let mut last = 0;
    for n in 0..count {
        let loaded = [format!("a{n:03}"), "same".into(), format!("z{n:03}")];
        db.bulk_load(loaded.iter().map(|k| (k, n.to_be_bytes()))).unwrap();
        // Before it is merged: the loaded one is the first of those that came since.
        let mut new: Vec<(u64, PathBuf)> = Vec::new();
        while new.is_empty() {
            new = tables(&path).into_iter().filter(|(number, _)| *number > last).collect();
        }
        last = *tables(&path).keys().last().unwrap();
        for (number, table) in new {
            let to = bare.join(format!("{number:010}.tbl"));
            if fs::copy(&table, &to).is_err() {
                let _ = fs::remove_file(to);
            }
        }
    }
    fs::write(bare.join("MANIFEST-0000000001"), "of no use").unwrap();
    bare
}

#[test]
fn a_repair_of_300_tables_made_a_store_whose_ranges_were_empty() {
    let dir = tempdir().unwrap();
    let bare = tables_without_a_manifest(dir.path(), 300);
    let found = tables(&bare).len();
    Db::repair(&bare).unwrap();
    let expect = |db: &Db, what: &str| {
        let one_end = db.range("a".."b").filter(|e| e.is_ok()).count();
        let other_end = db.range("y"..).rev().filter(|e| e.is_ok()).count();
        assert!(one_end > 290 && one_end == other_end, "{what}: {one_end}, {other_end}");
        let bounds = (Bound::Included("same"), Bound::Included("same"));
        assert_eq!(db.range::<&str>(bounds).count(), 1, "{what}");
        one_end
    };
    let copy = dir.path().join("copy");
    fs::create_dir(&copy).unwrap();
    for entry in fs::read_dir(&bare).unwrap() {
        let from = entry.unwrap().path();
        if from.is_file() {
            fs::copy(&from, copy.join(from.file_name().unwrap())).unwrap();
        }
    }
    let entries = {
        let db = Options::new().read_only(true).open(&bare).unwrap();
        assert!(found > 256 && runs(&db) <= 8, "{} runs of {found} tables", runs(&db));
        expect(&db, "read only")
    };
    // Writing, loading and flushing at once, with the smallest memory.
    let db = Options::new().memory(1 << 20).open(&bare).unwrap();
    assert_eq!(expect(&db, "opened"), entries);
    db.bulk_load([("m", "loaded")]).unwrap();
    assert!(runs(&db) <= 33, "{} runs after a load", runs(&db));
    db.put("n", "put").unwrap();
    db.flush().unwrap();
    db.wait_for_compactions().unwrap();
    assert_eq!(db.stats().halted, None);
    assert_eq!((runs(&db), expect(&db, "settled")), (1, entries));
    db.close().unwrap();
    // A compaction of all of them at once.
    let db = Options::new().memory(1 << 20).open(&copy).unwrap();
    db.compact_range::<&str>(..).unwrap();
    assert_eq!((runs(&db), expect(&db, "compacted")), (1, entries));
    // A checkpoint of it.
    db.checkpoint(dir.path().join("checkpoint")).unwrap();
    expect(&Db::open(dir.path().join("checkpoint")).unwrap(), "checkpoint");
}

#[test]
fn short_lives_left_a_table_each() {
    let dir = tempdir().unwrap();
    let mut x = seed("short_lives") | 1;
    let mut random = || {
        x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        x
    };
    for pattern in ["in order", "at random", "mixed"] {
        let path = dir.path().join(pattern);
        let mut most = 0;
        for n in 0..100u32 {
            let db = Db::open(&path).unwrap();
            if pattern != "at random" {
                db.put(format!("in order {n:05}"), "value").unwrap();
            }
            if pattern != "in order" {
                db.put(format!("random {:020}", random()), "value").unwrap();
            }
            if pattern == "mixed" {
                db.put("same", "value").unwrap();
            }
            db.close().unwrap();
            most = most.max(tables(&path).len());
        }
        assert!(most <= 4, "{pattern}: {most} tables");
        let db = Db::open(&path).unwrap();
        let entries = if pattern == "mixed" { 201 } else { 100 };
        assert_eq!(db.iter().filter(|e| e.is_ok()).count(), entries);
    }
}

/// Tables of one entry that lie beside each other stayed so: a store of a thousand loads had a thousand
/// files and mappings, and each load took longer than the one before.
#[test]
fn small_loads_left_a_table_each() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("db");
    let db = Db::open(&path).unwrap();
    for n in 0..1000u32 {
        db.bulk_load([(n.to_be_bytes(), "value")]).unwrap();
    }
    db.wait_for_compactions().unwrap();
    assert!(tables(&path).len() < 40, "{} tables", tables(&path).len());
    assert_eq!(db.stats().mappings, tables(&path).len() + 1);
    assert_eq!(db.iter().filter(|e| e.is_ok()).count(), 1000);
}

#[test]
fn loads_in_a_loop_made_more_and_more_runs() {
    let dir = tempdir().unwrap();
    let db = Options::new().memory(1 << 20).open(dir.path().join("db")).unwrap();
    let loops = 4;
    std::thread::scope(|scope| {
        for at in 0..loops {
            let db = &db;
            scope.spawn(move || {
                for n in 0..150u32 {
                    let keys = [format!("a{at}{n:03}"), format!("z{at}{n:03}")];
                    db.bulk_load(keys.iter().map(|k| (k, k))).unwrap();
                    db.put(format!("m{at}{n:03}"), "put").unwrap();
                    assert!(runs(db) <= 40, "{} runs", runs(db));
                }
            });
        }
    });
    assert_eq!(db.iter().filter(|e| e.is_ok()).count(), 3 * 150 * loops);
}

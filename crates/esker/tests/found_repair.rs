//! Faults of verification and repair that were found by use, one test each.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use common::files::{self, copy, copy_as_killed};
use common::no_case;
use esker::{Compression, Db, Durability, KeyspaceOptions, Options};
use tempfile::tempdir;

/// What a store holds, by keyspace and key.
type Contents = BTreeMap<(String, Vec<u8>), Vec<u8>>;

fn contents(db: &Db) -> Contents {
    let mut all = Contents::new();
    for name in db.keyspaces() {
        for entry in db.keyspace(&name).unwrap().iter() {
            let (key, value) = entry.unwrap();
            all.insert((name.clone(), key), value.to_vec());
        }
    }
    all
}

/// Text of ordinary rows: each is short, all have much in common.
fn row(n: u32) -> String {
    let hash = n.wrapping_mul(2_654_435_761);
    format!(
        "{{\"id\":{n},\"name\":\"customer {hash:08x}\",\"city\":\"Bern\",\"state\":\"active\"}}"
    )
}

fn key(n: u32) -> Vec<u8> {
    format!("key {n:06}").into_bytes()
}

/// A closed store of one table.
fn closed(dir: &Path, options: Options, keys: u32) {
    let db = options.open(dir).unwrap();
    for n in 0..keys {
        db.put(key(n), row(n)).unwrap();
    }
    db.compact_range::<&str>(..).unwrap();
    db.settle().unwrap();
    db.close().unwrap();
}

fn tables(dir: &Path) -> Vec<PathBuf> {
    files::ending(dir, ".tbl")
}

fn size_of_tables(dir: &Path) -> u64 {
    tables(dir).iter().map(|t| fs::metadata(t).unwrap().len()).sum()
}

fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 0x40;
    fs::write(path, bytes).unwrap();
}

/// Two keyspaces, one under a comparator of the program's, both with synced entries in the log, as
/// a kill leaves them.
fn killed_with_comparator(root: &Path) -> PathBuf {
    let (alive, killed) = (root.join("alive"), root.join("killed"));
    let db = Options::new().open(&alive).unwrap();
    let custom = db.create_keyspace("custom", KeyspaceOptions::new().order(no_case())).unwrap();
    for n in 0..100u32 {
        custom.put_with(key(n), row(n), Durability::Synced).unwrap();
        db.put_with(key(n), "plain", Durability::Synced).unwrap();
    }
    copy_as_killed(&alive, &killed);
    killed
}

#[test]
fn repair_dropped_the_log_of_keyspaces_with_a_comparator_of_the_users() {
    let root = tempdir().unwrap();
    let killed = killed_with_comparator(root.path());
    let report = Db::repair(&killed).unwrap();
    assert!(report.lost.is_empty(), "{:?}", report.lost);
    let db = Options::new().keyspace_order("custom", no_case()).open(&killed).unwrap();
    assert_eq!(db.keyspace("custom").unwrap().iter().count(), 100);
    assert_eq!(db.iter().count(), 100);
}

#[test]
fn repair_rewrote_a_sound_store() {
    let root = tempdir().unwrap();
    let killed = killed_with_comparator(root.path());
    let closed_one = root.path().join("closed");
    closed(&closed_one, Options::new(), 1000);
    for dir in [killed, closed_one] {
        let before = files::contents(&dir);
        Db::repair(&dir).unwrap();
        assert!(files::contents(&dir) == before, "{}: files changed", dir.display());
    }
}

#[test]
fn repair_lost_a_whole_table_for_one_byte_of_its_end() {
    for compression in [Compression::None, Compression::Lz4, Compression::Zstd] {
        let root = tempdir().unwrap();
        let sound = root.path().join("sound");
        let options = || Options::new().compression(compression);
        closed(&sound, options(), 5000);
        let want = contents(&options().open(&sound).unwrap());
        let table = tables(&sound).pop().unwrap();
        let len = fs::metadata(&table).unwrap().len() as usize;
        type Damage = Box<dyn Fn(&mut Vec<u8>)>;
        let mut damages: Vec<(String, Damage)> = vec![
            ("a byte cut off".into(), Box::new(|b| b.truncate(b.len() - 1))),
            ("4 KiB appended".into(), Box::new(|b| b.extend([7; 4096]))),
            ("nothing but zeros appended".into(), Box::new(|b| b.extend([0; 12_288]))),
        ];
        // All bytes of the footer once; the packed values' dictionary is what each could cost.
        let step = if compression == Compression::Lz4 { 1 } else { 11 };
        for at in (1..=96).step_by(step) {
            damages
                .push((format!("byte {at} from the end"), Box::new(move |b| b[len - at] ^= 0x10)));
        }
        for (what, damage) in damages {
            let dir = root.path().join("damaged");
            drop(fs::remove_dir_all(&dir));
            copy(&sound, &dir);
            let path = dir.join(table.file_name().unwrap());
            let mut bytes = fs::read(&path).unwrap();
            damage(&mut bytes);
            fs::write(&path, bytes).unwrap();
            let report = Db::repair(&dir).unwrap();
            assert!(report.lost.is_empty(), "{what}: {:?}", report.lost);
            assert_eq!(report.entries, 5000, "{what}");
            let found = contents(&options().open(&dir).unwrap());
            assert!(found == want, "{what}: {} of {} entries", found.len(), want.len());
        }
    }
}

#[test]
fn a_repaired_store_was_larger_than_before() {
    for compression in [Compression::None, Compression::Lz4, Compression::Zstd] {
        let root = tempdir().unwrap();
        let dir = root.path().join("db");
        closed(&dir, Options::new().compression(compression), 40_000);
        let before = size_of_tables(&dir);
        flip(&tables(&dir)[0], 8 * 4096 + 100);
        let report = Db::repair(&dir).unwrap();
        assert_eq!(report.lost.len(), 1, "{:?}", report.lost);
        let after = size_of_tables(&dir);
        assert!(after <= before, "{compression:?}: {before} bytes became {after}");
    }
}

#[test]
fn a_loss_was_listed_twice() {
    let root = tempdir().unwrap();
    let dir = root.path().join("db");
    closed(&dir, Options::new(), 5000);
    let table = tables(&dir).pop().unwrap();
    flip(&table, 4 * 4096 + 50);
    flip(&table, 9 * 4096 + 50);
    let report = Db::repair(&dir).unwrap();
    assert_eq!(report.lost.len(), 2, "{:#?}", report.lost);
}

#[test]
fn verify_counted_no_entries_when_one_block_was_bad() {
    let root = tempdir().unwrap();
    let dir = root.path().join("db");
    closed(&dir, Options::new(), 5000);
    let table = tables(&dir).pop().unwrap();
    flip(&table, 4 * 4096 + 50);
    let report = Db::verify_path(&dir, &mut |_, _| {}).unwrap();
    assert_eq!(report.problems.len(), 1, "{:#?}", report.problems);
    assert!((4000..5000).contains(&report.entries), "{} entries", report.entries);
    let open = Options::new().open(&dir).unwrap().verify(&mut |_, _| {}).unwrap();
    assert_eq!(open.entries, report.entries);
}

/// Tables without a manifest became one run each: more than a cursor can merge.
#[test]
fn tables_without_a_manifest_became_a_run_each() {
    let root = tempdir().unwrap();
    let dir = root.path().join("db");
    let small =
        || Options::new().memory(1 << 20).segment_size(64 << 10).compression(Compression::None);
    let db = small().open(&dir).unwrap();
    let mut numbers = 0;
    while tables(&dir).len() < 40 {
        // Each load is a table of its own, behind the others.
        let load = (numbers..numbers + 20).map(|n| (key(n), row(n)));
        db.bulk_load(load).unwrap();
        numbers += 20;
    }
    db.close().unwrap();
    let want = contents(&small().open(&dir).unwrap());
    for name in files::names(&dir) {
        if name.starts_with("MANIFEST") || name == "CURRENT" {
            fs::remove_file(dir.join(name)).unwrap();
        }
    }
    let report = Db::repair(&dir).unwrap();
    assert!(!report.lost.is_empty(), "the manifest is gone, and nobody says so");
    let db = small().open(&dir).unwrap();
    let runs = db.stats().keyspaces[0].runs.len();
    assert_eq!(runs, 1, "tables that share no key are one run");
    assert!(contents(&db) == want);
}

//! Faults of verification and repair that were found by use, one test each.

mod common;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use common::files::{self, copy, copy_as_killed};
use common::no_case;
use esker::{
    Comparator, Compression, Db, Durability, Error, KeyOrder, KeyspaceOptions, Options, WriteBatch,
};
use tempfile::tempdir;

/// What a store holds, by keyspace and key.
type Contents = BTreeMap<(String, Vec<u8>), Vec<u8>>;

fn contents(db: &Db) -> Contents {
    let mut all = Contents::new();
    for name in db.keyspaces() {
        for entry in db.keyspace(&name).unwrap().iter().copied_out() {
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
    db.wait_for_compactions().unwrap();
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
    let custom =
        db.create_keyspace("custom", KeyspaceOptions::new().comparator(no_case())).unwrap();
    for n in 0..100u32 {
        custom.put_with(key(n), row(n), Durability::Synced).unwrap();
        db.put_with(key(n), "plain", Durability::Synced).unwrap();
    }
    copy_as_killed(&alive, &killed);
    killed
}

#[test]
fn a_verification_told_of_each_value_in_a_segment_that_is_gone() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("db");
    let db = Options::new().open(&path).unwrap();
    (0..500).for_each(|n| db.put(key(n), vec![7; 5000]).unwrap());
    db.close().unwrap();
    let segments = files::ending(&path, ".log");
    assert!(!segments.is_empty());
    segments.iter().for_each(|segment| fs::remove_file(segment).unwrap());
    let problems = Db::verify_path(&path).unwrap().problems;
    assert!((1..20).contains(&problems.len()), "{problems:?}");
    assert!(problems.iter().any(|p| p.to_string().contains(" values are in log segment ")));
}

#[test]
fn repair_dropped_the_log_of_keyspaces_with_a_comparator_of_the_users() {
    let root = tempdir().unwrap();
    let killed = killed_with_comparator(root.path());
    let report = Db::repair(&killed).unwrap();
    assert!(report.lost.is_empty(), "{:?}", report.lost);
    let db = Options::new().keyspace_comparator("custom", no_case()).open(&killed).unwrap();
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
fn destroying_a_repaired_store_left_what_the_repair_had_put_aside() {
    let root = tempdir().unwrap();
    let dir = root.path().join("db");
    let damaged = || {
        closed(&dir, Options::new(), 5000);
        flip(&tables(&dir)[0], 4096 + 100);
        assert_eq!(Db::repair(&dir).unwrap().lost.len(), 1);
        assert_eq!(fs::read_dir(dir.join("lost")).unwrap().count(), 1);
    };
    damaged();
    Db::destroy(&dir).unwrap();
    assert!(!dir.exists());
    // What is not the store's stays, also there.
    damaged();
    fs::write(dir.join("lost/notes.txt"), "what I saw").unwrap();
    Db::destroy(&dir).unwrap();
    let left: Vec<_> = fs::read_dir(&dir).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["lost"]);
    assert_eq!(fs::read_dir(dir.join("lost")).unwrap().count(), 1);
    // Nor does a file of that name disturb.
    fs::remove_dir_all(&dir).unwrap();
    closed(&dir, Options::new(), 10);
    fs::write(dir.join("lost"), "mine").unwrap();
    Db::destroy(&dir).unwrap();
    assert!(dir.join("lost").is_file());
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
    let report = Db::verify_path(&dir).unwrap();
    assert_eq!(report.problems.len(), 1, "{:#?}", report.problems);
    assert!((4000..5000).contains(&report.entries), "{} entries", report.entries);
    let open = Options::new().open(&dir).unwrap().verify().unwrap();
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

/// Both keyspaces have tables and many segments of log; then a block of the default one's is damaged.
fn damaged_with_comparator(root: &Path) -> (PathBuf, Contents) {
    let (alive, killed) = (root.join("alive"), root.join("killed"));
    let small = Options::new().segment_size(64 << 10).blob_threshold(1000);
    let db = small.clone().open(&alive).unwrap();
    for n in 0..2000u32 {
        db.put(key(n), row(n)).unwrap();
    }
    let custom =
        db.create_keyspace("custom", KeyspaceOptions::new().comparator(no_case())).unwrap();
    for n in 0..500u32 {
        custom.put(key(n), row(n)).unwrap();
    }
    // A load takes a sequence without a frame.
    db.bulk_load((5000..5100).map(|n| (key(n), row(n)))).unwrap();
    db.wait_for_compactions().unwrap();
    for n in 0..600u32 {
        let mut batch = WriteBatch::new();
        batch.put_in(&custom, [&b"LOG "[..], &key(n)].concat(), row(n));
        batch.put(key(n + 2000), row(n));
        db.write(batch).unwrap();
        if n == 300 {
            custom.delete(key(7)).unwrap();
            custom.put("LARGE", vec![b'x'; 70_000]).unwrap();
        }
    }
    let custom_contents: Contents = contents(&db);
    copy_as_killed(&alive, &killed);
    let mut largest_first = tables(&killed);
    largest_first.sort_by_key(|t| std::cmp::Reverse(fs::metadata(t).unwrap().len()));
    for table in largest_first {
        flip(&table, 4096 + 100);
        let name = table.file_name().unwrap().to_str().unwrap();
        if Db::verify_path(&killed).unwrap().problems.iter().any(|found| found.file == name) {
            return (killed, custom_contents);
        }
        // One that a compaction has left behind.
        flip(&table, 4096 + 100);
    }
    panic!("no table is part of the store");
}

fn of(all: &Contents, keyspace: &str) -> Contents {
    all.iter().filter(|((ks, _), _)| ks == keyspace).map(|(k, v)| (k.clone(), v.clone())).collect()
}

#[test]
fn what_cannot_be_ordered_is_kept_in_a_new_log() {
    let root = tempdir().unwrap();
    let (dir, want) = damaged_with_comparator(root.path());
    let with = || Options::new().keyspace_comparator("custom", no_case());
    let report = Db::repair(&dir).unwrap();
    assert!(report.changed);
    assert_eq!(report.lost.len(), 1, "{:#?}", report.lost);
    assert_eq!(report.unchecked.len(), 1, "{:#?}", report.unchecked);
    assert!(report.unchecked[0].what.contains("test.nocase"), "{}", report.unchecked[0]);
    let verified = with().verify(&dir).unwrap();
    assert!(verified.problems.is_empty(), "{:#?}", verified.problems);
    // A second repair, with the comparator and without, has nothing to do.
    let before = files::contents(&dir);
    for options in [Options::new(), with()] {
        let again = options.repair(&dir).unwrap();
        assert!(!again.changed && again.lost.is_empty(), "{again:#?}");
    }
    assert!(files::contents(&dir) == before);
    for _ in 0..2 {
        let db = with().open(&dir).unwrap();
        let found = contents(&db);
        assert!(of(&found, "custom") == of(&want, "custom"));
        let lost = of(&want, "default").len() - of(&found, "default").len();
        assert!((1..200).contains(&lost), "{lost} entries of one block");
        db.close().unwrap();
    }
}

#[test]
fn a_repair_with_the_comparator_leaves_nothing_unchecked() {
    let root = tempdir().unwrap();
    let (dir, want) = damaged_with_comparator(root.path());
    let with = || Options::new().keyspace_comparator("custom", no_case());
    let report = with().repair(&dir).unwrap();
    assert!(report.changed && report.unchecked.is_empty(), "{report:#?}");
    assert_eq!(report.lost.len(), 1, "{:#?}", report.lost);
    let found = contents(&with().open(&dir).unwrap());
    assert!(of(&found, "custom") == of(&want, "custom"));
}

/// Large values that its tables point to were not looked at: that they are whole needs no order.
#[test]
fn a_damaged_value_in_an_older_segment_is_found_without_the_comparator() {
    let root = tempdir().unwrap();
    let dir = root.path().join("db");
    let with = || Options::new().keyspace_comparator("custom", no_case());
    let db = Options::new().open(&dir).unwrap();
    let order = || KeyspaceOptions::new().comparator(no_case());
    let custom = db.create_keyspace("custom", order()).unwrap();
    let large: Vec<u8> = (0..70_000u32).map(|n| (n.wrapping_mul(n) >> 7) as u8).collect();
    for n in 0..3u8 {
        custom.put([n], &large).unwrap();
    }
    drop(custom);
    db.close().unwrap();
    let segments = || files::names(&dir).into_iter().filter(|name| name.ends_with(".log"));
    let holds = |name: &String| {
        let bytes = fs::read(dir.join(name)).unwrap();
        bytes.windows(100).position(|w| w == &large[..100])
    };
    let (name, at) = segments().find_map(|name| Some((name.clone(), holds(&name)?))).unwrap();
    assert!(Db::verify_path(&dir).unwrap().problems.len() == 1, "that the order is not checked");
    flip(&dir.join(&name), at + 60_000);
    let found = |options: Options| options.verify(&dir).unwrap().problems;
    let value = |of: &[esker::Finding]| of.iter().filter(|f| f.file == name).cloned().collect();
    let want: Vec<_> = value(&found(with()));
    assert_eq!(want.len(), 1, "{want:#?}");
    assert_eq!(want, value(&found(Options::new())) as Vec<_>);
    let before = files::contents(&dir);
    let report = Db::repair(&dir).unwrap();
    assert_eq!(want, value(&report.unchecked) as Vec<_>, "{report:#?}");
    assert!(!report.changed && files::contents(&dir) == before);
    // Gone altogether.
    fs::remove_file(dir.join(&name)).unwrap();
    for options in [Options::new(), with()] {
        let found = found(options);
        assert!(found.iter().any(|f| f.what.contains("3 values are in log segment")), "{found:#?}");
    }
}

/// Damage in a table hid what is wrong with the large values behind it.
#[test]
fn a_damaged_block_hid_the_damaged_values_behind_it() {
    let root = tempdir().unwrap();
    let dir = root.path().join("db");
    let db = Options::new().open(&dir).unwrap();
    for n in 0..1000u32 {
        db.put(n.to_be_bytes(), row(n)).unwrap();
    }
    let large: Vec<u8> = (0..70_000u32).map(|n| (n.wrapping_mul(n) >> 7) as u8).collect();
    db.put("z", &large).unwrap();
    db.close().unwrap();
    let (mut tables, mut segments) = (tables(&dir), files::names(&dir));
    segments.retain(|name| name.ends_with(".log"));
    assert_eq!((tables.len(), segments.len()), (1, 1));
    let bytes = fs::read(dir.join(&segments[0])).unwrap();
    let at = bytes.windows(100).position(|w| w == &large[..100]).unwrap();
    flip(&dir.join(&segments[0]), at + 60_000);
    flip(&tables.remove(0), 4096 + 100);
    let found = Db::verify_path(&dir).unwrap().problems;
    assert!(found.iter().any(|f| f.file == segments[0]), "{found:#?}");
}

#[test]
fn repair_refuses_another_comparator_than_the_keyspaces() {
    let root = tempdir().unwrap();
    let (dir, _) = damaged_with_comparator(root.path());
    let before = files::contents(&dir);
    for options in [
        Options::new().keyspace_comparator("custom", KeyOrder::Reverse),
        Options::new().comparator(no_case()),
    ] {
        let e = options.repair(&dir).unwrap_err();
        assert!(matches!(e, Error::ComparatorMismatch { .. }), "{e}");
    }
    assert!(files::contents(&dir) == before);
}

/// Compares like `no_case` so many times, and then panics.
struct Panics(AtomicUsize);

impl Comparator for Panics {
    fn name(&self) -> &str {
        "test.nocase"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let left = self.0.fetch_update(Relaxed, Relaxed, |n| n.checked_sub(1));
        left.expect("a comparator that panics");
        a.to_ascii_lowercase().cmp(&b.to_ascii_lowercase())
    }
}

#[test]
fn a_comparator_that_panics_leaves_the_store_as_it_was() {
    let root = tempdir().unwrap();
    let (dir, want) = damaged_with_comparator(root.path());
    let before = files::contents(&dir);
    for calls in [0, 1, 100, 2000] {
        let order = KeyOrder::Custom(Arc::new(Panics(AtomicUsize::new(calls))));
        let ended = Options::new().keyspace_comparator("custom", order).repair(&dir);
        assert!(matches!(ended, Err(Error::ComparatorPanicked { .. })), "{calls}: {ended:?}");
        let now = files::contents(&dir);
        assert!(now == before, "{calls}: {:?}", now.keys());
    }
    Options::new().keyspace_comparator("custom", no_case()).repair(&dir).unwrap();
    let db = Options::new().keyspace_comparator("custom", no_case()).open(&dir).unwrap();
    assert!(of(&contents(&db), "custom") == of(&want, "custom"));
}

fn remove_manifest(dir: &Path) {
    for name in files::names(dir) {
        if name.starts_with("MANIFEST") || name == "CURRENT" {
            fs::remove_file(dir.join(name)).unwrap();
        }
    }
}

/// Tables of an order that repair did not know were "left as they are", and the next open removed
/// them.
#[test]
fn tables_of_an_unknown_order_are_kept_when_the_manifest_is_lost() {
    for given in [false, true] {
        let root = tempdir().unwrap();
        let dir = root.path().join("db");
        let db = Options::new().open(&dir).unwrap();
        let custom =
            db.create_keyspace("custom", KeyspaceOptions::new().comparator(no_case())).unwrap();
        for n in 0..500u32 {
            custom.put(key(n), row(n)).unwrap();
            db.put(key(n), row(n)).unwrap();
        }
        drop(custom);
        db.close().unwrap();
        remove_manifest(&dir);
        // The name is lost, the comparator's is in the tables.
        let with = || Options::new().keyspace_comparator("recovered-1", no_case());
        let report = if given { with().repair(&dir) } else { Db::repair(&dir) }.unwrap();
        assert_eq!(report.unchecked.is_empty(), given, "{report:#?}");
        let db = with().open(&dir).unwrap();
        assert_eq!(db.iter().count(), 500);
        assert_eq!(db.keyspace("recovered-1").unwrap().iter().count(), 500);
    }
}

/// The inputs of a merge beside what came out of it: neither is older, and one was dropped.
#[test]
fn tables_that_are_neither_older_nor_newer_are_merged() {
    let root = tempdir().unwrap();
    let (dir, before) = (root.path().join("db"), root.path().join("before"));
    let options = || Options::new().segment_size(64 << 10).memory(1 << 20);
    let db = options().open(&dir).unwrap();
    for round in 0..4u32 {
        for n in 0..1000u32 {
            db.put(key(n * 3 + round), row(n + round)).unwrap();
        }
        db.flush().unwrap();
    }
    let snapshot = db.snapshot();
    copy_as_killed(&dir, &before);
    db.put(key(1), "new").unwrap();
    db.compact_range::<&str>(..).unwrap();
    drop(snapshot);
    db.close().unwrap();
    let want = contents(&options().open(&dir).unwrap());
    for table in tables(&before) {
        fs::copy(&table, dir.join(table.file_name().unwrap())).unwrap();
    }
    remove_manifest(&dir);
    let report = Db::repair(&dir).unwrap();
    assert!(report.lost.iter().all(|l| l.file == "CURRENT" || l.file.is_empty()), "{report:#?}");
    let db = options().open(&dir).unwrap();
    assert!(contents(&db) == want);
    assert!(db.verify().unwrap().problems.is_empty());
}

#[test]
fn blocks_damaged_side_by_side_were_a_line_each() {
    let root = tempdir().unwrap();
    let dir = root.path().join("db");
    let db = Options::new().compression(Compression::None).open(&dir).unwrap();
    db.bulk_load((0..20_000).map(|n| (key(n), row(n)))).unwrap();
    db.close().unwrap();
    let table = tables(&dir).pop().unwrap();
    let mut bytes = fs::read(&table).unwrap();
    let middle = bytes.len() / 4..bytes.len() / 2;
    bytes[middle].fill(0);
    fs::write(&table, bytes).unwrap();
    let report = Db::repair(&dir).unwrap();
    // The one that is cut and those that are gone.
    assert!(report.lost.len() <= 2, "{:#?}", report.lost);
    let last = report.lost.last().unwrap();
    assert!(last.what.contains("blocks behind it"), "{last}");
    let (from, to) = (report.lost[0].keys.clone().unwrap().0, last.keys.clone().unwrap().1);
    let db = Options::new().open(&dir).unwrap();
    for n in 0..20_000 {
        let inside = from < key(n) && key(n) < to;
        assert_eq!(db.get(key(n)).unwrap().is_none(), inside, "{n}");
    }
}

/// Values packed with a dictionary are lost with it, and repair says so; the rest is saved.
#[test]
fn a_lost_dictionary_is_told() {
    let root = tempdir().unwrap();
    let dir = root.path().join("db");
    let db = Options::new().open(&dir).unwrap();
    for n in 0..5000 {
        db.put(key(n), row(n)).unwrap();
    }
    for n in 5000..6000u32 {
        db.put(key(n), n.to_be_bytes()).unwrap();
    }
    db.compact_range::<&str>(..).unwrap();
    db.wait_for_compactions().unwrap();
    db.close().unwrap();
    let table = tables(&dir).pop().unwrap();
    let len = fs::metadata(&table).unwrap().len() as usize;
    flip(&table, len - 1000);
    let verified = Db::verify_path(&dir).unwrap();
    let report = Db::repair(&dir).unwrap();
    assert_eq!(verified.entries, report.entries, "verify counted what nobody can read");
    assert!(verified.bytes > 20_000, "{} bytes looked at", verified.bytes);
    assert!((1..=5).contains(&report.lost.len()), "{:#?}", report.lost);
    assert!(report.lost.iter().all(|l| l.what.contains("dictionary")), "{:#?}", report.lost);
    assert!(report.lost.iter().all(|l| l.keys.is_some()));
    assert!((1000..6000).contains(&report.entries), "{} entries", report.entries);
    let db = Options::new().open(&dir).unwrap();
    for n in 5000..6000u32 {
        assert_eq!(db.get(key(n)).unwrap().unwrap(), n.to_be_bytes());
    }
    for n in 0..5000 {
        if let Some(value) = db.get(key(n)).unwrap() {
            assert_eq!(value, row(n).as_bytes());
        }
    }
}

#[test]
fn when_everything_is_lost_the_report_says_so_and_the_store_opens() {
    let root = tempdir().unwrap();
    let dir = root.path().join("db");
    closed(&dir, Options::new(), 2000);
    for name in files::names(&dir) {
        if name != "LOCK" {
            let len = fs::metadata(dir.join(&name)).unwrap().len() as usize;
            fs::write(dir.join(&name), vec![0xA5; len]).unwrap();
        }
    }
    let report = Db::repair(&dir).unwrap();
    assert!(report.changed && report.entries == 0 && report.tables == 0, "{report:#?}");
    let named = |end: &str| report.lost.iter().any(|l| l.file.ends_with(end));
    assert!(named(".tbl") && named("CURRENT"), "{:#?}", report.lost);
    assert!(report.lost.iter().any(|l| l.file.starts_with("MANIFEST")), "{:#?}", report.lost);
    let db = Options::new().open(&dir).unwrap();
    assert_eq!(db.iter().count(), 0);
    assert!(tables(&dir.join("lost")).len() == 1);
}

#[test]
fn repair_took_the_blocks_of_another_table_for_those_of_the_one_in_whose_place_they_lie() {
    let root = tempdir().unwrap();
    // Where it is cut off says how much there is to tell whose blocks they are: nothing behind
    // them, the properties without a footer, a part of the footer.
    for cut in [usize::MAX, 200, 100, 90, 12, 1] {
        let dir = root.path().join(cut.to_string());
        let db = Options::new().open(&dir).unwrap();
        let other = db.create_keyspace("other", KeyspaceOptions::new()).unwrap();
        for n in 0..400 {
            db.put(key(n), "of the first").unwrap();
            other.put(key(n), "of the second").unwrap();
        }
        db.compact_range::<&str>(..).unwrap();
        other.compact_range::<&str>(..).unwrap();
        db.wait_for_compactions().unwrap();
        drop(other);
        db.close().unwrap();
        let both = tables(&dir);
        assert_eq!(both.len(), 2);
        let mut bytes = fs::read(&both[0]).unwrap();
        let blocks = bytes.len() / 4096 / 2 * 4096;
        bytes.truncate(bytes.len().saturating_sub(cut).max(blocks));
        for table in &both {
            fs::write(table, &bytes).unwrap();
        }
        let whole = Db::verify_path(&dir).unwrap();
        let report = Db::repair(&dir).unwrap();
        assert!(!report.lost.is_empty());
        let db = Db::open(&dir).unwrap();
        let wrong = |((keyspace, _), value): &(&(String, Vec<u8>), &Vec<u8>)| {
            (keyspace == "default") != (&value[..] == b"of the first")
        };
        let found = contents(&db);
        assert_eq!(found.iter().find(wrong), None, "cut {cut}: an entry of the other keyspace");
        assert_eq!(found.len() as u64, whole.entries, "cut {cut}: verification counted others");
    }
}

/// What a flush put into tables is given back to the file system, in the middle of segments that keep
/// large values. A log so shortened looks as if nobody had finished writing it, so whoever lost the edits
/// of the manifest that moved the log's start must not take it for one.
#[test]
fn a_manifest_without_its_end_answered_from_a_log_with_holes() {
    let root = tempdir().unwrap();
    let (path, left) = (root.path().join("db"), root.path().join("left"));
    let options = Options::new().segment_size(64 << 10).blob_threshold(1000);
    let db = options.open(&path).unwrap();
    for n in 0..300 {
        let value = if n == 6 { "a long value ".repeat(300) } else { row(n) };
        db.put(key(n), value).unwrap();
    }
    db.flush().unwrap();
    // The pages behind the long value.
    let first = path.join("0000000001.log");
    let punched = || fs::read(&first).unwrap()[12 << 10..][..4096].iter().all(|b| *b == 0);
    let since = std::time::Instant::now();
    while !punched() && since.elapsed().as_secs() < 20 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(punched(), "the flushed part of the log is still there");
    copy_as_killed(&path, &left);
    let whole = contents(&db);
    let manifest = left.join("MANIFEST-0000000001");
    let bytes = fs::read(&manifest).unwrap();
    for cut in 0..bytes.len() {
        fs::write(&manifest, &bytes[..cut]).unwrap();
        if let Ok(db) = Options::new().read_only(true).open(&left) {
            assert!(contents(&db) == whole, "{} entries, cut to {cut} bytes", db.iter().count());
        }
    }
}

/// A store that was killed has inputs of compactions beside what came out of them, and both point to the same values. Without a
/// manifest a repair has to keep them all. A compaction that then dropped the older of two entries gave its value's space
/// back, into which the newer one led too.
#[test]
fn a_value_that_two_tables_of_a_repaired_store_had_was_given_back() {
    let root = tempdir().unwrap();
    let (alive, killed) = (root.path().join("alive"), root.path().join("killed"));
    let options = Options::new().segment_size(64 << 10).blob_threshold(1000);
    let db = options.clone().open(&alive).unwrap();
    let other = db.create_keyspace("other", KeyspaceOptions::new()).unwrap();
    for n in 0..100u32 {
        // What lies between large values is given back with the flush: such a log cannot be read again.
        for small in 0..80 {
            db.put(key(10_000 + 100 * n + small), row(small)).unwrap();
        }
        db.put(key(n), vec![n as u8; 5000]).unwrap();
        other.put(key(n), vec![n as u8; 5000]).unwrap();
    }
    db.flush().unwrap();
    // A compaction may remove one between the list and its reading: then they are listed anew.
    let read = |t: PathBuf| fs::read(&t).ok().map(|bytes| (t, bytes));
    let all = || tables(&alive).into_iter().map(read).collect::<Option<Vec<(PathBuf, Vec<u8>)>>>();
    let inputs = (0..100).find_map(|_| all()).unwrap();
    // So that there is something to merge: what comes out has no sequences any more.
    db.put(key(1000), "a new one").unwrap();
    other.put(key(1000), "a new one").unwrap();
    for keyspace in [db.default_keyspace(), &other] {
        keyspace.compact_range::<&str>(..).unwrap();
    }
    db.wait_for_compactions().unwrap();
    let expected = contents(&db);
    copy_as_killed(&alive, &killed);
    drop(other);
    db.close().unwrap();
    for (path, bytes) in &inputs {
        fs::write(killed.join(path.file_name().unwrap()), bytes).unwrap();
    }
    assert!(tables(&killed).len() > tables(&alive).len(), "compactions wrote nothing");

    fs::remove_file(killed.join("MANIFEST-0000000001")).unwrap();
    Db::repair(&killed).unwrap();
    let of_default = |contents: &Contents| -> Vec<(Vec<u8>, Vec<u8>)> {
        let own = contents.iter().filter(|((name, _), _)| name == "default");
        own.map(|((_, key), value)| (key.clone(), value.clone())).collect()
    };
    // Again after it was closed: what a repair had to guess stays known.
    for write in ["one more", "and another"] {
        let db = options.clone().open(&killed).unwrap();
        assert!(of_default(&contents(&db)) == of_default(&expected));
        db.put(key(1000), write).unwrap();
        db.compact_range::<&str>(..).unwrap();
        db.put(key(1000), "a new one").unwrap();
        db.wait_for_compactions().unwrap();
        assert!(of_default(&contents(&db)) == of_default(&expected), "{write}");
        // The other keyspace has lost its name.
        let lost = db.keyspaces().into_iter().find(|name| name != "default");
        if let Some(lost) = lost.filter(|_| write == "and another") {
            db.drop_keyspace(&lost).unwrap();
        }
        db.close().unwrap();
        assert_eq!(Db::verify_path(&killed).unwrap().problems, [], "{write}");
    }
}

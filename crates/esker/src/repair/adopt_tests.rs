//! Stores whose manifest names files that are missing: which others a repair takes up, where it puts them, and what it
//! says was lost.

use std::path::Path;
use std::sync::Arc;

use super::{RepairReport, repair};
use crate::env::sim::{Cut, Rng, SimEnv};
use crate::env::{Env, OpenMode};
use crate::key::KeyOrder;
use crate::version::{Change, VersionEdit};
use crate::wal::Segment;
use crate::{Comparator, Db, KeyspaceOptions, Options, filename};

pub(super) const DIR: &str = "/db";

struct Unknown;

impl Comparator for Unknown {
    fn name(&self) -> &str {
        "test.unknown"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
        a.cmp(b)
    }
}

fn unknown() -> KeyOrder {
    KeyOrder::Custom(Arc::new(Unknown))
}

pub(super) fn new_store(seed: u64) -> (SimEnv, Db) {
    let env = SimEnv::new(seed, true);
    env.create_dir(Path::new(DIR)).unwrap();
    let db = open(&env);
    (env, db)
}

pub(super) fn open(env: &SimEnv) -> Db {
    env.forget_failures();
    let options = Options::new().memory(1 << 20).keyspace_comparator("custom", unknown());
    Db::open_in(Arc::new(env.clone()), Path::new(DIR), options).unwrap()
}

pub(super) fn run(env: &SimEnv) -> RepairReport {
    env.forget_failures();
    repair(Arc::new(env.clone()), Path::new(DIR), &Options::new()).unwrap()
}

/// A copy of the disk as it is.
pub(super) fn copy(env: &SimEnv) -> SimEnv {
    env.freeze().draw(Cut::Kill, &mut Rng::new(0), true).0
}

pub(super) fn tables(env: &SimEnv) -> Vec<String> {
    let mut names = env.list(Path::new(DIR)).unwrap();
    names.retain(|n| n.ends_with(".tbl"));
    names.sort();
    names
}

pub(super) fn read(env: &SimEnv, name: &str) -> Vec<u8> {
    let file = env.open(&Path::new(DIR).join(name), OpenMode::Read).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

pub(super) fn put_back(env: &SimEnv, name: &str, bytes: &[u8]) {
    let file = env.open(&Path::new(DIR).join(name), OpenMode::CreateNew).unwrap();
    file.write_all_at(bytes, 0).unwrap();
    file.sync().unwrap();
}

pub(super) fn remove(env: &SimEnv, name: &str) {
    env.remove(&Path::new(DIR).join(name)).unwrap();
}

/// Does `f`, and gives the table that it makes.
pub(super) fn table_of(env: &SimEnv, f: impl FnOnce()) -> String {
    let before = tables(env);
    f();
    let mut made = tables(env);
    made.retain(|n| !before.contains(n));
    assert_eq!(made.len(), 1, "{made:?}");
    made.remove(0)
}

/// What a repair put under `lost/`.
pub(super) fn put_aside(env: &SimEnv) -> Vec<String> {
    env.list(&Path::new(DIR).join(filename::LOST)).unwrap_or_default()
}

/// Writes what the memtables of a keyspace hold to tables, in this thread.
pub(super) fn flush(db: &Db, keyspace: &str) {
    let store = db.store();
    let ks = store.all_keyspaces().into_iter().find(|ks| ks.name == keyspace).unwrap();
    store.seal_active().unwrap();
    store.flush_upto(&ks, store.active_number()).unwrap();
}

/// Has the manifest know nothing of these tables, and not that it once did.
pub(super) fn forget(db: &Db, keyspace: &str, names: &[&String]) {
    let mut version_set = db.store().version_set.lock();
    let manifest = version_set.manifest_mut().unwrap();
    let keyspace = manifest.state().keyspace(keyspace).unwrap().id;
    let number = |name: &&String| filename::table_number(name).unwrap();
    let forget = |name| Change::RemoveTable { keyspace, number: number(name) };
    manifest.append(&VersionEdit::from(names.iter().map(forget).collect::<Vec<_>>())).unwrap();
    manifest.replace().unwrap();
}

pub(super) fn get(db: &Db, key: &str) -> Option<Vec<u8>> {
    db.get(key).unwrap().map(|v| v.to_vec())
}

/// That of a keyspace which was lost made a repair take up all tables that no manifest named, those too that the
/// manifest said were merged into others.
#[test]
fn deleted_keys_came_back_from_a_merged_table_when_another_was_missing() {
    let (env, db) = new_store(1);
    let other = db.create_keyspace("other", KeyspaceOptions::new()).unwrap();
    other.put("gone", "1").unwrap();
    let gone = table_of(&env, || db.flush().unwrap());
    db.put("k", "old").unwrap();
    db.put("d", "deleted").unwrap();
    let merged = table_of(&env, || db.flush().unwrap());
    let bytes = read(&env, &merged);
    db.put("k", "new").unwrap();
    db.delete("d").unwrap();
    db.compact_range::<&str>(..).unwrap();
    drop(other);
    db.close().unwrap();
    let left = copy(&env);
    assert!(!tables(&left).contains(&merged));
    put_back(&left, &merged, &bytes);
    remove(&left, &gone);
    let report = run(&left);
    assert!(report.lost.iter().any(|l| l.file == gone), "{report:#?}");
    let db = open(&left);
    assert_eq!((get(&db, "k").unwrap(), get(&db, "d")), (b"new".to_vec(), None));
    assert_eq!(db.keyspace("other").unwrap().get("gone").unwrap(), None);
    assert!(!tables(&left).contains(&merged) && put_aside(&left).contains(&merged));
}

/// The same with a manifest that says no more of the dropped keyspace than which ids were used.
#[test]
fn a_dropped_keyspace_came_back_from_a_table_that_was_left() {
    for rewritten in [false, true] {
        let (env, db) = new_store(2);
        let dropped = db.create_keyspace("dropped", KeyspaceOptions::new()).unwrap();
        dropped.put("k", "v").unwrap();
        let left_over = table_of(&env, || db.flush().unwrap());
        let bytes = read(&env, &left_over);
        drop(dropped);
        db.put("gone", "1").unwrap();
        let gone = table_of(&env, || db.flush().unwrap());
        db.drop_keyspace("dropped").unwrap();
        if rewritten {
            db.store().version_set.lock().manifest_mut().unwrap().replace().unwrap();
        }
        db.close().unwrap();
        let left = copy(&env);
        remove(&left, &gone);
        put_back(&left, &left_over, &bytes);
        let report = run(&left);
        assert!(report.lost.iter().any(|l| l.file == gone), "{report:#?}");
        assert!(report.lost.iter().all(|l| l.file != left_over), "{report:#?}");
        let db = open(&left);
        assert_eq!(db.keyspaces(), ["default"], "rewritten: {rewritten}");
        assert!(!tables(&left).contains(&left_over) && put_aside(&left).contains(&left_over));
    }
}

/// Where the manifest lost its end what it let go of is as unknown as what came instead: all of it is taken up.
#[test]
fn tables_behind_the_lost_end_of_a_manifest_are_taken_up() {
    let (env, db) = new_store(3);
    db.put("k", "old").unwrap();
    db.flush().unwrap();
    let manifest = env.list(Path::new(DIR)).unwrap();
    let manifest = manifest.into_iter().find(|n| n.starts_with("MANIFEST")).unwrap();
    let len = read(&env, &manifest).len() as u64;
    db.put("k", "new").unwrap();
    db.put("other", "1").unwrap();
    db.compact_range::<&str>(..).unwrap();
    let left = copy(&env);
    let path = Path::new(DIR).join(&manifest);
    let file = left.open(&path, OpenMode::ReadWrite).unwrap();
    file.set_len(len).unwrap();
    file.sync().unwrap();
    let report = run(&left);
    assert!(report.changed && !report.lost.is_empty(), "{report:#?}");
    let db = open(&left);
    assert_eq!(
        (get(&db, "k").unwrap(), get(&db, "other").unwrap()),
        (b"new".to_vec(), b"1".to_vec())
    );
}

/// Each became the newest of its keyspace, in the order of their numbers.
#[test]
fn an_older_table_was_put_above_a_newer_one_where_the_comparator_was_not_given() {
    let (env, db) = new_store(4);
    db.put("gone", "1").unwrap();
    let gone = table_of(&env, || db.flush().unwrap());
    let options = KeyspaceOptions::new().comparator(unknown());
    let custom = db.create_keyspace("custom", options).unwrap();
    let mut made = Vec::new();
    let store = db.store();
    // Nothing is flushed but what this thread flushes, and nothing merged.
    let job = store.jobs.lock();
    for value in ["oldest", "older", "old", "new", "newest"] {
        custom.put("k", value).unwrap();
        made.push(table_of(&env, || flush(&db, "custom")));
    }
    forget(&db, "custom", &[&made[0], &made[2], &made[4]]);
    let left = copy(&env);
    drop(job);
    remove(&left, &gone);
    let report = run(&left);
    assert!(report.changed && report.unchecked.len() == 1, "{report:#?}");
    let db = open(&left);
    let custom = db.keyspace("custom").unwrap();
    assert_eq!(custom.get("k").unwrap().unwrap().as_ref(), b"newest");
    let stats = db.stats();
    let runs = &stats.keyspaces.iter().find(|k| k.name == "custom").unwrap().runs;
    assert_eq!(runs.len(), 5, "{runs:#?}");
    let numbers: Vec<String> = (db.store().version_set.lock().state().keyspace("custom").unwrap())
        .version
        .tables()
        .map(|t| filename::table(t.number))
        .collect();
    made.reverse();
    assert_eq!(numbers, made, "newest first");
    // What is flushed next is above them all.
    custom.put("k", "again").unwrap();
    db.flush().unwrap();
    assert_eq!(custom.get("k").unwrap().unwrap().as_ref(), b"again");
}

/// A bulk load that no manifest names has no sequence, and was taken for the oldest of all.
#[test]
fn a_bulk_load_was_put_below_all_others_where_the_comparator_was_not_given() {
    let (env, db) = new_store(9);
    db.put("gone", "1").unwrap();
    let gone = table_of(&env, || db.flush().unwrap());
    let options = KeyspaceOptions::new().comparator(unknown());
    let custom = db.create_keyspace("custom", options).unwrap();
    // Entries of the oldest run have no sequences either.
    custom.put("a", "oldest").unwrap();
    flush(&db, "custom");
    custom.put("k", "old").unwrap();
    custom.put("l", "old").unwrap();
    flush(&db, "custom");
    let loaded = table_of(&env, || {
        custom.bulk_load([("k", "loaded"), ("l", "loaded")]).unwrap();
    });
    let job = db.store().jobs.lock();
    custom.put("l", "newest").unwrap();
    flush(&db, "custom");
    forget(&db, "custom", &[&loaded]);
    let left = copy(&env);
    drop(job);
    remove(&left, &gone);
    let report = run(&left);
    assert!(report.changed && report.unchecked.len() == 1, "{report:#?}");
    let db = open(&left);
    let custom = db.keyspace("custom").unwrap();
    let read = || {
        let entries = custom.iter().copied_out().map(|e| e.unwrap().1);
        entries.chain(["a", "k", "l"].map(|k| custom.get(k).unwrap().unwrap().to_vec())).collect()
    };
    let want: Vec<Vec<u8>> = ["oldest", "loaded", "newest"]
        .repeat(2)
        .into_iter()
        .map(|v| v.as_bytes().to_vec())
        .collect();
    let found: Vec<Vec<u8>> = read();
    assert_eq!(found, want);
    custom.compact_range::<&str>(..).unwrap();
    let found: Vec<Vec<u8>> = read();
    assert_eq!(found, want, "merged");
}

/// A value that stays in the log, as it cannot be packed.
fn large(seed: u32) -> Vec<u8> {
    (seed..seed + 40_000).map(|n| (n.wrapping_mul(n ^ 0x9E37_79B9) >> 13) as u8).collect()
}

/// Where a table was missing each segment was read for itself: that one was missing among them was a problem, and no
/// loss.
#[test]
fn a_missing_segment_was_no_loss_where_a_table_was_missing_too() {
    let (env, db) = new_store(5);
    db.put("gone", "1").unwrap();
    let gone = table_of(&env, || db.flush().unwrap());
    let store = db.store();
    let _job = store.jobs.lock();
    let mut numbers = Vec::new();
    for key in ["first", "second", "third"] {
        numbers.push(store.active_number());
        db.put(key, "1").unwrap();
        db.sync().unwrap();
        store.seal_active().unwrap();
    }
    let left = copy(&env);
    remove(&left, &gone);
    let missing = filename::segment(numbers[1]);
    remove(&left, &missing);
    let report = run(&left);
    assert!(report.lost.iter().any(|l| l.file == missing), "{report:#?}");
    assert!(report.lost.iter().any(|l| l.file == gone), "{report:#?}");
    let db = open(&left);
    assert!(get(&db, "first").is_some() && get(&db, "third").is_some());
}

/// Where a table was missing, the segments that the log does not lead to were read up to their first bad frame, or
/// where that is the first of all not looked at. The next open removed them with all that lay behind it.
#[test]
fn entries_behind_a_bad_frame_were_lost_in_silence_where_a_table_was_missing_too() {
    // The frame that is bad in each, and whether the segment before them is missing: the first of the two is then
    // one that the log does not lead to either.
    for (frame, missing) in [(0, false), (4, false), (0, true), (4, true)] {
        let (env, db) = new_store(8);
        db.put("gone", "1").unwrap();
        let gone = table_of(&env, || db.flush().unwrap());
        let store = db.store();
        let _job = store.jobs.lock();
        let mut numbers = Vec::new();
        for segment in 0..4 {
            numbers.push(store.active_number());
            for n in 0..9 {
                db.put(format!("{segment} {n}"), "1").unwrap();
            }
            db.sync().unwrap();
            store.seal_active().unwrap();
        }
        let left = copy(&env);
        remove(&left, &gone);
        if missing {
            remove(&left, &filename::segment(numbers[0]));
        }
        let shared: Arc<dyn Env> = Arc::new(left.clone());
        for number in &numbers[1..3] {
            let opened = Segment::open(&shared, Path::new(DIR), *number, false).unwrap();
            let at = opened.frames().nth(frame).unwrap().offset;
            drop(opened);
            let path = Path::new(DIR).join(filename::segment(*number));
            let file = left.open(&path, OpenMode::ReadWrite).unwrap();
            file.write_all_at(&[0xA5; 8], at).unwrap();
            file.sync().unwrap();
        }
        let report = run(&left);
        let what = format!("frame {frame}, missing: {missing}: {report:#?}");
        for number in &numbers[1..3] {
            let name = filename::segment(*number);
            assert!(report.lost.iter().any(|l| l.file == name), "{name}, {what}");
            assert!(put_aside(&left).contains(&name), "{name}, {what}");
        }
        let db = open(&left);
        for (segment, saved) in [(0, if missing { 0 } else { 9 }), (1, frame), (2, frame), (3, 9)] {
            let found = (0..9).filter(|n| get(&db, &format!("{segment} {n}")).is_some());
            assert_eq!(found.count(), saved, "segment {segment}, {what}");
        }
    }
}

/// What lay between large values had been given back to the file system when all of it was in tables.
#[test]
fn what_a_segment_gave_back_was_called_lost_where_a_table_was_missing() {
    let (env, db) = new_store(6);
    let other = db.create_keyspace("other", KeyspaceOptions::new()).unwrap();
    other.put("gone", "1").unwrap();
    let gone = table_of(&env, || db.flush().unwrap());
    for round in 0..3u32 {
        for n in 0..500u32 {
            db.put((n + round * 500).to_be_bytes(), [1; 60]).unwrap();
        }
        db.put(format!("large {round}"), large(round)).unwrap();
        db.put(format!("small {round}"), "1").unwrap();
    }
    drop(other);
    db.flush().unwrap();
    db.close().unwrap();
    let left = copy(&env);
    remove(&left, &gone);
    let report = run(&left);
    let of_segments = report.lost.iter().filter(|l| l.file.ends_with(".log")).count();
    assert_eq!(of_segments, 0, "{report:#?}");
    assert!(report.lost.iter().any(|l| l.file == gone), "{report:#?}");
    let db = open(&left);
    for round in 0..3 {
        assert_eq!(get(&db, &format!("large {round}")).unwrap(), large(round));
    }
    assert_eq!(db.iter().count(), 1506);
}

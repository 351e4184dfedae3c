//! Repairs that a crash or a failing call cuts short: the old store is still there, or the new one
//! is complete.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::{RepairReport, repair};
use crate::env::sim::{CallKind, CrashPoints, Cut, Fault, FaultPlan, Rng, SimEnv};
use crate::env::{Env, OpenMode};
use crate::filename;
use crate::verify::verify_path;
use crate::version::Orders;
use crate::wal::{End, Segment};
use crate::{Comparator, Db, KeyOrder, KeyspaceOptions, Options, Result};

const DIR: &str = "/db";

struct Plain;

impl Comparator for Plain {
    fn name(&self) -> &str {
        "test.plain"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
        a.cmp(b)
    }
}

fn options() -> Options {
    Options::new()
        .memory(1 << 20)
        .segment_size(64 << 10)
        .keyspace_comparator("custom", KeyOrder::Custom(Arc::new(Plain)))
}

fn run(env: &SimEnv) -> Result<RepairReport> {
    env.forget_failures();
    // Without the comparator: the keyspace's log is carried over.
    repair(Arc::new(env.clone()), Path::new(DIR), &Options::new())
}

fn open(env: &SimEnv) -> Result<Db> {
    env.forget_failures();
    Db::open_in(Arc::new(env.clone()), Path::new(DIR), options())
}

type Contents = BTreeMap<(String, Vec<u8>), Vec<u8>>;

fn contents(db: &Db) -> Contents {
    let mut all = Contents::new();
    for name in db.keyspaces() {
        for entry in db.keyspace(&name).unwrap().iter().copied_out() {
            let (key, value) = entry.unwrap();
            all.insert((name.clone(), key), value);
        }
    }
    all
}

/// A store with tables and, unless it was closed, a log, of which one block is damaged; and what it
/// held before.
fn damaged(seed: u64, closed: bool) -> (SimEnv, Contents) {
    let env = SimEnv::new(seed, true);
    env.create_dir(Path::new(DIR)).unwrap();
    let db = open(&env).unwrap();
    let order = KeyOrder::Custom(Arc::new(Plain));
    let custom = db.create_keyspace("custom", KeyspaceOptions::new().comparator(order)).unwrap();
    for n in 0..500u32 {
        db.put(n.to_be_bytes(), [n as u8; 60]).unwrap();
        custom.put(n.to_be_bytes(), [1; 30]).unwrap();
    }
    db.flush().unwrap();
    for n in 300..700u32 {
        db.put(n.to_be_bytes(), [2; 60]).unwrap();
        custom.put(n.to_be_bytes(), [3; 30]).unwrap();
    }
    drop(custom);
    let held = contents(&db);
    if closed {
        db.close().unwrap();
    } else {
        db.sync().unwrap();
    }
    let left = env.freeze().draw(Cut::Kill, &mut Rng::new(seed), true).0;
    damage_first_table(&left, 4096 + 40);
    (left, held)
}

/// The table with the lowest number gets eight wrong bytes at `offset`.
fn damage_first_table(env: &SimEnv, offset: u64) {
    let names = env.list(Path::new(DIR)).unwrap();
    let table = names.iter().filter(|n| n.ends_with(".tbl")).min().unwrap();
    let file = env.open(&Path::new(DIR).join(table), OpenMode::ReadWrite).unwrap();
    file.write_all_at(&[0xA5; 8], offset).unwrap();
    file.sync().unwrap();
    env.sync_dir(Path::new(DIR)).unwrap();
}

/// A copy of the disk as it is.
fn copy(env: &SimEnv) -> SimEnv {
    env.freeze().draw(Cut::Kill, &mut Rng::new(0), true).0
}

fn repaired(env: &SimEnv) -> Contents {
    let report = run(env).unwrap();
    assert!(report.changed && report.unchecked.len() == 1, "{report:#?}");
    contents(&open(env).unwrap())
}

/// All that a repair saves is there, and nothing that the store did not hold.
fn check(found: &Contents, want: &Contents, held: &Contents, what: &str) {
    let missing = want.iter().find(|(k, v)| found.get(*k) != Some(*v));
    assert!(missing.is_none(), "{what}: {:?} is missing", missing.map(|e| e.0));
    let wrong = found.iter().find(|(k, v)| held.get(*k) != Some(*v));
    assert!(wrong.is_none(), "{what}: {:?} is wrong", wrong.map(|e| e.0));
}

#[test]
fn a_crash_leaves_the_old_store_or_the_new_one() {
    for closed in [false, true] {
        let (start, held) = damaged(1, closed);
        let want = repaired(&copy(&start));
        assert!(want.len() > 1000);
        let env = copy(&start);
        env.set_crash_points(CrashPoints::Always);
        run(&env).unwrap();
        let moments = env.take_frozen();
        assert!(moments.len() > 15, "{} moments", moments.len());
        for (at, moment) in moments.iter().enumerate() {
            for cut in [Cut::Kill, Cut::Nothing, Cut::Names, Cut::Random] {
                let (left, story) = moment.draw(cut, &mut Rng::new(at as u64), true);
                let what = format!("closed: {closed}, moment {at}, {story}");
                // Damaged or not, it opens.
                drop(open(&copy(&left)).unwrap_or_else(|e| panic!("{what}: {e}")));
                let report = run(&left).unwrap_or_else(|e| panic!("{what}: {e}"));
                assert!(report.lost.len() <= 1, "{what}: {report:#?}");
                let found = contents(&open(&left).unwrap_or_else(|e| panic!("{what}: {e}")));
                check(&found, &want, &held, &what);
            }
        }
    }
}

fn tables(env: &SimEnv) -> Vec<String> {
    let mut names = env.list(Path::new(DIR)).unwrap();
    names.retain(|n| n.ends_with(".tbl"));
    names.sort();
    names
}

/// Whether the manifest in force is that of the other.
fn manifest_is(env: &SimEnv, other: &SimEnv) -> bool {
    let line = |env: &SimEnv| {
        let file = env.open(&Path::new(DIR).join("CURRENT"), OpenMode::Read).ok()?;
        let mut line = vec![0; file.len().ok()? as usize];
        file.read_exact_at(&mut line, 0).ok()?;
        Some(line)
    };
    line(env) == line(other)
}

#[test]
fn an_error_leaves_the_old_store_or_the_new_one() {
    for closed in [false, true] {
        let (start, held) = damaged(2, closed);
        let want = repaired(&copy(&start));
        let mut at = 0;
        loop {
            let env = copy(&start);
            let from = env.call_count();
            let (fault, from_then_on) = (Fault::Enospc, at % 2 == 0);
            env.fail(Some(FaultPlan { at: from + at, fault, from_then_on }));
            drop(run(&env));
            let calls = env.calls();
            let struck = calls.iter().any(|c| c.failed);
            // A failed rename tells nobody which is in force.
            let renamed = calls.iter().any(|c| c.failed && c.kind == CallKind::Rename);
            env.fail(None);
            if !struck {
                assert!(at > 50, "{at} calls");
                break;
            }
            drop(open(&copy(&env)).unwrap_or_else(|e| panic!("call {at}: {e}")));
            // Each try of a repair on a full disk left what it had written, and the disk fuller.
            if manifest_is(&env, &start) && !from_then_on && !renamed {
                assert_eq!(tables(&env), tables(&start), "closed: {closed}, call {at}");
            }
            run(&env).unwrap_or_else(|e| panic!("call {at}, again: {e}"));
            let found = contents(&open(&env).unwrap_or_else(|e| panic!("call {at}: {e}")));
            check(&found, &want, &held, &format!("closed: {closed}, call {at}"));
            at += 1;
        }
    }
}

#[test]
fn a_log_of_many_segments_becomes_few_runs() {
    let env = SimEnv::new(3, true);
    env.create_dir(Path::new(DIR)).unwrap();
    let options = Options::new().segment_size(64 << 10);
    let db = Db::open_in(Arc::new(env.clone()), Path::new(DIR), options).unwrap();
    for n in 0..20_000u32 {
        db.put((n * 7919 % 5000).to_be_bytes(), n.to_be_bytes().repeat(20)).unwrap();
    }
    let want = contents(&db);
    let left = copy(&env);
    let names = left.list(Path::new(DIR)).unwrap();
    assert!(names.iter().filter(|n| n.ends_with(".log")).count() > 20, "{names:?}");
    for name in names.iter().filter(|n| n.starts_with("MANIFEST") || *n == "CURRENT") {
        left.remove(&Path::new(DIR).join(name)).unwrap();
    }
    run(&left).unwrap();
    let db = Db::open_in(Arc::new(left), Path::new(DIR), Options::new()).unwrap();
    let runs = db.stats().keyspaces[0].runs.len();
    assert!(runs <= 9, "{runs} runs");
    assert!(contents(&db) == want);
}

fn remove_all(env: &SimEnv, gone: impl Fn(&str) -> bool) {
    for name in env.list(Path::new(DIR)).unwrap().iter().filter(|n| gone(n)) {
        env.remove(&Path::new(DIR).join(name)).unwrap();
    }
}

/// A value that stays in the log, as it cannot be packed.
fn large() -> Vec<u8> {
    (0..40_000u32).map(|n| (n.wrapping_mul(n ^ 0x9E37_79B9) >> 13) as u8).collect()
}

/// One keyspace was flushed further than the other. What it has in the segments that are kept for the other was
/// replayed into memory, above its tables.
#[test]
fn an_older_version_came_back_from_a_log_that_another_keyspace_needed() {
    let env = SimEnv::new(4, true);
    env.create_dir(Path::new(DIR)).unwrap();
    let plain = || KeyspaceOptions::new().comparator(KeyOrder::Custom(Arc::new(Plain)));
    let options = || options().keyspace_comparator("other", KeyOrder::Custom(Arc::new(Plain)));
    let db = Db::open_in(Arc::new(env.clone()), Path::new(DIR), options()).unwrap();
    let custom = db.create_keyspace("custom", plain()).unwrap();
    let other = db.create_keyspace("other", plain()).unwrap();
    db.put("default", "table").unwrap();
    db.flush().unwrap();
    let store = db.store();
    // Nothing is flushed but what this thread flushes.
    let job = store.jobs.lock();
    custom.put("key", "old").unwrap();
    other.put("other", "kept").unwrap();
    store.seal_active().unwrap();
    custom.put("key", "new").unwrap();
    store.seal_active().unwrap();
    let ks = store.all_keyspaces().into_iter().find(|ks| ks.name == "custom").unwrap();
    store.flush_upto(&ks, store.active_number()).unwrap();
    let left = copy(&env);
    drop(job);
    damage_first_table(&left, 0);
    let report = run(&left).unwrap();
    assert!(report.changed && report.unchecked.len() == 2, "{report:#?}");
    env.forget_failures();
    let db = Db::open_in(Arc::new(left), Path::new(DIR), options()).unwrap();
    let get = |ks: &str, key: &str| db.keyspace(ks).unwrap().get(key).unwrap().map(|v| v.to_vec());
    assert_eq!(get("other", "other").unwrap(), b"kept");
    assert_eq!(get("custom", "key").unwrap(), b"new");
}

/// A segment that is kept for a large value was refused, as its entries are in tables, and the segment after it, which
/// is not in tables, was refused with it, and nobody said so.
#[test]
fn a_segment_was_lost_in_silence_with_the_refused_one_before_it() {
    let env = SimEnv::new(5, true);
    env.create_dir(Path::new(DIR)).unwrap();
    let db = open(&env).unwrap();
    let order = KeyOrder::Custom(Arc::new(Plain));
    let custom = db.create_keyspace("custom", KeyspaceOptions::new().comparator(order)).unwrap();
    custom.put("large", "before").unwrap();
    // For its sake the table keeps the sequence of what comes next.
    let _snapshot = db.snapshot();
    custom.put("large", large()).unwrap();
    db.flush().unwrap();
    custom.put("key", "only in the log").unwrap();
    let left = copy(&env);
    remove_all(&left, |name| name.starts_with("MANIFEST") || name == "CURRENT");
    let report = run(&left).unwrap();
    assert!(report.lost.iter().any(|l| l.what.contains("may be in its tables")), "{report:#?}");
    let order = KeyOrder::Custom(Arc::new(Plain));
    let options = Options::new().keyspace_comparator("recovered-1", order);
    let db = Db::open_in(Arc::new(left), Path::new(DIR), options).unwrap();
    let custom = db.keyspace("recovered-1").unwrap();
    assert_eq!(custom.get("large").unwrap().unwrap().as_ref(), large());
    assert_eq!(custom.get("key").unwrap().unwrap().as_ref(), b"only in the log");
}

/// A store with a log of several segments, of which one also holds a large value that a table points to.
fn with_segments(seed: u64) -> (SimEnv, Contents) {
    let env = SimEnv::new(seed, true);
    env.create_dir(Path::new(DIR)).unwrap();
    let db = open(&env).unwrap();
    let store = db.store();
    db.put("large", large()).unwrap();
    db.flush().unwrap();
    let _job = store.jobs.lock();
    for n in 0..3000u32 {
        db.put(n.to_be_bytes(), n.to_le_bytes().repeat(10)).unwrap();
        if n % 1000 == 500 {
            store.seal_active().unwrap();
        }
    }
    (copy(&env), contents(&db))
}

fn segments(env: &SimEnv) -> Vec<String> {
    let mut names = env.list(Path::new(DIR)).unwrap();
    names.retain(|n| n.ends_with(".log"));
    names.sort();
    names
}

/// Of a store that holds `want` after a repair, which says that nothing is lost.
fn nothing_is_lost(left: SimEnv, want: &Contents, what: &str) {
    let report = run(&left).unwrap();
    assert!(report.changed && report.lost.is_empty(), "{what}: {report:#?}");
    let db = Db::open_in(Arc::new(left), Path::new(DIR), Options::new()).unwrap();
    assert!(contents(&db) == *want, "{what}");
}

#[test]
fn a_bit_of_a_header_cost_all_that_a_segment_held() {
    let (env, want) = with_segments(6);
    let names = segments(&env);
    assert!(names.len() > 3, "{names:?}");
    for name in names {
        let left = copy(&env);
        let file = left.open(&Path::new(DIR).join(&name), OpenMode::ReadWrite).unwrap();
        file.write_all_at(&[0xA5; 8], 32).unwrap();
        file.sync().unwrap();
        // One that was made ahead, and in which there is nothing.
        let found =
            verify_path(Arc::new(left.clone()), Path::new(DIR), &Orders::default(), &mut |_, _| {});
        if found.unwrap().problems.is_empty() {
            continue;
        }
        nothing_is_lost(left, &want, &name);
    }
}

#[test]
fn a_segment_that_lost_its_unwritten_end_lost_all_that_it_held() {
    let (env, want) = with_segments(7);
    // The one that is written is far from full.
    let name = segments(&env).pop().unwrap();
    let file = |env: &SimEnv| env.open(&Path::new(DIR).join(&name), OpenMode::ReadWrite).unwrap();
    let whole = file(&env).len().unwrap();
    let left = copy(&env);
    file(&left).set_len(whole - 4096).unwrap();
    file(&left).sync().unwrap();
    nothing_is_lost(left, &want, &name);
}

/// It passed for one that was made and never used, or for damage, and was put aside.
#[test]
fn a_segment_of_a_newer_format_is_for_a_newer_version_to_repair() {
    let (env, _) = damaged(4, false);
    let (names, dir) = (env.list(Path::new(DIR)).unwrap(), Path::new(DIR));
    let last = names.iter().filter(|n| n.ends_with(".log")).max().unwrap();
    let file = env.open(&dir.join(last), OpenMode::ReadWrite).unwrap();
    let mut header = [0; 40];
    file.read_exact_at(&mut header, 0).unwrap();
    header[8] += 1;
    let sum = xxhash_rust::xxh3::xxh3_64(&header[..32]);
    header[32..].copy_from_slice(&sum.to_le_bytes());
    file.write_all_at(&header, 0).unwrap();
    let error = run(&env).unwrap_err();
    assert!(matches!(error, crate::Error::UnsupportedFormat { found: 2, .. }), "{error}");
    assert_eq!(env.list(dir).unwrap(), names);
}

/// The numbers of all segments, ascending.
fn segment_numbers(env: &SimEnv) -> Vec<u64> {
    let names = env.list(Path::new(DIR)).unwrap();
    let mut numbers: Vec<u64> = names.iter().filter_map(|n| filename::segment_number(n)).collect();
    numbers.sort_unstable();
    numbers
}

fn end_of_segment(env: &SimEnv, number: u64) -> End {
    let env: Arc<dyn Env> = Arc::new(env.clone());
    Segment::open(&env, Path::new(DIR), number, false).unwrap().frames().finish()
}

fn write_to_segment(env: &SimEnv, number: u64, bytes: &[u8], offset: u64) {
    let path = Path::new(DIR).join(filename::segment(number));
    let file = env.open(&path, OpenMode::ReadWrite).unwrap();
    file.write_all_at(bytes, offset).unwrap();
    file.sync().unwrap();
}

/// The log that a repair makes is durable to the end of its seal, which leads nowhere: the open that follows writes
/// the seal anew, and where a power cut tore that in two, the store was damaged.
#[test]
fn a_seal_that_was_torn_when_it_was_written_anew_is_no_damage() {
    let (left, _) = damaged(5, false);
    run(&left).unwrap();
    let want = contents(&open(&copy(&left)).unwrap());
    let number = *segment_numbers(&left).last().unwrap();
    let End::Clean { offset, next, .. } = end_of_segment(&left, number) else {
        panic!("it is sealed")
    };
    write_to_segment(&left, number, &(next + 1).to_le_bytes(), offset + 16);
    assert!(matches!(end_of_segment(&left, number), End::Torn { .. }));
    let again = run(&left).unwrap();
    assert!(!again.changed, "{again:#?}");
    for _ in 0..2 {
        assert!(contents(&open(&left).unwrap()) == want);
    }
}

/// No store leaves a segment so full that it cannot be sealed. One that was made to be so opened for reading only, and
/// neither `verify` nor `repair` found anything about it.
#[test]
fn a_log_without_room_for_its_end_is_mended_by_repair() {
    let env = SimEnv::new(6, true);
    env.create_dir(Path::new(DIR)).unwrap();
    let db = open(&env).unwrap();
    for n in 0..500u32 {
        db.put(n.to_be_bytes(), [n as u8; 60]).unwrap();
    }
    let want = contents(&db);
    let left = copy(&env);
    let number = *segment_numbers(&left).last().unwrap();
    let End::Torn { offset, .. } = end_of_segment(&left, number) else { panic!("it is active") };
    let path = Path::new(DIR).join(filename::segment(number));
    let mut header = [0; 40];
    left.open(&path, OpenMode::Read).unwrap().read_exact_at(&mut header, 0).unwrap();
    header[24..32].copy_from_slice(&offset.to_le_bytes());
    let sum = xxhash_rust::xxh3::xxh3_64(&header[..32]);
    header[32..].copy_from_slice(&sum.to_le_bytes());
    write_to_segment(&left, number, &header, 0);
    let e = open(&left).unwrap_err();
    assert!(e.is_corruption() && e.to_string().contains("repair"), "{e}");
    let report = run(&left).unwrap();
    assert!(report.changed && report.lost.is_empty(), "{report:#?}");
    assert!(report.problems[0].what.contains("no room for the segment's end"), "{report:#?}");
    assert!(contents(&open(&left).unwrap()) == want);
}

/// What a killed process leaves of a store of two keyspaces, all of it in the log but a table of the second if there is
/// to be one, and what it held.
fn in_the_log(table: bool) -> (SimEnv, Contents) {
    let env = SimEnv::new(7, true);
    env.create_dir(Path::new(DIR)).unwrap();
    let db = open(&env).unwrap();
    let other = db.create_keyspace("recovered-1", KeyspaceOptions::new()).unwrap();
    other.put("first", "1").unwrap();
    if table {
        db.flush().unwrap();
    }
    db.put("second", "2").unwrap();
    other.put("third", "3").unwrap();
    let held = contents(&db);
    (copy(&env), held)
}

fn manifests(env: &SimEnv, dir: &Path) -> Vec<String> {
    let mut names = env.list(dir).unwrap_or_default();
    names.retain(|n| filename::manifest_number(n).is_some());
    names
}

/// A keyspace that was met first, in a table or in the log, hid all of a lower number that were in the log alone.
#[test]
fn a_log_without_a_manifest_is_saved_whole_whichever_keyspace_comes_first() {
    for table in [false, true] {
        let (left, held) = in_the_log(table);
        for name in manifests(&left, Path::new(DIR)).iter().map(String::as_str).chain(["CURRENT"]) {
            left.remove(&Path::new(DIR).join(name)).unwrap();
        }
        let report = run(&left).unwrap();
        assert!(report.changed, "{report:#?}");
        assert!(contents(&open(&left).unwrap()) == held, "with a table: {table}");
    }
}

/// It was removed with the new manifest, though it may be the only one to hold names and ages.
#[test]
fn a_manifest_that_could_not_be_read_to_its_end_is_put_aside() {
    let (left, _) = in_the_log(true);
    let names = manifests(&left, Path::new(DIR));
    let file = left.open(&Path::new(DIR).join(&names[0]), OpenMode::ReadWrite).unwrap();
    file.write_all_at(&[0xA5; 8], 60).unwrap();
    run(&left).unwrap();
    assert_eq!(manifests(&left, &Path::new(DIR).join("lost")), names);
    assert!(!manifests(&left, Path::new(DIR)).contains(&names[0]));
    open(&left).unwrap();
}

/// Numbers of files come again when the manifest that knew them is lost.
#[test]
fn a_repair_replaced_what_an_earlier_one_had_put_aside() {
    let (left, _) = in_the_log(true);
    let names = manifests(&left, Path::new(DIR));
    let lost = Path::new(DIR).join("lost");
    left.create_dir(&lost).unwrap();
    let older = left.open(&lost.join(&names[0]), OpenMode::CreateNew).unwrap();
    older.write_all_at(b"older", 0).unwrap();
    let file = left.open(&Path::new(DIR).join(&names[0]), OpenMode::ReadWrite).unwrap();
    file.write_all_at(&[0xA5; 8], 60).unwrap();
    run(&left).unwrap();
    assert_eq!(older.len().unwrap(), 5);
    let first = left.open(&lost.join(&names[0]), OpenMode::Read).unwrap();
    assert_eq!(first.len().unwrap(), 5);
    assert!(left.exists(&lost.join(format!("{}.2", names[0]))).unwrap());
    crate::destroy::destroy(&left, Path::new(DIR)).unwrap();
    assert!(!left.exists(&lost).unwrap());
}

/// Where `CURRENT` was damaged besides, a manifest of a newer version was taken for none and removed.
#[test]
fn a_store_of_a_newer_version_is_not_repaired() {
    let (left, _) = in_the_log(true);
    let names = manifests(&left, Path::new(DIR));
    let file = left.open(&Path::new(DIR).join(&names[0]), OpenMode::ReadWrite).unwrap();
    let mut header = [0; 32];
    file.read_exact_at(&mut header, 0).unwrap();
    header[8..12].copy_from_slice(&1000u32.to_le_bytes());
    let sum = xxhash_rust::xxh3::xxh3_64_with_seed(&header[..24], 0);
    header[24..].copy_from_slice(&sum.to_le_bytes());
    file.write_all_at(&header, 0).unwrap();
    left.remove(&Path::new(DIR).join("CURRENT")).unwrap();
    let before = left.list(Path::new(DIR)).unwrap();
    assert!(matches!(run(&left), Err(crate::Error::UnsupportedFormat { found: 1000, .. })));
    assert_eq!(left.list(Path::new(DIR)).unwrap(), before);
}

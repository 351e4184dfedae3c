//! Repairs that a crash or a failing call cuts short: the old store is still there, or the new one
//! is complete.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::{RepairReport, repair};
use crate::env::sim::{CrashPoints, Cut, Fault, FaultPlan, Rng, SimEnv};
use crate::env::{Env, OpenMode};
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
    let names = left.list(Path::new(DIR)).unwrap();
    let mut tables: Vec<&String> = names.iter().filter(|n| n.ends_with(".tbl")).collect();
    tables.sort();
    let file = left.open(&Path::new(DIR).join(tables[0]), OpenMode::ReadWrite).unwrap();
    file.write_all_at(&[0xA5; 8], 4096 + 40).unwrap();
    file.sync().unwrap();
    left.sync_dir(Path::new(DIR)).unwrap();
    (left, held)
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
            let struck = env.calls().iter().any(|c| c.failed);
            env.fail(None);
            if !struck {
                assert!(at > 50, "{at} calls");
                break;
            }
            drop(open(&copy(&env)).unwrap_or_else(|e| panic!("call {at}: {e}")));
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

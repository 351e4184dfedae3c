//! Tables that no manifest names: which of them a repair takes up, and where it puts them.

use std::path::Path;
use std::sync::Arc;

use super::{RepairReport, repair};
use crate::env::sim::{Cut, Rng, SimEnv};
use crate::env::{Env, OpenMode};
use crate::{Db, KeyspaceOptions, Options};

const DIR: &str = "/db";

fn new_store(seed: u64) -> (SimEnv, Db) {
    let env = SimEnv::new(seed, true);
    env.create_dir(Path::new(DIR)).unwrap();
    let db = open(&env);
    (env, db)
}

fn open(env: &SimEnv) -> Db {
    env.forget_failures();
    Db::open_in(Arc::new(env.clone()), Path::new(DIR), Options::new().memory(1 << 20)).unwrap()
}

fn run(env: &SimEnv) -> RepairReport {
    env.forget_failures();
    repair(Arc::new(env.clone()), Path::new(DIR), &Options::new()).unwrap()
}

/// A copy of the disk as it is.
fn copy(env: &SimEnv) -> SimEnv {
    env.freeze().draw(Cut::Kill, &mut Rng::new(0), true).0
}

fn tables(env: &SimEnv) -> Vec<String> {
    let mut names = env.list(Path::new(DIR)).unwrap();
    names.retain(|n| n.ends_with(".tbl"));
    names.sort();
    names
}

fn read(env: &SimEnv, name: &str) -> Vec<u8> {
    let file = env.open(&Path::new(DIR).join(name), OpenMode::Read).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

fn put_back(env: &SimEnv, name: &str, bytes: &[u8]) {
    let file = env.open(&Path::new(DIR).join(name), OpenMode::CreateNew).unwrap();
    file.write_all_at(bytes, 0).unwrap();
    file.sync().unwrap();
}

fn remove(env: &SimEnv, name: &str) {
    env.remove(&Path::new(DIR).join(name)).unwrap();
}

/// Does `f`, and gives the table that it makes.
fn table_of(env: &SimEnv, f: impl FnOnce()) -> String {
    let before = tables(env);
    f();
    let mut made = tables(env);
    made.retain(|n| !before.contains(n));
    assert_eq!(made.len(), 1, "{made:?}");
    made.remove(0)
}

fn get(db: &Db, key: &str) -> Option<Vec<u8>> {
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
    assert!(!tables(&left).contains(&merged));
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
        assert!(!tables(&left).contains(&left_over));
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

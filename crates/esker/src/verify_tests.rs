//! Manifests that contradict the tables: what verification says of them, and that a repair puts them right.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::env::{Env, OsEnv};
use crate::key::{SegmentRef, TableMeta};
use crate::util::MAX_NUMBER;
use crate::version::{self, Change, Manifest, Orders, VersionEdit};
use crate::{Db, KeyspaceOptions, Options, VerifyReport};

/// A value that stays in the log, as it cannot be packed.
fn large() -> Vec<u8> {
    let mut at = 1u32;
    let mut next = || {
        at = at.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (at >> 24) as u8
    };
    (0..40_000).map(|_| next()).collect()
}

/// A closed store with one table, whose manifest also says this of that table and of the run it is in; and what it
/// said of the table before.
fn store_with(
    root: &Path,
    edit: impl FnOnce(&TableMeta, u64) -> Vec<Change>,
) -> (PathBuf, TableMeta) {
    let dir = root.join("db");
    drop(std::fs::remove_dir_all(&dir));
    let db = Db::open(&dir).unwrap();
    db.create_keyspace("other", KeyspaceOptions::new()).unwrap();
    for key in ["b", "c", "d", "m"] {
        db.put(key, "value").unwrap();
    }
    db.put("large", large()).unwrap();
    let snapshot = db.snapshot();
    db.put("c", "another").unwrap();
    db.delete("m").unwrap();
    db.flush().unwrap();
    drop(snapshot);
    db.close().unwrap();
    let env: Arc<dyn Env> = Arc::new(OsEnv::new());
    let loaded = version::load(&*env, &dir, &Orders::default()).unwrap();
    let version = &loaded.state.keyspaces[&0].version;
    assert_eq!(version.tables().count(), 1);
    let (run, was) = (version.runs()[0].id(), TableMeta::clone(&version.runs()[0].tables()[0]));
    let mut changes = edit(&was, run);
    changes.push(Change::CleanClose);
    let mut manifest = Manifest::open(env, &dir, loaded).unwrap();
    manifest.append(&VersionEdit::from(changes)).unwrap();
    (dir, was)
}

/// A store whose manifest says of its table what `change` makes of it, in the keyspace of this number.
fn forged(root: &Path, keyspace: u32, change: &dyn Fn(&mut TableMeta)) -> (PathBuf, TableMeta) {
    store_with(root, |was, run| {
        let mut meta = was.clone();
        change(&mut meta);
        let gone = Change::RemoveTable { keyspace: 0, number: was.number };
        vec![gone, Change::AddTable { keyspace, run, meta }]
    })
}

fn told(report: &VerifyReport, table: u64) -> String {
    let name = crate::filename::table(table);
    let of_table = report.problems.iter().filter(|p| p.file == name);
    of_table.map(|p| format!("{p}\n")).collect()
}

#[test]
fn what_a_manifest_says_wrong_of_a_table_was_not_all_told() {
    let root = tempfile::tempdir().unwrap();
    let (dir, was) = forged(root.path(), 0, &|_| ());
    assert!(!was.unique_keys && was.references.len() == 1, "{was:?}");
    let report = Db::verify_path(&dir).unwrap();
    assert!(report.problems.is_empty(), "{report:#?}");
    type Forge = fn(&mut TableMeta);
    let segment = was.references[0].segment;
    let in_segment = format!("log segment {segment}");
    let (low, high) = (was.min_seq, was.max_seq);
    let forged_fields: [(&str, String, String, Forge); 12] = [
        ("entries", "8".into(), "7".into(), |m| m.entries += 1),
        ("tombstones", "0".into(), "1".into(), |m| m.tombstones = 0),
        ("bytes", "5".into(), was.raw_bytes.to_string(), |m| m.raw_bytes = 5),
        ("smallest key", "\"c\"".into(), "\"b\"".into(), |m| m.smallest = b"c".to_vec()),
        ("smallest key", "\"a\"".into(), "\"b\"".into(), |m| m.smallest = b"a".to_vec()),
        ("largest key", "\"d\"".into(), "\"m\"".into(), |m| m.largest = b"d".to_vec()),
        ("largest key", "\"z\"".into(), "\"m\"".into(), |m| m.largest = b"z".to_vec()),
        ("lowest sequence", (low + 1).to_string(), low.to_string(), |m| m.min_seq += 1),
        ("highest sequence", (high - 1).to_string(), high.to_string(), |m| m.max_seq -= 1),
        ("unique keys", "true".into(), "false".into(), |m| m.unique_keys = true),
        (&in_segment, "7".into(), "40000".into(), |m| m.references[0].bytes = 7),
        ("log segment 2000", "7".into(), "0".into(), |m| {
            m.references.push(SegmentRef { segment: 2000, bytes: 7 });
        }),
    ];
    for (what, said, has, change) in forged_fields {
        let (dir, was) = forged(root.path(), 0, &change);
        let report = Db::verify_path(&dir).unwrap();
        let told = told(&report, was.number);
        let line = |l: &str| {
            l.contains(what)
                && l.contains(&format!("says {said}"))
                && l.contains(&format!("has {has}"))
        };
        assert!(told.lines().any(line), "{what}, {said} in place of {has}: {report:#?}");
        // The table is right, as its checksums say.
        let repaired = Db::repair(&dir).unwrap();
        assert!(repaired.changed && repaired.lost.is_empty(), "{what}: {repaired:#?}");
        let report = Db::verify_path(&dir).unwrap();
        assert!(report.problems.is_empty(), "{what}: {report:#?}");
        let db = Db::open(&dir).unwrap();
        assert_eq!(db.get("b").unwrap().unwrap(), b"value", "{what}");
        assert_eq!(db.get("large").unwrap().unwrap(), large(), "{what}");
        db.close().unwrap();
    }
}

/// An open store reads by what the manifest says: a key below what that calls the smallest is not found.
#[test]
fn an_open_store_did_not_tell_either() {
    let root = tempfile::tempdir().unwrap();
    let (dir, was) = forged(root.path(), 0, &|m| m.smallest = b"c".to_vec());
    let db = Db::open(&dir).unwrap();
    assert!(db.get("b").unwrap().is_none());
    let told = told(&db.verify().unwrap(), was.number);
    assert!(
        told.contains("smallest key") && told.contains("\"c\"") && told.contains("\"b\""),
        "{told}"
    );
    drop(db);
    let e = Options::new().paranoid_checks(true).open(&dir).unwrap_err().to_string();
    assert!(e.contains("smallest key"), "{e}");
}

/// A keyspace showed the entries of another.
#[test]
fn a_table_of_another_keyspace_was_taken_for_sound() {
    let root = tempfile::tempdir().unwrap();
    let (dir, was) = forged(root.path(), 1, &|_| ());
    let report = Db::verify_path(&dir).unwrap();
    let told = told(&report, was.number);
    assert!(told.contains("keyspace: the manifest says 1, the table has 0"), "{report:#?}");
    let repaired = Db::repair(&dir).unwrap();
    assert!(!repaired.lost.is_empty(), "{repaired:#?}");
    let report = Db::verify_path(&dir).unwrap();
    assert!(report.problems.is_empty(), "{report:#?}");
}

/// Their sums overflowed.
#[test]
fn tables_of_any_size_are_verified_and_repaired() {
    let root = tempfile::tempdir().unwrap();
    let huge = |was: &TableMeta, n| {
        let meta = TableMeta {
            number: was.number + 100 + n,
            size: MAX_NUMBER,
            entries: MAX_NUMBER,
            smallest: vec![n as u8],
            largest: vec![n as u8],
            ..was.clone()
        };
        Change::AddTable { keyspace: 2, run: 1, meta }
    };
    let (dir, _) = store_with(root.path(), |was, _| {
        let custom = Change::AddKeyspace {
            id: 2,
            name: "custom".into(),
            order_name: "test.unknown".into(),
            compression: None,
            blob_threshold: None,
        };
        std::iter::once(custom).chain((0..5).map(|n| huge(was, n))).collect()
    });
    let report = Db::verify_path(&dir).unwrap();
    assert!(report.problems.len() >= 5, "{report:#?}");
    let repaired = Db::repair(&dir).unwrap();
    assert!(!repaired.unchecked.is_empty(), "{repaired:#?}");
}

//! Which versions of a key a merge keeps.

use std::collections::BTreeMap;

use super::common::rng::Rng;
use super::common::{files, seed};
use super::{alone, contents, small};

/// The versions of one key were cut over two tables of a level, a merge took only one of them, and
/// the older version won. <https://github.com/google/leveldb/issues/320>
#[test]
fn all_versions_of_a_key_move_together() {
    let _alone = alone();
    let root = tempfile::tempdir().unwrap();
    let db = small().blob_threshold(1 << 20).open(root.path().join("db")).unwrap();
    let value = |n: u32| [n.to_be_bytes().as_slice(), &[7; 3900]].concat();
    db.put("a", "first").unwrap();
    db.put("z", "last").unwrap();
    // More than a table has room for, all of them needed.
    let mut snapshots = Vec::new();
    for n in 0..1400u32 {
        db.put("key", value(n)).unwrap();
        snapshots.push(db.snapshot());
    }
    db.flush().unwrap();
    for round in 0..3 {
        db.put("key", value(5000 + round)).unwrap();
        db.put("a", "changed").unwrap();
        db.flush().unwrap();
        // A merge of a part of the keys, to both sides of the one.
        db.compact_range("a".."b").unwrap();
        db.compact_range("key".."key0").unwrap();
        assert_eq!(db.get("key").unwrap().unwrap(), value(5000 + round));
        for (n, snapshot) in (0u32..).zip(&snapshots).step_by(13) {
            assert_eq!(db.at(snapshot).get("key").unwrap().unwrap(), value(n), "snapshot {n}");
        }
    }
    assert!(files::ending(&root.path().join("db"), ".tbl").len() >= 2);
    drop(snapshots);
    db.compact_range::<&str>(..).unwrap();
    assert_eq!(contents(&db).len(), 3);
    assert_eq!(db.get("key").unwrap().unwrap(), value(5002));
}

/// A tombstone was dropped while an older table still held the key, which so came back.
/// <https://github.com/google/leveldb/issues/184>, <https://github.com/google/leveldb/issues/887>,
/// <https://github.com/facebook/rocksdb/issues/2722>
#[test]
fn deleted_keys_stay_deleted_through_merges_of_parts() {
    let _alone = alone();
    let mut rng = Rng::new(seed("deleted_keys"));
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("db");
    let mut model = BTreeMap::new();
    let key = |n: usize| format!("{n:04}").into_bytes();
    // An old run that is too large to be merged on the way.
    let db = small().open(&dir).unwrap();
    for n in 0..4000 {
        model.insert(key(n), vec![n as u8; 700]);
        db.put(key(n), &model[&key(n)]).unwrap();
    }
    db.close().unwrap();
    let mut several = 0;
    for round in 0..30u32 {
        let db = small().open(&dir).unwrap();
        several += usize::from(db.stats().keyspaces[0].runs.len() > 1);
        for _ in 0..60 {
            let n = rng.below(400);
            if rng.one_in(2) {
                let value = vec![round as u8; 10 + rng.below(1500)];
                db.put(key(n), &value).unwrap();
                model.insert(key(n), value);
            } else {
                db.delete(key(n)).unwrap();
                model.remove(&key(n));
            }
        }
        db.flush().unwrap();
        if rng.one_in(10) {
            // A part, so that tombstones meet some of what they hide and not the rest.
            let from = rng.below(350);
            db.compact_range(key(from)..key(from + 50)).unwrap();
        }
        assert!(contents(&db) == model, "round {round}");
        if rng.one_in(3) {
            db.close().unwrap();
            let db = small().open(&dir).unwrap();
            assert!(contents(&db) == model, "round {round}, opened again");
        }
    }
    assert!(several > 3, "{several} of 30 times there was anything below to hide");
}

/// Deletes of ranges were not kept apart from snapshots: one hid keys from a reader of before, or
/// did not hide them from one of after. <https://github.com/facebook/rocksdb/issues/2752>,
/// <https://github.com/facebook/rocksdb/issues/2989>
#[test]
fn a_snapshot_sees_what_was_deleted_after_it_and_nothing_else() {
    let _alone = alone();
    let root = tempfile::tempdir().unwrap();
    let db = small().open(root.path().join("db")).unwrap();
    let mut model = BTreeMap::new();
    let mut seen = Vec::new();
    for round in 0..12u32 {
        for n in 0..100u32 {
            if (n + round) % 3 != 0 {
                db.put(n.to_be_bytes(), round.to_be_bytes()).unwrap();
                model.insert(n.to_be_bytes().to_vec(), round.to_be_bytes().to_vec());
            }
        }
        seen.push((db.snapshot(), model.clone()));
        // There is no single record for a range: every key of it gets its own, in one batch.
        let (from, to) = (round * 7 % 60, round * 7 % 60 + 30);
        let mut batch = esker::WriteBatch::new();
        for n in from..to {
            batch.delete(n.to_be_bytes());
            model.remove(n.to_be_bytes().as_slice());
        }
        db.write(batch).unwrap();
        seen.push((db.snapshot(), model.clone()));
        match round % 3 {
            0 => db.flush().unwrap(),
            1 => db.compact_range(from.to_be_bytes()..to.to_be_bytes()).unwrap(),
            _ => db.compact_range::<&str>(..).unwrap(),
        }
        for (snapshot, map) in &seen {
            let found: Vec<_> =
                db.at(snapshot).iter().copied_out().collect::<Result<_, _>>().unwrap();
            assert!(found.into_iter().eq(map.clone()), "round {round}");
        }
        assert!(contents(&db) == model);
    }
}

/// A merge dropped the version that a snapshot still read.
/// <https://github.com/fjall-rs/lsm-tree/issues/321>, <https://github.com/surrealdb/surrealkv/issues/351>
#[test]
fn merges_keep_the_version_that_each_snapshot_sees() {
    let _alone = alone();
    let mut rng = Rng::new(seed("merges_keep"));
    let root = tempfile::tempdir().unwrap();
    let db = small().open(root.path().join("db")).unwrap();
    let mut model: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
    let mut seen = Vec::new();
    for step in 0..4000u32 {
        let key = vec![b'k', rng.below(12) as u8];
        if rng.one_in(4) {
            db.delete(&key).unwrap();
            model.remove(&key);
        } else {
            let value = vec![step as u8; 4 + rng.below(1200)];
            db.put(&key, &value).unwrap();
            model.insert(key, value);
        }
        if rng.one_in(40) {
            seen.push((db.snapshot(), model.clone()));
        }
        if rng.one_in(60) && seen.len() > 6 {
            // Not the oldest one: what lies between two snapshots may go, no more.
            let at = rng.below(seen.len());
            drop(seen.swap_remove(at));
        }
        if rng.one_in(150) {
            if rng.one_in(2) {
                db.flush().unwrap()
            } else {
                db.compact_range::<&str>(..).unwrap()
            }
            for (snapshot, map) in &seen {
                let found: Vec<_> =
                    db.at(snapshot).iter().copied_out().collect::<Result<_, _>>().unwrap();
                assert!(found.into_iter().eq(map.clone()), "step {step}");
            }
        }
    }
    assert!(contents(&db) == model);
    assert!(seen.len() > 5, "{} snapshots were left", seen.len());
}

//! Compactions whose outputs are lost: which of their inputs a repair takes up again, and which not.

use std::path::Path;

use super::adopt_tests::{
    DIR, copy, flush, get, new_store, open, put_aside, put_back, read, remove, run, table_of,
    tables,
};
use crate::env::sim::SimEnv;
use crate::env::{Env, OpenMode};
use crate::version::{Change, VersionEdit};
use crate::{Db, KeyspaceOptions, filename};

/// A table with this entry, and what is in its file.
fn flushed(env: &SimEnv, db: &Db, key: &str, value: &str) -> (String, Vec<u8>) {
    db.put(key, value).unwrap();
    let name = table_of(env, || db.flush().unwrap());
    let bytes = read(env, &name);
    (name, bytes)
}

/// Merges all there is, into one table.
fn merged(env: &SimEnv, db: &Db) -> String {
    table_of(env, || db.compact_range::<&str>(..).unwrap())
}

/// Of a compaction whose output is lost they are all that is left.
#[test]
fn inputs_of_a_compaction_were_left_alone_where_its_output_was_missing() {
    let (env, db) = new_store(7);
    let mut inputs = Vec::new();
    for (key, value) in [("a", "1"), ("b", "2")] {
        db.put(key, value).unwrap();
        let name = table_of(&env, || db.flush().unwrap());
        inputs.push((name.clone(), read(&env, &name)));
    }
    let output = table_of(&env, || db.compact_range::<&str>(..).unwrap());
    db.close().unwrap();
    let left = copy(&env);
    remove(&left, &output);
    for (name, bytes) in &inputs {
        put_back(&left, name, bytes);
    }
    let report = run(&left);
    assert!(report.lost.iter().any(|l| l.file == output), "{report:#?}");
    let db = open(&left);
    assert_eq!((get(&db, "a"), get(&db, "b")), (Some(b"1".to_vec()), Some(b"2".to_vec())));
}

/// They counted as left over where a file of the output's name was there, whatever was in it.
#[test]
fn inputs_of_a_compaction_were_left_alone_where_its_output_was_damaged() {
    let (env, db) = new_store(11);
    let other = db.create_keyspace("other", KeyspaceOptions::new()).unwrap();
    other.put("gone", "1").unwrap();
    let gone = table_of(&env, || db.flush().unwrap());
    let inputs = [flushed(&env, &db, "a", "1"), flushed(&env, &db, "b", "2")];
    let output = merged(&env, &db);
    drop(other);
    db.close().unwrap();
    for missing in [true, false] {
        let left = copy(&env);
        let file = left.open(&Path::new(DIR).join(&output), OpenMode::ReadWrite).unwrap();
        file.write_all_at(&[0xA5; 8], 40).unwrap();
        file.sync().unwrap();
        inputs.iter().for_each(|(name, bytes)| put_back(&left, name, bytes));
        if missing {
            remove(&left, &gone);
        }
        let report = run(&left);
        assert!(report.lost.iter().any(|l| l.file == output), "{report:#?}");
        let db = open(&left);
        let found = (get(&db, "a"), get(&db, "b"));
        if missing {
            assert_eq!(found, (Some(b"1".to_vec()), Some(b"2".to_vec())), "{report:#?}");
        } else {
            // That manifest says precisely what there is. They are kept all the same.
            assert_eq!(found, (None, None), "{report:#?}");
            let kept = put_aside(&left);
            assert!(inputs.iter().all(|(name, _)| kept.contains(name)), "{kept:?}");
        }
    }
}

/// Those of a compaction before counted as merged into a table that the manifest no longer names.
#[test]
fn inputs_of_a_compaction_were_left_alone_where_its_output_was_merged_and_that_one_lost() {
    let (env, db) = new_store(12);
    let inputs = [flushed(&env, &db, "a", "1"), flushed(&env, &db, "b", "2")];
    let between = merged(&env, &db);
    flushed(&env, &db, "c", "3");
    let output = merged(&env, &db);
    db.close().unwrap();
    let left = copy(&env);
    assert!(!tables(&left).contains(&between));
    remove(&left, &output);
    inputs.iter().for_each(|(name, bytes)| put_back(&left, name, bytes));
    let report = run(&left);
    assert!(report.lost.iter().any(|l| l.file == output), "{report:#?}");
    let db = open(&left);
    for (key, value) in [("a", "1"), ("b", "2")] {
        assert_eq!(get(&db, key), Some(value.into()), "{key}: {report:#?}");
    }
}

/// All inputs of a compaction came back for one of its outputs, those too of which the keys were in others.
#[test]
fn deleted_keys_came_back_where_another_output_of_their_compaction_was_missing() {
    let (env, db) = new_store(13);
    let job = db.store().jobs.lock();
    let table = |entries: &[(&str, &str)]| {
        entries.iter().for_each(|(key, value)| db.put(key, value).unwrap());
        table_of(&env, || flush(&db, "default"))
    };
    let inputs = [table(&[("a", "old"), ("d", "deleted")]), table(&[("x", "old")])];
    let outputs = [table(&[("a", "new"), ("e", "1")]), table(&[("x", "new"), ("y", "1")])];
    {
        // As if a compaction had made the second two out of the first two.
        let mut version_set = db.store().version_set.lock();
        let manifest = version_set.manifest_mut().unwrap();
        let number = |name: &String| filename::table_number(name).unwrap();
        let remove = |name| Change::RemoveTable { keyspace: 0, number: number(name) };
        let tables = manifest.state().keyspaces[&0].version.tables();
        let metas =
            tables.map(|t| (**t).clone()).filter(|t| outputs.contains(&filename::table(t.number)));
        let add =
            metas.map(|meta| Change::AddTable { keyspace: 0, run: 1, meta }).collect::<Vec<_>>();
        manifest
            .append(&VersionEdit::from(outputs.iter().map(remove).collect::<Vec<_>>()))
            .unwrap();
        manifest.replace().unwrap();
        manifest
            .append(&VersionEdit::from(inputs.iter().map(remove).chain(add).collect::<Vec<_>>()))
            .unwrap();
    }
    let left = copy(&env);
    drop(job);
    remove(&left, &outputs[1]);
    let report = run(&left);
    assert!(report.lost.iter().any(|l| l.file == outputs[1]), "{report:#?}");
    assert!(put_aside(&left).contains(&inputs[0]));
    let db = open(&left);
    assert_eq!(get(&db, "x"), Some("old".into()), "{report:#?}");
    assert_eq!((get(&db, "a"), get(&db, "d")), (Some("new".into()), None), "{report:#?}");
}

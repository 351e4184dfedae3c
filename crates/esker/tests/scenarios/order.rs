//! What must be on the device before something else may happen: read off the calls that a process
//! makes to the system.

use std::collections::{HashMap, HashSet};

use super::child;
use super::common::files;
use super::trace::{self, Call};
use super::{alone, assert_sound, small};

const SYNC: &[&str] = &["fdatasync", "fsync"];

/// Whether `path` was synced by a call that ended in this part of the trace.
fn synced(calls: &[Call], path: &str, after: usize, before: usize) -> bool {
    calls.iter().any(|c| {
        SYNC.contains(&c.name.as_str())
            && c.file() == Some(path)
            && !c.failed
            && c.begun > after
            && c.done < before
    })
}

/// A new manifest was named by CURRENT before it was durable itself, so that a power cut left a
/// CURRENT that names nothing. <https://github.com/google/leveldb/issues/189>
#[test]
fn current_names_no_manifest_that_is_not_durable() {
    let _alone = alone();
    if !trace::works() {
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().canonicalize().unwrap().join("db");
    let calls = trace::calls("life", &dir);
    let mut swings = 0;
    for (i, swing) in calls.iter().enumerate() {
        if !swing.is(&["rename", "renameat2"], "CURRENT.tmp") {
            continue;
        }
        swings += 1;
        let before = &calls[..i];
        let named = before.iter().rev().find(|c| c.is(&["pwrite64"], "CURRENT.tmp")).unwrap();
        let at = named.args.find("\"MANIFEST-").unwrap() + 1;
        let manifest = dir.join(&named.args[at..at + 19]);
        let manifest = manifest.to_str().unwrap();
        let written = before.iter().rev().find(|c| c.is(&["pwrite64"], manifest)).unwrap();
        assert!(synced(&calls, manifest, written.begun, swing.begun), "{manifest} is not synced");
        let temp = named.file().unwrap();
        assert!(synced(&calls, temp, named.begun, swing.begun), "{temp} is not synced");
    }
    assert!(swings >= 2, "{swings} manifests came into force");
}

/// A log was rotated, and the newer one synced while the older one was not: a power cut left a
/// hole in the middle of the log. <https://github.com/google/leveldb/issues/193>,
/// <https://github.com/facebook/rocksdb/issues/13169>, <https://github.com/facebook/rocksdb/issues/12467>,
/// <https://github.com/facebook/rocksdb/issues/11149>
#[test]
fn a_synced_write_syncs_every_older_segment_too() {
    let _alone = alone();
    if !trace::works() {
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().canonicalize().unwrap().join("db");
    let to = root.path().join("out");
    // The process ends by its own hand: no clean close syncs anything afterwards.
    let what = "trace=openat,rename,renameat2,fdatasync,fsync,write";
    let flags = ["-y", "-s", "64", "-e", what, "-o", to.to_str().unwrap()];
    let output = trace::run("rotate", &dir, &flags);
    assert_eq!(child::acknowledged(&output).len(), 6);
    let calls = trace::parse(&String::from_utf8_lossy(&std::fs::read(to).unwrap()));
    let number = |path: &str| path.strip_suffix(".log")?.rsplit('/').next()?.parse::<u64>().ok();
    let acks: Vec<&Call> =
        calls.iter().filter(|c| c.name == "write" && c.args.contains("ack ")).collect();
    assert_eq!(acks.len(), 6);
    for ack in acks {
        let done: HashSet<u64> = calls
            .iter()
            .filter(|c| SYNC.contains(&c.name.as_str()) && c.done < ack.begun && !c.failed)
            .filter_map(|c| number(c.file()?))
            .collect();
        let newest = *done.iter().max().expect("a segment was synced");
        let made = calls.iter().filter(|c| c.begun < ack.begun && c.is(&["openat"], "O_CREAT"));
        let paths = made.filter_map(|c| c.args.split('"').nth(1).and_then(number));
        // One made ahead may have come too late and was passed over.
        let used = |n: &u64| {
            std::fs::read(dir.join(format!("{n:010}.log")))
                .is_ok_and(|bytes| bytes[4096..].iter().any(|b| *b != 0))
        };
        for older in paths.filter(|n| *n < newest).filter(used) {
            assert!(done.contains(&older), "segment {older} is not synced, {newest} is");
        }
    }
}

/// Old files were removed before the directory entry of what replaces them was durable, and a
/// power cut took both. <https://github.com/google/leveldb/issues/195>
#[test]
fn no_file_is_removed_before_what_replaces_it_is_durable() {
    let _alone = alone();
    if !trace::works() {
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().canonicalize().unwrap().join("db");
    let calls = trace::calls("life", &dir);
    let dir = dir.to_str().unwrap();
    let (mut removed, mut swung) = (0, 0);
    for (i, call) in calls.iter().enumerate() {
        let ours = [".tbl", ".log\"", "MANIFEST-"].iter().any(|e| call.args.contains(e));
        if !ours || call.failed || !["unlink", "unlinkat"].contains(&call.name.as_str()) {
            continue;
        }
        removed += 1;
        let before = &calls[..i];
        // Of those that only tell how long the same manifest is it does not matter which one a power cut leaves.
        let made = |c: &Call| c.is(&["openat"], "MANIFEST-") && c.args.contains("O_CREAT");
        let parts = before.split_inclusive(|c| c.is(&["rename", "renameat2"], "CURRENT"));
        let swings = parts.filter(|part| part.iter().any(made)).filter_map(|part| part.last());
        let mut swings = swings.filter(|c| c.is(&["rename", "renameat2"], "CURRENT"));
        if let Some(swing) = swings.next_back() {
            swung += 1;
            assert!(
                synced(&calls, dir, swing.begun, call.begun),
                "{call:?}: before {swing:?} lasts"
            );
        }
        let mut last: HashMap<&str, &Call> = HashMap::new();
        for c in before.iter().filter(|c| c.is(&["pwrite64"], "MANIFEST-")) {
            last.insert(c.file().unwrap(), c);
        }
        for (manifest, write) in last {
            let lasts = synced(&calls, manifest, write.begun, call.begun);
            assert!(lasts, "{call:?}: before an edit in {manifest} lasts");
        }
    }
    assert!(removed >= 3 && swung > 0, "{removed} files were removed, {swung} after a swing");
}

/// After a power cut a table was there by name and empty, and the manifest referred to it: it had
/// not been synced before. <https://github.com/google/leveldb/issues/333>
#[test]
fn no_table_is_named_before_it_and_its_name_are_durable() {
    let _alone = alone();
    if !trace::works() {
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().canonicalize().unwrap().join("db");
    let calls = trace::calls("life", &dir);
    let dir = dir.to_str().unwrap();
    let mut tables = HashSet::new();
    for (i, edit) in calls.iter().enumerate().filter(|(_, c)| c.is(&["pwrite64"], "MANIFEST-")) {
        // What this thread wrote before: it goes on to name it.
        let mut last: HashMap<&str, &Call> = HashMap::new();
        let own = calls[..i].iter().filter(|c| c.thread == edit.thread);
        for c in own.filter(|c| c.is(&["pwrite64"], ".tbl")) {
            last.insert(c.file().unwrap(), c);
        }
        for (table, write) in last {
            assert!(synced(&calls, table, write.begun, edit.begun), "{table} is not synced");
            assert!(synced(&calls, dir, write.begun, edit.begun), "the name {table} is not synced");
            tables.insert(table.to_string());
        }
    }
    assert!(tables.len() >= 3, "{} tables", tables.len());
}

/// An error of the last write was lost in `close()`, which had nobody to tell.
/// <https://github.com/google/leveldb/issues/1081>
#[test]
fn close_tells_that_it_could_not_write() {
    let _alone = alone();
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("db");
    let output = child::run("close", &dir);
    assert_eq!(child::acknowledged(&output), ["true"], "{output:?}");
    // And yet nothing is lost: the log has it.
    let db = small().open(&dir).unwrap();
    assert_eq!(db.get("key").unwrap().unwrap(), vec![1; 500]);
    db.close().unwrap();
    assert_sound(&dir);
    assert!(files::ending(&dir, ".tbl").len() == 1);
}

//! Calls to the system that fail, and what a store makes of it.

use super::child;
use super::common::files;
use super::trace;
use super::{alone, assert_sound, contents, small};

/// The disk was full in the middle of a manifest record; later records went behind the torn one,
/// and the store could not be opened again. <https://github.com/facebook/rocksdb/issues/6316>
#[test]
fn nothing_is_appended_behind_a_torn_record_of_the_manifest() {
    let _alone = alone();
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("db");
    let output = child::run("torn", &dir);
    let said = child::acknowledged(&output);
    let refused = vec!["refused"; 4];
    assert_eq!(said, [refused, vec!["end"]].concat(), "{output:?}");
    let db = small().open(&dir).unwrap();
    for n in 0..4 {
        db.keyspace(&format!("kept {n}")).unwrap();
    }
    assert_eq!(db.keyspaces().len(), 5, "{:?}", db.keyspaces());
    assert_eq!(db.get("before").unwrap().unwrap(), b"1");
    assert_eq!(db.get("after").unwrap().unwrap(), 3u64.to_be_bytes());
    db.close().unwrap();
    assert_sound(&dir);
}

/// A sync of the manifest failed and seemed to have had no effect; the edit surfaced after the next
/// start, when the tables that it named were deleted. <https://github.com/facebook/rocksdb/issues/4990>,
/// <https://github.com/facebook/rocksdb/issues/5379>, <https://github.com/facebook/rocksdb/issues/6949>
#[test]
fn a_manifest_that_could_not_be_synced_takes_no_table_along() {
    let _alone = alone();
    if !trace::works() {
        return;
    }
    let mut failures = 0;
    for manifest in ["MANIFEST-0000000001", "MANIFEST-0000000002"] {
        for when in [1, 2, 3, 4, 5, 6, 8] {
            let root = tempfile::tempdir().unwrap();
            let dir = root.path().canonicalize().unwrap().join("db");
            let path = dir.join(manifest);
            let inject = format!("inject=fdatasync:error=EIO:when={when}");
            let output = trace::run("merges", &dir, &["-P", path.to_str().unwrap(), "-e", &inject]);
            let done = child::acknowledged(&output);
            let db = small().open(&dir).unwrap_or_else(|e| panic!("{manifest} {when}: {e}"));
            let found = contents(&db);
            for key in &done {
                let value = found.get(key.as_bytes());
                assert!(value.is_some_and(|v| v.len() == 300), "{manifest} {when}: {key} is lost");
            }
            failures += usize::from(done.len() < 240 || files::names(&dir).len() < 2);
            db.close().unwrap();
            assert_sound(&dir);
        }
    }
    assert!(failures > 0, "no failure was felt");
}

/// A write to the log failed, the writer went on, and a later batch that was acknowledged lay
/// behind the torn one, where no replay came. <https://github.com/fjall-rs/fjall/issues/304>,
/// <https://github.com/fjall-rs/fjall/issues/308>
#[test]
fn no_acknowledged_batch_lies_behind_a_torn_one() {
    let _alone = alone();
    if !trace::works() {
        return;
    }
    let mut felt = 0;
    for call in ["pwrite64", "fdatasync", "fallocate"] {
        for when in [3, 4, 5, 6, 7, 9, 11, 13] {
            let root = tempfile::tempdir().unwrap();
            let dir = root.path().join("db");
            let inject = format!("inject={call}:error=EIO:when={when}");
            let output = trace::run("batches", &dir, &["-e", &inject]);
            let done = child::acknowledged(&output);
            felt += usize::from(done.len() < 12);
            let db = small().open(&dir).unwrap_or_else(|e| panic!("{call} {when}: {e}"));
            for round in 0..12 {
                let get = |n: u32| db.get(format!("{round}/{n}")).unwrap().is_some();
                let there = (0..4).filter(|n| get(*n)).count();
                assert!(there == 0 || there == 4, "{call} {when}: {there} of batch {round}");
                let acknowledged = done.contains(&round.to_string());
                assert!(there == 4 || !acknowledged, "{call} {when}: batch {round} is lost");
            }
        }
    }
    assert!(felt > 5, "only {felt} failures were felt");
}

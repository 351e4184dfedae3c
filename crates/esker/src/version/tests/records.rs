//! Edits that lie in several records: whatever a crash or damage leaves of them, they count whole or
//! not at all.

use std::path::Path;
use std::sync::Arc;

use super::mem_env::MemEnv;
use super::*;
use crate::version::edit::testing::RECORD_BYTES;
use crate::version::state::Copies;

/// A keyspace of so many tables with long keys, and what takes half of them away.
fn large(count: u64) -> [VersionEdit; 3] {
    let long = |n: u64, end: &str| format!("{n:06}{}{end}", "x".repeat(1000));
    let meta = |n| table(n, &long(n, "a"), &long(n, "b"));
    let added = (1..=count).map(|n| add(0, 1, meta(n))).collect::<Vec<_>>();
    let moved = (1..=count / 2)
        .flat_map(|number| [Change::RemoveTable { keyspace: 0, number }, add(0, 2, meta(number))]);
    [vec![add_keyspace(0, "default")], added, moved.collect()].map(VersionEdit::from)
}

#[test]
fn an_edit_that_no_record_could_hold_stopped_all_writes() {
    let dir = Path::new("/db");
    for record_bytes in [1, 1500, 10_000, 1 << 20] {
        RECORD_BYTES.set(Some(record_bytes));
        let env = MemEnv::default();
        let mut manifest =
            Manifest::create(Arc::new(env.clone()), dir, State::new(Orders::default())).unwrap();
        let mut state = manifest.state().clone();
        for edit in large(60) {
            assert_eq!(
                edit.records().concat().len() > edit.encode().len(),
                edit.records().len() > 1
            );
            state = state.apply(&edit).unwrap();
            manifest.append(&edit).unwrap();
            assert!(manifest.state() == &state);
            let loaded = load(&env, dir, &Orders::default()).unwrap();
            assert!(loaded.state == state && loaded.torn.is_none());
            assert_eq!(loaded.end, manifest.len());
        }
        // The whole state in one edit, and a further one behind it.
        assert_eq!(state.snapshot().records().len() > 1, record_bytes < 1 << 20);
        manifest.replace().unwrap();
        manifest.append(&VersionEdit::from(vec![Change::LastSeq { seq: 5000 }])).unwrap();
        let loaded = load(&env, dir, &Orders::default()).unwrap();
        assert_eq!((loaded.state.last_seq, loaded.edits), (5000, 1));
        assert!(loaded.state == *manifest.state());
    }
}

#[test]
fn edits_in_several_records_are_whole_or_not_there() {
    for record_bytes in [1, 30] {
        RECORD_BYTES.set(Some(record_bytes));
        damage::what_is_appended_comes_back();
        damage::every_flipped_bit_is_an_error();
        damage::every_cut_is_a_prefix_or_an_error();
    }
}

#[test]
fn crashes_leave_edits_in_several_records_whole_or_not_at_all() {
    RECORD_BYTES.set(Some(1));
    crash::any_failing_call_and_any_crash_keep_what_was_acknowledged();
    crash::crashes_during_recovery_from_crashes();
    crash::nothing_is_appended_behind_a_torn_record();
}

#[test]
fn an_edit_does_not_go_on_in_the_midst_of_a_record() {
    let edit = VersionEdit::from(vec![Change::Continued, add_keyspace(0, "default")]);
    assert_eq!(VersionEdit::decode(&edit.encode()).unwrap(), edit);
    assert!(State::new(Orders::default()).apply(&edit).is_err());
}

/// Each of them copied the composition, all keyspaces and tables that had come by then: a thousand keyspaces were as
/// many copies of up to a thousand, when they were made and at each open.
#[test]
fn edits_copied_all_that_the_ones_before_them_had_made() {
    let (env, dir) = (MemEnv::default(), Path::new("/db"));
    let state = State::new(Orders::default());
    let mut manifest = Manifest::create(Arc::new(env.clone()), dir, state).unwrap();
    let before = Copies::made();
    for id in 0..250 {
        let named = add_keyspace(id, &format!("ks{id}"));
        manifest.append(&VersionEdit::from(vec![named])).unwrap();
        let table = table(u64::from(id) + 1, "a", "b");
        manifest.append(&VersionEdit::from(vec![add(id, 1, table)])).unwrap();
    }
    let written = Copies::made() - before;
    let loaded = load(&env, dir, &Orders::default()).unwrap();
    assert!(loaded.edits == 500 && loaded.state == *manifest.state());
    let read = Copies::made() - before - written;
    assert!(written <= 2 && read <= 2, "copies by 500 edits: {written} written, {read} read");
}

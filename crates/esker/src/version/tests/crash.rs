//! Every call fails once or for good, the process dies or the power goes: what is loaded then is
//! the last acknowledged state, or that and the edit that was under way.

use std::path::Path;
use std::sync::Arc;

use super::mem_env::{Fail, MemEnv};
use super::*;
use crate::env::Env;
use crate::env::sim::{CallKind, SimEnv};
use crate::error::Error;
use crate::filename;

fn dir() -> &'static Path {
    Path::new("/db")
}

pub(super) fn xorshift(seed: u64) -> impl FnMut() -> u64 {
    let mut x = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    move || {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        x >> 11
    }
}

/// What may be found after a crash.
#[derive(Default, Clone)]
struct Possible {
    /// Whether the store must be there.
    created: bool,
    /// One of these states: the last acknowledged one, and that of an edit under way.
    possible: Vec<State>,
}

/// Creates or opens, appends what is left of the history (a failure is answered with `replace`
/// up to twice, as `resume` does), replaces now and then. `out` is what was possible before.
fn workload(env: &MemEnv, from: usize, mut out: Possible) -> Possible {
    let states = states();
    let shared = Arc::new(env.clone());
    let opened = match load(env, dir(), &Orders::default()) {
        Ok(loaded) => {
            // Until the open is done, what was read may be in the page cache only.
            let reopened = loaded.state.apply(&VersionEdit::from(vec![Change::Reopened])).unwrap();
            out.possible.extend([loaded.state.clone(), reopened]);
            Manifest::open(shared, dir(), loaded)
        }
        Err(Error::NotAStore { .. }) => {
            out.possible.push(states[0].clone());
            Manifest::create(shared, dir(), states[0].clone())
        }
        Err(_) => return out,
    };
    let Ok(mut manifest) = opened else { return out };
    out.created = true;
    for (i, edit) in history().iter().enumerate().skip(from) {
        let next = manifest.state().apply(edit).unwrap();
        out.possible = vec![manifest.state().clone(), next];
        let mut result = manifest.append(edit);
        for _ in 0..2 {
            if result.is_ok() {
                break;
            }
            assert!(manifest.failed().is_some());
            assert!(matches!(manifest.append(edit), Err(Error::Halted { .. })));
            if manifest.replace().is_ok() {
                // The edit was not acknowledged and is not in force.
                result = manifest.append(edit);
            }
        }
        if result.is_err() {
            return out;
        }
        out.possible.remove(0);
        if i % 4 == 3 && manifest.replace().is_err() && manifest.failed().is_some() {
            return out;
        }
    }
    out.possible = vec![manifest.state().clone()];
    out
}

/// What may be loaded after `outcome`.
fn check(env: &MemEnv, outcome: &Possible, what: &str) {
    match load(env, dir(), &Orders::default()) {
        Ok(loaded) => {
            let known = outcome.possible.contains(&loaded.state);
            assert!(known, "{what}: another state, {} edits", loaded.edits);
        }
        Err(Error::NotAStore { .. }) => assert!(!outcome.created, "{what}: the store is gone"),
        Err(e) => panic!("{what}: {e}"),
    }
}

/// How far a state is in the history.
fn position(env: &MemEnv) -> usize {
    let Ok(loaded) = load(env, dir(), &Orders::default()) else { return 0 };
    // A clean close may have ended since; otherwise states are told apart by their snapshots.
    let open = |s: &State| s.apply(&VersionEdit::from(vec![Change::Reopened])).unwrap();
    let states = states();
    let found = states.iter().rposition(|s| open(s) == open(&loaded.state));
    found.expect("a state of the history")
}

#[test]
pub(super) fn any_failing_call_and_any_crash_keep_what_was_acknowledged() {
    let whole = MemEnv::default();
    workload(&whole, 0, Possible::default());
    let calls = whole.calls();
    assert!(calls > 50, "{calls}");
    let mut random = xorshift(1);
    for call in 0..calls {
        for (forever, short) in [(false, false), (false, true), (true, false), (true, true)] {
            let env = MemEnv::default();
            env.fail(Some(Fail { call, forever, short }));
            let outcome = workload(&env, 0, Possible::default());
            env.fail(None);
            let what = format!("call {call}, forever {forever}, short {short}");
            check(&env.kill(), &outcome, &format!("{what}, killed"));
            for image in 0..20 {
                let cut = env.power_cut(&mut random);
                check(&cut, &outcome, &format!("{what}, power cut {image}"));
            }
        }
    }
}

#[test]
pub(super) fn crashes_during_recovery_from_crashes() {
    let whole = MemEnv::default();
    workload(&whole, 0, Possible::default());
    let calls = whole.calls();
    let mut random = xorshift(2);
    for round in 0..3000 {
        let mut env = MemEnv::default();
        let mut outcome = Possible::default();
        for depth in 0..4 {
            let from = position(&env.kill());
            let call = env.calls() + random() % (calls / (depth + 1));
            env.fail(Some(Fail { call, forever: true, short: random().is_multiple_of(2) }));
            outcome = workload(&env, from, outcome);
            env.fail(None);
            env = match random() % 2 {
                0 => env.kill(),
                _ => env.power_cut(&mut random),
            };
            check(&env, &outcome, &format!("round {round}, depth {depth}"));
        }
    }
}

#[test]
pub(super) fn nothing_is_appended_behind_a_torn_record() {
    let env = MemEnv::default();
    workload(&env, 0, Possible::default());
    let name = filename::manifest(load(&env, dir(), &Orders::default()).unwrap().number);
    let mut bytes = env.bytes(&name);
    bytes.extend_from_slice(&[0; 100]);
    env.put(&name, &bytes);
    let loaded = load(&env, dir(), &Orders::default()).unwrap();
    assert!(loaded.torn.is_some());
    let mut manifest = Manifest::open(Arc::new(env.clone()), dir(), loaded).unwrap();
    assert_ne!(filename::manifest(manifest.number()), name);
    assert!(!env.names().contains(&name));
    manifest.append(&VersionEdit::from(vec![Change::LastSeq { seq: 9999 }])).unwrap();
    let loaded = load(&env, dir(), &Orders::default()).unwrap();
    assert_eq!((loaded.state.last_seq, loaded.torn), (9999, None));
}

#[test]
fn a_clean_close_ends_with_the_next_edit() {
    let env = MemEnv::default();
    workload(&env, 0, Possible::default());
    let loaded = load(&env, dir(), &Orders::default()).unwrap();
    assert!(loaded.state.closed, "a look at it changes nothing");
    let mut manifest = Manifest::open(Arc::new(env.clone()), dir(), loaded).unwrap();
    assert!(manifest.state().closed, "nothing was written to the log yet");
    manifest.append(&VersionEdit::from(vec![Change::Reopened])).unwrap();
    assert!(!load(&env, dir(), &Orders::default()).unwrap().state.closed);
}

#[test]
fn a_grown_manifest_starts_over() {
    let env = MemEnv::default();
    let state = states()[1].clone();
    let mut manifest = Manifest::create(Arc::new(env.clone()), dir(), state).unwrap();
    let mut numbers = 1;
    for seq in 0..40_000 {
        let before = manifest.number();
        manifest.append(&VersionEdit::from(vec![Change::LastSeq { seq }])).unwrap();
        numbers += u64::from(manifest.number() != before);
        assert!(manifest.len() <= (1 << 20) + 100);
    }
    assert!(numbers >= 2, "{numbers}");
    let loaded = load(&env, dir(), &Orders::default()).unwrap();
    assert!(loaded.state == *manifest.state());
    assert_eq!(env.names(), ["CURRENT".to_owned(), filename::manifest(manifest.number())]);
}

/// The failure was dropped, and whoever synced the directory next was told that all was well, whatever name it had lost.
#[test]
fn a_directory_that_could_not_be_synced_for_a_new_manifest_was_not_told() {
    let (env, state) = (SimEnv::new(1, true), states()[1].clone());
    env.create_dir(Path::new("/db")).unwrap();
    let mut manifest = Manifest::create(Arc::new(env.clone()), Path::new("/db"), state).unwrap();
    let large = VersionEdit::from(vec![Change::LastSeq { seq: 777 }; 16 << 10]);
    while manifest.len() <= 1 << 20 {
        manifest.append(&large).unwrap();
    }
    env.fail_first(CallKind::SyncDir, "/db");
    assert!(manifest.append(&large).is_err());
    assert!(manifest.failed().is_some());
}

/// A disk that is full when the manifest would start over is not a reason to refuse an edit: the old
/// file is as good as before.
#[test]
fn a_grown_manifest_goes_on_where_a_new_one_fails() {
    const LARGE: u64 = 64 << 10;
    let large = || VersionEdit::from(vec![Change::LastSeq { seq: 777 }; LARGE as usize / 4]);
    let (mut fallbacks, mut failed) = (0, 0);
    for call in 0.. {
        let env = MemEnv::default();
        let state = states()[1].clone();
        let mut manifest = Manifest::create(Arc::new(env.clone()), dir(), state).unwrap();
        while manifest.len() <= 1 << 20 {
            manifest.append(&large()).unwrap();
        }
        let (number, len) = (manifest.number(), manifest.len());
        let last = VersionEdit::from(vec![Change::LastSeq { seq: 777 }]);
        env.fail(Some(Fail { call: env.calls() + call, forever: false, short: false }));
        let result = manifest.append(&last);
        env.fail(None);
        if manifest.failed().is_some() {
            assert!(result.is_err());
            failed += 1;
            // The sync for its name, which leaves the old one in force; the renaming, after which it is not known which is; and
            // the sync behind it.
            let loaded = load(&env.kill(), dir(), &Orders::default()).unwrap();
            assert!(failed > 1 || loaded.state.last_seq == manifest.state().last_seq);
            if failed == 3 {
                break;
            }
            continue;
        }
        result.unwrap();
        assert_eq!(manifest.state().last_seq, 777);
        let loaded = load(&env.kill(), dir(), &Orders::default()).unwrap();
        assert!(loaded.state == *manifest.state(), "call {call}");
        if manifest.number() != number {
            // Only what it can do without had failed.
            continue;
        }
        fallbacks += 1;
        assert!(manifest.len() > len);
        // It is tried again when the file is twice as long, and not at each edit until then.
        let mut before = 0;
        while manifest.number() == number {
            before = manifest.len();
            manifest.append(&large()).unwrap();
        }
        assert!((2 * len..2 * len + 100 + LARGE).contains(&before), "{before}");
        assert!(manifest.len() < 1000 + 2 * LARGE);
        let loaded = load(&env, dir(), &Orders::default()).unwrap();
        assert!(loaded.state == *manifest.state(), "call {call}");
    }
    assert!(fallbacks >= 5, "{fallbacks}");
}

#[test]
fn a_refused_edit_changes_nothing() {
    let env = MemEnv::default();
    let mut manifest = Manifest::create(Arc::new(env.clone()), dir(), states()[2].clone()).unwrap();
    let len = manifest.len();
    let unknown = Change::RemoveTable { keyspace: 0, number: 999 };
    for edit in [VersionEdit::from(vec![unknown]), VersionEdit::default()] {
        assert!(manifest.append(&edit).is_err());
        assert!(manifest.failed().is_none());
        assert_eq!(manifest.len(), len);
    }
    manifest.append(&history()[2]).unwrap();
}

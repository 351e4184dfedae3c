//! Every call of a workload fails once, and from then on, in each way.

use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::faults::{Case, Tally, run};
use super::number;
use crate::env::sim::{CallKind, Fault, FaultPlan, Rng};
use crate::fuzzing::testing::{quick_or_full, some_of};

const NONE_FAILS: Case =
    Case { seed: 1, plan: None, patience: 0, more: 0, random_ops: 0, images: 3, stepped: true };

/// Runs cases on two threads; the first that fails ends it.
fn all(what: &str, cases: impl Iterator<Item = Case> + Send) -> Tally {
    let cases = Mutex::new(cases);
    let tally = Mutex::new(Tally::default());
    let failed = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !failed.load(Ordering::Relaxed) {
                    let Some(case) = cases.lock().next() else { return };
                    let told = std::panic::catch_unwind(|| run(case))
                        .unwrap_or_else(|_| Err(format!("{case:?}\na panic; see above")));
                    match told {
                        Ok((one, _)) => tally.lock().add(one),
                        Err(e) => {
                            eprintln!("{e}");
                            failed.store(true, Ordering::Relaxed);
                        }
                    }
                }
            });
        }
    });
    assert!(!failed.into_inner(), "{what}: a case failed; its message is above");
    let tally = tally.into_inner();
    println!("{what}: {tally:?}");
    tally
}

/// The seeds of the workloads: one, or as many as there is to be work.
fn seeds(usual: u64) -> Vec<u64> {
    match (number("ESKER_SEED"), number("ESKER_IMAGES")) {
        (Some(seed), _) => vec![seed],
        (None, Some(images)) => (1..=usual * images.div_ceil(20_000)).collect(),
        (None, None) => (1..=usual).collect(),
    }
}

/// The calls of a workload in which none fails.
fn calls_of(seed: u64) -> Vec<CallKind> {
    let (_, calls) = run(Case { seed, images: 1, ..NONE_FAILS }).unwrap_or_else(|e| panic!("{e}"));
    assert!(calls.len() > 200, "{} calls", calls.len());
    calls
}

/// Every call, and each way to fail; a write that gets half through is a way of its own.
fn every_fault(seed: u64, from_then_on: bool) -> impl Iterator<Item = Case> {
    let calls = calls_of(seed);
    (0..calls.len()).flat_map(move |at| {
        let write = calls[at] == CallKind::Write;
        let ways = Fault::ALL.into_iter().filter(move |f| write || *f != Fault::ShortWrite);
        ways.map(move |fault| {
            let plan = FaultPlan { at: at as u64, fault, from_then_on };
            Case { seed, plan: Some(plan), images: 2, ..NONE_FAILS }
        })
    })
}

#[test]
fn every_call_fails_once_in_each_way() {
    let cases = some_of(seeds(1).into_iter().flat_map(|seed| every_fault(seed, false)), 12);
    let tally = all("each call once", cases);
    assert!(tally.errors > 0 && tally.halts > 0 && tally.resumed > 0);
}

#[test]
fn every_call_fails_and_all_that_follow() {
    let cases = some_of(seeds(1).into_iter().flat_map(|seed| every_fault(seed, true)), 12);
    let tally = all("each call and all that follow", cases);
    assert!(tally.errors > tally.runs && tally.vain > 0);
}

/// A failed sync marks pages clean that are not on the device. In the way of the workload, writes are
/// resumed at once or some operations later, and `resume` meets failures too.
#[test]
fn every_sync_fails() {
    let cases = seeds(quick_or_full(1, 3)).into_iter().flat_map(|seed| {
        let calls = calls_of(seed);
        (0..calls.len())
            .filter(move |n| matches!(calls[*n], CallKind::Sync | CallKind::SyncDir))
            .flat_map(move |at| {
                let plan = FaultPlan { at: at as u64, fault: Fault::Eio, from_then_on: false };
                let case = Case { seed, plan: Some(plan), images: 5, ..NONE_FAILS };
                [case, Case { patience: 4, ..case }, Case { more: 3, ..case }]
            })
    });
    let tally = all("each sync", some_of(cases, 2));
    assert!(tally.halts > 0 && tally.vain > 0 && tally.resumed > 0);
}

/// Several failures in one life, at random calls of random operations; the background thread runs
/// free in every eighth.
#[test]
fn calls_fail_at_random() {
    let cases = seeds(quick_or_full(30, 300)).into_iter().map(|seed| {
        let mut rng = Rng::part(seed, 4);
        let plan = FaultPlan {
            at: rng.below(2000) as u64,
            fault: Fault::ALL[rng.below(5)],
            from_then_on: rng.one_in(4),
        };
        let (patience, more) = (rng.below(4), rng.below(6));
        let stepped = seed % 8 != 0;
        let seed = 4_000_000 + seed;
        Case { seed, plan: Some(plan), patience, more, random_ops: 60, images: 4, stepped }
    });
    let tally = all("calls at random", cases);
    assert!(number("ESKER_SEED").is_some() || tally.resumed > 0);
}

//! The books on the debt: what writers and the compaction thread are told of it.

use std::time::Duration;

use super::backpressure::Backpressure;
use super::throttle::Admission;
use crate::options::Options;

const GIB: u64 = 1 << 30;

/// Its cap is twice the memory.
fn new() -> (Backpressure, u64) {
    let options = Options::new().memory(64 << 20);
    let backpressure = Backpressure::new(&options);
    let cap = backpressure.cap();
    assert_eq!(cap, options.pending_cap());
    (backpressure, cap)
}

#[test]
fn below_the_soft_cap_nobody_asks() {
    let (p, cap) = new();
    for pending in [0, 1, cap / 4] {
        p.set_pending(pending);
        assert_eq!(p.pending(), pending);
        assert_eq!(p.due(|_| 1 << 20), None);
    }
    p.set_pending(cap / 4 + 1);
    assert_eq!(p.due(|_| 1 << 20), Some(1 << 20));
}

#[test]
fn small_writes_ask_together() {
    let (p, cap) = new();
    p.set_pending(cap / 2);
    assert_eq!(p.due(|_| 5000), None);
    assert_eq!(p.due(|_| 3191), None);
    assert_eq!(p.due(|_| 1), Some(8192));
    // They were asked about; it begins anew.
    assert_eq!(p.due(|_| 8191), None);
    // At the cap each asks at once, for what had not asked before.
    p.set_pending(cap);
    assert_eq!(p.due(|_| 2), Some(8193));
    assert_eq!(p.due(|_| 1), Some(1));
}

#[test]
fn the_debt_is_a_share_of_the_cap() {
    let (p, cap) = new();
    assert_eq!(p.debt(), 0.0);
    p.set_pending(cap / 2);
    assert_eq!(p.debt(), 0.5);
    p.set_pending(3 * cap);
    assert_eq!(p.debt(), 1.0);
}

#[test]
fn a_flush_interrupts_a_compaction_from_half_of_the_soft_cap_on() {
    let (p, cap) = new();
    p.set_pending(cap / 8);
    assert!(!p.flush_may_interrupt());
    p.set_pending(cap / 8 + 1);
    assert!(p.flush_may_interrupt());
}

#[test]
fn a_compaction_that_presses_has_its_share_of_the_time() {
    let (p, cap) = new();
    p.set_pending(cap / 4);
    p.set_pressure(0, 1.0);
    p.note_flush(1_000_000, 1_000_000, Duration::from_secs(1000));
    assert!(!p.flush_may_interrupt(), "8,000 seconds are the compaction's");
    // Writers are not stopped for it.
    p.set_pending(cap / 4 * 3 + 1);
    assert!(p.flush_may_interrupt());
    // What presses is known later.
    p.set_pending(cap / 4);
    p.set_pressure(0, 0.0);
    p.note_flush(1_000_000, 1_000_000, Duration::from_secs(1000));
    assert!(p.flush_may_interrupt());
    p.set_pressure(0, 1.0);
    assert!(!p.flush_may_interrupt());
    // Nothing presses: the next one comes when it is wanted.
    p.set_pressure(0, 0.0);
    p.note_flush(1_000_000, 1_000_000, Duration::from_secs(1000));
    p.set_pending(cap / 4);
    assert!(p.flush_may_interrupt());
}

#[test]
fn writers_go_at_the_rate_of_flushes_that_share_the_time() {
    let wait = |pressure: f64| {
        let (p, cap) = new();
        p.note_flush(1_000_000_000, 1_000_000_000, Duration::from_secs(1));
        p.set_pending(cap / 2);
        p.set_pressure(0, pressure);
        p.admit(1 << 20)
    };
    let Admission::Wait { slice: shared, .. } = wait(1.0) else { panic!("nothing to wait for") };
    let less = |a| matches!(a, Admission::Wait { slice, .. } if slice <= shared);
    assert!(wait(0.0) == Admission::Go || less(wait(0.0)));
    assert!(shared > Duration::from_micros(900), "{shared:?}");
}

#[test]
fn writers_stop_at_the_cap_and_wait_before_it() {
    let (p, cap) = new();
    p.set_pending(cap);
    assert_eq!(p.admit(0), Admission::Full);
    // A write longer than what is left passes: segments are counted when they are sealed.
    p.set_pending(cap - 1);
    assert!(matches!(p.admit(1 << 20), Admission::Go | Admission::Wait { .. }));
    p.set_pending(0);
    assert_eq!(p.admit(1 << 20), Admission::Go);
    assert_eq!(p.more(Duration::MAX), Admission::Go);
    // Nearly full, and flushes are known to be slow: a long write owes slices.
    p.note_flush(1_000_000, 1_000_000, Duration::from_secs(1));
    p.set_pending(cap / 100 * 95);
    let admission = p.admit(1 << 20);
    let Admission::Wait { until, .. } = admission else { panic!("{admission:?}") };
    assert!(matches!(p.more(until), Admission::Wait { .. }));
}

#[test]
fn what_a_flush_has_done_relieves_writers() {
    // Most of what is held is being flushed, by a disk that takes 1 MB a second.
    let wait = |share: Option<f64>| {
        let (p, cap) = new();
        p.note_flush(1_000_000, 1_000_000, Duration::from_secs(1));
        p.set_pending(cap / 2);
        p.begin_flush(cap / 2, cap / 2);
        match share {
            Some(share) => p.set_progress(share),
            None => p.end_flush(),
        }
        // Long ago nothing was owed, so one slice of this write is free.
        p.admit(4 << 10)
    };
    assert!(matches!(wait(Some(0.0)), Admission::Wait { .. }));
    assert_eq!(wait(Some(1.0)), Admission::Go);
    // Its end alone frees nothing: what is held is told when the segments are gone.
    assert!(matches!(wait(None), Admission::Wait { .. }));
}

#[test]
fn tidying_has_a_credit_that_writes_add_to() {
    let (p, _) = new();
    // Who only asks has taken nothing.
    assert!(p.may_tidy(GIB, 0) && p.may_tidy(GIB, 0));
    p.note_tidied(GIB);
    // Spent, but for what a second adds: two megabytes.
    assert!(!p.may_tidy(GIB, 0));
    // Every byte written gives eight.
    assert!(p.may_tidy(GIB, GIB / 8));
    p.note_tidied(GIB);
    assert!(!p.may_tidy(GIB / 2, GIB / 8));
    assert!(p.may_tidy(GIB / 2, u64::MAX / 16));
}

/// Each of the writers that rested then passed the cap once.
#[test]
fn a_write_that_rested_went_on_at_the_cap() {
    let (p, cap) = new();
    p.set_pending(cap / 2);
    let Admission::Wait { until, .. } = p.admit(16 << 20) else { panic!("it does not wait") };
    p.set_pending(cap);
    assert_eq!(p.more(until), Admission::Full);
    p.set_pending(0);
    assert_eq!(p.more(Duration::ZERO), Admission::Go);
}

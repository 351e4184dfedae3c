//! The curves that slow writers down, at the points that their documentation names.

use std::time::Duration;

use super::throttle::{Admission, FlushRate, SLICE, StallInput, Throttle, remaining};

const MIB: u64 = 1 << 20;
const HARD: u64 = 64 * MIB;
const SOFT: u64 = HARD / 4;
/// Where writers bring as much as flushes take: 0.45 of the cap.
const BALANCE: u64 = HARD / 100 * 45;

fn close(a: f64, b: f64) {
    assert!((a - b).abs() <= 1e-3 * b.abs().max(1e-3), "{a} is not {b}");
}

/// Nothing is being flushed; a flush takes 64 MB a second.
fn backpressure(held: u64) -> StallInput {
    StallInput {
        held,
        flushing: 0,
        progress: 0,
        remaining: Duration::ZERO,
        soft: SOFT,
        hard: HARD,
        readers: 0.0,
        overdue: 0.0,
        rate: FlushRate::default(),
    }
}

fn secs(s: f64) -> Duration {
    Duration::from_secs_f64(s)
}

#[test]
fn the_rate_is_that_of_the_last_flushes() {
    let mut rate = FlushRate::default();
    assert_eq!(rate.bytes_per_s(), 64e6);
    // The first flush counts alone; the next as much as its time, 1 - 1/e for two seconds.
    rate.measured(10_000_000, secs(1.0));
    close(rate.bytes_per_s(), 10e6);
    rate.measured(40_000_000, secs(2.0));
    close(rate.bytes_per_s(), 10e6 + 10e6 * (1.0 - (-1.0f64).exp()));
    // Nonsense of a clock stays within what disks do.
    let mut rate = FlushRate::default();
    rate.measured(0, secs(1.0));
    assert_eq!(rate.bytes_per_s(), 1e5);
    let mut rate = FlushRate::default();
    rate.measured(u64::MAX, Duration::ZERO);
    assert_eq!(rate.bytes_per_s(), 1e11);
}

/// Dead values grew without a bound behind a compaction that had its share of the time.
#[test]
fn compactions_that_are_overdue_slow_writers_down_whatever_waits() {
    let p = |overdue| StallInput { overdue, ..backpressure(0) }.slowdown();
    close(p(-1.0), 0.0);
    close(p(0.0), 0.0);
    assert!(p(0.2) > 0.0 && p(0.2) < 1.0);
    close(p(1.0), 10.0);
    close(p(50.0), 10.0);
    let rises = (0..100).map(|n| p(f64::from(n) / 25.0)).collect::<Vec<_>>();
    assert!(rises.is_sorted() && rises.windows(2).all(|w| w[1] - w[0] < 1.0), "{rises:?}");
}

#[test]
fn readers_move_the_balance_down_to_a_quarter() {
    let p = |held, readers| StallInput { readers, soft: SOFT / 4, ..backpressure(held) };
    close(p(BALANCE, 0.0).slowdown(), 1.0);
    close(p(BALANCE / 4, 1.0).slowdown(), 1.0);
    assert!(p(BALANCE / 4, 0.0).slowdown() < 0.1);
    assert!(p(BALANCE / 4, 0.0).slowdown() < p(BALANCE / 4, 0.5).slowdown());
}

#[test]
fn a_flush_tells_itself_how_long_it_still_takes() {
    let expected = Some(secs(100.0));
    assert_eq!(remaining(secs(4.0), 0.5, expected), secs(4.0));
    assert_eq!(remaining(secs(4.0), 0.25, expected), secs(12.0));
    assert_eq!(remaining(secs(1.0), 0.05, expected), secs(19.0));
    assert_eq!(remaining(secs(4.0), 1.0, expected), Duration::ZERO);
    assert_eq!(remaining(secs(4.0), 1.5, expected), Duration::ZERO);
    // Too little done to tell: what flushes took before, if there were any.
    assert_eq!(remaining(secs(4.0), 0.049, expected), secs(96.0));
    assert_eq!(remaining(secs(4.0), 0.0, expected), secs(96.0));
    assert_eq!(remaining(secs(101.0), 0.0, expected), Duration::ZERO);
    assert_eq!(remaining(secs(4.0), 0.0, None), Duration::ZERO);
}

#[test]
fn the_brake_at_its_corners_and_between() {
    assert_eq!(backpressure(0).slowdown(), 0.0);
    assert_eq!(backpressure(SOFT).slowdown(), 0.0);
    close(backpressure(SOFT + (BALANCE - SOFT) / 2).slowdown(), 0.25);
    close(backpressure(BALANCE).slowdown(), 1.0);
    close(backpressure(BALANCE + (HARD - BALANCE) / 2).slowdown(), 1.0 + 9.0 / 4.0);
    close(backpressure(HARD).slowdown(), 10.0);
    // What the running flush has written already presses no more.
    let flushed =
        StallInput { flushing: 8 * MIB, progress: 8 * MIB, ..backpressure(BALANCE + 8 * MIB) };
    close(flushed.slowdown(), 1.0);
}

#[test]
fn a_flush_larger_than_the_room_that_is_left_brakes_harder() {
    let p = |held, flushing, progress| StallInput { flushing, progress, ..backpressure(held) };
    // 50 MiB are being flushed and 4 are left: twelve and a half times too many.
    close(p(60 * MIB, 50 * MIB, 0).slowdown(), 12.5);
    close(p(60 * MIB, 50 * MIB, 10 * MIB).slowdown(), 10.0);
    // As many as there is room for: the curve alone.
    let held = 32 * MIB;
    close(p(held, held, 0).slowdown(), backpressure(held).slowdown());
    // At the cap no room is left, and the brake still has an end.
    close(p(HARD, HARD, 0).slowdown(), 100.0);
    // Below the soft cap nobody waits, whatever is being flushed.
    assert_eq!(p(SOFT, 10 * HARD, 0).slowdown(), 0.0);
}

#[test]
fn a_write_takes_its_flush_time_or_its_share_of_the_room() {
    close(backpressure(BALANCE).fair_time(64_000).as_secs_f64(), 0.001);
    close(backpressure(HARD).fair_time(64_000).as_secs_f64(), 0.010);
    assert_eq!(backpressure(HARD).fair_time(u64::MAX / 2), secs(1.0));
    // Half of the cap is left for a flush of two seconds, nine tenths of it to be used.
    let half = StallInput { flushing: MIB, remaining: secs(2.0), ..backpressure(HARD / 2) };
    close(half.fair_time(MIB).as_secs_f64(), 2.0 / (32.0 * 0.9));
    // No flush, or no pressure: no share.
    let none = StallInput { flushing: 0, ..half };
    assert!(none.fair_time(MIB) < half.fair_time(MIB));
    let low = StallInput { held: SOFT, ..half };
    assert_eq!(low.fair_time(MIB), Duration::ZERO);
}

#[test]
fn writes_stop_at_the_cap_and_not_before() {
    let mut throttle = Throttle::default();
    assert_eq!(throttle.admit(secs(9.0), &backpressure(HARD), 0), Admission::Full);
    assert_ne!(throttle.admit(secs(9.0), &backpressure(HARD - 1), MIB), Admission::Full);
}

#[test]
fn short_waits_add_up_until_they_can_be_slept() {
    let now = secs(9.0);
    let mut throttle = Throttle::default();
    let admit = |t: &mut Throttle, bytes| t.admit(now, &backpressure(BALANCE), bytes);
    // At rest for long: one slice of it may be used, a millisecond, which is 64,000 bytes.
    assert_eq!(admit(&mut throttle, 64_000), Admission::Go);
    // 100 us are too short to sleep; with as much again they are not.
    assert_eq!(admit(&mut throttle, 6_400), Admission::Go);
    let Admission::Wait { slice, until } = admit(&mut throttle, 6_400) else { panic!("no wait") };
    close(slice.as_secs_f64(), 200e-6);
    // Part of it waited, the rest is too short again.
    assert_eq!(throttle.more(now + secs(100e-6), until), Admission::Go);
    let Admission::Wait { slice, .. } = throttle.more(now + secs(30e-6), until) else {
        panic!("no wait")
    };
    close(slice.as_secs_f64(), 170e-6);
    // No pressure, no debts.
    assert_eq!(throttle.admit(now, &backpressure(SOFT), 6_400), Admission::Go);
    assert_eq!(throttle.more(now, until), Admission::Go);
}

#[test]
fn a_long_write_waits_several_slices_and_no_more() {
    let now = secs(9.0);
    let mut throttle = Throttle::default();
    // 80 KiB stand for ten slices and the first; at the cap it would owe thirteen.
    let bytes = 80 << 10;
    let p = StallInput { held: HARD - bytes, ..backpressure(0) };
    let until = now + SLICE * 11;
    let wait = Admission::Wait { slice: SLICE, until };
    assert_eq!(throttle.admit(now, &p, bytes), wait);
    assert_eq!(throttle.more(now + SLICE * 10, until), wait);
    assert_eq!(throttle.more(now + SLICE * 11, until), Admission::Go);
    // A short one owes a slice at most, and does not pay for what was forgiven the long one.
    let mut throttle = Throttle::default();
    for _ in 0..100 {
        throttle.admit(now, &p, 1_000);
    }
    let until = now + SLICE;
    assert_eq!(throttle.more(now, until), Admission::Wait { slice: SLICE, until });
    assert_eq!(throttle.more(now + SLICE, until), Admission::Go);
}

/// Each write that came later put off the ones that waited, without end where there are several writers.
#[test]
fn a_write_waits_for_what_it_owes_itself_whoever_comes_later() {
    let now = secs(9.0);
    let mut throttle = Throttle::default();
    let p = StallInput { held: HARD - (64 << 10), ..backpressure(0) };
    let Admission::Wait { until, .. } = throttle.admit(now, &p, 8 << 10) else { panic!("no wait") };
    assert!(until <= now + SLICE * 2);
    for slices in 1..100 {
        let at = now + SLICE * slices;
        throttle.admit(at, &p, 8 << 10);
        let goes = throttle.more(at, until) == Admission::Go;
        assert!(goes || at < until, "still waits after {slices} slices");
    }
}

//! The curve that slows writers down, at the points that its documentation names.

use std::time::Duration;

use super::throttle::{Admission, Debt, FlushRate, SLICE, Throttle};

const MIB: u64 = 1 << 20;
const HARD: u64 = 64 * MIB;
const SOFT: u64 = HARD / 4;
/// Where writers bring as much as flushes take: an eleventh of the way from the soft limit to the cap.
const BALANCE: u64 = SOFT + (HARD - SOFT) / 11;

fn close(a: f64, b: f64) {
    assert!((a - b).abs() <= 1e-3 * b.abs().max(1e-3), "{a} is not {b}");
}

/// Nothing of it was written yet.
fn debt(held: u64) -> Debt {
    Debt { held, flushed: 0, cap: HARD }
}

/// Of the default rate: a flush takes 64 MB a second.
fn delay(held: u64, bytes: u64) -> Option<Duration> {
    debt(held).delay(FlushRate::default(), bytes)
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

#[test]
fn the_slowdown_at_its_corners_and_between() {
    assert_eq!(debt(0).slowdown(), 0.0);
    assert_eq!(debt(SOFT).slowdown(), 0.0);
    close(debt(BALANCE).slowdown(), 1.0);
    close(debt(SOFT + (HARD - SOFT) / 2).slowdown(), 10.0);
    close(debt(HARD).slowdown(), 100.0);
    // A batch may be larger than the cap.
    close(debt(2 * HARD).slowdown(), 100.0);
    // What the running flush has written already presses no more; but it takes room until its end.
    let flushed = Debt { flushed: 8 * MIB, ..debt(BALANCE + 8 * MIB) };
    close(flushed.slowdown(), (HARD - BALANCE) as f64 / (HARD - BALANCE - 8 * MIB) as f64);
}

#[test]
fn a_write_takes_its_flush_time_times_the_slowdown() {
    close(delay(BALANCE, 64_000).unwrap().as_secs_f64(), 0.001);
    close(delay(HARD - 64_000, 64_000).unwrap().as_secs_f64(), 0.100);
    assert_eq!(delay(SOFT, MIB), Some(Duration::ZERO));
    let slow = Debt { cap: u64::MAX, ..debt(u64::MAX / 2) };
    assert_eq!(slow.delay(FlushRate::default(), u64::MAX / 4), Some(secs(1.0)));
}

#[test]
fn what_fits_is_what_the_cap_allows() {
    assert!(delay(HARD - 100, 100).is_some());
    assert_eq!(delay(HARD - 100, 101), None);
    assert_eq!(delay(HARD, u64::MAX), None);
    // What is written already is held until the flush has ended.
    let flushed = Debt { flushed: HARD, ..debt(HARD - 100) };
    assert_eq!(flushed.delay(FlushRate::default(), 101), None);
    let mut throttle = Throttle::default();
    let admission = throttle.admit(secs(9.0), &debt(HARD - 100), FlushRate::default(), 101);
    assert_eq!(admission, Admission::Full);
}

#[test]
fn short_waits_add_up_until_they_can_be_slept() {
    let now = secs(9.0);
    let mut throttle = Throttle::default();
    let admit = |t: &mut Throttle, bytes| t.admit(now, &debt(BALANCE), FlushRate::default(), bytes);
    // At rest for long: one slice of it may be used, a millisecond, which is 64,000 bytes.
    assert_eq!(admit(&mut throttle, 64_000), Admission::Go);
    // 100 us are too short to sleep; with as much again they are not.
    assert_eq!(admit(&mut throttle, 6_400), Admission::Go);
    let Admission::Wait(rest) = admit(&mut throttle, 6_400) else { panic!("no wait") };
    close(rest.as_secs_f64(), 200e-6);
    // Part of it waited, the rest is too short again.
    assert_eq!(throttle.more(now + secs(100e-6)), Admission::Go);
    let Admission::Wait(rest) = throttle.more(now + secs(30e-6)) else { panic!("no wait") };
    close(rest.as_secs_f64(), 170e-6);
    // No pressure, no debts.
    assert_eq!(throttle.admit(now, &debt(SOFT), FlushRate::default(), 6_400), Admission::Go);
    assert_eq!(throttle.more(now), Admission::Go);
}

#[test]
fn a_long_write_waits_several_slices_and_no_more() {
    let now = secs(9.0);
    let mut throttle = Throttle::default();
    // 80 KiB stand for ten slices and the first; at the cap it would owe thirteen.
    let bytes = 80 << 10;
    let (debt, rate) = (debt(HARD - bytes), FlushRate::default());
    assert_eq!(throttle.admit(now, &debt, rate, bytes), Admission::Wait(SLICE));
    assert_eq!(throttle.more(now + SLICE * 10), Admission::Wait(SLICE));
    assert_eq!(throttle.more(now + SLICE * 11), Admission::Go);
    // A short one owes a slice at most, and does not pay for what was forgiven the long one.
    let mut throttle = Throttle::default();
    for _ in 0..100 {
        throttle.admit(now, &debt, rate, 1_000);
    }
    assert_eq!(throttle.more(now), Admission::Wait(SLICE));
    assert_eq!(throttle.more(now + SLICE), Admission::Go);
}

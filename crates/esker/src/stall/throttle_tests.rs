//! Writers and a flusher on a simulated clock.

use std::time::Duration;

use super::throttle::{Admission, FlushRate, SLICE, StallInput, Throttle, remaining};

const MIB: u64 = 1 << 20;

struct Setup {
    put: u64,
    /// What a put costs by itself.
    put_takes: Duration,
    /// Bytes per second that a flush takes; a function of time.
    disk: fn(f64) -> f64,
    seconds: u64,
}

#[derive(Debug, Default)]
struct Run {
    /// Bytes admitted in each 100 ms.
    windows: Vec<u64>,
    longest_wait: Duration,
    full: Duration,
    most_held: u64,
}

const HARD: u64 = 64 * MIB;
const SEGMENT: u64 = 8 * MIB;

fn run(setup: &Setup) -> Run {
    let mut out = Run { windows: vec![0; setup.seconds as usize * 10], ..Run::default() };
    let (mut now, mut throttle, mut rate) =
        (Duration::ZERO, Throttle::default(), FlushRate::default());
    let mut held = 0u64;
    // The running flush: its bytes, those done, its start, and the time up to which it is done.
    let mut flush: Option<(u64, f64, Duration, Duration)> = None;
    let end = Duration::from_secs(setup.seconds);
    while now < end {
        let began = now;
        let mut admitted = None;
        loop {
            advance(&mut flush, &mut held, &mut rate, now, setup.disk);
            let progress = flush.map_or(0, |(_, done, ..)| done as u64);
            let flushing = flush.map_or(0, |(bytes, ..)| bytes);
            let remaining = flush.map_or(Duration::ZERO, |(bytes, done, start, _)| {
                remaining(now - start, done / bytes as f64, None)
            });
            let (soft, hard) = (HARD / 4, HARD);
            let readers = 0.0;
            let overdue = 0.0;
            let p = StallInput {
                held,
                flushing,
                progress,
                remaining,
                soft,
                hard,
                readers,
                overdue,
                rate,
            };
            let answer = match admitted {
                _ if held + setup.put > HARD => Admission::Full,
                None => throttle.admit(now, &p, setup.put),
                Some(until) => throttle.more(now, until),
            };
            match answer {
                Admission::Go => break,
                Admission::Wait { slice, until } => {
                    assert!(slice <= SLICE);
                    admitted = Some(until);
                    now += slice;
                }
                Admission::Full => {
                    now += SLICE;
                    out.full += SLICE;
                }
            }
            if now >= end {
                return out;
            }
        }
        held += setup.put;
        assert!(held <= HARD);
        out.most_held = out.most_held.max(held);
        out.longest_wait = out.longest_wait.max(now - began);
        out.windows[(now.as_millis() / 100) as usize] += setup.put;
        now += setup.put_takes;
    }
    out
}

fn advance(
    flush: &mut Option<(u64, f64, Duration, Duration)>,
    held: &mut u64,
    rate: &mut FlushRate,
    now: Duration,
    disk: fn(f64) -> f64,
) {
    match flush {
        None => {
            let sealed = *held / SEGMENT * SEGMENT;
            if sealed > 0 {
                *flush = Some((sealed, 0.0, now, now));
            }
        }
        Some((bytes, done, start, at)) => {
            *done += disk(now.as_secs_f64()) * (now - *at).as_secs_f64();
            *at = now;
            if *done >= *bytes as f64 {
                *held -= *bytes;
                rate.measured(*bytes, now - *start);
                *flush = None;
            }
        }
    }
}

/// After the first second: the mean, and the least window's share of it.
fn smoothness(run: &Run) -> (f64, f64) {
    let steady = &run.windows[10..run.windows.len() - 1];
    let mean = steady.iter().sum::<u64>() as f64 / steady.len() as f64;
    (mean * 10.0, *steady.iter().min().unwrap() as f64 / mean)
}

#[test]
fn writers_meet_the_flush_rate_without_a_stop() {
    for put in [128, 4096, 64 << 10, MIB] {
        for disk in [|_| 30e6, |_| 100e6, |_| 400e6] as [fn(f64) -> f64; 3] {
            let put_takes = Duration::from_nanos(300 + put / 4);
            let run = run(&Setup { put, put_takes, disk, seconds: 8 });
            let (mean, least) = smoothness(&run);
            let share = mean / disk(0.0);
            let what = format!(
                "put {put}, disk {}: {:.0} % of it, least window {:.0} %, full {:?}, longest {:?}, held {} MiB",
                disk(0.0),
                share * 100.0,
                least * 100.0,
                run.full,
                run.longest_wait,
                run.most_held / MIB
            );
            println!("{what}");
            assert!(run.full.is_zero(), "{what}");
            assert!((0.85..1.05).contains(&share), "{what}");
            assert!(least > 0.4, "{what}");
            let slices = 2 + (put >> 13) as u32;
            assert!(run.longest_wait <= SLICE * slices, "{what}");
        }
    }
}

#[test]
fn a_flush_that_takes_long_slows_writers_and_does_not_stop_them() {
    // Every third second flushes write much more than they free.
    let disk = |t: f64| if t % 3.0 > 2.0 { 12e6 } else { 100e6 };
    let run = run(&Setup { put: 200, put_takes: Duration::from_nanos(500), disk, seconds: 12 });
    // The flush that is running when the disk slows down has told of a faster one.
    assert!(run.full < Duration::from_millis(50), "{:?}", run.full);
    let (_, least) = smoothness(&run);
    assert!(least > 0.01, "{least}");
}

#[test]
fn below_the_soft_cap_nobody_waits() {
    // 20 MB/s into a disk of 400.
    let put_takes = Duration::from_micros(50);
    let run = run(&Setup { put: 1000, put_takes, disk: |_| 400e6, seconds: 3 });
    assert_eq!(run.longest_wait, Duration::ZERO);
}

#[test]
fn a_disk_that_halts_stops_writers_at_the_cap_only() {
    let disk = |t: f64| if (2.0..4.0).contains(&t) { 0.0 } else { 100e6 };
    let run = run(&Setup { put: 4096, put_takes: Duration::from_micros(1), disk, seconds: 8 });
    assert!(run.most_held <= HARD && run.most_held > HARD / 10 * 7, "{}", run.most_held);
    // Slowed long before: in the first half second of the halt something still goes in.
    assert!(run.windows[20..25].iter().all(|&w| w > 0), "{:?}", run.windows);
    assert!(run.windows[50..79].iter().all(|&w| w > 2_000_000), "{:?}", run.windows);
}

#[test]
fn the_brake_is_continuous_and_rises() {
    let p = |held| StallInput {
        held,
        flushing: 0,
        progress: 0,
        remaining: Duration::ZERO,
        soft: HARD / 4,
        hard: HARD,
        readers: 0.0,
        overdue: 0.0,
        rate: FlushRate::default(),
    };
    let mut last = 0.0;
    for step in 0..=1000 {
        let slowdown = p(HARD / 1000 * step).slowdown();
        assert!(slowdown >= last && slowdown - last < 0.1, "{step}: {last} -> {slowdown}");
        last = slowdown;
    }
    assert!(last > 9.0);
}

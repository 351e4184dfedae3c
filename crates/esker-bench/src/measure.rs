//! Time and latency of operations, without the measuring weighing on what is measured.
//!
//! Reading the clock costs some 20 ns, a tenth of a fast write. So rows of fast operations time one
//! operation in 16 or so (the distance is random between 8 and 24, so that it cannot fall in step
//! with the engine's own rhythm). A stall between two timed operations is still seen: the time of
//! the whole stretch is known, and the longest stretch, less what its operations usually take,
//! counts as the slowest operation.

mod windows;

pub use windows::{QUARTER_S, Series, Side};

use crate::calls;
use anyhow::Result;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};
use windows::{Stretch, Windows};

/// Which operations are timed one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timing {
    /// Every one: for operations that cost more than about 2 µs.
    Every,
    /// One in 16 on average.
    Sampled,
}

/// When a loop ends: after so many operations or at a point in time, whatever comes first.
#[derive(Debug, Clone, Copy)]
pub struct Until {
    ops: u64,
    deadline: Option<Instant>,
}

impl Until {
    /// After so many operations.
    pub fn ops(ops: u64) -> Self {
        Until::ops_or(ops, None)
    }
    /// At a point in time.
    pub fn time(at: Instant) -> Self {
        Until::ops_or(u64::MAX, Some(at))
    }
    /// After so many operations, or at a point in time if there is one.
    pub fn ops_or(ops: u64, deadline: Option<Instant>) -> Self {
        Until { ops, deadline }
    }
}

/// Records one thread's operations.
#[derive(Debug)]
pub struct Recorder {
    timing: Timing,
    latency_ns: Histogram<u64>,
    windows: Windows,
    ops: u64,
    elapsed: Duration,
    jitter: u32,
}

/// Percentiles of a row, in microseconds.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Latency {
    /// Median.
    pub p50_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// 99.9th percentile.
    pub p999_us: f64,
    /// The slowest.
    pub max_us: f64,
    /// How many operations were timed one by one.
    pub timed: u64,
    /// Pairs of percentile and microseconds, closer together towards 100.
    pub hist: Vec<(f64, f64)>,
}

impl Recorder {
    /// An empty recorder.
    pub fn new(timing: Timing) -> Self {
        let latency_ns = Histogram::new_with_bounds(1, 3_600_000_000_000, 3)
            .expect("three digits from a nanosecond to an hour is a valid range");
        Recorder {
            timing,
            latency_ns,
            windows: Windows::default(),
            ops: 0,
            elapsed: Duration::ZERO,
            jitter: 0x9E37_79B9,
        }
    }

    /// Runs operations in a closed loop and records them.
    #[inline]
    pub fn run(&mut self, until: Until, op: impl FnMut() -> Result<()>) -> Result<()> {
        self.run_by(Instant::now, until, op)
    }

    /// The same by another clock than the machine's.
    #[inline]
    fn run_by(
        &mut self,
        now: impl Fn() -> Instant,
        until: Until,
        mut op: impl FnMut() -> Result<()>,
    ) -> Result<()> {
        let Until { ops, deadline } = until;
        let timed = calls::begin();
        let (start, before_this) = (now(), self.elapsed);
        let (mut done, mut last) = (0, start);
        while done < ops {
            let stretch = self.stretch().min(ops - done);
            for _ in 1..stretch {
                op()?;
            }
            let before = if stretch > 1 { now() } else { last };
            op()?;
            let after = now();
            done += stretch;
            let timed_ns = (after - before).as_nanos() as u64;
            self.latency_ns.saturating_record(timed_ns);
            let untimed = Stretch { ns: (before - last).as_nanos() as u64, ops: stretch - 1 };
            self.windows.count(before_this + (after - start), stretch, timed_ns, untimed);
            last = after;
            if deadline.is_some_and(|at| after >= at) {
                break;
            }
        }
        timed.end(done);
        self.ops += done;
        self.elapsed += last - start;
        Ok(())
    }

    /// Adds the time of what ends the operations and is none itself.
    pub fn end_with(&mut self, end: impl FnOnce()) {
        let timed = calls::begin();
        let start = Instant::now();
        end();
        self.elapsed += start.elapsed();
        timed.end(0);
    }

    /// Runs operations at a fixed rate. Each is timed from the moment it was due, not from when it
    /// began, so that one stall is charged to every operation it held up (no coordinated omission).
    pub fn run_paced(
        &mut self,
        per_second: f64,
        until: Until,
        mut op: impl FnMut() -> Result<()>,
    ) -> Result<()> {
        let Until { ops, deadline } = until;
        let timed = calls::begin();
        let start = Instant::now();
        let mut done = 0;
        while done < ops {
            let due = start + Duration::from_secs_f64(done as f64 / per_second);
            if deadline.is_some_and(|at| due >= at) {
                break;
            }
            let now = Instant::now();
            if due > now {
                // Not spinning: on a small machine that would take a core from the readers.
                std::thread::sleep(due - now);
            }
            op()?;
            let after = Instant::now();
            done += 1;
            let late_ns = (after - due).as_nanos() as u64;
            self.latency_ns.saturating_record(late_ns);
            self.windows.count(after - start, 1, late_ns, Stretch::default());
            if deadline.is_some_and(|at| after >= at + Duration::from_secs(1)) {
                break; // hopelessly behind; what is recorded says so
            }
        }
        timed.end(done);
        self.ops += done;
        self.elapsed += start.elapsed();
        Ok(())
    }

    #[inline]
    fn stretch(&mut self) -> u64 {
        if self.timing == Timing::Every {
            return 1;
        }
        self.jitter = self.jitter.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        8 + (self.jitter >> 16) as u64 % 17
    }

    /// Adds what another thread recorded at the same time.
    pub fn merge(&mut self, other: &Recorder) {
        self.latency_ns.add(&other.latency_ns).expect("all histograms have one range");
        self.windows.add(&other.windows);
        self.ops += other.ops;
        self.elapsed = self.elapsed.max(other.elapsed);
    }

    fn usual_ns(&self) -> u64 {
        self.latency_ns.value_at_quantile(0.5)
    }

    /// Operations recorded.
    pub fn ops(&self) -> u64 {
        self.ops
    }
    /// Wall time, in seconds.
    pub fn seconds(&self) -> f64 {
        self.elapsed.as_secs_f64()
    }
    /// Percentiles.
    pub fn latency(&self) -> Latency {
        let us = |q| self.quantile_us(q);
        let longest = self.windows.longest();
        let max_ns = self.latency_ns.max().max(longest.slowest_ns(self.usual_ns()));
        Latency {
            p50_us: us(0.5),
            p99_us: us(0.99),
            p999_us: us(0.999),
            max_us: max_ns as f64 / 1000.0,
            timed: self.latency_ns.len(),
            hist: self.percentiles(max_ns),
        }
    }
    /// A quantile of the operations that were timed one by one, in microseconds.
    pub fn quantile_us(&self, quantile: f64) -> f64 {
        self.latency_ns.value_at_quantile(quantile) as f64 / 1000.0
    }
    /// About thirty percentiles: each step closes the same part of the way to 100, as far as there
    /// are operations behind them; the last is the slowest.
    fn percentiles(&self, max_ns: u64) -> Vec<(f64, f64)> {
        let timed = self.latency_ns.len() as f64;
        let quantiles = (0..30).map(|step| 1.0 - 10f64.powf(-step as f64 / 5.0));
        let mut pairs: Vec<(f64, f64)> = quantiles
            .take_while(|q| timed * (1.0 - q) >= 1.0)
            .map(|q| (q * 100.0, self.latency_ns.value_at_quantile(q) as f64 / 1000.0))
            .collect();
        pairs.push((100.0, max_ns as f64 / 1000.0));
        pairs
    }
    /// The slowest and the fastest quarter of a second, in operations a second.
    pub fn window_extremes(&self) -> Option<(f64, f64)> {
        let quarters = self.windows.quarters();
        let worst = quarters.iter().copied().reduce(f64::min)?;
        Some((worst, quarters.into_iter().reduce(f64::max)?))
    }
    /// The coefficient of variation of the quarters of a second: their standard deviation by their
    /// mean. `None` where there are fewer than four.
    pub fn variation(&self) -> Option<f64> {
        let quarters = self.windows.quarters();
        if quarters.len() < 4 {
            return None;
        }
        let n = quarters.len() as f64;
        let mean = quarters.iter().sum::<f64>() / n;
        let variance = quarters.iter().map(|q| (q - mean).powi(2)).sum::<f64>() / (n - 1.0);
        (mean > 0.0).then(|| variance.sqrt() / mean)
    }
    /// Seconds until so many operations were done, to a part of a window; `None` if they were not.
    pub fn seconds_until(&self, ops: u64) -> Option<f64> {
        self.windows.seconds_until(ops)
    }
    /// The throughput over time.
    pub fn series(&self, name: impl Into<String>) -> Series {
        self.windows.series(name.into())
    }
    /// Throughput and the slowest operation of each quarter of a second.
    pub fn side(&self, name: &str) -> Side {
        self.windows.side(name, self.usual_ns())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::cell::Cell;

    /// A clock that only operations move, so that no machine is too busy for these tests.
    struct Clock {
        began: Instant,
        ns: Cell<u64>,
    }

    impl Clock {
        fn new() -> Clock {
            Clock { began: Instant::now(), ns: Cell::new(0) }
        }
        fn pass(&self, us: u64) {
            self.ns.set(self.ns.get() + us * 1000);
        }
        fn now(&self) -> Instant {
            self.began + Duration::from_nanos(self.ns.get())
        }
    }

    #[test]
    fn throughput_and_percentiles_are_those_of_the_operations() {
        for timing in [Timing::Every, Timing::Sampled] {
            let (clock, mut truth_us) = (Clock::new(), Vec::with_capacity(30_000));
            let mut recorder = Recorder::new(timing);
            recorder
                .run_by(
                    || clock.now(),
                    Until::ops(30_000),
                    || {
                        // One in twenty is slow, at places that no fixed distance hits; no two alike.
                        let n = truth_us.len() as u64;
                        let slow = crate::data::mix(n) % 100 < 5;
                        let us = if slow { 1000 } else { 50 } + crate::data::mix(n + 1) % 20;
                        clock.pass(us);
                        truth_us.push(us as f64);
                        Ok(())
                    },
                )
                .unwrap();
            let truth_s = truth_us.iter().sum::<f64>() / 1e6;
            assert!((recorder.seconds() - truth_s).abs() < 1e-6);
            assert_eq!(recorder.ops(), 30_000);
            truth_us.sort_by(f64::total_cmp);
            let latency = recorder.latency();
            // The histogram has three digits; a sample of one in 16 is none of everything.
            let tolerance = if timing == Timing::Every { 0.001 } else { 0.03 };
            for q in [0.5, 0.9, 0.97, 0.99] {
                let us = recorder.latency_ns.value_at_quantile(q) as f64 / 1000.0;
                let truth = truth_us[(truth_us.len() as f64 * q) as usize];
                assert!((us / truth - 1.0).abs() < tolerance, "{timing:?} {q}: {us} {truth}");
            }
            assert!(latency.max_us >= 1015.0, "{}", latency.max_us);
        }
    }

    #[test]
    fn a_rare_stall_is_the_maximum_even_between_timed_operations() {
        // Wherever it falls: in or between the timed ones.
        for stalled in 9_980..10_020 {
            let (clock, mut n) = (Clock::new(), 0);
            let mut recorder = Recorder::new(Timing::Sampled);
            recorder
                .run_by(
                    || clock.now(),
                    Until::ops(20_000),
                    || {
                        n += 1;
                        clock.pass(if n == stalled { 30_000 } else { 2 });
                        Ok(())
                    },
                )
                .unwrap();
            let latency = recorder.latency();
            assert!((1000..1600).contains(&latency.timed), "{latency:?}");
            assert!((29_900.0..30_100.0).contains(&latency.max_us), "{latency:?}");
        }
    }

    #[test]
    fn a_paced_loop_charges_a_stall_to_everything_it_held_up() {
        let mut n = 0;
        let mut recorder = Recorder::new(Timing::Every);
        recorder
            .run_paced(1000.0, Until::ops(1000), || {
                n += 1;
                if n == 500 {
                    std::thread::sleep(Duration::from_millis(100));
                }
                Ok(())
            })
            .unwrap();
        // A tenth of the operations was due during the stall; a closed loop would show one.
        let p95_us = recorder.latency_ns.value_at_quantile(0.95) as f64 / 1000.0;
        assert!(p95_us > 30_000.0, "{p95_us}");
        assert!(recorder.seconds() >= 0.999);
    }

    #[test]
    fn windows_add_up_over_threads() {
        let mut all = Recorder::new(Timing::Every);
        for _ in 0..2 {
            let (clock, mut one) = (Clock::new(), Recorder::new(Timing::Every));
            let end = clock.began + Duration::from_millis(600);
            let op = || {
                clock.pass(1000);
                Ok(())
            };
            one.run_by(|| clock.now(), Until::time(end), op).unwrap();
            all.merge(&one);
        }
        let (worst, best) = all.window_extremes().unwrap();
        assert!(worst >= 1990.0 && best <= 2010.0, "{worst} {best}");
        let series = all.series("both");
        assert!(series.ops_per_s.len() >= 11 && series.window_s == 0.05, "{series:?}");
    }

    #[test]
    fn extremes_and_variation_are_those_of_quarters_of_a_second() {
        let (clock, mut recorder) = (Clock::new(), Recorder::new(Timing::Every));
        // 100 and 300 operations a quarter by turns.
        let op = || {
            let fast = clock.ns.get() / 250_000_000 % 2 == 1;
            clock.pass(if fast { 833 } else { 2500 });
            Ok(())
        };
        recorder.run_by(|| clock.now(), Until::ops(40_000), op).unwrap();
        let (worst, best) = recorder.window_extremes().unwrap();
        assert!(
            (396.0..=404.0).contains(&worst) && (1196.0..=1204.0).contains(&best),
            "{worst} {best}"
        );
        let variation = recorder.variation().unwrap();
        assert!((variation - 0.5).abs() < 0.01, "{variation}");
        assert!(Recorder::new(Timing::Every).variation().is_none());
    }

    #[test]
    fn percentiles_end_at_the_slowest_and_rise() {
        let mut recorder = Recorder::new(Timing::Every);
        for us in 1..=10_000u64 {
            recorder.latency_ns.record(us * 1000).unwrap();
        }
        let hist = recorder.latency().hist;
        assert!((20..=31).contains(&hist.len()), "{}", hist.len());
        assert!(hist.windows(2).all(|w| w[0].0 < w[1].0 && w[0].1 <= w[1].1));
        assert_eq!(hist[hist.len() - 1].0, 100.0);
        for (percentile, us) in hist.iter().skip(1) {
            assert!((us / (percentile * 100.0) - 1.0).abs() < 0.02, "{percentile} {us}");
        }
    }

    /// LMDB was once said to hold a wrong value: a write that ended more than a second too late was done
    /// and not counted.
    #[test]
    fn the_last_of_writes_that_are_hopelessly_late_counts_too() {
        let mut recorder = Recorder::new(Timing::Every);
        let mut done = 0;
        let end = Instant::now() + Duration::from_millis(5);
        recorder
            .run_paced(1000.0, Until::time(end), || {
                done += 1;
                std::thread::sleep(Duration::from_millis(1100));
                Ok(())
            })
            .unwrap();
        assert_eq!((recorder.ops(), done), (1, 1));
    }
}

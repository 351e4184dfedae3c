//! Time and latency of operations, without the measuring weighing on what is measured.
//!
//! Reading the clock costs some 20 ns, a tenth of a fast write. So rows of fast operations time one
//! operation in 16 or so (the distance is random between 8 and 24, so that it cannot fall in step
//! with the engine's own rhythm). A stall between two timed operations is still seen: the time of
//! the whole stretch is known, and the longest stretch, less what its operations usually take,
//! counts as the slowest operation.

use crate::calls;
use anyhow::Result;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// Length of a window of throughput over time, and how many make the quarter of a second that
/// extremes and variation are told of: shorter ones show the scheduler.
const WINDOW: Duration = Duration::from_millis(50);
const IN_QUARTER: usize = 5;
/// Points of a line over time, at most; windows are joined until they fit.
const POINTS: usize = 240;

/// Which operations are timed one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timing {
    /// Every one: for operations that cost more than about 2 µs.
    Every,
    /// One in 16 on average.
    Sampled,
}

/// How a loop ends.
#[derive(Debug, Clone, Copy)]
pub enum Until {
    /// After so many operations.
    Ops(u64),
    /// At a point in time.
    Time(Instant),
    /// Whatever comes first.
    Either(u64, Instant),
}

impl Until {
    /// After so many operations, or at a point in time if there is one.
    pub fn ops_or(ops: u64, deadline: Option<Instant>) -> Self {
        deadline.map_or(Until::Ops(ops), |at| Until::Either(ops, at))
    }
    fn ops(self) -> u64 {
        match self {
            Until::Ops(n) | Until::Either(n, _) => n,
            Until::Time(_) => u64::MAX,
        }
    }
    fn deadline(self) -> Option<Instant> {
        match self {
            Until::Ops(_) => None,
            Until::Time(at) | Until::Either(_, at) => Some(at),
        }
    }
}

/// Records one thread's operations.
#[derive(Debug)]
pub struct Recorder {
    timing: Timing,
    latency_ns: Histogram<u64>,
    /// The longest stretch of operations not timed one by one: its nanoseconds and how many.
    longest_stretch: (u64, u64),
    windows: Vec<u64>,
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

/// One thread's throughput over time.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Series {
    /// Whose.
    pub name: String,
    /// Seconds of a window.
    pub window_s: f64,
    /// Operations a second in each.
    pub ops_per_s: Vec<f64>,
}

impl Recorder {
    /// An empty recorder.
    pub fn new(timing: Timing) -> Self {
        let latency_ns = Histogram::new_with_bounds(1, 3_600_000_000_000, 3)
            .expect("three digits from a nanosecond to an hour is a valid range");
        Recorder {
            timing,
            latency_ns,
            longest_stretch: (0, 0),
            windows: Vec::new(),
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
        let (ops, deadline) = (until.ops(), until.deadline());
        let timed = calls::begin();
        let start = now();
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
            self.latency_ns.saturating_record((after - before).as_nanos() as u64);
            let untimed_ns = (before - last).as_nanos() as u64;
            if untimed_ns > self.longest_stretch.0 {
                self.longest_stretch = (untimed_ns, stretch - 1);
            }
            self.count_window(after - start, stretch);
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
        let (ops, deadline) = (until.ops(), until.deadline());
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
            self.latency_ns.saturating_record((after - due).as_nanos() as u64);
            self.count_window(after - start, 1);
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

    #[inline]
    fn count_window(&mut self, at: Duration, ops: u64) {
        let window = (at.as_millis() / WINDOW.as_millis()) as usize;
        if window >= self.windows.len() {
            self.windows.resize(window + 1, 0);
        }
        self.windows[window] += ops;
    }

    /// Adds what another thread recorded at the same time.
    pub fn merge(&mut self, other: &Recorder) {
        self.latency_ns.add(&other.latency_ns).expect("all histograms have one range");
        if other.slowest_stretch_ns() > self.slowest_stretch_ns() {
            self.longest_stretch = other.longest_stretch;
        }
        if other.windows.len() > self.windows.len() {
            self.windows.resize(other.windows.len(), 0);
        }
        for (mine, theirs) in self.windows.iter_mut().zip(&other.windows) {
            *mine += theirs;
        }
        self.ops += other.ops;
        self.elapsed = self.elapsed.max(other.elapsed);
    }

    /// The longest stretch less what its other operations usually take.
    fn slowest_stretch_ns(&self) -> u64 {
        let (ns, ops) = self.longest_stretch;
        ns.saturating_sub(ops.saturating_sub(1) * self.latency_ns.value_at_quantile(0.5))
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
        let us = |q| self.latency_ns.value_at_quantile(q) as f64 / 1000.0;
        let max_ns = self.latency_ns.max().max(self.slowest_stretch_ns());
        Latency {
            p50_us: us(0.5),
            p99_us: us(0.99),
            p999_us: us(0.999),
            max_us: max_ns as f64 / 1000.0,
            timed: self.latency_ns.len(),
            hist: self.percentiles(max_ns),
        }
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
    /// Operations in each quarter of a second. The last window is cut short by the end and left out,
    /// and so is a quarter that is not whole.
    fn quarters(&self) -> Vec<f64> {
        let whole = &self.windows[..self.windows.len().saturating_sub(1)];
        let seconds = WINDOW.as_secs_f64() * IN_QUARTER as f64;
        whole.chunks_exact(IN_QUARTER).map(|c| c.iter().sum::<u64>() as f64 / seconds).collect()
    }
    /// The slowest and the fastest quarter of a second, in operations a second.
    pub fn window_extremes(&self) -> Option<(f64, f64)> {
        let quarters = self.quarters();
        let worst = quarters.iter().copied().reduce(f64::min)?;
        Some((worst, quarters.into_iter().reduce(f64::max)?))
    }
    /// The coefficient of variation of the quarters of a second: their standard deviation by their
    /// mean. `None` where there are fewer than four.
    pub fn variation(&self) -> Option<f64> {
        let quarters = self.quarters();
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
        let mut before = 0;
        for (i, &count) in self.windows.iter().enumerate() {
            if before + count >= ops {
                let part = (ops - before) as f64 / count.max(1) as f64;
                return Some((i as f64 + part) * WINDOW.as_secs_f64());
            }
            before += count;
        }
        None
    }
    /// The throughput over time.
    pub fn series(&self, name: impl Into<String>) -> Series {
        let whole = match self.windows.len() {
            0 | 1 => &self.windows[..],
            n => &self.windows[..n - 1],
        };
        let joined = whole.len().div_ceil(POINTS).max(1);
        let window_s = WINDOW.as_secs_f64() * joined as f64;
        // A rest of fewer windows would look like a dip.
        let points = match whole.chunks_exact(joined) {
            chunks if chunks.len() > 0 => {
                chunks.map(|c| c.iter().sum::<u64>() as f64 / window_s).collect()
            }
            _ => Vec::new(),
        };
        Series { name: name.into(), window_s, ops_per_s: points }
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
                    Until::Ops(30_000),
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
                    Until::Ops(20_000),
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
            .run_paced(1000.0, Until::Ops(1000), || {
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
            one.run_by(|| clock.now(), Until::Time(end), op).unwrap();
            all.merge(&one);
        }
        let (worst, best) = all.window_extremes().unwrap();
        assert!(worst >= 1990.0 && best <= 2010.0, "{worst} {best}");
        let series = all.series("both");
        assert!(series.ops_per_s.len() >= 11 && series.window_s == 0.05, "{series:?}");
    }

    #[test]
    fn variation_and_series_are_those_of_the_windows() {
        let mut recorder = Recorder::new(Timing::Every);
        // Quarters of 100 and 300 operations by turns, and a last window that does not count.
        for quarter in 0..400 {
            for _ in 0..IN_QUARTER {
                recorder.windows.push(if quarter % 2 == 0 { 20 } else { 60 });
            }
        }
        recorder.windows.push(1_000_000);
        assert_eq!(recorder.window_extremes(), Some((400.0, 1200.0)));
        let variation = recorder.variation().unwrap();
        assert!((variation - 0.5).abs() < 0.01, "{variation}");
        let series = recorder.series("x");
        assert!(series.ops_per_s.len() <= POINTS && series.ops_per_s.len() > POINTS / 2);
        let total: f64 = series.ops_per_s.iter().sum::<f64>() * series.window_s;
        assert!((total / 80_000.0 - 1.0).abs() < 0.02, "{total}");
        assert!(Recorder::new(Timing::Every).variation().is_none());
        assert_eq!(recorder.seconds_until(100), Some(0.25));
        assert_eq!(recorder.seconds_until(130), Some(0.275));
        assert_eq!(recorder.seconds_until(2_000_000), None);
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
            .run_paced(1000.0, Until::Time(end), || {
                done += 1;
                std::thread::sleep(Duration::from_millis(1100));
                Ok(())
            })
            .unwrap();
        assert_eq!((recorder.ops(), done), (1, 1));
    }
}

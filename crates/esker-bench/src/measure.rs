//! Time and latency of operations, without the measuring weighing on what is measured.
//!
//! Reading the clock costs some 20 ns, a tenth of a fast write. So rows of fast operations time one
//! operation in 16 or so (the distance is random between 8 and 24, so that it cannot fall in step
//! with the engine's own rhythm). A stall between two timed operations is still seen: the time of
//! the whole stretch is known, and the longest stretch, less what its operations usually take,
//! counts as the slowest operation.

use anyhow::Result;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// Length of a window of throughput over time.
pub const WINDOW: Duration = Duration::from_millis(250);

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
    pub fn run(&mut self, until: Until, mut op: impl FnMut() -> Result<()>) -> Result<()> {
        let (ops, deadline) = (until.ops(), until.deadline());
        let start = Instant::now();
        let (mut done, mut last) = (0, start);
        while done < ops {
            let stretch = self.stretch().min(ops - done);
            for _ in 1..stretch {
                op()?;
            }
            let before = if stretch > 1 { Instant::now() } else { last };
            op()?;
            let after = Instant::now();
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
        self.ops += done;
        self.elapsed += last - start;
        Ok(())
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
            if deadline.is_some_and(|at| after >= at + Duration::from_secs(1)) {
                break; // hopelessly behind; what is recorded says so
            }
            done += 1;
            self.latency_ns.saturating_record((after - due).as_nanos() as u64);
            self.count_window(after - start, 1);
        }
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
        }
    }
    /// The slowest and the fastest window, in operations a second. The last window is cut short by
    /// the end and left out.
    pub fn window_extremes(&self) -> Option<(f64, f64)> {
        let whole = &self.windows[..self.windows.len().saturating_sub(1)];
        let per_second = |ops: &u64| *ops as f64 / WINDOW.as_secs_f64();
        Some((per_second(whole.iter().min()?), per_second(whole.iter().max()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spin(us: u64) {
        let start = Instant::now();
        while start.elapsed() < Duration::from_micros(us) {
            std::hint::spin_loop();
        }
    }

    /// Against the operations' own clock, so that a busy machine cannot make it fail.
    #[test]
    fn throughput_and_percentiles_are_those_of_the_operations() {
        for timing in [Timing::Every, Timing::Sampled] {
            let mut truth_ns = Vec::new();
            let mut recorder = Recorder::new(timing);
            recorder
                .run(Until::Ops(30_000), || {
                    let start = Instant::now();
                    // One in twenty is slow, at places that no fixed distance hits.
                    let n = truth_ns.len() as u64;
                    spin(if crate::data::mix(n) % 100 < 5 { 100 } else { 5 });
                    truth_ns.push(start.elapsed().as_nanos() as f64);
                    Ok(())
                })
                .unwrap();
            let total_s = truth_ns.iter().sum::<f64>() / 1e9;
            let per_second = recorder.ops() as f64 / recorder.seconds();
            let truth = truth_ns.len() as f64 / total_s;
            assert!((per_second / truth - 1.0).abs() < 0.03, "{per_second} {truth}");
            truth_ns.sort_by(f64::total_cmp);
            let latency = recorder.latency();
            // Above 0.97 a busy machine decides, and a sample of one in 16 sees too little of it.
            for q in [0.5, 0.9, 0.97] {
                let us = recorder.latency_ns.value_at_quantile(q) as f64 / 1000.0;
                let truth_us = truth_ns[(truth_ns.len() as f64 * q) as usize] / 1000.0;
                assert!((us / truth_us - 1.0).abs() < 0.06, "{timing:?} {q}: {us} {truth_us}");
            }
            let slowest_us = truth_ns[truth_ns.len() - 1] / 1000.0;
            assert!(latency.max_us > slowest_us * 0.9, "{} {slowest_us}", latency.max_us);
        }
    }

    #[test]
    fn a_rare_stall_is_the_maximum_even_between_timed_operations() {
        let mut n = 0;
        let mut recorder = Recorder::new(Timing::Sampled);
        recorder
            .run(Until::Ops(20_000), || {
                n += 1;
                spin(if n == 9_999 { 30_000 } else { 2 });
                Ok(())
            })
            .unwrap();
        let latency = recorder.latency();
        assert!((1000..1600).contains(&latency.timed), "{latency:?}");
        assert!(latency.max_us >= 29_500.0, "{latency:?}");
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
            let mut one = Recorder::new(Timing::Every);
            let end = Instant::now() + Duration::from_millis(600);
            one.run(Until::Time(end), || {
                spin(1000);
                Ok(())
            })
            .unwrap();
            all.merge(&one);
        }
        let (worst, best) = all.window_extremes().unwrap();
        assert!(worst > 200.0 && best <= 2010.0, "{worst} {best}");
    }
}

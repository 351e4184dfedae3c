//! How a row went over time: throughput, the slowest operation and the size on disk in every quarter
//! of a second, and whether a debt grew meanwhile.

use crate::measure::{QUARTER_S, Side};
use crate::system;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A row in quarters of a second.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OverTime {
    /// Seconds of a window.
    pub window_s: f64,
    /// Each kind of operation, all of its threads together.
    pub sides: Vec<Side>,
    /// Bytes on disk at the beginning of each window.
    pub disk_bytes: Vec<f64>,
    /// Bytes of the keys and values that were alive all the time.
    pub live_bytes: f64,
}

impl OverTime {
    /// Of these operations, of a store that had so many bytes on disk.
    pub fn new(sides: Vec<Side>, disk_bytes: Vec<f64>, live_bytes: u64) -> OverTime {
        OverTime { window_s: QUARTER_S, sides, disk_bytes, live_bytes: live_bytes as f64 }
    }
    /// How many times the live bytes were on disk, at most and on average.
    pub fn disk_to_live(&self) -> (f64, f64) {
        let most = self.disk_bytes.iter().copied().fold(0.0, f64::max);
        (most / self.live_bytes.max(1.0), mean(&self.disk_bytes) / self.live_bytes.max(1.0))
    }
}

/// What overwriting without limit did to a store.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Sustained {
    /// Threads that wrote.
    pub writers: u64,
    /// Puts a second.
    pub puts_per_s: f64,
    /// Microseconds of the slowest put.
    pub worst_put_us: f64,
    /// Microseconds that one in ten thousand puts exceeded.
    pub p9999_put_us: f64,
    /// Puts a second in the slowest quarter of a second; `None` where the row was shorter.
    pub worst_quarter_puts_per_s: Option<f64>,
    /// Most bytes on disk, for each byte alive.
    pub disk_to_live_max: f64,
    /// Bytes on disk on average, for each byte alive.
    pub disk_to_live_mean: f64,
    /// Bytes that went towards the device for each byte put, until the last put.
    pub write_amplification: f64,
    /// The same, with what was written until nothing was owed any more.
    pub write_amplification_settled: f64,
    /// Seconds from the last put until nothing was owed any more.
    pub settle_s: f64,
    /// Disk in the last quarter of the row for each byte in its second; `None` where the row was too short.
    pub disk_growth: Option<f64>,
    /// Puts a second in the last quarter of the row for each in its second.
    pub rate_growth: Option<f64>,
    /// Whether disk or rate was worse in the last quarter by more than a tenth.
    pub debt_grew: Option<bool>,
}

/// By how much the end may be worse before a debt is said to have grown.
const LEVEL: f64 = 0.1;

/// Whether a debt grew, from the growth of disk and of rate.
pub fn debt_grew(disk_growth: Option<f64>, rate_growth: Option<f64>) -> Option<bool> {
    Some(disk_growth? > 1.0 + LEVEL || rate_growth? < 1.0 - LEVEL)
}

/// The mean of the last quarter of a series by that of the second quarter. The first is left out: there
/// caches and logs fill. `None` where a quarter has no value or the second is nothing.
pub fn growth(series: &[f64]) -> Option<f64> {
    let quarter = series.len() / 4;
    let second = mean(&series[quarter..2 * quarter]);
    (second > 0.0).then(|| mean(&series[series.len() - quarter..]) / second)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Does some work, and looks at the beginning of each quarter of a second at how many bytes `dir` has on
/// disk.
pub fn watching_disk<R>(dir: &Path, work: impl FnOnce() -> R) -> (R, Vec<f64>) {
    let done = AtomicBool::new(false);
    let watch = || {
        let (start, mut bytes) = (Instant::now(), Vec::new());
        loop {
            bytes.push(system::disk_bytes(dir) as f64);
            let due = start + Duration::from_secs_f64(QUARTER_S * bytes.len() as f64);
            while !done.load(Ordering::Relaxed) && Instant::now() < due {
                std::thread::park_timeout(due.saturating_duration_since(Instant::now()));
            }
            if done.load(Ordering::Relaxed) {
                return bytes;
            }
        }
    };
    std::thread::scope(|scope| {
        let watch = scope.spawn(watch);
        let out = work();
        done.store(true, Ordering::Relaxed);
        watch.thread().unpark();
        (out, watch.join().expect("looking at a directory does not panic"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_compares_the_end_with_the_second_quarter() {
        let level: Vec<f64> = (0..40).map(|n| if n < 10 { 1.0 } else { 8.0 }).collect();
        assert_eq!(growth(&level), Some(1.0), "the beginning does not count");
        let growing: Vec<f64> = (0..16).map(f64::from).collect();
        assert_eq!(growth(&growing), Some(13.5 / 5.5));
        // Of five the middle one is in no quarter.
        assert_eq!(growth(&[9.0, 2.0, 9.0, 9.0, 3.0]), Some(1.5));
        assert_eq!(growth(&[9.0, 2.0, 3.0]), None);
        assert_eq!(growth(&[9.0, 0.0, 3.0, 3.0]), None);
        assert_eq!(growth(&[]), None);
    }

    #[test]
    fn a_debt_grows_where_disk_or_rate_gets_worse() {
        assert_eq!(debt_grew(Some(1.05), Some(0.95)), Some(false));
        assert_eq!(debt_grew(Some(0.5), Some(3.0)), Some(false), "better is no debt");
        assert_eq!(debt_grew(Some(1.2), Some(1.0)), Some(true));
        assert_eq!(debt_grew(Some(1.0), Some(0.8)), Some(true));
        assert_eq!(debt_grew(None, Some(1.0)), None);
    }

    #[test]
    fn the_disk_is_told_beside_what_is_alive() {
        let over_time = OverTime::new(Vec::new(), vec![100.0, 300.0, 200.0], 100);
        assert_eq!(over_time.disk_to_live(), (3.0, 2.0));
        assert_eq!(OverTime::default().disk_to_live(), (0.0, 0.0));
    }

    #[test]
    fn the_disk_is_looked_at_as_long_as_the_work_lasts() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        let (out, bytes) = watching_disk(dir.path(), || {
            std::thread::sleep(Duration::from_millis(100));
            std::fs::write(&file, vec![1u8; 1 << 20]).unwrap();
            std::thread::sleep(Duration::from_millis(700));
            7
        });
        assert_eq!(out, 7);
        // Whoever is kept from it looks less often.
        assert!((1..=4).contains(&bytes.len()), "{bytes:?}");
        assert!(bytes.windows(2).all(|pair| pair[0] <= pair[1]), "{bytes:?}");
        let (_, at_once) = watching_disk(dir.path(), || ());
        assert_eq!(at_once.len(), 1, "it is looked at once at least");
    }
}

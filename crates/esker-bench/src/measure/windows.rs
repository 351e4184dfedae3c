//! Operations over time, in windows: how many ended in each, and how long the slowest of them took.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Length of a window of throughput over time, and how many make the quarter of a second that
/// extremes and variation are told of: shorter ones show the scheduler.
const WINDOW: Duration = Duration::from_millis(50);
const IN_QUARTER: usize = 5;
/// Points of a line over time, at most; windows are joined until they fit.
const POINTS: usize = 240;

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

/// What one kind of operation did in each quarter of a second.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Side {
    /// Which operations: `puts`, `reads`.
    pub name: String,
    /// Operations a second.
    pub ops_per_s: Vec<f64>,
    /// Microseconds of the slowest; where none ended, of the one that was waited for.
    pub worst_us: Vec<f64>,
}

/// Operations that were not timed one by one: how long all of them took, and how many they were.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Stretch {
    pub ns: u64,
    pub ops: u64,
}

impl Stretch {
    /// How long the slowest took at most, if the others took what is usual.
    pub fn slowest_ns(self, usual_ns: u64) -> u64 {
        self.ns.saturating_sub(self.ops.saturating_sub(1) * usual_ns)
    }
    fn longer(self, other: Stretch) -> Stretch {
        if other.ns > self.ns { other } else { self }
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Window {
    ops: u64,
    /// The slowest of those that were timed.
    worst_ns: u64,
    longest: Stretch,
}

/// Windows from the beginning of a loop on.
#[derive(Debug, Default)]
pub(super) struct Windows(Vec<Window>);

impl Windows {
    /// Notes operations that ended `at`: the last of them timed, those before it in a stretch.
    #[inline]
    pub fn count(&mut self, at: Duration, ops: u64, timed_ns: u64, stretch: Stretch) {
        let number = (at.as_millis() / WINDOW.as_millis()) as usize;
        if number >= self.0.len() {
            self.0.resize(number + 1, Window::default());
        }
        let window = &mut self.0[number];
        window.ops += ops;
        window.worst_ns = window.worst_ns.max(timed_ns);
        window.longest = window.longest.longer(stretch);
    }

    /// Adds what another thread did at the same time.
    pub fn add(&mut self, other: &Windows) {
        if other.0.len() > self.0.len() {
            self.0.resize(other.0.len(), Window::default());
        }
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            mine.ops += theirs.ops;
            mine.worst_ns = mine.worst_ns.max(theirs.worst_ns);
            mine.longest = mine.longest.longer(theirs.longest);
        }
    }

    /// The longest stretch of all.
    pub fn longest(&self) -> Stretch {
        self.0.iter().fold(Stretch::default(), |most, window| most.longer(window.longest))
    }

    /// Whole quarters of a second. The last window is cut short by the end and left out, and so is a
    /// quarter that is not whole.
    fn in_quarters(&self) -> impl Iterator<Item = &[Window]> {
        self.0[..self.0.len().saturating_sub(1)].chunks_exact(IN_QUARTER)
    }

    /// Operations a second in each quarter of a second.
    pub fn quarters(&self) -> Vec<f64> {
        let seconds = WINDOW.as_secs_f64() * IN_QUARTER as f64;
        self.in_quarters().map(|q| q.iter().map(|w| w.ops).sum::<u64>() as f64 / seconds).collect()
    }

    /// The same with the slowest operation of each, where `usual_ns` is what one usually takes.
    pub fn side(&self, name: &str, usual_ns: u64) -> Side {
        let worst = |w: &Window| w.worst_ns.max(w.longest.slowest_ns(usual_ns)) as f64 / 1000.0;
        let mut worst_us: Vec<f64> =
            self.in_quarters().map(|q| q.iter().map(worst).fold(0.0, f64::max)).collect();
        let ops_per_s = self.quarters();
        // The operation that ends next was under way in a quarter in which none ended. It may end after
        // the last whole quarter, or in the same window as faster ones: it is the slowest there.
        let rest = self.0.iter().skip(worst_us.len() * IN_QUARTER);
        let mut next = rest.map(worst).find(|us| *us > 0.0).unwrap_or(0.0);
        for (worst, ops) in worst_us.iter_mut().zip(&ops_per_s).rev() {
            if *ops == 0.0 {
                *worst = next;
            }
            next = *worst;
        }
        Side { name: name.to_string(), ops_per_s, worst_us }
    }

    /// Seconds until so many operations were done, to a part of a window; `None` if they were not.
    pub fn seconds_until(&self, ops: u64) -> Option<f64> {
        let mut before = 0;
        for (i, window) in self.0.iter().enumerate() {
            if before + window.ops >= ops {
                let part = (ops - before) as f64 / window.ops.max(1) as f64;
                return Some((i as f64 + part) * WINDOW.as_secs_f64());
            }
            before += window.ops;
        }
        None
    }

    /// The throughput over time.
    pub fn series(&self, name: String) -> Series {
        let whole = match self.0.len() {
            0 | 1 => &self.0[..],
            n => &self.0[..n - 1],
        };
        let joined = whole.len().div_ceil(POINTS).max(1);
        let window_s = WINDOW.as_secs_f64() * joined as f64;
        let rate = |of: &[Window]| of.iter().map(|w| w.ops).sum::<u64>() as f64 / window_s;
        // A rest of fewer windows would look like a dip.
        Series { name, window_s, ops_per_s: whole.chunks_exact(joined).map(rate).collect() }
    }
}

/// Seconds of the windows of a [`Side`].
pub const QUARTER_S: f64 = 0.25;

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: Stretch = Stretch { ns: 0, ops: 0 };

    /// Windows with so many operations each, and one at the end that does not count.
    fn windows(ops: impl IntoIterator<Item = u64>) -> Windows {
        let mut windows = Windows::default();
        for (number, ops) in ops.into_iter().chain([1_000_000]).enumerate() {
            windows.count(WINDOW * number as u32, ops, 0, NONE);
        }
        windows
    }

    #[test]
    fn quarters_and_series_are_those_of_the_windows() {
        assert_eq!(QUARTER_S, WINDOW.as_secs_f64() * IN_QUARTER as f64);
        // Quarters of 100 and 300 operations by turns.
        let windows = windows((0..2000).map(|n| [20, 60][n / IN_QUARTER % 2]));
        let quarters = windows.quarters();
        assert_eq!((quarters.len(), quarters[0], quarters[1]), (400, 400.0, 1200.0));
        let series = windows.series("x".to_string());
        assert!(series.ops_per_s.len() <= POINTS && series.ops_per_s.len() > POINTS / 2);
        let total: f64 = series.ops_per_s.iter().sum::<f64>() * series.window_s;
        assert!((total / 80_000.0 - 1.0).abs() < 0.02, "{total}");
        assert_eq!(windows.seconds_until(100), Some(0.25));
        assert_eq!(windows.seconds_until(130), Some(0.275));
        assert_eq!(windows.seconds_until(2_000_000), None);
    }

    #[test]
    fn the_slowest_of_a_quarter_is_told_whether_it_was_timed_or_not() {
        let mut windows = windows([0; 15]);
        windows.count(Duration::from_millis(10), 10, 7_000, NONE);
        windows.count(Duration::from_millis(120), 10, 3_000, NONE);
        // Nine took 30 µs; if eight of them took the usual 2, one took 14.
        windows.count(Duration::from_millis(300), 10, 2_000, Stretch { ns: 30_000, ops: 9 });
        let side = windows.side("reads", 2_000);
        assert_eq!(side.worst_us[..2], [7.0, 14.0]);
        assert_eq!(side.ops_per_s, [80.0, 40.0, 0.0]);
        assert_eq!(windows.longest().slowest_ns(2_000), 14_000);
    }

    #[test]
    fn who_waits_for_one_operation_has_its_time_in_every_quarter() {
        let mut windows = Windows::default();
        windows.count(Duration::from_millis(0), 5, 1_000, NONE);
        // Nothing ends for a second and a half, then one does, then all is well again.
        windows.count(Duration::from_millis(1500), 1, 1_500_000_000, NONE);
        windows.count(Duration::from_millis(1800), 5, 2_000, NONE);
        windows.count(Duration::from_millis(2100), 5, 1_000, NONE);
        let side = windows.side("puts", 1_000);
        let stall = 1_500_000.0;
        assert_eq!(side.worst_us, [1.0, stall, stall, stall, stall, stall, stall, 2.0]);
        // One that ends in a quarter that is not whole any more was under way all the same.
        let mut windows = Windows::default();
        windows.count(Duration::from_millis(0), 5, 1_000, NONE);
        windows.count(Duration::from_millis(600), 1, 600_000_000, NONE);
        assert_eq!(windows.side("puts", 1_000).worst_us, [1.0, 600_000.0]);
    }

    #[test]
    fn threads_add_up_and_the_slowest_of_all_counts() {
        let mut one = windows([5; 5]);
        let mut other = windows([1; 10]);
        other.count(Duration::from_millis(5), 1, 9_000, NONE);
        one.count(Duration::from_millis(6), 1, 4_000, Stretch { ns: 100, ops: 2 });
        one.add(&other);
        let side = one.side("puts", 10);
        assert_eq!(side.worst_us[0], 9.0);
        assert_eq!(side.ops_per_s[0], (25.0 + 5.0 + 2.0) / 0.25);
    }
}

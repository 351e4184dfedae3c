//! What readers pay for the sources that writers leave behind.
//!
//! A search looks into each memtable and each run. While nobody searches, many of them are the cheapest for
//! writers, and they are joined when there is time; where somebody does, compactions are worth more and writers
//! go more slowly. How much so is the time that searches spend on sources beyond a few.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

/// Sources that a search is to have: the memtable that is written to, what was flushed lately, the rest.
const FEW: usize = 3;
/// About what each further one costs a search: it waits for memory two or three times.
const SOURCE_S: f64 = 0.5e-6;
/// So much of one processor's time spent on them counts in full.
const FULL: f64 = 0.2;
/// The time after which what was counted in it makes two thirds of the average.
const MEMORY_S: f64 = 0.25;

/// Searches in one keyspace.
#[derive(Debug, Default)]
pub(crate) struct Searches {
    /// Sources beyond [`FEW`] of all searches there ever were.
    extra: AtomicU64,
    seen: Mutex<Seen>,
}

/// When somebody last looked, and at what.
#[derive(Debug, Default)]
struct Seen {
    at: Duration,
    extra: u64,
    pressure: f64,
}

impl Searches {
    /// A search of so many sources.
    #[inline]
    pub(crate) fn note(&self, sources: usize) {
        if sources > FEW {
            self.extra.fetch_add((sources - FEW) as u64, Ordering::Relaxed);
        }
    }

    /// How much readers would gain from fewer sources, 0 to 1, on average over the last quarter of a second. `now`
    /// counts from any moment, the same each time.
    pub(crate) fn pressure(&self, now: Duration) -> f64 {
        let mut seen = self.seen.lock();
        let extra = self.extra.load(Ordering::Relaxed);
        let took = now.saturating_sub(seen.at).as_secs_f64();
        if took > 0.0 {
            let spent = (extra - seen.extra) as f64 * SOURCE_S / took;
            let share = 1.0 - (-took / MEMORY_S).exp();
            let pressure = (spent / FULL).min(1.0);
            *seen = Seen {
                at: now,
                extra,
                pressure: seen.pressure + (pressure - seen.pressure) * share,
            };
        }
        seen.pressure
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pressure after a second in which so many searches of so many sources were made evenly.
    fn after(searches: &Searches, from_ms: u64, a_second: u64, sources: usize) -> f64 {
        let mut pressure = 0.0;
        for step in 1..=50 {
            (0..a_second / 50).for_each(|_| searches.note(sources));
            pressure = searches.pressure(Duration::from_millis(from_ms + 20 * step));
        }
        pressure
    }

    #[test]
    fn readers_press_by_the_time_that_further_sources_cost_them() {
        let searches = Searches::default();
        assert_eq!(after(&searches, 0, 500_000, 3), 0.0, "as few as there can be");
        // 40,000 * 5 * 0.5 us are a tenth of the time.
        let half = after(&searches, 1000, 40_000, 8);
        assert!((0.45..=0.55).contains(&half), "{half}");
        let full = after(&searches, 2000, 100_000, 20);
        assert!((0.95..=1.0).contains(&full), "{full}");
        let later = after(&searches, 3000, 0, 0);
        assert!(later < 0.03, "{later}: they are gone");
        // Somebody who looks twice in a moment changes nothing.
        assert_eq!(searches.pressure(Duration::from_millis(4000)), later);
    }
}

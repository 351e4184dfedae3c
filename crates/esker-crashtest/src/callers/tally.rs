//! Counts of what was done: kept by each process, added up by the campaign.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// What is counted.
#[derive(Clone, Copy)]
pub enum Of {
    Operations,
    Opens,
    Kills,
    Checkpoints,
    Repairs,
    Destroys,
    Loads,
    Panics,
    Compared,
}

const NAMES: [&str; 9] = [
    "operations",
    "opens",
    "kills",
    "checkpoints",
    "repairs",
    "destroys",
    "bulk loads",
    "panics injected",
    "entries compared",
];

static COUNTS: [AtomicU64; NAMES.len()] = [const { AtomicU64::new(0) }; NAMES.len()];

pub fn count(what: Of, n: u64) {
    COUNTS[what as usize].fetch_add(n, Ordering::Relaxed);
}

/// The counts of this process, as the campaign reads them.
pub fn line() -> String {
    let counts = COUNTS.iter().map(|c| c.load(Ordering::Relaxed).to_string());
    counts.collect::<Vec<_>>().join(" ")
}

/// The counts of a campaign.
#[derive(Default)]
pub struct Tally {
    pub rounds: u64,
    counts: [u64; NAMES.len()],
}

impl Tally {
    pub fn add(&mut self, line: &str) {
        for (sum, n) in self.counts.iter_mut().zip(line.split_whitespace()) {
            *sum += n.parse::<u64>().unwrap_or(0);
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} rounds", self.rounds)?;
        NAMES.iter().zip(self.counts).try_for_each(|(name, n)| write!(f, ", {n} {name}"))
    }
}

//! Telling the kernel which pages of tables are in use, while memory is short.
//!
//! Tables are mapped with `MADV_RANDOM`, so that a fault reads one page and not megabytes. Linux, from
//! 6.3 on, takes the use of such a mapping for no reason to keep a page (`vma_has_recency`): pages
//! leave in the order in which they came, a page of the hash index that one read in hundred needs
//! like one of data that is not needed again. So reads say what they used. Marking costs some 200 ns a
//! page, and a store that fits needs none: the more reads wait for the device, the more do it.

use std::cell::Cell;

use crate::env;

/// Reads of a thread between two looks at its faults; marks this far apart are left out.
const WINDOW: u32 = 256;

/// So many reads mark what they used for one that waits: all of them together take a tenth of the
/// time that it does.
const MARKS_PER_FAULT: u64 = 4;

/// Reads from one mark to the next, when `faults` of `reads` waited for the device. Pages leave as
/// others come in, so the fewer faults, the longer a page has until it must have been marked.
fn interval(reads: u32, faults: u64) -> u32 {
    match u64::from(reads).checked_div(MARKS_PER_FAULT * faults) {
        Some(apart) => apart.clamp(1, u64::from(WINDOW)) as u32,
        None => WINDOW,
    }
}

/// What a thread knows of its reads.
struct Pace {
    /// Reads until the next mark or look.
    left: Cell<u32>,
    interval: Cell<u32>,
    /// Reads since the last look.
    reads: Cell<u32>,
    /// Faults of the thread until then.
    faults: Cell<Option<u64>>,
    /// Groups of pages that it had read around a first touch since. Each is waited for once, which
    /// tells of a store that was not read for a while and not of memory that is short.
    groups: Cell<u64>,
}

impl Pace {
    const fn new() -> Pace {
        Pace {
            left: Cell::new(WINDOW),
            interval: Cell::new(WINDOW),
            reads: Cell::new(0),
            faults: Cell::new(None),
            groups: Cell::new(0),
        }
    }

    /// Counts a read; whether it should mark what it used.
    #[inline(always)]
    fn count(&self, faults: impl FnOnce() -> u64) -> bool {
        self.left.set(self.left.get() - 1);
        self.left.get() == 0 && self.turn(faults)
    }

    #[cold]
    fn turn(&self, faults: impl FnOnce() -> u64) -> bool {
        let marks = self.interval.get() < WINDOW;
        let reads = self.reads.get() + self.interval.get();
        self.reads.set(reads);
        if reads >= WINDOW {
            let (now, groups) = (faults(), self.groups.take());
            if let Some(before) = self.faults.replace(Some(now)) {
                self.interval.set(interval(reads, now.saturating_sub(before + groups)));
            }
            self.reads.set(0);
        }
        self.left.set(self.interval.get());
        marks
    }
}

thread_local! {
    static PACE: Pace = const { Pace::new() };
    /// Groups of pages that the thread had read around a first touch. Waiting for a page that was asked
    /// for is no major fault.
    static GROUPS: Cell<u64> = const { Cell::new(0) };
    /// Faults and groups of the thread when a walk last looked at them.
    static WALKS: Cell<u64> = const { Cell::new(0) };
}

/// Whether the thread waited for the device since a walk of its last asked. Where the system does not count
/// faults (all but Linux) only first touches tell, and a walk over pages that left memory since does not.
pub(super) fn walk_waited() -> bool {
    let now = env::major_faults().wrapping_add(GROUPS.get());
    WALKS.replace(now) != now
}

/// Whether a first touch should have its group of pages read: not while so many of the thread's reads
/// wait (one in [`MARKS_PER_FAULT`]) that the others of the group would push out more than they save.
pub(super) fn reads_around() -> bool {
    PACE.with(|pace| {
        let around = pace.interval.get() > 1;
        pace.groups.set(pace.groups.get() + u64::from(around));
        GROUPS.set(GROUPS.get() + u64::from(around));
        around
    })
}

/// Counts a read of a table; whether it should mark what it used.
#[inline(always)]
pub(super) fn is_due() -> bool {
    PACE.with(|pace| pace.count(env::major_faults))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads `n` times, `faults` of a thousand of which wait; how many mark.
    fn marks(pace: &Pace, waited: &Cell<u64>, n: u64, faults: u64) -> u64 {
        let mut marks = 0;
        for i in 0..n {
            waited.set(waited.get() + ((i + 1) * faults / 1000 - i * faults / 1000));
            marks += u64::from(pace.count(|| waited.get()));
        }
        marks
    }

    #[test]
    fn the_more_reads_wait_the_more_mark() {
        assert_eq!(interval(256, 0), WINDOW);
        assert_eq!(interval(256, 1), 64);
        assert_eq!(interval(256, 2), 32);
        assert_eq!(interval(256, 200), 1);
        assert_eq!(interval(256, 1000), 1, "several faults a read");
        let (pace, waited) = (Pace::new(), Cell::new(0));
        assert_eq!(marks(&pace, &waited, 100_000, 0), 0, "all is in memory");
        let some = marks(&pace, &waited, 100_000, 10);
        assert!((3_000..5_000).contains(&some), "{some} of 100,000 reads, of which 1,000 waited");
        let most = marks(&pace, &waited, 100_000, 800);
        assert!(most > 99_000, "{most}");
        assert!(marks(&pace, &waited, 100_000, 0) < 1_000, "all is in memory again");
    }

    /// A store that was not read for a while comes back group by group, and that is no sign of memory
    /// being short: its first reads all wait.
    #[test]
    fn groups_that_are_read_are_no_sign_of_little_memory() {
        let (pace, waited) = (Pace::new(), Cell::new(0));
        for _ in 0..100_000 {
            pace.groups.set(pace.groups.get() + 1);
            waited.set(waited.get() + 1);
            assert!(!pace.count(|| waited.get()));
        }
    }

    /// What a thread read from other files before its first look is not counted.
    #[test]
    fn the_first_look_counts_nothing() {
        let (pace, waited) = (Pace::new(), Cell::new(1_000_000));
        assert_eq!(marks(&pace, &waited, 10_000, 0), 0);
    }
}

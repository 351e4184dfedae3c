//! When a walk over a table has the kernel read ahead.
//!
//! Tables are mapped with `MADV_RANDOM`: each page that is not in memory is waited for alone. A walk that
//! waits asks for what lies before it. One that does not wait asks for nothing, as asking for pages that
//! are there costs some 50 ns a page, more than walking over them.

use std::ops::Range;

/// A walk looks whether it waited after so many neighbouring blocks, and then each time after so many. A
/// look is a system call, some 500 ns.
const LOOK_AFTER: u32 = 4;
const LOOK_EVERY: u32 = 16;
/// How far ahead a walk that waits has the kernel read, in bytes: at first, and, four times as far each
/// time, at most.
const AT_FIRST: u64 = 256 << 10;
const AT_MOST: u64 = 4 << 20;

/// What a walk knows of itself since its last seek.
pub(super) struct ReadAhead {
    forward: bool,
    /// Blocks entered from a neighbour in this direction.
    streak: u32,
    /// How far ahead it last asked; 0 before it waited.
    window: u64,
    /// Up to (or down to) where it asked.
    asked: u64,
}

impl ReadAhead {
    pub(super) fn new() -> ReadAhead {
        ReadAhead { forward: true, streak: 0, window: 0, asked: 0 }
    }

    /// A seek: what comes is another walk.
    #[inline(always)]
    pub(super) fn restart(&mut self) {
        self.streak = 0;
    }

    /// Whether the walk has come through more than one block.
    #[inline(always)]
    pub(super) fn is_long(&self) -> bool {
        self.streak > 1
    }

    /// The walk leaves the block at `here`, in bytes from the table's beginning, for its neighbour; the
    /// part to ask for, if any. `waited`: whether the thread waited for a page since that was last called.
    pub(super) fn leaves(
        &mut self,
        here: u64,
        forward: bool,
        waited: impl FnOnce() -> bool,
    ) -> Option<Range<u64>> {
        if forward != self.forward || self.streak == 0 {
            *self = ReadAhead { forward, streak: 0, window: 0, asked: here };
        }
        self.streak += 1; // no more than blocks
        if self.window == 0 {
            if self.streak % LOOK_EVERY != LOOK_AFTER || !waited() {
                return None;
            }
            self.asked = here;
        } else if here.abs_diff(self.asked) > self.window / 2 {
            return None;
        }
        self.window = (4 * self.window).clamp(AT_FIRST, AT_MOST);
        let before = self.asked;
        let part = if forward {
            self.asked = here + self.window;
            before.max(here)..self.asked
        } else {
            self.asked = here.saturating_sub(self.window);
            self.asked..before.min(here)
        };
        // Nothing is left before the table's beginning.
        Some(part).filter(|part| !part.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    const PAGE: u64 = 4096;

    /// What a walk over these pages asks for, which waits at those that were not asked for and of which
    /// `cold` is true.
    fn walk(
        pages: impl Iterator<Item = u64>,
        cold: impl Fn(u64) -> bool,
    ) -> (u64, Vec<Range<u64>>) {
        let (mut walk, mut asked, mut waits, mut new) = (ReadAhead::new(), Vec::new(), 0, false);
        let (mut last, mut read) = (None, HashSet::new());
        for page in pages {
            if let Some(last) = last {
                asked.extend(walk.leaves(last * PAGE, page > last, || std::mem::take(&mut new)));
            }
            let there = asked.iter().any(|r: &Range<u64>| r.contains(&(page * PAGE)));
            if cold(page) && !there && read.insert(page) {
                (waits, new) = (waits + 1, true);
            }
            last = Some(page);
        }
        (waits, asked)
    }

    fn bytes(asked: &[Range<u64>]) -> u64 {
        asked.iter().map(|r| r.end - r.start).sum()
    }

    #[test]
    fn a_walk_over_pages_that_are_there_asks_for_none() {
        assert_eq!(walk(0..100_000, |_| false), (0, vec![]));
        assert_eq!(walk((0..100_000).rev(), |_| false), (0, vec![]));
    }

    #[test]
    fn a_walk_that_waits_waits_for_the_first_pages_alone_and_asks_for_each_once() {
        for backwards in [false, true] {
            let pages: Vec<u64> =
                if backwards { (0..100_000).rev().collect() } else { (0..100_000).collect() };
            let (waits, asked) = walk(pages.into_iter(), |_| true);
            assert!(waits <= u64::from(LOOK_AFTER), "{waits}");
            let most = 100_000 * PAGE + AT_MOST;
            assert!(bytes(&asked) <= most, "{} of {most} bytes", bytes(&asked));
        }
    }

    #[test]
    fn a_short_walk_asks_for_little() {
        let (_, asked) = walk(1000..1012, |_| true);
        assert_eq!(bytes(&asked), AT_FIRST);
    }

    #[test]
    fn a_walk_that_comes_upon_cold_pages_soon_asks() {
        let (waits, _) = walk(0..50_000, |page| page >= 20_000);
        assert!(waits <= u64::from(LOOK_EVERY), "{waits}");
    }

    #[test]
    fn a_walk_that_turns_around_asks_for_the_other_side() {
        let (waits, asked) = walk((1000..1100).chain((0..1099).rev()), |_| true);
        // Those before 1000 are not known to be cold until it has waited for some.
        assert!(waits <= u64::from(LOOK_AFTER + LOOK_EVERY), "{waits}");
        assert!(asked.iter().any(|r| r.contains(&0)), "{asked:?}");
        assert!(asked.iter().all(|r| r.start < r.end), "{asked:?}");
    }
}

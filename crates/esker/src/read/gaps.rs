//! Gaps: where nothing lives between two neighbouring keys, however much is dead there.
//!
//! Who takes entries from the front of a keyspace and deletes them leaves tombstones there, which each new cursor
//! would pass again, one by one. A cursor that passed many has the gap it stands in measured once, and others leap
//! over it until somebody writes there.
//!
//! What makes a gap true: it was read at a sequence, and every put from that one on was told of before readers could
//! see it. So whoever reads at that sequence or a later one finds nothing in it. A measurement begins under the
//! writer's lock: from then on puts tell, and what it reads has all puts before.

use std::cmp::Ordering;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use parking_lot::Mutex;

use crate::key::{KeyOrder, Seq};

/// So many gaps a keyspace knows; the one least recently of use gives way.
const MOST: usize = 32;
/// Longer keys end no gap that is kept: with [`MOST`] this bounds the memory.
const LONGEST_KEY: usize = 512;
/// After so many puts in which no gap was of use all are forgotten, so that those who write do not go on telling.
const MOST_IDLE: u32 = 100_000;
/// Measuring begins to pay after so many tombstones, times a power of two that grows while what was measured is of no
/// use to anybody.
const WORTH: u32 = if cfg!(test) { 2 } else { 12 };
const MOST_DOUBLINGS: u32 = 5;

/// What is known of the place where a cursor stands.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum GapLookup {
    /// In a gap, with these ends.
    Gap {
        after: Option<Vec<u8>>,
        before: Option<Vec<u8>>,
    },
    /// In a gap, but the reader is older than it.
    TooOld,
    Unknown,
}

/// What cursors of a keyspace have learned.
#[derive(Default)]
pub(crate) struct KeyGaps {
    /// Whether puts have to tell. Set under the writer's lock.
    listening: AtomicBool,
    doublings: AtomicU32,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// In order, and apart.
    gaps: Vec<KeyGap>,
    measured: Option<Measurement>,
    /// Counts uses.
    clock: u64,
    /// Puts since the last use.
    idle: u32,
}

struct KeyGap {
    after: Option<Vec<u8>>,
    before: Option<Vec<u8>>,
    since: Seq,
    /// When it was last of use, or measured.
    used: u64,
    /// Whether it was measured for nothing so far.
    unused: bool,
}

/// What was put meanwhile on either side of the place that is being measured, nearest.
struct Measurement {
    /// Tells it from those before, which may not have ended.
    id: u64,
    at: Vec<u8>,
    after: Option<Vec<u8>>,
    before: Option<Vec<u8>>,
}

/// Whether `key` is behind the end `after`, and before the end `before`.
fn is_between(
    order: &KeyOrder,
    after: &Option<Vec<u8>>,
    key: &[u8],
    before: &Option<Vec<u8>>,
) -> bool {
    after.as_ref().is_none_or(|a| order.compare(a, key).is_lt())
        && before.as_ref().is_none_or(|b| order.compare(key, b).is_lt())
}

impl Known {
    /// The first gap that does not end before `key`.
    fn position(&self, order: &KeyOrder, key: &[u8]) -> usize {
        let ends = |g: &KeyGap| g.before.as_ref().is_some_and(|b| order.compare(b, key).is_le());
        self.gaps.partition_point(ends)
    }

    fn find(&self, order: &KeyOrder, key: &[u8]) -> Option<usize> {
        let at = self.position(order, key);
        let gap = self.gaps.get(at)?;
        is_between(order, &gap.after, key, &gap.before).then_some(at)
    }

    fn place(&mut self, at: Option<usize>, seq: Seq) -> GapLookup {
        let Some(at) = at else { return GapLookup::Unknown };
        self.clock += 1;
        let gap = &mut self.gaps[at];
        if gap.since > seq {
            return GapLookup::TooOld;
        }
        (gap.used, gap.unused, self.idle) = (self.clock, false, 0);
        GapLookup::Gap { after: gap.after.clone(), before: gap.before.clone() }
    }

    /// A put: of a gap that it falls into two are left.
    fn cut(&mut self, order: &KeyOrder, key: &[u8]) {
        if let Some(m) = &mut self.measured {
            match order.compare(key, &m.at) {
                Ordering::Less if is_between(order, &m.after, key, &None) => {
                    m.after = Some(key.to_vec())
                }
                Ordering::Greater if is_between(order, &None, key, &m.before) => {
                    m.before = Some(key.to_vec())
                }
                Ordering::Equal => self.measured = None,
                _ => {}
            }
        }
        let Some(at) = self.find(order, key) else { return };
        let gap = &mut self.gaps[at];
        if key.len() > LONGEST_KEY {
            self.gaps.remove(at);
            return;
        }
        gap.unused = false;
        let before = gap.before.replace(key.to_vec());
        let rest = KeyGap { after: Some(key.to_vec()), before, ..*gap };
        self.gaps.insert(at + 1, rest);
    }
}

impl KeyGaps {
    /// Whether puts have to [tell](KeyGaps::note_put). Asked under the writer's lock.
    #[inline]
    pub(crate) fn listening(&self) -> bool {
        self.listening.load(Relaxed)
    }

    /// A put, before readers see it.
    #[cold]
    pub(crate) fn note_put(&self, order: &KeyOrder, key: &[u8]) {
        let mut known = self.known.lock();
        known.cut(order, key);
        known.idle += 1;
        if known.idle > MOST_IDLE {
            (known.gaps, known.idle) = (Vec::new(), 0);
        }
        self.shrink(&mut known);
    }

    /// Any number of puts, under the writer's lock until readers see them.
    pub(crate) fn forget(&self) {
        let mut known = self.known.lock();
        (known.gaps, known.measured) = (Vec::new(), None);
        self.listening.store(false, Relaxed);
    }

    /// Drops what is too much, the least recently used first.
    fn shrink(&self, known: &mut Known) {
        if known.gaps.len() > MOST {
            let oldest =
                known.gaps.iter().enumerate().min_by_key(|(_, g)| g.used).map(|(at, _)| at);
            let gone = oldest.map(|at| known.gaps.remove(at));
            if gone.is_some_and(|g| g.unused) {
                self.double(1);
            }
        }
        self.listening.store(!known.gaps.is_empty() || known.measured.is_some(), Relaxed);
    }

    fn double(&self, by: i32) {
        let now = self.doublings.load(Relaxed);
        self.doublings.store(now.saturating_add_signed(by).min(MOST_DOUBLINGS), Relaxed);
    }

    /// Whether a reader that passed so many tombstones in one move has reason to measure.
    #[inline]
    pub(crate) fn is_worth_measuring(&self, passed: u32) -> bool {
        passed >= WORTH && passed >= WORTH << self.doublings.load(Relaxed)
    }

    /// What is known of the place of `key`, for a reader at `seq`.
    pub(crate) fn at(&self, order: &KeyOrder, key: &[u8], seq: Seq) -> GapLookup {
        let mut known = self.known.lock();
        let found = known.find(order, key);
        self.tell(&mut known, found, seq)
    }

    /// The same of the place before all keys.
    pub(crate) fn at_front(&self, seq: Seq) -> GapLookup {
        let mut known = self.known.lock();
        let found = known.gaps.first().is_some_and(|g| g.after.is_none()).then_some(0);
        self.tell(&mut known, found, seq)
    }

    /// The same of the place behind all keys.
    pub(crate) fn at_back(&self, seq: Seq) -> GapLookup {
        let mut known = self.known.lock();
        let found = known.gaps.last().is_some_and(|g| g.before.is_none());
        let found = found.then(|| known.gaps.len() - 1);
        self.tell(&mut known, found, seq)
    }

    fn tell(&self, known: &mut Known, found: Option<usize>, seq: Seq) -> GapLookup {
        let unused = found.is_some_and(|at| known.gaps[at].unused);
        let place = known.place(found, seq);
        if unused && matches!(place, GapLookup::Gap { .. }) {
            self.double(-1);
        }
        place
    }

    /// Begins to measure the place of `key`, under the writer's lock; `None` when another place is being measured.
    pub(crate) fn measure<'a>(&'a self, key: &[u8]) -> Option<Measuring<'a>> {
        let mut known = self.known.lock();
        if known.measured.is_some() || key.len() > LONGEST_KEY {
            return None;
        }
        known.clock += 1;
        let id = known.clock;
        known.measured = Some(Measurement { id, at: key.to_vec(), after: None, before: None });
        self.listening.store(true, Relaxed);
        Some(Measuring { gaps: self, id })
    }
}

/// A measurement under way. Dropped, it is given up.
pub(crate) struct Measuring<'a> {
    gaps: &'a KeyGaps,
    id: u64,
}

impl Measuring<'_> {
    /// The nearest keys that live on either side, at `seq`.
    pub(crate) fn end(
        self,
        order: &KeyOrder,
        seq: Seq,
        after: Option<Vec<u8>>,
        before: Option<Vec<u8>>,
    ) {
        let mut known = self.gaps.known.lock();
        // A put of the very key, or a bulk load, came in between, and perhaps another measurement.
        let Some(m) = known.measured.take_if(|m| m.id == self.id) else { return };
        let nearer_after = m.after.filter(|a| is_between(order, &after, a, &None));
        let nearer_before = m.before.filter(|b| is_between(order, &None, b, &before));
        let (after, before) = (nearer_after.or(after), nearer_before.or(before));
        let too_long = |end: &Option<Vec<u8>>| end.as_ref().is_some_and(|k| k.len() > LONGEST_KEY);
        // It lives again, by a put before the measurement began.
        let lives = !is_between(order, &after, &m.at, &before);
        if lives || too_long(&after) || too_long(&before) {
            return;
        }
        // Those within are part of it.
        let first = after.as_ref().map_or(0, |a| known.position(order, a));
        let starts = |g: &KeyGap| match (&g.after, &before) {
            (_, None) | (None, _) => true,
            (Some(a), Some(b)) => order.compare(a, b).is_lt(),
        };
        let behind = known.gaps.partition_point(starts).max(first);
        let unused = known.gaps.drain(first..behind).all(|g| g.unused);
        known.clock += 1;
        let used = known.clock;
        known.gaps.insert(first, KeyGap { after, before, since: seq, used, unused });
    }
}

impl Drop for Measuring<'_> {
    fn drop(&mut self) {
        let mut known = self.gaps.known.lock();
        known.measured.take_if(|m| m.id == self.id);
        self.gaps.shrink(&mut known);
    }
}

/// How cursors come to the gaps of their keyspace.
pub(crate) trait GapFinder: Send + Sync + std::fmt::Debug {
    /// Those that are known.
    fn known(&self) -> &KeyGaps;
    /// Measures the place of `key`, which a reader found dead among so many that it passed, if that can be done now.
    fn measure(&self, key: &[u8], passed: u32);
    /// A cursor searched so many sources.
    fn searched(&self, sources: usize);
}

#[cfg(test)]
mod tests {
    use super::*;
    use KeyOrder::Bytewise;

    fn end(key: &str) -> Option<Vec<u8>> {
        (!key.is_empty()).then(|| key.into())
    }

    fn learn(gaps: &KeyGaps, at: &str, seq: Seq, after: &str, before: &str) {
        gaps.measure(at.as_bytes()).unwrap().end(&Bytewise, seq, end(after), end(before));
    }

    fn at(gaps: &KeyGaps, key: &str, seq: Seq) -> GapLookup {
        gaps.at(&Bytewise, key.as_bytes(), seq)
    }

    fn gap(after: &str, before: &str) -> GapLookup {
        GapLookup::Gap { after: end(after), before: end(before) }
    }

    #[test]
    fn a_gap_holds_for_readers_from_its_sequence_on_until_a_put_cuts_it() {
        let gaps = KeyGaps::default();
        assert!(!gaps.listening());
        learn(&gaps, "m", 7, "c", "t");
        assert!(gaps.listening());
        assert_eq!(at(&gaps, "d", 7), gap("c", "t"));
        assert_eq!(at(&gaps, "d", 6), GapLookup::TooOld);
        assert_eq!(at(&gaps, "c", 7), GapLookup::Unknown);
        assert_eq!(at(&gaps, "t", 7), GapLookup::Unknown);
        gaps.note_put(&Bytewise, b"m");
        assert_eq!(at(&gaps, "d", 9), gap("c", "m"));
        assert_eq!(at(&gaps, "n", 9), gap("m", "t"));
        assert_eq!(at(&gaps, "m", 9), GapLookup::Unknown);
        gaps.note_put(&Bytewise, b"z");
        assert_eq!(at(&gaps, "n", 9), gap("m", "t"));
        gaps.forget();
        assert_eq!(at(&gaps, "n", 9), GapLookup::Unknown);
        assert!(!gaps.listening());
    }

    #[test]
    fn the_ends_of_the_keyspace() {
        let gaps = KeyGaps::default();
        assert_eq!(gaps.at_front(1), GapLookup::Unknown);
        learn(&gaps, "b", 1, "", "f");
        learn(&gaps, "x", 2, "p", "");
        assert_eq!(gaps.at_front(1), gap("", "f"));
        assert_eq!(gaps.at_back(1), GapLookup::TooOld);
        assert_eq!(gaps.at_back(2), gap("p", ""));
        // Everything between died: one gap takes the place of both.
        learn(&gaps, "g", 3, "", "");
        assert_eq!(gaps.at_front(3), gap("", ""));
        assert_eq!(gaps.at_back(3), gap("", ""));
        gaps.note_put(&Bytewise, b"");
        assert_eq!(gaps.at_front(3), GapLookup::Gap { after: None, before: Some(Vec::new()) });
    }

    #[test]
    fn what_is_put_while_a_gap_is_measured_ends_it() {
        let gaps = KeyGaps::default();
        let measuring = gaps.measure(b"m").unwrap();
        assert!(gaps.measure(b"a").is_none(), "one at a time");
        for key in ["b", "k", "d", "s", "p", "y"] {
            gaps.note_put(&Bytewise, key.as_bytes());
        }
        measuring.end(&Bytewise, 5, end("e"), end("q"));
        assert_eq!(at(&gaps, "m", 5), gap("k", "p"));
        // The nearest of both.
        let measuring = gaps.measure(b"x").unwrap();
        gaps.note_put(&Bytewise, b"t");
        measuring.end(&Bytewise, 6, end("w"), None);
        assert_eq!(at(&gaps, "x", 6), gap("w", ""));
        // The very key, a bulk load, a measurement that is given up.
        let measuring = gaps.measure(b"c").unwrap();
        gaps.note_put(&Bytewise, b"c");
        measuring.end(&Bytewise, 7, None, end("k"));
        assert_eq!(at(&gaps, "c", 7), GapLookup::Unknown);
        let measuring = gaps.measure(b"c").unwrap();
        gaps.forget();
        measuring.end(&Bytewise, 7, None, end("k"));
        assert_eq!(at(&gaps, "c", 7), GapLookup::Unknown);
        // One that was given up does not end the next.
        let (first, second) = (gaps.measure(b"m").unwrap(), {
            gaps.note_put(&Bytewise, b"m");
            gaps.measure(b"n").unwrap()
        });
        first.end(&Bytewise, 8, None, None);
        assert_eq!(at(&gaps, "a", 9), GapLookup::Unknown);
        second.end(&Bytewise, 9, end("m"), None);
        assert_eq!(at(&gaps, "o", 9), gap("m", ""));
        gaps.forget();
        drop(gaps.measure(b"c").unwrap());
        assert!(!gaps.listening());
    }

    #[test]
    fn the_number_of_gaps_and_their_keys_are_bounded() {
        let gaps = KeyGaps::default();
        let key = |n: usize| format!("{n:04}");
        for n in 1..200 {
            learn(&gaps, &format!("{}x", key(n)), 1, &key(n), &key(n + 1));
            assert!(matches!(at(&gaps, "0001y", 1), GapLookup::Gap { .. }), "in use");
        }
        assert!(gaps.known.lock().gaps.len() <= MOST);
        assert!(gaps.doublings.load(Relaxed) > 0, "of use to nobody");
        let long = "k".repeat(LONGEST_KEY + 1);
        assert!(gaps.measure(long.as_bytes()).is_none());
        learn(&gaps, "k", 2, "", &long);
        assert_eq!(at(&gaps, "k", 2), GapLookup::Unknown);
        // Writing into a gap that nobody reads ends it.
        let gaps = KeyGaps::default();
        learn(&gaps, "m", 1, "", "");
        for n in 0..=MOST_IDLE {
            gaps.note_put(&Bytewise, format!("{:08}", n).as_bytes());
        }
        assert!(!gaps.listening());
    }
}

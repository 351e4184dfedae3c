//! Gaps: where nothing lives between two neighbouring keys, however much is dead there.
//!
//! Who takes entries from the front of a keyspace and deletes them leaves tombstones there, which each new cursor
//! would pass again, one by one. A cursor that passes many learns the gap that they lie in, and others leap
//! over it until somebody writes there.
//!
//! What makes a gap true: it was read at a sequence, and every put from that one on was told of before readers could
//! see it. So whoever reads at that sequence or a later one finds nothing in it. A measurement begins under the
//! writer's lock, by a reader of the present: from then on puts tell, and what it reads has all puts before.
//!
//! Where a gap is known already that is as old as a reader, all puts since its moment have been told: what the reader walks across
//! then is a gap too, if none of the last puts fell into it, and needs no measurement. So the front of a queue moves on.
//!
//! A reader of the past sees at its sequence what any other sees at the same one, whatever is put: what it finds is kept
//! for just that sequence.

use std::cmp::Ordering;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::Relaxed};

use parking_lot::Mutex;

use super::boundary::Boundary;
use super::gap_set::{FoundGap, GapSet};
use super::last_puts::LastPuts;
use crate::key::{KeyOrder, Seq};

/// So many bytes the gaps of a keyspace take at most, and may take in any case, whatever share of the memory is
/// [allowed](KeyGaps::allow); then those give way that nobody used lately.
const MOST_BYTES: usize = if cfg!(test) { 4 << 10 } else { 1 << 20 };
const LEAST_BYTES: usize = if cfg!(test) { 1 << 10 } else { 4 << 10 };
/// The gaps of so many sequences of the past are kept, in as many bytes together.
const MOST_PAST: usize = 4;
/// So many places are measured at the same time.
const MOST_MEASURED: usize = 4;
/// After so many puts in which no gap was of use all are forgotten, so that those who write do not go on telling.
const MOST_IDLE: u32 = 100_000;
/// Measuring begins to pay after so many tombstones, times a power of two that grows while what was measured is of no
/// use to anybody.
const WORTH: u32 = if cfg!(test) { 2 } else { 12 };
const MOST_DOUBLINGS: u32 = 5;

/// What is known of the place where a cursor stands.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum GapLookup {
    /// In a gap, which ends here in the direction of the walk.
    End(Boundary),
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
    /// How many bytes are allowed; 0 until somebody said.
    allowed: AtomicUsize,
    /// Whether the last search that could tell began in a gap: then the next one looks there first.
    sought: AtomicBool,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    present: GapSet,
    past: Vec<Past>,
    measured: Vec<Measurement>,
    last_puts: LastPuts,
    /// Counts measurements, and uses of the past.
    clock: u64,
    /// Puts since the last use.
    idle: u32,
}

/// The gaps that readers at one sequence found.
struct Past {
    seq: Seq,
    gaps: GapSet,
    /// When it was last of use; 0 before.
    used: u64,
}

/// A place that is being measured, and the nearest puts on either side of it meanwhile.
struct Measurement {
    /// Tells it from others.
    id: u64,
    at: Vec<u8>,
    from: Boundary,
    to: Boundary,
}

impl Measurement {
    /// A put. `false` when it was of the very key: the place is alive.
    fn note_put(&mut self, order: &KeyOrder, key: &[u8]) -> bool {
        match order.compare(key, &self.at) {
            Ordering::Less if self.from.is_before(order, key) => {
                self.from = Boundary::Behind(key.to_vec());
            }
            Ordering::Greater if self.to.is_behind(order, key) => {
                self.to = Boundary::Before(key.to_vec());
            }
            Ordering::Equal => return false,
            _ => {}
        }
        true
    }
}

impl KeyGaps {
    /// Whether puts have to [tell](KeyGaps::note_put). Asked under the writer's lock.
    #[inline]
    pub(crate) fn listening(&self) -> bool {
        self.listening.load(Relaxed)
    }

    /// A put of this sequence, before readers see it.
    #[cold]
    pub(crate) fn note_put(&self, order: &KeyOrder, seq: Seq, key: &[u8]) {
        let mut known = self.known.lock();
        known.last_puts.note(seq, key);
        known.measured.retain_mut(|m| m.note_put(order, key));
        known.present.cut(order, key);
        known.idle += 1;
        if known.idle > MOST_IDLE {
            (known.present, known.past, known.idle) = Default::default();
        }
        self.shrink(&mut known);
    }

    /// Any number of puts, under the writer's lock until readers see them.
    pub(crate) fn forget(&self) {
        let mut known = self.known.lock();
        known.present.clear();
        known.measured.clear();
        self.listening.store(false, Relaxed);
    }

    /// From now on the gaps may take so many bytes, and those of the past as many.
    pub(crate) fn allow(&self, bytes: u64) {
        let bytes = usize::try_from(bytes).unwrap_or(MOST_BYTES);
        self.allowed.store(bytes.clamp(LEAST_BYTES, MOST_BYTES), Relaxed);
    }

    fn most_bytes(&self) -> usize {
        match self.allowed.load(Relaxed) {
            0 => MOST_BYTES,
            allowed => allowed,
        }
    }

    /// Drops what is too much.
    fn shrink(&self, known: &mut Known) {
        for _ in 0..known.present.shrink(self.most_bytes()).min(MOST_DOUBLINGS) {
            self.double(1);
        }
        let listening = !known.present.is_empty() || !known.measured.is_empty();
        self.listening.store(listening, Relaxed);
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
    pub(crate) fn at(&self, order: &KeyOrder, key: &[u8], seq: Seq, forward: bool) -> GapLookup {
        self.look_up(seq, forward, |gaps| gaps.find(order, key))
    }

    /// Whether searches lately began in gaps.
    #[inline]
    pub(crate) fn are_sought(&self) -> bool {
        self.sought.load(Relaxed)
    }

    /// A search began in a gap.
    pub(crate) fn expect_searches(&self) {
        self.sought.store(true, Relaxed);
    }

    /// The end of the gap that a search for `key` begins in, if it does.
    #[cold]
    pub(crate) fn sought(
        &self,
        order: &KeyOrder,
        key: &[u8],
        seq: Seq,
        forward: bool,
    ) -> Option<Boundary> {
        match self.at(order, key, seq, forward) {
            GapLookup::End(end) => Some(end),
            _ => {
                self.sought.store(false, Relaxed);
                None
            }
        }
    }

    /// The end of the gap before all keys, for a walk forward, or behind them, for one back.
    pub(crate) fn at_edge(&self, seq: Seq, forward: bool) -> Option<Boundary> {
        let known = match forward {
            true => self.look_up(seq, true, GapSet::first),
            false => self.look_up(seq, false, GapSet::last),
        };
        match known {
            GapLookup::End(end) => Some(end),
            _ => None,
        }
    }

    fn look_up(
        &self,
        seq: Seq,
        forward: bool,
        find: impl for<'s> Fn(&'s mut GapSet) -> Option<FoundGap<'s>>,
    ) -> GapLookup {
        let mut known = self.known.lock();
        let known = &mut *known;
        let present = find(&mut known.present);
        let too_old = present.is_some();
        if let Some(gap) = present.filter(|gap| gap.since() <= seq) {
            let (end, first_use) = gap.leap(forward);
            known.idle = 0;
            if first_use {
                self.double(-1);
            }
            return GapLookup::End(end);
        }
        if let Some(past) = known.past.iter_mut().find(|past| past.seq == seq)
            && let Some(gap) = find(&mut past.gaps)
        {
            known.clock += 1;
            past.used = known.clock;
            return GapLookup::End(gap.leap(forward).0);
        }
        if too_old { GapLookup::TooOld } else { GapLookup::Unknown }
    }

    /// Begins to measure the place of `key`, under the writer's lock; `None` when enough is being measured.
    pub(crate) fn measure(&self, key: &[u8]) -> Option<u64> {
        let mut known = self.known.lock();
        if known.measured.len() == MOST_MEASURED {
            return None;
        }
        known.clock += 1;
        let id = known.clock;
        let (from, to) = (Boundary::Front, Boundary::Back);
        known.measured.push(Measurement { id, at: key.to_vec(), from, to });
        self.listening.store(true, Relaxed);
        Some(id)
    }

    /// Ends a measurement: at `seq` nothing lives between these.
    fn end(&self, id: u64, order: &KeyOrder, seq: Seq, from: Boundary, to: Boundary) {
        let mut known = self.known.lock();
        // A put of the very key, or a bulk load, may have come in between.
        let Some(place) = known.measured.iter().position(|m| m.id == id) else { return };
        let m = known.measured.swap_remove(place);
        let (from, to) = (from.max(order, m.from), to.min(order, m.to));
        // It may live again, by a put before the measurement began.
        if from.is_before(order, &m.at) && to.is_behind(order, &m.at) {
            known.present.add(order, seq, from, to);
        }
    }

    /// A reader at `seq` leapt over gaps and walked on, and found nothing between these: a gap at present too, if all that was put
    /// since is known.
    pub(crate) fn extend(&self, order: &KeyOrder, seq: Seq, from: Boundary, to: Boundary) {
        let mut known = self.known.lock();
        if known.present.reaches_back_to(order, seq, &from)
            && known.last_puts.none_between(order, seq, &from, &to)
            && from.compare(order, &to).is_lt()
        {
            known.present.add(order, seq, from, to);
            self.shrink(&mut known);
        }
    }

    /// A measurement that has ended, or is given up.
    fn give_up(&self, id: u64) {
        let mut known = self.known.lock();
        known.measured.retain(|m| m.id != id);
        self.shrink(&mut known);
    }

    /// A reader of the past found nothing at `seq` between these.
    pub(crate) fn note_past(&self, order: &KeyOrder, seq: Seq, from: Boundary, to: Boundary) {
        let mut known = self.known.lock();
        let past = &mut known.past;
        let at = past.iter().position(|p| p.seq == seq).unwrap_or_else(|| {
            // Who reads beside a writer sees each sequence once: what was of use stays.
            let least = past.iter().enumerate().min_by_key(|(_, p)| p.used).map(|(at, _)| at);
            least.filter(|_| past.len() == MOST_PAST).map(|at| past.remove(at));
            past.push(Past { seq, gaps: GapSet::default(), used: 0 });
            past.len() - 1
        });
        past[at].gaps.add(order, seq, from, to);
        past[at].gaps.shrink(self.most_bytes() / MOST_PAST);
    }
}

/// A measurement under way. Dropped, it is given up.
pub(crate) struct Measuring {
    finder: Arc<dyn GapFinder>,
    id: u64,
}

impl Measuring {
    pub(crate) fn new(finder: Arc<dyn GapFinder>, id: u64) -> Measuring {
        Measuring { finder, id }
    }

    /// At `seq` nothing lives between these.
    pub(crate) fn end(self, order: &KeyOrder, seq: Seq, from: Boundary, to: Boundary) {
        self.finder.known().end(self.id, order, seq, from, to);
    }
}

impl Drop for Measuring {
    fn drop(&mut self) {
        self.finder.known().give_up(self.id);
    }
}

/// How a walk that passes many dead keys can learn of them.
pub(crate) enum GapReader {
    /// It reads the present: the walk itself measures.
    Present(u64),
    /// It reads the past, or who writes is in the way.
    Past,
    /// Not at all.
    Nothing,
}

/// How cursors come to the gaps of their keyspace.
pub(crate) trait GapFinder: Send + Sync + std::fmt::Debug {
    /// Those that are known.
    fn known(&self) -> &KeyGaps;
    /// Begins to measure the place of the dead `key`, where a walk stands that reads at `seq`.
    fn begin(&self, key: &[u8], seq: Seq) -> GapReader;
    /// Measures the place of `key` at present, if that can be done now. A walk from `near` to it passed nothing but
    /// dead ones.
    fn measure(&self, near: &Boundary, key: &[u8], forward: bool);
    /// A cursor searched so many sources.
    fn searched(&self, sources: usize);
}

#[cfg(test)]
mod tests {
    use super::*;
    use KeyOrder::Bytewise;

    fn behind(key: &str) -> Boundary {
        if key.is_empty() { Boundary::Front } else { Boundary::Behind(key.into()) }
    }

    fn before(key: &str) -> Boundary {
        if key.is_empty() { Boundary::Back } else { Boundary::Before(key.into()) }
    }

    fn finish(gaps: &KeyGaps, id: u64, seq: Seq, from: &str, to: &str) {
        gaps.end(id, &Bytewise, seq, behind(from), before(to));
        gaps.give_up(id);
    }

    fn learn(gaps: &KeyGaps, at: &str, seq: Seq, after: &str, before: &str) {
        let id = gaps.measure(at.as_bytes()).unwrap();
        finish(gaps, id, seq, after, before);
    }

    fn at(gaps: &KeyGaps, key: &str, seq: Seq) -> GapLookup {
        let [forward, back] = [true, false].map(|way| gaps.at(&Bytewise, key.as_bytes(), seq, way));
        assert_eq!(matches!(forward, GapLookup::End(_)), matches!(back, GapLookup::End(_)));
        forward
    }

    fn to(key: &str) -> GapLookup {
        GapLookup::End(before(key))
    }

    fn back_to(key: &str) -> GapLookup {
        GapLookup::End(behind(key))
    }

    #[test]
    fn a_gap_holds_for_readers_from_its_sequence_on_until_a_put_cuts_it() {
        let gaps = KeyGaps::default();
        assert!(!gaps.listening());
        learn(&gaps, "m", 7, "c", "t");
        assert!(gaps.listening());
        assert_eq!(at(&gaps, "d", 7), to("t"));
        assert_eq!(gaps.at(&Bytewise, b"d", 7, false), back_to("c"));
        assert_eq!(at(&gaps, "d", 6), GapLookup::TooOld);
        assert_eq!(at(&gaps, "c", 7), GapLookup::Unknown);
        assert_eq!(at(&gaps, "t", 7), GapLookup::Unknown);
        gaps.note_put(&Bytewise, 8, b"m");
        assert_eq!(at(&gaps, "d", 9), to("m"));
        assert_eq!(at(&gaps, "n", 9), to("t"));
        assert_eq!(at(&gaps, "m", 9), GapLookup::Unknown);
        gaps.note_put(&Bytewise, 4, b"z");
        assert_eq!(at(&gaps, "n", 9), to("t"));
        gaps.forget();
        assert_eq!(at(&gaps, "n", 9), GapLookup::Unknown);
        assert!(!gaps.listening());
    }

    #[test]
    fn the_ends_of_the_keyspace() {
        let gaps = KeyGaps::default();
        assert_eq!(gaps.at_edge(1, true), None);
        learn(&gaps, "b", 1, "", "f");
        learn(&gaps, "x", 2, "p", "");
        assert_eq!(gaps.at_edge(1, true), Some(before("f")));
        assert_eq!(gaps.at_edge(1, false), None, "it is older");
        assert_eq!(gaps.at_edge(2, false), Some(behind("p")));
        // Everything between died: one gap takes the place of both.
        learn(&gaps, "g", 3, "", "");
        assert_eq!(gaps.at_edge(3, true), Some(Boundary::Back));
        assert_eq!(gaps.at_edge(3, false), Some(Boundary::Front));
        gaps.note_put(&Bytewise, 4, b"");
        assert_eq!(gaps.at_edge(3, true), Some(Boundary::Before(Vec::new())));
    }

    #[test]
    fn what_is_put_while_a_gap_is_measured_ends_it() {
        let gaps = KeyGaps::default();
        let measuring = gaps.measure(b"m").unwrap();
        for key in ["b", "k", "d", "s", "p", "y"] {
            gaps.note_put(&Bytewise, 4, key.as_bytes());
        }
        finish(&gaps, measuring, 5, "e", "q");
        assert_eq!(at(&gaps, "m", 5), to("p"));
        assert_eq!(gaps.at(&Bytewise, b"m", 5, false), back_to("k"));
        // The nearest of both.
        let measuring = gaps.measure(b"x").unwrap();
        gaps.note_put(&Bytewise, 4, b"t");
        finish(&gaps, measuring, 6, "w", "");
        assert_eq!(at(&gaps, "x", 6), to(""));
        // The very key, a bulk load, a measurement that is given up.
        let measuring = gaps.measure(b"c").unwrap();
        gaps.note_put(&Bytewise, 4, b"c");
        finish(&gaps, measuring, 7, "", "k");
        assert_eq!(at(&gaps, "c", 7), GapLookup::Unknown);
        let measuring = gaps.measure(b"c").unwrap();
        gaps.forget();
        finish(&gaps, measuring, 7, "", "k");
        assert_eq!(at(&gaps, "c", 7), GapLookup::Unknown);
        gaps.give_up(gaps.measure(b"c").unwrap());
        assert!(!gaps.listening());
    }

    /// The front of a queue: "c" to "g" are taken, "g" was the first when that was measured.
    fn extended(gaps: &KeyGaps, seq: Seq) -> bool {
        gaps.extend(&Bytewise, seq, Boundary::Before(b"g".into()), before("k"));
        let end = at(gaps, "d", 99);
        assert!(end == to("g") || end == to("k"), "{end:?}");
        end == to("k")
    }

    fn with_a_front() -> KeyGaps {
        let gaps = KeyGaps::default();
        learn(&gaps, "d", 7, "b", "g");
        gaps
    }

    #[test]
    fn a_gap_becomes_longer_without_a_measurement_where_all_puts_since_are_known() {
        let gaps = with_a_front();
        assert!(extended(&gaps, 8));
        assert_eq!(gaps.at(&Bytewise, b"d", 8, false), back_to("b"));
        assert_eq!(at(&gaps, "d", 7), GapLookup::TooOld, "it is as true as the youngest part");
        // What was put elsewhere, and what the reader saw and somebody has deleted since.
        let gaps = with_a_front();
        ["x", "a", "k"].iter().for_each(|key| gaps.note_put(&Bytewise, 9, key.as_bytes()));
        gaps.note_put(&Bytewise, 8, b"h");
        assert!(extended(&gaps, 8));
    }

    #[test]
    fn a_gap_does_not_become_longer_over_what_may_have_been_put_since() {
        // A put between, of a moment that the reader does not see.
        for key in ["g", "h"] {
            let gaps = with_a_front();
            gaps.note_put(&Bytewise, 9, key.as_bytes());
            assert!(!extended(&gaps, 8), "{key}");
        }
        // The reader is older than all that is known, or nothing is.
        assert!(!extended(&with_a_front(), 6));
        let gaps = with_a_front();
        gaps.forget();
        gaps.extend(&Bytewise, 8, Boundary::Before(b"g".into()), before("k"));
        assert_eq!(at(&gaps, "h", 99), GapLookup::Unknown);
        assert!(!gaps.listening());
    }

    #[test]
    fn several_places_are_measured_at_a_time_and_each_is_told() {
        let gaps = KeyGaps::default();
        let all: Vec<u64> = (0..MOST_MEASURED).map(|_| gaps.measure(b"m").unwrap()).collect();
        assert_eq!(gaps.measure(b"a"), None, "there is an end to it");
        gaps.note_put(&Bytewise, 4, b"p");
        for id in all {
            finish(&gaps, id, 5, "c", "t");
            assert_eq!(at(&gaps, "m", 5), to("p"));
            assert_eq!(at(&gaps, "q", 5), GapLookup::Unknown);
        }
    }

    #[test]
    fn what_a_reader_of_the_past_found_is_for_those_of_the_same_moment() {
        let gaps = KeyGaps::default();
        gaps.note_past(&Bytewise, 5, behind("c"), before("t"));
        assert!(!gaps.listening(), "nothing that is put changes it");
        gaps.note_put(&Bytewise, 4, b"m");
        assert_eq!(at(&gaps, "d", 5), to("t"));
        assert_eq!(at(&gaps, "d", 4), GapLookup::Unknown);
        assert_eq!(at(&gaps, "d", 6), GapLookup::Unknown);
        learn(&gaps, "f", 9, "c", "m");
        assert_eq!(at(&gaps, "d", 5), to("t"));
        assert_eq!(at(&gaps, "d", 6), GapLookup::TooOld);
        // What is of use stays, however many look once.
        for seq in 10..100 {
            gaps.note_past(&Bytewise, seq, behind("c"), before("t"));
        }
        assert_eq!(at(&gaps, "d", 5), to("t"));
        assert_eq!(gaps.known.lock().past.len(), MOST_PAST);
    }

    #[test]
    fn gaps_take_no_more_than_their_share_of_the_memory() {
        let kept = |allowed: u64| {
            let gaps = KeyGaps::default();
            gaps.allow(allowed);
            for n in 1..500 {
                learn(&gaps, &format!("{n:04}x"), 1, &format!("{n:04}"), &format!("{:04}", n + 1));
                gaps.note_past(
                    &Bytewise,
                    1,
                    behind(&format!("{n:04}")),
                    before(&format!("{:04}", n + 1)),
                );
            }
            let found = |n: &usize| matches!(at(&gaps, &format!("{n:04}x"), 2), GapLookup::End(_));
            (1..500).filter(found).count()
        };
        let (least, some, most) = (kept(0), kept(2 << 10), kept(u64::MAX));
        assert!(0 < least && least < some && some < most && most < 40, "{least} {some} {most}");
    }

    #[test]
    fn gaps_that_are_of_use_to_nobody_give_way() {
        let gaps = KeyGaps::default();
        let key = |n: usize| format!("{n:04}");
        for n in 1..2000 {
            learn(&gaps, &format!("{}x", key(n)), 1, &key(n), &key(n + 1));
            assert!(matches!(at(&gaps, "0001y", 1), GapLookup::End(_)), "in use");
        }
        assert_eq!(at(&gaps, "0002y", 1), GapLookup::Unknown);
        assert!(gaps.doublings.load(Relaxed) > 0, "of use to nobody");
        // Writing into a gap that nobody reads ends it.
        let gaps = KeyGaps::default();
        learn(&gaps, "m", 1, "", "");
        for n in 0..=MOST_IDLE {
            gaps.note_put(&Bytewise, 4, format!("{:08}", n).as_bytes());
        }
        assert!(!gaps.listening());
    }
}

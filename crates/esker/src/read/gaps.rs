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
//! Readers never wait here: who writes may ask a comparator of the user's meanwhile, which may take its time. What a reader cannot have
//! at once it does without, and walks.
//!
//! A reader of the past sees at its sequence what any other sees at the same one, whatever is put: what it finds is kept
//! for just that sequence.

use std::cmp::Ordering;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::boundary::Boundary;
use super::gap_set::{Gap, GapSet};
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
    /// Counts uses of the past.
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
    /// Held by who measures. Let go of, the measurement is given up.
    by: Weak<()>,
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
        known.present = GapSet::default();
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
        self.listen(known);
    }

    /// Measurements have ended or were given up. Compares no keys: the comparator may be panicking.
    fn tidy(&self) {
        if let Some(mut known) = self.known.try_lock() {
            self.listen(&mut known);
        }
    }

    /// Has puts tell as long as there is something to tell of.
    fn listen(&self, known: &mut Known) {
        known.measured.retain(|m| m.by.strong_count() > 0);
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
        find: impl for<'s> Fn(&'s mut GapSet) -> Option<&'s mut Gap>,
    ) -> GapLookup {
        let Some(mut known) = self.known.try_lock() else { return GapLookup::Unknown };
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

    /// Begins to measure the place of `key`, under the writer's lock, for as long as what it gives is held; `None` when
    /// enough is being measured.
    pub(crate) fn measure(&self, key: &[u8]) -> Option<Arc<()>> {
        let mut known = self.known.try_lock()?;
        self.listen(&mut known);
        if known.measured.len() == MOST_MEASURED {
            return None;
        }
        let held = Arc::new(());
        let (by, from, to) = (Arc::downgrade(&held), Boundary::Front, Boundary::Back);
        known.measured.push(Measurement { by, at: key.to_vec(), from, to });
        self.listening.store(true, Relaxed);
        Some(held)
    }

    /// Ends a measurement: at `seq` nothing lives between these.
    fn end(&self, held: &Arc<()>, order: &KeyOrder, seq: Seq, from: Boundary, to: Boundary) {
        let Some(mut known) = self.known.try_lock() else { return };
        let this = |m: &Measurement| std::ptr::eq(m.by.as_ptr(), Arc::as_ptr(held));
        // A put of the very key, or a bulk load, may have come in between.
        let Some(place) = known.measured.iter().position(this) else { return };
        let m = known.measured.swap_remove(place);
        let (from, to) = (from.max(order, m.from), to.min(order, m.to));
        // It may live again, by a put before the measurement began.
        if from.is_before(order, &m.at) && to.is_behind(order, &m.at) {
            known.present.add(order, seq, from, to);
        }
        self.shrink(&mut known);
    }

    /// A reader at `seq` leapt over gaps and walked on, and found nothing between these: a gap at present too, if all that was put
    /// since is known.
    pub(crate) fn extend(&self, order: &KeyOrder, seq: Seq, from: Boundary, to: Boundary) {
        let Some(mut known) = self.known.try_lock() else { return };
        if known.present.reaches_back_to(order, seq, &from)
            && known.last_puts.none_between(order, seq, &from, &to)
            && from.compare(order, &to).is_lt()
        {
            known.present.add(order, seq, from, to);
            self.shrink(&mut known);
        }
    }

    /// A reader of the past found nothing at `seq` between these.
    pub(crate) fn note_past(&self, order: &KeyOrder, seq: Seq, from: Boundary, to: Boundary) {
        let Some(mut known) = self.known.try_lock() else { return };
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
    held: Option<Arc<()>>,
}

impl Measuring {
    pub(crate) fn new(finder: Arc<dyn GapFinder>, held: Arc<()>) -> Measuring {
        Measuring { finder, held: Some(held) }
    }

    /// At `seq` nothing lives between these.
    pub(crate) fn end(self, order: &KeyOrder, seq: Seq, from: Boundary, to: Boundary) {
        if let Some(held) = &self.held {
            self.finder.known().end(held, order, seq, from, to);
        }
    }
}

impl Drop for Measuring {
    fn drop(&mut self) {
        self.held = None;
        self.finder.known().tidy();
    }
}

/// How a walk that passes many dead keys can learn of them.
pub(crate) enum GapReader {
    /// It reads the present: the walk itself measures.
    Present(Arc<()>),
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
#[path = "gaps_tests.rs"]
mod tests;

//! How fast writers go: pure functions of the debt.
//!
//! Sealed segments wait for a flush. Below a soft limit writers run free. Above it each write waits in
//! proportion to its size and to what is left to flush, such that writers bring as much as flushes take away
//! long before the cap: they settle there, and never see the cliff of a full stop. Only a flush that comes to
//! a halt lets the debt reach the cap.

use std::time::Duration;

/// One wait, in at most this much.
pub(crate) const SLICE: Duration = Duration::from_millis(1);
/// Shorter waits are saved up: the system cannot sleep them.
const SHORTEST: Duration = Duration::from_micros(150);
/// Bytes of one write that one slice of waiting stands for; a longer write may wait several.
const BYTES_PER_SLICE: u64 = 8 << 10;
/// So many times the bytes left to flush weigh as much as those of the room: writers feel a debt early, and
/// settle at a third of the cap.
const EARLY: f64 = 10.0;
/// A write waits at most so many times the time that a flush takes for the same bytes.
const STEEPEST: f64 = 100.0;

/// How fast sealed bytes are flushed: an average over the last flushes, weighted by their time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct FlushRate {
    bytes_per_s: f64,
    measured: bool,
}

impl Default for FlushRate {
    fn default() -> Self {
        // Until a flush was measured: what a slow disk takes.
        FlushRate { bytes_per_s: 64e6, measured: false }
    }
}

impl FlushRate {
    /// The time after which a measurement counts for a third.
    const MEMORY_S: f64 = 2.0;

    /// Takes a finished flush (or a part of one) into the average.
    pub(crate) fn measured(&mut self, bytes: u64, took: Duration) {
        let seconds = took.as_secs_f64().max(1e-6);
        let now = (bytes as f64 / seconds).clamp(1e5, 1e11);
        let share = if self.measured { 1.0 - (-seconds / Self::MEMORY_S).exp() } else { 1.0 };
        self.bytes_per_s += (now - self.bytes_per_s) * share;
        self.measured = true;
    }

    /// Bytes per second.
    pub(crate) fn bytes_per_s(&self) -> f64 {
        self.bytes_per_s
    }
}

/// Whether a write may go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Admission {
    /// At once.
    Go,
    /// After a rest of this long (at most [`SLICE`]); then it may, if [`Throttle::more`] says no
    /// further slice is due and the cap allows it.
    Wait(Duration),
    /// Not before a flush has ended: the write does not fit under the cap.
    Full,
}

/// What waits for a flush.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Debt {
    /// Bytes that occupy log and memory until a flush has ended.
    pub held: u64,
    /// Of these, what the running flush has written already. They are held until its end, but the flush
    /// frees them soon.
    pub flushed: u64,
    /// The most that may be held.
    pub cap: u64,
}

impl Debt {
    /// Writers run free up to this much.
    pub(crate) fn soft_limit(cap: u64) -> u64 {
        cap / 4
    }

    /// How many times the flush time of its own bytes a write should take: what is left to flush above the soft
    /// limit, over the room under the cap. Writers settle where it is 1. The less room there is, the
    /// steeper it rises, so that the room outlasts a flush that takes many times longer than those before.
    pub(crate) fn slowdown(&self) -> f64 {
        let soft = Debt::soft_limit(self.cap);
        let left = self.held.saturating_sub(self.flushed).saturating_sub(soft);
        let room = self.cap.saturating_sub(self.held).max(1);
        (EARLY * left as f64 / room as f64).min(STEEPEST)
    }

    /// How long a write of this many bytes should take in all; `None` where it has to stop, as it does not fit
    /// under the cap.
    pub(crate) fn delay(&self, rate: FlushRate, bytes: u64) -> Option<Duration> {
        let seconds = bytes as f64 / rate.bytes_per_s() * self.slowdown();
        let fits = self.held.saturating_add(bytes) <= self.cap;
        fits.then(|| Duration::from_secs_f64(seconds.min(1.0)))
    }
}

/// The time that writers owe. One for all writers, used under the lock that orders them; the
/// waiting itself is done outside.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Throttle {
    /// Until here the time is taken by writes already admitted.
    taken: Duration,
}

impl Throttle {
    /// Admits a write at `now`. Waits too short to sleep are kept for a later write.
    pub(crate) fn admit(
        &mut self,
        now: Duration,
        debt: &Debt,
        rate: FlushRate,
        bytes: u64,
    ) -> Admission {
        let Some(delay) = debt.delay(rate, bytes) else { return Admission::Full };
        if delay.is_zero() {
            // No pressure, no debts of time.
            self.taken = now;
            return Admission::Go;
        }
        // Time not used is lost, but for one slice: a writer that rested may not make up for it
        // with a burst. What cannot be waited for within this write's slices is forgiven.
        let slices = 1 + (bytes / BYTES_PER_SLICE).min(1000) as u32;
        let earliest = now.saturating_sub(SLICE);
        self.taken = (self.taken.max(earliest) + delay).min(now + SLICE * slices);
        self.more(now)
    }

    /// The next slice that is due at `now`, after a slice was waited.
    pub(crate) fn more(&self, now: Duration) -> Admission {
        let owed = self.taken.saturating_sub(now);
        if owed < SHORTEST { Admission::Go } else { Admission::Wait(owed.min(SLICE)) }
    }
}

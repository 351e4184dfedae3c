//! How fast writers go: pure functions of the debt.
//!
//! Sealed segments wait for a flush. Below a soft cap writers run free. Above it each write waits
//! in proportion to its size, the longer the more is waiting, such that at about 0.45 of the hard cap
//! writers bring exactly as much as flushes take away. They settle there, and never see the cliff
//! of a full stop; only a flush that comes to a halt lets the debt reach the hard cap. Where readers search much,
//! both lie lower.
//!
//! Why 0.45: a flush frees its segments all at once, at its end, and while it runs as much again
//! comes in. In balance the waiting bytes swing between one flush and two, and two must fit.

use std::time::Duration;

/// One wait, in at most this much.
pub(crate) const SLICE: Duration = Duration::from_millis(1);
/// Shorter waits are saved up: the system cannot sleep them.
const SHORTEST: Duration = Duration::from_micros(150);
/// Bytes of one write that one slice of waiting stands for; a longer write may wait several.
const BYTES_PER_SLICE: u64 = 8 << 10;
/// Where inflow meets the flush rate, as a share of the hard cap.
const BALANCE: f64 = 0.45;
/// How many times the time that a flush takes for the same bytes a write waits at the hard cap.
const STEEPEST: f64 = 10.0;

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

    /// The rate where flushes get one part in so many of the time.
    pub(crate) fn shared(self, parts: f64) -> FlushRate {
        FlushRate { bytes_per_s: self.bytes_per_s / parts, ..self }
    }

    /// Bytes per second.
    pub(crate) fn bytes_per_s(&self) -> f64 {
        self.bytes_per_s
    }

    /// How long so many bytes take, once a flush was measured.
    pub(crate) fn time_of(&self, bytes: u64) -> Option<Duration> {
        self.measured.then(|| Duration::from_secs_f64(bytes as f64 / self.bytes_per_s))
    }
}

/// How long a running flush will still take. What it has done tells best; before it has done
/// anything to speak of, what flushes took before: `expected` is the time it should take in all.
/// Flushes differ: one that swallows runs writes many times the bytes that it frees.
pub(crate) fn remaining(elapsed: Duration, share: f64, expected: Option<Duration>) -> Duration {
    const TELLING: f64 = 0.05;
    if share >= TELLING {
        return elapsed.mul_f64((1.0 - share.min(1.0)) / share);
    }
    expected.map_or(Duration::ZERO, |all| all.saturating_sub(elapsed))
}

/// What presses on writers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StallInput {
    /// Bytes that occupy log and memory until a flush has ended.
    pub held: u64,
    /// Of these, what the running flush will free at its end.
    pub flushing: u64,
    /// Of these, what it has written already.
    pub progress: u64,
    /// How long it will still take.
    pub remaining: Duration,
    /// Writers run free below this many bytes left to flush.
    pub soft: u64,
    /// The cap.
    pub hard: u64,
    /// How much readers would gain from less, 0 to 1: the balance moves from its share of the cap down to a quarter of that.
    pub readers: f64,
    /// By how much compactions are more urgent than where they are given most of the time: at 1 writers slow down as at
    /// the hard cap.
    pub overdue: f64,
    /// The measured rate.
    pub rate: FlushRate,
}

/// Whether a write may go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Admission {
    /// At once.
    Go,
    /// After a rest of one slice; then it may, if the cap is not reached and [`Throttle::more`] says that no further one is due.
    Wait {
        /// How long, [`SLICE`] at most.
        slice: Duration,
        /// To when the write waits in all, at most.
        until: Duration,
    },
    /// Not before a flush has ended: the hard cap is reached.
    Full,
}

impl StallInput {
    /// How many times the flush time of its own bytes a write should take: 0 below the soft cap,
    /// 1 at balance, [`STEEPEST`] at the hard cap; continuous, but where the room runs out.
    pub(crate) fn slowdown(&self) -> f64 {
        let left = self.held.saturating_sub(self.progress) as f64;
        let (soft, hard) = (self.soft as f64, self.hard as f64);
        let balance = (hard * BALANCE * (1.0 - 0.75 * self.readers)).max(soft + 1.0);
        let level = if left <= soft {
            0.0
        } else if left <= balance {
            let x = (left - soft) / (balance - soft);
            x * x
        } else {
            let x = ((left - balance) / (hard - balance).max(1.0)).min(1.0);
            1.0 + (STEEPEST - 1.0) * x * x
        };
        let overdue = self.overdue.clamp(0.0, 1.0);
        level.max(self.room_slowdown()).max(STEEPEST * overdue * overdue)
    }

    /// What comes in until the running flush ends must fit under the hard cap. Counts only for a
    /// flush that is too large for the balance, as after a burst or a halt of the disk.
    fn room_slowdown(&self) -> f64 {
        let to_write = self.flushing.saturating_sub(self.progress);
        let room = self.hard.saturating_sub(self.held);
        if self.held <= self.soft || to_write <= room {
            return 0.0;
        }
        (to_write as f64 / room.max(1) as f64).min(STEEPEST * STEEPEST)
    }

    /// How long a write of this many bytes should take in all.
    pub(crate) fn fair_time(&self, bytes: u64) -> Duration {
        let seconds = bytes as f64 / self.rate.bytes_per_s() * self.slowdown();
        Duration::from_secs_f64(seconds.min(1.0)).max(self.share_of_room(bytes))
    }

    /// The room that is left must last until the running flush makes more: the time that a write of
    /// this many bytes may use of it.
    fn share_of_room(&self, bytes: u64) -> Duration {
        if self.held <= self.soft || self.flushing == 0 {
            return Duration::ZERO;
        }
        // A part is kept for an estimate that was too good.
        let room = (self.hard.saturating_sub(self.held) as f64 * 0.9).max(1.0);
        let seconds = bytes as f64 / room * self.remaining.as_secs_f64();
        Duration::from_secs_f64(seconds.min(1.0))
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
    pub(crate) fn admit(&mut self, now: Duration, p: &StallInput, bytes: u64) -> Admission {
        if p.held >= p.hard {
            return Admission::Full;
        }
        // What waits is counted when a segment is sealed, not write by write; so a write passes as
        // long as the cap is not reached.
        let bytes = bytes.min(p.hard - p.held);
        let fair = p.fair_time(bytes);
        if fair.is_zero() {
            // No pressure, no debts of time.
            self.taken = now;
            return Admission::Go;
        }
        // Time not used is lost, but for one slice: a writer that rested may not make up for it
        // with a burst. What cannot be waited for within this write's slices is forgiven.
        let slices = 1 + (bytes / BYTES_PER_SLICE).min(1000) as u32;
        let earliest = now.saturating_sub(SLICE);
        self.taken = (self.taken.max(earliest) + fair).min(now + SLICE * slices);
        self.more(now, self.taken)
    }

    /// The next slice that is due at `now`, after a slice was waited, for a write that waits until then: what writes that came
    /// later owe is theirs to wait for, or one of several writers could be overtaken again and again. Where nothing presses any
    /// more nobody waits.
    pub(crate) fn more(&self, now: Duration, until: Duration) -> Admission {
        let owed = self.taken.min(until).saturating_sub(now);
        match owed < SHORTEST {
            true => Admission::Go,
            false => Admission::Wait { slice: owed.min(SLICE), until },
        }
    }
}

//! The debt of the background work, and what writers and the compaction thread make of it.
//!
//! [`throttle`](super::throttle) decides; this keeps its inputs and is cheap to ask: without pressure a
//! writer pays one load.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::cost::CostModel;
use super::throttle::{Admission, Debt, FlushRate, Throttle};
use crate::options::Options;

/// Sealed log that waits to be flushed, its caps, and how fast flushing goes. Bytes are
/// [weighed](super::cost).
#[derive(Debug)]
pub(crate) struct Backpressure {
    pending: AtomicU64,
    /// Of these, what the running flush will free, and how much of that is written.
    flushing: AtomicU64,
    flushed: AtomicU64,
    /// Most that may wait.
    cap: u64,
    cost_model: CostModel,
    start: Instant,
    pacing: Mutex<Pacing>,
    /// Bytes of writes that have not been admitted yet: they are asked about together.
    unasked: AtomicU64,
}

/// What merging for tidiness may write: at first, per second, and per byte the user wrote since.
/// Without a bound a store that is written to now and then would be rewritten as often.
const TIDY_AT_FIRST: u64 = 1 << 30;
const TIDY_PER_SECOND: u64 = 2 << 20;
const TIDY_PER_USER_BYTE: u64 = 8;

#[derive(Debug, Default)]
struct Pacing {
    /// Bytes that merging for tidiness has written.
    tidied: u64,
    rate: FlushRate,
    throttle: Throttle,
}

impl Backpressure {
    pub(crate) fn new(options: &Options) -> Backpressure {
        let cap = options.pending_cap();
        Backpressure {
            pending: AtomicU64::new(0),
            flushing: AtomicU64::new(0),
            flushed: AtomicU64::new(0),
            cap,
            cost_model: CostModel::new(cap),
            start: Instant::now(),
            pacing: Mutex::default(),
            unasked: AtomicU64::new(0),
        }
    }

    /// Sealed bytes that wait.
    pub(crate) fn pending(&self) -> u64 {
        self.pending.load(Ordering::Relaxed)
    }

    pub(crate) fn set_pending(&self, bytes: u64) {
        self.pending.store(bytes, Ordering::Relaxed);
    }

    /// A flush of so many sealed bytes begins.
    pub(crate) fn begin_flush(&self, bytes: u64) {
        self.flushed.store(0, Ordering::Relaxed);
        self.flushing.store(bytes, Ordering::Relaxed);
    }

    /// The flush is over.
    pub(crate) fn end_flush(&self) {
        self.flushed.store(0, Ordering::Relaxed);
        self.flushing.store(0, Ordering::Relaxed);
    }

    /// The running flush has done this share of its work, 0 to 1.
    pub(crate) fn set_progress(&self, share: f64) {
        let bytes = self.flushing.load(Ordering::Relaxed) as f64 * share;
        self.flushed.store(bytes as u64, Ordering::Relaxed);
    }

    /// Most sealed bytes that may wait.
    pub(crate) fn cap(&self) -> u64 {
        self.cap
    }

    /// Waiting bytes as a share of the cap, 0 to 1.
    pub(crate) fn debt(&self) -> f64 {
        (self.pending() as f64 / self.cap as f64).min(1.0)
    }

    /// What bytes weigh.
    pub(crate) fn cost_model(&self) -> CostModel {
        self.cost_model
    }

    /// Whether writers may go on without asking.
    #[inline]
    fn is_low(&self) -> bool {
        self.pending.load(Ordering::Relaxed) <= Debt::soft_limit(self.cap)
    }

    /// Counts a write that weighs so much. Under pressure and once some have come together, returns how
    /// many are to be admitted: small writes one by one would pay more for asking than for waiting.
    #[inline]
    pub(crate) fn due(&self, cost: impl FnOnce(CostModel) -> u64) -> Option<u64> {
        const TOGETHER: u64 = 8 << 10;
        if self.is_low() {
            return None;
        }
        let bytes = cost(self.cost_model);
        let unasked = self.unasked.fetch_add(bytes, Ordering::Relaxed) + bytes;
        (unasked >= TOGETHER || self.pending() >= self.cap)
            .then(|| self.unasked.swap(0, Ordering::Relaxed))
    }

    /// Whether a write of so many bytes may go on, or how long it waits first.
    pub(crate) fn admit(&self, bytes: u64) -> Admission {
        // What waits is counted when a segment is sealed, not write by write; so a write passes as
        // long as the cap is not reached.
        let held = self.pending();
        if held >= self.cap {
            return Admission::Full;
        }
        let debt = Debt { held, flushed: self.flushed.load(Ordering::Relaxed), cap: self.cap };
        let mut pacing = self.pacing.lock();
        let rate = pacing.rate;
        pacing.throttle.admit(self.start.elapsed(), &debt, rate, bytes.min(self.cap - held))
    }

    /// Whether another slice is due after one was waited.
    pub(crate) fn more(&self) -> Admission {
        self.pacing.lock().throttle.more(self.start.elapsed())
    }

    /// Whether a compaction should stop for a flush.
    pub(crate) fn flush_is_urgent(&self) -> bool {
        self.pending() > Debt::soft_limit(self.cap) / 2
    }

    /// A flush of so many log bytes took so long.
    pub(crate) fn note_flush(&self, bytes: u64, took: Duration) {
        self.pacing.lock().rate.measured(bytes, took);
    }

    /// Whether a compaction that only makes the store tidier may write so many bytes now; if so, they
    /// are taken as written.
    pub(crate) fn may_tidy(&self, bytes: u64, user_bytes: u64) -> bool {
        let credit = TIDY_AT_FIRST
            + TIDY_PER_SECOND * self.start.elapsed().as_secs()
            + TIDY_PER_USER_BYTE.saturating_mul(user_bytes);
        let mut pacing = self.pacing.lock();
        let may = pacing.tidied.saturating_add(bytes) <= credit;
        if may {
            pacing.tidied += bytes;
        }
        may
    }
}

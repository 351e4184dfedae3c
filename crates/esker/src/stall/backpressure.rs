//! The debt of the background work, and what writers and the compaction thread make of it.
//!
//! [`throttle`](super::throttle) decides; this keeps its inputs and is cheap to ask: without pressure a
//! writer pays one load.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::cost::CostModel;
use super::throttle::{Admission, FlushRate, StallInput, Throttle, remaining};
use crate::options::Options;

/// Sealed log that waits to be flushed, its caps, and how fast flushing goes. Bytes are
/// [weighed](super::cost).
#[derive(Debug)]
pub(crate) struct Backpressure {
    pending: AtomicU64,
    /// The keyspace whose compactions are the most urgent, in the upper half; how urgent, in thousandths.
    pressure: AtomicU64,
    /// How much searches press, in thousandths.
    readers: AtomicU64,
    soft: u64,
    hard: u64,
    cost_model: CostModel,
    start: Instant,
    inner: Mutex<Flushes>,
    /// Bytes of writes that have not been admitted yet: they are asked about together.
    unasked: AtomicU64,
}

/// What merging for tidiness may write: at first, per second, and per byte the user wrote since.
/// Without a bound a store that is written to now and then would be rewritten as often.
const TIDY_AT_FIRST: u64 = 1 << 30;
const TIDY_PER_SECOND: u64 = 2 << 20;
const TIDY_PER_USER_BYTE: u64 = 8;

/// How many times as long as flushes compactions take where they are most urgent.
const MOST_COMPACTING: f64 = 8.0;
/// How often is looked at how much searches press.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What writers ask for under pressure only, and the thread of compactions changes. Moments are those since `start`.
#[derive(Debug, Default)]
struct Flushes {
    /// Of what waits, what the running flush will free, and how much of that is done.
    flushing: u64,
    progress: u64,
    /// When it began, and how many bytes it will write.
    began: Duration,
    writes: u64,
    /// When the last one ended, and how long it took.
    ended: Duration,
    took: Duration,
    rate: FlushRate,
    /// How fast flushes write, whatever they free.
    writing: FlushRate,
    throttle: Throttle,
    /// Bytes that merging for tidiness has written.
    tidied: u64,
    /// When it was last looked at how much searches press.
    looked: Duration,
}

impl Backpressure {
    pub(crate) fn new(options: &Options) -> Backpressure {
        let hard = options.pending_cap();
        Backpressure {
            pending: AtomicU64::new(0),
            pressure: AtomicU64::new(0),
            readers: AtomicU64::new(0),
            soft: hard / 4,
            hard,
            cost_model: CostModel::new(hard),
            start: Instant::now(),
            inner: Mutex::default(),
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

    /// A flush of so many sealed bytes begins, which will write `writes` bytes.
    pub(crate) fn begin_flush(&self, bytes: u64, writes: u64) {
        let mut inner = self.inner.lock();
        (inner.flushing, inner.progress) = (bytes, 0);
        (inner.began, inner.writes) = (self.start.elapsed(), writes);
    }

    /// The flush is over.
    pub(crate) fn end_flush(&self) {
        let mut inner = self.inner.lock();
        (inner.flushing, inner.progress) = (0, 0);
    }

    /// The running flush has done this share of its work, 0 to 1.
    pub(crate) fn set_progress(&self, share: f64) {
        let mut inner = self.inner.lock();
        inner.progress = (inner.flushing as f64 * share) as u64;
    }

    /// Most sealed bytes that may wait.
    pub(crate) fn cap(&self) -> u64 {
        self.hard
    }

    /// Waiting bytes as a share of the cap, 0 to 1.
    pub(crate) fn debt(&self) -> f64 {
        (self.pending() as f64 / self.hard as f64).min(1.0)
    }

    /// What bytes weigh.
    pub(crate) fn cost_model(&self) -> CostModel {
        self.cost_model
    }

    /// Where writers begin to slow down, in bytes that wait: the sooner, the more readers pay for what does.
    #[inline]
    fn soft(&self) -> u64 {
        self.soft - self.soft / 1000 * (self.readers.load(Ordering::Relaxed) * 3 / 4)
    }

    /// How much searches press, 0 to 1: see [`readers`](super::readers).
    pub(crate) fn readers(&self) -> f64 {
        self.readers.load(Ordering::Relaxed) as f64 / 1000.0
    }

    /// Asks for that anew, unless it was asked a moment ago. `pressure` is told the time since the store was opened.
    pub(crate) fn look_at_readers(&self, pressure: impl FnOnce(Duration) -> f64) {
        let now = self.start.elapsed();
        let looked = self.inner.lock().looked;
        if now.saturating_sub(looked) >= LOOK_EVERY {
            self.inner.lock().looked = now;
            self.readers.store((pressure(now) * 1000.0) as u64, Ordering::Relaxed);
        }
    }

    /// Whether writers may go on without asking.
    #[inline]
    fn is_low(&self) -> bool {
        self.pending.load(Ordering::Relaxed) <= self.soft()
            && self.pressure.load(Ordering::Relaxed) as u32 <= 1000
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
        (unasked >= TOGETHER || self.pending() >= self.hard)
            .then(|| self.unasked.swap(0, Ordering::Relaxed))
    }

    /// Whether a write of so many bytes may go on, or how long it waits first.
    pub(crate) fn admit(&self, bytes: u64) -> Admission {
        let mut inner = self.inner.lock();
        let (flushing, progress) = (inner.flushing, inner.progress);
        let expected = inner.writing.time_of(inner.writes);
        let elapsed = self.start.elapsed().saturating_sub(inner.began);
        let remaining = remaining(elapsed, progress as f64 / flushing.max(1) as f64, expected);
        let forces = StallInput {
            held: self.pending(),
            flushing,
            progress,
            remaining,
            soft: self.soft(),
            hard: self.hard,
            readers: self.readers(),
            overdue: self.pressure().1 - 1.0,
            rate: inner.rate.shared(1.0 + self.compacting()),
        };
        inner.throttle.admit(self.start.elapsed(), &forces, bytes)
    }

    /// Whether another slice is due after one was waited, for a write that waits until then.
    pub(crate) fn more(&self, until: Duration) -> Admission {
        // Each of the writers that rest would pass the cap once.
        if self.pending() >= self.hard {
            return Admission::Full;
        }
        self.inner.lock().throttle.more(self.start.elapsed(), until)
    }

    /// Whether a compaction should stop for a flush: much waits, and the compaction had its share of the time
    /// since the last one, or writers would soon have to stop.
    pub(crate) fn flush_may_interrupt(&self) -> bool {
        let pending = self.pending();
        pending > self.hard / 4 * 3 || pending > self.soft() / 2 && !self.has_share_left()
    }

    /// Whether compactions have not had their share of the time since the last flush yet.
    pub(crate) fn has_share_left(&self) -> bool {
        self.start.elapsed() < self.next_flush()
    }

    /// When compactions will have had their share of the time since the last flush.
    fn next_flush(&self) -> Duration {
        let inner = self.inner.lock();
        inner.ended + inner.took.mul_f64(self.compacting())
    }

    /// How many times as long as flushes compactions are to take.
    fn compacting(&self) -> f64 {
        let pressure = self.pressure().1.min(1.0);
        MOST_COMPACTING * pressure * pressure
    }

    /// How urgent the compactions are that are under way or due, and of which keyspace they are: at 1 they are given
    /// most of the time, and beyond it writers slow down whatever waits.
    pub(crate) fn pressure(&self) -> (u32, f64) {
        let noted = self.pressure.load(Ordering::Relaxed);
        ((noted >> 32) as u32, (noted & u64::from(u32::MAX)) as f64 / 1000.0)
    }

    /// As [`pressure`](Backpressure::pressure).
    pub(crate) fn set_pressure(&self, keyspace: u32, pressure: f64) {
        let noted = u64::from(keyspace) << 32 | (pressure * 1000.0) as u64;
        self.pressure.store(noted, Ordering::Relaxed);
    }

    /// A compaction begins that gives no dead values back: nobody slows down for them meanwhile.
    pub(crate) fn cut_overdue(&self) {
        let (keyspace, pressure) = self.pressure();
        self.set_pressure(keyspace, pressure.min(1.0));
    }

    /// A flush of so many log bytes, which wrote `wrote` bytes, took so long.
    pub(crate) fn note_flush(&self, bytes: u64, wrote: u64, took: Duration) {
        self.note_flushes(took);
        let mut inner = self.inner.lock();
        inner.rate.measured(bytes, took);
        inner.writing.measured(wrote, took);
    }

    /// The flushes of all keyspaces that had something to flush took so long together: what compactions get a share beside.
    pub(crate) fn note_flushes(&self, took: Duration) {
        let mut inner = self.inner.lock();
        (inner.ended, inner.took) = (self.start.elapsed(), took);
    }

    /// Whether a compaction that only makes the store tidier may write so many bytes now.
    pub(crate) fn may_tidy(&self, bytes: u64, user_bytes: u64) -> bool {
        let credit = TIDY_AT_FIRST
            + TIDY_PER_SECOND * self.start.elapsed().as_secs()
            + TIDY_PER_USER_BYTE.saturating_mul(user_bytes);
        self.inner.lock().tidied.saturating_add(bytes) <= credit
    }

    /// One has written so many.
    pub(crate) fn note_tidied(&self, bytes: u64) {
        self.inner.lock().tidied += bytes;
    }
}

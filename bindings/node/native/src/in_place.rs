//! Which calls run at once, on the thread of the event loop, and which are handed to the pool.
//!
//! To hand a call over and its result back takes some thirty microseconds, ten times what a read of something in memory or a buffered
//! write takes. So these run at once, until one takes long, because it waits for the device or for room in memory: then all are handed
//! over for twenty times as long as it took. So much of its time, a twentieth, the event loop waits at most.
//!
//! That programs have their turn which never wait for anything else than the store is seen to by `lib/turn.js`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What takes longer waited for something, or has so much to do that the way to the pool is little beside it.
const LONG: Duration = Duration::from_micros(50);
const REST_FOR_EACH: u32 = 20;

/// Whether calls of a kind run at once. Any number of threads may ask.
pub struct InPlace {
    made: Instant,
    /// Nanoseconds after it was made.
    rests_until: AtomicU64,
}

impl InPlace {
    /// One that lets calls run.
    pub fn new() -> InPlace {
        InPlace { made: Instant::now(), rests_until: AtomicU64::new(0) }
    }

    /// Whether a call may run at once.
    pub fn is_allowed(&self) -> bool {
        self.allows(self.made.elapsed())
    }

    /// Runs something, and notes how long it took.
    pub fn timed<T>(&self, work: impl FnOnce() -> T) -> T {
        let begun = self.made.elapsed();
        let done = work();
        self.note(begun, self.made.elapsed());
        done
    }

    fn allows(&self, now: Duration) -> bool {
        now >= Duration::from_nanos(self.rests_until.load(Ordering::Relaxed))
    }

    fn note(&self, begun: Duration, ended: Duration) {
        let took = ended.saturating_sub(begun);
        if took > LONG {
            let rested = ended.saturating_add(took.saturating_mul(REST_FOR_EACH));
            let until = u64::try_from(rested.as_nanos()).unwrap_or(u64::MAX);
            self.rests_until.fetch_max(until, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_long_call_the_others_are_handed_over_for_a_while() {
        let ms = Duration::from_millis;
        let place = InPlace::new();
        assert!(place.allows(ms(0)));
        place.note(ms(10), ms(10) + LONG);
        assert!(place.allows(ms(11)), "that was not long");
        place.note(ms(20), ms(21));
        assert!(!place.allows(ms(21)) && !place.allows(ms(40)));
        assert!(place.allows(ms(41)));
        // A shorter one that ended meanwhile takes nothing away.
        place.note(ms(1000), ms(2000));
        place.note(ms(2000), ms(2001));
        assert!(!place.allows(ms(21_999)));
        assert!(place.allows(ms(22_000)));
    }
}

//! The background thread: flushes, compactions, has space given back.

use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::MutexGuard;

use crate::error::{Error, Result};
use crate::store::Store;
use crate::util::panic_message;

/// How often an idle store looks whether it has become idle enough to merge on.
const TICK: Duration = Duration::from_millis(20);
/// A look takes its time with each keyspace: it comes later by a tick for so many of them.
const KEYSPACES_A_TICK: u32 = 500;
/// Without a write for this long, the store counts as idle.
const IDLE_AFTER: Duration = Duration::from_millis(60);
/// Without a write for this long, files kept for reuse are removed.
const TRIM_AFTER: Duration = Duration::from_secs(2);

/// When something was last written, seen from the worker.
struct Activity {
    seq: u64,
    since: Instant,
}

impl Activity {
    fn quiet_for(&mut self, store: &Store) -> Duration {
        let seq = store.visible_seq();
        if seq != self.seq {
            self.seq = seq;
            self.since = Instant::now();
        }
        self.since.elapsed()
    }
}

thread_local! {
    /// Whether this is the background thread of a store.
    static IS_WORKER: Cell<bool> = const { Cell::new(false) };
}

/// Whether the caller is on a background thread, which cannot wait for itself.
pub(crate) fn is_worker() -> bool {
    IS_WORKER.get()
}

/// Starts the background thread of a store that is open for writing.
pub(crate) fn start(store: Arc<Store>) -> std::io::Result<std::thread::JoinHandle<()>> {
    let body = move || {
        IS_WORKER.set(true);
        // A bug in a compaction must not leave writers waiting for a thread that is gone: it stops
        // writes, as any failure of a compaction does, and the thread goes on.
        loop {
            let end = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(&store)));
            let Err(panic) = end else { return };
            let what = panic_message(panic);
            let what = format!("the background thread failed: {what}; this is a bug");
            store.halt(Error::io("compact", &store.dir, std::io::Error::other(what)));
        }
    };
    std::thread::Builder::new().name("esker-worker".to_string()).spawn(body)
}

fn run(store: &Store) {
    let mut activity = Activity { seq: store.visible_seq(), since: Instant::now() };
    loop {
        match store.round(activity.quiet_for(store)) {
            Round::Stop => return,
            Round::Worked => continue,
            Round::Idle => {}
        }
        let keyspaces = store.keyspaces.read().by_id.len() as u32;
        let mut state = store.signal.state.lock();
        if !state.wake && !state.stop {
            let tick = TICK * (1 + keyspaces / KEYSPACES_A_TICK);
            store.signal.to_worker.wait_for(&mut state, tick);
        }
    }
}

/// What came of a round of work.
enum Round {
    /// The store is being closed.
    Stop,
    /// Something was done; there may be more.
    Worked,
    Idle,
}

impl Store {
    /// Looks at what is to be done and does the most urgent; `quiet`: since when nothing was written.
    fn round(&self, quiet: Duration) -> Round {
        {
            let mut state = self.signal.state.lock();
            if state.stop {
                return Round::Stop;
            }
            state.wake = false;
        }
        {
            // Whoever waited for compactions gives back what is left, and must find none of it in use here.
            let _job = self.jobs.lock();
            self.delete_obsolete(quiet >= TRIM_AFTER);
        }
        self.look_at_readers();
        // Where closing may not wait for a comparator, none is called while nobody writes.
        let idle = quiet >= IDLE_AFTER && self.options.flush_on_close;
        if self.work_once(|| self.flush_or_compact(idle)) {
            return Round::Worked;
        }
        // Nothing else to do: make ready for the next burst, or take its preparations back.
        self.tidy_log(quiet >= TRIM_AFTER);
        if quiet < TRIM_AFTER {
            self.prepare_spare();
        }
        Round::Idle
    }

    /// A round on the calling thread, where there is no other that does it.
    #[cfg(test)]
    pub(crate) fn step(&self, quiet: Duration) {
        self.round(quiet);
    }

    /// Gives up what nobody needs of the log; `trim`: also what is kept for the writes to come.
    pub(super) fn tidy_log(&self, trim: bool) {
        let _job = self.jobs.lock();
        if self.check_open().is_err() {
            return;
        }
        let trimmed = self.advance_log().and_then(|()| if trim { self.trim_log() } else { Ok(()) });
        match trimmed {
            // What it was to give up stays until the next time.
            Err(e) if !e.is_no_space() => self.halt(e),
            _ => {}
        }
        if trim {
            self.delete_obsolete(true);
            // Once more: segments that the first round set free.
            self.delete_obsolete(true);
        }
    }

    /// Does a piece of work, which says whether there was any, with `jobs` held. `false` when none is done.
    pub(super) fn work_once(&self, work: impl FnOnce() -> Result<bool>) -> bool {
        // A failure stops writes while nobody can resume: told later, it would stop them once more.
        let job = self.jobs.lock();
        let worked = self.check_writable().is_ok()
            && work().unwrap_or_else(|e| {
                self.halt(e);
                false
            });
        // Who waits is next: otherwise whoever has more to do would have it again.
        MutexGuard::unlock_fair(job);
        worked
    }

    /// Between two slices of a compaction: lets writers in that wait for a flush. Where it is one itself (`flushing`), that of what was
    /// sealed later must wait for it, lest a newer segment is in tables before an older one.
    pub(crate) fn between_slices(&self, flushing: bool) -> Result<()> {
        if self.signal.stopping() {
            return Err(Error::Closed);
        }
        self.prepare_spare();
        self.look_at_readers();
        // What begins in between is a flush, so it goes no deeper.
        if !flushing && self.flush_is_due() {
            self.flush_sealed_between()?;
        }
        // A step may take long, and what is dropped meanwhile takes its space. A flush is awaited, and nobody waits for that.
        if !flushing && (self.obsolete.has_files() || self.segments.has_free()) {
            self.delete_obsolete(false);
        }
        Ok(())
    }

    /// How much readers of the keyspace that is searched most would gain from fewer sources.
    fn look_at_readers(&self) {
        self.backpressure.look_at_readers(|now| {
            let keyspaces = self.all_keyspaces();
            keyspaces.iter().map(|ks| ks.searches.0.pressure(now)).fold(0.0, f64::max)
        });
    }
}

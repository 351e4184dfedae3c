//! The background thread: flushes, merges, gives space back.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::store::Store;
use crate::util::{AtEnd, panic_message};

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

/// Starts the background thread of a store that is open for writing.
pub(crate) fn start(store: Arc<Store>) -> std::io::Result<std::thread::JoinHandle<()>> {
    let body = move || {
        // A bug in a compaction must not leave writers waiting for a thread that is gone: it stops
        // writes, as any failure of a compaction does, and the thread goes on.
        loop {
            let end = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(&store)));
            let Err(panic) = end else { return };
            let what = panic_message(panic);
            let what = format!("the background thread failed: {what}; this is a bug");
            store.halt(Error::io("merge", &store.dir, std::io::Error::other(what)));
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
        state.settled_rounds += 1;
        store.signal.to_waiters.notify_all();
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
        let settle = {
            let mut state = self.signal.state.lock();
            if state.stop {
                return Round::Stop;
            }
            state.wake = false;
            state.settle > 0
        };
        self.delete_obsolete(quiet >= TRIM_AFTER);
        self.look_at_readers();
        // Where closing may not wait for a comparator, none is called while nobody writes.
        let idle = settle || quiet >= IDLE_AFTER && self.options.flush_on_close;
        if self.work_once(idle, settle) {
            return Round::Worked;
        }
        match self.advance_log() {
            // What it was to give up stays until the next round.
            Err(e) if !e.is_no_space() => self.halt(e),
            _ => {}
        }
        // Nothing else to do: make ready for the next burst, or take its preparations back.
        if settle || quiet >= TRIM_AFTER {
            match self.trim_log() {
                // Nothing has changed.
                Err(e) if !e.is_no_space() => self.halt(e),
                _ => {}
            }
            self.delete_obsolete(true);
        } else {
            self.prepare_spare();
        }
        Round::Idle
    }

    /// A round on the calling thread, where there is no other that does it.
    #[cfg(test)]
    pub(crate) fn step(&self, quiet: Duration) {
        if let Round::Idle = self.round(quiet) {
            self.signal.state.lock().settled_rounds += 1;
        }
    }

    /// Removes, punches and pools what no reader holds any more.
    pub(crate) fn delete_obsolete(&self, trim: bool) {
        // Where an edit is under way, the next round comes soon enough. Nobody who has an edit waits while files are removed.
        let told = || self.version_set.try_lock()?.tell_manifest_length().ok();
        self.delete_obsolete_when(trim, || told().is_some());
    }

    /// The same for somebody who has the version set: `tell_end` lets `CURRENT` say where the manifest ends.
    pub(crate) fn delete_obsolete_when(&self, trim: bool, tell_end: impl FnOnce() -> bool) {
        self.segments.collect(trim);
        if !self.obsolete.is_empty() && self.check_dir().is_ok() {
            self.obsolete.run(&*self.env, tell_end);
        }
    }

    /// Does the most urgent piece of work there is. `false` when there is none, or none is done.
    fn work_once(&self, idle: bool, settle: bool) -> bool {
        // A failure stops writes while nobody can resume: told later, it would stop them once more.
        let _job = self.jobs.lock();
        if self.halt_cause().is_some() {
            return false;
        }
        self.try_work(idle, settle).unwrap_or_else(|e| {
            self.halt(e);
            false
        })
    }

    fn try_work(&self, idle: bool, settle: bool) -> Result<bool> {
        if idle && self.should_flush_active(settle) {
            match self.seal_active() {
                // It stays as it is, and the compactions below may make room.
                Err(e) if !e.is_no_space() => return Err(e),
                _ => {}
            }
        }
        let keyspaces = self.all_keyspaces();
        let sealed = keyspaces.iter().filter(|ks| self.has_sealed(ks));
        for ks in sealed.chain(&keyspaces) {
            if self.compact_picked(ks, idle, settle, false)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Between two slices of a merge: lets writers in that wait for a flush.
    /// `flushing`: the compaction is a flush itself, and the flush of what was sealed later must wait
    /// for it, lest a newer segment is in tables before an older one.
    pub(crate) fn between_slices(&self, flushing: bool) -> Result<()> {
        if self.signal.stopping() {
            return Err(Error::Closed);
        }
        self.prepare_spare();
        self.look_at_readers();
        if !flushing
            && (self.backpressure.flush_may_interrupt() || self.signal.closing())
            && !self.nested.swap(true, Ordering::Relaxed)
        {
            let _nested = AtEnd(|| self.nested.store(false, Ordering::Relaxed));
            self.flush_sealed_between()?;
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

    /// Flushes, and waits until merging has nothing left to do.
    pub(crate) fn settle(&self) -> Result<()> {
        let _dir = self.hold_dir()?;
        self.flush_all()?;
        let from = {
            let mut state = self.signal.state.lock();
            state.settle += 1;
            state.wake = true;
            state.settled_rounds
        };
        self.signal.to_worker.notify_one();
        let result = self.signal.wait_until(|| {
            if let Some(cause) = self.halt_cause() {
                return Some(Err(Error::Halted { cause }));
            }
            let state = self.signal.state.lock();
            if state.stop {
                return Some(Err(Error::Closed));
            }
            // Two rounds: the first may have begun before this call.
            (state.settled_rounds >= from + 2).then_some(Ok(()))
        });
        self.signal.state.lock().settle -= 1;
        self.delete_obsolete(true);
        result
    }
}

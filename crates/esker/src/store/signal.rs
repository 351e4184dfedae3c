//! How handles and the background thread talk.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::util::AtEnd;

/// How handles and the worker talk.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    pub state: Mutex<SignalState>,
    /// How many wait for a flush that they asked for.
    await_flush: AtomicUsize,
    pub to_worker: Condvar,
    pub to_waiters: Condvar,
    #[cfg(test)]
    pub stepper: Stepper,
}

/// Does a round of the background work on the thread that waits for it, in simulations.
#[cfg(test)]
#[derive(Default)]
pub(crate) struct Stepper(pub std::sync::OnceLock<Box<dyn Fn() + Send + Sync>>);

#[cfg(test)]
impl std::fmt::Debug for Stepper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Stepper({})", self.0.get().is_some())
    }
}

#[derive(Debug, Default)]
pub(crate) struct SignalState {
    pub wake: bool,
    pub stop: bool,
}

impl Signal {
    /// There may be work.
    pub(crate) fn wake(&self) {
        self.state.lock().wake = true;
        self.to_worker.notify_one();
    }

    /// Something was finished, or failed: waiters look again.
    pub(crate) fn notify_done(&self) {
        let _guard = self.state.lock();
        self.to_waiters.notify_all();
    }

    /// Until what is returned is dropped flushes come before other compactions, those under way too.
    pub(crate) fn await_flush(&self) -> AtEnd<impl FnMut() + '_> {
        self.await_flush.fetch_add(1, Ordering::Relaxed);
        AtEnd(|| {
            self.await_flush.fetch_sub(1, Ordering::Relaxed);
        })
    }

    pub(crate) fn flush_is_awaited(&self) -> bool {
        self.await_flush.load(Ordering::Relaxed) > 0
    }

    pub(crate) fn stop(&self) {
        self.state.lock().stop = true;
        self.to_worker.notify_one();
        self.to_waiters.notify_all();
    }

    pub(crate) fn stopping(&self) -> bool {
        self.state.lock().stop
    }

    /// Waits until `done` says so; looks again whenever something was finished.
    pub(crate) fn wait_until<T>(&self, mut done: impl FnMut() -> Option<T>) -> T {
        #[cfg(test)]
        let mut steps = 0;
        loop {
            if let Some(result) = done() {
                return result;
            }
            #[cfg(test)]
            if let Some(step) = self.stepper.0.get() {
                steps += 1;
                assert!(steps < 10_000, "waits for what the background work never does");
                step();
                continue;
            }
            let mut state = self.state.lock();
            // The timeout covers what is finished between the look and the lock.
            self.to_waiters.wait_for(&mut state, Duration::from_millis(2));
        }
    }
}

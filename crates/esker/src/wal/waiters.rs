//! Threads that wait for a sync, each on a place of its own.
//!
//! A condition variable would wake them one after the other through its mutex, which takes longer
//! than the sync itself on a fast device. Here a thread that is told "covered" goes on without any
//! lock, and the next leader is woken first, so that its sync runs while the others wake.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::format::Position;
use crate::util::sync::{AtomicU8, Thread, current, park, thread_local};

/// What a waiting thread is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Verdict {
    /// What it waits for is durable.
    Covered = 1,
    /// It is the next leader.
    Lead = 2,
    /// Something has changed: look again.
    Look = 3,
}

/// Where one thread waits. Used again for every wait of the thread.
#[derive(Debug)]
pub(super) struct WaitSlot {
    /// 0 while it waits, else a [`Verdict`].
    told: AtomicU8,
    thread: Thread,
}

thread_local! {
    static SLOT: Arc<WaitSlot> = WaitSlot::new();
}

impl WaitSlot {
    /// This thread's, ready to wait.
    pub(super) fn of_this_thread() -> Arc<WaitSlot> {
        let place = SLOT.try_with(Arc::clone);
        // Gone with the thread, where the program's own thread-locals, of Rust, go later and use the store.
        let place = place.unwrap_or_else(|_| WaitSlot::new());
        place.told.store(0, Ordering::Relaxed);
        place
    }

    fn new() -> Arc<WaitSlot> {
        Arc::new(WaitSlot { told: AtomicU8::new(0), thread: current() })
    }

    /// Waits until told.
    pub(super) fn wait(&self) -> Verdict {
        loop {
            match self.told.load(Ordering::Acquire) {
                0 => park(),
                1 => return Verdict::Covered,
                2 => return Verdict::Lead,
                _ => return Verdict::Look,
            }
        }
    }

    fn tell(&self, verdict: Verdict) {
        // The place may be used for another wait as soon as this is stored, so the handle that
        // wakes the thread is taken before. A wake too many only makes it look once more.
        let thread = self.thread.clone();
        self.told.store(verdict as u8, Ordering::Release);
        thread.unpark();
    }
}

/// One waiting thread.
#[derive(Debug)]
struct Waiter {
    position: Position,
    place: Arc<WaitSlot>,
}

/// The threads that wait, in order of arrival.
#[derive(Debug, Default)]
pub(super) struct Waiters {
    list: Vec<Waiter>,
}

/// Whom to wake, and with what; done after the lock is released.
#[derive(Debug, Default)]
pub(super) struct Wakes {
    list: Vec<(Arc<WaitSlot>, Verdict)>,
}

impl Waiters {
    pub(super) fn push(&mut self, position: Position, place: Arc<WaitSlot>) {
        self.list.push(Waiter { position, place });
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// The furthest position that one of them waits for.
    pub(super) fn furthest(&self) -> Option<Position> {
        self.list.iter().map(|w| w.position).max()
    }

    /// Takes out everyone whose position is durable and, when there is nobody leading (`lead`), the
    /// next leader, who comes first. With `all`, everyone: the rest are to look again.
    pub(super) fn take(&mut self, durable: Position, lead: bool, all: bool) -> (Wakes, bool) {
        let mut wakes = Wakes::default();
        let mut leader = None;
        self.list.retain(|w| {
            let verdict = if w.position <= durable {
                Verdict::Covered
            } else if all {
                Verdict::Look
            } else if lead && leader.is_none() {
                leader = Some(Arc::clone(&w.place));
                return false;
            } else {
                return true;
            };
            wakes.list.push((Arc::clone(&w.place), verdict));
            false
        });
        let led = leader.is_some();
        if let Some(place) = leader {
            wakes.list.insert(0, (place, Verdict::Lead));
        }
        (wakes, led)
    }
}

impl Wakes {
    pub(super) fn wake(self) {
        for (place, verdict) in self.list {
            place.tell(verdict);
        }
    }
}

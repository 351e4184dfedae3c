//! Whether the store may be written to, or used at all: one state, changed in one step.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use parking_lot::Mutex;

use crate::error::{Error, Result};
use crate::util::forks::forks;

const READ_ONLY: u8 = 1;
const HALTED: u8 = 2;
const CLOSED: u8 = 4;

/// What stands against writing.
pub(crate) struct Gate {
    /// All reasons there are; asked before every read and write, so one plain load.
    bars: AtomicU8,
    /// Of which process the store is, in [`forks`]: a child of it may do nothing with it.
    process: u32,
    /// Why, exactly while `HALTED` is among the bars: both change under this lock.
    halted: Mutex<Option<Arc<Error>>>,
}

impl Gate {
    pub(super) fn new(read_only: bool) -> Gate {
        let bars = AtomicU8::new(if read_only { READ_ONLY } else { 0 });
        Gate { bars, process: forks(), halted: Mutex::default() }
    }

    /// Stops writes. The first cause stays.
    pub(super) fn halt(&self, cause: Error) {
        let mut halted = self.halted.lock();
        halted.get_or_insert_with(|| match cause {
            Error::Halted { cause } => cause,
            other => Arc::new(other),
        });
        self.bars.fetch_or(HALTED, Ordering::Release);
    }

    pub(super) fn end_halt(&self) {
        let mut halted = self.halted.lock();
        *halted = None;
        self.bars.fetch_and(!HALTED, Ordering::Release);
    }

    pub(super) fn cause(&self) -> Option<Arc<Error>> {
        self.halted.lock().clone()
    }

    pub(super) fn close(&self) {
        self.bars.fetch_or(CLOSED, Ordering::Release);
    }

    /// Whether this is a child of the process that opened the store.
    #[inline]
    pub(super) fn is_forked(&self) -> bool {
        self.process != forks()
    }

    #[inline]
    pub(super) fn is_closed(&self) -> bool {
        self.bars.load(Ordering::Relaxed) & CLOSED != 0 || self.is_forked()
    }

    #[inline]
    pub(super) fn check_writable(&self) -> Result<()> {
        match self.bars.load(Ordering::Relaxed) {
            0 if !self.is_forked() => Ok(()),
            bars => self.refuse(bars),
        }
    }

    #[cold]
    fn refuse(&self, bars: u8) -> Result<()> {
        if bars & CLOSED != 0 || self.is_forked() {
            return Err(Error::Closed);
        }
        if bars & READ_ONLY != 0 {
            return Err(Error::ReadOnly);
        }
        match self.cause() {
            Some(cause) => Err(Error::Halted { cause }),
            // The halt has ended since.
            None => self.check_writable(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ended and begun at the same time, a halt was there for those who asked why, and not for those
    /// who wrote.
    #[test]
    fn a_halt_that_begins_while_another_ends_is_one_for_writers_too() {
        let gate = Gate::new(false);
        let (rounds, barrier) = (20_000, std::sync::Barrier::new(2));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..rounds {
                    barrier.wait();
                    gate.end_halt();
                    barrier.wait();
                }
            });
            let mut wrong = 0;
            for _ in 0..rounds {
                barrier.wait();
                gate.halt(Error::ReadOnly);
                barrier.wait();
                wrong += u32::from(gate.cause().is_some() != gate.check_writable().is_err());
            }
            assert_eq!(wrong, 0);
        });
    }

    #[test]
    fn what_ends_a_halt_opens_no_closed_store() {
        let gate = Gate::new(false);
        gate.halt(Error::ReadOnly);
        gate.close();
        gate.end_halt();
        assert!(matches!(gate.check_writable(), Err(Error::Closed)));
    }
}

//! Which records are there while several clients insert: as in the benchmark itself, a number is asked for once all before it
//! are acknowledged.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

/// Numbers of records: those that were there at first, and behind them those that clients take and put.
pub(super) struct Inserts {
    first: u64,
    /// The number that is taken next.
    next: AtomicU64,
    /// All before this one are in the store.
    known: AtomicU64,
    /// Of those behind `first`, which are in the store.
    done: Vec<AtomicBool>,
}

impl Inserts {
    /// There are `records`, and room for some up to `limit`.
    pub(super) fn new(records: u64, limit: u64) -> Inserts {
        let done = (records..limit).map(|_| AtomicBool::new(false)).collect();
        Inserts {
            first: records,
            next: AtomicU64::new(records),
            known: AtomicU64::new(records),
            done,
        }
    }

    /// How many there were at first.
    pub(super) fn first(&self) -> u64 {
        self.first
    }

    /// How many are there for everybody who looks now.
    pub(super) fn known(&self) -> u64 {
        self.known.load(SeqCst)
    }

    /// How many may be there: known, or about to be put.
    pub(super) fn taken(&self) -> u64 {
        self.next.load(SeqCst)
    }

    /// A number to put; none where there is no room left.
    pub(super) fn take(&self) -> Option<u64> {
        let limit = self.first + self.done.len() as u64;
        self.next.fetch_update(SeqCst, SeqCst, |n| (n < limit).then_some(n + 1)).ok()
    }

    /// It is in the store.
    pub(super) fn put(&self, number: u64) {
        self.done[(number - self.first) as usize].store(true, SeqCst);
        // Whoever comes last of two that put at the same time takes the other's along.
        loop {
            let known = self.known();
            let is_put = |done: &AtomicBool| done.load(SeqCst);
            if !self.done.get((known - self.first) as usize).is_some_and(is_put) {
                return;
            }
            let _ = self.known.compare_exchange(known, known + 1, SeqCst, SeqCst);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_is_known_once_all_before_it_are() {
        let inserts = Inserts::new(10, 13);
        let numbers: Vec<_> = (0..4).map(|_| inserts.take()).collect();
        assert_eq!(numbers, [Some(10), Some(11), Some(12), None]);
        assert_eq!((inserts.first(), inserts.known(), inserts.taken()), (10, 10, 13));
        inserts.put(11);
        assert_eq!(inserts.known(), 10, "10 is not there yet");
        inserts.put(10);
        assert_eq!(inserts.known(), 12);
        inserts.put(12);
        assert_eq!(inserts.known(), 13);
    }

    #[test]
    fn everything_is_known_in_the_end_whoever_put_it() {
        let inserts = Inserts::new(5, 4005);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while let Some(number) = inserts.take() {
                        assert!(inserts.known() <= number);
                        inserts.put(number);
                        assert!(inserts.known() <= inserts.taken());
                    }
                });
            }
        });
        assert_eq!(inserts.known(), 4005);
    }
}

//! What the store counts since it was opened.

use std::sync::atomic::{AtomicU64, Ordering};

/// Running totals. Relaxed: most are for people, and what decides by the others needs no order.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub user_bytes: AtomicU64,
    pub log_bytes: AtomicU64,
    pub compaction_read: AtomicU64,
    pub compaction_written: AtomicU64,
    pub compactions: AtomicU64,
    pub slowdown_ns: AtomicU64,
}

impl Counters {
    #[inline]
    pub(crate) fn add(counter: &AtomicU64, n: u64) {
        counter.fetch_add(n, Ordering::Relaxed);
    }

    /// For counters that only the holder of the write lock changes: no locked instruction.
    #[inline]
    pub(crate) fn add_exclusive(counter: &AtomicU64, n: u64) {
        counter.store(counter.load(Ordering::Relaxed) + n, Ordering::Relaxed);
    }

    pub(crate) fn get(counter: &AtomicU64) -> u64 {
        counter.load(Ordering::Relaxed)
    }
}

//! Which separated values were verified already.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Values from this many bytes on are verified once; below, every time (which takes less than half
/// a microsecond). No two values of this size start in the same 4 KiB page, so one bit per page
/// tells them apart.
const ONCE_FROM: usize = 4096;

/// One bit for each page of a segment: whether the value that starts there was verified.
///
/// Two threads may verify the same value at the same time; that costs work and nothing else, so no
/// order is needed among these accesses.
#[derive(Debug, Default)]
pub(super) struct Verified {
    /// Made by the first value: most segments never hand one out.
    pages: OnceLock<Box<[AtomicU64]>>,
}

impl Verified {
    /// Whether the value at `offset` is known to be sound.
    #[inline]
    pub(super) fn contains(&self, offset: u64, len: usize) -> bool {
        let (word, bit) = place(offset);
        len >= ONCE_FROM
            && self
                .pages
                .get()
                .and_then(|p| p.get(word))
                .is_some_and(|w| w.load(Ordering::Relaxed) & bit != 0)
    }

    /// Notes that the value at `offset` is sound, in a segment of `capacity` bytes.
    pub(super) fn insert(&self, offset: u64, len: usize, capacity: u64) {
        if len < ONCE_FROM {
            return;
        }
        let words = capacity.div_ceil(64 * 4096) as usize;
        let pages = self.pages.get_or_init(|| (0..words).map(|_| AtomicU64::new(0)).collect());
        let (word, bit) = place(offset);
        if let Some(w) = pages.get(word) {
            w.fetch_or(bit, Ordering::Relaxed);
        }
    }
}

fn place(offset: u64) -> (usize, u64) {
    let page = offset / 4096;
    ((page / 64) as usize, 1 << (page % 64))
}

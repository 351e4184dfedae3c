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

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT: u64 = 3 << 20;

    #[test]
    fn only_what_was_verified_counts_as_verified() {
        let verified = Verified::default();
        assert!(!verified.contains(8192, 5000));
        verified.insert(8192, 5000, SEGMENT);
        assert!(verified.contains(8192, 5000));
        // Values that start in the same page are the same; those of other pages are not, neither
        // beside it nor as far away as a word or the whole segment has bits.
        assert!(verified.contains(8192 + 4095, 5000));
        for other in [0, 8191, 8192 + 4096, 8192 + 64 * 4096, 8192 + SEGMENT] {
            assert!(!verified.contains(other, 5000), "{other}");
        }
    }

    #[test]
    fn short_values_are_verified_each_time() {
        let verified = Verified::default();
        verified.insert(4096, ONCE_FROM - 1, SEGMENT);
        assert!(verified.pages.get().is_none(), "there is nothing to remember");
        verified.insert(4096, ONCE_FROM, SEGMENT);
        assert!(verified.contains(4096, ONCE_FROM));
        // Its page is known, and a short value in it all the same unknown.
        assert!(!verified.contains(4096, ONCE_FROM - 1));
    }

    #[test]
    fn every_page_of_a_segment_has_its_bit() {
        // The last word is used in part only, and there is one; what lies outside is never known.
        for segment in [4096, 64 * 4096, 65 * 4096, SEGMENT] {
            let verified = Verified::default();
            let pages = segment / 4096;
            for page in 0..pages {
                assert!(!verified.contains(page * 4096, ONCE_FROM));
                verified.insert(page * 4096, ONCE_FROM, segment);
                assert!(verified.contains(page * 4096, ONCE_FROM), "page {page} of {pages}");
            }
            let words = verified.pages.get().unwrap().len() as u64;
            assert_eq!(words, pages.div_ceil(64));
            verified.insert(segment + (64 << 12), ONCE_FROM, segment);
            assert!(!verified.contains(segment + (64 << 12), ONCE_FROM));
        }
    }
}

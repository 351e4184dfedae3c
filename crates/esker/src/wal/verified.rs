//! Which separated values were verified already.

use std::sync::OnceLock;

use crate::util::AtomicBits;

/// Values from this many bytes on are verified once; below, every time (which takes less than half
/// a microsecond). No two values of this size start in the same 4 KiB page, so one bit per page
/// tells them apart.
const ONCE_FROM: usize = 4096;

/// The pages of a segment at which values start that were verified.
#[derive(Debug, Default)]
pub(super) struct Verified {
    /// Made by the first value: most segments never hand one out.
    pages: OnceLock<AtomicBits>,
}

impl Verified {
    /// Whether the value at `offset` is known to be sound.
    #[inline]
    pub(super) fn contains(&self, offset: u64, len: usize) -> bool {
        len >= ONCE_FROM && self.pages.get().is_some_and(|pages| pages.has(page(offset)))
    }

    /// Notes that the value at `offset` is sound, in a segment of `capacity` bytes.
    pub(super) fn insert(&self, offset: u64, len: usize, capacity: u64) {
        if len >= ONCE_FROM {
            let pages = || AtomicBits::new(capacity.div_ceil(4096) as usize);
            self.pages.get_or_init(pages).insert(page(offset));
        }
    }
}

/// The page of an offset in a segment, which has 16 GiB at most.
fn page(offset: u64) -> u32 {
    (offset / 4096) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Its last page is not whole, and the first of another 64.
    const SEGMENT: u64 = (3 << 20) + 8;

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
        verified.insert(3 << 20, 5000, SEGMENT);
        assert!(verified.contains(3 << 20, 5000), "the last page has its bit");
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
}

//! What bytes weigh as debt. A flush moves small entries into tables; large values stay where they
//! are and only have to reach the device, which they may do out of the page cache. Counted alike, a
//! few large values would fill what a small memory allows to wait, and writers would wait for the
//! device instead.

/// About how many bytes of values that stay in the log may wait for it to be synced, if the memory
/// does not allow for more: a second or two of a disk, and less than that of recovery.
const STAYING_CAP: u64 = 1 << 30;

/// So many segments may wait, however little is in them: each is a source of every read, a mapping
/// and an open file.
const SEGMENTS_WAITING: u64 = 64;

/// So large a segment of large values becomes, if not larger anyway.
const MOST_SEGMENT: u64 = 16 << 20;

/// Weighs bytes by what a flush does with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CostModel {
    /// How many bytes that stay weigh as much as one that is moved.
    staying: u64,
    /// What a segment that waits weighs at least.
    least: u64,
}

impl CostModel {
    /// For a hard cap of so many bytes of debt.
    pub(crate) fn new(hard: u64) -> CostModel {
        let staying = (STAYING_CAP / hard.max(1)).clamp(1, 1024);
        CostModel { staying, least: hard.div_ceil(SEGMENTS_WAITING) }
    }

    /// What a sealed segment weighs until it is flushed, given what is in it: as much as is allowed,
    /// when [`SEGMENTS_WAITING`] of them wait, however small they are.
    pub(crate) fn waiting(&self, cost: u64) -> u64 {
        cost.max(self.least)
    }

    /// What entries weigh of which a flush moves so many bytes, and leaves so many in the log.
    #[inline]
    pub(crate) fn cost_of(&self, moved: u64, staying: u64) -> u64 {
        moved + staying / self.staying
    }

    /// The size for the next segment, given what the present one is filled with: one that weighs
    /// as much when it is full as one of `base` bytes of small entries, within reason. A power of
    /// two times `base`, so that files can be used again.
    pub(crate) fn segment_bytes(&self, base: u64, moved: u64, staying: u64) -> u64 {
        let times = (moved + staying) / self.cost_of(moved, staying).max(1);
        let most = (MOST_SEGMENT / base.max(1)).max(1);
        let power = times.clamp(1, most).ilog2();
        base << power
    }

    /// No segment is larger, but for one that a batch needs.
    pub(crate) fn most_segment_bytes(base: u64) -> u64 {
        base.max(MOST_SEGMENT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_values_weigh_less_the_smaller_the_cap() {
        let small = CostModel::new(8 << 20);
        assert_eq!(small.cost_of(1000, 0), 1000);
        assert_eq!(small.cost_of(0, 1 << 30), 8 << 20);
        assert_eq!(CostModel::new(256 << 20).cost_of(5, 400), 105);
        assert_eq!(CostModel::new(4 << 30).cost_of(5, 400), 405);
        assert_eq!(CostModel::new(0).cost_of(0, 1024), 1);
    }

    #[test]
    fn segments_weigh_by_their_number_too() {
        for cap in [24 << 20, (24 << 20) + 1, 256 << 20, 32 << 30] {
            let cost_model = CostModel::new(cap);
            assert!((1..=64).map(|_| cost_model.waiting(1)).sum::<u64>() >= cap);
            assert!((1..64).map(|_| cost_model.waiting(1)).sum::<u64>() < cap);
            assert_eq!(cost_model.waiting(cap / 2), cap / 2);
        }
    }

    #[test]
    fn segments_of_large_values_are_larger() {
        let cost_model = CostModel::new(8 << 20);
        assert_eq!(cost_model.segment_bytes(1 << 20, 0, 0), 1 << 20);
        assert_eq!(cost_model.segment_bytes(1 << 20, 1 << 20, 0), 1 << 20);
        // Half of the bytes in large values: nearly twice as many may come.
        assert_eq!(cost_model.segment_bytes(1 << 20, 1 << 19, 1 << 19), 1 << 20);
        assert_eq!(cost_model.segment_bytes(1 << 20, 1 << 18, 3 << 18), 2 << 20);
        assert_eq!(cost_model.segment_bytes(1 << 20, 1 << 10, 1 << 20), 16 << 20);
        // Never smaller than asked, never larger than what is asked or 16 MiB.
        assert_eq!(cost_model.segment_bytes(64 << 20, 1 << 10, 1 << 20), 64 << 20);
        assert_eq!(cost_model.segment_bytes(96 << 10, 1 << 10, 1 << 20), (96 << 10) * 64);
    }
}

//! Which versions of a key a compaction keeps. Pure.

use crate::key::{Kind, Seq};

/// What becomes of one version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Written with its sequence.
    Keep,
    /// Written without one: it is older than every reader, and nothing lies below it.
    KeepWithoutSequence,
    /// Not written.
    Drop,
}

/// Walks the versions of one key after the other, newest first, and decides.
///
/// Readers stand at `boundaries` (ascending; the last is the present). Of all versions between two
/// neighbouring boundaries only the newest can be seen. Versions newer than the last boundary are
/// all kept: their readers have not come yet.
#[derive(Debug)]
pub(crate) struct VersionFilter {
    boundaries: Vec<Seq>,
    /// Nothing older than the compaction's output can hold the key.
    bottom: bool,
    /// The boundary that the last kept or superseding version of this key answers for.
    answered: Option<usize>,
    fresh_key: bool,
}

impl VersionFilter {
    /// `bottom`: the output will be the oldest source that can hold these keys.
    pub(crate) fn new(boundaries: Vec<Seq>, bottom: bool) -> VersionFilter {
        VersionFilter { boundaries, bottom, answered: None, fresh_key: true }
    }

    /// The versions that follow are of another key.
    #[inline]
    pub(crate) fn next_key(&mut self) {
        self.answered = None;
        self.fresh_key = true;
    }

    /// Decides on the next version (the next older one) of the key.
    #[inline]
    pub(crate) fn decide(&mut self, seq: Seq, kind: Kind) -> Decision {
        // The first boundary that can see this version.
        let stripe = self.boundaries.partition_point(|b| *b < seq);
        if stripe == self.boundaries.len() {
            self.fresh_key = false;
            return Decision::Keep;
        }
        if self.answered.is_some_and(|a| a <= stripe) {
            return Decision::Drop;
        }
        self.answered = Some(stripe);
        let only_version_below = stripe == 0;
        let first = std::mem::replace(&mut self.fresh_key, false);
        if !self.bottom || !only_version_below {
            return Decision::Keep;
        }
        match kind {
            // Everything older is dropped with it, and newer versions do not need it.
            Kind::Delete => Decision::Drop,
            // Only a sole version may lose its sequence: beside newer ones the order would blur
            // for nothing.
            Kind::Put if first => Decision::KeepWithoutSequence,
            Kind::Put => Decision::Keep,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fates(boundaries: &[Seq], bottom: bool, versions: &[(Seq, Kind)]) -> Vec<Decision> {
        let mut filter = VersionFilter::new(boundaries.to_vec(), bottom);
        versions.iter().map(|(s, k)| filter.decide(*s, *k)).collect()
    }

    #[test]
    fn without_snapshots_only_the_newest_version_stays() {
        use Decision::*;
        assert_eq!(fates(&[100], false, &[(9, Kind::Put), (5, Kind::Put)]), [Keep, Drop]);
        assert_eq!(
            fates(&[100], true, &[(9, Kind::Put), (5, Kind::Put)]),
            [KeepWithoutSequence, Drop]
        );
    }

    #[test]
    fn a_snapshot_keeps_exactly_the_version_it_sees() {
        use Decision::*;
        let versions = [(9, Kind::Put), (7, Kind::Put), (5, Kind::Put), (3, Kind::Put)];
        assert_eq!(fates(&[6, 100], true, &versions), [Keep, Drop, Keep, Drop]);
        assert_eq!(fates(&[2, 6, 100], true, &versions), [Keep, Drop, Keep, Drop]);
        assert_eq!(fates(&[3, 8, 100], true, &versions), [Keep, Keep, Drop, Keep]);
    }

    #[test]
    fn a_tombstone_goes_only_at_the_bottom_and_when_no_snapshot_needs_it() {
        use Decision::*;
        let versions = [(9, Kind::Delete), (5, Kind::Put)];
        assert_eq!(fates(&[100], false, &versions), [Keep, Drop]);
        assert_eq!(fates(&[100], true, &versions), [Drop, Drop]);
        assert_eq!(fates(&[6, 100], true, &versions), [Keep, Keep]);
    }

    #[test]
    fn versions_from_after_the_compaction_began_are_all_kept() {
        use Decision::*;
        let versions = [(12, Kind::Put), (11, Kind::Delete), (5, Kind::Put)];
        assert_eq!(fates(&[10], true, &versions), [Keep, Keep, Keep]);
    }
}

//! From segment to segment: which of them are the log.
//!
//! The manifest names the segment that the log starts with, and the seal of each names the next and
//! says whether that was durable by then, header and name, as nearly all are: if it was and is not
//! there, it was lost. So were segments up to the one which the manifest says the log reaches. The log
//! ends where a segment stops without a seal. Files made ahead and not used may lie about; frames in a
//! file that the log does not lead to are what a power cut left behind its tear, or the log was
//! damaged before them.

use super::format::Position;
use super::frames::{End, StopReason, TrailingRecords};
use crate::key::Seq;

/// Where the log ends before its files do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TornTail {
    /// Number of the segment.
    pub segment: u64,
    /// Where in it, in bytes from its start.
    pub offset: u64,
    /// What is found there.
    pub why: StopReason,
}

impl TornTail {
    /// Whether it is damage: what is found behind says that the place was durable. `strict` takes
    /// anything behind for that; after a power cut there may be frames that were never synced.
    fn is_damage(&self, behind: TrailingRecords, strict: bool) -> bool {
        let here = Position { segment: self.segment, end: self.offset };
        behind.durable > here || strict && behind.frames
    }

    /// Whether it is within the segments up to this one, all of which were durable to their ends; 0 for
    /// none.
    fn is_within(&self, durable: u64) -> bool {
        // What is missing behind a segment is the next one, of which nothing is known.
        let behind_it = self.why == StopReason::Missing && self.offset > 0;
        durable > 0 && (self.segment < durable || self.segment == durable && !behind_it)
    }
}

/// The segment that comes next.
#[derive(Debug, Clone, Copy)]
struct Next {
    number: u64,
    /// Whether it must be there.
    durable: bool,
    /// Where the log ends if it is not.
    else_end: TornTail,
}

/// Walks the segments of a log.
#[derive(Debug)]
pub(crate) struct SegmentChain {
    /// The log reaches this segment, whatever happened.
    reaches: u64,
    /// The segments up to this one were durable to their ends.
    whole: u64,
    next: Option<Next>,
    /// The sequence that the next frame has; not known of the first.
    expected: Option<Seq>,
    tear: Option<TornTail>,
}

impl SegmentChain {
    /// For the log that starts with segment `start` and was durable up to some place in `reaches`, and to
    /// the end of segment `whole`; 0 where nothing is known.
    pub(crate) fn new(start: u64, reaches: u64, whole: u64) -> SegmentChain {
        let else_end = TornTail { segment: start, offset: 0, why: StopReason::Missing };
        let next = Some(Next { number: start, durable: start <= reaches, else_end });
        SegmentChain { reaches, whole, next, expected: None, tear: None }
    }

    /// The segment that the log goes on in; `None` when it ended.
    pub(crate) fn next(&self) -> Option<u64> {
        self.next.map(|n| n.number)
    }

    /// Where the log ended.
    pub(crate) fn tear(&self) -> Option<TornTail> {
        self.tear
    }

    /// Where the log ended, if that is damage; for what is found `behind` and `strict`, see
    /// [`TornTail::is_damage`].
    pub(crate) fn damage(&self, behind: TrailingRecords, strict: bool) -> Option<TornTail> {
        let durable = |t: &TornTail| t.segment < self.reaches || t.is_within(self.whole);
        self.tear.filter(|t| durable(t) || t.is_damage(behind, strict))
    }

    /// The segment that comes next is not there, or is none: the log ends before it. Whether it must
    /// have been there.
    pub(crate) fn missing(&mut self) -> bool {
        let Some(next) = self.next.take() else { return false };
        self.tear = Some(next.else_end);
        next.durable
    }

    /// Passes the segment that came next: the sequence of its first frame, if it has one, and how it
    /// ended. The error says what is wrong with it beside its end.
    pub(crate) fn pass(&mut self, first: Option<Seq>, end: End) -> Result<(), String> {
        let Some(Next { number: segment, .. }) = self.next.take() else { return Ok(()) };
        let expected = self.expected.take();
        match end {
            End::Clean { offset, last_seq, next, durable } => {
                self.expected = Some(last_seq.saturating_add(1));
                if next <= segment {
                    return Err(format!("its seal says that segment {next} follows"));
                }
                let else_end = TornTail { segment, offset, why: StopReason::Missing };
                let durable = durable || next <= self.reaches;
                self.next = Some(Next { number: next, durable, else_end });
            }
            End::Torn { offset, why } => self.tear = Some(TornTail { segment, offset, why }),
        }
        match (first, expected) {
            (Some(first), Some(expected)) if first != expected => {
                Err(format!("it begins at sequence {first} where {expected} should follow"))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed(last_seq: Seq, next: u64) -> End {
        End::Clean { offset: 5000, last_seq, next, durable: next.is_multiple_of(2) }
    }

    const OPEN: End = End::Torn { offset: 6000, why: StopReason::Unwritten };

    #[test]
    fn seals_lead_from_segment_to_segment() {
        let mut walk = SegmentChain::new(3, 3, 0);
        assert_eq!(walk.next(), Some(3));
        walk.pass(Some(7), sealed(9, 5)).unwrap();
        assert_eq!(walk.next(), Some(5));
        // A bulk load takes a sequence without a frame.
        walk.pass(None, sealed(10, 6)).unwrap();
        walk.pass(Some(11), OPEN).unwrap();
        assert_eq!(walk.next(), None);
        assert_eq!(
            walk.tear(),
            Some(TornTail { segment: 6, offset: 6000, why: StopReason::Unwritten })
        );
    }

    #[test]
    fn a_gap_in_the_sequences_is_named() {
        let mut walk = SegmentChain::new(1, 0, 0);
        walk.pass(Some(1), sealed(9, 2)).unwrap();
        let why = walk.pass(Some(11), OPEN).unwrap_err();
        assert_eq!(why, "it begins at sequence 11 where 10 should follow");
    }

    #[test]
    fn a_seal_that_leads_back_ends_the_walk() {
        let mut walk = SegmentChain::new(4, 4, 0);
        assert!(walk.pass(None, sealed(1, 4)).is_err());
        assert_eq!((walk.next(), walk.tear()), (None, None));
    }

    #[test]
    fn a_missing_segment_ends_the_log_before_it() {
        for (next, durable) in [(6, true), (7, false)] {
            let mut walk = SegmentChain::new(4, 4, 0);
            walk.pass(Some(1), sealed(1, next)).unwrap();
            assert_eq!(walk.missing(), durable);
            let tear = TornTail { segment: 4, offset: 5000, why: StopReason::Missing };
            assert_eq!((walk.next(), walk.tear()), (None, Some(tear)));
            assert_eq!(walk.damage(TrailingRecords::default(), false), None);
        }
    }

    #[test]
    fn a_segment_that_the_manifest_says_is_reached_must_be_there() {
        assert!(!SegmentChain::new(4, 0, 0).missing() && !SegmentChain::new(4, 3, 0).missing());
        assert!(SegmentChain::new(4, 4, 0).missing() && SegmentChain::new(4, 7, 0).missing());
        for (reaches, must) in [(4, false), (6, false), (7, true), (8, true)] {
            let mut walk = SegmentChain::new(4, reaches, 0);
            walk.pass(Some(1), sealed(1, 7)).unwrap();
            assert_eq!(walk.missing(), must);
        }
    }

    #[test]
    fn a_tear_before_the_segment_that_is_reached_is_damage() {
        for (reaches, damage) in [(0, false), (4, false), (5, true)] {
            let mut walk = SegmentChain::new(4, reaches, 0);
            walk.pass(Some(1), OPEN).unwrap();
            let found = walk.damage(TrailingRecords::default(), false);
            assert_eq!(found, walk.tear().filter(|_| damage));
        }
    }

    #[test]
    fn only_what_was_durable_makes_a_tear_damage() {
        let tear = TornTail { segment: 4, offset: 5000, why: StopReason::Checksum };
        let behind =
            |segment, end| TrailingRecords { frames: true, durable: Position { segment, end } };
        assert!(!tear.is_damage(TrailingRecords::default(), true));
        assert!(!tear.is_damage(behind(0, 0), false));
        assert!(tear.is_damage(behind(0, 0), true));
        assert!(!tear.is_damage(behind(4, 5000), false));
        assert!(tear.is_damage(behind(4, 5001), false));
        assert!(tear.is_damage(behind(5, 0), false));
    }

    #[test]
    fn a_tear_is_within_the_segments_that_were_durable_or_behind_them() {
        let tear = |segment, offset, why| TornTail { segment, offset, why };
        let torn = tear(4, 5000, StopReason::Checksum);
        assert_eq!([3, 4, 5].map(|durable| torn.is_within(durable)), [false, true, true]);
        // Segment 4 is there, what follows it is not.
        let next = tear(4, 5000, StopReason::Missing);
        assert_eq!([3, 4, 5].map(|durable| next.is_within(durable)), [false, false, true]);
        // Segment 4 itself, with which the log starts, is not.
        let all = tear(4, 0, StopReason::Missing);
        assert_eq!([3, 4, 5].map(|durable| all.is_within(durable)), [false, true, true]);
        // There is no segment 0: where nothing is known of a log, none of it was durable.
        assert!(!tear(0, 0, StopReason::Missing).is_within(0));
    }
}

//! From segment to segment: which of them are the log.
//!
//! Segments follow each other by sequence. Between two there may be files that were never used: a
//! segment is made ahead, and a larger one may have been needed instead, or a crash may have come
//! first. Where sequences do not go on, a power cut took what was not synced, or a file is missing.

use super::format::FIRST_FRAME_OFFSET;
use super::frames::{End, Frames, Why};
use crate::key::Seq;

/// What a segment is to the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// A part: its frames go on where the one before ended.
    Part,
    /// Nothing was ever written to it.
    Unused,
    /// The log was torn before it. `has_frames`: and yet something is in it.
    Behind {
        /// Whether there is anything in it.
        has_frames: bool,
    },
    /// Its frames begin at `first`; they should begin at `expected`.
    Astray {
        /// Where it begins.
        first: Seq,
        /// Where the one before ended.
        expected: Seq,
    },
}

/// Where the log ends before its files do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tear {
    /// Number of the segment.
    pub segment: u64,
    /// Where in it, in bytes from its start.
    pub offset: u64,
    /// What is found there.
    pub why: Why,
}

/// Walks the segments of a log by ascending number.
#[derive(Debug)]
pub(crate) struct Walk {
    /// The segment that the log starts with.
    start: u64,
    /// The sequence that the next frame has; known once a segment was complete.
    expected: Option<Seq>,
    /// What was passed since and held nothing, as far as is known: an unused segment, or none where
    /// the first should be.
    passed: Option<Tear>,
    tear: Option<Tear>,
}

impl Walk {
    /// For the log that starts with segment `start`.
    pub(crate) fn new(start: u64) -> Walk {
        let missing = Tear { segment: start, offset: 0, why: Why::Missing };
        Walk { start, expected: None, passed: Some(missing), tear: None }
    }

    /// Where the log is torn, as far as is known.
    pub(crate) fn tear(&self) -> Option<Tear> {
        self.tear
    }

    /// The next segment; `frames` are those of it, `None` when it has no header and no frame. After
    /// [`Role::Part`] the caller reads it and tells its end to [`leave`](Walk::leave).
    pub(crate) fn meet(&mut self, segment: u64, frames: Option<Frames<'_>>) -> Role {
        let starts = segment == self.start && frames.is_some();
        let mut frames = frames;
        let first = frames.as_mut().and_then(|f| f.next()).map(|f| f.seq);
        let seal = frames.filter(|_| first.is_none()).map(Frames::finish);
        // Where it goes on, if anything was written to it.
        let begins = match (first, seal) {
            (None, Some(End::Clean { last_seq, .. })) => Some(last_seq + 1),
            _ => first,
        };
        if begins.is_some() && begins != self.expected && !starts && self.tear.is_none() {
            // What was passed did hold something: it is gone.
            self.tear = self.passed;
        }
        if self.tear.is_some() {
            return Role::Behind { has_frames: first.is_some() };
        }
        if begins.is_none() && !starts {
            self.passed = Some(Tear { segment, offset: FIRST_FRAME_OFFSET, why: Why::Unwritten });
            return Role::Unused;
        }
        match (first, self.expected) {
            (Some(first), Some(expected)) if first != expected => Role::Astray { first, expected },
            _ => Role::Part,
        }
    }

    /// How the segment ended that was a part.
    pub(crate) fn leave(&mut self, segment: u64, end: End) {
        self.passed = None;
        match end {
            End::Clean { last_seq, .. } => self.expected = Some(last_seq + 1),
            End::Torn { offset, why } => self.tear = Some(Tear { segment, offset, why }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::{Env, OsEnv};
    use crate::key::Kind;
    use crate::log::{Appender, Segment};
    use std::sync::Arc;

    /// A segment of so many frames from sequence `first` on, sealed or not.
    fn segment(
        env: &Arc<dyn Env>,
        dir: &std::path::Path,
        number: u64,
        first: Seq,
        frames: u64,
        sealed: bool,
    ) -> Arc<Segment> {
        let segment = Arc::new(Segment::create(env, dir, number, 16384, None).unwrap());
        let mut appender = Appender::new(Arc::clone(&segment));
        for seq in first..first + frames {
            appender.append_one(seq, 0, Kind::Put, b"key", b"value").unwrap();
        }
        if sealed {
            appender.seal(first + frames - 1);
        }
        segment
    }

    fn roles(segments: &[(u64, Seq, u64, bool)]) -> (Vec<Role>, Option<u64>) {
        let dir = tempfile::tempdir().unwrap();
        let env: Arc<dyn Env> = Arc::new(OsEnv::new());
        let mut walk = Walk::new(1);
        let mut roles = Vec::new();
        for &(number, first, frames, sealed) in segments {
            let s = segment(&env, dir.path(), number, first, frames, sealed);
            let role = walk.meet(number, Some(s.frames()));
            if role == Role::Part {
                walk.leave(number, s.frames().finish());
            }
            roles.push(role);
        }
        (roles, walk.tear().map(|t| t.segment))
    }

    #[test]
    fn segments_follow_each_other_and_the_last_is_open() {
        let found = roles(&[(1, 1, 5, true), (2, 6, 5, true), (3, 11, 2, false)]);
        assert_eq!(found, (vec![Role::Part; 3], Some(3)));
    }

    #[test]
    fn a_segment_made_ahead_and_not_used_is_passed_over() {
        let found = roles(&[(1, 1, 5, true), (2, 6, 0, false), (3, 6, 2, true), (4, 8, 0, false)]);
        assert_eq!(found, (vec![Role::Part, Role::Unused, Role::Part, Role::Unused], None));
    }

    #[test]
    fn a_segment_whose_frames_are_gone_ends_the_log() {
        let behind = Role::Behind { has_frames: true };
        let found = roles(&[(1, 1, 5, true), (2, 6, 0, false), (3, 9, 2, true), (4, 11, 1, false)]);
        assert_eq!(found, (vec![Role::Part, Role::Unused, behind, behind], Some(2)));
        let found = roles(&[(1, 1, 0, false), (2, 9, 2, false)]);
        assert_eq!(found, (vec![Role::Part, behind], Some(1)));
    }

    #[test]
    fn without_its_first_segment_there_is_no_log() {
        let behind = Role::Behind { has_frames: true };
        assert_eq!(roles(&[(2, 6, 5, true), (3, 11, 2, false)]), (vec![behind; 2], Some(1)));
        // But for what was made ahead when the first was.
        assert_eq!(roles(&[(2, 6, 0, false)]), (vec![Role::Unused], None));
    }

    #[test]
    fn a_missing_segment_leaves_the_next_astray() {
        let astray = Role::Astray { first: 9, expected: 6 };
        assert_eq!(roles(&[(1, 1, 5, true), (3, 9, 2, false)]), (vec![Role::Part, astray], None));
    }
}

//! The last puts of a keyspace, for who read what lies between two places a moment ago: did anybody put a key there since?

use std::collections::VecDeque;

use super::boundary::Boundary;
use crate::key::{KeyOrder, Seq};

/// So many are kept: more than are made while somebody searches.
const KEPT: usize = 8;
/// Bytes of a key that is kept with them.
const LONGEST: usize = 512;

/// The last puts that were told of, each with its sequence, and its key where that is not too long to be kept.
#[derive(Default)]
pub(super) struct LastPuts(VecDeque<(Seq, Option<Vec<u8>>)>);

impl LastPuts {
    pub(super) fn note(&mut self, seq: Seq, key: &[u8]) {
        let oldest = if self.0.len() < KEPT { None } else { self.0.pop_front() };
        let mut own = oldest.and_then(|(_, key)| key).unwrap_or_default();
        own.clear();
        own.extend_from_slice(&key[..key.len().min(LONGEST)]);
        self.0.push_back((seq, (key.len() <= LONGEST).then_some(own)));
    }

    /// Whether none of the puts after `seq`, all of which were told of, fell between these.
    pub(super) fn none_between(
        &self,
        order: &KeyOrder,
        seq: Seq,
        from: &Boundary,
        to: &Boundary,
    ) -> bool {
        let all = self.0.len() < KEPT || self.0.front().is_none_or(|(first, _)| *first <= seq);
        let inside = |key: &[u8]| from.is_before(order, key) && to.is_behind(order, key);
        let may_be_inside = |key: &Option<Vec<u8>>| key.as_ref().is_none_or(|key| inside(key));
        all && !self.0.iter().any(|(put, key)| *put > seq && may_be_inside(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Boundary::{Back, Before, Front};

    fn between(puts: &LastPuts, seq: Seq, to: &str) -> bool {
        let (from, to) = (Before(b"g".to_vec()), Before(to.into()));
        !puts.none_between(&KeyOrder::Bytewise, seq, &from, &to)
    }

    #[test]
    fn what_was_put_since_a_moment_may_lie_between() {
        let mut puts = LastPuts::default();
        assert!(!between(&puts, 8, "k"));
        ["x", "a", "k"].iter().for_each(|key| puts.note(9, key.as_bytes()));
        puts.note(10, b"h");
        assert!(!between(&puts, 8, "h"));
        assert!(between(&puts, 8, "i") && between(&puts, 9, "i"));
        assert!(!between(&puts, 10, "i"), "the reader saw it");
        assert!(!puts.none_between(&KeyOrder::Bytewise, 8, &Front, &Back));
    }

    #[test]
    fn what_is_not_kept_any_more_may_lie_anywhere() {
        let mut puts = LastPuts::default();
        (0..KEPT).for_each(|n| puts.note(9 + n as Seq, b"x"));
        assert!(between(&puts, 8, "k") && !between(&puts, 9, "k"));
        // Nor a key that is too long to be kept.
        let mut puts = LastPuts::default();
        puts.note(9, &[b'x'; LONGEST + 1]);
        assert!(between(&puts, 8, "k") && !between(&puts, 9, "k"));
        puts.note(10, &[b'x'; LONGEST]);
        assert!(!between(&puts, 9, "k"));
    }
}

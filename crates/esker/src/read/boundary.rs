//! Places between keys, where a gap may begin and end.

use std::cmp::Ordering;

use crate::key::KeyOrder;

/// A place that no key is at: just before one, just behind one, or beyond all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Boundary {
    /// Before all keys.
    Front,
    /// Just before this key.
    Before(Vec<u8>),
    /// Just behind it.
    Behind(Vec<u8>),
    /// Behind all keys.
    Back,
}

use Boundary::{Back, Before, Behind, Front};

impl Boundary {
    /// Where it lies, in the order of keys.
    pub(super) fn compare(&self, order: &KeyOrder, other: &Boundary) -> Ordering {
        match (self, other) {
            (Before(a) | Behind(a), Before(b) | Behind(b)) => {
                let side = |boundary: &Boundary| matches!(boundary, Behind(_));
                order.compare(a, b).then(side(self).cmp(&side(other)))
            }
            _ => self.rank().cmp(&other.rank()),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Front => 0,
            Before(_) | Behind(_) => 1,
            Back => 2,
        }
    }

    /// Whether `key` lies behind it.
    pub(super) fn is_before(&self, order: &KeyOrder, key: &[u8]) -> bool {
        match self {
            Front => true,
            Before(own) => order.compare(own, key).is_le(),
            Behind(own) => order.compare(own, key).is_lt(),
            Back => false,
        }
    }

    /// Whether `key` lies before it.
    pub(super) fn is_behind(&self, order: &KeyOrder, key: &[u8]) -> bool {
        !self.is_before(order, key)
    }

    /// The key beside it.
    pub(crate) fn key(&self) -> Option<&[u8]> {
        match self {
            Before(key) | Behind(key) => Some(key),
            Front | Back => None,
        }
    }

    /// Bytes that its key takes.
    pub(super) fn len(&self) -> usize {
        self.key().map_or(0, <[u8]>::len)
    }

    /// The one of both that comes first.
    pub(super) fn min(self, order: &KeyOrder, other: Boundary) -> Boundary {
        if other.compare(order, &self).is_lt() { other } else { self }
    }

    /// The one of both that comes last.
    pub(super) fn max(self, order: &KeyOrder, other: Boundary) -> Boundary {
        if other.compare(order, &self).is_gt() { other } else { self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::KeyOrder::{Bytewise, Reverse};

    #[test]
    fn a_key_lies_between_the_places_before_and_behind_it() {
        let key = |n: u8| vec![n];
        let all = [Front, Before(key(1)), Behind(key(1)), Before(key(2)), Behind(key(2)), Back];
        for (i, a) in all.iter().enumerate() {
            for (j, b) in all.iter().enumerate() {
                assert_eq!(a.compare(&Bytewise, b), i.cmp(&j), "{a:?}, {b:?}");
            }
            for n in [1, 2] {
                let before = usize::from(n) * 2 - 1;
                assert_eq!(a.is_before(&Bytewise, &key(n)), i <= before, "{a:?}, {n}");
                assert_ne!(a.is_before(&Bytewise, &key(n)), a.is_behind(&Bytewise, &key(n)));
            }
        }
        assert!(Before(key(2)).compare(&Reverse, &Before(key(1))).is_lt());
        assert!(Before(key(1)).compare(&Reverse, &Behind(key(1))).is_lt());
        let (front, back) = (Front, Back);
        assert_eq!(front.clone().max(&Bytewise, Behind(key(1))), Behind(key(1)));
        assert_eq!(back.min(&Bytewise, front), Front);
    }
}

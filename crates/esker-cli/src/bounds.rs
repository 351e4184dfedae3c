//! From `--prefix`, `--from` and `--to` to the two ends of a walk, in the order of the keyspace.

use std::cmp::Ordering;
use std::ops::Bound;

use esker::KeyOrder;

/// A range of keys; `lower` is the end that comes first in the keyspace's order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub lower: Bound<Vec<u8>>,
    pub upper: Bound<Vec<u8>>,
}

impl Bounds {
    /// The keys that begin with `prefix`, from `from` on, up to but without `to`.
    pub fn new(
        order: &KeyOrder,
        prefix: Option<Vec<u8>>,
        from: Option<Vec<u8>>,
        to: Option<Vec<u8>>,
    ) -> Bounds {
        let mut bounds = match prefix {
            Some(prefix) => Self::of_prefix(order, prefix),
            None => Bounds { lower: Bound::Unbounded, upper: Bound::Unbounded },
        };
        if let Some(from) = from
            && !bounds.is_before(order, &from)
        {
            bounds.lower = Bound::Included(from);
        }
        if let Some(to) = to
            && !bounds.is_behind(order, &to)
        {
            bounds.upper = Bound::Excluded(to);
        }
        bounds
    }

    fn of_prefix(order: &KeyOrder, prefix: Vec<u8>) -> Bounds {
        let behind = successor(&prefix).map_or(Bound::Unbounded, Bound::Excluded);
        match order {
            // The longest keys come first here, and the prefix itself is the last of them.
            KeyOrder::Reverse => Bounds { lower: behind, upper: Bound::Included(prefix) },
            _ => Bounds { lower: Bound::Included(prefix), upper: behind },
        }
    }

    pub fn is_everything(&self) -> bool {
        matches!((&self.lower, &self.upper), (Bound::Unbounded, Bound::Unbounded))
    }

    /// Whether `key` comes before the range.
    pub fn is_before(&self, order: &KeyOrder, key: &[u8]) -> bool {
        match &self.lower {
            Bound::Unbounded => false,
            Bound::Included(end) => order.compare(key, end) == Ordering::Less,
            Bound::Excluded(end) => order.compare(key, end) != Ordering::Greater,
        }
    }

    /// Whether `key` comes behind the range.
    pub fn is_behind(&self, order: &KeyOrder, key: &[u8]) -> bool {
        match &self.upper {
            Bound::Unbounded => false,
            Bound::Included(end) => order.compare(key, end) == Ordering::Greater,
            Bound::Excluded(end) => order.compare(key, end) != Ordering::Less,
        }
    }
}

/// The first key, bytewise, behind all that begin with `prefix`; none when the prefix is empty or
/// all 0xff.
fn successor(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&b| b != 0xff)?;
    let mut key = prefix[..=last].to_vec();
    key[last] += 1;
    Some(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn short_key() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(prop::sample::select(vec![0u8, 1, 0xfe, 0xff]), 0..4)
    }

    #[test]
    fn successors() {
        assert_eq!(successor(b"ab"), Some(b"ac".to_vec()));
        assert_eq!(successor(b"a\xff\xff"), Some(b"b".to_vec()));
        assert_eq!(successor(b"\xff"), None);
        assert_eq!(successor(b""), None);
    }

    proptest! {
        #[test]
        fn exactly_the_keys_that_were_asked_for(
            key in short_key(),
            prefix in prop::option::of(short_key()),
            from in prop::option::of(short_key()),
            to in prop::option::of(short_key()),
        ) {
            for order in [KeyOrder::Bytewise, KeyOrder::Reverse] {
                let bounds = Bounds::new(&order, prefix.clone(), from.clone(), to.clone());
                let inside = !bounds.is_before(&order, &key) && !bounds.is_behind(&order, &key);
                let wanted = prefix.as_ref().is_none_or(|p| key.starts_with(p))
                    && from.as_ref().is_none_or(|f| order.compare(&key, f) != Ordering::Less)
                    && to.as_ref().is_none_or(|t| order.compare(&key, t) == Ordering::Less);
                prop_assert_eq!(inside, wanted, "{:?}", order);
            }
        }
    }
}

//! The public iterator: a range of keys, from both ends.

use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use super::cursor::Cursor;
use super::super_version::SuperVersion;
use crate::comparator;
use crate::error::{Error, Result};
use crate::key::{KeyOrder, Seq};

/// Keys and values of a range, in order, as they were when the iterator was made. Takes from both
/// ends. Copies keys and values; a [`Cursor`] does not.
///
/// After an error the iterator ends: it gives the error once. One that was made after the store was closed, or its keyspace
/// dropped, gives just that error; one that was made before goes on.
#[derive(Debug)]
pub struct Iter {
    view: Arc<SuperVersion>,
    order: KeyOrder,
    seq: Seq,
    lower: Bound<Vec<u8>>,
    upper: Bound<Vec<u8>>,
    /// Under a comparator of the user's, keys with one prefix need not stand together.
    must_start_with: Option<Vec<u8>>,
    front: Option<Cursor>,
    back: Option<Cursor>,
    /// Why there is nothing to walk.
    refused: Option<Error>,
    done: bool,
}

impl Iter {
    pub(crate) fn new<K: AsRef<[u8]>>(
        view: Arc<SuperVersion>,
        order: &KeyOrder,
        seq: Seq,
        range: &impl RangeBounds<K>,
    ) -> Iter {
        let own = |b: Bound<&K>| b.map(|k| k.as_ref().to_vec());
        Iter {
            view,
            order: order.clone(),
            seq,
            lower: own(range.start_bound()),
            upper: own(range.end_bound()),
            must_start_with: None,
            front: None,
            back: None,
            refused: None,
            done: false,
        }
    }

    /// The same, if it may be walked; else the error is all that it gives.
    pub(crate) fn provided(mut self, allowed: Result<()>) -> Iter {
        self.refused = allowed.err();
        self
    }

    pub(crate) fn with_prefix(
        view: Arc<SuperVersion>,
        order: &KeyOrder,
        seq: Seq,
        prefix: &[u8],
    ) -> Iter {
        let mut iter = Iter::new::<&[u8]>(view, order, seq, &..);
        let after = after_prefix(prefix);
        match order {
            KeyOrder::Bytewise => {
                iter.lower = Bound::Included(prefix.to_vec());
                iter.upper = after.map_or(Bound::Unbounded, Bound::Excluded);
            }
            KeyOrder::Reverse => {
                iter.lower = after.map_or(Bound::Unbounded, Bound::Excluded);
                iter.upper = Bound::Included(prefix.to_vec());
            }
            KeyOrder::Custom(_) => iter.must_start_with = Some(prefix.to_vec()),
        }
        iter
    }

    fn open(&self) -> Cursor {
        Cursor::new(Arc::clone(&self.view), &self.order, self.seq, false)
    }

    fn below_upper(&self, key: &[u8]) -> bool {
        match &self.upper {
            Bound::Unbounded => true,
            Bound::Included(u) => self.order.compare(key, u).is_le(),
            Bound::Excluded(u) => self.order.compare(key, u).is_lt(),
        }
    }

    fn above_lower(&self, key: &[u8]) -> bool {
        match &self.lower {
            Bound::Unbounded => true,
            Bound::Included(l) => self.order.compare(key, l).is_ge(),
            Bound::Excluded(l) => self.order.compare(key, l).is_gt(),
        }
    }

    fn wanted(&self, key: &[u8]) -> bool {
        self.must_start_with.as_ref().is_none_or(|p| key.starts_with(p))
    }

    fn step_front(&mut self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.refused.take().map_or(Ok(()), Err)?;
        let (mut cursor, mut on) = match self.front.take() {
            Some(mut c) => {
                let on = c.next()?;
                (c, on)
            }
            None => {
                let mut c = self.open();
                let mut on = match &self.lower {
                    Bound::Unbounded => c.first()?,
                    Bound::Included(l) | Bound::Excluded(l) => c.seek(l)?,
                };
                while on && !self.above_lower(c.key()) {
                    on = c.next()?;
                }
                (c, on)
            }
        };
        while on && !self.wanted(cursor.key()) {
            on = cursor.next()?;
        }
        if !on || !self.below_upper(cursor.key()) {
            return Ok(None);
        }
        if let Some(back) = &self.back
            && self.order.compare(cursor.key(), back.key()).is_ge()
        {
            return Ok(None);
        }
        let item = (cursor.key().to_vec(), cursor.value().to_vec());
        self.front = Some(cursor);
        Ok(Some(item))
    }

    fn step_back(&mut self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.refused.take().map_or(Ok(()), Err)?;
        let (mut cursor, mut on) = match self.back.take() {
            Some(mut c) => {
                let on = c.prev()?;
                (c, on)
            }
            None => {
                let mut c = self.open();
                let mut on = match &self.upper {
                    Bound::Unbounded => c.last()?,
                    Bound::Included(u) | Bound::Excluded(u) => c.seek_for_prev(u)?,
                };
                while on && !self.below_upper(c.key()) {
                    on = c.prev()?;
                }
                (c, on)
            }
        };
        while on && !self.wanted(cursor.key()) {
            on = cursor.prev()?;
        }
        if !on || !self.above_lower(cursor.key()) {
            return Ok(None);
        }
        if let Some(front) = &self.front
            && self.order.compare(cursor.key(), front.key()).is_le()
        {
            return Ok(None);
        }
        let item = (cursor.key().to_vec(), cursor.value().to_vec());
        self.back = Some(cursor);
        Ok(Some(item))
    }

    fn finish(
        &mut self,
        step: Result<Option<(Vec<u8>, Vec<u8>)>>,
    ) -> Option<Result<(Vec<u8>, Vec<u8>)>> {
        match step {
            Ok(Some(item)) => Some(Ok(item)),
            Ok(None) => {
                self.done = true;
                None
            }
            Err(e) => {
                self.done = true;
                Some(Err(e))
            }
        }
    }
}

impl Iterator for Iter {
    type Item = Result<(Vec<u8>, Vec<u8>)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let step = match self.order.is_custom() {
            true => comparator::catch(|| self.step_front()),
            false => self.step_front(),
        };
        self.finish(step)
    }
}

impl DoubleEndedIterator for Iter {
    fn next_back(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let step = match self.order.is_custom() {
            true => comparator::catch(|| self.step_back()),
            false => self.step_back(),
        };
        self.finish(step)
    }
}

/// The first byte string after all that start with `prefix`; `None` when there is none.
pub(crate) fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let keep = prefix.iter().rposition(|b| *b != 0xff)?;
    let mut after = prefix[..=keep].to_vec();
    after[keep] += 1;
    Some(after)
}

#[cfg(test)]
mod tests {
    use super::after_prefix;

    #[test]
    fn after_prefix_is_the_next_key_that_does_not_start_with_it() {
        assert_eq!(after_prefix(b"ab"), Some(b"ac".to_vec()));
        assert_eq!(after_prefix(b"a\xff"), Some(b"b".to_vec()));
        assert_eq!(after_prefix(b"\xff\xff"), None);
        assert_eq!(after_prefix(b""), None);
    }
}

//! The public iterator: a range of keys, from both ends.

use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use super::cursor::Cursor;
use super::gaps::GapFinder;
use super::slice::{Pin, Slice};
use super::super_version::SuperVersion;
use crate::comparator;
use crate::error::{Error, Result};
use crate::key::{KeyOrder, Seq};

/// Keys and values of a range, in order, as they were when the iterator was made. Takes from both
/// ends.
///
/// A value stored raw is not copied, and short keys and values need no memory of their own; see
/// [`Slice`]. What is to be kept for long is better taken from [`copied_out`](Iter::copied_out).
///
/// After an error the iterator ends: it gives the error once. One that was made after the store was
/// closed, or its keyspace dropped, gives just that error; one that was made before goes on.
///
/// ```
/// # fn main() -> esker::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = esker::Db::open(dir.path().join("db"))?;
/// db.put("ash", "Fraxinus")?;
/// db.put("beech", "Fagus")?;
/// let mut bytes = 0;
/// for entry in db.iter() {
///     let (key, value) = entry?;
///     bytes += key.len() + value.len();
/// }
/// assert_eq!(bytes, 21);
/// let kept: Vec<(Vec<u8>, Vec<u8>)> = db.iter().copied_out().collect::<Result<_, _>>()?;
/// assert_eq!(kept[1].1, b"Fagus");
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Iter {
    view: Arc<Pin>,
    seq: Seq,
    gaps: Arc<dyn GapFinder>,
    limits: Limits,
    keys_only: bool,
    front: Option<Cursor>,
    back: Option<Cursor>,
    /// Why there is nothing to walk.
    refused: Option<Error>,
    done: bool,
}

/// Which keys are wanted.
#[derive(Debug)]
struct Limits {
    order: KeyOrder,
    lower: Bound<Vec<u8>>,
    upper: Bound<Vec<u8>>,
    /// Under a comparator of the user's, keys with one prefix need not stand together.
    must_start_with: Option<Vec<u8>>,
}

impl Limits {
    #[inline]
    fn below_upper(&self, key: &[u8]) -> bool {
        match &self.upper {
            Bound::Unbounded => true,
            Bound::Included(u) => self.order.compare(key, u).is_le(),
            Bound::Excluded(u) => self.order.compare(key, u).is_lt(),
        }
    }

    #[inline]
    fn above_lower(&self, key: &[u8]) -> bool {
        match &self.lower {
            Bound::Unbounded => true,
            Bound::Included(l) => self.order.compare(key, l).is_ge(),
            Bound::Excluded(l) => self.order.compare(key, l).is_gt(),
        }
    }

    #[inline]
    fn wanted(&self, key: &[u8]) -> bool {
        self.must_start_with.as_ref().is_none_or(|p| key.starts_with(p))
    }
}

impl Iter {
    pub(crate) fn new<K: AsRef<[u8]>>(
        view: Arc<SuperVersion>,
        order: &KeyOrder,
        seq: Seq,
        gaps: Arc<dyn GapFinder>,
        range: &impl RangeBounds<K>,
    ) -> Iter {
        let own = |b: Bound<&K>| b.map(|k| k.as_ref().to_vec());
        Iter {
            view: Arc::new(Pin(view)),
            seq,
            gaps,
            limits: Limits {
                order: order.clone(),
                lower: own(range.start_bound()),
                upper: own(range.end_bound()),
                must_start_with: None,
            },
            keys_only: false,
            front: None,
            back: None,
            refused: None,
            done: false,
        }
    }

    /// The same with empty values: none is read or unpacked. To be said at first: an end from which
    /// entries were taken goes on with their values.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = esker::Db::open(dir.path().join("db"))?;
    /// db.put("ash", "Fraxinus")?;
    /// let keys: esker::Result<Vec<_>> = db.iter().keys_only().map(|e| Ok(e?.0)).collect();
    /// assert_eq!(&keys?[0][..], b"ash");
    /// # Ok(()) }
    /// ```
    pub fn keys_only(mut self) -> Iter {
        self.keys_only = true;
        self
    }

    /// The same with keys and values in memory of their own: they keep no files of the store, nor the lock
    /// of its directory.
    pub fn copied_out(
        self,
    ) -> impl DoubleEndedIterator<Item = Result<(Vec<u8>, Vec<u8>)>> + std::fmt::Debug {
        self.map(copied as fn(Result<KeyValue>) -> Result<(Vec<u8>, Vec<u8>)>)
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
        gaps: Arc<dyn GapFinder>,
        prefix: &[u8],
    ) -> Iter {
        let mut iter = Iter::new::<&[u8]>(view, order, seq, gaps, &..);
        let after = after_prefix(prefix);
        match order {
            KeyOrder::Bytewise => {
                iter.limits.lower = Bound::Included(prefix.to_vec());
                iter.limits.upper = after.map_or(Bound::Unbounded, Bound::Excluded);
            }
            KeyOrder::Reverse => {
                iter.limits.lower = after.map_or(Bound::Unbounded, Bound::Excluded);
                iter.limits.upper = Bound::Included(prefix.to_vec());
            }
            KeyOrder::Custom(_) => iter.limits.must_start_with = Some(prefix.to_vec()),
        }
        iter
    }

    /// Goes to the next entry; whether there is one.
    #[inline]
    fn step_front(&mut self) -> Result<bool> {
        let limits = &self.limits;
        let (cursor, mut on) = match &mut self.front {
            Some(c) => {
                let on = c.next()?;
                (c, on)
            }
            None => {
                self.refused.take().map_or(Ok(()), Err)?;
                let view = Arc::clone(&self.view.0);
                let mut c = Cursor::new(
                    view,
                    &limits.order,
                    self.seq,
                    self.keys_only,
                    Some(Arc::clone(&self.gaps)),
                );
                let mut on = match &limits.lower {
                    Bound::Unbounded => c.first()?,
                    Bound::Included(l) | Bound::Excluded(l) => c.seek(l)?,
                };
                while on && !limits.above_lower(c.key()) {
                    on = c.next()?;
                }
                (self.front.insert(c), on)
            }
        };
        while on && !limits.wanted(cursor.key()) {
            on = cursor.next()?;
        }
        if !on || !limits.below_upper(cursor.key()) {
            return Ok(false);
        }
        if let Some(back) = &self.back
            && limits.order.compare(cursor.key(), back.key()).is_ge()
        {
            return Ok(false);
        }
        Ok(true)
    }

    /// The same from the end.
    #[inline]
    fn step_back(&mut self) -> Result<bool> {
        let limits = &self.limits;
        let (cursor, mut on) = match &mut self.back {
            Some(c) => {
                let on = c.prev()?;
                (c, on)
            }
            None => {
                self.refused.take().map_or(Ok(()), Err)?;
                let view = Arc::clone(&self.view.0);
                let mut c = Cursor::new(
                    view,
                    &limits.order,
                    self.seq,
                    self.keys_only,
                    Some(Arc::clone(&self.gaps)),
                );
                let mut on = match &limits.upper {
                    Bound::Unbounded => c.last()?,
                    Bound::Included(u) | Bound::Excluded(u) => c.seek_for_prev(u)?,
                };
                while on && !limits.below_upper(c.key()) {
                    on = c.prev()?;
                }
                (self.back.insert(c), on)
            }
        };
        while on && !limits.wanted(cursor.key()) {
            on = cursor.prev()?;
        }
        if !on || !limits.above_lower(cursor.key()) {
            return Ok(false);
        }
        if let Some(front) = &self.front
            && limits.order.compare(cursor.key(), front.key()).is_le()
        {
            return Ok(false);
        }
        Ok(true)
    }

    /// As [`next`](Iterator::next), without anything to keep: key and value are lent until the next call.
    /// The cheapest walk there is.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = esker::Db::open(dir.path().join("db"))?;
    /// db.put("ash", "Fraxinus")?;
    /// let mut all = db.iter();
    /// while let Some(entry) = all.next_ref() {
    ///     let (key, value): (&[u8], &[u8]) = entry?;
    ///     assert_eq!((key, value), (&b"ash"[..], &b"Fraxinus"[..]));
    /// }
    /// # Ok(()) }
    /// ```
    #[inline]
    pub fn next_ref(&mut self) -> Option<Result<(&[u8], &[u8])>> {
        match self.go(Iter::step_front) {
            Ok(true) => self.front.as_ref().map(|c| Ok((c.key(), c.value()))),
            Ok(false) => None,
            Err(e) => Some(Err(e)),
        }
    }

    /// As [`next_ref`](Iter::next_ref), from the end.
    #[inline]
    pub fn next_back_ref(&mut self) -> Option<Result<(&[u8], &[u8])>> {
        match self.go(Iter::step_back) {
            Ok(true) => self.back.as_ref().map(|c| Ok((c.key(), c.value()))),
            Ok(false) => None,
            Err(e) => Some(Err(e)),
        }
    }

    /// One step, after which the iterator ends if it led to no entry.
    #[inline]
    fn go(&mut self, step: impl FnOnce(&mut Iter) -> Result<bool>) -> Result<bool> {
        if self.done {
            return Ok(false);
        }
        let on = match self.limits.order.is_custom() {
            true => comparator::catch(|| step(self)),
            false => step(self),
        };
        self.done = !matches!(on, Ok(true));
        on
    }
}

impl Iterator for Iter {
    type Item = Result<KeyValue>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match self.go(Iter::step_front) {
            Ok(true) => self.front.as_ref().map(|c| Ok(c.entry(&self.view))),
            Ok(false) => None,
            Err(e) => Some(Err(e)),
        }
    }
}

impl DoubleEndedIterator for Iter {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        match self.go(Iter::step_back) {
            Ok(true) => self.back.as_ref().map(|c| Ok(c.entry(&self.view))),
            Ok(false) => None,
            Err(e) => Some(Err(e)),
        }
    }
}

/// A key and its value.
type KeyValue = (Slice, Slice);

fn copied(entry: Result<KeyValue>) -> Result<(Vec<u8>, Vec<u8>)> {
    entry.map(|(key, value)| (key.into(), value.into()))
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

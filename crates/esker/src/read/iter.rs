//! The public iterator: a range of keys, from both ends.

use std::cmp::Ordering;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use super::cursor::Cursor;
use super::gaps::GapFinder;
use super::passed::Move;
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
/// An iterator that has ended keeps no files of the store, nor the lock of its directory; one under way does.
/// After an error it ends: it gives the error once. One that was made after the store was
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
    /// `None` once it has ended.
    super_version: Option<Arc<Pin>>,
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
    /// Whether `key` is not past the end that a walk in this direction comes to.
    #[inline]
    fn not_past(&self, key: &[u8], forward: bool) -> bool {
        let (end, past) = match forward {
            true => (&self.upper, Ordering::Greater),
            false => (&self.lower, Ordering::Less),
        };
        match end {
            Bound::Unbounded => true,
            Bound::Included(end) => self.order.compare(key, end) != past,
            Bound::Excluded(end) => self.order.compare(key, end) == past.reverse(),
        }
    }

    /// To the first key of the range, or the last; whether there is any behind the end where the walk begins.
    fn enter(&self, cursor: &mut Cursor, forward: bool) -> Result<bool> {
        let from = match if forward { &self.lower } else { &self.upper } {
            Bound::Unbounded => Move::Edge,
            Bound::Included(key) | Bound::Excluded(key) => Move::Search(key),
        };
        let mut on = cursor.position(from, forward)?;
        while on && !self.not_past(cursor.key(), !forward) {
            on = cursor.step(forward)?;
        }
        Ok(on)
    }

    #[inline]
    fn wanted(&self, key: &[u8]) -> bool {
        self.must_start_with.as_ref().is_none_or(|p| key.starts_with(p))
    }
}

impl Iter {
    pub(crate) fn new<K: AsRef<[u8]>>(
        super_version: Arc<SuperVersion>,
        order: &KeyOrder,
        seq: Seq,
        gaps: Arc<dyn GapFinder>,
        range: &impl RangeBounds<K>,
    ) -> Iter {
        let own = |b: Bound<&K>| b.map(|k| k.as_ref().to_vec());
        Iter {
            super_version: Some(Arc::new(Pin(super_version))),
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
        super_version: Arc<SuperVersion>,
        order: &KeyOrder,
        seq: Seq,
        gaps: Arc<dyn GapFinder>,
        prefix: &[u8],
    ) -> Iter {
        let mut iter = Iter::new::<&[u8]>(super_version, order, seq, gaps, &..);
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

    /// Goes to the next entry, or the next one from the end; whether there is one.
    #[inline(always)]
    fn step(&mut self, forward: bool) -> Result<bool> {
        let limits = &self.limits;
        let (own, other) = match forward {
            true => (&mut self.front, &self.back),
            false => (&mut self.back, &self.front),
        };
        let (cursor, mut on) = match own {
            Some(c) => {
                let on = c.step(forward)?;
                (c, on)
            }
            None => {
                self.refused.take().map_or(Ok(()), Err)?;
                let Some(pin) = &self.super_version else { return Ok(false) };
                let (super_version, gaps) = (Arc::clone(&pin.0), Arc::clone(&self.gaps));
                let mut c =
                    Cursor::new(super_version, &limits.order, self.seq, self.keys_only, Some(gaps));
                let on = limits.enter(&mut c, forward)?;
                (own.insert(c), on)
            }
        };
        while on && !limits.wanted(cursor.key()) {
            on = cursor.step(forward)?;
        }
        if !on || !limits.not_past(cursor.key(), forward) {
            return Ok(false);
        }
        let short_of = if forward { Ordering::Less } else { Ordering::Greater };
        let met = |other: &Cursor| limits.order.compare(cursor.key(), other.key()) != short_of;
        Ok(!other.as_ref().is_some_and(met))
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
        Some(self.go(true)?.map(|(c, _)| (c.key(), c.value())))
    }

    /// As [`next_ref`](Iter::next_ref), from the end.
    #[inline]
    pub fn next_back_ref(&mut self) -> Option<Result<(&[u8], &[u8])>> {
        Some(self.go(false)?.map(|(c, _)| (c.key(), c.value())))
    }

    /// One step, after which the iterator ends if it led to no entry; else the cursor that is on it, and its super version.
    #[inline(always)]
    fn go(&mut self, forward: bool) -> Option<Result<(&Cursor, &Arc<Pin>)>> {
        if self.done {
            return None;
        }
        let on = match self.limits.order.is_custom() {
            true => comparator::catch(|| self.step(forward)),
            false => self.step(forward),
        };
        match on {
            Ok(true) => {
                let cursor = if forward { &self.front } else { &self.back };
                cursor.as_ref().zip(self.super_version.as_ref()).map(Ok)
            }
            ended => {
                self.end();
                ended.err().map(Err)
            }
        }
    }

    /// It gives nothing more, and keeps nothing.
    #[cold]
    #[inline(never)]
    fn end(&mut self) {
        self.done = true;
        (self.front, self.back, self.super_version) = (None, None, None);
    }
}

impl Iterator for Iter {
    type Item = Result<KeyValue>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        Some(self.go(true)?.map(|(c, super_version)| c.entry(super_version)))
    }
}

impl DoubleEndedIterator for Iter {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        Some(self.go(false)?.map(|(c, super_version)| c.entry(super_version)))
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
    use std::path::Path;
    use std::sync::Arc;

    use super::after_prefix;
    use crate::env::sim::SimEnv;
    use crate::{Db, Options};

    /// It kept the files that it had seen, and the directory's lock, until it was dropped.
    #[test]
    #[cfg_attr(miri, ignore = "Miri knows no file mappings")]
    fn an_iterator_that_has_ended_keeps_nothing_of_the_store() {
        let env = Arc::new(SimEnv::new(1, true));
        let open = || {
            Db::open_in(
                Arc::<SimEnv>::clone(&env),
                Path::new("/db"),
                Options::new().flush_on_close(true),
            )
        };
        let db = open().unwrap();
        for n in 0..9u8 {
            db.put([n], [n; 100]).unwrap();
        }
        let (mut all, mut back, mut met, mut none) =
            (db.iter(), db.iter(), db.iter(), db.range([20]..));
        assert_eq!((all.by_ref().count(), back.by_ref().rev().count()), (9, 9));
        assert_eq!((met.next().is_some(), met.by_ref().rev().count()), (true, 8));
        assert!(none.next_ref().is_none());
        let mut under_way = db.iter();
        let first = under_way.next().unwrap().unwrap();
        db.close().unwrap();
        assert!(open().is_err(), "one is under way");
        assert_eq!(under_way.by_ref().count(), 8);
        assert!(open().is_err(), "a value is held");
        drop(first);
        assert_eq!(open().unwrap().iter().count(), 9);
        for ended in [&mut all, &mut back, &mut met, &mut none, &mut under_way] {
            assert!(ended.next().is_none() && ended.next_back_ref().is_none());
        }
    }

    #[test]
    fn after_prefix_is_the_next_key_that_does_not_start_with_it() {
        assert_eq!(after_prefix(b"ab"), Some(b"ac".to_vec()));
        assert_eq!(after_prefix(b"a\xff"), Some(b"b".to_vec()));
        assert_eq!(after_prefix(b"\xff\xff"), None);
        assert_eq!(after_prefix(b""), None);
    }
}

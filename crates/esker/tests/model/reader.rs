//! Reading a keyspace now or at a snapshot, and comparing with what it should hold.

use std::ops::Bound;

use esker::{Cursor, Iter, Keyspace, Slice, View};

use crate::common::model::{Entry, Map};
use crate::common::show;

/// A keyspace now or at a snapshot: they read alike.
pub enum Reader {
    Now(Keyspace),
    Old(View),
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if matches!(self, Reader::Now(_)) { "now" } else { "at a snapshot" })
    }
}

macro_rules! either {
    ($self:expr, $r:ident => $e:expr) => {
        match $self {
            Reader::Now($r) => $e,
            Reader::Old($r) => $e,
        }
    };
}

impl Reader {
    pub fn get(&self, key: &[u8]) -> esker::Result<Option<Slice>> {
        either!(self, r => r.get(key))
    }
    pub fn contains(&self, key: &[u8]) -> esker::Result<bool> {
        either!(self, r => r.contains_key(key))
    }
    pub fn multi_get(&self, keys: &[Vec<u8>]) -> esker::Result<Vec<Option<Slice>>> {
        either!(self, r => r.multi_get(keys))
    }
    pub fn range(&self, range: (Bound<Vec<u8>>, Bound<Vec<u8>>)) -> Iter {
        either!(self, r => r.range(range))
    }
    pub fn prefix(&self, prefix: &[u8]) -> Iter {
        either!(self, r => r.prefix(prefix))
    }
    pub fn cursor(&self, keys_only: bool) -> Cursor {
        either!(self, r => if keys_only { r.cursor_keys_only() } else { r.cursor() })
    }
}

pub fn as_slice(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    bound.as_ref().map(|k| &k[..])
}

/// The next entry from one end is the one expected there; whether there was one.
pub fn check_next(
    iter: &mut Iter,
    expected: &mut impl DoubleEndedIterator<Item = Entry>,
    back: bool,
    what: &str,
) -> bool {
    let (got, should) = if back {
        (iter.next_back(), expected.next_back())
    } else {
        (iter.next(), expected.next())
    };
    let got = got.map(Result::unwrap);
    let same = match (&got, &should) {
        (Some(got), Some(should)) => *got.0 == *should.0 && *got.1 == *should.1,
        (got, should) => got.is_none() && should.is_none(),
    };
    // Written out only where they differ: most of the time would go there.
    if !same {
        let keys = (got.as_ref().map(|e| show(&e.0)), should.as_ref().map(|e| show(&e.0)));
        assert_eq!(keys.0, keys.1, "{what}, from the back: {back}");
        panic!("{what}, from the back: {back}: the value of {}", keys.0.unwrap());
    }
    got.is_some()
}

/// A whole keyspace, from one of its ends.
pub fn compare(mut iter: Iter, map: &Map, back: bool, what: &str) {
    let mut expected = map.iter();
    while check_next(&mut iter, &mut expected, back, what) {}
}

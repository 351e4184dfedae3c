//! Reading a keyspace now or at a snapshot, and comparing with what it should hold.

use std::collections::VecDeque;
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

/// The next entry from one end is the one expected there.
pub fn check_next(iter: &mut Iter, expected: &mut VecDeque<Entry>, back: bool, what: &str) {
    let (got, should) = if back {
        (iter.next_back(), expected.pop_back())
    } else {
        (iter.next(), expected.pop_front())
    };
    let got = got.map(Result::unwrap);
    let keys = (got.as_ref().map(|e| show(&e.0)), should.as_ref().map(|e| show(&e.0)));
    assert_eq!(keys.0, keys.1, "{what}, from the back: {back}");
    if let (Some((key, value)), Some((k, v))) = (got, should) {
        assert!(key == *k && value == *v, "{what}: the value of {}", show(&k));
    }
}

/// A whole keyspace.
pub fn compare(iter: Iter, map: &Map, what: &str) {
    let got: Vec<_> = iter.collect::<Result<_, _>>().unwrap();
    compare_lists(&got, &map.entries(), what);
}

pub fn compare_lists(got: &[(Vec<u8>, Vec<u8>)], should: &[Entry], what: &str) {
    for (at, (g, s)) in got.iter().zip(should).enumerate() {
        assert_eq!(show(&g.0), show(&s.0), "{what}: entry {at}");
        assert!(g.0 == *s.0 && g.1 == *s.1, "{what}: entry {at}, {}", show(&s.0));
    }
    assert_eq!(got.len(), should.len(), "{what}: number of entries");
}

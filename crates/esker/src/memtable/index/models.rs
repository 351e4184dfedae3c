//! The index under all interleavings of a writer and a reader, by loom, with every value that the
//! memory model lets a load return. The code is the index's own; nodes are small (`node::LEAF`), so
//! that a few keys split leaves and inner nodes.
//!
//! Each model says which keys are there before. A reader must find each of those, in order, and with
//! the right bytes: these are in cells that loom watches, so that a reference which reaches a
//! reader before its key does is found as well.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use loom::cell::UnsafeCell;

use super::{Index, IndexCursor, KeySource};
use crate::key::KeyOrder;
use crate::util::sync::explore;

/// Stands for the log.
struct ModelLog {
    keys: Vec<UnsafeCell<&'static str>>,
    len: AtomicUsize,
}

impl KeySource for ModelLog {
    fn key(&self, r: u32) -> &[u8] {
        // SAFETY: written before the reference was handed out, never changed afterwards; loom checks
        // just that.
        self.keys[r as usize].with(|key| unsafe { *key }).as_bytes()
    }
}

struct Model {
    index: Index,
    log: ModelLog,
}

// SAFETY: the index may be shared; a key is written once, before its reference is handed out.
unsafe impl Sync for Model {}
// SAFETY: as above.
unsafe impl Send for Model {}

impl Model {
    fn new(keys: &[&'static str]) -> Arc<Model> {
        let cells = (0..keys.len() + 2).map(|_| UnsafeCell::new("")).collect();
        let log = ModelLog { keys: cells, len: AtomicUsize::new(0) };
        let model = Model { index: Index::new(KeyOrder::Bytewise), log };
        for key in keys {
            model.put(key);
        }
        Arc::new(model)
    }

    fn put(&self, key: &'static str) {
        // SAFETY: every model has one writing thread, and nobody has the new reference yet.
        unsafe {
            self.index.upsert(&self.log, key.as_bytes(), |_| {
                let r = self.log.len.fetch_add(1, Relaxed);
                self.log.keys[r].with_mut(|place| *place = key);
                r as u32
            });
        }
    }

    fn get(&self, key: &str) -> Option<u32> {
        let found = self.index.get(&self.log, key.as_bytes());
        if let Some(r) = found {
            assert_eq!(self.log.key(r), key.as_bytes());
        }
        found
    }

    fn key_at(&self, cursor: &IndexCursor) -> Option<&str> {
        cursor.current().map(|r| std::str::from_utf8(self.log.key(r)).unwrap())
    }

    /// Where a search arrives that goes a step at a time.
    fn seek_in_steps(&self, key: &str) -> Option<&str> {
        let mut cursor = IndexCursor::new();
        cursor.approach(&self.index);
        while cursor.come_nearer(&self.index, &self.log, key.as_bytes()) {}
        cursor.seek(&self.index, &self.log, key.as_bytes());
        self.key_at(&cursor)
    }

    /// All keys upwards, or from the last down.
    fn walk(&self, up: bool) -> Vec<&str> {
        let mut cursor = IndexCursor::new();
        if up {
            cursor.first(&self.index, &self.log)
        } else {
            cursor.last(&self.index, &self.log)
        }
        let mut seen = Vec::new();
        while let Some(key) = self.key_at(&cursor) {
            seen.push(key);
            if up {
                cursor.next(&self.index, &self.log)
            } else {
                cursor.prev(&self.index, &self.log)
            }
        }
        if !up {
            seen.reverse();
        }
        seen
    }
}

/// Puts `new` into an index of the keys `old` while `reader` looks.
fn beside_a_writer(
    name: &str,
    preemptions: usize,
    old: &'static [&'static str],
    new: &'static str,
    reader: impl Fn(&Model) + Send + Sync + Copy + 'static,
) {
    explore(name, preemptions, move || {
        let model = Model::new(old);
        let reading = {
            let model = Arc::clone(&model);
            loom::thread::spawn(move || reader(&model))
        };
        model.put(new);
        reading.join().unwrap();
        assert!(model.get(new).is_some());
    });
}

/// What was seen is all of `old` and perhaps `new`, in order.
fn check(seen: &[&str], old: &[&'static str], new: &'static str) {
    assert!(seen.is_sorted_by(|a, b| a < b), "out of order: {seen:?}");
    let strangers = seen.iter().filter(|k| **k != new && !old.contains(k)).count();
    assert!(strangers == 0 && old.iter().all(|k| seen.contains(k)), "{seen:?} of {old:?}");
}

const TWO: &[&str] = &["key a", "key c"];
const FULL_LEAF: &[&str] = &["key a", "key c", "key e"];
/// Two leaves, of which the first is full.
const TWO_LEAVES: &[&str] = &["key a", "key c", "key e", "key g"];
/// Four full leaves under one inner node that is full, too.
const FULL_INNER: &[&str] = &["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"];

#[test]
fn a_new_key_is_there_or_not_and_others_stay() {
    beside_a_writer("insert", 3, TWO, "key b", |m| {
        let first = m.get("key b");
        assert!(first.is_none() || m.get("key b") == first, "it was there and is gone");
        assert!(m.get("key a").is_some());
    });
    beside_a_writer("insert, walked", 3, TWO, "key b", |m| check(&m.walk(true), TWO, "key b"));
}

#[test]
fn an_overwrite_gives_the_old_reference_or_the_new() {
    beside_a_writer("overwrite", 3, TWO, "key a", |m| {
        let first = m.get("key a").unwrap();
        let then = m.get("key a").unwrap();
        assert!(first <= then, "back to the old one");
    });
}

#[test]
fn a_key_without_the_prefix_rewrites_the_leaf() {
    beside_a_writer("prefix", 2, TWO, "other", |m| {
        assert!(m.get("key a").is_some());
        assert!(m.get("key c").is_some());
        m.get("other");
    });
    beside_a_writer("prefix, walked", 2, TWO, "other", |m| check(&m.walk(true), TWO, "other"));
}

#[test]
fn a_leaf_splits() {
    beside_a_writer("split", 2, FULL_LEAF, "key b", |m| {
        assert!(m.get("key e").is_some());
        assert!(m.get("key a").is_some());
    });
    beside_a_writer("split, up", 2, FULL_LEAF, "key b", |m| {
        check(&m.walk(true), FULL_LEAF, "key b");
    });
    beside_a_writer("split, down", 2, FULL_LEAF, "key b", |m| {
        check(&m.walk(false), FULL_LEAF, "key b");
    });
}

#[test]
fn a_leaf_between_others_splits() {
    beside_a_writer("split below a root, up", 2, TWO_LEAVES, "key b", |m| {
        check(&m.walk(true), TWO_LEAVES, "key b");
    });
    beside_a_writer("split below a root, down", 2, TWO_LEAVES, "key b", |m| {
        check(&m.walk(false), TWO_LEAVES, "key b");
    });
    beside_a_writer("split below a root, sought", 2, TWO_LEAVES, "key b", |m| {
        let mut cursor = IndexCursor::new();
        cursor.seek_for_prev(&m.index, &m.log, b"key f");
        assert_eq!(m.key_at(&cursor), Some("key e"));
        cursor.prev(&m.index, &m.log);
        assert_eq!(m.key_at(&cursor), Some("key c"));
    });
}

#[test]
fn a_search_in_steps_finds_what_moves_between_them() {
    beside_a_writer("split below a root, in steps", 2, TWO_LEAVES, "key b", |m| {
        assert_eq!(m.seek_in_steps("key e"), Some("key e"));
    });
    for (name, key) in
        [("inner split, in steps, middle", "h"), ("inner split, in steps, last", "l")]
    {
        beside_a_writer(name, 1, FULL_INNER, "gg", move |m| {
            assert_eq!(m.seek_in_steps(key), Some(key));
        });
    }
}

#[test]
fn an_inner_node_splits() {
    for (name, key) in [("inner split, first", "a"), ("inner split, last", "l")] {
        beside_a_writer(name, 1, FULL_INNER, "bb", move |m| assert!(m.get(key).is_some()));
    }
    beside_a_writer("inner split, middle", 1, FULL_INNER, "gg", |m| {
        assert!(m.get("h").is_some());
    });
}

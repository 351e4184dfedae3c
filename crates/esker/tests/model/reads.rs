//! Operations that read, now and at moments past.

use std::ops::Bound;

use esker::{Error, Iter, Options};

use crate::common::model::{Entry, Map};
use crate::common::show;
use crate::reader::{Reader, as_slice, check_next, compare};
use crate::world::World;

impl World {
    /// A keyspace to read, now or at a snapshot, and what it should hold.
    pub fn reader(&mut self, old: bool) -> (String, Reader, Map) {
        let space = self.any_space();
        let s = &self.spaces[&space];
        if !old || self.snapshots.is_empty() {
            return (space.clone(), Reader::Now(s.handle.clone()), s.map.clone());
        }
        let at = self.rng.below(self.snapshots.len());
        let (snapshot, maps) = &self.snapshots[at];
        let map = maps.get(&space).cloned().unwrap_or_else(|| Map::new(s.map.order));
        (space.clone(), Reader::Old(s.handle.at(snapshot)), map)
    }

    pub fn read_points(&mut self, old: bool) {
        let (space, reader, map) = self.reader(old);
        let several = self.rng.one_in(4);
        let n = if several { self.rng.below(40) } else { 1 };
        let keys: Vec<Vec<u8>> = (0..n).map(|_| self.probe(&space)).collect();
        self.calls += keys.len() as u64;
        self.note(format!("get {space} {reader:?} {} keys", keys.len()));
        if several {
            let values = reader.multi_get(&keys).unwrap();
            for (key, value) in keys.iter().zip(values) {
                assert_eq!(value.as_deref(), map.get(key), "{space} {}", show(key));
            }
            return;
        }
        for key in &keys {
            assert_eq!(reader.get(key).unwrap().as_deref(), map.get(key), "{space} {}", show(key));
            assert_eq!(
                reader.contains(key).unwrap(),
                map.get(key).is_some(),
                "{space} {}",
                show(key)
            );
        }
    }

    /// A range or a prefix, from both ends, with a write now and then.
    pub fn scan(&mut self, old: bool) {
        let (space, reader, map) = self.reader(old);
        let (mut iter, mut expected): (Iter, Box<dyn DoubleEndedIterator<Item = Entry>>) =
            match self.rng.below(4) {
                0 => {
                    let mut prefix = self.probe(&space);
                    prefix.truncate(self.rng.below(prefix.len() + 1));
                    self.note(format!("prefix {space} {reader:?} {}", show(&prefix)));
                    // Not from the map itself: the prefix must outlive it.
                    let expected: Vec<_> = map.prefix(&prefix).collect();
                    (reader.prefix(&prefix), Box::new(expected.into_iter()))
                }
                _ => {
                    let (low, high) = (self.bound(&space), self.bound(&space));
                    self.note(format!("range {space} {reader:?} {low:?} {high:?}"));
                    let expected = Box::new(map.range(as_slice(&low), as_slice(&high)));
                    (reader.range((low, high)), expected)
                }
            };
        let ends = self.rng.below(3);
        let limit = if self.rng.one_in(3) { usize::MAX } else { self.rng.below(50) };
        for _ in 0..limit {
            let back = ends == 1 || ends == 2 && self.rng.one_in(2);
            self.calls += 1;
            if !check_next(&mut iter, &mut expected, back, &space) {
                break;
            }
            if self.rng.one_in(40) {
                self.put();
            }
        }
    }

    /// A cursor led about, with a write now and then that it must not see.
    pub fn walk(&mut self, old: bool) {
        let (space, reader, map) = self.reader(old);
        let keys_only = self.rng.one_in(4);
        let mut cursor = reader.cursor(keys_only);
        // The entry on which the cursor should be.
        let mut at: Option<Entry> = None;
        self.note(format!(
            "walk {space} {reader:?}, keys only: {keys_only}, {} entries",
            map.len()
        ));
        let favourite = self.rng.below(2);
        for _ in 0..self.rng.below(60) {
            self.calls += 1;
            let on = match self.rng.below(12) {
                0 => {
                    self.note("  first".to_string());
                    at = map.first();
                    cursor.first()
                }
                1 => {
                    self.note("  last".to_string());
                    at = map.last();
                    cursor.last()
                }
                2 => {
                    let key = self.probe(&space);
                    self.note(format!("  seek {}", show(&key)));
                    at = map.after(&key, true);
                    cursor.seek(&key)
                }
                3 => {
                    let key = self.probe(&space);
                    self.note(format!("  seek_for_prev {}", show(&key)));
                    at = map.before(&key, true);
                    cursor.seek_for_prev(&key)
                }
                n => {
                    let next = n < 6 || n < 11 && favourite == 0;
                    self.note(if next { "  next" } else { "  prev" }.to_string());
                    at = at.and_then(|(key, _)| {
                        if next { map.after(&key, false) } else { map.before(&key, false) }
                    });
                    if next { cursor.next() } else { cursor.prev() }
                }
            };
            let on = on.unwrap();
            assert_eq!(on, at.is_some(), "{space}: on an entry");
            assert_eq!(cursor.valid(), on);
            let (key, value) = match &at {
                Some((key, value)) => (&**key, if keys_only { &[] } else { &**value }),
                None => (&[][..], &[][..]),
            };
            assert!(cursor.key() == key, "{space}: {} not {}", show(cursor.key()), show(key));
            assert!(cursor.value() == value, "{space}: the value of {}", show(key));
            if self.rng.one_in(30) {
                self.put();
            }
        }
    }

    pub fn snapshot(&mut self) {
        if self.snapshots.len() == 4 {
            let at = self.rng.below(4);
            drop(self.snapshots.swap_remove(at));
        }
        self.note("snapshot".to_string());
        let taken = (self.db().snapshot(), self.maps());
        self.snapshots.push(taken);
    }

    pub fn keep_iterator(&mut self) {
        if self.iterators.len() == 3 {
            let at = self.rng.below(3);
            let (mut iter, mut expected) = self.iterators.swap_remove(at);
            while check_next(&mut iter, &mut expected, false, "kept iterator") {}
            check_next(&mut iter, &mut expected, true, "kept iterator");
        }
        let (_, reader, map) = self.reader(true);
        self.note(format!("keep an iterator {reader:?}"));
        let all = reader.range((Bound::Unbounded, Bound::Unbounded));
        self.iterators.push((all, map.iter().collect::<Vec<_>>().into_iter()));
    }

    pub fn keep_slice(&mut self) {
        let space = self.any_space();
        let key = self.key(&space);
        if let Some(slice) = self.spaces[&space].handle.get(&key).unwrap() {
            let bytes = slice.to_vec();
            self.slices.push((slice, bytes));
        }
        if self.slices.len() > 4 {
            let at = self.rng.below(5);
            let (slice, bytes) = self.slices.swap_remove(at);
            assert!(slice == bytes, "a value changed under its reader");
        }
    }

    pub fn check_kept(&mut self) {
        for (slice, bytes) in &self.slices {
            assert!(slice == bytes, "a value changed under its reader");
        }
        for (iter, expected) in &mut self.iterators {
            let back = self.rng.one_in(2);
            check_next(iter, expected, back, "kept iterator");
        }
        let old: Vec<_> = self.snapshots.iter().map(|(s, m)| (s.clone(), m.clone())).collect();
        self.note(format!("compare {} snapshots", old.len()));
        for (snapshot, maps) in old {
            for (name, map) in maps {
                // A keyspace made anew since is another; its old data is gone with the old one.
                if let Some(s) = self.spaces.get(&name) {
                    let all = (Bound::Unbounded, Bound::Unbounded);
                    compare(Reader::Old(s.handle.at(&snapshot)).range(all), &map, false, &name);
                }
            }
        }
    }

    pub fn check_all(&mut self) {
        self.note("compare all".to_string());
        for (name, s) in &self.spaces {
            compare(s.handle.iter(), &s.map, false, name);
            compare(s.handle.iter(), &s.map, true, name);
        }
    }

    /// What has no model: it must not fail, and must not change anything.
    pub fn look(&mut self) {
        self.note("look".to_string());
        let report = self.db().verify().unwrap();
        assert_eq!(report.problems, []);
        let stats = self.db().stats();
        assert!(stats.halted.is_none());
        assert!(self.db().property("esker.stats").is_some() && self.db().property("x").is_none());
        let space = self.any_space();
        let (low, high) = (self.bound(&space), self.bound(&space));
        self.spaces[&space].handle.approximate_size((low, high)).unwrap();
        self.db().sync().unwrap();
        let again = Options::new().open(&self.path);
        assert!(matches!(again, Err(Error::Locked { .. })));
    }
}

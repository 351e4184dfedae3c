//! Sorted runs of versions as one, and of that the entries that count.
//!
//! A *version* is a key with a value or a deletion, and a tag that says how new it is. Runs are in
//! ascending order of keys and, among those of one key, in descending order of tags. Where two runs
//! have a key with the same tag, the run that was named first goes first.

use std::cmp::Ordering;

use crate::error::{Error, Result};

/// How new a version is; the lowest bit says whether it is a value. A deletion has none.
pub(crate) type Tag = u64;

/// A version that is a value, as the lowest byte of a tag says it.
pub(crate) const VALUE: u64 = 1;

/// The order of versions.
pub(crate) fn order(a: (&[u8], Tag), b: (&[u8], Tag)) -> Ordering {
    a.0.cmp(b.0).then(b.1.cmp(&a.1))
}

/// Sorted versions, one at a time. Before the first [`advance`](Run::advance), and after one that
/// said `false`, there is none to ask about.
pub(crate) trait Run {
    /// To the next version; false at the end.
    fn advance(&mut self) -> Result<bool>;
    fn key(&self) -> &[u8];
    fn tag(&self) -> Tag;
    fn value(&self) -> &[u8];
}

/// Several runs as one.
pub(crate) struct Merge {
    runs: Vec<Box<dyn Run>>,
    /// Places in `runs` of those that are on a version, as a heap with the least on top.
    heap: Vec<usize>,
    started: bool,
}

impl Merge {
    pub fn new(runs: Vec<Box<dyn Run>>) -> Merge {
        Merge { runs, heap: Vec::new(), started: false }
    }

    fn start(&mut self) -> Result<()> {
        self.started = true;
        for (at, run) in self.runs.iter_mut().enumerate() {
            if run.advance()? {
                self.heap.push(at);
            }
        }
        for at in (0..self.heap.len() / 2).rev() {
            self.sift_down(at);
        }
        Ok(())
    }

    fn is_less(&self, a: usize, b: usize) -> bool {
        let (x, y) = (&self.runs[a], &self.runs[b]);
        order((x.key(), x.tag()), (y.key(), y.tag())).then(a.cmp(&b)).is_lt()
    }

    fn sift_down(&mut self, mut at: usize) {
        loop {
            let mut least = at;
            for child in [2 * at + 1, 2 * at + 2] {
                if child < self.heap.len() && self.is_less(self.heap[child], self.heap[least]) {
                    least = child;
                }
            }
            if least == at {
                return;
            }
            self.heap.swap(at, least);
            at = least;
        }
    }

    fn top(&self) -> &dyn Run {
        &*self.runs[self.heap[0]]
    }
}

impl Run for Merge {
    fn advance(&mut self) -> Result<bool> {
        if !self.started {
            self.start()?;
            return Ok(!self.heap.is_empty());
        }
        let Some(&top) = self.heap.first() else { return Ok(false) };
        if !self.runs[top].advance()? {
            self.heap.swap_remove(0);
        }
        if self.heap.len() > 1 {
            self.sift_down(0);
        }
        Ok(!self.heap.is_empty())
    }

    fn key(&self) -> &[u8] {
        self.top().key()
    }

    fn tag(&self) -> Tag {
        self.top().tag()
    }

    fn value(&self) -> &[u8] {
        self.top().value()
    }
}

/// What is in a source: each key once, with its newest value, in the order of the bytes of the keys.
/// After an error there is nothing more.
pub struct Entries {
    run: Box<dyn Run>,
    /// The key that was decided last.
    last: Vec<u8>,
    begun: bool,
    ended: bool,
}

impl Entries {
    pub(crate) fn new(run: Box<dyn Run>) -> Entries {
        Entries { run, last: Vec::new(), begun: false, ended: false }
    }

    fn find(&mut self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        while self.run.advance()? {
            let key = self.run.key();
            if self.begun && self.last == key {
                continue;
            }
            self.begun = true;
            self.last.clear();
            self.last.extend_from_slice(key);
            if self.run.tag() & 0xff == VALUE {
                return Ok(Some((key.to_vec(), self.run.value().to_vec())));
            }
        }
        Ok(None)
    }
}

impl Iterator for Entries {
    type Item = Result<(Vec<u8>, Vec<u8>), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let found = self.find();
        self.ended = !matches!(found, Ok(Some(_)));
        found.transpose()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub struct InMemory {
        pub versions: Vec<(Vec<u8>, Tag, Vec<u8>)>,
        pub at: usize,
    }

    impl InMemory {
        pub fn new(mut versions: Vec<(Vec<u8>, Tag, Vec<u8>)>) -> InMemory {
            versions.sort_by(|a, b| order((&a.0, a.1), (&b.0, b.1)));
            InMemory { versions, at: usize::MAX }
        }
    }

    impl Run for InMemory {
        fn advance(&mut self) -> Result<bool> {
            self.at = self.at.wrapping_add(1);
            Ok(self.at < self.versions.len())
        }
        fn key(&self) -> &[u8] {
            &self.versions[self.at].0
        }
        fn tag(&self) -> Tag {
            self.versions[self.at].1
        }
        fn value(&self) -> &[u8] {
            &self.versions[self.at].2
        }
    }

    fn version(key: &str, sequence: u64, value: Option<&str>) -> (Vec<u8>, Tag, Vec<u8>) {
        let tag = sequence << 8 | value.map_or(0, |_| VALUE);
        (key.into(), tag, value.unwrap_or_default().into())
    }

    #[test]
    fn the_newest_version_counts_and_a_deletion_hides() {
        let runs: Vec<Box<dyn Run>> = vec![
            Box::new(InMemory::new(vec![version("a", 9, Some("new")), version("b", 8, None)])),
            Box::new(InMemory::new(vec![])),
            Box::new(InMemory::new(vec![
                version("", 3, Some("")),
                version("a", 1, Some("old")),
                version("b", 2, Some("gone")),
                version("c", 1, None),
                version("c", 4, Some("back")),
            ])),
        ];
        let entries = Entries::new(Box::new(Merge::new(runs)));
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let all: Vec<_> = entries.map(|e| e.map(|(k, v)| (text(k), text(v))).unwrap()).collect();
        let expected = [("", ""), ("a", "new"), ("c", "back")];
        assert_eq!(all, expected.map(|(k, v)| (k.to_string(), v.to_string())));
    }

    #[test]
    fn of_equal_versions_the_run_that_was_named_first_counts() {
        for order in [[0, 1], [1, 0]] {
            let values = ["first", "second"];
            let runs = order.map(|n| {
                Box::new(InMemory::new(vec![version("k", 7, Some(values[n]))])) as Box<dyn Run>
            });
            let mut entries = Entries::new(Box::new(Merge::new(runs.into())));
            let (_, value) = entries.next().unwrap().unwrap();
            assert_eq!(value, values[order[0]].as_bytes());
            assert!(entries.next().is_none() && entries.next().is_none());
        }
    }
}

//! Finding a table in a run without touching the tables.
//!
//! For bytewise order a run keeps, per table, the eight bytes of its last key that follow what all
//! last keys share. A search compares these words and looks at whole keys only where the words are
//! equal: a run of thousands of tables is searched in a few cache lines and one table's key.

use std::cmp::Ordering;
use std::ops::Range;

use crate::util::abbreviated_key::{common_prefix, word_at};

#[derive(Debug, Clone, Default)]
pub(super) struct FileBounds {
    /// What all last keys begin with.
    shared: Vec<u8>,
    /// Per table, big-endian, the bytes after `shared`, filled up with zeros.
    words: Vec<u64>,
}

impl FileBounds {
    /// `last_keys` ascending bytewise.
    pub(super) fn new<'a>(
        mut last_keys: impl ExactSizeIterator<Item = &'a [u8]> + Clone,
    ) -> FileBounds {
        let all = last_keys.clone();
        let Some(first) = last_keys.next() else { return FileBounds::default() };
        // Ascending keys share what the first and the last of them share.
        let last = last_keys.last().unwrap_or(first);
        let n = common_prefix(first, last);
        let shared = first[..n].to_vec();
        let words = all.map(|key| word_at(key, n)).collect();
        FileBounds { shared, words }
    }

    /// The first table whose last key is at or after `key` lies in this range or is its end.
    #[inline]
    pub(super) fn narrow(&self, key: &[u8]) -> Range<usize> {
        let n = self.shared.len();
        let head = &key[..n.min(key.len())];
        match head.cmp(&self.shared[..]) {
            // A key that ends within the shared part is a prefix of every last key.
            Ordering::Less => 0..0,
            Ordering::Greater => self.words.len()..self.words.len(),
            Ordering::Equal => {
                let w = word_at(key, n);
                let from = self.words.partition_point(|&x| x < w);
                let equal = self.words[from..].partition_point(|&x| x == w);
                from..from + equal
            }
        }
    }
}

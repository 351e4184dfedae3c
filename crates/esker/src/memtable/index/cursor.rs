//! A walk over an index that may be growing.

use std::ptr;
use std::sync::atomic::Ordering::Acquire;

use super::node::{LEAF, Leaf, Permutation, prefetch};
use super::{Index, KeySource};

/// A position in an index.
///
/// It sees at least the keys that were there when it was last positioned by `first`, `last`,
/// `seek` or `seek_for_prev`, each once and in order. Of a key that is replaced meanwhile it may
/// give the old reference or the new one. Every call is to be made with the same index.
pub(crate) struct IndexCursor {
    /// Which index `next` belongs to; 0 for none.
    owner: u64,
    /// The leaf's references as they were in one moment, in order.
    refs: [u32; LEAF],
    len: usize,
    at: usize,
    /// The leaf after it, at the same moment. Leaves that a later split puts in between hold
    /// nothing but what `refs` has, and newer keys.
    next: *const Leaf,
}

// SAFETY: `next` is only followed in calls that are given its index, which keeps the leaf alive
// and may be shared between threads.
unsafe impl Send for IndexCursor {}
// SAFETY: as above.
unsafe impl Sync for IndexCursor {}

impl IndexCursor {
    /// A cursor that is nowhere.
    pub fn new() -> IndexCursor {
        IndexCursor { owner: 0, refs: [0; LEAF], len: 0, at: 0, next: ptr::null() }
    }

    /// The reference it stands on.
    #[inline]
    pub fn current(&self) -> Option<u32> {
        if self.at < self.len { Some(self.refs[self.at]) } else { None }
    }

    /// To the first key.
    pub fn first<S: KeySource>(&mut self, index: &Index, _src: &S) {
        // SAFETY: nodes live as long as the index.
        self.enter(index, unsafe { &*index.first });
    }

    /// To the last key.
    pub fn last<S: KeySource>(&mut self, index: &Index, _src: &S) {
        loop {
            let (leaf, version) = index.last_leaf();
            self.copy(index, leaf, leaf.entries());
            if leaf.header.unchanged(version) {
                break;
            }
        }
        self.at = self.len.saturating_sub(1);
    }

    /// To the first key at or after `key`.
    pub fn seek<S: KeySource>(&mut self, index: &Index, src: &S, key: &[u8]) {
        let (below, _) = self.locate(index, src, key, false);
        self.at = below;
        if below == self.len {
            self.next_leaf(index);
        }
    }

    /// To the last key at or before `key`.
    pub fn seek_for_prev<S: KeySource>(&mut self, index: &Index, src: &S, key: &[u8]) {
        // Every leaf but the first begins with the separator that leads to it: if no key of it is
        // at or before `key`, none is.
        let (below, found) = self.locate(index, src, key, false);
        if found {
            self.at = below;
        } else {
            self.step_before(below);
        }
    }

    /// One key on. Only when there is a current one.
    #[inline]
    pub fn next<S: KeySource>(&mut self, index: &Index, _src: &S) {
        debug_assert!(self.at < self.len);
        self.at += 1;
        if self.at >= self.len {
            self.next_leaf(index);
        }
    }

    /// One key back. Only when there is a current one.
    #[inline]
    pub fn prev<S: KeySource>(&mut self, index: &Index, src: &S) {
        debug_assert!(self.at < self.len);
        if self.at > 0 {
            self.at -= 1;
        } else if self.len > 0 {
            let (below, _) = self.locate(index, src, src.key(self.refs[0]), true);
            self.step_before(below);
        }
    }

    /// To the entry before position `below` of the leaf, or nowhere.
    fn step_before(&mut self, below: usize) {
        match below.checked_sub(1) {
            Some(at) => self.at = at,
            None => self.clear(),
        }
    }

    fn clear(&mut self) {
        (self.len, self.at, self.next) = (0, 0, ptr::null());
    }

    /// Copies the leaf for `key`; tells how many of its keys are below it and whether it is there.
    fn locate<S: KeySource>(
        &mut self,
        index: &Index,
        src: &S,
        key: &[u8],
        strict: bool,
    ) -> (usize, bool) {
        loop {
            let (leaf, version) = index.leaf_of(src, key, strict);
            let entries = leaf.entries();
            let place = index.find(leaf, src, key, entries);
            self.copy(index, leaf, entries);
            if leaf.header.unchanged(version) {
                return (place.position, place.slot.is_some());
            }
        }
    }

    #[inline(never)]
    fn next_leaf(&mut self, index: &Index) {
        assert_eq!(self.owner, index.id, "a cursor is used with one index");
        let next = self.next;
        if next.is_null() {
            self.clear();
        } else {
            // SAFETY: the leaf belongs to this index, and nodes live as long as it does.
            self.enter(index, unsafe { &*next });
        }
    }

    /// To the first entry of a leaf.
    fn enter(&mut self, index: &Index, leaf: &Leaf) {
        loop {
            let version = leaf.header.begin();
            self.copy(index, leaf, leaf.entries());
            if leaf.header.unchanged(version) {
                break;
            }
        }
        self.at = 0;
        prefetch(self.next);
    }

    /// Takes over a leaf's entries. The caller checks the leaf's version afterwards.
    #[inline]
    fn copy(&mut self, index: &Index, leaf: &Leaf, entries: Permutation) {
        self.owner = index.id;
        self.len = entries.len();
        for at in 0..self.len {
            self.refs[at] = leaf.refs[entries.slot(at)].load(Acquire);
        }
        self.next = leaf.next();
    }
}

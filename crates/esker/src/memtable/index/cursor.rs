//! A walk over an index that may be growing.

use std::ptr;
use std::sync::atomic::Ordering::Acquire;

use super::descend::Descent;
use super::node::{LEAF, Leaf, Permutation, prefetch};
use super::{Index, KeySource};

/// A position in an index.
///
/// It sees at least the keys that were there when it was last positioned by `first`, `last`,
/// `seek` or `seek_for_prev`, each once and in order. Of a key that is replaced meanwhile it may
/// give the old reference or the new one. Every call is to be made with the same index.
pub(crate) struct IndexCursor {
    /// Which index the leaves belong to; 0 for none.
    owner: u64,
    /// The leaf's references as they were in one moment, in order.
    refs: [u32; LEAF],
    len: usize,
    at: usize,
    /// The leaf they are from.
    leaf: *const Leaf,
    /// The leaf after it, at the same moment. Leaves that a later split puts in between hold
    /// nothing but what `refs` has, and newer keys.
    next: *const Leaf,
    /// How far an approach has come: see `approach`.
    way: Option<Descent>,
}

// SAFETY: the leaves are only looked at in calls that are given their index, which keeps them
// alive and may be shared between threads.
unsafe impl Send for IndexCursor {}
// SAFETY: as above.
unsafe impl Sync for IndexCursor {}

impl IndexCursor {
    /// A cursor that is nowhere.
    pub fn new() -> IndexCursor {
        let leaf = ptr::null();
        IndexCursor { owner: 0, refs: [0; LEAF], len: 0, at: 0, leaf, next: leaf, way: None }
    }

    /// The reference it stands on.
    #[inline]
    pub fn current(&self) -> Option<u32> {
        if self.at < self.len { Some(self.refs[self.at]) } else { None }
    }

    /// The `n`-th reference behind the current one, counted from 0, or before it, if it is known to come.
    #[inline]
    pub fn nth(&self, forward: bool, n: usize) -> Option<u32> {
        let at = if forward { self.at + 1 + n } else { self.at.checked_sub(n + 1)? };
        self.refs[..self.len].get(at).copied()
    }

    /// The reference that a walk will probably come to `n` moves after the next one, in this leaf or in its neighbour
    /// as that is now: to load ahead what it names, and for nothing else. A walk waits at each leaf's beginning where
    /// that is not done.
    #[inline]
    pub fn probably(&self, index: &Index, forward: bool, n: usize) -> Option<u32> {
        let left = self.left(forward);
        if n < left {
            return self.nth(forward, n);
        }
        self.in_neighbour(index, forward, n - left)
    }

    #[inline]
    fn in_neighbour(&self, index: &Index, forward: bool, n: usize) -> Option<u32> {
        if self.owner != index.id || self.leaf.is_null() {
            return None;
        }
        // SAFETY: the leaf and its neighbours are of this index, which they live as long as; at an end there is none.
        let leaf =
            unsafe { if forward { self.next.as_ref() } else { (*self.leaf).prev().as_ref() } }?;
        let entries = leaf.entries();
        let at = if forward { n } else { entries.len().checked_sub(n + 1)? };
        (at < entries.len()).then(|| leaf.refs[entries.slot(at)].load(Acquire))
    }

    /// Asks for the leaf behind the one that comes next, which was asked for when this one was entered.
    #[inline]
    pub fn ask_for_leaf_beyond(&self, index: &Index, forward: bool) {
        if self.owner != index.id || self.leaf.is_null() {
            return;
        }
        // SAFETY: as in `in_neighbour`.
        let next =
            unsafe { if forward { self.next.as_ref() } else { (*self.leaf).prev().as_ref() } };
        if let Some(leaf) = next {
            prefetch(if forward { leaf.next() } else { leaf.prev() });
        }
    }

    /// How many references of the same leaf come after the current one in this direction.
    #[inline]
    pub fn left(&self, forward: bool) -> usize {
        if forward { self.len.saturating_sub(self.at + 1) } else { self.at.min(self.len) }
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

    /// The first part of a search: sets out for the leaf. Whoever searches several indexes does each part for
    /// all of them, so that they wait for memory at the same time. The search is for the same key, and follows
    /// at once.
    pub fn approach(&mut self, index: &Index) {
        self.owner = index.id;
        self.way = Some(index.top());
    }

    /// A level nearer to the leaf, which is asked for; whether there is more of the way.
    #[inline]
    pub fn come_nearer<S: KeySource>(&mut self, index: &Index, src: &S, key: &[u8]) -> bool {
        let Some(way) = self.way.as_mut().filter(|w| !w.has_asked_for_leaf()) else {
            return false;
        };
        assert_eq!(self.owner, index.id, "a cursor is used with one index");
        index.step(way, src, key);
        !way.has_asked_for_leaf()
    }

    /// To the first key at or after `key`.
    pub fn seek<S: KeySource>(&mut self, index: &Index, src: &S, key: &[u8]) {
        let (below, _) = self.locate(index, src, key);
        self.at = below;
        if below == self.len {
            self.next_leaf(index);
        }
    }

    /// To the last key at or before `key`.
    pub fn seek_for_prev<S: KeySource>(&mut self, index: &Index, src: &S, key: &[u8]) {
        // Every leaf but the first begins with the separator that leads to it: if no key of it is
        // at or before `key`, none is.
        let (below, found) = self.locate(index, src, key);
        if found {
            self.at = below;
        } else if below > 0 {
            self.at = below - 1;
        } else {
            self.clear();
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
            self.prev_leaf(index, src);
        }
    }

    /// So many keys on, or back, at most to the first one beyond the leaf. Only when there is a current one.
    pub fn skip<S: KeySource>(&mut self, index: &Index, src: &S, forward: bool, n: usize) {
        let within = n.saturating_sub(1).min(self.left(forward));
        match forward {
            true => {
                self.at += within;
                self.next(index, src);
            }
            false => {
                self.at -= within;
                self.prev(index, src);
            }
        }
    }

    /// The sum of what `size` says of each reference from here on whose key is below `end`, or of all from here on. Behind the
    /// first thousand keys one of a leaf stands for all of it, each time another, as keys may come in a rhythm.
    pub fn sum_until<S: KeySource>(
        &mut self,
        index: &Index,
        src: &S,
        end: Option<&[u8]>,
        size: impl Fn(u32) -> u64,
    ) -> u64 {
        const IN_FULL: usize = 64;
        // Knuth's multiplier, 2^32 by the golden ratio.
        const SCATTER: usize = 0x9E37_79B9;
        let below = |r: u32| end.is_none_or(|end| index.order.compare(src.key(r), end).is_lt());
        let (mut sum, mut leaves) = (0u64, 0);
        while self.at < self.len {
            let refs = &self.refs[self.at..self.len];
            let whole = below(refs[refs.len() - 1]);
            let upto = if whole { refs.len() } else { refs.partition_point(|&r| below(r)) };
            let refs = &refs[..upto];
            let part = match leaves < IN_FULL || refs.is_empty() {
                true => refs.iter().map(|&r| size(r)).fold(0, u64::saturating_add),
                false => {
                    let place = leaves.wrapping_mul(SCATTER) >> 16;
                    size(refs[place % refs.len()]).saturating_mul(refs.len() as u64)
                }
            };
            sum = sum.saturating_add(part);
            if !whole {
                break;
            }
            leaves += 1;
            self.next_leaf(index);
        }
        sum
    }

    fn clear(&mut self) {
        (self.len, self.at) = (0, 0);
        (self.leaf, self.next) = (ptr::null(), ptr::null());
    }

    /// Copies the leaf for `key`; tells how many of its keys are below it and whether it is there.
    fn locate<S: KeySource>(&mut self, index: &Index, src: &S, key: &[u8]) -> (usize, bool) {
        let mut way = self.way.take().filter(|_| self.owner == index.id);
        loop {
            let way = way.take().unwrap_or_else(|| index.top());
            let (leaf, version) = index.leaf_at_end(way, src, key);
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

    /// To the last entry of the leaf before: the one from which `next` leads to this one.
    #[inline(never)]
    fn prev_leaf<S: KeySource>(&mut self, index: &Index, src: &S) {
        assert_eq!(self.owner, index.id, "a cursor is used with one index");
        let (target, first) = (self.leaf, self.refs[0]);
        // SAFETY: the leaf belongs to this index, and nodes live as long as it does.
        let (mut from, after) = unsafe { ((*target).prev(), (*target).next()) };
        // SAFETY: as above; a leaf's neighbours are leaves of the same index, or null.
        while let Some(leaf) = unsafe { from.as_ref() } {
            let below = self.copy_below(index, src, leaf, after, first);
            if below == 0 {
                break;
            }
            if ptr::eq(self.next, target) || ptr::eq(self.next, after) {
                self.at = below - 1;
                prefetch(leaf.prev());
                return;
            }
            // It was split since; the leaves to its right lead to the target.
            from = self.next;
        }
        self.clear();
    }

    /// Copies a leaf before the one that begins with `first`, and counts the keys of it that are
    /// smaller. These are all, unless its split is what made the other leaf, and is not finished:
    /// it leads around that leaf then, to the one `after`, and still has all of its keys. (`after`
    /// was read earlier, and cannot have changed before that split's end.)
    fn copy_below<S: KeySource>(
        &mut self,
        index: &Index,
        src: &S,
        leaf: &Leaf,
        after: *const Leaf,
        first: u32,
    ) -> usize {
        loop {
            let version = leaf.header.begin();
            let entries = leaf.entries();
            self.copy(index, leaf, entries);
            let mut below = self.len;
            if ptr::eq(self.next, after) {
                below = index.find(leaf, src, src.key(first), entries).position;
            }
            if leaf.header.unchanged(version) {
                return below;
            }
        }
    }

    /// To the first entry of a leaf.
    #[inline]
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
        self.leaf = leaf;
        self.next = leaf.next();
    }
}

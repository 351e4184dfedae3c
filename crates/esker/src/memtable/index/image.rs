//! A node's entries in hand, sorted: what a split or a change of prefix works on before it is
//! written back.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::KeySource;
use super::node::{INNER, InnerNode, Leaf, Permutation};
use super::prefix::PrefixCopy;
use crate::util::abbreviated_key::{Heads, common_prefix, first_bytes};

/// Room for a full inner node (the larger kind) and the entry that makes it split.
const ROOM: usize = INNER + 1;

/// Heads and references in key order, and the prefix they are taken after.
pub(super) struct Image {
    pub(super) prefix: PrefixCopy,
    pub(super) len: usize,
    heads: [u64; ROOM],
    pub(super) refs: [u32; ROOM],
}

impl Image {
    /// One entry; its whole key is the prefix, until another key shares less of it.
    pub(super) fn one(heads: Heads, key: &[u8], r: u32) -> Image {
        let len = if heads.of_bytes() { key.len() } else { 0 };
        let mut image = Image::empty(PrefixCopy::of(key, len));
        image.insert(0, heads.head(key, len), r);
        image
    }

    fn empty(prefix: PrefixCopy) -> Image {
        Image { prefix, len: 0, heads: [0; ROOM], refs: [0; ROOM] }
    }

    pub(super) fn of_leaf(leaf: &Leaf) -> Image {
        let mut image = Image::empty(leaf.header.prefix.load());
        let entries = leaf.entries();
        image.len = entries.len();
        for i in 0..image.len {
            let slot = entries.slot(i);
            image.heads[i] = leaf.heads[slot].load(Relaxed);
            image.refs[i] = leaf.refs[slot].load(Acquire);
        }
        image
    }

    pub(super) fn of_inner(inner: &InnerNode) -> Image {
        let mut image = Image::empty(inner.header.prefix.load());
        image.len = inner.len();
        for i in 0..image.len {
            image.heads[i] = inner.heads[i].load(Relaxed);
            image.refs[i] = inner.refs[i].load(Acquire);
        }
        image
    }

    /// Gives `key` its place, with a prefix short enough for it.
    pub(super) fn add<S: KeySource>(
        &mut self,
        heads: Heads,
        src: &S,
        position: usize,
        key: &[u8],
        r: u32,
    ) {
        let any = self.refs[0];
        let shared = self.prefix.shared_with(key, || src.key(any));
        if shared < self.prefix.len {
            self.shorten(heads, shared, || src.key(any));
        }
        self.insert(position, heads.head(key, shared), r);
    }

    fn insert(&mut self, position: usize, head: u64, r: u32) {
        self.heads.copy_within(position..self.len, position + 1);
        self.refs.copy_within(position..self.len, position + 1);
        self.heads[position] = head;
        self.refs[position] = r;
        self.len += 1;
    }

    /// Cuts the prefix: the bytes cut off go to the front of every head.
    fn shorten<'a>(&mut self, heads: Heads, len: usize, any: impl FnOnce() -> &'a [u8]) {
        let cut = self.prefix.len - len;
        let front = self.prefix.shorten(len, any);
        for head in &mut self.heads[..self.len] {
            let back = if cut < 8 { (*head ^ heads.flip) >> (8 * cut) } else { 0 };
            debug_assert!(back & first_bytes(cut) == 0);
            *head = (front | back) ^ heads.flip;
        }
    }

    /// Entries of which no two heads are equal need no look at their keys; a longer prefix would
    /// only cost such looks. Otherwise heads further behind tell more.
    pub(super) fn is_crowded(&self) -> bool {
        self.heads[..self.len].windows(2).any(|pair| pair[0] == pair[1])
    }

    /// Takes the longest prefix there is.
    pub(super) fn lengthen<S: KeySource>(&mut self, heads: Heads, src: &S) {
        if !heads.of_bytes() || self.len == 0 {
            return;
        }
        let first = src.key(self.refs[0]);
        let shared = common_prefix(first, src.key(self.refs[self.len - 1]));
        if shared > self.prefix.len {
            self.prefix = PrefixCopy::of(first, shared);
            for (head, &r) in self.heads.iter_mut().zip(&self.refs[..self.len]) {
                *head = heads.head(src.key(r), shared);
            }
        }
    }

    /// The entries from `at` on, which this image loses.
    pub(super) fn split_off(&mut self, at: usize) -> Image {
        let mut right = Image::empty(self.prefix);
        right.len = self.len - at;
        right.heads[..right.len].copy_from_slice(&self.heads[at..self.len]);
        right.refs[..right.len].copy_from_slice(&self.refs[at..self.len]);
        self.len = at;
        right
    }

    /// Drops the first entry.
    pub(super) fn pop_front(&mut self) -> u32 {
        let r = self.refs[0];
        self.heads.copy_within(1..self.len, 0);
        self.refs.copy_within(1..self.len, 0);
        self.len -= 1;
        r
    }

    /// Writes a leaf that is locked or not reachable yet.
    pub(super) fn write_leaf(&self, leaf: &Leaf) {
        leaf.header.prefix.store(&self.prefix);
        for i in 0..self.len {
            leaf.heads[i].store(self.heads[i], Relaxed);
            leaf.refs[i].store(self.refs[i], Release);
        }
        leaf.set_entries(Permutation::sorted(self.len));
    }

    /// Writes the separators of an inner node that is locked or not reachable yet. The children
    /// are to be written before.
    pub(super) fn write_inner(&self, inner: &InnerNode) {
        inner.header.prefix.store(&self.prefix);
        for i in 0..self.len {
            inner.heads[i].store(self.heads[i], Relaxed);
            inner.refs[i].store(self.refs[i], Release);
        }
        for head in &inner.heads[self.len..] {
            head.store(u64::MAX, Relaxed);
        }
        inner.set_len(self.len);
    }
}

//! Finding a key's place in one node.
//!
//! A reader may run these over a node that is being changed: they then return something that is
//! within bounds, and the reader's check of the version throws it away.

use std::cmp::Ordering;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use super::node::{HALVES, InnerNode, LEAF, Leaf, Permutation};
use super::{Index, KeySource};

/// A key's place in a leaf.
pub(super) struct LeafPlace {
    /// How many of the leaf's keys are smaller.
    pub(super) position: usize,
    /// Where the key is, if it is there.
    pub(super) slot: Option<usize>,
    /// Whether the key has the leaf's prefix.
    pub(super) fits: bool,
}

impl Index {
    /// The place of `key` among the entries of a leaf.
    #[inline]
    pub(super) fn find<S: KeySource>(
        &self,
        leaf: &Leaf,
        src: &S,
        key: &[u8],
        entries: Permutation,
    ) -> LeafPlace {
        let len = entries.len();
        if len == 0 {
            // No slot holds a reference yet, so there is no key to ask for a long prefix.
            return LeafPlace { position: 0, slot: None, fits: false };
        }
        let prefix = &leaf.header.prefix;
        let side = prefix.side(key, || src.key(leaf.refs[0].load(Acquire)));
        if side != Ordering::Equal {
            let position = if self.is_before(side) { 0 } else { len };
            return LeafPlace { position, slot: None, fits: false };
        }
        let head = self.heads.head(key, prefix.len());
        // All slots, whatever their order: no branch to predict and no chain of loads.
        let (mut below, mut equal) = (0u32, 0u32);
        for slot in 0..LEAF {
            let other = leaf.heads[slot].load(Relaxed);
            below |= u32::from(other < head) << slot;
            equal |= u32::from(other == head) << slot;
        }
        let live = (1 << len) - 1;
        let mut position = (below & live).count_ones() as usize;
        let mut same = (equal & live).count_ones() as usize;
        // Among equal heads the keys themselves decide.
        while same > 0 {
            let half = same / 2;
            let slot = entries.slot(position + half);
            let other = src.key(leaf.refs[slot].load(Acquire));
            match self.order.compare(other, key) {
                Ordering::Less => {
                    position += half + 1;
                    same -= half + 1;
                }
                Ordering::Equal => {
                    return LeafPlace { position: position + half, slot: Some(slot), fits: true };
                }
                Ordering::Greater => same = half,
            }
        }
        LeafPlace { position, slot: None, fits: true }
    }

    /// The slot of `key` in a leaf, if it is there.
    #[inline]
    pub(super) fn find_equal<S: KeySource>(
        &self,
        leaf: &Leaf,
        src: &S,
        key: &[u8],
        entries: Permutation,
    ) -> Option<usize> {
        if !self.heads.of_bytes() {
            return self.find(leaf, src, key, entries).slot;
        }
        // Whether the key has the leaf's prefix shows when its bytes are compared.
        let head = self.heads.head(key, leaf.header.prefix.len());
        let mut equal = 0u32;
        for slot in 0..LEAF {
            equal |= u32::from(leaf.heads[slot].load(Relaxed) == head) << slot;
        }
        equal &= (1 << entries.len()) - 1;
        while equal != 0 {
            let slot = equal.trailing_zeros() as usize;
            if src.key(leaf.refs[slot].load(Acquire)) == key {
                return Some(slot);
            }
            equal &= equal - 1;
        }
        None
    }

    /// Which child of an inner node holds `key`, if any does.
    #[inline]
    pub(super) fn child<S: KeySource>(&self, inner: &InnerNode, src: &S, key: &[u8]) -> usize {
        let len = inner.len();
        let prefix = &inner.header.prefix;
        let side = prefix.side(key, || src.key(inner.refs[0].load(Acquire)));
        if side != Ordering::Equal {
            return if self.is_before(side) { 0 } else { len };
        }
        let head = self.heads.head(key, prefix.len());
        // Halves without a branch: `low` separators are known to be below.
        let mut low = 0;
        for &half in HALVES {
            low += half * usize::from(inner.heads[low + half - 1].load(Relaxed) < head);
        }
        // Only in a node that is being changed there may be more than were counted.
        let mut low = low.min(len);
        let mut same = 0;
        while low + same < len && inner.heads[low + same].load(Relaxed) == head {
            same += 1;
        }
        while same > 0 {
            let half = same / 2;
            let other = src.key(inner.refs[low + half].load(Acquire));
            if self.order.compare(other, key).is_le() {
                low += half + 1;
                same -= half + 1;
            } else {
                same = half;
            }
        }
        low
    }

    /// Whether a key that lies on this side of a prefix, in byte order, comes before its keys.
    #[inline]
    fn is_before(&self, side: Ordering) -> bool {
        (side == Ordering::Less) == (self.heads.flip == 0)
    }
}

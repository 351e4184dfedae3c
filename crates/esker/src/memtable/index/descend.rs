//! A reader's way from the root to a leaf.

use std::sync::atomic::Ordering::Acquire;

use super::node::{InnerNode, Leaf, NodeHeader, prefetch};
use super::{Index, KeySource};

impl Index {
    /// The leaf for `key`, and its version at a moment when it was the right one.
    #[inline]
    pub(super) fn leaf_of<S: KeySource>(&self, src: &S, key: &[u8]) -> (&Leaf, u32) {
        self.descend(|inner| self.child(inner, src, key))
    }

    /// The leaf of the largest keys.
    pub(super) fn last_leaf(&self) -> (&Leaf, u32) {
        self.descend(InnerNode::len)
    }

    /// A child's version is read before its parent's is checked: so the child is the right one for
    /// what the reader wants at the time its version was read, and stays so while that lasts.
    #[inline]
    fn descend(&self, mut child: impl FnMut(&InnerNode) -> usize) -> (&Leaf, u32) {
        'restart: loop {
            let mut at = self.root.load(Acquire).cast_const();
            // SAFETY: nodes live as long as the index.
            let mut node: &NodeHeader = unsafe { &*at };
            let mut version = node.begin();
            // The root itself has no parent to check: whoever splits it has stored the new root
            // before the old one's version becomes even again.
            if self.root.load(Acquire).cast_const() != at {
                continue;
            }
            while node.level > 0 {
                // SAFETY: a node of a level above 0 is an inner node, allocated as one.
                let inner = unsafe { &*at.cast::<InnerNode>() };
                let below = inner.children[child(inner)].load(Acquire).cast_const();
                prefetch(below);
                debug_assert!(!below.is_null());
                // SAFETY: a child that an inner node's length counts was stored before the length,
                // and nodes live as long as the index.
                let next: &NodeHeader = unsafe { &*below };
                let next_version = next.begin();
                if !node.unchanged(version) {
                    continue 'restart;
                }
                (at, node, version) = (below, next, next_version);
            }
            // SAFETY: a node of level 0 is a leaf, allocated as one.
            return (unsafe { &*at.cast::<Leaf>() }, version);
        }
    }
}

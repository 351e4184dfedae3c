//! A reader's way from the root to a leaf.
//!
//! It goes a level at a time, so that who searches several indexes for a key can take a step in each: the nodes
//! below then come from memory side by side, and not one after another.

use std::ptr;
use std::sync::atomic::Ordering::Acquire;

use super::node::{InnerNode, Leaf, NodeHeader, prefetch};
use super::{Index, KeySource};

/// How far a way has come.
pub(super) struct Descent {
    /// A node that was right for the key when its version was read.
    at: *const NodeHeader,
    version: u32,
    next: NextMove,
}

/// What comes next, each of which waits for memory that the one before has asked for.
enum NextMove {
    /// To look which child of the node it is.
    Choose,
    /// To take up that child's address.
    Take(usize),
    /// To go there.
    Enter(*const NodeHeader),
}

impl Descent {
    /// Whether it has come to the leaf, or asked for it.
    #[inline]
    pub(super) fn has_asked_for_leaf(&self) -> bool {
        // SAFETY: nodes live as long as the index.
        let level = unsafe { &*self.at }.level;
        level == 0 || level == 1 && matches!(self.next, NextMove::Enter(_))
    }

    /// The leaf that it has come to, if it has.
    #[inline]
    fn leaf(&self) -> Option<*const Leaf> {
        // SAFETY: nodes live as long as the index; one of level 0 is a leaf, allocated as one.
        (unsafe { &*self.at }.level == 0).then(|| self.at.cast())
    }

    /// The node, which is none of level 0.
    #[inline]
    fn inner(&self) -> &InnerNode {
        // SAFETY: nodes live as long as the index; one of a level above 0 is an inner node, allocated as one.
        unsafe { &*self.at.cast() }
    }

    #[inline]
    fn take(&self, child: usize) -> *const NodeHeader {
        let below = self.inner().children[child].load(Acquire).cast_const();
        debug_assert!(!below.is_null());
        prefetch(below);
        below
    }
}

impl Index {
    /// The leaf for `key`, and its version at a moment when it was the right one.
    #[inline]
    pub(super) fn leaf_of<S: KeySource>(&self, src: &S, key: &[u8]) -> (&Leaf, u32) {
        self.descend(self.top(), |inner| self.child(inner, src, key))
    }

    /// The leaf of the largest keys.
    pub(super) fn last_leaf(&self) -> (&Leaf, u32) {
        self.descend(self.top(), InnerNode::len)
    }

    /// The rest of a way that was begun for this key.
    #[inline]
    pub(super) fn leaf_at_end<S: KeySource>(
        &self,
        way: Descent,
        src: &S,
        key: &[u8],
    ) -> (&Leaf, u32) {
        self.descend(way, |inner| self.child(inner, src, key))
    }

    #[inline]
    fn descend(
        &self,
        mut way: Descent,
        mut child: impl FnMut(&InnerNode) -> usize,
    ) -> (&Leaf, u32) {
        loop {
            way = match way.next {
                NextMove::Choose => match way.leaf() {
                    // SAFETY: nodes live as long as the index.
                    Some(leaf) => return (unsafe { &*leaf }, way.version),
                    None => self.enter(&way, way.take(child(way.inner()))),
                },
                NextMove::Take(child) => self.enter(&way, way.take(child)),
                NextMove::Enter(below) => self.enter(&way, below),
            };
        }
    }

    /// A step of a way that has not asked for the leaf yet: the next wait for memory, and what is to be done before it.
    #[inline]
    pub(super) fn step<S: KeySource>(&self, way: &mut Descent, src: &S, key: &[u8]) {
        if let NextMove::Enter(below) = way.next {
            *way = self.enter(way, below);
        }
        way.next = match way.next {
            NextMove::Take(child) => NextMove::Enter(way.take(child)),
            _ if way.leaf().is_some() => NextMove::Choose,
            _ => {
                let inner = way.inner();
                let child = self.child(inner, src, key);
                crate::util::prefetch(ptr::from_ref(&inner.children[child]).cast());
                NextMove::Take(child)
            }
        };
    }

    /// Where each way begins.
    #[inline]
    pub(super) fn top(&self) -> Descent {
        loop {
            let at = self.root.load(Acquire).cast_const();
            // SAFETY: nodes live as long as the index.
            let version = unsafe { &*at }.begin();
            // The root itself has no parent to check: whoever splits it has stored the new root
            // before the old one's version becomes even again.
            if self.root.load(Acquire).cast_const() == at {
                return Descent { at, version, next: NextMove::Choose };
            }
        }
    }

    /// In the child that was chosen; at the top again when its parent has changed since.
    ///
    /// A child's version is read before its parent's is checked: so the child is the right one for
    /// what the reader wants at the time its version was read, and stays so while that lasts. How long
    /// ago it was chosen is of no matter.
    #[inline]
    fn enter(&self, way: &Descent, below: *const NodeHeader) -> Descent {
        // SAFETY: a child that an inner node's length counts was stored before the length,
        // and nodes live as long as the index.
        let (node, child) = unsafe { (&*way.at, &*below) };
        let version = child.begin();
        if !node.unchanged(way.version) {
            return self.top();
        }
        Descent { at: below, version, next: NextMove::Choose }
    }
}

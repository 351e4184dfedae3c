//! The writer: putting a key in, splitting nodes.
//!
//! A split first writes the new right node, then makes its parents know it, from the top down,
//! and only then takes the moved entries out of the left node. In between both hold them, so at
//! every moment a reader finds every key, and only one node at a time is locked, for as long as
//! it takes to write it.
//!
//! The user's comparator is asked only while no node is locked, and before the first node is changed
//! that readers can reach: when it panics the key is not in the index, and the rest of it is as it
//! was. Where it contradicts itself keys get wrong places; but what the tree is made of (levels, which
//! leaf follows which, how many children a node has) depends on no answer of it.

use std::ptr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::arena::Arena;
use super::image::Image;
use super::node::{INNER, InnerNode, LEAF, Leaf, NodeHeader};
use super::search::LeafPlace;
use super::{Index, KeySource};

/// Inner nodes from the root down, each with the child that was taken. A tree of 2^32 keys whose
/// nodes have but two children is no deeper.
struct Path<'a> {
    steps: [Option<(&'a InnerNode, usize)>; 32],
    len: usize,
}

/// What only the writer knows.
pub(super) struct IndexWriter {
    arena: Arena,
    /// The leaf of the largest keys.
    tail: *const Leaf,
    /// Where the last new key went: tells runs of ascending or descending keys.
    last: *const Leaf,
    last_position: usize,
    /// Whether the last new key was the largest of all.
    appending: bool,
}

impl IndexWriter {
    pub(super) fn new(arena: Arena, first: *const Leaf) -> IndexWriter {
        IndexWriter { arena, tail: first, last: ptr::null(), last_position: 0, appending: false }
    }
}

impl Index {
    /// Stores a reference for `key`: what `make` returns, given the key's present reference. From
    /// then on the reference must resolve through `src` to this key.
    ///
    /// # Safety
    ///
    /// One call at a time: each call happens after the one before, and `make` does not call it.
    #[inline]
    pub unsafe fn upsert<S: KeySource>(
        &self,
        src: &S,
        key: &[u8],
        make: impl FnOnce(Option<u32>) -> u32,
    ) {
        let writer = self.writer.get();
        // SAFETY: no other call runs; the borrow ends here.
        let (appending, tail) = unsafe { ((*writer).appending, &*(*writer).tail) };
        let mut leaf = tail;
        let mut place = None;
        if appending {
            // A key above the first one of the last leaf belongs there.
            place = Some(self.find(leaf, src, key, leaf.entries())).filter(|p| p.position > 0);
        }
        let place = place.unwrap_or_else(|| {
            leaf = self.way_to(src, key, |_, _| ());
            self.find(leaf, src, key, leaf.entries())
        });
        if let Some(slot) = place.slot {
            let r = make(Some(leaf.refs[slot].load(Acquire)));
            leaf.refs[slot].store(r, Release);
            return;
        }
        let r = make(None);
        // SAFETY: no other call runs, and `make` has returned.
        let writer = unsafe { &mut *writer };
        self.insert(writer, src, leaf, &place, key, r);
        self.len.store(self.len.load(Relaxed) + 1, Relaxed);
    }

    /// Compares keys as [`upsert`](Index::upsert) of `key` would, a split included, and maybe some more.
    ///
    /// # Safety
    ///
    /// As for `upsert`.
    pub unsafe fn rehearse<S: KeySource>(&self, src: &S, key: &[u8]) {
        let writer = self.writer.get();
        // SAFETY: no other call runs; the borrow ends here.
        let (appending, tail) = unsafe { ((*writer).appending, &*(*writer).tail) };
        if appending {
            self.find(tail, src, key, tail.entries());
        }
        let leaf = self.way_to(src, key, |_, _| ());
        self.find(leaf, src, key, leaf.entries());
    }

    /// Adds a new key to its leaf.
    #[inline]
    fn insert<S: KeySource>(
        &self,
        writer: &mut IndexWriter,
        src: &S,
        leaf: &Leaf,
        place: &LeafPlace,
        key: &[u8],
        r: u32,
    ) {
        let entries = leaf.entries();
        let (len, position) = (entries.len(), place.position);
        if len == LEAF {
            self.split(writer, src, leaf, position, key, r);
            return;
        }
        if place.fits {
            // The slot is in no reader's permutation yet.
            leaf.heads[len].store(self.heads.head(key, leaf.header.prefix.len()), Relaxed);
            leaf.refs[len].store(r, Release);
            leaf.set_entries(entries.inserted(position));
        } else {
            self.rewrite(src, leaf, position, key, r);
        }
        writer.last = leaf;
        writer.last_position = position;
        writer.appending = position == len && ptr::eq(leaf, writer.tail);
    }

    /// Adds a key that has not the leaf's prefix.
    #[cold]
    fn rewrite<S: KeySource>(&self, src: &S, leaf: &Leaf, position: usize, key: &[u8], r: u32) {
        let image = if leaf.entries().len() == 0 {
            Image::one(self.heads, key, r)
        } else {
            let mut image = Image::of_leaf(leaf);
            image.add(self.heads, src, position, key, r);
            image
        };
        leaf.header.lock();
        image.write_leaf(leaf);
        leaf.header.unlock();
    }

    /// Adds a key to a full leaf: its larger keys go to a new one.
    #[inline(never)]
    fn split<S: KeySource>(
        &self,
        writer: &mut IndexWriter,
        src: &S,
        leaf: &Leaf,
        position: usize,
        key: &[u8],
        r: u32,
    ) {
        let mut left = Image::of_leaf(leaf);
        left.add(self.heads, src, position, key, r);
        // Keys that come in order fill their leaves; what lies behind moves out of their way.
        let again = ptr::eq(writer.last, leaf);
        let at = if again && position == writer.last_position + 1 {
            position
        } else if again && position == 0 && writer.last_position == 0 {
            1
        } else {
            left.len / 2
        };
        let crowded = left.is_crowded();
        let mut right = left.split_off(at);
        if crowded {
            left.lengthen(self.heads, src);
            right.lengthen(self.heads, src);
        }

        let new = writer.arena.alloc(Leaf::new());
        // SAFETY: nodes live as long as the index.
        let new = unsafe { &*new };
        new.set_next(leaf.next());
        new.set_prev(leaf);
        right.write_leaf(new);

        let mut path = Path { steps: [None; 32], len: 0 };
        self.way_to(src, key, |inner, child| {
            path.steps[path.len] = Some((inner, child));
            path.len += 1;
        });
        let steps = &path.steps[..path.len];
        self.raise(writer, src, steps, node_of(leaf), right.refs[0], node_of(new));
        #[cfg(all(test, not(esker_models)))] // Let readers see both leaves with the moved entries.
        std::thread::yield_now();

        leaf.header.lock();
        leaf.set_next(new);
        left.write_leaf(leaf);
        leaf.header.unlock();
        // SAFETY: nodes live as long as the index; the last leaf's next one is null.
        if let Some(after) = unsafe { new.next().as_ref() } {
            after.set_prev(new);
        }

        self.memory.store(writer.arena.bytes(), Relaxed);
        if ptr::eq(leaf, writer.tail) {
            writer.tail = new;
        }
        let in_left = position < at;
        writer.last = if in_left { leaf } else { new };
        writer.last_position = if in_left { position } else { position - at };
        writer.appending =
            !in_left && ptr::eq(new, writer.tail) && writer.last_position + 1 == right.len;
    }

    /// Makes the parent of `left` know its new right neighbour, whose first key is `separator`'s.
    fn raise<S: KeySource>(
        &self,
        writer: &mut IndexWriter,
        src: &S,
        path: &[Option<(&InnerNode, usize)>],
        left: *mut NodeHeader,
        separator: u32,
        right: *mut NodeHeader,
    ) {
        let key = src.key(separator);
        let Some((&Some((inner, position)), above)) = path.split_last() else {
            // SAFETY: nodes live as long as the index.
            let level = unsafe { (*left).level };
            let root = writer.arena.alloc(InnerNode::new(level + 1));
            // SAFETY: as above.
            let root = unsafe { &*root };
            root.children[0].store(left, Release);
            root.children[1].store(right, Release);
            Image::one(self.heads, key, separator).write_inner(root);
            self.root.store(node_of(root), Release);
            return;
        };

        let mut low = Image::of_inner(inner);
        low.add(self.heads, src, position, key, separator);
        let mut children = [ptr::null_mut(); INNER + 2];
        for (child, from) in children.iter_mut().zip(&inner.children[..low.len]) {
            *child = from.load(Acquire);
        }
        children.copy_within(position + 1..low.len, position + 2);
        children[position + 1] = right;

        if low.len > INNER {
            // As with leaves, keys in order leave full nodes behind.
            let at = match position {
                0 => 1,
                INNER => INNER - 1,
                _ => low.len / 2,
            };
            let crowded = low.is_crowded();
            let mut high = low.split_off(at);
            let middle = high.pop_front();
            if crowded {
                low.lengthen(self.heads, src);
                high.lengthen(self.heads, src);
            }
            let new = writer.arena.alloc(InnerNode::new(inner.header.level));
            // SAFETY: nodes live as long as the index.
            let new = unsafe { &*new };
            write_children(new, &children[at + 1..][..=high.len]);
            high.write_inner(new);
            self.raise(writer, src, above, node_of(inner), middle, node_of(new));
        }
        inner.header.lock();
        write_children(inner, &children[..=low.len]);
        low.write_inner(inner);
        inner.header.unlock();
    }

    /// The leaf for `key`, reached without the checks of a reader: nobody else changes anything.
    #[inline]
    fn way_to<'a, S: KeySource>(
        &'a self,
        src: &S,
        key: &[u8],
        mut step: impl FnMut(&'a InnerNode, usize),
    ) -> &'a Leaf {
        let mut at = self.root.load(Relaxed).cast_const();
        loop {
            // SAFETY: nodes live as long as the index.
            let header: &NodeHeader = unsafe { &*at };
            if header.level == 0 {
                // SAFETY: a node of level 0 is a leaf, allocated as one.
                return unsafe { &*at.cast::<Leaf>() };
            }
            // SAFETY: a node of a level above 0 is an inner node, allocated as one.
            let inner = unsafe { &*at.cast::<InnerNode>() };
            let child = self.child(inner, src, key);
            step(inner, child);
            at = inner.children[child].load(Relaxed);
            super::node::prefetch(at);
        }
    }
}

/// A pointer to a whole leaf or inner node, as nodes refer to each other. (One made from a
/// reference to the header would not be good for the rest of the node.)
fn node_of<T>(node: &T) -> *mut NodeHeader {
    ptr::from_ref(node).cast_mut().cast()
}

fn write_children(inner: &InnerNode, children: &[*mut NodeHeader]) {
    for (to, &child) in inner.children.iter().zip(children) {
        to.store(child, Release);
    }
}

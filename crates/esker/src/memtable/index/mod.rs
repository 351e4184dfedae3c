//! The memtable's ordered index: a B+-tree from user key to a 32-bit reference.
//!
//! Keys are not stored. A reference resolves to its key through a [`KeySource`] (the log); a node
//! keeps eight bytes of each key, its *head*, taken after the bytes that all keys of the node
//! share, and these nearly always decide a comparison without touching the log.
//!
//! One writer at a time changes the tree. Readers take no lock and write nothing: a plain insert
//! is published by one release store of the leaf's permutation word, and everything that moves
//! entries (a split, a change of the shared prefix) happens inside a sequence lock that makes the
//! readers of the touched nodes start again. Nothing is ever removed and no node is freed before
//! the index, so a stale pointer always leads to a valid node.

mod arena;
mod cursor;
mod descend;
mod image;
mod insert;
#[cfg(all(test, esker_models))]
mod models;
mod node;
mod prefix;
mod search;
#[cfg(test)]
mod tests;

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::*};

use crate::key::KeyOrder;
use crate::util::abbreviated_key::Heads;
use crate::util::sync::AtomicPtr;
use arena::Arena;
pub(crate) use cursor::IndexCursor;
use insert::IndexWriter;
use node::{Leaf, NodeHeader};

/// Resolves references to keys.
pub(crate) trait KeySource {
    /// The key of a reference that was handed to the index. It must stay resolvable, to the same
    /// key, as long as the index is used: the tree keeps references that `upsert` has replaced.
    fn key(&self, r: u32) -> &[u8];
}

/// An ordered map from user key to a reference. One writer, any number of readers.
pub(crate) struct Index {
    /// The top node. Changes when it splits.
    root: AtomicPtr<NodeHeader>,
    /// The leaf of the smallest keys: it never changes, since a split moves the larger half.
    first: *const Leaf,
    heads: Heads,
    order: KeyOrder,
    /// Tells indexes apart, so that a cursor is never continued over another one.
    id: u64,
    len: AtomicUsize,
    memory: AtomicUsize,
    /// The writer's own: readers never look at it.
    writer: UnsafeCell<IndexWriter>,
}

// SAFETY: what readers touch is atomic or never changes after `new`; `writer` is used by `upsert`
// alone, whose contract is one caller at a time.
unsafe impl Send for Index {}
// SAFETY: as above.
unsafe impl Sync for Index {}

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

impl Index {
    /// An empty index.
    pub fn new(order: KeyOrder) -> Index {
        let mut arena = Arena::new();
        let first: *const Leaf = arena.alloc(Leaf::new());
        let memory = AtomicUsize::new(arena.bytes());
        Index {
            root: AtomicPtr::new(first.cast_mut().cast()),
            first,
            heads: Heads::new(&order),
            order,
            id: NEXT_ID.fetch_add(1, Relaxed),
            len: AtomicUsize::new(0),
            memory,
            writer: UnsafeCell::new(IndexWriter::new(arena, first)),
        }
    }

    /// The reference of `key`.
    #[inline]
    pub fn get<S: KeySource>(&self, src: &S, key: &[u8]) -> Option<u32> {
        loop {
            let (leaf, version) = self.leaf_of(src, key);
            let slot = self.find_equal(leaf, src, key, leaf.entries());
            let found = slot.map(|slot| leaf.refs[slot].load(Acquire));
            if leaf.header.unchanged(version) {
                return found;
            }
        }
    }

    /// Number of keys.
    #[inline]
    pub fn len(&self) -> usize {
        self.len.load(Relaxed)
    }

    /// Bytes taken from the allocator.
    pub fn memory(&self) -> usize {
        self.memory.load(Relaxed) + size_of::<Index>()
    }
}

//! The nodes and their sequence lock.

use std::ptr;
use std::sync::atomic::Ordering::*;

use super::prefix::Prefix;
use crate::util::sync::{AtomicPtr, AtomicU32, AtomicU64, atomics, fence, spin_loop, yield_now};

/// Entries of a leaf: what a 64-bit permutation word can order. (Few in a model, which tries every
/// interleaving of the loads and stores of them.)
pub(super) const LEAF: usize = if cfg!(all(test, esker_models)) { 3 } else { 15 };
/// How a search of an inner node narrows it down.
pub(super) const HALVES: &[usize] =
    if cfg!(all(test, esker_models)) { &[2, 1] } else { &[16, 8, 4, 2, 1] };
/// Separators of an inner node: what the halvings tell apart.
pub(super) const INNER: usize = 2 * HALVES[0] - 1;

/// What leaves and inner nodes begin with, so that a pointer to either is one to this.
#[repr(C)]
pub(super) struct NodeHeader {
    /// Odd while the node's entries are being moved.
    version: AtomicU32,
    /// 0 for a leaf; the children of level n are of level n - 1. Never changes.
    pub(super) level: u32,
    pub(super) prefix: Prefix,
}

impl NodeHeader {
    /// Starts a read: the version of a node that is not being changed.
    #[inline]
    pub(super) fn begin(&self) -> u32 {
        let version = self.version.load(Acquire);
        if version & 1 == 0 { version } else { self.wait() }
    }

    /// A change takes well under a microsecond, unless its thread lost the processor.
    #[cold]
    fn wait(&self) -> u32 {
        for round in 0u32.. {
            let version = self.version.load(Acquire);
            if version & 1 == 0 {
                return version;
            }
            if round < 64 && !cfg!(miri) { spin_loop() } else { yield_now() }
        }
        unreachable!()
    }

    /// Ends a read: whether all that was read since `begin` belongs together.
    #[inline]
    pub(super) fn unchanged(&self, version: u32) -> bool {
        fence(Acquire);
        self.version.load(Relaxed) == version
    }

    /// Makes readers wait. Only the writer.
    pub(super) fn lock(&self) {
        let version = self.version.load(Relaxed);
        debug_assert!(version & 1 == 0);
        self.version.store(version.wrapping_add(1), Relaxed);
        fence(Release);
    }

    /// Lets readers in again. Only the writer.
    pub(super) fn unlock(&self) {
        let version = self.version.load(Relaxed);
        debug_assert!(version & 1 == 1);
        self.version.store(version.wrapping_add(1), Release);
    }
}

/// The order of a leaf's slots: 15 slot numbers of four bits, the smallest key's lowest, and the
/// number of entries on top. Slots are filled in their order, so the first `len` are the live ones.
#[derive(Clone, Copy)]
pub(super) struct Permutation(u64);

impl Permutation {
    /// Slot i at position i.
    pub(super) fn sorted(len: usize) -> Permutation {
        Permutation(0x0EDC_BA98_7654_3210 | (len as u64) << 60)
    }

    #[inline]
    pub(super) fn len(self) -> usize {
        (self.0 >> 60) as usize
    }

    /// The slot at a position.
    #[inline]
    pub(super) fn slot(self, position: usize) -> usize {
        (self.0 >> (4 * position) & 15) as usize
    }

    /// With the slot `len` put in at a position.
    #[inline]
    pub(super) fn inserted(self, position: usize) -> Permutation {
        let len = self.len();
        debug_assert!(len < LEAF && position <= len);
        let below = (1 << (4 * position)) - 1;
        let slots = self.0 & !(15 << 60);
        // What lies above `len` is of no meaning and may be shifted into the count's place.
        let moved = (slots & !below) << 4 & !(15 << 60);
        let slots = slots & below | (len as u64) << (4 * position) | moved;
        Permutation(slots | (len as u64 + 1) << 60)
    }
}

/// A leaf: four cache lines.
#[repr(C, align(64))]
pub(super) struct Leaf {
    pub(super) header: NodeHeader,
    entries: AtomicU64,
    next: AtomicPtr<Leaf>,
    /// The leaf before, or one further back while a split is under way.
    prev: AtomicPtr<Leaf>,
    pub(super) heads: [AtomicU64; LEAF],
    /// Stored with release and loaded with acquire, always: whoever sees a reference may read its
    /// key. A slot that was live once holds a valid reference for ever. The last one is not used:
    /// it makes every four-bit number a valid index.
    pub(super) refs: [AtomicU32; LEAF + 1],
}

#[cfg(not(all(test, esker_models)))]
const _: () = assert!(size_of::<Leaf>() == 256);

impl Leaf {
    pub(super) fn new() -> Leaf {
        Leaf {
            header: NodeHeader { version: AtomicU32::new(0), level: 0, prefix: Prefix::new() },
            entries: AtomicU64::new(Permutation::sorted(0).0),
            next: AtomicPtr::new(ptr::null_mut()),
            prev: AtomicPtr::new(ptr::null_mut()),
            heads: atomics![AtomicU64::new(0); LEAF],
            refs: atomics![AtomicU32::new(0); LEAF + 1],
        }
    }

    #[inline]
    pub(super) fn entries(&self) -> Permutation {
        Permutation(self.entries.load(Acquire))
    }

    /// Publishes the entries of these slots.
    #[inline]
    pub(super) fn set_entries(&self, entries: Permutation) {
        self.entries.store(entries.0, Release);
    }

    /// The leaf of the next larger keys, or null.
    #[inline]
    pub(super) fn next(&self) -> *const Leaf {
        self.next.load(Acquire)
    }

    pub(super) fn set_next(&self, next: *const Leaf) {
        self.next.store(next.cast_mut(), Release);
    }

    /// A leaf of smaller keys from which `next` leads here, in most cases directly; null for the
    /// first leaf.
    #[inline]
    pub(super) fn prev(&self) -> *const Leaf {
        self.prev.load(Acquire)
    }

    pub(super) fn set_prev(&self, prev: *const Leaf) {
        self.prev.store(prev.cast_mut(), Release);
    }
}

/// An inner node: `len` separators, sorted, and one child more. Child i holds the keys below
/// separator i, and from separator i - 1 on. Changes only inside the sequence lock.
#[repr(C, align(64))]
pub(super) struct InnerNode {
    pub(super) header: NodeHeader,
    len: AtomicU32,
    /// The largest number after the last one, so that a search needs no length.
    pub(super) heads: [AtomicU64; INNER],
    /// As in a leaf. A separator is the first key its right side had, and still has.
    pub(super) refs: [AtomicU32; INNER],
    pub(super) children: [AtomicPtr<NodeHeader>; INNER + 1],
}

impl InnerNode {
    pub(super) fn new(level: u32) -> InnerNode {
        InnerNode {
            header: NodeHeader { version: AtomicU32::new(0), level, prefix: Prefix::new() },
            len: AtomicU32::new(0),
            heads: atomics![AtomicU64::new(u64::MAX); INNER],
            refs: atomics![AtomicU32::new(0); INNER],
            children: atomics![AtomicPtr::new(ptr::null_mut()); INNER + 1],
        }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len.load(Acquire) as usize
    }

    /// Published after the separators and children it counts, so that a reader in the middle of
    /// a change finds valid ones, if not matching ones.
    pub(super) fn set_len(&self, len: usize) {
        self.len.store(len as u32, Release);
    }
}

/// Starts loading the first lines of a node: all of a leaf, and most of what a search of an inner
/// node may touch.
#[inline]
pub(super) fn prefetch<T>(node: *const T) {
    for line in 0..4 {
        crate::util::prefetch(node.cast::<u8>().wrapping_add(64 * line));
    }
}

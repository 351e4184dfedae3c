//! What readers see, published by few and read by many: a keyspace's super version and the last sequence.
//!
//! A reader needs both, and gets them one after the other without a lock. In which order decides
//! what can go wrong in between:
//!
//! - a write publishes the super version that its memtable is in (if that is new), then its entry, then its
//!   sequence. So whoever sees a sequence finds a super version with every entry up to it, if it looks for
//!   the super version afterwards;
//! - a compaction drops versions that are hidden at the present sequence, then publishes the super version without
//!   them. So whoever sees a super version must read at a sequence that it looks for afterwards, or one
//!   that a snapshot holds.
//!
//! `store/models.rs` tries all interleavings of both.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use crate::key::Seq;
use crate::util::sync::{ArcSwap, AtomicU64, Guard, Mutex};

/// The sequence of the last commit that readers see.
pub(crate) struct Visible(AtomicU64);

impl Visible {
    pub(crate) fn new(seq: Seq) -> Visible {
        Visible(AtomicU64::new(seq))
    }

    #[inline]
    pub(crate) fn get(&self) -> Seq {
        self.0.load(Ordering::Acquire)
    }

    /// Release: whoever sees the sequence sees the entries stored before it.
    #[inline]
    pub(crate) fn set(&self, seq: Seq) {
        self.0.store(seq, Ordering::Release);
    }
}

/// The present super version, and those before it that a reader may still hold.
pub(crate) struct Published<V> {
    present: ArcSwap<V>,
    before: Mutex<Vec<Weak<V>>>,
}

impl<V> Published<V> {
    pub(crate) fn new(super_version: V) -> Published<V> {
        Published { present: ArcSwap::from_pointee(super_version), before: Mutex::new(Vec::new()) }
    }

    /// The present super version, without touching a shared counter.
    #[inline]
    pub(crate) fn load(&self) -> Guard<Arc<V>> {
        self.present.load()
    }

    /// The present super version, to be held for longer.
    pub(crate) fn load_full(&self) -> Arc<V> {
        self.present.load_full()
    }

    /// Publishes what `next` makes of the present super version.
    pub(crate) fn publish(&self, next: impl FnMut(&Arc<V>) -> V) {
        // Under the lock, so that no super version is missing from the list once another has followed it.
        let mut before = self.before.lock();
        let left = self.present.rcu(next);
        before.retain(|v| v.strong_count() > 0);
        before.push(Arc::downgrade(&left));
    }

    /// The super versions before the present one that a reader may hold.
    pub(crate) fn before(&self) -> Vec<Weak<V>> {
        let mut before = self.before.lock();
        before.retain(|v| v.strong_count() > 0);
        before.clone()
    }

    /// A super version and a sequence for reading one key. The super version misses nothing that was published before
    /// this call; of what is published meanwhile it may miss the newest, but then the version
    /// before that is in it.
    #[inline]
    pub(crate) fn now(&self, visible: &Visible) -> (Guard<Arc<V>>, Seq) {
        let super_version = self.load();
        let seq = visible.get();
        (super_version, seq)
    }

    /// The present super version, if a reader at `seq` finds in it what it found in any before: if nobody wrote since.
    pub(crate) fn unchanged_since(&self, visible: &Visible, seq: Seq) -> Option<Arc<V>> {
        let super_version = self.load_full();
        // Looked for afterwards: what compactions dropped by then was hidden at this sequence too.
        (visible.get() == seq).then_some(super_version)
    }

    /// A super version and a sequence that belong together: the super version holds every version that a reader at
    /// the sequence can see, and no entry up to it is missing.
    pub(crate) fn consistent(&self, visible: &Visible) -> (Arc<V>, Seq) {
        loop {
            let super_version = self.load_full();
            let seq = visible.get();
            // Had a memtable been added in between, writes in it up to `seq` would be missing.
            if Arc::ptr_eq(&super_version, &self.load()) {
                return (super_version, seq);
            }
        }
    }
}

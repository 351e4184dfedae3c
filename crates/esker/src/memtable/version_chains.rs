//! Older versions of overwritten keys.
//!
//! The index has one reference a key. While a key has one version, that is the record itself; an
//! overwrite makes a node here of the new record and the reference that was there before, and the
//! index refers to the node. So readers at an older sequence walk back from newest to oldest.

use std::sync::atomic::Ordering;

use crate::util::sync::{AtomicU32, AtomicU64, OnceLock};

/// Marks a reference to a node rather than to a record.
pub(super) const NODE: u32 = 1 << 31;
/// No record's reference has it: they count in units of eight bytes.
const _: () = assert!(crate::wal::LARGEST_SEGMENT / 8 <= NODE as u64);
/// Nodes in the first chunk; every further chunk is twice as long.
const FIRST: u32 = if cfg!(all(test, esker_models)) { 2 } else { 32 };
/// Enough chunks for 2^31 nodes.
const CHUNKS: usize = 27;

/// An arena of nodes: one writer, any number of readers.
#[derive(Debug, Default)]
pub(super) struct Chains {
    chunks: [OnceLock<Box<[AtomicU64]>>; CHUNKS],
    len: AtomicU32,
}

impl Chains {
    /// Adds a node of a record and what was there before it; returns the reference to it. The
    /// reference must reach readers through a release store.
    pub(super) fn push(&self, newest: u32, before: u32) -> u32 {
        let at = self.len.load(Ordering::Relaxed);
        assert!(at < NODE, "more versions than a segment can hold");
        let (chunk, offset) = place(at);
        let slots = self.chunks[chunk]
            .get_or_init(|| (0..(FIRST as usize) << chunk).map(|_| AtomicU64::new(0)).collect());
        slots[offset].store(u64::from(newest) | u64::from(before) << 32, Ordering::Relaxed);
        self.len.store(at + 1, Ordering::Relaxed);
        at | NODE
    }

    /// The newest record that `r` stands for, and the reference to what was before it.
    #[inline]
    pub(super) fn resolve(&self, r: u32) -> (u32, Option<u32>) {
        if r & NODE == 0 {
            return (r, None);
        }
        let (chunk, offset) = place(r & !NODE);
        let slots = self.chunks[chunk].get().expect("a published reference leads to a node");
        let node = slots[offset].load(Ordering::Relaxed);
        (node as u32, Some((node >> 32) as u32))
    }

    /// Bytes in use.
    pub(super) fn memory(&self) -> usize {
        self.chunks.iter().filter_map(|c| c.get()).map(|c| c.len() * 8).sum()
    }
}

/// Chunk and offset of node `at`.
#[inline]
fn place(at: u32) -> (usize, usize) {
    let chunk = (at / FIRST + 1).ilog2();
    let before = FIRST * ((1 << chunk) - 1);
    (chunk as usize, (at - before) as usize)
}

#[cfg(all(test, esker_models))]
mod models {
    use std::sync::Arc;

    use super::*;
    use crate::util::sync::explore;

    /// The reference to the newest node is published as the index does it: a release store, an
    /// acquire load.
    #[test]
    fn a_published_reference_leads_back_through_all_versions() {
        explore("chains", 3, || {
            let shared = Arc::new((Chains::default(), AtomicU32::new(0)));
            let reader = {
                let shared = Arc::clone(&shared);
                loom::thread::spawn(move || {
                    let (chains, newest) = &*shared;
                    let mut at = newest.load(Ordering::Acquire);
                    let mut expected = chains.resolve(at).0;
                    while expected > 0 {
                        let (n, before) = chains.resolve(at);
                        assert_eq!(n, expected);
                        at = before.expect("there is an older one");
                        expected -= 1;
                    }
                })
            };
            let (chains, newest) = &*shared;
            for n in 1..=4 {
                let node = chains.push(n, newest.load(Ordering::Relaxed));
                newest.store(node, Ordering::Release);
            }
            reader.join().unwrap();
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_lead_back_through_all_versions() {
        let chains = Chains::default();
        let mut r = 0;
        for n in 1..10_000u32 {
            r = chains.push(n, r);
        }
        for n in (1..10_000).rev() {
            let (newest, before) = chains.resolve(r);
            assert_eq!(newest, n);
            r = before.expect("there is an older one");
        }
        assert_eq!(chains.resolve(r), (0, None));
    }
}

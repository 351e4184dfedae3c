//! When a walk takes what comes next some entries at a time ([`ChunkMerge`](super::chunk_merge)), and where among it it is.

use super::chunk_merge::{MOST, Merged};
use crate::Result;
use crate::entry_chunk::{EntryKind, EntryPlace};

/// So many steps from entry to entry make a walk take chunks: a search and ten entries are over before that is worth it.
const AFTER: u32 = if cfg!(test) { 2 } else { 16 };
/// As many where chunks have ended soon, again and again.
const AFTER_MOST: u32 = if cfg!(test) { 4 } else { 512 };
/// Chunks of fewer entries have ended soon.
const FEW: u32 = 64;

/// Where a walk is in what was merged of chunks, or how far from taking any.
pub(super) struct ChunkWalk {
    /// Steps since the walk was elsewhere, or took chunks last; while it does, entries of them.
    walked: u32,
    /// So many steps make it take chunks.
    after: u32,
    forward: bool,
    merged: Vec<Merged>,
    len: usize,
    at: usize,
}

impl ChunkWalk {
    pub(super) const fn new() -> ChunkWalk {
        let merged = Vec::new();
        ChunkWalk { walked: 0, after: AFTER, forward: true, merged, len: 0, at: 0 }
    }

    /// The walk begins anew.
    #[inline]
    pub(super) fn restart(&mut self) {
        (self.walked, self.after) = (0, AFTER);
    }

    /// Counts a step by a single entry. Whether chunks are worth a trial.
    #[inline(always)]
    pub(super) fn are_due(&mut self) -> bool {
        self.walked += 1;
        self.walked >= self.after
    }

    /// The walk takes chunks from here on.
    pub(super) fn begin(&mut self, forward: bool) {
        (self.walked, self.forward) = (0, forward);
        self.merged.resize(MOST, Merged::NONE);
    }

    /// Which way it goes.
    pub(super) fn forward(&self) -> bool {
        self.forward
    }

    /// Takes what `merge` gives in place of what it has, so many entries.
    pub(super) fn fill(
        &mut self,
        merge: impl FnOnce(&mut [Merged]) -> Result<usize>,
    ) -> Result<()> {
        (self.at, self.len) = (0, 0);
        self.len = merge(&mut self.merged)?;
        self.walked = self.walked.saturating_add(self.len as u32);
        Ok(())
    }

    /// On by one entry; whether it is there.
    pub(super) fn advance(&mut self) -> bool {
        self.at += 1;
        self.at < self.len
    }

    /// Whether there is no entry.
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The walk has no chunks, or no more of them.
    pub(super) fn end(&mut self, possible: bool) {
        let soon = self.walked < FEW;
        self.after = match possible {
            true if soon => (2 * self.after).min(AFTER_MOST),
            true => AFTER,
            false => AFTER_MOST,
        };
        self.walked = 0;
    }

    /// The entry where the walk is.
    #[inline]
    pub(super) fn current(&self) -> &Merged {
        &self.merged[self.at]
    }

    /// On by one entry, if the next one is there, and its value as it was put.
    #[inline(always)]
    pub(super) fn next_raw(&mut self, forward: bool) -> Option<&EntryPlace> {
        let next = self.at + 1;
        if forward != self.forward || next >= self.len {
            return None;
        }
        let place = &self.merged.get(next)?.place;
        if place.kind != EntryKind::Raw {
            return None;
        }
        self.at = next;
        Some(place)
    }
}

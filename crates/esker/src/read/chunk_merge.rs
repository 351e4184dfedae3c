//! The merge of a long walk: what each source has next is taken from it some entries at a time
//! ([`EntryChunk`]), and the chunks are merged by abbreviated keys.
//!
//! A reader at one sequence is shown the newest version that it sees of each key. A few deletions are passed here; where
//! more follow one another, [`VisibleCursor`](super::visible) goes on, which learns where dead keys lie.

use std::cmp::Ordering;

use super::source::SourceCursor;
use crate::Result;
use crate::entry_chunk::{EntryChunk, EntryKind, EntryPlace};
use crate::key::{InternalCursor as _, KeyOrder, Seq};
use crate::util::abbreviated_key::{Heads, begins_with, common_prefix};

/// A source with an entry to come.
#[derive(Clone, Copy)]
struct ChunkFront {
    word: u64,
    source: u32,
}

/// An entry that a walk shows, and the source it is from.
#[derive(Clone, Copy)]
pub(super) struct Merged {
    pub(super) place: EntryPlace,
    pub(super) source: u32,
}

impl Merged {
    pub(super) const NONE: Merged = Merged { place: EntryPlace::NOWHERE, source: 0 };
}

/// Deletions in a row that are passed here.
const DEAD: u32 = 3;
/// Entries that are merged at a time, at most.
pub(super) const MOST: usize = 32;
/// After so many decisions by whole keys the prefix is measured anew.
const REMEASURE_AFTER: u32 = if cfg!(test) { 8 } else { 32 };
/// So much shorter than it could be is the prefix: the next keys may share a little less.
const ROOM: usize = 1;

pub(super) struct ChunkMerge {
    heads: Heads,
    forward: bool,
    seq: Seq,
    /// What all keys in the chunks begin with.
    prefix: Vec<u8>,
    /// One for each source.
    chunks: Vec<EntryChunk>,
    /// The sources that have more, in the order of their entries.
    fronts: Vec<ChunkFront>,
    ties: u32,
    /// Whether the first entry was merged, and its older versions and it are to be passed.
    merged: bool,
    /// The place among the fronts of the one whose chunk is used up. It is filled when nobody looks at its entries any more.
    used_up: Option<usize>,
    /// Deletions that were passed since the last entry.
    dead: u32,
}

impl ChunkMerge {
    /// Of an order of bytes.
    pub(super) fn new(order: &KeyOrder, sources: usize) -> ChunkMerge {
        let chunks = (0..sources).map(|_| EntryChunk::new()).collect();
        ChunkMerge {
            heads: Heads::new(order),
            forward: true,
            seq: 0,
            prefix: Vec::new(),
            chunks,
            fronts: Vec::with_capacity(sources),
            ties: 0,
            merged: false,
            used_up: None,
            dead: 0,
        }
    }

    /// Begins where the sources are.
    pub(super) fn begin(&mut self, sources: &[SourceCursor], forward: bool, seq: Seq) {
        (self.forward, self.seq) = (forward, seq);
        (self.merged, self.used_up, self.dead) = (false, None, 0);
        self.fronts.clear();
        self.chunks.iter_mut().for_each(EntryChunk::restart);
        for (i, source) in sources.iter().enumerate() {
            source.ask_for_chunk(forward);
            if source.valid() {
                source.fill(forward, seq, &mut self.chunks[i]);
                self.fronts.push(ChunkFront { word: 0, source: i as u32 });
            }
        }
        self.measure();
        let mut fronts = std::mem::take(&mut self.fronts);
        fronts.sort_unstable_by(|a, b| a.word.cmp(&b.word).then_with(|| self.by_key(*a, *b)));
        self.fronts = fronts;
    }

    /// Moves the sources to where the merge is: each to its first entry that was not passed.
    pub(super) fn end(&mut self, sources: &mut [SourceCursor]) -> Result<()> {
        self.fronts.clear();
        for (source, chunk) in sources.iter_mut().zip(&mut self.chunks) {
            let passed = chunk.passed();
            chunk.clear();
            if passed > 0 {
                source.skip(self.forward, passed)?;
            }
        }
        Ok(())
    }

    /// Merges what comes next, as far as the chunks reach, and says how many entries that are: none at the end, and where so
    /// many deletions follow one another that there is something to learn of them. What was merged before is not looked at
    /// any more.
    #[inline(never)]
    pub(super) fn merge(
        &mut self,
        sources: &mut [SourceCursor],
        merged: &mut [Merged],
    ) -> Result<usize> {
        // Chunks are filled again before anything is merged, and what was merged earlier is not looked at any more: so no key in a
        // chunk's room is written over while somebody looks at it.
        loop {
            if let Some(at) = self.used_up.take() {
                self.refill(at, sources)?;
            }
            let len = self.merge_chunks(merged);
            if len > 0 || self.used_up.is_none() {
                return Ok(len);
            }
        }
    }

    /// Merges until a chunk is used up, or there is enough, or the end or too many deletions come.
    fn merge_chunks(&mut self, merged: &mut [Merged]) -> usize {
        let mut len = 0;
        while len < merged.len()
            && let Some(&first) = self.fronts.first()
        {
            if !self.merged {
                let place = &self.chunks[first.source as usize].current().place;
                let kind = place.kind;
                match kind {
                    EntryKind::Raw | EntryKind::Stored(_) => {
                        self.dead = 0;
                        merged[len].place = *place;
                        merged[len].source = first.source;
                        len += 1;
                    }
                    EntryKind::Deletion if self.dead == DEAD => break,
                    EntryKind::Deletion => self.dead += 1,
                    // It hides nothing.
                    EntryKind::Unseen if self.advance(0) => continue,
                    EntryKind::Unseen => break,
                }
                self.merged = true;
            }
            while let Some(&second) = self.fronts.get(1)
                && first.word == second.word
                && self.is_same_key(first, second)
            {
                if !self.advance(1) {
                    return len;
                }
            }
            if !self.advance(0) {
                break;
            }
        }
        len
    }

    #[inline(never)]
    fn is_same_key(&mut self, a: ChunkFront, b: ChunkFront) -> bool {
        self.ties += 1;
        let key = |f: ChunkFront| self.chunks[f.source as usize].current().place.key();
        key(a) == key(b)
    }

    /// On by an entry in the chunk at this place among the fronts. Whether there is one.
    #[inline(always)]
    fn advance(&mut self, at: usize) -> bool {
        let more = self.chunks[self.fronts[at].source as usize].advance();
        match more {
            true => self.sift(at),
            false => self.used_up = Some(at),
        }
        more
    }

    /// The front at this place has another entry: puts it where it belongs.
    #[inline(always)]
    fn sift(&mut self, mut at: usize) {
        if at == 0 {
            self.merged = false;
        }
        let source = self.fronts[at].source;
        let moved = ChunkFront { word: self.chunks[source as usize].current().word, source };
        while let Some(next) = self.fronts.get(at + 1).copied() {
            if next.word > moved.word
                || next.word == moved.word && self.by_key(next, moved) == Ordering::Greater
            {
                break;
            }
            self.fronts[at] = next;
            at += 1;
        }
        self.fronts[at] = moved;
    }

    /// The order of two fronts whose words are equal: by key, then the newer version first.
    #[inline(never)]
    fn by_key(&self, a: ChunkFront, b: ChunkFront) -> Ordering {
        let [x, y] = [a, b].map(|f| self.chunks[f.source as usize].current());
        let keys = x.place.key().cmp(y.place.key());
        let keys = if self.forward == (self.heads.flip == 0) { keys } else { keys.reverse() };
        keys.then_with(|| y.seq.cmp(&x.seq).then(a.source.cmp(&b.source)))
    }

    /// Takes the next chunk for the front at this place, which goes where there is none.
    fn refill(&mut self, at: usize, sources: &mut [SourceCursor]) -> Result<()> {
        let i = self.fronts[at].source as usize;
        let (source, chunk) = (&mut sources[i], &mut self.chunks[i]);
        let passed = chunk.passed();
        chunk.next();
        source.skip(self.forward, passed)?;
        if !source.valid() {
            self.fronts.remove(at);
            self.merged &= at > 0;
            return Ok(());
        }
        source.fill(self.forward, self.seq, chunk);
        // Keys between two that begin with the prefix do so too, and the one before did.
        let inside =
            self.chunks[i].rest().last().is_some_and(|e| begins_with(e.place.key(), &self.prefix));
        match inside && self.ties < REMEASURE_AFTER {
            true => self.abbreviate(i),
            false => self.measure(),
        }
        self.sift(at);
        Ok(())
    }

    /// Finds the prefix anew, and abbreviates all keys behind it.
    #[cold]
    fn measure(&mut self) {
        self.ties = 0;
        // In the memory it has.
        let mut prefix = std::mem::take(&mut self.prefix);
        prefix.clear();
        prefix.extend_from_slice(self.shared_prefix());
        self.prefix = prefix;
        for i in 0..self.chunks.len() {
            self.abbreviate(i);
        }
        for f in &mut self.fronts {
            f.word = self.chunks[f.source as usize].rest().first().map_or(0, |e| e.word);
        }
    }

    /// What the first and the last key of all chunks begin with, and so all keys, but for some bytes.
    fn shared_prefix(&self) -> &[u8] {
        let ends = self.chunks.iter().flat_map(|c| [c.rest().first(), c.rest().last()]);
        let mut ends = ends.flatten().map(|e| e.place.key());
        let Some(first) = ends.next() else { return &[] };
        let shared = ends.map(|key| common_prefix(first, key)).min().unwrap_or(0);
        &first[..shared.saturating_sub(ROOM)]
    }

    fn abbreviate(&mut self, i: usize) {
        let direction = if self.forward { 0 } else { !0 };
        let at = self.prefix.len();
        for e in self.chunks[i].rest_mut() {
            e.word = self.heads.head(e.place.key(), at) ^ direction;
        }
    }
}

#[cfg(test)]
#[path = "chunk_merge_tests.rs"]
mod tests;

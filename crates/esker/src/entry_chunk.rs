//! Entries of one sorted source that a walk is about to come to, found together.
//!
//! A source that is asked for one entry at a time finds out each time where it is, of which kind the entry is, and who
//! comes next. What lies side by side, in a leaf of a memtable or a block of a table, it gives at once for less.
//!
//! Everything here is written in its place, word by word. A processor waits where words that were just written are read
//! again two at a time, which is how a structure is moved.

use std::ptr::NonNull;
use std::slice;

use crate::key::Seq;

/// What an entry is to a reader that sees it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryKind {
    /// A put, its value as it was put.
    Raw,
    /// A put in a table, its value stored as this tag says.
    Stored(u8),
    Deletion,
    /// What the reader does not see, where it is the last of a chunk. So a walk comes to such entries, and to what lies behind
    /// them, in the order of the keys.
    Unseen,
}

/// Where the key and the value of an entry are.
#[derive(Clone, Copy)]
pub(crate) struct EntryPlace {
    key: *const u8,
    value: *const u8,
    key_len: u32,
    value_len: u32,
    pub(crate) kind: EntryKind,
}

// SAFETY: bytes that nobody writes to while this stands for them may be looked at from any thread.
unsafe impl Send for EntryPlace {}

impl EntryPlace {
    /// Of no bytes.
    pub(crate) const NOWHERE: EntryPlace = EntryPlace {
        key: NonNull::dangling().as_ptr(),
        value: NonNull::dangling().as_ptr(),
        key_len: 0,
        value_len: 0,
        kind: EntryKind::Deletion,
    };

    #[inline(always)]
    pub(crate) fn key(&self) -> &[u8] {
        // SAFETY: what `EntryChunk::push` was promised.
        unsafe { slice::from_raw_parts(self.key, self.key_len as usize) }
    }

    /// The value as it is stored.
    #[inline(always)]
    pub(crate) fn value(&self) -> &[u8] {
        // SAFETY: what `EntryChunk::push` was promised.
        unsafe { slice::from_raw_parts(self.value, self.value_len as usize) }
    }
}

/// The version of a key that a reader sees.
#[derive(Clone, Copy)]
pub(crate) struct ChunkEntry {
    /// The key, abbreviated, as whoever merges says.
    pub(crate) word: u64,
    pub(crate) seq: Seq,
    /// So many entries of the source lie before it, from the first of the chunk.
    offset: u32,
    pub(crate) place: EntryPlace,
}

impl ChunkEntry {
    const NONE: ChunkEntry = ChunkEntry { word: 0, seq: 0, offset: 0, place: EntryPlace::NOWHERE };
}

/// Entries of a walk's first chunks. They are twice as many in the next.
const FIRST: usize = 4;

/// Entries from where a source stands on, or back, and the place among them where a walk is.
pub(crate) struct EntryChunk {
    entries: [ChunkEntry; EntryChunk::MOST],
    len: usize,
    at: usize,
    /// So many entries of the source it covers, with those that the reader does not see.
    span: u32,
    /// So many it is to cover at most.
    most: usize,
    /// Keys that do not lie whole in what the source is over, and how much of it they take.
    keys: Vec<u8>,
    used: usize,
}

impl EntryChunk {
    /// Entries that a chunk has at most.
    pub(crate) const MOST: usize = 16;

    /// The walk begins anew: its first chunks are short, as it may end soon.
    pub(crate) fn restart(&mut self) {
        self.clear();
        self.most = FIRST;
    }

    /// So many entries of the source it is to cover at most.
    #[inline]
    pub(crate) fn most(&self) -> usize {
        self.most
    }

    pub(crate) const fn new() -> EntryChunk {
        let entries = [ChunkEntry::NONE; EntryChunk::MOST];
        EntryChunk { entries, len: 0, at: 0, span: 0, most: FIRST, keys: Vec::new(), used: 0 }
    }

    /// Makes room for keys of at most so many bytes, one at least.
    pub(crate) fn begin(&mut self, longest_key: usize) {
        /// Beyond this a chunk has fewer entries.
        const KEYS: usize = 4096;
        self.clear();
        let wanted = longest_key.max(KEYS.min(longest_key * Self::MOST));
        if self.keys.len() < wanted {
            self.keys.resize(wanted, 0);
        }
    }

    /// The next one may be longer.
    pub(crate) fn next(&mut self) {
        self.clear();
        self.most = (2 * self.most).min(Self::MOST);
    }

    pub(crate) fn clear(&mut self) {
        (self.len, self.at, self.span, self.used) = (0, 0, 0, 0);
    }

    /// Where a key of at most so many bytes may be written, if there is room for it.
    #[inline(always)]
    pub(crate) fn room_for_key(&mut self, len: usize) -> Option<*mut u8> {
        let left = self.keys.len().checked_sub(self.used)?;
        // SAFETY: no more is used than there is.
        (len <= left).then(|| unsafe { self.keys.as_mut_ptr().add(self.used) })
    }

    /// So many bytes of the room were used.
    #[inline(always)]
    pub(crate) fn use_room(&mut self, len: usize) {
        self.used += len;
    }

    /// Passes an entry that the reader does not see.
    #[inline(always)]
    pub(crate) fn skip(&mut self) {
        self.span += 1;
    }

    /// Adds the entry that the source has next, `MOST` of them at most.
    ///
    /// # Safety
    /// Key and value stay where they are, and nobody writes to them, until the chunk is begun again or dropped, or the
    /// source goes away.
    #[inline(always)]
    pub(crate) unsafe fn push(
        &mut self,
        (key, key_len): (*const u8, usize),
        value: &[u8],
        seq: Seq,
        kind: EntryKind,
    ) {
        let e = &mut self.entries[self.len];
        e.seq = seq;
        e.offset = self.span;
        e.place.key = key;
        e.place.key_len = key_len as u32;
        e.place.value = value.as_ptr();
        e.place.value_len = value.len() as u32;
        e.place.kind = kind;
        self.len += 1;
        self.span += 1;
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The entry where the walk is. Not behind the last.
    #[inline(always)]
    pub(crate) fn current(&self) -> &ChunkEntry {
        &self.entries[self.at]
    }

    /// On by one entry; whether there is one.
    #[inline(always)]
    pub(crate) fn advance(&mut self) -> bool {
        self.at += 1;
        self.at < self.len
    }

    /// From the current one on.
    #[inline]
    pub(crate) fn rest(&self) -> &[ChunkEntry] {
        &self.entries[self.at..self.len]
    }

    /// The same, to abbreviate their keys.
    #[inline]
    pub(crate) fn rest_mut(&mut self) -> &mut [ChunkEntry] {
        &mut self.entries[self.at..self.len]
    }

    /// So many entries the source has to move to be where the walk is.
    #[inline]
    pub(crate) fn passed(&self) -> u32 {
        self.rest().first().map_or(self.span, |e| e.offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever merges keeps places while keys that come later are written beside theirs.
    #[test]
    fn places_are_good_until_the_chunk_is_begun_again() {
        const SLACK: usize = 16;
        let mut chunk = EntryChunk::new();
        for round in 0..3u8 {
            chunk.next();
            chunk.begin(3 + SLACK);
            let values: Vec<[u8; 2]> = (0..20).map(|n| [n, round]).collect();
            let mut places = Vec::new();
            for (n, value) in values.iter().enumerate().take(chunk.most()) {
                let key = [round, n as u8, 7];
                let Some(room) = chunk.room_for_key(key.len() + SLACK) else { break };
                // SAFETY: there is room, and the value outlives the chunk's use.
                unsafe {
                    room.copy_from_nonoverlapping(key.as_ptr(), key.len());
                    chunk.use_room(key.len());
                    chunk.push((room, key.len()), value, n as u64, EntryKind::Raw);
                }
                places.push(chunk.rest()[n].place);
                chunk.rest_mut().iter_mut().for_each(|e| e.word += 1);
            }
            assert!(places.len() >= 4, "there is room for some");
            for (n, place) in places.iter().enumerate() {
                assert_eq!(place.key(), [round, n as u8, 7]);
                assert_eq!(place.value(), values[n]);
            }
            chunk.skip();
            while chunk.advance() {}
            assert_eq!(chunk.passed() as usize, places.len() + 1);
        }
    }
}

//! A walk over a table.
//!
//! The key stands whole in a buffer of the cursor; a step copies only the suffix behind the
//! prefix that the block's keys share. Values are not copied.

use std::sync::Arc;

use super::block::{self, Block, PAGE};
use super::block_index::HeadSearch;
use super::block_search::BlockSearch;
use super::hash_index::LINE_BYTES;
use super::memory::{self, SLACK};
use super::page_hints;
use super::read_ahead::ReadAhead;
use super::reader::Table;
use crate::entry_chunk::{EntryChunk, EntryKind};
use crate::error::Result;
use crate::key::{InternalCursor, Kind, Seq, Stored};

/// A cursor; keeps its table open.
pub(crate) struct TableCursor {
    /// The block it is in. Its memory is the table's, which `table` holds.
    block: Block<'static>,
    slot: u32,
    valid: bool,
    tag: u8,
    key_len: usize,
    payload: *const u8,
    payload_len: usize,
    seq: Seq,
    base_seq: Seq,
    /// Room for the longest key of the table and the slack.
    key: Vec<u8>,
    /// Number of the block, and its first page.
    ordinal: u32,
    page: u32,
    /// The search for a block, once it is begun.
    heads: Option<HeadSearch>,
    /// The block that a search is to enter: of this table at all times.
    located: u32,
    /// The search in that block, once it is entered.
    search: BlockSearch,
    read_ahead: ReadAhead,
    table: Arc<Table>,
}

// SAFETY: the pointers are to read-only memory of the table that the cursor owns a share of.
unsafe impl Send for TableCursor {}

impl Table {
    /// A walk over all entries.
    pub(crate) fn cursor(self: &Arc<Self>) -> TableCursor {
        self.cursor_with(Vec::new())
    }

    /// The same, with the memory that another cursor [had for its key](TableCursor::into_key).
    pub(crate) fn cursor_with(self: &Arc<Self>, key: Vec<u8>) -> TableCursor {
        TableCursor::new(self.clone(), key)
    }

    /// Marks a line of the hash index as used, and the page that it led to.
    #[cold]
    #[inline(never)]
    pub(super) fn mark_read(&self, line: u32, page: Option<u32>) {
        self.mark(self.layout.index + u64::from(line) * LINE_BYTES as u64);
        if let Some(page) = page {
            self.mark(u64::from(page) * PAGE as u64);
        }
    }

    /// Marks a block as used, and the entry of the block index that led to it.
    #[cold]
    #[inline(never)]
    pub(super) fn mark_sought(&self, block: u32) {
        let [head, page] = self.block_index.places(block);
        self.mark(self.layout.block_index + head);
        self.mark(self.layout.block_index + page);
        self.mark(u64::from(self.block_index.page(block)) * PAGE as u64);
    }

    fn mark(&self, at: u64) {
        // Kernels before 5.14 refuse; pages then leave as they came.
        let _ = self.map().mark_used(at as usize);
    }
}

impl TableCursor {
    fn new(table: Arc<Table>, mut key: Vec<u8>) -> TableCursor {
        let longest = table.props.max_key_len as usize + SLACK;
        if key.len() < longest {
            key.resize(longest, 0);
        }
        TableCursor {
            block: Block::nowhere(),
            slot: 0,
            valid: false,
            tag: 0,
            key_len: 0,
            payload: std::ptr::NonNull::dangling().as_ptr(),
            payload_len: 0,
            seq: 0,
            base_seq: table.base_seq(),
            key,
            ordinal: u32::MAX,
            page: 0,
            heads: None,
            located: 0,
            search: BlockSearch::NONE,
            read_ahead: ReadAhead::new(),
            table,
        }
    }

    /// The table it walks over.
    #[cfg(test)]
    pub(crate) fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// The memory for its key, for another cursor.
    pub(crate) fn into_key(self) -> Vec<u8> {
        self.key
    }

    /// Makes block `ordinal` the current one. On failure the cursor is not valid.
    fn enter(&mut self, ordinal: u32) -> Result<()> {
        self.valid = false;
        self.page = self.table.block_index.page(ordinal);
        self.ordinal = u32::MAX;
        let block = self.table.block(self.page)?;
        // SAFETY: only the lifetime changes; the table outlives every use, since `self` holds it.
        self.block = unsafe { std::mem::transmute::<Block<'_>, Block<'static>>(block) };
        self.ordinal = ordinal;
        let prefix = self.block.prefix();
        self.key[..prefix.len()].copy_from_slice(prefix);
        Ok(())
    }

    /// Takes the entry of the current block into view.
    #[inline(always)]
    fn load(&mut self, slot: u32) {
        let r = self.block.record(slot);
        let prefix_len = self.block.prefix().len();
        // SAFETY: the suffix is in a block, which has the slack behind it; `validate` compared
        // the key's length with that of the longest, for which and the slack there is room.
        unsafe {
            let to = self.key.as_mut_ptr().add(prefix_len);
            memory::copy_over(r.suffix_at, to, r.suffix_len);
        }
        self.slot = slot;
        self.key_len = prefix_len + r.suffix_len;
        self.tag = r.tag;
        self.payload = r.payload.as_ptr();
        self.payload_len = r.payload.len();
        self.seq = r.seq.unwrap_or(self.base_seq);
        self.valid = true;
    }

    /// The first part of a search: asks for the heads that it begins with. Whoever searches several tables does each
    /// part for all of them, so that they wait for memory at the same time. All parts are given the same.
    #[inline]
    pub(crate) fn approach(&mut self) {
        self.heads = None;
        self.table.block_index.prefetch();
    }

    /// The second, as long as it says that there is more to do: comes nearer to the block.
    #[inline]
    pub(crate) fn come_nearer(&mut self, key: &[u8]) -> bool {
        let index = &self.table.block_index;
        let heads = self.heads.get_or_insert_with(|| index.search(&self.table.order, key));
        index.narrow(heads);
        heads.goes_on()
    }

    /// The third: finds the block, and asks for its memory.
    pub(crate) fn locate(&mut self, key: &[u8], forward: bool) {
        self.valid = false;
        self.read_ahead.restart();
        let begun = self.heads.take();
        let heads = begun.unwrap_or_else(|| self.table.block_index.search(&self.table.order, key));
        self.located = self.table.located(heads, key, forward);
        self.table.prefetch_block(self.located);
    }

    /// The fourth: enters the block, and asks for the first records to look at.
    pub(crate) fn enter_located(&mut self, key: &[u8]) -> Result<()> {
        self.search = BlockSearch::NONE;
        self.enter(self.located)?;
        self.search = self.block.search(&self.table.order, key);
        Ok(())
    }

    /// The fifth, as long as it says that there is more to do: comes nearer to the entry in the block.
    #[inline]
    pub(crate) fn narrow(&mut self, key: &[u8], forward: bool) -> bool {
        if self.search.goes_on() {
            self.block.narrow(&mut self.search, &self.table.order, key, !forward);
        }
        self.search.goes_on()
    }

    /// The last: takes the entry into view.
    pub(crate) fn arrive(&mut self, forward: bool) -> Result<()> {
        let rank = self.search.rank();
        if page_hints::is_due() {
            self.table.mark_sought(self.located);
        }
        if !forward {
            // Only the first block may hold nothing at or before the key.
            if rank > 0 {
                self.load(rank - 1);
            }
        } else if rank < self.block.count {
            self.load(rank);
        } else if self.located + 1 < self.table.block_index.blocks {
            self.enter(self.located + 1)?;
            self.load(0);
        }
        Ok(())
    }

    /// Takes what a reader at `seq` sees from the current entry on, or back, within the block. Only when valid.
    pub(crate) fn fill(&self, forward: bool, seq: Seq, chunk: &mut EntryChunk) {
        chunk.begin(self.key.len());
        let prefix = self.block.prefix();
        let left = if forward { self.block.count - self.slot } else { self.slot + 1 };
        let at = |n: u32| if forward { self.slot + n } else { self.slot - n };
        let most = left.min(chunk.most() as u32);
        // What the next chunk has.
        if left <= most
            && let Some(next) = self.neighbour(forward)
        {
            self.table.prefetch_page(next);
        }
        for n in (most..left).take(EntryChunk::MOST) {
            self.block.prefetch(at(n));
        }
        for n in 0..most {
            let r = self.block.record(at(n));
            let written = r.seq.unwrap_or(self.base_seq);
            let seen = written <= seq;
            if !seen && n + 1 < most {
                chunk.skip();
                continue;
            }
            let key_len = prefix.len() + r.suffix_len;
            let Some(key) = chunk.room_for_key(key_len + SLACK) else { break };
            // SAFETY: prefix and suffix are in the block, which has the slack behind it; there is room for both and the slack.
            unsafe {
                memory::copy_over(prefix.as_ptr(), key, prefix.len());
                memory::copy_over(r.suffix_at, key.add(prefix.len()), r.suffix_len);
            }
            chunk.use_room(key_len);
            let kind = match block::kind(r.tag) {
                _ if !seen => EntryKind::Unseen,
                Kind::Delete => EntryKind::Deletion,
                Kind::Put if block::is_raw_put(r.tag) => EntryKind::Raw,
                Kind::Put => EntryKind::Stored(r.tag),
            };
            // SAFETY: the key is in the chunk's own room, the value in the table, which is never written again.
            unsafe { chunk.push((key, key_len), r.payload, written, kind) };
        }
    }

    /// So many entries on, or back, at most to the first one beyond the block. Only when valid.
    pub(crate) fn skip(&mut self, forward: bool, n: u32) -> Result<()> {
        let to = if forward { Some(self.slot + n) } else { self.slot.checked_sub(n) };
        match to.filter(|to| *to < self.block.count) {
            Some(to) => {
                self.load(to);
                Ok(())
            }
            None => self.leave_block(forward),
        }
    }

    /// A value of this table, stored as a tag says.
    pub(crate) fn stored_as<'a>(&self, tag: u8, value: &'a [u8]) -> Stored<'a> {
        block::stored(tag, value, self.table.dict_id())
    }

    /// Asks for the entry beyond the one that the walk comes to next, if it is in the same block.
    #[inline]
    pub(crate) fn prefetch_beyond(&self, forward: bool) {
        let inside = if forward { self.slot + 2 < self.block.count } else { self.slot >= 2 };
        if self.valid && inside {
            self.block.prefetch(if forward { self.slot + 2 } else { self.slot - 2 });
        }
    }

    /// So many of the next entries of the block, at most `reach`, are known to come before `limit` in the walk's
    /// direction, by a look at the last of them. Only when valid.
    pub(crate) fn known_before(&self, limit: &[u8], forward: bool, reach: u32) -> u32 {
        let left = if forward { self.block.count - 1 - self.slot } else { self.slot };
        let n = reach.min(left);
        let at = if forward { self.slot + n } else { self.slot - n };
        let side = self.block.compare(&self.table.order, at, limit);
        let before = if forward { side.is_lt() } else { side.is_gt() };
        if before { n } else { 0 }
    }

    /// The block that the walk comes to next, if there is one.
    fn neighbour(&self, forward: bool) -> Option<u32> {
        match forward {
            true => Some(self.ordinal + 1).filter(|next| *next < self.table.block_index.blocks),
            false => self.ordinal.checked_sub(1),
        }
    }

    #[inline(never)]
    fn leave_block(&mut self, forward: bool) -> Result<()> {
        let Some(next) = self.neighbour(forward) else {
            self.valid = false;
            return Ok(());
        };
        self.leaves(forward);
        self.enter(next)?;
        self.load(if forward { 0 } else { self.block.count - 1 });
        if let Some(beyond) = self.neighbour(forward) {
            self.ask_for_neighbour(beyond);
        }
        Ok(())
    }

    /// Asks for the block that the walk comes to next. The processor follows a walk through a page by itself, but not into
    /// the next. The check of a block that was not touched yet reads all of it at once.
    fn ask_for_neighbour(&self, ordinal: u32) {
        match self.read_ahead.is_long() && !self.table.was_checked(ordinal) {
            true => self.table.prefetch_page(ordinal),
            false => self.table.prefetch_block(ordinal),
        }
    }

    /// Notes that the walk leaves its block for a neighbour.
    fn leaves(&mut self, forward: bool) {
        let here = u64::from(self.page) * PAGE as u64;
        if let Some(part) = self.read_ahead.leaves(here, forward, page_hints::walk_waited) {
            self.table.will_need(part.start, part.end - part.start);
        }
    }

    /// The user key. Only when valid.
    #[inline(always)]
    pub(crate) fn key_fast(&self) -> &[u8] {
        debug_assert!(self.key_len <= self.key.len());
        // SAFETY: `load` wrote so many bytes into the buffer.
        unsafe { self.key.get_unchecked(..self.key_len) }
    }

    /// Whether the entry is a put whose value is stored as it is. Only when valid.
    #[inline(always)]
    pub(crate) fn is_raw_put(&self) -> bool {
        block::is_raw_put(self.tag)
    }

    /// The bytes of the value as they are stored. Only when valid.
    #[inline(always)]
    pub(crate) fn payload(&self) -> &[u8] {
        // SAFETY: `load` took both from a slice of the table, which `self` holds.
        unsafe { std::slice::from_raw_parts(self.payload, self.payload_len) }
    }

    /// The value as stored. Only when valid.
    #[inline(always)]
    pub(crate) fn stored_fast(&self) -> Stored<'_> {
        block::stored(self.tag, self.payload(), self.table.dict_id())
    }
}

impl InternalCursor for TableCursor {
    #[inline]
    fn valid(&self) -> bool {
        self.valid
    }

    fn edge(&mut self, forward: bool) -> Result<()> {
        self.read_ahead.restart();
        self.enter(if forward { 0 } else { self.table.block_index.blocks - 1 })?;
        self.load(if forward { 0 } else { self.block.count - 1 });
        Ok(())
    }

    /// All parts, one after the other.
    fn search(&mut self, key: &[u8], forward: bool) -> Result<()> {
        self.heads = None;
        self.locate(key, forward);
        self.enter_located(key)?;
        while self.narrow(key, forward) {}
        self.arrive(forward)
    }

    #[inline(always)]
    fn step(&mut self, forward: bool) -> Result<()> {
        debug_assert!(self.valid);
        let inside = if forward { self.slot + 1 < self.block.count } else { self.slot > 0 };
        if inside {
            self.load(if forward { self.slot + 1 } else { self.slot - 1 });
            return Ok(());
        }
        self.leave_block(forward)
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.key_fast()
    }

    #[inline]
    fn seq(&self) -> Seq {
        self.seq
    }

    #[inline]
    fn kind(&self) -> Kind {
        block::kind(self.tag)
    }

    #[inline]
    fn stored(&self) -> Stored<'_> {
        self.stored_fast()
    }
}

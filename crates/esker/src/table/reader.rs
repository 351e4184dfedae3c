//! An open table: point reads, and the way into blocks for cursors.

use std::cmp::Ordering;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::block::{self, Block, PAGE};
use super::block_index::{self, BlockIndex, HeadSearch};
use super::dictionary::{Dictionaries, Dictionary};
use super::footer::{FOOTER_LEN, Footer, FooterError, Layout, Properties, VERSION};
use super::hash_index::{self, Geometry, LINE_BYTES, Line};
use super::wire::{ONLY, checksum};
use super::zstd::Problem;
use super::{SegmentRef, TableEntry, page_hints};
use crate::env::{Env, Map, OpenMode};
use crate::error::{Error, Result};
use crate::key::{KeyOrder, Seq, Stored, TableMeta};
use crate::util::{AtomicBits, prefetch};

/// A table in its mapping. Shared by threads.
pub(crate) struct Table {
    // What a point read needs, together.
    base: *const u8,
    /// First line of the hash index.
    index: *const u8,
    geometry: Geometry,
    guess_first: u32,
    guess_stride: u32,
    /// One bit per page: a block begins here and is whole.
    blocks_seen: AtomicBits,
    /// One bit per chunk of the index.
    chunks_seen: AtomicBits,
    /// Whether the first touch of a group of pages has the kernel read all of it.
    reads_groups: bool,
    /// Whether no key has two versions.
    unique_keys: bool,
    base_seq: Seq,
    dict_id: u64,
    data_pages: u32,

    pub(super) order: KeyOrder,
    pub(super) block_index: BlockIndex,
    pub(super) props: Properties,
    pub(super) footer: Footer,
    pub(super) layout: Layout,
    path: PathBuf,
    size: u64,
    map: Map,
}

// SAFETY: `base` and `index` point to read-only memory that `map` owns; everything
// else is safe to share.
unsafe impl Send for Table {}
// SAFETY: as above.
unsafe impl Sync for Table {}

/// How far into a record its lines are asked for ahead; the hardware follows longer ones by itself.
const MOST_AHEAD: usize = 192;

/// So many pages are asked for when the first of them is touched: a fault of its own reads one page
/// only, and a store that was not read for a while would come back page by page. A group is read
/// around once in a table's life at most, and not while memory is short. A part of 64.
const GROUP: u32 = 16;

impl Table {
    /// Opens a complete table. `expected_size` is what the manifest says of it, `base_seq` the
    /// sequence of its entries that have none of their own.
    pub(crate) fn open(
        env: &dyn Env,
        path: &Path,
        number: u64,
        expected_size: u64,
        order: KeyOrder,
        base_seq: Seq,
    ) -> Result<Table> {
        let bad = |at: u64, what: &str| Error::corrupt(path, at, what);
        let file = env.open(path, OpenMode::Read).map_err(|e| Error::opening(path, e))?;
        let size = file.len().map_err(|e| Error::io("measure table", path, e))?;
        if size != expected_size || size < FOOTER_LEN as u64 {
            let what = format!("the table has {size} bytes and should have {expected_size}");
            return Err(Error::corrupt(path, size.min(expected_size), what));
        }
        let map = file.map(size, false).map_err(|e| Error::io("map table", path, e))?;
        map.advise_random();
        // SAFETY: a table is complete before it is opened and never written again.
        let bytes = unsafe { map.bytes() };
        let footer_at = size - FOOTER_LEN as u64;
        let footer = match Footer::decode(&bytes[footer_at as usize..], size) {
            Ok(f) => f,
            Err(FooterError::Damaged(what)) => return Err(bad(footer_at, what)),
            Err(FooterError::OfVersion(found)) => {
                let path = path.to_path_buf();
                return Err(Error::UnsupportedFormat { path, found, supported: VERSION });
            }
        };
        if footer.number != number {
            let what = format!("this is table {}, it should be {number}", footer.number);
            return Err(Error::corrupt(path, footer_at, what));
        }
        let block_index_len = block_index::section_len(&order, footer.blocks);
        let props_at = footer_at.checked_sub(footer.props_len);
        let props_at = props_at.ok_or_else(|| bad(footer_at, "properties: length"))?;
        let props = &bytes[props_at as usize..footer_at as usize];
        if checksum(props, number, ONLY) != footer.props_checksum {
            return Err(bad(props_at, "properties: checksum"));
        }
        let props = Properties::decode(props).ok_or_else(|| bad(props_at, "properties"))?;
        let excess = TableMeta::excess(size, props.entries, props.raw_bytes, &props.references);
        if let Some(what) = excess {
            return Err(bad(props_at, what));
        }
        if props.order != order.name() {
            return Err(Error::ComparatorMismatch {
                keyspace: format!("number {}", props.keyspace),
                stored: props.order,
                given: order.name().to_owned(),
            });
        }
        let layout = Layout::new(&footer, block_index_len)
            .filter(|l| l.footer == footer_at)
            .ok_or_else(|| bad(footer_at, "footer: section lengths"))?;
        let sums = &bytes[layout.sums as usize..layout.block_index as usize];
        if checksum(sums, number, ONLY) != footer.sums_checksum {
            return Err(bad(layout.sums, "index checksums: checksum"));
        }
        let section = &bytes[layout.block_index as usize..layout.props as usize];
        if checksum(section, number, ONLY) != footer.block_index_checksum {
            return Err(bad(layout.block_index, "block index: checksum"));
        }
        let prefix = props.smallest[..props.prefix_len as usize].to_vec();
        // SAFETY: the mapping lives as long as the table, which owns both.
        let block_index =
            unsafe { BlockIndex::new(section, &order, footer.blocks, footer.data_pages, prefix) };
        let block_index = block_index.map_err(|what| bad(layout.block_index, what))?;
        Ok(Table {
            base: bytes.as_ptr(),
            index: map.as_ptr().wrapping_add(layout.index as usize),
            geometry: footer.geometry,
            guess_first: footer.guess_first,
            guess_stride: footer.guess_stride,
            blocks_seen: AtomicBits::new(footer.data_pages as usize),
            chunks_seen: AtomicBits::new(footer.geometry.chunks()),
            reads_groups: true,
            unique_keys: props.keys == props.entries,
            base_seq,
            dict_id: props.dictionary.as_ref().map_or(0, |d| d.id()),
            data_pages: footer.data_pages,
            order,
            block_index,
            props,
            footer,
            layout,
            path: path.to_path_buf(),
            size,
            map,
        })
    }

    /// The same of a table that this process has just written: its pages are in memory, and to ask the kernel for them is
    /// a sixth of the first walk over it.
    pub(crate) fn just_written(self) -> Table {
        Table { reads_groups: false, ..self }
    }

    /// The same with its dictionary as other tables have it, where one does.
    pub(crate) fn sharing(mut self, dictionaries: &Dictionaries) -> Table {
        self.props.dictionary = self.props.dictionary.map(|d| dictionaries.share(d));
        self
    }

    // ---- what it says of itself

    /// Number of the file.
    pub(crate) fn number(&self) -> u64 {
        self.footer.number
    }
    /// Where the file is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
    /// Length of the file in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }
    /// The keyspace of all its entries.
    pub(crate) fn keyspace(&self) -> u32 {
        self.props.keyspace
    }
    /// All entries, tombstones included.
    pub(crate) fn entries(&self) -> u64 {
        self.props.entries
    }
    /// Sequence of the entries that have none of their own.
    pub(crate) fn base_seq(&self) -> Seq {
        self.base_seq
    }
    /// Where its separated values are.
    pub(crate) fn references(&self) -> &[SegmentRef] {
        &self.props.references
    }
    /// What a manifest says of it.
    pub(crate) fn meta(&self) -> TableMeta {
        self.props.meta(self.number(), self.size, self.base_seq)
    }
    /// The dictionary of its packed values.
    pub(crate) fn dictionary(&self) -> Option<&Arc<Dictionary>> {
        self.props.dictionary.as_ref()
    }

    // ---- point reads

    /// Asks for the cache line of the index in which a key of this hash would be.
    #[inline]
    pub(crate) fn prefetch(&self, hash: u64) {
        let line = self.geometry.line(hash) as usize;
        prefetch(self.index.wrapping_add(line * LINE_BYTES));
    }

    /// Whether its index has an entry of this hash in the line where it belongs; true without an index. A
    /// guess: nothing is checked, and no block is looked at.
    pub(crate) fn may_hold(&self, hash: u64) -> bool {
        let g = &self.geometry;
        if g.lines == 0 {
            return true;
        }
        // SAFETY: the line is one of the index, whose memory lives as long as `self`.
        let line = unsafe { Line::new(self.index.add(g.line(hash) as usize * LINE_BYTES)) };
        line.overflowed() || line.matches(g.fingerprint(hash), g.mask()) != 0
    }

    /// The newest version of `key` whose sequence is at most `seq`. `hash` is [`key_hash`] of it.
    ///
    /// [`key_hash`]: crate::key::key_hash
    #[inline]
    pub(crate) fn get(&self, hash: u64, key: &[u8], seq: Seq) -> Result<Option<TableEntry<'_>>> {
        let g = &self.geometry;
        if g.lines == 0 {
            return self.get_by_search(key, seq);
        }
        let mut line_no = g.line(hash);
        let (fingerprint, mask) = (g.fingerprint(hash), g.mask());
        // Bounded, so that a damaged table in which every line overflows ends too.
        for _ in 0..g.lines {
            if !self.chunks_seen.has(line_no / (hash_index::CHUNK / LINE_BYTES) as u32) {
                self.check_chunk(line_no / (hash_index::CHUNK / LINE_BYTES) as u32)?;
            }
            // SAFETY: the line is one of the index, whose memory lives as long as `self`.
            let line = unsafe { Line::new(self.index.add(line_no as usize * LINE_BYTES)) };
            let mut matches = line.matches(fingerprint, mask);
            while matches != 0 {
                let (page, slot) = g.place(line.entry(matches.trailing_zeros()));
                self.prefetch_record(page, slot);
                let Ok(block) = self.block(page) else {
                    // What cannot be read may be another key's, of the same fingerprint.
                    return self.get_by_search(key, seq);
                };
                if slot >= block.count {
                    return Err(self.corrupt(self.layout.index, "index: slot out of range"));
                }
                if block.key_is(slot, key) {
                    if page_hints::is_due() {
                        self.mark_read(line_no, Some(page));
                    }
                    return self.newest_visible(block, page, slot, key, seq);
                }
                matches &= matches - 1;
            }
            if !line.overflowed() {
                if page_hints::is_due() {
                    self.mark_read(line_no, None);
                }
                return Ok(None);
            }
            line_no = if line_no + 1 == g.lines { 0 } else { line_no + 1 };
        }
        Ok(None)
    }

    /// Asks for the lines a record's read will touch, all at once: header and slot of the block,
    /// and where the record should be if all records were of mean length.
    #[inline(always)]
    fn prefetch_record(&self, page: u32, slot: u32) {
        let block = self.base.wrapping_add(page as usize * PAGE);
        prefetch(block);
        let guess = self.guess_first as usize + ((slot as usize * self.guess_stride as usize) >> 8);
        prefetch(block.wrapping_add(guess));
        prefetch(block.wrapping_add(guess + 64));
        let end = guess + ((self.guess_stride as usize) >> 8).min(MOST_AHEAD);
        prefetch(block.wrapping_add(end));
    }

    /// Goes from the newest version of a key to the newest that is old enough.
    #[inline(always)]
    fn newest_visible<'a>(
        &'a self,
        mut block: Block<'a>,
        mut page: u32,
        mut slot: u32,
        key: &[u8],
        seq: Seq,
    ) -> Result<Option<TableEntry<'a>>> {
        loop {
            let r = block.record(slot);
            let at = r.seq.unwrap_or(self.base_seq);
            if at <= seq {
                let stored = r.stored(self.dict_id);
                return Ok(Some(TableEntry { seq: at, kind: r.kind(), stored }));
            }
            if self.unique_keys {
                return Ok(None);
            }
            slot += 1;
            if slot == block.count {
                page += block.pages;
                if page >= self.data_pages {
                    return Ok(None);
                }
                block = self.block(page)?;
                slot = 0;
            }
            if !self.same_key(&block, slot, key) {
                return Ok(None);
            }
        }
    }

    fn same_key(&self, block: &Block<'_>, slot: u32, key: &[u8]) -> bool {
        match &self.order {
            KeyOrder::Custom(c) => {
                let whole = [block.prefix(), block.record(slot).suffix()].concat();
                c.compare(&whole, key) == Ordering::Equal
            }
            _ => block.key_is(slot, key),
        }
    }

    #[cold]
    fn get_by_search(&self, key: &[u8], seq: Seq) -> Result<Option<TableEntry<'_>>> {
        let i = self.locate(key);
        let mut page = self.block_index.page(i);
        let mut block = self.block(page)?;
        if page_hints::is_due() {
            self.mark_sought(i);
        }
        let mut slot = block.rank(&self.order, key, false);
        if slot == block.count {
            page += block.pages;
            // Of unique keys the next block's first one would have led there.
            if page >= self.data_pages || self.unique_keys {
                return Ok(None);
            }
            block = self.block(page)?;
            slot = 0;
        }
        if !self.same_key(&block, slot, key) {
            return Ok(None);
        }
        self.newest_visible(block, page, slot, key, seq)
    }

    // ---- ranges

    /// The block to look for the first entry at or after `key` in; see [`BlockIndex::found`].
    fn locate(&self, key: &[u8]) -> u32 {
        self.located(self.block_index.search(&self.order, key), key, true)
    }

    /// The same, of a search for `key` that was begun; or backwards, for the last entry at or before it.
    pub(super) fn located(&self, search: HeadSearch, key: &[u8], forward: bool) -> u32 {
        let compare = |i: u32, last: bool| {
            let block = self.block(self.block_index.page(i)).ok()?;
            Some(block.compare(&self.order, if last { block.count - 1 } else { 0 }, key))
        };
        // A block that begins with the key may have newer versions of it before it, one that ends with it older ones
        // behind it.
        let (or_equal, ends) = (!forward || self.unique_keys, forward || self.unique_keys);
        self.block_index.found(
            search,
            or_equal,
            |i| compare(i, false),
            |i| compare(i, true).is_some_and(|side| side.is_gt() || ends && side.is_eq()),
        )
    }

    /// Asks for the beginning of a block: its header, what its keys share, and the first of its slots.
    #[inline]
    pub(super) fn prefetch_block(&self, ordinal: u32) {
        self.prefetch_lines(ordinal, 3);
    }

    /// Asks for the first page of a block: for all of it, mostly.
    #[inline]
    pub(super) fn prefetch_page(&self, ordinal: u32) {
        self.prefetch_lines(ordinal, PAGE / 64);
    }

    #[inline(always)]
    fn prefetch_lines(&self, ordinal: u32, lines: usize) {
        let at = self.block_index.page(ordinal) as usize * PAGE;
        for line in 0..lines {
            prefetch(self.base.wrapping_add(at + line * 64));
        }
    }

    /// How many bytes of the file lie before `key`, to within a block or two.
    pub(crate) fn approximate_offset(&self, key: &[u8]) -> u64 {
        if self.order.compare(&self.props.largest, key).is_lt() {
            return u64::from(self.data_pages) * PAGE as u64;
        }
        u64::from(self.block_index.page(self.locate(key))) * PAGE as u64
    }

    // ---- blocks

    /// The block that begins at `page`, checked if this is its first touch.
    #[inline(always)]
    pub(super) fn block(&self, page: u32) -> Result<Block<'_>> {
        if !self.blocks_seen.has(page) {
            self.check_block(page)?;
        }
        // SAFETY: the bit says that a block here was validated.
        Ok(unsafe { self.block_at(page) })
    }

    /// Whether block `ordinal` was touched before.
    #[inline]
    pub(super) fn was_checked(&self, ordinal: u32) -> bool {
        self.blocks_seen.has(self.block_index.page(ordinal))
    }

    /// # Safety
    /// A block that was validated begins at `page`.
    #[inline(always)]
    pub(super) unsafe fn block_at(&self, page: u32) -> Block<'_> {
        // SAFETY: the caller's promise; the footer behind the last block is longer than the slack.
        unsafe { Block::new(self.base.add(page as usize * PAGE)) }
    }

    #[cold]
    #[inline(never)]
    fn check_block(&self, page: u32) -> Result<()> {
        if self.reads_group(&self.blocks_seen, page) {
            let from = u64::from(page / GROUP * GROUP) * PAGE as u64;
            self.will_need(from, u64::from(GROUP) * PAGE as u64);
        }
        self.block_problem(page)
            .map_err(|what| self.corrupt(u64::from(page) * PAGE as u64, what))?;
        self.blocks_seen.insert(page);
        Ok(())
    }

    /// Whether the first touch of this part is to have its group read.
    fn reads_group(&self, seen: &AtomicBits, part: u32) -> bool {
        self.reads_groups && seen.group_is_new(part, GROUP) && page_hints::reads_around()
    }

    /// Checks the block at `page` anew; gives its bytes.
    pub(super) fn block_problem(&self, page: u32) -> Result<&[u8], &'static str> {
        let data = &self.bytes()[..self.data_pages as usize * PAGE];
        let rest = data.get(page as usize * PAGE..).unwrap_or_default();
        let len = block::claimed_pages(rest).saturating_mul(PAGE);
        if len == 0 || len > rest.len() {
            return Err("block: length");
        }
        let bytes = &rest[..len];
        let sum = u64::from_le_bytes(bytes[..8].try_into().unwrap_or_default());
        if checksum(&bytes[8..], self.number(), u64::from(page)) != sum {
            return Err("block: checksum");
        }
        block::validate(bytes, self.props.max_key_len as usize)?;
        Ok(bytes)
    }

    /// The bytes of the file.
    pub(super) fn bytes(&self) -> &[u8] {
        // SAFETY: a table is complete before it is opened and never written again.
        unsafe { self.map.bytes() }
    }

    pub(super) fn map(&self) -> &Map {
        &self.map
    }

    pub(super) fn data_pages(&self) -> u32 {
        self.data_pages
    }

    pub(super) fn dict_id(&self) -> u64 {
        self.dict_id
    }

    pub(super) fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    // ---- the index's memory

    #[cold]
    #[inline(never)]
    fn check_chunk(&self, chunk: u32) -> Result<()> {
        if self.reads_group(&self.chunks_seen, chunk) {
            let from =
                self.layout.index + u64::from(chunk / GROUP * GROUP) * hash_index::CHUNK as u64;
            let end = (from + u64::from(GROUP) * hash_index::CHUNK as u64).min(self.layout.sums);
            self.ask_for(from, end);
        }
        self.chunk_problem(self.index_bytes(), chunk)?;
        self.chunks_seen.insert(chunk);
        Ok(())
    }

    /// The index as it lies in the file.
    pub(super) fn index_bytes(&self) -> &[u8] {
        &self.bytes()[self.layout.index as usize..self.layout.sums as usize]
    }

    /// Checks a chunk of `index`, which is the index or a copy of it.
    pub(super) fn chunk_problem(&self, index: &[u8], chunk: u32) -> Result<()> {
        let at = chunk as usize * hash_index::CHUNK;
        let bytes = &index[at..index.len().min(at + hash_index::CHUNK)];
        let sum = &self.bytes()[self.layout.sums as usize + 8 * chunk as usize..][..8];
        if checksum(bytes, self.number(), u64::from(chunk)).to_le_bytes() != sum {
            return Err(self.corrupt(self.layout.index + at as u64, "index: checksum"));
        }
        Ok(())
    }

    /// Bytes of memory that it takes besides its mapping, and its dictionary, which others may have too.
    pub(crate) fn memory(&self) -> usize {
        let bits = self.blocks_seen.memory() + self.chunks_seen.memory();
        size_of::<Table>() + bits + self.props.memory() + self.block_index.prefix.len()
    }

    // ---- values, errors

    /// Unpacks a value of this table into `out`, whose contents it replaces.
    pub(crate) fn decompress(&self, stored: Stored<'_>, out: &mut Vec<u8>) -> Result<()> {
        super::codec::decompress(stored, self.props.dictionary.as_deref(), out).map_err(|problem| {
            let what = match problem {
                Problem::Damaged(what) => what,
                Problem::NoMemory => return no_memory(&self.path),
                Problem::NoZstd => return Error::NoZstd { path: self.path.clone() },
            };
            let at = match stored {
                // Where in the file the bytes are, if they are ours.
                Stored::Compressed { bytes, .. } => {
                    (bytes.as_ptr() as usize).wrapping_sub(self.base as usize)
                }
                _ => 0,
            };
            self.corrupt(if at < self.size as usize { at as u64 } else { 0 }, what)
        })
    }

    pub(super) fn corrupt(&self, at: u64, what: &str) -> Error {
        Error::corrupt(&self.path, at, what)
    }

    /// Asks the kernel to read a part of the data that is about to be walked over.
    pub(super) fn will_need(&self, from: u64, len: u64) {
        let end = u64::from(self.data_pages) * PAGE as u64;
        self.ask_for(from.min(end), from.saturating_add(len).min(end));
    }

    /// Asks the kernel to read these bytes of the file, which are within it.
    fn ask_for(&self, from: u64, end: u64) {
        let from = from / PAGE as u64 * PAGE as u64;
        if from < end {
            let start = self.map.as_ptr().wrapping_add(from as usize);
            let (len, advice) = ((end - from) as usize, rustix::mm::Advice::WillNeed);
            // SAFETY: the range is inside the mapping; this advice changes no bytes.
            let _ = unsafe { rustix::mm::madvise(start.cast(), len, advice) };
        }
    }
}

/// There is no memory to unpack a value of this table.
pub(super) fn no_memory(path: &Path) -> Error {
    Error::io("unpack a value of", path, std::io::ErrorKind::OutOfMemory.into())
}

impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Table({}, {} entries, {} bytes)", self.number(), self.entries(), self.size)
    }
}

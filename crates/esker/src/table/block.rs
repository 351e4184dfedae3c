//! A data block as it lies in the file: read, and validated once.
//!
//! A block is checked at its first touch ([`validate`]); every later access trusts what that found
//! and reads without bounds checks. `docs/format/table.md` draws the layout.

use std::cmp::Ordering;
use std::marker::PhantomData;

use super::memory::{self, load_u32, load_u64};
use super::wire::get_varint32;
use crate::key::{Codec, KeyOrder, Kind, MAX_KEY_LEN, MAX_VALUE_LEN, Seq, Stored, ValuePointer};
use crate::util::prefetch;

/// Blocks are whole pages of this size, so that a cold read faults one.
pub(super) const PAGE: usize = 4096;
/// Largest block with narrow (u16) offsets.
pub(super) const MAX_NARROW: usize = u16::MAX as usize;
/// Most entries of a block, so that a slot number takes few bits of an index entry.
pub(super) const MAX_COUNT: usize = 1024;
/// Header without its optional parts.
pub(super) const HEADER_LEN: usize = 20;
/// Wide blocks hold one entry and three u32 more: pages, stride, suffix length.
pub(super) const WIDE_LEN: usize = 12;
/// The base of explicit sequences.
pub(super) const SEQ_BASE_LEN: usize = 8;

/// In `suffix_len`: every record carries its own length.
pub(super) const VARIES: u16 = u16::MAX;
const VARIES_32: u32 = u32::MAX;

/// Header flags.
pub(super) const HAS_SEQ_BASE: u8 = 1;
pub(super) const WIDE: u8 = 2;
/// All records have the same length: no slots.
pub(super) const FIXED: u8 = 4;

/// Tag of an entry: kind in the low three bits, then encoding, then two flags. Never 0.
pub(super) mod tag {
    pub(in super::super) const KIND: u8 = 0b111;
    pub(in super::super) const ENCODING: u8 = 0b11 << 3;
    pub(in super::super) const RAW: u8 = 0;
    pub(in super::super) const LZ4: u8 = 1 << 3;
    pub(in super::super) const ZSTD: u8 = 2 << 3;
    pub(in super::super) const POINTER: u8 = 3 << 3;
    /// A sequence of its own; otherwise the table's base sequence.
    pub(in super::super) const HAS_SEQ: u8 = 1 << 5;
    /// Packed with the table's dictionary.
    pub(in super::super) const DICT: u8 = 1 << 6;
}

/// A validated block. Copies are cheap; the memory is the table's mapping.
#[derive(Clone, Copy)]
pub(super) struct Block<'a> {
    base: *const u8,
    /// Offset of the slots, or of the first record when all have the same length.
    slots: u32,
    /// Length of every record, or `VARIES_32`.
    stride: u32,
    /// Length of every suffix, or `VARIES_32`.
    suffix_len: u32,
    prefix_at: u32,
    prefix_len: u32,
    pub count: u32,
    pub pages: u32,
    /// Tag of every record, or 0.
    tag: u8,
    seq_width: u8,
    seq_base: Seq,
    memory: PhantomData<&'a [u8]>,
}

/// One entry of a block.
#[derive(Clone, Copy)]
pub(super) struct BlockRecord<'a> {
    pub tag: u8,
    /// Where the key goes on behind the block's prefix, in memory with the slack behind it.
    pub suffix_at: *const u8,
    pub suffix_len: usize,
    /// The sequence when it is explicit.
    pub seq: Option<Seq>,
    /// Value bytes, with the raw length in front when packed.
    pub payload: &'a [u8],
}

impl<'a> Block<'a> {
    /// # Safety
    /// At `base` lies a block for which [`validate`] found no fault, and it stays there, followed
    /// by [`memory::SLACK`] readable bytes, for `'a`.
    #[inline(always)]
    pub unsafe fn new(base: *const u8) -> Block<'a> {
        // SAFETY: a valid block is at least a page long, so the header is readable.
        unsafe {
            let small = load_u64(base.add(8));
            let shape = load_u32(base.add(16));
            let flags = (shape >> 24) as u8;
            let mut block = Block {
                base,
                slots: 0,
                stride: if flags & FIXED != 0 { (small >> 32) as u16 as u32 } else { VARIES_32 },
                suffix_len: match (small >> 48) as u16 {
                    VARIES => VARIES_32,
                    n => u32::from(n),
                },
                prefix_at: HEADER_LEN as u32,
                prefix_len: (small >> 16) as u16 as u32,
                count: small as u16 as u32,
                pages: shape & 0xFF,
                tag: (shape >> 8) as u8,
                seq_width: (shape >> 16) as u8,
                seq_base: 0,
                memory: PhantomData,
            };
            if flags & (WIDE | HAS_SEQ_BASE) != 0 {
                if flags & WIDE != 0 {
                    block.pages = load_u32(base.add(HEADER_LEN));
                    block.stride = load_u32(base.add(HEADER_LEN + 4));
                    block.suffix_len = load_u32(base.add(HEADER_LEN + 8));
                    block.prefix_at += WIDE_LEN as u32;
                }
                if flags & HAS_SEQ_BASE != 0 {
                    block.seq_base = load_u64(base.add(block.prefix_at as usize));
                    block.prefix_at += SEQ_BASE_LEN as u32;
                }
            }
            block.slots = block.prefix_at + block.prefix_len;
            block
        }
    }

    /// Stands for no block: has no entry and no bytes.
    pub const fn nowhere() -> Block<'static> {
        Block {
            base: std::ptr::NonNull::dangling().as_ptr(),
            slots: 0,
            stride: 0,
            suffix_len: 0,
            prefix_at: 0,
            prefix_len: 0,
            count: 0,
            pages: 0,
            tag: 0,
            seq_width: 0,
            seq_base: 0,
            memory: PhantomData,
        }
    }

    /// What all keys of the block begin with.
    #[inline(always)]
    pub fn prefix(&self) -> &'a [u8] {
        // SAFETY: `validate` found the prefix inside the block.
        unsafe { self.slice(self.prefix_at as usize, self.prefix_len as usize) }
    }

    /// # Safety
    /// The range is inside the block.
    #[inline(always)]
    unsafe fn slice(&self, at: usize, len: usize) -> &'a [u8] {
        // SAFETY: the caller's promise, and `new`'s that the block stays for `'a`.
        unsafe { std::slice::from_raw_parts(self.base.add(at), len) }
    }

    /// Start and end of a record. `i < count`.
    #[inline(always)]
    fn span(&self, i: u32) -> (usize, usize) {
        debug_assert!(i < self.count);
        if self.stride != VARIES_32 {
            let start = self.slots as usize + i as usize * self.stride as usize;
            return (start, start + self.stride as usize);
        }
        // SAFETY: there are `count + 1` slots, as `validate` saw; both are in these four bytes.
        let both = unsafe { load_u32(self.base.add(self.slots as usize + 2 * i as usize)) };
        ((both & 0xFFFF) as usize, (both >> 16) as usize)
    }

    /// Asks for the cache line of a record.
    #[inline(always)]
    pub fn prefetch(&self, i: u32) {
        prefetch(self.base.wrapping_add(self.span(i).0));
    }

    /// The record. `i < count`.
    #[inline(always)]
    pub fn record(&self, i: u32) -> BlockRecord<'a> {
        let (mut at, end) = self.span(i);
        // SAFETY: `validate` walked this record in this way and stayed inside the block.
        unsafe {
            let tag = if self.tag != 0 {
                self.tag
            } else {
                at += 1;
                *self.base.add(at - 1)
            };
            let len = if self.suffix_len != VARIES_32 {
                self.suffix_len as usize
            } else {
                let first = *self.base.add(at);
                if first < 0x80 {
                    at += 1;
                    first as usize
                } else {
                    let (len, n) = get_varint32(self.slice(at, end - at)).unwrap_or_default();
                    at += n;
                    len as usize
                }
            };
            let suffix_at = self.base.add(at);
            at += len;
            let mut seq = None;
            if tag & tag::HAS_SEQ != 0 {
                let width = self.seq_width as usize;
                // Up to eight bytes more than the sequence has are read, within the slack.
                let all = load_u64(self.base.add(at));
                let delta = if width == 8 { all } else { all & ((1 << (8 * width)) - 1) };
                seq = Some(self.seq_base.wrapping_add(delta));
                at += width;
            }
            BlockRecord { tag, suffix_at, suffix_len: len, seq, payload: self.slice(at, end - at) }
        }
    }

    /// Whether the key of entry `i` is `key`.
    #[inline(always)]
    pub fn key_is(&self, i: u32, key: &[u8]) -> bool {
        let prefix = self.prefix();
        match key.split_at_checked(prefix.len()) {
            Some((start, rest)) => {
                memory::equal(self.record(i).suffix(), rest) && memory::equal(start, prefix)
            }
            None => false,
        }
    }

    /// How the key of entry `i` compares with `key`. `i < count`.
    pub fn compare(&self, order: &KeyOrder, i: u32, key: &[u8]) -> Ordering {
        let (prefix, record) = (self.prefix(), self.record(i));
        let in_bytes = || {
            let (shared, rest) = key.split_at(prefix.len().min(key.len()));
            prefix.cmp(shared).then_with(|| record.suffix().cmp(rest))
        };
        match order {
            KeyOrder::Bytewise => in_bytes(),
            KeyOrder::Reverse => in_bytes().reverse(),
            KeyOrder::Custom(c) => c.compare(&[prefix, record.suffix()].concat(), key),
        }
    }
}

impl<'a> BlockRecord<'a> {
    /// The key without the block's prefix.
    #[inline(always)]
    pub fn suffix(&self) -> &'a [u8] {
        // SAFETY: `validate` found the suffix inside the block.
        unsafe { std::slice::from_raw_parts(self.suffix_at, self.suffix_len) }
    }

    /// Put or delete.
    #[inline(always)]
    pub fn kind(&self) -> Kind {
        kind(self.tag)
    }

    /// The value, in the terms of the store. `dict` is the identity of the table's dictionary.
    #[inline(always)]
    pub fn stored(&self, dict: u64) -> Stored<'a> {
        stored(self.tag, self.payload, dict)
    }
}

/// Kind of a validated tag.
#[inline(always)]
pub(super) fn kind(tag: u8) -> Kind {
    if tag & tag::KIND == Kind::Put as u8 { Kind::Put } else { Kind::Delete }
}

/// Whether a validated tag is that of a put whose value is stored as it is.
#[inline(always)]
pub(super) fn is_raw_put(tag: u8) -> bool {
    tag & (tag::KIND | tag::ENCODING) == Kind::Put as u8 | tag::RAW
}

/// The value of a validated record.
#[inline(always)]
pub(super) fn stored(tag: u8, payload: &[u8], dict: u64) -> Stored<'_> {
    match tag & tag::ENCODING {
        tag::RAW => Stored::Inline(payload),
        tag::POINTER => pointer(payload),
        compressed => {
            let (raw_len, n) = get_varint32(payload).unwrap_or_default();
            Stored::Compressed {
                codec: if compressed == tag::LZ4 { Codec::Lz4 } else { Codec::Zstd },
                dict: if tag & tag::DICT != 0 { dict } else { 0 },
                raw_len,
                bytes: &payload[n..],
            }
        }
    }
}

#[inline]
fn pointer(payload: &[u8]) -> Stored<'_> {
    match ValuePointer::decode(payload) {
        Some(p) => Stored::Pointer(p),
        // Not reached: `validate` saw a pointer's length.
        None => Stored::Inline(&[]),
    }
}

/// Whether a tag is that of a compressed value.
fn is_packed(tag: u8) -> bool {
    matches!(tag & tag::ENCODING, tag::LZ4 | tag::ZSTD)
}

/// Whether a tag is one that can be stored.
fn tag_is_valid(tag: u8) -> bool {
    tag & 0x80 == 0
        && Kind::from_u8(tag & tag::KIND)
            .is_some_and(|k| k == Kind::Put || tag & (tag::ENCODING | tag::DICT) == 0)
        && (is_packed(tag) || tag & tag::DICT == 0)
}

/// Length in pages a block claims, 0 when it cannot be. `bytes` is at least a page.
pub(super) fn claimed_pages(bytes: &[u8]) -> usize {
    if bytes.len() < PAGE {
        return 0;
    }
    if bytes[19] & WIDE != 0 {
        u32::from_le_bytes([bytes[20], bytes[21], bytes[22], bytes[23]]) as usize
    } else if bytes[16] <= 16 {
        bytes[16] as usize
    } else {
        0
    }
}

/// Looks at every length and offset of a block (all its pages, checksum verified) and says what is
/// wrong with it. What later accesses rely on is established here and nowhere else.
pub(super) fn validate(b: &[u8], max_key_len: usize) -> Result<(), &'static str> {
    let u16_at = |at: usize| usize::from(u16::from_le_bytes([b[at], b[at + 1]]));
    let u32_at = |at: usize| u32::from_le_bytes([b[at], b[at + 1], b[at + 2], b[at + 3]]) as usize;
    if b.len() < PAGE || claimed_pages(b).checked_mul(PAGE) != Some(b.len()) {
        return Err("block length");
    }
    let (count, prefix_len) = (u16_at(8), u16_at(10));
    let (mut stride, mut suffix_len) = (u16_at(12), u16_at(14));
    let (shared_tag, seq_width, flags) = (b[17], usize::from(b[18]), b[19]);
    if count == 0 || count > MAX_COUNT {
        return Err("number of entries");
    }
    if flags & !(HAS_SEQ_BASE | WIDE | FIXED) != 0 || seq_width > 8 {
        return Err("block flags");
    }
    if shared_tag != 0 && !tag_is_valid(shared_tag) {
        return Err("block tag");
    }
    let mut suffix_varies = suffix_len == usize::from(VARIES);
    let mut at = HEADER_LEN;
    if flags & WIDE != 0 {
        if count != 1 || prefix_len != 0 || flags & FIXED == 0 || shared_tag == 0 {
            return Err("wide block");
        }
        stride = u32_at(at + 4);
        suffix_len = u32_at(at + 8);
        suffix_varies = false;
        at += WIDE_LEN;
    } else if b.len() > MAX_NARROW + 1 {
        return Err("block length");
    }
    if flags & HAS_SEQ_BASE != 0 {
        at += SEQ_BASE_LEN;
    }
    // `at` is at most 40 and the prefix below 64 KiB: no overflow in any sum below.
    at += prefix_len;
    let fixed = flags & FIXED != 0;
    let fields =
        Fields { shared_tag, suffix_len, suffix_varies, seq_width, max_key_len, prefix_len };
    if at > b.len() || (!fixed && 2 * (count + 1) > b.len() - at) {
        return Err("block header");
    }
    if fixed && count * stride > b.len() - at {
        return Err("record length");
    }
    let slots = at;
    let mut end = if fixed { at } else { u16_at(slots) };
    if !fixed && end < slots + 2 * (count + 1) {
        return Err("first slot");
    }
    // Where all lengths are the block's, what holds of the first record holds of all; not of what is packed, as that
    // begins with a length of its own.
    let alike = fixed && shared_tag != 0 && !suffix_varies && !is_packed(shared_tag);
    for i in 0..if alike { 1 } else { count } {
        let start = end;
        end = if fixed { start + stride } else { u16_at(slots + 2 * i + 2) };
        if end < start || end > b.len() {
            return Err("slot");
        }
        fields.check(&b[start..end])?;
    }
    Ok(())
}

struct Fields {
    shared_tag: u8,
    suffix_len: usize,
    suffix_varies: bool,
    seq_width: usize,
    max_key_len: usize,
    prefix_len: usize,
}

impl Fields {
    /// Walks one record as [`Block::record`] does, with every check.
    #[inline]
    fn check(&self, mut r: &[u8]) -> Result<(), &'static str> {
        let mut tag = self.shared_tag;
        if tag == 0 {
            let (&first, rest) = r.split_first().ok_or("record")?;
            if !tag_is_valid(first) {
                return Err("record tag");
            }
            tag = first;
            r = rest;
        }
        let mut suffix_len = self.suffix_len;
        if self.suffix_varies {
            let (len, n) = get_varint32(r).ok_or("suffix length")?;
            suffix_len = len as usize;
            r = &r[n..];
        }
        let key_len = suffix_len.checked_add(self.prefix_len).ok_or("key length")?;
        if key_len > self.max_key_len || key_len > MAX_KEY_LEN {
            return Err("key length");
        }
        let seq_len = if tag & tag::HAS_SEQ != 0 { self.seq_width } else { 0 };
        let payload = r.get(suffix_len + seq_len..).ok_or("suffix length")?;
        // With the key's this is what keeps the stride of a wide block below `VARIES_32`.
        if payload.len() > MAX_VALUE_LEN {
            return Err("value");
        }
        let sane = match tag & tag::ENCODING {
            tag::RAW => kind(tag) == Kind::Put || payload.is_empty(),
            tag::POINTER => payload.len() == ValuePointer::ENCODED_LEN,
            _ => get_varint32(payload).is_some_and(|(n, _)| n as usize <= MAX_VALUE_LEN),
        };
        if sane { Ok(()) } else { Err("value") }
    }
}

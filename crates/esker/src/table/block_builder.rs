//! Gathers entries and lays a block out: decides how long it gets and which of its records' parts
//! are stored once.

use super::block::{
    FIXED, HAS_SEQ_BASE, HEADER_LEN, MAX_COUNT, MAX_NARROW, PAGE, SEQ_BASE_LEN, VARIES, WIDE,
    WIDE_LEN, tag,
};
use super::wire::checksum;
use crate::key::Seq;
use crate::util::abbreviated_key::common_prefix;
use crate::util::{put_varint, varint_len};

/// One entry, its key not yet split.
#[derive(Clone, Copy)]
pub(super) struct BlockEntry<'a> {
    pub key: &'a [u8],
    pub tag: u8,
    /// Meaningful when the tag says so.
    pub seq: Seq,
    pub payload: &'a [u8],
}

/// What [`BlockBuilder::add`] did.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Added {
    /// The entry is in the block.
    Yes,
    /// The block is as full as it gets; take it with [`BlockBuilder::finish`] and add again.
    BlockFull,
}

/// A block laid out.
pub(super) struct Finished {
    /// Its length in pages.
    pub pages: usize,
    /// Offset of its first record.
    pub first: usize,
    /// Length of its records.
    pub records: usize,
}

/// The entries of the block to come.
pub(super) struct BlockBuilder {
    /// Smallest block in bytes.
    block_size: usize,
    /// Keys and payloads, one behind the other.
    bytes: Vec<u8>,
    entries: Vec<Pending>,
    shape: Shape,
    /// Bytes the block may take before it has to close or grow.
    limit: usize,
}

#[derive(Clone, Copy)]
struct Pending {
    at: usize,
    key_len: usize,
    payload_len: usize,
    tag: u8,
    seq: Seq,
}

/// All that the length of a block depends on; one entry more changes it in constant time.
#[derive(Clone, Copy)]
struct Shape {
    count: usize,
    prefix_len: usize,
    keys: usize,
    key_len_max: usize,
    payloads: usize,
    with_seq: usize,
    seq_min: Seq,
    seq_max: Seq,
    same_tag: bool,
    same_key_len: bool,
    same_payload_len: bool,
}

impl Shape {
    fn seq_width(&self) -> usize {
        if self.with_seq == 0 {
            return 0;
        }
        (64 - (self.seq_max - self.seq_min).leading_zeros() as usize).div_ceil(8)
    }

    fn fixed(&self) -> bool {
        self.same_tag && self.same_key_len && self.same_payload_len
    }

    /// Length of the block, never less than it will be.
    fn len(&self) -> usize {
        let seq_base = if self.with_seq > 0 { SEQ_BASE_LEN } else { 0 };
        let slots = if self.fixed() { 0 } else { 2 * (self.count + 1) };
        let tags = if self.same_tag { 0 } else { self.count };
        let lengths = if self.same_key_len {
            0
        } else {
            self.count * varint_len((self.key_len_max - self.prefix_len) as u64)
        };
        let suffixes = self.keys - self.count * self.prefix_len;
        let seqs = self.with_seq * self.seq_width();
        HEADER_LEN
            + seq_base
            + self.prefix_len
            + slots
            + tags
            + lengths
            + suffixes
            + seqs
            + self.payloads
    }
}

impl BlockBuilder {
    pub fn new(block_size: usize) -> BlockBuilder {
        BlockBuilder {
            block_size,
            bytes: Vec::with_capacity(2 * block_size),
            entries: Vec::with_capacity(256),
            shape: Shape {
                count: 0,
                prefix_len: 0,
                keys: 0,
                key_len_max: 0,
                payloads: 0,
                with_seq: 0,
                seq_min: 0,
                seq_max: 0,
                same_tag: true,
                same_key_len: true,
                same_payload_len: true,
            },
            limit: block_size,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub fn count(&self) -> usize {
        self.entries.len()
    }

    /// Length in bytes as it stands.
    pub fn len(&self) -> usize {
        if self.is_empty() { 0 } else { self.shape.len() }
    }

    /// Key of the first entry. Only when not empty.
    pub fn first_key(&self) -> &[u8] {
        &self.bytes[..self.entries[0].key_len]
    }

    /// Adds an entry, the next in order, or finds the block full.
    pub fn add(&mut self, e: BlockEntry<'_>) -> Added {
        let with = self.shape_with(&e);
        let len = with.len();
        if !self.is_empty() {
            if len > MAX_NARROW || with.count > MAX_COUNT {
                return Added::BlockFull;
            }
            let waste = self.limit.saturating_sub(self.shape.len());
            if len > self.limit && waste * 16 <= self.limit {
                return Added::BlockFull;
            }
        }
        if len > self.limit {
            self.limit = len.next_multiple_of(PAGE);
        }
        self.entries.push(Pending {
            at: self.bytes.len(),
            key_len: e.key.len(),
            payload_len: e.payload.len(),
            tag: e.tag,
            seq: e.seq,
        });
        self.bytes.extend_from_slice(e.key);
        self.bytes.extend_from_slice(e.payload);
        self.shape = with;
        Added::Yes
    }

    fn shape_with(&self, e: &BlockEntry<'_>) -> Shape {
        let has_seq = e.tag & tag::HAS_SEQ != 0;
        let Some(first) = self.entries.first() else {
            // The whole key is common to itself, but a lone entry keeps it as its suffix: the
            // prefix is found when the second comes.
            return Shape {
                count: 1,
                prefix_len: 0,
                keys: e.key.len(),
                key_len_max: e.key.len(),
                payloads: e.payload.len(),
                with_seq: usize::from(has_seq),
                seq_min: e.seq,
                seq_max: e.seq,
                same_tag: true,
                same_key_len: true,
                same_payload_len: true,
            };
        };
        let mut s = self.shape;
        let limit = if s.count == 1 { MAX_NARROW - 1 } else { s.prefix_len };
        s.prefix_len = common_prefix(self.first_key(), e.key).min(limit);
        s.count += 1;
        s.keys += e.key.len();
        s.key_len_max = s.key_len_max.max(e.key.len());
        s.payloads += e.payload.len();
        s.same_tag &= e.tag == first.tag;
        s.same_key_len &= e.key.len() == first.key_len;
        s.same_payload_len &= e.payload.len() == first.payload_len;
        if has_seq {
            if s.with_seq == 0 {
                (s.seq_min, s.seq_max) = (e.seq, e.seq);
            }
            s.with_seq += 1;
            s.seq_min = s.seq_min.min(e.seq);
            s.seq_max = s.seq_max.max(e.seq);
        }
        s
    }

    /// Appends the block to `out`, to begin at page `page` of table `number`. Empties the builder.
    /// Only when not empty.
    pub fn finish(&mut self, number: u64, page: u64, out: &mut Vec<u8>) -> Finished {
        let s = self.shape;
        let start = out.len();
        let wide = s.len() > MAX_NARROW;
        assert!(!wide || s.count == 1, "only a lone entry makes a wide block");
        let fixed = s.fixed();
        let suffix_len = s.keys / s.count - s.prefix_len;
        let stride =
            s.payloads / s.count + suffix_len + if s.with_seq > 0 { s.seq_width() } else { 0 };
        let mut flags = 0;
        flags |= if s.with_seq > 0 { HAS_SEQ_BASE } else { 0 };
        flags |= if wide { WIDE } else { 0 };
        flags |= if fixed { FIXED } else { 0 };

        out.extend([0; 8]);
        out.extend((s.count as u16).to_le_bytes());
        out.extend((s.prefix_len as u16).to_le_bytes());
        out.extend(if fixed && !wide { stride as u16 } else { 0 }.to_le_bytes());
        out.extend(if s.same_key_len && !wide { suffix_len as u16 } else { VARIES }.to_le_bytes());
        out.push(0); // pages, below
        out.push(if s.same_tag { self.entries[0].tag } else { 0 });
        out.push(s.seq_width() as u8);
        out.push(flags);
        if wide {
            let len =
                HEADER_LEN + WIDE_LEN + if s.with_seq > 0 { SEQ_BASE_LEN } else { 0 } + stride;
            out.extend((len.div_ceil(PAGE) as u32).to_le_bytes());
            out.extend((stride as u32).to_le_bytes());
            out.extend((suffix_len as u32).to_le_bytes());
        }
        if s.with_seq > 0 {
            out.extend(s.seq_min.to_le_bytes());
        }
        out.extend_from_slice(&self.first_key()[..s.prefix_len]);
        let slots = out.len();
        if !fixed {
            out.resize(slots + 2 * (s.count + 1), 0);
        }
        let first = out.len() - start;
        for (i, e) in self.entries.iter().enumerate() {
            if !fixed {
                let offset = (out.len() - start) as u16;
                out[slots + 2 * i..][..2].copy_from_slice(&offset.to_le_bytes());
            }
            if !s.same_tag {
                out.push(e.tag);
            }
            if !s.same_key_len {
                put_varint(out, (e.key_len - s.prefix_len) as u64);
            }
            out.extend_from_slice(&self.bytes[e.at + s.prefix_len..e.at + e.key_len]);
            if e.tag & tag::HAS_SEQ != 0 {
                out.extend_from_slice(&(e.seq - s.seq_min).to_le_bytes()[..s.seq_width()]);
            }
            let payload = e.at + e.key_len;
            out.extend_from_slice(&self.bytes[payload..payload + e.payload_len]);
        }
        let len = out.len() - start;
        if !fixed {
            out[slots + 2 * s.count..][..2].copy_from_slice(&(len as u16).to_le_bytes());
        }
        debug_assert!(wide || len <= s.len(), "the shape promised less than was written");
        let pages = len.div_ceil(PAGE);
        if !wide {
            out[start + 16] = pages as u8;
        }
        out.resize(start + pages * PAGE, 0);
        let sum = checksum(&out[start + 8..], number, page);
        out[start..start + 8].copy_from_slice(&sum.to_le_bytes());

        self.entries.clear();
        self.bytes.clear();
        self.limit = self.block_size;
        Finished { pages, first, records: len - first }
    }
}

#[cfg(test)]
mod tests {
    use super::super::block::{Block, tag, validate};
    use super::super::memory::SLACK;
    use super::*;
    use crate::key::KeyOrder;

    /// What is laid out is read back, whichever parts are stored once.
    #[test]
    fn blocks_read_back() {
        let put = 1u8;
        let keys: Vec<Vec<u8>> = (0..40).map(|i| format!("prefix {i:02}").into()).collect();
        for shape in 0..16 {
            let mut b = BlockBuilder::new(PAGE);
            let mut entries = Vec::new();
            for (i, key) in keys.iter().enumerate() {
                let mut key = key.clone();
                if shape & 1 != 0 && i % 3 == 0 {
                    key.extend(vec![b'x'; if shape & 8 != 0 { 200 } else { 3 }]);
                }
                let payload = vec![i as u8; if shape & 2 != 0 { i } else { 7 }];
                let seq = (shape & 4 != 0 && i % 2 == 0).then_some(1000 + 77 * i as u64);
                let tag = put | if seq.is_some() { tag::HAS_SEQ } else { 0 };
                let entry = BlockEntry { key: &key, tag, seq: seq.unwrap_or(0), payload: &payload };
                assert_eq!(b.add(entry), Added::Yes);
                entries.push((key, seq, payload));
            }
            let mut bytes = Vec::new();
            let done = b.finish(1, 3, &mut bytes);
            assert_eq!(bytes.len(), done.pages * PAGE);
            assert_eq!(validate(&bytes, 300), Ok(()));
            assert_eq!(validate(&bytes, 3), Err("key length"));
            bytes.extend([0; SLACK]);
            // SAFETY: just validated, with the slack behind it.
            let block = unsafe { Block::new(bytes.as_ptr()) };
            assert_eq!(block.count as usize, entries.len());
            for (i, (key, seq, payload)) in entries.iter().enumerate() {
                let r = block.record(i as u32);
                assert_eq!([block.prefix(), r.suffix()].concat(), *key);
                assert_eq!((r.seq, r.payload), (*seq, &payload[..]));
                assert!(block.key_is(i as u32, key));
                assert_eq!(block.rank(&KeyOrder::Bytewise, key, false), i as u32);
                assert_eq!(block.rank(&KeyOrder::Bytewise, key, true), i as u32 + 1);
            }
        }
    }

    /// The block that `docs/format/table.md` writes out.
    #[test]
    fn the_worked_example() {
        let mut b = BlockBuilder::new(PAGE);
        for (key, payload) in [(b"ab", b"1"), (b"ac", b"2")] {
            let entry = BlockEntry { key, tag: 1, seq: 0, payload };
            assert_eq!(b.add(entry), Added::Yes);
        }
        let mut bytes = Vec::new();
        b.finish(1, 0, &mut bytes);
        let expected = b"\x02\0\x01\0\x02\0\x01\0\x01\x01\0\x04ab1c2";
        assert_eq!(&bytes[8..25], expected);
        assert!(bytes[25..].iter().all(|b| *b == 0));
    }

    /// A wide block holds one entry with lengths of 32 bits.
    #[test]
    fn wide_blocks_read_back() {
        let (key, payload) = (vec![b'k'; 65_536], vec![b'v'; 10_000]);
        let mut b = BlockBuilder::new(PAGE);
        let tag = 1 | tag::HAS_SEQ;
        let entry = BlockEntry { key: &key, tag, seq: 9, payload: &payload };
        assert_eq!(b.add(entry), Added::Yes);
        assert_eq!(b.add(BlockEntry { key: b"l", ..entry }), Added::BlockFull);
        let mut bytes = Vec::new();
        assert_eq!(b.finish(1, 0, &mut bytes).pages, 19);
        assert_eq!(validate(&bytes, 65_536), Ok(()));
        bytes.extend([0; SLACK]);
        // SAFETY: just validated, with the slack behind it.
        let block = unsafe { Block::new(bytes.as_ptr()) };
        let r = block.record(0);
        assert_eq!((r.suffix(), r.seq, r.payload), (&key[..], Some(9), &payload[..]));
    }
}

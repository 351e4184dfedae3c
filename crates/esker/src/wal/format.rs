//! Sizes, fields and checksums of a segment's parts. All numbers are little-endian.
//!
//! ```text
//! segment = header (4096 bytes), frame*, [seal], anything
//! frame   = checksum u32, length|flags u32, seq u64, record+
//! record  = back u32, kind u8 | klen u24, vlen u32, keyspace u32, key, value, zeros to 8 bytes
//! seal    = a frame whose flag is set: the number of the next segment u64
//! mark    = a frame whose flag is set: segment u64, offset u64, all before is durable
//! ```

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::key::Kind;

/// First bytes of a segment.
pub(super) const MAGIC: [u8; 8] = *b"ESKERLOG";
/// Version of the format that this build writes, and the newest that it reads.
pub(super) const FORMAT: u32 = 1;
/// Where the first frame starts. The header has a page of its own: later writes never touch it, so
/// that no torn write can take it along.
pub(super) const FIRST_FRAME: usize = 4096;
/// The same as an offset in a file.
pub(crate) const FIRST_FRAME_OFFSET: u64 = FIRST_FRAME as u64;
/// Bytes of the header that carry something; the rest of its page is zero.
pub(super) const HEADER_USED: usize = 40;

/// Size of a frame's header in bytes.
pub(crate) const FRAME_HEADER: usize = 16;
/// Size of a seal in bytes.
pub(super) const SEAL: usize = FRAME_HEADER + 8;
/// Size of a mark in bytes.
pub(super) const SYNC_MARKER: usize = FRAME_HEADER + 16;
/// Size of a record's header in bytes.
pub(crate) const RECORD_HEADER: usize = 16;
/// Frames and records start at multiples of this many bytes.
pub(crate) const ALIGN: usize = 8;
/// The largest sum of record lengths that a frame can have, in bytes.
pub(crate) const MAX_FRAME_PAYLOAD: u64 = !FLAGS as u64 - FRAME_HEADER as u64;

/// Bits of the length field that carry flags; lengths are multiples of 8.
pub(super) const FLAGS: u32 = ALIGN as u32 - 1;
/// Flag: the frame is a seal.
pub(super) const FLAG_SEAL: u32 = 1;
/// Flag: the frame is a mark.
pub(super) const FLAG_SYNC_MARKER: u32 = 2;

/// Length in bytes of a record, header and padding included.
#[inline]
pub(crate) const fn record_len(key: usize, value: usize) -> usize {
    (RECORD_HEADER + key + value + (ALIGN - 1)) & !(ALIGN - 1)
}

/// Size of the smallest segment that a frame with this many bytes of records fits into.
pub(crate) const fn segment_bytes_for(payload: u64) -> u64 {
    (FIRST_FRAME as u64 + FRAME_HEADER as u64 + payload + SEAL as u64).next_multiple_of(4096)
}

/// The two words of a record's header.
#[inline]
pub(crate) fn record_words(back: u32, kind: Kind, key: usize, value: usize, ks: u32) -> [u64; 2] {
    let kind_key = kind as u32 | (key as u32) << 8;
    [u64::from(back) | u64::from(kind_key) << 32, u64::from(value as u32) | u64::from(ks) << 32]
}

/// The fields of a record's header, as found: nothing is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordFields {
    /// Bytes from the frame's first byte to the record's.
    pub back: u32,
    pub kind: u8,
    pub key_len: usize,
    pub value_len: usize,
    pub keyspace: u32,
}

impl RecordFields {
    #[inline]
    pub(crate) fn from_words(words: [u64; 2]) -> RecordFields {
        let kind_key = (words[0] >> 32) as u32;
        RecordFields {
            back: words[0] as u32,
            kind: kind_key as u8,
            key_len: (kind_key >> 8) as usize,
            value_len: words[1] as u32 as usize,
            keyspace: (words[1] >> 32) as u32,
        }
    }

    /// From the first 16 bytes of a record, `None` when there are fewer.
    #[inline]
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<RecordFields> {
        let header = bytes.first_chunk::<RECORD_HEADER>()?;
        let word = u128::from_le_bytes(*header);
        Some(RecordFields::from_words([word as u64, (word >> 64) as u64]))
    }

    /// Length of the whole record in bytes.
    #[inline]
    pub(crate) fn record_len(&self) -> usize {
        record_len(self.key_len, self.value_len)
    }
}

/// A frame's checksum. `rest` is the frame without its first four bytes. The segment's number is
/// the seed, so what a recycled file still holds of its former life never passes.
#[inline]
pub(super) fn frame_checksum(number: u64, rest: &[u8]) -> u32 {
    xxh3_64_with_seed(rest, number) as u32
}

/// A separated value's checksum.
#[inline]
pub(super) fn value_checksum(value: &[u8]) -> u32 {
    xxh3_64(value) as u32
}

/// The used part of a segment's header.
pub(super) fn encode_header(number: u64, capacity: u64) -> [u8; HEADER_USED] {
    let mut b = [0; HEADER_USED];
    b[0..8].copy_from_slice(&MAGIC);
    b[8..12].copy_from_slice(&FORMAT.to_le_bytes());
    // 12..16: reserved, zero.
    b[16..24].copy_from_slice(&number.to_le_bytes());
    b[24..32].copy_from_slice(&capacity.to_le_bytes());
    let sum = xxh3_64(&b[..32]);
    b[32..40].copy_from_slice(&sum.to_le_bytes());
    b
}

/// What a header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Header {
    /// It is sound.
    Sound { number: u64, capacity: u64 },
    /// It was written by a newer version.
    Newer { format: u32 },
    /// It is none, or damaged: where and how.
    Bad { offset: u64, what: &'static str },
}

/// Reads a header; `page` is the file's beginning.
pub(super) fn decode_header(page: &[u8]) -> Header {
    let Some(b) = page.first_chunk::<HEADER_USED>() else {
        return Header::Bad { offset: page.len() as u64, what: "the file ends in its header" };
    };
    let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| b[at + i]));
    if b[0..8] != MAGIC {
        return Header::Bad { offset: 0, what: "it does not start as a log segment does" };
    }
    // Before the version is believed, the checksum: a flipped bit must not read as "newer".
    if word(32) != xxh3_64(&b[..32]) {
        return Header::Bad { offset: 32, what: "the header's checksum is wrong" };
    }
    let format = word(8) as u32;
    if format != FORMAT {
        return Header::Newer { format };
    }
    Header::Sound { number: word(16), capacity: word(24) }
}

/// A place in the log. Ordered as the log is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Position {
    /// Number of the segment.
    pub segment: u64,
    /// Offset in it: everything before is meant.
    pub end: u64,
}

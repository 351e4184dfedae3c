//! One key with its value, as it lies in the log.

use super::format::{ALIGN, RECORD_HEADER, RecordFields};
use crate::key::{Kind, Seq};

/// An entry, read in place: key and value are slices of the segment's mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Record<'a> {
    pub key: &'a [u8],
    /// Empty for a delete.
    pub value: &'a [u8],
    pub seq: Seq,
    pub kind: Kind,
    /// Number of the keyspace.
    pub keyspace: u32,
}

/// Reads the two words of a record's header.
///
/// # Safety
/// `at` is valid for reads of 16 bytes, is on an 8-byte boundary, and nobody writes there.
#[inline(always)]
pub(super) unsafe fn read_fields(at: *const u8) -> RecordFields {
    // SAFETY: the caller's.
    let words = unsafe { at.cast::<[u64; 2]>().read() };
    RecordFields::from_words(words.map(u64::from_le))
}

/// The kind of a record that was checked when it was written or recovered.
#[inline(always)]
pub(super) fn known_kind(kind: u8) -> Kind {
    if kind == Kind::Delete as u8 { Kind::Delete } else { Kind::Put }
}

/// Takes the record at byte `at` of a frame apart; `frame` is the frame, header included. `None`
/// when anything about it is not as it was written: bytes that nobody vouches for come this way.
pub(crate) fn decode(frame: &[u8], seq: Seq, at: usize) -> Option<(Record<'_>, usize)> {
    let bytes = frame.get(at..)?;
    let fields = RecordFields::from_bytes(bytes)?;
    let kind = Kind::from_u8(fields.kind)?;
    let len = fields.record_len();
    let bytes = bytes.get(RECORD_HEADER..len)?;
    let (key, rest) = bytes.split_at_checked(fields.key_len)?;
    let (value, padding) = rest.split_at_checked(fields.value_len)?;
    let sound = fields.back as usize == at
        && fields.key_len <= crate::MAX_KEY_LEN
        && fields.value_len <= crate::MAX_VALUE_LEN
        && (kind == Kind::Put || fields.value_len == 0)
        && padding.len() < ALIGN
        && padding.iter().all(|&b| b == 0);
    sound.then_some((Record { key, value, seq, kind, keyspace: fields.keyspace }, len))
}

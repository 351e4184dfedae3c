//! Little-endian numbers and length-prefixed strings, for the parts of a table that are read once, and the
//! checksum of all its parts.

use crate::util::get_varint;

/// The part of a table that is not one of many, for [`checksum`].
pub(super) const ONLY: u64 = 0;

/// XXH3 of a part of table `number`, mixed with that and with the part's place among those of its kind: one
/// that was written to another place, or is in another table's file, is none of it.
pub(super) fn checksum(bytes: &[u8], number: u64, place: u64) -> u64 {
    xxhash_rust::xxh3::xxh3_64(bytes)
        ^ number.wrapping_mul(0xC2B2_AE3D_27D4_EB4F)
        ^ (place + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// Appends numbers and strings.
#[derive(Default)]
pub(super) struct SectionWriter {
    pub bytes: Vec<u8>,
}

impl SectionWriter {
    pub fn u8(&mut self, v: u8) {
        self.bytes.push(v);
    }
    pub fn u32(&mut self, v: u32) {
        self.bytes.extend(v.to_le_bytes());
    }
    pub fn u64(&mut self, v: u64) {
        self.bytes.extend(v.to_le_bytes());
    }
    /// A string behind its length (u32).
    pub fn string(&mut self, v: &[u8]) {
        self.u32(v.len() as u32);
        self.bytes.extend(v);
    }
}

/// Takes them back; `None` where the bytes end too soon.
pub(super) struct SectionReader<'a> {
    bytes: &'a [u8],
}

impl<'a> SectionReader<'a> {
    pub fn new(bytes: &'a [u8]) -> SectionReader<'a> {
        SectionReader { bytes }
    }
    pub fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(n)?;
        self.bytes = rest;
        Some(taken)
    }
    pub fn u8(&mut self) -> Option<u8> {
        Some(self.take(1)?[0])
    }
    pub fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }
    pub fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }
    pub fn string(&mut self) -> Option<&'a [u8]> {
        let n = self.u32()?;
        self.take(n as usize)
    }
    /// Bytes not taken yet.
    pub fn left(&self) -> usize {
        self.bytes.len()
    }
}

/// A varint of 32 bits and its length in bytes.
#[inline(always)]
pub(super) fn get_varint32(bytes: &[u8]) -> Option<(u32, usize)> {
    let (v, len) = get_varint(bytes).ok()?;
    Some((u32::try_from(v).ok()?, len))
}

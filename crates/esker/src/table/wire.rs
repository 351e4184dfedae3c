//! Little-endian numbers and length-prefixed strings, for the parts of a table that are read once.

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

/// Appends `v`, seven bits a byte, low bits first.
pub(super) fn put_varint(out: &mut Vec<u8>, mut v: u32) {
    while v >= 0x80 {
        out.push(v as u8 | 0x80);
        v >>= 7;
    }
    out.push(v as u8);
}

/// Bytes [`put_varint`] takes.
pub(super) fn varint_len(v: u32) -> usize {
    (38 - (v | 1).leading_zeros() as usize) / 7
}

/// A varint and its length in bytes.
#[inline(always)]
pub(super) fn get_varint(bytes: &[u8]) -> Option<(u32, usize)> {
    let first = *bytes.first()?;
    if first < 0x80 {
        return Some((u32::from(first), 1));
    }
    long_varint(bytes)
}

#[inline(never)]
fn long_varint(bytes: &[u8]) -> Option<(u32, usize)> {
    let mut v = 0;
    for (i, &b) in bytes.iter().take(5).enumerate() {
        v |= u64::from(b & 0x7F) << (7 * i);
        if b < 0x80 {
            return Some((u32::try_from(v).ok()?, i + 1));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_round_trip() {
        for v in (0..32).flat_map(|b| [1u32 << b, (1 << b) - 1, u32::MAX >> b]) {
            let mut out = Vec::new();
            put_varint(&mut out, v);
            assert_eq!(out.len(), varint_len(v));
            assert_eq!(get_varint(&out), Some((v, out.len())));
            assert_eq!(get_varint(&out[..out.len() - 1]), None);
        }
        assert_eq!(get_varint(&[0xFF; 9]), None);
    }
}

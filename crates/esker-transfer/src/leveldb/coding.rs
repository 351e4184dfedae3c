//! Integers and lengths as LevelDB's files have them: little-endian, or in groups of seven bits with
//! the low ones first.

/// What is left of some bytes. A read that does not fit gives `None` and the rest is then undefined.
#[derive(Clone, Copy)]
pub(super) struct Input<'a>(pub &'a [u8]);

impl<'a> Input<'a> {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn bytes(&mut self, len: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(bytes)
    }

    pub fn u8(&mut self) -> Option<u8> {
        Some(self.bytes(1)?[0])
    }

    pub fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.bytes(4)?.try_into().ok()?))
    }

    pub fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.bytes(8)?.try_into().ok()?))
    }

    pub fn varint(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                return None;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    pub fn varint32(&mut self) -> Option<u32> {
        u32::try_from(self.varint()?).ok()
    }

    /// Bytes behind their length.
    pub fn prefixed(&mut self) -> Option<&'a [u8]> {
        let len = self.varint32()?;
        self.bytes(len as usize)
    }
}

/// Appends an integer in groups of seven bits.
pub(super) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends bytes behind their length.
pub(super) fn put_prefixed(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// The checksum of bytes that lie in parts, as the files have it: rotated and with a constant added,
/// so that a checksum of bytes that hold checksums is no weaker.
pub(super) fn checksum(parts: &[&[u8]]) -> u32 {
    let crc = parts.iter().fold(0, |crc, part| crc32c::crc32c_append(crc, part));
    masked(crc)
}

/// The stored form of a plain checksum.
pub(super) fn masked(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers() {
        for value in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX - 1, u64::MAX] {
            let mut bytes = Vec::new();
            put_varint(&mut bytes, value);
            assert_eq!(Input(&bytes).varint(), Some(value));
            assert_eq!(Input(&bytes[..bytes.len() - 1]).varint(), None, "cut");
            assert_eq!(Input(&bytes).varint32().is_some(), value <= u64::from(u32::MAX));
        }
        assert_eq!(Input(&[0xff; 11]).varint(), None, "more than 64 bits");
        assert_eq!(
            Input(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2]).varint(),
            None
        );
        let mut input = Input(b"\x03abcd");
        assert_eq!(input.prefixed(), Some(&b"abc"[..]));
        assert_eq!((input.u32(), Input(b"\x05abcd").prefixed()), (None, None));
    }

    #[test]
    fn checksums() {
        // The check value of CRC-32C, whole and in parts.
        assert_eq!(checksum(&[b"123456789"]), masked(0xe306_9283));
        assert_eq!(checksum(&[b"1234", b"", b"56789"]), masked(0xe306_9283));
    }
}

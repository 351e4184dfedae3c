//! Keys of several shapes. Whatever the shape, a larger index gives a larger key in byte order, so
//! that "sequential" means the same for all of them and an order can be verified.

use super::file::FileData;
use super::rng::mix;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What a key looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum KeyShape {
    /// 16 decimal digits, as in the classic reports.
    #[default]
    Decimal,
    /// 8 bytes, big-endian.
    Binary,
    /// 36 characters of a time-ordered UUID (version 7): a rising prefix, a random rest.
    Uuid,
    /// A URL of 60 to 90 bytes with a long common prefix.
    Url,
    /// 30 to 40 bytes: a record's number and the name of one of its six parts.
    Pieces,
}

/// Where a row's keys come from.
#[derive(Debug, Clone)]
pub enum Keys {
    /// Made up.
    Shape(KeyShape),
    /// The user's.
    File(Arc<FileData>),
}

impl Keys {
    /// Key number `index`, made in `buf` if it must be made.
    #[inline]
    pub fn write<'a>(&'a self, index: u64, buf: &'a mut KeyBuf) -> &'a [u8] {
        match self {
            Keys::Shape(shape) => shape.write(index, buf),
            Keys::File(file) => file.key(index),
        }
    }
    /// A key that is never stored and lies just after key `index`, so that no engine can dismiss it
    /// by the range of its files alone.
    #[inline]
    pub fn write_missing<'a>(&self, index: u64, buf: &'a mut KeyBuf) -> &'a [u8] {
        match self {
            Keys::Shape(shape) => shape.write_missing(index, buf),
            Keys::File(file) => file.missing(index, buf),
        }
    }
}

/// Room for one key; reused, so that formatting allocates nothing.
#[derive(Debug)]
pub struct KeyBuf {
    bytes: [u8; 128],
    len: usize,
    /// For keys of any length: of files only, since a vector costs more.
    long: Vec<u8>,
}

impl KeyBuf {
    /// An empty buffer.
    pub fn new() -> Self {
        KeyBuf { bytes: [0; 128], len: 0, long: Vec::new() }
    }
    /// The key written last.
    pub fn get(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
    /// A copy of `key`, of any length, to be changed.
    pub fn long(&mut self, key: &[u8]) -> &mut Vec<u8> {
        self.long.clear();
        self.long.extend_from_slice(key);
        &mut self.long
    }
    #[inline]
    fn push(&mut self, s: &[u8]) {
        self.bytes[self.len..self.len + s.len()].copy_from_slice(s);
        self.len += s.len();
    }
    #[inline]
    fn push_decimal(&mut self, v: u64, width: usize) {
        let at = self.len;
        write_decimal(&mut self.bytes[at..at + width], v);
        self.len += width;
    }
    fn push_hex(&mut self, v: u64, digits: usize) {
        for i in (0..digits).rev() {
            let nibble = (v >> (4 * i)) as usize & 15;
            self.push(&b"0123456789abcdef"[nibble..nibble + 1]);
        }
    }
}

impl KeyShape {
    /// Writes key number `index`. It is formatted anew for every operation, for all engines alike.
    #[inline]
    pub fn write<'a>(&self, index: u64, buf: &'a mut KeyBuf) -> &'a [u8] {
        buf.len = 0;
        match self {
            KeyShape::Decimal => buf.push_decimal(index, 16),
            KeyShape::Binary => buf.push(&index.to_be_bytes()),
            KeyShape::Uuid => uuid(index, buf),
            KeyShape::Url => url(index, buf),
            KeyShape::Pieces => pieces(index, buf),
        }
        buf.get()
    }

    /// Writes a key that is never stored and lies between two that may be, so that no engine can
    /// dismiss it by the range of its files alone.
    #[inline]
    pub fn write_missing<'a>(&self, index: u64, buf: &'a mut KeyBuf) -> &'a [u8] {
        self.write(index, buf);
        buf.push(b".");
        buf.get()
    }
}

fn uuid(index: u64, buf: &mut KeyBuf) {
    // 48 bits of milliseconds, then a counter within one, as RFC 9562 section 6.2 allows.
    let (time, random) = (0x018c_0000_0000 + (index >> 12), mix(index));
    buf.push_hex(time >> 16, 8);
    buf.push(b"-");
    buf.push_hex(time & 0xffff, 4);
    buf.push(b"-7");
    buf.push_hex(index & 0xfff, 3);
    buf.push(b"-a");
    buf.push_hex(random >> 52, 3);
    buf.push(b"-");
    buf.push_hex(random & 0xffff_ffff_ffff, 12);
}

fn url(index: u64, buf: &mut KeyBuf) {
    const WORDS: [&[u8]; 8] =
        [b"river", b"a-meadow", b"of-glass", b"winter", b"old", b"harbour", b"light", b"the-seven"];
    buf.push(b"https://www.example.com/archive/");
    buf.push_decimal(index / 1000, 8);
    buf.push(b"/");
    buf.push_decimal(index % 1000, 3);
    let random = mix(index);
    for shift in [0, 3, 6] {
        buf.push(b"-");
        buf.push(WORDS[(random >> shift) as usize & 7]);
    }
    buf.push(b".html");
}

/// The parts of a record, in the order of their names; the second and the last are the large ones.
const PARTS: [&[u8]; 6] =
    [b"/address", b"/biography", b"/contact", b"/language", b"/latest-visit", b"/preferences"];

fn pieces(index: u64, buf: &mut KeyBuf) {
    buf.push(b"member/");
    buf.push_decimal(index / 6, 16);
    buf.push(PARTS[(index % 6) as usize]);
}

const PAIRS: [[u8; 2]; 100] = {
    let mut t = [[0; 2]; 100];
    let mut i = 0;
    while i < 100 {
        t[i] = [b'0' + (i / 10) as u8, b'0' + (i % 10) as u8];
        i += 1;
    }
    t
};

/// `%0*d`, two digits at a time: the standard formatter would cost more than a fast read.
#[inline]
fn write_decimal(out: &mut [u8], mut v: u64) {
    let mut at = out.len();
    while at >= 2 {
        out[at - 2..at].copy_from_slice(&PAIRS[(v % 100) as usize]);
        v /= 100;
        at -= 2;
    }
    if at == 1 {
        out[0] = b'0' + (v % 10) as u8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_is_what_printf_gives() {
        let mut b = KeyBuf::new();
        for i in [0, 7, 10, 99, 100, 1_234_567, 9_999_999_999_999_999] {
            assert_eq!(KeyShape::Decimal.write(i, &mut b), format!("{i:016}").as_bytes());
        }
        assert_eq!(KeyShape::Decimal.write_missing(5, &mut b), b"0000000000000005.");
    }

    #[test]
    fn every_shape_rises_with_its_index_and_missing_keys_lie_between() {
        for shape in
            [KeyShape::Decimal, KeyShape::Binary, KeyShape::Uuid, KeyShape::Url, KeyShape::Pieces]
        {
            let (mut a, mut b, mut c) = (KeyBuf::new(), KeyBuf::new(), KeyBuf::new());
            for i in (0..20_000).chain(999_990..1_000_010).chain((1 << 30)..(1 << 30) + 5000) {
                let (here, next) = (shape.write(i, &mut a), shape.write(i + 1, &mut b));
                assert!(here < next, "{shape:?} {i}");
                let missing = shape.write_missing(i, &mut c);
                assert!(here < missing && missing < next, "{shape:?} {i}");
            }
        }
    }

    #[test]
    fn a_uuid_has_its_form() {
        let mut b = KeyBuf::new();
        let s = std::str::from_utf8(KeyShape::Uuid.write(123_456_789, &mut b)).unwrap().to_owned();
        assert_eq!(s.len(), 36, "{s}");
        assert_eq!(s.as_bytes()[14], b'7');
    }
}

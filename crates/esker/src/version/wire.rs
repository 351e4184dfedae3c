//! The few encodings an edit is made of: varints, length-prefixed bytes, options, booleans.
//!
//! Each value has exactly one encoding; a reader refuses any other, so that two different byte
//! strings never mean the same edit.

use super::Invalid;
use crate::util::get_varint;
pub(super) use crate::util::put_varint as put_u64;

pub(super) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_u64(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

pub(super) fn put_option(out: &mut Vec<u8>, v: Option<u64>) {
    out.push(u8::from(v.is_some()));
    if let Some(v) = v {
        put_u64(out, v);
    }
}

/// Reads what the functions above wrote. Every length is checked against the bytes that are left
/// before anything is allocated for it.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes }
    }

    pub(super) fn left(&self) -> usize {
        self.rest.len()
    }

    pub(super) fn u8(&mut self) -> Result<u8, Invalid> {
        let (&b, rest) = self.rest.split_first().ok_or_else(cut_short)?;
        self.rest = rest;
        Ok(b)
    }

    pub(super) fn u64(&mut self) -> Result<u64, Invalid> {
        let (v, len) = get_varint(self.rest).map_err(Invalid::new)?;
        self.rest = &self.rest[len..];
        Ok(v)
    }

    pub(super) fn u32(&mut self) -> Result<u32, Invalid> {
        u32::try_from(self.u64()?).map_err(|_| Invalid::new("a number does not fit 32 bits"))
    }

    pub(super) fn bool(&mut self) -> Result<bool, Invalid> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            b => Err(Invalid::new(format!("{b} is neither yes nor no"))),
        }
    }

    pub(super) fn option(&mut self) -> Result<Option<u64>, Invalid> {
        if self.bool()? { self.u64().map(Some) } else { Ok(None) }
    }

    /// Length-prefixed bytes, at most `max` of them.
    pub(super) fn bytes(&mut self, max: usize) -> Result<&'a [u8], Invalid> {
        let len = self.u64()?;
        if len > max as u64 {
            return Err(Invalid::new(format!("{len} bytes where at most {max} are allowed")));
        }
        let len = len as usize;
        if len > self.rest.len() {
            return Err(cut_short());
        }
        let (bytes, rest) = self.rest.split_at(len);
        self.rest = rest;
        Ok(bytes)
    }

    pub(super) fn text(&mut self, max: usize) -> Result<String, Invalid> {
        let bytes = self.bytes(max)?;
        let text = std::str::from_utf8(bytes).map_err(|_| Invalid::new("a name is not UTF-8"))?;
        Ok(text.to_owned())
    }

    /// A count of things that take at least `each` bytes, so that no count makes a reader allocate
    /// more than the input is long.
    pub(super) fn count(&mut self, each: usize) -> Result<usize, Invalid> {
        let n = self.u64()?;
        if n > (self.rest.len() / each) as u64 {
            return Err(cut_short());
        }
        Ok(n as usize)
    }

    pub(super) fn end(&self) -> Result<(), Invalid> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(Invalid::new(format!("{} bytes too many", self.rest.len())))
        }
    }
}

fn cut_short() -> Invalid {
    Invalid::new("cut short")
}

//! Many entries in one buffer, so that a crossing between the languages costs little for each.
//!
//! A batch, made by `lib/packed.js`: for each operation a byte (1 to put, 0 to delete), the length of the key, that of the value (0
//! for a delete), and the bytes of both. A chunk of a walk, read there: a byte of flags, the number of entries, then for each entry
//! the length and the bytes of what was asked for, key before value. Numbers are 32 bits wide, the low byte first.

use esker::WriteBatch;

use crate::error::{Fail, Outcome};

/// The walk is at its end.
const ENDED: u8 = 1;
/// All that is to become strings is ASCII, which is made into strings faster.
const ASCII: u8 = 2;

/// Reads what JavaScript packed into a batch. Lengths are not trusted.
pub fn read_operations(bytes: &[u8], len: usize, batch: &mut WriteBatch) -> Outcome<()> {
    let bad = || Fail::Invalid("the batch is not packed as it must be".to_string());
    let mut rest = bytes.get(..len).ok_or_else(bad)?;
    while let Some((&kind, after)) = rest.split_first() {
        let (key_len, after) = read_len(after).ok_or_else(bad)?;
        let (value_len, after) = read_len(after).ok_or_else(bad)?;
        let (key, after) = after.split_at_checked(key_len).ok_or_else(bad)?;
        let (value, after) = after.split_at_checked(value_len).ok_or_else(bad)?;
        match kind {
            0 => batch.delete(key),
            1 => batch.put(key, value),
            _ => return Err(bad()),
        }
        rest = after;
    }
    Ok(())
}

fn read_len(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (len, rest) = bytes.split_first_chunk::<4>()?;
    Some((u32::from_le_bytes(*len) as usize, rest))
}

/// A chunk of a walk while it is filled.
pub struct Chunk {
    bytes: Vec<u8>,
    is_ascii: bool,
}

/// Flags and the number of entries.
const HEAD_BYTES: usize = 5;

impl Chunk {
    /// An empty one.
    pub fn new() -> Chunk {
        Chunk { bytes: vec![0; HEAD_BYTES], is_ascii: true }
    }

    /// Adds a key or a value.
    fn push(&mut self, part: &[u8], as_string: bool) -> Outcome<()> {
        let more = part.len() + 4;
        self.bytes.try_reserve(more).map_err(|_| Fail::NoMemory(more))?;
        // Keys and values are far below 4 GiB.
        self.bytes.extend_from_slice(&(part.len() as u32).to_le_bytes());
        self.bytes.extend_from_slice(part);
        self.is_ascii &= !as_string || part.is_ascii();
        Ok(())
    }

    /// Adds what is asked for of an entry, or nothing where there is no memory for all of it. Its bytes.
    pub fn push_all<'p>(
        &mut self,
        parts: impl Iterator<Item = (&'p [u8], bool)>,
    ) -> Outcome<usize> {
        let (before, mut bytes) = (self.bytes.len(), 0);
        for (part, as_string) in parts {
            if let Err(e) = self.push(part, as_string) {
                self.bytes.truncate(before);
                return Err(e);
            }
            bytes += part.len();
        }
        Ok(bytes)
    }

    /// The bytes for JavaScript.
    pub fn finish(mut self, entries: u32, ended: bool) -> Vec<u8> {
        let flags = if ended { ENDED } else { 0 } | if self.is_ascii { ASCII } else { 0 };
        self.bytes[0] = flags;
        self.bytes[1..HEAD_BYTES].copy_from_slice(&entries.to_le_bytes());
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_that_is_cut_or_changed_is_refused_and_never_read_past_its_end() {
        let mut good = vec![1, 1, 0, 0, 0, 2, 0, 0, 0];
        good.extend_from_slice(b"kvv");
        good.extend_from_slice(&[0, 1, 0, 0, 0, 0, 0, 0, 0, b'k']);
        let mut batch = WriteBatch::new();
        read_operations(&good, good.len(), &mut batch).unwrap();
        assert_eq!(batch.len(), 2);
        for len in 0..good.len() {
            let whole = len == 0 || len == 12;
            assert_eq!(read_operations(&good, len, &mut WriteBatch::new()).is_ok(), whole, "{len}");
        }
        assert!(read_operations(&good, good.len() + 1, &mut WriteBatch::new()).is_err());
        good[1] = 255;
        good[4] = 255;
        assert!(read_operations(&good, good.len(), &mut WriteBatch::new()).is_err());
        good[0] = 7;
        assert!(read_operations(&good, good.len(), &mut WriteBatch::new()).is_err());
    }

    #[test]
    fn a_chunk_says_whether_its_strings_are_ascii() {
        let mut chunk = Chunk::new();
        chunk.push(b"key", true).unwrap();
        chunk.push(&[200], false).unwrap();
        assert_eq!(
            chunk.finish(1, true),
            [3, 1, 0, 0, 0, 3, 0, 0, 0, b'k', b'e', b'y', 1, 0, 0, 0, 200]
        );
        let mut chunk = Chunk::new();
        chunk.push("ö".as_bytes(), true).unwrap();
        assert_eq!(chunk.finish(1, false)[0], 0);
    }
}

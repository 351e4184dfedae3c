//! Makes a table.

use std::io::{self, Write};

use super::block::BlockBuilder;
use super::coding::{checksum, put_varint};
use super::compression::{self, pack};
use super::internal_key::{split, tag};
use super::table::{BlockHandle, FOOTER, MAGIC, TRAILER};
use crate::merge::{Tag, VALUE};

/// A block ends when it has so many bytes.
const BLOCK_BYTES: usize = 4 << 10;
/// Entries from one restart to the next.
const RESTART_INTERVAL: usize = 16;

pub(super) struct TableBuilder<W> {
    out: W,
    offset: u64,
    data: BlockBuilder,
    index: BlockBuilder,
    /// A block that is written and not in the index yet, with its last key: what separates it from the
    /// next is known when that begins.
    pending: Option<(BlockHandle, Vec<u8>)>,
    compress: bool,
    smallest: Vec<u8>,
    /// The key of the version that was added last.
    key: Vec<u8>,
}

impl<W: Write> TableBuilder<W> {
    pub fn new(out: W, compress: bool) -> TableBuilder<W> {
        TableBuilder {
            out,
            offset: 0,
            data: BlockBuilder::new(RESTART_INTERVAL),
            // A search ends in the block that the index names: it has no use for prefixes.
            index: BlockBuilder::new(1),
            pending: None,
            compress,
            smallest: Vec::new(),
            key: Vec::new(),
        }
    }

    /// Adds a version behind all others.
    pub fn add(&mut self, key: &[u8], tag: Tag, value: &[u8]) -> io::Result<()> {
        let is_first = self.key.is_empty();
        self.key.clear();
        self.key.extend_from_slice(key);
        self.key.extend_from_slice(&tag.to_le_bytes());
        if is_first {
            self.smallest.clone_from(&self.key);
        }
        if let Some((handle, last)) = self.pending.take() {
            self.index.add(&separator(&last, key), &encoded(handle));
        }
        self.data.add(&self.key, value);
        if self.data.size() >= BLOCK_BYTES {
            self.end_block()?;
        }
        Ok(())
    }

    /// Bytes that were written and are about to be.
    pub fn size(&self) -> u64 {
        self.offset + self.data.size() as u64
    }

    fn end_block(&mut self) -> io::Result<()> {
        let last = self.data.last().to_vec();
        let block = self.data.finish();
        let handle = self.write_block(&block)?;
        self.pending = Some((handle, last));
        Ok(())
    }

    fn write_block(&mut self, block: &[u8]) -> io::Result<BlockHandle> {
        let packed = if self.compress { pack(block) } else { None };
        let (kind, bytes) = match &packed {
            Some(packed) => (compression::SNAPPY, &packed[..]),
            None => (compression::NONE, block),
        };
        let handle = BlockHandle { offset: self.offset, size: bytes.len() as u64 };
        self.out.write_all(bytes)?;
        self.out.write_all(&[kind])?;
        self.out.write_all(&checksum(&[bytes, &[kind]]).to_le_bytes())?;
        self.offset += (bytes.len() + TRAILER) as u64;
        Ok(handle)
    }

    /// Writes what is left. Gives where it was written, the size, and the first and last key.
    pub fn finish(mut self) -> io::Result<(W, u64, Vec<u8>, Vec<u8>)> {
        if !self.data.is_empty() {
            self.end_block()?;
        }
        if let Some((handle, last)) = self.pending.take() {
            self.index.add(&last, &encoded(handle));
        }
        // There are no filters to name.
        let other = self.write_block(&BlockBuilder::new(1).finish())?;
        let index = self.index.finish();
        let index = self.write_block(&index)?;
        let mut footer = [encoded(other), encoded(index)].concat();
        footer.resize(FOOTER - 8, 0);
        footer.extend_from_slice(&MAGIC.to_le_bytes());
        self.out.write_all(&footer)?;
        self.offset += FOOTER as u64;
        Ok((self.out, self.offset, self.smallest, self.key))
    }
}

fn encoded(handle: BlockHandle) -> Vec<u8> {
    let mut out = Vec::new();
    put_varint(&mut out, handle.offset);
    put_varint(&mut out, handle.size);
    out
}

/// A key of a version at or behind `last`, and before all versions of the user's key `next`: short,
/// as an index is read whole.
fn separator(last: &[u8], next: &[u8]) -> Vec<u8> {
    let user = split(last).map_or(last, |(user, _)| user);
    let shared = user.iter().zip(next).take_while(|(a, b)| a == b).count();
    // Where a byte lies between the two, the key ends with it. It sorts before its own versions.
    match (user.get(shared), next.get(shared)) {
        (Some(a), Some(b)) if a + 1 < *b && shared + 1 < user.len() => {
            let mut key = user[..=shared].to_vec();
            key[shared] += 1;
            let newest = tag(super::internal_key::MAX_SEQUENCE, VALUE);
            key.extend_from_slice(&newest.to_le_bytes());
            key
        }
        _ => last.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merge::order;

    #[test]
    fn a_separator_lies_between() {
        let keys =
            ["", "a", "ab", "abc", "abcdef", "abd", "abzzzz", "b", "ba", "d", "dxyz", "\u{7f}"];
        for (at, a) in keys.iter().enumerate() {
            for b in &keys[at + 1..] {
                let last = [a.as_bytes(), &tag(1, VALUE).to_le_bytes()].concat();
                let key = separator(&last, b.as_bytes());
                let (user, found) = split(&key).unwrap();
                assert!(order((a.as_bytes(), tag(1, VALUE)), (user, found)).is_le(), "{a} {b}");
                assert!(user < b.as_bytes(), "{a} {b}: {user:?}");
                assert!(key.len() <= last.len());
            }
        }
        let last = [&b"abcdef"[..], &tag(1, VALUE).to_le_bytes()].concat();
        assert_eq!(separator(&last, b"azz")[..2], *b"ac");
    }
}

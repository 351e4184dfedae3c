//! A block: entries in the order of their keys, each without the bytes at its beginning that it
//! shares with the key before it, and now and then one with all of them, a *restart*.
//!
//! ```text
//! block := entry* | restart u32[count] | count u32
//! entry := shared varint | others varint | value_len varint | key[others] | value[value_len]
//! ```

use super::coding::{Input, put_varint};

/// Steps through a block. Whatever is in it, each step goes on in it or ends.
pub(super) struct Entries<B> {
    bytes: B,
    /// Where the entries end.
    end: usize,
    at: usize,
    key: Vec<u8>,
    value: (usize, usize),
}

impl<B: AsRef<[u8]>> Entries<B> {
    pub fn new(bytes: B) -> Result<Entries<B>, String> {
        let all = bytes.as_ref();
        let count = all.len().checked_sub(4).and_then(|at| Input(&all[at..]).u32());
        let restarts = count.and_then(|n| (n as usize).checked_mul(4)?.checked_add(4));
        let end = restarts.and_then(|len| all.len().checked_sub(len));
        let end = end.ok_or("a block is shorter than it says")?;
        Ok(Entries { bytes, end, at: 0, key: Vec::new(), value: (0, 0) })
    }

    /// To the next entry; false at the end.
    pub fn advance(&mut self) -> Result<bool, String> {
        if self.at == self.end {
            return Ok(false);
        }
        match self.step() {
            Some(()) => Ok(true),
            None => {
                let at = self.at;
                self.at = self.end;
                Err(format!("the entry at byte {at} of a block is none"))
            }
        }
    }

    fn step(&mut self) -> Option<()> {
        let entries = self.bytes.as_ref().get(..self.end)?;
        let mut input = Input(entries.get(self.at..)?);
        let (shared, others) = (input.varint32()? as usize, input.varint32()? as usize);
        let value_len = input.varint32()? as usize;
        let key = input.bytes(others)?;
        let value = input.bytes(value_len)?;
        if shared > self.key.len() {
            return None;
        }
        self.key.truncate(shared);
        self.key.extend_from_slice(key);
        self.at = self.end - input.0.len();
        self.value = (self.at - value.len(), self.at);
        Some(())
    }

    pub fn key(&self) -> &[u8] {
        &self.key
    }

    pub fn value(&self) -> &[u8] {
        &self.bytes.as_ref()[self.value.0..self.value.1]
    }
}

/// Makes a block.
pub(super) struct BlockBuilder {
    bytes: Vec<u8>,
    restarts: Vec<u32>,
    last: Vec<u8>,
    /// Entries since the last restart, and how many there are between two.
    since: usize,
    interval: usize,
}

impl BlockBuilder {
    pub fn new(interval: usize) -> BlockBuilder {
        BlockBuilder { bytes: Vec::new(), restarts: vec![0], last: Vec::new(), since: 0, interval }
    }

    pub fn add(&mut self, key: &[u8], value: &[u8]) {
        let mut shared = 0;
        if self.since == self.interval {
            self.restarts.push(self.bytes.len() as u32);
            self.since = 0;
        } else {
            shared = self.last.iter().zip(key).take_while(|(a, b)| a == b).count();
        }
        put_varint(&mut self.bytes, shared as u64);
        put_varint(&mut self.bytes, (key.len() - shared) as u64);
        put_varint(&mut self.bytes, value.len() as u64);
        self.bytes.extend_from_slice(&key[shared..]);
        self.bytes.extend_from_slice(value);
        self.last.clear();
        self.last.extend_from_slice(key);
        self.since += 1;
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Bytes that it has so far.
    pub fn size(&self) -> usize {
        self.bytes.len() + 4 * self.restarts.len() + 4
    }

    /// The key that was added last.
    pub fn last(&self) -> &[u8] {
        &self.last
    }

    /// The block; the next begins empty.
    pub fn finish(&mut self) -> Vec<u8> {
        let mut block = std::mem::take(&mut self.bytes);
        for restart in &self.restarts {
            block.extend_from_slice(&restart.to_le_bytes());
        }
        block.extend_from_slice(&(self.restarts.len() as u32).to_le_bytes());
        *self = BlockBuilder::new(self.interval);
        block
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_back() {
        for interval in [1, 2, 16] {
            let mut builder = BlockBuilder::new(interval);
            let entries: Vec<_> = (0..100)
                .map(|n| (format!("key/{n:03}").into_bytes(), vec![n as u8; n % 7]))
                .chain([(vec![b'z'; 300], vec![1; 300])])
                .collect();
            entries.iter().for_each(|(key, value)| builder.add(key, value));
            let size = builder.size();
            let block = builder.finish();
            assert!(block.len() == size && builder.is_empty());
            let mut read = Entries::new(&block[..]).unwrap();
            for (key, value) in &entries {
                assert!(read.advance().unwrap());
                assert_eq!((read.key(), read.value()), (&key[..], &value[..]));
            }
            assert!(!read.advance().unwrap() && !read.advance().unwrap());
        }
    }

    #[test]
    fn an_empty_block() {
        let block = BlockBuilder::new(16).finish();
        assert_eq!(block, [0, 0, 0, 0, 1, 0, 0, 0]);
        assert!(!Entries::new(block).unwrap().advance().unwrap());
    }

    #[test]
    fn what_is_no_block() {
        for bytes in [&b""[..], b"\0\0\0", b"\x01\0\0\0", b"\xff\xff\xff\xff\xff\xff\xff\xff"] {
            assert!(Entries::new(bytes).is_err(), "{bytes:?}");
        }
        // Shares what is not there; a key and a value beyond the end; lengths of 32 bits and more.
        for entry in [&b"\x01\0\0"[..], b"\0\x02\0a", b"\0\0\x01", b"\0\xff\xff\xff\xff\xff\x01\0"]
        {
            let block = [entry, &[0; 4], &[1, 0, 0, 0]].concat();
            let mut entries = Entries::new(block).unwrap();
            assert!(entries.advance().is_err(), "{entry:?}");
            assert!(!entries.advance().unwrap(), "an end after an error");
        }
    }
}

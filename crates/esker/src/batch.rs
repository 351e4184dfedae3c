//! Batches: several writes that become visible, and survive a crash, together or not at all.

use crate::error::{Error, Result};
use crate::key::{Kind, MAX_KEY_LEN, MAX_VALUE_LEN};
use crate::wal::record::Record;
use crate::wal::{FRAME_HEADER, MAX_FRAME_PAYLOAD, record_len, record_words};

/// The number of the keyspace that every store has.
pub(crate) const DEFAULT_KEYSPACE: u32 = 0;

/// Writes that are applied together or not at all, in the order they were added: of two for one
/// key the later one counts.
///
/// Keys and values are copied into the batch at once, in the form the log stores them, so that
/// writing the batch is one copy. What is too long is noticed when the batch is written. A batch that
/// names keyspaces by their handles can be written to the store they are of, as long as that is open.
#[derive(Clone, Default)]
pub struct WriteBatch {
    /// Room for a frame's header, then the records; empty as long as there are none.
    frame: Vec<u8>,
    records: usize,
    /// Bytes of records, also of those that were left out because they can never be written.
    payload: u64,
    /// Bytes of keys and values.
    entries: u64,
    longest_key: usize,
    longest_value: usize,
    /// The keyspaces written to, each once. Few: a batch seldom spans more than a handful.
    keyspaces: Vec<u32>,
    home: Home,
}

/// Which open store the numbers of a batch's keyspaces are of.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Home {
    /// Only the default keyspace is named, which every store has.
    #[default]
    Any,
    /// The one with this number.
    One(u64),
    /// Keyspaces of several are named: none can take it.
    Several,
}

impl WriteBatch {
    /// Notes that a keyspace is named by a handle of this open store.
    pub(crate) fn note_store(&mut self, store: u64) {
        self.home = match self.home {
            Home::Any => Home::One(store),
            Home::One(home) if home == store => Home::One(home),
            _ => Home::Several,
        };
    }

    /// Whether it names nothing by a handle of another store than this.
    #[inline]
    pub(crate) fn fits(&self, store: u64) -> bool {
        self.home == Home::Any || self.home == Home::One(store)
    }

    /// The keyspaces written to, each once, by first use.
    pub(crate) fn keyspaces(&self) -> &[u32] {
        &self.keyspaces
    }

    /// An empty batch. Takes no memory yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets `key` to `value` in the default keyspace.
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        self.push(DEFAULT_KEYSPACE, Kind::Put, key.as_ref(), value.as_ref());
    }

    /// Removes `key` from the default keyspace, whether it is there or not.
    pub fn delete(&mut self, key: impl AsRef<[u8]>) {
        self.push(DEFAULT_KEYSPACE, Kind::Delete, key.as_ref(), b"");
    }

    /// Removes everything from the batch; its memory stays for the next use.
    pub fn clear(&mut self) {
        let mut frame = std::mem::take(&mut self.frame);
        frame.clear();
        *self = WriteBatch { frame, ..Self::default() };
    }

    /// Number of writes in the batch.
    pub fn len(&self) -> usize {
        self.records
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.records == 0
    }

    /// Size in bytes once written to the log; 0 when empty.
    pub fn byte_len(&self) -> usize {
        if self.is_empty() { 0 } else { self.payload as usize + FRAME_HEADER }
    }

    /// Adds a write in the keyspace with this number. `value` is empty for a delete.
    #[inline]
    pub(crate) fn push(&mut self, keyspace: u32, kind: Kind, key: &[u8], value: &[u8]) {
        if self.frame.is_empty() {
            self.frame.resize(FRAME_HEADER, 0);
        }
        let len = record_len(key.len(), value.len());
        self.records += 1;
        if self.keyspaces.last() != Some(&keyspace) && !self.keyspaces.contains(&keyspace) {
            self.keyspaces.push(keyspace);
        }
        self.payload = self.payload.saturating_add(len as u64);
        self.entries = self.entries.saturating_add((key.len() + value.len()) as u64);
        self.longest_key = self.longest_key.max(key.len());
        self.longest_value = self.longest_value.max(value.len());
        if self.check().is_err() {
            // It will be refused, with everything else in the batch: no use in copying it, and
            // its lengths may not fit their fields.
            return;
        }
        let at = self.frame.len();
        let words = record_words(at as u32, kind, key.len(), value.len(), keyspace);
        self.frame.reserve(len);
        self.frame.extend_from_slice(&words[0].to_le_bytes());
        self.frame.extend_from_slice(&words[1].to_le_bytes());
        self.frame.extend_from_slice(key);
        self.frame.extend_from_slice(value);
        self.frame.resize(at + len, 0);
    }

    /// Whether the batch can be written; the error names the first limit it breaks.
    #[inline]
    pub(crate) fn check(&self) -> Result<()> {
        if self.longest_key > MAX_KEY_LEN
            || self.longest_value > MAX_VALUE_LEN
            || self.payload > MAX_FRAME_PAYLOAD
        {
            return Err(self.refusal());
        }
        Ok(())
    }

    #[cold]
    fn refusal(&self) -> Error {
        if self.longest_key > MAX_KEY_LEN {
            Error::KeyTooLong { len: self.longest_key }
        } else if self.longest_value > MAX_VALUE_LEN {
            Error::ValueTooLong { len: self.longest_value }
        } else {
            Error::BatchTooLarge { len: self.payload, max: MAX_FRAME_PAYLOAD }
        }
    }

    /// Bytes of records: what [`segment_bytes_for`](crate::wal::segment_bytes_for) takes.
    pub(crate) fn payload_len(&self) -> u64 {
        self.payload
    }

    /// Bytes of keys and values.
    pub(crate) fn entry_bytes(&self) -> u64 {
        self.entries
    }

    /// The batch as a frame whose header is still zero. Only when `check` passed.
    #[inline]
    pub(crate) fn frame(&self) -> &[u8] {
        &self.frame
    }

    /// The writes, with the byte of the frame where each starts. Their sequence is 0.
    pub(crate) fn records(&self) -> impl Iterator<Item = (usize, Record<'_>)> {
        let mut at = FRAME_HEADER;
        std::iter::from_fn(move || {
            let (record, len) = crate::wal::record::decode(&self.frame, 0, at)?;
            let start = at;
            at += len;
            Some((start, record))
        })
    }
}

impl std::fmt::Debug for WriteBatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "WriteBatch({} writes, {} bytes)", self.len(), self.byte_len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_clears() {
        let mut batch = WriteBatch::new();
        assert!(batch.is_empty() && batch.byte_len() == 0);
        batch.put(b"key", b"value");
        batch.push(3, Kind::Delete, b"other", b"");
        assert_eq!((batch.len(), batch.byte_len()), (2, 16 + 24 + 24));
        let keys: Vec<_> = batch.records().map(|(at, r)| (at, r.key, r.keyspace)).collect();
        assert_eq!(keys, [(16, &b"key"[..], 0), (40, &b"other"[..], 3)]);
        batch.clear();
        assert!(batch.is_empty() && batch.byte_len() == 0 && batch.records().count() == 0);
        batch.push(0, Kind::Put, b"", b"");
        assert_eq!(batch.byte_len(), 32);
    }

    #[test]
    fn what_is_too_long_is_refused_whole() {
        let mut batch = WriteBatch::new();
        batch.push(0, Kind::Put, &[1; MAX_KEY_LEN], b"");
        assert!(batch.check().is_ok());
        assert_eq!(batch.records().next().unwrap().1.key.len(), MAX_KEY_LEN);
        batch.push(0, Kind::Put, &[1; MAX_KEY_LEN + 1], b"");
        batch.push(0, Kind::Put, b"key", b"");
        assert!(matches!(batch.check(), Err(Error::KeyTooLong { len }) if len == MAX_KEY_LEN + 1));
        assert_eq!(batch.len(), 3);
        batch.clear();
        assert!(batch.check().is_ok());
    }

    #[test]
    #[cfg_attr(miri, ignore = "takes a gigabyte")]
    fn the_longest_value_is_refused_uncopied() {
        let mut batch = WriteBatch::new();
        let value = vec![0; MAX_VALUE_LEN + 1]; // untouched pages: takes no memory
        batch.push(0, Kind::Put, b"key", &value);
        assert!(matches!(batch.check(), Err(Error::ValueTooLong { .. })));
        for _ in 0..5 {
            batch.push(0, Kind::Put, b"key", &value[1..]);
        }
        batch.longest_value = 0;
        assert!(matches!(batch.check(), Err(Error::BatchTooLarge { .. })));
        assert!(batch.frame().len() < 100);
    }
}

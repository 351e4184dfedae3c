//! Batches: several writes that become visible, and survive a crash, together or not at all.

use std::collections::HashMap;

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
    keyspaces: Named,
    home: Home,
}

/// In so many keyspaces one is looked for among all, which is faster than a map then. A batch seldom has more.
const FEW: usize = 8;

/// The keyspaces written to, each once, by first use.
#[derive(Clone, Default)]
struct Named {
    ids: Vec<u32>,
    /// Where each is among them, as soon as they are more than [`FEW`].
    places: HashMap<u32, usize>,
}

#[cfg(test)]
thread_local! {
    /// How many steps a thread took to find keyspaces in batches.
    pub(crate) static STEPS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

impl Named {
    /// Where a keyspace is among them.
    #[inline]
    fn place(&self, id: u32) -> Option<usize> {
        #[cfg(test)]
        STEPS.set(STEPS.get() + if self.places.is_empty() { self.ids.len() as u64 } else { 1 });
        match self.places.is_empty() {
            true => self.ids.iter().position(|other| *other == id),
            false => self.places.get(&id).copied(),
        }
    }

    #[inline]
    fn note(&mut self, id: u32) {
        if self.ids.last() == Some(&id) || self.place(id).is_some() {
            return;
        }
        self.ids.push(id);
        if self.ids.len() > FEW {
            // All of them, once it begins.
            let from = self.places.len();
            self.places.extend(self.ids[from..].iter().copied().zip(from..));
        }
    }
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
        &self.keyspaces.ids
    }

    /// Where one of [`keyspaces`](WriteBatch::keyspaces) is among them.
    #[inline]
    pub(crate) fn place(&self, keyspace: u32) -> usize {
        self.keyspaces.place(keyspace).expect("noted with its first write")
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
        self.keyspaces.note(keyspace);
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

    /// Length of its longest key in bytes.
    pub(crate) fn longest_key(&self) -> usize {
        self.longest_key
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
    use std::path::Path;
    use std::sync::Arc;

    use super::*;
    use crate::env::sim::SimEnv;
    use crate::{Comparator, Db, KeyOrder, KeyspaceOptions, Options};

    struct Bytes;

    impl Comparator for Bytes {
        fn name(&self) -> &str {
            "test.bytes"
        }

        fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
            a.cmp(b)
        }
    }

    /// Each entry was compared with all keyspaces, when it was added and, with all writers waiting, when it was written.
    #[test]
    #[cfg_attr(miri, ignore = "a store with 500 keyspaces, for half an hour")]
    fn a_batch_looked_for_the_keyspace_of_each_entry_among_all_others() {
        let options = Options::new();
        let db = Db::open_in(Arc::new(SimEnv::new(1, true)), Path::new("/db"), options).unwrap();
        // That of the first asks for a rehearsal of the batch.
        let options = |n| match n {
            0 => KeyspaceOptions::new().comparator(KeyOrder::Custom(Arc::new(Bytes))),
            _ => KeyspaceOptions::new(),
        };
        let make = |n| db.create_keyspace(&format!("ks{n}"), options(n)).unwrap();
        let all: Vec<_> = (0..500).map(make).collect();
        let mut batch = WriteBatch::new();
        let before = STEPS.get();
        for n in 0..10u32 {
            all.iter().for_each(|ks| batch.put_in(ks, n.to_be_bytes(), ks.name()));
        }
        let adding = STEPS.get() - before;
        db.write(&batch).unwrap();
        let writing = STEPS.get() - before - adding;
        assert!(adding <= 4 * 5000 && writing <= 4 * 5000, "{adding} and {writing} steps");
        assert_eq!(batch.keyspaces().len(), 500);
        for ks in &all {
            let found: Vec<_> = ks.iter().map(|entry| entry.unwrap()).collect();
            assert!(found.len() == 10 && found.iter().all(|(_, v)| v[..] == *ks.name().as_bytes()));
        }
    }

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

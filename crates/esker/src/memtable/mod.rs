//! The in-memory side of a log segment: where each key's records are, in order.
//!
//! A memtable holds no keys and no values; they are in the segment, mapped. It is an ordered
//! [`index`] from key to record, [`version_chains`] of older versions, and a [`filter`] in front.

mod cursor;
mod filter;
pub(crate) mod index;
mod version_chains;

use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

pub(crate) use cursor::MemtableCursor;
use filter::Filter;
use index::{Index, IndexCursor, KeySource};
use version_chains::Chains;

use crate::key::{InternalCursor, KeyOrder, Seq, key_hash};
use crate::wal::{Record, Segment};

/// The entries of one keyspace in one segment. One writer at a time; readers never wait.
pub(crate) struct Memtable {
    segment: Arc<Segment>,
    index: Index,
    chains: Chains,
    /// `None` where keys that differ in bytes, and so in their hashes, may be one key.
    filter: Option<Filter>,
    /// From so many keys on the filter is to be looked after.
    look_at: AtomicUsize,
    /// The filter's level in the end, for the keyspace's next memtable to begin with.
    level: Arc<AtomicUsize>,
    entries: AtomicUsize,
    /// Bytes that a flush moves into tables: keys, and values shorter than `blob_threshold`.
    moved: AtomicU64,
    /// Bytes of values that stay in the segment.
    staying: AtomicU64,
    blob_threshold: usize,
    longest_key: AtomicUsize,
    min_seq: AtomicU64,
    /// Bytes of memory when that was last asked, and from how many entries on it is asked again.
    counted: AtomicUsize,
    count_at: AtomicUsize,
    /// Whether a writer is inside.
    writing: AtomicBool,
}

/// Resolves what the index refers to.
struct Keys<'a> {
    segment: &'a Segment,
    chains: &'a Chains,
}

impl KeySource for Keys<'_> {
    #[inline]
    fn key(&self, r: u32) -> &[u8] {
        self.segment.key(self.chains.resolve(r).0)
    }
}

impl Memtable {
    /// An empty one over `segment`, of a keyspace whose values stay in the log from so many bytes on.
    /// `level` is what a memtable of the same keyspace came to need of a filter, and is told what this
    /// one does: a filter that begins with the right size need not grow.
    pub(crate) fn new(
        segment: Arc<Segment>,
        order: KeyOrder,
        blob_threshold: usize,
        level: Arc<AtomicUsize>,
    ) -> Memtable {
        let before = level.swap(0, Ordering::Relaxed);
        let filter =
            order.equal_means_same_bytes().then(|| Filter::new(segment.capacity(), before));
        let look_at = filter.as_ref().map_or(usize::MAX, |f| match f.level() {
            0 => f.room(0),
            level => f.room(level - 1),
        });
        Memtable {
            filter,
            look_at: AtomicUsize::new(look_at),
            level,
            index: Index::new(order),
            chains: Chains::default(),
            segment,
            entries: AtomicUsize::new(0),
            moved: AtomicU64::new(0),
            staying: AtomicU64::new(0),
            blob_threshold,
            longest_key: AtomicUsize::new(0),
            min_seq: AtomicU64::new(u64::MAX),
            counted: AtomicUsize::new(0),
            count_at: AtomicUsize::new(0),
            writing: AtomicBool::new(false),
        }
    }

    #[inline]
    fn keys(&self) -> Keys<'_> {
        Keys { segment: &self.segment, chains: &self.chains }
    }

    /// The segment that its records are in.
    #[inline]
    pub(crate) fn segment(&self) -> &Arc<Segment> {
        &self.segment
    }

    /// Adds record `r`, whose value has so many bytes. One caller at a time. Readers at `seq` or later see it once the caller has
    /// published the sequence.
    #[inline]
    pub(crate) fn insert(&self, r: u32, key: &[u8], hash: u64, seq: Seq, value: usize) {
        // The store's write lock sees to it; this makes sure, for the price of one swap. It stays set
        // when a comparator panics in the middle: nobody writes here again then.
        assert!(!self.writing.swap(true, Ordering::Acquire), "two writers in one memtable");
        if let Some(filter) = &self.filter {
            filter.prefetch(hash);
        }
        let make = |present| match present {
            None => r,
            Some(present) => {
                let (newest, before) = self.chains.resolve(present);
                if self.segment.record(newest).seq != seq {
                    return self.chains.push(r, present);
                }
                // The same batch wrote the key before: nobody has seen that and nobody will.
                match before {
                    Some(before) => self.chains.push(r, before),
                    None => r,
                }
            }
        };
        // SAFETY: `writing` lets one caller at a time get here.
        unsafe { self.index.upsert(&self.keys(), key, make) };
        // Its word has come from memory meanwhile.
        if let Some(filter) = &self.filter {
            filter.insert(hash);
        }
        if self.index.len() >= self.look_at.load(Ordering::Relaxed) {
            self.look_after_filter();
        }
        // One writer: plain stores.
        let count = |n: &AtomicU64, bytes: usize| {
            n.store(n.load(Ordering::Relaxed) + bytes as u64, Ordering::Relaxed);
        };
        if value < self.blob_threshold {
            count(&self.moved, key.len() + value);
        } else {
            count(&self.moved, key.len());
            count(&self.staying, value);
        }
        if key.len() > self.longest_key.load(Ordering::Relaxed) {
            self.longest_key.store(key.len(), Ordering::Relaxed);
        }
        if self.min_seq.load(Ordering::Relaxed) == u64::MAX {
            self.min_seq.store(seq, Ordering::Relaxed);
        }
        // Last, and with release: a reader that finds the memtable not empty sees what is in it.
        self.entries.store(self.entries.load(Ordering::Relaxed) + 1, Ordering::Release);
        self.writing.store(false, Ordering::Release);
    }

    /// The filter's level is needed, or no longer enough.
    #[cold]
    #[inline(never)]
    fn look_after_filter(&self) {
        let Some(filter) = &self.filter else { return };
        if self.index.len() >= filter.room(filter.level()) {
            let (keys, mut cursor) = (self.keys(), IndexCursor::new());
            cursor.first(&self.index, &keys);
            filter.grow(std::iter::from_fn(|| {
                let r = cursor.current()?;
                cursor.next(&self.index, &keys);
                Some(key_hash(keys.key(r)))
            }));
        }
        self.level.store(filter.level(), Ordering::Relaxed);
        self.look_at.store(filter.room(filter.level()), Ordering::Relaxed);
    }

    /// Makes the comparisons that an insert of `key` would make, and changes nothing: where they panic,
    /// better before the key is in the log. Only for whoever would insert.
    #[cold]
    pub(crate) fn rehearse(&self, key: &[u8]) {
        // SAFETY: the caller could insert, so nobody else does.
        unsafe { self.index.rehearse(&self.keys(), key) };
    }

    /// The newest version of `key` that is visible at `seq`.
    #[inline]
    pub(crate) fn get(&self, key: &[u8], hash: u64, seq: Seq) -> Option<Record<'_>> {
        if self.filter.as_ref().is_some_and(|f| !f.may_contain(hash)) {
            return None;
        }
        // Who reads at a snapshot would pass all that one key was put since, to find nothing.
        if self.min_seq() > seq {
            return None;
        }
        let mut next = self.index.get(&self.keys(), key);
        while let Some(r) = next {
            let (newest, before) = self.chains.resolve(r);
            let record = self.segment.record(newest);
            if record.seq <= seq {
                return Some(record);
            }
            next = before;
        }
        None
    }

    /// Asks for the cache line that a lookup of this hash reads first.
    #[inline]
    pub(crate) fn prefetch(&self, hash: u64) {
        // The filters of a few memtables fit the second-level cache; reading the word is cheap.
        let _ = self.filter.as_ref().map(|f| f.may_contain(hash));
    }

    /// A walk over all versions. Not positioned.
    pub(crate) fn cursor(self: &Arc<Self>) -> MemtableCursor {
        MemtableCursor::new(Arc::clone(self))
    }

    /// First and last key; `None` when it is empty.
    pub(crate) fn key_range(self: &Arc<Self>) -> Option<(Vec<u8>, Vec<u8>)> {
        let mut cursor = self.cursor();
        cursor.first().ok().filter(|()| cursor.valid())?;
        let low = cursor.key().to_vec();
        cursor.last().ok().filter(|()| cursor.valid())?;
        Some((low, cursor.key().to_vec()))
    }

    /// Entries, all versions.
    pub(crate) fn len(&self) -> usize {
        self.entries.load(Ordering::Acquire)
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// From how many bytes on a value stays in the segment.
    pub(crate) fn blob_threshold(&self) -> usize {
        self.blob_threshold
    }

    /// Length of its longest key in bytes.
    pub(crate) fn longest_key(&self) -> usize {
        self.longest_key.load(Ordering::Relaxed)
    }

    /// Bytes of keys and values that a flush moves into tables.
    pub(crate) fn inline_bytes(&self) -> u64 {
        self.moved.load(Ordering::Relaxed)
    }

    /// Bytes of keys and values of an entry, on average.
    fn average_len(&self) -> usize {
        let bytes = self.inline_bytes() + self.blob_bytes();
        (bytes / (self.len() as u64).max(1)) as usize
    }

    /// Bytes of values that are large enough to stay in the segment.
    pub(crate) fn blob_bytes(&self) -> u64 {
        self.staying.load(Ordering::Relaxed)
    }

    /// About how many bytes the keys and newest values of a range have.
    pub(crate) fn approximate_size(&self, low: Bound<&[u8]>, high: Bound<&[u8]>) -> u64 {
        let keys = self.keys();
        let mut from = IndexCursor::new();
        match low {
            Bound::Included(key) | Bound::Excluded(key) => from.seek(&self.index, &keys, key),
            Bound::Unbounded => from.first(&self.index, &keys),
        }
        let end = match high {
            Bound::Included(key) | Bound::Excluded(key) => Some(key),
            Bound::Unbounded => None,
        };
        from.sum_until(&self.index, &keys, end, |r| {
            let newest = self.segment.record(self.chains.resolve(r).0);
            (newest.key.len() + newest.value.len()) as u64
        })
    }

    /// The sequence of the first entry; `u64::MAX` when there is none.
    #[inline]
    pub(crate) fn min_seq(&self) -> Seq {
        self.min_seq.load(Ordering::Relaxed)
    }

    /// Bytes of memory it uses, the segment aside.
    pub(crate) fn memory(&self) -> usize {
        let filter = self.filter.as_ref().map_or(0, Filter::memory);
        size_of::<Memtable>() + self.index.memory() + self.chains.memory() + filter
    }

    /// By how many bytes it has grown since this was last asked; 0 between two looks. For the writer.
    #[inline]
    pub(crate) fn growth(&self) -> usize {
        match self.len() < self.count_at.load(Ordering::Relaxed) {
            true => 0,
            false => self.count_growth(),
        }
    }

    #[cold]
    #[inline(never)]
    fn count_growth(&self) -> usize {
        const EVERY: usize = 256;
        let memory = self.memory();
        self.count_at.store(self.len() + EVERY, Ordering::Relaxed);
        memory - self.counted.swap(memory, Ordering::Relaxed)
    }
}

impl std::fmt::Debug for Memtable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Memtable({} entries over {:?})", self.len(), self.segment)
    }
}

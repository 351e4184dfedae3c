//! Keys and their order, sequence numbers, what a stored entry looks like, and what is known of a table.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// Longest key, in bytes (64 KiB).
pub const MAX_KEY_LEN: usize = 64 << 10;
/// Longest value, in bytes (1 GiB).
pub const MAX_VALUE_LEN: usize = 1 << 30;

/// The position of a commit in the store's history. All entries of one batch share one sequence.
pub(crate) type Seq = u64;

/// What an entry does to its key. The numbers are stored (log and table); 3 to 7 are kept free for
/// range deletes, merges and transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// The key has this value.
    Put = 1,
    /// The key has no value.
    Delete = 2,
}

impl Kind {
    pub(crate) fn from_u8(b: u8) -> Option<Kind> {
        match b {
            1 => Some(Kind::Put),
            2 => Some(Kind::Delete),
            _ => None,
        }
    }
}

/// A user's own total order over keys.
///
/// Keys that differ in bytes may compare equal; the store then treats them as one key. The order
/// must never change for a given [`name`](Comparator::name): it is stored and checked at open.
///
/// It must be a total order of all keys that the keyspace is ever given, and each of them must equal
/// itself. One that contradicts itself does no harm to the store or to other keyspaces, but in its
/// own keyspace keys may not be found, and a compaction that meets entries out of order stops writes.
///
/// # Panics
/// A comparator should not panic. Where it does, the call that needed it gives
/// `Error::ComparatorPanicked`. A write that gives it has written nothing: keys are compared before
/// they go to the log. Should the comparator panic only afterwards (at random, or at two keys of one
/// batch), writes to the whole store stop with `Error::Halted` until it is opened again. A panic
/// in the background stops them until `Db::resume`.
///
/// # Calling the store
/// A comparator is called while the store holds its locks. Calls that write, or wait, give
/// `Error::CalledFromComparator` when they come from within one; it should not read the store
/// either, nor wait for another thread that uses it.
pub trait Comparator: Send + Sync {
    /// The name that is stored with the keyspace: 1 to 1024 bytes. Names that begin with `esker.` are
    /// those of built-in orders and are refused (`Error::InvalidOption`). Asked once, when the
    /// comparator is given.
    fn name(&self) -> &str;
    /// Compares two user keys.
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering;
}

/// The order of a keyspace's keys.
#[derive(Clone, Default)]
pub enum KeyOrder {
    /// Unsigned bytes, shorter first among equal prefixes (the default).
    #[default]
    Bytewise,
    /// The reverse of [`KeyOrder::Bytewise`].
    Reverse,
    /// The user's own.
    Custom(Arc<dyn Comparator>),
}

impl KeyOrder {
    /// Compares two user keys.
    #[inline]
    pub fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        match self {
            KeyOrder::Bytewise => a.cmp(b),
            KeyOrder::Reverse => b.cmp(a),
            KeyOrder::Custom(c) => c.compare(a, b),
        }
    }

    /// The name that is stored with the keyspace.
    pub fn name(&self) -> &str {
        match self {
            KeyOrder::Bytewise => "esker.bytewise",
            KeyOrder::Reverse => "esker.reverse",
            KeyOrder::Custom(c) => c.name(),
        }
    }

    /// Whether it is the user's own.
    #[inline]
    pub(crate) fn is_custom(&self) -> bool {
        matches!(self, KeyOrder::Custom(_))
    }

    /// Whether keys that compare equal have equal bytes, so that a hash of the bytes finds a key.
    pub(crate) fn equal_means_same_bytes(&self) -> bool {
        !matches!(self, KeyOrder::Custom(_))
    }
}

/// A comparator of the program's own, by itself, where an order is asked for.
impl<C: Comparator + 'static> From<C> for KeyOrder {
    fn from(comparator: C) -> KeyOrder {
        KeyOrder::Custom(Arc::new(comparator))
    }
}

/// The same shared, which several keyspaces can be given.
impl From<Arc<dyn Comparator>> for KeyOrder {
    fn from(comparator: Arc<dyn Comparator>) -> KeyOrder {
        KeyOrder::Custom(comparator)
    }
}

impl fmt::Debug for KeyOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyOrder({})", self.name())
    }
}

/// The hash that memtable filters and hash indexes share. Computed once per read.
#[inline]
pub(crate) fn key_hash(key: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(key)
}

/// Where a large value lies: in the log segment it was written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ValuePointer {
    /// Number of the segment.
    pub segment: u64,
    /// Offset of the value's first byte in it.
    pub offset: u64,
    /// Length in bytes.
    pub len: u32,
    /// Low 32 bits of XXH3 of the value.
    pub checksum: u32,
}

impl ValuePointer {
    /// Encoded size in bytes: little-endian segment u64, offset u64, len u32, checksum u32.
    pub(crate) const ENCODED_LEN: usize = 24;

    /// Where it lies in its segment: offset and length.
    pub(crate) fn range(&self) -> (u64, u64) {
        (self.offset, self.len.into())
    }

    pub(crate) fn encode(&self) -> [u8; Self::ENCODED_LEN] {
        let mut b = [0; Self::ENCODED_LEN];
        b[0..8].copy_from_slice(&self.segment.to_le_bytes());
        b[8..16].copy_from_slice(&self.offset.to_le_bytes());
        b[16..20].copy_from_slice(&self.len.to_le_bytes());
        b[20..24].copy_from_slice(&self.checksum.to_le_bytes());
        b
    }

    pub(crate) fn decode(b: &[u8]) -> Option<ValuePointer> {
        let b: &[u8; Self::ENCODED_LEN] = b.try_into().ok()?;
        Some(ValuePointer {
            segment: u64::from_le_bytes(b[0..8].try_into().ok()?),
            offset: u64::from_le_bytes(b[8..16].try_into().ok()?),
            len: u32::from_le_bytes(b[16..20].try_into().ok()?),
            checksum: u32::from_le_bytes(b[20..24].try_into().ok()?),
        })
    }
}

/// How many bytes of separated values a table refers to in one log segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SegmentRef {
    /// Number of the segment.
    pub segment: u64,
    /// Length of the values together, in bytes.
    pub bytes: u64,
}

/// One immutable table, as its builder, the table itself and the manifest describe it. It stands here because
/// `table` and `version` do not know each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TableMeta {
    /// Number of the file.
    pub number: u64,
    /// Length of the file in bytes.
    pub size: u64,
    /// Entries in it, all versions and tombstones counted.
    pub entries: u64,
    /// Deletes among the entries.
    pub tombstones: u64,
    /// Length of all keys and unpacked values, in bytes (of separated values, the pointers').
    pub raw_bytes: u64,
    /// The first user key.
    pub smallest: Vec<u8>,
    /// The last user key.
    pub largest: Vec<u8>,
    /// The lowest sequence among the entries.
    pub min_seq: Seq,
    /// The highest sequence among the entries.
    pub max_seq: Seq,
    /// The sequence of the entries that carry none of their own.
    pub base_seq: Seq,
    /// Whether no key is there twice.
    pub unique_keys: bool,
    /// Values that stayed in log segments, by ascending segment.
    pub references: Vec<SegmentRef>,
}

/// How a packed value is compressed. The numbers are stored, as bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Codec {
    /// LZ4 block format.
    Lz4 = 1,
    /// Zstandard frame without its magic number or checksum where the library allows.
    Zstd = 2,
}

/// A value as it lies in a memtable or a table.
///
/// No field is shorter than half a word: a value is then moved in whole words, which the processor forwards from
/// store to load. With a tag of a byte it was not, and a point read waited for it three times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Stored<'a> {
    /// The bytes themselves.
    Inline(&'a [u8]),
    /// Compressed bytes; `dict` is the identity of the table's dictionary, 0 for none.
    Compressed {
        /// The codec.
        codec: Codec,
        /// XXH3 of the dictionary, 0 for none.
        dict: u64,
        /// Length after decompression, in bytes.
        raw_len: u32,
        /// The compressed bytes.
        bytes: &'a [u8],
    },
    /// The value stayed in a log segment.
    Pointer(ValuePointer),
}

impl Stored<'_> {
    /// Bytes that a table holds of it, beside a pointer.
    pub(crate) fn stored_len(&self) -> usize {
        match self {
            Stored::Inline(bytes) | Stored::Compressed { bytes, .. } => bytes.len(),
            Stored::Pointer(_) => 0,
        }
    }
}

/// A walk over internal entries, ordered by user key ascending, then sequence descending (the
/// newest version of a key first). Implemented by memtables, tables, runs and merges of them; one
/// conformance suite tests them all.
///
/// A walk back comes to keys in descending order, and to all versions of a key before the next; in tables these come
/// oldest first, in memtables newest first, and in merges as it happens. Who turns around among the versions of a key
/// may miss some of them.
///
/// After an error the cursor is not valid until it is positioned again.
pub(crate) trait InternalCursor {
    /// Whether the cursor is on an entry.
    fn valid(&self) -> bool;
    /// To where a walk begins: the first entry, or for a walk back the last one.
    fn edge(&mut self, forward: bool) -> crate::Result<()>;
    /// To the first entry whose user key is at or after `key`, or for a walk back to the last key at or before
    /// it.
    fn search(&mut self, key: &[u8], forward: bool) -> crate::Result<()>;
    /// One entry on, or back. Only when valid.
    fn step(&mut self, forward: bool) -> crate::Result<()>;
    /// The user key. Only when valid.
    fn key(&self) -> &[u8];
    /// The sequence. Only when valid.
    fn seq(&self) -> Seq;
    /// Put or delete. Only when valid.
    fn kind(&self) -> Kind;
    /// The value as stored; empty `Inline` for a delete. Only when valid.
    fn stored(&self) -> Stored<'_>;

    #[inline(always)]
    fn first(&mut self) -> crate::Result<()> {
        self.edge(true)
    }
    #[inline(always)]
    fn last(&mut self) -> crate::Result<()> {
        self.edge(false)
    }
    #[inline(always)]
    fn seek(&mut self, key: &[u8]) -> crate::Result<()> {
        self.search(key, true)
    }
    #[allow(dead_code, reason = "tests and fuzzing walk both ways")]
    #[inline(always)]
    fn seek_for_prev(&mut self, key: &[u8]) -> crate::Result<()> {
        self.search(key, false)
    }
    #[inline(always)]
    fn next(&mut self) -> crate::Result<()> {
        self.step(true)
    }
    #[inline(always)]
    fn prev(&mut self) -> crate::Result<()> {
        self.step(false)
    }
}

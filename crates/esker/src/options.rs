//! Settings. Two matter to most users: how much memory, and how durable a write is by default.

use crate::error::{Error, Result};
use crate::key::{Codec, KeyOrder};

/// When a write counts as done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum Durability {
    /// When it is in the page cache: survives a killed process, not a power cut.
    #[default]
    Buffered,
    /// When it is on the device (`fdatasync`): survives a power cut. Threads that wait share one
    /// sync.
    Synced,
}

/// How values are compressed in tables. The log is never compressed, nor are the large values that
/// stay in it ([`Options::blob_threshold`]).
///
/// What is written from now on is packed so: by flushes, compactions and bulk loads, each table with a
/// dictionary made of its values where one pays. Tables that are there keep theirs until a compaction
/// writes them anew; [`Keyspace::compact_range`](crate::Keyspace::compact_range) does so at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum Compression {
    /// Not at all.
    None,
    /// LZ4, value by value, with a dictionary per table: a read never inflates its neighbours.
    #[default]
    Lz4,
    /// Zstandard, value by value, with a dictionary: half the speed of LZ4 or less, smaller. Needs
    /// the feature `zstd`, which is on by default; a build without it refuses this setting with
    /// [`Error::InvalidOption`], and values that are packed so with [`Error::NoZstd`].
    Zstd,
}

/// Settings of one keyspace, stored with it when it is created.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct KeyspaceOptions {
    /// The order of keys. Fixed at creation.
    pub comparator: KeyOrder,
    /// Compression of values, which holds whatever the store is opened with; `None` takes the
    /// store's, as of each open.
    pub compression: Option<Compression>,
    /// From how many bytes on a value stays in the log segment it was written to, written once;
    /// `None` takes the store's.
    pub blob_threshold: Option<usize>,
}

impl Compression {
    /// The number that is stored with a keyspace.
    pub(crate) fn to_u8(self) -> u8 {
        match self {
            Compression::None => 0,
            Compression::Lz4 => 1,
            Compression::Zstd => 2,
        }
    }

    /// What packs values, unless nothing does.
    pub(crate) fn codec(self) -> Option<Codec> {
        match self {
            Compression::None => None,
            Compression::Lz4 => Some(Codec::Lz4),
            Compression::Zstd => Some(Codec::Zstd),
        }
    }

    /// Its name, in lower case.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Compression::None => "none",
            Compression::Lz4 => "lz4",
            Compression::Zstd => "zstd",
        }
    }

    /// Refuses what this build cannot write.
    pub(crate) fn check_built_in(self) -> Result<()> {
        if self == Compression::Zstd && !cfg!(feature = "zstd") {
            let why =
                "this build has no Zstandard; build esker with its feature `zstd`".to_string();
            return Err(Error::InvalidOption { option: "compression", why });
        }
        Ok(())
    }

    /// All that this build can write.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn built_in() -> impl Iterator<Item = Compression> {
        let all = [Compression::None, Compression::Lz4, Compression::Zstd];
        all.into_iter().filter(|c| c.check_built_in().is_ok())
    }

    pub(crate) fn from_u8(n: u8) -> Option<Compression> {
        match n {
            0 => Some(Compression::None),
            1 => Some(Compression::Lz4),
            2 => Some(Compression::Zstd),
            _ => None,
        }
    }
}

impl KeyspaceOptions {
    /// The defaults: bytewise order, the store's compression and threshold.
    pub fn new() -> Self {
        Self::default()
    }
    /// Sets the order of keys.
    #[must_use]
    #[doc(alias = "order")]
    pub fn comparator(mut self, order: impl Into<KeyOrder>) -> Self {
        self.comparator = order.into();
        self
    }
    /// Sets the compression of values.
    #[must_use]
    pub fn compression(mut self, compression: Compression) -> Self {
        self.compression = Some(compression);
        self
    }
    /// From how many bytes on a value stays in the log segment it was written to.
    #[must_use]
    #[doc(alias = "min_blob_size")]
    #[doc(alias = "separation_threshold")]
    pub fn blob_threshold(mut self, bytes: usize) -> Self {
        self.blob_threshold = Some(bytes);
        self
    }
}

/// How to open a store. Made with [`Options::new`], changed by its methods, used by
/// [`Options::open`].
///
/// ```
/// # fn main() -> esker::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("db");
/// let db = esker::Options::new()
///     .memory(64 << 20)
///     .durability(esker::Durability::Synced)
///     .open(&path)?;
/// db.put(b"key", b"value")?;
/// # Ok(()) }
/// ```
///
/// With the feature `serde` they come from a configuration file: the fields have the names of the methods, sizes are
/// in bytes, what is missing has its default, and an unknown field is an error. `comparator` is `"bytewise"` or
/// `"reverse"`; comparators of the program's own are given in code ([`Options::keyspace_comparator`] always is).
#[derive(Debug, Clone)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
#[must_use]
pub struct Options {
    pub(crate) memory: u64,
    pub(crate) durability: Durability,
    pub(crate) create_if_missing: bool,
    pub(crate) error_if_exists: bool,
    #[cfg_attr(feature = "serde", serde(rename = "paranoid_checks"))]
    pub(crate) paranoid: bool,
    pub(crate) read_only: bool,
    pub(crate) flush_on_close: bool,
    pub(crate) compression: Compression,
    pub(crate) block_size: usize,
    pub(crate) segment_size: Option<u64>,
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(crate) table_size: Option<u64>,
    pub(crate) blob_threshold: usize,
    #[cfg_attr(feature = "serde", serde(with = "comparator_name"))]
    pub(crate) comparator: Option<KeyOrder>,
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(crate) keyspace_comparators: Vec<(String, KeyOrder)>,
}

/// A comparator in a configuration file: those that come with the library, by name.
#[cfg(feature = "serde")]
mod comparator_name {
    use serde::de::{Deserialize, Deserializer, Error as _};
    use serde::ser::{Error as _, Serializer};

    use crate::key::KeyOrder;

    pub(super) fn serialize<S: Serializer>(
        order: &Option<KeyOrder>,
        out: S,
    ) -> Result<S::Ok, S::Error> {
        match order {
            None => out.serialize_none(),
            Some(KeyOrder::Bytewise) => out.serialize_some("bytewise"),
            Some(KeyOrder::Reverse) => out.serialize_some("reverse"),
            Some(KeyOrder::Custom(own)) => {
                let what =
                    format!("comparator {:?} is the program's own: give it in code", own.name());
                Err(S::Error::custom(what))
            }
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        input: D,
    ) -> Result<Option<KeyOrder>, D::Error> {
        match Option::<String>::deserialize(input)?.as_deref() {
            None => Ok(None),
            Some("bytewise") => Ok(Some(KeyOrder::Bytewise)),
            Some("reverse") => Ok(Some(KeyOrder::Reverse)),
            Some(other) => Err(D::Error::unknown_variant(other, &["bytewise", "reverse"])),
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Options {
            memory: 128 << 20,
            durability: Durability::Buffered,
            create_if_missing: true,
            error_if_exists: false,
            paranoid: false,
            read_only: false,
            flush_on_close: true,
            compression: Compression::Lz4,
            block_size: 4096,
            segment_size: None,
            table_size: None,
            blob_threshold: 4096,
            comparator: None,
            keyspace_comparators: Vec::new(),
        }
    }
}

/// However little memory is given, so much log may wait for a flush: with less, what a flush costs at
/// least (four syncs) is paid for every few thousand entries.
const LEAST_CAP: u64 = 24 << 20;

/// Twice the memory setting may wait up to here, so that a burst is taken in at once; beyond, half of the setting:
/// each segment that waits is a source of every search until it is flushed.
const LARGE_CAP: u64 = 256 << 20;

/// A store has about so many full tables, or twice that; with more data they become larger. Each is a
/// mapping, of which Linux gives a process 65,530 (`vm.max_map_count`).
const MANY_TABLES: u64 = 2048;
/// But not larger than this: the hash index has 32 bits for a page, a slot and a fingerprint.
const LARGE_TABLE: u64 = 512 << 20;

/// Sizes of tables, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TableSizes {
    /// From here on another table is begun.
    pub full: u64,
    /// Below this a table is written again beside what is written next to it.
    pub small: u64,
}

impl Options {
    /// The defaults: 128 MiB, buffered writes, created when missing.
    pub fn new() -> Self {
        Self::default()
    }
    /// Memory the store may use for itself, in bytes (default 128 MiB, at least 1 MiB): write
    /// buffers, indexes, compaction work. Mapped files are the page cache's and not counted. With less
    /// than 16 MiB a burst of small writes may still take that much.
    #[doc(alias = "cache_size")]
    #[doc(alias = "block_cache")]
    #[doc(alias = "db_write_buffer_size")]
    pub fn memory(mut self, bytes: u64) -> Self {
        self.memory = bytes;
        self
    }
    /// Durability of writes that do not name their own (default [`Durability::Buffered`]).
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }
    /// Makes the store when the directory holds none (default true).
    pub fn create_if_missing(mut self, yes: bool) -> Self {
        self.create_if_missing = yes;
        self
    }
    /// Refuses to open a store that exists (default false).
    pub fn error_if_exists(mut self, yes: bool) -> Self {
        self.error_if_exists = yes;
        self
    }
    /// Verifies every table's checksums and order at open, and takes any doubt for damage (default
    /// false). Opening then reads the whole store.
    pub fn paranoid_checks(mut self, yes: bool) -> Self {
        self.paranoid = yes;
        self
    }
    /// Opens without writing anything; writes fail with [`Error::ReadOnly`] (default false).
    pub fn read_only(mut self, yes: bool) -> Self {
        self.read_only = yes;
        self
    }
    /// Whether closing writes what is in memory to tables, so that the next open has nothing to recover from
    /// the log (default true). Nothing is lost without: what is in memory is in the log too.
    ///
    /// To be unset where closing must not wait for a comparator of the program's: the store's own thread
    /// calls it then, and a lock that both the comparator and whoever closes the store take would stop both.
    /// Unset, that thread compares only for writes that filled the memory: it does not tidy up while nobody
    /// writes, and what an open recovers is flushed by the open.
    #[doc(alias = "avoid_flush_during_shutdown")]
    pub fn flush_on_close(mut self, yes: bool) -> Self {
        self.flush_on_close = yes;
        self
    }
    /// Compression of keyspaces that were made without one of their own, the default keyspace among
    /// them (default [`Compression::Lz4`]). Not stored: what each open says holds until the next.
    pub fn compression(mut self, compression: Compression) -> Self {
        self.compression = compression;
        self
    }
    /// Smallest block of a table, in bytes (default 4096; 4096 to 65536, a multiple of 4096).
    /// Larger entries get larger blocks by themselves.
    pub fn block_size(mut self, bytes: usize) -> Self {
        self.block_size = bytes;
        self
    }
    /// Size of a log segment, in bytes (default: a quarter of the memory or of the log that may wait for its
    /// flush, whichever is less, up to 32 MiB, or an eighth of it up to 64 MiB where that is more; at least 2 MiB and a 64th of that log), to
    /// which they grow from 256 KiB. No more than a quarter of the log that may wait, whatever is asked for: that, and with it what
    /// the indexes take, follows from [`memory`](Options::memory) alone. Where most of what is written are large
    /// values, of which the indexes have only the keys, they grow to 16 MiB at any setting. A larger batch gets a larger segment. At most 64 of them wait for a flush, so small ones use less than the
    /// memory allows.
    #[doc(alias = "write_buffer_size")]
    pub fn segment_size(mut self, bytes: u64) -> Self {
        self.segment_size = Some(bytes);
        self
    }
    /// How large a table becomes, whatever the memory and the store's size: for tests, in which a small store is to
    /// have many.
    #[doc(hidden)]
    pub fn table_size(mut self, bytes: u64) -> Self {
        self.table_size = Some(bytes);
        self
    }
    /// From how many bytes on a value is written once and stays in the log (default 4096).
    #[doc(alias = "min_blob_size")]
    #[doc(alias = "separation_threshold")]
    pub fn blob_threshold(mut self, bytes: usize) -> Self {
        self.blob_threshold = bytes;
        self
    }
    /// Order of the default keyspace, fixed when the store is made (default bytewise). Given for an
    /// existing store, it must be the one the store was made with.
    #[doc(alias = "order")]
    pub fn comparator(mut self, order: impl Into<KeyOrder>) -> Self {
        self.comparator = Some(order.into());
        self
    }
    /// Gives the comparator of an existing keyspace, which is needed at open when it is
    /// a program's own ([`KeyOrder::Custom`]). A keyspace has the one that was last given for it; for one that none was
    /// given for, the one of the same name that was given for others is taken, if that is a single
    /// object (clones of one `Arc`).
    pub fn keyspace_comparator(
        mut self,
        keyspace: impl Into<String>,
        order: impl Into<KeyOrder>,
    ) -> Self {
        self.keyspace_comparators.push((keyspace.into(), order.into()));
        self
    }
    /// Whether a store could be opened with these: what [`Options::open`] asks first. For settings that come from
    /// elsewhere and are to be refused where they are given.
    ///
    /// # Errors
    /// [`Error::InvalidOption`] names the first option that has a value it cannot have. Names of comparators are
    /// asked for when a store is opened, and not here: they are the program's code.
    pub fn validate(&self) -> Result<()> {
        let bad = |option, why: &str| Err(Error::InvalidOption { option, why: why.to_string() });
        if self.memory < 1 << 20 {
            return bad("memory", "must be at least 1 MiB");
        }
        if !(4096..=65536).contains(&self.block_size) || !self.block_size.is_multiple_of(4096) {
            return bad("block_size", "must be a multiple of 4096 from 4096 to 65536");
        }
        if self.segment_size.is_some_and(|s| !(65536..=1 << 32).contains(&s)) {
            return bad("segment_size", "must be from 64 KiB to 4 GiB");
        }
        if self.blob_threshold < 64 {
            return bad("blob_threshold", "must be at least 64 bytes");
        }
        self.compression.check_built_in()
    }

    /// Sealed log that may wait for a flush, in bytes. The log is mapped, so it is the page cache's
    /// and not the budget's; the indexes over it are held to half of it, and so to the budget (or
    /// 12 MiB).
    pub(crate) fn pending_cap(&self) -> u64 {
        let burst = self.memory.saturating_mul(2).min(LARGE_CAP);
        burst.max(self.memory / 2).max(LEAST_CAP)
    }

    /// How large the tables of a store become that holds `stored` bytes in them.
    pub(crate) fn table_sizes(&self, stored: u64) -> TableSizes {
        if let Some(full) = self.table_size {
            return TableSizes { full, small: full / 8 };
        }
        let base = (self.memory / 4).clamp(4 << 20, 32 << 20);
        let wanted = (stored / MANY_TABLES).min(LARGE_TABLE);
        if wanted <= base {
            return TableSizes { full: base, small: base / 8 };
        }
        let full = wanted.next_power_of_two();
        TableSizes { full, small: full / 2 }
    }

    /// Size of a log segment in bytes.
    pub(crate) fn segment_bytes(&self) -> u64 {
        let cap = self.pending_cap();
        let waits = cap.min(self.memory);
        // Each is a source of every search, so rather few of them. The index over more than 32 MiB costs writes more than
        // that saves searches.
        let usual = (waits / 4).min(32 << 20).max((waits / 8).min(64 << 20)).max(2 << 20);
        // So large that 64 of them are what may wait.
        let size = self.segment_size.unwrap_or(usual.max(cap / 64).min(1 << 32));
        // Were a few of them all that may wait, writers would stop for each.
        size.min(cap / 4).next_multiple_of(4096)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    /// What a store of this size has at most, written in order by flushes of `flush` bytes, and once
    /// all of it was merged.
    fn tables(options: &Options, stored: u64, flush: u64) -> (u64, u64) {
        let (mut bytes, mut count) = (0, 0);
        while bytes < stored {
            let size = options.table_sizes(bytes).small.max(flush);
            (bytes, count) = (bytes + size, count + 1);
        }
        (count, stored / options.table_sizes(stored).full)
    }

    #[test]
    fn tables_grow_with_the_store() {
        for memory in [1 << 20, 16 << 20, 128 << 20, 16 * GIB] {
            let options = Options::new().memory(memory);
            for stored in [0, 1, GIB, 100 * GIB, 4096 * GIB] {
                let (in_order, merged) = tables(&options, stored, 2 << 20);
                assert!(in_order <= 40_000 && merged <= 8192, "{memory}: {in_order}, {merged}");
                if stored <= 1024 * GIB {
                    assert!(merged <= 2048);
                }
            }
            let (now, later) = (options.table_sizes(8 * GIB), options.table_sizes(u64::MAX));
            assert_eq!(now.small * 8, now.full, "small stores as ever");
            assert_eq!(later, TableSizes { full: 512 << 20, small: 256 << 20 });
        }
    }

    #[test]
    fn what_may_wait_is_what_the_guide_says() {
        for (memory, waits, segment) in [
            (4, 24, 2),
            (32, 64, 8),
            (128, 256, 32),
            (256, 256, 32),
            (512, 256, 32),
            (1024, 512, 64),
            (16384, 8192, 128),
        ] {
            let options = Options::new().memory(memory << 20);
            let found = (options.pending_cap() >> 20, options.segment_bytes() >> 20);
            assert_eq!(found, (waits, segment), "MiB, with {memory}");
        }
    }

    /// Four of the segments could wait, and with them indexes of half their size.
    #[test]
    fn large_segments_let_no_more_wait() {
        for memory in [1 << 20, 128 << 20, GIB, 64 * GIB] {
            let (usual, large) = (Options::new().memory(memory), 4 * GIB);
            let options = usual.clone().segment_size(large);
            assert_eq!(options.pending_cap(), usual.pending_cap(), "with {memory}");
            assert_eq!(options.segment_bytes(), large.min(usual.pending_cap() / 4));
        }
    }

    #[test]
    fn what_may_wait_is_64_segments_at_most() {
        for memory in [1 << 20, 16 << 20, 128 << 20, 2 * GIB, 8 * GIB, 16 * GIB, 64 * GIB] {
            let options = Options::new().memory(memory);
            let waiting = options.pending_cap() / options.segment_bytes();
            assert!((4..=64).contains(&waiting), "{waiting} with {memory}");
        }
        // No sum overflows, whatever is asked for.
        assert_eq!(Options::new().memory(u64::MAX).pending_cap(), u64::MAX / 2);
        assert_eq!(Options::new().memory(u64::MAX).segment_bytes(), 4 * GIB);
    }
}

//! A handle on one keyspace, and a view of it at a snapshot.

use std::fmt;
use std::ops::RangeBounds;
use std::sync::Arc;

use crate::batch::WriteBatch;
use crate::cursor_home::CursorKeyspace;
use crate::error::{Error, Result};
use crate::handle::Handle;
use crate::key::{Kind, Seq};
use crate::options::Durability;
use crate::read::SuperVersion;
use crate::read::cursor::Cursor;
use crate::read::gaps::GapFinder;
use crate::read::get;
use crate::read::iter::Iter;
use crate::read::refresh::{CursorHome, Refresher};
use crate::read::slice::Slice;
use crate::snapshot::Snapshot;
use crate::stats::KeyspaceStats;
use crate::store::KeyspaceState;
use crate::util::sync::Guard;
use sealed::Moment;

pub(crate) mod sealed {
    use crate::keyspace::Keyspace;
    use crate::snapshot::Snapshot;

    /// A keyspace at a moment.
    pub trait Moment {
        /// The keyspace.
        fn keyspace_of(&self) -> &Keyspace;
        /// As of when; `None` is now.
        fn moment(&self) -> Option<&Snapshot>;
    }
}

/// What can be read: a [`Keyspace`] as it is now, a [`View`] of one as a snapshot sees it, and a
/// [`Db`](crate::Db), which stands for its default keyspace. For code that takes any of them; each has
/// these methods itself too, so that nobody needs the trait in scope to read.
///
/// ```
/// # fn main() -> esker::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = esker::Db::open(dir.path().join("db"))?;
/// use esker::ReadableKeyspace;
///
/// fn longest(map: &impl ReadableKeyspace) -> esker::Result<usize> {
///     map.iter().try_fold(0, |longest, entry| Ok(longest.max(entry?.1.len())))
/// }
///
/// db.put("ash", "Fraxinus")?;
/// let snapshot = db.snapshot();
/// let other = db.create_keyspace("other", Default::default())?;
/// db.delete("ash")?;
/// assert_eq!(longest(&db.at(&snapshot))?, 8);
/// assert_eq!(longest(&db)?, 0);
/// assert_eq!(longest(&other)?, 0);
/// # Ok(()) }
/// ```
#[doc(alias = "Readable")]
#[doc(alias = "ReadableTable")]
#[doc(alias = "DBAccess")]
pub trait ReadableKeyspace: sealed::Moment {
    /// The value of `key`; see [`Keyspace::get`].
    #[inline]
    fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Slice>> {
        let (ks, key) = (self.keyspace_of(), key.as_ref());
        let (super_version, seq) = ks.super_version_now(self.moment())?;
        let order = &ks.state.order;
        order.guard(|| get::get(super_version, order, key, seq))
    }

    /// The values of several keys as of one moment; see [`Keyspace::multi_get`].
    fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Slice>>> {
        let ks = self.keyspace_of();
        let ((super_version, seq), open) = ks.consistent_super_version(self.moment());
        open?;
        let order = &ks.state.order;
        order.guard(|| get::multi_get(&super_version, order, keys, seq))
    }

    /// Whether `key` has a value; see [`Keyspace::contains_key`].
    fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        let (ks, key) = (self.keyspace_of(), key.as_ref());
        let (super_version, seq) = ks.super_version_now(self.moment())?;
        let order = &ks.state.order;
        order.guard(|| get::contains(&super_version, order, key, seq))
    }

    /// All keys and values, in order; see [`Keyspace::iter`].
    fn iter(&self) -> Iter {
        ReadableKeyspace::range::<&[u8]>(self, ..)
    }

    /// Keys and values of a range, in order; see [`Keyspace::range`].
    fn range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Iter {
        let ks = self.keyspace_of();
        let ((super_version, seq), open) = ks.consistent_super_version(self.moment());
        Iter::new(super_version, &ks.state.order, seq, ks.gaps(), &range).provided(open)
    }

    /// Keys that start with `prefix`, and their values; see [`Keyspace::prefix`].
    fn prefix(&self, prefix: impl AsRef<[u8]>) -> Iter {
        let ks = self.keyspace_of();
        let ((super_version, seq), open) = ks.consistent_super_version(self.moment());
        Iter::with_prefix(super_version, &ks.state.order, seq, ks.gaps(), prefix.as_ref())
            .provided(open)
    }

    /// A cursor; see [`Keyspace::cursor`].
    fn cursor(&self) -> Cursor {
        self.keyspace_of().cursor_at(self.moment(), false)
    }

    /// A cursor that does not fetch values; see [`Keyspace::cursor_keys_only`].
    fn cursor_keys_only(&self) -> Cursor {
        self.keyspace_of().cursor_at(self.moment(), true)
    }
}

impl ReadableKeyspace for Keyspace {}
impl ReadableKeyspace for View {}

/// The methods of [`ReadableKeyspace`] as a type's own.
macro_rules! own_read_methods {
    ($type:ty) => {
        impl $type {
            /// The value of `key`, `None` when it has none. Not copied unless it is short or packed; see [`Slice`](crate::Slice).
            ///
            /// # Errors
            /// Damage in the files that hold it, [`Error::Closed`](crate::Error::Closed), and
            /// [`Error::ForeignSnapshot`](crate::Error::ForeignSnapshot) in a view at a snapshot of another store.
            #[inline]
            pub fn get(&self, key: impl AsRef<[u8]>) -> crate::Result<Option<crate::Slice>> {
                crate::ReadableKeyspace::get(self, key)
            }

            /// The values of several keys as of one moment, in the order asked for. Faster than one
            /// [`get`](Self::get) after the other: the memory accesses overlap.
            pub fn multi_get<K: AsRef<[u8]>>(
                &self,
                keys: &[K],
            ) -> crate::Result<Vec<Option<crate::Slice>>> {
                crate::ReadableKeyspace::multi_get(self, keys)
            }

            /// Whether `key` has a value. Cheaper than [`get`](Self::get) for large values.
            pub fn contains_key(&self, key: impl AsRef<[u8]>) -> crate::Result<bool> {
                crate::ReadableKeyspace::contains_key(self, key)
            }

            /// All keys and values, in order, from both ends. Unaffected by later writes. Of a store that is
            /// closed, or a keyspace that was dropped, it gives an error and ends; so do the other iterators
            /// and cursors.
            pub fn iter(&self) -> crate::Iter {
                crate::ReadableKeyspace::iter(self)
            }

            /// Keys and values of a range, in order, from both ends.
            ///
            /// ```
            /// # fn main() -> esker::Result<()> {
            /// # let dir = tempfile::tempdir().unwrap();
            /// # let db = esker::Db::open(dir.path().join("db"))?;
            /// for key in ["a", "b", "c", "d"] {
            ///     db.put(key, "x")?;
            /// }
            /// let keys: Vec<_> = db.range("b".."d").rev().map(|e| e.map(|(k, _)| k)).collect::<Result<_, _>>()?;
            /// assert_eq!(keys, [b"c", b"b"]);
            /// # Ok(()) }
            /// ```
            pub fn range<K: AsRef<[u8]>>(
                &self,
                range: impl std::ops::RangeBounds<K>,
            ) -> crate::Iter {
                crate::ReadableKeyspace::range(self, range)
            }

            /// Keys that start with `prefix`, and their values. Under a comparator of the user's own this
            /// looks at all keys.
            pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> crate::Iter {
                crate::ReadableKeyspace::prefix(self, prefix)
            }

            /// A cursor over the present state, or, of a [`View`](crate::View), over its snapshot's.
            pub fn cursor(&self) -> crate::Cursor {
                crate::ReadableKeyspace::cursor(self)
            }

            /// A cursor that does not fetch values; [`Cursor::value`](crate::Cursor::value) is empty.
            pub fn cursor_keys_only(&self) -> crate::Cursor {
                crate::ReadableKeyspace::cursor_keys_only(self)
            }
        }
    };
}
pub(crate) use own_read_methods;

/// A named, ordered map within a store. Cheap to clone, and used from any number of threads.
///
/// Every store has one called `default`, the one that [`Db`](crate::Db) reads and writes by itself.
///
/// ```
/// # fn main() -> esker::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// use esker::{Db, KeyOrder, KeyspaceOptions};
/// let db = Db::open(dir.path().join("db"))?;
/// let newest_first = KeyspaceOptions::new().comparator(KeyOrder::Reverse);
/// let events = db.create_keyspace("events", newest_first)?;
/// events.put(1u64.to_be_bytes(), "first")?;
/// events.put(2u64.to_be_bytes(), "second")?;
/// let (_, newest) = events.iter().next().unwrap()?;
/// assert_eq!(newest, b"second");
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Keyspace {
    pub(crate) handle: Arc<Handle>,
    pub(crate) state: Arc<KeyspaceState>,
    /// For its cursors.
    home: Arc<dyn CursorHome>,
}

impl Keyspace {
    pub(crate) fn new(handle: Arc<Handle>, state: Arc<KeyspaceState>) -> Keyspace {
        let home = Arc::new(CursorKeyspace::new(&handle.store, &state));
        Keyspace { handle, state, home }
    }

    fn gaps(&self) -> Arc<dyn GapFinder> {
        Arc::clone(&self.home) as _
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.state.name
    }

    /// The name of its comparator: `esker.bytewise`, `esker.reverse`, or that of the program's own
    /// ([`Comparator::name`](crate::Comparator::name)). Costs nothing; also of a keyspace that was dropped.
    pub fn comparator_name(&self) -> &str {
        self.state.order.name()
    }

    /// Its part of [`Db::stats`](crate::Db::stats), as it is now; no file is looked at for it.
    pub fn stats(&self) -> KeyspaceStats {
        KeyspaceStats::of(&self.state)
    }

    pub(crate) fn id(&self) -> u32 {
        self.state.id
    }

    /// Reads and writes end once the store is closed: another process may then reuse its files. A
    /// reader asks after it has taken its super version: that of a dropped keyspace is empty, and whoever
    /// sees that sees the mark as well.
    #[inline]
    fn check_open(&self) -> Result<()> {
        self.handle.store.check_open()?;
        self.state.check_alive()
    }

    /// As [`Keyspace::check_open`]; and the snapshot must be of this store.
    #[inline]
    fn check_readable(&self, at: Option<&Snapshot>) -> Result<()> {
        match at {
            Some(snapshot) if !snapshot.is_of(&self.handle.store.snapshots) => {
                Err(Error::ForeignSnapshot)
            }
            _ => self.check_open(),
        }
    }

    /// What a read of one key needs.
    #[inline]
    pub(crate) fn super_version_now(
        &self,
        at: Option<&Snapshot>,
    ) -> Result<(Guard<Arc<SuperVersion>>, Seq)> {
        let seen = match at {
            None => self.state.super_version.now(&self.handle.store.visible.0),
            Some(snapshot) => (self.state.super_version.load(), snapshot.sequence()),
        };
        self.check_readable(at)?;
        Ok(seen)
    }

    /// What a read of several keys needs, and whether it may be used.
    pub(crate) fn consistent_super_version(
        &self,
        at: Option<&Snapshot>,
    ) -> ((Arc<SuperVersion>, Seq), Result<()>) {
        let seen = match at {
            None => self.handle.store.consistent_super_version(&self.state),
            Some(snapshot) => (self.state.super_version.load_full(), snapshot.sequence()),
        };
        (seen, self.check_readable(at))
    }

    fn cursor_at(&self, at: Option<&Snapshot>, keys_only: bool) -> Cursor {
        let ((super_version, seq), open) = self.consistent_super_version(at);
        let refresher = Refresher::new(Arc::clone(&self.home), seq, at);
        Cursor::new(super_version, &self.state.order, seq, keys_only, Some(self.gaps()))
            .refreshed(refresher)
            .provided(open)
    }

    /// Gives `key` this value, with the store's default durability.
    ///
    /// # Errors
    /// A key over 64 KiB, a value over 1 GiB, no space for the log, and what stopped writes earlier
    /// ([`Error::Halted`](crate::Error::Halted)). After an error of a synced write it is not known whether the write
    /// survives.
    #[inline]
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.put_with(key, value, self.handle.store.options.durability)
    }

    /// Gives `key` this value, with a durability of its own.
    #[inline]
    pub fn put_with(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        durability: Durability,
    ) -> Result<()> {
        self.handle.store.write_one(
            &self.state,
            Kind::Put,
            key.as_ref(),
            value.as_ref(),
            durability,
        )
    }

    /// Takes the value of `key` away, if it has one, with the store's default durability.
    #[inline]
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.delete_with(key, self.handle.store.options.durability)
    }

    /// Takes the value of `key` away, with a durability of its own.
    #[inline]
    pub fn delete_with(&self, key: impl AsRef<[u8]>, durability: Durability) -> Result<()> {
        self.handle.store.write_one(&self.state, Kind::Delete, key.as_ref(), &[], durability)
    }

    /// This keyspace as `snapshot` sees it. If that is of another store, all reads of the view give
    /// [`Error::ForeignSnapshot`].
    pub fn at(&self, snapshot: &Snapshot) -> View {
        View { keyspace: self.clone(), snapshot: snapshot.clone() }
    }

    /// Loads entries in ascending order straight into tables, past the log. All of them appear at
    /// once, and durably, when the call returns; on an error, none (but where writes
    /// stop by it, the next open tells). Replaces values of keys that
    /// are there already. Returns how many were loaded.
    ///
    /// # Errors
    /// [`Error::NotSorted`](crate::Error::NotSorted) names the first entry that is not above the one
    /// before it. [`Error::Closed`](crate::Error::Closed): the store was closed meanwhile, and nothing
    /// is loaded; closing does not wait for `entries`, but the directory stays locked until they end.
    pub fn bulk_load<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        entries: impl IntoIterator<Item = (K, V)>,
    ) -> Result<u64> {
        self.try_bulk_load(entries.into_iter().map(Ok::<_, Error>))
    }

    /// As [`bulk_load`](Keyspace::bulk_load), of entries that may turn out to be an error. The first
    /// that is comes back as it is, and nothing is loaded.
    ///
    /// The error can be any that a [`esker::Error`](crate::Error) can become: the program's own, boxed
    /// ones, [`std::io::Error`], and `esker::Error` itself, as when one keyspace is copied to another.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = esker::Db::open(dir.path().join("db"))?;
    /// use std::io::{self, BufRead};
    ///
    /// // Keys, one to a line. The error of a line that cannot be read is the error of the load.
    /// let keys = |input: &'static [u8]| input.lines().map(|line| line.map(|key| (key, "")));
    /// assert_eq!(db.try_bulk_load(keys(b"ash\nbeech\n"))?, 2);
    /// let e: io::Error = db.try_bulk_load(keys(b"birch\n\xff\n")).unwrap_err();
    /// assert_eq!(e.kind(), io::ErrorKind::InvalidData);
    /// assert!(!db.contains_key("birch")?);
    ///
    /// let copy = db.create_keyspace("copy", Default::default())?;
    /// assert_eq!(copy.try_bulk_load(db.iter())?, 2);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The first of `entries`, and those of [`bulk_load`](Keyspace::bulk_load).
    pub fn try_bulk_load<K: AsRef<[u8]>, V: AsRef<[u8]>, E: From<Error>>(
        &self,
        entries: impl IntoIterator<Item = Result<(K, V), E>>,
    ) -> Result<u64, E> {
        self.check_open()?;
        self.handle.store.bulk_load(&self.state, entries)
    }

    /// Rewrites the tables in a range, and those that overlap them, into one run: drops what was deleted or overwritten there before
    /// the call and no snapshot needs, and packs values as the keyspace does now, whatever they were packed with; under
    /// [`Compression::None`](crate::Compression::None) it unpacks them. Large values in the log stay
    /// as they are. Other tables are left alone, but for small neighbours that are merged along. Returns when done. Flushes that
    /// somebody waits for do not wait for it, nor do bulk loads and compactions of other keyspaces for more than its flush or
    /// one of its parts (some 32 tables, or what overlaps). On a full disk it leaves out what is in the log's active
    /// segment; where other segments find no room for their flush, that is an error.
    pub fn compact_range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<()> {
        self.check_open()?;
        self.handle.store.compact(&self.state, &range)
    }

    /// About how many bytes of files a range takes, old versions included: its part of tables, the large values that these point
    /// to, and the keys and newest values in the log that are not flushed yet. No value is read; of what is not flushed the
    /// first thousand records are looked at, and of the others one in eight to fifteen, which stands for them.
    pub fn approximate_size<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<u64> {
        let bytes = self
            .state
            .order
            .guard(|| Ok(self.handle.store.approximate_size(&self.state, &range)))?;
        self.check_open()?;
        Ok(bytes)
    }
}

impl Moment for Keyspace {
    #[inline]
    fn keyspace_of(&self) -> &Keyspace {
        self
    }
    #[inline]
    fn moment(&self) -> Option<&Snapshot> {
        None
    }
}

impl WriteBatch {
    /// Gives `key` this value in `keyspace`.
    pub fn put_in(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        self.note_store(keyspace.handle.store.id);
        self.push(keyspace.id(), Kind::Put, key.as_ref(), value.as_ref());
    }

    /// Takes the value of `key` in `keyspace` away.
    pub fn delete_in(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>) {
        self.note_store(keyspace.handle.store.id);
        self.push(keyspace.id(), Kind::Delete, key.as_ref(), &[]);
    }
}

impl fmt::Debug for Keyspace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keyspace({:?})", self.name())
    }
}

/// A keyspace as a snapshot sees it: the reading half of [`Keyspace`].
#[derive(Clone, Debug)]
pub struct View {
    keyspace: Keyspace,
    snapshot: Snapshot,
}

impl Moment for View {
    fn keyspace_of(&self) -> &Keyspace {
        &self.keyspace
    }
    fn moment(&self) -> Option<&Snapshot> {
        Some(&self.snapshot)
    }
}

own_read_methods!(Keyspace);
own_read_methods!(View);

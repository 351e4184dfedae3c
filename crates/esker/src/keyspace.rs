//! A handle on one keyspace, and a view of it at a snapshot.

use std::fmt;
use std::ops::RangeBounds;
use std::sync::Arc;

use crate::batch::WriteBatch;
use crate::error::{Error, Result};
use crate::handle::Handle;
use crate::key::{Kind, Seq};
use crate::options::Durability;
use crate::read::cursor::Cursor;
use crate::read::get;
use crate::read::iter::Iter;
use crate::read::slice::Slice;
use crate::snapshot::Snapshot;
use crate::store::KeyspaceState;

/// A named, ordered map within a store. Cheap to clone, and used from any number of threads.
///
/// Every store has one called `default`, which [`Db`](crate::Db) derefs to.
///
/// ```
/// # fn main() -> esker::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// use esker::{Db, KeyOrder, KeyspaceOptions};
/// let db = Db::open(dir.path().join("db"))?;
/// let newest_first = KeyspaceOptions::new().order(KeyOrder::Reverse);
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
}

impl Keyspace {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.state.name
    }

    pub(crate) fn id(&self) -> u32 {
        self.state.id
    }

    /// Reads and writes end once the store is closed: another process may then reuse its files. A
    /// reader asks after it has taken its view: that of a dropped keyspace is empty, and whoever
    /// sees that sees the mark as well.
    #[inline]
    fn check_open(&self) -> Result<()> {
        self.handle.store.check_open()?;
        self.state.check_alive()
    }

    /// The value of `key`, `None` when it has none. Not copied; see [`Slice`].
    ///
    /// # Errors
    /// Damage in the files that hold it, and [`Error::Closed`](crate::Error::Closed).
    #[inline]
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Slice>> {
        let (view, seq) = self.state.view.now(&self.handle.store.visible.0);
        self.check_open()?;
        let (order, key) = (&self.state.order, key.as_ref());
        order.guard(|| get::get(view, order, key, seq))
    }

    /// The values of several keys as of one moment, in the order asked for. Faster than one
    /// [`get`](Keyspace::get) after the other: the memory accesses overlap.
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Slice>>> {
        let (view, seq) = self.handle.store.consistent_view(&self.state);
        self.check_open()?;
        let order = &self.state.order;
        order.guard(|| get::multi_get(&view, order, keys, seq))
    }

    /// Whether `key` has a value. Cheaper than [`get`](Keyspace::get) for large values.
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        let (view, seq) = self.state.view.now(&self.handle.store.visible.0);
        self.check_open()?;
        let (order, key) = (&self.state.order, key.as_ref());
        order.guard(|| get::contains(&view, order, key, seq))
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

    /// All keys and values, in order, from both ends. Unaffected by later writes. Of a store that is
    /// closed, or a keyspace that was dropped, it gives an error and ends; so do the other iterators
    /// and cursors.
    pub fn iter(&self) -> Iter {
        self.range::<&[u8]>(..)
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
    pub fn range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Iter {
        let (view, seq) = self.handle.store.consistent_view(&self.state);
        Iter::new(view, &self.state.order, seq, &range).provided(self.check_open())
    }

    /// Keys that start with `prefix`, and their values. Under a comparator of the user's own this
    /// looks at all keys.
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Iter {
        let (view, seq) = self.handle.store.consistent_view(&self.state);
        Iter::with_prefix(view, &self.state.order, seq, prefix.as_ref()).provided(self.check_open())
    }

    /// A cursor over the present state.
    pub fn cursor(&self) -> Cursor {
        let (view, seq) = self.handle.store.consistent_view(&self.state);
        Cursor::new(view, &self.state.order, seq, false).provided(self.check_open())
    }

    /// A cursor that does not fetch values; [`Cursor::value`] is empty.
    pub fn cursor_keys_only(&self) -> Cursor {
        let (view, seq) = self.handle.store.consistent_view(&self.state);
        Cursor::new(view, &self.state.order, seq, true).provided(self.check_open())
    }

    /// This keyspace as `snapshot` sees it. If that is of another store, all reads of the view give
    /// [`Error::ForeignSnapshot`].
    pub fn at(&self, snapshot: &Snapshot) -> View {
        View { keyspace: self.clone(), snapshot: snapshot.clone() }
    }

    /// Loads entries in ascending order straight into tables, past the log. All of them appear at
    /// once, and durably, when the call returns; on an error, none. Replaces values of keys that
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
        self.check_open()?;
        self.handle.store.bulk_load(&self.state, entries)
    }

    /// Rewrites the tables in a range into one run: drops what is deleted or overwritten there and
    /// packs values as the keyspace does now, whatever they were packed with; under
    /// [`Compression::None`](crate::Compression::None) it unpacks them. Large values in the log stay
    /// as they are. Returns when done.
    pub fn compact_range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<()> {
        self.check_open()?;
        self.handle.store.compact(&self.state, &range)
    }

    /// About how many bytes of files a range takes, values that stayed in the log included.
    pub fn approximate_size<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<u64> {
        let bytes = self
            .state
            .order
            .guard(|| Ok(self.handle.store.approximate_size(&self.state, &range)))?;
        self.check_open()?;
        Ok(bytes)
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

impl View {
    fn seq(&self) -> Seq {
        self.snapshot.sequence()
    }

    /// As [`Keyspace::check_open`]; and the snapshot must be of this store.
    fn check(&self) -> Result<()> {
        match self.snapshot.is_of(&self.keyspace.handle.store.snapshots) {
            true => self.keyspace.check_open(),
            false => Err(Error::ForeignSnapshot),
        }
    }

    /// As [`Keyspace::get`].
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Slice>> {
        let ks = &self.keyspace.state;
        let view = ks.view.load();
        self.check()?;
        let key = key.as_ref();
        ks.order.guard(|| get::get(view, &ks.order, key, self.seq()))
    }

    /// As [`Keyspace::multi_get`].
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Slice>>> {
        let ks = &self.keyspace.state;
        let view = ks.view.load_full();
        self.check()?;
        ks.order.guard(|| get::multi_get(&view, &ks.order, keys, self.seq()))
    }

    /// As [`Keyspace::contains_key`].
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        let ks = &self.keyspace.state;
        let view = ks.view.load();
        self.check()?;
        let key = key.as_ref();
        ks.order.guard(|| get::contains(&view, &ks.order, key, self.seq()))
    }

    /// As [`Keyspace::iter`].
    pub fn iter(&self) -> Iter {
        self.range::<&[u8]>(..)
    }

    /// As [`Keyspace::range`].
    pub fn range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Iter {
        let ks = &self.keyspace.state;
        let view = ks.view.load_full();
        Iter::new(view, &ks.order, self.seq(), &range).provided(self.check())
    }

    /// As [`Keyspace::prefix`].
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Iter {
        let ks = &self.keyspace.state;
        let iter = Iter::with_prefix(ks.view.load_full(), &ks.order, self.seq(), prefix.as_ref());
        iter.provided(self.check())
    }

    /// As [`Keyspace::cursor`].
    pub fn cursor(&self) -> Cursor {
        let ks = &self.keyspace.state;
        let view = ks.view.load_full();
        Cursor::new(view, &ks.order, self.seq(), false).provided(self.check())
    }

    /// As [`Keyspace::cursor_keys_only`].
    pub fn cursor_keys_only(&self) -> Cursor {
        let ks = &self.keyspace.state;
        let view = ks.view.load_full();
        Cursor::new(view, &ks.order, self.seq(), true).provided(self.check())
    }
}

//! The handle on an open store.

use std::borrow::Borrow;
use std::fmt;
use std::ops::RangeBounds;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::batch::WriteBatch;
use crate::comparator::{self, refuse_from_comparator};
use crate::env::{Env, OsEnv, absolute};
use crate::error::{Error, Result};
use crate::handle::Handle;
use crate::keyspace::sealed::Moment;
use crate::keyspace::{Keyspace, View};
use crate::keyspace::{ReadableKeyspace, own_read_methods};
use crate::options::{Durability, KeyspaceOptions, Options};
use crate::recovery;
use crate::repair::RepairReport;
use crate::snapshot::Snapshot;
use crate::stats::Stats;
use crate::store::DEFAULT_KEYSPACE;
use crate::verify::VerifyReport;

/// An open store. Cheap to clone, and used from any number of threads; the store is closed when the
/// last clone, and the last [`Keyspace`], is dropped.
///
/// `get`, `put`, `range` and the other methods of a [`Keyspace`] work on the keyspace that every store
/// has, which is called `default`.
///
/// ```
/// # fn main() -> esker::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// use esker::{Db, WriteBatch};
/// let db = Db::open(dir.path().join("db"))?;
/// db.put("ash", "Fraxinus excelsior")?;
///
/// let mut batch = WriteBatch::new();
/// batch.put("beech", "Fagus sylvatica");
/// batch.delete("ash");
/// db.write(batch)?;
///
/// assert_eq!(db.get("beech")?.unwrap(), b"Fagus sylvatica");
/// assert!(db.get("ash")?.is_none());
/// db.close()?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Db {
    default: Keyspace,
}

impl Moment for Db {
    #[inline]
    fn keyspace_of(&self) -> &Keyspace {
        &self.default
    }
    #[inline]
    fn moment(&self) -> Option<&Snapshot> {
        None
    }
}

impl ReadableKeyspace for Db {}

own_read_methods!(Db);

/// Writing to the default keyspace, and what else works on one keyspace.
impl Db {
    /// The default keyspace, where a [`Keyspace`] is asked for.
    pub fn default_keyspace(&self) -> &Keyspace {
        &self.default
    }

    /// Gives `key` this value, with the store's default durability; see [`Keyspace::put`].
    #[inline]
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.default.put(key, value)
    }

    /// Gives `key` this value, with a durability of its own; see [`Keyspace::put_with`].
    #[inline]
    pub fn put_with(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        durability: Durability,
    ) -> Result<()> {
        self.default.put_with(key, value, durability)
    }

    /// Takes the value of `key` away, with the store's default durability; see [`Keyspace::delete`].
    #[inline]
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.default.delete(key)
    }

    /// Takes the value of `key` away, with a durability of its own; see [`Keyspace::delete_with`].
    #[inline]
    pub fn delete_with(&self, key: impl AsRef<[u8]>, durability: Durability) -> Result<()> {
        self.default.delete_with(key, durability)
    }

    /// The default keyspace as `snapshot` sees it; see [`Keyspace::at`].
    pub fn at(&self, snapshot: &Snapshot) -> View {
        self.default.at(snapshot)
    }

    /// Loads entries in ascending order, past the log; see [`Keyspace::bulk_load`].
    pub fn bulk_load<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        entries: impl IntoIterator<Item = (K, V)>,
    ) -> Result<u64> {
        self.default.bulk_load(entries)
    }

    /// The same of entries that may be an error; see [`Keyspace::try_bulk_load`].
    pub fn try_bulk_load<K: AsRef<[u8]>, V: AsRef<[u8]>, E: From<Error>>(
        &self,
        entries: impl IntoIterator<Item = Result<(K, V), E>>,
    ) -> Result<u64, E> {
        self.default.try_bulk_load(entries)
    }

    /// Rewrites the tables in a range into one run; see [`Keyspace::compact_range`].
    pub fn compact_range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<()> {
        self.default.compact_range(range)
    }

    /// About how many bytes of files a range takes; see [`Keyspace::approximate_size`].
    pub fn approximate_size<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<u64> {
        self.default.approximate_size(range)
    }
}

/// The store as a whole.
impl Db {
    /// Opens the store in `path` with default options, and makes it when it is missing.
    pub fn open(path: impl AsRef<Path>) -> Result<Db> {
        Options::new().open(path)
    }

    pub(crate) fn open_with(path: &Path, options: Options) -> Result<Db> {
        Db::open_in(Arc::new(OsEnv::new()), &resolve(path)?, options)
    }

    pub(crate) fn open_in(env: Arc<dyn Env>, path: &Path, options: Options) -> Result<Db> {
        let store = recovery::open(env, path, options)?;
        let default = store.keyspaces.read().by_name.get(DEFAULT_KEYSPACE).cloned();
        let default = default
            .ok_or_else(|| Error::corrupt(path, 0, "the manifest names no default keyspace"))?;
        let handle = Arc::new(Handle::start(store)?);
        Ok(Db { default: Keyspace::new(handle, default) })
    }

    /// The state behind the handle, for tests that look at it or push it on.
    #[cfg(test)]
    pub(crate) fn store(&self) -> &Arc<crate::store::Store> {
        &self.handle().store
    }

    fn handle(&self) -> &Arc<Handle> {
        &self.default.handle
    }

    /// Writes a batch, with the store's default durability: all of it or none, across keyspaces. A
    /// batch that is lent can be [cleared](WriteBatch::clear) and filled again, in the same memory.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = esker::Db::open(dir.path().join("db"))?;
    /// let mut batch = esker::WriteBatch::new();
    /// for n in 0..1000u32 {
    ///     batch.put(n.to_be_bytes(), "value");
    ///     if batch.len() == 100 {
    ///         db.write(&batch)?;
    ///         batch.clear();
    ///     }
    /// }
    /// # assert_eq!(db.iter().count(), 1000);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::ForeignBatch`] when it names a keyspace by a handle of another store, or one from
    /// before this one was opened; and those of [`Keyspace::put`].
    pub fn write(&self, batch: impl Borrow<WriteBatch>) -> Result<()> {
        self.write_with(batch, self.handle().store.options.durability)
    }

    /// Writes a batch with a durability of its own.
    pub fn write_with(&self, batch: impl Borrow<WriteBatch>, durability: Durability) -> Result<()> {
        self.handle().store.write_batch(batch.borrow(), durability)
    }

    /// The whole store as it is now.
    pub fn snapshot(&self) -> Snapshot {
        let store = &self.handle().store;
        Snapshot::new(&store.snapshots, || store.visible_seq())
    }

    /// The keyspace of that name.
    pub fn keyspace(&self, name: &str) -> Result<Keyspace> {
        self.handle().store.check_process()?;
        let state = self.handle().store.keyspaces.read().by_name.get(name).cloned();
        match state {
            Some(state) => Ok(Keyspace::new(Arc::clone(self.handle()), state)),
            None => Err(Error::UnknownKeyspace { name: name.to_string() }),
        }
    }

    /// Makes a keyspace. Durable on return. Waits for a checkpoint that is under way.
    #[doc(alias = "create_cf")]
    pub fn create_keyspace(&self, name: &str, options: KeyspaceOptions) -> Result<Keyspace> {
        let state = self.handle().store.create_keyspace(name, options)?;
        Ok(Keyspace::new(Arc::clone(self.handle()), state))
    }

    /// Drops a keyspace and all its data. Durable on return. Waits for a checkpoint that is under way. Handles on it give
    /// [`Error::KeyspaceDropped`] from then on. The default keyspace stays.
    #[doc(alias = "drop_cf")]
    #[doc(alias = "delete_keyspace")]
    pub fn drop_keyspace(&self, name: &str) -> Result<()> {
        if name == DEFAULT_KEYSPACE {
            return Err(Error::DefaultKeyspace);
        }
        refuse_from_comparator()?;
        self.handle().store.drop_keyspace(&self.keyspace(name)?.state)
    }

    /// Names of all keyspaces, `default` first, then in order of creation.
    pub fn keyspaces(&self) -> Vec<String> {
        self.handle().store.all_keyspaces().iter().map(|k| k.name.clone()).collect()
    }

    /// Writes everything into tables. Returns when that is done, and durable.
    pub fn flush(&self) -> Result<()> {
        self.handle().store.flush_all()
    }

    /// Flushes, and merges what is in tables then until nothing is left to do about it. What is worth
    /// less than it takes to write stays: see [`compact_range`](crate::Db::compact_range). What somebody else writes meanwhile is not waited for.
    #[doc(alias = "wait_for_compact")]
    #[doc(alias = "settle")]
    pub fn wait_for_compactions(&self) -> Result<()> {
        self.handle().store.settle()
    }

    /// Makes everything written so far durable.
    #[doc(alias = "flush_wal")]
    #[doc(alias = "persist")]
    pub fn sync(&self) -> Result<()> {
        let store = &self.handle().store;
        store.check_open()?;
        store.sync_all()
    }

    /// Makes a second store in `dir`, which must not exist, that holds what this one holds now.
    /// Files that never change are shared (hard links) where the file system can.
    pub fn checkpoint(&self, dir: impl AsRef<Path>) -> Result<()> {
        self.handle().store.checkpoint(&resolve(dir.as_ref())?)
    }

    /// Goes on after an error that stopped writes ([`Error::Halted`]), once its cause is removed, with a new
    /// manifest. After a failed sync there is a new log segment too, and what was in memory is written to tables
    /// first. No reopen is needed, and reads went on all the while.
    pub fn resume(&self) -> Result<()> {
        self.handle().store.resume()
    }

    /// Reads and checks all tables, and what they refer to, against what the store knows of them: checksums, order,
    /// counts, references. Not again what this opening has checked or written: large values that were read, and the log. [`Db::verify_path`] reads all there is.
    pub fn verify(&self) -> Result<VerifyReport> {
        self.verify_with(|_, _| {})
    }

    /// The same; calls `progress` with bytes done and in all, holding no lock.
    pub fn verify_with(&self, mut progress: impl FnMut(u64, u64)) -> Result<VerifyReport> {
        comparator::catch(|| self.handle().store.verify(&mut progress))
    }

    /// Verifies a store that is not open for writing, changing nothing, even when it is too damaged to
    /// open; readers may have it open, and it may be on a medium that cannot be written.
    /// [`Options::verify`] takes comparators; without them the keyspaces that need one are a problem
    /// each, and of their tables the checksums of the blocks, and of the large values that these point to, are
    /// checked: not order nor counts.
    pub fn verify_path(path: impl AsRef<Path>) -> Result<VerifyReport> {
        Options::new().verify(path)
    }

    /// The shape of the store, and what it has done.
    pub fn stats(&self) -> Stats {
        self.handle().store.stats()
    }

    /// A property as text: `esker.stats`, `esker.levels`, `esker.sequence`, `esker.disk-bytes`,
    /// `esker.memory-used`, `esker.write-amplification`, `esker.halted`.
    pub fn property(&self, name: &str) -> Option<String> {
        self.handle().store.property(name)
    }

    /// Flushes ([`Options::flush_on_close`]) and closes the store for all clones; the next open has nothing to recover. Dropping
    /// the last handle does the same but cannot report errors.
    ///
    /// Calls of other clones fail with [`Error::Closed`] from then on; those under way come to an end
    /// first or fail so. The directory is free on return, also while clones live. It stays locked while
    /// a [`Slice`](crate::Slice), a cursor, or an iterator that has not ended is held, a bulk load waits for its entries, a checkpoint
    /// copies files, or a verification reads.
    pub fn close(self) -> Result<()> {
        refuse_from_comparator()?;
        self.handle().close()
    }

    /// Removes the store in `path`: all its files, those in `lost/` too, and the directory if nothing else is in it and it can be removed.
    pub fn destroy(path: impl AsRef<Path>) -> Result<()> {
        crate::destroy::destroy(&OsEnv::new(), &resolve(path.as_ref())?)
    }

    /// Saves what is intact of a damaged store that is not open, and makes it open again; a sound one
    /// stays as it is. [`Options::repair`] takes comparators and more.
    pub fn repair(path: impl AsRef<Path>) -> Result<RepairReport> {
        Options::new().repair(path)
    }
}

/// The place that a path means now, for good.
fn resolve(path: &Path) -> Result<PathBuf> {
    absolute(path).map_err(|e| Error::io("find", path, e))
}

impl Options {
    /// Opens the store in `path`.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Db> {
        Db::open_with(path.as_ref(), self.clone())
    }

    /// Verifies a store that is not open, as [`Db::verify_path`] does, with the comparators of these
    /// options.
    pub fn verify(&self, path: impl AsRef<Path>) -> Result<VerifyReport> {
        self.verify_with(path, |_, _| {})
    }

    /// The same; calls `progress` with bytes done and in all.
    pub fn verify_with(
        &self,
        path: impl AsRef<Path>,
        mut progress: impl FnMut(u64, u64),
    ) -> Result<VerifyReport> {
        let (path, orders) = (resolve(path.as_ref())?, recovery::orders_of(self)?);
        let env = Arc::new(OsEnv::new());
        comparator::catch(|| crate::verify::verify_path(env, &path, &orders, &mut progress))
    }

    /// Repairs a store that is not open, as [`Db::repair`] does. Verifies it first, and changes no
    /// file of one that is sound.
    ///
    /// Of these options it takes the comparators ([`comparator`](Options::comparator) and
    /// [`keyspace_comparator`](Options::keyspace_comparator)), and for tables that it writes
    /// [`block_size`](Options::block_size) and, for keyspaces that have none of their own,
    /// [`compression`](Options::compression). A keyspace whose comparator is not given keeps all it
    /// has, in tables and in the log, and is checked by a repair with the comparator.
    ///
    /// # Errors
    /// [`Error::Locked`] when the store is open, [`Error::ComparatorMismatch`] when a comparator is
    /// given that is not the keyspace's, [`Error::UnsupportedFormat`] for a store of another version's format. After
    /// any error, a full disk too, the store is as it was, or repaired.
    pub fn repair(&self, path: impl AsRef<Path>) -> Result<RepairReport> {
        let path = resolve(path.as_ref())?;
        comparator::catch(|| crate::repair::repair(Arc::new(OsEnv::new()), &path, self))
    }
}

impl fmt::Debug for Db {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Db({})", self.handle().store.dir.display())
    }
}

//! LevelDB's C interface, which its forks have too, and RocksDB with another word before each name: a store that is open,
//! and how its threads write and read. What a library does in a way of its own is its [`Dialect`].

use super::library::{self, View, c_api};
use crate::engine::{Access, Class, Config, Direction, Engine, Hint, Reader, Sync, Writer};
use anyhow::{Context, Result, bail};
use std::ffi::{CStr, CString, c_char, c_int, c_uchar, c_void};
use std::path::Path;
use std::ptr;

/// What a library made, and takes back.
pub type Handle = *mut c_void;
/// Where a call puts what went wrong.
pub type Error = *mut c_char;

c_api! {
    /// What all of them have, without the word that their names begin with.
    pub prefixed Api {
        fn free(*mut c_void);
        fn options_create() -> Handle;
        fn options_destroy(Handle);
        fn options_set_create_if_missing(Handle, c_uchar);
        fn options_set_write_buffer_size(Handle, usize);
        fn options_set_compression(Handle, c_int);
        fn cache_create_lru(usize) -> Handle;
        fn cache_destroy(Handle);
        fn writeoptions_create() -> Handle;
        fn writeoptions_destroy(Handle);
        fn writeoptions_set_sync(Handle, c_uchar);
        fn readoptions_create() -> Handle;
        fn readoptions_destroy(Handle);
        fn readoptions_set_verify_checksums(Handle, c_uchar);
        fn open(Handle, *const c_char, *mut Error) -> Handle;
        fn close(Handle);
        fn put(Handle, Handle, *const u8, usize, *const u8, usize, *mut Error);
        fn delete(Handle, Handle, *const u8, usize, *mut Error);
        fn write(Handle, Handle, Handle, *mut Error);
        fn compact_range(Handle, *const u8, usize, *const u8, usize);
        fn writebatch_create() -> Handle;
        fn writebatch_destroy(Handle);
        fn writebatch_clear(Handle);
        fn writebatch_put(Handle, *const u8, usize, *const u8, usize);
        fn create_iterator(Handle, Handle) -> Handle;
        fn iter_destroy(Handle);
        fn iter_valid(Handle) -> c_uchar;
        fn iter_seek_to_first(Handle);
        fn iter_seek_to_last(Handle);
        fn iter_seek(Handle, *const u8, usize);
        fn iter_next(Handle);
        fn iter_prev(Handle);
        fn iter_key(Handle, *mut usize) -> *const u8;
        fn iter_value(Handle, *mut usize) -> *const u8;
        fn iter_get_error(Handle, *mut Error);
    }
}

impl Api {
    /// Turns an error string into an error, and frees it.
    #[inline]
    pub fn check(&self, error: Error) -> Result<()> {
        if error.is_null() {
            return Ok(());
        }
        // SAFETY: the library set it to a string of its own allocation.
        bail!("{}", unsafe { self.take(error) })
    }

    /// A string that is freed once it was looked at.
    ///
    /// # Safety
    /// The library allocated it, and nobody else frees it.
    pub unsafe fn take(&self, text: *mut c_char) -> String {
        // SAFETY: the caller's promise.
        unsafe {
            let told = CStr::from_ptr(text).to_string_lossy().into_owned();
            (self.free)(text.cast());
            told
        }
    }
}

/// What a store is opened with, of what all of them have.
pub struct Opening<D> {
    /// The library's functions.
    pub api: &'static Api,
    /// What is its own.
    pub dialect: D,
    /// Bytes of the cache.
    pub cache_bytes: usize,
    /// Whether checksums are verified at each read.
    pub verifies_checksums: bool,
}

/// What a library with this interface has in a way of its own. A value of it belongs to one store.
pub trait Dialect: Sized + 'static {
    /// The version of the library, which is loaded then.
    fn version() -> Result<String>;
    /// Loads the library, for a store of this configuration.
    fn load(config: &Config) -> Result<Opening<Self>>;
    /// Sets the options that a store is opened with.
    fn set(&self, store: &Store<Self>, options: Handle);
    /// All of that in words.
    fn settings(&self, config: &Config) -> String;
    /// As [`Engine::settle`].
    fn settle(&self, store: &Store<Self>) -> Result<()>;
    /// As [`Reader::get`].
    fn get<R>(
        &self,
        store: &Store<Self>,
        key: &[u8],
        see: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>>;
    /// Moves an iterator on to the newest view, where there is a call for that: `false` where there is none.
    fn refresh(&self, _api: &Api, _iter: Handle) -> Result<bool> {
        Ok(false)
    }
}

/// A database with the options it needs for as long as it is open.
pub struct Store<D> {
    pub(super) api: &'static Api,
    pub(super) db: Handle,
    pub(super) cache: Handle,
    pub(super) read: Handle,
    write: Handle,
    pub(super) config: Config,
    pub(super) dialect: D,
}

// SAFETY: a database, and options that are not changed any more, may be shared by threads
// (leveldb/c.h, doc/index.md "Concurrency"; RocksDB's wiki, "Basic Operations", concurrency).
unsafe impl<D> std::marker::Sync for Store<D> {}
// SAFETY: nothing in it belongs to a thread.
unsafe impl<D> Send for Store<D> {}

impl<D> Drop for Store<D> {
    fn drop(&mut self) {
        let api = self.api;
        // SAFETY: handles borrow the database, so none is left; the cache goes after the database
        // that uses it.
        unsafe {
            if !self.db.is_null() {
                (api.close)(self.db);
            }
            (api.cache_destroy)(self.cache);
            (api.readoptions_destroy)(self.read);
            (api.writeoptions_destroy)(self.write);
        }
    }
}

impl<D: Dialect> Engine for Store<D> {
    type Writer<'a> = StoreWriter<'a, D>;
    type Reader<'a> = StoreReader<'a, D>;

    fn version() -> Result<String> {
        D::version()
    }

    fn open(dir: &Path, config: &Config) -> Result<Self> {
        let Opening { api, dialect, cache_bytes, verifies_checksums } = D::load(config)?;
        let path = CString::new(dir.as_os_str().as_encoded_bytes()).context("path")?;
        // SAFETY: every handle is created here and destroyed by `drop`, in the order c.h asks for.
        unsafe {
            let mut store = Store {
                api,
                db: ptr::null_mut(),
                cache: (api.cache_create_lru)(cache_bytes),
                read: (api.readoptions_create)(),
                write: (api.writeoptions_create)(),
                config: config.clone(),
                dialect,
            };
            (api.readoptions_set_verify_checksums)(store.read, verifies_checksums as c_uchar);
            (api.writeoptions_set_sync)(store.write, (config.sync == Sync::Synced) as c_uchar);
            let options = (api.options_create)();
            (api.options_set_create_if_missing)(options, 1);
            store.dialect.set(&store, options);
            let mut error = ptr::null_mut();
            store.db = (api.open)(options, path.as_ptr(), &mut error);
            (api.options_destroy)(options);
            api.check(error)?;
            Ok(store)
        }
    }

    fn settings(&self) -> String {
        self.dialect.settings(&self.config)
    }

    fn class(&self) -> Class {
        if self.config.sync == Sync::Synced { Class::F } else { Class::K }
    }

    fn compresses(&self) -> bool {
        self.config.compression
    }

    fn writer(&self, _hint: Hint) -> Result<StoreWriter<'_, D>> {
        // SAFETY: destroyed by the writer's `drop`.
        Ok(StoreWriter { store: self, batch: unsafe { (self.api.writebatch_create)() } })
    }

    fn reader(&self, access: Access) -> Result<StoreReader<'_, D>> {
        let view = View::new(access != Access::Quiet);
        Ok(StoreReader { store: self, iter: ptr::null_mut(), view })
    }

    fn settle(&self) -> Result<()> {
        self.dialect.settle(self)
    }

    fn compact(&self) -> Result<()> {
        // SAFETY: no bounds: the whole database.
        unsafe { (self.api.compact_range)(self.db, ptr::null(), 0, ptr::null(), 0) };
        Ok(())
    }
}

/// Writes; holds a batch that is cleared, not freed, between uses.
pub struct StoreWriter<'a, D> {
    store: &'a Store<D>,
    batch: Handle,
}

impl<D> Writer for StoreWriter<'_, D> {
    #[inline]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let (api, store) = (self.store.api, self.store);
        let mut error = ptr::null_mut();
        let (k, v) = (key.as_ptr(), value.as_ptr());
        // SAFETY: the library copies both before it returns.
        unsafe {
            (api.put)(store.db, store.write, k, key.len(), v, value.len(), &mut error);
        }
        api.check(error)
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        let (api, store) = (self.store.api, self.store);
        let mut error = ptr::null_mut();
        // SAFETY: as in `put`.
        unsafe { (api.delete)(store.db, store.write, key.as_ptr(), key.len(), &mut error) };
        api.check(error)
    }

    #[inline]
    fn batch_put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let (k, v) = (key.as_ptr(), value.as_ptr());
        // SAFETY: the batch is ours; the library copies both before it returns.
        unsafe { (self.store.api.writebatch_put)(self.batch, k, key.len(), v, value.len()) };
        Ok(())
    }

    fn batch_commit(&mut self) -> Result<()> {
        let (api, store) = (self.store.api, self.store);
        let mut error = ptr::null_mut();
        // SAFETY: the batch is ours, and stays valid after it was written.
        unsafe {
            (api.write)(store.db, store.write, self.batch, &mut error);
            (api.writebatch_clear)(self.batch);
        }
        api.check(error)
    }
}

impl<D> Drop for StoreWriter<'_, D> {
    fn drop(&mut self) {
        // SAFETY: created by `writer`, used by nobody else.
        unsafe { (self.store.api.writebatch_destroy)(self.batch) }
    }
}

/// Reads, with an iterator for seeks that is kept between them; beside a writer, for a while.
pub struct StoreReader<'a, D> {
    store: &'a Store<D>,
    iter: Handle,
    view: View,
}

impl<D> StoreReader<'_, D> {
    /// Hands over entries from where `iter` stands, up to `count`.
    #[inline]
    fn walk(
        &self,
        iter: Handle,
        direction: Direction,
        count: u64,
        mut see: impl FnMut(&[u8], &[u8]),
    ) -> Result<u64> {
        let api = self.store.api;
        let mut seen = 0;
        // SAFETY: the iterator is open and ours; key and value are looked at only while it is
        // valid and before it moves.
        unsafe {
            while seen < count && (api.iter_valid)(iter) != 0 {
                let (mut key_len, mut value_len) = (0, 0);
                let key = (api.iter_key)(iter, &mut key_len);
                let value = (api.iter_value)(iter, &mut value_len);
                see(library::bytes(key, key_len), library::bytes(value, value_len));
                seen += 1;
                if seen == count {
                    break;
                }
                match direction {
                    Direction::Forward => (api.iter_next)(iter),
                    Direction::Reverse => (api.iter_prev)(iter),
                }
            }
            let mut error = ptr::null_mut();
            (api.iter_get_error)(iter, &mut error);
            api.check(error)?;
        }
        Ok(seen)
    }

    fn drop_iterator(&mut self) {
        if !self.iter.is_null() {
            // SAFETY: created by `seek`, used by nobody else.
            unsafe { (self.store.api.iter_destroy)(self.iter) }
            self.iter = ptr::null_mut();
        }
    }
}

impl<D: Dialect> Reader for StoreReader<'_, D> {
    #[inline]
    fn get<R>(&mut self, key: &[u8], see: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        self.store.dialect.get(self.store, key, see)
    }

    #[inline]
    fn seek(&mut self, key: &[u8], count: u64, see: impl FnMut(&[u8], &[u8])) -> Result<u64> {
        let api = self.store.api;
        if self.view.is_due() {
            self.renew()?;
        }
        // SAFETY: created here, destroyed by `drop_iterator`.
        unsafe {
            if self.iter.is_null() {
                self.iter = (api.create_iterator)(self.store.db, self.store.read);
            }
            (api.iter_seek)(self.iter, key.as_ptr(), key.len());
        }
        self.walk(self.iter, Direction::Forward, count, see)
    }

    fn scan(&mut self, direction: Direction, see: impl FnMut(&[u8], &[u8])) -> Result<u64> {
        let api = self.store.api;
        // SAFETY: an iterator of our own, destroyed below.
        unsafe {
            let iter = (api.create_iterator)(self.store.db, self.store.read);
            match direction {
                Direction::Forward => (api.iter_seek_to_first)(iter),
                Direction::Reverse => (api.iter_seek_to_last)(iter),
            }
            let seen = self.walk(iter, direction, u64::MAX, see);
            (api.iter_destroy)(iter);
            seen
        }
    }

    fn renew(&mut self) -> Result<()> {
        let store = self.store;
        if !self.iter.is_null() && !store.dialect.refresh(store.api, self.iter)? {
            self.drop_iterator();
        }
        Ok(())
    }
}

impl<D> Drop for StoreReader<'_, D> {
    fn drop(&mut self) {
        self.drop_iterator();
    }
}

//! A store behind a shim: one adapter for every library that has one. What differs is how they are
//! configured ([`Kind`]).

use super::built::Loaded;
use super::library::{self, c_api};
use super::shim::Shim;
use crate::calls::Call;
use crate::engine::{Access, Class, Config, Direction, Engine, Hint, Reader, Sync, Writer};
use anyhow::{Context, Result, bail};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::ptr;

type Store = *mut c_void;
type Handle = *mut c_void;

/// `shim_options`.
#[repr(C)]
pub struct Options {
    dir: *const c_char,
    memory: u64,
    page_size: u32,
    synced: c_int,
    bulk: c_int,
    shared: c_int,
    connection: *const c_char,
    table: *const c_char,
}

/// `shim_bytes`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Bytes {
    data: *const u8,
    size: usize,
}

impl Bytes {
    const NONE: Bytes = Bytes { data: ptr::null(), size: 0 };

    /// # Safety
    /// The shim filled it in, and its reader was not called since.
    #[inline]
    unsafe fn bytes<'a>(self) -> &'a [u8] {
        // SAFETY: the caller's promise.
        unsafe { library::bytes(self.data, self.size) }
    }
}

c_api! {
    /// `shim.h`.
    pub Api {
        fn shim_version() -> *const c_char;
        fn shim_error(c_int) -> *const c_char;
        fn shim_open(*const Options, *mut Store) -> c_int;
        fn shim_settle(Store) -> c_int;
        fn shim_compact(Store) -> c_int;
        fn shim_reopen(Store, *const Options) -> c_int;
        fn shim_close(Store) -> c_int;
        fn shim_writer_new(Store, c_int, *mut Handle) -> c_int;
        fn shim_put(Handle, *const u8, usize, *const u8, usize) -> c_int;
        fn shim_delete(Handle, *const u8, usize) -> c_int;
        fn shim_batch_put(Handle, *const u8, usize, *const u8, usize) -> c_int;
        fn shim_batch_commit(Handle) -> c_int;
        fn shim_writer_free(Handle);
        fn shim_reader_new(Store, *mut Handle) -> c_int;
        fn shim_get(Handle, *const u8, usize, *mut Bytes) -> c_int;
        fn shim_seek(Handle, *const u8, usize, *mut Bytes, *mut Bytes) -> c_int;
        fn shim_start(Handle, c_int, *mut Bytes, *mut Bytes) -> c_int;
        fn shim_step(Handle, *mut Bytes, *mut Bytes) -> c_int;
        fn shim_leave(Handle) -> c_int;
        fn shim_reader_free(Handle);
    }
}

const NONE: c_int = -1;

/// How a store is configured.
pub struct Setup {
    /// For the library, in its own words; empty where it has none.
    pub connection: String,
    /// The same for the table.
    pub table: String,
    /// Bytes of a page, or 0 for the library's choice.
    pub page_size: u32,
    /// Whether ascending writers of an empty store take the bulk path.
    pub bulk: bool,
    /// What a write survives.
    pub class: Class,
    /// Whether values are compressed.
    pub compresses: bool,
    /// All of it for people.
    pub words: String,
}

/// A library behind a shim, and how it is set up.
pub trait Kind: 'static {
    /// Its shim.
    const SHIM: Shim;
    /// Where its functions are kept.
    fn loaded() -> &'static Loaded<Api>;
    /// What each method calls of the library, through the shim.
    const CALLS: &'static [(Call, &'static str)];
    /// Whether its stores are put in order (`shim_compact`) when they will only be read.
    const IS_PUT_IN_ORDER: bool;
    /// The settings for a configuration.
    fn setup(config: &Config) -> Result<Setup>;
}

fn api<K: Kind>() -> Result<&'static Api> {
    K::loaded().get_by(K::SHIM.takes_built(), || K::SHIM.load().and_then(Api::load))
}

impl Api {
    #[inline]
    fn check(&self, code: c_int, call: &str) -> Result<()> {
        if code == 0 { Ok(()) } else { Err(self.failure(code, call)) }
    }

    /// Whether a call found an entry.
    #[inline]
    fn found(&self, code: c_int, call: &str) -> Result<bool> {
        match code {
            0 => Ok(true),
            NONE => Ok(false),
            _ => Err(self.failure(code, call)),
        }
    }

    #[cold]
    fn failure(&self, code: c_int, call: &str) -> anyhow::Error {
        // SAFETY: the library has a string for every code.
        let text = unsafe { CStr::from_ptr((self.shim_error)(code)) };
        anyhow::anyhow!("{call}: {} ({code})", text.to_string_lossy())
    }
}

/// A store of the library `K`.
pub struct Shimmed<K: Kind> {
    api: &'static Api,
    store: Store,
    setup: Setup,
    dir: PathBuf,
    config: Config,
    _kind: PhantomData<fn() -> K>,
}

// SAFETY: a shim's store may be shared by threads (shim.h).
unsafe impl<K: Kind> std::marker::Sync for Shimmed<K> {}
// SAFETY: nothing in it belongs to a thread.
unsafe impl<K: Kind> Send for Shimmed<K> {}

impl<K: Kind> Shimmed<K> {
    fn shut(&mut self) -> Result<()> {
        let store = std::mem::replace(&mut self.store, ptr::null_mut());
        if store.is_null() {
            return Ok(());
        }
        // SAFETY: handles borrow the store, so none is left; it is closed once.
        self.api.check(unsafe { (self.api.shim_close)(store) }, "close")
    }
}

impl<K: Kind> Drop for Shimmed<K> {
    fn drop(&mut self) {
        // Whoever wants to know calls `close`.
        let _ = self.shut();
    }
}

/// What a shim is told, for a call.
fn with_options<T>(
    setup: &Setup,
    dir: &Path,
    config: &Config,
    call: impl FnOnce(&Options) -> Result<T>,
) -> Result<T> {
    let dir = CString::new(dir.as_os_str().as_encoded_bytes()).context("path")?;
    let connection = CString::new(setup.connection.as_str()).context("configuration")?;
    let table = CString::new(setup.table.as_str()).context("configuration")?;
    call(&Options {
        dir: dir.as_ptr(),
        memory: config.memory,
        page_size: setup.page_size,
        synced: (config.sync == Sync::Synced) as c_int,
        bulk: setup.bulk as c_int,
        shared: config.shared as c_int,
        connection: connection.as_ptr(),
        table: table.as_ptr(),
    })
}

impl<K: Kind> Engine for Shimmed<K> {
    type Writer<'a> = ShimWriter<'a>;
    type Reader<'a> = ShimReader<'a>;

    fn version() -> Result<String> {
        let api = api::<K>()?;
        // SAFETY: a function without arguments; the string is static.
        let version = unsafe { (api.shim_version)() };
        if version.is_null() {
            bail!(
                "another version was installed since its shim was compiled: delete {}",
                super::setup_dir().display()
            );
        }
        // SAFETY: as above.
        Ok(K::SHIM.told(&unsafe { CStr::from_ptr(version) }.to_string_lossy()))
    }

    fn calls() -> &'static [(Call, &'static str)] {
        K::CALLS
    }

    fn open(dir: &Path, config: &Config) -> Result<Self> {
        Self::version()?;
        let api = api::<K>()?;
        std::fs::create_dir_all(dir)?;
        let setup = K::setup(config)?;
        let mut store = ptr::null_mut();
        with_options(&setup, dir, config, |options| {
            // SAFETY: the options are of this call.
            api.check(unsafe { (api.shim_open)(options, &mut store) }, "open")
        })?;
        let (dir, config) = (dir.to_path_buf(), config.clone());
        Ok(Shimmed { api, store, setup, dir, config, _kind: PhantomData })
    }

    fn set_memory(&self, bytes: u64) -> Result<bool> {
        let config = Config { memory: bytes, ..self.config.clone() };
        with_options(&K::setup(&config)?, &self.dir, &config, |options| {
            // SAFETY: an open store without handles, as the caller promises; the options as above.
            self.api.found(unsafe { (self.api.shim_reopen)(self.store, options) }, "open again")
        })
    }

    fn settings(&self) -> String {
        self.setup.words.clone()
    }

    fn class(&self) -> Class {
        self.setup.class
    }

    fn compresses(&self) -> bool {
        self.setup.compresses
    }

    fn loads_in_bulk(&self) -> bool {
        self.setup.bulk
    }

    fn writer(&self, hint: Hint) -> Result<ShimWriter<'_>> {
        let mut handle = ptr::null_mut();
        let ascending = (hint == Hint::Ascending) as c_int;
        // SAFETY: an open store; freed by the writer's `drop`.
        let code = unsafe { (self.api.shim_writer_new)(self.store, ascending, &mut handle) };
        self.api.check(code, "writer")?;
        Ok(ShimWriter { api: self.api, handle, _store: PhantomData })
    }

    fn reader(&self, _access: Access) -> Result<ShimReader<'_>> {
        let mut handle = ptr::null_mut();
        // SAFETY: an open store; freed by the reader's `drop`.
        let code = unsafe { (self.api.shim_reader_new)(self.store, &mut handle) };
        self.api.check(code, "reader")?;
        Ok(ShimReader { api: self.api, handle, _store: PhantomData })
    }

    fn settle(&self) -> Result<()> {
        // SAFETY: an open store.
        self.api.check(unsafe { (self.api.shim_settle)(self.store) }, "settle")
    }

    fn put_in_order(dir: &Path, config: &Config) -> Result<()> {
        if config.as_it_comes(K::SHIM.engine())? || !K::IS_PUT_IN_ORDER {
            return Ok(());
        }
        let store = Self::open(dir, config)?;
        // SAFETY: an open store without handles.
        store.api.check(unsafe { (store.api.shim_compact)(store.store) }, "compact")?;
        store.close()
    }

    fn close(mut self) -> Result<()> {
        self.shut()
    }
}

/// Writes.
pub struct ShimWriter<'a> {
    api: &'static Api,
    handle: Handle,
    _store: PhantomData<&'a ()>,
}

impl Writer for ShimWriter<'_> {
    #[inline]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let (k, v) = (key.as_ptr(), value.as_ptr());
        // SAFETY: both are copied before the call returns.
        let code = unsafe { (self.api.shim_put)(self.handle, k, key.len(), v, value.len()) };
        self.api.check(code, "put")
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        // SAFETY: the key is only read.
        let code = unsafe { (self.api.shim_delete)(self.handle, key.as_ptr(), key.len()) };
        self.api.check(code, "delete")
    }

    #[inline]
    fn batch_put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let (k, v) = (key.as_ptr(), value.as_ptr());
        // SAFETY: both are copied before the call returns.
        let code = unsafe { (self.api.shim_batch_put)(self.handle, k, key.len(), v, value.len()) };
        self.api.check(code, "batch")
    }

    fn batch_commit(&mut self) -> Result<()> {
        // SAFETY: a writer of our own.
        self.api.check(unsafe { (self.api.shim_batch_commit)(self.handle) }, "commit")
    }
}

impl Drop for ShimWriter<'_> {
    fn drop(&mut self) {
        // SAFETY: made by `writer`, freed once, before the store.
        unsafe { (self.api.shim_writer_free)(self.handle) }
    }
}

/// Reads.
pub struct ShimReader<'a> {
    api: &'static Api,
    handle: Handle,
    _store: PhantomData<&'a ()>,
}

impl ShimReader<'_> {
    /// Hands over up to `count` entries, the first of which `code` tells about; then lets go of
    /// the place, so that no writer waits for it.
    #[inline]
    fn walk(
        &self,
        code: c_int,
        (mut key, mut value): (Bytes, Bytes),
        count: u64,
        mut see: impl FnMut(&[u8], &[u8]),
    ) -> Result<u64> {
        let mut seen = 0;
        let mut there = self.api.found(code, "seek");
        while let Ok(true) = there {
            // SAFETY: the shim has just filled both in.
            unsafe { see(key.bytes(), value.bytes()) };
            seen += 1;
            if seen == count {
                break;
            }
            // SAFETY: a reader of our own that stands on an entry.
            let code = unsafe { (self.api.shim_step)(self.handle, &mut key, &mut value) };
            there = self.api.found(code, "step");
        }
        // SAFETY: a reader of our own.
        let left = unsafe { (self.api.shim_leave)(self.handle) };
        there?;
        self.api.check(left, "leave")?;
        Ok(seen)
    }
}

impl Reader for ShimReader<'_> {
    #[inline]
    fn get<R>(&mut self, key: &[u8], see: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        let mut value = Bytes::NONE;
        // SAFETY: the key is only read; the value stays until the reader's next call.
        unsafe {
            let code = (self.api.shim_get)(self.handle, key.as_ptr(), key.len(), &mut value);
            Ok(self.api.found(code, "get")?.then(|| see(value.bytes())))
        }
    }

    #[inline]
    fn seek(&mut self, key: &[u8], count: u64, see: impl FnMut(&[u8], &[u8])) -> Result<u64> {
        if count == 0 {
            return Ok(0);
        }
        let (mut k, mut v) = (Bytes::NONE, Bytes::NONE);
        // SAFETY: the key is only read.
        let code =
            unsafe { (self.api.shim_seek)(self.handle, key.as_ptr(), key.len(), &mut k, &mut v) };
        self.walk(code, (k, v), count, see)
    }

    fn scan(&mut self, direction: Direction, see: impl FnMut(&[u8], &[u8])) -> Result<u64> {
        let backwards = (direction == Direction::Reverse) as c_int;
        let (mut k, mut v) = (Bytes::NONE, Bytes::NONE);
        // SAFETY: a reader of our own.
        let code = unsafe { (self.api.shim_start)(self.handle, backwards, &mut k, &mut v) };
        self.walk(code, (k, v), u64::MAX, see)
    }
}

impl Drop for ShimReader<'_> {
    fn drop(&mut self) {
        // SAFETY: made by `reader`, freed once, before the store.
        unsafe { (self.api.shim_reader_free)(self.handle) }
    }
}

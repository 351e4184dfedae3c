//! libmdbx, through its C interface as its manual (`mdbx.h`) calls it fastest: a writable mapping,
//! appends for ascending keys, one read transaction and cursor per reader.
//!
//! Buffered: `MDBX_WRITEMAP | MDBX_UTTERLY_NOSYNC`: a commit is a store to the mapping and survives
//! a killed process; the counterpart of LMDB's `MDB_NOSYNC`. Synced: `MDBX_SYNC_DURABLE`.

use anyhow::{Context, Result, bail};
use esker_bench::engine::{Access, Class, Config, Direction, Engine, Hint, Reader, Sync, Writer};
use signet_mdbx_sys as mdbx;
use std::ffi::{CStr, CString, c_int};
use std::path::Path;
use std::ptr;

type Txn = *mut mdbx::MDBX_txn;
type Cursor = *mut mdbx::MDBX_cursor;

/// Reads between two renewals beside a writer: a third of a millisecond, so that pages are reused.
const RENEW_EVERY: u32 = 256;

fn check(code: c_int, call: &str) -> Result<()> {
    if code == mdbx::MDBX_SUCCESS {
        return Ok(());
    }
    // SAFETY: it gives a string, which only another error on this thread replaces.
    let text = unsafe { CStr::from_ptr(mdbx::mdbx_strerror(code)) };
    bail!("{call}: {}", text.to_string_lossy())
}

fn val(bytes: &[u8]) -> mdbx::MDBX_val {
    mdbx::MDBX_val { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() }
}

fn empty() -> mdbx::MDBX_val {
    mdbx::MDBX_val { iov_base: ptr::null_mut(), iov_len: 0 }
}

/// # Safety
/// It was filled in by libmdbx and its transaction is still open.
unsafe fn bytes<'a>(val: &mdbx::MDBX_val) -> &'a [u8] {
    if val.iov_len == 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(val.iov_base.cast(), val.iov_len) }
}

/// An environment with its unnamed database.
pub struct Mdbx {
    env: *mut mdbx::MDBX_env,
    dbi: mdbx::MDBX_dbi,
    config: Config,
    map_bytes: usize,
}

// SAFETY: an environment is made to be shared by threads; write transactions stay with the thread
// that began them, and read-only ones, with MDBX_NOTLS, are used by one thread at a time.
unsafe impl std::marker::Sync for Mdbx {}
// SAFETY: nothing in an environment belongs to the thread that opened it.
unsafe impl Send for Mdbx {}

impl Mdbx {
    fn flags(&self) -> mdbx::MDBX_env_flags {
        let sync = match self.config.sync {
            Sync::Buffered => mdbx::MDBX_WRITEMAP | mdbx::MDBX_UTTERLY_NOSYNC,
            Sync::Synced => mdbx::MDBX_SYNC_DURABLE,
        };
        let ahead = if self.config.larger_than_memory { mdbx::MDBX_NORDAHEAD } else { 0 };
        sync | ahead | mdbx::MDBX_NOTLS | mdbx::MDBX_NOMEMINIT
    }

    fn begin(&self, flags: mdbx::MDBX_txn_flags) -> Result<Txn> {
        let mut txn = ptr::null_mut();
        // SAFETY: the environment is open.
        let code = unsafe {
            mdbx::mdbx_txn_begin_ex(self.env, ptr::null_mut(), flags, &mut txn, ptr::null_mut())
        };
        check(code, "mdbx_txn_begin")?;
        Ok(txn)
    }

    fn commit(&self, txn: Txn) -> Result<()> {
        // SAFETY: `txn` is open, and freed by this whatever it returns.
        check(unsafe { mdbx::mdbx_txn_commit_ex(txn, ptr::null_mut()) }, "mdbx_txn_commit")
    }

    /// Ends a transaction that failed with `code` in `call`.
    fn abort(&self, txn: Txn, code: c_int, call: &str) -> Result<()> {
        // SAFETY: `txn` is open, and not used again.
        unsafe { mdbx::mdbx_txn_abort(txn) };
        check(code, call)
    }

    fn cursor(&self, txn: Txn) -> Result<Cursor> {
        let mut cursor = ptr::null_mut();
        // SAFETY: the transaction is open and the database handle belongs to the environment.
        let code = unsafe { mdbx::mdbx_cursor_open(txn, self.dbi, &mut cursor) };
        check(code, "mdbx_cursor_open")?;
        Ok(cursor)
    }
}

impl Drop for Mdbx {
    fn drop(&mut self) {
        // SAFETY: handles borrow the environment, so none is left.
        unsafe { mdbx::mdbx_env_close_ex(self.env, false) };
    }
}

impl Engine for Mdbx {
    type Writer<'a> = MdbxWriter<'a>;
    type Reader<'a> = MdbxReader<'a>;

    fn version() -> Result<String> {
        // SAFETY: a constant of the library.
        let version = unsafe { &mdbx::mdbx_version };
        Ok(format!("{}.{}.{}", version.major, version.minor, version.patch))
    }

    fn open(dir: &Path, config: &Config) -> Result<Self> {
        std::fs::create_dir_all(dir)?;
        let path = CString::new(dir.as_os_str().as_encoded_bytes()).context("path")?;
        // Address space, not disk: the file grows by steps within it.
        let map_bytes = (config.expected_bytes as usize * 4).max(1 << 30).next_multiple_of(1 << 20);
        let mut env = ptr::null_mut();
        // SAFETY: the calls in the order that mdbx.h asks for, on an environment of our own.
        unsafe {
            check(mdbx::mdbx_env_create(&mut env), "mdbx_env_create")?;
            let mut store = Mdbx { env, dbi: 0, config: config.clone(), map_bytes };
            let (upper, step) = (map_bytes as isize, 64 << 20);
            let code = mdbx::mdbx_env_set_geometry(env, -1, -1, upper, step, -1, -1);
            check(code, "mdbx_env_set_geometry")?;
            let code = mdbx::mdbx_env_set_option(env, mdbx::MDBX_opt_max_readers, 256);
            check(code, "mdbx_env_set_option")?;
            let code = mdbx::mdbx_env_open(env, path.as_ptr(), store.flags(), 0o644);
            check(code, "mdbx_env_open").with_context(|| dir.display().to_string())?;
            let txn = store.begin(0)?;
            let code =
                mdbx::mdbx_dbi_open(txn, ptr::null(), mdbx::MDBX_DB_DEFAULTS, &mut store.dbi);
            if code != mdbx::MDBX_SUCCESS {
                store.abort(txn, code, "mdbx_dbi_open")?;
            }
            store.commit(txn)?;
            Ok(store)
        }
    }

    fn settings(&self) -> String {
        let sync = match self.config.sync {
            Sync::Buffered => "WRITEMAP|UTTERLY_NOSYNC",
            Sync::Synced => "SYNC_DURABLE",
        };
        let ahead = if self.config.larger_than_memory { "|NORDAHEAD" } else { "" };
        format!(
            "{sync}{ahead}|NOMEMINIT|NOTLS, map up to {} MiB, APPEND for ascending keys, a \
             transaction per put or batch, a read transaction per reader, renewed every \
             {RENEW_EVERY} reads beside a writer",
            self.map_bytes >> 20
        )
    }

    fn class(&self) -> Class {
        if self.config.sync == Sync::Synced { Class::F } else { Class::K }
    }

    fn writer(&self, hint: Hint) -> Result<MdbxWriter<'_>> {
        let put_flags = if hint == Hint::Ascending { mdbx::MDBX_APPEND } else { mdbx::MDBX_UPSERT };
        Ok(MdbxWriter { store: self, put_flags, batch: None })
    }

    fn reader(&self, access: Access) -> Result<MdbxReader<'_>> {
        let txn = self.begin(mdbx::MDBX_TXN_RDONLY)?;
        let (cursor, reads, is_reset) = (ptr::null_mut(), 0, false);
        let mut reader = MdbxReader { store: self, txn, cursor, access, reads, is_reset };
        reader.cursor = self.cursor(txn)?;
        Ok(reader)
    }
}

/// Writes; holds the transaction of a batch under way.
pub struct MdbxWriter<'a> {
    store: &'a Mdbx,
    put_flags: mdbx::MDBX_put_flags,
    batch: Option<(Txn, Cursor)>,
}

impl Writer for MdbxWriter<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let store = self.store;
        let txn = store.begin(0)?;
        let (k, mut v) = (val(key), val(value));
        // SAFETY: an open write transaction; libmdbx copies both before it returns.
        let code = unsafe { mdbx::mdbx_put(txn, store.dbi, &k, &mut v, self.put_flags) };
        if code != mdbx::MDBX_SUCCESS {
            return store.abort(txn, code, "mdbx_put");
        }
        store.commit(txn)
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        let store = self.store;
        let txn = store.begin(0)?;
        // SAFETY: an open write transaction.
        match unsafe { mdbx::mdbx_del(txn, store.dbi, &val(key), ptr::null()) } {
            mdbx::MDBX_SUCCESS => store.commit(txn),
            mdbx::MDBX_NOTFOUND => store.abort(txn, mdbx::MDBX_SUCCESS, "mdbx_del"),
            code => store.abort(txn, code, "mdbx_del"),
        }
    }

    fn batch_put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let (_, cursor) = match self.batch {
            Some(batch) => batch,
            None => {
                let txn = self.store.begin(0)?;
                *self.batch.insert((txn, self.store.cursor(txn)?))
            }
        };
        let (k, mut v) = (val(key), val(value));
        // SAFETY: the cursor of the open transaction; libmdbx copies both before it returns.
        let code = unsafe { mdbx::mdbx_cursor_put(cursor, &k, &mut v, self.put_flags) };
        check(code, "mdbx_cursor_put")
    }

    fn batch_commit(&mut self) -> Result<()> {
        let Some((txn, cursor)) = self.batch.take() else { return Ok(()) };
        // SAFETY: the cursor is open and its transaction too; a cursor goes first.
        unsafe { mdbx::mdbx_cursor_close(cursor) };
        self.store.commit(txn)
    }
}

impl Drop for MdbxWriter<'_> {
    fn drop(&mut self) {
        if let Some((txn, cursor)) = self.batch.take() {
            // SAFETY: both open; an open write transaction would block every later writer.
            unsafe {
                mdbx::mdbx_cursor_close(cursor);
                mdbx::mdbx_txn_abort(txn);
            }
        }
    }
}

/// Reads in one transaction, with one cursor.
pub struct MdbxReader<'a> {
    store: &'a Mdbx,
    txn: Txn,
    cursor: Cursor,
    access: Access,
    reads: u32,
    /// Whether the transaction was reset, and a read has to renew it.
    is_reset: bool,
}

impl MdbxReader<'_> {
    #[inline]
    fn renew_if_due(&mut self) -> Result<()> {
        if self.is_reset {
            return self.renew();
        }
        // Nothing is merged behind a B-tree's readers: only writers are waited for.
        if self.access != Access::BesideWriter {
            return Ok(());
        }
        self.reads += 1;
        if self.reads < RENEW_EVERY { Ok(()) } else { self.renew() }
    }

    /// Moves the cursor; the entry there, `None` past the end.
    #[inline]
    fn step<'b>(
        &self,
        op: mdbx::MDBX_cursor_op,
        key: mdbx::MDBX_val,
    ) -> Result<Option<(&'b [u8], &'b [u8])>> {
        let (mut k, mut v) = (key, empty());
        // SAFETY: the cursor's transaction is open; libmdbx fills in both or returns a code.
        unsafe {
            match mdbx::mdbx_cursor_get(self.cursor, &mut k, &mut v, op) {
                mdbx::MDBX_SUCCESS => Ok(Some((bytes(&k), bytes(&v)))),
                mdbx::MDBX_NOTFOUND => Ok(None),
                code => check(code, "mdbx_cursor_get").map(|()| None),
            }
        }
    }
}

impl Reader for MdbxReader<'_> {
    #[inline]
    fn get<R>(&mut self, key: &[u8], see: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        self.renew_if_due()?;
        let (k, mut v) = (val(key), empty());
        // SAFETY: the transaction is open, and stays so while `see` looks at the bytes.
        unsafe {
            match mdbx::mdbx_get(self.txn, self.store.dbi, &k, &mut v) {
                mdbx::MDBX_SUCCESS => Ok(Some(see(bytes(&v)))),
                mdbx::MDBX_NOTFOUND => Ok(None),
                code => check(code, "mdbx_get").map(|()| None),
            }
        }
    }

    #[inline]
    fn seek(&mut self, key: &[u8], count: u64, mut see: impl FnMut(&[u8], &[u8])) -> Result<u64> {
        self.renew_if_due()?;
        let mut seen = 0;
        let mut entry = self.step(mdbx::MDBX_SET_RANGE, val(key))?;
        while let Some((k, v)) = entry {
            see(k, v);
            seen += 1;
            if seen == count {
                break;
            }
            entry = self.step(mdbx::MDBX_NEXT, empty())?;
        }
        Ok(seen)
    }

    fn scan(&mut self, direction: Direction, mut see: impl FnMut(&[u8], &[u8])) -> Result<u64> {
        let (start, on) = match direction {
            Direction::Forward => (mdbx::MDBX_FIRST, mdbx::MDBX_NEXT),
            Direction::Reverse => (mdbx::MDBX_LAST, mdbx::MDBX_PREV),
        };
        if self.is_reset {
            self.renew()?;
        }
        let mut seen = 0;
        let mut entry = self.step(start, empty())?;
        while let Some((k, v)) = entry {
            see(k, v);
            seen += 1;
            entry = self.step(on, empty())?;
        }
        Ok(seen)
    }

    fn renew(&mut self) -> Result<()> {
        self.yield_view()?;
        self.reads = 0;
        // SAFETY: the transaction is reset; between the calls nothing reads from it, and the cursor
        // is bound to it anew before it is used.
        unsafe {
            check(mdbx::mdbx_txn_renew(self.txn), "mdbx_txn_renew")?;
            check(mdbx::mdbx_cursor_renew(self.txn, self.cursor), "mdbx_cursor_renew")?;
        }
        self.is_reset = false;
        Ok(())
    }

    fn yield_view(&mut self) -> Result<()> {
        if !self.is_reset {
            // SAFETY: the transaction is open, and renewed before anything reads from it.
            check(unsafe { mdbx::mdbx_txn_reset(self.txn) }, "mdbx_txn_reset")?;
            self.is_reset = true;
        }
        Ok(())
    }
}

impl Drop for MdbxReader<'_> {
    fn drop(&mut self) {
        // SAFETY: both were opened by `reader` and are used by nobody else.
        unsafe {
            if !self.cursor.is_null() {
                mdbx::mdbx_cursor_close(self.cursor);
            }
            mdbx::mdbx_txn_abort(self.txn);
        }
    }
}

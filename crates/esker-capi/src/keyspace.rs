//! Keyspaces, as they are now or as a snapshot sees them.

use std::ffi::c_char;

use esker::{Cursor, Db, Keyspace, KeyspaceOptions, Slice, View};

use crate::db::esker_db;
use crate::error::{Failure, esker_code, esker_error};
use crate::ffi::{self, Kind, call, place, shared, text};
use crate::options::esker_keyspace_options;
use crate::snapshot::esker_snapshot;

use esker_code::*;

/// A keyspace of an open store: reads and writes it, or reads it as a snapshot sees it. Any number of
/// threads use it.
pub struct esker_keyspace(());

impl Kind for esker_keyspace {
    type State = KeyspaceState;
    const MARK: u64 = u64::from_ne_bytes(*b"esker-ks");
    const NAME: &'static str = "esker_keyspace";
    const CLOSES_STORE: bool = true;
}

/// What a handle on a keyspace holds.
pub(crate) struct KeyspaceState {
    pub db: Db,
    pub keyspace: Keyspace,
    /// As of when it is read, if not now.
    view: Option<View>,
}

impl KeyspaceState {
    fn new(db: &Db, keyspace: Keyspace) -> KeyspaceState {
        KeyspaceState { db: db.clone(), keyspace, view: None }
    }

    /// The keyspace, to write to it.
    #[inline]
    pub(crate) fn writable(&self) -> Result<&Keyspace, Failure> {
        match self.view {
            None => Ok(&self.keyspace),
            Some(_) => Err(Failure::Caller(
                ESKER_READ_ONLY,
                "the keyspace is read as a snapshot sees it; write through a handle that esker_keyspace_open gives"
                    .to_string(),
            )),
        }
    }

    #[inline]
    pub(crate) fn get(&self, key: &[u8]) -> esker::Result<Option<Slice>> {
        match &self.view {
            None => self.keyspace.get(key),
            Some(view) => view.get(key),
        }
    }

    pub(crate) fn multi_get(&self, keys: &[&[u8]]) -> esker::Result<Vec<Option<Slice>>> {
        match &self.view {
            None => self.keyspace.multi_get(keys),
            Some(view) => view.multi_get(keys),
        }
    }

    pub(crate) fn contains_key(&self, key: &[u8]) -> esker::Result<bool> {
        match &self.view {
            None => self.keyspace.contains_key(key),
            Some(view) => view.contains_key(key),
        }
    }

    pub(crate) fn cursor(&self, keys_only: bool) -> Cursor {
        match (&self.view, keys_only) {
            (None, false) => self.keyspace.cursor(),
            (None, true) => self.keyspace.cursor_keys_only(),
            (Some(view), false) => view.cursor(),
            (Some(view), true) => view.cursor_keys_only(),
        }
    }

    /// Whether the store is open and the keyspace is there: what a read of no key says.
    pub(crate) fn check_open(&self) -> esker::Result<()> {
        self.multi_get(&[]).map(drop)
    }
}

/// Opens the keyspace called `name`; NULL is the default one, which every store has. Errors:
/// ESKER_KEYSPACE when there is none of that name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_keyspace_open(
    db: *const esker_db,
    name: *const c_char,
    keyspace: *mut *mut esker_keyspace,
    error: *mut *mut esker_error,
) -> esker_code {
    // SAFETY: the caller keeps the rules of the header.
    unsafe {
        call(error, || {
            let at = place(keyspace, "keyspace")?;
            at.write(std::ptr::null_mut());
            let db = shared(db)?;
            let keyspace = match name.is_null() {
                true => db.default_keyspace().clone(),
                false => db.keyspace(text(name, "name")?)?,
            };
            at.write(ffi::hand_out(KeyspaceState::new(db, keyspace)));
            Ok(ESKER_OK)
        })
    }
}

/// Makes a keyspace, durable on return, and opens it. `name` has 1 to 255 bytes of UTF-8; `options`
/// NULL: the defaults. `keyspace` NULL: it is made only. Errors: ESKER_KEYSPACE when one of that name
/// is there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_keyspace_create(
    db: *const esker_db,
    name: *const c_char,
    options: *const esker_keyspace_options,
    keyspace: *mut *mut esker_keyspace,
    error: *mut *mut esker_error,
) -> esker_code {
    // SAFETY: the caller keeps the rules of the header.
    unsafe {
        call(error, || {
            ffi::set(keyspace, std::ptr::null_mut());
            let (db, name) = (shared(db)?, text(name, "name")?);
            let options = match options.is_null() {
                true => KeyspaceOptions::new(),
                false => shared(options)?.clone(),
            };
            let made = db.create_keyspace(name, options)?;
            if !keyspace.is_null() {
                keyspace.write(ffi::hand_out(KeyspaceState::new(db, made)));
            }
            Ok(ESKER_OK)
        })
    }
}

/// Drops a keyspace and all its data, durable on return. Calls through its handles give ESKER_KEYSPACE
/// from then on. The default keyspace stays (ESKER_INVALID_ARGUMENT).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_keyspace_drop(
    db: *const esker_db,
    name: *const c_char,
    error: *mut *mut esker_error,
) -> esker_code {
    // SAFETY: the caller keeps the rules of the header.
    unsafe {
        call(error, || {
            shared(db)?.drop_keyspace(text(name, "name")?)?;
            Ok(ESKER_OK)
        })
    }
}

/// Opens the keyspace of a handle as a snapshot sees it, for reading; writes through it give
/// ESKER_READ_ONLY. The handle keeps the snapshot: both that and `keyspace` may be closed first.
/// Errors: ESKER_INVALID_ARGUMENT when the snapshot is of another store, ESKER_CLOSED, ESKER_KEYSPACE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_keyspace_at(
    keyspace: *const esker_keyspace,
    snapshot: *const esker_snapshot,
    view: *mut *mut esker_keyspace,
    error: *mut *mut esker_error,
) -> esker_code {
    // SAFETY: the caller keeps the rules of the header.
    unsafe {
        call(error, || {
            let at = place(view, "view")?;
            at.write(std::ptr::null_mut());
            let of = shared(keyspace)?;
            let view = Some(of.keyspace.at(shared(snapshot)?));
            let state = KeyspaceState { view, ..KeyspaceState::new(&of.db, of.keyspace.clone()) };
            // Says too whether the snapshot is of this store.
            state.check_open()?;
            at.write(ffi::hand_out(state));
            Ok(ESKER_OK)
        })
    }
}

/// Closes a handle on a keyspace. When it is the last handle of its store that is open, the store is
/// closed with it. Called from a comparator it does nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_keyspace_close(keyspace: *mut *mut esker_keyspace) {
    // SAFETY: the caller keeps the rules of the header.
    unsafe { ffi::close(keyspace) }
}

/// About how many bytes of files the keys from `start` on and below `end` take, what is not flushed yet included. NULL is no
/// bound.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_approximate_size(
    keyspace: *const esker_keyspace,
    start: *const std::ffi::c_void,
    start_len: usize,
    end: *const std::ffi::c_void,
    end_len: usize,
    bytes: *mut u64,
    error: *mut *mut esker_error,
) -> esker_code {
    // SAFETY: the caller keeps the rules of the header.
    unsafe {
        call(error, || {
            let at = place(bytes, "bytes")?;
            at.write(0);
            let range = range(start, start_len, end, end_len)?;
            at.write(shared(keyspace)?.keyspace.approximate_size::<&[u8]>(range)?);
            Ok(ESKER_OK)
        })
    }
}

/// Rewrites the tables that hold keys from `start` on and below `end` into one run: drops what is
/// deleted or overwritten there, and packs values as the keyspace does now. NULL is no bound. Returns
/// when done.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_compact_range(
    keyspace: *const esker_keyspace,
    start: *const std::ffi::c_void,
    start_len: usize,
    end: *const std::ffi::c_void,
    end_len: usize,
    error: *mut *mut esker_error,
) -> esker_code {
    // SAFETY: the caller keeps the rules of the header.
    unsafe {
        call(error, || {
            let range = range(start, start_len, end, end_len)?;
            shared(keyspace)?.keyspace.compact_range::<&[u8]>(range)?;
            Ok(ESKER_OK)
        })
    }
}

type Range<'a> = (std::ops::Bound<&'a [u8]>, std::ops::Bound<&'a [u8]>);

/// A range whose bounds may be NULL.
///
/// # Safety
/// As for [`ffi::bytes`].
unsafe fn range<'a>(
    start: *const std::ffi::c_void,
    start_len: usize,
    end: *const std::ffi::c_void,
    end_len: usize,
) -> Result<Range<'a>, Failure> {
    use std::ops::Bound::{Excluded, Included, Unbounded};
    let open = |at: *const std::ffi::c_void, len| at.is_null() && len == 0;
    // SAFETY: the caller's.
    unsafe {
        let start = match open(start, start_len) {
            true => Unbounded,
            false => Included(ffi::bytes(start, start_len, "start")?),
        };
        let end = match open(end, end_len) {
            true => Unbounded,
            false => Excluded(ffi::bytes(end, end_len, "end")?),
        };
        Ok((start, end))
    }
}

//! Stores: opening, closing, and what concerns one as a whole.

use std::ffi::c_char;

use esker::{Db, Options};

use crate::error::{esker_code, esker_error};
use crate::ffi::{self, Kind, call, path, place, set, shared, text};
use crate::options::esker_options;
use crate::text::{self, esker_string};

use esker_code::*;

/// An open store. Any number of threads use it.
pub struct esker_db(());

impl Kind for esker_db {
    type State = Db;
    const MARK: u64 = u64::from_ne_bytes(*b"esker-db");
    const NAME: &'static str = "esker_db";
    const CLOSES_STORE: bool = true;
}

/// Opens the store in the directory `path`, and makes it when it is missing. `options` NULL: the
/// defaults.
///
/// Errors: ESKER_NOT_A_STORE, ESKER_FOREIGN_STORE, ESKER_STORE_EXISTS, ESKER_LOCKED, ESKER_UNSUPPORTED,
/// ESKER_COMPARATOR, ESKER_CORRUPTION, ESKER_IO. *db is then NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_db_open(
    path: *const c_char,
    options: *const esker_options,
    db: *mut *mut esker_db,
    error: *mut *mut esker_error,
) -> esker_code {
    // SAFETY: the caller keeps the rules of the header.
    unsafe {
        call(error, || {
            let db = place(db, "db")?;
            db.write(std::ptr::null_mut());
            let path = ffi::path(path)?;
            let opened = match options.is_null() {
                true => Options::new().open(path)?,
                false => shared(options)?.open(path)?,
            };
            db.write(ffi::hand_out(opened));
            Ok(ESKER_OK)
        })
    }
}

/// Flushes and closes the store, also for its other handles: they give ESKER_CLOSED from then on and
/// have to be closed all the same. Values and open cursors keep what they point to, and the directory's
/// lock with it.
///
/// On an error too the store is closed and *db NULL; what was written is in the log, and is found at
/// the next open. Only when a comparator calls this (ESKER_COMPARATOR), or *db is no handle of a store
/// (ESKER_INVALID_ARGUMENT), everything stays as it is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_db_close(
    db: *mut *mut esker_db,
    error: *mut *mut esker_error,
) -> esker_code {
    // SAFETY: the caller keeps the rules of the header.
    unsafe {
        call(error, || {
            if let Some(db) = ffi::take_back(db)? {
                db.close()?;
            }
            Ok(ESKER_OK)
        })
    }
}

/// Calls a method of a store that only says whether it worked.
///
/// # Safety
/// As for any call: `db` is NULL or open, `error` is NULL or can be written.
unsafe fn plainly(
    db: *const esker_db,
    error: *mut *mut esker_error,
    method: fn(&Db) -> esker::Result<()>,
) -> esker_code {
    // SAFETY: the caller's.
    unsafe {
        call(error, || {
            method(shared(db)?)?;
            Ok(ESKER_OK)
        })
    }
}

/// Writes everything into tables. Returns when that is done, and durable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_db_flush(
    db: *const esker_db,
    error: *mut *mut esker_error,
) -> esker_code {
    // SAFETY: the caller keeps the rules of the header.
    unsafe { plainly(db, error, Db::flush) }
}

/// Makes everything written so far durable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_db_sync(
    db: *const esker_db,
    error: *mut *mut esker_error,
) -> esker_code {
    // SAFETY: the caller keeps the rules of the header.
    unsafe { plainly(db, error, Db::sync) }
}

/// Flushes, and merges what is in tables then until nothing is left to do about it. What is written meanwhile is not waited for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_db_wait_for_compactions(
    db: *const esker_db,
    error: *mut *mut esker_error,
) -> esker_code {
    // SAFETY: the caller keeps the rules of the header.
    unsafe { plainly(db, error, Db::wait_for_compactions) }
}

/// Goes on after an error that stopped writes (ESKER_HALTED), once its cause is removed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_db_resume(
    db: *const esker_db,
    error: *mut *mut esker_error,
) -> esker_code {
    // SAFETY: the caller keeps the rules of the header.
    unsafe { plainly(db, error, Db::resume) }
}

/// Makes a second store in the directory `dir`, which must not exist, that holds what this one holds
/// now. Files that never change are shared (hard links) where the file system can.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_db_checkpoint(
    db: *const esker_db,
    dir: *const c_char,
    error: *mut *mut esker_error,
) -> esker_code {
    // SAFETY: the caller keeps the rules of the header.
    unsafe {
        call(error, || {
            shared(db)?.checkpoint(path(dir)?)?;
            Ok(ESKER_OK)
        })
    }
}

/// A property as text: `esker.stats`, `esker.levels`, `esker.sequence`, `esker.disk-bytes`,
/// `esker.memory-used`, `esker.write-amplification`, `esker.halted`. ESKER_NOT_FOUND when there is none
/// of that name; *value then has no text. The text is the caller's (esker_string_free).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_db_property(
    db: *const esker_db,
    name: *const c_char,
    value: *mut esker_string,
    error: *mut *mut esker_error,
) -> esker_code {
    // SAFETY: the caller keeps the rules of the header.
    unsafe {
        call(error, || {
            let value = place(value, "value")?;
            value.write(esker_string::NONE);
            let Some(found) = shared(db)?.property(text(name, "name")?) else {
                return Ok(ESKER_NOT_FOUND);
            };
            value.write(esker_string::new(found));
            Ok(ESKER_OK)
        })
    }
}

/// The names of all keyspaces, "default" first, then in order of creation: *names points to *count
/// texts. The array is the caller's (esker_strings_free).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_db_keyspaces(
    db: *const esker_db,
    names: *mut *mut esker_string,
    count: *mut usize,
    error: *mut *mut esker_error,
) -> esker_code {
    // SAFETY: the caller keeps the rules of the header.
    unsafe {
        call(error, || {
            set(names, std::ptr::null_mut());
            set(count, 0);
            let (names, count) = (place(names, "names")?, place(count, "count")?);
            let (array, len) = text::array(shared(db)?.keyspaces().into_iter());
            names.write(array);
            count.write(len);
            Ok(ESKER_OK)
        })
    }
}

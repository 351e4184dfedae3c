//! Batches.

use std::ffi::c_void;

use esker::{Error, MAX_KEY_LEN, MAX_VALUE_LEN, WriteBatch};

use crate::db::esker_db;
use crate::error::{Failure, esker_code, esker_error};
use crate::ffi::{self, Kind, bytes, call, exclusive, quietly, shared};
use crate::keyspace::esker_keyspace;
use crate::options::{durability, esker_durability_arg};

use esker_code::*;

/// Writes that are applied together or not at all, in the order they were added. One thread uses it at
/// a time.
pub struct esker_batch(());

impl Kind for esker_batch {
    type State = WriteBatch;
    const MARK: u64 = u64::from_ne_bytes(*b"esker-ba");
    const NAME: &'static str = "esker_batch";
}

/// An empty batch, for esker_batch_free. NULL only after a bug.
#[unsafe(no_mangle)]
pub extern "C" fn esker_batch_new() -> *mut esker_batch {
    quietly(std::ptr::null_mut(), || ffi::hand_out(WriteBatch::new()))
}

/// Gives a batch back.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_batch_free(batch: *mut *mut esker_batch) {
    // SAFETY: the caller keeps the rules of the header.
    unsafe { ffi::close(batch) }
}

/// Adds: give a key this value in `keyspace`; NULL is the default one of whatever store the batch is
/// written to. Key and value are copied. Errors: ESKER_INVALID_ARGUMENT (too long), ESKER_READ_ONLY
/// (the keyspace as a snapshot sees it); the batch is then as it was.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_batch_put(
    batch: *mut esker_batch,
    keyspace: *const esker_keyspace,
    key: *const c_void,
    key_len: usize,
    value: *const c_void,
    value_len: usize,
    error: *mut *mut esker_error,
) -> esker_code {
    // SAFETY: the caller keeps the rules of the header.
    unsafe {
        call(error, || {
            let (key, value) = (bytes(key, key_len, "key")?, bytes(value, value_len, "value")?);
            check_key(key)?;
            if value.len() > MAX_VALUE_LEN {
                return Err(Error::ValueTooLong { len: value.len() }.into());
            }
            let batch = exclusive(batch)?;
            match keyspace.is_null() {
                true => batch.put(key, value),
                false => batch.put_in(shared(keyspace)?.writable()?, key, value),
            }
            Ok(ESKER_OK)
        })
    }
}

/// Adds: take the value of a key away. Otherwise as esker_batch_put.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_batch_delete(
    batch: *mut esker_batch,
    keyspace: *const esker_keyspace,
    key: *const c_void,
    key_len: usize,
    error: *mut *mut esker_error,
) -> esker_code {
    // SAFETY: the caller keeps the rules of the header.
    unsafe {
        call(error, || {
            let key = bytes(key, key_len, "key")?;
            check_key(key)?;
            let batch = exclusive(batch)?;
            match keyspace.is_null() {
                true => batch.delete(key),
                false => batch.delete_in(shared(keyspace)?.writable()?, key),
            }
            Ok(ESKER_OK)
        })
    }
}

/// The engine refuses a batch with a key that is too long when it is written; who adds one is told at
/// once.
fn check_key(key: &[u8]) -> Result<(), Failure> {
    if key.len() > MAX_KEY_LEN {
        return Err(Error::KeyTooLong { len: key.len() }.into());
    }
    Ok(())
}

/// Removes everything from a batch; its memory stays for the next use.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_batch_clear(batch: *mut esker_batch) {
    // SAFETY: the caller keeps the rules of the header.
    quietly((), || unsafe {
        if let Ok(batch) = exclusive(batch) {
            batch.clear();
        }
    });
}

/// How many writes a batch has; 0 for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_batch_count(batch: *const esker_batch) -> usize {
    // SAFETY: the caller keeps the rules of the header.
    unsafe { shared(batch).map_or(0, WriteBatch::len) }
}

/// How many bytes of the log a batch will take; 0 when it is empty, or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_batch_byte_len(batch: *const esker_batch) -> usize {
    // SAFETY: the caller keeps the rules of the header.
    unsafe { shared(batch).map_or(0, WriteBatch::byte_len) }
}

/// Writes a batch: all of it or none, across keyspaces. The batch stays as it is, to be written again,
/// cleared or freed.
///
/// Errors: ESKER_INVALID_ARGUMENT when it names keyspaces of another store, or has 4 GiB and more;
/// those of esker_put.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_write(
    db: *const esker_db,
    batch: *const esker_batch,
    durability: esker_durability_arg,
    error: *mut *mut esker_error,
) -> esker_code {
    // SAFETY: the caller keeps the rules of the header.
    unsafe {
        call(error, || {
            let (db, batch) = (shared(db)?, shared(batch)?);
            match self::durability(durability)? {
                None => db.write(batch)?,
                Some(durability) => db.write_with(batch, durability)?,
            }
            Ok(ESKER_OK)
        })
    }
}

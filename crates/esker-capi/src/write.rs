//! Writes by key.

use std::ffi::c_void;

use crate::error::{esker_code, esker_error};
use crate::ffi::{bytes, call, shared};
use crate::keyspace::esker_keyspace;
use crate::options::{durability, esker_durability_arg};

use esker_code::*;

/// Gives a key a value: up to 64 KiB and up to 1 GiB, both may be empty (and NULL then).
///
/// Errors: ESKER_INVALID_ARGUMENT (too long), ESKER_READ_ONLY, ESKER_HALTED, ESKER_IO, ESKER_CLOSED,
/// ESKER_KEYSPACE. After an error of a synced write it is not known whether the write survives.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_put(
    keyspace: *const esker_keyspace,
    key: *const c_void,
    key_len: usize,
    value: *const c_void,
    value_len: usize,
    durability: esker_durability_arg,
    error: *mut *mut esker_error,
) -> esker_code {
    // SAFETY: the caller keeps the rules of the header.
    unsafe {
        call(error, || {
            let (key, value) = (bytes(key, key_len, "key")?, bytes(value, value_len, "value")?);
            let keyspace = shared(keyspace)?.writable()?;
            match self::durability(durability)? {
                None => keyspace.put(key, value)?,
                Some(durability) => keyspace.put_with(key, value, durability)?,
            }
            Ok(ESKER_OK)
        })
    }
}

/// Takes the value of a key away, if it has one. ESKER_OK also when it had none. Errors: as for
/// esker_put.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_delete(
    keyspace: *const esker_keyspace,
    key: *const c_void,
    key_len: usize,
    durability: esker_durability_arg,
    error: *mut *mut esker_error,
) -> esker_code {
    // SAFETY: the caller keeps the rules of the header.
    unsafe {
        call(error, || {
            let key = bytes(key, key_len, "key")?;
            let keyspace = shared(keyspace)?.writable()?;
            match self::durability(durability)? {
                None => keyspace.delete(key)?,
                Some(durability) => keyspace.delete_with(key, durability)?,
            }
            Ok(ESKER_OK)
        })
    }
}

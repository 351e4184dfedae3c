//! Reads by key.

use std::ffi::c_void;

use crate::error::{Failure, esker_code, esker_error};
use crate::ffi::{bytes, call, place, shared};
use crate::keyspace::esker_keyspace;
use crate::value::{self, esker_value};

use esker_code::*;

/// The value of a key, not copied. *value is overwritten, not released first; it is the caller's
/// (esker_value_release), and empty on anything but ESKER_OK. ESKER_NOT_FOUND: the key has no value.
///
/// Allocates nothing, but for values that are stored compressed. Errors: ESKER_CORRUPTION,
/// ESKER_CLOSED, ESKER_KEYSPACE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_get(
    keyspace: *const esker_keyspace,
    key: *const c_void,
    key_len: usize,
    value: *mut esker_value,
    error: *mut *mut esker_error,
) -> esker_code {
    // SAFETY: the caller keeps the rules of the header.
    unsafe {
        call(error, || {
            let value = place(value, "value")?;
            value::clear(value);
            let key = bytes(key, key_len, "key")?;
            match shared(keyspace)?.get(key)? {
                None => Ok(ESKER_NOT_FOUND),
                Some(found) => {
                    value::put(value, found);
                    Ok(ESKER_OK)
                }
            }
        })
    }
}

/// Copies the value of a key into `buffer`, `capacity` bytes at most. *len is the length of the whole
/// value: when it is above `capacity` the value was cut, which is ESKER_OK too. `buffer` may be NULL
/// when `capacity` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_get_into(
    keyspace: *const esker_keyspace,
    key: *const c_void,
    key_len: usize,
    buffer: *mut c_void,
    capacity: usize,
    len: *mut usize,
    error: *mut *mut esker_error,
) -> esker_code {
    // SAFETY: the caller keeps the rules of the header.
    unsafe {
        call(error, || {
            let len = place(len, "len")?;
            len.write(0);
            if capacity > 0 {
                place(buffer, "buffer")?;
            }
            let key = bytes(key, key_len, "key")?;
            let Some(found) = shared(keyspace)?.get(key)? else { return Ok(ESKER_NOT_FOUND) };
            let copied = found.len().min(capacity);
            if copied > 0 {
                std::ptr::copy_nonoverlapping(found.as_ptr(), buffer.cast(), copied);
            }
            len.write(found.len());
            Ok(ESKER_OK)
        })
    }
}

/// Whether a key has a value: ESKER_OK or ESKER_NOT_FOUND. Cheaper than esker_get for large values.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_contains(
    keyspace: *const esker_keyspace,
    key: *const c_void,
    key_len: usize,
    error: *mut *mut esker_error,
) -> esker_code {
    // SAFETY: the caller keeps the rules of the header.
    unsafe {
        call(error, || {
            let key = bytes(key, key_len, "key")?;
            match shared(keyspace)?.contains_key(key)? {
                true => Ok(ESKER_OK),
                false => Ok(ESKER_NOT_FOUND),
            }
        })
    }
}

/// The values of `count` keys as of one moment: keys[i] has key_lens[i] bytes, and its value goes to
/// values[i], which is overwritten; `data` is NULL there when the key has none. Each is the caller's
/// (esker_value_release). Faster than one esker_get after the other. On an error all are empty.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_multi_get(
    keyspace: *const esker_keyspace,
    count: usize,
    keys: *const *const c_void,
    key_lens: *const usize,
    values: *mut esker_value,
    error: *mut *mut esker_error,
) -> esker_code {
    // SAFETY: the caller keeps the rules of the header.
    unsafe {
        call(error, || {
            if count > 0 && values.is_null() {
                return Err(Failure::null("values"));
            }
            // First of all: on an error too, each may be released.
            for i in 0..count {
                value::clear(values.add(i));
            }
            if count > 0 && (keys.is_null() || key_lens.is_null()) {
                return Err(Failure::null("keys or key_lens"));
            }
            let ks = shared(keyspace)?;
            let key = |i| bytes(*keys.add(i), *key_lens.add(i), "a key");
            let wanted = (0..count).map(key).collect::<Result<Vec<_>, _>>()?;
            for (i, found) in ks.multi_get(&wanted)?.into_iter().enumerate() {
                if let Some(found) = found {
                    value::put(values.add(i), found);
                }
            }
            Ok(ESKER_OK)
        })
    }
}

//! Bulk loads: entries that the caller gives one after the other.

use std::ffi::{c_int, c_void};

use crate::error::{Failure, esker_code, esker_error};
use crate::ffi::{bytes, call, set, shared};
use crate::keyspace::esker_keyspace;

use esker_code::*;

/// Gives the next entry of a bulk load: 1 when it has set the four, 0 at the end, below 0 to stop. What
/// it points to is read before it is called again. It may use the store; it may not throw or longjmp.
pub type esker_next_entry = Option<
    unsafe extern "C" fn(
        state: *mut c_void,
        key: *mut *const c_void,
        key_len: *mut usize,
        value: *mut *const c_void,
        value_len: *mut usize,
    ) -> c_int,
>;

/// Entries as the caller gives them.
struct Given {
    next: unsafe extern "C" fn(
        *mut c_void,
        *mut *const c_void,
        *mut usize,
        *mut *const c_void,
        *mut usize,
    ) -> c_int,
    state: *mut c_void,
}

impl Iterator for Given {
    type Item = Result<(&'static [u8], &'static [u8]), Failure>;

    fn next(&mut self) -> Option<Self::Item> {
        let (mut key, mut key_len) = (std::ptr::null(), 0);
        let (mut value, mut value_len) = (std::ptr::null(), 0);
        // SAFETY: the caller vouches for the function.
        let answer =
            unsafe { (self.next)(self.state, &mut key, &mut key_len, &mut value, &mut value_len) };
        match answer {
            0 => None,
            1 => {
                // SAFETY: the bytes stay until the next call, and a load reads each entry before it asks for the
                // next. No longer lifetime than that is used, though an iterator cannot say so.
                Some(unsafe {
                    bytes(key, key_len, "the key of an entry").and_then(|key| {
                        Ok((key, bytes(value, value_len, "the value of an entry")?))
                    })
                })
            }
            ..0 => Some(Err(Failure::stopped("next"))),
            _ => Some(Err(Failure::invalid(format!("next gave {answer}, not 1, 0 or less")))),
        }
    }
}

/// Loads entries in ascending order straight into tables, past the log. All of them appear at once, and
/// durably, when the call returns; on an error, none (where writes stop by it, the next open tells). Values of keys that are there are replaced.
/// *loaded, which may be NULL, is how many there were.
///
/// Errors: ESKER_ABORTED when `next` says stop, ESKER_INVALID_ARGUMENT when a key is not above the one
/// before it, or too long; ESKER_READ_ONLY, ESKER_HALTED, ESKER_IO, ESKER_CLOSED, ESKER_KEYSPACE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_bulk_load(
    keyspace: *const esker_keyspace,
    next: esker_next_entry,
    state: *mut c_void,
    loaded: *mut u64,
    error: *mut *mut esker_error,
) -> esker_code {
    // SAFETY: the caller keeps the rules of the header.
    unsafe {
        call(error, || {
            set(loaded, 0);
            let next = next.ok_or_else(|| Failure::null("next"))?;
            // A handle of its own: the callback may close the one that was passed.
            let keyspace = shared(keyspace)?.writable()?.clone();
            let count = keyspace.try_bulk_load(Given { next, state })?;
            set(loaded, count);
            Ok(ESKER_OK)
        })
    }
}

//! Cursors: entry by entry, or as many as fit into a buffer.

use std::ffi::c_void;

use esker::{Cursor, Error};

use crate::error::{Failure, esker_code, esker_error};
use crate::ffi::{self, Kind, Outcome, address, bytes, call, exclusive, place, set, shared};
use crate::keyspace::esker_keyspace;

use esker_code::*;

/// A walk over the keys and values of a keyspace, as they were when it was opened. One thread uses it
/// at a time.
///
/// A new cursor is on no entry, and so is one after an error, which esker_cursor_next, _prev, _entry
/// and _read then give again; the calls that position it go on from there.
pub struct esker_cursor(());

impl Kind for esker_cursor {
    type State = CursorState;
    const MARK: u64 = u64::from_ne_bytes(*b"esker-cu");
    const NAME: &'static str = "esker_cursor";
}

/// What a cursor holds.
pub(crate) struct CursorState {
    cursor: Cursor,
    /// Why it is on no entry, if its last move failed.
    failed: Option<Error>,
    /// The key that it last went to: the caller's may be the cursor's own, which its moves write over.
    sought: Vec<u8>,
}

/// A key and its value, where they lie: valid until the cursor moves or is closed. All zero when there
/// is none; not NULL, when there is one, also where it is empty.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct esker_entry {
    /// The key.
    pub key: *const u8,
    /// Its bytes.
    pub key_len: usize,
    /// The value; empty under a cursor that walks keys only.
    pub value: *const u8,
    /// Its bytes.
    pub value_len: usize,
}

impl esker_entry {
    const NONE: esker_entry =
        esker_entry { key: std::ptr::null(), key_len: 0, value: std::ptr::null(), value_len: 0 };

    fn of(cursor: &Cursor) -> esker_entry {
        let (key, value) = (cursor.key(), cursor.value());
        esker_entry {
            key: address(key),
            key_len: key.len(),
            value: address(value),
            value_len: value.len(),
        }
    }
}

impl CursorState {
    /// Moves the cursor, and keeps what went wrong.
    #[inline]
    fn go(&mut self, step: impl FnOnce(&mut Cursor) -> esker::Result<bool>) -> esker::Result<bool> {
        match step(&mut self.cursor) {
            Ok(on_entry) => {
                self.failed = None;
                Ok(on_entry)
            }
            Err(e) => {
                self.failed = Some(e.clone());
                Err(e)
            }
        }
    }

    /// Whether it is on an entry; the error of its last move, if that failed.
    fn on_entry(&self) -> Result<bool, Failure> {
        match &self.failed {
            Some(e) => Err(e.clone().into()),
            None => Ok(self.cursor.valid()),
        }
    }
}

/// Moves a cursor and says where it is.
///
/// # Safety
/// `cursor` is NULL or open and nobody else's, `entry` and `error` are NULL or can be written.
#[inline]
unsafe fn go(
    cursor: *mut esker_cursor,
    entry: *mut esker_entry,
    error: *mut *mut esker_error,
    step: impl FnOnce(&mut Cursor) -> esker::Result<bool>,
) -> esker_code {
    // SAFETY: the caller's.
    unsafe {
        call(error, || {
            set(entry, esker_entry::NONE);
            let state = exclusive(cursor)?;
            let on_entry = state.go(step)?;
            Ok(arrived(state, on_entry, entry))
        })
    }
}

/// # Safety
/// `entry` is NULL or can be written.
#[inline]
unsafe fn arrived(state: &CursorState, on_entry: bool, entry: *mut esker_entry) -> esker_code {
    if !on_entry {
        return ESKER_NOT_FOUND;
    }
    // SAFETY: the caller's.
    unsafe { set(entry, esker_entry::of(&state.cursor)) };
    ESKER_OK
}

/// Opens a cursor over a keyspace; with `keys_only` it fetches no values. It sees nothing of later
/// writes, and keeps what it walks over, also when the store is closed. Errors: ESKER_CLOSED,
/// ESKER_KEYSPACE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_cursor_open(
    keyspace: *const esker_keyspace,
    keys_only: bool,
    cursor: *mut *mut esker_cursor,
    error: *mut *mut esker_error,
) -> esker_code {
    // SAFETY: the caller keeps the rules of the header.
    unsafe {
        call(error, || {
            let at = place(cursor, "cursor")?;
            at.write(std::ptr::null_mut());
            let keyspace = shared(keyspace)?;
            let cursor = keyspace.cursor(keys_only);
            keyspace.check_open()?;
            at.write(ffi::hand_out(CursorState { cursor, failed: None, sought: Vec::new() }));
            Ok(ESKER_OK)
        })
    }
}

/// Closes a cursor.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_cursor_close(cursor: *mut *mut esker_cursor) {
    // SAFETY: the caller keeps the rules of the header.
    unsafe { ffi::close(cursor) }
}

/// Goes to the first entry. ESKER_OK and *entry, or ESKER_NOT_FOUND when there is none; *entry is then
/// all zero. `entry` may be NULL. The same goes for the other moves.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_cursor_first(
    cursor: *mut esker_cursor,
    entry: *mut esker_entry,
    error: *mut *mut esker_error,
) -> esker_code {
    // SAFETY: the caller keeps the rules of the header.
    unsafe { go(cursor, entry, error, Cursor::first) }
}

/// Goes to the last entry.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_cursor_last(
    cursor: *mut esker_cursor,
    entry: *mut esker_entry,
    error: *mut *mut esker_error,
) -> esker_code {
    // SAFETY: the caller keeps the rules of the header.
    unsafe { go(cursor, entry, error, Cursor::last) }
}

/// Goes to the first entry at or after a key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_cursor_seek(
    cursor: *mut esker_cursor,
    key: *const c_void,
    key_len: usize,
    entry: *mut esker_entry,
    error: *mut *mut esker_error,
) -> esker_code {
    // SAFETY: the caller keeps the rules of the header.
    unsafe { to(cursor, (key, key_len), entry, error, |cursor, key| cursor.seek(key)) }
}

/// Goes to the last entry at or before a key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_cursor_seek_for_prev(
    cursor: *mut esker_cursor,
    key: *const c_void,
    key_len: usize,
    entry: *mut esker_entry,
    error: *mut *mut esker_error,
) -> esker_code {
    // SAFETY: the caller keeps the rules of the header.
    unsafe { to(cursor, (key, key_len), entry, error, |cursor, key| cursor.seek_for_prev(key)) }
}

/// Goes one entry on; ESKER_NOT_FOUND past the last one, and when the cursor was on none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_cursor_next(
    cursor: *mut esker_cursor,
    entry: *mut esker_entry,
    error: *mut *mut esker_error,
) -> esker_code {
    // SAFETY: the caller keeps the rules of the header.
    unsafe { go(cursor, entry, error, Cursor::next) }
}

/// Goes one entry back; ESKER_NOT_FOUND before the first one, and when the cursor was on none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_cursor_prev(
    cursor: *mut esker_cursor,
    entry: *mut esker_entry,
    error: *mut *mut esker_error,
) -> esker_code {
    // SAFETY: the caller keeps the rules of the header.
    unsafe { go(cursor, entry, error, Cursor::prev) }
}

/// Where the cursor is: the entry, or ESKER_NOT_FOUND when it is on none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_cursor_entry(
    cursor: *const esker_cursor,
    entry: *mut esker_entry,
    error: *mut *mut esker_error,
) -> esker_code {
    // SAFETY: the caller keeps the rules of the header.
    unsafe {
        call(error, || {
            set(entry, esker_entry::NONE);
            let state = shared(cursor)?;
            let on_entry = state.on_entry()?;
            Ok(arrived(state, on_entry, entry))
        })
    }
}

/// Goes where a key says.
///
/// # Safety
/// As for [`go`] and [`bytes`].
unsafe fn to(
    cursor: *mut esker_cursor,
    (key, key_len): (*const c_void, usize),
    entry: *mut esker_entry,
    error: *mut *mut esker_error,
    step: fn(&mut Cursor, &[u8]) -> esker::Result<bool>,
) -> esker_code {
    // SAFETY: the caller's.
    unsafe {
        call(error, || {
            set(entry, esker_entry::NONE);
            let key = bytes(key, key_len, "key")?;
            let state = exclusive(cursor)?;
            let mut sought = std::mem::take(&mut state.sought);
            sought.clear();
            sought.extend_from_slice(key);
            let on_entry = state.go(|cursor| step(cursor, &sought));
            // No key in a store is longer than this.
            if sought.capacity() <= 64 << 10 {
                state.sought = sought;
            }
            Ok(arrived(state, on_entry?, entry))
        })
    }
}

/// Copies as many entries as fit into `buffer`, from the one the cursor is on, in the direction it is
/// told: each is u32 key_len, u32 value_len (in the byte order of the machine), the key, the value, one
/// behind the other, unaligned. Which is one call for many entries, for languages where a call costs
/// much.
///
/// *count is how many there are, *used how many bytes they take. The cursor is then on the first entry
/// that did not fit, or, past the end, on none, and *done is true. When not even one fits, *count is 0
/// and *used is how many bytes it needs. An error that is met behind entries that fit is given by the
/// next call. `buffer` may be NULL when `capacity` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_cursor_read(
    cursor: *mut esker_cursor,
    backward: bool,
    buffer: *mut c_void,
    capacity: usize,
    used: *mut usize,
    count: *mut usize,
    done: *mut bool,
    error: *mut *mut esker_error,
) -> esker_code {
    // SAFETY: the caller keeps the rules of the header.
    unsafe {
        call(error, || {
            set(used, 0);
            set(count, 0);
            set(done, false);
            let (used, count) = (place(used, "used")?, place(count, "count")?);
            let done = place(done, "done")?;
            let buffer = match capacity {
                0 => std::ptr::null_mut(),
                _ => place(buffer, "buffer")?,
            };
            let mut filled = Filled { at: buffer.cast(), capacity, used: 0 };
            read(exclusive(cursor)?, backward, &mut filled, &mut *used, &mut *count, &mut *done)
        })
    }
}

/// A buffer of the caller's, which is written from its start.
struct Filled {
    at: *mut u8,
    capacity: usize,
    used: usize,
}

/// Bytes before each key.
const LENGTHS: usize = 8;

impl Filled {
    /// # Safety
    /// `bytes` fit.
    unsafe fn push(&mut self, bytes: &[u8]) {
        // SAFETY: the buffer has `capacity` bytes, of which these are some that are free.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.at.add(self.used), bytes.len())
        };
        self.used += bytes.len();
    }

    /// Adds an entry; if it does not fit, says how many bytes it needs.
    fn entry(&mut self, key: &[u8], value: &[u8]) -> Result<(), usize> {
        let needed = LENGTHS + key.len() + value.len();
        if needed > self.capacity - self.used {
            return Err(needed);
        }
        // Keys have 64 KiB at most, values 1 GiB.
        let (key_len, value_len) = (key.len() as u32, value.len() as u32);
        // SAFETY: they fit.
        unsafe {
            self.push(&key_len.to_ne_bytes());
            self.push(&value_len.to_ne_bytes());
            self.push(key);
            self.push(value);
        }
        Ok(())
    }
}

fn read(
    state: &mut CursorState,
    backward: bool,
    filled: &mut Filled,
    used: &mut usize,
    count: &mut usize,
    done: &mut bool,
) -> Outcome {
    let mut on_entry = state.on_entry()?;
    while on_entry {
        if let Err(needed) = filled.entry(state.cursor.key(), state.cursor.value()) {
            if *count == 0 {
                *used = needed;
            }
            return Ok(ESKER_OK);
        }
        *count += 1;
        *used = filled.used;
        let step = if backward { Cursor::prev } else { Cursor::next };
        match state.go(step) {
            Ok(moved) => on_entry = moved,
            // The next call gives it: what was read before is not lost.
            Err(_) => return Ok(ESKER_OK),
        }
    }
    *done = true;
    Ok(ESKER_OK)
}

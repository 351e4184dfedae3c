//! Values that are handed out where they lie.
//!
//! A value is written into memory of the caller's: an `esker_value` holds what keeps the bytes (a slice
//! of the engine's) in its reserved words, behind a mark that says whether it does. Short values lie
//! there too, which is why one may not be copied about.

use std::mem::{align_of, size_of};

use esker::Slice;

use crate::ffi::{address, quietly};

/// A value that is not copied: it points into the store's files and keeps them, until it is released.
/// It stays where it is: a copy of the struct is no value. esker_value_move moves one.
#[repr(C)]
pub struct esker_value {
    /// The bytes; NULL when there is no value, which is something else than a value of no bytes.
    pub data: *const u8,
    /// How many there are.
    pub len: usize,
    /// The library's.
    pub reserved: [u64; 6],
}

/// In the first reserved word of one that holds a slice; the others are the slice.
const HELD: u64 = u64::from_ne_bytes(*b"esker-va");

const _: () = assert!(size_of::<Slice>() <= 5 * size_of::<u64>());
const _: () = assert!(align_of::<Slice>() <= align_of::<u64>());

const fn moves_between_threads<T: Send + Sync>() {}
const _: () = moves_between_threads::<Slice>();

impl esker_value {
    const NONE: esker_value = esker_value { data: std::ptr::null(), len: 0, reserved: [0; 6] };
}

/// Where the slice is.
fn slice_of(value: *mut esker_value) -> *mut Slice {
    // Within the same struct; the assertions say that it fits.
    value.cast::<u8>().wrapping_add(std::mem::offset_of!(esker_value, reserved) + 8).cast()
}

/// Leaves no value, whatever was there.
///
/// # Safety
/// `value` can be written.
#[inline]
pub(crate) unsafe fn clear(value: *mut esker_value) {
    // SAFETY: the caller's.
    unsafe { value.write(esker_value::NONE) }
}

/// Puts a value there, whatever was there.
///
/// # Safety
/// `value` can be written.
#[inline]
pub(crate) unsafe fn put(value: *mut esker_value, slice: Slice) {
    // SAFETY: the caller's; the slice fits behind the mark, and is asked for its bytes where it stays.
    unsafe {
        let place = slice_of(value);
        place.write(slice);
        (*value).reserved[0] = HELD;
        let bytes: &[u8] = &*place;
        (*value).data = address(bytes);
        (*value).len = bytes.len();
    }
}

/// Takes the slice out, if there is one, and leaves no value.
///
/// # Safety
/// `value` is NULL or was written by [`put`] or [`clear`], or is all zeros.
unsafe fn take(value: *mut esker_value) -> Option<Slice> {
    // SAFETY: the caller's; the mark says that there is a slice, and goes with it.
    unsafe {
        if value.is_null() {
            return None;
        }
        let slice = ((*value).reserved[0] == HELD).then(|| slice_of(value).read());
        clear(value);
        slice
    }
}

/// Releases a value, which is empty afterwards. Nothing happens to NULL, to one that was released, or
/// to one that is all zeros.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_value_release(value: *mut esker_value) {
    // SAFETY: the caller keeps the rules of the header.
    quietly((), || drop(unsafe { take(value) }));
}

/// Moves a value to another place. What was there is overwritten, not released; `from` is empty
/// afterwards. `to` NULL: the value is released. The bytes may be elsewhere afterwards: read `data`
/// again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_value_move(to: *mut esker_value, from: *mut esker_value) {
    // SAFETY: the caller keeps the rules of the header.
    quietly((), || unsafe {
        if std::ptr::eq(to, from) {
            return;
        }
        let slice = take(from);
        if to.is_null() {
            return;
        }
        match slice {
            Some(slice) => put(to, slice),
            None => clear(to),
        }
    });
}

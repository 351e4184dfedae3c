//! What all functions share: handles, arguments, and where panics end.
//!
//! A handle is a box whose first word is the mark of its kind. Its type in the header is opaque, so a
//! cast is the only way to pass the wrong one, and the mark finds that, as it finds most handles that
//! were closed.

use std::ffi::{CStr, OsStr, c_char, c_void};
use std::os::unix::ffi::OsStrExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use crate::comparator::is_comparing;
use crate::error::{Failure, esker_code, esker_error, report};

/// What most functions come to: a code, or why not.
pub(crate) type Outcome = Result<esker_code, Failure>;

/// An opaque type of the header.
pub(crate) trait Kind {
    /// What is behind its mark.
    type State;
    /// The first word of its handles.
    const MARK: u64;
    /// What it is called in messages.
    const NAME: &'static str;
    /// Whether the last of its handles closes the store, which no comparator may.
    const CLOSES_STORE: bool = false;
}

/// In place of the mark of a handle that was closed.
const CLOSED: u64 = u64::from_ne_bytes(*b"*closed*");

#[repr(C)]
struct Handle<T> {
    mark: u64,
    state: T,
}

/// Makes a handle, which is the caller's.
pub(crate) fn hand_out<K: Kind>(state: K::State) -> *mut K {
    Box::into_raw(Box::new(Handle { mark: K::MARK, state })).cast()
}

/// The handle behind a pointer, if it is one of this kind.
///
/// # Safety
/// `handle` is NULL or can be read as a word.
#[inline]
unsafe fn checked<K: Kind>(handle: *const K) -> Result<*mut Handle<K::State>, Failure> {
    let handle: *mut Handle<K::State> = handle.cast_mut().cast();
    if handle.is_null() {
        return Err(Failure::null(K::NAME));
    }
    // SAFETY: not NULL, so the caller vouches that the first word can be read if it is one.
    if !handle.is_aligned() || unsafe { (*handle).mark } != K::MARK {
        return Err(Failure::invalid(format!("what was passed is no {} that is open", K::NAME)));
    }
    Ok(handle)
}

/// A handle that any number of threads use at a time.
///
/// # Safety
/// `handle` is NULL, or is not closed before `'a` ends.
#[inline]
pub(crate) unsafe fn shared<'a, K: Kind>(handle: *const K) -> Result<&'a K::State, Failure> {
    // SAFETY: as the caller vouches; the mark says that it is of this kind.
    unsafe { checked(handle).map(|handle| &(*handle).state) }
}

/// A handle that one thread uses at a time.
///
/// # Safety
/// As for [`shared`], and nobody else uses it before `'a` ends.
#[inline]
pub(crate) unsafe fn exclusive<'a, K: Kind>(handle: *mut K) -> Result<&'a mut K::State, Failure> {
    // SAFETY: as the caller vouches; the mark says that it is of this kind.
    unsafe { checked(handle).map(|handle| &mut (*handle).state) }
}

/// Takes a handle back and sets the caller's variable to NULL; `None` when that is NULL, or holds one.
/// What is no handle of the kind stays where it is.
///
/// # Safety
/// `variable` is NULL or points to a variable, whose handle nobody else uses.
pub(crate) unsafe fn take_back<K: Kind>(
    variable: *mut *mut K,
) -> Result<Option<K::State>, Failure> {
    // SAFETY: as the caller vouches; a handle with the right mark is a box of `hand_out`'s.
    unsafe {
        if variable.is_null() || (*variable).is_null() {
            return Ok(None);
        }
        let handle = checked(*variable)?;
        if K::CLOSES_STORE && is_comparing() {
            return Err(Failure::from(esker::Error::CalledFromComparator));
        }
        *variable = std::ptr::null_mut();
        // Volatile: nobody in Rust reads it again, a caller who kept a copy of the pointer may.
        (&raw mut (*handle).mark).write_volatile(CLOSED);
        Ok(Some(Box::from_raw(handle).state))
    }
}

/// The same where there is nobody to tell of an error.
///
/// # Safety
/// As for [`take_back`].
pub(crate) unsafe fn close<K: Kind>(variable: *mut *mut K) {
    // SAFETY: the caller's.
    quietly((), || drop(unsafe { take_back(variable) }));
}

/// Where a result goes.
pub(crate) fn place<T>(at: *mut T, name: &'static str) -> Result<*mut T, Failure> {
    if at.is_null() { Err(Failure::null(name)) } else { Ok(at) }
}

/// Sets what a result goes to, if it is asked for.
///
/// # Safety
/// `at` is NULL or can be written.
#[inline]
pub(crate) unsafe fn set<T>(at: *mut T, value: T) {
    if !at.is_null() {
        // SAFETY: the caller's.
        unsafe { at.write(value) }
    }
}

/// Bytes that the caller lends; NULL is allowed when there are none.
///
/// # Safety
/// `data` is NULL or points to `len` bytes that stay as they are before `'a` ends.
#[inline]
pub(crate) unsafe fn bytes<'a>(
    data: *const c_void,
    len: usize,
    name: &'static str,
) -> Result<&'a [u8], Failure> {
    if len == 0 {
        return Ok(&[]);
    }
    if data.is_null() {
        return Err(Failure::null(name));
    }
    if isize::try_from(len).is_err() {
        return Err(Failure::invalid(format!("{name} cannot have {len} bytes")));
    }
    // SAFETY: not NULL, of a length that memory can have, and the caller vouches for the bytes.
    Ok(unsafe { std::slice::from_raw_parts(data.cast(), len) })
}

/// Text that the caller lends.
///
/// # Safety
/// `text` is NULL or NUL-terminated, and stays as it is before `'a` ends.
pub(crate) unsafe fn text<'a>(text: *const c_char, name: &'static str) -> Result<&'a str, Failure> {
    if text.is_null() {
        return Err(Failure::null(name));
    }
    // SAFETY: the caller's.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|_| Failure::invalid(format!("{name} is not UTF-8")))
}

/// A path, whose bytes are the system's.
///
/// # Safety
/// As for [`text`].
pub(crate) unsafe fn path<'a>(path: *const c_char) -> Result<&'a Path, Failure> {
    if path.is_null() {
        return Err(Failure::null("path"));
    }
    // SAFETY: the caller's.
    Ok(Path::new(OsStr::from_bytes(unsafe { CStr::from_ptr(path) }.to_bytes())))
}

/// Where bytes lie, for C: never NULL, and never an address that is none.
#[inline]
pub(crate) fn address(bytes: &[u8]) -> *const u8 {
    static NOTHING: u8 = 0;
    if bytes.is_empty() { &raw const NOTHING } else { bytes.as_ptr() }
}

/// Runs a call that may fail. Its panic is an error too.
///
/// # Safety
/// `error` is NULL or can be written.
#[inline]
pub(crate) unsafe fn call(
    error: *mut *mut esker_error,
    work: impl FnOnce() -> Outcome,
) -> esker_code {
    let failure = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(code)) => {
            // SAFETY: the caller's.
            unsafe { set(error, std::ptr::null_mut()) };
            return code;
        }
        Ok(Err(failure)) => failure,
        Err(panic) => Failure::from_panic(panic),
    };
    // SAFETY: the caller's.
    unsafe { report(failure, error) }
}

/// Runs a call that has nobody to tell of an error; `otherwise` is what it gives then.
pub(crate) fn quietly<T>(otherwise: T, work: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        // Its own drop might panic again.
        std::mem::forget(panic);
        otherwise
    })
}

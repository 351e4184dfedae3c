//! Comparators of the caller's, as the engine wants them.
//!
//! The engine may run a comparator under its locks, so one may not call the store; what would close it
//! is refused here, what else would take a lock there.

use std::cell::Cell;
use std::cmp::Ordering;
use std::ffi::{c_char, c_int, c_void};
use std::panic::resume_unwind;
use std::sync::Arc;

use esker::{Comparator, KeyOrder};

use crate::error::Failure;
use crate::ffi;

/// What a comparator returns that could not compare. The operation then fails with ESKER_COMPARATOR.
pub const ESKER_COMPARE_FAILED: c_int = c_int::MIN;

/// An order of keys. It is stored by its name, and each open must be given the one of that name, with
/// the same order.
///
/// It orders all keys there may be, the same at all times, and tells different keys apart only if they
/// are different keys to the program. Threads call it at the same time. It may not throw or longjmp,
/// nor call the store: what writes or waits is refused there (ESKER_COMPARATOR), what reads would
/// compare again.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct esker_comparator {
    /// Its name, 1 to 1024 bytes of UTF-8, not beginning with "esker.".
    pub name: *const c_char,
    /// Passed to both functions as it is.
    pub state: *mut c_void,
    /// Below 0 when `a` comes first, above 0 when `b` does, 0 when they are the same key; or
    /// ESKER_COMPARE_FAILED.
    pub compare: Option<
        unsafe extern "C" fn(
            state: *mut c_void,
            a: *const u8,
            a_len: usize,
            b: *const u8,
            b_len: usize,
        ) -> c_int,
    >,
    /// May be NULL. Called once with `state`, from any thread, when neither the options nor a store
    /// needs the comparator any more. It may not call the store either.
    pub destroy: Option<unsafe extern "C" fn(state: *mut c_void)>,
}

thread_local! {
    /// Whether this thread is inside a comparator.
    static COMPARING: Cell<bool> = const { Cell::new(false) };
}

/// Whether the call comes from within a comparator.
pub(crate) fn is_comparing() -> bool {
    COMPARING.get()
}

/// A comparator with what is needed of it checked.
struct Lent {
    name: String,
    state: *mut c_void,
    compare: unsafe extern "C" fn(*mut c_void, *const u8, usize, *const u8, usize) -> c_int,
    destroy: Option<unsafe extern "C" fn(*mut c_void)>,
}

// SAFETY: the header asks of comparators that threads call them at the same time, and that any thread ends them.
unsafe impl Send for Lent {}
// SAFETY: as above.
unsafe impl Sync for Lent {}

impl Comparator for Lent {
    fn name(&self) -> &str {
        &self.name
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let outer = COMPARING.replace(true);
        // SAFETY: the caller vouched for the function; the bytes live for the call.
        let answer = unsafe {
            (self.compare)(self.state, ffi::address(a), a.len(), ffi::address(b), b.len())
        };
        COMPARING.set(outer);
        if answer == ESKER_COMPARE_FAILED {
            // Past the hook that prints panics: this is how the engine is told, and nothing is wrong in it.
            resume_unwind(Box::new("it returned ESKER_COMPARE_FAILED".to_string()));
        }
        answer.cmp(&0)
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(destroy) = self.destroy {
            // SAFETY: the caller vouched for the function, which is called once.
            unsafe { destroy(self.state) }
        }
    }
}

/// The order that a comparator is. On an error it is not taken over, and `destroy` is not called.
///
/// # Safety
/// `comparator` is NULL or points to one, of which the functions can be called as the header says.
pub(crate) unsafe fn order(comparator: *const esker_comparator) -> Result<KeyOrder, Failure> {
    if comparator.is_null() {
        return Err(Failure::null("comparator"));
    }
    // SAFETY: the caller's.
    let given = unsafe { *comparator };
    // SAFETY: the caller's.
    let name = unsafe { ffi::text(given.name, "the comparator's name") }?.to_string();
    let compare = given.compare.ok_or_else(|| Failure::null("compare"))?;
    let lent = Lent { name, state: given.state, compare, destroy: given.destroy };
    Ok(KeyOrder::Custom(Arc::new(lent)))
}

//! Keys and values that the program passes, and those it is given.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView};
use pyo3::{Borrowed, ffi};

use crate::error::{Fail, Outcome, no_bytes};

/// `bytes` as they are; a copy of any other object with a buffer, for that may change while the interpreter's lock is not held.
#[derive(Clone)]
pub struct Given<'py>(Bound<'py, PyBytes>);

impl Given<'_> {
    pub fn get(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for Given<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(bytes) = object.cast::<PyBytes>() {
            return Ok(Given(bytes.to_owned()));
        }
        let view = PyMemoryView::from(&object).map_err(|_| no_bytes(&object))?;
        Ok(Given(view.call_method0("tobytes")?.cast_into::<PyBytes>()?))
    }
}

/// `bytes` for the program. Where there is no memory for them that is Python's `MemoryError`; `PyBytes::new` would panic.
pub fn bytes<'py>(py: Python<'py>, from: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    // SAFETY: attached. What comes is a new `bytes` object, or NULL with the error set; a slice is no longer than `isize::MAX`.
    unsafe {
        let made = ffi::PyBytes_FromStringAndSize(from.as_ptr().cast(), from.len() as isize);
        Ok(Bound::from_owned_ptr_or_err(py, made)?.cast_into_unchecked())
    }
}

/// Puts what is read behind the rest, to be kept without the interpreter's lock. Without memory for it nothing is added.
pub fn append(to: &mut Vec<u8>, from: &[u8]) -> Outcome<()> {
    to.try_reserve(from.len()).map_err(|_| Fail::Memory)?;
    to.extend_from_slice(from);
    Ok(())
}

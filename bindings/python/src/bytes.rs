//! Keys and values that the program passes.

use pyo3::Borrowed;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView};

use crate::error::no_bytes;

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

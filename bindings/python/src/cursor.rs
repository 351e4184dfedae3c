//! Cursors, which go where they are told.

use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::bytes::{Given, append, bytes};
use crate::error::{Fail, Outcome};
use crate::fork::Own;

/// A cursor over a keyspace, as it was when the cursor was opened. Threads that use one wait for each other.
#[pyclass(frozen, module = "esker")]
pub struct Cursor {
    inner: Own<Mutex<Option<esker::Cursor>>>,
}

impl Cursor {
    pub fn new(cursor: esker::Cursor) -> Cursor {
        Cursor { inner: Own::new(Mutex::new(Some(cursor))) }
    }

    /// Works with the cursor, without the interpreter's lock.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut esker::Cursor) -> Outcome<T> + Send,
    ) -> Outcome<T> {
        let inner = self.inner.get()?;
        crate::wait::detach(py, || {
            let mut inner = inner.lock().unwrap_or_else(PoisonError::into_inner);
            let cursor = inner.as_mut().ok_or(Fail::Closed("cursor"))?;
            work(cursor)
        })
    }

    /// A part of the entry under the cursor.
    fn copied<'py>(
        &self,
        py: Python<'py>,
        part: impl FnOnce(&esker::Cursor) -> &[u8] + Send,
    ) -> Outcome<Option<Bound<'py, PyBytes>>> {
        let copy = self.with(py, |c| {
            let mut copy = Vec::new();
            c.valid().then(|| append(&mut copy, part(c))).transpose().map(|on| on.map(|()| copy))
        })?;
        Ok(copy.map(|copy| bytes(py, &copy)).transpose()?)
    }
}

#[pymethods]
impl Cursor {
    fn first(&self, py: Python<'_>) -> Outcome<bool> {
        self.with(py, |c| Ok(c.first()?))
    }

    fn last(&self, py: Python<'_>) -> Outcome<bool> {
        self.with(py, |c| Ok(c.last()?))
    }

    #[pyo3(signature = (key, /))]
    fn seek(&self, py: Python<'_>, key: Given<'_>) -> Outcome<bool> {
        let key = key.get();
        self.with(py, |c| Ok(c.seek(key)?))
    }

    #[pyo3(signature = (key, /))]
    fn seek_for_prev(&self, py: Python<'_>, key: Given<'_>) -> Outcome<bool> {
        let key = key.get();
        self.with(py, |c| Ok(c.seek_for_prev(key)?))
    }

    fn next(&self, py: Python<'_>) -> Outcome<bool> {
        self.with(py, |c| Ok(c.next()?))
    }

    fn prev(&self, py: Python<'_>) -> Outcome<bool> {
        self.with(py, |c| Ok(c.prev()?))
    }

    #[getter]
    fn key<'py>(&self, py: Python<'py>) -> Outcome<Option<Bound<'py, PyBytes>>> {
        self.copied(py, esker::Cursor::key)
    }

    #[getter]
    fn value<'py>(&self, py: Python<'py>) -> Outcome<Option<Bound<'py, PyBytes>>> {
        self.copied(py, esker::Cursor::value)
    }

    fn close(&self, py: Python<'_>) -> Outcome<()> {
        // In a forked child there is nothing to close.
        let Ok(inner) = self.inner.get() else { return Ok(()) };
        crate::wait::detach(py, || {
            drop(inner.lock().unwrap_or_else(PoisonError::into_inner).take());
            Ok(())
        })
    }

    fn __enter__(self_: PyRef<'_, Self>) -> PyRef<'_, Self> {
        self_
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        _kind: &Bound<'_, PyAny>,
        _error: &Bound<'_, PyAny>,
        _trace: &Bound<'_, PyAny>,
    ) -> Outcome<()> {
        self.close(py)
    }
}

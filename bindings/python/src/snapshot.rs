//! Snapshots of the whole store.

use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;

use crate::error::{Fail, Outcome};
use crate::fork::Own;

/// The whole store, all keyspaces, as it was at one moment.
#[pyclass(frozen, module = "esker")]
pub struct Snapshot {
    inner: Own<Mutex<Option<esker::Snapshot>>>,
}

impl Snapshot {
    pub fn new(snapshot: esker::Snapshot) -> Snapshot {
        Snapshot { inner: Own::new(Mutex::new(Some(snapshot))) }
    }

    pub fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&esker::Snapshot) -> T + Send,
    ) -> Outcome<T> {
        let inner = self.inner.get()?;
        crate::wait::detach(py, || {
            let inner = inner.lock().unwrap_or_else(PoisonError::into_inner);
            Ok(work(inner.as_ref().ok_or(Fail::Closed("snapshot"))?))
        })
    }
}

#[pymethods]
impl Snapshot {
    #[getter]
    fn sequence(&self, py: Python<'_>) -> Outcome<u64> {
        self.with(py, |snapshot| snapshot.sequence())
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

//! Batches: several writes as one.

use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;

use crate::bytes::Given;
use crate::db::DB;
use crate::error::{Fail, Outcome};
use crate::fork::Own;
use crate::keyspace::Keyspace;

/// Writes that are applied together or not at all. As a context it is written at the end of the block, and dropped when that raises.
#[pyclass(frozen, module = "esker")]
pub struct WriteBatch {
    // Keyspaces are named by handles of the store, so it belongs to the process like those.
    inner: Own<Mutex<esker::WriteBatch>>,
    target: Option<(Py<DB>, Option<String>)>,
}

impl WriteBatch {
    pub fn of(db: Py<DB>, durability: Option<String>) -> WriteBatch {
        WriteBatch { target: Some((db, durability)), ..WriteBatch::new() }
    }

    /// Works with the batch, without the interpreter's lock.
    pub fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut esker::WriteBatch) -> Outcome<T> + Send,
    ) -> Outcome<T> {
        let inner = self.inner.get()?;
        crate::wait::detach(py, || work(&mut inner.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    fn add(
        &self,
        py: Python<'_>,
        keyspace: Option<PyRef<'_, Keyspace>>,
        key: &[u8],
        value: Option<&[u8]>,
    ) -> Outcome<()> {
        // Here, for a batch with such a write could only be dropped.
        if key.len() > esker::MAX_KEY_LEN {
            return Err(esker::Error::KeyTooLong { len: key.len() }.into());
        }
        if let Some(value) = value
            && value.len() > esker::MAX_VALUE_LEN
        {
            return Err(esker::Error::ValueTooLong { len: value.len() }.into());
        }
        let keyspace = match &keyspace {
            Some(keyspace) => Some(&keyspace.as_super().source()?.keyspace),
            None => None,
        };
        self.with(py, |batch| {
            match (keyspace, value) {
                (None, Some(value)) => batch.put(key, value),
                (None, None) => batch.delete(key),
                (Some(keyspace), Some(value)) => batch.put_in(keyspace, key, value),
                (Some(keyspace), None) => batch.delete_in(keyspace, key),
            }
            Ok(())
        })
    }
}

#[pymethods]
impl WriteBatch {
    #[new]
    fn new() -> WriteBatch {
        WriteBatch { inner: Own::new(Mutex::new(esker::WriteBatch::new())), target: None }
    }

    #[pyo3(signature = (key, value, *, keyspace=None))]
    fn put(
        &self,
        py: Python<'_>,
        key: Given<'_>,
        value: Given<'_>,
        keyspace: Option<PyRef<'_, Keyspace>>,
    ) -> Outcome<()> {
        self.add(py, keyspace, key.get(), Some(value.get()))
    }

    #[pyo3(signature = (key, *, keyspace=None))]
    fn delete(
        &self,
        py: Python<'_>,
        key: Given<'_>,
        keyspace: Option<PyRef<'_, Keyspace>>,
    ) -> Outcome<()> {
        self.add(py, keyspace, key.get(), None)
    }

    fn __setitem__(&self, py: Python<'_>, key: Given<'_>, value: Given<'_>) -> Outcome<()> {
        self.add(py, None, key.get(), Some(value.get()))
    }

    fn __delitem__(&self, py: Python<'_>, key: Given<'_>) -> Outcome<()> {
        self.add(py, None, key.get(), None)
    }

    fn clear(&self, py: Python<'_>) -> Outcome<()> {
        self.with(py, |batch| {
            batch.clear();
            Ok(())
        })
    }

    fn __len__(&self, py: Python<'_>) -> Outcome<usize> {
        self.with(py, |batch| Ok(batch.len()))
    }

    fn __enter__(self_: PyRef<'_, Self>) -> Outcome<PyRef<'_, Self>> {
        if self_.target.is_none() {
            let how = "only a batch that a store made (db.batch()) can be used with `with`";
            return Err(Fail::Invalid(how.to_string()));
        }
        Ok(self_)
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        kind: &Bound<'_, PyAny>,
        _error: &Bound<'_, PyAny>,
        _trace: &Bound<'_, PyAny>,
    ) -> Outcome<()> {
        if let (Some((db, durability)), true) = (&self.target, kind.is_none()) {
            DB::write(db.bind(py).borrow(), self, durability.as_deref())?;
        }
        self.clear(py)
    }
}

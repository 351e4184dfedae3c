//! Open stores.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use esker::{KeyspaceOptions, Options};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::batch::WriteBatch;
use crate::error::Outcome;
use crate::fork::Own;
use crate::keyspace::{Keyspace, Reader, figures, keyspace_object};
use crate::maintenance::verifying;
use crate::options;
use crate::snapshot::Snapshot;

/// An open store; as a mapping it is its default keyspace.
#[pyclass(extends = Keyspace, frozen, module = "esker")]
pub struct DB {
    db: Own<Option<esker::Db>>,
    closed: AtomicBool,
    path: PathBuf,
}

impl DB {
    fn db(&self) -> Outcome<&esker::Db> {
        match self.db.get()? {
            Some(db) if !self.closed.load(Ordering::Acquire) => Ok(db),
            _ => Err(esker::Error::Closed.into()),
        }
    }
}

#[pyfunction]
#[pyo3(signature = (
    path, *, memory=None, durability="buffered", create_if_missing=true, error_if_exists=false,
    paranoid_checks=false, read_only=false, flush_on_close=true, compression="lz4", block_size=None,
    segment_size=None, blob_threshold=None, order=None
))]
#[expect(clippy::too_many_arguments, reason = "they are named, in Python")]
pub fn open<'py>(
    py: Python<'py>,
    path: PathBuf,
    memory: Option<u64>,
    durability: &str,
    create_if_missing: bool,
    error_if_exists: bool,
    paranoid_checks: bool,
    read_only: bool,
    flush_on_close: bool,
    compression: &str,
    block_size: Option<usize>,
    segment_size: Option<u64>,
    blob_threshold: Option<usize>,
    order: Option<&str>,
) -> Outcome<Bound<'py, DB>> {
    let mut o = Options::new()
        .durability(options::durability(durability)?)
        .create_if_missing(create_if_missing)
        .error_if_exists(error_if_exists)
        .paranoid_checks(paranoid_checks)
        .read_only(read_only)
        .flush_on_close(flush_on_close)
        .compression(options::compression(compression)?);
    if let Some(bytes) = memory {
        o = o.memory(bytes);
    }
    if let Some(bytes) = block_size {
        o = o.block_size(bytes);
    }
    if let Some(bytes) = segment_size {
        o = o.segment_size(bytes);
    }
    if let Some(bytes) = blob_threshold {
        o = o.blob_threshold(bytes);
    }
    if let Some(name) = order {
        o = o.comparator(options::order(name)?);
    }
    let db = crate::wait::detach(py, || o.open(&path))?;
    let reader = Reader::new(db.default_keyspace().clone(), None);
    let db = DB { db: Own::new(Some(db)), closed: AtomicBool::new(false), path };
    let made = PyClassInitializer::from(reader).add_subclass(Keyspace).add_subclass(db);
    Ok(Bound::new(py, made)?)
}

#[pymethods]
impl DB {
    fn close(&self, py: Python<'_>) -> Outcome<()> {
        let Some(db) = self.db.get()? else { return Ok(()) };
        self.closed.store(true, Ordering::Release);
        // A second one waits in the engine until the first has ended, and does nothing.
        Ok(crate::wait::detach(py, || db.clone().close())?)
    }

    #[getter]
    fn closed(&self) -> bool {
        self.db().is_err()
    }

    #[getter]
    fn path(&self) -> PathBuf {
        self.path.clone()
    }

    fn __enter__(self_: PyRef<'_, Self>) -> Outcome<PyRef<'_, Self>> {
        self_.db()?;
        Ok(self_)
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

    fn __repr__(&self) -> String {
        let what = if self.closed() { "closed " } else { "" };
        format!("<{what}esker store {:?}>", self.path)
    }

    fn flush(&self, py: Python<'_>) -> Outcome<()> {
        let db = self.db()?;
        Ok(crate::wait::detach(py, || db.flush())?)
    }

    fn sync(&self, py: Python<'_>) -> Outcome<()> {
        let db = self.db()?;
        Ok(crate::wait::detach(py, || db.sync())?)
    }

    fn wait_for_compactions(&self, py: Python<'_>) -> Outcome<()> {
        let db = self.db()?;
        Ok(crate::wait::detach(py, || db.wait_for_compactions())?)
    }

    fn resume(&self, py: Python<'_>) -> Outcome<()> {
        let db = self.db()?;
        Ok(crate::wait::detach(py, || db.resume())?)
    }

    fn checkpoint(&self, py: Python<'_>, path: PathBuf) -> Outcome<()> {
        let db = self.db()?;
        Ok(crate::wait::detach(py, || db.checkpoint(&path))?)
    }

    fn property(&self, py: Python<'_>, name: &str) -> Outcome<Option<String>> {
        let db = self.db()?;
        crate::wait::detach(py, || Ok(db.property(name)))
    }

    fn snapshot(&self) -> Outcome<Snapshot> {
        Ok(Snapshot::new(self.db()?.snapshot()))
    }

    #[pyo3(signature = (*, durability=None))]
    fn batch(self_: Bound<'_, Self>, durability: Option<String>) -> Outcome<WriteBatch> {
        self_.borrow().db()?;
        durability.as_deref().map(options::durability).transpose()?;
        Ok(WriteBatch::of(self_.unbind(), durability))
    }

    #[pyo3(signature = (batch, *, durability=None))]
    pub fn write(
        self_: PyRef<'_, Self>,
        batch: &WriteBatch,
        durability: Option<&str>,
    ) -> Outcome<()> {
        let durability = durability.map(options::durability).transpose()?;
        let db = self_.db()?;
        batch.with(self_.py(), |batch| {
            match durability {
                None => db.write(&*batch)?,
                Some(durability) => db.write_with(&*batch, durability)?,
            }
            Ok(())
        })
    }

    fn keyspace<'py>(&self, py: Python<'py>, name: &str) -> Outcome<Bound<'py, Keyspace>> {
        keyspace_object(py, self.db()?.keyspace(name)?)
    }

    #[pyo3(signature = (name, *, compression=None, blob_threshold=None, order="bytewise"))]
    fn create_keyspace<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        compression: Option<&str>,
        blob_threshold: Option<usize>,
        order: &str,
    ) -> Outcome<Bound<'py, Keyspace>> {
        let mut o = KeyspaceOptions::new().comparator(options::order(order)?);
        if let Some(name) = compression {
            o = o.compression(options::compression(name)?);
        }
        if let Some(bytes) = blob_threshold {
            o = o.blob_threshold(bytes);
        }
        let db = self.db()?;
        let keyspace = crate::wait::detach(py, || db.create_keyspace(name, o))?;
        keyspace_object(py, keyspace)
    }

    fn drop_keyspace(&self, py: Python<'_>, name: &str) -> Outcome<()> {
        let db = self.db()?;
        Ok(crate::wait::detach(py, || db.drop_keyspace(name))?)
    }

    fn keyspaces(&self) -> Outcome<Vec<String>> {
        Ok(self.db()?.keyspaces())
    }

    #[pyo3(signature = (*, progress=None))]
    fn verify<'py>(
        &self,
        py: Python<'py>,
        progress: Option<Py<PyAny>>,
    ) -> Outcome<Bound<'py, PyDict>> {
        let db = self.db()?.clone();
        verifying(py, progress, |tell| db.verify_with(tell))
    }

    fn stats<'py>(&self, py: Python<'py>) -> Outcome<Bound<'py, PyDict>> {
        let db = self.db()?;
        let s = crate::wait::detach(py, || Ok::<_, esker::Error>(db.stats()))?;
        let d = PyDict::new(py);
        let keyspaces: PyResult<Vec<_>> = s.keyspaces.iter().map(|k| figures(py, k)).collect();
        d.set_item("keyspaces", keyspaces?)?;
        d.set_item("halted", s.halted)?;
        for (name, figure) in [
            ("sequence", s.sequence),
            ("log_segments", s.log_segments as u64),
            ("log_bytes", s.log_bytes),
            ("blob_bytes", s.blob_bytes),
            ("blob_garbage_bytes", s.blob_garbage_bytes),
            ("pinned_bytes", s.pinned_bytes),
            ("table_bytes", s.table_bytes),
            ("disk_bytes", s.disk_bytes),
            ("memory_budget", s.memory_budget),
            ("memory_used", s.memory_used),
            ("bytes_written", s.bytes_written),
            ("log_bytes_written", s.log_bytes_written),
            ("compaction_bytes_read", s.compaction_bytes_read),
            ("compaction_bytes_written", s.compaction_bytes_written),
            ("compactions", s.compactions),
            ("log_syncs", s.log_syncs),
            ("write_stall_ns", s.write_stall_ns),
            ("snapshots", s.snapshots as u64),
            ("open_files", s.open_files as u64),
            ("mappings", s.mappings as u64),
        ] {
            d.set_item(name, figure)?;
        }
        Ok(d)
    }
}

//! Keyspaces, as they are now or as a snapshot sees them.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyMemoryView};

use crate::bytes::{Given, bytes};
use crate::cursor::Cursor;
use crate::error::{Fail, Outcome};
use crate::fork::Own;
use crate::items::{Range, Walk, What};
use crate::snapshot::Snapshot;
use crate::{load, options, view};

/// What a reader reads: a keyspace, and as of when, if not now.
#[derive(Clone)]
pub struct Source {
    pub keyspace: esker::Keyspace,
    pub view: Option<esker::View>,
}

/// Calls a method of the keyspace, or of the view.
macro_rules! read {
    ($source:expr, $of:ident => $call:expr) => {
        match &$source.view {
            None => {
                let $of = &$source.keyspace;
                $call
            }
            Some($of) => $call,
        }
    };
}

impl Source {
    pub fn cursor(&self, keys_only: bool) -> esker::Cursor {
        match keys_only {
            false => read!(self, of => of.cursor()),
            true => read!(self, of => of.cursor_keys_only()),
        }
    }

    pub fn range(&self, range: &Range) -> esker::Iter {
        match range {
            Range::Prefix(prefix) => read!(self, of => of.prefix(prefix)),
            Range::Between(bounds) => read!(self, of => of.range::<Vec<u8>>(bounds.clone())),
        }
    }

    /// Whether the store is open and the keyspace is there: what a read of no key says.
    pub fn check_open(&self) -> Outcome<()> {
        read!(self, of => of.multi_get::<&[u8]>(&[]))?;
        Ok(())
    }
}

/// What reads: a mapping in the order of its keys.
#[pyclass(subclass, frozen, module = "esker")]
pub struct Reader {
    source: Own<Source>,
}

impl Reader {
    pub fn new(keyspace: esker::Keyspace, view: Option<esker::View>) -> Reader {
        Reader { source: Own::new(Source { keyspace, view }) }
    }

    pub fn source(&self) -> Outcome<&Source> {
        self.source.get()
    }

    fn value(&self, py: Python<'_>, key: &Given<'_>) -> Outcome<Option<esker::Slice>> {
        let (source, key) = (self.source()?, key.get());
        Ok(crate::wait::detach(py, || read!(source, of => of.get(key)))?)
    }

    fn walk(
        &self,
        what: What,
        start: Option<Given<'_>>,
        stop: Option<Given<'_>>,
        prefix: Option<Given<'_>>,
        reverse: bool,
    ) -> Outcome<Walk> {
        let range = Range::new(start, stop, prefix)?;
        let source = self.source()?;
        source.check_open()?;
        Ok(Walk::new(source.range(&range), what, reverse))
    }
}

#[pymethods]
impl Reader {
    fn __getitem__<'py>(&self, py: Python<'py>, key: Given<'py>) -> Outcome<Bound<'py, PyBytes>> {
        match self.value(py, &key)? {
            Some(value) => Ok(bytes(py, &value)?),
            None => Err(Fail::NotFound(key.get().to_vec())),
        }
    }

    #[pyo3(signature = (key, default=None, /))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: Given<'py>,
        default: Option<Bound<'py, PyAny>>,
    ) -> Outcome<Option<Bound<'py, PyAny>>> {
        Ok(match self.value(py, &key)? {
            Some(value) => Some(bytes(py, &value)?.into_any()),
            None => default,
        })
    }

    #[pyo3(signature = (key, /))]
    fn get_view<'py>(
        &self,
        py: Python<'py>,
        key: Given<'py>,
    ) -> Outcome<Option<Bound<'py, PyMemoryView>>> {
        self.value(py, &key)?.map(|value| view::pinned(py, value)).transpose()
    }

    #[pyo3(signature = (keys, /))]
    fn multi_get<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'py, PyAny>,
    ) -> Outcome<Bound<'py, PyList>> {
        let keys = keys.try_iter()?.map(|key| key?.extract());
        let keys = keys.collect::<PyResult<Vec<Given<'_>>>>()?;
        let keys: Vec<&[u8]> = keys.iter().map(Given::get).collect();
        let source = self.source()?;
        let values = crate::wait::detach(py, || read!(source, of => of.multi_get(&keys)))?;
        let values = values.iter().map(|v| v.as_ref().map(|v| bytes(py, v)).transpose());
        Ok(PyList::new(py, values.collect::<PyResult<Vec<_>>>()?)?)
    }

    fn __contains__(&self, py: Python<'_>, key: Given<'_>) -> Outcome<bool> {
        let (source, key) = (self.source()?, key.get());
        Ok(crate::wait::detach(py, || read!(source, of => of.contains_key(key)))?)
    }

    fn __iter__(&self) -> Outcome<Walk> {
        self.walk(What::Keys, None, None, None, false)
    }

    fn __reversed__(&self) -> Outcome<Walk> {
        self.walk(What::Keys, None, None, None, true)
    }

    #[pyo3(signature = (start=None, stop=None, *, prefix=None, reverse=false))]
    fn keys(
        &self,
        start: Option<Given<'_>>,
        stop: Option<Given<'_>>,
        prefix: Option<Given<'_>>,
        reverse: bool,
    ) -> Outcome<Walk> {
        self.walk(What::Keys, start, stop, prefix, reverse)
    }

    #[pyo3(signature = (start=None, stop=None, *, prefix=None, reverse=false))]
    fn values(
        &self,
        start: Option<Given<'_>>,
        stop: Option<Given<'_>>,
        prefix: Option<Given<'_>>,
        reverse: bool,
    ) -> Outcome<Walk> {
        self.walk(What::Values, start, stop, prefix, reverse)
    }

    #[pyo3(signature = (start=None, stop=None, *, prefix=None, reverse=false))]
    fn items(
        &self,
        start: Option<Given<'_>>,
        stop: Option<Given<'_>>,
        prefix: Option<Given<'_>>,
        reverse: bool,
    ) -> Outcome<Walk> {
        self.walk(What::Items, start, stop, prefix, reverse)
    }

    #[pyo3(signature = (prefix, *, reverse=false))]
    fn prefix(&self, prefix: Given<'_>, reverse: bool) -> Outcome<Walk> {
        self.walk(What::Items, None, None, Some(prefix), reverse)
    }

    #[pyo3(signature = (*, keys_only=false))]
    fn cursor(&self, keys_only: bool) -> Outcome<Cursor> {
        let source = self.source()?;
        source.check_open()?;
        Ok(Cursor::new(source.cursor(keys_only)))
    }

    #[getter]
    fn name(&self) -> Outcome<&str> {
        Ok(self.source.get()?.keyspace.name())
    }
}

/// A keyspace as a snapshot sees it.
#[pyclass(extends = Reader, frozen, module = "esker")]
pub struct View;

/// A named map in a store.
#[pyclass(extends = Reader, subclass, frozen, module = "esker")]
pub struct Keyspace;

/// Gives a key a value, or takes it away.
fn write(
    self_: &PyRef<'_, Keyspace>,
    key: &[u8],
    value: Option<&[u8]>,
    durability: Option<&str>,
) -> Outcome<()> {
    let keyspace = &self_.as_super().source()?.keyspace;
    let durability = durability.map(options::durability).transpose()?;
    Ok(crate::wait::detach(self_.py(), || match (value, durability) {
        (Some(value), None) => keyspace.put(key, value),
        (Some(value), Some(durability)) => keyspace.put_with(key, value, durability),
        (None, None) => keyspace.delete(key),
        (None, Some(durability)) => keyspace.delete_with(key, durability),
    })?)
}

#[pymethods]
impl Keyspace {
    fn __setitem__(self_: PyRef<'_, Self>, key: Given<'_>, value: Given<'_>) -> Outcome<()> {
        write(&self_, key.get(), Some(value.get()), None)
    }

    fn __delitem__(self_: PyRef<'_, Self>, key: Given<'_>) -> Outcome<()> {
        if !self_.as_super().__contains__(self_.py(), Given::clone(&key))? {
            return Err(Fail::NotFound(key.get().to_vec()));
        }
        write(&self_, key.get(), None, None)
    }

    #[pyo3(signature = (key, value, *, durability=None))]
    fn put(
        self_: PyRef<'_, Self>,
        key: Given<'_>,
        value: Given<'_>,
        durability: Option<&str>,
    ) -> Outcome<()> {
        write(&self_, key.get(), Some(value.get()), durability)
    }

    #[pyo3(signature = (key, *, durability=None))]
    fn delete(self_: PyRef<'_, Self>, key: Given<'_>, durability: Option<&str>) -> Outcome<()> {
        write(&self_, key.get(), None, durability)
    }

    #[pyo3(signature = (entries, /))]
    fn bulk_load(self_: PyRef<'_, Self>, entries: &Bound<'_, PyAny>) -> Outcome<u64> {
        let keyspace = self_.as_super().source()?.keyspace.clone();
        load::bulk_load(self_.py(), keyspace, entries)
    }

    #[pyo3(signature = (start=None, stop=None))]
    fn compact_range(
        self_: PyRef<'_, Self>,
        start: Option<Given<'_>>,
        stop: Option<Given<'_>>,
    ) -> Outcome<()> {
        let keyspace = &self_.as_super().source()?.keyspace;
        let bounds = crate::items::bounds(start, stop);
        Ok(crate::wait::detach(self_.py(), || keyspace.compact_range::<Vec<u8>>(bounds))?)
    }

    #[pyo3(signature = (start=None, stop=None))]
    fn approximate_size(
        self_: PyRef<'_, Self>,
        start: Option<Given<'_>>,
        stop: Option<Given<'_>>,
    ) -> Outcome<u64> {
        let py = self_.py();
        let keyspace = self_.as_super().source()?.keyspace.clone();
        let bounds = crate::items::bounds(start, stop);
        // It may read indexes from a disk.
        Ok(crate::wait::detach(py, || keyspace.approximate_size::<Vec<u8>>(bounds))?)
    }

    fn at<'py>(self_: PyRef<'py, Self>, snapshot: &Snapshot) -> Outcome<Bound<'py, View>> {
        let py = self_.py();
        let keyspace = self_.as_super().source()?.keyspace.clone();
        let view = snapshot.with(py, |snapshot| keyspace.at(snapshot))?;
        let reader = Reader::new(keyspace, Some(view));
        // Says too whether the snapshot is of this store.
        reader.source()?.check_open()?;
        Ok(Bound::new(py, PyClassInitializer::from(reader).add_subclass(View))?)
    }

    fn __repr__(self_: PyRef<'_, Self>) -> Outcome<String> {
        Ok(format!("<esker keyspace {:?}>", self_.as_super().name()?))
    }
}

/// A keyspace as Python has it.
pub fn keyspace_object(py: Python<'_>, keyspace: esker::Keyspace) -> Outcome<Bound<'_, Keyspace>> {
    let made = PyClassInitializer::from(Reader::new(keyspace, None)).add_subclass(Keyspace);
    Ok(Bound::new(py, made)?)
}

/// The figures of a keyspace.
pub fn figures<'py>(py: Python<'py>, k: &esker::KeyspaceStats) -> PyResult<Bound<'py, PyDict>> {
    let d = PyDict::new(py);
    let sum = |of: fn(&esker::RunStats) -> u64| k.runs.iter().map(of).sum::<u64>();
    d.set_item("name", &k.name)?;
    d.set_item("order", &k.comparator)?;
    d.set_item("compression", &k.compression)?;
    d.set_item("blob_threshold", k.blob_threshold)?;
    d.set_item("entries", sum(|r| r.entries))?;
    d.set_item("tombstones", sum(|r| r.tombstones))?;
    d.set_item("runs", k.runs.len())?;
    d.set_item("tables", sum(|r| r.tables as u64))?;
    d.set_item("table_bytes", sum(|r| r.bytes))?;
    d.set_item("raw_bytes", sum(|r| r.raw_bytes))?;
    d.set_item("memtable_entries", k.memtable_entries)?;
    d.set_item("memtable_bytes", k.memtable_bytes)?;
    Ok(d)
}

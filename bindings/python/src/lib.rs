//! The native part of the Python package `esker`; `python/esker/__init__.py` is what programs import.
//!
//! Three rules. A call that may wait, for the device, a lock or a merge, runs without the interpreter's lock. And no lock of ours is
//! waited for with the interpreter's lock held, for whoever has ours may want that. A lock of ours is inside what belongs to the
//! process that made it (`fork::Own`), which says whether this is that one before the lock is asked for: in a forked child nobody gives it
//! back.

mod batch;
mod bytes;
mod cursor;
mod db;
mod error;
mod fork;
mod items;
mod keyspace;
mod load;
mod maintenance;
mod options;
mod snapshot;
mod view;
mod wait;

use pyo3::prelude::*;

#[pymodule]
fn _esker(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    m.add("MAX_KEY_LEN", esker::MAX_KEY_LEN)?;
    m.add("MAX_VALUE_LEN", esker::MAX_VALUE_LEN)?;
    m.add_class::<keyspace::Reader>()?;
    m.add_class::<keyspace::Keyspace>()?;
    m.add_class::<keyspace::View>()?;
    m.add_class::<db::DB>()?;
    m.add_class::<batch::WriteBatch>()?;
    m.add_class::<snapshot::Snapshot>()?;
    m.add_class::<cursor::Cursor>()?;
    m.add_class::<items::Walk>()?;
    m.add_function(wrap_pyfunction!(db::open, m)?)?;
    m.add_function(wrap_pyfunction!(maintenance::verify, m)?)?;
    m.add_function(wrap_pyfunction!(maintenance::repair, m)?)?;
    m.add_function(wrap_pyfunction!(maintenance::destroy, m)?)?;
    m.add_function(wrap_pyfunction!(maintenance::_panic, m)?)?;
    fork::watch(m)?;
    wait::watch(m)
}

//! Errors as the exceptions of `python/esker/_errors.py`.

use esker::Error;
use pyo3::exceptions::{PyMemoryError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Why a call failed.
pub enum Fail {
    /// The engine says so.
    Engine(Error),
    /// Code of the program's raised.
    Python(PyErr),
    /// This object was closed.
    Closed(&'static str),
    /// The process is a child of the one that opened the store.
    Forked,
    /// An argument that cannot be.
    Invalid(String),
    /// The key has no value.
    NotFound(Vec<u8>),
    /// There is no memory for what was read.
    Memory,
}

pub type Outcome<T> = Result<T, Fail>;

impl From<Error> for Fail {
    fn from(e: Error) -> Fail {
        Fail::Engine(e)
    }
}

impl From<PyErr> for Fail {
    fn from(e: PyErr) -> Fail {
        Fail::Python(e)
    }
}

/// The class of an error of the engine's.
fn class(e: &Error) -> &'static str {
    match e {
        Error::Io { .. } | Error::DirectoryMoved { .. } => "IoError",
        Error::Corruption { .. } => "CorruptionError",
        Error::NotAStore { .. } => "NotAStoreError",
        Error::ForeignStore { .. } => "ForeignStoreError",
        Error::StoreExists { .. } => "StoreExistsError",
        Error::Locked { .. } => "LockedError",
        Error::UnsupportedFormat { .. }
        | Error::NoZstd { .. }
        | Error::UnsupportedCompression { .. } => "UnsupportedError",
        Error::ComparatorMissing { .. }
        | Error::ComparatorMismatch { .. }
        | Error::ComparatorPanicked { .. }
        | Error::CalledFromComparator => "ComparatorError",
        Error::ForeignBatch
        | Error::ForeignSnapshot
        | Error::KeyTooLong { .. }
        | Error::ValueTooLong { .. }
        | Error::BatchTooLarge { .. }
        | Error::DefaultKeyspace
        | Error::InvalidKeyspaceName { .. }
        | Error::InvalidOption { .. }
        | Error::NotSorted { .. } => "InvalidArgumentError",
        Error::KeyspaceDropped { .. }
        | Error::UnknownKeyspace { .. }
        | Error::KeyspaceExists { .. } => "KeyspaceError",
        Error::ReadOnly => "ReadOnlyError",
        Error::Halted { .. } => "HaltedError",
        Error::Closed => "ClosedError",
        Error::Internal { .. } => "InternalError",
        _ => "EskerError",
    }
}

/// An exception of the package's.
fn exception<'py>(py: Python<'py>, class: &str, argument: impl IntoPyObject<'py>) -> PyErr {
    let made = || -> PyResult<PyErr> {
        let class = py.import("esker._errors")?.getattr(class)?;
        Ok(PyErr::from_value(class.call1((argument,))?))
    };
    made().unwrap_or_else(|e| e)
}

impl From<Fail> for PyErr {
    fn from(fail: Fail) -> PyErr {
        Python::attach(|py| match fail {
            Fail::Python(e) => e,
            Fail::Engine(e) => {
                let made = exception(py, class(&e), e.to_string());
                if let Error::Io { source, .. } = &e
                    && let Some(number) = source.raw_os_error()
                {
                    let _ = made.value(py).setattr("errno", number);
                }
                made
            }
            Fail::Closed(what) => exception(py, "ClosedError", format!("the {what} is closed")),
            Fail::Forked => exception(
                py,
                "ClosedError",
                "the store was opened before this process was forked, and is its parent's; open it in one process only",
            ),
            Fail::Invalid(what) => exception(py, "InvalidArgumentError", what),
            Fail::NotFound(key) => exception(py, "NotFoundError", PyBytes::new(py, &key)),
            Fail::Memory => PyMemoryError::new_err(()),
        })
    }
}

/// What is no bytes.
pub fn no_bytes(what: &Bound<'_, PyAny>) -> PyErr {
    let name = what.get_type().name().map(|n| n.to_string()).unwrap_or_default();
    PyTypeError::new_err(format!("keys and values are bytes-like objects, not {name}"))
}

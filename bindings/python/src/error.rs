//! Errors as the exceptions of `python/esker/_errors.py`.

use esker::Error;
use pyo3::exceptions::{PyBaseException, PyMemoryError, PyTypeError};
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

/// What an `OSError` has beside its message.
fn as_os_error(made: &Bound<'_, PyBaseException>, e: &Error) -> PyResult<()> {
    let (Error::Io { path, .. } | Error::DirectoryMoved { path }) = e else { return Ok(()) };
    made.setattr("filename", path.as_os_str())?;
    if let Some(number) = e.os_code() {
        made.setattr("errno", number)?;
        let text = made.py().import("os")?.call_method1("strerror", (number,))?;
        made.setattr("strerror", text)?;
    }
    Ok(())
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
                // Without them it is still the right exception, with its message.
                let _ = as_os_error(made.value(py), &e);
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

//! Checking stores, saving what is intact, and removing them.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;

use esker::{Db, Finding, Options, VerifyReport};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::{Fail, Outcome};
use crate::options;

/// Runs a verification with the program's `progress(done, total)`, and looks for Ctrl-C.
///
/// The engine's call cannot be stopped by an answer; it can by a panic, which it lets through.
pub fn verifying(
    py: Python<'_>,
    progress: Option<Py<PyAny>>,
    run: impl FnOnce(&mut dyn FnMut(u64, u64)) -> esker::Result<VerifyReport> + Send,
) -> Outcome<Bound<'_, PyDict>> {
    let found = crate::wait::detach(py, || {
        let mut tell = |done: u64, total: u64| {
            let told = match &progress {
                Some(progress) => crate::wait::attach(|py| {
                    py.check_signals()?;
                    progress.call1(py, (done, total)).map(drop)
                }),
                // Ctrl-C is the main thread's. Others do without the lock where that would stop them.
                None => crate::wait::attach_or_go_on(|py| py.check_signals()).unwrap_or(Ok(())),
            };
            if let Err(e) = told {
                resume_unwind(Box::new(e));
            }
        };
        match catch_unwind(AssertUnwindSafe(|| run(&mut tell))) {
            Ok(found) => found.map_err(Fail::from),
            Err(panic) => match panic.downcast::<PyErr>() {
                Ok(e) => Err(Fail::Python(*e)),
                Err(panic) => resume_unwind(panic),
            },
        }
    })?;
    let d = PyDict::new(py);
    d.set_item("files", found.files)?;
    d.set_item("bytes", found.bytes)?;
    d.set_item("entries", found.entries)?;
    d.set_item("problems", told(&found.problems))?;
    Ok(d)
}

fn told(findings: &[Finding]) -> Vec<String> {
    findings.iter().map(Finding::to_string).collect()
}

#[pyfunction]
#[pyo3(signature = (path, *, progress=None))]
pub fn verify(
    py: Python<'_>,
    path: PathBuf,
    progress: Option<Py<PyAny>>,
) -> Outcome<Bound<'_, PyDict>> {
    let o = Options::new();
    verifying(py, progress, |tell| o.verify_with(&path, tell))
}

#[pyfunction]
#[pyo3(signature = (path, *, compression="lz4", block_size=None, order=None))]
pub fn repair<'py>(
    py: Python<'py>,
    path: PathBuf,
    compression: &str,
    block_size: Option<usize>,
    order: Option<&str>,
) -> Outcome<Bound<'py, PyDict>> {
    let mut o = Options::new().compression(options::compression(compression)?);
    if let Some(bytes) = block_size {
        o = o.block_size(bytes);
    }
    if let Some(name) = order {
        o = o.comparator(options::order(name)?);
    }
    let done = crate::wait::detach(py, || o.repair(&path))?;
    let d = PyDict::new(py);
    d.set_item("changed", done.changed)?;
    d.set_item("tables", done.tables)?;
    d.set_item("entries", done.entries)?;
    d.set_item("problems", told(&done.problems))?;
    d.set_item("lost", told(&done.lost))?;
    d.set_item("unchecked", told(&done.unchecked))?;
    Ok(d)
}

#[pyfunction]
pub fn destroy(py: Python<'_>, path: PathBuf) -> Outcome<()> {
    Ok(crate::wait::detach(py, || Db::destroy(&path))?)
}

/// Panics where the library runs, for the tests.
#[pyfunction]
pub fn _panic(py: Python<'_>) -> Outcome<()> {
    crate::wait::detach(py, || panic!("for the tests"))
}

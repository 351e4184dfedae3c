//! Handles in a forked child. The store's threads are not there and its files are the parent's, so the child may neither use
//! a handle nor close it: it leaves it alone.

use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::prelude::*;

use crate::error::Fail;

/// How many forks this process is away from the first.
static FORKS: AtomicU64 = AtomicU64::new(0);

#[pyfunction]
fn after_fork_in_child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
    crate::wait::forked();
}

/// Asks Python to say when it has forked.
pub fn watch(m: &Bound<'_, PyModule>) -> PyResult<()> {
    let told = wrap_pyfunction!(after_fork_in_child, m)?;
    let kwargs = pyo3::types::PyDict::new(m.py());
    kwargs.set_item("after_in_child", told)?;
    m.py().import("os")?.call_method("register_at_fork", (), Some(&kwargs))?;
    Ok(())
}

/// Something of an open store's, for the process that made it.
pub struct Own<T> {
    forks: u64,
    held: ManuallyDrop<T>,
}

impl<T> Own<T> {
    pub fn new(held: T) -> Own<T> {
        Own { forks: FORKS.load(Ordering::Relaxed), held: ManuallyDrop::new(held) }
    }

    fn is_here(&self) -> bool {
        self.forks == FORKS.load(Ordering::Relaxed)
    }

    /// What it is, unless this is a child of the process that made it.
    pub fn get(&self) -> Result<&T, Fail> {
        if self.is_here() { Ok(&self.held) } else { Err(Fail::Forked) }
    }

    /// As [`Own::get`], to change it.
    pub fn get_mut(&mut self) -> Result<&mut T, Fail> {
        if self.is_here() { Ok(&mut self.held) } else { Err(Fail::Forked) }
    }
}

impl<T> Drop for Own<T> {
    fn drop(&mut self) {
        if self.is_here() {
            // SAFETY: nobody uses it after this.
            unsafe { ManuallyDrop::drop(&mut self.held) }
        }
    }
}

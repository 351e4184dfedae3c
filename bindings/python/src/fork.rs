//! Handles in a forked child. The store's threads are not there and its files are the parent's, so the child may neither use
//! a handle nor close it: it leaves it alone.

use std::mem::ManuallyDrop;

use pyo3::prelude::*;

use crate::error::Fail;

#[pyfunction]
fn after_fork_in_child() {
    crate::wait::forked();
}

/// Asks Python to say when it has forked, for what concerns the interpreter.
pub fn watch(m: &Bound<'_, PyModule>) -> PyResult<()> {
    let told = wrap_pyfunction!(after_fork_in_child, m)?;
    let kwargs = pyo3::types::PyDict::new(m.py());
    kwargs.set_item("after_in_child", told)?;
    m.py().import("os")?.call_method("register_at_fork", (), Some(&kwargs))?;
    Ok(())
}

/// Something of an open store's, for the process that made it. The library counts the forks, those that C makes too.
///
/// It is dropped without the interpreter's lock: the last handle closes its store, and what others hold as a walk does keeps files, which
/// are removed then.
pub struct Own<T: Send> {
    forks: u32,
    held: ManuallyDrop<T>,
}

impl<T: Send> Own<T> {
    pub fn new(held: T) -> Own<T> {
        Own { forks: esker::forks(), held: ManuallyDrop::new(held) }
    }

    fn is_here(&self) -> bool {
        self.forks == esker::forks()
    }

    /// What it is, unless this is a child of the process that made it.
    pub fn get(&self) -> Result<&T, Fail> {
        if self.is_here() { Ok(&self.held) } else { Err(Fail::Forked) }
    }
}

impl<T: Send> Drop for Own<T> {
    fn drop(&mut self) {
        if !self.is_here() {
            return;
        }
        // SAFETY: nobody uses it after this.
        let held = unsafe { ManuallyDrop::take(&mut self.held) };
        // At the very end of the interpreter there is nothing to let go: it is dropped with the closure.
        let dropped = Python::try_attach(|py| {
            crate::wait::detach(py, || {
                drop(held);
                Ok::<_, esker::Error>(())
            })
        });
        // There is nobody to tell.
        drop(dropped);
    }
}

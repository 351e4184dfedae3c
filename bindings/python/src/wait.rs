//! Calls that may wait, without the interpreter's lock; and the end of the interpreter.
//!
//! A daemon thread may be in such a call when the interpreter ends. Python would end it where it asks for the lock again, by unwinding
//! through frames of ours, which aborts the process. So such threads are stopped here, for good, before they ask.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use pyo3::prelude::*;

static WAITING: AtomicUsize = AtomicUsize::new(0);
static ENDING: AtomicBool = AtomicBool::new(false);
thread_local! {
    /// How many calls this thread is in, where it has the interpreter's lock again.
    static WITHIN: Cell<usize> = const { Cell::new(0) };
    /// Whether this is the thread that ends the interpreter, which goes on.
    static LAST: Cell<bool> = const { Cell::new(false) };
}

fn is_stopped() -> bool {
    ENDING.load(Ordering::SeqCst) && !LAST.get()
}

fn stop_if_ending() {
    if is_stopped() {
        WAITING.fetch_sub(1, Ordering::SeqCst);
        loop {
            thread::park();
        }
    }
}

/// Runs something without the interpreter's lock.
pub fn detach<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> T {
    WAITING.fetch_add(1, Ordering::SeqCst);
    let done = py.detach(|| {
        stop_if_ending();
        let done = work();
        stop_if_ending();
        done
    });
    WAITING.fetch_sub(1, Ordering::SeqCst);
    done
}

/// Takes the interpreter's lock again, within `detach`.
pub fn attach<T>(work: impl FnOnce(Python<'_>) -> T) -> T {
    struct Within;
    impl Drop for Within {
        fn drop(&mut self) {
            WITHIN.set(WITHIN.get() - 1);
        }
    }
    stop_if_ending();
    Python::attach(|py| {
        WITHIN.set(WITHIN.get() + 1);
        let _within = Within;
        work(py)
    })
}

/// Leaves out, in a forked child, the calls of threads that are not there: nobody will be stopped in them. The thread that forked
/// may be in some itself, from which it comes back. Nor is the child at its end, where another thread was ending the interpreter.
pub fn forked() {
    WAITING.store(WITHIN.get(), Ordering::SeqCst);
    ENDING.store(LAST.get(), Ordering::SeqCst);
}

/// Waits for other threads to come to where they are stopped, for ten seconds at most.
#[pyfunction]
fn at_exit(py: Python<'_>) {
    LAST.set(true);
    ENDING.store(true, Ordering::SeqCst);
    let until = Instant::now() + Duration::from_secs(10);
    py.detach(|| {
        while WAITING.load(Ordering::SeqCst) > 0 && Instant::now() < until {
            thread::sleep(Duration::from_millis(1));
        }
    });
}

/// Asks Python to say when it ends.
pub fn watch(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.py().import("atexit")?.call_method1("register", (wrap_pyfunction!(at_exit, m)?,))?;
    Ok(())
}

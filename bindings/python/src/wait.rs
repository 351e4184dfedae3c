//! Calls that may wait, without the interpreter's lock; and the end of the interpreter.
//!
//! A daemon thread may be in such a call when the interpreter ends. Python would end it where it asks for the lock again, by unwinding
//! through frames of ours, which aborts the process. So who is in a call then comes back while the others wait for it; one that takes
//! too long, or wants the lock for the program's code, is stopped, for good, before it asks. Nobody gives the lock up from then on:
//! programs have handlers that run later, and may wait for threads that use a store.

use std::cell::Cell;
use std::ffi::CString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use esker::Error;
use pyo3::exceptions::PyRuntimeWarning;
use pyo3::prelude::*;

/// Threads in calls, those that are stopped left out.
static WAITING: AtomicUsize = AtomicUsize::new(0);
/// Those among them that ask for the interpreter's lock.
static RETURNING: AtomicUsize = AtomicUsize::new(0);
/// The interpreter is about to end.
static ENDING: AtomicBool = AtomicBool::new(false);
/// Nobody is waited for any more.
static ENDED: AtomicBool = AtomicBool::new(false);
/// The process that these are of, by the library's count of forks.
static FORKS: AtomicU32 = AtomicU32::new(0);
thread_local! {
    /// How many calls this thread is in, where it has the interpreter's lock again.
    static WITHIN: Cell<usize> = const { Cell::new(0) };
    /// Whether this is the thread that ends the interpreter, which goes on.
    static LAST: Cell<bool> = const { Cell::new(false) };
    /// Whether this thread is in a call and has kept the interpreter's lock.
    static KEPT: Cell<bool> = const { Cell::new(false) };
}

/// A number that is one more for a while, also where that ends in a panic.
struct Counted(&'static AtomicUsize);

impl Counted {
    fn new(number: &'static AtomicUsize) -> Counted {
        number.fetch_add(1, Ordering::SeqCst);
        Counted(number)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        decrement(self.0);
    }
}

/// Not below none: of a forked child's calls one may have been left out.
fn decrement(number: &AtomicUsize) {
    let _ = number.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1));
}

fn is_ending() -> bool {
    ENDING.load(Ordering::SeqCst) && !LAST.get()
}

/// Stops this thread, which is in a call and does not have the interpreter's lock.
fn stop() -> ! {
    decrement(&WAITING);
    loop {
        thread::park();
    }
}

/// Runs something without the interpreter's lock. A panic of the library's is an error, as the other bindings have it.
pub fn detach<T: Send, E: From<Error> + Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, E> + Send,
) -> Result<T, E> {
    notice_fork();
    let work = || catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(bug(panic)));
    if is_ending() {
        let before = KEPT.replace(true);
        let done = work();
        KEPT.set(before);
        return done;
    }
    let _waiting = Counted::new(&WAITING);
    let (done, _returning) = py.detach(|| {
        let done = work();
        let returning = Counted::new(&RETURNING);
        if ENDED.load(Ordering::SeqCst) && !LAST.get() {
            drop(returning);
            stop();
        }
        (done, returning)
    });
    done
}

fn bug<E: From<Error>>(panic: Box<dyn std::any::Any + Send>) -> E {
    let what = match panic.downcast::<String>() {
        Ok(text) => *text,
        Err(panic) => panic.downcast::<&str>().map_or("a panic".into(), |text| text.to_string()),
    };
    Error::Internal { what }.into()
}

/// Takes the interpreter's lock again, within `detach`, for the program's code.
pub fn attach<T>(work: impl FnOnce(Python<'_>) -> T) -> T {
    if let Some(done) = attach_or_go_on(work) {
        return done;
    }
    if KEPT.get() {
        // Python may take the lock away from the program's code, and end the thread there, with our frames below.
        Python::attach(|py| {
            py.detach(|| {
                WAITING.fetch_add(1, Ordering::SeqCst);
                stop()
            })
        })
    }
    stop()
}

/// As [`attach`], for what may be left out: it is where `attach` would stop the thread.
pub fn attach_or_go_on<T>(work: impl FnOnce(Python<'_>) -> T) -> Option<T> {
    struct Within;
    impl Drop for Within {
        fn drop(&mut self) {
            WITHIN.set(WITHIN.get() - 1);
        }
    }
    if is_ending() {
        return None;
    }
    Python::attach(|py| {
        WITHIN.set(WITHIN.get() + 1);
        let _within = Within;
        let done = work(py);
        notice_fork();
        Some(done)
    })
}

/// Leaves out, in a forked child, the calls of threads that are not there: nobody will be stopped in them. The thread that forked
/// may be in some itself, from which it comes back. Nor is the child at its end, where another thread was ending the interpreter.
pub fn forked() {
    FORKS.store(esker::forks(), Ordering::SeqCst);
    WAITING.store(WITHIN.get(), Ordering::SeqCst);
    RETURNING.store(0, Ordering::SeqCst);
    ENDING.store(LAST.get(), Ordering::SeqCst);
    ENDED.store(LAST.get(), Ordering::SeqCst);
}

/// Learns of a fork that C made, of which Python says nothing. The caller has the interpreter's lock.
fn notice_fork() {
    if FORKS.load(Ordering::SeqCst) != esker::forks() {
        forked();
    }
}

/// Waits for other threads to come back from their calls or to where they are stopped, for ten seconds at most; and for them to
/// get the lock, no longer than that either. Warns of calls that took longer.
#[pyfunction]
fn at_exit(py: Python<'_>) -> PyResult<()> {
    notice_fork();
    LAST.set(true);
    ENDING.store(true, Ordering::SeqCst);
    let wait_for_none = |number: &AtomicUsize| {
        let until = Instant::now() + Duration::from_secs(10);
        while number.load(Ordering::SeqCst) > 0 && Instant::now() < until {
            thread::sleep(Duration::from_millis(1));
        }
        number.load(Ordering::SeqCst)
    };
    let left = py.detach(|| {
        let left = wait_for_none(&WAITING);
        ENDED.store(true, Ordering::SeqCst);
        // They get the lock now, or are stopped.
        wait_for_none(&RETURNING);
        left
    });
    if left == 0 {
        return Ok(());
    }
    let warning = CString::new(format!(
        "the interpreter ends beside calls of Esker ({left}) that took more than ten seconds"
    ))?;
    PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), &warning, 1)
}

/// Asks Python to say when it ends.
pub fn watch(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.py().import("atexit")?.call_method1("register", (wrap_pyfunction!(at_exit, m)?,))?;
    Ok(())
}

//! Panics that a scenario injects, and those that nobody injected: each of these, in whatever thread,
//! fails the round.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

use super::tally::{Of, count};

const INJECTED: &str = "injected: ";

thread_local! {
    static EXPECTED: Cell<bool> = const { Cell::new(false) };
}

static UNEXPECTED: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Watches all threads of this process.
pub fn watch() {
    std::panic::set_hook(Box::new(|info| {
        let what = info.payload_as_str().unwrap_or("no text");
        if what.starts_with(INJECTED) || EXPECTED.get() {
            return;
        }
        let thread = std::thread::current();
        let text = format!("thread {:?}: {info}", thread.name().unwrap_or("without a name"));
        if let Ok(mut all) = UNEXPECTED.lock()
            && all.len() < 5
        {
            eprintln!("{text}");
            all.push(text);
        }
    }));
}

/// The first panic that nobody injected.
pub fn none_unexpected() -> Result<(), String> {
    match UNEXPECTED.lock().map_err(|e| e.to_string())?.first() {
        None => Ok(()),
        Some(first) => Err(format!("a panic that nobody injected: {first}")),
    }
}

/// What user code does to the store here.
pub fn inject(what: &str) -> ! {
    count(Of::Panics, 1);
    panic!("{INJECTED}{what}");
}

/// Calls what may end with a panic that was injected: `None` when it did.
pub fn caught<T>(call: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(call)).ok()
}

/// Calls what may refuse by a panic of its own.
pub fn refusing<T>(call: impl FnOnce() -> T) -> Option<T> {
    EXPECTED.set(true);
    let result = caught(call);
    EXPECTED.set(false);
    result
}

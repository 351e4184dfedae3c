//! Checking stores, saving what is intact, and removing them.

use std::ffi::{c_char, c_int, c_void};
use std::fmt::Write as _;
use std::panic::resume_unwind;

use esker::{Db, Options, RepairReport, VerifyReport};

use crate::db::esker_db;
use crate::error::{Failure, esker_code, esker_error};
use crate::ffi::{self, Outcome, call, set, shared};
use crate::options::esker_options;
use crate::text::esker_string;

use esker_code::*;

/// Told how far a call is, in bytes done and in all. Returns 0 to go on; anything else stops the call,
/// which then gives ESKER_ABORTED. It may use the store; it may not throw or longjmp.
pub type esker_progress =
    Option<unsafe extern "C" fn(state: *mut c_void, done: u64, total: u64) -> c_int>;

/// Progress as the engine wants it. The engine's call cannot be stopped by an answer; it can by a
/// panic, which it lets through, and which ends where every panic does.
fn teller(progress: esker_progress, state: *mut c_void) -> impl FnMut(u64, u64) {
    move |done, total| {
        let Some(progress) = progress else { return };
        // SAFETY: the caller vouches for the function.
        if unsafe { progress(state, done, total) } != 0 {
            resume_unwind(Box::new(Failure::stopped("progress")));
        }
    }
}

/// Options, or the defaults.
///
/// # Safety
/// `options` is NULL or open.
unsafe fn given_or_default(options: *const esker_options) -> Result<Options, Failure> {
    if options.is_null() {
        return Ok(Options::new());
    }
    // SAFETY: the caller's.
    unsafe { shared(options).cloned() }
}

/// Reads and checks the tables of an open store and what they refer to: checksums, order, counts, references.
/// ESKER_OK when it is sound; ESKER_CORRUPTION when it is not, with an error that has the first problem.
///
/// `progress` may be NULL; stopping does no harm. *report, which may be NULL, is text for people: a
/// line of figures, then a line for each problem. It is the caller's (esker_string_free), also with
/// ESKER_CORRUPTION.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_db_verify(
    db: *const esker_db,
    progress: esker_progress,
    state: *mut c_void,
    report: *mut esker_string,
    error: *mut *mut esker_error,
) -> esker_code {
    // SAFETY: the caller keeps the rules of the header.
    unsafe {
        call(error, || {
            set(report, esker_string::NONE);
            // A handle of its own: the callback may close the one that was passed.
            let db = shared(db)?.clone();
            let found = db.verify_with(teller(progress, state))?;
            verified(&found, report)
        })
    }
}

/// As esker_db_verify, of a store that is not open for writing, however damaged it is. Changes nothing.
/// Of `options`, which may be NULL, it takes the comparators; a keyspace whose comparator is missing
/// counts as a problem.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_verify(
    path: *const c_char,
    options: *const esker_options,
    progress: esker_progress,
    state: *mut c_void,
    report: *mut esker_string,
    error: *mut *mut esker_error,
) -> esker_code {
    // SAFETY: the caller keeps the rules of the header.
    unsafe {
        call(error, || {
            set(report, esker_string::NONE);
            let path = ffi::path(path)?;
            let options = given_or_default(options)?;
            verified(&options.verify_with(path, teller(progress, state))?, report)
        })
    }
}

/// Hands a report out.
///
/// # Safety
/// `report` is NULL or can be written.
unsafe fn verified(found: &VerifyReport, report: *mut esker_string) -> Outcome {
    if !report.is_null() {
        let mut text = format!(
            "{} files, {} bytes, {} entries, {} problems\n",
            found.files,
            found.bytes,
            found.entries,
            found.problems.len()
        );
        list(&mut text, "problem", &found.problems);
        // SAFETY: the caller's.
        unsafe { set(report, esker_string::new(text)) };
    }
    match &found.problems[..] {
        [] => Ok(ESKER_OK),
        [one] => Err(Failure::Caller(ESKER_CORRUPTION, one.to_string())),
        [first, more @ ..] => {
            let what = format!("{first} (and {} more problems)", more.len());
            Err(Failure::Caller(ESKER_CORRUPTION, what))
        }
    }
}

/// A line for each finding.
fn list(text: &mut String, label: &str, findings: &[esker::Finding]) {
    for finding in findings {
        let _ = writeln!(text, "{label}: {finding}");
    }
}

/// Saves what is intact of a damaged store that is not open, and makes it open again; a sound one stays
/// as it is. Of `options`, which may be NULL, it takes the comparators, and for what it writes block
/// size and compression.
///
/// *report, which may be NULL, is text for people: a line that begins "sound" or "repaired", then a
/// line for each problem, each loss ("lost: ...") and each thing that was not checked for want of a
/// comparator. It is the caller's (esker_string_free). ESKER_OK also when something was lost: damaged
/// files are kept under `lost/` in the store. After an error the store is as it was, or repaired.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_repair(
    path: *const c_char,
    options: *const esker_options,
    report: *mut esker_string,
    error: *mut *mut esker_error,
) -> esker_code {
    // SAFETY: the caller keeps the rules of the header.
    unsafe {
        call(error, || {
            set(report, esker_string::NONE);
            let path = ffi::path(path)?;
            let done = given_or_default(options)?.repair(path)?;
            if !report.is_null() {
                report.write(esker_string::new(told(&done)));
            }
            Ok(ESKER_OK)
        })
    }
}

fn told(done: &RepairReport) -> String {
    let what = if done.changed { "repaired" } else { "sound" };
    let mut text = format!(
        "{what}: {} tables, {} entries, {} lost\n",
        done.tables,
        done.entries,
        done.lost.len()
    );
    list(&mut text, "problem", &done.problems);
    list(&mut text, "lost", &done.lost);
    list(&mut text, "unchecked", &done.unchecked);
    text
}

/// Removes the store in the directory `path`, which must not be open: all its files, and the directory
/// when nothing else is in it. ESKER_OK also when nothing is there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_destroy(
    path: *const c_char,
    error: *mut *mut esker_error,
) -> esker_code {
    // SAFETY: the caller keeps the rules of the header.
    unsafe {
        call(error, || {
            Db::destroy(ffi::path(path)?)?;
            Ok(ESKER_OK)
        })
    }
}

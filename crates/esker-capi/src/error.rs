//! Codes and error objects.

use std::any::Any;
use std::ffi::{CString, c_char, c_int};
use std::fmt;

use esker::Error;

use crate::ffi::{self, Kind};

/// What a call came to. ESKER_OK and ESKER_NOT_FOUND are answers, all others are errors. Later versions
/// may add codes.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum esker_code {
    /// It was done.
    ESKER_OK = 0,
    /// There is no such key, property, or entry beyond. An answer: no error object comes with it.
    ESKER_NOT_FOUND = 1,
    /// An argument that cannot be: NULL where that is not allowed, a handle of another kind, an option
    /// out of range, a key or value too long, keys out of order in a bulk load, a batch or snapshot of
    /// another store, a name that is none.
    ESKER_INVALID_ARGUMENT = 2,
    /// The operating system refused a call, or the disk is full, or the store's directory was moved.
    ESKER_IO = 3,
    /// Stored bytes are not what was written.
    ESKER_CORRUPTION = 4,
    /// The directory holds no store.
    ESKER_NOT_A_STORE = 5,
    /// The directory holds a store of LevelDB, RocksDB or another of that family, or some of its files.
    ESKER_FOREIGN_STORE = 6,
    /// A store is there, and error_if_exists was asked for.
    ESKER_STORE_EXISTS = 7,
    /// The store is open elsewhere, in this process or another.
    ESKER_LOCKED = 8,
    /// The store was written in a format or with a compression that this build does not have.
    ESKER_UNSUPPORTED = 9,
    /// A comparator is missing or is another than the keyspace was made with, could not compare, or
    /// called the store.
    ESKER_COMPARATOR = 10,
    /// A keyspace of that name exists, or is missing, or the one of the handle was dropped.
    ESKER_KEYSPACE = 11,
    /// A write to a store that was opened read-only, or to a keyspace as a snapshot sees it.
    ESKER_READ_ONLY = 12,
    /// An earlier failure stopped all writes; reads go on. Remove the cause, then call esker_db_resume.
    ESKER_HALTED = 13,
    /// The store was closed.
    ESKER_CLOSED = 14,
    /// A callback said stop.
    ESKER_ABORTED = 15,
    /// A bug in Esker, which is to be reported. The call had no effect that can be relied on.
    ESKER_INTERNAL = 16,
}

use esker_code::*;

/// Any code as a number: callers may pass one that does not exist.
pub type esker_code_arg = i32;

const NAMES: [(esker_code, &std::ffi::CStr); 17] = [
    (ESKER_OK, c"ok"),
    (ESKER_NOT_FOUND, c"not found"),
    (ESKER_INVALID_ARGUMENT, c"invalid argument"),
    (ESKER_IO, c"io"),
    (ESKER_CORRUPTION, c"corruption"),
    (ESKER_NOT_A_STORE, c"not a store"),
    (ESKER_FOREIGN_STORE, c"foreign store"),
    (ESKER_STORE_EXISTS, c"store exists"),
    (ESKER_LOCKED, c"locked"),
    (ESKER_UNSUPPORTED, c"unsupported"),
    (ESKER_COMPARATOR, c"comparator"),
    (ESKER_KEYSPACE, c"keyspace"),
    (ESKER_READ_ONLY, c"read only"),
    (ESKER_HALTED, c"halted"),
    (ESKER_CLOSED, c"closed"),
    (ESKER_ABORTED, c"aborted"),
    (ESKER_INTERNAL, c"internal"),
];

/// Why a call did not do what it was asked for.
pub(crate) enum Failure {
    /// The engine said so.
    Engine(Error),
    /// This crate did, of what the caller passed or told it.
    Caller(esker_code, String),
}

impl Failure {
    /// An argument that cannot be.
    #[cold]
    pub(crate) fn invalid(why: impl Into<String>) -> Failure {
        Failure::Caller(ESKER_INVALID_ARGUMENT, why.into())
    }

    /// An argument that must not be NULL.
    #[cold]
    pub(crate) fn null(name: &str) -> Failure {
        Failure::invalid(format!("{name} is NULL"))
    }

    /// A callback of the caller's said stop.
    pub(crate) fn stopped(callback: &str) -> Failure {
        Failure::Caller(ESKER_ABORTED, format!("{callback} said stop"))
    }

    /// What a panic was about: a callback that stopped a call from within it, or a bug.
    pub(crate) fn from_panic(panic: Box<dyn Any + Send>) -> Failure {
        match panic.downcast::<Failure>() {
            Ok(failure) => *failure,
            Err(panic) => {
                let what = panic.downcast_ref::<String>().cloned();
                let what = what.or_else(|| panic.downcast_ref::<&str>().map(|s| s.to_string()));
                // A bug leaks a word or two: dropping what it threw might panic again.
                std::mem::forget(panic);
                let what = what.unwrap_or_else(|| "a panic that says nothing".to_string());
                Failure::Engine(Error::Internal { what })
            }
        }
    }

    /// The number that the operating system has for it; 0 for none.
    fn os_code(&self) -> i32 {
        match self {
            Failure::Engine(e) => e.os_code().unwrap_or(0),
            Failure::Caller(..) => 0,
        }
    }

    /// Its code.
    pub(crate) fn code(&self) -> esker_code {
        match self {
            Failure::Engine(e) => code_of(e),
            Failure::Caller(code, _) => *code,
        }
    }
}

impl From<Error> for Failure {
    fn from(e: Error) -> Failure {
        Failure::Engine(e)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Engine(e) => e.fmt(f),
            Failure::Caller(_, what) => f.write_str(what),
        }
    }
}

/// The code of an error of the engine's.
fn code_of(e: &Error) -> esker_code {
    match e {
        Error::Io { .. } | Error::DirectoryMoved { .. } => ESKER_IO,
        Error::Corruption { .. } => ESKER_CORRUPTION,
        Error::NotAStore { .. } => ESKER_NOT_A_STORE,
        Error::ForeignStore { .. } => ESKER_FOREIGN_STORE,
        Error::StoreExists { .. } => ESKER_STORE_EXISTS,
        Error::Locked { .. } => ESKER_LOCKED,
        Error::UnsupportedFormat { .. }
        | Error::NoZstd { .. }
        | Error::UnsupportedCompression { .. } => ESKER_UNSUPPORTED,
        Error::ComparatorMissing { .. }
        | Error::ComparatorMismatch { .. }
        | Error::ComparatorPanicked { .. }
        | Error::CalledFromComparator => ESKER_COMPARATOR,
        Error::ForeignBatch
        | Error::ForeignSnapshot
        | Error::KeyTooLong { .. }
        | Error::ValueTooLong { .. }
        | Error::BatchTooLarge { .. }
        | Error::DefaultKeyspace
        | Error::InvalidKeyspaceName { .. }
        | Error::InvalidOption { .. }
        | Error::NotSorted { .. } => ESKER_INVALID_ARGUMENT,
        Error::KeyspaceDropped { .. }
        | Error::UnknownKeyspace { .. }
        | Error::KeyspaceExists { .. } => ESKER_KEYSPACE,
        Error::ReadOnly => ESKER_READ_ONLY,
        Error::Halted { .. } => ESKER_HALTED,
        Error::Closed => ESKER_CLOSED,
        // `Internal`, and what a later engine adds: a test fails until it has its place here.
        _ => ESKER_INTERNAL,
    }
}

/// Why a call failed. It is the caller's, given back with esker_error_free.
pub struct esker_error(());

/// What an error object holds.
pub(crate) struct ErrorState {
    code: esker_code,
    os_code: i32,
    message: CString,
}

impl Kind for esker_error {
    type State = ErrorState;
    const MARK: u64 = u64::from_ne_bytes(*b"esker-er");
    const NAME: &'static str = "esker_error";
}

/// Gives the caller the error object, if asked for one, and the code.
///
/// # Safety
/// `error` is NULL or can be written.
#[cold]
pub(crate) unsafe fn report(failure: Failure, error: *mut *mut esker_error) -> esker_code {
    let (code, os_code) = (failure.code(), failure.os_code());
    if !error.is_null() {
        let message = CString::new(failure.to_string().replace('\0', "\u{fffd}"));
        let message = message.unwrap_or_default();
        // SAFETY: the caller's.
        unsafe { error.write(ffi::hand_out(ErrorState { code, os_code, message })) };
    }
    code
}

/// The version of the library, as "0.1.0". Static.
#[unsafe(no_mangle)]
pub extern "C" fn esker_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

/// The name of a code in lower case, as "corruption"; "unknown" for a number that is no code. Static.
#[unsafe(no_mangle)]
pub extern "C" fn esker_code_name(code: esker_code_arg) -> *const c_char {
    let known = NAMES.iter().find(|(known, _)| *known as i32 == code);
    known.map_or(c"unknown", |(_, name)| name).as_ptr()
}

/// The code that the call returned with this error; ESKER_OK for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_error_code(error: *const esker_error) -> esker_code {
    // SAFETY: the caller keeps the rules of the header.
    unsafe { ffi::shared(error).map_or(ESKER_OK, |error| error.code) }
}

/// The operating system's number (errno) of an error with ESKER_IO, and of the one that stopped writes
/// (ESKER_HALTED); 0 when there is none, and for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_error_os_code(error: *const esker_error) -> c_int {
    // SAFETY: the caller keeps the rules of the header.
    unsafe { ffi::shared(error).map_or(0, |error| error.os_code) }
}

/// What went wrong, where, and the way out: one line in English, NUL-terminated, which lives as long as
/// the error; empty for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_error_message(error: *const esker_error) -> *const c_char {
    // SAFETY: the caller keeps the rules of the header.
    unsafe { ffi::shared(error).map_or(c"".as_ptr(), |error| error.message.as_ptr()) }
}

/// Gives an error back.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_error_free(error: *mut *mut esker_error) {
    // SAFETY: the caller keeps the rules of the header.
    unsafe { ffi::close(error) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::ffi::CStr;
    use std::path::PathBuf;
    use std::sync::Arc;

    use super::*;

    /// Each error of the engine, with the code it is to have.
    fn all() -> Vec<(Error, esker_code)> {
        let (path, keyspace, text) = (PathBuf::from("/store"), "ks".to_string(), String::new);
        let source = Arc::new(std::io::Error::other("no"));
        vec![
            (Error::Io { op: text(), path: path.clone(), source }, ESKER_IO),
            (Error::DirectoryMoved { path: path.clone() }, ESKER_IO),
            (Error::Corruption { path: path.clone(), offset: 7, what: text() }, ESKER_CORRUPTION),
            (Error::NotAStore { path: path.clone() }, ESKER_NOT_A_STORE),
            (Error::ForeignStore { path: path.clone() }, ESKER_FOREIGN_STORE),
            (Error::StoreExists { path: path.clone() }, ESKER_STORE_EXISTS),
            (Error::Locked { path: path.clone(), for_reading: true }, ESKER_LOCKED),
            (
                Error::UnsupportedFormat { path: path.clone(), found: 9, supported: 2 },
                ESKER_UNSUPPORTED,
            ),
            (Error::NoZstd { path }, ESKER_UNSUPPORTED),
            (
                Error::UnsupportedCompression { keyspace: keyspace.clone(), compression: text() },
                ESKER_UNSUPPORTED,
            ),
            (
                Error::ComparatorMissing { keyspace: keyspace.clone(), comparator: text() },
                ESKER_COMPARATOR,
            ),
            (
                Error::ComparatorMismatch {
                    keyspace: keyspace.clone(),
                    stored: text(),
                    given: text(),
                },
                ESKER_COMPARATOR,
            ),
            (
                Error::ComparatorPanicked { keyspace: keyspace.clone(), what: text() },
                ESKER_COMPARATOR,
            ),
            (Error::CalledFromComparator, ESKER_COMPARATOR),
            (Error::ForeignBatch, ESKER_INVALID_ARGUMENT),
            (Error::ForeignSnapshot, ESKER_INVALID_ARGUMENT),
            (Error::KeyTooLong { len: 1 }, ESKER_INVALID_ARGUMENT),
            (Error::ValueTooLong { len: 1 }, ESKER_INVALID_ARGUMENT),
            (Error::BatchTooLarge { len: 1, max: 0 }, ESKER_INVALID_ARGUMENT),
            (Error::DefaultKeyspace, ESKER_INVALID_ARGUMENT),
            (Error::InvalidKeyspaceName { len: 0 }, ESKER_INVALID_ARGUMENT),
            (Error::InvalidOption { option: "memory", why: text() }, ESKER_INVALID_ARGUMENT),
            (Error::NotSorted { position: 3 }, ESKER_INVALID_ARGUMENT),
            (Error::KeyspaceDropped { name: keyspace.clone() }, ESKER_KEYSPACE),
            (Error::UnknownKeyspace { name: keyspace.clone() }, ESKER_KEYSPACE),
            (Error::KeyspaceExists { name: keyspace }, ESKER_KEYSPACE),
            (Error::ReadOnly, ESKER_READ_ONLY),
            (Error::Halted { cause: Arc::new(Error::ReadOnly) }, ESKER_HALTED),
            (Error::Internal { what: text() }, ESKER_INTERNAL),
            (Error::Closed, ESKER_CLOSED),
        ]
    }

    /// The names of the engine's errors, from its source.
    fn declared() -> Vec<String> {
        let text = include_str!("../../esker/src/error.rs");
        let start = text.find("pub enum Error {").unwrap();
        let body = &text[start..start + text[start..].find("\n}").unwrap()];
        let variant = |line: &str| {
            let name = line.strip_prefix("    ")?.split([' ', ',']).next()?;
            name.starts_with(|c: char| c.is_ascii_uppercase()).then(|| name.to_string())
        };
        body.lines().filter_map(variant).collect()
    }

    #[test]
    fn every_error_of_the_engine_has_its_code() {
        let mut codes = BTreeMap::new();
        for (error, code) in all() {
            assert_eq!(code_of(&error), code, "{error:?}");
            let debug = format!("{error:?}");
            let name = debug.split([' ', '(']).next().unwrap().to_string();
            assert!(codes.insert(name, code).is_none(), "{debug} is listed twice");
        }
        let declared = declared();
        assert!(declared.len() >= 30, "{declared:?}");
        for name in &declared {
            assert!(codes.contains_key(name), "{name} has no code: give it one");
        }
        assert_eq!(codes.len(), declared.len());
    }

    #[test]
    fn every_code_has_a_name_of_its_own() {
        for (at, (code, name)) in NAMES.iter().enumerate() {
            assert_eq!(*code as usize, at);
            // SAFETY: static and NUL-terminated.
            assert_eq!(unsafe { CStr::from_ptr(esker_code_name(at as i32)) }, *name);
            assert_eq!(NAMES.iter().filter(|(_, other)| other == name).count(), 1, "{name:?}");
        }
    }

    #[test]
    fn a_panic_is_an_error_with_its_message() {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| {}));
        for (throw, said) in [
            ((|| panic!("said {}", 1)) as fn() -> crate::ffi::Outcome, "a bug in Esker: said 1"),
            (|| panic!("plainly"), "a bug in Esker: plainly"),
            (|| std::panic::panic_any(7), "a bug in Esker: a panic that says nothing"),
        ] {
            let mut error = std::ptr::null_mut();
            // SAFETY: `error` is a variable; the error object is given back.
            unsafe {
                assert_eq!(ffi::call(&mut error, throw), ESKER_INTERNAL);
                assert_eq!(esker_error_code(error), ESKER_INTERNAL);
                let message = CStr::from_ptr(esker_error_message(error)).to_str().unwrap();
                assert_eq!(message, said);
                esker_error_free(&mut error);
                assert!(error.is_null());
                assert_eq!(ffi::call(std::ptr::null_mut(), throw), ESKER_INTERNAL);
            }
        }
        std::panic::set_hook(hook);
    }
}

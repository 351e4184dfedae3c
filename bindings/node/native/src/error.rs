//! Errors with the codes that programs of the Level ecosystem look for.

use std::any::Any;

use esker::Error;
use napi::bindgen_prelude::{JsObjectValue, Object};
use napi::{Env, JsValue};

/// Why a call failed.
#[derive(Debug)]
pub enum Fail {
    /// The engine says so.
    Engine(Error),
    /// The store is not open.
    NotOpen,
    /// The walk is closed.
    WalkClosed,
    /// The snapshot is closed.
    SnapshotClosed,
    /// There is no memory for so many bytes.
    NoMemory(usize),
    /// An argument that cannot be.
    Invalid(String),
    /// A value of so many bytes is longer than strings of JavaScript's can be.
    NoString(usize),
    /// A bug of ours, stopped before it came to Node.
    Panic(String),
}

pub type Outcome<T> = Result<T, Fail>;

impl From<Error> for Fail {
    fn from(e: Error) -> Fail {
        Fail::Engine(e)
    }
}

/// The code of an error of the engine's. Level has no word for those that begin with `ESKER_`.
fn engine_code(e: &Error) -> &'static str {
    match e {
        Error::Io { .. } | Error::DirectoryMoved { .. } => "LEVEL_IO_ERROR",
        Error::Corruption { .. } => "LEVEL_CORRUPTION",
        Error::Locked { .. } => "LEVEL_LOCKED",
        Error::ReadOnly => "LEVEL_READONLY",
        Error::Closed => "LEVEL_DATABASE_NOT_OPEN",
        Error::KeyTooLong { .. } => "LEVEL_INVALID_KEY",
        Error::ValueTooLong { .. } => "LEVEL_INVALID_VALUE",
        Error::ForeignSnapshot => "LEVEL_SNAPSHOT_NOT_OPEN",
        Error::UnsupportedFormat { .. }
        | Error::NoZstd { .. }
        | Error::UnsupportedCompression { .. } => "LEVEL_NOT_SUPPORTED",
        Error::BatchTooLarge { .. } => "ESKER_BATCH_TOO_LARGE",
        Error::NotAStore { .. } => "ESKER_NOT_A_STORE",
        Error::ForeignStore { .. } => "ESKER_FOREIGN_STORE",
        Error::StoreExists { .. } => "ESKER_STORE_EXISTS",
        Error::ComparatorMissing { .. } | Error::ComparatorMismatch { .. } => "ESKER_COMPARATOR",
        Error::InvalidOption { .. } => "ESKER_INVALID_OPTION",
        Error::Halted { .. } => "ESKER_HALTED",
        Error::Internal { .. } => "ESKER_INTERNAL",
        _ => "ESKER_ERROR",
    }
}

impl Fail {
    fn code(&self) -> &'static str {
        match self {
            Fail::Engine(e) => engine_code(e),
            Fail::NotOpen => "LEVEL_DATABASE_NOT_OPEN",
            Fail::WalkClosed => "LEVEL_ITERATOR_NOT_OPEN",
            Fail::SnapshotClosed => "LEVEL_SNAPSHOT_NOT_OPEN",
            Fail::NoMemory(_) => "ESKER_NO_MEMORY",
            Fail::Invalid(_) => "ESKER_INVALID_ARGUMENT",
            Fail::NoString(_) => "LEVEL_DECODE_ERROR",
            Fail::Panic(_) => "ESKER_INTERNAL",
        }
    }

    fn message(&self) -> String {
        match self {
            Fail::Engine(Error::Closed) | Fail::NotOpen => "Database is not open".to_string(),
            Fail::Engine(Error::NotAStore { path }) if !path.exists() => {
                format!("{} does not exist, and createIfMissing is false", path.display())
            }
            Fail::Engine(e) => e.to_string(),
            Fail::WalkClosed => "Iterator is not open".to_string(),
            Fail::SnapshotClosed => "Snapshot is not open".to_string(),
            Fail::NoMemory(bytes) => format!("there is no memory for {bytes} bytes"),
            Fail::Invalid(what) => what.clone(),
            Fail::NoString(bytes) => {
                format!("a value of {bytes} bytes is too long for a string; read it as a buffer")
            }
            Fail::Panic(what) => format!("a bug in Esker: {what}"),
        }
    }

    /// The error as JavaScript's, with its code.
    pub fn into_js(self, env: &Env) -> napi::Error {
        let made = || -> napi::Result<napi::Error> {
            let plain = napi::Error::from_reason(self.message());
            let mut error: Object<'_> = env.create_error(plain)?;
            error.set_named_property("code", self.code())?;
            if let Fail::Engine(e @ Error::Io { .. }) = &self
                && let Some(number) = e.os_code()
            {
                error.set_named_property("errno", number)?;
            }
            Ok(napi::Error::from_unknown_without_coercion(error.to_unknown()))
        };
        made().unwrap_or_else(|e| e)
    }
}

/// What a panic said.
pub fn panicked(panic: &(dyn Any + Send)) -> Fail {
    let what = panic.downcast_ref::<&str>().map(|text| text.to_string());
    let what = what.or_else(|| panic.downcast_ref::<String>().cloned());
    Fail::Panic(what.unwrap_or_else(|| "a panic".to_string()))
}

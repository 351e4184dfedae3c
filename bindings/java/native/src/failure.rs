//! Why calls fail, and what Java is told.

use std::any::Any;
use std::fmt;

use esker::Error;

/// The constants of `EskerException.Code`, in their order.
const CONSTANTS: [&str; 13] = [
    "IO",
    "CORRUPTION",
    "NOT_A_STORE",
    "FOREIGN_STORE",
    "STORE_EXISTS",
    "LOCKED",
    "UNSUPPORTED",
    "COMPARATOR",
    "KEYSPACE",
    "READ_ONLY",
    "HALTED",
    "ABORTED",
    "INTERNAL",
];

/// Why a call did not do what it was asked for.
pub enum Failure {
    /// The engine said so.
    Engine(Error),
    /// An argument that cannot be.
    Invalid(String),
    /// Memory that there is not, in bytes.
    Memory(usize),
    /// An exception is on its way in Java already.
    Thrown,
}

/// What a call gives.
pub type Outcome<T> = Result<T, Failure>;

impl From<Error> for Failure {
    fn from(e: Error) -> Failure {
        Failure::Engine(e)
    }
}

impl Failure {
    /// What a panic was about: a bug.
    pub fn from_panic(panic: Box<dyn Any + Send>) -> Failure {
        let what = panic.downcast_ref::<String>().cloned();
        let what = what.or_else(|| panic.downcast_ref::<&str>().map(|s| s.to_string()));
        // A bug leaks a word or two: dropping what it threw might panic again.
        std::mem::forget(panic);
        Failure::Engine(Error::Internal {
            what: what.unwrap_or_else(|| "a panic that says nothing".to_string()),
        })
    }

    /// The number by which `Native.failure` knows the exception to make: of two of Java's own, or behind them of a constant of
    /// `EskerException.Code`.
    pub fn code(&self) -> i32 {
        const INVALID: i32 = 1;
        const CLOSED: i32 = 2;
        let constant = match self {
            Failure::Invalid(_) => return INVALID,
            Failure::Memory(_) | Failure::Thrown => "INTERNAL",
            Failure::Engine(e) => match e {
                Error::ForeignBatch
                | Error::ForeignSnapshot
                | Error::KeyTooLong { .. }
                | Error::ValueTooLong { .. }
                | Error::BatchTooLarge { .. }
                | Error::DefaultKeyspace
                | Error::InvalidKeyspaceName { .. }
                | Error::InvalidOption { .. }
                | Error::NotSorted { .. } => return INVALID,
                Error::Closed => return CLOSED,
                Error::Io { .. } | Error::DirectoryMoved { .. } => "IO",
                Error::Corruption { .. } => "CORRUPTION",
                Error::NotAStore { .. } => "NOT_A_STORE",
                Error::ForeignStore { .. } => "FOREIGN_STORE",
                Error::StoreExists { .. } => "STORE_EXISTS",
                Error::Locked { .. } => "LOCKED",
                Error::UnsupportedFormat { .. }
                | Error::NoZstd { .. }
                | Error::UnsupportedCompression { .. } => "UNSUPPORTED",
                Error::ComparatorMissing { .. }
                | Error::ComparatorMismatch { .. }
                | Error::ComparatorPanicked { .. }
                | Error::CalledFromComparator => "COMPARATOR",
                Error::KeyspaceDropped { .. }
                | Error::UnknownKeyspace { .. }
                | Error::KeyspaceExists { .. } => "KEYSPACE",
                Error::ReadOnly => "READ_ONLY",
                Error::Halted { .. } => "HALTED",
                // What a later engine adds: a test fails until it has its place here.
                Error::Internal { .. } | _ => "INTERNAL",
            },
        };
        let at = CONSTANTS.iter().position(|c| *c == constant).unwrap_or(CONSTANTS.len() - 1);
        CLOSED + 1 + at as i32
    }

    /// The number that the operating system has for it; 0 for none.
    pub fn os_code(&self) -> i32 {
        match self {
            Failure::Engine(e) => e.os_code().unwrap_or(0),
            _ => 0,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Engine(e) => e.fmt(f),
            Failure::Invalid(what) => f.write_str(what),
            Failure::Memory(bytes) => write!(f, "no memory for {bytes} bytes"),
            Failure::Thrown => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The body of what begins so, up to a line that ends it.
    fn body<'a>(text: &'a str, start: &str, end: &str) -> &'a str {
        let from = text.find(start).expect("there is no such thing") + start.len();
        &text[from..from + text[from..].find(end).expect("it has no end")]
    }

    #[test]
    fn java_has_the_constants_in_this_order() {
        let java = include_str!("../../src/main/java/io/esker/EskerException.java");
        let constants: Vec<&str> = body(java, "public enum Code {", "\n    }")
            .lines()
            .map(|line| line.trim().trim_end_matches(','))
            .filter(|line| {
                !line.is_empty() && line.chars().all(|c| c.is_ascii_uppercase() || c == '_')
            })
            .collect();
        assert_eq!(constants, CONSTANTS);
    }

    #[test]
    fn every_error_of_the_engine_has_its_code() {
        let engine = include_str!("../../../../crates/esker/src/error.rs");
        let here = body(include_str!("failure.rs"), "pub fn code", "fn fmt");
        let mut declared = 0;
        for line in body(engine, "pub enum Error {", "\n}").lines() {
            let Some(name) =
                line.strip_prefix("    ").and_then(|l| l.split([' ', ',', '(']).next())
            else {
                continue;
            };
            if name.starts_with(|c: char| c.is_ascii_uppercase()) {
                declared += 1;
                assert!(
                    here.contains(&format!("Error::{name} "))
                        || here.contains(&format!("Error::{name}\n")),
                    "{name} has no code: give it one"
                );
            }
        }
        assert!(declared >= 30, "{declared} errors were found");
    }

    #[test]
    fn a_panic_is_a_bug_with_its_message() {
        let said = |panic| Failure::from_panic(panic).to_string();
        assert_eq!(said(Box::new("plainly")), "a bug in Esker: plainly");
        assert_eq!(said(Box::new("a text".to_string())), "a bug in Esker: a text");
        assert_eq!(said(Box::new(7)), "a bug in Esker: a panic that says nothing");
        assert_eq!(Failure::from_panic(Box::new(7)).code(), 15);
    }
}

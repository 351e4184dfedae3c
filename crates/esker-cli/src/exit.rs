//! How a command ends: exit codes, and the one line on standard error that says why.
//!
//! | code | meaning |
//! |---|---|
//! | 0 | done; also when the reader of the output went away |
//! | 1 | `get` found no such key; `bench compare`, of the other program, found a figure that is worse |
//! | 2 | wrong usage: flags, arguments, a keyspace that is not there |
//! | 3 | damage, bad input or an I/O error |
//! | 4 | `repair` did its work, and something was lost or could not be checked |

use std::fmt;
use std::io::Write;
use std::process::ExitCode;

use esker::Error;

use crate::screen;

/// Why a command ends before its work is done.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The reader of standard output went away (`| head`): nobody is left to tell.
    ClosedPipe,
    /// What was asked for is not there.
    NotFound(String),
    /// The command was called wrongly.
    Usage(String),
    /// Damaged data, bad input, or the system refused.
    Broken(String),
    /// Done, and not all was saved.
    Lossy(String),
}

pub(crate) type Outcome = Result<(), Failure>;

impl Failure {
    pub fn code(&self) -> u8 {
        match self {
            Failure::ClosedPipe => 0,
            Failure::NotFound(_) => 1,
            Failure::Usage(_) => 2,
            Failure::Broken(_) => 3,
            Failure::Lossy(_) => 4,
        }
    }

    /// Prints the message, if there is one, and returns the exit code.
    pub fn report(&self) -> ExitCode {
        if !matches!(self, Failure::ClosedPipe) {
            complain(&self.to_string());
        }
        ExitCode::from(self.code())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::ClosedPipe => f.write_str("the output was closed"),
            Failure::NotFound(text)
            | Failure::Usage(text)
            | Failure::Broken(text)
            | Failure::Lossy(text) => f.write_str(text),
        }
    }
}

/// Writes one line to standard error, whatever names and bytes are quoted in it. Not `eprintln!`,
/// which panics when that is closed.
pub(crate) fn complain(text: &str) {
    let _ = writeln!(std::io::stderr(), "esker: {}", screen::one_line(text.trim_end()));
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        match &error {
            // The library's hints name its functions; here the way out is a command.
            Error::NotAStore { path } => Failure::Broken(format!(
                "{} is not an Esker store (it has no CURRENT file); check the path; `esker put` and \
                 `esker load` make a store with --create",
                path.display()
            )),
            Error::ForeignStore { path } => Failure::Broken(format!(
                "{} holds files of a store of LevelDB, RocksDB or another of that family, not of Esker; \
                 `esker import` makes a store of one in a new directory",
                path.display()
            )),
            Error::UnknownKeyspace { name } => Failure::Usage(format!(
                "there is no keyspace {name:?}; `esker keyspaces DB` lists those there are, \
                 `esker keyspaces DB create {name}` makes it"
            )),
            Error::Locked { path, .. } => Failure::Broken(format!(
                "{} is held by another process that has the store open; end that first",
                path.display()
            )),
            // What stopped the writes is what has to be dealt with; the next command opens anew.
            Error::Halted { cause } => Failure::from(Error::clone(cause)),
            Error::KeyspaceExists { .. }
            | Error::InvalidOption { .. }
            | Error::KeyTooLong { .. }
            | Error::ValueTooLong { .. }
            | Error::InvalidKeyspaceName { .. }
            | Error::DefaultKeyspace
            | Error::UnsupportedCompression { .. }
            | Error::ComparatorMissing { .. }
            | Error::ComparatorMismatch { .. } => Failure::Usage(error.to_string()),
            _ => Failure::Broken(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn codes_and_hints() {
        let missing = Failure::from(Error::NotAStore { path: "db".into() });
        assert_eq!(missing.code(), 3);
        assert!(missing.to_string().contains("esker load"), "{missing}");
        let unknown = Failure::from(Error::UnknownKeyspace { name: "x".into() });
        assert_eq!(unknown.code(), 2);
        assert!(unknown.to_string().contains("esker keyspaces DB create x"), "{unknown}");
        let damaged = Error::Corruption { path: "t".into(), offset: 7, what: "torn".into() };
        let halted = Failure::from(Error::Halted { cause: Arc::new(damaged) });
        assert_eq!(halted.code(), 3);
        assert!(halted.to_string().starts_with("t is damaged at byte 7: torn"), "{halted}");
    }
}

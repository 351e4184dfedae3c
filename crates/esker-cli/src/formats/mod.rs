//! The formats entries are loaded from and dumped to: [`tsv`], [`csv`], [`jsonl`],
//! [`bin`] and [`dbdump`].
//!
//! Readers and writers stream: what they hold is one entry, whatever the length of the input. They
//! know nothing of the store, so they can be tested and fuzzed alone.

pub mod all;
pub mod bin;
pub mod columns;
pub mod csv;
pub mod dbdump;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzz;
mod input;
pub mod jsonl;
pub mod tsv;

use std::fmt;
use std::io;

/// The longest keys and values a reader lets through, in bytes.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Longest key.
    pub key: usize,
    /// Longest value.
    pub value: usize,
}

impl Limits {
    /// Says what is wrong with the lengths of an entry, if anything.
    fn check(&self, key: u64, value: u64) -> Result<(), String> {
        for (name, len, max) in [("key", key, self.key), ("value", value, self.value)] {
            if len > max as u64 {
                return Err(format!("a {name} of {len} bytes is over the limit of {max} bytes"));
            }
        }
        Ok(())
    }
}

/// Reads entries one after the other.
pub trait ReadEntries {
    /// Reads what stands before the first entry, where the format has such a thing, so that an input
    /// that cannot be loaded is refused before anything is done.
    fn start(&mut self) -> Result<(), ReadError> {
        Ok(())
    }
    /// Behind [`start`](Self::start), looks at the first entry of a format that has nothing before it, lest a store is made
    /// for a wrong file. [`read`](Self::read) gives the entry all the same, bad or not.
    fn look_at_first(&mut self) -> Result<(), ReadError> {
        Ok(())
    }

    /// Replaces `key` and `value` with the next entry; false at the end of the input.
    ///
    /// After [`ReadError::Bad`] that is not fatal the next call goes on behind the bad entry.
    fn read(&mut self, key: &mut Vec<u8>, value: &mut Vec<u8>) -> Result<bool, ReadError>;
}

/// Writes entries one after the other.
pub trait WriteEntries {
    /// Writes one entry.
    fn write(&mut self, key: &[u8], value: &[u8]) -> Result<(), WriteError>;
    /// Writes what the format has at its end, and flushes. To be called once, after the last
    /// entry.
    fn finish(&mut self) -> io::Result<()>;
}

/// Why no entry could be read.
#[derive(Debug)]
pub enum ReadError {
    /// The input could not be read.
    Io(io::Error),
    /// The input was read and is not what the format asks for.
    Bad(Bad),
}

impl From<io::Error> for ReadError {
    fn from(e: io::Error) -> Self {
        ReadError::Io(e)
    }
}

/// A bad entry: where, and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bad {
    /// What the format counts: "line" or "record".
    pub unit: &'static str,
    /// Its number, from 1.
    pub number: u64,
    /// What is wrong, and what is expected instead.
    pub what: String,
    /// Whether reading cannot go on behind it: the next entry cannot be found.
    pub fatal: bool,
}

impl fmt::Display for Bad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.unit, self.number, self.what)
    }
}

/// Why an entry could not be written.
#[derive(Debug)]
pub enum WriteError {
    /// The output failed.
    Io(io::Error),
    /// The format cannot hold this entry; says why.
    Unfit(String),
}

impl From<io::Error> for WriteError {
    fn from(e: io::Error) -> Self {
        WriteError::Io(e)
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    pub type Entries = Vec<(Vec<u8>, Vec<u8>)>;
    pub const LIMITS: Limits = Limits { key: 64 << 10, value: 1 << 20 };

    /// All good entries, and all bad ones, as `load --skip-bad` sees them.
    pub fn read_all(mut reader: impl ReadEntries) -> (Entries, Vec<Bad>) {
        let (mut good, mut bad) = (Vec::new(), Vec::new());
        let (mut key, mut value) = (b"left".to_vec(), b"over".to_vec());
        loop {
            match reader.read(&mut key, &mut value) {
                Ok(true) => good.push((key.clone(), value.clone())),
                Ok(false) => return (good, bad),
                Err(ReadError::Bad(b)) => {
                    let fatal = b.fatal;
                    bad.push(b);
                    if fatal {
                        return (good, bad);
                    }
                }
                Err(ReadError::Io(e)) => panic!("reading memory failed: {e}"),
            }
        }
    }

    /// A source that gives one to three bytes a call, so that every boundary falls everywhere.
    pub struct Dribble<'a>(pub &'a [u8]);
    impl io::Read for Dribble<'_> {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            let n = (self.0.len() % 3 + 1).min(self.0.len()).min(buf.len());
            buf[..n].copy_from_slice(&self.0[..n]);
            self.0 = &self.0[n..];
            Ok(n)
        }
    }
}

//! What a store must do to take part. One adapter a file, in [`crate::engines`].
//!
//! An adapter of another crate is shown to [`crate::external`].
//!
//! The traits are generic, not objects, so that every row is compiled for each engine by itself and
//! a scan step costs no call through a table.

use crate::calls::Call;
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// When a write counts as done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Sync {
    /// As soon as the engine promises with no wait for the device.
    Buffered,
    /// When it survives a power cut.
    Synced,
}

/// What a finished write survives. Engines are compared within a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Class {
    /// Nothing: lost when the process is killed.
    V,
    /// Survives `kill -9`, not a power cut.
    K,
    /// Survives a power cut.
    F,
}

/// What every engine is given alike.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Config {
    /// Bytes of memory for the engine's own use. The page cache is not counted.
    pub memory: u64,
    /// Whether it may compress.
    pub compression: bool,
    /// Durability of writes.
    pub sync: Sync,
    /// About how many bytes of keys and values the store will hold, for engines that must know.
    pub expected_bytes: u64,
    /// As many bytes of key and value together as nine of ten entries have at most, for engines whose pages are to hold
    /// them.
    pub entry_bytes: u64,
    /// Whether the store is larger than memory, for engines whose manual advises other settings then.
    pub larger_than_memory: bool,
    /// Whether several threads use the store at once. Where none does, all calls come from the thread that
    /// opened it, which some engines are told to rely on.
    pub shared: bool,
    /// Whether the process opens a store that is there and only reads it: memory for writing is then better a cache.
    pub only_reads: bool,
    /// Settings of a variant of an engine (say a different block size), by name; those that a document has for
    /// one engine have its name before theirs (`kyoto.psiz`).
    pub tuning: BTreeMap<String, String>,
}

/// What the writes of a handle will be like, for engines that have a faster call for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hint {
    /// Nothing is known.
    Any,
    /// Every key is larger than all in the store.
    Ascending,
}

/// What goes on beside a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// No writes: a reader may hold on to one view of the store.
    Quiet,
    /// No writes any more, but the engine may still be compacting: a reader whose view keeps it from what
    /// comes of that moves on as beside a writer.
    Settling,
    /// Writes: a reader must move on to newer views, and hold none for more than about a millisecond.
    BesideWriter,
}

/// Which way a scan goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the first key to the last.
    Forward,
    /// From the last to the first.
    Reverse,
}

/// What an engine has no call for, or what it is too slow for. Its row says so and does not count
/// as failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsupported(String);

impl Unsupported {
    /// Why: "the engine has no ...".
    pub fn new(why: impl Into<String>) -> Self {
        Unsupported(format!("{NOT_SUPPORTED}: {}", why.into()))
    }
    /// What takes so long that the row is left out.
    pub fn too_slow(why: impl Into<String>) -> Self {
        Unsupported(format!("{TOO_SLOW}: {}", why.into()))
    }
    /// The two words that a text of this kind begins with; `None` for any other text.
    pub fn words(text: &str) -> Option<&'static str> {
        let begins = |words: &&str| text.strip_prefix(*words).is_some_and(|t| t.starts_with(": "));
        [NOT_SUPPORTED, TOO_SLOW].into_iter().find(begins)
    }
    /// The part of a text that is of this kind. Whoever handed it on may have put words before it.
    pub fn part_of(text: &str) -> Option<&str> {
        let starts = text.match_indices(": ").map(|(at, _)| at + 2);
        [0].into_iter().chain(starts).map(|at| &text[at..]).find(|part| Self::words(part).is_some())
    }
    /// Whether this is what went wrong.
    pub fn is_cause_of(error: &anyhow::Error) -> bool {
        error.chain().any(|cause| cause.is::<Unsupported>())
    }
    /// An error in one line; if this is what went wrong, then its own text alone, so that whoever
    /// reads it knows by the beginning.
    pub fn or_error(error: &anyhow::Error) -> String {
        match error.chain().find(|cause| cause.is::<Unsupported>()) {
            Some(unsupported) => unsupported.to_string(),
            None => format!("{error:#}"),
        }
    }
}

const NOT_SUPPORTED: &str = "not supported";
const TOO_SLOW: &str = "too slow";

impl std::fmt::Display for Unsupported {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unsupported {}

/// A store, opened.
pub trait Engine: Sized + std::marker::Sync {
    /// How a thread writes.
    type Writer<'a>: Writer
    where
        Self: 'a;
    /// How a thread reads.
    type Reader<'a>: Reader
    where
        Self: 'a;

    /// The version of the library, which is loaded then, or what to do to get it: `apt-get install ...`.
    fn version() -> Result<String>;
    /// What each method calls of the engine, a line for each [`Call`], for `esker-bench audit`; nothing where that
    /// is counted (`engines/traced.rs`).
    fn calls() -> &'static [(Call, &'static str)] {
        &[]
    }
    /// Opens or creates a store in a directory.
    fn open(dir: &Path, config: &Config) -> Result<Self>;
    /// The settings in force, in words.
    fn settings(&self) -> String;
    /// What a write of this store survives once it has returned.
    fn class(&self) -> Class;
    /// Whether values are compressed on disk now.
    fn compresses(&self) -> bool {
        false
    }
    /// Whether ascending writers of an empty store take a path that does not log.
    fn loads_in_bulk(&self) -> bool {
        false
    }
    /// A handle to write with, used by the thread that asked for it.
    fn writer(&self, hint: Hint) -> Result<Self::Writer<'_>>;
    /// A handle to read with, used by the thread that asked for it.
    fn reader(&self, access: Access) -> Result<Self::Reader<'_>>;
    /// Goes on with so many bytes of memory; no reader or writer is left. For loads that no row times and
    /// that would take too long in the memory of the rows: `false` where they do not.
    fn set_memory(&self, _bytes: u64) -> Result<bool> {
        Ok(false)
    }
    /// Pays the debts that writing left: flushes, and compacts until the engine has nothing more to do by its own rules;
    /// where it has no call for just that, until a read is as fast as it gets. Nothing for an engine that owes nothing, as a
    /// B-tree that is written in place.
    fn settle(&self) -> Result<()> {
        Ok(())
    }
    /// Makes the reads of a settled store as fast as they get, where that is more than the engine owed. Never timed.
    fn compact(&self) -> Result<()> {
        Ok(())
    }
    /// Both: how stores are left that rows of settled reads and of writes start from.
    fn settle_fully(&self) -> Result<()> {
        self.settle()?;
        self.compact()
    }
    /// Puts the files of a settled and closed store in order for those who will only read it, as far as the engine's manual
    /// offers something for that; nothing where settling and compacting was all.
    fn put_in_order(_dir: &Path, _config: &Config) -> Result<()> {
        Ok(())
    }
    /// Closes the store; nothing where its end does.
    fn close(self) -> Result<()> {
        Ok(())
    }
}

/// A thread's way to write.
pub trait Writer {
    /// Writes one entry, by itself.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()>;
    /// Deletes one key, which may not be there.
    fn delete(&mut self, key: &[u8]) -> Result<()>;
    /// Adds an entry to the batch.
    fn batch_put(&mut self, key: &[u8], value: &[u8]) -> Result<()>;
    /// Writes the batch, all or nothing.
    fn batch_commit(&mut self) -> Result<()>;
}

/// A thread's way to read. `see` is handed the engine's own bytes, with no copy where the engine
/// needs none.
pub trait Reader {
    /// Reads one key; `None` when it is not there.
    fn get<R>(&mut self, key: &[u8], see: impl FnOnce(&[u8]) -> R) -> Result<Option<R>>;
    /// Hands over up to `count` entries from the first at or after `key`; how many there were.
    fn seek(&mut self, key: &[u8], count: u64, see: impl FnMut(&[u8], &[u8])) -> Result<u64>;
    /// Hands over every entry; how many there were.
    fn scan(&mut self, direction: Direction, see: impl FnMut(&[u8], &[u8])) -> Result<u64>;
    /// Moves on to the newest view of the store, with all that can be kept: a session, statements, a transaction that is
    /// renewed. Nothing to do where each read sees what is newest.
    fn renew(&mut self) -> Result<()> {
        Ok(())
    }
    /// A write by the same thread follows: a view that keeps the writer from using space again is let go of, at no cost
    /// where there is none. The read after it has a new one then.
    fn yield_view(&mut self) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::{Context, anyhow};

    #[test]
    fn what_is_not_supported_is_known_by_how_it_begins() {
        let error: Result<()> = Err(Unsupported::new("the engine has no x").into());
        let error = error.context("open").unwrap_err();
        assert!(Unsupported::is_cause_of(&error));
        assert_eq!(Unsupported::or_error(&error), "not supported: the engine has no x");
        let other = anyhow!("no space").context("open");
        assert!(!Unsupported::is_cause_of(&other));
        let slow = format!("load: {}", Unsupported::too_slow("10 % after 5 s"));
        assert_eq!(Unsupported::part_of(&slow), Some("too slow: 10 % after 5 s"));
        assert_eq!(Unsupported::words("too slow: 10 % after 5 s"), Some("too slow"));
        for other in ["Operation not supported (os error 95)", "too slow", "open: no space"] {
            assert_eq!(Unsupported::part_of(other), None, "{other}");
        }
        assert_eq!(Unsupported::or_error(&other), "open: no space");
    }
}

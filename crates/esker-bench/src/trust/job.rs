//! What the parent asks of a child, and what the child says on its standard output: JSON, a line each;
//! acknowledgements, of which there are many, are a number after a letter.

use crate::engine::{Class, Config, Sync};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The word behind the hidden command that says that a job follows, not a case of the benchmark.
pub const WORD: &str = "trust";

/// One process's work.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Job {
    /// Which engine.
    pub engine: String,
    /// Its store.
    pub dir: PathBuf,
    /// Its settings.
    pub config: Config,
    /// What to do.
    pub task: Task,
}

/// What to do with the store.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub enum Task {
    /// Write operations from a number on, until killed.
    Write {
        /// Seed of the operations.
        seed: u64,
        /// The first one's number.
        first: u64,
    },
    /// Say everything that is there.
    Dump,
    /// Make the store that is going to be damaged.
    Build {
        /// Whether to close it; else the process kills itself once every write has returned.
        close: bool,
    },
    /// Read all of that store, damaged or not.
    Read,
}

/// What a child says.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Say {
    /// The store is open.
    Opened(Class, String),
    /// The store is made, and this process about to kill itself.
    Built,
    /// All that is there.
    Dumped(Dump),
    /// A value that nobody wrote was returned; said at once, as worse may follow.
    Wrong(String),
    /// What reading came to.
    Read(Finding),
}

/// Everything in a store.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Dump {
    /// Keys, and which write wrote the value of each.
    pub entries: BTreeMap<u32, u64>,
    /// Values that nobody wrote, and answers that contradict each other.
    pub wrong: u64,
    /// The first of them.
    pub first: Option<String>,
}

/// What reading a damaged store came to.
#[derive(Debug, Clone, Default, Serialize, Deserialize, PartialEq, Eq)]
pub struct Finding {
    /// Calls that returned an error.
    pub errors: u64,
    /// The first of them.
    pub first_error: Option<String>,
    /// Writes that are not there, and no error by the call that had to find them: an entry missing,
    /// its older value, or a deleted entry.
    pub lost: u64,
    /// The first of them.
    pub first_lost: Option<String>,
    /// Answers that nobody ever wrote.
    pub wrong: u64,
    /// The first of them.
    pub first_wrong: Option<String>,
}

impl Finding {
    /// A call returned an error.
    pub fn error(&mut self, error: &anyhow::Error) {
        self.errors += 1;
        self.first_error.get_or_insert_with(|| format!("{error:#}"));
    }
}

/// Settings: memory, durability, what else the engine is told. Never compressed, so that damage hits
/// what was written.
pub fn config(memory: u64, sync: Sync, tuning: &BTreeMap<String, String>) -> Config {
    Config {
        memory,
        compression: false,
        sync,
        expected_bytes: 16 << 20,
        larger_than_memory: false,
        tuning: tuning.clone(),
    }
}

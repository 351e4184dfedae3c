//! What the parent asks of a child, and the starting of one.

use crate::conformance;
use crate::engine::{Class, Config, Sync};
use crate::process::{INTERRUPTED, program};
use anyhow::{Error, Result};
use esker_trust::{Call, Patience, Say, Script, Victim};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::Ordering;
use std::time::Duration;

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
    /// What is written to it, or was.
    pub script: Script,
    /// What to do.
    pub task: Task,
}

/// What to do with the store.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Task {
    /// Play the script.
    Write {
        /// From this operation on.
        first: u32,
        /// Whether to close the store behind the last; else the process kills itself.
        close: bool,
    },
    /// Say everything that is there, damaged or not, by these calls.
    Read(Vec<Call>),
}

/// What an engine is, said as a note when its store is open.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Setting {
    /// What its documents say that a write survives.
    pub class: Option<Class>,
    /// Its settings.
    pub settings: String,
}

impl Setting {
    /// From what a child said; none if it did not come to open the store.
    pub fn of(said: &[Say]) -> Option<Setting> {
        said.iter().find_map(|say| match say {
            Say::Note(text) => serde_json::from_str(text).ok(),
            _ => None,
        })
    }
}

impl Job {
    /// The same of another directory, with another task.
    pub fn with(&self, dir: &Path, task: Task) -> Job {
        Job { dir: dir.to_path_buf(), task, ..self.clone() }
    }

    /// Starts a process that does it.
    pub fn start(&self, command: &[String]) -> Result<Victim> {
        let mut program = program(&self.engine, command)?;
        program.args([WORD, &serde_json::to_string(self)?]).stderr(Stdio::piped());
        Victim::start(&mut program).map_err(Error::msg)
    }
}

/// So much patience, which Ctrl-C ends.
pub fn patience(most: Duration) -> Patience {
    Patience { most, interrupted: || INTERRUPTED.load(Ordering::Relaxed) }
}

/// Settings: memory, durability, what else the engine is told. Never compressed, so that damage hits
/// what was written.
pub fn config(memory: u64, sync: Sync, tuning: &BTreeMap<String, String>) -> Config {
    Config {
        memory,
        expected_bytes: 16 << 20,
        tuning: tuning.clone(),
        ..conformance::config(sync, false)
    }
}

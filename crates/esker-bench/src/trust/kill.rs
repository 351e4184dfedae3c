//! A process that writes is killed, again and again, and what it left is compared with what it had
//! acknowledged.

use super::job::{Job, Setting, Task, config, patience};
use super::run::Bench;
use crate::engine::{Class, Sync};
use anyhow::{Context, Error, Result};
use esker_trust::process::Ending;
use esker_trust::{Call, Found, Oracle, Rng, Say, Script, mix};
use serde::Serialize;
use std::path::Path;

/// Little, so that what is written moves on to tables and is merged.
const MEMORY: u64 = 4 << 20;

/// Of so many kills one falls on the opening of the store, which is recovery.
const OPENING_EVERY: u64 = 8;

/// What came of it.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Killed {
    /// Whether each write waited for the device.
    pub synced: bool,
    /// What the engine's documents say that a write survives.
    pub class: Option<Class>,
    /// The engine's settings.
    pub settings: String,
    /// Processes killed.
    pub kills: u64,
    /// Operations that were acknowledged.
    pub acknowledged: u64,
    /// Of these, those whose effect was not there afterwards.
    pub lost: u64,
    /// Batches half there.
    pub half: u64,
    /// Values that nobody wrote, or not to that key, or deleted ones that came back.
    pub wrong: u64,
    /// Stores that could not be opened or read afterwards, or hung or crashed in it.
    pub unreadable: u64,
    /// Writers that ended by themselves, before they were killed.
    pub failed: u64,
    /// The first of all these.
    pub first: Option<String>,
}

impl Killed {
    /// Whether nothing was lost that the engine promises to keep, and nothing was wrong.
    pub fn is_well(&self) -> bool {
        let lost = self.class != Some(Class::V) && self.lost > 0;
        !lost && self.half + self.wrong + self.unreadable + self.failed == 0
    }

    fn note(&mut self, kill: u64, what: &str) {
        self.first.get_or_insert_with(|| format!("kill {kill}: {what}"));
    }
}

/// Kills writers of an engine.
pub fn run(bench: &Bench, engine: &str, sync: Sync, root: &Path) -> Result<Killed> {
    let mut outcome = Killed { synced: sync == Sync::Synced, ..Killed::default() };
    let mut rng = Rng::new(mix(bench.seed) ^ sync as u64);
    let mut store = Store::new(bench, engine, sync, root)?;
    for kill in 1..=bench.kills {
        bench.doing(&format!("{engine}: kill {kill} of {}, {sync:?}", bench.kills));
        if !store.kill_one(bench, kill, &mut rng, &mut outcome)? {
            // What is wrong now stays wrong, and is to be counted once.
            store = Store::new(bench, engine, sync, root)?;
        }
    }
    Ok(outcome)
}

/// A directory, and what must be in it.
struct Store {
    _owner: tempfile::TempDir,
    job: Job,
    oracle: Oracle,
}

impl Store {
    fn new(bench: &Bench, engine: &str, sync: Sync, root: &Path) -> Result<Store> {
        let owner = tempfile::tempdir_in(root).context("a directory for a store")?;
        let script = Script::Plain(bench.seed);
        let job = Job {
            engine: engine.to_string(),
            // Engines make it, or are given one that is empty: the former is what all can do.
            dir: owner.path().join("store"),
            config: config(MEMORY, sync, &bench.tuning),
            script,
            task: Task::Read(vec![Call::Scan, Call::ScanBack, Call::Get]),
        };
        Ok(Store { _owner: owner, job, oracle: Oracle::new(script) })
    }

    /// Kills one writer and looks at what it left. Whether the next can go on in it.
    fn kill_one(
        &mut self,
        bench: &Bench,
        kill: u64,
        rng: &mut Rng,
        outcome: &mut Killed,
    ) -> Result<bool> {
        let task = Task::Write { first: self.oracle.next()[0], close: true };
        let writer = self.job.with(&self.job.dir, task).start(&bench.command)?;
        let (opening, patience) = (kill.is_multiple_of(OPENING_EVERY), &patience(bench.patience));
        let said = match writer.kill_at_random(opening, rng, patience).map_err(Error::msg)? {
            Ok(said) => said,
            Err(ending) => {
                outcome.failed += 1;
                outcome.note(kill, &format!("the writer ended by itself: {ending:?}"));
                return Ok(false);
            }
        };
        outcome.kills += 1;
        if let Some(Setting { class, settings }) = Setting::of(&said) {
            (outcome.class, outcome.settings) = (class, settings);
        }
        let done =
            self.oracle.learn(said.into_iter().filter_map(Say::message)).map_err(Error::msg)?;
        outcome.acknowledged += done.len() as u64;

        let reader = self.job.start(&bench.command)?;
        let (said, ending) = reader.finish(patience).map_err(Error::msg)?;
        let found = Found::of(said);
        if found.errors > 0 || ending != Ending::Done {
            outcome.unreadable += 1;
            let why = found.first_error.unwrap_or_else(|| format!("{ending:?}"));
            outcome.note(kill, &format!("the store cannot be opened or read: {why}"));
            return Ok(false);
        }
        let verdict = self.oracle.compare(&found);
        outcome.lost += verdict.lost;
        outcome.half += verdict.half;
        outcome.wrong += verdict.wrong;
        verdict.what.first().iter().for_each(|what| outcome.note(kill, what));
        Ok(verdict.wrong == 0)
    }
}

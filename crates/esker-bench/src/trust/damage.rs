//! Copies of a store, closed or left by a killed process, are damaged, one way each, and read by a process of its own.

use super::job::{Job, Setting, Task, config, patience};
use super::run::Bench;
use super::variants::Variant;
use crate::engine::Sync;
use anyhow::{Context, Error, Result, ensure};
use esker_trust::damage::Outcome;
use esker_trust::harm::{self, Files, Kind};
use esker_trust::process::Ending;
use esker_trust::{Call, Found, Oracle, Rng, Say, Script, mix};
use serde::Serialize;
use std::path::Path;

/// Enough to keep what was written last out of tables.
const MEMORY: u64 = 16 << 20;

/// Files that are no part of the data: LMDB's table of readers and SQLite's index of its log, which
/// whoever opens the store first makes anew.
const NOT_DATA: [&str; 2] = ["lock.mdb", "store.sqlite-shm"];

/// One damaged copy.
#[derive(Debug, Clone, Serialize)]
pub struct Case {
    /// Its number, from which it follows with the seed.
    pub number: u64,
    /// How it was damaged.
    pub kind: Kind,
    /// Where.
    pub what: String,
    /// What that did.
    pub outcome: Outcome,
    /// In words.
    pub detail: String,
}

/// All damaged copies of an engine's store.
#[derive(Debug, Clone, Serialize)]
pub struct Damaged {
    /// The engine, with what is set otherwise than usual.
    pub label: String,
    /// Whether the store was closed before; else its process was killed.
    pub closed: bool,
    /// The engine's settings.
    pub settings: String,
    /// Files of the store.
    pub files: usize,
    /// The copies.
    pub cases: Vec<Case>,
}

impl Damaged {
    /// Whether nothing went wrong that must not. What ends the log of a process that was killed may be
    /// torn, so that the last writes are missing there is no fault.
    pub fn is_well(&self) -> bool {
        let excused = |case: &Case| !self.closed && case.outcome == Outcome::LostInSilence;
        !self.cases.iter().any(|case| case.outcome.is_bad() && !excused(case))
    }

    /// How many ended so.
    pub fn count(&self, outcome: Outcome) -> usize {
        self.cases.iter().filter(|case| case.outcome == outcome).count()
    }
}

/// Makes a store, and damages copies of it.
pub fn run(
    bench: &Bench,
    engine: &str,
    variant: &Variant,
    closed: bool,
    root: &Path,
) -> Result<Damaged> {
    let owner = tempfile::tempdir_in(root).context("a directory for a store")?;
    let (good, copy) = (owner.path().join("good"), owner.path().join("copy"));
    let tuning = variant.tuning.iter().chain(&bench.tuning);
    let tuning = tuning.map(|(name, value)| (name.clone(), value.clone())).collect();
    let job = Job {
        engine: engine.to_string(),
        dir: copy.clone(),
        config: config(MEMORY, Sync::Synced, &tuning),
        script: Script::Specimen,
        task: Task::Read(vec![Call::Get, Call::Scan]),
    };
    let (oracle, settings) =
        build(bench, &job.with(&good, Task::Write { first: 1, close: closed }))?;
    let read = || -> Result<(Outcome, String)> {
        let reader = job.start(&bench.command)?;
        let (said, ending) = reader.finish(&patience(bench.patience)).map_err(Error::msg)?;
        let (outcome, text) = Outcome::of(&oracle, &Found::of(said), &ending);
        Ok((outcome, text.replace(&copy.display().to_string(), "STORE")))
    };
    // A copy that nobody damaged must read well, or nothing is known of the others.
    harm::copy(&good, &copy)?;
    let (outcome, detail) = read()?;
    ensure!(outcome == Outcome::NoEffect, "undamaged: {}: {detail}", outcome.title());

    let mut files: Files = harm::files(&good)?;
    files.retain(|path, _| !NOT_DATA.iter().any(|name| Path::new(path).ends_with(name)));
    ensure!(!files.is_empty(), "{} has no files to damage", good.display());
    let kinds = Kind::of(files.len());
    let mut damaged = Damaged {
        label: variant.label.clone(),
        closed,
        settings,
        files: files.len(),
        cases: Vec::new(),
    };
    for number in 0..bench.damages {
        bench.doing(&format!("{}: damage {} of {}", variant.label, number + 1, bench.damages));
        std::fs::remove_dir_all(&copy)?;
        harm::copy(&good, &copy)?;
        let mut rng = Rng::new(mix(bench.seed) ^ number);
        let kind = kinds[(number % kinds.len() as u64) as usize];
        let harm = kind.draw(harm::any_file(&files, &mut rng), &files, &mut rng);
        harm.apply(&copy)?;
        let (outcome, detail) = read()?;
        if outcome.is_bad() {
            let title = outcome.title();
            bench.tell(&format!("{} damage {number}: {harm}: {title}: {detail}", variant.label));
        }
        damaged.cases.push(Case { number, kind, what: harm.to_string(), outcome, detail });
    }
    Ok(damaged)
}

/// Makes the store; what must be in it, and the engine's settings.
fn build(bench: &Bench, job: &Job) -> Result<(Oracle, String)> {
    let writer = job.start(&bench.command)?;
    let (said, ending) = writer.finish(&patience(bench.patience)).map_err(Error::msg)?;
    let setting = Setting::of(&said).context("the process that made the store did not open it")?;
    let mut oracle = Oracle::new(job.script);
    oracle.learn(said.into_iter().filter_map(Say::message)).map_err(Error::msg)?;
    // All of it was written, and the process ended as it was told to.
    let whole = job.script.op(0, oracle.next()[0], false).is_none();
    let closed = matches!(job.task, Task::Write { close: true, .. });
    ensure!(whole && (ending == Ending::Done) == closed, "the store was not made: {ending:?}");
    Ok((oracle, setting.settings))
}

//! Copies of a store, closed or left by a killed process, are damaged, one way each, and read by a process of its own.

use super::job::{Finding, Job, Say, Task, config};
use super::process::{Ending, Running};
use super::run::Bench;
use super::variants::Variant;
use crate::engine::Sync;
use anyhow::{Context, Result, bail, ensure};
use esker_trust::harm::{self, Files, Kind};
use esker_trust::{Rng, mix};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Enough to keep what was written last out of tables.
const MEMORY: u64 = 16 << 20;

/// Files that are no part of the data: LMDB's table of readers and SQLite's index of its log, which
/// whoever opens the store first makes anew.
const NOT_DATA: [&str; 2] = ["lock.mdb", "store.sqlite-shm"];

/// What a damaged store did, from best to worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Every answer was right.
    NoEffect,
    /// An error, and every answer beside it was right.
    Error,
    /// Writes were missing without an error by the call that had to find them, but some other call had
    /// one.
    LostWithError,
    /// Writes were missing, and no call said anything.
    LostInSilence,
    /// It did not end.
    Hang,
    /// It ended by a signal or a panic.
    Crash,
    /// A value or key was returned that nobody ever wrote.
    Wrong,
}

impl Outcome {
    /// All of them.
    pub const ALL: [Outcome; 7] = [
        Outcome::NoEffect,
        Outcome::Error,
        Outcome::LostWithError,
        Outcome::LostInSilence,
        Outcome::Hang,
        Outcome::Crash,
        Outcome::Wrong,
    ];

    /// As the head of a column.
    pub fn title(self) -> &'static str {
        match self {
            Outcome::NoEffect => "no effect",
            Outcome::Error => "error",
            Outcome::LostWithError => "writes lost, an error elsewhere",
            Outcome::LostInSilence => "writes lost in silence",
            Outcome::Hang => "hang",
            Outcome::Crash => "crash",
            Outcome::Wrong => "wrong value",
        }
    }

    /// Whether a user who looks at every error was still misled, or lost the process.
    pub fn is_bad(self) -> bool {
        self > Outcome::Error
    }

    /// From what a process said and how it ended.
    fn of(said: &[Say], ending: &Ending) -> Result<(Outcome, String)> {
        let wrong = said.iter().find_map(|say| match say {
            Say::Wrong(text) => Some(text.clone()),
            _ => None,
        });
        if let Some(text) = wrong {
            return Ok((Outcome::Wrong, text));
        }
        match ending {
            Ending::Crashed(text) => return Ok((Outcome::Crash, text.clone())),
            Ending::Hung => return Ok((Outcome::Hang, "it did not end".to_string())),
            // The engine's own way to end a process (`exit`) is no answer either.
            Ending::Failed(text) => return Ok((Outcome::Crash, text.clone())),
            Ending::Done => {}
        }
        let last = said.iter().rev().find_map(|say| match say {
            Say::Read(finding) => Some(finding),
            _ => None,
        });
        let Finding { errors, first_error, lost, first_lost, .. } =
            last.context("a process ended well and said nothing")?;
        let text = |words: &Option<String>| words.clone().unwrap_or_default();
        Ok(match (*lost, *errors) {
            (0, 0) => (Outcome::NoEffect, String::new()),
            (0, _) => (Outcome::Error, text(first_error)),
            (n, 0) => {
                (Outcome::LostInSilence, format!("{n} answers, the first: {}", text(first_lost)))
            }
            (n, _) => {
                let (lost, error) = (text(first_lost), text(first_error));
                (Outcome::LostWithError, format!("{n} answers, the first: {lost}; error: {error}"))
            }
        })
    }
}

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
    let job = |dir: &Path, task| Job {
        engine: engine.to_string(),
        dir: dir.to_path_buf(),
        config: config(MEMORY, Sync::Synced, &tuning),
        task,
    };
    let (said, ending) =
        Running::start(&bench.command, &job(&good, Task::Build { close: closed }))?
            .finish(bench.patience)?;
    let built = match closed {
        true => matches!(ending, Ending::Done),
        false => matches!(said.last(), Some(Say::Built)),
    };
    ensure!(built, "the store was not made: {ending:?}");
    let Some(Say::Opened(_, settings)) = said.into_iter().next() else {
        bail!("the process that made the store did not open it");
    };
    let read = || -> Result<(Outcome, String)> {
        let (said, ending) =
            Running::start(&bench.command, &job(&copy, Task::Read))?.finish(bench.patience)?;
        let (outcome, text) = Outcome::of(&said, &ending)?;
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

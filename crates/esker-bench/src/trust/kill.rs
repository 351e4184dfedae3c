//! A process that writes is killed, again and again, and what it left is compared with what it had
//! acknowledged.

use super::job::{Job, Say, Task, config};
use super::oracle::Oracle;
use super::process::{Ending, Running};
use super::run::Bench;
use crate::data::{Rng, mix};
use crate::engine::{Class, Sync};
use anyhow::{Context, Result, bail};
use serde::Serialize;
use std::path::Path;
use std::time::Duration;

/// Little, so that what is written moves on to tables and is merged.
const MEMORY: u64 = 4 << 20;

/// Of so many kills one falls on the opening of the store, which is recovery.
const OPENING_EVERY: u64 = 8;

/// What came of it.
#[derive(Debug, Clone, Serialize)]
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
    let mut outcome = Killed {
        synced: sync == Sync::Synced,
        class: None,
        settings: String::new(),
        kills: 0,
        acknowledged: 0,
        lost: 0,
        half: 0,
        wrong: 0,
        unreadable: 0,
        failed: 0,
        first: None,
    };
    let mut rng = Rng::new(mix(bench.seed) ^ sync as u64);
    let mut store = Store::new(root, bench.seed)?;
    for kill in 1..=bench.kills {
        bench.doing(&format!("{engine}: kill {kill} of {}, {sync:?}", bench.kills));
        let at = Duration::from_millis(10 + rng.below(291));
        let opening =
            kill.is_multiple_of(OPENING_EVERY).then(|| Duration::from_micros(rng.below(20_000)));
        let job = |task| Job {
            engine: engine.to_string(),
            dir: store.dir.clone(),
            config: config(MEMORY, sync, &bench.tuning),
            task,
        };
        let first = store.next;
        let writer = Running::start(&bench.command, &job(Task::Write { seed: bench.seed, first }))?;
        let last = match kill_writer(writer, at, opening, bench.patience, &mut outcome)? {
            Ok(last) => last.unwrap_or(first - 1),
            Err(ending) => {
                outcome.failed += 1;
                outcome.note(kill, &format!("the writer ended by itself: {ending:?}"));
                store = Store::new(root, bench.seed)?;
                continue;
            }
        };
        outcome.kills += 1;
        (first..=last).for_each(|number| store.oracle.acknowledged(number));
        outcome.acknowledged += last + 1 - first;
        // One number is left out, whether it was done or not.
        store.next = last + 2;

        let reader = Running::start(&bench.command, &job(Task::Dump))?;
        let (said, ending) = reader.finish(bench.patience)?;
        let dump = said.into_iter().find_map(|say| match say {
            Say::Dumped(dump) => Some(dump),
            _ => None,
        });
        let Some(dump) = dump.filter(|_| matches!(ending, Ending::Done)) else {
            outcome.unreadable += 1;
            outcome.note(kill, &format!("the store cannot be opened or read: {ending:?}"));
            store = Store::new(root, bench.seed)?;
            continue;
        };
        let verdict = store.oracle.compare(&dump.entries, last + 1);
        outcome.lost += verdict.lost;
        outcome.half += verdict.half;
        outcome.wrong += verdict.wrong + dump.wrong;
        if let Some(what) = dump.first.or(verdict.first) {
            outcome.note(kill, &what);
        }
        if dump.wrong + verdict.wrong > 0 {
            // What is wrong now stays wrong, and is to be counted once.
            store = Store::new(root, bench.seed)?;
        }
    }
    Ok(outcome)
}

/// A directory, what must be in it, and which operation comes next.
struct Store {
    dir: std::path::PathBuf,
    _owner: tempfile::TempDir,
    oracle: Oracle,
    next: u64,
}

impl Store {
    fn new(root: &Path, seed: u64) -> Result<Store> {
        let owner = tempfile::tempdir_in(root).context("a directory for a store")?;
        // Engines make it, or are given one that is empty: the former is what all can do.
        let dir = owner.path().join("store");
        Ok(Store { dir, _owner: owner, oracle: Oracle::new(seed), next: 1 })
    }
}

/// Lets a writer write for a while and kills it; the last operation that it acknowledged.
fn kill_writer(
    mut writer: Running,
    at: Duration,
    opening: Option<Duration>,
    patience: Duration,
    outcome: &mut Killed,
) -> Result<Result<Option<u64>, Ending>> {
    if let Some(at) = opening {
        std::thread::sleep(at);
        return Ok(writer.kill());
    }
    match writer.next(patience)? {
        Some(Say::Opened(class, settings)) => {
            outcome.class = Some(class);
            outcome.settings = settings;
        }
        Some(other) => bail!("a writer said {other:?}"),
        // It says why when it ended; if it did not, it hangs.
        None => {
            let (_, ending) = writer.finish(patience)?;
            return Ok(Err(ending));
        }
    }
    std::thread::sleep(at);
    Ok(writer.kill())
}

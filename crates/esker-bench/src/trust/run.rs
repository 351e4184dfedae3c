//! Both tests, for one engine after the other.

use super::TrustArgs;
use super::damage::{self, Damaged};
use super::kill::{self, Killed};
use super::variants;
use crate::engine::Sync;
use crate::root::Root;
use crate::{engines, system, tuning};
use anyhow::{Result, bail, ensure};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// What is done with each engine, and how.
pub struct Bench {
    /// Arguments that start a child.
    pub command: Vec<String>,
    /// Kills for each durability.
    pub kills: u64,
    /// Damaged copies for each variant.
    pub damages: u64,
    /// Everything random is drawn from this.
    pub seed: u64,
    /// How long a process may take.
    pub patience: Duration,
    /// Settings for adapters, beside those of the variants.
    pub tuning: BTreeMap<String, String>,
    progress: indicatif::ProgressBar,
}

impl Bench {
    /// What goes on, on a terminal.
    pub fn doing(&self, what: &str) {
        self.progress.set_message(what.to_string());
    }
    /// Something to remember, on standard error.
    pub fn tell(&self, what: &str) {
        self.progress.suspend(|| eprintln!("{what}"));
    }
}

/// Everything that was seen.
#[derive(Debug, Serialize)]
pub struct Report {
    /// When.
    pub date: String,
    /// Where.
    pub machine: String,
    /// Its kernel.
    pub kernel: String,
    /// Everything random was drawn from this.
    pub seed: u64,
    /// What came of each engine.
    pub engines: Vec<EngineReport>,
}

/// What came of an engine.
#[derive(Debug, Default, Serialize)]
pub struct EngineReport {
    /// Its name.
    pub engine: String,
    /// Its version.
    pub version: String,
    /// Why it does not take part.
    pub missing: Option<String>,
    /// The kills, by durability.
    pub kills: Vec<Killed>,
    /// The damaged stores, by variant.
    pub damages: Vec<Damaged>,
    /// What could not be tested, and why.
    pub failures: Vec<String>,
}

impl EngineReport {
    /// Whether everything was tested, and nothing was lost or wrong.
    pub fn is_well(&self) -> bool {
        self.missing.is_none()
            && self.failures.is_empty()
            && self.kills.iter().all(Killed::is_well)
            && self.damages.iter().all(Damaged::is_well)
    }
}

/// Runs what the arguments ask for.
pub fn run(args: &TrustArgs, command: &[String]) -> Result<Report> {
    let names: Vec<String> = match args.engines.is_empty() {
        true => variants::NAMES.iter().map(|name| name.to_string()).collect(),
        false => args.engines.clone(),
    };
    for name in &names {
        // Its settings are those of its variants, whatever a name asks for.
        if !engines::exists(name) || engines::built::tuning_of(name).is_some() {
            bail!("no engine is called {name} here; there are {}", engines::NAMES.join(", "));
        }
    }
    ensure!(args.patience >= 1, "--patience is at least 1 second");
    let bench = Bench {
        command: command.to_vec(),
        kills: args.kills,
        damages: args.damages,
        seed: args.seed,
        patience: Duration::from_secs(args.patience),
        tuning: tuning::parse(&args.tuning)?,
        progress: indicatif::ProgressBar::new_spinner(),
    };
    let root = Root::make(args.dir.as_deref())?;
    let engines = names.iter().map(|name| of_engine(&bench, name, root.path()));
    let engines = engines.collect::<Result<_>>()?;
    bench.progress.finish_and_clear();
    root.close()?;
    Ok(Report {
        date: system::date(),
        machine: system::cpu_name(),
        kernel: system::kernel(),
        seed: args.seed,
        engines,
    })
}

fn of_engine(bench: &Bench, name: &str, root: &Path) -> Result<EngineReport> {
    let mut report = EngineReport { engine: name.to_string(), ..EngineReport::default() };
    match engines::version(name) {
        Ok(version) => report.version = version,
        Err(e) => {
            report.missing = Some(format!("{e:#}"));
            return Ok(report);
        }
    }
    let interrupted = || crate::process::INTERRUPTED.load(std::sync::atomic::Ordering::Relaxed);
    if bench.kills > 0 {
        for sync in [Sync::Buffered, Sync::Synced] {
            match kill::run(bench, name, sync, root) {
                Ok(killed) => report.kills.push(killed),
                Err(e) if interrupted() => return Err(e),
                Err(e) => report.failures.push(format!("kills, {sync:?}: {e:#}")),
            }
        }
    }
    if bench.damages > 0 {
        for variant in variants::of(name) {
            for closed in [true, false] {
                match damage::run(bench, name, &variant, closed, root) {
                    Ok(damaged) => report.damages.push(damaged),
                    Err(e) if interrupted() => return Err(e),
                    Err(e) => report.failures.push(format!("damage, {}: {e:#}", variant.label)),
                }
            }
        }
    }
    Ok(report)
}

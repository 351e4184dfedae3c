//! One round, in the process that plays it.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::scenarios::{self, Scenario};
use super::{panics, tally};
use crate::script::Rng;
use crate::victim;

/// What a scenario is given.
pub struct Round {
    pub rng: Rng,
    /// A directory of its own, empty but for the log.
    pub dir: PathBuf,
    scenario: &'static Scenario,
}

impl Round {
    /// A part of this round, in a directory of its own.
    pub fn within(&mut self, name: &str) -> Result<Round, String> {
        let dir = self.dir.join(name);
        std::fs::create_dir(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
        Ok(Round { rng: Rng::new(self.rng.next()), dir, scenario: self.scenario })
    }

    /// Where the round's store is, unless it has several.
    pub fn store(&self) -> PathBuf {
        self.dir.join("store")
    }

    /// The scenario's other process, with these arguments.
    pub fn part(&self, args: &[&str]) -> Result<Command, String> {
        let mut command = Command::new(std::env::current_exe().map_err(|e| e.to_string())?);
        command.args(["callers", "--part", self.scenario.name]).args(args);
        Ok(command)
    }
}

fn scenario(name: &str) -> Result<&'static Scenario, String> {
    scenarios::ALL.iter().find(|s| s.name == name).ok_or_else(|| format!("no scenario {name}"))
}

/// `SCENARIO SEED DIR`: plays a round and says what it counted.
pub fn here(args: &[String]) -> Result<(), String> {
    let [name, seed, dir] = args else { return Err("a round of what?".to_string()) };
    let seed = seed.parse::<u64>().map_err(|e| e.to_string())?;
    victim::end_with_parent();
    panics::watch();
    let scenario = scenario(name)?;
    let mut round = Round { rng: Rng::new(seed), dir: Path::new(dir).into(), scenario };
    let played = panics::caught(|| (scenario.play)(&mut round));
    println!("{}", tally::line());
    let played = played.unwrap_or_else(|| Err("the round itself panicked".to_string()));
    played.and_then(|()| panics::none_unexpected())
}

/// `SCENARIO ARGS...`: what a scenario does in another process. Its standard output is for messages.
pub fn part(args: &[String]) -> Result<(), String> {
    let (name, rest) = args.split_first().ok_or("a part of what?")?;
    victim::end_with_parent();
    panics::watch();
    let args: Vec<&str> = rest.iter().map(String::as_str).collect();
    (scenario(name)?.part)(&args)?;
    panics::none_unexpected()
}

//! What is asked for on the command line, and what a seed makes of it.

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::scenarios;
use crate::script::Rng;

const USAGE: &str = "\
Usage: esker-crashtest callers [--seconds N] [--rounds N] [--seed S] [--round R] [--scenario NAME] [--dir DIR] [--limit N]
  --seconds N      begin rounds for so long (default 60)
  --rounds N       at most so many
  --seed S         run a seed again (default: a new one)
  --round R        only this round of the seed
  --scenario NAME  every round is of this scenario
  --dir DIR        where stores are made (default: a new directory below the temporary one)
  --limit N        seconds after which a round hangs (default 120)
Scenarios: ";

#[derive(Debug)]
pub struct Plan {
    pub time: Duration,
    pub limit: Duration,
    pub rounds: Option<u64>,
    pub round: Option<u64>,
    pub seed: u64,
    pub dir: PathBuf,
    scenario: Option<&'static str>,
}

impl Plan {
    pub fn parse(args: &[String]) -> Result<Plan, String> {
        let names: Vec<&str> = scenarios::ALL.iter().map(|s| s.name).collect();
        let usage = || format!("{USAGE}{}", names.join(" "));
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos() as u64);
        let mut plan = Plan {
            time: Duration::from_secs(60),
            limit: Duration::from_secs(120),
            rounds: None,
            round: None,
            seed: now % 1_000_000_000,
            dir: PathBuf::new(),
            scenario: None,
        };
        for pair in args.chunks(2) {
            let [flag, value] = pair else { return Err(usage()) };
            let number =
                || value.parse::<u64>().map_err(|e| format!("{flag} {value}: {e}\n{}", usage()));
            match flag.as_str() {
                "--seconds" => plan.time = Duration::from_secs(number()?),
                "--limit" => plan.limit = Duration::from_secs(number()?),
                "--rounds" => plan.rounds = Some(number()?),
                "--round" => plan.round = Some(number()?),
                "--seed" => plan.seed = number()?,
                "--dir" => plan.dir = PathBuf::from(value),
                "--scenario" => {
                    let name = names.iter().find(|n| *n == value);
                    plan.scenario = Some(name.ok_or_else(usage)?);
                }
                _ => return Err(usage()),
            }
        }
        if plan.dir.as_os_str().is_empty() {
            plan.dir = std::env::temp_dir().join(format!("esker-callers-{}", plan.seed));
        }
        plan.dir = std::path::absolute(&plan.dir).map_err(|e| e.to_string())?;
        Ok(plan)
    }

    /// The scenario of a round: each once, in random order, then each again.
    pub fn scenario(&self, round: u64) -> &'static str {
        if let Some(name) = self.scenario {
            return name;
        }
        let mut names: Vec<&'static str> = scenarios::ALL.iter().map(|s| s.name).collect();
        let turn = round / names.len() as u64;
        let mut rng = Rng::new(self.seed ^ turn.rotate_left(32));
        for last in (1..names.len()).rev() {
            names.swap(last, rng.below(last as u64 + 1) as usize);
        }
        names[round as usize % names.len()]
    }

    pub fn round_seed(&self, round: u64) -> u64 {
        Rng::new(self.seed ^ round.rotate_left(48)).next() % 1_000_000_000_000
    }

    /// The command that plays a round again.
    pub fn again(&self, round: u64) -> String {
        let only = self.scenario.map_or(String::new(), |name| format!(" --scenario {name}"));
        format!("esker-crashtest callers --seed {} --round {round}{only}", self.seed)
    }
}

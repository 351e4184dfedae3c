//! Kills a process that writes to a store at random moments, opens what is left, and checks that
//! every operation that the process called done is there, that what was under way happened as a
//! whole or not at all, and that nothing else changed. Then the next process goes on in the same
//! directory.
//!
//! The harness is that of [`esker_trust`]; here is what only Esker has. The oracle lives outside the killed
//! process: it knows what was done from a pipe, and what that meant from the seed.
//!
//! `esker-crashtest callers` is another campaign, of callers that do all they can; see `callers`.

mod callers;
mod child;
mod parent;
mod store;
/// By the names that the callers know.
mod script {
    pub use esker_trust::Rng;
}

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use esker_trust::victim;
use parent::Plan;

const USAGE: &str = "\
Usage: esker-crashtest [--cycles N] [--hours H] [--seed N] [--dir DIR]
  --cycles N  kills (default 200)
  --hours H   go on for so long instead, e.g. 0.5
  --seed N    run a seed again (default: a new one)
  --dir DIR   where the store is made (default: a new directory below the temporary one)
or:    esker-crashtest callers [...], the campaign of adversarial callers; `callers --help` says more";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let result = match args.first().map(String::as_str) {
        Some("--child") => run_child(&args[1..]),
        Some("callers") => callers::main(&args[1..]),
        _ => plan(&args).and_then(|plan| run(&plan)),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            eprintln!("{what}");
            ExitCode::FAILURE
        }
    }
}

fn run_child(args: &[String]) -> Result<(), String> {
    let [store, checkpoints, numbers @ ..] = args else { return Err(USAGE.to_string()) };
    let numbers: Result<Vec<u64>, _> = numbers.iter().map(|text| text.parse()).collect();
    let numbers = numbers.map_err(|e| e.to_string())?;
    let [seed, cycle, first @ ..] = &numbers[..] else { return Err(USAGE.to_string()) };
    let first: Vec<u32> = first.iter().map(|number| *number as u32).collect();
    child::run(store.as_ref(), checkpoints.as_ref(), *seed, *cycle, &first)
        .map_err(|e| format!("the child: {e}"))
}

fn run(plan: &Plan) -> Result<(), String> {
    println!("esker-crashtest --seed {} --dir {}", plan.seed, plan.dir.display());
    parent::run(plan)?;
    // Nothing is wrong, so nothing has to be kept.
    std::fs::remove_dir_all(&plan.dir).map_err(|e| e.to_string())
}

fn plan(args: &[String]) -> Result<Plan, String> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos() as u64);
    let seed = now % 1_000_000_000;
    let mut plan = Plan { cycles: 200, seed, until: None, dir: PathBuf::new() };
    for pair in args.chunks(2) {
        let [flag, value] = pair else { return Err(USAGE.to_string()) };
        let bad = |e: &dyn std::fmt::Display| format!("{flag} {value}: {e}\n{USAGE}");
        match flag.as_str() {
            "--cycles" => plan.cycles = value.parse().map_err(|e| bad(&e))?,
            "--seed" => plan.seed = value.parse().map_err(|e| bad(&e))?,
            "--hours" => {
                let hours: f64 = value.parse().map_err(|e| bad(&e))?;
                plan.until = Some(Instant::now() + Duration::from_secs_f64(hours * 3600.0));
            }
            "--dir" => plan.dir = PathBuf::from(value),
            _ => return Err(USAGE.to_string()),
        }
    }
    if plan.dir.as_os_str().is_empty() {
        plan.dir = std::env::temp_dir().join(format!("esker-crashtest-{}", plan.seed));
    }
    if plan.dir.exists() {
        return Err(format!("{} is there already; remove it, or name another", plan.dir.display()));
    }
    Ok(plan)
}

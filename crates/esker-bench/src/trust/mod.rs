//! `esker bench trust`: what each engine loses or returns wrong after `kill -9` and after damage to
//! its files, through its public interface alone.
//!
//! - [`kill`]: a process writes and says which operations are done; it is killed, and another one
//!   opens the store and says what is there.
//! - [`damage`]: a store is made and closed; a copy is damaged and read by a process with limits, whose
//!   end counts as well as its answers.
//!
//! What is written, what must be found and how files are damaged is in [`esker_trust`]. Nothing here knows
//! an engine: adapters are those of the benchmark.

mod child;
mod damage;
mod job;
mod kill;
mod markdown;
mod run;
mod variants;

pub(crate) use child::run as run_job;
pub(crate) use job::{Job, WORD};

use crate::out_file::OutFile;
use crate::report::Answer;
use crate::results::OURS;
use anyhow::Result;
use std::path::PathBuf;

/// How much is tested.
#[derive(Debug, clap::Args)]
pub struct TrustArgs {
    /// Engines to test, by name, separated by commas [default: esker, leveldb, rocksdb, lmdb, sqlite,
    /// redb, fjall]
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    engines: Vec<String>,
    /// Processes killed while they write, for buffered and for synced writes
    #[arg(long, default_value_t = 20, value_name = "N")]
    kills: u64,
    /// Damaged copies of a closed store
    #[arg(long, default_value_t = 300, value_name = "N")]
    damages: u64,
    /// Seed of operations, moments and damage
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// Write the tables to a file, in Markdown
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print JSON, with every damaged copy, instead of tables
    #[arg(long)]
    json: bool,
    /// Where the stores are made [default: a temporary directory below TMPDIR, or here]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Seconds without a sign of life after which a process counts as hanging; time in which it is
    /// stopped does not count
    #[arg(long, default_value_t = 60, value_name = "SECONDS")]
    patience: u64,
    /// Sets an engine's own setting
    #[arg(long = "set", value_name = "NAME=VALUE", hide = true)]
    tuning: Vec<String>,
}

/// Tests engines; `command` starts this executable as a child.
pub(crate) fn answer(args: &TrustArgs, command: &[String]) -> Result<Answer> {
    let _ = ctrlc::try_set_handler(|| {
        crate::process::INTERRUPTED.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    let file = args.out.as_deref().map(OutFile::open).transpose()?;
    let report = run::run(args, command)?;
    let tables = markdown::write(&report);
    // What took so long is printed whether or not there is room for the file.
    let unwritten = file.and_then(|file| file.write(tables.as_bytes()).err());
    let text = match args.json {
        true => format!("{}\n", serde_json::to_string_pretty(&report)?),
        false => tables,
    };
    let ours = report.engines.iter().find(|engine| engine.engine == OURS);
    let ours_is_not_well = ours.filter(|engine| !engine.is_well()).map(|engine| {
        format!("{} lost or returned something wrong, or could not be tested", engine.engine)
    });
    let broken = ours_is_not_well.into_iter().chain(unwritten.map(|e| format!("{e:#}")));
    let broken: Vec<String> = broken.collect();
    let broken = (!broken.is_empty()).then(|| broken.join("; "));
    Ok(Answer { text, worse: 0, broken })
}

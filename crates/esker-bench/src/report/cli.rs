//! The commands of `esker bench` beside the measuring: `report` and `compare`, with results that are
//! there, and `trust`.

use super::compare::compare;
use crate::audit;
use crate::trust;
use anyhow::{Result, bail};
use std::path::PathBuf;

/// Commands that measure no time.
#[derive(Debug, clap::Subcommand)]
pub enum BenchCommand {
    /// Draw the report of a run again, from its results
    #[command(after_help = "\
Examples:
  esker bench report results            results/report.html, report.md, first.svg and chart-*.svg

Reads results.jsonl in the directory and nothing else.")]
    Report(ReportArgs),
    /// Put two runs side by side
    #[command(after_help = "\
Examples:
  esker bench compare before after                    all engines
  esker bench compare before after --engine esker     one engine
  esker bench compare before after --threshold 5      stricter than 10 %

A figure counts as worse when it is so by more than the threshold and by more than the
repetitions of either run differ. Exits with 1 when there is one.")]
    Compare(CompareArgs),
    /// Kill writers and damage stores: what does each engine lose or return wrong?
    #[command(after_help = "\
Examples:
  esker bench trust                                   esker and six others, in some minutes
  esker bench trust --engines esker --damages 5000    more of one engine
  esker bench trust --kills 0 --json > cases.json     every damaged copy, and what came of it

Exits with 3 when Esker lost an acknowledged write, returned a wrong value, crashed or hung.")]
    Trust(trust::TrustArgs),
    /// Which calls does a row time?
    #[command(after_help = "\
Examples:
  esker bench audit --row readrandom --engine leveldb
  esker bench audit --row 'leveldb2011/1/Random Reads' --engine sqlite

Runs the row on few entries, counts what its timed loop calls of the engine's adapter, and says what the
adapter makes of each call.")]
    Audit(audit::AuditArgs),
}

/// What is drawn.
#[derive(Debug, clap::Args)]
pub struct ReportArgs {
    /// Directory with results.jsonl
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

/// What is compared.
#[derive(Debug, clap::Args)]
pub struct CompareArgs {
    /// The first run: its directory, or its results.jsonl
    #[arg(value_name = "BEFORE")]
    before: PathBuf,
    /// The second run
    #[arg(value_name = "AFTER")]
    after: PathBuf,
    /// Percent from which on a change for the worse counts
    #[arg(long, default_value_t = 10.0, value_name = "PERCENT")]
    threshold: f64,
    /// Compare only this engine
    #[arg(long, value_name = "NAME")]
    engine: Option<String>,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

/// What a command has to say.
#[derive(Debug)]
pub struct Answer {
    /// For standard output.
    pub text: String,
    /// Figures that are worse beyond the threshold.
    pub worse: usize,
    /// What Esker did that it must not, or what could not be written.
    pub broken: Option<String>,
}

impl BenchCommand {
    /// Does it; `child_command` starts this executable as a process that does a job.
    ///
    /// # Errors
    ///
    /// Results that are missing or broken, or a directory that cannot be written.
    pub fn run(&self, child_command: &[String]) -> Result<Answer> {
        match self {
            BenchCommand::Report(args) => {
                if !args.dir.is_dir() {
                    bail!("{} is not a directory with results.jsonl in it", args.dir.display());
                }
                let written = super::write_all(&args.dir)?;
                let text = written.iter().map(|path| format!("{}\n", path.display())).collect();
                Ok(Answer { text, worse: 0, broken: None })
            }
            BenchCommand::Compare(args) => {
                let mut comparison = compare(&args.before, &args.after, args.threshold)?;
                if let Some(engine) = &args.engine {
                    comparison = comparison.only(engine)?;
                }
                let text = if args.json { comparison.json() } else { comparison.table() };
                Ok(Answer { text, worse: comparison.worse(), broken: None })
            }
            BenchCommand::Trust(args) => trust::answer(args, child_command),
            BenchCommand::Audit(args) => {
                let text = audit::answer(args, child_command)?;
                Ok(Answer { text, worse: 0, broken: None })
            }
        }
    }
}

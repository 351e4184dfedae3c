//! `esker verify`: reads a whole store and checks it, writing nothing.

use esker::{Options, VerifyReport};
use serde_json::json;
use std::path::PathBuf;

use crate::args::JsonArgs;
use crate::exit::{Failure, Outcome};
use crate::human;
use crate::output::{Out, findings};
use crate::progress::Progress;
use crate::store;

const EXAMPLES: &str = "\
Examples:
  esker verify ./db                      check everything
  esker verify ./db --json | jq .problems

Reads only, so it works where nothing can be written. Checks every checksum, the order of all keys,
and that what tables and the manifest say of keys, sequences, counts and large values is so, also of
a store too damaged to open. Problems are printed one a line with file and offset;
the exit code is then 3. `esker repair` saves what is intact. A keyspace whose order a program of
its own compares is a problem each time: only that program can check the order of its keys.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Directory of the store
    #[arg(value_name = "DB")]
    db: PathBuf,
    #[command(flatten)]
    json: JsonArgs,
}

pub(crate) fn run(args: Args) -> Outcome {
    store::check(&args.db)?;
    let mut progress = None;
    let report = Options::new().verify_with(&args.db, |done, total| {
        progress.get_or_insert_with(|| Progress::bytes("verifying", Some(total))).set(done);
    })?;
    drop(progress);
    let printed = print(&report, args.json.json);
    if report.problems.is_empty() {
        return printed;
    }
    match printed {
        // A reader that went away (`| head`) makes no damaged store a sound one.
        Ok(()) | Err(Failure::ClosedPipe) => Err(Failure::Broken(format!(
            "{} in {}; `esker repair {}` saves what is intact",
            human::counted(report.problems.len() as u64, "problem"),
            checked(&report),
            args.db.display()
        ))),
        Err(other) => Err(other),
    }
}

fn print(report: &VerifyReport, as_json: bool) -> Outcome {
    let mut out = Out::stdout();
    if as_json {
        out.json(&json!({
            "files": report.files,
            "bytes": report.bytes,
            "entries": report.entries,
            "problems": findings(&report.problems),
        }))?;
    } else {
        for problem in &report.problems {
            out.line(problem.to_string().replace('\n', " "))?;
        }
        if report.problems.is_empty() {
            out.line(format!("sound: {}", checked(report)))?;
        }
    }
    out.finish()
}

fn checked(report: &VerifyReport) -> String {
    format!(
        "{}, {}, {}",
        human::counted(report.files, "file"),
        human::bytes(report.bytes),
        human::counted(report.entries, "entry")
    )
}

//! `esker repair`: saves what is intact of a damaged store.

use std::path::PathBuf;

use esker::Db;
use serde_json::json;

use crate::args::JsonArgs;
use crate::exit::Outcome;
use crate::human;
use crate::output::{Out, findings};
use crate::progress::Progress;
use crate::store;

const EXAMPLES: &str = "\
Examples:
  cp -a ./db ./db.before && esker repair ./db    keep a copy; a repair cannot be undone
  esker verify ./db || esker repair ./db

Says how much was saved and prints what was lost, one a line. A sound store is left as it is.
Tables of a keyspace whose order a program of its own compares are not repaired here, damaged or
not: they are listed as not checked. `Options::repair` with the comparator does it, in that program.";

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
    let progress = Progress::spinner("repairing");
    let report = Db::repair(&args.db)?;
    drop(progress);
    let mut out = Out::stdout();
    if args.json.json {
        out.json(&json!({
            "changed": report.changed,
            "tables": report.tables,
            "entries": report.entries,
            "lost": findings(&report.lost),
            "unchecked": findings(&report.unchecked),
        }))?;
        return out.finish();
    }
    let done = match (report.changed, report.unchecked.is_empty()) {
        (true, _) => "saved",
        (false, true) => "sound, and left as it is:",
        (false, false) => "left as it is:",
    };
    out.line(format!(
        "{done} {} in {}",
        human::counted(report.entries, "entry"),
        human::counted(report.tables, "table")
    ))?;
    for lost in &report.lost {
        out.line(format!("lost: {}", lost.to_string().replace('\n', " ")))?;
    }
    for left in &report.unchecked {
        out.line(format!("not checked: {}", left.to_string().replace('\n', " ")))?;
    }
    if report.lost.is_empty() && report.unchecked.is_empty() {
        out.line("nothing was lost")?;
    }
    out.finish()
}

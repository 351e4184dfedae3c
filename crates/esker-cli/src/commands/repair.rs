//! `esker repair`: saves what is intact of a damaged store.

use std::path::PathBuf;

use esker::{Db, RepairReport};
use serde_json::json;

use crate::args::JsonArgs;
use crate::exit::{Failure, Outcome};
use crate::human;
use crate::output::{Out, findings};
use crate::progress::Progress;
use crate::store;

const EXAMPLES: &str = "\
Examples:
  cp -a ./db ./db.before && esker repair ./db    keep a copy; a repair cannot be undone
  esker verify ./db || esker repair ./db

Says how much was saved and prints what was lost, one a line. A sound store is left as it is. The
exit code is 0 where nothing was lost, and 4 where something was or could not be checked: what could
be saved is then in the store, and damaged files are in its directory `lost`.
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
    let printed = print(&report, args.json.json);
    if report.lost.is_empty() && report.unchecked.is_empty() {
        return printed;
    }
    let counts = [(&report.lost, "lost"), (&report.unchecked, "not checked")];
    let told: Vec<String> = counts
        .iter()
        .filter(|(list, _)| !list.is_empty())
        .map(|(list, what)| format!("{} {what}", human::counted(list.len() as u64, "part")))
        .collect();
    match printed {
        // A reader that went away (`| head`) brings nothing back.
        Ok(()) | Err(Failure::ClosedPipe) => {
            Err(Failure::Lossy(format!("{} of {}", told.join(" and "), args.db.display())))
        }
        Err(other) => Err(other),
    }
}

fn print(report: &RepairReport, as_json: bool) -> Outcome {
    let mut out = Out::stdout();
    if as_json {
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

//! Sources that are read by their own libraries: the same from where their entries come on.

use std::path::PathBuf;

use esker_transfer::{Opened, Result};

use super::target::{Stop, Target, TargetArgs};
use crate::exit::{Failure, Outcome};
use crate::progress::Progress;

// A source with several databases in it.
#[derive(Debug, clap::Args)]
pub(super) struct SourceArgs {
    /// Directory or file of the source
    #[arg(value_name = "PATH")]
    pub path: PathBuf,
}

/// How many entries between two updates of the progress bar.
const STEP: u64 = 1024;

/// Imports what `open` opens.
pub(super) fn run(args: &TargetArgs, open: impl FnOnce() -> Result<Opened>) -> Outcome {
    let target = Target::check(args)?;
    let reading = Progress::spinner("reading");
    let opened = open().map_err(|e| Failure::from(Stop::Source(e)))?;
    drop(reading);
    let progress = Progress::entries("importing", opened.total);
    let mut seen = 0;
    let entries = opened.entries.inspect(|_| {
        seen += 1;
        if seen % STEP == 0 {
            progress.set(seen);
        }
    });
    let imported = target.fill(entries, || Ok(()), args.skip_large)?;
    drop(progress);
    target.summary(&imported, &opened.report)
}

//! `esker checkpoint`: a copy of the store as it is now, which can be opened on its own.

use std::path::PathBuf;

use serde_json::json;

use crate::args::{JsonArgs, StoreArgs};
use crate::exit::Outcome;
use crate::output::Out;
use crate::progress::Progress;
use crate::store;

const EXAMPLES: &str = "\
Examples:
  esker checkpoint ./db ./backup/monday

Files that never change again are linked where the file system can, so on the same one a
checkpoint takes little time and space.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,
    /// Directory to make
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    #[command(flatten)]
    json: JsonArgs,
}

pub(crate) fn run(args: Args) -> Outcome {
    // To be consistent, a checkpoint first puts what is in the log into tables.
    let db = store::open_to_write(&args.store, None)?;
    let progress = Progress::spinner("copying");
    db.checkpoint(&args.dir)?;
    drop(progress);
    db.close()?;
    let mut out = Out::stdout();
    if args.json.json {
        out.json(&json!({ "checkpoint": args.dir.to_string_lossy() }))?;
    }
    out.finish()
}

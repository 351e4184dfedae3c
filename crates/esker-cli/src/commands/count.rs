//! `esker count`: how many entries.

use serde_json::json;

use crate::args::{EncodingArgs, JsonArgs, KeyspaceArgs, RangeArgs, StoreArgs};
use crate::exit::Outcome;
use crate::output::Out;
use crate::progress::Progress;
use crate::store;
use crate::walk::Walk;

const EXAMPLES: &str = "\
Examples:
  esker count ./db                       all entries of the default keyspace
  esker count ./db --prefix user:        the keys below user:
  esker count ./db -k events --from 2024 --to 2025

Walks the keys and counts them exactly; `esker stats` shows about how many at once.";

/// How many entries between two updates of the progress bar.
const STEP: u64 = 4096;

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    range: RangeArgs,
    #[command(flatten)]
    keyspace: KeyspaceArgs,
    #[command(flatten)]
    encoding: EncodingArgs,
    #[command(flatten)]
    json: JsonArgs,
}

pub(crate) fn run(args: Args) -> Outcome {
    let db = store::open_to_read(&args.store)?;
    let name = &args.keyspace.keyspace;
    let keyspace = store::keyspace(&db, name)?;
    let order = store::order(&keyspace);
    let bounds = args.range.bounds(&args.encoding, &order)?;
    let total = args.range.is_everything().then(|| store::entries_at_most(&keyspace.stats()));
    let progress = Progress::entries("counting", total);
    let mut walk = Walk::keys(&keyspace, order, bounds, false);
    let mut entries: u64 = 0;
    while walk.next()?.is_some() {
        entries += 1;
        if entries.is_multiple_of(STEP) {
            progress.set(entries);
        }
    }
    drop(progress);
    let mut out = Out::stdout();
    if args.json.json {
        out.json(&json!({ "keyspace": name, "entries": entries }))?;
    } else {
        out.line(entries.to_string())?;
    }
    out.finish()
}

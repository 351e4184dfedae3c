//! `esker compact`: merges what is stored, dropping what is deleted or overwritten.

use serde_json::json;

use crate::args::{CompressionArgs, EncodingArgs, JsonArgs, RangeArgs, StoreArgs};
use crate::exit::{Failure, Outcome};
use crate::output::Out;
use crate::progress::Progress;
use crate::{human, store};

const EXAMPLES: &str = "\
Examples:
  esker compact ./db                             every keyspace
  esker compact ./db -k events                   one keyspace
  esker compact ./db --prefix log/2023           a range of the default keyspace
  esker compact ./db --compression zstd          and pack it smaller

The store merges by itself while it is used; this is for getting space back at once after many
deletions, or before a store is shipped. It says what the directory took on the disk before, and
what it takes now; meanwhile it needs room for what it rewrites. That is packed as --compression
says (lz4 without it), in keyspaces made with a compression of their own as that says. Values of
4 KiB and more that are in the log stay as they are.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    range: RangeArgs,
    /// Keyspace to compact [default: all of them; with a range, the default keyspace]
    #[arg(long, short = 'k', value_name = "NAME")]
    keyspace: Option<String>,
    #[command(flatten)]
    encoding: EncodingArgs,
    #[command(flatten)]
    compression: CompressionArgs,
    #[command(flatten)]
    json: JsonArgs,
}

pub(crate) fn run(args: Args) -> Outcome {
    // As the directory has it, before and after: while the store is open there are files beside,
    // those of the log and those that a reader may hold.
    let disk_before = store::disk_bytes(&args.store.db);
    let db = store::open_to_write(&args.store, args.compression.compression)?;
    let names = match &args.keyspace {
        Some(name) => vec![name.clone()],
        None if args.range.is_everything() => db.keyspaces(),
        None => vec![store::DEFAULT_KEYSPACE.into()],
    };
    let progress = Progress::spinner("compacting");
    db.flush()?;
    for name in &names {
        let keyspace = store::keyspace(&db, name)?;
        let bounds = args.range.bounds(&args.encoding, &store::order(&keyspace))?;
        if bounds.is_everything() {
            keyspace.compact_range::<Vec<u8>>(..)?;
        } else {
            keyspace.compact_range((bounds.lower, bounds.upper))?;
        }
    }
    drop(progress);
    db.close().map_err(Failure::from)?;
    let (before, after) = (disk_before, store::disk_bytes(&args.store.db));
    let mut out = Out::stdout();
    if args.json.json {
        out.json(&json!({
            "keyspaces": names,
            "disk_bytes_before": before,
            "disk_bytes_after": after,
        }))?;
    } else {
        let (before, after) = (human::bytes(before), human::bytes(after));
        out.line(format!("{before} on disk before, {after} after"))?;
    }
    out.finish()
}

//! `esker export leveldb`: a keyspace as a LevelDB database, written without its library.

use std::path::PathBuf;
use std::time::Instant;

use clap::ValueEnum;
use esker::KeyOrder;
use esker_transfer::leveldb::{BYTEWISE, Writer};
use serde_json::json;

use crate::args::{JsonArgs, KeyspaceArgs, StoreArgs};
use crate::bounds::Bounds;
use crate::exit::{Failure, Outcome};
use crate::output::Out;
use crate::progress::Progress;
use crate::walk::Walk;
use crate::{human, store};

const EXAMPLES: &str = "\
Examples:
  esker export leveldb ./db ./index             the keyspace default
  esker export leveldb ./db ./index -k users    another
  esker export leveldb ./db ./index --codec none

Writes tables of 2 MiB as LevelDB 1.13 and later have them, and a manifest. DIR is new, or an empty
directory; it gets its name when it is whole and durable, and until then has .partial behind it.
The entries are those of one moment. Keyspaces in another order than by bytes are refused: the
database would need the comparator of the program that opens it.";

/// How many entries between two updates of the progress bar.
const STEP: u64 = 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Codec {
    /// Blocks as they are
    None,
    /// Blocks by Snappy, as LevelDB itself writes them
    Snappy,
}

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    #[command(flatten)]
    store: StoreArgs,
    /// Directory of the LevelDB database, which is made
    #[arg(value_name = "DIR")]
    target: PathBuf,
    #[command(flatten)]
    keyspace: KeyspaceArgs,
    /// Compression of the database
    #[arg(long, value_name = "CODEC", value_enum, default_value = "snappy")]
    codec: Codec,
    #[command(flatten)]
    json: JsonArgs,
}

pub(super) fn run(args: Args) -> Outcome {
    let started = Instant::now();
    let broken = |e: esker_transfer::Error| Failure::Broken(e.to_string());
    let db = store::open_to_read(&args.store)?;
    let name = &args.keyspace.keyspace;
    let keyspace = store::keyspace(&db, name)?;
    let stats = db.stats();
    let about = store::about(&stats, name);
    if let Some(k) = about
        && k.comparator != KeyOrder::Bytewise.name()
    {
        return Err(Failure::Usage(format!(
            "keyspace {name:?} is ordered by {}, and a LevelDB database by bytes ({BYTEWISE}) \
             unless a program brings its own order; dump and load it into a keyspace of that order \
             first",
            k.comparator
        )));
    }
    let mut writer = Writer::create(&args.target, args.codec == Codec::Snappy).map_err(broken)?;
    let progress = Progress::entries("exporting", about.map(store::entries_at_most));
    let everything = Bounds::new(&KeyOrder::Bytewise, None, None, None);
    let mut walk = Walk::entries(&keyspace, KeyOrder::Bytewise, everything, false);
    let (mut entries, mut bytes) = (0u64, 0);
    while let Some((key, value)) = walk.next()? {
        writer.add(key, value).map_err(broken)?;
        entries += 1;
        bytes += (key.len() + value.len()) as u64;
        if entries.is_multiple_of(STEP) {
            progress.set(entries);
        }
    }
    writer.finish().map_err(broken)?;
    drop(progress);
    let seconds = started.elapsed().as_secs_f64();
    let mut out = Out::stdout();
    if args.json.json {
        out.json(&json!({
            "keyspace": name, "entries": entries, "bytes": bytes, "seconds": seconds,
        }))?;
        return out.finish();
    }
    out.line(format!(
        "exported {}, {} in {seconds:.1} s",
        human::counted(entries, "entry"),
        human::bytes(bytes)
    ))?;
    out.finish()
}

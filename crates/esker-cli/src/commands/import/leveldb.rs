//! `esker import leveldb`: a LevelDB database, read without its library.

use std::path::PathBuf;
use std::rc::Rc;

use esker_transfer::leveldb::{LevelDb, Settings};

use super::target::{Stop, Target, TargetArgs};
use crate::exit::{Failure, Outcome};
use crate::progress::Progress;

const EXAMPLES: &str = "\
Examples:
  esker import leveldb ./index ./db             into a new store
  esker import leveldb ./index ./db -k index    into a keyspace, of a store that may be there
  esker import leveldb ./broken ./db --salvage  what is intact, and a list of what is lost
  esker import leveldb ./idb ./db --raw         whatever order the program gave its keys

Reads what LevelDB 1.0 to 1.23 and its newer sources write, with blocks that are not compressed, or
by Snappy, Zstandard, or the zlib of Minecraft's fork: newest values, no deletions, also what is
still in the log. Every checksum is checked. The source stays as it is, byte for byte, and is locked
as LevelDB does it: it is refused while a program has it open, and cannot be opened meanwhile.

Damage is an error that names file and offset. --salvage reads on behind it, finds blocks whose
index is gone, and does without a manifest; entries are sorted anew then, in temporary files of as
many bytes beside DB. So they are with --raw, for other orders than by bytes.

An import is there whole or not at all: entries appear together, a new store gets its name last.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Directory of the LevelDB database
    #[arg(value_name = "DIR")]
    source: PathBuf,
    #[command(flatten)]
    target: TargetArgs,
    /// Take what is intact, and list what is lost
    #[arg(long)]
    salvage: bool,
    /// Take keys in the order of their bytes, whatever comparator the database has
    #[arg(long)]
    raw: bool,
}

pub(super) fn run(args: Args) -> Outcome {
    let target = Target::check(&args.target)?;
    let settings = Settings {
        salvage: args.salvage,
        raw: args.raw,
        memory: args.target.sort_memory(),
        scratch: args.target.scratch(),
    };
    let broken = |e: esker_transfer::Error| Failure::from(Stop::Source(e));
    let mut source = LevelDb::open(&args.source, settings).map_err(broken)?;
    let progress = Rc::new(Progress::bytes("importing", Some(source.size())));
    let shown = Rc::clone(&progress);
    source.on_step(move |bytes| shown.set(bytes));
    let skip = args.salvage || args.target.skip_large;
    let entries = source.entries().map_err(broken)?;
    let imported = target.fill(entries, || source.check_unchanged(), skip)?;
    progress.clear();
    target.summary(&imported, source.report())
}

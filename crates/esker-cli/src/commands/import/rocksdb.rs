//! `esker import rocksdb`: a column family of a RocksDB database, by RocksDB's library.

use super::peer::{self, SourceArgs};
use super::target::TargetArgs;
use crate::exit::Outcome;

const EXAMPLES: &str = "\
Examples:
  esker import rocksdb ./rocks ./db                      the column family default
  esker import rocksdb ./rocks ./db --db users -k users  another, into a keyspace

RocksDB's library is needed (Debian: librocksdb-dev), in a release that reads what wrote the
database. It is opened read-only and locked meanwhile; checksums are checked. A comparator other
than by bytes is refused, and so are entries that need a program's merge operator.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    target: TargetArgs,
    /// Column family to import [default: default]
    #[arg(long = "db", value_name = "NAME")]
    name: Option<String>,
}

pub(super) fn run(args: Args) -> Outcome {
    let scratch = args.target.scratch();
    peer::run(&args.target, || {
        esker_transfer::rocksdb::open(&args.source.path, args.name.as_deref(), &scratch)
    })
}

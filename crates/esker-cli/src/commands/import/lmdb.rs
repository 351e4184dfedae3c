//! `esker import lmdb`: a database of an LMDB environment, by LMDB's library.

use super::peer::{self, SourceArgs};
use super::target::TargetArgs;
use crate::exit::Outcome;

const EXAMPLES: &str = "\
Examples:
  esker import lmdb ./env ./db                   a directory with data.mdb, the main database
  esker import lmdb ./env.mdb ./db               an environment that is a file (MDB_NOSUBDIR)
  esker import lmdb ./env ./db --db users -k users
  mdb_dump -a ./env | esker load ./db --format dbdump --all --create    without the library here

The import sees one moment of the environment, whatever is written meanwhile. LMDB's library is
needed (Debian: liblmdb0). Keys must be in the order of their bytes and have one value each: other
orders (MDB_REVERSEKEY, MDB_INTEGERKEY, a program's own) and second values (MDB_DUPSORT) are refused.
LMDB keeps no checksums, so damage is not noticed; its data file is not changed.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    target: TargetArgs,
    /// Named database to import [default: the main one]
    #[arg(long = "db", value_name = "NAME")]
    name: Option<String>,
}

pub(super) fn run(args: Args) -> Outcome {
    peer::run(&args.target, || esker_transfer::lmdb::open(&args.source.path, args.name.as_deref()))
}

//! `esker import`: what another store has, into one of Esker.
//!
//! Each source is a file of its own; [`target`] is what they fill.

mod leveldb;
mod target;

use clap::Subcommand;

use crate::exit::Outcome;

const EXAMPLES: &str = "\
Examples:
  esker import leveldb ./chain.ldb ./db       a LevelDB database into a new store
  esker import leveldb --help                 what is checked, and what damage does

The source is opened to be read and is never changed. The store gets its name when it is whole:
until then it has .partial behind it. Text is loaded by `esker load`.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    source: Source,
}

#[derive(Debug, Subcommand)]
enum Source {
    /// A LevelDB database, without its library
    #[command(name = "leveldb")]
    LevelDb(leveldb::Args),
}

pub(crate) fn run(args: Args) -> Outcome {
    match args.source {
        Source::LevelDb(args) => leveldb::run(args),
    }
}

//! `esker export`: what a keyspace has, as a database of another store.

mod leveldb;

use clap::Subcommand;

use crate::exit::Outcome;

const EXAMPLES: &str = "\
Examples:
  esker export leveldb ./db ./index           the keyspace default as a LevelDB database
  esker export leveldb ./db ./index -k users  another keyspace

The store is opened read-only. Text is written by `esker dump`.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    target: Target,
}

#[derive(Debug, Subcommand)]
enum Target {
    /// A LevelDB database, without its library
    #[command(name = "leveldb")]
    LevelDb(leveldb::Args),
}

pub(crate) fn run(args: Args) -> Outcome {
    match args.target {
        Target::LevelDb(args) => leveldb::run(args),
    }
}

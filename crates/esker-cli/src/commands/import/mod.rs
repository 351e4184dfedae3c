//! `esker import`: what another store has, into one of Esker.
//!
//! Each source is a file of its own; [`target`] is what they fill.

mod leveldb;
mod lmdb;
mod peer;
mod rocksdb;
mod sqlite;
mod target;

use clap::Subcommand;

use crate::exit::Outcome;

const EXAMPLES: &str = "\
Examples:
  esker import leveldb ./chain.ldb ./db       a LevelDB database into a new store
  esker import leveldb --help                 what is checked, and what damage does
  esker import lmdb ./env ./db --db users     a named database, by LMDB's library
  esker import rocksdb ./rocks ./db           a column family, by RocksDB's
  esker import sqlite ./app.sqlite ./db --table kv --key k --value v

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
    /// A database of an LMDB environment
    Lmdb(lmdb::Args),
    /// A column family of a RocksDB database
    #[command(name = "rocksdb")]
    RocksDb(rocksdb::Args),
    /// Two columns of a table of an SQLite database
    Sqlite(sqlite::Args),
}

pub(crate) fn run(args: Args) -> Outcome {
    match args.source {
        Source::LevelDb(args) => leveldb::run(args),
        Source::Lmdb(args) => lmdb::run(args),
        Source::RocksDb(args) => rocksdb::run(args),
        Source::Sqlite(args) => sqlite::run(args),
    }
}

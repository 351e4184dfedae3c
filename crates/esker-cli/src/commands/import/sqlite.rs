//! `esker import sqlite`: two columns of a table, by SQLite's library.

use clap::ValueEnum;
use esker_transfer::sqlite::{self, Columns};

use super::peer::{self, SourceArgs};
use super::target::TargetArgs;
use crate::exit::Outcome;

const EXAMPLES: &str = "\
Examples:
  esker import sqlite ./app.sqlite ./db --table kv --key k --value v
  esker import sqlite ./app.sqlite ./db --table users --key id --value json --integers text

SQLite's library is needed (Debian: libsqlite3-0). Texts become their UTF-8, blobs stay as they are.
An integer becomes eight bytes, the highest first, with the sign bit turned over: the order of keys
is that of the numbers then; with --integers text, its decimal digits. NULL, other numbers, and keys
that come twice are refused; a view can leave them out, and a table may be one.

The import sees one moment of the database, which is opened read-only. Rows are sorted, beyond half
of --memory in temporary files beside DB.";

/// [`sqlite::Integers`] as a flag.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Integers {
    /// Eight bytes in the order of the numbers
    Ordered,
    /// Decimal digits
    Text,
}

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    target: TargetArgs,
    /// Table or view to import
    #[arg(long, value_name = "NAME")]
    table: String,
    /// Column of the keys
    #[arg(long, value_name = "COLUMN")]
    key: String,
    /// Column of the values
    #[arg(long, value_name = "COLUMN")]
    value: String,
    /// What integers become
    #[arg(long, value_name = "FORM", value_enum, default_value = "ordered")]
    integers: Integers,
}

pub(super) fn run(args: Args) -> Outcome {
    let (memory, scratch) = (args.target.sort_memory(), args.target.scratch());
    let integers = match args.integers {
        Integers::Ordered => sqlite::Integers::Ordered,
        Integers::Text => sqlite::Integers::Text,
    };
    let columns = Columns { table: args.table, key: args.key, value: args.value, integers };
    peer::run(&args.target, || sqlite::open(&args.source.path, columns, memory, &scratch))
}

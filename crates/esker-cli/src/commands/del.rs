//! `esker del`: removes entries.

use std::ffi::OsString;

use esker::{Durability, WriteBatch};

use crate::args::{EncodingArgs, KeyspaceArgs, StoreArgs, SyncArgs};
use crate::exit::Outcome;
use crate::store;

const EXAMPLES: &str = "\
Examples:
  esker del ./db colour                  remove one entry
  esker del ./db a b c                   remove several: all of them or, on an error, none
  esker del ./db --hex 00ff              a key in hexadecimal

A key that is not there is none to remove: the exit code is 0 either way.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,
    /// Keys
    #[arg(value_name = "KEY", required = true, allow_negative_numbers = true)]
    keys: Vec<OsString>,
    #[command(flatten)]
    keyspace: KeyspaceArgs,
    #[command(flatten)]
    encoding: EncodingArgs,
    #[command(flatten)]
    sync: SyncArgs,
}

pub(crate) fn run(args: Args) -> Outcome {
    let keys: Vec<_> =
        args.keys.iter().map(|key| args.encoding.bytes("KEY", key)).collect::<Result<_, _>>()?;
    let db = store::open_to_write(&args.store, None)?;
    let keyspace = store::keyspace(&db, &args.keyspace.keyspace)?;
    let mut batch = WriteBatch::new();
    for key in keys {
        batch.delete_in(&keyspace, key);
    }
    let durability = if args.sync.sync { Durability::Synced } else { Durability::Buffered };
    db.write_with(batch, durability)?;
    Ok(db.close()?)
}

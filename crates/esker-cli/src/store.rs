//! Opening stores and keyspaces the way the commands need them.

use esker::{Db, KeyOrder, Keyspace, Options, Stats};

use crate::args::{Codec, StoreArgs};
use crate::exit::Failure;

/// The keyspace every store has.
pub(crate) const DEFAULT_KEYSPACE: &str = "default";

fn options(args: &StoreArgs) -> Options {
    match args.memory {
        Some(bytes) => Options::new().memory(bytes),
        None => Options::new(),
    }
}

/// Opens an existing store and writes nothing to it.
pub(crate) fn open_to_read(args: &StoreArgs) -> Result<Db, Failure> {
    Ok(options(args).read_only(true).create_if_missing(false).open(&args.db)?)
}

/// Opens a store to write to it; makes it when it is missing and `create` says so.
pub(crate) fn open_to_write(
    args: &StoreArgs,
    compression: Option<Codec>,
    create: bool,
) -> Result<Db, Failure> {
    let mut options = options(args).create_if_missing(create);
    if let Some(codec) = compression {
        options = options.compression(codec.into());
    }
    Ok(options.open(&args.db)?)
}

/// Opens a store to fill a keyspace of it. A store that is not there is made, but not in order to
/// find out that it lacks the keyspace.
pub(crate) fn open_to_fill(
    args: &StoreArgs,
    compression: Option<Codec>,
    name: &str,
) -> Result<(Db, Keyspace), Failure> {
    let db = open_to_write(args, compression, name == DEFAULT_KEYSPACE)?;
    let keyspace = keyspace(&db, name)?;
    Ok((db, keyspace))
}

/// The keyspace of that name.
pub(crate) fn keyspace(db: &Db, name: &str) -> Result<Keyspace, Failure> {
    if name == DEFAULT_KEYSPACE {
        return Ok(Keyspace::clone(db));
    }
    Ok(db.keyspace(name)?)
}

/// The order of a keyspace. Only the two built-in orders can be open here: a store whose keyspace
/// has an order of its own cannot be opened without that comparator.
pub(crate) fn order(stats: &Stats, name: &str) -> KeyOrder {
    let reverse = |k: &&esker::KeyspaceStats| k.name == name && k.order.contains("reverse");
    match stats.keyspaces.iter().find(reverse) {
        Some(_) => KeyOrder::Reverse,
        None => KeyOrder::Bytewise,
    }
}

/// Entries of a keyspace including old versions and deletions, which is as near to their number as
/// one gets without counting them.
pub(crate) fn entries_at_most(stats: &Stats, name: &str) -> u64 {
    let of = |k: &esker::KeyspaceStats| {
        k.memtable_entries + k.runs.iter().map(|run| run.entries).sum::<u64>()
    };
    stats.keyspaces.iter().find(|k| k.name == name).map_or(0, of)
}

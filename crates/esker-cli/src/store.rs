//! Opening stores and keyspaces the way the commands need them.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use esker::{Db, KeyOrder, Keyspace, KeyspaceStats, Options, Stats};
use esker_transfer::{Kind, kind_of};

use crate::args::{Codec, StoreArgs};
use crate::exit::{Failure, Outcome};

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
    look_at(&args.db)?;
    Ok(options(args).read_only(true).create_if_missing(false).open(&args.db)?)
}

/// Opens an existing store to write to it.
pub(crate) fn open_to_write(args: &StoreArgs, compression: Option<Codec>) -> Result<Db, Failure> {
    look_at(&args.db)?;
    open(args, compression, None, false)
}

/// Opens a store to fill a keyspace of it; where there is none, makes one if `create` says so, but
/// not in order to find out that it lacks the keyspace.
pub(crate) fn open_keyspace_to_fill(
    args: &StoreArgs,
    compression: Option<Codec>,
    name: &str,
    create: bool,
) -> Result<(Db, Keyspace), Failure> {
    if create && name != DEFAULT_KEYSPACE && !look_at(&args.db)?.iter().any(|n| n == CURRENT) {
        return Err(Failure::Broken(format!(
            "there is no store in {db}, and a new one has no keyspace {name:?}; `esker keyspaces \
             {db} create {name} --create` makes both",
            db = args.db.display()
        )));
    }
    let db = open_to_fill(args, compression, None, create)?;
    let keyspace = keyspace(&db, name)?;
    Ok((db, keyspace))
}

/// Opens a store to fill it; where there is none, makes one if `create` says so. A typo in a path
/// makes none.
pub(crate) fn open_to_fill(
    args: &StoreArgs,
    compression: Option<Codec>,
    order: Option<KeyOrder>,
    create: bool,
) -> Result<Db, Failure> {
    let names = look_at(&args.db)?;
    if names.iter().any(|n| n == CURRENT) {
        return open(args, compression, order, false);
    }
    if !create {
        return Err(Failure::Broken(format!(
            "there is no store in {}; check the path, or make one with --create",
            args.db.display()
        )));
    }
    check_room(&args.db, &names)?;
    open(args, compression, order, true)
}

/// Whether there is a store; where there is none, one can be made.
pub(crate) fn is_store(db: &Path) -> Result<bool, Failure> {
    let names = look_at(db)?;
    let is_store = names.iter().any(|n| n == CURRENT);
    if !is_store {
        check_room(db, &names)?;
    } else if matches!(kind_of(db), Some(Kind::LevelDb | Kind::RocksDb)) {
        return Err(esker::Error::ForeignStore { path: db.to_path_buf() }.into());
    }
    Ok(is_store)
}

/// Refuses a directory with files of others.
fn check_room(db: &Path, names: &[String]) -> Outcome {
    match names.iter().find(|n| !left_by_a_killed_start(n)) {
        None => Ok(()),
        Some(other) => Err(Failure::Broken(format!(
            "{} holds other files, {other:?} for one; a store is made in a new directory, or in an \
             empty one",
            db.display()
        ))),
    }
}

fn open(
    args: &StoreArgs,
    compression: Option<Codec>,
    order: Option<KeyOrder>,
    create: bool,
) -> Result<Db, Failure> {
    let mut options = options(args).create_if_missing(create);
    if let Some(codec) = compression {
        options = options.compression(codec.into());
    }
    if let Some(order) = order {
        options = options.comparator(order);
    }
    Ok(options.open(&args.db)?)
}

const CURRENT: &str = "CURRENT";

/// What is in the directory before a store is durable there.
fn left_by_a_killed_start(name: &str) -> bool {
    name == "LOCK" || name == "CURRENT.tmp" || name.starts_with("MANIFEST-")
}

/// The names in the directory `db`, of which there are none when it is missing. Refuses a file.
/// Whose store it is, the library asks when it opens it.
pub(crate) fn look_at(db: &Path) -> Result<Vec<String>, Failure> {
    let broken = |what: String| Err(Failure::Broken(what));
    match fs::read_dir(db) {
        Ok(entries) => {
            Ok(entries.flatten().map(|e| e.file_name().to_string_lossy().into_owned()).collect())
        }
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(e) if e.kind() == ErrorKind::NotADirectory => {
            broken(format!("{} is not a directory; a store is one", db.display()))
        }
        Err(e) => broken(format!("list {}: {e}", db.display())),
    }
}

/// The same look for the calls of the library that open nothing.
pub(crate) fn check(db: &Path) -> Outcome {
    look_at(db).map(drop)
}

/// The keyspace of that name.
pub(crate) fn keyspace(db: &Db, name: &str) -> Result<Keyspace, Failure> {
    Ok(keyspace_of(db, name)?)
}

/// The same, with the library's error.
pub(crate) fn keyspace_of(db: &Db, name: &str) -> esker::Result<Keyspace> {
    if name == DEFAULT_KEYSPACE {
        return Ok(db.default_keyspace().clone());
    }
    db.keyspace(name)
}

/// What is known of a keyspace. Every one that a store lists has statistics.
pub(crate) fn about<'s>(stats: &'s Stats, name: &str) -> Option<&'s KeyspaceStats> {
    stats.keyspaces.iter().find(|k| k.name == name)
}

/// The order of a keyspace. Only the two built-in orders can be open here: a store whose keyspace
/// has an order of its own cannot be opened without that comparator.
pub(crate) fn order(keyspace: &Keyspace) -> KeyOrder {
    order_named(keyspace.comparator_name()).unwrap_or_default()
}

/// The built-in order that is stored under this name.
pub(crate) fn order_named(name: &str) -> Option<KeyOrder> {
    [KeyOrder::Bytewise, KeyOrder::Reverse].into_iter().find(|order| order.name() == name)
}

/// Entries of a keyspace including old versions and deletions, which is as near to their number as
/// one gets without counting them.
pub(crate) fn entries_at_most(k: &KeyspaceStats) -> u64 {
    k.memtable_entries + k.runs.iter().map(|run| run.entries).sum::<u64>()
}

/// Bytes of its tables and of its entries that are not in tables yet.
pub(crate) fn bytes(k: &KeyspaceStats) -> u64 {
    k.memtable_bytes + k.runs.iter().map(|run| run.bytes).sum::<u64>()
}

/// Bytes that the files in the directory `db` take on the disk.
pub(crate) fn disk_bytes(db: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let entries = fs::read_dir(db).into_iter().flatten().flatten();
    // Of a block of 512 bytes, whatever the file system's own are.
    entries.filter_map(|e| e.metadata().ok()).map(|m| m.blocks() * 512).sum()
}

//! `esker keyspaces`: lists, makes and drops keyspaces.

use clap::{Subcommand, ValueEnum};
use esker::{Db, Error, KeyOrder, KeyspaceOptions, KeyspaceStats};
use serde_json::json;

use crate::args::{Codec, CreateArgs, JsonArgs, StoreArgs};
use crate::encoding::escape;
use crate::exit::Outcome;
use crate::human::{self, parse_size};
use crate::output::Out;
use crate::store;

const EXAMPLES: &str = "\
Examples:
  esker keyspaces ./db                                      list
  esker keyspaces ./db --json                               with sizes, for machines
  esker keyspaces ./db create users                         make one
  esker keyspaces ./db create events --order reverse --compression zstd
  esker keyspaces ./db drop events                          drop one with all its entries";

const CREATE_EXAMPLES: &str = "\
Examples:
  esker keyspaces ./db create users
  esker keyspaces ./db create users --create                the store too, when there is none
  esker keyspaces ./db create events --order reverse --compression zstd
  esker keyspaces ./db create photos --compression none --blob-threshold 64KiB

Order, compression and threshold are fixed when it is made, those that are given; the others are what the store is opened with.";

const DROP_EXAMPLES: &str = "\
Examples:
  esker keyspaces ./db drop events

Its entries are gone when the command ends. The keyspace default cannot be dropped.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    json: JsonArgs,
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Make a keyspace
    #[command(after_help = CREATE_EXAMPLES)]
    Create {
        /// Name of the keyspace
        name: String,
        /// Order of its keys, fixed for good
        #[arg(long, value_enum, default_value = "bytewise")]
        order: Order,
        /// Compression of its values [default: the store's]
        #[arg(long, value_name = "CODEC", value_enum)]
        compression: Option<Codec>,
        /// Write values from this size on once, to the log, and leave them there [default: the store's]
        #[arg(long, value_name = "SIZE", value_parser = parse_size)]
        blob_threshold: Option<u64>,
        #[command(flatten)]
        create: CreateArgs,
    },
    /// Drop a keyspace with all its entries
    #[command(after_help = DROP_EXAMPLES)]
    Drop {
        /// Name of the keyspace
        name: String,
    },
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Order {
    /// By unsigned bytes
    Bytewise,
    /// The other way round: the largest key is the first
    Reverse,
}

pub(crate) fn run(args: Args) -> Outcome {
    match &args.action {
        None => list(&args),
        Some(Action::Create { name, order, compression, blob_threshold, create }) => {
            let mut options = KeyspaceOptions::new().comparator(match order {
                Order::Bytewise => KeyOrder::Bytewise,
                Order::Reverse => KeyOrder::Reverse,
            });
            if let Some(codec) = *compression {
                options = options.compression(codec.into());
            }
            if let Some(bytes) = *blob_threshold {
                options = options.blob_threshold(usize::try_from(bytes).unwrap_or(usize::MAX));
            }
            if create.create {
                check(name, *blob_threshold)?;
            }
            let db = store::open_to_fill(&args.store, None, None, create.create)?;
            db.create_keyspace(name, options)?;
            Ok(db.close()?)
        }
        Some(Action::Drop { name }) => {
            let db = store::open_to_write(&args.store, None)?;
            db.drop_keyspace(name)?;
            Ok(db.close()?)
        }
    }
}

/// Refuses what no store takes, before one is made for it.
fn check(name: &str, blob_threshold: Option<u64>) -> Outcome {
    let len = name.len();
    if !(1..=255).contains(&len) {
        return Err(Error::InvalidKeyspaceName { len }.into());
    }
    if blob_threshold.is_some_and(|bytes| bytes < 64) {
        let why = "must be at least 64 bytes".into();
        return Err(Error::InvalidOption { option: "blob_threshold", why }.into());
    }
    if name == store::DEFAULT_KEYSPACE {
        return Err(Error::KeyspaceExists { name: name.into() }.into());
    }
    Ok(())
}

fn list(args: &Args) -> Outcome {
    let db: Db = store::open_to_read(&args.store)?;
    let stats = db.stats();
    let mut out = Out::stdout();
    if args.json.json {
        let of = |k: &KeyspaceStats| {
            json!({
                "name": k.name,
                "comparator": k.comparator,
                "compression": k.compression,
                "blob_threshold": k.blob_threshold,
                "entries": store::entries_at_most(k),
                "bytes": store::bytes(k),
                "runs": k.runs.len(),
                "tables": k.runs.iter().map(|run| run.tables).sum::<usize>(),
            })
        };
        out.json(&stats.keyspaces.iter().map(of).collect())?;
        return out.finish();
    }
    // A name may hold anything; each has a line.
    let names: Vec<_> = stats.keyspaces.iter().map(|k| shown(&k.name)).collect();
    let width = names.iter().map(|n| n.chars().count()).max().unwrap_or(0);
    for (name, k) in names.iter().zip(&stats.keyspaces) {
        out.line(format!("{name:width$}  {}", about(k)))?;
    }
    out.finish()
}

fn shown(name: &str) -> String {
    let mut text = Vec::new();
    escape(name.as_bytes(), &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

fn about(k: &KeyspaceStats) -> String {
    let entries = human::counted(store::entries_at_most(k), "entry");
    let bytes = human::bytes(store::bytes(k));
    format!("{}  {}  {entries}  {bytes}", human::order(&k.comparator), k.compression)
}

//! `esker keyspaces`: lists, makes and drops keyspaces.

use clap::{Subcommand, ValueEnum};
use esker::{Db, KeyOrder, KeyspaceOptions, KeyspaceStats};
use serde_json::json;

use crate::args::{Codec, JsonArgs, StoreArgs};
use crate::exit::Outcome;
use crate::human::{self, parse_size};
use crate::output::Out;
use crate::store;

const EXAMPLES: &str = "\
Examples:
  esker keyspaces ./db                                      list
  esker keyspaces ./db create users                         make one
  esker keyspaces ./db create events --order reverse --compression zstd
  esker keyspaces ./db drop events                          drop one with all its entries

create makes the store when there is none.";

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
    Create {
        /// Name of the keyspace
        name: String,
        /// Order of its keys, fixed for good
        #[arg(long, value_enum, default_value = "bytewise")]
        order: Order,
        /// Compression of its values [default: the store's]
        #[arg(long, value_name = "CODEC", value_enum)]
        compression: Option<Codec>,
        /// Write values from this size on once, to the log, and leave them there [default: 4KiB]
        #[arg(long, value_name = "SIZE", value_parser = parse_size)]
        separate_values_from: Option<u64>,
    },
    /// Drop a keyspace with all its entries
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
        Some(Action::Create { name, order, compression, separate_values_from }) => {
            let mut options = KeyspaceOptions::new().order(match order {
                Order::Bytewise => KeyOrder::Bytewise,
                Order::Reverse => KeyOrder::Reverse,
            });
            if let Some(codec) = *compression {
                options = options.compression(codec.into());
            }
            if let Some(bytes) = *separate_values_from {
                options =
                    options.separate_values_from(usize::try_from(bytes).unwrap_or(usize::MAX));
            }
            let db = store::open_to_write(&args.store, None, true)?;
            db.create_keyspace(name, options)?;
            Ok(db.close()?)
        }
        Some(Action::Drop { name }) => {
            let db = store::open_to_write(&args.store, None, false)?;
            db.drop_keyspace(name)?;
            Ok(db.close()?)
        }
    }
}

fn list(args: &Args) -> Outcome {
    let db: Db = store::open_to_read(&args.store)?;
    let stats = db.stats();
    let mut out = Out::stdout();
    let names = db.keyspaces();
    if args.json.json {
        let of = |name: &String| match stats.keyspaces.iter().find(|k| &k.name == name) {
            Some(k) => json!({ "name": name, "order": k.order, "compression": k.compression }),
            None => json!({ "name": name }),
        };
        out.json(&names.iter().map(of).collect())?;
        return out.finish();
    }
    let width = names.iter().map(|n| n.chars().count()).max().unwrap_or(0);
    for name in &names {
        let about = stats.keyspaces.iter().find(|k| &k.name == name).map(about).unwrap_or_default();
        out.line(format!("{name:width$}  {about}").trim_end())?;
    }
    out.finish()
}

fn about(k: &KeyspaceStats) -> String {
    let bytes = k.memtable_bytes + k.runs.iter().map(|run| run.bytes).sum::<u64>();
    format!("{}  {}  {}", human::order(&k.order), k.compression, human::bytes(bytes))
}

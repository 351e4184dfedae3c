//! `esker scan`: the entries of a range, in order.

use serde_json::{Map, Value};

use crate::args::{EncodingArgs, EscapeArgs, JsonArgs, KeyspaceArgs, RangeArgs, StoreArgs};
use crate::exit::Outcome;
use crate::output::{Out, json_bytes};
use crate::screen::Style;
use crate::store;
use crate::walk::Walk;

const EXAMPLES: &str = "\
Examples:
  esker scan ./db                                  all entries
  esker scan ./db --prefix user: --keys-only       the keys below user:
  esker scan ./db --from 2024 --to 2025            keys from 2024 on, up to but without 2025
  esker scan ./db --prefix log/ --reverse --limit 10    the last ten
  esker scan ./db --json | jq .value               one JSON object a line

A line is key, tab, value, with tab, newline, carriage return and backslash inside them written
\\t \\n \\r \\\\, so that `esker load --format tsv` reads what this prints. On a terminal control
characters, what turns the direction of text, and bytes that are not UTF-8 are written like \\x1b,
which a load reads too; --escape forces either. --from and --to keep their meaning with --reverse,
which only turns the order of the output.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    range: RangeArgs,
    /// From the last key to the first
    #[arg(long, short)]
    reverse: bool,
    /// Print at most this many entries
    #[arg(long, short = 'n', value_name = "N")]
    limit: Option<u64>,
    /// Print keys only; values are not even read
    #[arg(long)]
    keys_only: bool,
    #[command(flatten)]
    keyspace: KeyspaceArgs,
    #[command(flatten)]
    encoding: EncodingArgs,
    #[command(flatten)]
    escape: EscapeArgs,
    #[command(flatten)]
    json: JsonArgs,
}

pub(crate) fn run(args: Args) -> Outcome {
    let db = store::open_to_read(&args.store)?;
    let keyspace = store::keyspace(&db, &args.keyspace.keyspace)?;
    let order = store::order(&keyspace);
    let bounds = args.range.bounds(&args.encoding, &order)?;
    let mut walk = if args.keys_only {
        Walk::keys(&keyspace, order, bounds, args.reverse)
    } else {
        Walk::entries(&keyspace, order, bounds, args.reverse)
    };
    let style = if args.json.json { Style::Json } else { Style::Bytes };
    let mut out = Out::stdout_as(args.escape.escape, style);
    let mut line = Vec::new();
    let mut left = args.limit.unwrap_or(u64::MAX);
    while left > 0
        && let Some((key, value)) = walk.next()?
    {
        left -= 1;
        line.clear();
        write_line(&args, key, value, &mut line);
        out.bytes(&line)?;
    }
    out.finish()
}

fn write_line(args: &Args, key: &[u8], value: &[u8], line: &mut Vec<u8>) {
    let encoding = args.encoding.encoding();
    if args.json.json {
        let mut object = Map::new();
        json_bytes(&mut object, "key", key, encoding);
        if !args.keys_only {
            json_bytes(&mut object, "value", value, encoding);
        }
        line.extend_from_slice(Value::from(object).to_string().as_bytes());
    } else {
        encoding.encode_field(key, line);
        if !args.keys_only {
            line.push(b'\t');
            encoding.encode_field(value, line);
        }
    }
    line.push(b'\n');
}

//! `esker get`: the value of one key.

use std::ffi::OsString;
use std::io::IsTerminal;

use serde_json::Map;

use crate::args::{EncodingArgs, Escape, EscapeArgs, JsonArgs, KeyspaceArgs, StoreArgs};
use crate::encoding::Encoding;
use crate::exit::{Failure, Outcome};
use crate::output::{Out, json_bytes};
use crate::screen::Style;
use crate::store;

const EXAMPLES: &str = "\
Examples:
  esker get ./db colour                  print a value
  esker get ./db photo > photo.jpg       the file is the value, byte for byte
  esker get ./db --hex 00ff              key and value in hexadecimal
  esker get ./db colour || echo none     the exit code is 1 when there is no such key

Into a file or a pipe the value is written as it is. Where a person reads it a newline follows: on
a terminal, and after hexadecimal or base64. On a terminal control characters, and what turns the
direction of text, are written like \\x1b; newlines and tabs stay. --escape forces either, and
--raw is for a terminal that is to have the very bytes.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,
    /// Key
    #[arg(value_name = "KEY", allow_negative_numbers = true)]
    key: OsString,
    /// Print the value as it is, without a newline behind it, even on a terminal
    #[arg(long, conflicts_with_all = ["hex", "base64", "json", "escape"])]
    raw: bool,
    #[command(flatten)]
    escape: EscapeArgs,
    #[command(flatten)]
    keyspace: KeyspaceArgs,
    #[command(flatten)]
    encoding: EncodingArgs,
    #[command(flatten)]
    json: JsonArgs,
}

pub(crate) fn run(args: Args) -> Outcome {
    let key = args.encoding.bytes("KEY", &args.key)?;
    let db = store::open_to_read(&args.store)?;
    let keyspace = store::keyspace(&db, &args.keyspace.keyspace)?;
    let Some(value) = keyspace.get(&key)? else {
        return Err(Failure::NotFound("there is no such key".into()));
    };
    let encoding = args.encoding.encoding();
    let escape = if args.raw { Escape::Never } else { args.escape.escape };
    let style = if args.json.json { Style::Json } else { Style::Bytes };
    let mut out = Out::stdout_as(escape, style);
    if args.json.json {
        let mut object = Map::new();
        json_bytes(&mut object, "key", &key, encoding);
        json_bytes(&mut object, "value", &value, encoding);
        out.json(&object.into())?;
    } else if encoding == Encoding::Plain {
        out.bytes(&value)?;
        if !args.raw && std::io::stdout().is_terminal() {
            out.bytes(b"\n")?;
        }
    } else {
        let mut line = Vec::new();
        encoding.encode_field(&value, &mut line);
        line.push(b'\n');
        out.bytes(&line)?;
    }
    out.finish()
}

//! `esker put`: one entry.

use std::ffi::OsString;
use std::io::Read;

use esker::{Durability, Error, MAX_KEY_LEN, MAX_VALUE_LEN};

use crate::args::{CompressionArgs, CreateArgs, EncodingArgs, KeyspaceArgs, StoreArgs, SyncArgs};
use crate::exit::{Failure, Outcome};
use crate::store;

const EXAMPLES: &str = "\
Examples:
  esker put ./db colour blue             make or change one entry
  esker put ./db colour blue --create    and the store, when there is none
  esker put ./db photo < photo.jpg       the value is standard input, byte for byte
  esker put ./db --hex 00ff cafe         key and value in hexadecimal
  esker put ./db --sync order:17 paid    return when it survives a power cut
  esker put ./db -k users 42 '{}'        in the keyspace users, which must exist
  esker put ./db -- --key-- -value       a key and value that begin with a dash

Without --create a store must be there: a path with a typo in it makes none.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,
    /// Key
    #[arg(value_name = "KEY", allow_negative_numbers = true)]
    key: OsString,
    /// Value; when it is absent, standard input to its end
    #[arg(value_name = "VALUE", allow_negative_numbers = true)]
    value: Option<OsString>,
    #[command(flatten)]
    create: CreateArgs,
    #[command(flatten)]
    keyspace: KeyspaceArgs,
    #[command(flatten)]
    encoding: EncodingArgs,
    #[command(flatten)]
    compression: CompressionArgs,
    #[command(flatten)]
    sync: SyncArgs,
}

pub(crate) fn run(args: Args) -> Outcome {
    let key = args.encoding.bytes("KEY", &args.key)?;
    let value = match &args.value {
        Some(value) => args.encoding.bytes("VALUE", value)?,
        None => from_stdin(&args.encoding)?,
    };
    // Before a store is made for them.
    if key.len() > MAX_KEY_LEN {
        return Err(Error::KeyTooLong { len: key.len() }.into());
    }
    if value.len() > MAX_VALUE_LEN {
        return Err(Error::ValueTooLong { len: value.len() }.into());
    }
    let compression = args.compression.compression;
    let (name, create) = (&args.keyspace.keyspace, args.create.create);
    let (db, keyspace) = store::open_keyspace_to_fill(&args.store, compression, name, create)?;
    let durability = if args.sync.sync { Durability::Synced } else { Durability::Buffered };
    keyspace.put_with(key, value, durability)?;
    Ok(db.close()?)
}

/// Reads one byte more than a value can have, so that the store can refuse it by its length.
fn from_stdin(encoding: &EncodingArgs) -> Result<Vec<u8>, Failure> {
    let longest_text = 2 * MAX_VALUE_LEN as u64 + 1;
    let mut text = Vec::new();
    std::io::stdin()
        .lock()
        .take(longest_text)
        .read_to_end(&mut text)
        .map_err(|e| Failure::Broken(format!("read standard input: {e}")))?;
    if !encoding.hex && !encoding.base64 {
        return Ok(text);
    }
    let mut bytes = Vec::new();
    match encoding.encoding().decode_argument(text.trim_ascii(), &mut bytes) {
        Ok(()) => Ok(bytes),
        Err(why) => Err(Failure::Broken(format!("standard input is {why}"))),
    }
}

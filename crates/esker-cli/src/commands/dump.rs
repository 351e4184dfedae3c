//! `esker dump`: entries to a file or standard output, in a form that `esker load` reads.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use crate::args::{EncodingArgs, KeyspaceArgs, RangeArgs, StoreArgs};
use crate::encoding::{Encoding, escape};
use crate::exit::{Failure, Outcome};
use crate::format::Format;
use crate::formats::jsonl::FieldPath;
use crate::formats::{WriteEntries, WriteError};
use crate::output::Out;
use crate::progress::Progress;
use crate::store;
use crate::walk::Walk;

const EXAMPLES: &str = "\
Examples:
  esker dump ./db > data.tsv                        key, tab, value on every line
  esker dump ./db backup.bin                        binary; notices when its end is missing
  esker dump ./db users.jsonl --key user.id         the values, which are JSON lines
  esker dump ./db --prefix user: --format bin | ssh host esker load ./db --format bin

The formats are those of `esker load --help`, and a dump is what was loaded, byte for byte, in the
order of the keys. The dump is of one moment, whatever is written meanwhile.

jsonl writes values only, and only values that are JSON on one line. With --key it also checks that
every key is what a load with that --key would take from the value, so that nothing is lost.";

/// How many entries between two updates of the progress bar.
const STEP: u64 = 1024;
/// How much of a key an error message shows, in bytes.
const SHOWN_KEY_BYTES: usize = 80;

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,
    /// File to write; standard output when it is absent or -
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Format of the output [default: what the file's name ends in, or tsv]
    #[arg(long, short, value_enum, value_name = "FORMAT")]
    format: Option<Format>,
    /// Field of a JSON line that must hold the key
    #[arg(long, value_name = "FIELD")]
    key: Option<FieldPath>,
    #[command(flatten)]
    range: RangeArgs,
    #[command(flatten)]
    keyspace: KeyspaceArgs,
    #[command(flatten)]
    encoding: EncodingArgs,
}

pub(crate) fn run(args: Args) -> Outcome {
    let file = args.file.as_deref().filter(|f| *f != Path::new("-"));
    let format = Format::pick(args.format, file);
    let encoding = args.encoding.encoding();
    // In binary the flags still say how --prefix, --from and --to are written.
    let of_format = if format == Format::Bin && !args.range.is_everything() {
        Encoding::Plain
    } else {
        encoding
    };
    format.check(args.key.is_some(), of_format)?;

    let db = store::open_to_read(&args.store)?;
    let name = &args.keyspace.keyspace;
    let keyspace = store::keyspace(&db, name)?;
    let stats = db.stats();
    let order = store::order(&stats, name);
    let bounds = args.range.bounds(&args.encoding, &order)?;
    let total = args.range.is_everything().then(|| store::entries_at_most(&stats, name));
    let mut out = Out::create(file)?;
    // A bar between the lines of a dump on the same terminal would garble both.
    let quiet = file.is_none() && std::io::stdout().is_terminal();
    let progress = (!quiet).then(|| Progress::entries("dumping", total));

    let mut walk = Walk::entries(&keyspace, order, bounds, false);
    let mut writer = format.writer(&mut out, args.key.clone(), encoding);
    let copied = copy(&mut walk, writer.as_mut(), &mut |entries| {
        if let Some(progress) = &progress {
            progress.set(entries);
        }
    });
    drop(writer);
    drop(progress);
    match copied {
        Ok(()) => out.finish(),
        Err(Stop::Store(e)) => Err(e.into()),
        Err(Stop::Output(e)) => Err(out.failure(&e)),
        Err(Stop::Unfit { key, why }) => Err(Failure::Broken(format!(
            "the entry with key {key} cannot be dumped as jsonl: {why}; dump as tsv or bin"
        ))),
    }
}

/// Why a dump stopped.
enum Stop {
    Store(esker::Error),
    Output(std::io::Error),
    Unfit { key: String, why: String },
}

fn copy(
    walk: &mut Walk,
    writer: &mut dyn WriteEntries,
    on_step: &mut dyn FnMut(u64),
) -> Result<(), Stop> {
    let mut entries: u64 = 0;
    while let Some((key, value)) = walk.next().map_err(Stop::Store)? {
        writer.write(key, value).map_err(|e| match e {
            WriteError::Io(e) => Stop::Output(e),
            WriteError::Unfit(why) => Stop::Unfit { key: shown(key), why },
        })?;
        entries += 1;
        if entries.is_multiple_of(STEP) {
            on_step(entries);
        }
    }
    writer.finish().map_err(Stop::Output)
}

/// A key for a message: on one line, and not a screen long.
fn shown(key: &[u8]) -> String {
    let mut text = Vec::new();
    escape(&key[..key.len().min(SHOWN_KEY_BYTES)], &mut text);
    let dots = if key.len() > SHOWN_KEY_BYTES { "..." } else { "" };
    format!("{:?}{dots}", String::from_utf8_lossy(&text))
}

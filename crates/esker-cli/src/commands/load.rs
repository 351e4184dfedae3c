//! `esker load`: entries from a file or standard input.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Instant;

use esker::{Db, Keyspace, MAX_KEY_LEN, MAX_VALUE_LEN, WriteBatch};
use serde_json::json;

use crate::args::{CompressionArgs, EncodingArgs, JsonArgs, KeyspaceArgs, StoreArgs, SyncArgs};
use crate::exit::{Failure, Outcome};
use crate::format::Format;
use crate::formats::jsonl::FieldPath;
use crate::formats::{Bad, Limits, ReadEntries, ReadError};
use crate::metered::Metered;
use crate::output::Out;
use crate::progress::Progress;
use crate::{human, store};

const EXAMPLES: &str = "\
Examples:
  esker load ./db data.tsv                          key, tab, value on every line
  esker load ./db users.jsonl --key user.id         the field is the key, the line the value
  zcat data.tsv.gz | esker load ./db                from a pipe
  esker load ./db data.tsv --skip-bad               count bad lines and go on
  esker dump ./db --format bin | esker load ./copy --format bin

Formats:
  tsv    a line is key, tab, value. Inside them tab, newline, carriage return and backslash are
         written \\t \\n \\r \\\\; all other bytes stand for themselves.
  jsonl  a line is a JSON object in UTF-8. Its field --key gives the key (a string or a number), the
         line as it stands is the value. `a.b` is the field b of the object a; a dot in a name is
         written `\\.`.
  bin    8 bytes `ESKERKV` and 01, then for every entry the length of the key and of the value, 4
         bytes each, little-endian, then key and value; at the end 8 bytes ff and the number of
         entries in 8 bytes. Dumps may be put one after the other.

The first bad line or record ends the load: what came before it is loaded, nothing behind it. A key
that comes twice keeps its last value. The store is made when there is none, a keyspace is not:
`esker keyspaces DB create NAME`.";

/// A batch is written when it has this many entries or bytes: large enough to share the cost of a
/// commit, small enough to be nothing beside the store's memory.
const BATCH_ENTRIES: usize = 1000;
const BATCH_BYTES: usize = 1 << 20;

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,
    /// File to read; standard input when it is absent or -
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Format of the input [default: what the file's name ends in, or tsv]
    #[arg(long, short, value_enum, value_name = "FORMAT")]
    format: Option<Format>,
    /// Field of a JSON line that holds the key
    #[arg(long, value_name = "FIELD")]
    key: Option<FieldPath>,
    /// Go on behind lines and records that are bad, and count them
    #[arg(long)]
    skip_bad: bool,
    #[command(flatten)]
    keyspace: KeyspaceArgs,
    #[command(flatten)]
    encoding: EncodingArgs,
    #[command(flatten)]
    compression: CompressionArgs,
    #[command(flatten)]
    sync: SyncArgs,
    #[command(flatten)]
    json: JsonArgs,
}

/// What a load did.
#[derive(Default)]
struct Loaded {
    entries: u64,
    bytes: u64,
    skipped: u64,
    first_skipped: Option<Bad>,
}

pub(crate) fn run(args: Args) -> Outcome {
    let file = args.file.as_deref().filter(|f| *f != Path::new("-"));
    let format = Format::pick(args.format, file);
    format.check(args.key.is_some(), args.encoding.encoding())?;
    if format == Format::Jsonl && args.key.is_none() {
        return Err(Failure::Usage(
            "a load of jsonl needs --key FIELD, the field that holds the key".into(),
        ));
    }
    // The input first: a wrong file name should not leave an empty store behind.
    let name = file.map_or("standard input".into(), |f| f.display().to_string());
    let (source, total) = open_input(file, &name)?;
    let (source, position) = Metered::new(source);
    let limits = Limits { key: MAX_KEY_LEN, value: MAX_VALUE_LEN };
    let mut reader = format.reader(source, args.key.clone(), args.encoding.encoding(), limits);

    let compression = args.compression.compression;
    let (db, keyspace) = store::open_to_fill(&args.store, compression, &args.keyspace.keyspace)?;
    let started = Instant::now();
    let progress = Progress::bytes("loading", total);
    let mut loaded = Loaded::default();
    let result = fill(&db, &keyspace, reader.as_mut(), args.skip_bad, &mut loaded, &mut || {
        progress.set(position.get());
    });
    drop(progress);
    // What was loaded before an error is to be as durable as what was asked for.
    let synced = if args.sync.sync { db.sync() } else { Ok(()) };
    let closed = db.close();
    result.map_err(|stop| stop.explain(&name, &loaded))?;
    synced?;
    closed?;
    summary(&args, &loaded, started.elapsed().as_secs_f64())
}

/// The input and its length, when it has one.
fn open_input(file: Option<&Path>, name: &str) -> Result<(Box<dyn Read>, Option<u64>), Failure> {
    let Some(path) = file else { return Ok((Box::new(io::stdin().lock()), None)) };
    let broken = |e: io::Error| Failure::Broken(format!("open {name}: {e}"));
    let file = File::open(path).map_err(broken)?;
    let metadata = file.metadata().map_err(broken)?;
    if metadata.is_dir() {
        return Err(Failure::Broken(format!("open {name}: it is a directory")));
    }
    Ok((Box::new(file), metadata.is_file().then_some(metadata.len())))
}

/// Why a load stopped.
enum Stop {
    Bad(Bad),
    Unreadable(io::Error),
    Store(esker::Error),
}

impl From<esker::Error> for Stop {
    fn from(e: esker::Error) -> Stop {
        Stop::Store(e)
    }
}

impl Stop {
    fn explain(self, name: &str, loaded: &Loaded) -> Failure {
        let before = human::counted(loaded.entries, "entry");
        Failure::Broken(match self {
            Stop::Bad(bad) => {
                let hint = if bad.fatal { "" } else { " (--skip-bad goes on)" };
                format!("{name}: {bad}; {before} before it loaded, nothing behind it{hint}")
            }
            Stop::Unreadable(e) => format!("read {name}: {e}; {before} before it loaded"),
            Stop::Store(e) => format!("{}; {before} loaded", Failure::from(e)),
        })
    }
}

/// Moves all entries from the reader into the keyspace. `loaded` counts what is in the store, also
/// when this stops early.
fn fill(
    db: &Db,
    keyspace: &Keyspace,
    reader: &mut dyn ReadEntries,
    skip_bad: bool,
    loaded: &mut Loaded,
    on_batch: &mut dyn FnMut(),
) -> Result<(), Stop> {
    let (mut key, mut value) = (Vec::new(), Vec::new());
    let mut batch = WriteBatch::new();
    let mut batch_bytes = 0;
    loop {
        let (done, stop) = match reader.read(&mut key, &mut value) {
            Ok(true) => {
                batch.put_in(keyspace, &key, &value);
                batch_bytes += key.len() + value.len();
                (false, None)
            }
            Ok(false) => (true, None),
            Err(ReadError::Bad(bad)) if skip_bad && !bad.fatal => {
                loaded.skipped += 1;
                loaded.first_skipped.get_or_insert(bad);
                continue;
            }
            Err(ReadError::Bad(bad)) => (true, Some(Stop::Bad(bad))),
            Err(ReadError::Io(e)) => (true, Some(Stop::Unreadable(e))),
        };
        let full = batch.len() >= BATCH_ENTRIES || batch_bytes >= BATCH_BYTES;
        if !batch.is_empty() && (done || full) {
            let entries = batch.len() as u64;
            db.write(&batch)?;
            batch.clear();
            loaded.entries += entries;
            loaded.bytes += batch_bytes as u64;
            batch_bytes = 0;
            on_batch();
        }
        match stop {
            Some(stop) => return Err(stop),
            None if done => return Ok(()),
            None => {}
        }
    }
}

fn summary(args: &Args, loaded: &Loaded, seconds: f64) -> Outcome {
    let mut out = Out::stdout();
    if args.json.json {
        out.json(&json!({
            "keyspace": args.keyspace.keyspace,
            "entries": loaded.entries,
            "bytes": loaded.bytes,
            "skipped": loaded.skipped,
            "first_skipped": loaded.first_skipped.as_ref().map(Bad::to_string),
            "seconds": seconds,
        }))?;
        return out.finish();
    }
    let rate = (loaded.entries as f64 / seconds.max(1e-9)) as u64;
    out.line(format!(
        "loaded {}, {} in {seconds:.1} s ({} a second)",
        human::counted(loaded.entries, "entry"),
        human::bytes(loaded.bytes),
        human::count(rate),
    ))?;
    if let Some(first) = &loaded.first_skipped {
        let skipped = human::count(loaded.skipped);
        out.line(format!("skipped {skipped} bad, the first at {first}"))?;
    }
    out.finish()
}

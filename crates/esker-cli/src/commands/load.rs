//! `esker load`: entries from a file or standard input.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Instant;

use esker::{
    Compression, Db, KeyOrder, Keyspace, KeyspaceOptions, MAX_KEY_LEN, MAX_VALUE_LEN, Stats,
    WriteBatch,
};
use serde_json::json;

use crate::args::{CompressionArgs, CreateArgs, EncodingArgs, JsonArgs};
use crate::args::{KeyspaceArgs, StoreArgs, SyncArgs};
use crate::exit::{Failure, Outcome};
use crate::format::{Choice, Format, parse_delimiter};
use crate::formats::all::{Head, ReadKeyspaces};
use crate::formats::{Bad, Limits, ReadEntries, ReadError};
use crate::metered::Metered;
use crate::output::Out;
use crate::progress::Progress;
use crate::{human, store};

const EXAMPLES: &str = "\
Examples:
  esker load ./db data.tsv                          key, tab, value on every line
  esker load ./db data.tsv --create                 into a store that it makes when there is none
  esker load ./db users.csv --key id --value email  two columns of a table, by name
  esker load ./db table.csv --no-header --key 3 --value 1
  esker load ./db users.jsonl --key user.id         the field is the key, the line the value
  zcat data.tsv.gz | esker load ./db                from a pipe
  esker load ./db data.tsv --skip-bad               count bad lines and go on
  mdb_dump ./env | esker load ./db --format dbdump  what LMDB's own command writes
  esker dump ./db --format bin | esker load ./copy --format bin --create
  esker dump ./db --format bin --all | esker load ./copy --format bin --all --create

Formats:
  tsv    a line is key, tab, value. Inside them tab, newline, carriage return and backslash are
         written \\t \\n \\r \\\\, and any byte may be written \\x and two hexadecimal digits; all
         others stand for themselves.
  csv    a row is columns with commas (--delimiter) between them. A field that holds a comma, a
         quote or a newline stands in quotes, each quote in it twice. The first row has the names of
         the columns, unless --no-header says not. Every row has as many columns as the first, at
         most 100,000; empty lines are passed over, empty fields are empty.
  jsonl  a line is a JSON object in UTF-8. Its field --key gives the key (a string or a number), the
         line as it stands is the value; or the field --value is: what a string says, of all else
         the JSON. `a.b` is the field b of the object a; a dot in a name is written `\\.`.
  bin    8 bytes `ESKERKV` and 01, then for every entry the length of the key and of the value, 4
         bytes each, little-endian, then key and value; at the end 8 bytes ff and the number of
         entries in 8 bytes. Dumps may be put one after the other.
  dbdump what mdb_dump of LMDB and db_dump of Berkeley DB write, with or without their -p: a header
         with VERSION=3, then a line for each key and each value, then DATA=END. A key's second
         value is a bad line.

  --all  tsv: a line of #keyspace, name, order, compression and threshold before the entries of
         each. bin: 8 bytes `ESKERDB` and 01, the number of keyspaces in 4 bytes, then for each its
         name and its order, the length of each in 4 bytes before it, compression (0 none, 1 lz4, 2
         zstd) in 1 byte, threshold in 8, and its entries as above. dbdump: one dump after the
         other, as mdb_dump -a writes them, each into the keyspace that its line database= names.

--key and --value choose columns of csv and tsv by name, where there is a header, or by number
from 1. Without them the first column is the key and, of two, the other the value.

The first bad line or record ends the load: what came before it is loaded, nothing behind it. A
key that comes twice keeps its last value. Without --create a store must be there; a keyspace must
be in any case: `esker keyspaces DB create NAME`.

--all loads what `esker dump --all` wrote: keyspaces that are missing are made as they were, and
those that are there are filled if their order is the same.";

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
    /// Column or field that holds the key: its name, or the number of a column
    #[arg(long, value_name = "FIELD", allow_negative_numbers = true)]
    key: Option<String>,
    /// Column or field that holds the value
    #[arg(long, value_name = "FIELD", allow_negative_numbers = true)]
    value: Option<String>,
    /// The first line has the names of the columns; so it is in csv
    #[arg(long, conflicts_with = "no_header")]
    header: bool,
    /// The first row of csv is data, and columns have numbers
    #[arg(long)]
    no_header: bool,
    /// What stands between the fields of csv [default: ,]
    #[arg(long, value_name = "CHARACTER", value_parser = parse_delimiter)]
    delimiter: Option<u8>,
    /// Load all keyspaces of a dump --all
    #[arg(long, conflicts_with_all =
        ["key", "value", "header", "no_header", "delimiter", "keyspace"])]
    all: bool,
    /// Go on behind lines and records that are bad, and count them
    #[arg(long)]
    skip_bad: bool,
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
    keyspaces: Vec<String>,
}

/// Where the entries come from.
enum Input {
    One(Box<dyn ReadEntries>),
    /// With the first keyspace, if there is any.
    All(Box<dyn ReadKeyspaces>, Option<Head>),
}

pub(crate) fn run(args: Args) -> Outcome {
    let file = args.file.as_deref().filter(|f| *f != Path::new("-"));
    let format = Format::pick(args.format, file);
    // The input first: a wrong file name should not leave an empty store behind, nor a wrong header.
    let name = file.map_or("standard input".into(), |f| f.display().to_string());
    let (source, total) = open_input(file, &name)?;
    let (source, position) = Metered::new(source);
    let mut loaded = Loaded::default();
    let input = begin(&args, format, source).map_err(|e| match e {
        Begin::Wrong(failure) => failure,
        Begin::Stopped(stop) => stop.explain(&name, &loaded),
    })?;

    let compression = args.compression.compression;
    let create = args.create.create;
    let progress = Progress::bytes("loading", total);
    let on_batch = &mut || progress.set(position.get());
    let started = Instant::now();
    let (db, result) = match input {
        Input::One(mut reader) => {
            let name = &args.keyspace.keyspace;
            let (db, keyspace) =
                store::open_keyspace_to_fill(&args.store, compression, name, create)?;
            loaded.keyspaces.push(name.clone());
            let result =
                fill(&db, &keyspace, reader.as_mut(), args.skip_bad, &mut loaded, on_batch);
            (db, result)
        }
        Input::All(mut reader, first) => {
            let of_default = first.as_ref().filter(|head| head.name == store::DEFAULT_KEYSPACE);
            let order = of_default.map(order_of).transpose()?;
            let db = store::open_to_fill(&args.store, compression, order, create)?;
            let result =
                fill_all(&db, reader.as_mut(), first, args.skip_bad, &mut loaded, on_batch);
            (db, result)
        }
    };
    drop(progress);
    // What was loaded before an error is to be as durable as what was asked for.
    let synced = if args.sync.sync { db.sync() } else { Ok(()) };
    let closed = db.close();
    result.map_err(|stop| stop.explain(&name, &loaded))?;
    synced?;
    closed?;
    summary(&args, &loaded, started.elapsed().as_secs_f64())
}

/// Why a load did not begin.
enum Begin {
    Wrong(Failure),
    Stopped(Stop),
}

impl From<Failure> for Begin {
    fn from(failure: Failure) -> Begin {
        Begin::Wrong(failure)
    }
}

impl From<ReadError> for Begin {
    fn from(e: ReadError) -> Begin {
        Begin::Stopped(e.into())
    }
}

/// Reads what stands before the first entry.
fn begin(args: &Args, format: Format, source: impl Read + 'static) -> Result<Input, Begin> {
    let limits = Limits { key: MAX_KEY_LEN, value: MAX_VALUE_LEN };
    let encoding = args.encoding.encoding();
    if args.all {
        let mut reader = format.reader_of_all(source, encoding, limits)?;
        let first = reader.next_keyspace()?;
        return Ok(Input::All(reader, first));
    }
    let choice = Choice {
        key: args.key.clone(),
        value: args.value.clone(),
        header: match (args.header, args.no_header) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ => None,
        },
        delimiter: args.delimiter,
        encoding,
    };
    let mut reader = format.reader(source, &choice, limits)?;
    reader.start()?;
    if args.create.create {
        match reader.look_at_first() {
            // It comes once more, and is counted.
            Err(ReadError::Bad(bad)) if args.skip_bad && !bad.fatal => {}
            looked => looked?,
        }
    }
    Ok(Input::One(reader))
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
    /// A keyspace cannot be what the dump says it was.
    Keyspace(Failure),
}

impl From<ReadError> for Stop {
    fn from(e: ReadError) -> Stop {
        match e {
            ReadError::Bad(bad) => Stop::Bad(bad),
            ReadError::Io(e) => Stop::Unreadable(e),
        }
    }
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
            Stop::Keyspace(failure) => format!("{failure}; {before} loaded"),
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
            Err(e) => (true, Some(e.into())),
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

/// Fills one keyspace after the other.
fn fill_all(
    db: &Db,
    reader: &mut dyn ReadKeyspaces,
    first: Option<Head>,
    skip_bad: bool,
    loaded: &mut Loaded,
    on_batch: &mut dyn FnMut(),
) -> Result<(), Stop> {
    // The default keyspace comes first. It has no settings of its own, so what it shows are those
    // of the store that was dumped, which the others have that differ in nothing.
    let of_store = first.clone();
    let mut next = first;
    while let Some(head) = next {
        // Asked anew each time: of dumps that were joined, a later one names keyspaces that an
        // earlier one made.
        let there = db.stats();
        let keyspace = keyspace_as(db, &there, &head, of_store.as_ref()).map_err(Stop::Keyspace)?;
        if !loaded.keyspaces.contains(&head.name) {
            loaded.keyspaces.push(head.name);
        }
        fill(db, &keyspace, reader, skip_bad, loaded, on_batch)?;
        next = reader.next_keyspace()?;
    }
    Ok(())
}

/// The order that a dump names.
fn order_of(head: &Head) -> Result<KeyOrder, Failure> {
    store::order_named(&head.order).ok_or_else(|| {
        Failure::Broken(format!(
            "keyspace {:?} is ordered by the comparator {:?}, which only the program has that made \
             it; load it from there",
            head.name, head.order
        ))
    })
}

/// The keyspace that a dump describes, which is made if it is not there.
fn keyspace_as(
    db: &Db,
    there: &Stats,
    head: &Head,
    of_store: Option<&Head>,
) -> Result<Keyspace, Failure> {
    let order = order_of(head)?;
    if let Some(there) = store::about(there, &head.name) {
        if there.comparator != head.order {
            return Err(Failure::Usage(format!(
                "keyspace {:?} is ordered by {}, in the dump by {}",
                head.name, there.comparator, head.order
            )));
        }
        return store::keyspace(db, &head.name);
    }
    let mut options = KeyspaceOptions::new().comparator(order);
    if of_store.is_none_or(|store| store.compression != head.compression) {
        options = options.compression(match head.compression.as_str() {
            "none" => Compression::None,
            "zstd" => Compression::Zstd,
            _ => Compression::Lz4,
        });
    }
    if of_store.is_none_or(|store| store.blob_threshold != head.blob_threshold) {
        let bytes = usize::try_from(head.blob_threshold).unwrap_or(usize::MAX);
        options = options.blob_threshold(bytes);
    }
    Ok(db.create_keyspace(&head.name, options)?)
}

fn summary(args: &Args, loaded: &Loaded, seconds: f64) -> Outcome {
    let mut out = Out::stdout();
    if args.json.json {
        out.json(&json!({
            "keyspaces": loaded.keyspaces,
            "entries": loaded.entries,
            "bytes": loaded.bytes,
            "skipped": loaded.skipped,
            "first_skipped": loaded.first_skipped.as_ref().map(Bad::to_string),
            "seconds": seconds,
        }))?;
        return out.finish();
    }
    let rate = (loaded.entries as f64 / seconds.max(1e-9)) as u64;
    let keyspaces = match loaded.keyspaces.len() {
        n if args.all => format!(" in {}", human::counted(n as u64, "keyspace")),
        _ => String::new(),
    };
    out.line(format!(
        "loaded {}{keyspaces}, {} in {seconds:.1} s ({} a second)",
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

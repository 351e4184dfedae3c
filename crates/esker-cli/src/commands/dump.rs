//! `esker dump`: entries to a file or standard output, in a form that `esker load` reads.

use std::fs;
use std::io::IsTerminal;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use esker::{Db, Stats};

use crate::args::{EncodingArgs, Escape, EscapeArgs, KeyspaceArgs, RangeArgs, StoreArgs};
use crate::bounds::Bounds;
use crate::encoding::{Encoding, escape};
use crate::exit::{Failure, Outcome};
use crate::format::Format;
use crate::formats::all::{Head, WriteKeyspaces};
use crate::formats::jsonl::FieldPath;
use crate::formats::{WriteEntries, WriteError};
use crate::output::{self, Out};
use crate::progress::Progress;
use crate::screen::Style;
use crate::store;
use crate::walk::Walk;

const EXAMPLES: &str = "\
Examples:
  esker dump ./db > data.tsv                        key, tab, value on every line
  esker dump ./db backup.bin                        binary; notices when its end is missing
  esker dump ./db users.jsonl --key user.id         the values, which are JSON lines
  esker dump ./db table.csv                         a header, key,value, and a row for each
  esker dump ./db everything.bin --all              all keyspaces, for esker load --all
  esker dump ./db --format dbdump | db_load x.db    what Berkeley DB and LMDB read, see below
  esker dump ./db --prefix user: --format bin | ssh host esker load ./db --format bin

The formats are those of `esker load --help`, which reads a dump back as it was, byte for byte.
Entries come in the order of the keys. The dump is of one moment. A file gets its name when it is
whole and durable: until then it has .partial behind it, which a dump that was killed leaves, to be
removed. Links stay, and what they lead to is replaced; pipes and devices are written to.

jsonl writes values only, and only values that are JSON on one line. With --key it also checks
that every key is what a load with that --key would take from the value, so that nothing is lost.

--all writes every keyspace with its name, its order, compression and threshold, in tsv or bin; in
dbdump by its name alone. A store in which any keyspace is ordered by a program's own comparator is
not opened by this command, with --all or without: none of its keyspaces can be dumped here. On a
terminal tsv and jsonl are escaped as `esker scan` does, in ways that a load reads.

mdb_load makes a map of 1 MiB unless the header says how large, which db_load does not know:
  esker dump ./db --format dbdump | sed 's/^HEADER=END/mapsize=10737418240\\n&/' | mdb_load ./env";

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
    /// Dump all keyspaces, and how each was made
    #[arg(long, conflicts_with_all = ["keyspace", "prefix", "from", "to", "key"])]
    all: bool,
    #[command(flatten)]
    range: RangeArgs,
    #[command(flatten)]
    keyspace: KeyspaceArgs,
    #[command(flatten)]
    encoding: EncodingArgs,
    #[command(flatten)]
    escape: EscapeArgs,
}

/// A dump has no business among the files of its own store: it would take the place of one.
fn refuse_in_store(file: &Path, store: &Path) -> Outcome {
    // What cannot be looked at is an error of the output's.
    let Ok(Some(file)) = output::replaced(file) else { return Ok(()) };
    let identity = |dir: &Path| fs::metadata(dir).map(|m| (m.dev(), m.ino())).ok();
    let dir = identity(output::parent(&file));
    if dir.is_none() || dir != identity(store) {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "{} is in the directory of the store itself; dump to a file elsewhere",
        file.display()
    )))
}

pub(crate) fn run(args: Args) -> Outcome {
    let file = args.file.as_deref().filter(|f| *f != Path::new("-"));
    let format = Format::pick(args.format, file);
    let encoding = args.encoding.encoding();
    // In formats of bytes the flags still say how --prefix, --from and --to are written.
    let is_own = matches!(format, Format::Bin | Format::Dbdump);
    let of_format = if is_own && !args.range.is_everything() { Encoding::Plain } else { encoding };
    format.check_encoding(of_format)?;
    let to_terminal = file.is_none() && std::io::stdout().is_terminal();
    check(&args, format, to_terminal)?;

    if let Some(file) = file {
        refuse_in_store(file, &args.store.db)?;
    }
    let db = store::open_to_read(&args.store)?;
    let style = if format == Format::Jsonl { Style::Json } else { Style::Bytes };
    let plan = if args.all { Plan::all(&db.stats()) } else { Plan::of(&args, &db)? };
    let mut out = Out::create(file, args.escape.escape, style)?;
    // A bar between the lines of a dump on the same terminal would garble both.
    let progress = (!to_terminal).then(|| Progress::entries("dumping", plan.total));
    let mut on_step = |entries| {
        if let Some(progress) = &progress {
            progress.set(entries);
        }
    };
    let copied = match &plan.of {
        Of::One(bounds) => {
            let keyspace = store::keyspace(&db, &args.keyspace.keyspace)?;
            let order = store::order(&keyspace);
            let mut walk = Walk::entries(&keyspace, order, bounds.clone(), false);
            let mut writer = format.writer(&mut out, args.key.clone(), encoding);
            copy(&mut walk, writer.as_mut(), &mut 0, &mut on_step)
                .and_then(|()| writer.finish().map_err(Stop::Output))
        }
        Of::All(heads) => {
            let mut writer = format.writer_of_all(&mut out, encoding);
            copy_all(&db, heads, writer.as_mut(), &mut on_step)
        }
    };
    drop(progress);
    match copied {
        Ok(()) => out.finish(),
        Err(Stop::Store(e)) => Err(e.into()),
        Err(Stop::Output(e)) => Err(out.failure(&e)),
        Err(Stop::UnfitKeyspace { name, why }) => Err(Failure::Broken(format!(
            "keyspace {name:?} cannot be dumped in this format: {why}; dump as tsv or bin"
        ))),
        Err(Stop::Unfit { key, why }) => Err(Failure::Broken(format!(
            "the entry with key {key} cannot be dumped as jsonl: {why}; dump as tsv or bin"
        ))),
    }
}

/// Refuses what has no meaning together.
fn check(args: &Args, format: Format, to_terminal: bool) -> Outcome {
    let wrong = |text: &str| Err(Failure::Usage(text.into()));
    let escape = args.escape.escape;
    if args.all {
        format.check_all()?;
    }
    match format {
        Format::Tsv | Format::Csv | Format::Bin | Format::Dbdump if args.key.is_some() => {
            wrong("--key names a field of JSON lines; leave it out, or add --format jsonl")
        }
        Format::Csv | Format::Bin | Format::Dbdump if escape == Escape::Always => {
            wrong("there are no escapes in csv, bin and dbdump that a load reads; dump as tsv")
        }
        Format::Bin if escape.is_on(to_terminal) => {
            wrong("bin is not for a terminal; name a file, or add --escape never")
        }
        _ => Ok(()),
    }
}

/// What is dumped, and how many entries that is at most, where it is known.
struct Plan {
    of: Of,
    total: Option<u64>,
}

enum Of {
    One(Bounds),
    All(Vec<Head>),
}

impl Plan {
    fn of(args: &Args, db: &Db) -> Result<Plan, Failure> {
        let keyspace = store::keyspace(db, &args.keyspace.keyspace)?;
        let bounds = args.range.bounds(&args.encoding, &store::order(&keyspace))?;
        let total = args.range.is_everything().then(|| store::entries_at_most(&keyspace.stats()));
        Ok(Plan { of: Of::One(bounds), total })
    }

    fn all(stats: &Stats) -> Plan {
        let head = |k: &esker::KeyspaceStats| Head {
            name: k.name.clone(),
            order: k.comparator.clone(),
            compression: k.compression.clone(),
            blob_threshold: k.blob_threshold as u64,
        };
        let heads = stats.keyspaces.iter().map(head).collect();
        Plan {
            of: Of::All(heads),
            total: Some(stats.keyspaces.iter().map(store::entries_at_most).sum()),
        }
    }
}

fn copy_all(
    db: &Db,
    heads: &[Head],
    writer: &mut dyn WriteKeyspaces,
    on_step: &mut dyn FnMut(u64),
) -> Result<(), Stop> {
    let mut entries = 0;
    writer.begin(heads.len() as u32).map_err(Stop::Output)?;
    for head in heads {
        let keyspace = store::keyspace_of(db, &head.name).map_err(Stop::Store)?;
        let order = store::order_named(&head.order).unwrap_or_default();
        let everything = Bounds::new(&order, None, None, None);
        let mut walk = Walk::entries(&keyspace, order, everything, false);
        writer.begin_keyspace(head).map_err(|e| match e {
            WriteError::Io(e) => Stop::Output(e),
            WriteError::Unfit(why) => Stop::UnfitKeyspace { name: head.name.clone(), why },
        })?;
        copy(&mut walk, writer, &mut entries, on_step)?;
        writer.end_keyspace().map_err(Stop::Output)?;
    }
    writer.finish().map_err(Stop::Output)
}

/// Why a dump stopped.
enum Stop {
    Store(esker::Error),
    Output(std::io::Error),
    Unfit { key: String, why: String },
    UnfitKeyspace { name: String, why: String },
}

impl Stop {
    fn of(e: WriteError, key: &[u8]) -> Stop {
        match e {
            WriteError::Io(e) => Stop::Output(e),
            WriteError::Unfit(why) => Stop::Unfit { key: shown(key), why },
        }
    }
}

/// Writes all that the walk comes to, and counts it.
fn copy(
    walk: &mut Walk,
    writer: &mut (impl WriteEntries + ?Sized),
    entries: &mut u64,
    on_step: &mut dyn FnMut(u64),
) -> Result<(), Stop> {
    while let Some((key, value)) = walk.next().map_err(Stop::Store)? {
        writer.write(key, value).map_err(|e| Stop::of(e, key))?;
        *entries += 1;
        if entries.is_multiple_of(STEP) {
            on_step(*entries);
        }
    }
    Ok(())
}

/// A key for a message: on one line, and not a screen long.
fn shown(key: &[u8]) -> String {
    let mut text = Vec::new();
    escape(&key[..key.len().min(SHOWN_KEY_BYTES)], &mut text);
    let dots = if key.len() > SHOWN_KEY_BYTES { "..." } else { "" };
    format!("{:?}{dots}", String::from_utf8_lossy(&text))
}

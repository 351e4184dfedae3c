//! The store that an import fills: a new one, or a keyspace of one that is there.
//!
//! Entries are bulk loaded, so that all of them are there or none. A new store is made beside its
//! place and renamed; until then nothing has its name.

use std::cell::Cell;
use std::fs;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Instant;

use esker::{Db, KeyOrder, Keyspace, KeyspaceOptions, MAX_KEY_LEN, MAX_VALUE_LEN};
use esker_transfer::{Place, Report};
use serde_json::json;

use crate::args::{CompressionArgs, JsonArgs, StoreArgs};
use crate::exit::{Failure, Outcome};
use crate::output::Out;
use crate::{human, store};

// Where entries go.
#[derive(Debug, clap::Args)]
pub(super) struct TargetArgs {
    #[command(flatten)]
    pub store: StoreArgs,
    /// Keyspace to import into, which is made when it is missing; DB may then be a store
    #[arg(long, short = 'k', value_name = "NAME")]
    pub keyspace: Option<String>,
    /// Leave out entries that are too large for a store, and count them
    #[arg(long)]
    pub skip_large: bool,
    #[command(flatten)]
    pub compression: CompressionArgs,
    #[command(flatten)]
    pub json: JsonArgs,
}

/// Memory for what has to be sorted, where none is given.
const SORT_BYTES: u64 = 64 << 20;

impl TargetArgs {
    /// Memory for what has to be sorted.
    pub fn sort_memory(&self) -> usize {
        usize::try_from(self.store.memory.map_or(SORT_BYTES, |m| m / 2)).unwrap_or(usize::MAX)
    }

    /// A directory on the same disk, for files without names.
    pub fn scratch(&self) -> PathBuf {
        Place::of(&self.store.db).map_or_else(|_| ".".into(), |place| place.dir().to_owned())
    }

    /// The keyspace that is filled.
    fn keyspace(&self) -> &str {
        self.keyspace.as_deref().unwrap_or(store::DEFAULT_KEYSPACE)
    }
}

/// Why entries stop.
pub(super) enum Stop {
    Source(esker_transfer::Error),
    Store(esker::Error),
    /// An entry that no store of Esker holds.
    TooLarge(String),
}

impl From<esker::Error> for Stop {
    fn from(e: esker::Error) -> Stop {
        Stop::Store(e)
    }
}

impl From<Stop> for Failure {
    fn from(stop: Stop) -> Failure {
        match stop {
            Stop::Source(e) => broken(e),
            Stop::Store(e) => e.into(),
            Stop::TooLarge(what) => Failure::Broken(what),
        }
    }
}

fn broken(e: esker_transfer::Error) -> Failure {
    Failure::Broken(e.to_string())
}

/// What an import did.
#[derive(Default)]
pub(super) struct Imported {
    entries: u64,
    bytes: Rc<Cell<u64>>,
    skipped: Rc<Cell<u64>>,
}

/// The target before anything is written, so that a wrong one is noticed before a long read.
pub(super) struct Target<'a> {
    args: &'a TargetArgs,
    /// Where a new store is made.
    place: Option<Place>,
    started: Instant,
}

impl<'a> Target<'a> {
    /// Looks at what is there.
    pub fn check(args: &'a TargetArgs) -> Result<Target<'a>, Failure> {
        let db = &args.store.db;
        let is_store = store::is_store(db)?;
        if is_store && args.keyspace.is_none() {
            return Err(Failure::Usage(format!(
                "{} is a store already; -k NAME imports into a keyspace of it",
                db.display()
            )));
        }
        let place = if is_store { None } else { Some(Place::of(db).map_err(broken)?) };
        place.as_ref().map_or(Ok(()), Place::check).map_err(broken)?;
        Ok(Target { args, place, started: Instant::now() })
    }

    /// Loads all entries. `skip`: those that are too large are counted and left out.
    pub fn fill(
        &self,
        entries: impl Iterator<Item = Result<(Vec<u8>, Vec<u8>), esker_transfer::Error>>,
        unchanged: impl FnOnce() -> Result<(), esker_transfer::Error>,
        skip: bool,
    ) -> Result<Imported, Failure> {
        let mut imported = Imported::default();
        let entries = fitting(entries, &imported, skip);
        // Behind the last entry: an error there refuses them all.
        let last = std::iter::once_with(|| unchanged().err().map(|e| Err(Stop::Source(e))));
        let entries = entries.chain(last.flatten());
        imported.entries = match &self.place {
            None => self.fill_keyspace(entries)?,
            Some(place) => self.fill_new(place, entries)?,
        };
        Ok(imported)
    }

    /// A keyspace of a store that is there. One that was made for it goes when the import fails.
    fn fill_keyspace(
        &self,
        entries: impl Iterator<Item = Result<(Vec<u8>, Vec<u8>), Stop>>,
    ) -> Result<u64, Failure> {
        let name = self.args.keyspace();
        let compression = self.args.compression.compression;
        let db = store::open_to_write(&self.args.store, compression)?;
        let stats = db.stats();
        let there = store::about(&stats, name);
        if let Some(there) = there
            && there.comparator != KeyOrder::Bytewise.name()
        {
            return Err(Failure::Usage(format!(
                "keyspace {name:?} is ordered by {}, and what is imported by bytes; import into \
                 another",
                there.comparator
            )));
        }
        let keyspace = open_keyspace(&db, name, there.is_some())?;
        let loaded = keyspace.try_bulk_load(entries);
        drop(keyspace);
        let dropped = match there {
            None if loaded.is_err() => db.drop_keyspace(name),
            _ => Ok(()),
        };
        let closed = db.close();
        let loaded = loaded?;
        dropped?;
        closed?;
        Ok(loaded)
    }

    fn fill_new(
        &self,
        place: &Place,
        entries: impl Iterator<Item = Result<(Vec<u8>, Vec<u8>), Stop>>,
    ) -> Result<u64, Failure> {
        place.begin().map_err(broken)?;
        let made = self.make(place, entries);
        if made.is_err() {
            // It was made just now, and by nobody else.
            let _ = fs::remove_dir_all(place.partial());
        }
        let loaded = made?;
        place.sync().map_err(broken)?;
        Ok(loaded)
    }

    fn make(
        &self,
        place: &Place,
        entries: impl Iterator<Item = Result<(Vec<u8>, Vec<u8>), Stop>>,
    ) -> Result<u64, Failure> {
        let store = StoreArgs { db: place.partial().to_owned(), memory: self.args.store.memory };
        let db = store::open_to_fill(&store, self.args.compression.compression, None, true)?;
        let name = self.args.keyspace();
        let keyspace = open_keyspace(&db, name, name == store::DEFAULT_KEYSPACE)?;
        let loaded = keyspace.try_bulk_load(entries)?;
        drop(keyspace);
        db.sync()?;
        db.close()?;
        place.rename().map_err(broken)?;
        Ok(loaded)
    }

    /// Prints what was done.
    pub fn summary(&self, imported: &Imported, report: &Report) -> Outcome {
        let seconds = self.started.elapsed().as_secs_f64();
        let mut out = Out::stdout();
        let skipped = imported.skipped.get();
        if self.args.json.json {
            let lost: Vec<_> = report.lost.iter().map(ToString::to_string).collect();
            out.json(&json!({
                "keyspace": self.args.keyspace(),
                "entries": imported.entries,
                "bytes": imported.bytes.get(),
                "skipped": skipped,
                "lost_count": report.lost_count,
                "lost": lost,
                "notes": report.notes,
                "seconds": seconds,
            }))?;
            return out.finish();
        }
        let rate = (imported.entries as f64 / seconds.max(1e-9)) as u64;
        out.line(format!(
            "imported {}, {} in {seconds:.1} s ({} a second)",
            human::counted(imported.entries, "entry"),
            human::bytes(imported.bytes.get()),
            human::count(rate),
        ))?;
        for note in &report.notes {
            out.line(format!("note: {}", one_line(note)))?;
        }
        for lost in &report.lost {
            out.line(format!("lost: {}", one_line(&lost.to_string())))?;
        }
        let more = report.lost_count - report.lost.len() as u64;
        if more > 0 {
            out.line(format!("lost: {} more parts", human::count(more)))?;
        }
        if report.lost_count > 0 {
            out.line(
                "where a lost part held the newest version of a key or its deletion, an older \
                 value is there now",
            )?;
        }
        if skipped > 0 {
            out.line(format!("skipped {} too large", human::counted(skipped, "entry")))?;
        }
        out.finish()
    }
}

fn one_line(text: &str) -> String {
    text.replace('\n', " ")
}

fn open_keyspace(db: &Db, name: &str, is_there: bool) -> Result<Keyspace, Failure> {
    if is_there {
        store::keyspace(db, name)
    } else {
        Ok(db.create_keyspace(name, KeyspaceOptions::new())?)
    }
}

/// The entries that a store holds. Others are an error, or counted.
fn fitting(
    entries: impl Iterator<Item = Result<(Vec<u8>, Vec<u8>), esker_transfer::Error>>,
    imported: &Imported,
    skip: bool,
) -> impl Iterator<Item = Result<(Vec<u8>, Vec<u8>), Stop>> {
    let (bytes, skipped) = (Rc::clone(&imported.bytes), Rc::clone(&imported.skipped));
    entries.filter_map(move |entry| {
        let (key, value) = match entry {
            Ok(entry) => entry,
            Err(e) => return Some(Err(Stop::Source(e))),
        };
        if key.len() <= MAX_KEY_LEN && value.len() <= MAX_VALUE_LEN {
            bytes.set(bytes.get() + (key.len() + value.len()) as u64);
            return Some(Ok((key, value)));
        }
        if skip {
            skipped.set(skipped.get() + 1);
            return None;
        }
        Some(Err(Stop::TooLarge(too_large(&key, &value))))
    })
}

/// Bytes of a key that a message shows.
const SHOWN: usize = 40;

fn too_large(key: &[u8], value: &[u8]) -> String {
    let begins = key[..key.len().min(SHOWN)].escape_ascii();
    let (what, len, most) = match key.len() > MAX_KEY_LEN {
        true => ("its length", key.len(), MAX_KEY_LEN),
        false => ("the length of its value", value.len(), MAX_VALUE_LEN),
    };
    format!(
        "the key that begins with \"{begins}\": {what} is {len} bytes, and the limit {most}; \
         --skip-large leaves such entries out and counts them"
    )
}

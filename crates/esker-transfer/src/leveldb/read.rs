//! A database that is read: its manifest at once, its tables and logs as entries are asked for.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::edit::State;
use super::name::DataFile;
use super::record::{Event, Records};
use super::source::Source;
use super::{BYTEWISE, batch, name, salvage, tables};
use crate::error::{Error, Lost, Report, Result};
use crate::kind::{Kind, kind_of};
use crate::merge::{Entries, Merge};
use crate::sort::Sorter;

/// How a database is read.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Takes what is intact, and notes what is lost, where damage would be an error.
    pub salvage: bool,
    /// Takes the keys of another comparator as bytes, in their order.
    pub raw: bool,
    /// Bytes of memory for what has to be sorted: the logs, and with `salvage` or `raw` everything.
    pub memory: usize,
    /// A directory for files without names, which hold what goes beyond that memory.
    pub scratch: PathBuf,
}

/// How many bytes of the source were read so far; tells whoever wants to know.
#[derive(Clone, Default)]
pub(super) struct Position(Rc<Steps>);

#[derive(Default)]
struct Steps {
    at: Cell<u64>,
    told: Cell<u64>,
    on_step: RefCell<Option<OnStep>>,
}

type OnStep = Box<dyn FnMut(u64)>;

/// Bytes between two calls.
const STEP: u64 = 256 << 10;

impl Position {
    pub fn add(&self, bytes: u64) {
        let steps = &self.0;
        let at = steps.at.get().saturating_add(bytes);
        steps.at.set(at);
        if at - steps.told.get() < STEP {
            return;
        }
        steps.told.set(at);
        // Whoever is called may not call in turn: it is taken out meanwhile.
        let Some(mut on_step) = steps.on_step.take() else { return };
        on_step(at);
        steps.on_step.replace(Some(on_step));
    }
}

/// A LevelDB database, open to be read. Nobody can open it with LevelDB meanwhile.
pub struct LevelDb {
    source: Source,
    settings: Settings,
    /// `None` where a salvage has no manifest to go by.
    state: Option<State>,
    report: Report,
    position: Position,
}

impl LevelDb {
    /// Opens the database in `dir` and reads its manifest.
    pub fn open(dir: &Path, settings: Settings) -> Result<LevelDb> {
        check_kind(dir)?;
        let source = Source::open(dir)?;
        let mut report = Report::default();
        let state = match read_manifest(&source, &mut report) {
            Ok(state) => Some(state),
            Err(Error::Damaged(lost)) if settings.salvage => {
                report.lose(lost);
                report.note(
                    "without a manifest all tables and logs in the directory are read: what was \
                     deleted from the database but not from the disk may be back"
                        .into(),
                );
                None
            }
            Err(e) => return Err(e),
        };
        let mut db = LevelDb { source, settings, state, report, position: Position::default() };
        db.check_comparator()?;
        db.check_logs()?;
        Ok(db)
    }

    /// The name of the order of its keys, if the manifest has one.
    pub fn comparator(&self) -> Option<&str> {
        self.state.as_ref()?.comparator.as_deref()
    }

    /// Bytes of the tables and logs that are read.
    pub fn size(&self) -> u64 {
        let of_files = self.source.files().filter(|(file, _)| match (file, &self.state) {
            (DataFile::Table(_), None) | (DataFile::Log(_), None) => true,
            (DataFile::Log(number), Some(state)) => state.needs_log(*number),
            _ => false,
        });
        let of_files: u64 = of_files.map(|(file, _)| self.source.len_of(file)).sum();
        let tables = self.state.iter().flat_map(State::tables);
        tables.fold(of_files, |sum, table| sum.saturating_add(table.size))
    }

    /// Calls `on_step` with the bytes that were read so far, now and then.
    pub fn on_step(&self, on_step: impl FnMut(u64) + 'static) {
        self.position.0.on_step.replace(Some(Box::new(on_step)));
    }

    /// All entries, in the order of the bytes of their keys.
    pub fn entries(&mut self) -> Result<Entries> {
        let mut sorter = Sorter::new(self.settings.memory, &self.settings.scratch);
        self.read_logs(&mut sorter)?;
        let in_order = !self.settings.salvage && !self.settings.raw;
        let tables = self.state.as_ref().map(|state| state.tables().cloned().collect::<Vec<_>>());
        if in_order && let Some(tables) = &tables {
            let runs = tables::runs(&self.source.dir, tables.clone(), &self.position);
            if let Some(mut runs) = runs {
                runs.insert(0, sorter.finish()?);
                return Ok(Entries::new(Box::new(Merge::new(runs))));
            }
        }
        let strict = !self.settings.salvage;
        let mut salvage = salvage::Salvage {
            sorter: &mut sorter,
            report: &mut self.report,
            position: &self.position,
            strict,
            is_sorted: in_order,
        };
        match tables {
            Some(tables) => {
                for meta in tables {
                    salvage.table_of(&self.source.dir, &meta)?;
                }
            }
            None => {
                for (file, name) in self.source.files() {
                    if matches!(file, DataFile::Table(_)) {
                        salvage.table(&self.source.dir.join(name))?;
                    }
                }
            }
        }
        Ok(Entries::new(sorter.finish()?))
    }

    /// What was found so far beside entries.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// An error if the source changed since it was opened. To be asked when all entries were read.
    pub fn check_unchanged(&self) -> Result<()> {
        self.source.check_unchanged()
    }

    fn check_comparator(&mut self) -> Result<()> {
        let name = match self.comparator() {
            None | Some(BYTEWISE) => return Ok(()),
            Some(name) => name.to_owned(),
        };
        if !self.settings.raw {
            let whose = match name.as_str() {
                "idb_cmp1" => ", which is that of IndexedDB in Chromium",
                _ => "",
            };
            return Err(Error::Refused(format!(
                "{}: its keys are in the order of the comparator {name:?}{whose}, not in that of \
                 their bytes; --raw takes them in the order of their bytes",
                self.source.dir.display()
            )));
        }
        self.report.note(format!(
            "keys were in the order of the comparator {name:?} and are in that of their bytes now"
        ));
        Ok(())
    }

    /// A log that the manifest names was there when it was named.
    fn check_logs(&mut self) -> Result<()> {
        let Some(state) = &self.state else { return Ok(()) };
        let is_there = |number| self.source.files().any(|(f, _)| f == DataFile::Log(number));
        let named = [state.log, state.previous_log];
        let missing: Vec<u64> = named.into_iter().filter(|n| *n != 0 && !is_there(*n)).collect();
        for number in missing {
            let what = "the file is missing, and with it what was written last";
            let lost = Lost::new(&self.source.dir.join(name::log(number)), None, what);
            if !self.settings.salvage {
                return Err(Error::Damaged(lost));
            }
            self.report.lose(lost);
        }
        Ok(())
    }

    fn read_logs(&mut self, sorter: &mut Sorter) -> Result<()> {
        let logs = self.source.files().filter_map(|(file, name)| match file {
            DataFile::Log(number) => Some((number, self.source.dir.join(name))),
            _ => None,
        });
        let needed = |number: &u64| self.state.as_ref().is_none_or(|s| s.needs_log(*number));
        let logs: Vec<_> = logs.filter(|(number, _)| needed(number)).collect();
        for (at, (_, path)) in logs.iter().enumerate() {
            let is_last = at + 1 == logs.len();
            match self.read_log(path, is_last, sorter) {
                Err(e @ Error::Io { .. }) if self.settings.salvage => {
                    self.report.lose(super::table::lost(e)?);
                }
                other => other?,
            }
        }
        Ok(())
    }

    fn read_log(&mut self, path: &Path, is_last: bool, sorter: &mut Sorter) -> Result<()> {
        let file = File::open(path).map_err(Error::io("open", path))?;
        let mut records = Records::new(BufReader::with_capacity(STEP as usize, file));
        let (mut record, mut counted) = (Vec::new(), 0);
        loop {
            let event = records.next(&mut record).map_err(Error::io("read", path))?;
            self.position.add(records.position() - counted);
            counted = records.position();
            let (offset, what) = match event {
                Event::End => return Ok(()),
                Event::Record(at) => {
                    let push = |key: &[u8], tag, value: &[u8]| sorter.push(key, tag, value);
                    match batch::versions(&record, push) {
                        Ok(pushed) => {
                            pushed?;
                            continue;
                        }
                        Err(what) => (at, what),
                    }
                }
                Event::Torn(at) if is_last => {
                    self.report.note(format!(
                        "{} ends inside the record at byte {at}, as a crash leaves it; that write \
                         had not returned",
                        path.display()
                    ));
                    return Ok(());
                }
                Event::Torn(at) => (at, "the file is cut off inside a record".into()),
                Event::Damage(at, what) => (at, what),
            };
            let lost = Lost::new(path, offset, what);
            if !self.settings.salvage {
                return Err(Error::Damaged(lost));
            }
            self.report.lose(lost);
        }
    }
}

/// Refuses what is not LevelDB's, with the command that takes it.
fn check_kind(dir: &Path) -> Result<()> {
    let at = dir.display();
    let refuse = |kind: Kind, way: &str| Err(Error::Refused(format!("{at} is {kind}; {way}")));
    match kind_of(dir) {
        Some(Kind::LevelDb) => Ok(()),
        Some(kind @ Kind::Esker) => refuse(
            kind,
            "`esker checkpoint` copies one, `esker dump` and `esker load` move entries",
        ),
        Some(kind @ Kind::RocksDb) => refuse(kind, "`esker import rocksdb` reads it"),
        Some(kind @ Kind::Lmdb) => refuse(kind, "`esker import lmdb` reads it"),
        Some(kind @ Kind::Sqlite) => refuse(kind, "`esker import sqlite` reads it"),
        None if !dir.exists() => Err(Error::Refused(format!("{at} is not there"))),
        None if !dir.is_dir() => {
            Err(Error::Refused(format!("{at} is not a directory; a LevelDB database is one")))
        }
        None => Err(Error::Refused(format!(
            "{at} is no LevelDB database: it has no file CURRENT that names a manifest, no \
             manifest, no tables and no logs"
        ))),
    }
}

fn read_manifest(source: &Source, report: &mut Report) -> Result<State> {
    let current = source.dir.join(name::CURRENT);
    let Some(line) = &source.current else {
        return Err(Error::damaged(&current, None, "the file is missing"));
    };
    let named = line
        .strip_suffix(b"\n")
        .and_then(|name| std::str::from_utf8(name).ok())
        .filter(|name| matches!(DataFile::of(name), Some(DataFile::Manifest(_))));
    let Some(named) = named else {
        return Err(Error::damaged(&current, 0, "it names no manifest"));
    };
    let path = source.dir.join(named);
    let file = match File::open(&path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            let what = "the file is missing, and CURRENT names it";
            return Err(Error::damaged(&path, None, what));
        }
        other => other.map_err(Error::io("open", &path))?,
    };
    let mut records = Records::new(BufReader::new(file));
    let (mut state, mut record, mut found) = (State::default(), Vec::new(), false);
    loop {
        let (at, what) = match records.next(&mut record).map_err(Error::io("read", &path))? {
            Event::End => break,
            Event::Torn(at) => {
                report.note(format!(
                    "{} ends inside the record at byte {at}, as a crash leaves it",
                    path.display()
                ));
                break;
            }
            Event::Damage(at, what) => (at, what),
            Event::Record(at) => match state.apply(&record) {
                Ok(()) => {
                    found = true;
                    continue;
                }
                Err(what) => (at, what),
            },
        };
        return Err(Error::damaged(&path, at, what));
    }
    if !found || state.next_file == 0 {
        return Err(Error::damaged(&path, 0, "it does not say which files there are"));
    }
    Ok(state)
}

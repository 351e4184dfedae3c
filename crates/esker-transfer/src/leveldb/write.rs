//! Makes a database: tables of the lowest level, and a manifest that names them.
//!
//! It is made beside the directory that it is to be and renamed when it is whole and durable. At the
//! lowest level there is nothing that LevelDB would have to compact when it opens it.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

use super::edit::{TableMeta, first_edit};
use super::internal_key::tag;
use super::record::RecordWriter;
use super::table_builder::TableBuilder;
use super::{BYTEWISE, name};
use crate::error::{Error, Result};
use crate::merge::VALUE;
use crate::place::Place;

/// A table ends when it has so many bytes, as LevelDB's own do.
const TABLE_BYTES: u64 = 2 << 20;
/// The lowest of LevelDB's levels.
const LEVEL: u32 = 6;
/// The sequence of all entries: no key has more than one.
const SEQUENCE: u64 = 1;
/// The number of the manifest; tables have those behind it.
const MANIFEST: u64 = 1;

/// Takes entries in ascending order and makes a LevelDB database of them. Dropped before
/// [`finish`](Writer::finish), it removes what it wrote.
pub struct Writer {
    place: Place,
    compress: bool,
    table: Option<(TableBuilder<BufWriter<File>>, u64)>,
    tables: Vec<TableMeta>,
    next_file: u64,
    last: Option<Vec<u8>>,
    is_finished: bool,
}

impl Writer {
    /// A database in `target`, which is not there or is an empty directory.
    pub fn create(target: &Path, compress: bool) -> Result<Writer> {
        let place = Place::of(target)?;
        place.check()?;
        place.begin()?;
        Ok(Writer {
            place,
            compress,
            table: None,
            tables: Vec::new(),
            next_file: MANIFEST + 1,
            last: None,
            is_finished: false,
        })
    }

    /// Adds an entry behind all others.
    pub fn add(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        if self.last.as_ref().is_some_and(|last| last[..] >= *key) {
            return Err(Error::Refused("entries for a LevelDB database are not in order".into()));
        }
        let last = self.last.get_or_insert_default();
        last.clear();
        last.extend_from_slice(key);
        if self.table.is_none() {
            let number = self.next_file;
            let path = self.place.partial().join(&name::tables(number)[0]);
            let file = File::create_new(&path).map_err(Error::io("create", &path))?;
            self.next_file += 1;
            self.table = Some((TableBuilder::new(BufWriter::new(file), self.compress), number));
        }
        let Some((table, _)) = &mut self.table else { return Ok(()) };
        let added = table.add(key, tag(SEQUENCE, VALUE), value);
        let size = table.size();
        added.map_err(Error::io("write a table in", self.place.partial()))?;
        if size >= TABLE_BYTES {
            self.end_table()?;
        }
        Ok(())
    }

    fn end_table(&mut self) -> Result<()> {
        let Some((table, number)) = self.table.take() else { return Ok(()) };
        let path = self.place.partial().join(&name::tables(number)[0]);
        let broken = || Error::io("write", &path);
        let (out, size, smallest, largest) = table.finish().map_err(broken())?;
        let file = out.into_inner().map_err(|e| broken()(e.into_error()))?;
        file.sync_all().map_err(Error::io("sync", &path))?;
        self.tables.push(TableMeta { level: LEVEL, number, size, smallest, largest });
        Ok(())
    }

    /// Makes it a database, durably.
    pub fn finish(mut self) -> Result<()> {
        self.end_table()?;
        let edit = first_edit(BYTEWISE, self.next_file, SEQUENCE, &self.tables);
        let manifest = name::manifest(MANIFEST);
        let mut records = RecordWriter::new(Vec::new());
        records.write(&edit).map_err(Error::io("write", self.place.partial()))?;
        self.write_file(&manifest, &records.into_inner())?;
        self.write_file(name::CURRENT, format!("{manifest}\n").as_bytes())?;
        sync_dir(self.place.partial())?;
        self.place.rename()?;
        self.is_finished = true;
        self.place.sync()
    }

    fn write_file(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let path = self.place.partial().join(name);
        let write = || {
            let mut file = File::create_new(&path)?;
            file.write_all(bytes)?;
            file.sync_all()
        };
        write().map_err(Error::io("write", &path))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if !self.is_finished {
            let _ = fs::remove_dir_all(self.place.partial());
        }
    }
}

fn sync_dir(path: &Path) -> Result<()> {
    File::open(path).and_then(|dir| dir.sync_all()).map_err(Error::io("sync", path))
}

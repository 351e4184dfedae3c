//! All tables of a database as sorted runs, as few as can be.
//!
//! Tables of level 0 overlap, those of each other level do not. Whatever the levels: tables in the order of
//! their first keys are put, one after the other, behind the first run that ends before it. That takes as many
//! runs as tables overlap in one place, and of each run one table is open.

use std::path::{Path, PathBuf};
use std::vec;

use super::edit::TableMeta;
use super::internal_key::split;
use super::name;
use super::read::Position;
use super::table::{Table, TableCursor};
use crate::error::{Error, Result};
use crate::merge::{Run, Tag, order};

/// Tables that share no version, in order.
pub(super) struct TableRun {
    dir: PathBuf,
    tables: vec::IntoIter<TableMeta>,
    open: Option<(TableCursor, TableMeta)>,
    /// How much of the present table `position` knows of.
    counted: u64,
    position: Position,
}

/// As many runs have a table open at once.
const MOST: usize = 500;

/// The runs of these tables; `None` when they are too many.
pub(super) fn runs(
    dir: &Path,
    mut tables: Vec<TableMeta>,
    position: &Position,
) -> Option<Vec<Box<dyn Run>>> {
    tables.sort_by(|a, b| order(ends(&a.smallest), ends(&b.smallest)));
    let mut runs: Vec<Vec<TableMeta>> = Vec::new();
    for table in tables {
        let fits = |run: &Vec<TableMeta>| {
            let last = run.last().expect("a run has a table");
            order(ends(&last.largest), ends(&table.smallest)).is_lt()
        };
        match runs.iter().position(fits) {
            Some(at) => runs[at].push(table),
            None if runs.len() == MOST => return None,
            None => runs.push(vec![table]),
        }
    }
    let run = |tables: Vec<TableMeta>| {
        let (dir, tables, position) = (dir.to_owned(), tables.into_iter(), position.clone());
        Box::new(TableRun { dir, tables, open: None, counted: 0, position }) as Box<dyn Run>
    };
    Some(runs.into_iter().map(run).collect())
}

/// A key of a manifest, whose form was checked.
pub(super) fn ends(key: &[u8]) -> (&[u8], Tag) {
    split(key).unwrap_or((key, 0))
}

/// The file of a table; its name has one of two ends.
pub(super) fn path_of(dir: &Path, number: u64) -> Result<PathBuf> {
    let paths = name::tables(number).map(|name| dir.join(name));
    match paths.iter().find(|path| path.exists()) {
        Some(path) => Ok(path.clone()),
        None => {
            Err(Error::damaged(&paths[0], None, "the file is missing, and the manifest names it"))
        }
    }
}

impl TableRun {
    fn open_next(&mut self) -> Result<bool> {
        let Some(meta) = self.tables.next() else { return Ok(false) };
        let cursor = TableCursor::new(Table::open(&path_of(&self.dir, meta.number)?)?, true)?;
        cursor.check_size(&meta)?;
        self.counted = 0;
        self.open = Some((cursor, meta));
        Ok(true)
    }
}

impl Run for TableRun {
    fn advance(&mut self) -> Result<bool> {
        loop {
            let is_new = self.open.is_none();
            if is_new && !self.open_next()? {
                return Ok(false);
            }
            let Some((cursor, meta)) = &mut self.open else { return Ok(false) };
            // The last version, before the cursor leaves it.
            let ends_right = is_new || (cursor.key(), cursor.tag()) == ends(&meta.largest);
            let more = cursor.advance()?;
            self.position.add(cursor.read - self.counted);
            self.counted = cursor.read;
            if is_new && (!more || (cursor.key(), cursor.tag()) != ends(&meta.smallest)) {
                return Err(cursor.other_keys());
            }
            if more {
                return Ok(true);
            }
            if !ends_right {
                return Err(cursor.other_keys());
            }
            self.position.add(meta.size.saturating_sub(self.counted));
            self.open = None;
        }
    }

    fn key(&self) -> &[u8] {
        self.open.as_ref().map_or(&[], |(cursor, _)| cursor.key())
    }

    fn tag(&self) -> Tag {
        self.open.as_ref().map_or(0, |(cursor, _)| cursor.tag())
    }

    fn value(&self) -> &[u8] {
        self.open.as_ref().map_or(&[], |(cursor, _)| cursor.value())
    }
}

//! A sorted run of disjoint tables as one sequence of entries.

use std::sync::Arc;

use super::loaded::{LoadedRun, LoadedTable};
use crate::Result;
use crate::key::{InternalCursor, KeyOrder, Kind, Seq, Stored};
use crate::table::TableCursor;

/// Walks the tables of a run one after the other.
pub(crate) struct RunCursor {
    run: Arc<LoadedRun>,
    order: KeyOrder,
    /// Index of the table that `cursor` walks.
    at: usize,
    cursor: Option<TableCursor>,
}

impl RunCursor {
    /// Not positioned.
    pub(crate) fn new(run: Arc<LoadedRun>, order: KeyOrder) -> RunCursor {
        RunCursor { run, order, at: 0, cursor: None }
    }

    /// The table of the current entry. Only when valid.
    #[inline]
    pub(crate) fn table(&self) -> &LoadedTable {
        &self.run.tables()[self.at]
    }

    #[inline]
    fn inner(&self) -> &TableCursor {
        self.cursor.as_ref().expect("a valid run cursor has a table cursor")
    }

    fn open(&mut self, at: usize) -> &mut TableCursor {
        if self.at != at || self.cursor.is_none() {
            self.at = at;
            self.cursor = Some(self.run.tables()[at].table.cursor());
        }
        self.cursor.as_mut().expect("just set")
    }

    #[cold]
    fn enter_next_table(&mut self) -> Result<()> {
        if self.at + 1 >= self.run.tables().len() {
            self.cursor = None;
            return Ok(());
        }
        let next = self.at + 1;
        self.open(next).first()
    }

    #[cold]
    fn enter_prev_table(&mut self) -> Result<()> {
        if self.at == 0 {
            self.cursor = None;
            return Ok(());
        }
        let prev = self.at - 1;
        self.open(prev).last()
    }
}

impl InternalCursor for RunCursor {
    #[inline]
    fn valid(&self) -> bool {
        self.cursor.as_ref().is_some_and(|c| c.valid())
    }

    fn first(&mut self) -> Result<()> {
        if self.run.tables().is_empty() {
            self.cursor = None;
            return Ok(());
        }
        self.open(0).first()
    }

    fn last(&mut self) -> Result<()> {
        match self.run.tables().len() {
            0 => {
                self.cursor = None;
                Ok(())
            }
            n => self.open(n - 1).last(),
        }
    }

    fn seek(&mut self, key: &[u8]) -> Result<()> {
        let at = self.run.run.seek(&self.order, key);
        if at == self.run.tables().len() {
            self.cursor = None;
            return Ok(());
        }
        self.open(at).seek(key)
    }

    fn seek_for_prev(&mut self, key: &[u8]) -> Result<()> {
        match self.run.run.seek_for_prev(&self.order, key) {
            Some(at) => self.open(at).seek_for_prev(key),
            None => {
                self.cursor = None;
                Ok(())
            }
        }
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        let cursor = self.cursor.as_mut().expect("next on a valid cursor");
        cursor.next()?;
        if !cursor.valid() {
            return self.enter_next_table();
        }
        Ok(())
    }

    #[inline]
    fn prev(&mut self) -> Result<()> {
        let cursor = self.cursor.as_mut().expect("prev on a valid cursor");
        cursor.prev()?;
        if !cursor.valid() {
            return self.enter_prev_table();
        }
        Ok(())
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.inner().key()
    }

    #[inline]
    fn seq(&self) -> Seq {
        self.inner().seq()
    }

    #[inline]
    fn kind(&self) -> Kind {
        self.inner().kind()
    }

    #[inline]
    fn stored(&self) -> Stored<'_> {
        self.inner().stored()
    }
}

//! A sorted run of disjoint tables as one sequence of entries.

use std::sync::Arc;

use super::loaded::{LoadedRun, LoadedTable};
use crate::Result;
use crate::key::{InternalCursor, KeyOrder, Kind, Seq, Stored};
use crate::table::TableCursor;

/// Which entry a search is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SeekTo {
    /// The first one at or after the key.
    AtOrAfter,
    /// The last one at or before it.
    AtOrBefore,
}

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

    /// Whether no key has two versions in the run.
    #[inline]
    pub(super) fn has_unique_keys(&self) -> bool {
        self.run.unique
    }

    /// Whether the entry is a put whose value is stored as it is. Only when valid.
    #[inline]
    pub(super) fn is_raw_put(&self) -> bool {
        self.inner().is_raw_put()
    }

    /// The value of such an entry. Only when valid.
    #[inline]
    pub(super) fn raw_value(&self) -> &[u8] {
        match self.inner().stored_fast() {
            Stored::Inline(bytes) => bytes,
            _ => &[],
        }
    }

    #[inline]
    fn inner(&self) -> &TableCursor {
        self.cursor.as_ref().expect("a valid run cursor has a table cursor")
    }

    fn open(&mut self, at: usize) -> &mut TableCursor {
        if self.at != at || self.cursor.is_none() {
            let key = self.cursor.take().map(TableCursor::into_key).unwrap_or_default();
            self.at = at;
            self.cursor = Some(self.run.tables()[at].table.cursor_with(key));
        }
        self.cursor.as_mut().expect("just set")
    }

    /// The first of the parts of a search: finds the table, and asks for its block index. Whoever searches
    /// several runs does each part for all of them, so that they wait for memory at the same time. All
    /// are given the same.
    pub(super) fn approach(&mut self, key: &[u8], to: SeekTo) {
        let at = match to {
            SeekTo::AtOrAfter => {
                Some(self.run.run.seek(&self.order, key)).filter(|at| *at < self.run.tables().len())
            }
            SeekTo::AtOrBefore => self.run.run.seek_for_prev(&self.order, key),
        };
        match at {
            Some(at) => self.open(at).approach(),
            None => self.cursor = None,
        }
    }

    /// The second part, as long as it says that there is more to do: one wait for memory nearer to the block.
    #[inline]
    pub(super) fn come_nearer(&mut self, key: &[u8]) -> bool {
        self.cursor.as_mut().is_some_and(|c| c.come_nearer(key))
    }

    /// The third part: finds the block, and asks for it.
    pub(super) fn locate(&mut self, key: &[u8], to: SeekTo) -> Result<()> {
        let at_or_before = to == SeekTo::AtOrBefore;
        self.cursor.as_mut().map_or(Ok(()), |c| c.locate(key, at_or_before))
    }

    /// The fourth part: enters the block, and asks for the records that a search there begins with.
    pub(super) fn enter(&mut self, key: &[u8]) -> Result<()> {
        self.cursor.as_mut().map_or(Ok(()), |c| c.enter_located(key))
    }

    /// The fifth, as long as it says that there is more to do: comes nearer to the entry.
    #[inline]
    pub(super) fn narrow(&mut self, key: &[u8], to: SeekTo) -> bool {
        self.cursor.as_mut().is_some_and(|c| c.narrow(key, to == SeekTo::AtOrBefore))
    }

    /// The last part: takes the entry into view.
    pub(super) fn arrive(&mut self, to: SeekTo) -> Result<()> {
        self.cursor.as_mut().map_or(Ok(()), |c| c.arrive(to == SeekTo::AtOrBefore))
    }

    fn search(&mut self, key: &[u8], to: SeekTo) -> Result<()> {
        self.approach(key, to);
        self.locate(key, to)?;
        self.enter(key)?;
        while self.narrow(key, to) {}
        self.arrive(to)
    }

    /// Asks for the entry after next, in a walk over several sources: until its turn comes there is time.
    #[inline]
    pub(super) fn prefetch_next(&self) {
        if let Some(c) = &self.cursor {
            c.prefetch_next();
        }
    }

    /// The same backwards.
    #[inline]
    pub(super) fn prefetch_prev(&self) {
        if let Some(c) = &self.cursor {
            c.prefetch_prev();
        }
    }

    /// See [`SourceCursor::known_before`](super::source::SourceCursor).
    pub(super) fn known_before(&self, limit: &[u8], backwards: bool, reach: u32) -> u32 {
        self.inner().known_before(limit, backwards, reach)
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
        self.search(key, SeekTo::AtOrAfter)
    }

    fn seek_for_prev(&mut self, key: &[u8]) -> Result<()> {
        self.search(key, SeekTo::AtOrBefore)
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

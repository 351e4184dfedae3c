//! A sorted run of disjoint tables as one sequence of entries.

use std::sync::Arc;

use super::loaded::{LoadedRun, LoadedTable};
use crate::Result;
use crate::entry_chunk::EntryChunk;
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
    pub(crate) fn table(&self) -> &Arc<LoadedTable> {
        &self.run.tables()[self.at]
    }

    /// Whether no key has two versions in the run.
    #[inline]
    pub(super) fn has_unique_keys(&self) -> bool {
        self.run.has_unique_keys()
    }

    /// Key and value of a put that a reader at `seq` sees, if the value is stored as it is. Only when valid.
    #[inline(always)]
    pub(super) fn raw_put_at(&self, seq: Seq) -> Option<(&[u8], &[u8])> {
        let entry = self.inner();
        (entry.is_raw_put() && entry.seq() <= seq).then(|| (entry.key_fast(), entry.payload()))
    }

    /// The value of an entry that stores it as it is. Only when valid.
    pub(super) fn raw_value(&self) -> &[u8] {
        self.inner().payload()
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
    pub(super) fn approach(&mut self, key: &[u8], forward: bool) {
        let at = match forward {
            true => Some(self.run.seek(&self.order, key)),
            false => self.run.seek_for_prev(&self.order, key),
        };
        match at.filter(|at| *at < self.run.tables().len()) {
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
    pub(super) fn locate(&mut self, key: &[u8], forward: bool) {
        if let Some(c) = &mut self.cursor {
            c.locate(key, forward);
        }
    }

    /// The fourth part: enters the block, and asks for the records that a search there begins with.
    pub(super) fn enter(&mut self, key: &[u8]) -> Result<()> {
        self.cursor.as_mut().map_or(Ok(()), |c| c.enter_located(key))
    }

    /// The fifth, as long as it says that there is more to do: comes nearer to the entry.
    #[inline]
    pub(super) fn narrow(&mut self, key: &[u8], forward: bool) -> bool {
        self.cursor.as_mut().is_some_and(|c| c.narrow(key, forward))
    }

    /// The last part: takes the entry into view.
    pub(super) fn arrive(&mut self, forward: bool) -> Result<()> {
        self.cursor.as_mut().map_or(Ok(()), |c| c.arrive(forward))
    }

    /// See [`TableCursor::fill`]. Only when valid.
    #[inline]
    pub(super) fn fill(&self, forward: bool, seq: Seq, chunk: &mut EntryChunk) {
        self.inner().fill(forward, seq, chunk);
    }

    /// So many entries on, or back, at most to the first one beyond the block. Only when valid.
    pub(super) fn skip(&mut self, forward: bool, n: u32) -> Result<()> {
        let cursor = self.cursor.as_mut().expect("a step of a valid cursor");
        cursor.skip(forward, n)?;
        if !cursor.valid() {
            return self.leave_table(forward);
        }
        Ok(())
    }

    /// A value of the current table, stored as a tag says. Only when valid.
    pub(super) fn stored_as<'a>(&self, tag: u8, value: &'a [u8]) -> Stored<'a> {
        self.inner().stored_as(tag, value)
    }

    /// Asks for the entry beyond the next one, in a walk over several sources: until its turn comes there is time.
    #[inline]
    pub(super) fn prefetch_beyond(&self, forward: bool) {
        if let Some(c) = &self.cursor {
            c.prefetch_beyond(forward);
        }
    }

    /// See [`SourceCursor::known_before`](super::source::SourceCursor).
    pub(super) fn known_before(&self, limit: &[u8], forward: bool, reach: u32) -> u32 {
        self.inner().known_before(limit, forward, reach)
    }

    #[cold]
    fn leave_table(&mut self, forward: bool) -> Result<()> {
        let next = if forward { Some(self.at + 1) } else { self.at.checked_sub(1) };
        self.enter_table(next, forward)
    }

    /// To where a walk through a table begins; to no entry, if there is no such table.
    fn enter_table(&mut self, at: Option<usize>, forward: bool) -> Result<()> {
        match at.filter(|at| *at < self.run.tables().len()) {
            Some(at) => self.open(at).edge(forward),
            None => {
                self.cursor = None;
                Ok(())
            }
        }
    }
}

impl InternalCursor for RunCursor {
    #[inline]
    fn valid(&self) -> bool {
        self.cursor.as_ref().is_some_and(|c| c.valid())
    }

    fn edge(&mut self, forward: bool) -> Result<()> {
        let at = if forward { Some(0) } else { self.run.tables().len().checked_sub(1) };
        self.enter_table(at, forward)
    }

    fn search(&mut self, key: &[u8], forward: bool) -> Result<()> {
        self.approach(key, forward);
        self.locate(key, forward);
        self.enter(key)?;
        while self.narrow(key, forward) {}
        self.arrive(forward)
    }

    #[inline]
    fn step(&mut self, forward: bool) -> Result<()> {
        let cursor = self.cursor.as_mut().expect("a step of a valid cursor");
        cursor.step(forward)?;
        if !cursor.valid() {
            return self.leave_table(forward);
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

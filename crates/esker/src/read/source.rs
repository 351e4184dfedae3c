//! What a compaction reads from: a memtable or a run, without dynamic dispatch.

use super::run_cursor::RunCursor;
use crate::Result;
use crate::key::{InternalCursor, Kind, Seq, Stored};
use crate::memtable::MemtableCursor;

/// One sorted source of entries.
pub(crate) enum SourceCursor {
    /// A memtable over a log segment.
    Memtable(MemtableCursor),
    /// A sorted run of tables.
    Run(RunCursor),
}

macro_rules! each {
    ($self:expr, $c:ident => $e:expr) => {
        match $self {
            SourceCursor::Memtable($c) => $e,
            SourceCursor::Run($c) => $e,
        }
    };
}

impl InternalCursor for SourceCursor {
    #[inline]
    fn valid(&self) -> bool {
        each!(self, c => c.valid())
    }
    fn first(&mut self) -> Result<()> {
        each!(self, c => c.first())
    }
    fn last(&mut self) -> Result<()> {
        each!(self, c => c.last())
    }
    fn seek(&mut self, key: &[u8]) -> Result<()> {
        each!(self, c => c.seek(key))
    }
    fn seek_for_prev(&mut self, key: &[u8]) -> Result<()> {
        each!(self, c => c.seek_for_prev(key))
    }
    #[inline]
    fn next(&mut self) -> Result<()> {
        each!(self, c => c.next())
    }
    #[inline]
    fn prev(&mut self) -> Result<()> {
        each!(self, c => c.prev())
    }
    #[inline]
    fn key(&self) -> &[u8] {
        each!(self, c => c.key())
    }
    #[inline]
    fn seq(&self) -> Seq {
        each!(self, c => c.seq())
    }
    #[inline]
    fn kind(&self) -> Kind {
        each!(self, c => c.kind())
    }
    #[inline]
    fn stored(&self) -> Stored<'_> {
        each!(self, c => c.stored())
    }
}

//! What a merge reads from, for a reader or a compaction: a memtable or a run, without dynamic dispatch.

use super::run_cursor::RunCursor;
use crate::Result;
use crate::entry_chunk::EntryChunk;
use crate::key::{InternalCursor, KeyOrder, Kind, Seq, Stored};
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

impl SourceCursor {
    /// On past all versions of the current key, if that takes no comparison of keys. `false` (and no move)
    /// otherwise. Only when valid.
    #[inline]
    pub(super) fn next_key(&mut self) -> Result<bool> {
        match self {
            SourceCursor::Memtable(c) => c.step_key(true),
            SourceCursor::Run(c) if c.has_unique_keys() => {
                c.next()?;
                c.prefetch_beyond(true);
            }
            SourceCursor::Run(_) => return Ok(false),
        }
        Ok(true)
    }

    /// Key and value of a put that a reader at `seq` sees, if the value is stored as it is. Only when valid.
    #[inline(always)]
    pub(super) fn plain(&self, seq: Seq) -> Option<(&[u8], &[u8])> {
        match self {
            SourceCursor::Memtable(c) => c.put_at(seq),
            SourceCursor::Run(c) => c.raw_put_at(seq),
        }
    }

    /// The value of an entry that stores it as it is. Only when valid.
    pub(super) fn raw_value(&self) -> &[u8] {
        match self {
            SourceCursor::Memtable(c) => c.value(),
            SourceCursor::Run(c) => c.raw_value(),
        }
    }

    /// The parts of a search: see [`RunCursor::approach`].
    pub(super) fn approach(&mut self, key: &[u8], forward: bool) {
        match self {
            SourceCursor::Memtable(c) => c.approach(),
            SourceCursor::Run(c) => c.approach(key, forward),
        }
    }

    /// Between the first part and the second, as often as it says that there is more to do: one wait for memory.
    #[inline]
    pub(super) fn come_nearer(&mut self, key: &[u8]) -> bool {
        match self {
            SourceCursor::Memtable(c) => c.come_nearer(key),
            SourceCursor::Run(c) => c.come_nearer(key),
        }
    }

    pub(super) fn locate(&mut self, key: &[u8], forward: bool) {
        match self {
            SourceCursor::Memtable(c) => c.locate(key, forward),
            SourceCursor::Run(c) => c.locate(key, forward),
        }
    }

    /// The parts that a search in a table has beyond those in a memtable.
    pub(super) fn enter(&mut self, key: &[u8]) -> Result<()> {
        match self {
            SourceCursor::Memtable(_) => Ok(()),
            SourceCursor::Run(c) => c.enter(key),
        }
    }

    #[inline]
    pub(super) fn narrow(&mut self, key: &[u8], forward: bool) -> bool {
        match self {
            SourceCursor::Memtable(_) => false,
            SourceCursor::Run(c) => c.narrow(key, forward),
        }
    }

    pub(super) fn arrive(&mut self, forward: bool) -> Result<()> {
        match self {
            SourceCursor::Memtable(c) => {
                c.arrive();
                Ok(())
            }
            SourceCursor::Run(c) => c.arrive(forward),
        }
    }

    /// One entry on, or back, or past all versions of the current key that come together here: where those do not matter
    /// any more. Only when valid.
    #[inline]
    pub(super) fn step_versions(&mut self, forward: bool) -> Result<()> {
        match self {
            SourceCursor::Memtable(c) => {
                c.step_key(forward);
                Ok(())
            }
            SourceCursor::Run(_) => self.step(forward),
        }
    }

    /// Walking back, to the one version of the current key that a reader at `seq` may see, where all of them come
    /// together. Only when valid.
    #[inline]
    pub(super) fn rest_on_version(&mut self, seq: Seq) {
        if let SourceCursor::Memtable(c) = self {
            c.rest_on_version(seq);
        }
    }

    /// So many of the next entries, at most `reach`, are known to come before `limit` in the walk's direction, by a
    /// look at the last of them. Only when valid.
    pub(super) fn known_before(
        &self,
        order: &KeyOrder,
        limit: &[u8],
        forward: bool,
        reach: u32,
    ) -> u32 {
        match self {
            SourceCursor::Memtable(c) => {
                c.known_before(order, limit, forward, reach as usize) as u32
            }
            SourceCursor::Run(c) => c.known_before(limit, forward, reach),
        }
    }

    /// Whether a walk may take what comes some entries at a time.
    pub(super) fn gives_chunks(&self) -> bool {
        match self {
            SourceCursor::Memtable(_) => true,
            SourceCursor::Run(c) => c.has_unique_keys(),
        }
    }

    /// Asks for what the first chunk of a walk will look at.
    pub(super) fn ask_for_chunk(&self, forward: bool) {
        if let SourceCursor::Memtable(c) = self
            && c.valid()
        {
            c.ask_for_chunk(forward);
        }
    }

    /// Takes what a reader at `seq` sees of each key from the current one on, or back, as far as that lies together. Only
    /// when valid.
    #[inline]
    pub(super) fn fill(&self, forward: bool, seq: Seq, chunk: &mut EntryChunk) {
        each!(self, c => c.fill(forward, seq, chunk));
    }

    /// On, or back, past so many keys that a chunk was filled with, or past all of them to what comes then. Only when valid.
    pub(super) fn skip(&mut self, forward: bool, n: u32) -> Result<()> {
        match self {
            SourceCursor::Memtable(c) => {
                c.skip(forward, n);
                Ok(())
            }
            SourceCursor::Run(c) => c.skip(forward, n),
        }
    }

    /// Whether the source is known to have one version of the current key. Only when valid.
    #[inline]
    pub(super) fn is_only_version(&self) -> bool {
        match self {
            SourceCursor::Memtable(c) => c.is_only_version(),
            SourceCursor::Run(c) => c.has_unique_keys(),
        }
    }
}

impl InternalCursor for SourceCursor {
    #[inline]
    fn valid(&self) -> bool {
        each!(self, c => c.valid())
    }
    fn edge(&mut self, forward: bool) -> Result<()> {
        each!(self, c => c.edge(forward))
    }
    fn search(&mut self, key: &[u8], forward: bool) -> Result<()> {
        each!(self, c => c.search(key, forward))
    }
    #[inline]
    fn step(&mut self, forward: bool) -> Result<()> {
        match self {
            SourceCursor::Memtable(c) => c.step(forward),
            SourceCursor::Run(c) => c.step(forward).inspect(|()| c.prefetch_beyond(forward)),
        }
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

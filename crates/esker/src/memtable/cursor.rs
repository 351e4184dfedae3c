//! A walk over a memtable: keys ascending or descending, versions of a key newest first both ways.

use std::sync::Arc;

use super::Memtable;
use super::index::{IndexCursor, KeySource as _};
use crate::Result;
use crate::entry_chunk::{EntryChunk, EntryKind};
use crate::key::{InternalCursor, KeyOrder, Kind, Seq, Stored, ValuePointer};
use crate::wal::{Place, Segment};

/// Walks a memtable and keeps it. Entries that are added meanwhile may or may not be met; readers
/// leave them out by their sequence.
pub(crate) struct MemtableCursor {
    memtable: Arc<Memtable>,
    index: IndexCursor,
    /// The current record.
    record: u32,
    /// The reference to what it replaced: of most keys nothing.
    before: Option<u32>,
    /// Whether the current key has one version.
    alone: bool,
    /// The current record, taken apart. Only when valid.
    current: Option<Place>,
    /// Cache lines that a record takes on average: so many are asked for ahead.
    lines: usize,
    /// So many records ahead of the current one are asked for now.
    ahead: usize,
}

/// So many records ahead of the current one are being loaded in a long walk: they lie where they were
/// written, so in the order of keys each is somewhere else.
const AHEAD: usize = 6;
/// After a search: of many sources each gives one or two, and what is asked for in vain holds up the rest.
const AHEAD_AT_FIRST: usize = 1;
/// Of long values no more is loaded: they are read in one go, which the processor notices by itself.
const MOST_LINES: usize = 4;
const LINE: usize = 64;
/// Of a key that was put more often since a reader's moment, the way to what it sees is gone when the walk comes there.
const NEWER: u32 = 8;

impl MemtableCursor {
    pub(super) fn new(memtable: Arc<Memtable>) -> MemtableCursor {
        let average = memtable.average_len();
        let lines = (average / LINE + 2).min(MOST_LINES);
        let index = IndexCursor::new();
        MemtableCursor {
            memtable,
            index,
            record: 0,
            before: None,
            alone: false,
            current: None,
            lines,
            ahead: AHEAD,
        }
    }

    /// The current record. Only when valid.
    #[inline]
    fn current(&self) -> &Place {
        self.current.as_ref().expect("the cursor is on an entry")
    }

    /// The value. Only when valid.
    #[inline]
    pub(crate) fn value(&self) -> &[u8] {
        self.memtable.segment.value_at(self.current())
    }

    /// Key and value of a put that a reader at `seq` sees. Only when valid.
    #[inline(always)]
    pub(crate) fn put_at(&self, seq: Seq) -> Option<(&[u8], &[u8])> {
        let p = self.current();
        (p.kind == Kind::Put && p.seq <= seq).then(|| self.memtable.segment.entry_at(p))
    }

    /// Where the value is, for who goes on without the cursor. Only when valid.
    pub(crate) fn value_place(&self) -> (Arc<Segment>, Place) {
        (Arc::clone(&self.memtable.segment), *self.current())
    }

    /// On to the next key, or back to the one before, past all versions of the present one.
    #[inline]
    pub(crate) fn step_key(&mut self, forward: bool) {
        let m = &self.memtable;
        match forward {
            true => self.index.next(&m.index, &m.keys()),
            false => self.index.prev(&m.index, &m.keys()),
        }
        self.load_one_ahead(forward);
        self.load();
    }

    /// Whether the current key has one version.
    #[inline]
    pub(crate) fn is_only_version(&self) -> bool {
        self.alone
    }

    /// To the newest version of the current key that a reader at `seq` sees, or the oldest, if there is none. Only when
    /// valid.
    pub(crate) fn rest_on_version(&mut self, seq: Seq) {
        while self.current().seq > seq
            && let Some(older) = self.before
        {
            self.take_up(older);
        }
    }

    /// So many of the next keys of the leaf, at most `reach`, are known to come before `limit` in the walk's direction,
    /// by a look at the last of them. Only when valid.
    pub(crate) fn known_before(
        &self,
        order: &KeyOrder,
        limit: &[u8],
        forward: bool,
        reach: usize,
    ) -> usize {
        let n = reach.min(self.index.left(forward));
        let Some(r) = n.checked_sub(1).and_then(|n| self.index.nth(forward, n)) else {
            return 0;
        };
        let side = order.compare(self.memtable.keys().key(r), limit);
        let before = if forward { side.is_lt() } else { side.is_gt() };
        if before { n } else { 0 }
    }

    /// Asks for the records of the leaf, for a walk that takes them together. Only when valid.
    pub(crate) fn ask_for_chunk(&self, forward: bool) {
        self.ask_for_heads(forward, 0..self.index.left(forward));
    }

    #[inline]
    fn ask_for_heads(&self, forward: bool, which: std::ops::Range<usize>) {
        for n in which {
            if let Some(r) = self.index.probably(&self.memtable.index, forward, n) {
                self.memtable.segment.prefetch_head(self.memtable.chains.resolve(r).0);
            }
        }
    }

    /// Takes what a reader at `seq` sees from the current key on, or back, within the leaf, and asks for the records of the
    /// next one. Only when valid.
    pub(crate) fn fill(&self, forward: bool, seq: Seq, chunk: &mut EntryChunk) {
        let (segment, chains) = (&self.memtable.segment, &self.memtable.chains);
        chunk.begin(0);
        let left = self.index.left(forward).min(chunk.most() - 1);
        self.ask_for_heads(forward, left..left + EntryChunk::MOST);
        self.index.ask_for_leaf_beyond(&self.memtable.index, forward);
        let behind = (0..left).map_while(|n| self.index.nth(forward, n));
        for (n, r) in self.index.current().into_iter().chain(behind).enumerate() {
            let (mut record, mut before) = chains.resolve(r);
            let mut place = segment.place(record);
            let mut newer = 0;
            while place.seq > seq
                && let Some(older) = before
                && (newer < NEWER || chunk.is_empty())
            {
                newer += 1;
                (record, before) = chains.resolve(older);
                place = segment.place(record);
            }
            let seen = place.seq <= seq;
            if !seen && before.is_some() {
                break;
            }
            if !seen && n < left {
                chunk.skip();
                continue;
            }
            segment.prefetch_rest(record, self.lines);
            let (key, value) = segment.entry_at(&place);
            let kind = match place.kind {
                _ if !seen => EntryKind::Unseen,
                Kind::Put => EntryKind::Raw,
                Kind::Delete => EntryKind::Deletion,
            };
            // SAFETY: both are in a record of a segment that the memtable holds; records that are named are not written again.
            unsafe { chunk.push((key.as_ptr(), key.len()), value, place.seq, kind) };
        }
    }

    /// So many keys on, or back, at most to the first one beyond the leaf. Only when valid.
    pub(crate) fn skip(&mut self, forward: bool, n: u32) {
        let m = &self.memtable;
        self.index.skip(&m.index, &m.keys(), forward, n as usize);
        self.load();
    }

    /// Where the current value lies, for a compaction that leaves it there. Only when valid.
    pub(crate) fn value_pointer(&self) -> ValuePointer {
        self.memtable.segment.pointer_to(self.record)
    }

    /// The first of the parts of a search, as in runs: sets out for the leaf.
    pub(crate) fn approach(&mut self) {
        self.index.approach(&self.memtable.index);
    }

    /// Between the first and the second: a level nearer to the leaf, which is asked for. Whether there is more of
    /// the way.
    #[inline]
    pub(crate) fn come_nearer(&mut self, key: &[u8]) -> bool {
        let m = &self.memtable;
        self.index.come_nearer(&m.index, &m.keys(), key)
    }

    /// The second: finds the place in the leaf, and asks for the record.
    pub(crate) fn locate(&mut self, key: &[u8], forward: bool) {
        let m = &self.memtable;
        match forward {
            true => self.index.seek(&m.index, &m.keys(), key),
            false => self.index.seek_for_prev(&m.index, &m.keys(), key),
        }
        self.ahead = AHEAD_AT_FIRST;
        if let Some(r) = self.index.current() {
            self.ask_for(r);
        }
        self.load_ahead(forward);
    }

    /// The third: takes the record up.
    pub(crate) fn arrive(&mut self) {
        self.load();
    }

    /// Starts loading the records that come next.
    #[inline]
    fn load_ahead(&self, forward: bool) {
        self.ask_for_some(forward, 0..self.ahead);
    }

    /// The same after a move by one: all but one are on their way.
    #[inline]
    fn load_one_ahead(&mut self, forward: bool) {
        let known = self.ahead;
        self.ahead = (2 * known).min(AHEAD);
        self.ask_for_some(forward, known - 1..self.ahead);
    }

    #[inline]
    fn ask_for_some(&self, forward: bool, which: std::ops::Range<usize>) {
        for n in which {
            if let Some(r) = self.index.probably(&self.memtable.index, forward, n) {
                self.ask_for(r);
            }
        }
    }

    #[inline]
    fn ask_for(&self, r: u32) {
        self.memtable.segment.prefetch(self.memtable.chains.resolve(r).0, self.lines);
    }

    /// Takes up the newest version of the key that the index cursor is on. Walking back too, where the oldest would come
    /// first in internal order: of a key that was put a thousand times the way there has a thousand steps.
    #[inline]
    fn load(&mut self) {
        match self.index.current() {
            Some(r) => {
                self.take_up(r);
                self.alone = self.before.is_none();
            }
            None => self.current = None,
        }
    }

    #[inline]
    fn take_up(&mut self, r: u32) {
        (self.record, self.before) = self.memtable.chains.resolve(r);
        self.current = Some(self.memtable.segment.place(self.record));
    }
}

impl InternalCursor for MemtableCursor {
    #[inline]
    fn valid(&self) -> bool {
        self.current.is_some()
    }

    fn edge(&mut self, forward: bool) -> Result<()> {
        let m = &self.memtable;
        match forward {
            true => self.index.first(&m.index, &m.keys()),
            false => self.index.last(&m.index, &m.keys()),
        }
        self.ahead = AHEAD;
        self.load_ahead(forward);
        self.load();
        Ok(())
    }

    fn search(&mut self, key: &[u8], forward: bool) -> Result<()> {
        self.approach();
        self.locate(key, forward);
        self.arrive();
        Ok(())
    }

    #[inline]
    fn step(&mut self, forward: bool) -> Result<()> {
        match self.before {
            Some(older) => self.take_up(older),
            None => self.step_key(forward),
        }
        Ok(())
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.memtable.segment.key_at(self.current())
    }

    #[inline]
    fn seq(&self) -> Seq {
        self.current().seq
    }

    #[inline]
    fn kind(&self) -> Kind {
        self.current().kind
    }

    #[inline]
    fn stored(&self) -> Stored<'_> {
        Stored::Inline(self.value())
    }
}

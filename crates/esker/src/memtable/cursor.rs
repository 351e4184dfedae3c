//! A walk over a memtable: keys ascending, versions of a key newest first.

use std::sync::Arc;

use super::Memtable;
use super::index::{IndexCursor, KeySource as _};
use crate::Result;
use crate::key::{InternalCursor, KeyOrder, Kind, Seq, Stored, ValuePointer};
use crate::wal::{Place, Segment};

/// Walks a memtable and keeps it. Entries that are added meanwhile may or may not be met; readers
/// leave them out by their sequence.
pub(crate) struct MemtableCursor {
    memtable: Arc<Memtable>,
    index: IndexCursor,
    /// The newest record of the current key.
    newest: u32,
    /// The reference to what it replaced.
    before: Option<u32>,
    /// Those records, the youngest first: of most keys nobody asks for them.
    older: Vec<u32>,
    /// Which of all of them the cursor is on, the newest being 0.
    at: usize,
    /// That one, taken apart. Only when valid.
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

impl MemtableCursor {
    pub(super) fn new(memtable: Arc<Memtable>) -> MemtableCursor {
        let average = memtable.average_len();
        let lines = (average / LINE + 2).min(MOST_LINES);
        let index = IndexCursor::new();
        MemtableCursor {
            memtable,
            index,
            newest: 0,
            before: None,
            older: Vec::new(),
            at: 0,
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

    /// Goes to version `at` of the key, which there is.
    #[inline]
    fn turn_to(&mut self, at: usize) {
        self.at = at;
        self.current = Some(self.memtable.segment.place(self.version(at)));
    }

    #[inline]
    fn version(&self, at: usize) -> u32 {
        if at == 0 { self.newest } else { self.older[at - 1] }
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
        self.load(forward);
    }

    /// Whether the current key has one version.
    #[inline]
    pub(crate) fn is_only_version(&self) -> bool {
        self.before.is_none()
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

    /// Where the current value lies, for a compaction that leaves it there. Only when valid.
    pub(crate) fn value_pointer(&self) -> ValuePointer {
        self.memtable.segment.pointer_to(self.version(self.at))
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
    pub(crate) fn arrive(&mut self, forward: bool) {
        self.load(forward);
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

    /// Takes up the versions of the key that the index cursor is on: the newest, or in a walk back the oldest.
    #[inline]
    fn load(&mut self, forward: bool) {
        self.older.clear();
        let Some(r) = self.index.current() else {
            self.current = None;
            return;
        };
        (self.newest, self.before) = self.memtable.chains.resolve(r);
        if !forward {
            self.load_older();
        }
        self.turn_to(if forward { 0 } else { self.older.len() });
    }

    /// Takes up what the newest record replaced, if that was not done.
    #[inline]
    fn load_older(&mut self) {
        if self.older.is_empty() && self.before.is_some() {
            self.follow_chain();
        }
    }

    #[inline(never)]
    fn follow_chain(&mut self) {
        let mut next = self.before;
        while let Some(r) = next {
            let (newest, before) = self.memtable.chains.resolve(r);
            self.older.push(newest);
            next = before;
        }
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
        self.load(forward);
        Ok(())
    }

    fn search(&mut self, key: &[u8], forward: bool) -> Result<()> {
        self.approach();
        self.locate(key, forward);
        self.arrive(forward);
        Ok(())
    }

    #[inline]
    fn step(&mut self, forward: bool) -> Result<()> {
        if forward {
            self.load_older();
        }
        let more = if forward { self.at < self.older.len() } else { self.at > 0 };
        match more {
            true => self.turn_to(if forward { self.at + 1 } else { self.at - 1 }),
            false => self.step_key(forward),
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

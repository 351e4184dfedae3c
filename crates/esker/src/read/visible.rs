//! From internal entries (versions, tombstones) to what a reader at one sequence sees.

use std::sync::Arc;

use super::boundary::Boundary;
use super::chunk_walk::ChunkWalk;
use super::entry_view::EntryView;
use super::gaps::{GapFinder, GapLookup, GapReader, KeyGaps, Measuring};
use super::loaded::LoadedTable;
use super::merge_cursor::MergeCursor;
use super::passed::{ASK_AFTER, EXTEND_AFTER, Learning, MOST_LEAPS, Move, Passed};
use super::source::SourceCursor;
use crate::Result;
use crate::key::{Codec, InternalCursor, KeyOrder, Kind, Seq, Stored, ValuePointer};
use crate::util::shrink_for;
use crate::wal::{Place, Segment};

/// Where the value of the current entry is.
pub(super) enum Value {
    /// In the inner cursor's entry, raw.
    Inner,
    /// In `value_buf`.
    Buffer,
    /// In a log segment, checked when the cursor came here.
    Separated(Arc<Segment>, ValuePointer),
    /// In a record of a memtable's.
    Logged(Arc<Segment>, Place),
}

/// The newest version so far of a key that a walk backwards is passing. What makes its value ready waits until no newer
/// one follows: of most keys that were written again and again nobody sees the values before.
enum Newest {
    /// None that the reader sees, or a deletion.
    Nothing,
    /// Its value is ready.
    Ready,
    Pointer(Arc<LoadedTable>, ValuePointer),
    /// Compressed with this codec, with a dictionary of this identity, to so many bytes; these are in `packed`.
    Compressed(Arc<LoadedTable>, Codec, u64, u32),
}

/// Up to this length a value is copied sooner than its segment is held: readers side by side count on one number.
const COPIED: usize = 4096;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum WalkState {
    Invalid,
    /// The inner cursor is on the current entry.
    OnEntry,
    /// The inner cursor is before all versions of the current key; key and value are held here.
    Before,
    /// The current entry is that of `chunks`, and the inner cursor is anywhere.
    InChunk,
}

/// The newest visible version of each key, tombstones left out.
pub(crate) struct VisibleCursor {
    order: KeyOrder,
    pub(super) inner: MergeCursor,
    pub(super) seq: Seq,
    pub(super) keys_only: bool,
    pub(super) state: WalkState,
    /// On an entry: the key whose older versions are skipped. Before one: the current key.
    pub(super) key_buf: Vec<u8>,
    pub(super) value_buf: Vec<u8>,
    /// In a walk backwards, a value that is not unpacked yet.
    packed: Vec<u8>,
    pub(super) value: Value,
    /// What is known of dead keys; nothing where every key is to be read.
    gaps: Option<Arc<dyn GapFinder>>,
    /// One of the first dead keys of this move.
    near: Vec<u8>,
    pub(super) chunks: ChunkWalk,
    /// What this move learns, once it has passed so many that this is worth while.
    learning: Option<Learning>,
}

impl VisibleCursor {
    pub(super) fn new(
        order: KeyOrder,
        inner: MergeCursor,
        seq: Seq,
        keys_only: bool,
        gaps: Option<Arc<dyn GapFinder>>,
    ) -> VisibleCursor {
        VisibleCursor {
            order,
            inner,
            seq,
            keys_only,
            state: WalkState::Invalid,
            key_buf: Vec::new(),
            value_buf: Vec::new(),
            packed: Vec::new(),
            value: Value::Inner,
            gaps,
            near: Vec::new(),
            chunks: ChunkWalk::new(),
            learning: None,
        }
    }

    /// Goes on at another sequence, over the same sources, and on no entry.
    pub(super) fn read_at(&mut self, seq: Seq) {
        self.seq = seq;
        self.state = WalkState::Invalid;
        self.value = Value::Inner;
        self.inner.end();
    }

    /// How many sources there are.
    pub(super) fn sources(&self) -> usize {
        self.inner.sources()
    }

    #[inline]
    pub(super) fn valid(&self) -> bool {
        self.state != WalkState::Invalid
    }

    #[inline]
    pub(super) fn key(&self) -> &[u8] {
        match self.state {
            WalkState::OnEntry => self.inner.key(),
            WalkState::InChunk => self.chunks.current().place.key(),
            WalkState::Before | WalkState::Invalid => &self.key_buf,
        }
    }

    /// Whether the value lies in what the super version holds, and not in a buffer of this cursor's. Only when
    /// valid.
    #[inline]
    pub(super) fn value_in_super_version(&self) -> bool {
        !matches!(self.value, Value::Buffer)
    }

    fn value(&self) -> &[u8] {
        match &self.value {
            Value::Inner if self.state == WalkState::InChunk => self.chunks.current().place.value(),
            Value::Inner => self.inner.current().raw_value(),
            Value::Buffer => &self.value_buf,
            Value::Separated(segment, p) => segment.checked_value(p),
            Value::Logged(segment, place) => segment.value_at(place),
        }
    }

    /// The current entry, if there is one. What it shows is there until the next move.
    #[inline]
    pub(super) fn shown(&self) -> Option<EntryView> {
        // SAFETY: the bytes are in mappings that the sources hold, or in memory that they and the buffers here own; only
        // moves change any of them.
        self.valid().then(|| unsafe { EntryView::new(self.key(), self.value()) })
    }

    /// To the first entry that the reader sees from there on, or back; past the gap that it begins in, if that is known.
    /// Shows it until the next move.
    pub(super) fn position(
        &mut self,
        from: Move<'_>,
        forward: bool,
        shown: &mut Option<EntryView>,
    ) -> Result<()> {
        self.go_to(from, forward)?;
        *shown = self.shown();
        Ok(())
    }

    fn go_to(&mut self, from: Move<'_>, forward: bool) -> Result<()> {
        self.state = WalkState::Invalid;
        self.chunks.restart();
        // A comparator that panicked has left what the move before had passed.
        self.near.clear();
        self.learning = None;
        let gap = match from {
            Move::Search(key) => {
                self.note_search();
                self.expected_gap(key, forward)
            }
            _ => self.known_gaps().and_then(|known| known.at_edge(self.seq, forward)),
        };
        match (&gap, from) {
            (Some(end), _) => self.leap(end, forward)?,
            (None, Move::Search(key)) => self.inner.search(key, forward)?,
            (None, _) => self.inner.edge(forward)?,
        }
        let passed = Passed::new(from, forward, gap.is_some());
        match forward {
            true => self.settle_forward(false, passed),
            false => self.settle_reverse(passed),
        }
    }

    /// Where searches are many, fewer sources are worth more.
    #[inline]
    fn note_search(&self) {
        if let Some(keyspace) = &self.gaps {
            keyspace.searched(self.inner.sources());
        }
    }

    /// One key on, or back, if the cursor is on an entry. Shows the next one until the next move: in the place given, as the
    /// processor waits where words that were just written one by one are read two at a time, to be moved.
    #[inline(always)]
    pub(super) fn step(&mut self, forward: bool, shown: &mut Option<EntryView>) -> Result<()> {
        if self.state == WalkState::InChunk {
            return self.step_in_chunk(forward, shown);
        }
        if self.state == WalkState::OnEntry {
            if self.chunks.are_due() && self.begin_chunks(forward)? {
                return self.step_in_chunk(forward, shown);
            }
            // Whatever happens meanwhile: a comparator may panic.
            self.state = WalkState::Invalid;
            let moved = if forward { self.inner.next_key() } else { self.inner.prev_key() }?;
            if moved && self.take_plain(forward, shown) {
                return Ok(());
            }
            self.step_from_entry(forward, moved)?;
        } else {
            self.step_from_before(forward)?;
        }
        *shown = self.shown();
        Ok(())
    }

    /// Whether a value that is stored as it was put is shown where it lies, as the last one was.
    #[inline(always)]
    pub(super) fn shows_raw(&self) -> bool {
        !self.keys_only && matches!(self.value, Value::Inner)
    }

    /// The rest of a step from an entry of the inner cursor's, which may have left the key already.
    fn step_from_entry(&mut self, forward: bool, moved: bool) -> Result<()> {
        if !moved {
            self.hold_key();
            match forward {
                true => self.inner.step_versions(true)?,
                false => {
                    while self.inner.valid() && self.same(self.inner.key(), &self.key_buf) {
                        self.inner.step_versions(false)?;
                    }
                }
            }
        }
        match forward {
            true => self.settle_forward(!moved, Passed::step(true)),
            false => self.settle_reverse(Passed::step(false)),
        }
    }

    /// A step where the inner cursor is before the current key, if there is one.
    fn step_from_before(&mut self, forward: bool) -> Result<()> {
        match std::mem::replace(&mut self.state, WalkState::Invalid) {
            WalkState::Before if forward => {
                self.inner.seek(&self.key_buf)?;
                self.settle_forward(true, Passed::step(true))
            }
            WalkState::Before => self.settle_reverse(Passed::step(false)),
            WalkState::Invalid | WalkState::OnEntry | WalkState::InChunk => Ok(()),
        }
    }

    /// Stays on the inner entry, if it is what most are: a value as it was put, which the reader sees, and walking
    /// back the only version of its key.
    #[inline(always)]
    fn take_plain(&mut self, forward: bool, shown: &mut Option<EntryView>) -> bool {
        if !self.shows_raw() || !forward && !self.inner.is_only_version() {
            return false;
        }
        let Some((key, value)) = self.inner.front().and_then(|source| source.plain(self.seq))
        else {
            return false;
        };
        self.state = WalkState::OnEntry;
        // SAFETY: as in `shown`.
        *shown = Some(unsafe { EntryView::new(key, value) });
        true
    }

    #[inline]
    pub(super) fn same(&self, a: &[u8], b: &[u8]) -> bool {
        match &self.order {
            KeyOrder::Custom(c) => c.compare(a, b).is_eq(),
            _ => a == b,
        }
    }

    /// Where there are any.
    fn known_gaps(&self) -> Option<&KeyGaps> {
        self.gaps.as_ref().map(|g| g.known()).filter(|known| known.listening())
    }

    /// Where a search for `key` may begin instead, if it is in a gap, and searches lately were.
    #[inline]
    fn expected_gap(&self, key: &[u8], forward: bool) -> Option<Boundary> {
        let known = self.gaps.as_ref()?.known();
        known.are_sought().then(|| known.sought(&self.order, key, self.seq, forward)).flatten()
    }

    /// On, or back, to the end of a gap.
    fn leap(&mut self, end: &Boundary, forward: bool) -> Result<()> {
        let Some(key) = end.key() else {
            self.inner.end();
            return Ok(());
        };
        self.inner.search(key, forward)?;
        // The key beside it may be in the gap, and then it is dead.
        let inside = matches!(end, Boundary::Behind(_)) == forward;
        while inside && self.inner.valid() && self.same(self.inner.key(), key) {
            self.inner.step_versions(forward)?;
        }
        Ok(())
    }

    /// A move has passed so many dead keys, the last of them in `key_buf`. Whether it has leapt over others.
    #[cold]
    fn pass(&mut self, passed: &mut Passed<'_>) -> Result<bool> {
        let Some(gaps) = &self.gaps else { return Ok(false) };
        if passed.dead < ASK_AFTER {
            if self.near.is_empty() {
                self.near.clone_from(&self.key_buf);
            }
            return Ok(false);
        }
        let known = gaps.known().at(&self.order, &self.key_buf, self.seq, passed.forward);
        if let GapLookup::End(end) = known {
            if passed.leaps == MOST_LEAPS {
                return Ok(false);
            }
            let searched = matches!(passed.from, Move::Search(_));
            if passed.leaps == 0 && searched && passed.dead == ASK_AFTER {
                gaps.known().expect_searches();
            }
            passed.leaps += 1;
            passed.before = passed.before.saturating_add(std::mem::take(&mut passed.dead));
            self.leap(&end, passed.forward)?;
            return Ok(true);
        }
        if self.learning.is_none() && gaps.known().is_worth_measuring(passed.worth()) {
            let unknown = known == GapLookup::Unknown;
            let present = match gaps.begin(&self.key_buf, self.seq) {
                GapReader::Present(held) => Some(Measuring::new(Arc::clone(gaps), held)),
                GapReader::Past => None,
                GapReader::Nothing => return Ok(false),
            };
            self.learning = Some(Learning { at: self.key_buf.clone(), present, unknown });
        }
        Ok(false)
    }

    /// The end of a move that leapt, or passed more than a few dead keys.
    #[cold]
    fn learn(&mut self, passed: &Passed<'_>, arrived: bool) {
        let (learning, near) = (self.learning.take(), std::mem::take(&mut self.near));
        let longer = passed.leaps > 0 && passed.all() >= EXTEND_AFTER;
        let Some(gaps) = self.gaps.as_ref().filter(|_| arrived) else { return };
        if learning.is_none() && !longer {
            return;
        }
        let Some(start) = passed.start(&near) else { return };
        let end = match (self.valid(), passed.forward) {
            (true, _) => passed.side(self.key()),
            (false, true) => Boundary::Back,
            (false, false) => Boundary::Front,
        };
        let (order, seq) = (&self.order, self.seq);
        let near = learning.as_ref().map(|_| start.clone());
        let (from, to) = if passed.forward { (start, end) } else { (end, start) };
        match learning {
            None => gaps.known().extend(order, seq, from, to),
            Some(Learning { present: Some(measuring), .. }) => measuring.end(order, seq, from, to),
            Some(Learning { at, unknown, .. }) => {
                gaps.known().note_past(order, seq, from, to);
                if let Some(near) = near.filter(|_| unknown) {
                    gaps.measure(&near, &at, passed.forward);
                }
            }
        }
    }

    /// From the inner entry on to the first one that the reader sees; with `skip`, past all
    /// versions of `key_buf`.
    #[inline]
    pub(super) fn settle_forward(&mut self, skip: bool, mut passed: Passed<'_>) -> Result<()> {
        let arrived = self.find_forward(skip, &mut passed);
        if passed.many() {
            self.learn(&passed, arrived.is_ok());
        }
        arrived
    }

    #[inline]
    fn find_forward(&mut self, mut skip: bool, passed: &mut Passed<'_>) -> Result<()> {
        while self.inner.valid() {
            if skip && self.same(self.inner.key(), &self.key_buf) {
                self.inner.step_versions(true)?;
                continue;
            }
            if self.inner.seq() > self.seq {
                self.inner.next()?;
                continue;
            }
            match self.inner.kind() {
                Kind::Put => {
                    self.hold_inner_value()?;
                    self.state = WalkState::OnEntry;
                    break;
                }
                Kind::Delete => {
                    let ask = passed.one();
                    if ask {
                        self.hold_key();
                        if self.pass(passed)? {
                            skip = false;
                            continue;
                        }
                    }
                    skip = !self.inner.next_key()?;
                    if skip {
                        self.hold_key();
                        self.inner.step_versions(true)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Keeps the current key of the inner cursor.
    #[inline]
    fn hold_key(&mut self) {
        self.key_buf.clear();
        self.key_buf.extend_from_slice(self.inner.key());
    }

    /// Makes the inner entry's value ready, where it lies when it is raw.
    #[inline]
    fn hold_inner_value(&mut self) -> Result<()> {
        if self.keys_only {
            self.hold_nothing();
            return Ok(());
        }
        self.value = match (self.inner.stored(), self.inner.current()) {
            (Stored::Inline(_), _) => Value::Inner,
            (stored, SourceCursor::Run(run)) => {
                stored_value(run.table(), stored, &mut self.value_buf)?
            }
            (_, SourceCursor::Memtable(_)) => unreachable!("memtables store values raw"),
        };
        Ok(())
    }

    pub(super) fn hold_nothing(&mut self) {
        self.value_buf.clear();
        self.value = Value::Buffer;
    }

    /// The inner entry, a put, is the newest version so far.
    fn note_newest(&mut self) -> Newest {
        // Keys that differ in bytes may be one key: report the newest spelling.
        self.hold_key();
        if self.keys_only {
            self.hold_nothing();
            return Newest::Ready;
        }
        match (self.inner.stored(), self.inner.current()) {
            (Stored::Inline(bytes), SourceCursor::Memtable(c)) if bytes.len() > COPIED => {
                let (segment, place) = c.value_place();
                self.value = Value::Logged(segment, place);
                Newest::Ready
            }
            (Stored::Inline(bytes), _) => {
                shrink_for(&mut self.value_buf, bytes.len());
                self.value_buf.clear();
                self.value_buf.extend_from_slice(bytes);
                self.value = Value::Buffer;
                Newest::Ready
            }
            (Stored::Compressed { codec, dict, raw_len, bytes }, SourceCursor::Run(run)) => {
                shrink_for(&mut self.packed, bytes.len());
                self.packed.clear();
                self.packed.extend_from_slice(bytes);
                Newest::Compressed(Arc::clone(run.table()), codec, dict, raw_len)
            }
            (Stored::Pointer(p), SourceCursor::Run(run)) => {
                Newest::Pointer(Arc::clone(run.table()), p)
            }
            (_, SourceCursor::Memtable(_)) => unreachable!("memtables store values raw"),
        }
    }

    /// Makes the value of the newest version ready. Whether there is one.
    fn hold_newest(&mut self, newest: Newest) -> Result<bool> {
        match newest {
            Newest::Nothing => return Ok(false),
            Newest::Ready => {}
            Newest::Pointer(table, p) => self.value = separated(&table, p)?,
            Newest::Compressed(table, codec, dict, raw_len) => {
                let stored = Stored::Compressed { codec, dict, raw_len, bytes: &self.packed };
                self.value = Value::Buffer;
                table.table.decompress(stored, &mut self.value_buf)?;
            }
        }
        Ok(true)
    }

    /// From the inner entry (the first version of some key in a walk back) back to the first key with a visible
    /// version. Leaves the inner cursor on it, if it is known to be the only one; otherwise holds that
    /// version and leaves the inner cursor before the key.
    pub(super) fn settle_reverse(&mut self, mut passed: Passed<'_>) -> Result<()> {
        let arrived = self.find_reverse(&mut passed);
        if passed.many() {
            self.learn(&passed, arrived.is_ok());
        }
        arrived
    }

    fn find_reverse(&mut self, passed: &mut Passed<'_>) -> Result<()> {
        while self.inner.valid() {
            let visible = self.inner.seq() <= self.seq && self.inner.kind() == Kind::Put;
            if visible && self.inner.is_only_version() {
                self.hold_inner_value()?;
                self.state = WalkState::OnEntry;
                break;
            }
            self.hold_key();
            let (mut newest, mut newest_seq) = (Newest::Nothing, 0);
            while self.inner.valid() && self.same(self.inner.key(), &self.key_buf) {
                self.inner.rest_on_version(self.seq);
                // Of two of the same sequence, as a repair may leave them, the later one counts.
                if (newest_seq..=self.seq).contains(&self.inner.seq()) {
                    newest_seq = self.inner.seq();
                    newest = match self.inner.kind() {
                        Kind::Put => self.note_newest(),
                        Kind::Delete => Newest::Nothing,
                    };
                }
                self.inner.step_versions(false)?;
            }
            if self.hold_newest(newest)? {
                self.state = WalkState::Before;
                break;
            }
            if passed.one() {
                self.pass(passed)?;
            }
        }
        Ok(())
    }
}

/// A value of a table's, made ready: in `buf`, if it is packed.
pub(super) fn stored_value(
    table: &LoadedTable,
    stored: Stored<'_>,
    buf: &mut Vec<u8>,
) -> Result<Value> {
    match stored {
        Stored::Inline(_) => Ok(Value::Inner),
        Stored::Compressed { .. } => {
            table.table.decompress(stored, buf)?;
            Ok(Value::Buffer)
        }
        Stored::Pointer(p) => separated(table, p),
    }
}

/// A value in a log segment, verified.
fn separated(table: &LoadedTable, p: ValuePointer) -> Result<Value> {
    let segment = Arc::clone(table.segment(&p)?);
    segment.value(&p)?;
    Ok(Value::Separated(segment, p))
}

#[cfg(test)]
#[path = "visible_tests.rs"]
mod tests;

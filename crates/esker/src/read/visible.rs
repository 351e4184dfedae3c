//! From internal entries (versions, tombstones) to what a reader at one sequence sees.

use std::sync::Arc;

use super::gaps::{GapFinder, GapLookup, KeyGaps};
use super::merge_cursor::MergeCursor;
use super::source::SourceCursor;
use crate::Result;
use crate::key::{InternalCursor, KeyOrder, Kind, Seq, Stored, ValuePointer};
use crate::wal::Segment;

/// Where the value of the current entry is.
enum Value {
    /// In the inner cursor's entry, raw.
    Inner,
    /// In `value_buf`.
    Buffer,
    /// In a log segment.
    Separated(Arc<Segment>, ValuePointer),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum WalkState {
    Invalid,
    /// The inner cursor is on the current entry.
    OnEntry,
    /// The inner cursor is before all versions of the current key; key and value are held here.
    Before,
}

/// The newest visible version of each key, tombstones left out.
pub(crate) struct VisibleCursor {
    order: KeyOrder,
    inner: MergeCursor,
    seq: Seq,
    keys_only: bool,
    state: WalkState,
    /// On an entry: the key whose older versions are skipped. Before one: the current key.
    key_buf: Vec<u8>,
    value_buf: Vec<u8>,
    value: Value,
    /// What is known of dead keys; nothing where every key is to be read.
    gaps: Option<Arc<dyn GapFinder>>,
    /// One of the dead keys of this move, of whose place nothing was known.
    unknown: Vec<u8>,
    /// Dead keys to pass in one move; then it gives up on the one in `key_buf`.
    patience: u32,
    gave_up: bool,
}

/// After so many dead keys in one move a cursor asks whether they are known.
const ASK_AFTER: u32 = if cfg!(test) { 1 } else { 4 };
/// A step is less likely to be repeated than a search: it has to pass so many times as many to be worth a measurement.
const STEP: u32 = if cfg!(test) { 1 } else { 32 };
/// Whether to ask after so many dead keys: what is known may begin further on, and asking is not free.
#[inline]
fn asks(dead: u32) -> bool {
    dead >= ASK_AFTER && dead.is_power_of_two()
}

/// Of one move: a comparator that contradicts itself must not make it endless.
const MOST_LEAPS: u32 = 64;

impl VisibleCursor {
    pub(crate) fn new(
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
            value: Value::Inner,
            gaps,
            unknown: Vec::new(),
            patience: u32::MAX,
            gave_up: false,
        }
    }

    /// Gives up a move, and is on no entry, after so many dead keys without a leap.
    pub(crate) fn with_patience(self, patience: u32) -> VisibleCursor {
        VisibleCursor { patience, ..self }
    }

    /// The dead key on which the last move gave up.
    pub(crate) fn gave_up_at(&self) -> Option<&[u8]> {
        self.gave_up.then_some(&self.key_buf)
    }

    #[inline]
    pub(crate) fn valid(&self) -> bool {
        self.state != WalkState::Invalid
    }

    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        match self.state {
            WalkState::OnEntry => self.inner.key(),
            _ => &self.key_buf,
        }
    }

    /// Whether the value lies in what the view holds, and not in a buffer of this cursor's. Only when
    /// valid.
    #[inline]
    pub(crate) fn value_in_view(&self) -> bool {
        !matches!(self.value, Value::Buffer)
    }

    #[inline]
    pub(crate) fn value(&self) -> &[u8] {
        match &self.value {
            Value::Inner => match self.inner.stored() {
                Stored::Inline(bytes) => bytes,
                _ => &[],
            },
            Value::Buffer => &self.value_buf,
            // Verified when the cursor came here.
            Value::Separated(segment, p) => segment.value(p).unwrap_or(&[]),
        }
    }

    pub(crate) fn first(&mut self) -> Result<()> {
        self.state = WalkState::Invalid;
        match self.known_gaps().map(|g| g.at_front(self.seq)) {
            Some(GapLookup::Gap { before, .. }) => self.leap(before)?,
            _ => self.inner.first()?,
        }
        self.settle_forward(false, 1)
    }

    pub(crate) fn last(&mut self) -> Result<()> {
        self.state = WalkState::Invalid;
        match self.known_gaps().map(|g| g.at_back(self.seq)) {
            Some(GapLookup::Gap { after, .. }) => self.leap_back(after)?,
            _ => self.inner.last()?,
        }
        self.settle_reverse(1)
    }

    pub(crate) fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.state = WalkState::Invalid;
        self.note_search();
        self.inner.seek(key)?;
        self.settle_forward(false, 1)
    }

    pub(crate) fn seek_for_prev(&mut self, key: &[u8]) -> Result<()> {
        self.state = WalkState::Invalid;
        self.note_search();
        self.inner.seek_for_prev(key)?;
        self.settle_reverse(1)
    }

    /// Where searches are many, fewer sources are worth more.
    #[inline]
    fn note_search(&self) {
        if let Some(keyspace) = &self.gaps {
            keyspace.searched(self.inner.sources());
        }
    }

    /// One key on. Only when valid.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<()> {
        match std::mem::replace(&mut self.state, WalkState::Invalid) {
            WalkState::Invalid => Ok(()),
            WalkState::OnEntry => {
                if self.inner.next_key()? {
                    return self.settle_forward(false, STEP);
                }
                self.key_buf.clear();
                self.key_buf.extend_from_slice(self.inner.key());
                self.inner.next()?;
                self.settle_forward(true, STEP)
            }
            WalkState::Before => {
                self.inner.seek(&self.key_buf)?;
                self.settle_forward(true, STEP)
            }
        }
    }

    /// One key back. Only when valid.
    #[inline]
    pub(crate) fn prev(&mut self) -> Result<()> {
        match std::mem::replace(&mut self.state, WalkState::Invalid) {
            WalkState::Invalid => Ok(()),
            WalkState::OnEntry => {
                if self.inner.prev_key()? {
                    return self.settle_reverse(STEP);
                }
                self.key_buf.clear();
                self.key_buf.extend_from_slice(self.inner.key());
                while self.inner.valid() && self.same(self.inner.key(), &self.key_buf) {
                    self.inner.prev()?;
                }
                self.settle_reverse(STEP)
            }
            WalkState::Before => self.settle_reverse(STEP),
        }
    }

    #[inline]
    fn same(&self, a: &[u8], b: &[u8]) -> bool {
        match &self.order {
            KeyOrder::Custom(c) => c.compare(a, b).is_eq(),
            _ => a == b,
        }
    }

    /// Where there are any.
    fn known_gaps(&self) -> Option<&KeyGaps> {
        self.gaps.as_ref().map(|g| g.known()).filter(|known| known.listening())
    }

    /// On to the end of a gap.
    fn leap(&mut self, before: Option<Vec<u8>>) -> Result<()> {
        match before {
            Some(key) => self.inner.seek(&key),
            None => {
                self.inner.end();
                Ok(())
            }
        }
    }

    /// Back to the other end of a gap.
    fn leap_back(&mut self, after: Option<Vec<u8>>) -> Result<()> {
        match after {
            Some(key) => self.inner.seek_for_prev(&key),
            None => {
                self.inner.end();
                Ok(())
            }
        }
    }

    /// What is known of the dead key in `key_buf`.
    #[cold]
    fn place(&mut self) -> GapLookup {
        let Some(gaps) = &self.gaps else { return GapLookup::Unknown };
        let place = gaps.known().at(&self.order, &self.key_buf, self.seq);
        if place == GapLookup::Unknown && self.unknown.is_empty() {
            self.unknown.clone_from(&self.key_buf);
        }
        place
    }

    /// A move has passed so many dead keys, and nobody knew.
    #[cold]
    fn measure(&mut self, passed: u32, rarity: u32) {
        let unknown = std::mem::take(&mut self.unknown);
        if let Some(gaps) =
            self.gaps.as_ref().filter(|g| g.known().is_worth_measuring(passed / rarity))
        {
            gaps.measure(&unknown, passed);
        }
    }

    /// From the inner entry on to the first one that the reader sees; with `skip`, past all
    /// versions of `key_buf`. `rarity`: how many dead keys make one that counts.
    #[inline]
    fn settle_forward(&mut self, mut skip: bool, rarity: u32) -> Result<()> {
        let (mut dead, mut leaps) = (0, 0);
        self.gave_up = false;
        while self.inner.valid() {
            if self.inner.seq() > self.seq || (skip && self.same(self.inner.key(), &self.key_buf)) {
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
                    self.key_buf.clear();
                    self.key_buf.extend_from_slice(self.inner.key());
                    skip = true;
                    dead += 1;
                    if dead > self.patience {
                        self.gave_up = true;
                        break;
                    }
                    if asks(dead)
                        && let GapLookup::Gap { before, .. } = self.place()
                    {
                        self.leap(before)?;
                        (skip, leaps) = (false, leaps + 1);
                        dead = if leaps < MOST_LEAPS { 0 } else { dead };
                    } else {
                        self.inner.next()?;
                    }
                }
            }
        }
        if !self.unknown.is_empty() {
            self.measure(dead, rarity);
        }
        Ok(())
    }

    /// Makes the inner entry's value ready, where it lies when it is raw.
    #[inline]
    fn hold_inner_value(&mut self) -> Result<()> {
        if self.keys_only {
            self.value_buf.clear();
            self.value = Value::Buffer;
            return Ok(());
        }
        self.value = Value::Inner;
        match self.inner.stored() {
            Stored::Inline(_) => Ok(()),
            stored => Self::fetch(&self.inner, stored, &mut self.value_buf, &mut self.value),
        }
    }

    fn fetch(
        inner: &MergeCursor,
        stored: Stored<'_>,
        buf: &mut Vec<u8>,
        value: &mut Value,
    ) -> Result<()> {
        match (stored, inner.current()) {
            (Stored::Compressed { .. }, SourceCursor::Run(run)) => {
                run.table().table.decompress(stored, buf)?;
                *value = Value::Buffer;
            }
            (Stored::Pointer(p), SourceCursor::Run(run)) => {
                let segment = Arc::clone(run.table().segment(&p)?);
                segment.value(&p)?;
                *value = Value::Separated(segment, p);
            }
            (Stored::Inline(bytes), _) => {
                buf.clear();
                buf.extend_from_slice(bytes);
                *value = Value::Buffer;
            }
            (_, SourceCursor::Memtable(_)) => unreachable!("memtables store values raw"),
        }
        Ok(())
    }

    /// From the inner entry (the oldest version of some key) back to the first key with a visible
    /// version. Leaves the inner cursor on it, if it is known to be the only one; otherwise holds that
    /// version and leaves the inner cursor before the key.
    fn settle_reverse(&mut self, rarity: u32) -> Result<()> {
        let (mut dead, mut leaps) = (0, 0);
        self.gave_up = false;
        while self.inner.valid() {
            let visible = self.inner.seq() <= self.seq && self.inner.kind() == Kind::Put;
            if visible && self.inner.is_only_version() {
                self.hold_inner_value()?;
                self.state = WalkState::OnEntry;
                break;
            }
            self.key_buf.clear();
            self.key_buf.extend_from_slice(self.inner.key());
            let mut found = None;
            while self.inner.valid() && self.same(self.inner.key(), &self.key_buf) {
                if self.inner.seq() <= self.seq {
                    let kind = self.inner.kind();
                    found = Some(kind);
                    if kind == Kind::Put {
                        // Keys that differ in bytes may be one key: report the newest spelling.
                        self.key_buf.clear();
                        self.key_buf.extend_from_slice(self.inner.key());
                        if self.keys_only {
                            self.value_buf.clear();
                            self.value = Value::Buffer;
                        } else {
                            Self::fetch(
                                &self.inner,
                                self.inner.stored(),
                                &mut self.value_buf,
                                &mut self.value,
                            )?;
                        }
                    }
                }
                self.inner.prev()?;
            }
            if found == Some(Kind::Put) {
                self.state = WalkState::Before;
                break;
            }
            dead += 1;
            if dead > self.patience {
                self.gave_up = true;
                break;
            }
            if asks(dead)
                && let GapLookup::Gap { after, .. } = self.place()
            {
                self.leap_back(after)?;
                leaps += 1;
                dead = if leaps < MOST_LEAPS { 0 } else { dead };
            }
        }
        if !self.unknown.is_empty() {
            self.measure(dead, rarity);
        }
        Ok(())
    }
}

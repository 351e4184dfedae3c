//! The public cursor.

use std::sync::Arc;

use super::entry_view::EntryView;
use super::gaps::GapFinder;
use super::merge_cursor::MergeCursor;
use super::passed::Move;
use super::refresh::Refresher;
use super::run_cursor::RunCursor;
use super::slice::{Pin, SHORT, Slice};
use super::source::SourceCursor;
use super::super_version::SuperVersion;
use super::visible::VisibleCursor;
use crate::comparator;
use crate::error::{Error, Result};
use crate::key::{InternalCursor as _, KeyOrder, Seq, Stored};
use crate::memtable::Memtable;

/// A walk over the keys and values of one keyspace, as they were at one moment.
///
/// A new cursor is on no entry: position it first. Every move returns whether it is on an entry
/// now.
///
/// After an error the cursor is on no entry: [`valid`](Cursor::valid) is false, key and value are empty,
/// and [`next`](Cursor::next) and [`prev`](Cursor::prev) give the same error again, for where they
/// would go is not known, until it is [refreshed](Cursor::refresh). [`first`](Cursor::first), [`last`](Cursor::last), [`seek`](Cursor::seek) and
/// [`seek_for_prev`](Cursor::seek_for_prev) position it anew; so a walk passes damage by a seek to a
/// key behind it. Of tables whole blocks are lost, [`block_size`](crate::Options::block_size) of entries or one
/// that is larger: a seek to a key in such a block, or right beside it, fails likewise; one to any other key
/// does not.
///
/// A cursor that is kept shows its moment until it is [refreshed](Cursor::refresh), and keeps the files that it sees. If nobody has
/// written to the store since, or while the [`Snapshot`](crate::Snapshot) that it reads at is held, each move to a
/// place of its own (`first`, `last` and the seeks) lets go of files that compactions have replaced.
///
/// A cursor that was made after the store was closed, or its keyspace dropped, answers every move with
/// that error; one that was made before goes on.
///
/// ```
/// # fn main() -> esker::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = esker::Db::open(dir.path().join("db"))?;
/// for n in 0..10u32 {
///     db.put(n.to_be_bytes(), format!("value {n}"))?;
/// }
/// let mut cursor = db.cursor();
/// let mut on_entry = cursor.seek(7u32.to_be_bytes())?;
/// while on_entry {
///     println!("{:?} = {:?}", cursor.key(), cursor.value());
///     on_entry = cursor.next()?;
/// }
/// assert!(cursor.seek_for_prev(100u32.to_be_bytes())?);
/// assert_eq!(cursor.value(), b"value 9");
/// # Ok(()) }
/// ```
pub struct Cursor {
    walk: Walk,
    keys_only: bool,
    /// Whether moves ask a comparator of the user's, which may panic.
    custom: bool,
    /// The current entry, if there is one. Its bytes lie in what `walk` and `buf` hold, which each move may change, so it
    /// is forgotten before.
    shown: Option<EntryView>,
    /// Holds an unpacked value of one run.
    buf: Vec<u8>,
    /// Keeps every file of the super version.
    super_version: Arc<SuperVersion>,
    /// Where newer super versions come from; nothing where there is none to come.
    refresher: Option<Refresher>,
}

#[expect(clippy::large_enum_variant, reason = "a box would be a look at memory in each step")]
enum Walk {
    /// One run in which every entry is visible: nothing to merge, nothing to check.
    Clean(RunCursor),
    Merged(VisibleCursor),
    /// The last move failed, in this way. The walk goes on where it is positioned next; without one,
    /// there is nothing to walk.
    Failed(Error, Option<Box<Walk>>),
}

/// Memtables that hold something for a reader at `seq`: not those that are empty, or too new.
fn memtables_at(super_version: &SuperVersion, seq: Seq) -> impl Iterator<Item = &Arc<Memtable>> {
    super_version.memtables.iter().filter(move |m| !m.is_empty() && m.min_seq() <= seq)
}

/// How many sources a merge for a reader at `seq` has; 0 where there is nothing to merge.
fn sources_at(super_version: &SuperVersion, seq: Seq) -> usize {
    match super_version.single_clean_run(seq) {
        Some(_) => 0,
        None => memtables_at(super_version, seq).count() + super_version.runs().len(),
    }
}

impl Cursor {
    pub(crate) fn new(
        super_version: Arc<SuperVersion>,
        order: &KeyOrder,
        seq: Seq,
        keys_only: bool,
        gaps: Option<Arc<dyn GapFinder>>,
    ) -> Cursor {
        let walk = if let Some(run) = super_version.single_clean_run(seq) {
            Walk::Clean(RunCursor::new(Arc::clone(run), order.clone()))
        } else {
            let mut sources =
                Vec::with_capacity(super_version.memtables.len() + super_version.runs().len());
            let memtables = memtables_at(&super_version, seq);
            sources.extend(memtables.map(|m| SourceCursor::Memtable(m.cursor())));
            for run in super_version.runs() {
                sources.push(SourceCursor::Run(RunCursor::new(Arc::clone(run), order.clone())));
            }
            let merged = MergeCursor::new(order.clone(), sources);
            Walk::Merged(VisibleCursor::new(order.clone(), merged, seq, keys_only, gaps))
        };
        let custom = order.is_custom();
        Cursor {
            walk,
            keys_only,
            custom,
            shown: None,
            buf: Vec::new(),
            super_version,
            refresher: None,
        }
    }

    /// The same, if it may be used; else every move gives the error.
    pub(crate) fn provided(mut self, allowed: Result<()>) -> Cursor {
        if let Err(e) = allowed {
            self.walk = Walk::Failed(e, None);
            self.refresher = None;
        }
        self
    }

    /// The same, which takes newer super versions when it is positioned.
    pub(crate) fn refreshed(self, refresher: Refresher) -> Cursor {
        Cursor { refresher: Some(refresher), ..self }
    }

    /// Goes on with the store as it is now, also after an error. The cursor is on no entry then, and shows what one that is
    /// made now would show, for less where only entries came to a memtable that it has. One of a
    /// [`Snapshot`](crate::Snapshot) goes on with that.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = esker::Db::open(dir.path().join("db"))?;
    /// let mut cursor = db.cursor();
    /// db.put("job 1", "work")?;
    /// assert!(!cursor.first()?);
    /// cursor.refresh()?;
    /// assert!(cursor.first()?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The store was closed, or the keyspace dropped: the cursor then goes on with what it has, as one of a snapshot does
    /// without an error.
    pub fn refresh(&mut self) -> Result<()> {
        let Some(refresher) = &mut self.refresher else {
            return match &self.walk {
                Walk::Failed(e, _) => Err(e.clone()),
                _ => Ok(()),
            };
        };
        let (super_version, seq) = match refresher.move_on()? {
            Some(now) => now,
            None => (Arc::clone(&self.super_version), refresher.seq()),
        };
        self.shown = None;
        match &mut self.walk {
            Walk::Merged(c)
                if Arc::ptr_eq(&super_version, &self.super_version)
                    && c.sources() == sources_at(&super_version, seq) =>
            {
                c.read_at(seq);
            }
            _ => self.take(super_version),
        }
        Ok(())
    }

    /// Takes the present super version, where that shows the same.
    #[inline]
    fn keep_up(&mut self) {
        let Some(refresher) = &mut self.refresher else { return };
        if let Some(super_version) = refresher.newer(&self.super_version) {
            self.take(super_version);
        }
    }

    #[cold]
    fn take(&mut self, super_version: Arc<SuperVersion>) {
        let Some(refresher) = self.refresher.take() else { return };
        let (order, seq) = (refresher.order(), refresher.seq());
        let new = Cursor::new(super_version, order, seq, self.keys_only, Some(refresher.gaps()));
        *self = new.refreshed(refresher);
    }

    /// To the first key.
    pub fn first(&mut self) -> Result<bool> {
        self.position(Move::Edge, true)
    }

    /// To the last key.
    pub fn last(&mut self) -> Result<bool> {
        self.position(Move::Edge, false)
    }

    /// To the first key at or after `key`.
    pub fn seek(&mut self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.position(Move::Search(key.as_ref()), true)
    }

    /// To the last key at or before `key`.
    pub fn seek_for_prev(&mut self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.position(Move::Search(key.as_ref()), false)
    }

    /// One key on. `false` at the end, and when the cursor was on no entry.
    ///
    /// # Errors
    /// Damage in what it comes to; after an error, the same again until the cursor is positioned.
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "the field's name for it; not an Iterator")]
    pub fn next(&mut self) -> Result<bool> {
        self.step(true)
    }

    /// One key back. `false` before the first, and when the cursor was on no entry.
    ///
    /// # Errors
    /// As for [`next`](Cursor::next).
    #[inline]
    pub fn prev(&mut self) -> Result<bool> {
        self.step(false)
    }

    /// One key on, or back.
    #[inline(always)]
    pub(super) fn step(&mut self, forward: bool) -> Result<bool> {
        self.shown = None;
        let moved = match &mut self.walk {
            Walk::Clean(c) if c.valid() => c.step(forward).and_then(|()| self.show()),
            Walk::Clean(_) => return Ok(false),
            Walk::Merged(c) if self.custom => {
                comparator::catch(|| c.step(forward, &mut self.shown))
            }
            Walk::Merged(c) => c.step(forward, &mut self.shown),
            Walk::Failed(e, _) => return Err(e.clone()),
        };
        self.arrive(moved)
    }

    /// Goes somewhere else, whatever happened before.
    #[inline]
    pub(crate) fn position(&mut self, from: Move<'_>, forward: bool) -> Result<bool> {
        self.keep_up();
        self.shown = None;
        if let Walk::Failed(e, walk) = &mut self.walk {
            self.walk = *walk.take().ok_or_else(|| e.clone())?;
        }
        let moved = match &mut self.walk {
            Walk::Clean(c) => {
                let mut go = || match from {
                    Move::Search(key) => c.search(key, forward),
                    _ => c.edge(forward),
                };
                let moved = if self.custom { comparator::catch(go) } else { go() };
                moved.and_then(|()| self.show())
            }
            Walk::Merged(c) if self.custom => {
                comparator::catch(|| c.position(from, forward, &mut self.shown))
            }
            Walk::Merged(c) => c.position(from, forward, &mut self.shown),
            Walk::Failed(e, _) => Err(e.clone()),
        };
        self.arrive(moved)
    }

    /// Whether the cursor is on an entry.
    #[inline]
    pub fn valid(&self) -> bool {
        self.shown.is_some()
    }

    /// The current key; empty when the cursor is on no entry.
    #[inline]
    pub fn key(&self) -> &[u8] {
        self.shown.as_ref().map_or(&[], EntryView::key)
    }

    /// The current value; empty when the cursor is on no entry or walks keys only.
    #[inline]
    pub fn value(&self) -> &[u8] {
        self.shown.as_ref().map_or(&[], EntryView::value)
    }

    /// Whether the current value lives as long as the super version, and not in a buffer of the cursor's.
    #[inline]
    fn value_in_super_version(&self) -> bool {
        match &self.walk {
            Walk::Merged(c) => c.value_in_super_version(),
            Walk::Clean(_) => self.value().as_ptr() != self.buf.as_ptr(),
            Walk::Failed(..) => false,
        }
    }

    /// The current entry, to keep. Only when valid; `pin` holds the super version of this cursor.
    #[inline]
    pub(super) fn entry(&self, pin: &Arc<Pin>) -> (Slice, Slice) {
        assert!(Arc::ptr_eq(&pin.0, &self.super_version), "a pin of another super version");
        let value = self.value();
        let value = match value.len() > SHORT && self.value_in_super_version() {
            // SAFETY: the bytes lie in a segment or table that the super version owns, which `pin` holds; records
            // and tables are never written again while a super version names them.
            true => unsafe { Slice::walked(value, pin) },
            false => Slice::copy_of(value),
        };
        (Slice::copy_of(self.key()), value)
    }

    /// Ends a move.
    #[inline(always)]
    fn arrive(&mut self, moved: Result<()>) -> Result<bool> {
        match moved {
            Ok(()) => Ok(self.shown.is_some()),
            Err(e) => Err(self.fail(e)),
        }
    }

    #[cold]
    fn fail(&mut self, e: Error) -> Error {
        self.shown = None;
        let walk = std::mem::replace(&mut self.walk, Walk::Failed(e.clone(), None));
        self.walk = Walk::Failed(e.clone(), Some(Box::new(walk)));
        e
    }

    /// The entry of the one run that a walk is over, its value made ready.
    #[inline(always)]
    fn show(&mut self) -> Result<()> {
        let Walk::Clean(c) = &self.walk else { return Ok(()) };
        if !c.valid() {
            return Ok(());
        }
        let value = match self.keys_only {
            true => &[],
            false => match c.stored() {
                Stored::Inline(bytes) => bytes,
                stored => Self::fetch(c, stored, &mut self.buf)?,
            },
        };
        // SAFETY: the bytes are in mappings that the run holds, or in memory that its cursor and `buf` own. Only moves
        // change either, through `&mut self`, and each of them forgets first what is shown.
        self.shown = Some(unsafe { EntryView::new(c.key(), value) });
        Ok(())
    }

    /// The value of an entry that does not store it as it is.
    fn fetch<'a>(c: &'a RunCursor, stored: Stored<'a>, buf: &'a mut Vec<u8>) -> Result<&'a [u8]> {
        match stored {
            Stored::Inline(bytes) => Ok(bytes),
            Stored::Compressed { .. } => {
                c.table().table.decompress(stored, buf)?;
                Ok(buf)
            }
            Stored::Pointer(p) => c.table().segment(&p)?.value(&p),
        }
    }
}

impl std::fmt::Debug for Cursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cursor").field("valid", &self.valid()).finish_non_exhaustive()
    }
}

//! Many sorted sources as one.
//!
//! The sources stand in a small array in the order of their current entries, the next one first. [`MergeQueue`] keeps that
//! order by abbreviated keys. Moving on advances the first source and sifts it to its place. Where the same source stayed in
//! front for some moves, as in runs of neighbouring keys, one look tells for how many more it does, and these compare
//! nothing. There are few sources (memtables plus runs), so an array beats a heap; a walk over many memtables is slower.

use std::cmp::Ordering;

use super::chunk_merge::{ChunkMerge, Merged};
use super::merge_queue::MergeQueue;
use super::run_cursor::RunCursor;
use super::source::SourceCursor;
use crate::Result;
use crate::key::{InternalCursor, KeyOrder, Kind, Seq, Stored};

/// A merge of sources. They hold the same (key, sequence) twice only after a repair that had to guess
/// which tables belong to the store: entries without a sequence then count by the age of their run,
/// as they do for a point read.
pub(crate) struct MergeCursor {
    order: KeyOrder,
    sources: Vec<SourceCursor>,
    /// The valid sources; the current entry is that of the first.
    queue: MergeQueue,
    /// The direction of the walk, which is that of the queue.
    forward: bool,
    /// For so many moves the first source is known to stay in front, and to have its keys alone.
    ahead: u32,
    /// So many times in a row it was found there.
    stayed: u32,
    /// So far ahead the next look is.
    reach: u32,
    /// Made by a long walk.
    chunks: Option<Box<ChunkMerge>>,
}

/// After the same source was in front so many times in a row it is worth a look whether it will be after as many more.
const LOOK_AFTER: u32 = 4;
/// From look to look it is twice as far, up to here.
const LONGEST_REACH: u32 = 64;

impl MergeCursor {
    /// Merges `sources`, however many, runs newest first. Not positioned.
    pub(crate) fn new(order: KeyOrder, sources: Vec<SourceCursor>) -> MergeCursor {
        let queue = MergeQueue::new(&order, sources.len());
        MergeCursor {
            order,
            sources,
            queue,
            forward: true,
            ahead: 0,
            stayed: 0,
            reach: LOOK_AFTER,
            chunks: None,
        }
    }

    #[inline]
    fn first_source(&self) -> usize {
        self.queue.fronts()[0].source as usize
    }

    /// How many sources a search asks.
    #[inline]
    pub(crate) fn sources(&self) -> usize {
        self.sources.len()
    }

    /// The source of the current entry, if there is one.
    #[inline]
    pub(crate) fn front(&self) -> Option<&SourceCursor> {
        self.queue.fronts().first().map(|f| &self.sources[f.source as usize])
    }

    /// The source of the current entry. Only when valid.
    #[inline]
    pub(crate) fn current(&self) -> &SourceCursor {
        &self.sources[self.first_source()]
    }

    /// On past all versions of the current key, if that is known without comparing keys. `false` (and no
    /// move) otherwise. Only when valid.
    #[inline]
    pub(crate) fn next_key(&mut self) -> Result<bool> {
        if !self.forward || !self.first_differs() {
            return Ok(false);
        }
        let first = self.first_source();
        let moved = self.sources[first].next_key();
        self.arrive(moved)
    }

    /// Whether no other source has the current key. `false` says nothing.
    #[inline]
    fn first_differs(&self) -> bool {
        self.ahead > 0 || self.queue.first_differs()
    }

    /// The same backwards: back past the current entry, if it is known to be all there is of its key.
    #[inline]
    pub(crate) fn prev_key(&mut self) -> Result<bool> {
        if !self.is_only_version() {
            return Ok(false);
        }
        let first = self.first_source();
        let moved = self.sources[first].prev().map(|()| true);
        self.arrive(moved)
    }

    /// Whether a walk backwards is on an entry that is known to be all there is of its key. `false` says
    /// nothing. Only when valid.
    #[inline]
    pub(crate) fn is_only_version(&self) -> bool {
        !self.forward && self.first_differs() && self.current().is_only_version()
    }

    /// On, or back, past what the first source has of the current key in one place, or past one entry. Only when valid.
    #[inline]
    pub(crate) fn step_versions(&mut self, forward: bool) -> Result<()> {
        if self.forward != forward {
            self.turn(forward)?;
        }
        let first = self.first_source();
        let moved = self.sources[first].step_versions(forward).map(|()| true);
        self.arrive(moved).map(drop)
    }

    /// Walking back, to the version of the current key in the first source that a reader at `seq` may see. Only when valid,
    /// and the next move leaves the key there.
    #[inline]
    pub(crate) fn rest_on_version(&mut self, seq: Seq) {
        let first = self.first_source();
        self.sources[first].rest_on_version(seq);
    }

    /// To no entry.
    pub(crate) fn end(&mut self) {
        self.clear();
    }

    fn clear(&mut self) {
        self.queue.clear();
        (self.ahead, self.stayed, self.reach) = (0, 0, LOOK_AFTER);
    }

    #[inline]
    pub(super) fn is_forward(&self) -> bool {
        self.forward
    }

    /// From here on, entries are merged some at a time, for a reader at `seq`. Whether that can be done; otherwise
    /// nothing has changed. Only when valid, and in the direction of the walk.
    #[cold]
    pub(super) fn begin_chunks(&mut self, forward: bool, seq: Seq) -> bool {
        if self.order.is_custom() || !self.sources.iter().all(SourceCursor::gives_chunks) {
            return false;
        }
        let new = || Box::new(ChunkMerge::new(&self.order, self.sources.len()));
        let mut chunks = self.chunks.take().unwrap_or_else(new);
        self.clear();
        chunks.begin(&self.sources, forward, seq);
        self.chunks = Some(chunks);
        true
    }

    /// What comes next, and how many entries that are; none where it is to be gone on by single entries. Only after `begin_chunks`.
    #[inline]
    pub(super) fn merge_chunks(&mut self, merged: &mut [Merged]) -> Result<usize> {
        let chunks = self.chunks.as_mut().expect("chunks were begun");
        chunks.merge(&mut self.sources, merged)
    }

    /// Goes on by single entries, where the chunks are.
    #[cold]
    pub(super) fn end_chunks(&mut self) -> Result<()> {
        let chunks = self.chunks.as_mut().expect("chunks were begun");
        chunks.end(&mut self.sources)?;
        self.rebuild(self.forward);
        Ok(())
    }

    /// The run that a source is. Not of a memtable.
    pub(super) fn run(&self, source: u32) -> &RunCursor {
        match &self.sources[source as usize] {
            SourceCursor::Run(run) => run,
            SourceCursor::Memtable(_) => unreachable!("memtables store values raw"),
        }
    }

    /// The first source has moved, if it could.
    #[inline]
    fn arrive(&mut self, moved: Result<bool>) -> Result<bool> {
        match moved {
            Ok(true) => {
                match self.ahead {
                    0 => self.sift_first(),
                    _ => self.ahead -= 1,
                }
                Ok(true)
            }
            Ok(false) => Ok(false),
            Err(e) => {
                self.clear();
                Err(e)
            }
        }
    }

    fn rebuild(&mut self, forward: bool) {
        self.forward = forward;
        let sources = &self.sources;
        let valid = (0..sources.len()).filter(|i| sources[*i].valid()).map(|i| i as u32);
        let before = in_order(&self.order, sources, forward);
        let key = |i: u32| sources[i as usize].key();
        self.queue.fill(forward, valid, key, before);
    }

    /// The first source has moved: puts it where it belongs now.
    #[inline]
    fn sift_first(&mut self) {
        let sources = &self.sources;
        if !self.current().valid() {
            return self.queue.remove_first();
        }
        let before = in_order(&self.order, sources, self.forward);
        let stays = self.queue.sift_first(|i| sources[i as usize].key(), before);
        self.stayed = if stays { self.stayed.saturating_add(1) } else { 0 };
        if self.stayed >= LOOK_AFTER {
            self.look_ahead();
        }
    }

    /// Finds out whether the first source stays in front for some more moves. What it looks at is read soon.
    #[inline(never)]
    fn look_ahead(&mut self) {
        let [first, second, ..] = self.queue.fronts() else { return };
        let limit = self.sources[second.source as usize].key();
        let source = &self.sources[first.source as usize];
        self.ahead = source.known_before(&self.order, limit, self.forward, self.reach);
        (self.stayed, self.reach) = match self.ahead {
            0 => (0, LOOK_AFTER),
            _ => (LOOK_AFTER - 1, (2 * self.reach).min(LONGEST_REACH)),
        };
    }

    /// Puts every source but the current one just past the current entry in the new direction.
    fn turn(&mut self, forward: bool) -> Result<()> {
        let passed = if forward { Ordering::Less } else { Ordering::Greater };
        let current = self.first_source();
        let key = self.sources[current].key().to_vec();
        let seq = self.sources[current].seq();
        // Filled again at the end: after an error the cursor is not valid.
        self.clear();
        for i in 0..self.sources.len() {
            if i == current {
                continue;
            }
            let source = &mut self.sources[i];
            source.search(&key, forward)?;
            // Versions of one key may lie in several sources, so the sequence decides among them.
            while source.valid()
                && seq.cmp(&source.seq()).then(i.cmp(&current)) == passed
                && self.order.compare(source.key(), &key).is_eq()
            {
                match forward {
                    true => source.step(true)?,
                    // The newest of a memtable's has been passed, so all of them have.
                    false => source.step_versions(false)?,
                }
            }
        }
        self.rebuild(forward);
        Ok(())
    }
}

/// Whether the entry of one source comes before that of another, in internal order: key ascending, then
/// sequence descending, then the newer run first.
#[inline]
fn in_order<'s>(
    order: &'s KeyOrder,
    sources: &'s [SourceCursor],
    forward: bool,
) -> impl Fn(u32, u32) -> bool + use<'s> {
    let before = if forward { Ordering::Less } else { Ordering::Greater };
    move |a, b| {
        let (x, y) = (&sources[a as usize], &sources[b as usize]);
        let by_key = order.compare(x.key(), y.key());
        by_key.then_with(|| y.seq().cmp(&x.seq()).then(a.cmp(&b))) == before
    }
}

impl InternalCursor for MergeCursor {
    #[inline]
    fn valid(&self) -> bool {
        !self.queue.fronts().is_empty()
    }

    fn edge(&mut self, forward: bool) -> Result<()> {
        self.clear();
        self.sources.iter_mut().try_for_each(|s| s.edge(forward))?;
        self.rebuild(forward);
        Ok(())
    }

    /// A search waits for memory that nobody has used lately, several times over: at each level of a memtable's
    /// index, at a table's index and its block. All sources are searched in step, so that they wait together.
    fn search(&mut self, key: &[u8], forward: bool) -> Result<()> {
        self.clear();
        self.sources.iter_mut().for_each(|s| s.approach(key, forward));
        // One that is alone has nobody to wait beside.
        if self.sources.len() > 1 {
            while self.sources.iter_mut().fold(false, |more, s| s.come_nearer(key) | more) {}
        }
        self.sources.iter_mut().for_each(|s| s.locate(key, forward));
        self.sources.iter_mut().try_for_each(|s| s.enter(key))?;
        while self.sources.iter_mut().fold(false, |more, s| s.narrow(key, forward) | more) {}
        self.sources.iter_mut().try_for_each(|s| s.arrive(forward))?;
        self.rebuild(forward);
        Ok(())
    }

    #[inline]
    fn step(&mut self, forward: bool) -> Result<()> {
        if self.forward != forward {
            self.turn(forward)?;
        }
        let first = self.first_source();
        let moved = self.sources[first].step(forward).map(|()| true);
        self.arrive(moved).map(drop)
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.current().key()
    }

    #[inline]
    fn seq(&self) -> Seq {
        self.current().seq()
    }

    #[inline]
    fn kind(&self) -> Kind {
        self.current().kind()
    }

    #[inline]
    fn stored(&self) -> Stored<'_> {
        self.current().stored()
    }
}

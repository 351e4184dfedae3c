//! Many sorted sources as one.
//!
//! The sources stand in a small array ordered by their current entry, the next one first. Moving on
//! advances the first and sifts it to its place: one comparison when the same source stays in
//! front, which is what runs of neighbouring keys do. There are few sources (memtables plus runs),
//! so an array beats a heap. A store that had
//! hundreds (before a repair is merged down) is read more slowly, and rightly.

use std::cmp::Ordering;

use super::source::SourceCursor;
use crate::Result;
use crate::key::{InternalCursor, KeyOrder, Kind, Seq, Stored};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Forward,
    Reverse,
}

/// A merge of sources. They hold the same (key, sequence) twice only after a repair that had to guess
/// which tables belong to the store: entries without a sequence then count by the age of their run,
/// as they do for a point read.
pub(crate) struct MergeCursor {
    order: KeyOrder,
    sources: Vec<SourceCursor>,
    /// Indexes of the valid sources; the current entry is that of the first.
    queue: Vec<usize>,
    direction: Direction,
}

impl MergeCursor {
    /// Merges `sources`, however many, runs newest first. Not positioned.
    pub(crate) fn new(order: KeyOrder, sources: Vec<SourceCursor>) -> MergeCursor {
        let queue = Vec::with_capacity(sources.len());
        MergeCursor { order, sources, queue, direction: Direction::Forward }
    }

    /// The source of the current entry. Only when valid.
    #[inline]
    pub(crate) fn current(&self) -> &SourceCursor {
        &self.sources[self.queue[0]]
    }

    /// On past all versions of the current key, if that is known without comparing keys: there is one
    /// source left, and it is a memtable. `false` (and no move) otherwise. Only when valid.
    #[inline]
    pub(crate) fn next_key(&mut self) -> bool {
        let ([only], Direction::Forward) = (&self.queue[..], self.direction) else { return false };
        let SourceCursor::Memtable(source) = &mut self.sources[*only] else { return false };
        source.next_key();
        if !source.valid() {
            self.queue.clear();
        }
        true
    }

    /// To no entry.
    pub(crate) fn end(&mut self) {
        self.queue.clear();
    }

    /// Internal order: key ascending, then sequence descending, then the newer run first.
    #[inline]
    fn compare(&self, a: usize, b: usize) -> Ordering {
        let (x, y) = (&self.sources[a], &self.sources[b]);
        let by_key = self.order.compare(x.key(), y.key());
        by_key.then_with(|| y.seq().cmp(&x.seq()).then(a.cmp(&b)))
    }

    #[inline]
    fn in_order(&self, a: usize, b: usize) -> bool {
        match self.direction {
            Direction::Forward => self.compare(a, b) == Ordering::Less,
            Direction::Reverse => self.compare(a, b) == Ordering::Greater,
        }
    }

    fn rebuild(&mut self, direction: Direction) {
        self.direction = direction;
        self.queue.clear();
        for i in 0..self.sources.len() {
            if self.sources[i].valid() {
                self.queue.push(i);
                self.sift_up(self.queue.len() - 1);
            }
        }
    }

    /// Moves the element at `at` forward to its place among those before it.
    fn sift_up(&mut self, mut at: usize) {
        while at > 0 && self.in_order(self.queue[at], self.queue[at - 1]) {
            self.queue.swap(at, at - 1);
            at -= 1;
        }
    }

    /// The first source has moved: puts it where it belongs now.
    #[inline]
    fn sift_first(&mut self) {
        if !self.sources[self.queue[0]].valid() {
            self.queue.remove(0);
            return;
        }
        let mut at = 0;
        while at + 1 < self.queue.len() && self.in_order(self.queue[at + 1], self.queue[at]) {
            self.queue.swap(at, at + 1);
            at += 1;
        }
    }

    /// Puts every source but the current one just past the current entry in the new direction.
    fn turn(&mut self, direction: Direction) -> Result<()> {
        let current = self.queue[0];
        let key = self.sources[current].key().to_vec();
        let seq = self.sources[current].seq();
        // Filled again at the end: after an error the cursor is not valid.
        self.queue.clear();
        for i in 0..self.sources.len() {
            if i == current {
                continue;
            }
            let source = &mut self.sources[i];
            // Versions of one key may lie in several sources, so the sequence decides among them.
            match direction {
                Direction::Forward => {
                    source.seek(&key)?;
                    while source.valid()
                        && (source.seq() > seq || source.seq() == seq && i < current)
                        && self.order.compare(source.key(), &key).is_eq()
                    {
                        source.next()?;
                    }
                }
                Direction::Reverse => {
                    source.seek_for_prev(&key)?;
                    while source.valid()
                        && (source.seq() < seq || source.seq() == seq && i > current)
                        && self.order.compare(source.key(), &key).is_eq()
                    {
                        source.prev()?;
                    }
                }
            }
        }
        self.rebuild(direction);
        Ok(())
    }
}

impl InternalCursor for MergeCursor {
    #[inline]
    fn valid(&self) -> bool {
        !self.queue.is_empty()
    }

    fn first(&mut self) -> Result<()> {
        self.queue.clear();
        for s in &mut self.sources {
            s.first()?;
        }
        self.rebuild(Direction::Forward);
        Ok(())
    }

    fn last(&mut self) -> Result<()> {
        self.queue.clear();
        for s in &mut self.sources {
            s.last()?;
        }
        self.rebuild(Direction::Reverse);
        Ok(())
    }

    fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.queue.clear();
        for s in &mut self.sources {
            s.seek(key)?;
        }
        self.rebuild(Direction::Forward);
        Ok(())
    }

    fn seek_for_prev(&mut self, key: &[u8]) -> Result<()> {
        self.queue.clear();
        for s in &mut self.sources {
            s.seek_for_prev(key)?;
        }
        self.rebuild(Direction::Reverse);
        Ok(())
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        if self.direction == Direction::Reverse {
            self.turn(Direction::Forward)?;
        }
        let first = self.queue[0];
        if let Err(e) = self.sources[first].next() {
            self.queue.clear();
            return Err(e);
        }
        self.sift_first();
        Ok(())
    }

    #[inline]
    fn prev(&mut self) -> Result<()> {
        if self.direction == Direction::Forward {
            self.turn(Direction::Reverse)?;
        }
        let first = self.queue[0];
        if let Err(e) = self.sources[first].prev() {
            self.queue.clear();
            return Err(e);
        }
        self.sift_first();
        Ok(())
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

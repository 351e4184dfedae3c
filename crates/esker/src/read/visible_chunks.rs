//! Walks over what a reader sees, by chunks: until deletions are many.

use super::chunk_merge::Merged;
use super::entry_view::EntryView;
use super::passed::Passed;
use super::visible::{Value, VisibleCursor, WalkState, stored_value};
use crate::Result;
use crate::entry_chunk::EntryKind;
use crate::key::InternalCursor as _;

impl VisibleCursor {
    /// Takes chunks from the current entry on, if that can be done.
    #[cold]
    pub(super) fn begin_chunks(&mut self, forward: bool) -> Result<bool> {
        if forward != self.inner.is_forward() {
            self.chunks.restart();
            return Ok(false);
        }
        // Until all is well.
        self.state = WalkState::Invalid;
        if !self.inner.begin_chunks(forward, self.seq) {
            self.chunks.end(false);
            self.state = WalkState::OnEntry;
            return Ok(false);
        }
        self.chunks.begin(forward);
        self.merge_chunks()?;
        self.state = WalkState::InChunk;
        Ok(true)
    }

    /// Merges what comes next.
    fn merge_chunks(&mut self) -> Result<()> {
        self.chunks.fill(|merged| self.inner.merge_chunks(merged))
    }

    /// One key on, or back, from an entry of the chunks.
    #[inline(always)]
    pub(super) fn step_in_chunk(
        &mut self,
        forward: bool,
        shown: &mut Option<EntryView>,
    ) -> Result<()> {
        if self.shows_raw()
            && let Some(place) = self.chunks.next_raw(forward)
        {
            // SAFETY: as in `VisibleCursor::shown`.
            *shown = Some(unsafe { EntryView::new(place.key(), place.value()) });
            return Ok(());
        }
        self.step_to_chunk(forward)?;
        *shown = self.shown();
        Ok(())
    }

    /// The same where there is more to do.
    #[inline(never)]
    fn step_to_chunk(&mut self, forward: bool) -> Result<()> {
        self.state = WalkState::Invalid;
        if forward != self.chunks.forward() {
            return self.turn_from_chunk(forward);
        }
        if !self.chunks.advance() {
            self.merge_chunks()?;
        }
        if self.chunks.is_empty() {
            return self.leave_chunks(forward);
        }
        self.hold_merged_value()?;
        self.state = WalkState::InChunk;
        Ok(())
    }

    /// Makes the value of the current entry ready.
    fn hold_merged_value(&mut self) -> Result<()> {
        if self.keys_only {
            self.hold_nothing();
            return Ok(());
        }
        let Merged { place, source } = self.chunks.current();
        self.value = match place.kind {
            EntryKind::Raw | EntryKind::Deletion | EntryKind::Unseen => Value::Inner,
            EntryKind::Stored(tag) => {
                let run = self.inner.run(*source);
                let stored = run.stored_as(tag, place.value());
                stored_value(run.table(), stored, &mut self.value_buf)?
            }
        };
        Ok(())
    }

    /// The chunks have nothing more to show: goes on by single entries.
    #[cold]
    fn leave_chunks(&mut self, forward: bool) -> Result<()> {
        self.chunks.end(true);
        self.inner.end_chunks()?;
        match forward {
            true => self.settle_forward(false, Passed::step(true)),
            false => self.settle_reverse(Passed::step(false)),
        }
    }

    /// The other way from an entry of the chunks.
    #[cold]
    fn turn_from_chunk(&mut self, forward: bool) -> Result<()> {
        self.chunks.restart();
        self.key_buf.clear();
        self.key_buf.extend_from_slice(self.chunks.current().place.key());
        self.inner.search(&self.key_buf, forward)?;
        if forward {
            return self.settle_forward(true, Passed::step(true));
        }
        while self.inner.valid() && self.same(self.inner.key(), &self.key_buf) {
            self.inner.step_versions(false)?;
        }
        self.settle_reverse(Passed::step(false))
    }
}

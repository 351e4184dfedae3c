//! Whether a compaction has room on the disk, and what becomes of one that found none.

use std::sync::Arc;

use parking_lot::Mutex;

use super::inputs::CompactionInputs;
use super::picker::{Compaction, CompactionReason, PickerInput, SegmentUse};
use crate::error::{Error, Result};
use crate::read::LoadedTable;
use crate::store::{KeyspaceState, Refused, Store};
use crate::util::sum_of;
use crate::wal::room::RESERVE;

impl Store {
    /// Carries a compaction out that moves so many bytes of values, if there is room for all that it may write. With
    /// `try_hard` also in hope of writing less, and where it was not done the spare segment is given up.
    /// `begin` is told whether it is tried. Whether it was done: where it was not there is no room, or a run that would have
    /// gone along with a flush is damaged.
    pub(super) fn compact_in_room(
        &self,
        ks: &KeyspaceState,
        inputs: CompactionInputs,
        moved: u64,
        try_hard: bool,
        begin: impl FnOnce(bool),
    ) -> Result<bool> {
        let (flush, with_runs) = (!inputs.memtables.is_empty(), !inputs.runs.is_empty());
        let (most, likely) =
            (inputs.written().saturating_add(moved), inputs.likely_written().saturating_add(moved));
        let flushed = inputs.flushed();
        let claim = self.room.claim(most.saturating_sub(flushed));
        let tight = self.is_tight(most);
        let claim = if tight {
            drop(claim);
            self.room.claim(likely.saturating_sub(flushed))
        } else {
            claim
        };
        let tried = !tight || try_hard && self.may_hope(likely);
        begin(tried);
        // All that the inputs keep, lest what follows a flush keeps what the flush is done with.
        let merged = tried.then(|| self.run_compaction(ks, inputs));
        drop(claim);
        let gave_up = |e: &Error| {
            (e.is_no_space() || flush && e.is_corruption()) && self.halt_cause().is_none()
        };
        let rests = match merged {
            // Nor is it looked at again at each turn where whoever waits for it gives up the spare segment each time.
            None => (with_runs && !flush && try_hard).then_some(&ks.lacked_room),
            Some(Err(e)) if !gave_up(&e) => return Err(e),
            Some(Err(_)) if tight => {
                self.hope_failed(likely);
                None
            }
            Some(Err(e)) => (with_runs && e.is_no_space()).then_some(&ks.refused),
            Some(Ok(())) => {
                if with_runs {
                    *ks.refused.lock() = None;
                }
                // What goes along with a flush takes little, and says nothing of the room for the rest.
                if !flush {
                    *ks.lacked_room.lock() = None;
                }
                return Ok(true);
            }
        };
        // A flush that was not tried with its runs is tried without, and gives the spare up if it must.
        if try_hard && (tried || !flush) {
            self.discard_spare();
        }
        if let Some(rests) = rests {
            let lacks = || u64::try_from(-self.to_spare(likely)).unwrap_or(0);
            self.rest(ks, rests, if tried { most } else { lacks() });
        }
        Ok(false)
    }

    /// Cuts a plan that writes `written` bytes beside what it moves to what there is room for: on a disk with little of it
    /// one segment is emptied at a time, as each gives back more than it takes, and none by the way, nor where a
    /// compaction found no room. Whether it was cut.
    pub(super) fn cut_to_room(
        &self,
        ks: &KeyspaceState,
        plan: &mut Compaction,
        picker_input: &PickerInput<'_, Arc<LoadedTable>>,
        written: u64,
    ) -> bool {
        if plan.relocate.is_empty() {
            return false;
        }
        let by_the_way = plan.reason != CompactionReason::Garbage;
        let moved = values_in(&plan.relocate, picker_input.segments);
        let tight = self.is_tight(written.saturating_add(moved))
            || by_the_way && (ks.refused.lock().is_some() || ks.lacked_room.lock().is_some());
        match tight {
            true if by_the_way => plan.relocate.clear(),
            true => plan.empty_one(picker_input),
            false => {}
        }
        tight
    }

    /// What a compaction that writes so many bytes leaves free beside what flushes need.
    pub(crate) fn to_spare(&self, writes: u64) -> i128 {
        let _look = self.room.look();
        let needed = i128::from(writes) + i128::from(self.flushes_may_write(true));
        i128::from(self.env.available(&self.dir)) - needed - i128::from(RESERVE)
    }

    /// Whether a compaction that writes so many bytes would leave too little for writes and flushes.
    pub(super) fn is_tight(&self, writes: u64) -> bool {
        self.to_spare(writes) < 0
    }

    /// Whether to try a compaction that has room for what is likely to be left, `writes` bytes, though not
    /// for all that may be.
    fn may_hope(&self, writes: u64) -> bool {
        let spare = self.to_spare(writes);
        spare >= 0 && self.room.hope_failed.lock().is_none_or(|failed| spare > failed)
    }

    /// It did not come true.
    fn hope_failed(&self, writes: u64) {
        *self.room.hope_failed.lock() = Some(self.to_spare(writes));
    }

    /// Whether compactions of a keyspace wait, as the last one found no room.
    pub(super) fn rests(&self, ks: &KeyspaceState) -> bool {
        self.flushes_alone(ks) || self.still_rests(&ks.lacked_room)
    }

    /// Whether flushes of a keyspace take no runs along either: the system refused room that it said there was. Where it says
    /// what there is, each looks whether that is enough for its own.
    pub(super) fn flushes_alone(&self, ks: &KeyspaceState) -> bool {
        self.still_rests(&ks.refused)
    }

    fn still_rests(&self, refused: &Mutex<Option<Refused>>) -> bool {
        let refused = *refused.lock();
        refused.is_some_and(|r| r.rests(&*self.env, &self.dir))
    }

    /// A compaction found no room, as one of the two that the keyspace keeps says (`refused`), and is worth an attempt when so
    /// many bytes more are free.
    fn rest(&self, ks: &KeyspaceState, refused: &Mutex<Option<Refused>>, lacks: u64) {
        // Set by who holds `jobs` alone.
        let before = *refused.lock();
        let again = Refused::again(before, &*self.env, &self.dir, lacks);
        *refused.lock() = Some(again);
        // Nobody is to slow down for what does not come.
        self.note_pressure(ks, 0.0);
    }
}

/// Bytes of values that emptying these segments moves, at most: of all keyspaces.
pub(super) fn values_in(relocate: &[u64], segments: &[SegmentUse]) -> u64 {
    sum_of(segments.iter().filter(|s| relocate.contains(&s.segment)).map(|s| s.live))
}

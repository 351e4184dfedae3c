//! From one log segment to the next: sealing the active one, going on in a spare or a new one, and giving
//! up those at the log's start that nothing needs.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::room::{IDLE_SEGMENT, Keep, Need};
use super::writer::LogWriter;
use crate::error::{Error, Result};
use crate::store::{NewSegment, Refused, Store, VersionSet, Writer};
use crate::version::{Change, VersionEdit};

impl Store {
    /// Seals the active segment if it holds anything.
    pub(crate) fn seal_active(&self) -> Result<()> {
        let mut w = self.writer.lock();
        self.check_writable()?;
        if w.has_entries() {
            self.rotate(&mut w)?;
        }
        Ok(())
    }

    /// Seals the active segment and goes on in a new one. When none can be had (a full disk), nothing
    /// has changed.
    pub(crate) fn rotate(&self, w: &mut Writer) -> Result<()> {
        self.rotate_to(w, self.next_segment_bytes(), Need::SEAL)
    }

    /// The same for a write that does not fit into the active segment.
    pub(crate) fn rotate_for(&self, w: &mut Writer, need: Need) -> Result<()> {
        self.rotate_to(w, self.next_segment_bytes().max(need.least), need).or_else(|e| {
            // It may have been full only because of the memory that it takes.
            let goes_on = w.log_writer.as_mut().is_some_and(|log| log.go_on(need.least));
            if goes_on { Ok(()) } else { Err(e) }
        })
    }

    /// Goes on in the spare segment if it is large enough, else in a new one of `want` bytes.
    fn rotate_to(&self, w: &mut Writer, want: u64, need: Need) -> Result<()> {
        let next = match self.take_spare(w.active_number(), need.least) {
            Some(spare) => spare,
            // The writer is in a hurry: it does not wait for the device.
            None => self.new_segment(want, need)?,
        };
        if let Some(log_writer) = w.end_segment() {
            let old = Arc::clone(log_writer.segment());
            self.segments.note_sealed(old.number(), log_writer.end());
            log_writer.seal(w.last_seq, next.segment.number());
            // Whoever syncs it opens it again: many may wait for a flush.
            old.release();
        }
        self.go_on_in(w, next);
        Ok(())
    }

    /// Takes the space of an empty active segment back: an idle store should not hold a log that
    /// is a good part of its size. Writing goes on in a small segment first.
    pub(crate) fn trim_log(&self) -> Result<()> {
        {
            let mut w = self.writer.lock();
            if w.has_entries() || self.check_writable().is_err() {
                return Ok(());
            }
            if w.segment.as_ref().is_none_or(|s| s.capacity() <= IDLE_SEGMENT) {
                return Ok(());
            }
            self.let_go_of_spare();
            self.rotate_to(&mut w, IDLE_SEGMENT, Need::SEAL)?;
        }
        self.advance_log()
    }

    /// Gives up segments at the log's start that nothing waits for. Flushes do that by the way;
    /// this is for what was written to keyspaces since dropped, or never.
    pub(crate) fn advance_log(&self) -> Result<()> {
        let mut version_set = self.version_set.lock();
        let active = self.active_number();
        let log_start = self.segments.log_start_after(active, &[]);
        self.note_pending(active);
        if log_start > version_set.state().log_start {
            if self.sync.durable().segment < log_start {
                self.sync_dir()?;
            }
            let changes = self.log_starts_in(&version_set, log_start);
            self.commit(&mut version_set, VersionEdit::from(changes.to_vec()))?;
            self.segments.advance(log_start, || self.old_super_versions());
            self.sync.retire(log_start);
        }
        self.track_synced(&mut version_set)
    }

    /// Tells the manifest how far the log is durable, where it knows of no synced write in the newest
    /// segment: if that were lost, recovery would take it for the work of a power cut.
    #[cold]
    pub(crate) fn track_synced(&self, version_set: &mut VersionSet) -> Result<()> {
        let (segment, known) = (version_set.state().log_start, version_set.state().log_durable);
        let durable = self.sync.durable();
        let led_to = self.leads_on_from(segment);
        if durable.segment > known.segment && led_to && self.check_writable().is_ok() {
            let change = Change::LogStart { segment, durable };
            self.commit(version_set, VersionEdit::from(vec![change]))?;
        }
        Ok(())
    }

    /// Whether seals lead from this segment of the log to the one that is written to. After a failed sync none leads on to what
    /// was synced since.
    pub(crate) fn leads_on_from(&self, segment: u64) -> bool {
        segment >= self.failed_sync_below.load(Ordering::Acquire)
    }

    pub(crate) fn next_segment_bytes(&self) -> u64 {
        self.segments.next_bytes(self.options.segment_bytes(), self.backpressure.cost_model())
    }

    /// Tells the pacing what waits, when the segment `active` is not sealed yet.
    pub(crate) fn note_pending(&self, active: u64) {
        self.backpressure
            .set_pending(self.segments.pending_cost(active, self.backpressure.cost_model()));
    }

    /// The segment made ahead, if it is one that can follow `active`.
    fn take_spare(&self, active: u64, bytes: u64) -> Option<NewSegment> {
        let spare = self.spare.lock().take()?;
        // A larger segment was made in between for a large batch: the numbers must ascend.
        let follows = active == u64::MAX || spare.segment.number() > active;
        if follows && spare.segment.capacity() >= bytes {
            return Some(spare);
        }
        self.segments.discard(spare.segment);
        None
    }

    /// Makes the next segment ahead, so that the writer that fills the present one need not. A
    /// failure is left for that writer to meet.
    pub(crate) fn prepare_spare(&self) {
        let refused = *self.room.spare_refused.lock();
        if self.spare.lock().is_some()
            || !self.segments.next_is_due()
            || self.check_writable().is_err()
            || refused.is_some_and(|r| r.rests(&*self.env, &self.dir))
        {
            return;
        }
        let bytes = self.next_segment_bytes();
        let need = Need { least: bytes, moves: bytes, keep: Keep::Reserve, ahead: true };
        // Who writes without syncs is spared the device: of a file that is used again it would write what that held before.
        let made = match self.sync.was_used() {
            true => self.create_durable_segment(bytes, need),
            false => self.new_segment(bytes, need),
        };
        // An attempt looks at all tables and gives up what is kept for reuse, and a long compaction asks again and again.
        let no_room = made.as_ref().is_err_and(Error::is_no_space);
        *self.room.spare_refused.lock() =
            no_room.then(|| Refused::again(refused, &*self.env, &self.dir, bytes));
        if let Ok(segment) = made {
            // Somebody who compacts by hand may have made one meanwhile.
            let other = self.spare.lock().replace(segment);
            if let Some(other) = other {
                self.segments.discard(other.segment);
            }
        }
    }

    /// Goes on in a new segment after a sync failed: the old one is never written again, not even
    /// its seal. The caller writes all memtables into tables before it lets go of the writer.
    pub(crate) fn rotate_after_failure(&self, w: &mut Writer) -> Result<()> {
        let next = self.first_segment()?;
        if let Some(log_writer) = w.end_segment() {
            self.segments.note_sealed(log_writer.segment().number(), log_writer.end());
            log_writer.segment().release();
        }
        self.failed_sync_below.store(next.segment.number(), Ordering::Release);
        self.sync.reset(Arc::clone(&next.segment), next.durable);
        self.start_in(w, next);
        Ok(())
    }

    /// Goes on in `next`, which the segment before leads to.
    pub(crate) fn go_on_in(&self, w: &mut Writer, next: NewSegment) {
        self.sync.rotate(Arc::clone(&next.segment), next.durable);
        self.start_in(w, next);
    }

    fn start_in(&self, w: &mut Writer, next: NewSegment) {
        let NewSegment { segment, claim, .. } = next;
        let number = segment.number();
        self.segments.add(Arc::clone(&segment), false);
        drop(claim);
        self.active.store(number, Ordering::Release);
        w.recent = None;
        w.claimed_for_tables = (0, 0);
        w.index_bytes = 0;
        w.log_writer = Some(LogWriter::new(Arc::clone(&segment)));
        w.segment = Some(segment);
        self.note_pending(number);
        self.signal.wake();
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use crate::env::sim::{CallKind, SimEnv};
    use crate::{Db, Durability, Options};

    /// Each was made durable, so that the kernel wrote what a file had held before it was used again.
    #[test]
    fn spare_segments_were_synced_for_writers_who_never_sync() {
        let options = Options::new().segment_size(64 << 10);
        let db = Db::open_in(Arc::new(SimEnv::new(1, true)), Path::new("/db"), options).unwrap();
        let store = db.store();
        let spare_after = |durability: Durability| {
            db.put_with("key", vec![1; 40 << 10], durability).unwrap();
            store.prepare_spare();
            let durable = store.spare.lock().as_ref().map(|s| s.durable).unwrap();
            store.seal_active().unwrap();
            durable
        };
        for synced in [false, true, true, false, false] {
            let durability = if synced { Durability::Synced } else { Durability::Buffered };
            assert_eq!(spare_after(durability), synced);
        }
    }

    /// What it synced is not written to any more; and the next segment, made from a used file, was written to the device for nobody.
    #[test]
    fn a_flush_that_left_large_values_in_the_log_passed_for_somebody_who_syncs() {
        let options = Options::new().segment_size(64 << 10);
        let db = Db::open_in(Arc::new(SimEnv::new(1, true)), Path::new("/db"), options).unwrap();
        let store = db.store();
        let put = || db.put("key", vec![1; 40 << 10]).unwrap();
        put();
        let rounds = store.sync.rounds();
        db.flush().unwrap();
        assert!(store.sync.rounds() > rounds);
        put();
        store.prepare_spare();
        assert!(!store.spare.lock().as_ref().unwrap().durable);
    }

    /// The failure was dropped, and whoever synced the directory next was told that all was well, whatever name it had lost.
    #[test]
    fn a_directory_that_could_not_be_synced_for_a_spare_segment_was_not_told() {
        let env = SimEnv::new(1, true);
        let options = Options::new().segment_size(64 << 10);
        let db = Db::open_in(Arc::new(env.clone()), Path::new("/db"), options).unwrap();
        db.put_with("key", vec![1; 40 << 10], Durability::Synced).unwrap();
        env.fail_first(CallKind::SyncDir, "/db");
        db.store().prepare_spare();
        assert!(db.stats().halted.is_some());
        assert!(db.put("key", "value").is_err());
    }
}

//! Flushes: sealed memtables into tables.

use std::sync::Arc;

use super::inputs::CompactionInputs;
use super::job::CompactionJob;
use super::overlap;
use super::schedule::{Look, describe};
use crate::comparator::{self, refuse_from_comparator};
use crate::error::{Error, Result};
use crate::memtable::Memtable;
use crate::read::SuperVersion;
use crate::store::{KeyspaceState, Store};

impl Store {
    /// Flushes everything written before the call into tables.
    pub(crate) fn flush_all(&self) -> Result<()> {
        refuse_from_comparator()?;
        self.check_open()?;
        let _awaited = self.signal.await_flush();
        let upto = self.with_room(|| {
            let mut w = self.writer.lock();
            self.check_writable()?;
            if w.has_entries() {
                self.rotate(&mut w)?;
            }
            Ok(w.active_number())
        })?;
        self.wait_flushed(upto)
    }

    /// Seals the active segment. Where another has no room, what waits goes into tables first, which needs less. The
    /// caller holds `jobs`.
    pub(crate) fn seal_making_room(&self) -> Result<()> {
        match self.seal_active() {
            Err(e) if e.is_no_space() => {}
            sealed => return sealed,
        }
        for ks in self.all_keyspaces().iter().filter(|ks| self.has_sealed(ks)) {
            self.flush_as_can_be(ks)?;
        }
        self.discard_spare();
        self.seal_active()
    }

    /// The same for a compaction, which goes on without what is active where there is no room for a seal.
    pub(super) fn seal_for_compaction(&self) -> Result<()> {
        match self.seal_making_room() {
            Err(e) if e.is_no_space() => Ok(()),
            sealed => sealed,
        }
    }

    /// Waits until no keyspace has a memtable below segment `upto`.
    pub(crate) fn wait_flushed(&self, upto: u64) -> Result<()> {
        self.room.forget();
        self.signal.wake();
        // One that is flushed has nothing below for good: it is not looked at each time that something was done.
        let mut keyspaces = self.all_keyspaces();
        let waits = |ks: &Arc<KeyspaceState>| {
            ks.super_version.load().memtables.iter().any(|m| m.segment().number() < upto)
        };
        self.signal.wait_until(|| {
            if let Some(cause) = self.halt_cause() {
                return Some(Err(Error::Halted { cause }));
            }
            while keyspaces.pop_if(|ks| !waits(ks)).is_some() {}
            let waiting = !keyspaces.is_empty();
            // Asked afterwards: in a store that is closed nothing waits.
            if self.signal.stopping() {
                return Some(Err(Error::Closed));
            }
            match self.room.why_no_flush() {
                Some(e) if waiting => Some(Err(e)),
                _ => (!waiting).then_some(Ok(())),
            }
        })
    }

    /// Whether the active segment of an idle store is worth flushing though it is not full: scans would have to
    /// merge a good part of it.
    pub(super) fn should_flush_active(&self) -> bool {
        let active = self.active_number();
        let mut in_memory = 0;
        let mut in_tables = 0;
        for ks in self.all_keyspaces() {
            let super_version = ks.super_version.load();
            in_memory += super_version
                .memtables
                .iter()
                .filter(|m| m.segment().number() == active)
                .map(|m| m.inline_bytes())
                .sum::<u64>();
            in_tables += super_version.runs().iter().map(|r| r.bytes()).sum::<u64>();
        }
        in_memory > 0 && (in_memory >= (1 << 20) || in_memory >= in_tables / 16)
    }

    /// Writes what an open recovered from the log into tables, on this thread: before the store has one of its own.
    pub(crate) fn flush_recovered(&self) -> Result<()> {
        let _job = self.jobs.lock();
        let upto = self.active_number();
        self.all_keyspaces().iter().try_for_each(|ks| self.flush_upto(ks, upto))
    }

    /// The caller holds `jobs`, in the middle of a compaction.
    pub(super) fn flush_sealed_between(&self) -> Result<()> {
        self.flush_waiting(&self.all_keyspaces(), &Look::Between).map(drop)
    }

    pub(super) fn has_sealed(&self, ks: &KeyspaceState) -> bool {
        let active = self.active_number();
        ks.super_version.load().memtables.last().is_some_and(|m| m.segment().number() < active)
    }

    /// Sealed memtables, oldest first.
    pub(crate) fn sealed(&self, super_version: &SuperVersion) -> Vec<Arc<Memtable>> {
        super_version.memtables_below(self.active_number())
    }

    /// All memtables below segment `upto`, to be written into a run of their own, if there are any.
    fn whole_flush(&self, ks: &KeyspaceState, upto: u64) -> Result<Option<CompactionInputs>> {
        let super_version = ks.super_version.load_full();
        let memtables = super_version.memtables_below(upto);
        if memtables.is_empty() {
            return Ok(None);
        }
        let (waiting, table_runs) = (describe(&memtables), super_version.version.runs());
        let size = self.table_sizes().small;
        let groups = || Ok(overlap::groups(&ks.order, &waiting, table_runs, 0..0, size, |_| false));
        let (groups, relocate) = (comparator::catch(groups)?, Vec::new());
        Ok(Some(CompactionInputs { super_version, memtables, runs: 0..0, groups, relocate }))
    }

    /// Writes all memtables below segment `upto` into tables, on this thread, and makes those of all
    /// keyspaces the truth at once: the log may not hold what is older in one than the tables of
    /// another any more. The caller holds the writer and `jobs`.
    pub(crate) fn flush_together(&self, upto: u64) -> Result<()> {
        let keyspaces = self.all_keyspaces();
        let mut edits = Vec::new();
        let mut fresh = Vec::new();
        let result = keyspaces.iter().try_for_each(|ks| {
            let Some(inputs) = self.whole_flush(ks, upto)? else { return Ok(()) };
            let mut job = CompactionJob::new(self, ks, inputs, self.next_run(ks));
            let edit = job.run()?;
            fresh.extend(edit.fresh());
            edits.push((&**ks, edit));
            Ok(())
        });
        let result = result.and_then(|()| match edits.is_empty() {
            true => Ok(()),
            false => self.apply_together(edits),
        });
        result.inspect_err(|_| self.remove_unnamed(&fresh))
    }

    /// Writes all memtables below segment `upto` into tables, on this thread.
    pub(crate) fn flush_upto(&self, ks: &KeyspaceState, upto: u64) -> Result<()> {
        let Some(inputs) = self.whole_flush(ks, upto)? else { return Ok(()) };
        // Its room is kept already: what waits for a flush counts.
        let _claim = self.room.claim(0);
        self.run_compaction(ks, inputs)
    }

    /// Whether a flush is worth trying: the last one found room, or there is more now.
    pub(crate) fn may_flush(&self) -> bool {
        let free = |(_, free): &(Error, u64)| self.env.available(&self.dir) > *free;
        self.room.flush_failed.lock().as_ref().is_none_or(free)
    }

    /// Keeps what a flush came to. Where it found no room, nothing is lost: what waits is in the log and
    /// in memory. Writes go on as long as there is room for them, and who waits for the flush is told.
    /// `false`: it found none.
    pub(crate) fn note_flush(&self, result: Result<()>) -> Result<bool> {
        match result {
            Err(e) if e.is_no_space() && self.halt_cause().is_none() => {
                *self.room.flush_failed.lock() = Some((e, self.env.available(&self.dir)));
                self.signal.notify_done();
                Ok(false)
            }
            done => {
                self.room.forget();
                done.map(|()| true)
            }
        }
    }

    /// Flushes what waits of a keyspace into a run of its own; where there is no room for that, its
    /// oldest memtable alone. Whether any of it was.
    pub(crate) fn flush_as_can_be(&self, ks: &KeyspaceState) -> Result<bool> {
        let whole = self.flush_upto(ks, self.active_number());
        if !whole.as_ref().is_err_and(|e| e.is_no_space() && self.halt_cause().is_none()) {
            return self.note_flush(whole);
        }
        // What compactions are done with may be room enough.
        self.discard_spare();
        let oldest = ks.super_version.load().memtables.last().map(|m| m.segment().number());
        match oldest {
            Some(oldest) => self.note_flush(self.flush_upto(ks, oldest + 1)),
            None => Ok(true),
        }
    }
}

//! The background thread: flushes, merges, gives space back.

mod dictionary;
mod job;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use job::Merge;

use crate::comparator::{self, refuse_from_comparator};
use crate::error::{Error, Result};
use crate::memtable::Memtable;
use crate::merge::clusters::{self, Cluster};
use crate::merge::picker::{self, RUNS_MOST, Reason, Situation};
use crate::read::{LoadedRun, LoadedTable, SuperVersion};
use crate::store::{Counters, KeyspaceState, Store};
use crate::table;
use crate::util::{AtEnd, panic_message};

/// How often an idle store looks whether it has become idle enough to merge on.
const TICK: Duration = Duration::from_millis(20);
/// A look takes its time with each keyspace: it comes later by a tick for so many of them.
const KEYSPACES_A_TICK: u32 = 500;
/// Without a write for this long, the store counts as idle.
const IDLE_AFTER: Duration = Duration::from_millis(60);
/// Without a write for this long, files kept for reuse are removed.
const TRIM_AFTER: Duration = Duration::from_secs(2);

/// When something was last written, seen from the worker.
struct Activity {
    seq: u64,
    since: Instant,
}

impl Activity {
    fn quiet_for(&mut self, store: &Store) -> Duration {
        let seq = store.visible_seq();
        if seq != self.seq {
            self.seq = seq;
            self.since = Instant::now();
        }
        self.since.elapsed()
    }
}

/// Starts the background thread of a store that is open for writing.
pub(crate) fn start(store: Arc<Store>) -> std::io::Result<std::thread::JoinHandle<()>> {
    let body = move || {
        // A bug in a merge must not leave writers waiting for a thread that is gone: it stops
        // writes, as any failure of a merge does, and the thread goes on.
        loop {
            let end = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(&store)));
            let Err(panic) = end else { return };
            let what = panic_message(&*panic);
            let what = format!("the background thread failed: {what}; this is a bug");
            store.halt(Error::io("merge", &store.dir, std::io::Error::other(what)));
        }
    };
    std::thread::Builder::new().name("esker-worker".to_string()).spawn(body)
}

fn run(store: &Store) {
    let mut activity = Activity { seq: store.visible_seq(), since: Instant::now() };
    loop {
        match store.round(activity.quiet_for(store)) {
            Round::Stop => return,
            Round::Worked => continue,
            Round::Idle => {}
        }
        let keyspaces = store.keyspaces.read().by_id.len() as u32;
        let mut state = store.signal.state.lock();
        state.settled_rounds += 1;
        store.signal.to_waiters.notify_all();
        if !state.wake && !state.stop {
            let tick = TICK * (1 + keyspaces / KEYSPACES_A_TICK);
            store.signal.to_worker.wait_for(&mut state, tick);
        }
    }
}

/// Memtables, and a plan that writes them.
type Flush = (Vec<Arc<Memtable>>, Vec<Cluster>);

/// What came of a round of work.
enum Round {
    /// The store is being closed.
    Stop,
    /// Something was done; there may be more.
    Worked,
    Idle,
}

impl Store {
    /// Looks at what is to be done and does the most urgent; `quiet`: since when nothing was written.
    fn round(&self, quiet: Duration) -> Round {
        let settle = {
            let mut state = self.signal.state.lock();
            if state.stop {
                return Round::Stop;
            }
            state.wake = false;
            state.settle > 0
        };
        self.give_back(quiet >= TRIM_AFTER);
        let idle = settle || quiet >= IDLE_AFTER;
        if self.work_once(idle, settle) {
            return Round::Worked;
        }
        if let Err(e) = self.advance_log() {
            self.halt(e);
        }
        // Nothing else to do: make ready for the next burst, or take its preparations back.
        if settle || quiet >= TRIM_AFTER {
            match self.trim_log() {
                // Nothing has changed.
                Err(e) if !e.is_no_space() => self.halt(e),
                _ => {}
            }
            self.give_back(true);
        } else {
            self.prepare_spare();
        }
        Round::Idle
    }

    /// A round on the calling thread, where there is no other that does it.
    #[cfg(test)]
    pub(crate) fn step(&self, quiet: Duration) {
        if let Round::Idle = self.round(quiet) {
            self.signal.state.lock().settled_rounds += 1;
        }
    }

    /// Removes, punches and pools what no reader holds any more.
    pub(crate) fn give_back(&self, trim: bool) {
        self.segments.housekeep(trim);
        if !self.purge.is_empty() && self.check_dir().is_ok() {
            self.purge.run(&*self.env);
        }
    }

    /// Does the most urgent piece of work there is. `false` when there is none, or none is done.
    fn work_once(&self, idle: bool, settle: bool) -> bool {
        // A failure stops writes while nobody can resume: told later, it would stop them once more.
        let _job = self.jobs.lock();
        if self.halt_cause().is_some() {
            return false;
        }
        self.try_work(idle, settle).unwrap_or_else(|e| {
            self.halt(e);
            false
        })
    }

    fn try_work(&self, idle: bool, settle: bool) -> Result<bool> {
        if idle && self.should_flush_active(settle) {
            match self.seal_active() {
                // It stays as it is, and the merges below may make room.
                Err(e) if !e.is_no_space() => return Err(e),
                _ => {}
            }
        }
        let keyspaces = self.all_keyspaces();
        let sealed = keyspaces.iter().filter(|ks| self.has_sealed(ks));
        for ks in sealed.chain(&keyspaces) {
            if self.merge_picked(ks, idle, settle, false)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Between two slices of a merge: lets writers in that wait for a flush.
    /// `flushing`: the merge is a flush itself, and the flush of what was sealed later must wait
    /// for it, lest a newer segment is in tables before an older one.
    pub(crate) fn between_slices(&self, flushing: bool) -> Result<()> {
        if self.signal.stopping() {
            return Err(Error::Closed);
        }
        self.prepare_spare();
        if !flushing
            && (self.pressure.flush_is_urgent() || self.signal.closing())
            && !self.nested.swap(true, Ordering::Relaxed)
        {
            let _nested = AtEnd(|| self.nested.store(false, Ordering::Relaxed));
            self.flush_sealed_between()?;
        }
        Ok(())
    }

    fn flush_sealed_between(&self) -> Result<()> {
        for ks in self.all_keyspaces() {
            if self.has_sealed(&ks) {
                self.merge_picked(&ks, false, false, true)?;
            }
        }
        Ok(())
    }

    fn has_sealed(&self, ks: &KeyspaceState) -> bool {
        let active = self.active_number();
        ks.view.load().memtables.last().is_some_and(|m| m.segment().number() < active)
    }

    /// Whether the active segment is worth flushing though it is not full: when someone waits for
    /// the store to settle, or when it is idle and scans would have to merge a good part of it.
    fn should_flush_active(&self, settle: bool) -> bool {
        let active = self.active_number();
        let mut in_memory = 0;
        let mut in_tables = 0;
        for ks in self.all_keyspaces() {
            let view = ks.view.load();
            in_memory += view
                .memtables
                .iter()
                .filter(|m| m.segment().number() == active)
                .map(|m| m.moved_bytes())
                .sum::<u64>();
            in_tables += view.runs.iter().map(|r| r.run.bytes()).sum::<u64>();
        }
        in_memory > 0 && (settle || in_memory >= (1 << 20) || in_memory >= in_tables / 16)
    }

    /// Seals the active segment if it holds anything.
    pub(crate) fn seal_active(&self) -> Result<()> {
        let mut w = self.writer.lock();
        self.check_writable()?;
        if w.has_entries() {
            self.rotate(&mut w)?;
        }
        Ok(())
    }

    /// Asks the picker about one keyspace and carries its plan out. `nested`: within another merge,
    /// whose input runs are taken; then only memtables are flushed.
    fn merge_picked(
        &self,
        ks: &KeyspaceState,
        idle: bool,
        settle: bool,
        nested: bool,
    ) -> Result<bool> {
        comparator::catch(|| self.pick_and_merge(ks, idle, settle, nested))
    }

    fn pick_and_merge(
        &self,
        ks: &KeyspaceState,
        idle: bool,
        settle: bool,
        nested: bool,
    ) -> Result<bool> {
        let view = ks.view.load_full();
        let sealed = self.sealed(&view);
        let waiting = describe(&sealed);
        let segments = self.segments.usage();
        let situation = self.situation(ks, &view, &waiting, &segments, idle);
        let plan = if nested { picker::flush(&situation) } else { picker::pick(&situation) };
        let Some(plan) = plan else { return Ok(false) };
        let clusters = plan.clusters(&situation);
        if matches!(plan.reason, Reason::Idle | Reason::Settled) {
            let bytes = clusters::written(&clusters);
            if !settle && !self.pressure.may_tidy(bytes, Counters::get(&self.counters.user_bytes)) {
                return Ok(false);
            }
        }
        let memtables = sealed[..plan.memtables].to_vec();
        let flush = plan.memtables > 0;
        if flush && !self.may_flush() {
            return Ok(false);
        }
        let (most, likely) =
            (clusters::written(&clusters), likely_written(&view, &plan.runs, &clusters));
        let tight = self.is_tight(most);
        if !tight || self.may_hope(likely) {
            match self.merge(ks, &view, memtables, plan.runs, clusters, plan.relocate) {
                Err(e)
                    if (e.is_no_space() || flush && e.is_corruption())
                        && self.halt_cause().is_none() =>
                {
                    if tight {
                        self.hope_failed(likely);
                    }
                }
                merged => {
                    merged?;
                    if flush && !nested {
                        // Where writes leave no time for it, it is done all the same.
                        self.thin_out(ks)?;
                    }
                    return Ok(true);
                }
            }
        }
        // There is no room for it, or a run that would have gone along is damaged. What can wait does; a
        // flush makes do with what it needs.
        self.give_back_spare();
        if flush { self.flush_as_can_be(ks) } else { Ok(false) }
    }

    /// Merges some runs where there are more than flushes leave, and the disk has room for it. The caller
    /// holds the right to merge.
    fn thin_out(&self, ks: &KeyspaceState) -> Result<bool> {
        let view = ks.view.load_full();
        let segments = self.segments.usage();
        let situation = self.situation(ks, &view, &[], &segments, false);
        let Some(plan) = picker::thin_out(&situation) else { return Ok(false) };
        let clusters = plan.clusters(&situation);
        if self.is_tight(clusters::written(&clusters)) {
            return Ok(false);
        }
        match self.merge(ks, &view, Vec::new(), plan.runs, clusters, plan.relocate) {
            Err(e) if e.is_no_space() && self.halt_cause().is_none() => Ok(false),
            merged => merged.map(|()| true),
        }
    }

    /// What adds a run by other means than a flush comes here first: it merges, where there are too many
    /// runs, and so takes the time that merging takes. It waits for nobody, so nothing can wait for it in
    /// turn. The caller holds the right to merge, and not the writer.
    pub(crate) fn make_room_for_a_run(&self, ks: &KeyspaceState) -> Result<()> {
        while ks.view.load().runs.len() >= RUNS_MOST {
            self.check_writable()?;
            if !comparator::catch(|| self.thin_out(ks))? {
                break;
            }
        }
        Ok(())
    }

    /// Sealed memtables, oldest first.
    pub(crate) fn sealed(&self, view: &SuperVersion) -> Vec<Arc<Memtable>> {
        let active = self.active_number();
        view.memtables.iter().rev().filter(|m| m.segment().number() < active).cloned().collect()
    }

    /// What the picker sees.
    fn situation<'a>(
        &self,
        ks: &'a KeyspaceState,
        view: &'a SuperVersion,
        memtables: &'a [picker::Memtable],
        segments: &'a [picker::SegmentUse],
        idle: bool,
    ) -> Situation<'a, Arc<LoadedTable>> {
        let busy = {
            let ids = ks.busy_runs.lock();
            let is_busy = |r: &Arc<LoadedRun>| ids.contains(&r.run.id());
            let start = view.runs.iter().position(is_busy).unwrap_or(0);
            start..start + view.runs.iter().filter(|r| is_busy(r)).count()
        };
        Situation {
            order: &ks.order,
            memtables,
            runs: view.version.runs(),
            busy,
            pending_cap: self.pressure.cap(),
            debt: self.pressure.debt(),
            idle,
            small_table: self.table_sizes().small,
            settled_seq: self.snapshots.boundaries(|| self.visible_seq())[0],
            segments,
        }
    }

    /// Merges the given memtables (the oldest of the sealed ones) and runs into one run.
    pub(crate) fn merge(
        &self,
        ks: &KeyspaceState,
        view: &SuperVersion,
        memtables: Vec<Arc<Memtable>>,
        range: Range<usize>,
        clusters: Vec<Cluster>,
        relocate: Vec<u64>,
    ) -> Result<()> {
        let ids: Vec<u64> = view.runs[range.clone()].iter().map(|r| r.run.id()).collect();
        let run = match ids.first() {
            Some(newest) if memtables.is_empty() => *newest,
            _ => self.next_run(ks),
        };
        let read: u64 = clusters.iter().filter(|c| !c.moves).map(|c| c.bytes).sum();
        let flushed: u64 = memtables.iter().map(|m| m.moved_bytes()).sum();
        let likely = likely_written(view, &range, &clusters);
        let _claim = self.room.claim(likely.saturating_sub(flushed));
        let merge =
            Merge { store: self, ks, memtables, runs: &view.runs, range, clusters, run, relocate };
        ks.busy_runs.lock().extend(&ids);
        let _busy = AtEnd(|| ks.busy_runs.lock().retain(|id| !ids.contains(id)));
        let start = Instant::now();
        let upto = merge.memtables.iter().map(|m| m.segment().number()).max();
        let scale = self.pressure.scale();
        let weights = || merge.memtables.iter().map(|m| self.weigh_memtable(m));
        let weight = weights().sum();
        if upto.is_some() {
            self.pressure.begin_flush(weights().map(|w| scale.waiting(w)).sum(), read);
        }
        let flushing = upto.map(|_| AtEnd(|| self.pressure.end_flush()));
        // Large values first: the tables will point to them, and what takes long should come before
        // what tells writers of progress.
        let stays = merge.memtables.iter().any(|m| m.staying_bytes() > 0);
        let ready = upto.filter(|_| stays).map_or(Ok(()), |upto| self.sync_log_upto(upto));
        let result = ready.and_then(|()| merge.run()).and_then(|outcome| {
            let fresh: Vec<u64> = outcome.fresh().collect();
            self.install(ks, outcome).inspect_err(|_| self.remove_tables(&fresh))
        });
        drop(flushing);
        if ks.dropped.load(Ordering::Relaxed) {
            // Dropped while it was being merged: nothing to install, nothing wrong.
            return Ok(());
        }
        result?;
        Counters::add(&self.counters.merges, 1);
        Counters::add(&self.counters.merge_read, read);
        if upto.is_some() {
            self.pressure.note_flush(weight, read, start.elapsed());
        }
        Ok(())
    }

    /// What flushing a memtable frees.
    fn weigh_memtable(&self, m: &Memtable) -> u64 {
        let staying = m.staying_bytes();
        self.pressure.scale().weigh(m.segment().end().saturating_sub(staying), staying)
    }

    /// Writes all memtables below segment `upto` into tables, on this thread, and makes those of all
    /// keyspaces the truth at once: the log may not hold what is older in one than the tables of
    /// another any more. The caller holds the writer and the right to merge.
    pub(crate) fn flush_together(&self, upto: u64) -> Result<()> {
        let keyspaces = self.all_keyspaces();
        let mut outcomes = Vec::new();
        let mut fresh = Vec::new();
        let result = keyspaces.iter().try_for_each(|ks| {
            let view = ks.view.load_full();
            let Some((memtables, clusters)) = self.whole_flush(ks, &view, upto)? else {
                return Ok(());
            };
            let (run, range, relocate) = (self.next_run(ks), 0..0, Vec::new());
            let runs = &view.runs;
            let merge = Merge { store: self, ks, memtables, runs, range, clusters, run, relocate };
            let outcome = merge.run()?;
            fresh.extend(outcome.fresh());
            outcomes.push((&**ks, outcome));
            Ok(())
        });
        let result = result.and_then(|()| match outcomes.is_empty() {
            true => Ok(()),
            false => self.install_together(outcomes),
        });
        result.inspect_err(|_| self.remove_tables(&fresh))
    }

    /// The memtables below segment `upto`, and a plan that writes them into a run of their own.
    pub(crate) fn whole_flush(
        &self,
        ks: &KeyspaceState,
        view: &SuperVersion,
        upto: u64,
    ) -> Result<Option<Flush>> {
        let memtables: Vec<_> =
            view.memtables.iter().rev().filter(|m| m.segment().number() < upto).cloned().collect();
        if memtables.is_empty() {
            return Ok(None);
        }
        let (inputs, runs) = (describe(&memtables), view.version.runs());
        let size = self.table_sizes().small;
        let parts = || Ok(clusters::clusters(&ks.order, &inputs, runs, 0..0, size, |_| false));
        let parts = comparator::catch(parts)?;
        Ok(Some((memtables, parts)))
    }

    /// Removes table files that no version came to name. Not after a failure that stopped writes:
    /// it may have been the manifest's, which may then name them all the same. The next open knows.
    pub(crate) fn remove_tables(&self, numbers: &[u64]) {
        if self.halt_cause().is_some() {
            return;
        }
        for number in numbers {
            drop(self.env.remove(&self.dir.join(table::file_name(*number))));
        }
    }

    /// A number for a run newer than all of the keyspace, those being written included.
    pub(crate) fn next_run(&self, ks: &KeyspaceState) -> u64 {
        let busy = ks.busy_runs.lock().iter().max().copied().unwrap_or(0);
        ks.view.load().version.next_run().max(busy + 1)
    }

    /// Flushes everything written before the call into tables.
    pub(crate) fn flush_all(&self) -> Result<()> {
        refuse_from_comparator()?;
        let upto = {
            let mut w = self.writer.lock();
            self.check_writable()?;
            if w.has_entries() {
                self.rotate(&mut w)?;
            }
            w.active_number()
        };
        self.wait_flushed(upto)
    }

    /// Waits until no keyspace has a memtable below segment `upto`.
    pub(crate) fn wait_flushed(&self, upto: u64) -> Result<()> {
        self.room.forget();
        self.signal.wake();
        self.signal.wait_until(|| {
            if let Some(cause) = self.halt_cause() {
                return Some(Err(Error::Halted { cause }));
            }
            let waiting = self
                .all_keyspaces()
                .iter()
                .any(|ks| ks.view.load().memtables.iter().any(|m| m.segment().number() < upto));
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

    /// Flushes, and waits until merging has nothing left to do.
    pub(crate) fn settle(&self) -> Result<()> {
        let _dir = self.hold_dir()?;
        self.flush_all()?;
        let from = {
            let mut state = self.signal.state.lock();
            state.settle += 1;
            state.wake = true;
            state.settled_rounds
        };
        self.signal.to_worker.notify_one();
        let result = self.signal.wait_until(|| {
            if let Some(cause) = self.halt_cause() {
                return Some(Err(Error::Halted { cause }));
            }
            let state = self.signal.state.lock();
            if state.stop {
                return Some(Err(Error::Closed));
            }
            // Two rounds: the first may have begun before this call.
            (state.settled_rounds >= from + 2).then_some(Ok(()))
        });
        self.signal.state.lock().settle -= 1;
        self.give_back(true);
        result
    }
}

/// Bytes that a merge of these clusters is likely to write: each tombstone that reaches the bottom takes
/// an entry along.
fn likely_written(view: &SuperVersion, runs: &Range<usize>, list: &[Cluster]) -> u64 {
    if runs.end < view.runs.len() {
        return clusters::written(list);
    }
    let likely = |c: &Cluster| {
        let metas = c.tables.iter().map(|&(run, table)| &view.runs[run].tables()[table].meta);
        let (entries, dead) =
            metas.fold((0, 0), |(all, dead), m| (all + m.entries, dead + 2 * m.tombstones));
        let share = entries.saturating_sub(dead) as f64 / entries.max(1) as f64;
        (c.bytes as f64 * share) as u64
    };
    list.iter().filter(|c| !c.moves).map(likely).sum()
}

/// What the picker has to know of memtables that wait.
pub(crate) fn describe(sealed: &[Arc<Memtable>]) -> Vec<picker::Memtable> {
    sealed
        .iter()
        .map(|m| {
            let (smallest, largest) = m.key_range().unwrap_or_default();
            picker::Memtable { bytes: m.moved_bytes(), smallest, largest }
        })
        .collect()
}

//! Carrying a compaction out: read the inputs in order, keep what somebody can see, write tables.
//!
//! The job changes nothing by itself: it hands [`KeyspaceEdit`]s to the one place that installs
//! versions. A compaction of tables is installed in steps of some overlap groups each, and lets go of a
//! step's inputs at its end, so that it does not need the room of its whole output. If a step fails, the files
//! that it wrote are removed, and the store is as the steps before it left it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::dictionary::dictionary_for;
use super::inputs::{CompactionInputs, GroupInputs};
use super::outputs::{Outputs, Written};
use super::repeats::Repeats;
use crate::compaction::overlap::OverlapGroup;
use crate::compaction::version_filter::{Decision, VersionFilter};
use crate::comparator;
use crate::error::{Error, Result};
use crate::filename;
use crate::key::{InternalCursor, Seq, Stored};
use crate::memtable::Memtable;
use crate::read::merge_cursor::MergeCursor;
use crate::read::run_cursor::RunCursor;
use crate::read::source::SourceCursor;
use crate::read::{LoadedRun, LoadedTable};
use crate::store::apply::KeyspaceEdit;
use crate::store::{Counters, DirLock, KeyspaceState, Store};
use crate::table::{Dictionary, TableBuilder};
use crate::util::AtEnd;
use crate::version::{KeyspaceVersion, Run};

/// Entries between two looks at the clock and at what else has to be done.
const ENTRIES_PER_SLICE: u32 = 512;
/// So many bytes of a value count as another entry.
const BYTES_PER_ENTRY: u32 = 4096;

/// A step of a compaction writes at least so many tables, if there are as many: each costs the sync of an edit,
/// and of the directory.
const STEP_TABLES: u64 = 2;

/// What is merged into one run.
pub(crate) struct CompactionJob<'a> {
    store: &'a Store,
    ks: &'a KeyspaceState,
    /// Sealed memtables, oldest first.
    memtables: Vec<Arc<Memtable>>,
    /// The inputs in parts that share no key, those that are not yet done.
    groups: VecDeque<Group>,
    /// Number of the run that comes out.
    run: u64,
    /// Nothing older lies below the output.
    bottom: bool,
    /// Segments whose values are to be moved elsewhere: into the tables.
    relocate: Vec<u64>,
    /// The run below all inputs, unless it is one of them.
    oldest: Option<Arc<LoadedRun>>,
    /// Bytes that are written, at most.
    bytes: u64,
    /// The dictionary chosen last.
    last: Option<Arc<Dictionary>>,
    /// Entries read, and all that will be.
    read: u64,
    to_read: u64,
}

/// An overlap group with its inputs.
struct Group {
    inputs: GroupInputs,
    /// Bytes of the inputs.
    bytes: u64,
    /// Whether the one table goes into the output run as it stands.
    trivial_move: bool,
}

impl Store {
    /// Merges the inputs into one run. The caller has claimed the room for it.
    pub(crate) fn run_compaction(
        &self,
        ks: &KeyspaceState,
        inputs: CompactionInputs,
    ) -> Result<()> {
        let ids = inputs.run_ids();
        let run = match ids.last() {
            // The oldest: where only a part of the runs is merged the newer ones shrink.
            Some(oldest) if inputs.memtables.is_empty() => *oldest,
            _ => self.next_run(ks),
        };
        let read = inputs.written();
        let mut job = CompactionJob::new(self, ks, inputs, run);
        let _busy = ks.hold_runs(ids);
        let start = Instant::now();
        let upto = job.memtables.iter().map(|m| m.segment().number()).max();
        let cost_model = self.backpressure.cost_model();
        let costs = || job.memtables.iter().map(|m| self.cost_of_memtable(m));
        let cost = costs().sum();
        if job.memtables.is_empty() && job.relocate.is_empty() {
            self.backpressure.cut_overdue();
        }
        if upto.is_some() {
            self.backpressure.begin_flush(costs().map(|w| cost_model.waiting(w)).sum(), read);
        }
        let flushing = upto.map(|_| AtEnd(|| self.backpressure.end_flush()));
        // Large values first: the tables will point to them, and what takes long should come before
        // what tells writers of progress.
        let stays = job.memtables.iter().any(|m| m.blob_bytes() > 0);
        let ready = upto.filter(|_| stays).map_or(Ok(()), |upto| self.sync_log_upto(upto));
        let result = ready.and_then(|()| job.run_in_steps());
        drop(flushing);
        if ks.dropped.load(Ordering::Relaxed) {
            // Dropped while it was being merged: nothing to install, nothing wrong.
            return Ok(());
        }
        result?;
        Counters::add(&self.counters.compactions, 1);
        Counters::add(&self.counters.compaction_read, read);
        if upto.is_some() {
            self.backpressure.note_flush(cost, read, start.elapsed());
        }
        Ok(())
    }

    /// What flushing a memtable frees: its share of the segment, which those of other keyspaces lie in too.
    fn cost_of_memtable(&self, m: &Memtable) -> u64 {
        let moved = self.segments.moved_share(m);
        self.backpressure.cost_model().cost_of(moved, m.blob_bytes())
    }

    /// Removes table files that an edit was to name which failed. Not after a failure that stopped writes:
    /// it may have been the manifest's, which may then name them all the same. The next open knows.
    pub(super) fn remove_unnamed(&self, numbers: &[u64]) {
        if self.halt_cause().is_none() {
            self.remove_tables(self.hold_dir(), numbers);
        }
    }

    /// Removes table files that no manifest can name, for who holds the directory: where that was moved, what has their names
    /// may be another store's. Those that stay the next open removes.
    pub(crate) fn remove_tables(&self, held: Result<DirLock>, numbers: &[u64]) {
        if held.is_ok_and(|held| self.check_held(&held).is_ok()) {
            for number in numbers {
                drop(self.env.remove(&self.dir.join(filename::table(*number))));
            }
        }
    }

    /// A number for a run newer than all of the keyspace, those being written included.
    pub(crate) fn next_run(&self, ks: &KeyspaceState) -> u64 {
        let busy = ks.runs_being_compacted.lock().iter().max().copied().unwrap_or(0);
        ks.super_version.load().version.next_run().max(busy + 1)
    }
}

impl<'a> CompactionJob<'a> {
    /// A job that writes run `run`. Of the inputs it keeps what it has still to read.
    pub(crate) fn new(
        store: &'a Store,
        ks: &'a KeyspaceState,
        inputs: CompactionInputs,
        run: u64,
    ) -> CompactionJob<'a> {
        let of = |g: &OverlapGroup| Group {
            inputs: inputs.of_group(g),
            bytes: g.bytes,
            trivial_move: g.trivial_move,
        };
        let groups: VecDeque<Group> =
            inputs.groups.iter().filter(|g| !inputs.stays(g)).map(of).collect();
        let entries =
            |g: &Group| g.inputs.tables.iter().flatten().map(|t| t.meta.entries).sum::<u64>();
        let in_tables: u64 = groups.iter().filter(|g| !g.trivial_move).map(entries).sum();
        let in_memory: u64 = inputs.memtables.iter().map(|m| m.len() as u64).sum();
        let bottom = inputs.at_bottom();
        CompactionJob {
            store,
            ks,
            bottom,
            run,
            oldest: inputs.super_version.runs().last().filter(|_| !bottom).cloned(),
            bytes: inputs.written(),
            last: None,
            read: 0,
            to_read: in_tables + in_memory,
            groups,
            memtables: inputs.memtables,
            relocate: inputs.relocate,
        }
    }

    /// Writes and installs the output. Of memtables all at once: they are flushed or they are not.
    fn run_in_steps(&mut self) -> Result<()> {
        while !self.groups.is_empty() {
            let edit = if self.memtables.is_empty() { self.step()? } else { self.run()? };
            let fresh: Vec<u64> = edit.fresh().collect();
            let applied = self.store.apply_edit(self.ks, edit);
            applied.inspect_err(|_| self.store.remove_unnamed(&fresh))?;
            // Their segments go now, or wait for what follows.
            self.memtables.clear();
            // As a part of the flush, at whose end nobody slows down for what waits.
            self.store.delete_obsolete(false);
        }
        Ok(())
    }

    /// Writes the output tables of all that is left.
    pub(crate) fn run(&mut self) -> Result<KeyspaceEdit> {
        let all = std::mem::take(&mut self.groups).into();
        self.write(all)
    }

    /// Writes those of the next groups, as many as are worth an edit.
    fn step(&mut self) -> Result<KeyspaceEdit> {
        let enough = self.store.table_sizes().full * STEP_TABLES;
        let (mut step, mut bytes) = (Vec::new(), 0);
        while let Some(group) = self.groups.pop_front() {
            bytes += if group.trivial_move { 0 } else { group.bytes };
            step.push(group);
            if bytes >= enough {
                break;
            }
        }
        // What is left over of a step is part of the last.
        let left = self.groups.iter().filter(|g| !g.trivial_move).map(|g| g.bytes).sum::<u64>();
        if left < enough / 2 {
            step.extend(self.groups.drain(..));
        }
        self.write(step)
    }

    fn write(&mut self, groups: Vec<Group>) -> Result<KeyspaceEdit> {
        let tables = |g: &Group| g.inputs.tables.iter().flatten().cloned().collect::<Vec<_>>();
        let mut edit = KeyspaceEdit {
            removed: groups.iter().flat_map(tables).collect(),
            flushed: self.memtables.iter().map(|m| m.segment().number()).max(),
            ..KeyspaceEdit::default()
        };
        let boundaries = self.store.snapshots.boundaries(|| self.store.visible_seq());
        let mut written = Written::default();
        // Not for longer than the step, as it keeps the inputs of the steps before, nor the super version, as that keeps the
        // memtables that are flushed meanwhile.
        let now = self.ks.super_version.load().version.clone();
        let mut add = |group: &Group| {
            match group.inputs.tables.iter().flatten().next() {
                Some(table) if group.trivial_move => edit.added.push((self.run, Arc::clone(table))),
                _ => {
                    let filter = VersionFilter::new(boundaries.clone(), self.bottom);
                    let chosen =
                        dictionary_for(self.ks.compression, &group.inputs, self.last.as_ref())?;
                    self.last = chosen.clone().or(self.last.take());
                    self.merge_group(&group.inputs, &now, filter, chosen, &mut written)?;
                }
            }
            Ok(())
        };
        // What was written by then is discarded below.
        let result = comparator::catch(|| groups.iter().try_for_each(&mut add));
        let result = result.and_then(|()| {
            for (meta, repeated) in std::mem::take(&mut written.tables) {
                let table = self.store.load_table(self.ks, meta)?.repeating(repeated);
                edit.added.push((self.run, Arc::new(table)));
            }
            Ok(())
        });
        if let Err(e) = result {
            written.discard(self.store);
            return Err(e);
        }
        edit.live_values = written.live.into_iter().collect();
        edit.dead_values = written.dead;
        Ok(edit)
    }

    fn cursor(&self, inputs: &GroupInputs) -> Result<MergeCursor> {
        let order = &self.ks.order;
        let mut sources: Vec<SourceCursor> =
            inputs.memtables.iter().map(|m| SourceCursor::Memtable(m.cursor())).collect();
        for tables in inputs.tables.iter().filter(|t| !t.is_empty()) {
            let run = Run::build(Some(order), 1, tables.clone())
                .map_err(|e| Error::corrupt(&self.store.dir, 0, e.to_string()))?;
            sources.push(SourceCursor::Run(RunCursor::new(Arc::new(run), order.clone())));
        }
        Ok(MergeCursor::new(order.clone(), sources))
    }

    fn merge_group(
        &mut self,
        inputs: &GroupInputs,
        version: &KeyspaceVersion<Arc<LoadedTable>>,
        mut filter: VersionFilter,
        dictionary: Option<Arc<Dictionary>>,
        written: &mut Written,
    ) -> Result<()> {
        let order = &self.ks.order;
        let repeats = Repeats::new(order, self.oldest.as_ref());
        let mut outputs =
            Outputs::new(self.store, self.ks, version, self.bytes, dictionary, repeats);
        let mut cursor = self.cursor(inputs)?;
        let mut last_key: Vec<u8> = Vec::new();
        let mut fresh = true;
        let mut decompressed = Vec::new();
        let (mut slice, mut read) = (0, self.read);
        cursor.first()?;
        while cursor.valid() {
            let key = cursor.key();
            if fresh || order.compare(key, &last_key).is_ne() {
                fresh = false;
                last_key.clear();
                last_key.extend_from_slice(key);
                filter.next_key();
                // Versions of one key never straddle two tables.
                outputs.roll(key, written)?;
            }
            let (seq, kind) = (cursor.seq(), cursor.kind());
            let value = self.value_for_table(&cursor);
            let mut bytes = value.stored_len();
            match filter.decide(seq, kind) {
                Decision::Drop => {
                    if let (Stored::Pointer(p), SourceCursor::Run(_)) = (value, cursor.current()) {
                        written.dead.entry(p.segment).or_default().push(p.range());
                    }
                }
                decision => {
                    let seq = (decision == Decision::Keep).then_some(seq);
                    let builder = outputs.builder(key, written)?;
                    bytes = self.add(builder, &cursor, seq, value, &mut decompressed, written)?;
                }
            }
            cursor.next()?;
            slice += 1 + bytes as u32 / BYTES_PER_ENTRY;
            read += 1;
            if slice >= ENTRIES_PER_SLICE {
                slice = 0;
                self.report(read);
                self.store.between_slices(!self.memtables.is_empty())?;
            }
        }
        outputs.finish(written)?;
        drop(outputs);
        self.read = read;
        Ok(())
    }

    /// Adds the present entry to a table. A value that the table cannot hold as it is becomes another, and what points into
    /// the log is noted. Bytes of the value.
    #[inline]
    fn add(
        &self,
        builder: &mut TableBuilder,
        cursor: &MergeCursor,
        seq: Option<Seq>,
        value: Stored<'_>,
        decompressed: &mut Vec<u8>,
        written: &mut Written,
    ) -> Result<usize> {
        let (key, kind) = (cursor.key(), cursor.kind());
        match (value, cursor.current()) {
            (Stored::Compressed { .. }, SourceCursor::Run(run)) if !builder.accepts(&value) => {
                run.table().table.decompress(value, decompressed)?;
                builder.add(key, seq, kind, Stored::Inline(decompressed))?;
            }
            (Stored::Pointer(p), SourceCursor::Run(run)) if self.relocate.contains(&p.segment) => {
                let moved = run.table().segment(&p)?.value(&p)?;
                builder.add(key, seq, kind, Stored::Inline(moved))?;
                written.dead.entry(p.segment).or_default().push(p.range());
                return Ok(moved.len());
            }
            (Stored::Pointer(p), SourceCursor::Memtable(_)) => {
                builder.add(key, seq, kind, value)?;
                written.live.entry(p.segment).or_default().push(p.range());
            }
            _ => builder.add(key, seq, kind, value)?,
        }
        Ok(value.stored_len())
    }

    /// The value as the table will hold it: a large one stays where it was written.
    fn value_for_table<'c>(&self, cursor: &'c MergeCursor) -> Stored<'c> {
        match (cursor.stored(), cursor.current()) {
            (Stored::Inline(bytes), SourceCursor::Memtable(m))
                if bytes.len() >= self.ks.blob_threshold =>
            {
                let pointer = m.value_pointer();
                if pointer.segment < self.store.failed_sync_below.load(Ordering::Acquire) {
                    return Stored::Inline(bytes);
                }
                Stored::Pointer(pointer)
            }
            (stored, _) => stored,
        }
    }

    /// Tells writers that wait how far a flush is.
    fn report(&self, read: u64) {
        if !self.memtables.is_empty() {
            let share = read as f64 / self.to_read.max(1) as f64;
            self.store.backpressure.set_progress(share.min(1.0));
        }
    }
}

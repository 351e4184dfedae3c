//! Carrying a compaction out: read the inputs in order, keep what somebody can see, write tables.
//!
//! The job changes nothing by itself: it hands a [`VersionEdit`] to the one place that installs
//! versions. If it fails, the files it wrote are removed and the store is as it was.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::dictionary::{GroupInputs, dictionary_for};
use super::schedule::likely_written;
use crate::compaction::overlap::OverlapGroup;
use crate::compaction::version_filter::{Decision, VersionFilter};
use crate::comparator;
use crate::error::{Error, Result};
use crate::filename;
use crate::key::{InternalCursor, Stored};
use crate::memtable::Memtable;
use crate::read::merge_cursor::MergeCursor;
use crate::read::run_cursor::RunCursor;
use crate::read::source::SourceCursor;
use crate::read::{LoadedRun, SuperVersion};
use crate::store::apply::VersionEdit;
use crate::store::{Counters, KeyspaceState, Store};
use crate::table::{Dictionary, TableBuilder, TableOptions, TableSummary};
use crate::util::AtEnd;
use crate::version::KeyspaceVersion;

/// Entries between two looks at the clock and at what else has to be done.
const ENTRIES_PER_SLICE: u32 = 512;

/// What is merged into one run.
pub(crate) struct CompactionJob<'a> {
    pub store: &'a Store,
    pub ks: &'a KeyspaceState,
    /// Sealed memtables, oldest first.
    pub memtables: Vec<Arc<Memtable>>,
    /// All runs of the super-version that the compaction was planned on, newest first.
    pub runs: &'a [Arc<LoadedRun>],
    /// Which of them are merged; those right below the memtables when there are any.
    pub range: Range<usize>,
    /// The inputs in parts that share no key. Indexes are into `memtables` and `runs`.
    pub groups: Vec<OverlapGroup>,
    /// Number of the run that comes out.
    pub run: u64,
    /// Segments whose values are to be moved elsewhere: into the tables.
    pub relocate: Vec<u64>,
}

impl Store {
    /// Merges the given memtables (the oldest of the sealed ones) and runs into one run.
    pub(crate) fn run_compaction(
        &self,
        ks: &KeyspaceState,
        super_version: &SuperVersion,
        memtables: Vec<Arc<Memtable>>,
        range: Range<usize>,
        groups: Vec<OverlapGroup>,
        relocate: Vec<u64>,
    ) -> Result<()> {
        let ids: Vec<u64> = super_version.runs[range.clone()].iter().map(|r| r.run.id()).collect();
        let run = match ids.first() {
            Some(newest) if memtables.is_empty() => *newest,
            _ => self.next_run(ks),
        };
        let read: u64 = groups.iter().filter(|c| !c.trivial_move).map(|c| c.bytes).sum();
        let flushed: u64 = memtables.iter().map(|m| m.inline_bytes()).sum();
        let likely = likely_written(super_version, &range, &groups);
        let _claim = self.room.claim(likely.saturating_sub(flushed));
        let job = CompactionJob {
            store: self,
            ks,
            memtables,
            runs: &super_version.runs,
            range,
            groups,
            run,
            relocate,
        };
        ks.busy_runs.lock().extend(&ids);
        let _busy = AtEnd(|| ks.busy_runs.lock().retain(|id| !ids.contains(id)));
        let start = Instant::now();
        let upto = job.memtables.iter().map(|m| m.segment().number()).max();
        let cost_model = self.backpressure.cost_model();
        let costs = || job.memtables.iter().map(|m| self.cost_of_memtable(m));
        let cost = costs().sum();
        if upto.is_some() {
            self.backpressure.begin_flush(costs().map(|w| cost_model.waiting(w)).sum(), read);
        }
        let flushing = upto.map(|_| AtEnd(|| self.backpressure.end_flush()));
        // Large values first: the tables will point to them, and what takes long should come before
        // what tells writers of progress.
        let stays = job.memtables.iter().any(|m| m.blob_bytes() > 0);
        let ready = upto.filter(|_| stays).map_or(Ok(()), |upto| self.sync_log_upto(upto));
        let result = ready.and_then(|()| job.run()).and_then(|edit| {
            let fresh: Vec<u64> = edit.fresh().collect();
            self.apply_edit(ks, edit).inspect_err(|_| self.remove_tables(&fresh))
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
            self.backpressure.note_flush(cost, read, start.elapsed());
        }
        Ok(())
    }

    /// What flushing a memtable frees.
    fn cost_of_memtable(&self, m: &Memtable) -> u64 {
        let staying = m.blob_bytes();
        self.backpressure.cost_model().cost_of(m.segment().end().saturating_sub(staying), staying)
    }

    /// Removes table files that no version came to name. Not after a failure that stopped writes:
    /// it may have been the manifest's, which may then name them all the same. The next open knows.
    pub(crate) fn remove_tables(&self, numbers: &[u64]) {
        if self.halt_cause().is_some() {
            return;
        }
        for number in numbers {
            drop(self.env.remove(&self.dir.join(filename::table(*number))));
        }
    }

    /// A number for a run newer than all of the keyspace, those being written included.
    pub(crate) fn next_run(&self, ks: &KeyspaceState) -> u64 {
        let busy = ks.busy_runs.lock().iter().max().copied().unwrap_or(0);
        ks.view.load().version.next_run().max(busy + 1)
    }
}

impl CompactionJob<'_> {
    /// Writes the output tables.
    pub(crate) fn run(&self) -> Result<VersionEdit> {
        let boundaries = self.store.snapshots.boundaries(|| self.store.visible_seq());
        let bottom = self.range.end == self.runs.len();
        let inputs = &self.runs[self.range.clone()];
        let mut edit = VersionEdit {
            removed: inputs.iter().flat_map(|r| r.tables().iter().cloned()).collect(),
            flushed: self.memtables.iter().map(|m| m.segment().number()).max(),
            ..VersionEdit::default()
        };
        let mut written = Written { to_read: self.entries(), ..Written::default() };
        // The dictionary chosen last.
        let mut last = None;
        let mut add = |group: &OverlapGroup| {
            let piece = self.piece(group);
            match piece.tables.iter().flatten().next() {
                Some(table) if group.trivial_move => edit.added.push((self.run, Arc::clone(table))),
                _ => {
                    let filter = VersionFilter::new(boundaries.clone(), bottom);
                    let chosen = dictionary_for(self.ks.compression, &piece, last.as_ref())?;
                    let outputs = Outputs::new(self, chosen.clone());
                    last = chosen.or(last.take());
                    self.merge_piece(&piece, filter, outputs, &mut written)?;
                }
            }
            Ok(())
        };
        // What was written by then is discarded below.
        let result = comparator::catch(|| self.groups.iter().try_for_each(&mut add));
        let result = result.and_then(|()| {
            for summary in std::mem::take(&mut written.tables) {
                edit.added.push((self.run, self.store.load_table(self.ks, summary, 0)?));
            }
            Ok(())
        });
        if let Err(e) = result {
            self.discard(&written);
            return Err(e);
        }
        edit.live_values = written.live.into_iter().collect();
        edit.dead_values = written.dead;
        Ok(edit)
    }

    fn piece(&self, group: &OverlapGroup) -> GroupInputs {
        let mut tables = vec![Vec::new(); self.range.len()];
        for &(run, table) in &group.tables {
            tables[run - self.range.start].push(Arc::clone(&self.runs[run].tables()[table]));
        }
        let memtables = group.memtables.iter().map(|m| Arc::clone(&self.memtables[*m])).collect();
        GroupInputs { memtables, tables }
    }

    fn cursor(&self, piece: &GroupInputs) -> Result<MergeCursor> {
        let order = &self.ks.order;
        let mut sources: Vec<SourceCursor> =
            piece.memtables.iter().map(|m| SourceCursor::Memtable(m.cursor())).collect();
        for tables in piece.tables.iter().filter(|t| !t.is_empty()) {
            let tables = tables.iter().map(|t| (1, Arc::clone(t))).collect();
            let part = KeyspaceVersion::default()
                .edit(Some(order), &[], tables)
                .map_err(|e| Error::corrupt(&self.store.dir, 0, e.to_string()))?;
            for run in part.runs() {
                let run = Arc::new(LoadedRun::new(Arc::clone(run)));
                sources.push(SourceCursor::Run(RunCursor::new(run, order.clone())));
            }
        }
        Ok(MergeCursor::new(order.clone(), sources))
    }

    fn merge_piece(
        &self,
        piece: &GroupInputs,
        mut filter: VersionFilter,
        mut outputs: Outputs<'_>,
        written: &mut Written,
    ) -> Result<()> {
        let order = &self.ks.order;
        let mut cursor = self.cursor(piece)?;
        let mut last_key: Vec<u8> = Vec::new();
        let mut fresh = true;
        let mut decompressed = Vec::new();
        let mut slice = 0;
        cursor.first()?;
        while cursor.valid() {
            let key = cursor.key();
            if fresh || order.compare(key, &last_key).is_ne() {
                fresh = false;
                last_key.clear();
                last_key.extend_from_slice(key);
                filter.next_key();
                // Versions of one key never straddle two tables.
                outputs.roll(written)?;
            }
            let (seq, kind) = (cursor.seq(), cursor.kind());
            let value = self.value_for_table(&cursor);
            match filter.decide(seq, kind) {
                Decision::Drop => {
                    if let (Stored::Pointer(p), SourceCursor::Run(_)) = (value, cursor.current()) {
                        written
                            .dead
                            .entry(p.segment)
                            .or_default()
                            .push((p.offset, u64::from(p.len)));
                    }
                }
                decision => {
                    let seq = (decision == Decision::Keep).then_some(seq);
                    if let (Stored::Pointer(p), SourceCursor::Memtable(_)) =
                        (value, cursor.current())
                    {
                        written
                            .live
                            .entry(p.segment)
                            .or_default()
                            .push((p.offset, u64::from(p.len)));
                    }
                    let builder = outputs.builder(written)?;
                    match (value, cursor.current()) {
                        (Stored::Compressed { .. }, SourceCursor::Run(run))
                            if !builder.accepts(&value) =>
                        {
                            run.table().table.decompress(value, &mut decompressed)?;
                            builder.add(key, seq, kind, Stored::Inline(&decompressed))?;
                        }
                        (Stored::Pointer(p), SourceCursor::Run(run))
                            if self.relocate.contains(&p.segment) =>
                        {
                            let bytes = run.table().segment(&p)?.value(&p)?;
                            builder.add(key, seq, kind, Stored::Inline(bytes))?;
                            written
                                .dead
                                .entry(p.segment)
                                .or_default()
                                .push((p.offset, u64::from(p.len)));
                        }
                        _ => builder.add(key, seq, kind, value)?,
                    }
                }
            }
            cursor.next()?;
            slice += 1;
            written.read += 1;
            if slice == ENTRIES_PER_SLICE {
                slice = 0;
                self.report(written);
                self.store.between_slices(!self.memtables.is_empty())?;
            }
        }
        outputs.finish(written)
    }

    /// The value as the table will hold it: a large one stays where it was written.
    fn value_for_table<'c>(&self, cursor: &'c MergeCursor) -> Stored<'c> {
        match (cursor.stored(), cursor.current()) {
            (Stored::Inline(bytes), SourceCursor::Memtable(m))
                if bytes.len() >= self.ks.separate_values_from =>
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

    /// Entries that are read.
    fn entries(&self) -> u64 {
        let tables = self.groups.iter().filter(|c| !c.trivial_move).flat_map(|c| &c.tables);
        let entries = |&(run, table): &(usize, usize)| self.runs[run].tables()[table].meta.entries;
        let in_memory: u64 = self.memtables.iter().map(|m| m.len() as u64).sum();
        tables.map(entries).sum::<u64>() + in_memory
    }

    /// Tells writers that wait how far a flush is.
    fn report(&self, written: &Written) {
        if !self.memtables.is_empty() {
            let share = written.read as f64 / written.to_read.max(1) as f64;
            self.store.backpressure.set_progress(share.min(1.0));
        }
    }

    fn discard(&self, written: &Written) {
        for number in &written.numbers {
            let path = self.store.dir.join(filename::table(*number));
            drop(self.store.env.remove(&path));
        }
    }
}

/// What has been written so far.
#[derive(Default)]
struct Written {
    /// Numbers of all files begun.
    numbers: Vec<u64>,
    tables: Vec<TableSummary>,
    /// Entries read, and all that will be.
    read: u64,
    to_read: u64,
    live: HashMap<u64, Vec<(u64, u64)>>,
    dead: HashMap<u64, Vec<(u64, u64)>>,
}

/// The tables of one piece, one after the other.
struct Outputs<'a> {
    store: &'a Store,
    options: TableOptions,
    target: u64,
    builder: Option<TableBuilder>,
}

impl<'a> Outputs<'a> {
    fn new(job: &CompactionJob<'a>, dictionary: Option<Arc<Dictionary>>) -> Outputs<'a> {
        let options = TableOptions {
            order: job.ks.order.clone(),
            keyspace: job.ks.id,
            block_size: job.store.options.block_size,
            compression: job.ks.compression,
            dictionary,
        };
        Outputs { store: job.store, options, target: job.store.table_sizes().full, builder: None }
    }

    fn builder(&mut self, written: &mut Written) -> Result<&mut TableBuilder> {
        if self.builder.is_none() {
            let number = self.store.new_file_number()?;
            let path = self.store.dir.join(filename::table(number));
            self.builder =
                Some(TableBuilder::new(&self.store.env, &path, number, self.options.clone())?);
            // Only now: a file that was there before is not this compaction's to remove.
            written.numbers.push(number);
        }
        Ok(self.builder.as_mut().expect("just made"))
    }

    /// Ends the present table when it is large enough.
    fn roll(&mut self, written: &mut Written) -> Result<()> {
        if self.builder.as_ref().is_some_and(|b| b.size_estimate() >= self.target) {
            self.finish(written)?;
        }
        Ok(())
    }

    fn finish(&mut self, written: &mut Written) -> Result<()> {
        if let Some(builder) = self.builder.take() {
            let summary = builder.finish()?;
            Counters::add(&self.store.counters.merge_written, summary.size);
            self.store.room.took(summary.size);
            written.tables.push(summary);
        }
        Ok(())
    }
}

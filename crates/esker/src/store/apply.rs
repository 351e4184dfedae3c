//! The one place where a version changes: first durably in the manifest, then for readers, and
//! only then are files given up.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::{KeyspaceState, Store};
use crate::comparator;
use crate::error::{Error, Result};
use crate::filename;
use crate::read::LoadedTable;
use crate::table::Table;
use crate::version::{Change, KeyspaceVersion, TableMeta, VersionEdit};
use crate::wal::Segment;

/// The open tables of a keyspace at one moment.
type Version = KeyspaceVersion<Arc<LoadedTable>>;

/// What a flush, a compaction or a bulk load does to one keyspace.
#[derive(Default)]
pub(crate) struct KeyspaceEdit {
    /// Tables that leave their runs. One that moves to another run is in `added` too.
    pub removed: Vec<Arc<LoadedTable>>,
    /// Tables and the runs they join.
    pub added: Vec<(u64, Arc<LoadedTable>)>,
    /// All entries in segments up to and including this one are in tables now.
    pub flushed: Option<u64>,
    /// Separated values that tables in `added` left in segments of the log: segment, ranges.
    pub live_values: Vec<(u64, Vec<(u64, u64)>)>,
    /// Separated values that nothing will point to.
    pub dead_values: HashMap<u64, Vec<(u64, u64)>>,
}

impl KeyspaceEdit {
    /// Numbers of the tables that were written for it.
    pub(crate) fn fresh(&self) -> impl Iterator<Item = u64> {
        let was: HashSet<u64> = self.removed.iter().map(|t| t.meta.number).collect();
        self.added.iter().map(|(_, t)| t.meta.number).filter(move |n| !was.contains(n))
    }
}

/// What the manifest has to know of one keyspace.
fn changes_of(ks: &KeyspaceState, edit: &KeyspaceEdit) -> Vec<Change> {
    let mut changes = Vec::new();
    for t in &edit.removed {
        changes.push(Change::RemoveTable { keyspace: ks.id, number: t.meta.number });
    }
    for (run, t) in &edit.added {
        changes.push(Change::AddTable { keyspace: ks.id, run: *run, meta: t.meta.clone() });
    }
    if let Some(upto) = edit.flushed {
        changes.push(Change::Flushed { keyspace: ks.id, segment: upto });
    }
    changes
}

impl Store {
    /// Makes `edit` the truth. On an error nothing has changed for readers, and the caller
    /// removes the files of the added tables.
    pub(crate) fn apply_edit(&self, ks: &KeyspaceState, edit: KeyspaceEdit) -> Result<()> {
        self.apply_together(vec![(ks, edit)])
    }

    /// The same of several keyspaces, in one edit: all of it or, after a crash, none.
    pub(crate) fn apply_together(&self, edits: Vec<(&KeyspaceState, KeyspaceEdit)>) -> Result<()> {
        // Keys are compared up to the edit, which changes all or nothing; not afterwards.
        comparator::catch(|| self.apply_all(edits))
    }

    fn apply_all(&self, edits: Vec<(&KeyspaceState, KeyspaceEdit)>) -> Result<()> {
        let mut flushed = Vec::new();
        for (ks, edit) in &edits {
            if let Some(upto) = edit.flushed {
                self.sync_log(ks, upto, !edit.live_values.is_empty())?;
                flushed.push((ks.id, upto));
            }
        }
        // The log starts in no segment that was made after that.
        let newest = self.active_number();
        let named = self.sync_names(&edits)?;
        let mut version_set = self.version_set.lock();
        edits.iter().try_for_each(|(ks, _)| ks.check_alive())?;
        // Only who holds `version_set` changes a version: these are the next ones.
        let versions = edits.iter().map(|(ks, edit)| self.version_after(ks, edit));
        let versions = versions.collect::<Result<Vec<_>>>()?;
        let starts = version_set.state().log_start;
        let log_start = self.segments.log_start_after(newest, &flushed).max(starts);
        // After a flush most often, and after a load into a store that is written to by nothing else.
        let advances = named && log_start > starts;
        let mut changes: Vec<Change> =
            edits.iter().flat_map(|(ks, edit)| changes_of(ks, edit)).collect();
        if advances || !flushed.is_empty() {
            changes.extend(self.log_starts_in(&version_set, log_start));
        }
        changes.push(Change::NextFile { number: self.next_file() });
        self.commit(&mut version_set, VersionEdit { changes })?;
        for ((ks, edit), version) in edits.iter().zip(&versions) {
            show(ks, edit, version);
        }
        for (ks, edit) in edits {
            self.release(ks, edit);
        }
        if advances {
            self.segments.advance(log_start, || self.old_super_versions());
            self.sync.retire(log_start);
        }
        if !flushed.is_empty() {
            self.note_pending(self.active_number());
            self.signal.notify_done();
        }
        Ok(())
    }

    /// The version that an edit leads to.
    fn version_after(&self, ks: &KeyspaceState, edit: &KeyspaceEdit) -> Result<Version> {
        let removed: Vec<u64> = edit.removed.iter().map(|t| t.meta.number).collect();
        let version = &ks.super_version.load().version;
        let next = version.edit(Some(&ks.order), &removed, edit.added.clone());
        next.map_err(|e| {
            let bug = if ks.order.is_custom() { "" } else { "; this is a bug" };
            Error::corrupt(&self.dir, 0, format!("a compaction came out wrong ({e}){bug}"))
        })
    }

    /// Appends an edit to the manifest and applies it to the state. A failed append stops writes:
    /// whether the edit is durable is unknown until a new manifest is written. One that found no room is none.
    pub(crate) fn commit(
        &self,
        version_set: &mut super::VersionSet,
        edit: VersionEdit,
    ) -> Result<()> {
        let manifest = version_set.manifest_mut().ok_or_else(|| self.why_no_manifest())?;
        // Where the manifest is made anew, it is by its path.
        self.check_dir().inspect_err(|e| self.halt(e.clone()))?;
        let appended = manifest.append(&edit);
        let unharmed = manifest.failed().is_none();
        appended.inspect_err(|e| {
            self.note_lost_names();
            if !(e.is_no_space() && unharmed) {
                self.halt(e.clone());
            }
        })?;
        let durable = version_set.state().log_durable.segment;
        self.tracked_segment.fetch_max(durable, std::sync::atomic::Ordering::AcqRel);
        Ok(())
    }

    /// Why nothing can be written to the manifest.
    pub(crate) fn why_no_manifest(&self) -> Error {
        self.check_open().err().unwrap_or(Error::ReadOnly)
    }

    /// The log is read from `segment` on. What lies below is not read again; so that sequences used there
    /// are not used once more, the manifest says how far they went. (Tables need not say it: a compaction
    /// takes sequences out that nobody asks for.)
    pub(crate) fn log_starts_in(
        &self,
        version_set: &super::VersionSet,
        segment: u64,
    ) -> [Change; 2] {
        let state = version_set.state();
        // In this order: where the log is begun anew in between, what was durable before is what is told.
        let durable = self.sync.durable();
        let durable = if self.leads_on_from(segment) { durable } else { state.log_durable };
        let seq = self.visible_seq().max(state.last_seq);
        [Change::LogStart { segment, durable }, Change::LastSeq { seq }]
    }

    /// Number of the active segment.
    pub(crate) fn active_number(&self) -> u64 {
        self.active.load(std::sync::atomic::Ordering::Acquire)
    }

    /// Tables are durable at once, the log only when asked. Were one keyspace's entries made durable
    /// while another's older ones are still in an unsynced log, a power cut would keep the later
    /// and lose the earlier; and a table must not point to values that are not durable. So the log
    /// goes first.
    fn sync_log(&self, ks: &KeyspaceState, upto: u64, keeps_values: bool) -> Result<()> {
        match keeps_values || self.segments.others_wait(ks.id, upto) {
            true => self.sync_log_upto(upto),
            false => Ok(()),
        }
    }

    /// Makes the log durable up to the end of segment `upto`.
    pub(crate) fn sync_log_upto(&self, upto: u64) -> Result<()> {
        self.segments.end_of(upto).map_or(Ok(()), |position| self.wait_durable(position))
    }

    /// A new table is synced, but a power cut may still take its name away, and that of a segment
    /// that it points into, or that the log is to start with; the manifest must not know it longer than the directory
    /// does. Whether there was anything to sync.
    fn sync_names(&self, edits: &[(&KeyspaceState, KeyspaceEdit)]) -> Result<bool> {
        if edits.iter().all(|(_, e)| e.fresh().next().is_none() && e.flushed.is_none()) {
            return Ok(false);
        }
        self.sync_dir()?;
        // One for something else may have failed before that was to name these.
        self.sync.failed().map_or(Ok(true), Err)
    }

    /// Makes the names of all files durable.
    pub(crate) fn sync_dir(&self) -> Result<()> {
        self.sync.dir_sync().sync().inspect_err(|e| {
            self.note_lost_names();
            self.halt(e.clone());
        })
    }

    /// Something failed: if a sync of the directory did, names of any files may be lost, and a resume goes on in files with
    /// new ones.
    pub(crate) fn note_lost_names(&self) {
        self.sync.note_lost_names();
        self.halt_if_unsynced();
    }

    /// Whether files of these numbers were made since the last sync that failed, after which their names may be lost.
    pub(crate) fn check_names(&self, numbers: &[u64]) -> Result<()> {
        let since = self.failed_sync_below.load(std::sync::atomic::Ordering::Acquire);
        if numbers.iter().all(|n| *n >= since) {
            return Ok(());
        }
        let what = "a sync failed while the tables were written, and their names may be lost: load once more";
        Err(Error::io("load into", &self.dir, std::io::Error::other(what)))
    }

    /// After the version is durable and public: files that nothing needs any more.
    fn release(&self, ks: &KeyspaceState, edit: KeyspaceEdit) {
        let staying: HashSet<u64> = edit.added.iter().map(|(_, t)| t.meta.number).collect();
        let leaving: Vec<&Arc<LoadedTable>> =
            edit.removed.iter().filter(|t| !staying.contains(&t.meta.number)).collect();
        let was: HashSet<u64> = edit.removed.iter().map(|t| t.meta.number).collect();
        let coming = edit.added.iter().map(|(_, t)| t).filter(|t| !was.contains(&t.meta.number));
        for (segment, ranges) in edit.live_values {
            self.segments.note_live(segment, ranges);
        }
        self.segments.account(
            coming.flat_map(|t| &t.meta.references),
            leaving.iter().flat_map(|t| &t.meta.references),
        );
        self.segments.mark_dead(edit.dead_values, &ks.old_super_versions());
        for t in &leaving {
            t.retire();
        }
        if let Some(upto) = edit.flushed {
            self.segments.note_flushed(ks.id, upto);
        }
    }

    /// Opens a table that was just written and readies it for a version.
    pub(crate) fn load_table(&self, ks: &KeyspaceState, meta: TableMeta) -> Result<LoadedTable> {
        // One of another store's would be taken for damage.
        self.check_dir()?;
        let table = self.map_table(ks, &meta)?.just_written();
        self.ready_table(table, meta)
    }

    /// Opens the table that `meta` names.
    pub(crate) fn open_table(&self, ks: &KeyspaceState, meta: TableMeta) -> Result<LoadedTable> {
        self.ready_table(self.map_table(ks, &meta)?, meta)
    }

    fn map_table(&self, ks: &KeyspaceState, meta: &TableMeta) -> Result<Table> {
        let path = self.dir.join(filename::table(meta.number));
        let order = ks.order.clone();
        let table = Table::open(&*self.env, &path, meta.number, meta.size, order, meta.base_seq)?;
        Ok(table.sharing(&self.dictionaries))
    }

    /// Finds the segments that the values of a table are in.
    fn ready_table(&self, table: Table, meta: TableMeta) -> Result<LoadedTable> {
        let mut segments: Vec<Arc<Segment>> = Vec::with_capacity(meta.references.len());
        for r in &meta.references {
            let Some(segment) = self.segments.get(r.segment) else {
                // A closed store has let go of all.
                self.check_open()?;
                let what = format!("values point to log segment {}, which is missing", r.segment);
                return Err(Error::corrupt(table.path(), 0, what));
            };
            segments.push(segment);
        }
        let obsolete = Arc::clone(&self.obsolete);
        Ok(LoadedTable::new(Arc::new(table), meta, segments, obsolete))
    }
}

/// Publishes the version that an edit leads to, and counts what came since the keyspace was at rest.
fn show(ks: &KeyspaceState, edit: &KeyspaceEdit, version: &Version) {
    ks.publish(|super_version| {
        let mut next = super_version.with_version(version.clone());
        if let Some(upto) = edit.flushed {
            next.memtables.retain(|m| m.segment().number() > upto);
        }
        next
    });
    // For who picks compactions.
    if edit.flushed.is_some() || edit.removed.is_empty() {
        let bytes = |t: &Arc<LoadedTable>| t.meta.size;
        let added: u64 = edit.added.iter().map(|(_, t)| bytes(t)).sum();
        let came = added.saturating_sub(edit.removed.iter().map(bytes).sum());
        ks.since_rest.fetch_add(came, Relaxed);
    } else if version.runs().len() < 2 {
        // A compaction of all, whoever asked for it.
        ks.since_rest.store(0, Relaxed);
    }
}

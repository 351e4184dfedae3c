//! The state that all handles of an open store share, and the rules for changing it.
//!
//! Locks, in the order in which they may be taken: `jobs` (one compaction at a time), `keyspace_changes` (one comes
//! or goes), `writer` (the log's end), `version_set` (the manifest). Readers take none of them: they load a keyspace's super version.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::{Mutex, RwLock};

use crate::compaction::picker::CompactionReason;
use crate::dir_sync::DirSync;
use crate::env::Env;
use crate::error::{Error, Result};
use crate::key::{KeyOrder, Seq};
use crate::obsolete_files::ObsoleteFiles;
use crate::options::{Compression, Options, TableSizes};
use crate::read::SuperVersion;
use crate::read::gaps::KeyGaps;
use crate::snapshot::SnapshotList;
use crate::stall::backpressure::Backpressure;
use crate::stall::cost::CostModel;
use crate::stall::readers::Searches;
use crate::table::Dictionaries;
use crate::util::{AtEnd, Padded};
use crate::version::{Manifest, State};
use crate::wal::SyncGroup;
use crate::wal::manager::SegmentManager;

pub(crate) mod apply;
mod counters;
mod gate;
mod lock;
#[cfg(all(test, esker_models))]
mod models;
mod published;
mod room;
mod signal;
mod writer;

pub(crate) use counters::Counters;
use gate::Gate;
pub(crate) use lock::{DirLock, lock_dir, patiently};
pub(crate) use published::{Published, Visible};
pub(crate) use room::{Refused, Room};
pub(crate) use signal::Signal;
pub(crate) use writer::{NewSegment, Writer};

/// The name of the keyspace that every store has.
pub(crate) const DEFAULT_KEYSPACE: &str = "default";

/// Set among the bits of `next_file` when no more files are made. Numbers stay far below.
const NO_MORE_FILES: u64 = 1 << 63;
static NEXT_ID: AtomicU64 = AtomicU64::new(0);

/// An open store.
pub(crate) struct Store {
    /// Tells it from all others that this process has opened.
    pub id: u64,
    pub env: Arc<dyn Env>,
    pub dir: PathBuf,
    pub options: Options,
    /// The last published sequence. On a line of its own: every reader loads it.
    pub visible: Padded<Visible>,
    pub writer: Mutex<Writer>,
    /// The next log segment, made ahead.
    pub spare: Mutex<Option<NewSegment>>,
    pub room: Room,
    pub keyspaces: RwLock<Names>,
    /// Super versions of dropped keyspaces, as long as a reader may hold one.
    pub dropped_super_versions: Mutex<Vec<Weak<SuperVersion>>>,
    pub version_set: Mutex<VersionSet>,
    /// Held by whoever merges.
    pub jobs: Mutex<()>,
    /// Held by who makes or drops a keyspace, and by a checkpoint from the moment that it is of until it has the keyspaces
    /// of that moment. Taken before the writer.
    pub keyspace_changes: Mutex<()>,
    /// Id of the keyspace whose compactions are next, or of one before it that is gone.
    pub turn: AtomicU32,
    pub segments: SegmentManager,
    pub sync: SyncGroup,
    pub snapshots: Arc<SnapshotList>,
    pub obsolete: Arc<ObsoleteFiles>,
    /// Those of open tables.
    pub dictionaries: Dictionaries,
    pub backpressure: Backpressure,
    pub signal: Signal,
    pub counters: Counters,
    next_file: AtomicU64,
    /// Number of the active segment; changed by the writer.
    pub active: AtomicU64,
    /// The newest segment of the log that the manifest says is durable, or in part.
    pub tracked_segment: AtomicU64,
    /// Segments of the log below this one were given up after a failed sync: what they hold may not
    /// be on the device, so no table may point into them any more.
    pub failed_sync_below: AtomicU64,
    /// Whether the log holds a frame that memory does not: only another open puts that right.
    pub unindexed: AtomicBool,
    gate: Gate,
    /// The lock of the directory, until the store is closed. Super versions have it too.
    lock: Mutex<Option<DirLock>>,
}

/// What opening hands over to a store.
pub(crate) struct StoreParts {
    pub env: Arc<dyn Env>,
    pub dir: PathBuf,
    pub options: Options,
    pub lock: DirLock,
    pub version_set: VersionSet,
    pub segments: SegmentManager,
    pub obsolete: Arc<ObsoleteFiles>,
    pub sync: SyncGroup,
    pub last_seq: Seq,
    pub next_file: u64,
}

/// The manifest and what it says.
pub(crate) enum VersionSet {
    /// Open for writing.
    Writable(Manifest),
    /// Open for reading only, or closed: what the manifest said.
    ReadOnly(State),
}

impl VersionSet {
    pub(crate) fn state(&self) -> &State {
        match self {
            VersionSet::Writable(manifest) => manifest.state(),
            VersionSet::ReadOnly(state) => state,
        }
    }

    /// Puts down how long the manifest is, so that it is noticed when it loses its end.
    pub(crate) fn tell_manifest_length(&mut self) -> Result<()> {
        match self {
            VersionSet::Writable(m) => m.tell_length(),
            VersionSet::ReadOnly(_) => Ok(()),
        }
    }

    /// Number of the manifest; 0 of one that is not written.
    pub(crate) fn manifest_number(&self) -> u64 {
        match self {
            VersionSet::Writable(m) => m.number(),
            VersionSet::ReadOnly(_) => 0,
        }
    }

    /// Nothing is written to the manifest from here on.
    pub(crate) fn close(&mut self) {
        if let VersionSet::Writable(manifest) = self {
            *self = VersionSet::ReadOnly(manifest.state().clone());
        }
    }

    /// Syncs of the store's directory: of one that fails, the manifest and the log are told alike.
    pub(crate) fn dir_sync(&self, env: &Arc<dyn Env>, dir: &Path) -> Arc<DirSync> {
        match self {
            VersionSet::Writable(manifest) => Arc::clone(manifest.dir_sync()),
            VersionSet::ReadOnly(_) => Arc::new(DirSync::new(Arc::clone(env), dir)),
        }
    }

    pub(crate) fn manifest_mut(&mut self) -> Option<&mut Manifest> {
        match self {
            VersionSet::Writable(manifest) => Some(manifest),
            VersionSet::ReadOnly(_) => None,
        }
    }
}

/// The keyspaces by name and by id.
#[derive(Default)]
pub(crate) struct Names {
    pub by_name: HashMap<String, Arc<KeyspaceState>>,
    pub by_id: HashMap<u32, Arc<KeyspaceState>>,
}

impl Names {
    pub(crate) fn insert(&mut self, ks: Arc<KeyspaceState>) {
        self.by_name.insert(ks.name.clone(), Arc::clone(&ks));
        self.by_id.insert(ks.id, ks);
    }

    /// In order of id, so that work goes round fairly and reports are stable.
    pub(crate) fn all(&self) -> Vec<Arc<KeyspaceState>> {
        let mut all: Vec<_> = self.by_id.values().cloned().collect();
        all.sort_by_key(|k| k.id);
        all
    }
}

/// One keyspace.
pub(crate) struct KeyspaceState {
    pub id: u32,
    pub name: String,
    pub order: KeyOrder,
    pub compression: Compression,
    pub blob_threshold: usize,
    /// How large a filter its last memtable needed.
    pub filter_level: Arc<AtomicUsize>,
    /// Where nothing lives between two keys.
    pub gaps: KeyGaps,
    /// What searches pay for many sources. On a line of its own: readers write to it, and all of them load the super version.
    pub searches: Padded<Searches>,
    /// What readers read.
    pub super_version: Published<SuperVersion>,
    pub dropped: AtomicBool,
    /// Ids of the runs that a compaction is reading, or is to read: a flush in between must leave them alone.
    pub runs_being_compacted: Mutex<Vec<u64>>,
    /// Where compactions that were too large for one piece go on, each by what it was for: others come in between.
    pub compaction_cursors: Mutex<HashMap<CompactionReason, Vec<u8>>>,
    /// By how many bytes flushes and loads have made it larger since nothing was left to do when it was idle, or since it was opened.
    pub since_rest: AtomicU64,
    /// Where the last compaction found no room though the system said that there was some.
    pub refused: Mutex<Option<Refused>>,
    /// Where the last one that was due was not tried, as there is no room for it.
    pub lacked_room: Mutex<Option<Refused>>,
    /// The super version of which an idle store has nothing to merge, or nothing that may be written yet, and until when, by the
    /// clock of the environment, nobody looks again.
    pub not_yet: Mutex<Option<(Weak<SuperVersion>, Duration)>>,
}

impl KeyspaceState {
    /// A keyspace whose readers see `super_version`.
    pub(crate) fn new(
        id: u32,
        name: String,
        order: KeyOrder,
        compression: Compression,
        blob_threshold: usize,
        super_version: SuperVersion,
    ) -> KeyspaceState {
        KeyspaceState {
            id,
            name,
            order,
            compression,
            blob_threshold,
            filter_level: Arc::default(),
            gaps: KeyGaps::default(),
            searches: Padded::default(),
            super_version: Published::new(super_version),
            dropped: AtomicBool::new(false),
            runs_being_compacted: Mutex::default(),
            compaction_cursors: Mutex::default(),
            since_rest: AtomicU64::new(0),
            refused: Mutex::default(),
            lacked_room: Mutex::default(),
            not_yet: Mutex::default(),
        }
    }

    /// Until what is returned is dropped, these runs are left to the caller by all others.
    pub(crate) fn hold_runs(&self, ids: Vec<u64>) -> AtEnd<impl FnMut() + '_> {
        self.runs_being_compacted.lock().extend(&ids);
        AtEnd(move || {
            let mut busy = self.runs_being_compacted.lock();
            for id in &ids {
                // Once: another may hold it too.
                if let Some(at) = busy.iter().position(|b| b == id) {
                    busy.swap_remove(at);
                }
            }
        })
    }

    /// Publishes what `next` makes of the present super version.
    pub(crate) fn publish(&self, next: impl FnMut(&Arc<SuperVersion>) -> SuperVersion) {
        self.super_version.publish(next);
    }

    /// The super versions before the present one that a reader may hold.
    pub(crate) fn old_super_versions(&self) -> Vec<Weak<SuperVersion>> {
        self.super_version.before()
    }

    /// What an entry weighs as debt.
    pub(crate) fn cost_of(&self, cost_model: CostModel, key: &[u8], value: &[u8]) -> u64 {
        let (key, value) = (key.len() as u64, value.len() as u64);
        match value < self.blob_threshold as u64 {
            true => cost_model.cost_of(key + value, 0),
            false => cost_model.cost_of(key, value),
        }
    }

    /// Tells of a put, which is to get this sequence, under the writer's lock. Before it is in the log: a comparator may
    /// panic.
    #[cold]
    pub(crate) fn note_put(&self, seq: Seq, key: &[u8]) -> Result<()> {
        self.order.guard(|| {
            self.gaps.note_put(&self.order, seq, key);
            Ok(())
        })
    }

    pub(crate) fn check_alive(&self) -> Result<()> {
        if self.dropped.load(Ordering::Relaxed) {
            return Err(Error::KeyspaceDropped { name: self.name.clone() });
        }
        Ok(())
    }
}

impl Store {
    /// A store of these, which has no keyspaces and no active segment yet.
    pub(crate) fn new(parts: StoreParts) -> Store {
        let writer = Writer::new(parts.last_seq);
        Store {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            backpressure: Backpressure::new(&parts.options),
            gate: Gate::new(parts.options.read_only),
            env: parts.env,
            dir: parts.dir,
            options: parts.options,
            visible: Padded(Visible::new(parts.last_seq)),
            active: AtomicU64::new(writer.active_number()),
            writer: Mutex::new(writer),
            spare: Mutex::default(),
            room: Room::default(),
            keyspaces: RwLock::default(),
            dropped_super_versions: Mutex::default(),
            version_set: Mutex::new(parts.version_set),
            jobs: Mutex::new(()),
            keyspace_changes: Mutex::new(()),
            turn: AtomicU32::new(0),
            segments: parts.segments,
            sync: parts.sync,
            snapshots: Arc::default(),
            obsolete: parts.obsolete,
            dictionaries: Dictionaries::default(),
            signal: Signal::default(),
            counters: Counters::default(),
            next_file: AtomicU64::new(parts.next_file),
            tracked_segment: AtomicU64::new(0),
            failed_sync_below: AtomicU64::new(0),
            unindexed: AtomicBool::new(false),
            lock: Mutex::new(Some(parts.lock)),
        }
    }

    /// All keyspaces, by id. The list's lock is released before this returns, so that a caller who
    /// goes on to take others cannot hold it by accident (a guard in the head of a `for` lives as
    /// long as the loop).
    pub(crate) fn all_keyspaces(&self) -> Vec<Arc<KeyspaceState>> {
        let names = self.keyspaces.read();
        names.all()
    }

    #[inline]
    pub(crate) fn visible_seq(&self) -> Seq {
        self.visible.0.get()
    }

    /// A number for a new file. None is given out once the store is closed: whoever opens it next goes on
    /// from there.
    pub(crate) fn new_file_number(&self) -> Result<u64> {
        self.check_dir()?;
        match self.next_file.fetch_add(1, Ordering::Relaxed) {
            number if number & NO_MORE_FILES == 0 => Ok(number),
            _ => Err(Error::Closed),
        }
    }

    /// Numbers from here on were not given out.
    pub(crate) fn next_file(&self) -> u64 {
        self.next_file.load(Ordering::Relaxed) & !NO_MORE_FILES
    }

    /// Ends the giving out of numbers; the first that was not.
    pub(crate) fn end_file_numbers(&self) -> u64 {
        self.next_file.fetch_or(NO_MORE_FILES, Ordering::Relaxed) & !NO_MORE_FILES
    }

    /// The lock of the directory, for whoever goes on using its files without a super version.
    pub(crate) fn hold_dir(&self) -> Result<DirLock> {
        self.lock.lock().clone().ok_or(Error::Closed)
    }

    /// Whether the paths of the store's files still lead to its directory: files are made in no other,
    /// and none is removed from another.
    pub(crate) fn check_dir(&self) -> Result<()> {
        self.check_held(&self.hold_dir()?)
    }

    /// The same for who holds the lock, whether the store was closed meanwhile or not.
    pub(crate) fn check_held(&self, lock: &DirLock) -> Result<()> {
        self.check_process()?;
        let in_place = lock.is_in_place();
        match in_place.map_err(|e| Error::io("look for", &self.dir, e))? {
            true => Ok(()),
            false => Err(Error::DirectoryMoved { path: self.dir.clone() }),
        }
    }

    /// Gives the directory and its files free, but for super versions that readers hold: others may have them now.
    pub(crate) fn let_go_of_dir(&self) {
        drop(self.spare.lock().take());
        self.segments.close();
        for ks in self.all_keyspaces() {
            ks.publish(|_| SuperVersion::empty());
        }
        *self.lock.lock() = None;
    }

    /// Stops all writes until `resume`. The first cause stays. That the store is being closed is none.
    pub(crate) fn halt(&self, cause: Error) {
        if !matches!(cause, Error::Closed) {
            self.gate.halt(cause);
            self.signal.notify_done();
        }
    }

    /// Stops writes where the log cannot be synced any more. Who learns of a failure when it was resumed from stops nothing.
    pub(crate) fn halt_if_unsynced(&self) {
        let mut halted = false;
        self.sync.while_failed(|e| {
            self.gate.halt(e.clone());
            halted = true;
        });
        if halted {
            self.signal.notify_done();
        }
    }

    pub(crate) fn end_halt(&self) {
        self.gate.end_halt();
    }

    /// No reads or writes from here on.
    pub(crate) fn set_closed(&self) {
        self.gate.close();
    }

    #[inline]
    pub(crate) fn check_open(&self) -> Result<()> {
        if self.gate.is_closed() { Err(Error::Closed) } else { Ok(()) }
    }

    /// Whether this is the process that opened the store: a child of it has the lock too, and is to change nothing.
    #[inline]
    pub(crate) fn check_process(&self) -> Result<()> {
        if self.gate.is_forked() { Err(Error::Closed) } else { Ok(()) }
    }

    /// The cause for which writes are stopped.
    pub(crate) fn halt_cause(&self) -> Option<Arc<Error>> {
        self.gate.cause()
    }

    /// Whether writes are possible at all.
    #[inline]
    pub(crate) fn check_writable(&self) -> Result<()> {
        self.gate.check_writable()
    }

    /// A super version of a keyspace and the sequence to read it at, that belong together: the super version holds
    /// every version that a reader at the sequence can see, and no entry up to it is missing.
    pub(crate) fn consistent_super_version(&self, ks: &KeyspaceState) -> (Arc<SuperVersion>, Seq) {
        ks.super_version.consistent(&self.visible.0)
    }

    /// The super versions of all keyspaces before the present ones that a reader may hold, those of dropped
    /// keyspaces included.
    pub(crate) fn old_super_versions(&self) -> Vec<Weak<SuperVersion>> {
        let mut super_versions = {
            let mut dropped = self.dropped_super_versions.lock();
            dropped.retain(|v| v.strong_count() > 0);
            dropped.clone()
        };
        super_versions.extend(self.all_keyspaces().iter().flat_map(|ks| ks.old_super_versions()));
        super_versions
    }

    /// Bytes of all table files that readers see.
    pub(crate) fn table_bytes(&self) -> u64 {
        let bytes = |ks: &Arc<KeyspaceState>| {
            ks.super_version.load().version.runs().iter().map(|r| r.bytes()).sum::<u64>()
        };
        self.all_keyspaces().iter().map(bytes).sum()
    }

    /// How large tables that are written now become.
    pub(crate) fn table_sizes(&self) -> TableSizes {
        self.options.table_sizes(self.table_bytes())
    }

    /// Bytes that the store uses of its budget: indexes of memtables and open tables.
    pub(crate) fn memory_used(&self) -> u64 {
        let mut bytes = self.dictionaries.memory() as u64;
        for ks in self.all_keyspaces() {
            let super_version = ks.super_version.load();
            bytes += super_version.memtables.iter().map(|m| m.memory() as u64).sum::<u64>();
            bytes += super_version.version.tables().map(|t| t.table.memory() as u64).sum::<u64>();
        }
        bytes
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Store({})", self.dir.display())
    }
}

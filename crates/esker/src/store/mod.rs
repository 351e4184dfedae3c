//! The state that all handles of an open store share, and the rules for changing it.
//!
//! Locks, in the order in which they may be taken: `jobs` (one merge at a time), `writer` (the log's
//! end), `control` (the manifest). Readers take none of them: they load a keyspace's view.

use std::any::Any;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use arc_swap::ArcSwapOption;
use parking_lot::{Mutex, RwLock};

use crate::env::Env;
use crate::error::{Error, Result};
use crate::key::{KeyOrder, Seq};
use crate::log::{ManifestEnd, SyncGroup};
use crate::merge::pressure::Pressure;
use crate::merge::weight::Scale;
use crate::options::{Compression, Options};
use crate::purge::PurgeQueue;
use crate::read::SuperVersion;
use crate::segments::Segments;
use crate::snapshot::SnapshotList;
use crate::util::Padded;
use crate::version::{Manifest, State};

mod counters;
pub(crate) mod install;
#[cfg(all(test, esker_models))]
mod models;
mod published;
mod signal;
mod writer;

pub(crate) use counters::Counters;
pub(crate) use published::{Published, Visible};
pub(crate) use signal::Signal;
pub(crate) use writer::{NewSegment, Writer};

/// The file whose lock makes a store one process's.
pub(crate) const LOCK: &str = "LOCK";
/// The name of the keyspace that every store has.
pub(crate) const DEFAULT_KEYSPACE: &str = "default";

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
    pub keyspaces: RwLock<Names>,
    /// Views of dropped keyspaces, as long as a reader may hold one.
    pub dropped_views: Mutex<Vec<Weak<SuperVersion>>>,
    pub control: Mutex<Control>,
    /// Held by whoever merges.
    pub jobs: Mutex<()>,
    pub segments: Segments,
    pub sync: SyncGroup,
    pub snapshots: Arc<SnapshotList>,
    /// Whether the worker is flushing in the middle of a merge.
    pub nested: AtomicBool,
    pub purge: Arc<PurgeQueue>,
    pub pressure: Pressure,
    pub signal: Signal,
    pub counters: Counters,
    pub next_file: AtomicU64,
    /// Number of the active segment; changed by the writer.
    pub active: AtomicU64,
    /// Were a segment of the log up to this one gone, a seal or the manifest would tell.
    pub witnessed: AtomicU64,
    /// Segments of the log below this one were given up after a failed sync: what they hold may not
    /// be on the device, so no table may point into them any more.
    pub distrusted: AtomicU64,
    /// Whether the log holds a frame that memory does not: only another open puts that right.
    pub unindexed: AtomicBool,
    pub closed: AtomicBool,
    /// Whether there is any reason against writing: asked before every write, so one plain load.
    not_writable: AtomicBool,
    halted: ArcSwapOption<Error>,
    pub lock: Arc<dyn Any + Send + Sync>,
}

/// The manifest and what it says.
pub(crate) enum Control {
    /// Open for writing.
    Writable(Manifest),
    /// Open for reading only: what the manifest said.
    ReadOnly(State),
}

impl Control {
    pub(crate) fn state(&self) -> &State {
        match self {
            Control::Writable(manifest) => manifest.state(),
            Control::ReadOnly(state) => state,
        }
    }

    /// Puts down how long the manifest is, so that it is noticed when it loses its end.
    pub(crate) fn tell_manifest_length(&self) -> Result<()> {
        match self {
            Control::Writable(m) => m.tell_length(),
            Control::ReadOnly(_) => Ok(()),
        }
    }

    /// How long the manifest is.
    pub(crate) fn manifest_end(&self) -> ManifestEnd {
        match self {
            Control::Writable(m) => ManifestEnd { number: m.number(), end: m.len() },
            Control::ReadOnly(_) => ManifestEnd::default(),
        }
    }

    pub(crate) fn manifest_mut(&mut self) -> Option<&mut Manifest> {
        match self {
            Control::Writable(manifest) => Some(manifest),
            Control::ReadOnly(_) => None,
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
    pub separate_values_from: usize,
    /// What readers read.
    pub view: Published<SuperVersion>,
    pub dropped: AtomicBool,
    /// Ids of the runs that a merge is reading: a flush in between must leave them alone.
    pub busy_runs: Mutex<Vec<u64>>,
}

impl KeyspaceState {
    /// A keyspace whose readers see `view`.
    pub(crate) fn new(
        id: u32,
        name: String,
        order: KeyOrder,
        compression: Compression,
        separate_values_from: usize,
        view: SuperVersion,
    ) -> KeyspaceState {
        KeyspaceState {
            id,
            name,
            order,
            compression,
            separate_values_from,
            view: Published::new(view),
            dropped: AtomicBool::new(false),
            busy_runs: Mutex::default(),
        }
    }

    /// Publishes what `next` makes of the present view.
    pub(crate) fn publish(&self, next: impl FnMut(&Arc<SuperVersion>) -> SuperVersion) {
        self.view.publish(next);
    }

    /// The views before the present one that a reader may hold.
    pub(crate) fn old_views(&self) -> Vec<Weak<SuperVersion>> {
        self.view.before()
    }

    /// What an entry weighs as debt.
    pub(crate) fn weigh(&self, scale: Scale, key: &[u8], value: &[u8]) -> u64 {
        let (key, value) = (key.len() as u64, value.len() as u64);
        match value < self.separate_values_from as u64 {
            true => scale.weigh(key + value, 0),
            false => scale.weigh(key, value),
        }
    }

    pub(crate) fn check_alive(&self) -> Result<()> {
        if self.dropped.load(Ordering::Relaxed) {
            return Err(Error::UnknownKeyspace { name: self.name.clone() });
        }
        Ok(())
    }
}

impl Store {
    #[expect(clippy::too_many_arguments, reason = "called once, by recovery")]
    pub(crate) fn new(
        env: Arc<dyn Env>,
        dir: PathBuf,
        options: Options,
        lock: Arc<dyn Any + Send + Sync>,
        writer: Writer,
        control: Control,
        segments: Segments,
        sync: SyncGroup,
        purge: Arc<PurgeQueue>,
        last_seq: Seq,
        next_file: u64,
    ) -> Store {
        let pressure = Pressure::new(&options);
        let read_only = options.read_only;
        let active = writer.active_number();
        Store {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            env,
            dir,
            options,
            visible: Padded(Visible::new(last_seq)),
            writer: Mutex::new(writer),
            spare: Mutex::default(),
            keyspaces: RwLock::default(),
            dropped_views: Mutex::default(),
            control: Mutex::new(control),
            jobs: Mutex::new(()),
            segments,
            sync,
            snapshots: Arc::default(),
            nested: AtomicBool::new(false),
            purge,
            pressure,
            signal: Signal::default(),
            counters: Counters::default(),
            next_file: AtomicU64::new(next_file),
            active: AtomicU64::new(active),
            witnessed: AtomicU64::new(0),
            distrusted: AtomicU64::new(0),
            unindexed: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            not_writable: AtomicBool::new(read_only),
            halted: ArcSwapOption::empty(),
            lock,
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

    /// A number for a new file.
    pub(crate) fn new_file_number(&self) -> u64 {
        self.next_file.fetch_add(1, Ordering::Relaxed)
    }

    /// Stops all writes until `resume`. The first cause stays.
    pub(crate) fn halt(&self, cause: Error) {
        let cause = match cause {
            Error::Halted { cause } => cause,
            other => Arc::new(other),
        };
        self.halted.rcu(|present| match present {
            Some(p) => Some(Arc::clone(p)),
            None => Some(Arc::clone(&cause)),
        });
        self.not_writable.store(true, Ordering::Release);
        self.signal.notify_done();
    }

    pub(crate) fn clear_halt(&self) {
        self.halted.store(None);
        self.not_writable.store(
            self.options.read_only || self.closed.load(Ordering::Acquire),
            Ordering::Release,
        );
    }

    /// No reads or writes from here on.
    pub(crate) fn set_closed(&self) {
        self.closed.store(true, Ordering::Release);
        self.not_writable.store(true, Ordering::Release);
    }

    /// The cause for which writes are stopped.
    pub(crate) fn halt_cause(&self) -> Option<Arc<Error>> {
        self.halted.load_full()
    }

    /// Whether writes are possible at all.
    #[inline]
    pub(crate) fn check_writable(&self) -> Result<()> {
        if self.not_writable.load(Ordering::Relaxed) {
            return Err(self.why_not_writable());
        }
        Ok(())
    }

    #[cold]
    fn why_not_writable(&self) -> Error {
        if self.closed.load(Ordering::Relaxed) {
            Error::Closed
        } else if self.options.read_only {
            Error::ReadOnly
        } else {
            match self.halt_cause() {
                Some(cause) => Error::Halted { cause },
                None => Error::Closed,
            }
        }
    }

    /// A view of a keyspace and the sequence to read it at, that belong together: the view holds
    /// every version that a reader at the sequence can see, and no entry up to it is missing.
    pub(crate) fn consistent_view(&self, ks: &KeyspaceState) -> (Arc<SuperVersion>, Seq) {
        ks.view.consistent(&self.visible.0)
    }

    /// The views of all keyspaces before the present ones that a reader may hold, those of dropped
    /// keyspaces included.
    pub(crate) fn old_views(&self) -> Vec<Weak<SuperVersion>> {
        let mut views = {
            let mut dropped = self.dropped_views.lock();
            dropped.retain(|v| v.strong_count() > 0);
            dropped.clone()
        };
        views.extend(self.all_keyspaces().iter().flat_map(|ks| ks.old_views()));
        views
    }

    /// Bytes that the store uses of its budget: indexes of memtables and open tables.
    pub(crate) fn memory_used(&self) -> u64 {
        let mut bytes = 0;
        for ks in self.all_keyspaces() {
            let view = ks.view.load();
            bytes += view.memtables.iter().map(|m| m.memory() as u64).sum::<u64>();
            bytes += view
                .runs
                .iter()
                .flat_map(|r| r.tables())
                .map(|t| t.table.memory() as u64)
                .sum::<u64>();
        }
        bytes
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Store({})", self.dir.display())
    }
}

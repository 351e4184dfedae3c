//! Opening: from the files of a directory to a running store.
//!
//! The manifest says which tables there are and where the log starts; the log is read from there on
//! and its records are indexed where they lie, without rewriting any. What no manifest names is
//! left over from a crash and removed.

use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::env::{Env, create_dir_durably};
use crate::error::{Error, Result};
use crate::key::{KeyOrder, Seq, key_hash};
use crate::log::{self, End, Role, Segment, SyncGroup, Walk};
use crate::memtable::Memtable;
use crate::options::{Compression, Options};
use crate::purge::PurgeQueue;
use crate::read::SuperVersion;
use crate::segments::Segments;
use crate::store::{Control, DEFAULT_KEYSPACE, KeyspaceState, LOCK, Store, Writer};
use crate::table;
use crate::version::{self, Change, Edit, KeyspaceVersion, Loaded, Manifest, Orders, State};

/// Opens the store in `dir`, or makes one.
pub(crate) fn open(env: Arc<dyn Env>, dir: &Path, options: Options) -> Result<Store> {
    options.validate()?;
    let lock = take_lock(&env, dir, &options)?;
    let orders = orders_of(&options);
    let manifest = match version::load(&*env, dir, &orders) {
        Ok(_) if options.error_if_exists => {
            return Err(Error::StoreExists { path: dir.to_path_buf() });
        }
        Ok(loaded) => Found::Store(Box::new(loaded)),
        Err(Error::NotAStore { .. }) if options.create_if_missing && !options.read_only => {
            Found::Nothing
        }
        Err(e) => return Err(e),
    };
    // Behind a torn manifest may lie the names of tables that are there: nothing is removed then.
    let keep_all = matches!(&manifest, Found::Store(loaded) if loaded.torn.is_some());
    let (control, fresh) = match manifest {
        Found::Nothing => (create(&env, dir, &options, orders)?, true),
        Found::Store(loaded) if options.read_only => (Control::ReadOnly(loaded.state), false),
        Found::Store(loaded) => {
            (Control::Writable(Manifest::open(Arc::clone(&env), dir, *loaded)?), false)
        }
    };
    check_orders(control.state(), &options)?;
    let recovery = Recovery::new(env, dir.to_path_buf(), options, lock, control)?;
    recovery.finish(fresh, keep_all)
}

enum Found {
    Nothing,
    Store(Box<Loaded>),
}

fn take_lock(
    env: &Arc<dyn Env>,
    dir: &Path,
    options: &Options,
) -> Result<Arc<dyn Any + Send + Sync>> {
    let there = env.exists(dir).map_err(|e| Error::io("open", dir, e))?;
    if !there {
        if options.read_only || !options.create_if_missing {
            return Err(Error::NotAStore { path: dir.to_path_buf() });
        }
        create_dir_durably(&**env, dir).map_err(|e| Error::io("create", dir, e))?;
    }
    if !options.create_if_missing || options.read_only {
        // Do not leave a lock file in a directory that is none of ours.
        let names = env.list(dir).map_err(|e| Error::io("list", dir, e))?;
        let ours = |n: &String| n == version::CURRENT || version::parse_manifest_name(n).is_some();
        if !names.iter().any(ours) {
            return Err(Error::NotAStore { path: dir.to_path_buf() });
        }
    }
    let path = dir.join(LOCK);
    match env.lock(&path) {
        Ok(guard) => Ok(Arc::new(Mutex::new(guard))),
        Err(e) if e.kind() == io::ErrorKind::WouldBlock => Err(Error::Locked { path }),
        // A medium that cannot be written has no writers to fear.
        Err(e)
            if options.read_only
                && matches!(
                    e.kind(),
                    io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied
                ) =>
        {
            Ok(Arc::new(()))
        }
        Err(e) => Err(Error::io("lock", &path, e)),
    }
}

fn orders_of(options: &Options) -> Orders {
    let given = options.default_order.iter().chain(options.orders.iter().map(|(_, o)| o));
    given.fold(Orders::default(), |orders, o| orders.with(o.clone()))
}

fn create(env: &Arc<dyn Env>, dir: &Path, options: &Options, orders: Orders) -> Result<Control> {
    let order = options.default_order.clone().unwrap_or_default();
    let state = State::new(orders).apply(&Edit::from(vec![Change::AddKeyspace {
        id: 0,
        name: DEFAULT_KEYSPACE.to_string(),
        order_name: order.name().to_string(),
        compression: None,
        separate_values_from: None,
    }]));
    let state = state.map_err(|e| Error::corrupt(dir, 0, e.to_string()))?;
    Ok(Control::Writable(Manifest::create(Arc::clone(env), dir, state)?))
}

/// Every keyspace's comparator is known, and is the one that was given.
fn check_orders(state: &State, options: &Options) -> Result<()> {
    for ks in state.keyspaces.values() {
        let named = options.orders.iter().rev().find(|(name, _)| *name == ks.name).map(|(_, o)| o);
        let given = named.or(match ks.id {
            0 => options.default_order.as_ref(),
            _ => None,
        });
        let fits = given.is_none_or(|o| o.name() == ks.order_name);
        if ks.order.is_none() || !fits {
            return Err(Error::ComparatorMismatch {
                keyspace: ks.name.clone(),
                stored: ks.order_name.clone(),
                given: given.map_or("none", KeyOrder::name).to_string(),
            });
        }
    }
    Ok(())
}

/// What opening has found so far.
struct Recovery {
    env: Arc<dyn Env>,
    dir: PathBuf,
    options: Options,
    lock: Arc<dyn Any + Send + Sync>,
    control: Control,
    segments: Segments,
    purge: Arc<PurgeQueue>,
    sync: SyncGroup,
    /// Names in the directory.
    names: Vec<String>,
    last_seq: Seq,
    next_file: u64,
    /// Sealed memtables by keyspace, newest first.
    memtables: HashMap<u32, Vec<Arc<Memtable>>>,
}

impl Recovery {
    fn new(
        env: Arc<dyn Env>,
        dir: PathBuf,
        options: Options,
        lock: Arc<dyn Any + Send + Sync>,
        control: Control,
    ) -> Result<Recovery> {
        let names = env.list(&dir).map_err(|e| Error::io("list", &dir, e))?;
        let numbers = names
            .iter()
            .filter_map(|n| log::parse_file_name(n).or_else(|| table::parse_file_name(n)));
        let state = control.state();
        let next_file = numbers.map(|n| n + 1).max().unwrap_or(1).max(state.next_file);
        let purge = Arc::new(PurgeQueue::default());
        Ok(Recovery {
            segments: Segments::new(Arc::clone(&env), dir.clone(), Arc::clone(&purge)),
            sync: SyncGroup::new(Arc::clone(&env), dir.clone()),
            last_seq: state.last_seq,
            memtables: HashMap::new(),
            env,
            dir,
            options,
            lock,
            control,
            purge,
            names,
            next_file,
        })
    }

    fn finish(mut self, fresh: bool, keep_all: bool) -> Result<Store> {
        if !fresh {
            self.open_value_segments()?;
            self.replay()?;
        }
        if !self.options.read_only && !keep_all {
            self.remove_leftovers();
        }
        let Recovery {
            env,
            dir,
            options,
            lock,
            control,
            segments,
            purge,
            sync,
            last_seq,
            next_file,
            ..
        } = self;
        let writer = Writer::new(last_seq);
        let read_only = options.read_only;
        let store = Store::new(
            env, dir, options, lock, writer, control, segments, sync, purge, last_seq, next_file,
        );
        add_keyspaces(&store, self.memtables)?;
        if store.options.paranoid {
            crate::check::check_open(&store)?;
        }
        if !read_only {
            start_log(&store)?;
        }
        Ok(store)
    }

    /// Segments below the log's start that tables still point into.
    fn open_value_segments(&mut self) -> Result<()> {
        let state = self.control.state();
        for number in state.segment_references().into_keys() {
            if number < state.log_start {
                let segment = Segment::open(&self.env, &self.dir, number, !self.options.read_only)?;
                self.segments.add_values(Arc::new(segment));
            }
        }
        Ok(())
    }

    /// Indexes what the log holds.
    fn replay(&mut self) -> Result<()> {
        let log_start = self.control.state().log_start;
        let mut numbers: Vec<u64> = self
            .names
            .iter()
            .filter_map(|n| log::parse_file_name(n))
            .filter(|n| *n >= log_start)
            .collect();
        numbers.sort_unstable();
        let mut walk =
            if self.options.paranoid { Walk::thorough(log_start) } else { Walk::new(log_start) };
        let mut torn = None;
        let mut useless = Vec::new();
        for number in numbers {
            let segment = self.open_log_segment(number)?;
            let role = walk.meet(number, segment.as_ref().map(|s| s.frames()));
            match (role, segment) {
                // What follows a tear was never promised to survive a power cut: had any of it been
                // synced, so had been all before it.
                (Role::Behind { has_frames: true }, _) if self.options.paranoid => {
                    return Err(self.torn_inside(&walk));
                }
                (Role::Unused | Role::Behind { .. }, _) | (_, None) => useless.push(number),
                (Role::Astray { first, expected }, Some(segment)) => {
                    let what = format!(
                        "the log goes on at sequence {first} where {expected} should follow; a segment is missing"
                    );
                    return Err(Error::corrupt(segment.path(), 0, what));
                }
                (Role::Part, Some(segment)) => {
                    let end = self.replay_segment(&segment)?;
                    self.segments_add(&segment);
                    walk.leave(number, end);
                    match end {
                        End::Clean { last_seq, .. } => self.last_seq = self.last_seq.max(last_seq),
                        End::Torn { offset, .. } => {
                            if walk.goes_on_behind(segment.frames()) {
                                return Err(self.torn_inside(&walk));
                            }
                            torn = Some((segment, offset));
                        }
                    }
                }
            }
        }
        self.end_log(torn, &useless)
    }

    /// Opens a segment of the log; `None` when it was made and never used.
    fn open_log_segment(&self, number: u64) -> Result<Option<Arc<Segment>>> {
        match Segment::open(&self.env, &self.dir, number, !self.options.read_only) {
            Ok(segment) => Ok(Some(Arc::new(segment))),
            Err(e) => {
                let unused = Segment::never_used(&self.env, &self.dir, number).unwrap_or(false);
                if unused { Ok(None) } else { Err(e) }
            }
        }
    }

    fn torn_inside(&self, walk: &Walk) -> Error {
        let (path, offset, why) = match walk.tear() {
            Some(t) => (self.dir.join(log::file_name(t.segment)), t.offset, t.why.to_string()),
            None => (self.dir.clone(), 0, "the log is torn".to_string()),
        };
        Error::corrupt(&path, offset, format!("{why}, and the log goes on after it"))
    }

    /// Ends the log where it was torn. Files behind are gone for good before that, lest a crash in
    /// between leaves them to follow a segment that looks complete.
    fn end_log(&mut self, torn: Option<(Arc<Segment>, u64)>, useless: &[u64]) -> Result<()> {
        if self.options.read_only {
            return Ok(());
        }
        for number in useless {
            self.remove_segment(*number);
        }
        if let Some((segment, offset)) = torn {
            if !useless.is_empty() {
                self.env.sync_dir(&self.dir).map_err(|e| Error::io("sync", &self.dir, e))?;
            }
            segment.seal_recovered(offset, self.last_seq)?;
        }
        Ok(())
    }

    fn segments_add(&mut self, segment: &Arc<Segment>) {
        self.segments.add(Arc::clone(segment), true);
        for (ks, list) in &self.memtables {
            if let Some(m) = list.first().filter(|m| m.segment().number() == segment.number()) {
                self.segments.note_memtable(segment.number(), *ks, m);
            }
        }
        if !self.options.read_only {
            self.sync.rotate(Arc::clone(segment), false);
        }
    }

    fn replay_segment(&mut self, segment: &Arc<Segment>) -> Result<End> {
        let number = segment.number();
        let state = self.control.state();
        // Keyspaces that still miss this segment's entries; records of others were flushed, or the
        // keyspace was dropped.
        let wanted: BTreeMap<u32, KeyOrder> = state
            .keyspaces
            .values()
            .filter(|ks| ks.flushed < number)
            .filter_map(|ks| Some((ks.id, ks.order.clone()?)))
            .collect();
        let mut found: HashMap<u32, Arc<Memtable>> = HashMap::new();
        let mut frames = segment.frames();
        for frame in frames.by_ref() {
            for (r, record) in frame.records() {
                let Some(order) = wanted.get(&record.keyspace) else { continue };
                let memtable = found
                    .entry(record.keyspace)
                    .or_insert_with(|| Arc::new(Memtable::new(Arc::clone(segment), order.clone())));
                let len = record.key.len() + record.value.len();
                memtable.insert(r, record.key, key_hash(record.key), frame.seq, record.kind, len);
            }
            self.last_seq = self.last_seq.max(frame.seq);
        }
        for (ks, memtable) in found {
            self.memtables.entry(ks).or_default().insert(0, memtable);
        }
        Ok(frames.finish())
    }

    fn remove_segment(&mut self, number: u64) {
        let path = self.dir.join(log::file_name(number));
        drop(self.env.remove(&path));
        self.names.retain(|n| log::parse_file_name(n) != Some(number));
    }

    /// Removes what a crash left: tables and segments that nothing names.
    fn remove_leftovers(&self) {
        let state = self.control.state();
        let references = state.segment_references();
        let stale = |name: &String| {
            if let Some(n) = table::parse_file_name(name) {
                return !state.has_table(n);
            }
            if let Some(n) = log::parse_file_name(name) {
                return n < state.log_start && !references.contains_key(&n);
            }
            name == version::CURRENT_TEMP
        };
        let stale: Vec<String> = self.names.iter().filter(|n| stale(n)).cloned().collect();
        crate::purge::remove_files(&*self.env, &self.dir, &stale);
    }
}

/// Opens all tables and publishes the first views.
fn add_keyspaces(store: &Store, mut memtables: HashMap<u32, Vec<Arc<Memtable>>>) -> Result<()> {
    let described: Vec<_> = store.control.lock().state().keyspaces.values().cloned().collect();
    // Of all keyspaces at once: a segment that has no pointers yet counts as one without any.
    let tables = described.iter().flat_map(|ks| ks.version.tables());
    store.segments.account(tables.flat_map(|t| &t.references), std::iter::empty());
    for ks in described {
        let Some(order) = ks.order.clone() else { continue };
        let state =
            new_keyspace(store, ks.id, &ks.name, order, ks.compression, ks.separate_values_from);
        let mut tables = Vec::new();
        for run in ks.version.runs() {
            for meta in run.tables() {
                tables.push((run.id(), store.open_table(&state, (**meta).clone())?));
            }
        }
        let version = KeyspaceVersion::default()
            .edit(Some(&state.order), &[], tables)
            .map_err(|e| Error::corrupt(&store.dir, 0, e.to_string()))?;
        let mut view = SuperVersion::new(Arc::clone(&store.lock), version);
        view.memtables = memtables.remove(&ks.id).unwrap_or_default();
        state.view.store(Arc::new(view));
        store.keyspaces.write().insert(Arc::new(state));
    }
    Ok(())
}

/// A keyspace without tables or memtables.
pub(crate) fn new_keyspace(
    store: &Store,
    id: u32,
    name: &str,
    order: KeyOrder,
    compression: Option<u8>,
    separate_values_from: Option<u64>,
) -> KeyspaceState {
    let compression =
        compression.and_then(Compression::from_u8).unwrap_or(store.options.compression);
    let view = SuperVersion::new(Arc::clone(&store.lock), KeyspaceVersion::default());
    let separate_values_from = separate_values_from
        .map_or(store.options.separate_values_from, |n| usize::try_from(n).unwrap_or(usize::MAX));
    KeyspaceState::new(id, name.to_string(), order, compression, separate_values_from, view)
}

/// Makes the first active segment. The end of a clean close is durable before it.
fn start_log(store: &Store) -> Result<()> {
    {
        let mut control = store.control.lock();
        if control.state().clean_close.is_some() {
            let number = store.next_file.load(std::sync::atomic::Ordering::Relaxed);
            let changes = vec![Change::Reopened, Change::NextFile { number }];
            store.commit(&mut control, Edit::from(changes))?;
        }
    }
    let rotated = store.rotate(&mut store.writer.lock(), 0);
    // The manifest names the segment that the log starts with, so that it is missed if it is gone.
    rotated.and_then(|()| store.advance_log())
}

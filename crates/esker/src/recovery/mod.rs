//! Opening: from the files of a directory to a running store.
//!
//! The manifest says which tables there are and where the log starts; the log is read from there on
//! and its records are indexed where they lie, without rewriting any. What no manifest names is
//! left over from a crash and removed.

mod replay;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::comparator;
use crate::destroy;
use crate::env::{Env, LockMode, create_dir_durably};
use crate::error::{Error, Result};
use crate::filename::{self, FileKind};
use crate::key::KeyOrder;
use crate::keyspace_changes::new_keyspace;
use crate::memtable::Memtable;
use crate::obsolete_files::ObsoleteFiles;
use crate::options::{Compression, Options};
use crate::read::SuperVersion;
use crate::store::{DEFAULT_KEYSPACE, DirLock, Store, StoreParts, VersionSet, lock_dir, patiently};
use crate::util::{MAX_LAST_SEQ, MAX_NEXT_FILE};
use crate::verify::list_store;
use crate::version::{self, Change, KeyspaceVersion, Manifest, Orders, State, VersionEdit};
use crate::wal::manager::SegmentManager;
use crate::wal::{self, Position, Segment, SyncGroup};

/// Opens the store in `dir`, or makes one.
pub(crate) fn open(env: Arc<dyn Env>, dir: &Path, options: Options) -> Result<Store> {
    options.validate()?;
    // Until it is open, what a panic leaves half done is dropped.
    comparator::catch(|| open_checked(env, dir, options))
}

fn open_checked(env: Arc<dyn Env>, dir: &Path, options: Options) -> Result<Store> {
    let orders = orders_of(&options)?;
    let lock = take_lock(&env, dir, &options)?;
    // Behind a torn manifest may lie the names of tables that are there: nothing is removed then.
    let (version_set, fresh, keep_all) = match version::load(&*env, dir, &orders) {
        Ok(_) if options.error_if_exists => {
            return Err(Error::StoreExists { path: dir.to_path_buf() });
        }
        Ok(loaded) => {
            let torn = loaded.torn.is_some();
            let version_set = match options.read_only {
                true => VersionSet::ReadOnly(loaded.state),
                false => VersionSet::Writable(Manifest::open(Arc::clone(&env), dir, loaded)?),
            };
            (version_set, false, torn)
        }
        Err(Error::NotAStore { .. }) if options.create_if_missing && !options.read_only => {
            // Of one that was being destroyed, or not yet made.
            destroy::remove_rest(&*env, dir)?;
            (create(&env, dir, orders.clone())?, true, false)
        }
        Err(e) => return Err(e),
    };
    check_orders(version_set.state(), &orders)?;
    check_compression(version_set.state(), &options)?;
    let recovery = Recovery::new(env, dir.to_path_buf(), options, lock, version_set)?;
    recovery.finish(fresh, keep_all)
}

fn take_lock(env: &Arc<dyn Env>, dir: &Path, options: &Options) -> Result<DirLock> {
    let mode = if options.read_only { LockMode::Shared } else { LockMode::Exclusive };
    let lock = patiently(&**env, || {
        find_dir(env, dir, options)?;
        lock_dir(&**env, dir, mode)
    })?;
    let why = "it was removed each time before it could be locked; try again";
    lock.ok_or_else(|| Error::io("lock", dir, std::io::Error::other(why)))
}

/// Makes the directory if it is missing and may be made.
fn find_dir(env: &Arc<dyn Env>, dir: &Path, options: &Options) -> Result<()> {
    version::refuse_foreign(&**env, dir)?;
    if env.leads_nowhere(dir).map_err(|e| Error::io("open", dir, e))? {
        let why = std::io::Error::new(std::io::ErrorKind::NotFound, "a link that leads nowhere");
        return Err(Error::io("open", dir, why));
    }
    if options.create_if_missing && !options.read_only {
        return match env.exists(dir).map_err(|e| Error::io("open", dir, e))? {
            true => Ok(()),
            false => create_dir_durably(&**env, dir).map_err(|e| Error::io("create", dir, e)),
        };
    }
    // Do not leave a lock file in a directory that is none of ours.
    let ours =
        |n: &String| matches!(filename::parse(n), Some(FileKind::Current | FileKind::Manifest));
    match list_store(&**env, dir)?.iter().any(ours) {
        true => Ok(()),
        false => Err(version::no_current(&**env, dir)?),
    }
}

pub(crate) fn orders_of(options: &Options) -> Result<Orders> {
    let mut orders = Orders::default();
    if let Some(order) = &options.comparator {
        orders.give(DEFAULT_KEYSPACE, order.checked_name("comparator")?, order.clone());
    }
    for (keyspace, order) in &options.keyspace_comparators {
        orders.give(keyspace, order.checked_name("keyspace_comparator")?, order.clone());
    }
    Ok(orders)
}

fn create(env: &Arc<dyn Env>, dir: &Path, orders: Orders) -> Result<VersionSet> {
    let bytewise = || KeyOrder::Bytewise.name().to_string();
    let order_name = orders.given(DEFAULT_KEYSPACE).map_or_else(bytewise, |(name, _)| name.clone());
    let state = State::new(orders).apply(&VersionEdit::from(vec![Change::AddKeyspace {
        id: 0,
        name: DEFAULT_KEYSPACE.to_string(),
        order_name,
        compression: None,
        blob_threshold: None,
    }]));
    let mut state = state.map_err(|e| Error::corrupt(dir, 0, e.to_string()))?;
    state.close(0);
    // The directory may be what a first attempt left behind, which did not get so far as to sync it.
    create_dir_durably(&**env, dir).map_err(|e| Error::io("sync the parent of", dir, e))?;
    Ok(VersionSet::Writable(Manifest::create(Arc::clone(env), dir, state)?))
}

/// Every keyspace's comparator is known, and is the one that was given.
fn check_orders(state: &State, orders: &Orders) -> Result<()> {
    for ks in state.keyspaces.values() {
        let (keyspace, stored) = (ks.name.clone(), ks.order_name.clone());
        match orders.given(&ks.name) {
            Some((given, _)) if *given != stored => {
                let given = given.clone();
                return Err(Error::ComparatorMismatch { keyspace, stored, given });
            }
            _ if ks.order.is_none() => {
                return Err(Error::ComparatorMissing { keyspace, comparator: stored });
            }
            _ => {}
        }
    }
    Ok(())
}

/// This build can write what every keyspace is kept in.
fn check_compression(state: &State, options: &Options) -> Result<()> {
    for ks in state.keyspaces.values().filter(|_| !options.read_only) {
        let Some(number) = ks.compression else { continue };
        let compression = match Compression::from_u8(number) {
            Some(c) if c.check_built_in().is_ok() => continue,
            Some(c) => c.name().to_string(),
            None => format!("number {number}"),
        };
        return Err(Error::UnsupportedCompression { keyspace: ks.name.clone(), compression });
    }
    Ok(())
}

/// What opening has found so far.
struct Recovery {
    parts: StoreParts,
    /// Names in the directory.
    names: Vec<String>,
    /// Sealed memtables by keyspace, newest first.
    memtables: HashMap<u32, Vec<Arc<Memtable>>>,
    /// The log's last segment, not sealed, and where its frames end.
    open_end: Option<(Arc<Segment>, u64)>,
    /// The segment that the log starts with, if a crash left it without a header.
    unused_start: Option<u64>,
}

/// Why a store with such numbers cannot be written to, and what to do.
#[cold]
fn no_numbers_left(
    dir: &Path,
    named: u64,
    newest: Option<&String>,
    version_set: &VersionSet,
) -> Error {
    match newest {
        Some(name) if named >= MAX_NEXT_FILE && named > version_set.state().next_file => {
            let what = "its number leaves none for new files, so it is none of this store's: move it \
                        out of the directory, and open again";
            Error::corrupt(&dir.join(name), 0, what)
        }
        _ => {
            let manifest = dir.join(filename::manifest(version_set.manifest_number()));
            let what = format!(
                "the next file would have number {}, which leaves none for new files, and no store \
                 makes so many; reading works (read_only), and a repair counts anew",
                version_set.state().next_file
            );
            Error::corrupt(&manifest, 0, what)
        }
    }
}

/// Why a store with such sequences cannot be written to, and what to do.
#[cold]
fn no_sequences_left(parts: &StoreParts) -> Error {
    let manifest = parts.dir.join(filename::manifest(parts.version_set.manifest_number()));
    let what = format!(
        "the last sequence is {}, which leaves none for new entries, and no store comes so far; reading \
         works (read_only): copy what there is into a new store",
        parts.last_seq
    );
    Error::corrupt(&manifest, 0, what)
}

impl Recovery {
    fn new(
        env: Arc<dyn Env>,
        dir: PathBuf,
        options: Options,
        lock: DirLock,
        version_set: VersionSet,
    ) -> Result<Recovery> {
        let names = env.list(&dir).map_err(|e| Error::io("list", &dir, e))?;
        let newest = names.iter().filter_map(|n| Some((filename::file_number(n)?, n))).max();
        let named = newest.map_or(1, |(n, _)| n + 1);
        let next_file = named.max(version_set.state().next_file);
        if next_file >= MAX_NEXT_FILE && !options.read_only {
            return Err(no_numbers_left(&dir, named, newest.map(|(_, name)| name), &version_set));
        }
        let obsolete = Arc::new(ObsoleteFiles::default());
        let parts = StoreParts {
            segments: SegmentManager::new(
                Arc::clone(&env),
                dir.clone(),
                Arc::clone(&obsolete),
                version_set.state().may_repeat_below,
            ),
            sync: SyncGroup::new(Arc::clone(&env), version_set.dir_sync(&env, &dir)),
            last_seq: version_set.state().last_seq,
            env,
            dir,
            options,
            lock,
            version_set,
            obsolete,
            next_file,
        };
        Ok(Recovery { parts, names, memtables: HashMap::new(), open_end: None, unused_start: None })
    }

    fn finish(mut self, fresh: bool, keep_all: bool) -> Result<Store> {
        if !fresh {
            self.open_value_segments()?;
            self.replay()?;
        }
        if self.parts.last_seq > MAX_LAST_SEQ && !self.parts.options.read_only {
            return Err(no_sequences_left(&self.parts));
        }
        let stale = match self.parts.options.read_only || keep_all {
            true => Vec::new(),
            false => self.leftovers(),
        };
        let store = Store::new(self.parts);
        add_keyspaces(&store, self.memtables)?;
        if store.options.paranoid {
            crate::verify::check_open(&store)?;
        }
        // Only a store that opens loses these files.
        crate::obsolete_files::remove_files(&*store.env, &store.dir, &stale);
        if !store.options.read_only {
            start_log(&store, self.open_end)?;
            let unused: Vec<String> =
                self.unused_start.map(filename::segment).into_iter().collect();
            crate::obsolete_files::remove_files(&*store.env, &store.dir, &unused);
        }
        Ok(store)
    }

    /// Segments below the log's start that tables still point into.
    fn open_value_segments(&mut self) -> Result<()> {
        let parts = &self.parts;
        let state = parts.version_set.state();
        for number in state.value_segments() {
            if number < state.log_start {
                let writable = !parts.options.read_only;
                let segment = Segment::open(&parts.env, &parts.dir, number, writable)?;
                parts.segments.add_values(Arc::new(segment));
            }
        }
        Ok(())
    }

    fn remove_segment(&mut self, number: u64) {
        let path = self.parts.dir.join(filename::segment(number));
        drop(self.parts.env.remove(&path));
        self.names.retain(|n| filename::segment_number(n) != Some(number));
    }

    /// What a crash left: tables and segments that nothing names.
    fn leftovers(&self) -> Vec<String> {
        let state = self.parts.version_set.state();
        let with_values = state.value_segments();
        let stale = |name: &String| {
            if let Some(n) = filename::table_number(name) {
                return !state.has_table(n);
            }
            if let Some(n) = filename::segment_number(name) {
                return n < state.log_start && !with_values.contains(&n);
            }
            name == filename::CURRENT_TEMP
        };
        self.names.iter().filter(|n| stale(n)).cloned().collect()
    }
}

/// Opens all tables and publishes the first super versions.
fn add_keyspaces(store: &Store, mut memtables: HashMap<u32, Vec<Arc<Memtable>>>) -> Result<()> {
    let described: Vec<_> = store.version_set.lock().state().keyspaces.values().cloned().collect();
    // Of all keyspaces at once: a segment that has no pointers yet counts as one without any.
    let tables = described.iter().flat_map(|ks| ks.version.tables());
    store.segments.account(tables.flat_map(|t| &t.references), std::iter::empty());
    for ks in described {
        let Some(order) = ks.order.clone() else { continue };
        let state = new_keyspace(store, ks.id, &ks.name, order, ks.compression, ks.blob_threshold)?;
        let mut tables = Vec::new();
        for run in ks.version.runs() {
            for meta in run.tables() {
                tables.push((run.id(), Arc::new(store.open_table(&state, (**meta).clone())?)));
            }
        }
        let version = KeyspaceVersion::default()
            .edit(Some(&state.order), &[], tables)
            .map_err(|e| Error::corrupt(&store.dir, 0, e.to_string()))?;
        let mut super_version = SuperVersion::new(store.hold_dir()?, version);
        super_version.memtables = memtables.remove(&ks.id).unwrap_or_default();
        state.publish(|_| super_version.clone());
        store.keyspaces.write().insert(Arc::new(state));
    }
    Ok(())
}

/// Makes the first active segment. The one that the log ended in is sealed and leads to it; only then
/// does the manifest say that the store is open, and names the segment that the log starts with.
fn start_log(store: &Store, open_end: Option<(Arc<Segment>, u64)>) -> Result<()> {
    let mut w = store.writer.lock();
    let next = store.first_segment()?;
    let number = next.segment.number();
    if let Some((last, end)) = open_end {
        last.seal_recovered(end, w.last_seq, number)?;
        if end == wal::FIRST_FRAME {
            // Lives that end before a flush, or on a full disk on which there is none, leave one each.
            drop(last.punch_unused());
        }
    }
    store.go_on_in(&mut w, next);
    drop(w);
    let mut version_set = store.version_set.lock();
    let mut changes = vec![Change::NextFile { number: number + 1 }];
    if version_set.state().closed {
        let durable = Position { segment: number, end: wal::FIRST_FRAME };
        changes.push(Change::LogStart { segment: number, durable });
        changes.push(Change::Reopened);
    }
    store.commit(&mut version_set, VersionEdit::from(changes))?;
    drop(version_set);
    store.advance_log()
}

//! A keyspace comes, or goes with all its data.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::MutexGuard;

use crate::comparator::refuse_from_comparator;
use crate::error::{Error, Result};
use crate::key::{InternalCursor, KeyOrder, Stored};
use crate::options::{Compression, KeyspaceOptions, Options};
use crate::read::{LoadedTable, SuperVersion};
use crate::store::{KeyspaceState, Store, VersionSet, Writer};
use crate::version::{Change, KeyspaceVersion, VersionEdit};
use crate::wal::Segment;

impl Store {
    /// Makes a keyspace. Durable on return.
    pub(crate) fn create_keyspace(
        &self,
        name: &str,
        options: KeyspaceOptions,
    ) -> Result<Arc<KeyspaceState>> {
        if name.is_empty() || name.len() > 255 {
            return Err(Error::InvalidKeyspaceName { len: name.len() });
        }
        if options.blob_threshold.is_some_and(|n| n < 64) {
            let why = "must be at least 64 bytes".to_string();
            return Err(Error::InvalidOption { option: "blob_threshold", why });
        }
        let order_name = options.comparator.checked_name("comparator")?;
        refuse_from_comparator()?;
        options.compression.map_or(Ok(()), Compression::check_built_in)?;
        self.check_writable()?;
        let _changing = self.keyspace_changes.lock();
        let mut version_set = self.version_set.lock();
        if version_set.state().keyspace(name).is_some() {
            return Err(Error::KeyspaceExists { name: name.to_string() });
        }
        let id = version_set.state().next_keyspace;
        let compression = options.compression.map(|c| c.to_u8());
        let separate = options.blob_threshold.map(|n| n as u64);
        let manifest = version_set.manifest_mut().ok_or_else(|| self.why_no_manifest())?;
        let order = options.comparator.of_keyspace(name, &order_name);
        manifest.learn(name, order_name.clone(), options.comparator);
        let add = Change::AddKeyspace {
            id,
            name: name.to_string(),
            order_name,
            compression,
            blob_threshold: separate,
        };
        if let Err(e) = self.commit(&mut version_set, VersionEdit::from(vec![add])) {
            version_set.manifest_mut().into_iter().for_each(|m| m.unlearn(name));
            return Err(e);
        }
        let state = Arc::new(new_keyspace(self, id, name, order, compression, separate)?);
        self.keyspaces.write().insert(Arc::clone(&state));
        Ok(state)
    }

    /// Takes a keyspace and its data away. Durable on return.
    pub(crate) fn drop_keyspace(&self, ks: &KeyspaceState) -> Result<()> {
        // To the end: nobody else may open the store while values are punched.
        let _dir = self.hold_dir()?;
        // Its records' sequences must stay used after they are gone; so the log is durable first.
        self.sync_all()?;
        let changing = self.keyspace_changes.lock();
        let (mut w, mut version_set) = match self.commit_drop(ks, false) {
            // It gives space back. No writer waits while files are removed.
            Err(e) if e.is_no_space() && self.halt_cause().is_none() => {
                self.let_go_of_spare();
                let tell_end = || self.version_set.lock().tell_manifest_length().is_ok();
                self.delete_obsolete_until(true, tell_end, || false);
                self.commit_drop(ks, true)?
            }
            done => done?,
        };
        if let Some(manifest) = version_set.manifest_mut() {
            manifest.unlearn(&ks.name);
        }
        ks.dropped.store(true, Ordering::Release);
        {
            let mut names = self.keyspaces.write();
            names.by_name.remove(&ks.name);
            names.by_id.remove(&ks.id);
        }
        let super_version = ks.super_version.load_full();
        for table in super_version.version.tables() {
            table.retire();
        }
        self.segments.account(
            std::iter::empty(),
            super_version.version.tables().flat_map(|t| &t.meta.references),
        );
        self.segments.note_flushed(ks.id, u64::MAX);
        // Writers may wait for what was to be flushed of it.
        self.note_pending(self.active_number());
        self.signal.notify_done();
        ks.publish(|_| SuperVersion::empty());
        w.recent = None;
        // What a reader of it holds is not punched: whoever punches holds `version_set`, and asks there.
        let mut super_versions = self.dropped_super_versions.lock();
        super_versions.retain(|super_version| super_version.strong_count() > 0);
        super_versions.extend(ks.old_super_versions());
        drop(super_versions);
        let tables = super_version.version.tables().cloned().collect();
        drop((version_set, w, super_version, changing));
        self.release_values(ks, tables);
        self.signal.wake();
        Ok(())
    }

    /// Makes it durable that a keyspace goes. From here on until what is returned is dropped nobody writes, and no version
    /// changes. The `last` attempt gives up what was made for speed since the one before, while writers wait: these may have
    /// taken what that gave back.
    pub(crate) fn commit_drop(
        &self,
        ks: &KeyspaceState,
        last: bool,
    ) -> Result<(MutexGuard<'_, Writer>, MutexGuard<'_, VersionSet>)> {
        let w = self.writer.lock();
        self.check_writable()?;
        // And what came since, mostly nothing: a batch may have taken from this keyspace what it put into another.
        self.sync.sync_all().inspect_err(|_| self.halt_if_unsynced())?;
        let mut version_set = self.version_set.lock();
        ks.check_alive()?;
        let seq = self.visible_seq();
        let changes = vec![Change::DropKeyspace { id: ks.id }, Change::LastSeq { seq }];
        let mut commit = || self.commit(&mut version_set, VersionEdit::from(changes.clone()));
        match commit() {
            Err(e) if last && e.is_no_space() && self.halt_cause().is_none() => {
                self.discard_spare();
                commit()?;
            }
            done => done?,
        }
        Ok((w, version_set))
    }

    /// The values that the tables of a dropped keyspace left in segments which other keyspaces use too:
    /// their space goes back once no reader holds a super version of it. (A segment that no table points into
    /// goes as a whole.) Where a table cannot be read its values stay, until their segment goes.
    fn release_values(&self, ks: &KeyspaceState, mut tables: Vec<Arc<LoadedTable>>) {
        let shared =
            |s: &Arc<Segment>| self.segments.get(s.number()).is_some_and(|n| Arc::ptr_eq(&n, s));
        tables.retain(|t| t.segments().iter().any(shared));
        for table in tables {
            // Whoever closes the store does not wait for it; the next compactions of these segments find out.
            if self.check_open().is_err() {
                return;
            }
            // One table's at a time, and given back at once where nobody reads them: there may be a hundred million.
            let mut dead: HashMap<u64, Vec<(u64, u64)>> = HashMap::new();
            let mut cursor = table.table.cursor();
            let mut moved = cursor.first();
            while moved.is_ok() && cursor.valid() {
                if let Stored::Pointer(p) = cursor.stored() {
                    dead.entry(p.segment).or_default().push(p.range());
                }
                moved = cursor.next();
            }
            self.segments.mark_dead(dead, &ks.old_super_versions());
            self.delete_obsolete(false);
        }
    }
}

/// From how many bytes on a keyspace's values stay in the log.
pub(crate) fn threshold_of(options: &Options, given: Option<u64>) -> usize {
    given.map_or(options.blob_threshold, |n| usize::try_from(n).unwrap_or(usize::MAX))
}

/// A keyspace without tables or memtables.
pub(crate) fn new_keyspace(
    store: &Store,
    id: u32,
    name: &str,
    order: KeyOrder,
    compression: Option<u8>,
    blob_threshold: Option<u64>,
) -> Result<KeyspaceState> {
    let compression =
        compression.and_then(Compression::from_u8).unwrap_or(store.options.compression);
    let super_version = SuperVersion::new(store.hold_dir()?, KeyspaceVersion::default());
    let blob_threshold = threshold_of(&store.options, blob_threshold);
    Ok(KeyspaceState::new(id, name.to_string(), order, compression, blob_threshold, super_version))
}

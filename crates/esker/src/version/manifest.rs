//! The manifest in force, open for appending.
//!
//! Order of every change: data durable -> edit durable -> old files removed. The manifest does the
//! middle step and never calls an edit durable that is not:
//!
//! - An append is one write and one sync, for each record where an edit needs several. After one of
//!   them failed, nobody knows what the file holds; the manifest is then *failed* and never written again.
//!   But where the first write found no room, what got in is taken out, and all is as before.
//! - Out of that, and also when the file has grown, leads a new file that holds the whole state in
//!   its first edit: written, synced, its name synced, and only then `CURRENT` set to it.
//!   Older manifests are removed when that is durable.
//!
//! Until [`Manifest::replace`] succeeded after a failure, the edit that failed may or may not be in
//! force after a crash: neither the files it adds nor those it removes may be deleted.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::current::{self, ManifestEnd};
use super::record::{self, HEADER_LEN};
use super::{Loaded, State, VersionEdit};
use crate::dir_sync::DirSync;
use crate::env::{Env, File, OpenMode, write_again};
use crate::error::{Error, Result};
use crate::filename;
use crate::key::KeyOrder;
use crate::util::MAX_NEXT_FILE;

/// A manifest is rewritten when it is longer than this and four times its first edit.
const ROLLOVER_BYTES: u64 = 1 << 20;

/// The manifest in force.
#[derive(Debug)]
pub(crate) struct Manifest {
    env: Arc<dyn Env>,
    dir: PathBuf,
    dir_sync: Arc<DirSync>,
    current: ManifestFile,
    /// The length that `CURRENT` tells, as far as is known here.
    told: u64,
    rollover_at: u64,
    state: State,
    failed: Option<Arc<Error>>,
}

/// A manifest's file, and how long it is.
#[derive(Debug)]
struct ManifestFile {
    file: Arc<dyn File>,
    number: u64,
    end: u64,
}

impl Manifest {
    /// Makes the first manifest of a store, or the one of a repaired store: `state` is in force
    /// when this returns.
    pub(crate) fn create(env: Arc<dyn Env>, dir: &Path, state: State) -> Result<Manifest> {
        Manifest::create_with(env, dir, state, || ())
    }

    /// The same. `from_here` is called when `state` may be in force from there on, also after an error: what it names
    /// must stay.
    pub(crate) fn create_with(
        env: Arc<dyn Env>,
        dir: &Path,
        state: State,
        from_here: impl FnOnce(),
    ) -> Result<Manifest> {
        let dir_sync = Arc::new(DirSync::new(Arc::clone(&env), dir));
        let fresh = write_fresh(&*env, dir, &state)?;
        sync_name(&*env, dir, &dir_sync, fresh.number)?;
        from_here();
        current::set(&*env, dir, &dir_sync)?;
        remove_others(&*env, dir, fresh.number);
        let (told, snapshot_bytes) = (fresh.end, fresh.end - HEADER_LEN);
        Ok(Manifest { told, ..Manifest::of(env, dir, dir_sync, fresh, snapshot_bytes, state) })
    }

    /// Goes on with the manifest that was loaded.
    ///
    /// What was read may still be in the page cache only, and count as clean there after a sync that
    /// failed; so it is written once more, and file and directory are synced before anybody acts on
    /// it. Nothing is ever appended behind a torn record: a new manifest is made.
    /// A clean close still holds: whoever is about to write to the log ends it.
    pub(crate) fn open(env: Arc<dyn Env>, dir: &Path, loaded: Loaded) -> Result<Manifest> {
        let Loaded { state, number, end, snapshot_bytes, torn, .. } = loaded;
        let dir_sync = Arc::new(DirSync::new(Arc::clone(&env), dir));
        if torn.is_some() {
            dir_sync.sync()?;
            return Manifest::create(env, dir, state);
        }
        let path = dir.join(filename::manifest(number));
        let open = env.open(&path, OpenMode::ReadWrite);
        let file = open.map_err(|e| Error::io("open", &path, e))?;
        let len = file.len().map_err(|e| Error::io("read the length of", &path, e))?;
        if len != end {
            return Err(Error::corrupt(&path, end, "the file changed while it was being opened"));
        }
        write_again(&*file, end).map_err(|e| Error::io("write again to", &path, e))?;
        file.sync().map_err(|e| Error::io("sync", &path, e))?;
        dir_sync.sync()?;
        remove_others(&*env, dir, number);
        let now = ManifestFile { file, number, end };
        Ok(Manifest::of(env, dir, dir_sync, now, snapshot_bytes, state))
    }

    /// Of the file in force, of which `CURRENT` does not tell the length as far as is known.
    fn of(
        env: Arc<dyn Env>,
        dir: &Path,
        dir_sync: Arc<DirSync>,
        current: ManifestFile,
        snapshot_bytes: u64,
        state: State,
    ) -> Manifest {
        let (dir, rollover_at) = (dir.to_path_buf(), rollover_at(snapshot_bytes));
        Manifest { env, dir, dir_sync, current, told: 0, rollover_at, state, failed: None }
    }

    /// The state in force.
    pub(crate) fn state(&self) -> &State {
        &self.state
    }

    /// Number of the file in force.
    pub(crate) fn number(&self) -> u64 {
        self.current.number
    }

    /// Length of the file in bytes.
    #[cfg(test)]
    pub(crate) fn len(&self) -> u64 {
        self.current.end
    }

    /// Syncs of the directory in which it is.
    pub(crate) fn dir_sync(&self) -> &Arc<DirSync> {
        &self.dir_sync
    }

    /// The failure after which nothing is appended any more.
    pub(crate) fn failed(&self) -> Option<&Arc<Error>> {
        self.failed.as_ref()
    }

    /// Makes a comparator known, before the keyspace ordered by it is added.
    pub(crate) fn learn(&mut self, keyspace: &str, name: String, order: KeyOrder) {
        self.state.learn(keyspace, name, order);
    }

    /// Lets go of the comparator of a keyspace that was dropped.
    pub(crate) fn unlearn(&mut self, keyspace: &str) {
        self.state.unlearn(keyspace);
    }

    /// Makes an edit durable and puts it in force. An edit that contradicts the state is refused
    /// and leaves all as it was, as does one that there is no room for; any other error fails the manifest (see the
    /// module), and so does a sync of the directory that finds no room.
    pub(crate) fn append(&mut self, edit: &VersionEdit) -> Result<()> {
        self.check_failed()?;
        let path = self.path();
        let refuse =
            |what| Error::corrupt(&path, self.current.end, format!("edit refused: {what}"));
        let delta = self.state.check(edit).map_err(|e| refuse(e.to_string()))?;
        if self.current.end > self.rollover_at {
            let mut next = self.state.clone();
            next.take(delta.clone());
            let fresh = write_fresh(&*self.env, &self.dir, &next);
            let name = |number| sync_name(&*self.env, &self.dir, &self.dir_sync, number);
            match fresh.map(|f| (name(f.number), f)) {
                Ok((Ok(()), fresh)) => {
                    self.put_in_force(fresh)?;
                    self.state = next;
                    return Ok(());
                }
                Ok((Err(e), _)) if self.dir_sync.failed().is_some() => return self.note(Err(e)),
                // The old file is as good as before; try again when it has grown as much again.
                _ => self.rollover_at = self.current.end.saturating_mul(2),
            }
        }
        let mut end = self.current.end;
        let records = encode(self.current.number, &mut end, edit);
        let records = records.ok_or_else(|| refuse("it has no changes".to_owned()))?;
        let mut at = self.current.end;
        for record in &records {
            // Each is durable before the next, as a crash may only touch the last one.
            let written = self.current.file.write_all_at(record, at);
            let written = written.map_err(|e| Error::io("write", &path, e));
            if let Err(e) = &written
                && at == self.current.end
                && e.is_no_space()
                && self.current.file.set_len(at).is_ok()
            {
                return written;
            }
            let synced = written
                .and_then(|()| self.current.file.sync().map_err(|e| Error::io("sync", &path, e)));
            self.note(synced)?;
            at += record.len() as u64;
        }
        self.current.end = end;
        self.state.take(delta);
        Ok(())
    }

    /// Writes the state in force to a new manifest. The way out of a failure; harmless otherwise.
    pub(crate) fn replace(&mut self) -> Result<()> {
        let fresh = write_fresh(&*self.env, &self.dir, &self.state)?;
        let named = sync_name(&*self.env, &self.dir, &self.dir_sync, fresh.number);
        self.note(named)?;
        self.put_in_force(fresh)
    }

    /// Lets `CURRENT` tell how long the manifest is: from now on it shows when it loses its end.
    pub(crate) fn tell_length(&mut self) -> Result<()> {
        self.check_failed()?;
        if self.told == self.current.end {
            return Ok(());
        }
        let manifest = ManifestEnd { number: self.current.number, end: self.current.end };
        current::prepare(&*self.env, &self.dir, manifest)?;
        current::put_in_place(&*self.env, &self.dir)?;
        self.told = self.current.end;
        Ok(())
    }

    fn put_in_force(&mut self, fresh: ManifestFile) -> Result<()> {
        let set = current::set(&*self.env, &self.dir, &self.dir_sync);
        self.note(set)?;
        self.rollover_at = rollover_at(fresh.end - HEADER_LEN);
        self.current = fresh;
        self.told = self.current.end;
        self.failed = None;
        remove_others(&*self.env, &self.dir, self.current.number);
        Ok(())
    }

    fn check_failed(&self) -> Result<()> {
        match &self.failed {
            Some(cause) => Err(Error::Halted { cause: cause.clone() }),
            None => Ok(()),
        }
    }

    /// Remembers a failure.
    fn note(&mut self, result: Result<()>) -> Result<()> {
        if let Err(e) = &result {
            self.failed = Some(Arc::new(e.clone()));
        }
        result
    }

    fn path(&self) -> PathBuf {
        self.dir.join(filename::manifest(self.current.number))
    }
}

fn rollover_at(snapshot_bytes: u64) -> u64 {
    ROLLOVER_BYTES.max(snapshot_bytes.saturating_mul(4))
}

/// The records of an edit, of which the first will lie at `end`; that becomes the end of the last.
/// `None` where a record cannot hold what it has to.
fn encode(number: u64, end: &mut u64, edit: &VersionEdit) -> Option<Vec<Vec<u8>>> {
    let mut records = Vec::new();
    for payload in edit.records() {
        let record = record::encode(number, *end, &payload)?;
        *end += record.len() as u64;
        records.push(record);
    }
    (!records.is_empty()).then_some(records)
}

/// Makes the name of a new manifest durable, lest it is lost where the rename of `CURRENT` survives.
fn sync_name(env: &dyn Env, dir: &Path, dir_sync: &DirSync, number: u64) -> Result<()> {
    dir_sync.sync().inspect_err(|_| {
        // Best effort; what stays is removed with the next manifest that comes into force.
        drop(env.remove(&dir.join(filename::manifest(number))));
    })
}

/// Writes a new manifest with the whole state in one edit, and the line for `CURRENT`; all of it
/// is durable on return, but for the names. It is not in force yet, so any error leaves the store as
/// it was.
fn write_fresh(env: &dyn Env, dir: &Path, state: &State) -> Result<ManifestFile> {
    // Above every number in sight: a file that an earlier attempt left behind is never reused.
    let names = env.list(dir).map_err(|e| Error::io("list", dir, e))?;
    // A made-up one at the end of all numbers is none of ours.
    let numbers = names.iter().filter_map(|n| filename::manifest_number(n));
    let number = numbers.filter(|n| *n < MAX_NEXT_FILE).max().unwrap_or(0) + 1;
    let path = dir.join(filename::manifest(number));
    let mut end = HEADER_LEN;
    let Some(records) = encode(number, &mut end, &state.snapshot()) else {
        return Err(Error::corrupt(&path, 0, "the state is too large for a manifest"));
    };
    let mut bytes = record::file_header(number);
    records.iter().for_each(|r| bytes.extend_from_slice(r));
    let written = (|| {
        let open = env.open(&path, OpenMode::CreateNew);
        let file = open.map_err(|e| Error::io("create", &path, e))?;
        file.write_all_at(&bytes, 0).map_err(|e| Error::io("write", &path, e))?;
        file.sync().map_err(|e| Error::io("sync", &path, e))?;
        current::prepare(env, dir, ManifestEnd { number, end: bytes.len() as u64 })?;
        Ok(file)
    })();
    match written {
        Ok(file) => Ok(ManifestFile { file, number, end: bytes.len() as u64 }),
        Err(e) => {
            // Best effort; what stays is removed with the next manifest that comes into force.
            let _ = env.remove(&path);
            Err(e)
        }
    }
}

/// Removes all manifests but the one in force, whose `CURRENT` is durable. Best effort: a file
/// that stays is never read and is tried again with the next manifest.
fn remove_others(env: &dyn Env, dir: &Path, number: u64) {
    let Ok(names) = env.list(dir) else { return };
    for name in names {
        if filename::manifest_number(&name).is_some_and(|n| n != number) {
            let _ = env.remove(&dir.join(&name));
        }
    }
}

//! A file system in memory whose power can fail.
//!
//! The model, which is harsher than most devices and file systems:
//!
//! - What a file holds is durable after `sync`, its length too. Of what was written since, through
//!   calls or mappings, each page is the old one, the new one, one of a few versions in between (the
//!   kernel writes back when it likes), or a mixture of these by sectors of 512 bytes; the length is
//!   the old one, the new one, or between them. Pages get to the device in any order.
//! - A name that was made, changed or removed is so durably after `sync_dir`. Of the changes since,
//!   either each is there or not, independently, or those up to some moment are, as on a file
//!   system with a journal. A rename is whole.
//! - After a failed sync the pages that were dirty count as clean: a later sync does not write them.
//!
//! [`Frozen`] is a disk at one moment, before one of the numbered calls; [`Frozen::draw`] makes from
//! it one of the disks that may be found after a power cut. Everything but the numbering of calls by
//! threads that run at the same time follows from seeds.

mod crash;
mod disk;
mod faults;
mod file;
mod inode;
mod names;
mod page;
#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

pub(crate) use crate::util::Rng;
pub(crate) use crash::{Cut, Frozen, Promise};
pub(crate) use disk::CrashPoints;
use disk::Disk;
use faults::Trap;
pub(crate) use faults::{Call, CallKind, Fault, FaultPlan};
use file::SimFile;
use names::{NameChange, Node, Tree};

use super::{Env, File, Lock, LockMode, OpenMode};

/// A simulated disk and clock. Clones are the same disk.
#[derive(Debug, Clone)]
pub(crate) struct SimEnv {
    disk: Arc<Mutex<Disk>>,
    /// Whether the engine does its background work on the threads that wait for it.
    stepped: bool,
}

impl SimEnv {
    /// An empty disk.
    pub(crate) fn new(seed: u64, stepped: bool) -> SimEnv {
        let tree = Tree::from([(PathBuf::from("/"), Node::Dir)]);
        SimEnv::over(Disk::new(seed, Vec::new(), tree), stepped)
    }

    fn over(disk: Disk, stepped: bool) -> SimEnv {
        SimEnv { disk: Arc::new(Mutex::new(disk)), stepped }
    }

    /// Before which calls the disk is frozen from now on.
    pub(crate) fn set_crash_points(&self, points: CrashPoints) {
        self.disk.lock().crash_points = points;
    }

    /// What has been promised to the user, from now on.
    pub(crate) fn set_promise(&self, promise: Promise) {
        self.disk.lock().promise = promise;
    }

    /// The moments frozen since the last time this was asked.
    pub(crate) fn take_frozen(&self) -> Vec<Frozen> {
        std::mem::take(&mut self.disk.lock().frozen)
    }

    /// This moment.
    pub(crate) fn freeze(&self) -> Frozen {
        self.disk.lock().freeze()
    }

    /// From now on so many bytes are free, and what files take and give back counts.
    pub(crate) fn leave_free(&self, bytes: u64) {
        let mut disk = self.disk.lock();
        disk.capacity = Some(disk.used() + bytes);
    }

    /// From now on so many bytes may be written beside what there is, by a quota of which nobody is told.
    pub(crate) fn set_quota(&self, beside: Option<u64>) {
        let mut disk = self.disk.lock();
        disk.quota = beside.map(|bytes| disk.used() + bytes);
    }

    /// Makes calls fail from now on, or none.
    pub(crate) fn fail(&self, plan: Option<FaultPlan>) {
        self.disk.lock().plan = plan;
    }

    /// Makes the next call of a kind to a file fail, with an I/O error.
    pub(crate) fn fail_first(&self, kind: CallKind, path: &str) {
        self.fail_first_with(kind, path, Fault::Eio);
    }

    /// The same, with another error.
    pub(crate) fn fail_first_with(&self, kind: CallKind, path: &str, fault: Fault) {
        self.disk.lock().trap = Some(Trap { kind, path: PathBuf::from(path), fault });
    }

    /// All calls fail from here on, and none changes anything.
    pub(crate) fn turn_off(&self) {
        self.disk.lock().dead = true;
    }

    /// The calls so far.
    pub(crate) fn calls(&self) -> Vec<Call> {
        self.disk.lock().calls.clone()
    }

    /// How many calls there were.
    pub(crate) fn call_count(&self) -> u64 {
        self.disk.lock().calls.len() as u64
    }

    /// Another process opens the store: it cannot know of the syncs that failed before.
    pub(crate) fn forget_failures(&self) {
        self.disk.lock().inodes.iter_mut().for_each(|i| i.failed = None);
    }

    /// What was done to files whose sync had failed, which nobody may.
    pub(crate) fn violations(&self) -> Vec<String> {
        let disk = self.disk.lock();
        let mut all = disk.violations.clone();
        for (path, node) in &disk.names.now {
            let Node::File(n) = node else { continue };
            let inode = &disk.inodes[*n];
            if inode.failed.as_ref().is_some_and(|then| *then != inode.pages_now()) {
                all.push(format!("{} was changed after a sync of it failed", path.display()));
            }
        }
        all
    }
}

impl Env for SimEnv {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        let mut disk = self.disk.lock();
        disk.call(CallKind::CreateDir, dir, (0, 0))?;
        if disk.names.now.contains_key(dir) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        if dir.parent().is_some_and(|p| disk.names.now.get(p) != Some(&Node::Dir)) {
            return Err(io::ErrorKind::NotFound.into());
        }
        disk.names.change(NameChange::Add(dir.to_path_buf(), Node::Dir));
        Ok(())
    }

    fn available(&self, _dir: &Path) -> u64 {
        let disk = self.disk.lock();
        disk.capacity.map_or(u64::MAX, |all| all.saturating_sub(disk.used()))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let mut disk = self.disk.lock();
        disk.call(CallKind::List, dir, (0, 0))?;
        if disk.names.now.get(dir) != Some(&Node::Dir) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let names = disk.names.within(dir).into_iter().filter_map(|p| p.file_name()?.to_str());
        Ok(names.map(str::to_string).collect())
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let mut disk = self.disk.lock();
        let kind = if mode == OpenMode::CreateNew { CallKind::Create } else { CallKind::Open };
        disk.call(kind, path, (0, 0))?;
        let inode = match mode {
            OpenMode::CreateNew if disk.names.now.contains_key(path) => {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            OpenMode::CreateNew => disk.add_file(path)?,
            OpenMode::Read | OpenMode::ReadWrite => disk.file(path)?,
        };
        let file = SimFile { disk: Arc::clone(&self.disk), inode, path: path.to_path_buf() };
        Ok(Arc::new(file))
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        let mut disk = self.disk.lock();
        disk.call(CallKind::Exists, path, (0, 0))?;
        Ok(disk.names.now.contains_key(path))
    }

    fn allocated(&self, path: &Path) -> io::Result<u64> {
        let mut disk = self.disk.lock();
        disk.call(CallKind::Allocated, path, (0, 0))?;
        let inode = disk.file(path)?;
        Ok(disk.inodes[inode].allocated())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut disk = self.disk.lock();
        disk.call(CallKind::Rename, from, (0, 0))?;
        let inode = disk.file(from)?;
        if let Ok(replaced) = disk.file(to) {
            disk.inodes[replaced].links -= 1;
        }
        let change = NameChange::Rename(from.to_path_buf(), to.to_path_buf(), Node::File(inode));
        disk.names.change(change);
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut disk = self.disk.lock();
        disk.call(CallKind::Remove, path, (0, 0))?;
        let inode = disk.file(path)?;
        disk.inodes[inode].links -= 1;
        disk.names.change(NameChange::Remove(path.to_path_buf(), Node::File(inode)));
        Ok(())
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        let mut disk = self.disk.lock();
        disk.call(CallKind::RemoveDir, path, (0, 0))?;
        if disk.names.now.get(path) != Some(&Node::Dir) {
            return Err(io::ErrorKind::NotFound.into());
        }
        if !disk.names.within(path).is_empty() {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        disk.names.change(NameChange::Remove(path.to_path_buf(), Node::Dir));
        Ok(())
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut disk = self.disk.lock();
        disk.call(CallKind::Link, to, (0, 0))?;
        if disk.names.now.contains_key(to) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let inode = disk.file(from)?;
        disk.inodes[inode].links += 1;
        disk.names.change(NameChange::Add(to.to_path_buf(), Node::File(inode)));
        Ok(())
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut disk = self.disk.lock();
        disk.call(CallKind::SyncDir, dir, (0, 0))?;
        disk.names.sync(dir);
        Ok(())
    }

    fn lock(&self, path: &Path, mode: LockMode) -> io::Result<Arc<dyn Lock>> {
        let mut disk = self.disk.lock();
        disk.call(CallKind::Lock, path, (0, 0))?;
        let inode = match disk.names.now.contains_key(path) {
            true => disk.file(path)?,
            false => disk.add_file(path)?,
        };
        let held = |m: LockMode| disk.locked.contains(&(inode, m));
        if held(LockMode::Exclusive) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        if mode == LockMode::Exclusive && held(LockMode::Shared) {
            return Err(io::ErrorKind::ResourceBusy.into());
        }
        disk.locked.push((inode, mode));
        let (disk, path) = (Arc::clone(&self.disk), path.to_path_buf());
        Ok(Arc::new(Locked { disk, path, held: (inode, mode) }))
    }

    fn now(&self) -> Duration {
        let mut disk = self.disk.lock();
        disk.clock += Duration::from_micros(1);
        disk.clock
    }

    fn sleep(&self, how_long: Duration) {
        self.disk.lock().clock += how_long;
        if !self.stepped {
            std::thread::yield_now();
        }
    }

    fn is_stepped(&self) -> bool {
        self.stepped
    }
}

/// Holds a lock until it is dropped.
struct Locked {
    disk: Arc<Mutex<Disk>>,
    path: PathBuf,
    held: (usize, LockMode),
}

impl Lock for Locked {
    fn is_in_place(&self) -> io::Result<bool> {
        Ok(self.disk.lock().names.now.get(&self.path) == Some(&Node::File(self.held.0)))
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        let locked = &mut self.disk.lock().locked;
        if let Some(at) = locked.iter().position(|held| *held == self.held) {
            locked.swap_remove(at);
        }
    }
}

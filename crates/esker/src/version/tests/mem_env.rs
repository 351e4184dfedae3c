//! A file system in memory that forgets what was not synced, and fails at a call of one's choice.
//!
//! Small and only for this folder: it knows what a manifest needs. After a crash each sector that
//! was not synced is the old one, the new one or zeros, and each change of the directory that was
//! not synced happened or did not, independently.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::env::{Env, File, Lock, LockMode, Map, OpenMode};

const SECTOR: usize = 512;

#[derive(Debug, Default)]
struct Disk {
    inodes: Vec<Inode>,
    names: BTreeMap<String, usize>,
    /// What the directory held at its last sync, and what happened since.
    synced_names: BTreeMap<String, usize>,
    changes: Vec<NameChange>,
    calls: u64,
    fail: Option<Fail>,
}

#[derive(Debug, Clone, Default)]
struct Inode {
    data: Vec<u8>,
    synced: Vec<u8>,
}

#[derive(Debug, Clone)]
enum NameChange {
    Link(String, usize),
    Unlink(String),
    Rename(String, String, usize),
}

/// Which calls fail.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fail {
    pub call: u64,
    /// All calls from there on (the process is as good as dead), or this one only.
    pub forever: bool,
    /// A failing write writes half of its bytes first.
    pub short: bool,
}

#[derive(Debug, Clone, Default)]
pub(super) struct MemEnv(Arc<Mutex<Disk>>);

#[derive(Debug)]
struct MemFile {
    disk: Arc<Mutex<Disk>>,
    inode: usize,
}

impl Disk {
    /// Counts a call; the error if it is to fail.
    fn call(&mut self) -> io::Result<()> {
        let n = self.calls;
        self.calls += 1;
        match self.fail {
            Some(f) if n == f.call || (f.forever && n > f.call) => {
                Err(io::Error::other("injected"))
            }
            _ => Ok(()),
        }
    }
}

impl MemEnv {
    pub(super) fn fail(&self, fail: Option<Fail>) {
        self.0.lock().fail = fail;
    }

    /// Calls so far that touch the disk.
    pub(super) fn calls(&self) -> u64 {
        self.0.lock().calls
    }

    pub(super) fn bytes(&self, name: &str) -> Vec<u8> {
        let disk = self.0.lock();
        disk.inodes[disk.names[name]].data.clone()
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.0.lock().names.keys().cloned().collect()
    }

    /// A file as if it had always been there.
    pub(super) fn put(&self, name: &str, bytes: &[u8]) {
        let mut disk = self.0.lock();
        let inode = disk.inodes.len();
        disk.inodes.push(Inode { data: bytes.to_vec(), synced: bytes.to_vec() });
        disk.names.insert(name.into(), inode);
        disk.synced_names.insert(name.into(), inode);
    }

    /// The process ends; everything it wrote stays.
    pub(super) fn kill(&self) -> MemEnv {
        let disk = self.0.lock();
        MemEnv(Arc::new(Mutex::new(Disk {
            inodes: disk.inodes.clone(),
            names: disk.names.clone(),
            synced_names: disk.synced_names.clone(),
            changes: disk.changes.clone(),
            ..Disk::default()
        })))
    }

    /// The power fails; `random` decides what of the unsynced is on the disk.
    pub(super) fn power_cut(&self, random: &mut impl FnMut() -> u64) -> MemEnv {
        let disk = self.0.lock();
        let mut names = disk.synced_names.clone();
        for change in &disk.changes {
            if random().is_multiple_of(2) {
                continue;
            }
            match change.clone() {
                NameChange::Link(name, inode) => {
                    names.insert(name, inode);
                }
                NameChange::Unlink(name) => {
                    names.remove(&name);
                }
                NameChange::Rename(from, to, inode) => {
                    names.remove(&from);
                    names.insert(to, inode);
                }
            }
        }
        let inodes = disk.inodes.iter().map(|i| i.torn(random)).collect();
        let synced_names = names.clone();
        MemEnv(Arc::new(Mutex::new(Disk { inodes, names, synced_names, ..Disk::default() })))
    }
}

impl Inode {
    fn torn(&self, random: &mut impl FnMut() -> u64) -> Inode {
        let (old, new) = (self.synced.len(), self.data.len());
        let len = match random() % 3 {
            0 => old,
            1 => new,
            _ => old + (random() as usize) % (new.saturating_sub(old) + 1),
        };
        let mut data = vec![0; len];
        for at in (0..len).step_by(SECTOR) {
            let end = (at + SECTOR).min(len);
            let from = if random().is_multiple_of(2) { &self.data } else { &self.synced };
            let have = end.min(from.len()).max(at);
            data[at..have].copy_from_slice(&from[at..have]);
        }
        Inode { synced: data.clone(), data }
    }
}

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_str().unwrap().to_owned()
}

fn not_found() -> io::Error {
    io::ErrorKind::NotFound.into()
}

impl Env for MemEnv {
    fn create_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }
    fn list(&self, _: &Path) -> io::Result<Vec<String>> {
        let mut disk = self.0.lock();
        disk.call()?;
        Ok(disk.names.keys().cloned().collect())
    }
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let mut disk = self.0.lock();
        disk.call()?;
        let name = name(path);
        let inode = match (disk.names.get(&name), mode) {
            (Some(_), OpenMode::CreateNew) => return Err(io::ErrorKind::AlreadyExists.into()),
            (Some(&inode), _) => inode,
            (None, OpenMode::CreateNew) => {
                let inode = disk.inodes.len();
                disk.inodes.push(Inode::default());
                disk.names.insert(name.clone(), inode);
                disk.changes.push(NameChange::Link(name, inode));
                inode
            }
            (None, _) => return Err(not_found()),
        };
        Ok(Arc::new(MemFile { disk: self.0.clone(), inode }))
    }
    fn exists(&self, path: &Path) -> io::Result<bool> {
        let mut disk = self.0.lock();
        disk.call()?;
        Ok(disk.names.contains_key(&name(path)))
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut disk = self.0.lock();
        disk.call()?;
        let (from, to) = (name(from), name(to));
        let inode = disk.names.remove(&from).ok_or_else(not_found)?;
        disk.names.insert(to.clone(), inode);
        disk.changes.push(NameChange::Rename(from, to, inode));
        Ok(())
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut disk = self.0.lock();
        disk.call()?;
        disk.names.remove(&name(path)).ok_or_else(not_found)?;
        disk.changes.push(NameChange::Unlink(name(path)));
        Ok(())
    }
    fn remove_dir(&self, _: &Path) -> io::Result<()> {
        unimplemented!()
    }
    fn hard_link(&self, _: &Path, _: &Path) -> io::Result<()> {
        unimplemented!()
    }
    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        let mut disk = self.0.lock();
        disk.call()?;
        disk.synced_names = disk.names.clone();
        disk.changes.clear();
        Ok(())
    }
    fn lock(&self, _: &Path, _: LockMode) -> io::Result<Arc<dyn Lock>> {
        unimplemented!()
    }
    fn now(&self) -> Duration {
        Duration::ZERO
    }
    fn sleep(&self, _: Duration) {}
}

impl File for MemFile {
    fn len(&self) -> io::Result<u64> {
        let mut disk = self.disk.lock();
        disk.call()?;
        Ok(disk.inodes[self.inode].data.len() as u64)
    }
    fn allocated(&self) -> io::Result<u64> {
        self.len()
    }
    fn links(&self) -> io::Result<u64> {
        Ok(1)
    }
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        let mut disk = self.disk.lock();
        disk.call()?;
        let (at, end) = (offset as usize, offset as usize + buf.len());
        let data = disk.inodes[self.inode].data.get(at..end);
        buf.copy_from_slice(data.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
    fn write_all_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        let mut disk = self.disk.lock();
        let result = disk.call();
        let buf = match (&result, disk.fail) {
            (Err(_), Some(f)) if f.short => &buf[..buf.len() / 2],
            (Err(_), _) => return result,
            _ => buf,
        };
        let data = &mut disk.inodes[self.inode].data;
        let end = offset as usize + buf.len();
        if data.len() < end {
            data.resize(end, 0);
        }
        data[offset as usize..end].copy_from_slice(buf);
        result
    }
    fn allocate(&self, _: u64) -> io::Result<()> {
        unimplemented!()
    }
    fn set_len(&self, _: u64) -> io::Result<()> {
        unimplemented!()
    }
    fn punch(&self, _: u64, _: u64) -> io::Result<bool> {
        unimplemented!()
    }
    fn sync(&self) -> io::Result<()> {
        let mut disk = self.disk.lock();
        disk.call()?;
        let inode = &mut disk.inodes[self.inode];
        inode.synced = inode.data.clone();
        Ok(())
    }
    fn map(&self, _: u64, _: bool) -> io::Result<Map> {
        unimplemented!()
    }
}

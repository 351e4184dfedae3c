//! An open file of the simulated disk.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;

use super::disk::Disk;
use super::faults::{CallKind, Fault};
use crate::env::{File, Map};

#[derive(Debug)]
pub(super) struct SimFile {
    pub disk: Arc<Mutex<Disk>>,
    pub inode: usize,
    /// The name it was opened under, for reports.
    pub path: PathBuf,
}

impl File for SimFile {
    fn len(&self) -> io::Result<u64> {
        let mut disk = self.disk.lock();
        disk.call(CallKind::Len, &self.path, (0, 0))?;
        Ok(disk.inodes[self.inode].len)
    }

    fn allocated(&self) -> io::Result<u64> {
        let mut disk = self.disk.lock();
        disk.call(CallKind::Allocated, &self.path, (0, 0))?;
        Ok(disk.inodes[self.inode].allocated())
    }

    fn links(&self) -> io::Result<u64> {
        let mut disk = self.disk.lock();
        disk.call(CallKind::Links, &self.path, (0, 0))?;
        Ok(disk.inodes[self.inode].links)
    }

    fn identity(&self) -> io::Result<(u64, u64)> {
        Ok((0, self.inode as u64))
    }

    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        let mut disk = self.disk.lock();
        disk.call(CallKind::Read, &self.path, (offset, buf.len() as u64))?;
        disk.inodes[self.inode].read(buf, offset)
    }

    fn write_all_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        let mut disk = self.disk.lock();
        let called = disk.call(CallKind::Write, &self.path, (offset, buf.len() as u64));
        if let Err(e) = called {
            if disk.plan.is_some_and(|p| p.fault == Fault::ShortWrite) {
                disk.inodes[self.inode].write(&buf[..buf.len() / 2], offset)?;
            }
            return Err(e);
        }
        disk.grow(self.inode, offset + buf.len() as u64)?;
        disk.touch(self.inode);
        disk.inodes[self.inode].write(buf, offset)
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        let mut disk = self.disk.lock();
        disk.call(CallKind::Allocate, &self.path, (0, len))?;
        disk.grow(self.inode, len)?;
        disk.touch(self.inode);
        disk.inodes[self.inode].allocate(len)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut disk = self.disk.lock();
        disk.call(CallKind::SetLen, &self.path, (0, len))?;
        disk.grow(self.inode, len)?;
        disk.touch(self.inode);
        disk.inodes[self.inode].set_len(len)
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<bool> {
        let mut disk = self.disk.lock();
        disk.call(CallKind::Punch, &self.path, (offset, len))?;
        disk.inodes[self.inode].punch(offset, len)?;
        Ok(true)
    }

    fn sync(&self) -> io::Result<()> {
        let mut disk = self.disk.lock();
        let called = disk.call(CallKind::Sync, &self.path, (0, 0));
        disk.touch(self.inode);
        match called {
            Ok(()) => disk.inodes[self.inode].sync(),
            Err(_) if !disk.dead => disk.inodes[self.inode].fail_sync(),
            Err(_) => {}
        }
        called
    }

    fn map(&self, len: u64, _writable: bool) -> io::Result<Map> {
        let mut disk = self.disk.lock();
        disk.call(CallKind::Map, &self.path, (0, len))?;
        let inode = &mut disk.inodes[self.inode];
        if inode.len < len {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let memory = inode.memory(len)?;
        Map::heap(&memory, len as usize).ok_or(io::ErrorKind::UnexpectedEof.into())
    }
}

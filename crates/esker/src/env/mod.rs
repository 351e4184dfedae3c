//! Files, mappings and clocks: the only module that asks the operating system for them, but for how long work took.
//!
//! Everything above works through [`Env`] and [`File`], so that a fault test or a simulated file
//! system is one more implementation. Calls return plain `io::Error`; the callers add path and verb.

use std::fmt::Debug;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

mod descriptors;
mod faults;
mod forks;
#[cfg(test)]
mod heap;
mod lock;
mod map;
mod os;
#[cfg(test)]
pub(crate) mod sim;
mod system;

pub(crate) use faults::major_faults;
#[cfg(test)]
pub(crate) use heap::HeapPages;
pub(crate) use map::Map;
pub(crate) use os::OsEnv;

/// The same path from the root on, so that it goes on to mean the same place when the process changes
/// its working directory.
pub(crate) fn absolute(path: &Path) -> io::Result<PathBuf> {
    std::path::absolute(path)
}

/// Makes a directory, and those above it that are missing, durably; if it is there, sees to it that
/// it stays there. One after the other, so that what an attempt that failed or was killed left behind
/// is at most one directory whose name is not durable: the lowest one found.
pub(crate) fn create_dir_durably(env: &dyn Env, dir: &Path) -> io::Result<()> {
    let mut missing = Vec::new();
    for d in dir.ancestors() {
        if env.exists(d)? {
            sync_parent(env, d)?;
            break;
        }
        missing.push(d);
    }
    for d in missing.into_iter().rev() {
        match env.create_dir(d) {
            // Another was faster.
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            made => made?,
        }
        sync_parent(env, d)?;
    }
    Ok(())
}

/// Makes a directory that nobody else makes, durably, and those above it that are missing; an error
/// when it is there.
pub(crate) fn create_new_dir_durably(env: &dyn Env, dir: &Path) -> io::Result<()> {
    if let Some(parent) = dir.parent() {
        create_dir_durably(env, parent)?;
    }
    env.create_dir(dir)?;
    sync_parent(env, dir).inspect_err(|_| drop(env.remove_dir(dir)))
}

/// Makes the name of a directory durable.
fn sync_parent(env: &dyn Env, dir: &Path) -> io::Result<()> {
    use io::ErrorKind::{InvalidInput, PermissionDenied, Unsupported};
    let Some(parent) = dir.parent() else { return Ok(()) };
    match env.sync_dir(parent) {
        // A directory may be open for writing and not for reading, or on a file system that cannot
        // sync it, where another is mounted.
        Err(e) if matches!(e.kind(), PermissionDenied | InvalidInput | Unsupported) => Ok(()),
        synced => synced,
    }
}

/// Writes the first `len` bytes of a file over themselves, so that the next sync makes them durable
/// even if an earlier one failed: the kernel then holds them, calls them clean, and will not write
/// them on its own.
pub(crate) fn write_again(file: &dyn File, len: u64) -> io::Result<()> {
    let mut buf = vec![0; len.min(1 << 20) as usize];
    let mut at = 0;
    while at < len {
        let n = (len - at).min(buf.len() as u64) as usize;
        file.read_exact_at(&mut buf[..n], at)?;
        file.write_all_at(&buf[..n], at)?;
        at += n as u64;
    }
    Ok(())
}

/// How a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OpenMode {
    /// Existing, for reading only.
    Read,
    /// Existing, for reading and writing.
    ReadWrite,
    /// New, for reading and writing; an error when it exists.
    CreateNew,
}

/// Who may have a lock at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LockMode {
    /// All who share it.
    Shared,
    /// One.
    Exclusive,
}

/// A lock, held until it is dropped.
pub(crate) trait Lock: Send + Sync {
    /// Whether the paths of the directory's files lead to the locked directory still. Not when it was
    /// moved: by the same paths one gets to another directory then, or to none.
    fn is_in_place(&self) -> io::Result<bool>;

    /// How many files and directories are open for it.
    fn open_files(&self) -> usize {
        1
    }
}

/// Where nothing can be locked, nothing can be moved.
impl Lock for () {
    fn is_in_place(&self) -> io::Result<bool> {
        Ok(true)
    }
    fn open_files(&self) -> usize {
        0
    }
}

/// A directory tree and a clock. Paths are absolute.
pub(crate) trait Env: Send + Sync + Debug {
    /// Makes a directory; an error when something of that name is there.
    fn create_dir(&self, dir: &Path) -> io::Result<()>;
    /// Names of the entries, in no order, without `.` and `..`.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;
    /// Opens a regular file. Symbolic links, directories and devices are refused.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>>;
    /// Whether something is there under this name (links are not followed).
    fn exists(&self, path: &Path) -> io::Result<bool>;
    /// Bytes that the file system has set aside for a regular file, which is not opened. Symbolic links, directories and devices are
    /// refused.
    fn allocated(&self, path: &Path) -> io::Result<u64> {
        self.open(path, OpenMode::Read)?.allocated()
    }
    /// Whether it is a link to what is not there.
    fn leads_nowhere(&self, _path: &Path) -> io::Result<bool> {
        Ok(false)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    fn remove(&self, path: &Path) -> io::Result<()>;
    fn remove_dir(&self, path: &Path) -> io::Result<()>;
    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Makes renames, creations and removals in `dir` durable. Where it may not be opened, or there are no descriptors left
    /// for that, the error is `PermissionDenied` or one of descriptors, and of nothing else.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
    /// Bytes that are free for files in `dir`; more than there can be where that is unknown.
    fn available(&self, _dir: &Path) -> u64 {
        u64::MAX
    }
    /// Takes the lock of the file (created when missing) until the guard is dropped or the process
    /// ends, however it ends. On return the name stands for the file that is locked. `WouldBlock` when
    /// somebody has it for himself, here or elsewhere; `ResourceBusy` when others share it.
    fn lock(&self, path: &Path, mode: LockMode) -> io::Result<Arc<dyn Lock>>;
    /// Time since some fixed moment; never runs backwards.
    fn now(&self) -> Duration;
    /// Lets the calling thread rest.
    fn sleep(&self, how_long: Duration);
    /// Whether background work is done on the threads that wait for it, in an order that repeats,
    /// and not on a thread of its own.
    #[cfg(test)]
    fn is_stepped(&self) -> bool {
        false
    }
}

/// An open file. Shared by threads; every call names its offset.
pub(crate) trait File: Send + Sync + Debug {
    /// Length in bytes.
    fn len(&self) -> io::Result<u64>;
    /// Bytes that the file system has set aside for it (less than the length where there are holes).
    fn allocated(&self) -> io::Result<u64>;
    /// Number of names the file has (hard links).
    fn links(&self) -> io::Result<u64>;
    /// What tells the file from all others that there are, whatever their names. Where files cannot be moved all have the same.
    fn identity(&self) -> io::Result<(u64, u64)> {
        Ok((0, 0))
    }
    /// Fills `buf` from `offset`; `UnexpectedEof` when the file is shorter.
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()>;
    /// Writes all of `buf` at `offset`.
    fn write_all_at(&self, buf: &[u8], offset: u64) -> io::Result<()>;
    /// Sets space aside so that writing (also through a mapping) cannot fail for want of it, and
    /// makes the file at least `len` bytes long.
    fn allocate(&self, len: u64) -> io::Result<()>;
    /// Sets the length.
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// Gives the space of a range back; it then reads as zeros. `Ok(false)` where the file system
    /// cannot.
    fn punch(&self, offset: u64, len: u64) -> io::Result<bool>;
    /// Makes data and length durable (`fdatasync`; on macOS `F_FULLFSYNC`), mapped writes included.
    fn sync(&self) -> io::Result<()>;
    /// Has the system begin to write a range to the device, and does not wait for it: so that a sync that comes later finds
    /// little to wait for. Promises nothing; what goes wrong is told by that sync.
    fn begin_sync(&self, _offset: u64, _len: u64) {}
    /// Maps the first `len` bytes, shared with the file. The file must be that long.
    fn map(&self, len: u64, writable: bool) -> io::Result<Map>;
}

//! The lock that makes a directory one's own: the kernel's lock (`flock`) of a file in it.
//!
//! It belongs to the open file, so two opens by one process exclude each other as those of two
//! processes do, by whatever path they came.
//!
//! Between opening and locking, the name may come to stand for another file or for none: somebody
//! destroys the store, and perhaps a third makes a new one. A lock of the former file keeps nobody
//! out. So a lock counts only if the name stands for the locked file once the lock is taken, and
//! whoever removes the file holds its lock.

use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, OFlags, flock};

use super::forks::ParentsOnly;
use super::{Lock, LockMode};

/// How often a file that is gone once it is locked is looked for again. Each time somebody has removed
/// it in the few microseconds between two calls, and somebody made another.
const TRIES: usize = 100;
/// Before each further try, so that the tries do not keep step with who removes.
const PAUSE: Duration = Duration::from_micros(100);

/// Holds a lock until it is dropped.
pub(super) struct FileLock {
    file: fs::File,
    path: PathBuf,
    /// Has children of this process let go of it.
    noted: &'static ParentsOnly,
    /// Who took it: a forked child has the open file too, and is not to let go of what its parent holds.
    process: u32,
}

impl FileLock {
    pub(super) fn take(path: &Path, mode: LockMode) -> io::Result<FileLock> {
        for _ in 0..TRIES {
            let (file, process) = (open(path, mode)?, std::process::id());
            let noted = ParentsOnly::note(file.as_raw_fd());
            let lock = FileLock { file, path: path.to_path_buf(), noted, process };
            lock.lock(mode)?;
            if lock.is_in_place()? {
                return Ok(lock);
            }
            drop(lock);
            std::thread::sleep(PAUSE);
        }
        Err(io::Error::other("it was removed each time before it could be locked; try again"))
    }

    fn lock(&self, mode: LockMode) -> io::Result<()> {
        use io::ErrorKind::{ResourceBusy, WouldBlock};
        if mode == LockMode::Shared {
            return Ok(flock(&self.file, FlockOperation::NonBlockingLockShared)?);
        }
        let locked = flock(&self.file, FlockOperation::NonBlockingLockExclusive);
        match locked.map_err(io::Error::from) {
            // Where it can be shared, those who have it share it; or whoever had it alone has just let go. What is taken
            // here the guard gives back.
            Err(e)
                if e.kind() == WouldBlock
                    && flock(&self.file, FlockOperation::NonBlockingLockShared).is_ok() =>
            {
                let locked = flock(&self.file, FlockOperation::NonBlockingLockExclusive);
                locked.map_err(|_| ResourceBusy.into())
            }
            locked => locked,
        }
    }
}

impl Lock for FileLock {
    fn is_in_place(&self) -> io::Result<bool> {
        let mine = self.file.metadata()?;
        match fs::symlink_metadata(&self.path) {
            Ok(there) => Ok((there.dev(), there.ino()) == (mine.dev(), mine.ino())),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(e) => Err(e),
        }
    }
}

/// Opens the file, and makes it when it is missing. Who shares the lock need not be allowed to write,
/// if the file is there.
fn open(path: &Path, mode: LockMode) -> io::Result<fs::File> {
    let open = |write: bool| {
        fs::OpenOptions::new()
            .read(true)
            .write(write)
            .create(write)
            .truncate(false)
            .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32)
            .open(path)
    };
    match mode {
        LockMode::Exclusive => open(true),
        LockMode::Shared => match open(false) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => open(true),
            opened => opened,
        },
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // The kernel's lock belongs to the open file, which a process forked a moment ago has too,
        // until it runs its program: closing our end would not free it then.
        if self.process == std::process::id() {
            let _ = flock(&self.file, FlockOperation::Unlock);
            self.noted.forget();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::LockMode::{Exclusive, Shared};
    use super::*;

    fn refused(path: &Path, mode: LockMode) -> io::ErrorKind {
        FileLock::take(path, mode).err().expect("somebody else has it").kind()
    }

    /// A process that is forked while a store is closed has the lock's file open until it runs its
    /// program.
    #[test]
    fn a_lock_is_free_when_it_is_dropped_whoever_has_its_file_open() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("LOCK");
        let lock = FileLock::take(&path, Exclusive).unwrap();
        let inherited = lock.file.try_clone().unwrap();
        refused(&path, Exclusive);
        drop(lock);
        let again = FileLock::take(&path, Exclusive).unwrap();
        drop(inherited);
        refused(&path, Exclusive);
        drop(again);
    }

    #[test]
    fn a_lock_is_shared_or_one_s_own_and_a_refusal_says_which() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("LOCK");
        let (one, two) = (FileLock::take(&path, Shared), FileLock::take(&path, Shared));
        assert_eq!(refused(&path, Exclusive), io::ErrorKind::ResourceBusy);
        drop(one);
        // The attempt that failed has left nothing behind.
        assert_eq!(refused(&path, Exclusive), io::ErrorKind::ResourceBusy);
        drop(two);
        let own = FileLock::take(&path, Exclusive).unwrap();
        assert_eq!(refused(&path, Exclusive), io::ErrorKind::WouldBlock);
        assert_eq!(refused(&path, Shared), io::ErrorKind::WouldBlock);
        drop(own);
    }

    #[test]
    fn a_lock_of_a_file_that_is_gone_does_not_count() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("LOCK");
        let lock = FileLock::take(&path, Exclusive).unwrap();
        assert!(lock.is_in_place().unwrap());
        fs::remove_file(&path).unwrap();
        assert!(!lock.is_in_place().unwrap());
        let next = FileLock::take(&path, Exclusive).unwrap();
        assert!(!lock.is_in_place().unwrap() && next.is_in_place().unwrap());
    }
}

//! The lock that makes a directory one's own: the kernel's lock (`flock`) of a file in it, and of the directory.
//!
//! It belongs to the open file, so two opens by one process exclude each other as those of two
//! processes do, by whatever path they came.
//!
//! The file can be removed while its lock is held, as people do who take it for left over, and the next
//! open makes another: the lock of the directory keeps that one out.
//!
//! Between opening and locking, the name may come to stand for another file or for none: somebody
//! destroys the store, and perhaps a third makes a new one. A lock of the former file keeps nobody
//! out. So a lock counts only if the name stands for the locked file once the lock is taken, and
//! whoever destroys the store holds its lock when he removes the file.

use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, OFlags, flock};

use super::descriptors::open_apart;
use super::forks::ParentsOnly;
use super::{Lock, LockMode};

/// How often a file that is gone once it is locked is looked for again. Each time somebody has removed
/// it in the few microseconds between two calls, and somebody made another.
const TRIES: usize = 100;
/// Before each further try, so that the tries do not keep step with who removes.
const PAUSE: Duration = Duration::from_micros(100);

/// Holds a lock until it is dropped.
pub(super) struct FileLock {
    path: PathBuf,
    /// `None` where who only reads may neither open nor make it: the directory has to do.
    file: Option<Held>,
    /// `None` where it cannot be locked, and the file has to do.
    dir: Option<Held>,
}

impl FileLock {
    pub(super) fn take(path: &Path, mode: LockMode) -> io::Result<FileLock> {
        let mut last = None;
        for _ in 0..TRIES {
            let file = match open(path, mode) {
                Err(e) if mode == LockMode::Shared && is_forbidden(&e) => Err(e),
                opened => Ok(Held::by_this_process(opened?)),
            };
            if let Ok(file) = &file {
                file.lock(mode)?;
            }
            match (lock_dir_of(path, mode), file) {
                (Ok(None), Err(e)) => return Err(e),
                (Ok(dir), file) => {
                    let lock = FileLock { path: path.to_path_buf(), file: file.ok(), dir };
                    if lock.counts()? {
                        return Ok(lock);
                    }
                }
                // Somebody whose file was removed has it: who destroys the store lets go of it now.
                (Err(e), _) if is_taken(&e) => last = Some(e),
                (Err(e), _) => return Err(e),
            }
            std::thread::sleep(PAUSE);
        }
        let removed = "it was removed each time before it could be locked; try again";
        Err(last.unwrap_or_else(|| io::Error::other(removed)))
    }

    /// Whether both names stand for what was locked.
    fn counts(&self) -> io::Result<bool> {
        Ok(self.file_is_in_place()? && self.is_in_place()?)
    }

    fn file_is_in_place(&self) -> io::Result<bool> {
        match &self.file {
            Some(file) => file.is_found(fs::symlink_metadata(&self.path)),
            None => Ok(true),
        }
    }
}

/// Whether a file may neither be opened nor made.
fn is_forbidden(e: &io::Error) -> bool {
    matches!(e.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

/// Whether somebody else has a lock.
fn is_taken(e: &io::Error) -> bool {
    matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::ResourceBusy)
}

/// The directory that a file is in.
fn dir_of(path: &Path) -> &Path {
    match path.parent() {
        Some(dir) if dir != Path::new("") => dir,
        _ => Path::new("."),
    }
}

/// Locks that directory.
fn lock_dir_of(path: &Path, mode: LockMode) -> io::Result<Option<Held>> {
    let dir = match open_apart(fs::OpenOptions::new().read(true), dir_of(path)) {
        Err(e) if is_forbidden(&e) => return Ok(None),
        opened => Held::by_this_process(opened?),
    };
    match dir.lock(mode) {
        Err(e) if is_taken(&e) => Err(e),
        // Some file systems lock no directories.
        locked => Ok(locked.ok().map(|()| dir)),
    }
}

/// An open file or directory, whose lock goes with it.
struct Held {
    file: fs::File,
    /// Has children of this process let go of it.
    noted: &'static ParentsOnly,
    /// Who took it: a forked child has the open file too, and is not to let go of what its parent holds.
    process: u32,
}

impl Held {
    fn by_this_process(file: fs::File) -> Held {
        let noted = ParentsOnly::note(file.as_raw_fd());
        Held { file, noted, process: std::process::id() }
    }

    /// Whether it is what was looked up by its name.
    fn is_found(&self, there: io::Result<fs::Metadata>) -> io::Result<bool> {
        let mine = self.file.metadata()?;
        match there {
            Ok(there) => Ok((there.dev(), there.ino()) == (mine.dev(), mine.ino())),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(e) => Err(e),
        }
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
    /// By the directory where that is locked: who removed the file got nobody in.
    fn is_in_place(&self) -> io::Result<bool> {
        match &self.dir {
            Some(dir) => dir.is_found(fs::metadata(dir_of(&self.path))),
            None => self.file_is_in_place(),
        }
    }

    fn open_files(&self) -> usize {
        [&self.file, &self.dir].into_iter().flatten().count()
    }
}

/// Opens the file, and makes it when it is missing. Who shares the lock need not be allowed to write,
/// if the file is there.
fn open(path: &Path, mode: LockMode) -> io::Result<fs::File> {
    let open = |write: bool| {
        let mut options = fs::OpenOptions::new();
        options.read(true).write(write).create(write).truncate(false);
        options.custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32);
        open_apart(&options, path)
    };
    match mode {
        LockMode::Exclusive => open(true),
        LockMode::Shared => match open(false) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => open(true),
            opened => opened,
        },
    }
}

impl Drop for Held {
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
        let inherited = lock.file.as_ref().unwrap().file.try_clone().unwrap();
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

    /// Who removed it as a thing left over got in beside who had the lock, and what that one wrote was lost.
    #[test]
    fn whoever_removes_the_file_of_a_lock_gets_no_other() {
        for mode in [Exclusive, Shared] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("LOCK");
            let lock = FileLock::take(&path, mode).unwrap();
            assert!(lock.is_in_place().unwrap());
            fs::remove_file(&path).unwrap();
            let busy = if mode == Shared {
                io::ErrorKind::ResourceBusy
            } else {
                io::ErrorKind::WouldBlock
            };
            assert_eq!(refused(&path, Exclusive), busy);
            assert!(lock.is_in_place().unwrap());
            drop(lock);
            assert!(FileLock::take(&path, Exclusive).unwrap().is_in_place().unwrap());
        }
    }

    #[test]
    fn a_lock_of_a_file_that_is_gone_does_not_count() {
        let dir = tempfile::tempdir().unwrap();
        let (here, there) = (dir.path().join("db"), dir.path().join("former"));
        fs::create_dir(&here).unwrap();
        let path = here.join("LOCK");
        let lock = FileLock::take(&path, Exclusive).unwrap();
        fs::rename(&here, there).unwrap();
        assert!(!lock.is_in_place().unwrap());
        fs::create_dir(&here).unwrap();
        let next = FileLock::take(&path, Exclusive).unwrap();
        assert!(!lock.is_in_place().unwrap() && next.is_in_place().unwrap());
    }
}

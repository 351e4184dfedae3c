//! The real file system.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::fs::{FlockOperation, OFlags};

use super::{Env, File, Map, OpenMode, system};

/// The operating system's files and clock.
#[derive(Debug)]
pub(crate) struct OsEnv {
    start: Instant,
}

impl OsEnv {
    pub(crate) fn new() -> OsEnv {
        OsEnv { start: Instant::now() }
    }
}

impl Env for OsEnv {
    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        fs::create_dir_all(dir)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(dir)? {
            // A name that is not UTF-8 is none of ours.
            if let Ok(name) = entry?.file_name().into_string() {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        // NOFOLLOW and NONBLOCK: a link or a pipe put in the directory must not lead anywhere or
        // hang us; what is not a regular file is refused below.
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = fs::OpenOptions::new()
            .read(true)
            .write(mode != OpenMode::Read)
            .create_new(mode == OpenMode::CreateNew)
            .custom_flags(flags.bits() as i32)
            .open(path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        Ok(Arc::new(OsFile { file, mapped: Default::default() }))
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        match fs::symlink_metadata(path) {
            Ok(_) => Ok(true),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(e) => Err(e),
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir(path)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::hard_link(from, to)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        fs::File::open(dir)?.sync_all()
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Send + Sync>> {
        DirLock::take(path).map(|l| Box::new(l) as Box<dyn Send + Sync>)
    }

    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn sleep(&self, how_long: Duration) {
        std::thread::sleep(how_long);
    }
}

/// Directories locked by this process. `flock` alone would do between open file descriptions; the
/// set answers a second open without opening (and closing) the lock file again.
static HELD: Mutex<Option<HashSet<PathBuf>>> = Mutex::new(None);

struct DirLock {
    key: PathBuf,
    file: fs::File,
}

impl DirLock {
    fn take(path: &Path) -> io::Result<DirLock> {
        let dir = path.parent().unwrap_or(Path::new("."));
        let key = fs::canonicalize(dir)?.join(path.file_name().unwrap_or_default());
        let mut held = HELD.lock();
        let held = held.get_or_insert_default();
        if held.contains(&key) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let file = fs::OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32)
            .open(path)?;
        rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        held.insert(key.clone());
        Ok(DirLock { key, file })
    }
}

impl Drop for DirLock {
    fn drop(&mut self) {
        if let Some(held) = HELD.lock().as_mut() {
            // The kernel's lock belongs to the open file, which a process forked a moment ago has
            // too, until it runs its program: closing our end would not free it then.
            let _ = rustix::fs::flock(&self.file, FlockOperation::Unlock);
            held.remove(&self.key);
        }
    }
}

#[derive(Debug)]
struct OsFile {
    file: fs::File,
    mapped: system::Mapped,
}

impl File for OsFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn allocated(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.blocks() * 512)
    }

    fn links(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.nlink())
    }

    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_exact_at(buf, offset)
    }

    fn write_all_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_all_at(buf, offset)
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        // Where the system cannot: writing sets the space aside too.
        if system::allocate(&self.file, len)? { Ok(()) } else { self.allocate_by_writing(len) }
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<bool> {
        system::punch(&self.file, offset, len)
    }

    fn sync(&self) -> io::Result<()> {
        self.mapped.sync(&self.file)
    }

    fn map(&self, len: u64, writable: bool) -> io::Result<Map> {
        if self.len()? < len {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let len = usize::try_from(len).map_err(|_| io::ErrorKind::InvalidInput)?;
        let mut options = memmap2::MmapOptions::new();
        options.len(len);
        if writable {
            let map = Arc::new(options.map_raw(&self.file)?);
            self.mapped.note(&map);
            Ok(Map::writable(map))
        } else {
            // SAFETY: the mapping is reached only through `Map`, whose users state why nobody
            // writes to the bytes they read.
            Ok(Map::read_only(unsafe { options.map(&self.file)? }))
        }
    }
}

impl OsFile {
    fn allocate_by_writing(&self, len: u64) -> io::Result<()> {
        let zeros = vec![0; 1 << 20];
        let mut at = self.len()?;
        if self.allocated()? < at.min(len) {
            // There are holes: what is there is written once more, their zeros included.
            super::write_again(self, at.min(len))?;
        }
        while at < len {
            let n = zeros.len().min((len - at) as usize);
            self.file.write_all_at(&zeros[..n], at)?;
            at += n as u64;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process that is forked while a store is closed has the lock's file open until it runs its
    /// program.
    #[test]
    fn a_lock_is_free_when_it_is_dropped_whoever_has_its_file_open() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("LOCK");
        let lock = DirLock::take(&path).unwrap();
        let inherited = lock.file.try_clone().unwrap();
        assert!(DirLock::take(&path).is_err());
        drop(lock);
        let again = DirLock::take(&path).unwrap();
        drop(inherited);
        assert!(DirLock::take(&path).is_err());
        drop(again);
    }
}

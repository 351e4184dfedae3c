//! The real file system.

use std::fs;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

use super::descriptors::open_apart;
use super::lock::FileLock;
use super::{Env, File, Lock, LockMode, Map, OpenMode, forks, system};

/// The operating system's files and clock.
#[derive(Debug)]
pub(crate) struct OsEnv {
    start: Instant,
}

impl OsEnv {
    pub(crate) fn new() -> OsEnv {
        forks::watch();
        OsEnv { start: Instant::now() }
    }
}

impl Env for OsEnv {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        fs::create_dir(dir)
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
        let mut options = fs::OpenOptions::new();
        options
            .read(true)
            .write(mode != OpenMode::Read)
            .create_new(mode == OpenMode::CreateNew)
            .custom_flags(flags.bits() as i32);
        let file = open_apart(&options, path)?;
        regular(file.metadata()?)?;
        Ok(Arc::new(OsFile { file, mapped: Default::default() }))
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        match fs::symlink_metadata(path) {
            Ok(_) => Ok(true),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(e) => Err(e),
        }
    }

    fn allocated(&self, path: &Path) -> io::Result<u64> {
        Ok(regular(fs::symlink_metadata(path)?)?.blocks() * 512)
    }

    fn leads_nowhere(&self, path: &Path) -> io::Result<bool> {
        let is_link = fs::symlink_metadata(path).is_ok_and(|m| m.is_symlink());
        Ok(is_link && !path.try_exists()?)
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
        let dir = open_apart(fs::OpenOptions::new().read(true), dir)?;
        // So that a refusal is one of the opening: a network's file system may answer so when it comes to write.
        dir.sync_all().map_err(|e| match e.kind() {
            io::ErrorKind::PermissionDenied => io::Error::other(e),
            _ => e,
        })
    }

    fn lock(&self, path: &Path, mode: LockMode) -> io::Result<Arc<dyn Lock>> {
        Ok(Arc::new(FileLock::take(path, mode)?))
    }

    fn available(&self, dir: &Path) -> u64 {
        rustix::fs::statvfs(dir).map_or(u64::MAX, |s| s.f_bavail.saturating_mul(s.f_frsize))
    }

    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn sleep(&self, how_long: Duration) {
        std::thread::sleep(how_long);
    }
}

fn regular(metadata: fs::Metadata) -> io::Result<fs::Metadata> {
    if metadata.is_file() {
        return Ok(metadata);
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"))
}

#[derive(Debug)]
struct OsFile {
    file: fs::File,
    mapped: system::WritableMappings,
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

    fn identity(&self) -> io::Result<(u64, u64)> {
        let metadata = self.file.metadata()?;
        Ok((metadata.dev(), metadata.ino()))
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

    fn begin_sync(&self, offset: u64, len: u64) {
        system::begin_sync(&self.file, offset, len);
    }

    fn map(&self, len: u64, writable: bool) -> io::Result<Map> {
        if self.len()? < len {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let len = usize::try_from(len).map_err(|_| io::ErrorKind::InvalidInput)?;
        let mut options = memmap2::MmapOptions::new();
        options.len(len);
        if writable {
            let map = Arc::new(options.map_raw(&self.file).map_err(say_what_to_raise)?);
            self.mapped.note(&map);
            Ok(Map::writable(map))
        } else {
            // SAFETY: the mapping is reached only through `Map`, whose users state why nobody
            // writes to the bytes they read.
            let map = unsafe { options.map(&self.file) };
            Ok(Map::read_only(map.map_err(say_what_to_raise)?))
        }
    }
}

/// The system says "out of memory" where a process has all the mappings that it may have.
fn say_what_to_raise(e: io::Error) -> io::Error {
    if e.kind() != io::ErrorKind::OutOfMemory {
        return e;
    }
    let what = "no room for another mapping: each table and log segment is one, and Linux allows a \
                process as many as vm.max_map_count says (65530); raise it, for instance with \
                `sysctl -w vm.max_map_count=262144`, or raise the limit of the address space";
    io::Error::new(e.kind(), format!("{what} ({e})"))
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

//! A directory that is read while nobody changes it.
//!
//! LevelDB takes a lock on the file `LOCK` for as long as a program has the database open. A shared
//! lock on it is refused then, writes nothing, and keeps such programs out in turn. What does not ask for the
//! lock (a copy onto the directory, a file system that has no locks) shows in the files: they are
//! looked at before and after.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags, fcntl_lock};
use rustix::io::Errno;

use super::name::{self, DataFile};
use crate::error::{Error, Result};

/// A file as it was: inode, length, time of the last change.
type Look = (u64, u64, i64, i64);

pub(super) struct Source {
    pub dir: PathBuf,
    files: BTreeMap<DataFile, (String, Look)>,
    /// The line that names the manifest.
    pub current: Option<Vec<u8>>,
    /// Its lock goes when it is closed.
    _lock: Option<File>,
}

/// Longer than any name of a manifest.
const CURRENT_BYTES: usize = 1000;

impl Source {
    pub fn open(dir: &Path) -> Result<Source> {
        let lock = hold_lock(dir)?;
        let (files, current) = look(dir)?;
        Ok(Source { dir: dir.to_owned(), files, current, _lock: lock })
    }

    /// Numbers and names of the files of a kind, in ascending order.
    pub fn files(&self) -> impl Iterator<Item = (DataFile, &str)> {
        self.files.iter().map(|(file, (name, _))| (*file, name.as_str()))
    }

    /// How long the file was.
    pub fn len_of(&self, file: DataFile) -> u64 {
        self.files.get(&file).map_or(0, |(_, look)| look.1)
    }

    /// An error if a file came, went or changed since.
    pub fn check_unchanged(&self) -> Result<()> {
        let (files, current) = look(&self.dir)?;
        if files == self.files && current == self.current {
            return Ok(());
        }
        let differs = |(file, now): (&DataFile, &(String, Look))| {
            (self.files.get(file) != Some(now)).then(|| self.dir.join(&now.0))
        };
        Err(Error::Changed(files.iter().find_map(differs).unwrap_or_else(|| self.dir.clone())))
    }
}

/// The lock that keeps those out who would open a database of LevelDB or RocksDB.
pub(crate) fn hold_lock(dir: &Path) -> Result<Option<File>> {
    let path = dir.join(name::LOCK);
    // A pipe of that name is not waited for.
    let flags = OFlags::NONBLOCK.bits() as i32;
    let file = match File::options().read(true).custom_flags(flags).open(&path) {
        Ok(file) => file,
        // Whoever opens the database makes it.
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(Error::io("open", &path)(e)),
    };
    match fcntl_lock(&file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => Ok(Some(file)),
        Err(Errno::AGAIN | Errno::ACCESS) => Err(Error::Refused(format!(
            "{} is held by another process that has the database open; end that first",
            path.display()
        ))),
        // A file system without locks; the look at the end remains.
        Err(Errno::NOLCK | Errno::OPNOTSUPP | Errno::INVAL) => Ok(None),
        Err(e) => Err(Error::io("lock", &path)(e.into())),
    }
}

type Seen = (BTreeMap<DataFile, (String, Look)>, Option<Vec<u8>>);

fn look(dir: &Path) -> Result<Seen> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(dir).map_err(Error::io("list", dir))? {
        let entry = entry.map_err(Error::io("list", dir))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(file) = DataFile::of(&name) else { continue };
        let path = entry.path();
        let m = fs::metadata(&path).map_err(Error::io("look at", &path))?;
        // A pipe would be waited for, and a device read without end.
        if !m.is_file() && !m.is_dir() {
            return Err(Error::Refused(format!(
                "{} is no file: a pipe, a device or a socket; move it away",
                path.display()
            )));
        }
        files.insert(file, (name, (m.ino(), m.len(), m.mtime(), m.mtime_nsec())));
    }
    let path = dir.join(name::CURRENT);
    let current = match files.get(&DataFile::Current) {
        None => None,
        Some((_, look)) if look.1 > CURRENT_BYTES as u64 => Some(Vec::new()),
        Some(_) => Some(fs::read(&path).map_err(Error::io("read", &path))?),
    };
    Ok((files, current))
}

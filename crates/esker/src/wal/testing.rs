//! What the tests of the log share: files in memory, with delays and failures.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use super::segment::Segment;
use crate::env::{Env, File, HeapPages, Lock, LockMode, Map, OpenMode};

/// A directory of heap-backed files of a fixed size; it outlives the segments opened in it.
#[derive(Debug, Default)]
pub(super) struct HeapEnv {
    files: parking_lot::Mutex<std::collections::BTreeMap<PathBuf, Arc<HeapFile>>>,
    pub dir_syncs: AtomicU64,
    pub fail_dir_sync: AtomicBool,
    /// The next sync of the directory fails, and those after it say that all is well. Of the models' kind: another thread may
    /// come in between.
    pub lose_names: crate::util::sync::AtomicBool,
    /// Stands for a full disk.
    pub fail_allocate: Arc<AtomicBool>,
    /// How far the clock moves each time it is read, in nanoseconds, and where it is.
    pub clock_step: AtomicU64,
    clock: AtomicU64,
}

#[derive(Debug, Default)]
pub(super) struct HeapFile {
    pages: parking_lot::Mutex<Option<Arc<HeapPages>>>,
    fail_allocate: Arc<AtomicBool>,
    pub fail_sync: AtomicBool,
    /// Refuses writes by call; mappings take them all the same.
    pub fail_write: AtomicBool,
    pub syncs: AtomicU64,
}

impl HeapEnv {
    pub(super) fn new() -> Arc<HeapEnv> {
        Arc::default()
    }
    pub(super) fn file(&self, path: &Path) -> Arc<HeapFile> {
        Arc::clone(&self.files.lock()[path])
    }
    /// Puts a file with these bytes there.
    pub(super) fn put(&self, path: &Path, bytes: &[u8]) {
        let file = Arc::new(HeapFile::default());
        if !bytes.is_empty() {
            file.allocate(bytes.len() as u64).unwrap();
            file.write_all_at(bytes, 0).unwrap();
        }
        self.files.lock().insert(path.to_path_buf(), file);
    }
    /// All bytes of a file.
    pub(super) fn bytes(&self, path: &Path) -> Vec<u8> {
        let file = self.file(path);
        let mut bytes = vec![0; file.len().unwrap() as usize];
        file.read_exact_at(&mut bytes, 0).unwrap();
        bytes
    }
}

impl HeapFile {
    /// Does something with the bytes of a range that is inside.
    fn with(&self, offset: u64, len: usize, f: impl FnOnce(&HeapPages)) -> io::Result<()> {
        let pages = self.pages.lock();
        let pages = pages.as_ref().filter(|p| offset as usize + len <= p.len());
        f(pages.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

impl File for HeapFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.pages.lock().as_ref().map_or(0, |p| p.len() as u64))
    }
    fn allocated(&self) -> io::Result<u64> {
        self.len()
    }
    fn links(&self) -> io::Result<u64> {
        Ok(1)
    }
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        self.with(offset, buf.len(), |pages| pages.read(offset as usize, buf))
    }
    fn write_all_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        if self.fail_write.load(Ordering::Relaxed) {
            return Err(io::Error::other("refused"));
        }
        self.with(offset, buf.len(), |pages| pages.write(offset as usize, buf))
    }
    fn allocate(&self, len: u64) -> io::Result<()> {
        if self.fail_allocate.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let old = self.len()? as usize;
        if old < len as usize {
            let mut bytes = vec![0; old];
            if old > 0 {
                self.read_exact_at(&mut bytes, 0)?;
            }
            *self.pages.lock() = Some(HeapPages::new(len as usize));
            self.write_all_at(&bytes, 0)?;
        }
        Ok(())
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut bytes = vec![0; (self.len()?.min(len)) as usize];
        self.read_exact_at(&mut bytes, 0)?;
        *self.pages.lock() = Some(HeapPages::new(len as usize));
        self.write_all_at(&bytes, 0)
    }
    fn punch(&self, _: u64, _: u64) -> io::Result<bool> {
        Ok(false)
    }
    fn sync(&self) -> io::Result<()> {
        self.syncs.fetch_add(1, Ordering::SeqCst);
        if self.fail_sync.load(Ordering::SeqCst) {
            return Err(io::Error::other("the medium is gone"));
        }
        Ok(())
    }
    fn map(&self, len: u64, _: bool) -> io::Result<Map> {
        let pages = self.pages.lock();
        let pages = pages.as_ref().ok_or(io::ErrorKind::UnexpectedEof)?;
        Map::heap(pages, len as usize).ok_or(io::ErrorKind::UnexpectedEof.into())
    }
}

impl Env for HeapEnv {
    fn create_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }
    fn list(&self, _: &Path) -> io::Result<Vec<String>> {
        unimplemented!("the log lists no directories")
    }
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let mut files = self.files.lock();
        if mode == OpenMode::CreateNew {
            let fail_allocate = Arc::clone(&self.fail_allocate);
            let file = Arc::new(HeapFile { fail_allocate, ..Default::default() });
            files.insert(path.to_path_buf(), file);
        }
        let file = files.get(path).ok_or(io::ErrorKind::NotFound)?;
        Ok(Arc::clone(file) as Arc<dyn File>)
    }
    fn exists(&self, path: &Path) -> io::Result<bool> {
        Ok(self.files.lock().contains_key(path))
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut files = self.files.lock();
        let file = files.remove(from).ok_or(io::ErrorKind::NotFound)?;
        files.insert(to.to_path_buf(), file);
        Ok(())
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.files.lock().remove(path).map(drop).ok_or(io::ErrorKind::NotFound.into())
    }
    fn remove_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }
    fn hard_link(&self, _: &Path, _: &Path) -> io::Result<()> {
        unimplemented!("the log makes no links")
    }
    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        self.dir_syncs.fetch_add(1, Ordering::SeqCst);
        if self.lose_names.swap(false, Ordering::SeqCst)
            || self.fail_dir_sync.load(Ordering::SeqCst)
        {
            return Err(io::Error::other("the directory is gone"));
        }
        Ok(())
    }
    fn lock(&self, _: &Path, _: LockMode) -> io::Result<Arc<dyn Lock>> {
        unimplemented!("the log takes no locks")
    }
    fn now(&self) -> Duration {
        let step = self.clock_step.load(Ordering::Relaxed);
        Duration::from_nanos(self.clock.fetch_add(step, Ordering::Relaxed))
    }
    fn sleep(&self, _: Duration) {}
}

/// A fresh segment in memory, and where it lives.
pub(super) fn segment(number: u64, bytes: u64) -> (Arc<HeapEnv>, Arc<Segment>) {
    let env = HeapEnv::new();
    let dynamic: Arc<dyn Env> = env.clone();
    let segment = Segment::create(&dynamic, Path::new(""), number, bytes, None).unwrap();
    (env, Arc::new(segment))
}

/// Opens what `segment` or a recovery left.
pub(super) fn reopen(env: &Arc<HeapEnv>, number: u64) -> crate::Result<Segment> {
    let dynamic: Arc<dyn Env> = env.clone();
    Segment::open(&dynamic, Path::new(""), number, true)
}

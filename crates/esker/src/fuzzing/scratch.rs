//! A directory to fuzz in, gone with its owner.

use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::env::{Env, OpenMode, OsEnv, create_dir_durably};

pub(super) struct Scratch {
    pub env: Arc<dyn Env>,
    pub dir: PathBuf,
}

thread_local! {
    static OF_THREAD: Rc<Scratch> = Rc::new(Scratch::new());
}

impl Scratch {
    /// A new, empty directory; in memory where there is a file system for that.
    pub fn new() -> Scratch {
        static MADE: AtomicU64 = AtomicU64::new(0);
        let env: Arc<dyn Env> = Arc::new(OsEnv::new());
        let shm = PathBuf::from("/dev/shm");
        let parent = if env.exists(&shm).unwrap_or(false) { shm } else { std::env::temp_dir() };
        let n = MADE.fetch_add(1, Ordering::Relaxed);
        let dir = parent.join(format!("esker-fuzz-{}-{n}", std::process::id()));
        create_dir_durably(&*env, &dir).expect("a directory to fuzz in");
        Scratch { env, dir }
    }

    /// One for all inputs that this thread runs; each removes what it finds in its way.
    pub fn of_this_thread() -> Rc<Scratch> {
        OF_THREAD.with(Rc::clone)
    }

    /// Writes a file of the directory.
    pub fn write(&self, name: &str, bytes: &[u8]) {
        let path = self.dir.join(name);
        drop(self.env.remove(&path));
        let file = self.env.open(&path, OpenMode::CreateNew).expect("a file to fuzz");
        file.write_all_at(bytes, 0).expect("writing a file to fuzz");
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        for dir in [self.dir.join("lost"), self.dir.clone()] {
            for name in self.env.list(&dir).unwrap_or_default() {
                drop(self.env.remove(&dir.join(name)));
            }
            drop(self.env.remove_dir(&dir));
        }
    }
}

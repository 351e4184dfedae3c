//! The names of a store's files, made durable: syncs of its directory.
//!
//! Of a directory that could not be written the system tells once, and one caller only: whoever syncs it next is told that
//! all is well, though names of files may be lost. So all that belongs to one store syncs its directory here, one after the
//! other, and after a failure nobody is told that all is well until [`DirSync::forget`].

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::env::Env;
use crate::error::{Error, Result};
use crate::util::sync::Mutex;

/// Syncs of a store's directory.
#[derive(Debug)]
pub(crate) struct DirSync {
    env: Arc<dyn Env>,
    dir: PathBuf,
    failed: Mutex<Option<Error>>,
}

impl DirSync {
    pub(crate) fn new(env: Arc<dyn Env>, dir: &Path) -> DirSync {
        DirSync { env, dir: dir.to_path_buf(), failed: Mutex::new(None) }
    }

    /// Makes the names of all files that are there durable.
    ///
    /// # Errors
    /// What the system says, or has said before.
    pub(crate) fn sync(&self) -> Result<()> {
        let mut failed = self.failed.lock();
        if let Some(e) = &*failed {
            return Err(e.clone());
        }
        let synced = self.env.sync_dir(&self.dir);
        let synced = synced.map_err(|e| Error::io("sync", &self.dir, e));
        *failed = synced.as_ref().err().filter(|e| !e.was_not_tried()).cloned();
        synced
    }

    /// Why names of files may be lost.
    pub(crate) fn failed(&self) -> Option<Error> {
        self.failed.lock().clone()
    }

    /// From here on a sync tells of the names that there are then. What failed before is the caller's to put right: all that
    /// counts has to go on in files of other names.
    #[must_use = "nobody else knows of it any more"]
    pub(crate) fn forget(&self) -> Option<Error> {
        self.failed.lock().take()
    }
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;

    use super::*;
    use crate::env::sim::{CallKind, SimEnv};

    #[test]
    fn who_syncs_after_a_failure_is_told_of_it_too() {
        let env = SimEnv::new(1, true);
        let names = DirSync::new(Arc::new(env.clone()), Path::new("/"));
        names.sync().unwrap();
        env.fail_first(CallKind::SyncDir, "/");
        assert!(names.sync().is_err());
        // The system would say that all is well, and is not asked.
        let calls = env.call_count();
        assert!(names.sync().is_err() && names.failed().is_some());
        assert_eq!(env.call_count(), calls);
        assert!(names.forget().is_some() && names.forget().is_none());
        names.sync().unwrap();
        assert!(names.failed().is_none());
    }

    #[test]
    fn what_a_sync_may_answer_is_no_refusal() {
        let tried = |e: Errno| !Error::io("sync", Path::new("/"), e.into()).was_not_tried();
        for e in [Errno::IO, Errno::NOSPC, Errno::DQUOT, Errno::ROFS, Errno::NOMEM, Errno::INTR] {
            assert!(tried(e), "{e:?}");
        }
        for e in [Errno::MFILE, Errno::NFILE, Errno::ACCESS] {
            assert!(!tried(e), "{e:?}");
        }
    }
}

//! Taking a directory: for oneself, to change what is in it, or together with other readers.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use crate::env::{Env, Lock, LockMode};
use crate::error::{Error, Result};
use crate::filename::LOCK;

/// Held as long as somebody uses files of the directory.
pub(crate) type DirLock = Arc<dyn Lock>;

/// Takes the lock of a directory. `None` when the directory is not there (any more).
pub(crate) fn lock_dir(env: &dyn Env, dir: &Path, mode: LockMode) -> Result<Option<DirLock>> {
    let path = dir.join(LOCK);
    match env.lock(&path, mode) {
        Ok(lock) => Ok(Some(lock)),
        Err(e) => match e.kind() {
            ErrorKind::NotFound => Ok(None),
            ErrorKind::WouldBlock => Err(Error::Locked { path, for_reading: false }),
            ErrorKind::ResourceBusy => Err(Error::Locked { path, for_reading: true }),
            // A medium that cannot be written has no writers to fear.
            ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied
                if mode == LockMode::Shared =>
            {
                Ok(Some(Arc::new(())))
            }
            _ => Err(Error::io("lock", &path, e)),
        },
    }
}

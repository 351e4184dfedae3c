//! The directory of a run's stores. It goes on every way out; only a run that was itself killed with
//! `kill -9` leaves one, and the next run in the same place removes that.

use anyhow::{Context, Result};
use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const PREFIX: &str = "esker-bench-";
/// Locked as long as the run lives.
const OWNER: &str = "owner";

/// A directory, and the lock that says that it is in use.
#[derive(Debug)]
pub struct Root {
    dir: TempDir,
    _owner: File,
}

impl Root {
    /// Makes one below `parent`, or in the usual place. In memory nothing would be measured of the
    /// disk, so a `TMPDIR` that is not on one is passed over.
    pub fn make(parent: Option<&Path>) -> Result<Root> {
        let parent = match parent {
            Some(dir) => {
                std::fs::create_dir_all(dir)
                    .with_context(|| format!("cannot make {}", dir.display()))?;
                dir.to_path_buf()
            }
            None => default_parent(),
        };
        remove_abandoned(&parent);
        let dir = tempfile::Builder::new()
            .prefix(PREFIX)
            .tempdir_in(&parent)
            .with_context(|| format!("cannot make a directory in {}", parent.display()))?;
        // Locked before it has the name under which others look for it.
        let unnamed = dir.path().join("owner.new");
        let owner = File::create(&unnamed)?;
        flock(&owner, FlockOperation::NonBlockingLockExclusive).context("lock the directory")?;
        std::fs::rename(&unnamed, dir.path().join(OWNER))?;
        Ok(Root { dir, _owner: owner })
    }
    /// Where it is.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }
    /// Removes it; an error says that it is still there.
    pub fn close(self) -> Result<()> {
        self.dir.close().context("cannot remove the stores")
    }
}

/// Removes what runs left that did not live to do so.
fn remove_abandoned(parent: &Path) {
    for entry in std::fs::read_dir(parent).into_iter().flatten().flatten() {
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        let Ok(owner) = File::open(entry.path().join(OWNER)) else { continue };
        if flock(&owner, FlockOperation::NonBlockingLockExclusive).is_ok() {
            // What cannot be removed is somebody else's, or none of our business any more.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

fn default_parent() -> PathBuf {
    let temp = std::env::temp_dir();
    if in_memory(&temp) { PathBuf::from(".") } else { temp }
}

fn in_memory(dir: &Path) -> bool {
    const TMPFS: u64 = 0x0102_1994;
    rustix::fs::statfs(dir).is_ok_and(|fs| fs.f_type as u64 == TMPFS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_nobody_uses_is_removed() {
        let parent = tempfile::tempdir().unwrap();
        let alive = Root::make(Some(parent.path())).unwrap();
        let abandoned = parent.path().join("esker-bench-x");
        std::fs::create_dir_all(abandoned.join("store-1")).unwrap();
        std::fs::write(abandoned.join(OWNER), "").unwrap();
        let strange = parent.path().join("esker-bench-results");
        std::fs::create_dir(&strange).unwrap();
        let second = Root::make(Some(parent.path())).unwrap();
        assert!(alive.path().exists() && strange.exists() && second.path().exists());
        assert!(!abandoned.exists());
        let path = second.path().to_path_buf();
        second.close().unwrap();
        assert!(!path.exists());
    }
}

//! One set-up at a time in a directory. Whoever is alone there may remove what a set-up left that was interrupted.

use anyhow::{Context, Result};
use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::path::Path;

/// What directories are called in which something is being made.
pub const UNFINISHED: &str = "building-";

/// Locked as long as a set-up is at work. It stays: whoever waits for it has it open.
const LOCK: &str = "set-up.lock";

/// Holds a directory for one set-up; others wait until it is dropped.
pub struct Alone(#[expect(dead_code, reason = "the lock goes when it is closed")] File);

impl Alone {
    /// Waits until no other set-up is at work in `dir`, calling `busy` before if one is, and removes what is unfinished there.
    pub fn in_dir(dir: &Path, busy: impl FnOnce() -> Result<()>) -> Result<Alone> {
        let path = dir.join(LOCK);
        let lock = File::create(&path).with_context(|| path.display().to_string())?;
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            busy()?;
            flock(&lock, FlockOperation::LockExclusive).context("lock the directory")?;
        }
        for entry in std::fs::read_dir(dir)?.flatten() {
            if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
                // What cannot be removed is in nobody's way.
                let _ = std::fs::remove_dir_all(entry.path());
            }
        }
        Ok(Alone(lock))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn what_an_interrupted_set_up_left_goes_once_nobody_else_is_at_work() {
        let dir = tempfile::tempdir().unwrap();
        let first = Alone::in_dir(dir.path(), || panic!("nobody is there")).unwrap();
        let (unfinished, made) = (dir.path().join("building-x"), dir.path().join("lmdb-1.0.2"));
        std::fs::create_dir_all(unfinished.join("sources")).unwrap();
        std::fs::create_dir(&made).unwrap();
        let (say, said) = channel();
        std::thread::scope(|scope| {
            let second = scope.spawn(|| Alone::in_dir(dir.path(), || Ok(say.send(())?)));
            said.recv().expect("it says that it waits");
            assert!(unfinished.exists(), "the first may still be making it");
            drop(first);
            second.join().unwrap().unwrap();
        });
        assert!(!unfinished.exists() && made.exists());
    }
}

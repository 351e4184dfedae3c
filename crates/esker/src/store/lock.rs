//! Taking a directory: for oneself, to change what is in it, or together with other readers.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

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

/// How long a directory that somebody removes is found or made again.
const PATIENCE: Duration = Duration::from_secs(2);
/// The longest of the pauses between two attempts, which begin at a thousandth of it.
const LONGEST_PAUSE: Duration = Duration::from_millis(10);

/// Makes attempts for a while, until one is not `None`. Attempts alone, however many, are over in less than
/// a millisecond, and so long may the name of a directory lead to one in which nothing can be made any more:
/// whoever removes it need not be running just then.
pub(crate) fn patiently<T>(
    env: &dyn Env,
    mut attempt: impl FnMut() -> Result<Option<T>>,
) -> Result<Option<T>> {
    let (begun, mut pause) = (env.now(), LONGEST_PAUSE / 1000);
    loop {
        let done = attempt()?;
        if done.is_some() || env.now().saturating_sub(begun) >= PATIENCE {
            return Ok(done);
        }
        env.sleep(pause);
        pause = (2 * pause).min(LONGEST_PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::sim::SimEnv;

    /// A hundred attempts were over before a process that was removing the directory ran again.
    #[test]
    fn an_open_outlasts_one_who_removes_the_directory_and_is_held_up() {
        let env = SimEnv::new(1, true);
        let begun = env.now();
        let mut attempts = 0;
        let taken = patiently(&env, || {
            attempts += 1;
            Ok((env.now() - begun >= Duration::from_millis(500)).then_some("the lock"))
        });
        assert_eq!(taken.unwrap(), Some("the lock"));
        assert!(attempts < 100, "{attempts}");
        assert_eq!(patiently(&env, || Ok(None::<()>)).unwrap(), None, "it ends");
        let locked = || Error::Locked { path: "LOCK".into(), for_reading: false };
        patiently(&env, || Err::<Option<()>, _>(locked())).expect_err("an error ends it at once");
    }
}

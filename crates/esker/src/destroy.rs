//! Removing a store. Its `CURRENT` becomes a mark first: what a kill leaves half removed is known by that, is no
//! store, and the next open or destroy removes the rest. Without a mark, files that have lost their `CURRENT` and
//! manifest are a damaged store, which nothing removes unasked.

use std::io::ErrorKind;
use std::path::Path;

use crate::env::{Env, LockMode, OpenMode};
use crate::error::{Error, Result};
use crate::filename::{self, CURRENT, DESTROYED, LOCK, LOST};
use crate::store::lock_dir;
use crate::version;

/// Removes a store that is not open, or what is left of one.
pub(crate) fn destroy(env: &dyn Env, dir: &Path) -> Result<()> {
    let names = match env.list(dir) {
        // Nothing is there, or somebody else is just removing it.
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
        listed => listed.map_err(|e| Error::io("list", dir, e))?,
    };
    version::refuse_foreign(env, dir)?;
    if !names.iter().any(|n| filename::parse(n).is_some()) {
        return Err(Error::NotAStore { path: dir.to_path_buf() });
    }
    let Some(lock) = lock_dir(env, dir, LockMode::Exclusive)? else {
        // Somebody else has just removed it.
        return Ok(());
    };
    mark(env, dir)?;
    remove_lost(env, &dir.join(LOST))?;
    remove_rest(env, dir)?;
    // The lock's file last: without it the next owner may come, whose files are not to be removed.
    remove(env, &dir.join(LOCK))?;
    drop(lock);
    // Fails when something of the user's is in it, which then stays.
    drop(env.remove_dir(dir));
    Ok(())
}

/// Says durably, before anything is removed, that all is to be.
fn mark(env: &dyn Env, dir: &Path) -> Result<()> {
    let (current, mark) = (dir.join(CURRENT), dir.join(DESTROYED));
    match env.rename(&current, &mark) {
        // Damaged, or marked before. A full disk may have no room for the mark: then what a kill leaves half
        // removed is a damaged store, which can be destroyed again.
        Err(e) if e.kind() == ErrorKind::NotFound => drop(env.open(&mark, OpenMode::CreateNew)),
        renamed => renamed.map_err(|e| Error::io("rename to a mark", &current, e))?,
    }
    env.sync_dir(dir).map_err(|e| Error::io("sync", dir, e))
}

/// Removes what a directory holds of a store that is none any more or not yet, but the lock's file, whose lock the
/// caller has. The mark goes when the rest is durably gone.
pub(crate) fn remove_rest(env: &dyn Env, dir: &Path) -> Result<()> {
    // Listed when nobody else is in it.
    let names = env.list(dir).map_err(|e| Error::io("list", dir, e))?;
    if names.iter().any(|n| n == DESTROYED) {
        remove_lost(env, &dir.join(LOST))?;
    }
    let goes =
        |n: &&String| filename::parse(n).is_some() && !matches!(n.as_str(), LOCK | DESTROYED);
    for name in names.iter().filter(goes) {
        remove(env, &dir.join(name))?;
    }
    if names.iter().any(|n| n == DESTROYED) {
        env.sync_dir(dir).map_err(|e| Error::io("sync", dir, e))?;
        remove(env, &dir.join(DESTROYED))?;
    }
    Ok(())
}

/// Removes what a repair put aside, and its directory if nothing else is in it. A link leads outside, and is left alone
/// as repair does, and so is a store that somebody keeps in a directory of this name.
fn remove_lost(env: &dyn Env, lost: &Path) -> Result<()> {
    let links = rustix::io::Errno::LOOP.raw_os_error();
    if env.open(lost, OpenMode::Read).is_err_and(|e| e.raw_os_error() == Some(links)) {
        return Ok(());
    }
    let names = match env.list(lost) {
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(());
        }
        listed => listed.map_err(|e| Error::io("list", lost, e))?,
    };
    if names.iter().any(|n| n == CURRENT) {
        return Ok(());
    }
    for name in names.iter().filter(|n| filename::is_put_aside(n)) {
        remove(env, &lost.join(name))?;
    }
    drop(env.remove_dir(lost));
    Ok(())
}

fn remove(env: &dyn Env, path: &Path) -> Result<()> {
    match env.remove(path) {
        Err(e) if e.kind() != ErrorKind::NotFound => Err(Error::io("remove", path, e)),
        _ => Ok(()),
    }
}

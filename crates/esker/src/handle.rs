//! What keeps a store open: shared by every `Db` and `Keyspace`; the last one to go closes it.

use std::sync::Arc;
use std::thread::JoinHandle;

use parking_lot::Mutex;

use crate::compaction::background;
use crate::comparator;
use crate::error::{Error, Result};
use crate::store::{KeyspaceState, Store, Writer};
use crate::version::{Change, VersionEdit};
use crate::wal::Position;

/// An open store with its background thread.
#[derive(Debug)]
pub(crate) struct Handle {
    pub store: Arc<Store>,
    worker: Mutex<Worker>,
    /// Who opened it.
    process: u32,
}

#[derive(Debug)]
struct Worker {
    /// Nothing where the store was closed, or is open for reading only.
    running: Option<JoinHandle<()>>,
    /// What came of closing it: who closes once more is told the same.
    ended: Result<()>,
}

/// Starts the background thread; of a store that is stepped by whoever waits for it, one that ends at once.
fn start_worker(store: &Arc<Store>) -> Result<JoinHandle<()>> {
    #[cfg(test)]
    if store.env.is_stepped() {
        let weak = Arc::downgrade(store);
        let step = move || {
            if let Some(store) = weak.upgrade() {
                store.step(std::time::Duration::ZERO);
            }
        };
        drop(store.signal.stepper.0.set(Box::new(step)));
        return Ok(std::thread::spawn(|| ()));
    }
    let started = background::start(Arc::clone(store));
    started.map_err(|e| Error::io("start a thread for", &store.dir, e))
}

impl Handle {
    pub(crate) fn start(store: Store) -> Result<Handle> {
        let store = Arc::new(store);
        if !store.options.read_only && !store.options.flush_on_close {
            // Where it cannot be done the worker tries again, and says why.
            drop(comparator::catch(|| store.flush_recovered()));
        }
        let running = if store.options.read_only { None } else { Some(start_worker(&store)?) };
        let worker = Mutex::new(Worker { running, ended: Ok(()) });
        Ok(Handle { store, worker, process: std::process::id() })
    }

    /// Flushes, unless that is not wanted, stops the background thread and marks the store as closed in order. Later calls on
    /// other handles fail with [`Error::Closed`]. On an error the store is closed all the same; what
    /// was written is in the log and is found at the next open.
    ///
    /// In a forked child it does nothing: the log and the lock are its parent's, and the background thread is not there.
    pub(crate) fn close(&self) -> Result<()> {
        if self.process != std::process::id() {
            // Nor is anything dropped: another thread may have held any lock when the process forked.
            std::mem::forget(Arc::clone(&self.store));
            std::mem::forget(self.worker.try_lock().and_then(|mut worker| worker.running.take()));
            return Ok(());
        }
        let mut worker = self.worker.lock();
        match worker.running.take() {
            Some(running) => worker.ended = end(&self.store, running),
            None => {
                // Closed before, or open for reading only.
                self.store.set_closed();
                self.store.let_go_of_dir();
            }
        }
        worker.ended.clone()
    }
}

/// Closes a store whose background thread is `running`.
fn end(store: &Store, running: JoinHandle<()>) -> Result<()> {
    let flushed = if store.options.flush_on_close { store.flush_all() } else { Ok(()) };
    store.set_closed();
    store.signal.stop();
    // A panic of it was printed by its thread; the log holds everything.
    drop(running.join());
    // Compactions on the threads of users end at their next slice, and none begins.
    let jobs = store.jobs.lock();
    let ended = flushed.and_then(|()| end_log(store));
    // What is under way elsewhere changes nothing any more.
    store.end_file_numbers();
    store.version_set.lock().close();
    {
        let mut w = store.writer.lock();
        *w = Writer::new(w.last_seq);
    }
    // Also where the flush failed: what stays in the log is durable.
    if store.sync.sync_all().is_ok() {
        store.sync.retire(u64::MAX);
    }
    store.let_go_of_dir();
    drop(jobs);
    ended
}

/// Puts the end of the log down in the manifest, after the last flush and with no compaction under way,
/// and gives back what nobody needs.
fn end_log(store: &Store) -> Result<()> {
    // Writers that were past the check when the store was marked as closed are through once we have
    // the lock.
    let mut w = store.writer.lock();
    let in_memory =
        |ks: &Arc<KeyspaceState>| ks.super_version.load().memtables.iter().any(|m| !m.is_empty());
    if w.has_entries() || store.all_keyspaces().iter().any(in_memory) {
        // Nothing was to be flushed; or someone wrote between the flush and the close, and perhaps sealed
        // what he wrote. It stays in the log.
        store.sync.sync_all()?;
        return store.sync.check_settled(Position { segment: u64::MAX, end: 0 });
    }
    let last = w.log_writer.take().map(|a| a.segment().number());
    w.segment = None;
    w.recent = None;
    // Held to the end: whatever came after would end the clean close.
    let mut version_set = store.version_set.lock();
    if let Some(segment) = last {
        let changes = vec![
            Change::LogStart { segment: segment + 1, durable: Position::default() },
            Change::LastSeq { seq: w.last_seq },
            Change::NextFile { number: store.end_file_numbers() },
            Change::CleanClose,
        ];
        store.commit(&mut version_set, VersionEdit::from(changes))?;
        store.segments.advance(segment + 1, || store.old_super_versions());
    }
    drop(w);
    store.let_go_of_spare();
    store.sync.retire(u64::MAX);
    store.delete_obsolete_until(true, || version_set.tell_manifest_length().is_ok(), || false);
    // Once more: segments that the first round set free.
    store.delete_obsolete_until(true, || version_set.tell_manifest_length().is_ok(), || false);
    // Not made durable: the `CURRENT` of before is as true, and tells less.
    let told = if last.is_some() { version_set.tell_manifest_length() } else { Ok(()) };
    version_set.close();
    told
}

impl Drop for Handle {
    fn drop(&mut self) {
        let worker = self.worker.get_mut();
        if (comparator::is_comparing() || background::is_worker())
            && self.process == std::process::id()
            && let Some(running) = worker.running.take()
        {
            return self.close_elsewhere(running);
        }
        // Nobody is left to tell; the log holds everything that was written.
        drop(self.close());
    }
}

impl Handle {
    /// Closes the store on a thread of its own. For the background thread, which cannot wait for itself and may be the last
    /// to let go: a comparator may hold what holds the store. And for a comparator on another thread, whose locks are its
    /// caller's.
    #[cold]
    fn close_elsewhere(&self, running: JoinHandle<()>) {
        let store = Arc::clone(&self.store);
        let close = move || drop(end(&store, running));
        if std::thread::Builder::new().name("esker-close".into()).spawn(close).is_err() {
            // What was written is in the log. The directory goes with the background thread.
            self.store.set_closed();
            self.store.signal.stop();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use crate::env::sim::SimEnv;
    use crate::{Db, Error, Options};

    /// Whoever closed once more was told that all is well.
    #[test]
    fn a_close_that_failed_was_forgotten() {
        let env = Arc::new(SimEnv::new(1, true));
        let db = Db::open_in(env, Path::new("/db"), Options::new()).unwrap();
        db.put("key", "value").unwrap();
        db.store().halt(Error::io("sync", Path::new("/db"), std::io::ErrorKind::Other.into()));
        let first = db.clone().close().unwrap_err();
        assert_eq!(db.clone().close().unwrap_err().to_string(), first.to_string());
        assert!(db.close().is_err());
    }
}

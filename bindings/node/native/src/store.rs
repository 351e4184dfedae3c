//! A store of JavaScript's: open or not, the calls that are under way, and the walks that must not outlive it.

use std::collections::HashMap;
use std::ops::Deref;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};

use esker::{Db, Options, View};

use crate::error::{Fail, Outcome};
use crate::handle::Held;
use crate::in_place::InPlace;
use crate::registry::{self, Shared};
use crate::snapshot::Snapshot;
use crate::walk::Walk;

/// Takes a lock also when a panic left it.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What JavaScript opens and closes, any number of times.
#[derive(Default)]
pub struct Store {
    open: Mutex<Option<Arc<Open>>>,
}

/// An open store.
pub struct Open {
    db: Db,
    /// Other threads of this process may have it too.
    shared: Option<Shared>,
    /// Calls that closing waits for.
    calls: Mutex<usize>,
    no_calls: Condvar,
    /// By number. A walk keeps the directory locked, so all of them end with the store.
    walks: Mutex<Walks>,
    /// Of single reads.
    reads: InPlace,
    /// Of single writes.
    writes: InPlace,
    /// Whether a write waits for the device unless it says otherwise.
    is_synced: bool,
}

#[derive(Default)]
struct Walks {
    last: u64,
    open: HashMap<u64, Weak<Walk>>,
}

/// A call under way, for which closing waits.
pub struct Call(Arc<Open>);

impl Call {
    /// The open store, for when the call has ended.
    pub fn opened(&self) -> Arc<Open> {
        Arc::clone(&self.0)
    }
}

impl Deref for Call {
    type Target = Open;

    fn deref(&self) -> &Open {
        &self.0
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let mut calls = lock(&self.0.calls);
        *calls -= 1;
        if *calls == 0 {
            self.0.no_calls.notify_all();
        }
    }
}

impl Store {
    /// Opens it.
    pub fn open(
        &self,
        path: &Path,
        options: &Options,
        multithreading: bool,
        is_synced: bool,
    ) -> Outcome<()> {
        // Held meanwhile, so that it is opened once.
        let mut open = lock(&self.open);
        if open.is_some() {
            return Err(Fail::Invalid("the store is open already".to_string()));
        }
        let (db, shared) = if multithreading {
            let shared = registry::open(path, options, is_synced)?;
            (shared.db().clone(), Some(shared))
        } else {
            (options.open(path)?, None)
        };
        let is_synced = shared.as_ref().map_or(is_synced, Shared::is_synced);
        *open = Some(Arc::new(Open {
            db,
            shared,
            calls: Mutex::default(),
            no_calls: Condvar::new(),
            walks: Mutex::default(),
            reads: InPlace::new(),
            writes: InPlace::new(),
            is_synced,
        }));
        Ok(())
    }

    /// The open store, for a call that closing does not wait for.
    pub fn opened(&self) -> Outcome<Arc<Open>> {
        lock(&self.open).clone().ok_or(Fail::NotOpen)
    }

    /// The open store, for a call that closing waits for.
    pub fn call(&self) -> Outcome<Call> {
        let open = lock(&self.open);
        let open = open.as_ref().ok_or(Fail::NotOpen)?;
        *lock(&open.calls) += 1;
        Ok(Call(Arc::clone(open)))
    }

    /// Refuses calls from now on, waits for those under way, and closes. Closing what is not open does nothing.
    pub fn close(&self) -> Outcome<()> {
        let Some(open) = lock(&self.open).take() else { return Ok(()) };
        let mut calls = lock(&open.calls);
        while *calls > 0 {
            calls = open.no_calls.wait(calls).unwrap_or_else(PoisonError::into_inner);
        }
        drop(calls);
        open.close()
    }
}

impl Held for Store {
    const NAME: &'static str = "store";
    const IS_TOLD: bool = true;

    /// Closes without waiting for calls: those that are still under way fail.
    fn environment_ends(&self) {
        if let Some(open) = lock(&self.open).take() {
            let _ = open.close();
        }
    }
}

impl Drop for Store {
    /// A program forgot to close it, and it was collected. Closing may take long, and this is the thread of the event loop.
    fn drop(&mut self) {
        let Some(open) = lock(&self.open).take() else { return };
        let close = move || drop(open.close());
        // Where no thread can be started the closure is dropped, and the store with it.
        drop(std::thread::Builder::new().name("esker-close".to_string()).spawn(close));
    }
}

impl Open {
    /// The library's handle.
    pub fn db(&self) -> &Db {
        &self.db
    }

    /// Which reads run on the thread of the event loop.
    pub fn reads(&self) -> &InPlace {
        &self.reads
    }

    /// Which writes do, of those that do not wait for the device.
    pub fn writes(&self) -> &InPlace {
        &self.writes
    }

    /// Whether a write waits for the device; `sync` is what it says of that.
    pub fn waits(&self, sync: Option<bool>) -> bool {
        sync.unwrap_or(self.is_synced)
    }

    /// The store at this moment, or at that of a snapshot.
    pub fn view(&self, snapshot: Option<&Snapshot>) -> Outcome<View> {
        match snapshot {
            Some(snapshot) => snapshot.with(|snapshot| self.db.at(snapshot)),
            None => Ok(self.db.at(&self.db.snapshot())),
        }
    }

    /// Notes a walk, and says under which number.
    pub fn walk_begins(&self, walk: &Weak<Walk>) -> u64 {
        let mut walks = lock(&self.walks);
        walks.last += 1;
        let number = walks.last;
        walks.open.insert(number, Weak::clone(walk));
        number
    }

    /// Forgets a walk.
    pub fn walk_ends(&self, number: u64) {
        lock(&self.walks).open.remove(&number);
    }

    fn close(&self) -> Outcome<()> {
        let walks: Vec<_> = lock(&self.walks).open.drain().collect();
        for walk in walks.iter().filter_map(|(_, walk)| walk.upgrade()) {
            walk.close();
        }
        match &self.shared {
            Some(shared) => shared.release(),
            None => Ok(self.db.clone().close()?),
        }
    }
}

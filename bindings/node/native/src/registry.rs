//! Stores that several threads of this process share: those that were opened with `multithreading`. The last one closes.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex};

use esker::{Db, Options};

use crate::error::Outcome;
use crate::store::lock;

/// It is locked while the store is opened or closed, so that others wait.
type Slot = Arc<Mutex<Option<Joined>>>;

/// A store, and how many have it open.
struct Joined {
    count: usize,
    db: Db,
    /// As the first one opened it.
    is_synced: bool,
}

static SLOTS: LazyLock<Mutex<HashMap<PathBuf, Slot>>> = LazyLock::new(Mutex::default);

/// One thread's part of a shared store.
pub struct Shared {
    place: PathBuf,
    slot: Slot,
    db: Db,
    is_synced: bool,
    released: AtomicBool,
}

/// One name for each directory, so that links and relative paths come to the same store.
fn place_of(path: &Path) -> PathBuf {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    if let Ok(place) = whole.canonicalize() {
        return place;
    }
    // It is not there yet. What is above it is, if it can be made at all.
    match (whole.parent().map(Path::canonicalize), whole.file_name()) {
        (Some(Ok(parent)), Some(name)) => parent.join(name),
        _ => whole,
    }
}

/// Opens a store, or joins those that have it open. Only the first one's options count.
pub fn open(path: &Path, options: &Options, is_synced: bool) -> Outcome<Shared> {
    let place = place_of(path);
    let slot = Arc::clone(lock(&SLOTS).entry(place.clone()).or_default());
    let mut held = lock(&slot);
    let (db, is_synced) = match &mut *held {
        Some(joined) => {
            joined.count += 1;
            (joined.db.clone(), joined.is_synced)
        }
        None => match options.open(path) {
            Ok(db) => {
                *held = Some(Joined { count: 1, db: db.clone(), is_synced });
                (db, is_synced)
            }
            Err(e) => {
                drop(held);
                forget(&place, &slot);
                return Err(e.into());
            }
        },
    };
    drop(held);
    Ok(Shared { place, slot, db, is_synced, released: AtomicBool::new(false) })
}

/// Removes a slot that holds no store, and that nobody else is about to fill: whoever is has a reference too.
fn forget(place: &Path, slot: &Slot) {
    let mut slots = lock(&SLOTS);
    if Arc::strong_count(slot) == 2 && lock(slot).is_none() {
        slots.remove(place);
    }
}

impl Shared {
    /// The library's handle.
    pub fn db(&self) -> &Db {
        &self.db
    }

    /// Whether its writes wait for the device.
    pub fn is_synced(&self) -> bool {
        self.is_synced
    }

    /// Gives the part back, once. The last one closes the store.
    pub fn release(&self) -> Outcome<()> {
        if self.released.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        let mut held = lock(&self.slot);
        let done = match held.take() {
            Some(joined) if joined.count > 1 => {
                *held = Some(Joined { count: joined.count - 1, ..joined });
                Ok(())
            }
            Some(joined) => joined.db.close(),
            None => Ok(()),
        };
        drop(held);
        forget(&self.place, &self.slot);
        Ok(done?)
    }
}

impl Drop for Shared {
    /// Where no thread could be started that closes it: the others would never be the last.
    fn drop(&mut self) {
        drop(self.release());
    }
}

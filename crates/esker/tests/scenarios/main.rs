//! Bugs by which other stores lost data, one test each, named after what it prevents. Each opens
//! with the story and where it was reported.
//!
//! Some need a system that fails or a process that dies: a process of its own runs a role of
//! `child`, and `trace` watches its calls to the system or makes one of them fail (with strace;
//! where that is missing, such a test says so and passes).

#[path = "../common/mod.rs"]
mod common;

mod child;
mod damage;
mod faults;
mod locks;
mod order;
mod recovery;
mod trace;
mod versions;

use std::collections::BTreeMap;
use std::path::Path;

use esker::{Compression, Db, Options};

/// A store of many small segments, so that everything happens soon.
fn small() -> Options {
    Options::new()
        .memory(1 << 20)
        .segment_size(64 << 10)
        .blob_threshold(1000)
        .compression(Compression::None)
}

/// Held by each test: one at a time. A process that one test starts would otherwise hold, for the
/// moment between fork and exec, the locks of stores that another one closes and opens again.
fn alone() -> std::sync::MutexGuard<'static, ()> {
    static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Everything in the default keyspace, read both ways and one by one.
fn contents(db: &Db) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let all: Vec<_> = db.iter().copied_out().collect::<Result<_, _>>().unwrap();
    let mut backward: Vec<_> = db.iter().copied_out().rev().collect::<Result<_, _>>().unwrap();
    backward.reverse();
    assert!(all == backward, "both directions show the same");
    for (key, value) in &all {
        assert_eq!(db.get(key).unwrap().unwrap(), value);
    }
    all.into_iter().collect()
}

/// Verification of a store that is not open finds nothing.
fn assert_sound(dir: &Path) {
    let report = Db::verify_path(dir).unwrap();
    assert_eq!(report.problems, []);
}

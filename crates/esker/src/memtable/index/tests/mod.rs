//! Tests of the index against a sorted map, on awkward keys, and with readers beside a writer.

mod model;
mod shapes;
mod threads;
mod user;

use std::cell::UnsafeCell;
use std::cmp::Ordering;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use super::{Index, IndexCursor, KeySource};
use crate::key::{Comparator, KeyOrder};

/// Stands for the log. Its keys are plain memory, so that Miri and ThreadSanitizer notice when a
/// reader comes by a reference without synchronizing with its writer.
struct Log {
    keys: Box<[UnsafeCell<Vec<u8>>]>,
    len: AtomicUsize,
}

// SAFETY: a key is written once, before its reference is handed out, and only read afterwards.
unsafe impl Sync for Log {}

impl Log {
    fn new(room: usize) -> Log {
        Log { keys: (0..room).map(|_| UnsafeCell::default()).collect(), len: AtomicUsize::new(0) }
    }

    /// Appends a key; one thread at a time.
    fn append(&self, key: &[u8]) -> u32 {
        let r = self.len.load(Relaxed);
        // SAFETY: nobody has the reference yet.
        unsafe { *self.keys[r].get() = key.to_vec() };
        self.len.store(r + 1, Relaxed);
        r as u32
    }
}

impl KeySource for Log {
    fn key(&self, r: u32) -> &[u8] {
        // SAFETY: written before the reference was handed out, never changed afterwards.
        unsafe { &*self.keys[r as usize].get() }
    }
}

/// Puts a key at the end of the log and into the index; returns the old and the new reference.
fn put(index: &Index, log: &Log, key: &[u8]) -> (Option<u32>, u32) {
    let (mut old, mut new) = (None, 0);
    // SAFETY: every test has one writing thread.
    unsafe {
        index.upsert(log, key, |present| {
            old = present;
            new = log.append(key);
            new
        });
    }
    (old, new)
}

/// Letters of either case are the same key.
struct CaseInsensitive;

impl Comparator for CaseInsensitive {
    fn name(&self) -> &str {
        "case-insensitive"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let lower = |key: &[u8]| key.to_ascii_lowercase();
        lower(a).cmp(&lower(b))
    }
}

fn orders() -> [KeyOrder; 3] {
    [KeyOrder::Bytewise, KeyOrder::Reverse, KeyOrder::Custom(Arc::new(CaseInsensitive))]
}

/// All keys from first to last, and the same from last to first.
fn walk<'a>(index: &Index, log: &'a Log) -> (Vec<&'a [u8]>, Vec<&'a [u8]>) {
    let (mut up, mut down) = (Vec::new(), Vec::new());
    let mut cursor = IndexCursor::new();
    cursor.first(index, log);
    while let Some(r) = cursor.current() {
        up.push(log.key(r));
        cursor.next(index, log);
    }
    cursor.last(index, log);
    while let Some(r) = cursor.current() {
        down.push(log.key(r));
        cursor.prev(index, log);
    }
    (up, down)
}

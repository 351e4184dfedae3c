//! How many forks this process is away from the one that first opened a store. The child of a fork has the memory of its parent,
//! and with it stores whose files, lock and threads are its parent's. By this count, one load, it finds out that it is a child.

use std::sync::atomic::{AtomicU32, Ordering};

use super::Padded;

static FORKS: Padded<AtomicU32> = Padded(AtomicU32::new(0));

/// The same for as long as the process is the same.
#[inline]
pub fn forks() -> u32 {
    FORKS.0.load(Ordering::Relaxed)
}

/// In a child, before anything else runs there: it may do next to nothing.
pub(crate) fn note_fork() {
    FORKS.0.fetch_add(1, Ordering::Relaxed);
}

//! What is called, inside what is timed and outside. One process audits one engine, so the counts are the process's.

use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Declares the methods of an engine's traits once: each with what the trait calls it, in words where it is no method.
macro_rules! calls {
    ($($(#[$doc:meta])* $call:ident $name:literal)*) => {
        /// A method of an engine's traits.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Call { $($(#[$doc])* $call,)* }

        impl Call {
            /// All, in the order of their numbers, with their names.
            pub const ALL: &[(Call, &'static str)] = &[$((Call::$call, $name)),*];

            /// What it is called.
            pub fn name(self) -> &'static str {
                Call::ALL[self as usize].1
            }
        }
    };
}

calls! {
    /// `Engine::open`.
    Open "open"
    /// `Engine::writer`.
    Writer "writer"
    /// `Engine::reader`.
    Reader "reader"
    /// `Writer::put`.
    Put "put"
    /// `Writer::delete`.
    Delete "delete"
    /// `Writer::batch_put`.
    BatchPut "batch_put"
    /// `Writer::batch_commit`.
    BatchCommit "batch_commit"
    /// The end of a writer, with which a bulk load ends.
    WriterEnd "end of a writer"
    /// `Reader::get`.
    Get "get"
    /// `Reader::seek`.
    Seek "seek"
    /// `Reader::scan`.
    Scan "scan"
    /// An entry that a seek or a scan hands over.
    Entry "entry handed over"
    /// `Reader::renew`.
    Renew "renew"
    /// `Reader::yield_view`.
    YieldView "yield_view"
    /// `Engine::settle`.
    Settle "settle"
    /// `Engine::compact`.
    Compact "compact"
    /// `Engine::set_memory`.
    SetMemory "set_memory"
    /// `Engine::close`.
    Close "close"
}

/// What one process called.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Inside what was timed.
    pub timed: Vec<(Call, u64)>,
    /// Outside of it.
    pub others: Vec<(Call, u64)>,
    /// Functions of a C library: their names, how often they were called inside and how often outside.
    pub library: Vec<(String, u64, u64)>,
    /// Operations that were timed.
    pub ops: u64,
}

/// What an engine called, and what its adapter says that each of these calls comes to.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Called {
    /// How often.
    pub counts: Counts,
    /// By the adapter's word.
    pub mapping: Vec<(Call, String)>,
}

static TIMED: [AtomicU64; Call::ALL.len()] = [const { AtomicU64::new(0) }; Call::ALL.len()];
static OTHERS: [AtomicU64; Call::ALL.len()] = [const { AtomicU64::new(0) }; Call::ALL.len()];
static OPS: AtomicU64 = AtomicU64::new(0);
/// C functions, by name.
static LIBRARY: Mutex<Vec<(String, &'static CCalls)>> = Mutex::new(Vec::new());
static ARE_COUNTED: AtomicBool = AtomicBool::new(false);

thread_local! {
    static IS_TIMED: Cell<bool> = const { Cell::new(false) };
    static HAS_CALLED: Cell<bool> = const { Cell::new(false) };
}

/// From here on this thread's calls are timed, until this goes.
#[derive(Debug)]
pub struct Timed(());

/// Says that what this thread calls from here on is timed. Costs nothing for each call.
pub fn begin() -> Timed {
    IS_TIMED.set(true);
    HAS_CALLED.set(false);
    Timed(())
}

impl Timed {
    /// Says that so many operations were. Those of a loop that calls no engine are none of a row's.
    pub fn end(self, ops: u64) {
        if HAS_CALLED.get() {
            OPS.fetch_add(ops, Ordering::Relaxed);
        }
    }
}

impl Drop for Timed {
    fn drop(&mut self) {
        IS_TIMED.set(false);
    }
}

/// Counts a call.
pub fn note(call: Call, times: u64) {
    let counts = if IS_TIMED.get() { &TIMED } else { &OTHERS };
    HAS_CALLED.set(true);
    counts[call as usize].fetch_add(times, Ordering::Relaxed);
}

/// From now on libraries that are loaded have their calls counted.
pub fn count() {
    ARE_COUNTED.store(true, Ordering::Relaxed);
}

/// Whether that was said.
pub fn are_counted() -> bool {
    ARE_COUNTED.load(Ordering::Relaxed)
}

/// The calls of a C function.
#[derive(Debug, Default)]
pub struct CCalls {
    timed: AtomicU64,
    others: AtomicU64,
}

impl CCalls {
    /// None yet.
    pub const fn new() -> CCalls {
        CCalls { timed: AtomicU64::new(0), others: AtomicU64::new(0) }
    }
    /// Shows it among those of [`counts`] from now on, by the function's name.
    pub fn enter(&'static self, name: String) {
        LIBRARY.lock().unwrap_or_else(PoisonError::into_inner).push((name, self));
    }
    /// Counts a call.
    pub fn note(&self) {
        let count = if IS_TIMED.get() { &self.timed } else { &self.others };
        count.fetch_add(1, Ordering::Relaxed);
    }
}

/// All of them so far.
pub fn counts() -> Counts {
    let of = |counts: &[AtomicU64]| {
        let all =
            Call::ALL.iter().zip(counts).map(|((call, _), n)| (*call, n.load(Ordering::Relaxed)));
        all.filter(|(_, n)| *n > 0).collect()
    };
    let library = LIBRARY.lock().unwrap_or_else(PoisonError::into_inner);
    let number = |n: &AtomicU64| n.load(Ordering::Relaxed);
    let library =
        library.iter().map(|(name, f)| (name.clone(), number(&f.timed), number(&f.others)));
    let library = library.filter(|(_, timed, others)| timed + others > 0).collect();
    Counts { timed: of(&TIMED), others: of(&OTHERS), library, ops: number(&OPS) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_has_its_own_number_and_name() {
        for (number, (call, name)) in Call::ALL.iter().enumerate() {
            assert_eq!(*call as usize, number);
            assert_eq!(Call::ALL.iter().filter(|(_, other)| other == name).count(), 1);
        }
    }

    #[test]
    fn what_is_called_counts_where_it_is_called() {
        // The only test of this process that counts deletes.
        note(Call::Delete, 1);
        let timed = begin();
        note(Call::Delete, 2);
        timed.end(2);
        note(Call::Delete, 4);
        let counts = counts();
        assert!(counts.timed.contains(&(Call::Delete, 2)), "{counts:?}");
        assert!(counts.others.contains(&(Call::Delete, 5)), "{counts:?}");
    }
}

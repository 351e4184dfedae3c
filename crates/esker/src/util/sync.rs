//! Locks, atomics and threads of the code that the tests named `models` take apart.
//!
//! Ordinary builds get the real ones, under their own names and at no cost. In tests built with
//! `--cfg esker_models` (`scripts/test.sh models`) the same code runs on loom's, which try every
//! order of the threads' steps and every value that the memory model lets a load return.

#[cfg(not(all(test, esker_models)))]
mod real {
    pub(crate) use std::hint::spin_loop;
    pub(crate) use std::sync::OnceLock;
    pub(crate) use std::sync::atomic::{
        AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, fence,
    };
    pub(crate) use std::thread::{Thread, current, park, yield_now};
    pub(crate) use std::thread_local;

    pub(crate) use arc_swap::{ArcSwap, Guard};
    pub(crate) use parking_lot::{Condvar, Mutex, MutexGuard};

    /// An array of atomics that hold the same value.
    macro_rules! atomics {
        ($atomic:ident::new($value:expr); $len:expr) => {
            [const { $atomic::new($value) }; $len]
        };
    }
    pub(crate) use atomics;
}

#[cfg(all(test, esker_models))]
#[path = "sync_testing.rs"]
mod real;

pub(crate) use real::*;

//! Loom's locks, atomics and threads behind the interfaces that the engine uses.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

pub(crate) use loom::hint::spin_loop;
pub(crate) use loom::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, fence,
};
pub(crate) use loom::thread::yield_now;
pub(crate) use loom::thread_local;

/// An array of atomics that hold the same value. (Loom's are not made in constants.)
macro_rules! atomics {
    ($atomic:ident::new($value:expr); $len:expr) => {
        std::array::from_fn::<_, { $len }, _>(|_| $atomic::new($value))
    };
}
pub(crate) use atomics;

/// A lock that no panic poisons.
#[derive(Default)]
pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

/// `None` only while its thread waits on a condition variable.
pub(crate) struct MutexGuard<'a, T>(Option<loom::sync::MutexGuard<'a, T>>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Mutex<T> {
        Mutex(loom::sync::Mutex::new(value))
    }
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard(Some(self.0.lock().unwrap()))
    }
}

impl<T> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Mutex")
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        self.0.as_ref().unwrap()
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_mut().unwrap()
    }
}

#[derive(Debug, Default)]
pub(crate) struct Condvar(loom::sync::Condvar);

impl Condvar {
    pub(crate) fn new() -> Condvar {
        Condvar::default()
    }
    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }
    pub(crate) fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        let held = guard.0.take().unwrap();
        guard.0 = Some(self.0.wait(held).unwrap());
    }
}

/// Parking as the standard library has it. (Loom's own `unpark` would also wake a thread that waits
/// for a lock.)
#[derive(Debug, Clone)]
pub(crate) struct Thread(Arc<Parker>);

#[derive(Debug, Default)]
struct Parker {
    told: loom::sync::Mutex<bool>,
    wake: loom::sync::Condvar,
}

thread_local! {
    static SELF: Thread = Thread(Arc::default());
}

pub(crate) fn current() -> Thread {
    SELF.with(Thread::clone)
}

pub(crate) fn park() {
    let Thread(parker) = current();
    let mut told = parker.told.lock().unwrap();
    while !*told {
        told = parker.wake.wait(told).unwrap();
    }
    *told = false;
}

impl Thread {
    pub(crate) fn unpark(&self) {
        *self.0.told.lock().unwrap() = true;
        self.0.wake.notify_one();
    }
}

/// One thread fills it; who finds it full sees what that thread did before.
#[derive(Debug)]
pub(crate) struct OnceLock<T> {
    full: AtomicBool,
    value: std::sync::OnceLock<T>,
}

impl<T> Default for OnceLock<T> {
    fn default() -> OnceLock<T> {
        OnceLock { full: AtomicBool::new(false), value: std::sync::OnceLock::new() }
    }
}

impl<T> OnceLock<T> {
    pub(crate) fn get(&self) -> Option<&T> {
        if self.full.load(Ordering::Acquire) { self.value.get() } else { None }
    }
    pub(crate) fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        if self.get().is_none() {
            let _ = self.value.set(make());
            self.full.store(true, Ordering::Release);
        }
        self.value.get().unwrap()
    }
}

/// An `Arc` that is read and replaced as by the crate `arc-swap`: a load returns the value that is
/// there at that moment and acquires what its writer released, and no more. A replaced value lives
/// as long as somebody holds it, and its count says so.
pub(crate) struct ArcSwap<T> {
    /// Which of `all` is the present one. Read by read-modify-write operations, as these never
    /// return a value that was replaced before.
    at: AtomicUsize,
    all: std::sync::Mutex<Vec<Weak<T>>>,
    present: std::sync::Mutex<Arc<T>>,
}

#[derive(Debug)]
pub(crate) struct Guard<T>(T);

impl<T> Guard<T> {
    pub(crate) fn from_inner(inner: T) -> Guard<T> {
        Guard(inner)
    }
}

impl<T> Deref for Guard<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> ArcSwap<T> {
    pub(crate) fn from_pointee(value: T) -> ArcSwap<T> {
        let value = Arc::new(value);
        let all = std::sync::Mutex::new(vec![Arc::downgrade(&value)]);
        ArcSwap { at: AtomicUsize::new(0), all, present: std::sync::Mutex::new(value) }
    }

    fn look(&self) -> (usize, Arc<T>) {
        let at = self.at.fetch_add(0, Ordering::Acquire);
        let present = self.all.lock().unwrap()[at].upgrade();
        (at, present.expect("the present value is held here"))
    }

    pub(crate) fn load(&self) -> Guard<Arc<T>> {
        Guard(self.look().1)
    }

    pub(crate) fn load_full(&self) -> Arc<T> {
        self.look().1
    }

    pub(crate) fn rcu(&self, mut next: impl FnMut(&Arc<T>) -> T) -> Arc<T> {
        loop {
            let (at, before) = self.look();
            let value = Arc::new(next(&before));
            let new = {
                let mut all = self.all.lock().unwrap();
                all.push(Arc::downgrade(&value));
                all.len() - 1
            };
            if self.at.compare_exchange(at, new, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                *self.present.lock().unwrap() = value;
                return before;
            }
        }
    }
}

/// Runs `model` under every interleaving with at most so many preemptions of a thread by another
/// (one more with `ESKER_MODELS=all`), and says how many there were.
pub(crate) fn explore(name: &str, preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let all = std::env::var("ESKER_MODELS").is_ok_and(|v| v == "all");
    let count = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions + usize::from(all));
    builder.max_branches = 100_000;
    let counted = Arc::clone(&count);
    builder.check(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        model();
    });
    let count = count.load(Ordering::Relaxed);
    println!("{name}: {count} interleavings");
    assert!(count > 1, "the model of {name} has but one interleaving");
}

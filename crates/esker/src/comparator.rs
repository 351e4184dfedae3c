//! Comparators of the user's: code of theirs that runs inside the store, and may panic, contradict itself
//! or call back.
//!
//! A panic goes up as a [`Panicked`], which names the keyspace, to the nearest [`catch`], which makes an
//! error of it. Built-in orders pay for none of this.

use std::cell::Cell;
use std::cmp::Ordering;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::key::{Comparator, KeyOrder};
use crate::util::panic_message;

/// Longest name of a comparator, in bytes: what the manifest takes.
pub(crate) const MAX_COMPARATOR_NAME: usize = 1024;

impl KeyOrder {
    /// The name, if it can be stored and is not taken by another; `option` is where it was given.
    pub(crate) fn checked_name(&self, option: &'static str) -> Result<String> {
        let name = self.name().to_owned();
        let why = match name.len() {
            _ if !self.is_custom() => return Ok(name),
            1..=MAX_COMPARATOR_NAME if !name.starts_with("esker.") => return Ok(name),
            1..=MAX_COMPARATOR_NAME => {
                format!(
                    "a comparator is named {name:?}; names that begin with \"esker.\" are taken"
                )
            }
            n => format!(
                "a comparator has a name of {n} bytes; 1 to {MAX_COMPARATOR_NAME} are allowed"
            ),
        };
        Err(Error::InvalidOption { option, why })
    }

    /// The order as one keyspace uses it, which was stored under this name.
    pub(crate) fn of_keyspace(&self, keyspace: &str, name: &str) -> KeyOrder {
        let KeyOrder::Custom(user) = self else { return self.clone() };
        let (keyspace, name) = (keyspace.to_owned(), name.to_owned());
        KeyOrder::Custom(Arc::new(Tended { keyspace, name, user: Arc::clone(user) }))
    }

    /// Does what needs the order. If it is the user's own and panics, that is the error.
    #[inline(always)]
    pub(crate) fn guard<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        match self {
            KeyOrder::Custom(_) => catch(work),
            _ => work(),
        }
    }

    /// What else than damage or a bug it may be when keys are not in order.
    pub(crate) fn doubt(&self) -> String {
        match self {
            KeyOrder::Custom(c) => format!(", or comparator {:?} contradicts itself", c.name()),
            _ => String::new(),
        }
    }

    /// Sorts, and never panics, however the order contradicts itself (the library's sorts may).
    pub(crate) fn sort_by_key<T>(&self, items: &mut Vec<T>, key: impl Fn(&T) -> &[u8]) {
        match self {
            KeyOrder::Custom(_) => {
                let mut sorted: Vec<T> = Vec::with_capacity(items.len());
                for item in items.drain(..) {
                    let before = |other: &T| self.compare(key(other), key(&item)).is_le();
                    sorted.insert(sorted.partition_point(before), item);
                }
                *items = sorted;
            }
            _ => items.sort_by(|a, b| self.compare(key(a), key(b))),
        }
    }
}

/// A comparator of the user's as a keyspace uses it. Its name is asked for once, and when it panics
/// that is a [`Panicked`], which names the keyspace: so nobody takes it for another's panic.
struct Tended {
    keyspace: String,
    name: String,
    user: Arc<dyn Comparator>,
}

/// What the panic of a comparator goes on as, up to the next [`catch`].
struct Panicked {
    keyspace: String,
    what: String,
}

thread_local! {
    /// Whether this thread is inside a comparator.
    static COMPARING: Cell<bool> = const { Cell::new(false) };
}

impl Comparator for Tended {
    fn name(&self) -> &str {
        &self.name
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let outer = COMPARING.replace(true);
        let answer = catch_unwind(AssertUnwindSafe(|| self.user.compare(a, b)));
        COMPARING.set(outer);
        answer.unwrap_or_else(|panic| {
            let (keyspace, what) = (self.keyspace.clone(), panic_message(panic));
            resume_unwind(Box::new(Panicked { keyspace, what }))
        })
    }
}

/// Makes the panic of a comparator an error; any other goes on. What `work` changes must be fit for use
/// after a panic, or not be used.
#[cold]
#[inline(never)]
pub(crate) fn catch<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let Panicked { keyspace, what } = *panic.downcast().unwrap_or_else(|p| resume_unwind(p));
        Err(Error::ComparatorPanicked { keyspace, what })
    })
}

/// Whether the caller is a comparator.
pub(crate) fn is_comparing() -> bool {
    COMPARING.get()
}

/// Refuses a call that comes from within a comparator: the thread may hold locks that the call needs.
#[inline]
pub(crate) fn refuse_from_comparator() -> Result<()> {
    if is_comparing() { Err(Error::CalledFromComparator) } else { Ok(()) }
}

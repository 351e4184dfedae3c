//! Walks over keys, values or both. Entries are fetched many at a time, without the interpreter's lock.

use std::ops::Bound as Limit;
use std::sync::{Mutex, PoisonError, TryLockError};

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::bytes::{Given, append, bytes};
use crate::error::{Fail, Outcome};
use crate::fork::Own;

/// Which keys.
pub enum Range {
    Prefix(Vec<u8>),
    Between((Limit<Vec<u8>>, Limit<Vec<u8>>)),
}

impl Range {
    pub fn new(
        start: Option<Given<'_>>,
        stop: Option<Given<'_>>,
        prefix: Option<Given<'_>>,
    ) -> Outcome<Range> {
        match prefix {
            None => Ok(Range::Between(bounds(start, stop))),
            Some(prefix) if start.is_none() && stop.is_none() => {
                Ok(Range::Prefix(prefix.get().to_vec()))
            }
            Some(_) => Err(Fail::Invalid("either a prefix, or start and stop".to_string())),
        }
    }
}

/// From a key on and before another; None is no bound.
pub fn bounds(
    start: Option<Given<'_>>,
    stop: Option<Given<'_>>,
) -> (Limit<Vec<u8>>, Limit<Vec<u8>>) {
    let start = start.map_or(Limit::Unbounded, |key| Limit::Included(key.get().to_vec()));
    let stop = stop.map_or(Limit::Unbounded, |key| Limit::Excluded(key.get().to_vec()));
    (start, stop)
}

/// What a walk gives.
#[derive(Clone, Copy)]
pub enum What {
    Keys,
    Values,
    Items,
}

/// How many entries are fetched at once, at first and at most: few for a short walk.
const FEWEST: usize = 8;
const MOST: usize = 256;
/// The entry that takes it over so many bytes is the last that is fetched at once.
const MOST_BYTES: usize = 64 << 10;
/// Memory beyond this, which a long value took, is given back with it.
const KEPT_BYTES: usize = 1 << 20;

/// Entries that were fetched and not given yet.
#[derive(Default)]
struct Fetched {
    /// Keys and values, one behind the other.
    bytes: Vec<u8>,
    /// Where each key and each value ends.
    ends: Vec<usize>,
    /// How many of the ends were given.
    given: usize,
}

impl Fetched {
    fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_BYTES);
        self.ends.clear();
        self.given = 0;
    }

    /// Adds an entry; without memory for it none of it.
    fn push(&mut self, key: &[u8], value: &[u8]) -> Outcome<()> {
        let before = self.bytes.len();
        append(&mut self.bytes, key)?;
        let middle = self.bytes.len();
        append(&mut self.bytes, value).inspect_err(|_| self.bytes.truncate(before))?;
        self.ends.extend([middle, self.bytes.len()]);
        Ok(())
    }

    fn is_empty(&self) -> bool {
        self.given == self.ends.len()
    }

    /// The next key and its value.
    fn take(&mut self) -> Option<(&[u8], &[u8])> {
        let &[key, value] = self.ends.get(self.given..)?.first_chunk()?;
        let start = self.given.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.given += 2;
        Some((&self.bytes[start..key], &self.bytes[key..value]))
    }
}

struct Entries {
    /// None at the end, so that it keeps nothing.
    iter: Option<esker::Iter>,
    fetched: Fetched,
    /// What was met behind them.
    error: Option<Fail>,
    /// How many to fetch next.
    count: usize,
}

impl Entries {
    /// Behind what was fetched there is this.
    fn end(&mut self, error: Fail) {
        (self.iter, self.error) = (None, Some(error));
    }

    fn fetch(&mut self, reverse: bool) {
        let Some(iter) = &mut self.iter else { return };
        self.fetched.clear();
        while self.fetched.ends.len() < 2 * self.count && self.fetched.bytes.len() < MOST_BYTES {
            let pushed = match if reverse { iter.next_back_ref() } else { iter.next_ref() } {
                Some(Ok((key, value))) => self.fetched.push(key, value),
                Some(Err(e)) => Err(e.into()),
                None => return self.iter = None,
            };
            if let Err(e) = pushed {
                return self.end(e);
            }
        }
        self.count = (self.count * 2).min(MOST);
    }
}

/// What a walk gives of an entry, before a tuple is made of it.
enum Copied<'py> {
    One(Bound<'py, PyBytes>),
    Both([Bound<'py, PyBytes>; 2]),
}

/// A walk over entries, as they were when it began. `Walk[bytes]` is a type, as `list[bytes]` is.
#[pyclass(frozen, generic, module = "esker")]
pub struct Walk {
    entries: Own<Mutex<Entries>>,
    what: What,
    reverse: bool,
}

impl Walk {
    pub fn new(iter: esker::Iter, what: What, reverse: bool) -> Walk {
        let iter = if matches!(what, What::Keys) { iter.keys_only() } else { iter };
        let fetched = Fetched::default();
        let entries = Entries { iter: Some(iter), fetched, error: None, count: FEWEST };
        Walk { entries: Own::new(Mutex::new(entries)), what, reverse }
    }

    /// Takes the next entry, copied. Nothing of Python's runs while the lock is held: `bytes` objects are made, for which it collects
    /// no garbage, as it may for a tuple. What waits does so without the interpreter's lock, and has none when it asks for that again:
    /// there a thread may be stopped for good.
    fn next<'py>(&self, py: Python<'py>) -> Outcome<Option<Copied<'py>>> {
        let entries = self.entries.get()?;
        loop {
            let free = match entries.try_lock() {
                Ok(guard) => Some(guard),
                Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) => None,
            };
            if let Some(mut entries) = free {
                if let Some((key, value)) = entries.fetched.take() {
                    let copied = match self.what {
                        What::Keys => bytes(py, key).map(Copied::One),
                        What::Values => bytes(py, value).map(Copied::One),
                        What::Items => bytes(py, key)
                            .and_then(|key| Ok(Copied::Both([key, bytes(py, value)?]))),
                    };
                    if copied.is_err() {
                        entries.fetched.clear();
                        entries.end(Fail::Memory);
                    }
                    return Ok(Some(copied?));
                }
                if entries.iter.is_none() {
                    let error = entries.error.take();
                    // Who goes on is told again that this is not the end.
                    if matches!(error, Some(Fail::Memory)) {
                        entries.error = Some(Fail::Memory);
                    }
                    return error.map_or(Ok(None), Err);
                }
            }
            crate::wait::detach(py, || {
                let mut entries = entries.lock().unwrap_or_else(PoisonError::into_inner);
                if entries.fetched.is_empty() {
                    entries.fetch(self.reverse);
                }
                Ok::<_, Fail>(())
            })?;
        }
    }
}

#[pymethods]
impl Walk {
    fn __iter__(self_: PyRef<'_, Self>) -> PyRef<'_, Self> {
        self_
    }

    fn __next__<'py>(&self, py: Python<'py>) -> Outcome<Option<Bound<'py, PyAny>>> {
        Ok(match self.next(py)? {
            None => None,
            Some(Copied::One(part)) => Some(part.into_any()),
            Some(Copied::Both(entry)) => Some(PyTuple::new(py, entry)?.into_any()),
        })
    }
}

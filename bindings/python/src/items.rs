//! Walks over keys, values or both. Entries are fetched many at a time, without the interpreter's lock.

use std::collections::VecDeque;
use std::ops::Bound as Limit;
use std::sync::Mutex;

use esker::Slice;
use pyo3::prelude::*;
use pyo3::sync::MutexExt as _;
use pyo3::types::{PyBytes, PyTuple};

use crate::bytes::Given;
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

struct Entries {
    /// None at the end, so that it keeps nothing.
    iter: Option<esker::Iter>,
    fetched: VecDeque<(Slice, Slice)>,
    /// What was met behind them.
    error: Option<esker::Error>,
    /// How many to fetch next: few for a short walk.
    count: usize,
}

impl Entries {
    fn fetch(&mut self, reverse: bool) {
        let Some(iter) = &mut self.iter else { return };
        while self.fetched.len() < self.count {
            match if reverse { iter.next_back() } else { iter.next() } {
                Some(Ok(entry)) => self.fetched.push_back(entry),
                end => {
                    self.error = end.and_then(Result::err);
                    self.iter = None;
                    return;
                }
            }
        }
        self.count = (self.count * 2).min(256);
    }
}

/// A walk over entries, as they were when it began.
#[pyclass(frozen, module = "esker")]
pub struct Walk {
    entries: Mutex<Own<Entries>>,
    what: What,
    reverse: bool,
}

impl Walk {
    pub fn new(iter: esker::Iter, what: What, reverse: bool) -> Walk {
        let entries = Entries { iter: Some(iter), fetched: VecDeque::new(), error: None, count: 8 };
        Walk { entries: Mutex::new(Own::new(entries)), what, reverse }
    }

    /// The next entry. Nothing of Python's runs while the lock is held.
    fn next(&self, py: Python<'_>) -> Outcome<Option<(Slice, Slice)>> {
        let mut guard = match self.entries.lock_py_attached(py) {
            Ok(guard) => guard,
            Err(poisoned) => poisoned.into_inner(),
        };
        let entries = guard.get_mut()?;
        if entries.fetched.is_empty() {
            crate::wait::detach(py, || entries.fetch(self.reverse));
        }
        match entries.fetched.pop_front() {
            Some(entry) => Ok(Some(entry)),
            None => entries.error.take().map_or(Ok(None), |e| Err(e.into())),
        }
    }
}

#[pymethods]
impl Walk {
    fn __iter__(self_: PyRef<'_, Self>) -> PyRef<'_, Self> {
        self_
    }

    fn __next__<'py>(&self, py: Python<'py>) -> Outcome<Option<Bound<'py, PyAny>>> {
        let Some((key, value)) = self.next(py)? else { return Ok(None) };
        let key = || PyBytes::new(py, &key);
        let value = || PyBytes::new(py, &value);
        Ok(Some(match self.what {
            What::Keys => key().into_any(),
            What::Values => value().into_any(),
            What::Items => PyTuple::new(py, [key(), value()])?.into_any(),
        }))
    }
}

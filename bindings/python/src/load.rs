//! Bulk loads from an iterable.
//!
//! The load runs without the interpreter's lock and takes it for a chunk of entries at a time. The iterable is the program's: it may
//! raise, which ends the load and is raised from it; use the store, for the load holds no lock there; and close it, which ends the load.

use std::collections::VecDeque;

use pyo3::prelude::*;
use pyo3::types::PyIterator;

use crate::bytes::Given;
use crate::error::{Fail, Outcome};

/// Entries that are taken from the iterable at a time.
const CHUNK_ENTRIES: usize = 256;
/// And how many bytes, so that large values do not pile up.
const CHUNK_BYTES: usize = 1 << 20;

struct Source {
    iterator: Option<Py<PyIterator>>,
    chunk: VecDeque<(Vec<u8>, Vec<u8>)>,
    /// What was raised behind them.
    raised: Option<PyErr>,
}

impl Source {
    fn fetch(&mut self) {
        crate::wait::attach(|py| {
            let Some(iterator) = self.iterator.take() else { return };
            match self.take_chunk(iterator.bind(py)) {
                Ok(true) => self.iterator = Some(iterator),
                Ok(false) => {}
                Err(e) => self.raised = Some(e),
            }
        });
    }

    /// False at the end.
    fn take_chunk(&mut self, iterator: &Bound<'_, PyIterator>) -> PyResult<bool> {
        // Ctrl-C, also where the iterable is written in C.
        iterator.py().check_signals()?;
        let mut bytes = 0;
        let mut iterator = iterator.clone();
        while self.chunk.len() < CHUNK_ENTRIES && bytes < CHUNK_BYTES {
            let Some(entry) = iterator.next() else { return Ok(false) };
            let (key, value): (Given<'_>, Given<'_>) = entry?.extract()?;
            bytes += key.get().len() + value.get().len();
            self.chunk.push_back((key.get().to_vec(), value.get().to_vec()));
        }
        Ok(true)
    }
}

impl Iterator for Source {
    type Item = Result<(Vec<u8>, Vec<u8>), Fail>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.chunk.is_empty() {
            self.fetch();
        }
        self.chunk.pop_front().map(Ok).or_else(|| self.raised.take().map(|e| Err(e.into())))
    }
}

pub fn bulk_load(
    py: Python<'_>,
    keyspace: esker::Keyspace,
    entries: &Bound<'_, PyAny>,
) -> Outcome<u64> {
    let iterator = Some(entries.try_iter()?.unbind());
    let source = Source { iterator, chunk: VecDeque::new(), raised: None };
    crate::wait::detach(py, move || keyspace.try_bulk_load(source))
}

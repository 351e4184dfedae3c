//! One keyspace: sorted runs of tables, newest first.
//!
//! Invariants, kept by [`KeyspaceVersion::edit`], the only way to change one:
//!
//! - A run's number is its age: runs are ordered by number, the highest is the newest. A flush
//!   takes a fresh number; a compaction of neighbours takes the number of the oldest among them. So the
//!   order follows from the numbers alone and no sequence of edits can get it wrong.
//! - The tables of a run are sorted and share no key.
//! - A table is in one run, once.
//! - Of a key that two runs have, the newer run has the newer version. A read may therefore stop at the first run
//!   that answers. Of whole tables nothing follows: one may lie across the place where a newer one was, which was moved to an
//!   older run.
//! - No run is empty.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::{Bound, Range};
use std::sync::Arc;

use super::file_bounds::FileBounds;
use super::{HasMeta, Invalid};
use crate::key::{KeyOrder, Seq};
use crate::util::sum_of;

/// Disjoint tables in key order.
#[derive(Debug, Clone)]
pub(crate) struct Run<T> {
    id: u64,
    tables: Vec<T>,
    bytes: u64,
    entries: u64,
    tombstones: u64,
    max_seq: Seq,
    newest_segment: u64,
    unique_keys: bool,
    /// Only for bytewise order.
    bounds: Option<FileBounds>,
}

impl<T: HasMeta> Run<T> {
    /// Its number, which is its age.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Its tables, ascending.
    #[inline]
    pub(crate) fn tables(&self) -> &[T] {
        &self.tables
    }

    /// Bytes of its table files.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Entries of its tables.
    pub(crate) fn entries(&self) -> u64 {
        self.entries
    }

    /// Tombstones among the entries.
    pub(crate) fn tombstones(&self) -> u64 {
        self.tombstones
    }

    /// The largest sequence in it.
    pub(crate) fn max_seq(&self) -> Seq {
        self.max_seq
    }

    /// The newest log segment that values of it are in; 0 where there are none.
    pub(crate) fn newest_segment(&self) -> u64 {
        self.newest_segment
    }

    /// Whether every key has one version.
    #[inline]
    pub(crate) fn has_unique_keys(&self) -> bool {
        self.unique_keys
    }

    /// Index of the first table that ends at or after `key`; the number of tables when none does.
    #[inline]
    pub(crate) fn seek(&self, order: &KeyOrder, key: &[u8]) -> usize {
        let within = match &self.bounds {
            Some(bounds) => bounds.narrow(key),
            None => 0..self.tables.len(),
        };
        let before = |t: &T| order.compare(&t.meta().largest, key) == Ordering::Less;
        within.start + self.tables[within].partition_point(before)
    }

    /// Index of the last table that starts at or before `key`.
    pub(crate) fn seek_for_prev(&self, order: &KeyOrder, key: &[u8]) -> Option<usize> {
        let at = self.seek(order, key);
        match self.tables.get(at) {
            Some(t) if order.compare(&t.meta().smallest, key) != Ordering::Greater => Some(at),
            _ => at.checked_sub(1),
        }
    }

    /// The one table that may hold `key`.
    #[inline]
    pub(crate) fn find(&self, order: &KeyOrder, key: &[u8]) -> Option<&T> {
        let table = self.tables.get(self.seek(order, key))?;
        let starts = order.compare(&table.meta().smallest, key) != Ordering::Greater;
        starts.then_some(table)
    }

    /// The tables that may hold keys in the range, as indexes.
    pub(crate) fn overlapping(
        &self,
        order: &KeyOrder,
        low: Bound<&[u8]>,
        high: Bound<&[u8]>,
    ) -> Range<usize> {
        let from = match low {
            Bound::Unbounded => 0,
            Bound::Included(key) => self.seek(order, key),
            Bound::Excluded(key) => {
                let at = self.seek(order, key);
                let ends = self.tables.get(at).map(|t| order.compare(&t.meta().largest, key));
                at + usize::from(ends == Some(Ordering::Equal))
            }
        };
        let starts_in = |t: &T| match high {
            Bound::Unbounded => true,
            Bound::Included(key) => order.compare(&t.meta().smallest, key) != Ordering::Greater,
            Bound::Excluded(key) => order.compare(&t.meta().smallest, key) == Ordering::Less,
        };
        let to = from + self.tables[from..].partition_point(starts_in);
        from..to
    }

    /// Sorts and checks. Without an order (a comparator that the caller does not have) tables stay
    /// as they come and overlaps go unseen.
    pub(crate) fn build(
        order: Option<&KeyOrder>,
        id: u64,
        mut tables: Vec<T>,
    ) -> Result<Run<T>, Invalid> {
        if let Some(order) = order {
            order.sort_by_key(&mut tables, |t| &t.meta().smallest);
            for t in &tables {
                let m = t.meta();
                if order.compare(&m.smallest, &m.largest) == Ordering::Greater {
                    return Err(Invalid::new(format!(
                        "table {}: its first key is above its last{}",
                        m.number,
                        order.doubt()
                    )));
                }
            }
            for pair in tables.windows(2) {
                let (a, b) = (pair[0].meta(), pair[1].meta());
                if order.compare(&a.largest, &b.smallest) != Ordering::Less {
                    return Err(Invalid::new(format!(
                        "tables {} and {} of run {id} overlap{}",
                        a.number,
                        b.number,
                        order.doubt()
                    )));
                }
            }
        }
        let sum = |f: fn(&T) -> u64| sum_of(tables.iter().map(f));
        Ok(Run {
            id,
            bytes: sum(|t| t.meta().size),
            entries: sum(|t| t.meta().entries),
            tombstones: sum(|t| t.meta().tombstones),
            max_seq: tables.iter().map(|t| t.meta().max_seq).max().unwrap_or(0),
            newest_segment: tables
                .iter()
                .filter_map(|t| t.meta().references.last())
                .map(|r| r.segment)
                .max()
                .unwrap_or(0),
            unique_keys: tables.iter().all(|t| t.meta().unique_keys),
            bounds: match order {
                Some(KeyOrder::Bytewise) => {
                    Some(FileBounds::new(tables.iter().map(|t| &t.meta().largest[..])))
                }
                _ => None,
            },
            tables,
        })
    }
}

/// The runs of one keyspace at one moment. Never changes; an edit makes another.
#[derive(Debug, Clone)]
pub(crate) struct KeyspaceVersion<T> {
    /// Newest first.
    runs: Vec<Arc<Run<T>>>,
}

impl<T> Default for KeyspaceVersion<T> {
    fn default() -> Self {
        KeyspaceVersion { runs: Vec::new() }
    }
}

impl<T: HasMeta + Clone> KeyspaceVersion<T> {
    /// The runs, newest first.
    #[inline]
    pub(crate) fn runs(&self) -> &[Arc<Run<T>>] {
        &self.runs
    }

    /// Of runs as they come.
    #[cfg(test)]
    pub(crate) fn of(runs: Vec<Arc<Run<T>>>) -> KeyspaceVersion<T> {
        KeyspaceVersion { runs }
    }

    /// The run of this number and older ones.
    pub(crate) fn upto(&self, run: u64) -> KeyspaceVersion<T> {
        let runs = self.runs.iter().filter(|r| r.id <= run).cloned().collect();
        KeyspaceVersion { runs }
    }

    /// All tables, those of newer runs first.
    pub(crate) fn tables(&self) -> impl Iterator<Item = &T> {
        self.runs.iter().flat_map(|r| r.tables())
    }

    /// A number for a run newer than all there are. A flush that runs beside others takes one past
    /// theirs too.
    pub(crate) fn next_run(&self) -> u64 {
        self.runs.first().map_or(1, |r| r.id + 1)
    }

    /// The number for the compaction of these neighbouring runs: that of the oldest.
    #[cfg(test)]
    pub(crate) fn merged_run(&self, runs: Range<usize>) -> Option<u64> {
        self.runs.get(runs.end.checked_sub(1)?).map(|r| r.id)
    }

    /// The version after taking `removed` away and then adding `added` to the runs named with
    /// them. Runs that no table entered or left are shared with this version.
    pub(crate) fn edit(
        &self,
        order: Option<&KeyOrder>,
        removed: &[u64],
        added: Vec<(u64, T)>,
    ) -> Result<KeyspaceVersion<T>, Invalid> {
        // Sorted lists, not sets: every table of the keyspace is looked up in both.
        let leaving = distinct(removed.iter().copied(), "removed")?;
        let coming = distinct(added.iter().map(|(_, t)| t.meta().number), "added")?;
        let mut found = Vec::with_capacity(leaving.len());
        // What stays of each run; `None` where all of it does.
        let mut kept: Vec<Option<Vec<T>>> = Vec::with_capacity(self.runs.len());
        for run in &self.runs {
            let mut stays = Vec::new();
            for t in run.tables() {
                let number = t.meta().number;
                if leaving.binary_search(&number).is_ok() {
                    found.push(number);
                    continue;
                }
                if coming.binary_search(&number).is_ok() {
                    return Err(Invalid::new(format!("table {number} is added twice")));
                }
                stays.push(t);
            }
            let changed = stays.len() < run.tables().len();
            kept.push(changed.then(|| stays.into_iter().cloned().collect()));
        }
        found.sort_unstable();
        if let Some(number) = leaving.iter().find(|n| found.binary_search(n).is_err()) {
            return Err(Invalid::new(format!("table {number} is removed but not there")));
        }
        self.rebuild(order, kept, added)
    }

    fn rebuild(
        &self,
        order: Option<&KeyOrder>,
        kept: Vec<Option<Vec<T>>>,
        added: Vec<(u64, T)>,
    ) -> Result<KeyspaceVersion<T>, Invalid> {
        let mut arriving = BTreeMap::<u64, Vec<T>>::new();
        for (run, table) in added {
            arriving.entry(run).or_default().push(table);
        }
        let mut runs = Vec::with_capacity(kept.len() + 1);
        for (left, old) in kept.into_iter().zip(&self.runs) {
            match (left, arriving.remove(&old.id)) {
                (None, None) => runs.push(old.clone()),
                (left, new) => {
                    let mut tables = left.unwrap_or_else(|| old.tables().to_vec());
                    tables.extend(new.unwrap_or_default());
                    if !tables.is_empty() {
                        runs.push(Arc::new(Run::build(order, old.id, tables)?));
                    }
                }
            }
        }
        for (id, tables) in arriving {
            runs.push(Arc::new(Run::build(order, id, tables)?));
        }
        runs.sort_by_key(|r| std::cmp::Reverse(r.id));
        Ok(KeyspaceVersion { runs })
    }
}

/// Sorted; refused when one is there twice.
fn distinct(numbers: impl Iterator<Item = u64>, verb: &str) -> Result<Vec<u64>, Invalid> {
    let mut list: Vec<u64> = numbers.collect();
    list.sort_unstable();
    match list.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(Invalid::new(format!("table {} is {verb} twice", pair[0]))),
        None => Ok(list),
    }
}

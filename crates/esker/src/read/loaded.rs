//! Tables and runs as readers hold them: open, mapped, and with the log segments that their
//! separated values lie in.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};
use crate::key::{Seq, ValuePointer};
use crate::obsolete_files::{Obsolete, ObsoleteFiles};
use crate::table::Table;
use crate::version::{HasMeta, Run, TableMeta};
use crate::wal::Segment;

/// Of a table that was not written by this process, and of a bulk load, one byte in so many is taken for a
/// repeated one.
const UNKNOWN: u64 = 4;

/// Bytes of entries, and of their separated values.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Dead {
    pub entries: u64,
    pub values: u64,
}

/// What of a table repeats entries of the oldest run, by a sample of its keys.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RepeatedShare {
    /// The share of its entries, 0 to 1.
    pub of_entries: f64,
    /// Bytes that one of those takes in the oldest run, and those of its separated value.
    pub entry: u64,
    pub values: u64,
}

/// An open table. The file goes away with the last reader once it is marked obsolete.
pub(crate) struct LoadedTable {
    /// The mapped file.
    pub table: Arc<Table>,
    /// What the manifest says of it.
    pub meta: TableMeta,
    /// About how much of it is newer versions of entries in the oldest run.
    repeated: Dead,
    /// About half of what its tombstones hide there.
    hidden: Dead,
    /// Segments that hold separated values of this table, by ascending number.
    segments: Vec<Arc<Segment>>,
    obsolete: AtomicBool,
    files: Arc<ObsoleteFiles>,
}

impl LoadedTable {
    pub(crate) fn new(
        table: Arc<Table>,
        meta: TableMeta,
        mut segments: Vec<Arc<Segment>>,
        files: Arc<ObsoleteFiles>,
    ) -> LoadedTable {
        segments.sort_by_key(|s| s.number());
        let obsolete = AtomicBool::new(false);
        let (entries, values) = (meta.size / UNKNOWN, meta.separated_bytes() / UNKNOWN);
        let (repeated, hidden) = (Dead { entries, values }, Dead::default());
        LoadedTable { table, meta, repeated, hidden, segments, obsolete, files }
    }

    /// So much of it is in the oldest run too. A tombstone hides more than it takes itself, of which half counts: deleting a
    /// little is no reason to write all the rest again, and half of a store is.
    pub(crate) fn repeating(mut self, share: RepeatedShare) -> LoadedTable {
        let of = |bytes: u64| (bytes as f64 * share.of_entries) as u64;
        let hidden = |of_one: u64| of(self.meta.tombstones.saturating_mul(of_one) / 2);
        self.hidden = Dead { entries: hidden(share.entry), values: hidden(share.values) };
        let (entries, values) = (of(self.meta.size), of(self.meta.separated_bytes()));
        self.repeated = Dead { entries, values };
        self
    }

    /// About how much is dead for this table: what its newer versions replace in the oldest run, and what its tombstones
    /// hide there, unless somebody may still read that (`settled_seq`: the newest sequence that nobody reads below).
    pub(crate) fn kills(&self, settled_seq: Seq) -> Dead {
        let counts = self.meta.max_seq <= settled_seq;
        let hidden = if counts { self.hidden } else { Dead::default() };
        Dead {
            entries: self.repeated.entries.saturating_add(hidden.entries),
            values: self.repeated.values.saturating_add(hidden.values),
        }
    }

    /// No version names this table any more: its file is removed when the last reader lets go.
    pub(crate) fn retire(&self) {
        if !self.obsolete.swap(true, Ordering::AcqRel) {
            self.files.note_pinned(self.meta.size);
        }
    }

    /// The segment that a pointer of this table leads to.
    pub(crate) fn segment(&self, pointer: &ValuePointer) -> Result<&Arc<Segment>> {
        match self.segments.binary_search_by_key(&pointer.segment, |s| s.number()) {
            Ok(i) => Ok(&self.segments[i]),
            Err(_) => Err(Error::corrupt(
                self.table.path(),
                0,
                format!(
                    "a value points to log segment {}, which the table does not list",
                    pointer.segment
                ),
            )),
        }
    }

    /// Whether it points into this segment.
    pub(crate) fn has_segment(&self, number: u64) -> bool {
        self.segments.binary_search_by_key(&number, |s| s.number()).is_ok()
    }

    /// The segments that hold values of this table.
    pub(crate) fn segments(&self) -> &[Arc<Segment>] {
        &self.segments
    }
}

impl Drop for LoadedTable {
    fn drop(&mut self) {
        if self.obsolete.load(Ordering::Acquire) {
            self.files.note_free(self.meta.size);
            self.files.push(Obsolete::Remove(self.table.path().to_path_buf()));
        }
    }
}

impl std::fmt::Debug for LoadedTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LoadedTable({})", self.meta.number)
    }
}

impl HasMeta for LoadedTable {
    #[inline]
    fn meta(&self) -> &TableMeta {
        &self.meta
    }
}

/// A run of open tables.
pub(crate) type LoadedRun = Run<Arc<LoadedTable>>;

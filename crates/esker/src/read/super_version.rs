//! Everything a reader of one keyspace needs, behind one pointer.

use std::sync::Arc;

use super::loaded::{LoadedRun, LoadedTable};
use crate::env::Lock;
use crate::memtable::Memtable;
use crate::version::KeyspaceVersion;

/// The sources of one keyspace, newest first. Immutable; writers and merges publish a new one.
/// While a reader holds it, no file it names is removed, recycled or punched.
#[derive(Clone)]
pub(crate) struct SuperVersion {
    /// Newest first; the first may be the one being written.
    pub memtables: Vec<Arc<Memtable>>,
    /// The tables, by age and key.
    pub version: KeyspaceVersion<Arc<LoadedTable>>,
    /// The directory lock: a slice or cursor that outlives its handle must keep another process
    /// from recycling the files under it.
    pub lock: Arc<dyn Lock>,
}

impl SuperVersion {
    pub(crate) fn new(
        lock: Arc<dyn Lock>,
        version: KeyspaceVersion<Arc<LoadedTable>>,
    ) -> SuperVersion {
        SuperVersion { memtables: Vec::new(), version, lock }
    }

    /// Of a keyspace that is gone, or whose store was closed: it keeps nothing, no directory either.
    pub(crate) fn empty() -> SuperVersion {
        SuperVersion::new(Arc::new(()), KeyspaceVersion::default())
    }

    /// The same with other tables.
    pub(crate) fn with_version(&self, version: KeyspaceVersion<Arc<LoadedTable>>) -> SuperVersion {
        SuperVersion { memtables: self.memtables.clone(), version, lock: Arc::clone(&self.lock) }
    }

    /// The runs, newest first.
    #[inline]
    pub(crate) fn runs(&self) -> &[Arc<LoadedRun>] {
        self.version.runs()
    }

    /// Of the tables those in the run `run` and older ones, and nothing else.
    pub(crate) fn tables_upto(&self, run: u64) -> SuperVersion {
        let tables = self.with_version(self.version.upto(run));
        SuperVersion { memtables: Vec::new(), ..tables }
    }

    /// The memtables over segments below this one, oldest first.
    pub(crate) fn memtables_below(&self, segment: u64) -> Vec<Arc<Memtable>> {
        let older = |m: &&Arc<Memtable>| m.segment().number() < segment;
        self.memtables.iter().rev().filter(older).cloned().collect()
    }

    /// Whether any bytes of this log segment can be reached from here.
    pub(crate) fn reads_segment(&self, number: u64) -> bool {
        // Old super versions are asked about what died since, which is newer than all that most of them have.
        let runs = self.runs().iter().filter(|r| r.newest_segment() >= number);
        self.memtables.iter().any(|m| m.segment().number() == number)
            || runs.flat_map(|r| r.tables()).any(|t| t.has_segment(number))
    }

    /// The only run, when nothing else holds entries and every entry of it is visible at `seq`.
    /// Then a scan needs neither merging nor visibility checks.
    pub(crate) fn single_clean_run(&self, seq: u64) -> Option<&Arc<LoadedRun>> {
        let [run] = self.runs() else { return None };
        let quiet = self.memtables.iter().all(|m| m.is_empty() || m.min_seq() > seq);
        let clean = run.has_unique_keys() && run.tombstones() == 0;
        (quiet && clean && run.max_seq() <= seq).then_some(run)
    }
}

impl std::fmt::Debug for SuperVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SuperVersion({} memtables, {} runs)", self.memtables.len(), self.runs().len())
    }
}

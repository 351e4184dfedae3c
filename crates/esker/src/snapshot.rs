//! Snapshots: sequences that compactions must keep the versions of.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use crate::key::Seq;
use crate::util::forks::forks;
use crate::util::sync::Mutex;

/// The sequences somebody may still read at.
#[derive(Debug)]
pub(crate) struct SnapshotList {
    /// How many snapshots are at each sequence.
    held: Mutex<BTreeMap<Seq, usize>>,
    /// In which process.
    process: u32,
}

impl Default for SnapshotList {
    fn default() -> SnapshotList {
        SnapshotList { held: Mutex::default(), process: forks() }
    }
}

impl SnapshotList {
    /// Whether this is a child of the process whose list it is. Nothing can be read there, and the list may be locked by a
    /// thread that the child does not have.
    fn is_forked(&self) -> bool {
        self.process != forks()
    }

    /// Registers a snapshot at what `visible` returns. It is called under the list's lock, so that
    /// a compaction that asks for [`boundaries`](SnapshotList::boundaries) at the same time either sees
    /// this snapshot or keeps everything it can read.
    fn acquire(&self, visible: impl FnOnce() -> Seq) -> Seq {
        if self.is_forked() {
            return visible();
        }
        let mut held = self.held.lock();
        let seq = visible();
        *held.entry(seq).or_insert(0) += 1;
        seq
    }

    fn release(&self, seq: Seq) {
        if self.is_forked() {
            return;
        }
        let mut held = self.held.lock();
        if let Some(n) = held.get_mut(&seq) {
            *n -= 1;
            if *n == 0 {
                held.remove(&seq);
            }
        }
    }

    /// All sequences that a compaction has to serve, ascending: the snapshots' and, last, what `visible`
    /// returns (readers without a snapshot).
    pub(crate) fn boundaries(&self, visible: impl FnOnce() -> Seq) -> Vec<Seq> {
        let held = self.held.lock();
        let now = visible();
        let mut all: Vec<Seq> = held.keys().copied().collect();
        if all.last() != Some(&now) {
            all.push(now);
        }
        all
    }

    /// The first of these: of the versions of a key up to it, nobody needs any but the newest.
    pub(crate) fn oldest(&self, visible: impl FnOnce() -> Seq) -> Seq {
        let held = self.held.lock();
        let now = visible();
        held.keys().next().copied().unwrap_or(now)
    }

    /// How many snapshots are held.
    pub(crate) fn len(&self) -> usize {
        self.held.lock().values().sum()
    }
}

/// A view of the whole store, all keyspaces, as it was at one moment. Reads at it through
/// [`Keyspace::at`](crate::Keyspace::at). Cheap to clone; while one is held, the versions it sees
/// are kept, but for those of a keyspace that is dropped.
///
/// ```
/// # fn main() -> esker::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = esker::Db::open(dir.path().join("db"))?;
/// db.put("key", "before")?;
/// let snapshot = db.snapshot();
/// db.put("key", "after")?;
/// assert_eq!(db.at(&snapshot).get("key")?.unwrap(), b"before");
/// assert_eq!(db.get("key")?.unwrap(), b"after");
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct Snapshot {
    held: Arc<SnapshotImpl>,
}

#[derive(Debug)]
struct SnapshotImpl {
    list: Arc<SnapshotList>,
    seq: Seq,
}

impl Drop for SnapshotImpl {
    fn drop(&mut self) {
        self.list.release(self.seq);
    }
}

impl Snapshot {
    pub(crate) fn new(list: &Arc<SnapshotList>, visible: impl FnOnce() -> Seq) -> Snapshot {
        let seq = list.acquire(visible);
        Snapshot { held: Arc::new(SnapshotImpl { list: Arc::clone(list), seq }) }
    }

    /// The sequence of the last commit that the snapshot sees.
    pub fn sequence(&self) -> u64 {
        self.held.seq
    }

    /// The same, as long as its user holds it.
    pub(crate) fn downgrade(&self) -> WeakSnapshot {
        WeakSnapshot(Arc::downgrade(&self.held))
    }

    /// Whether the snapshot is of this store.
    pub(crate) fn is_of(&self, list: &Arc<SnapshotList>) -> bool {
        Arc::ptr_eq(&self.held.list, list)
    }
}

/// A snapshot that may have ended.
pub(crate) struct WeakSnapshot(Weak<SnapshotImpl>);

impl WeakSnapshot {
    pub(crate) fn upgrade(&self) -> Option<Snapshot> {
        Some(Snapshot { held: self.0.upgrade()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boundaries_are_the_held_sequences_and_the_present() {
        let list = Arc::new(SnapshotList::default());
        let a = Snapshot::new(&list, || 5);
        let b = Snapshot::new(&list, || 5);
        let c = Snapshot::new(&list, || 9);
        assert_eq!(list.boundaries(|| 12), [5, 9, 12]);
        assert_eq!(list.oldest(|| 12), 5);
        drop(a);
        assert_eq!(list.boundaries(|| 12), [5, 9, 12]);
        drop((b, c));
        assert_eq!(list.boundaries(|| 12), [12]);
        assert_eq!(list.oldest(|| 12), 12);
        assert_eq!(list.len(), 0);
    }
}

//! Super versions, sequences and snapshots under all interleavings of writer, compaction and reader, by loom.
//!
//! `Published`, `Visible` and `SnapshotList` are the engine's own, on loom's locks and atomics. What
//! they publish is made small here: a memtable is a list of versions of one key, a table is what a
//! merge keeps of it. The steps and their order are those of
//!
//! - `write/mod.rs`, `memtable_of` to `publish`: super version, entry, sequence;
//! - `compaction/job.rs`, `merge_group`: super version, boundaries, table, `apply_edit`;
//! - `wal/blob_segments.rs`, `PendingReclaim::is_read`: what no super version of before that is still held leads to is punched;
//! - `keyspace.rs`, `get` and `range`, and `db.rs`, `snapshot`.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Release};

use super::{Published, Visible};
use crate::key::Seq;
use crate::snapshot::{Snapshot, SnapshotList};
use crate::util::sync::{AtomicBool, AtomicU64, atomics, explore};

/// The versions of the one key in a memtable, as the index has them: stored with release, loaded with
/// acquire. Version n is in place n once it was written.
struct ModelMemtable {
    seqs: [AtomicU64; 4],
}

impl ModelMemtable {
    fn new() -> Arc<ModelMemtable> {
        Arc::new(ModelMemtable { seqs: atomics![AtomicU64::new(0); 4] })
    }
    fn insert(&self, seq: Seq) {
        self.seqs[seq as usize].store(seq, Release);
    }
    fn versions(&self) -> Vec<Seq> {
        self.seqs.iter().map(|s| s.load(Acquire)).filter(|s| *s > 0).collect()
    }
}

/// What a compaction kept, and the segment that its values lie in.
struct ModelTable {
    seqs: Vec<Seq>,
    segment: Arc<ModelSegment>,
}

#[derive(Default)]
struct ModelSegment {
    punched: AtomicBool,
}

#[derive(Clone, Default)]
struct ModelSuperVersion {
    /// Newest first.
    memtables: Vec<Arc<ModelMemtable>>,
    tables: Vec<Arc<ModelTable>>,
}

impl ModelSuperVersion {
    /// The newest version at `seq`, as a reader finds it.
    fn get(&self, seq: Seq) -> Option<Seq> {
        let newest = |seqs: &[Seq]| seqs.iter().copied().rfind(|s| *s <= seq);
        for m in &self.memtables {
            if let Some(found) = newest(&m.versions()) {
                return Some(found);
            }
        }
        let table = self.tables.iter().find(|t| newest(&t.seqs).is_some())?;
        assert!(!table.segment.punched.load(Acquire), "a value was punched under a reader");
        newest(&table.seqs)
    }
}

struct ModelStore {
    super_version: Published<ModelSuperVersion>,
    visible: Visible,
    snapshots: Arc<SnapshotList>,
}

impl ModelStore {
    /// With version 1 of the key in a memtable.
    fn new() -> Arc<ModelStore> {
        let first = ModelMemtable::new();
        first.insert(1);
        let super_version = ModelSuperVersion { memtables: vec![first], tables: Vec::new() };
        let super_version = Published::new(super_version);
        Arc::new(ModelStore { super_version, visible: Visible::new(1), snapshots: Arc::default() })
    }

    /// Another version, in the newest memtable or in a new one.
    fn write(&self, seq: Seq, new_memtable: bool) {
        if new_memtable {
            self.super_version.publish(|super_version| {
                let mut next = ModelSuperVersion::clone(super_version);
                next.memtables.insert(0, ModelMemtable::new());
                next
            });
        }
        self.super_version.load().memtables[0].insert(seq);
        self.visible.set(seq);
    }

    /// Merges the memtables below the newest, and all tables, into one table; punches the segments
    /// of the old tables if no reader is there.
    fn merge(&self) {
        let super_version = self.super_version.load_full();
        let boundaries = self.snapshots.boundaries(|| self.visible.get());
        let mut all: Vec<Seq> = super_version.tables.iter().flat_map(|t| t.seqs.clone()).collect();
        let flushed: Vec<_> = super_version.memtables[1..].to_vec();
        for m in flushed.iter().rev() {
            all.extend(m.versions());
        }
        all.sort_unstable();
        // The newest at each boundary, and all above the last.
        let last = *boundaries.last().unwrap();
        let newest = |at: &Seq| all.iter().copied().rfind(|s| s <= at);
        let mut seqs: Vec<Seq> = boundaries.iter().filter_map(newest).collect();
        seqs.extend(all.iter().filter(|s| **s > last));
        seqs.dedup();
        let table = Arc::new(ModelTable { seqs, segment: Arc::default() });
        self.super_version.publish(|super_version| ModelSuperVersion {
            memtables: super_version
                .memtables
                .iter()
                .filter(|m| !flushed.iter().any(|f| Arc::ptr_eq(f, m)))
                .cloned()
                .collect(),
            tables: vec![Arc::clone(&table)],
        });
        let old = super_version.tables.clone();
        drop(super_version);
        if self.super_version.before().iter().all(|v| v.strong_count() == 0) {
            for t in old {
                t.segment.punched.store(true, Release);
            }
        }
    }
}

/// Runs `reader` beside a writer of versions 2 and 3 and two compactions after one another.
fn beside_writer_and_compaction(
    name: &str,
    preemptions: usize,
    reader: impl Fn(&ModelStore) + Send + Sync + Copy + 'static,
) {
    explore(name, preemptions, move || {
        let store = ModelStore::new();
        let writer = {
            let store = Arc::clone(&store);
            loom::thread::spawn(move || {
                store.write(2, true);
                store.write(3, true);
            })
        };
        let compactor = {
            let store = Arc::clone(&store);
            loom::thread::spawn(move || {
                store.merge();
                store.merge();
            })
        };
        reader(&store);
        writer.join().unwrap();
        compactor.join().unwrap();
        assert_eq!(store.super_version.load().get(store.visible.get()), Some(3));
    });
}

#[test]
fn a_get_finds_what_was_written_before_it() {
    beside_writer_and_compaction("get", 3, |store| {
        let before = store.visible.get();
        let (super_version, seq) = store.super_version.now(&store.visible);
        let found = super_version.get(seq).expect("the key has a value all the time");
        assert!(found >= before, "wrote {before}, read {found}");
    });
}

#[test]
fn an_iterator_sees_one_moment() {
    beside_writer_and_compaction("iterator", 3, |store| {
        let (super_version, seq) = store.super_version.consistent(&store.visible);
        // All versions up to `seq` were written; so the newest of them is `seq` itself.
        assert_eq!(super_version.get(seq), Some(seq));
        // And so it stays while the super version is held.
        assert_eq!(super_version.get(seq), Some(seq));
    });
}

#[test]
fn a_cursor_that_is_kept_takes_only_super_versions_that_show_its_moment() {
    beside_writer_and_compaction("kept cursor", 3, |store| {
        let (mut super_version, seq) = store.super_version.consistent(&store.visible);
        for _ in 0..2 {
            if let Some(newer) = store.super_version.unchanged_since(&store.visible, seq) {
                super_version = newer;
            }
            assert_eq!(super_version.get(seq), Some(seq));
        }
    });
}

#[test]
fn a_snapshot_keeps_its_versions() {
    beside_writer_and_compaction("snapshot", 3, |store| {
        let snapshot = Snapshot::new(&store.snapshots, || store.visible.get());
        let seq = snapshot.sequence();
        // A super version that was loaded later, as `ModelSuperVersion::get` does.
        for _ in 0..2 {
            assert_eq!(store.super_version.load().get(seq), Some(seq));
        }
    });
}

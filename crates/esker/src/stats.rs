//! What a store looks like from outside: its shape, its sizes, what it has done.

use std::fmt::Write as _;
use std::ops::{Bound, RangeBounds};
use std::path::Path;
use std::sync::Arc;

use crate::options::Compression;
use crate::read::{LoadedRun, LoadedTable};
use crate::store::{Counters, KeyspaceState, Store};
use crate::util::sum_of;

/// One sorted run of tables.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RunStats {
    /// Number of tables.
    pub tables: usize,
    /// Size of their files, in bytes.
    pub bytes: u64,
    /// Bytes of their keys and values before compression (of values in the log, their pointers).
    pub raw_bytes: u64,
    /// Tables among them that pack values with a dictionary for LZ4. One without any has values
    /// packed without, or none.
    pub lz4_tables: usize,
    /// Tables among them that pack values with a dictionary for Zstandard.
    pub zstd_tables: usize,
    /// Entries, all versions and tombstones counted.
    pub entries: u64,
    /// Deletes among the entries.
    pub tombstones: u64,
}

/// One keyspace.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct KeyspaceStats {
    /// Its name.
    pub name: String,
    /// Its number, which the log uses.
    pub id: u32,
    /// The name of its comparator.
    pub comparator: String,
    /// How what is written from now on is compressed: "none", "lz4" or "zstd".
    pub compression: String,
    /// From how many bytes on its values stay in the log segment they were written to.
    pub blob_threshold: usize,
    /// Sorted runs, newest first. A read asks each that may hold its key; a settled keyspace has one, and perhaps some
    /// small ones, less than 7 % of it.
    pub runs: Vec<RunStats>,
    /// Entries not in tables yet.
    pub memtable_entries: u64,
    /// Bytes of their keys and values.
    pub memtable_bytes: u64,
}

/// The shape of a store, and what it has done since it was opened.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Stats {
    /// By id.
    pub keyspaces: Vec<KeyspaceStats>,
    /// The last commit's sequence.
    pub sequence: u64,
    /// Segments of the log.
    pub log_segments: usize,
    /// Bytes set aside for them, and for files kept to make the next ones from.
    pub log_bytes: u64,
    /// Bytes of values that live in log segments, pointed to by tables.
    pub blob_bytes: u64,
    /// Bytes that those segments take on the disk beside them: dead values that are not given back
    /// yet, and the rest of the blocks at both ends of each value, which cannot be.
    pub blob_garbage_bytes: u64,
    /// Bytes of tables and log segments that nothing needs but a [`Slice`](crate::Slice), cursor or
    /// iterator that is still held: they come back when it is dropped. Dead values among them count as
    /// garbage too.
    pub pinned_bytes: u64,
    /// Bytes of table files.
    pub table_bytes: u64,
    /// Bytes that the directory takes on the disk, without `lost/`, where a repair puts what was damaged.
    pub disk_bytes: u64,
    /// The memory setting, in bytes.
    pub memory_budget: u64,
    /// What indexes and buffers take of it, in bytes.
    pub memory_used: u64,
    /// Since open: bytes of keys and values written by the user.
    pub bytes_written: u64,
    /// Since open: bytes written to the log.
    pub log_bytes_written: u64,
    /// Since open: bytes read by compactions.
    pub compaction_bytes_read: u64,
    /// Since open: bytes written by flushes and compactions.
    pub compaction_bytes_written: u64,
    /// Since open: flushes and compactions.
    pub compactions: u64,
    /// Since open: syncs of the log; threads that wait share one.
    pub log_syncs: u64,
    /// Since open: time that writers were made to wait for flushes, in nanoseconds.
    pub write_stall_ns: u64,
    /// Snapshots held.
    pub snapshots: usize,
    /// Files held open. Tables and sealed segments are mapped and need none.
    pub open_files: usize,
    /// Mappings of tables and log segments, one each, without tables that only readers still hold. Linux allows a process 65,530 of all kinds
    /// (`vm.max_map_count`).
    pub mappings: usize,
    /// Why writes are stopped, if they are.
    pub halted: Option<String>,
}

impl Stats {
    /// Bytes written to the device's cache for each byte the user wrote, since open.
    pub fn write_amplification(&self) -> f64 {
        amplification(self.bytes_written, self.log_bytes_written, self.compaction_bytes_written)
    }
}

fn amplification(by_user: u64, to_log: u64, by_compactions: u64) -> f64 {
    if by_user == 0 {
        return 0.0;
    }
    (to_log + by_compactions) as f64 / by_user as f64
}

impl KeyspaceStats {
    pub(crate) fn of(ks: &KeyspaceState) -> KeyspaceStats {
        let super_version = ks.super_version.load();
        let runs = super_version.runs().iter().map(|r| RunStats {
            tables: r.tables().len(),
            bytes: r.bytes(),
            raw_bytes: sum_of(r.tables().iter().map(|t| t.meta.raw_bytes)),
            lz4_tables: packed_for(r, Compression::Lz4),
            zstd_tables: packed_for(r, Compression::Zstd),
            entries: r.entries(),
            tombstones: r.tombstones(),
        });
        KeyspaceStats {
            name: ks.name.clone(),
            id: ks.id,
            comparator: ks.order.name().to_string(),
            compression: ks.compression.name().to_string(),
            blob_threshold: ks.blob_threshold,
            runs: runs.collect(),
            memtable_entries: super_version.memtables.iter().map(|m| m.len() as u64).sum(),
            memtable_bytes: super_version
                .memtables
                .iter()
                .map(|m| m.inline_bytes() + m.blob_bytes())
                .sum(),
        }
    }
}

impl Store {
    /// See [`Keyspace::approximate_size`](crate::Keyspace::approximate_size).
    pub(crate) fn approximate_size<K: AsRef<[u8]>>(
        &self,
        ks: &KeyspaceState,
        range: &impl RangeBounds<K>,
    ) -> u64 {
        let low: Bound<&[u8]> = range.start_bound().map(|k| k.as_ref());
        let high: Bound<&[u8]> = range.end_bound().map(|k| k.as_ref());
        if let (Bound::Included(l) | Bound::Excluded(l), Bound::Included(h) | Bound::Excluded(h)) =
            (low, high)
            && ks.order.compare(l, h).is_gt()
        {
            return 0;
        }
        let super_version = ks.super_version.load();
        let mut bytes = super_version.memtables.iter().map(|m| m.approximate_size(low, high)).sum();
        for run in super_version.version.runs() {
            for t in &run.tables()[run.overlapping(&ks.order, low, high)] {
                let offset = |bound: Bound<&[u8]>, open: u64| match bound {
                    Bound::Unbounded => open,
                    Bound::Included(k) | Bound::Excluded(k) => t.table.approximate_offset(k),
                };
                let part = offset(high, t.meta.size).saturating_sub(offset(low, 0));
                // Separated values in proportion.
                let separated = u128::from(t.meta.separated_bytes()) * u128::from(part);
                let separated = (separated / u128::from(t.meta.size.max(1))) as u64;
                bytes = sum_of([bytes, part, separated]);
            }
        }
        bytes
    }

    fn keyspace_stats(&self) -> Vec<KeyspaceStats> {
        self.all_keyspaces().iter().map(|ks| KeyspaceStats::of(ks)).collect()
    }

    pub(crate) fn stats(&self) -> Stats {
        let keyspaces = self.keyspace_stats();
        let table_bytes = keyspaces.iter().flat_map(|k| &k.runs).map(|r| r.bytes).sum();
        let tables = keyspaces.iter().flat_map(|k| &k.runs).map(|r| r.tables).sum::<usize>();
        let segments = self.segments.totals();
        let c = &self.counters;
        Stats {
            keyspaces,
            sequence: self.visible_seq(),
            log_segments: segments.log_segments,
            log_bytes: segments.log_bytes + segments.pool_bytes,
            blob_bytes: segments.value_bytes,
            blob_garbage_bytes: segments.value_disk_bytes.saturating_sub(segments.value_bytes),
            pinned_bytes: segments.pinned_bytes + self.obsolete.pinned(),
            table_bytes,
            disk_bytes: disk_bytes(self, &self.dir),
            memory_budget: self.options.memory,
            memory_used: self.memory_used(),
            bytes_written: Counters::get(&c.user_bytes),
            log_bytes_written: Counters::get(&c.log_bytes),
            compaction_bytes_read: Counters::get(&c.compaction_read),
            compaction_bytes_written: Counters::get(&c.compaction_written),
            compactions: Counters::get(&c.compactions),
            log_syncs: self.sync.rounds(),
            write_stall_ns: Counters::get(&c.slowdown_ns),
            snapshots: self.snapshots.len(),
            open_files: segments.open_files + self.other_open_files(),
            mappings: tables + segments.mapped,
            halted: self.halt_cause().map(|e| e.to_string()),
        }
    }

    /// What the lock takes, the manifest where it is written, and the spare segment.
    fn other_open_files(&self) -> usize {
        let Ok(lock) = self.hold_dir() else { return 0 };
        let spare = self.spare.lock().is_some();
        lock.open_files() + usize::from(!self.options.read_only) + usize::from(spare)
    }

    /// A property by name, as text; `None` when there is none of that name. Each looks at no more than it tells of.
    pub(crate) fn property(&self, name: &str) -> Option<String> {
        let name = name.strip_prefix("esker.")?;
        Some(match name {
            "stats" => format!("{:#?}", self.stats()),
            "levels" => {
                let mut text = String::new();
                for ks in self.keyspace_stats() {
                    for (at, run) in ks.runs.iter().enumerate() {
                        let _ = writeln!(
                            text,
                            "{} {at}: {} tables, {} bytes, {} entries",
                            ks.name, run.tables, run.bytes, run.entries
                        );
                    }
                }
                text
            }
            "sequence" => self.visible_seq().to_string(),
            "disk-bytes" => disk_bytes(self, &self.dir).to_string(),
            "memory-used" => self.memory_used().to_string(),
            "write-amplification" => {
                let [by_user, to_log, by_compactions] = [
                    &self.counters.user_bytes,
                    &self.counters.log_bytes,
                    &self.counters.compaction_written,
                ]
                .map(Counters::get);
                format!("{:.2}", amplification(by_user, to_log, by_compactions))
            }
            "halted" => self.halt_cause().map(|e| e.to_string()).unwrap_or_default(),
            _ => return None,
        })
    }
}

/// Tables of the run with a dictionary for this compression.
fn packed_for(run: &LoadedRun, compression: Compression) -> usize {
    let fits = |t: &&Arc<LoadedTable>| t.table.dictionary().is_some_and(|d| d.is_for(compression));
    run.tables().iter().filter(fits).count()
}

/// Bytes that the files of the directory take; none is opened for it.
fn disk_bytes(store: &Store, dir: &Path) -> u64 {
    let names = store.env.list(dir).unwrap_or_default();
    let size = |name: &String| store.env.allocated(&dir.join(name)).unwrap_or(0);
    names.iter().map(size).sum()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::env::sim::{CallKind, SimEnv};
    use crate::{Db, Options};

    fn store() -> (Arc<SimEnv>, Db) {
        let env = Arc::new(SimEnv::new(1, true));
        let db = Db::open_in(env.clone(), Path::new("/db"), Options::new()).unwrap();
        db.put("key", "value").unwrap();
        db.flush().unwrap();
        (env, db)
    }

    /// Each made all statistics, and for the size of the directory opened its files.
    #[test]
    fn properties_looked_at_files_that_they_do_not_tell_of() {
        let (env, db) = store();
        let names = ["levels", "sequence", "memory-used", "write-amplification", "halted", "none"];
        for name in names {
            let before = env.call_count() as usize;
            let found = db.property(&format!("esker.{name}"));
            assert_eq!(found.is_some(), name != "none", "{name}");
            let calls = env.calls().split_off(before);
            assert!(calls.is_empty(), "{name}: {calls:?}");
        }
        let before = env.call_count();
        let keyspace = db.default_keyspace();
        assert_eq!(keyspace.comparator_name(), "esker.bytewise");
        assert_eq!(keyspace.stats().runs.len(), 1);
        assert_eq!(env.call_count(), before);
    }

    /// One that could not be opened counted as nothing.
    #[test]
    fn the_size_of_the_directory_opened_its_files() {
        let (env, db) = store();
        let before = env.call_count() as usize;
        let bytes = db.stats().disk_bytes;
        let calls = env.calls().split_off(before);
        assert!(!calls.iter().any(|c| c.kind == CallKind::Open), "{calls:?}");
        assert_eq!(db.property("esker.disk-bytes"), Some(bytes.to_string()));
        // What cannot be measured counts as nothing, and the rest as before.
        env.fail_first(CallKind::Allocated, "/db/CURRENT");
        let without = db.stats().disk_bytes;
        assert!(0 < without && without < bytes, "{without} of {bytes}");
        assert_eq!(db.stats().disk_bytes, bytes);
    }
}

//! Verification: reading everything there is and saying all that is wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use crate::env::{Env, LockMode};
use crate::error::{Error, Finding, Result};
use crate::filename;
use crate::key::{Comparator, KeyOrder, Stored};
use crate::read::LoadedTable;
use crate::store::{DirLock, Store, lock_dir};
use crate::table::{DamagedTable, Remains, Table};
use crate::util::sum_of;
use crate::version::{self, Orders, State, TableMeta};
use crate::wal::{self, End, Frame, LogReader, Lookup, Segment};

/// What a verification found.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct VerifyReport {
    /// Files read.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Entries that can be read: those in the intact blocks of tables and the intact frames of the log whose
    /// values are not packed with what is lost.
    pub entries: u64,
    /// Everything found wrong. Empty: the store is sound.
    pub problems: Vec<Finding>,
}

impl VerifyReport {
    fn problem(&mut self, e: Error) {
        self.problems.push(Finding::from(&e));
    }
}

/// What a look at the files of a store gave.
#[derive(Default)]
pub(crate) struct Checked {
    pub report: VerifyReport,
    /// Keyspaces whose comparator is not known here, and what is wrong with their tables as far as
    /// that can be told without it.
    pub unordered: Vec<Finding>,
    /// What the manifest says; `None` when it cannot be read.
    pub state: Option<State>,
}

/// Stands in for a comparator that is not known: under it a table opens, and all can be read and
/// checked but the order.
struct StandIn(String);

impl Comparator for StandIn {
    fn name(&self) -> &str {
        &self.0
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
        a.cmp(b)
    }
}

/// An order of this name, to look at tables whose comparator is not known.
pub(crate) fn stand_in(order_name: &str) -> KeyOrder {
    KeyOrder::Custom(Arc::new(StandIn(order_name.to_string())))
}

/// How far a verification is.
struct Progress<'a> {
    done: u64,
    total: u64,
    tell: &'a mut dyn FnMut(u64, u64),
}

impl Progress<'_> {
    fn at(&mut self, within_file: u64) {
        (self.tell)(self.done.saturating_add(within_file).min(self.total), self.total);
    }

    fn finish_file(&mut self, bytes: u64) {
        self.done = self.done.saturating_add(bytes);
        self.at(0);
    }
}

impl Store {
    /// See [`Db::verify`](crate::Db::verify).
    pub(crate) fn verify(&self, tell: &mut dyn FnMut(u64, u64)) -> Result<VerifyReport> {
        self.check_process()?;
        let mut report = VerifyReport::default();
        let super_versions: Vec<_> =
            self.all_keyspaces().iter().map(|ks| (ks.id, ks.super_version.load_full())).collect();
        let tables: Vec<(u32, &Arc<LoadedTable>)> = super_versions
            .iter()
            .flat_map(|(id, v)| v.version.tables().map(|t| (*id, t)))
            .collect();
        // Asked afterwards: the super versions of a store that is closed are empty.
        self.check_open()?;
        let total = tables.iter().map(|(_, t)| t.meta.size).sum();
        let mut progress = Progress { done: 0, total, tell };
        for (keyspace, t) in tables {
            let segment = |n| t.segments().iter().find(|s| s.number() == n).cloned();
            check_table(&t.table, keyspace, &t.meta, &segment, &mut report, &mut progress)?;
        }
        Ok(report)
    }
}

/// What `paranoid_checks` adds to opening.
pub(crate) fn check_open(store: &Store) -> Result<()> {
    let report = store.verify(&mut |_, _| {})?;
    match report.problems.first() {
        None => Ok(()),
        Some(first) => {
            let more = report.problems.len() - 1;
            let what = match more {
                0 => first.what.clone(),
                _ => format!("{} (and {more} more problems)", first.what),
            };
            Err(Error::corrupt(&store.dir.join(&first.file), first.offset.unwrap_or(0), what))
        }
    }
}

/// Verifies the store in `dir`, which must not be open. Changes nothing.
pub(crate) fn verify_path(
    env: Arc<dyn Env>,
    dir: &Path,
    orders: &Orders,
    tell: &mut dyn FnMut(u64, u64),
) -> Result<VerifyReport> {
    let _lock = lock_existing(&env, dir, LockMode::Shared)?;
    let Checked { mut report, unordered, .. } = check_files(&env, dir, orders, tell)?;
    report.problems.extend(unordered);
    Ok(report)
}

/// Looks at all files of the store in `dir`, whose lock the caller has.
pub(crate) fn check_files(
    env: &Arc<dyn Env>,
    dir: &Path,
    orders: &Orders,
    tell: &mut dyn FnMut(u64, u64),
) -> Result<Checked> {
    let mut checked = Checked::default();
    let loaded = match version::load(&**env, dir, orders) {
        Ok(loaded) => loaded,
        Err(e @ (Error::NotAStore { .. } | Error::UnsupportedFormat { .. })) => return Err(e),
        Err(e) => {
            checked.report.problem(e);
            return Ok(checked);
        }
    };
    let (report, unordered) = (&mut checked.report, &mut checked.unordered);
    report.files += 2;
    let state = &loaded.state;
    let names = env.list(dir).map_err(|e| Error::io("list", dir, e))?;
    let tables = || state.keyspaces.values().flat_map(|k| k.version.tables().map(move |t| (k, t)));
    // What no file has been asked yet may be anything.
    let total = sum_of(tables().map(|(_, t)| t.size));
    let mut progress = Progress { done: 0, total, tell };
    let segments = open_segments(env, dir, state, &names, report, unordered);
    let segment = |n| segments.get(&n)?.clone().ok();
    for ks in state.keyspaces.values().filter(|ks| ks.order.is_none()) {
        unordered.push(Finding::new(
            "",
            format!(
                "keyspace {:?} is ordered by comparator {:?}, which is not known here: the order of its keys is not checked",
                ks.name, ks.order_name
            ),
        ));
    }
    for (ks, meta) in tables() {
        let order = ks.order.clone().unwrap_or_else(|| stand_in(&ks.order_name));
        let path = dir.join(filename::table(meta.number));
        match Table::open(&**env, &path, meta.number, meta.size, order, meta.base_seq) {
            Err(e) => {
                check_remains(&**env, &path, meta, &ks.order_name, report);
                match ks.order {
                    Some(_) => report.problem(e),
                    None => unordered.push(Finding::from(&e)),
                }
                progress.finish_file(meta.size);
            }
            Ok(t) if ks.order.is_none() => {
                check_blocks(&t, ks.id, meta, &segment, report, unordered)?;
                progress.finish_file(meta.size);
            }
            Ok(t) => {
                let t = Arc::new(t);
                check_table(&t, ks.id, meta, &segment, report, &mut progress)?;
            }
        }
    }
    check_log(dir, state, segments, report);
    checked.state = Some(loaded.state);
    Ok(checked)
}

/// The blocks of a table whose order is not known, the values that it points to, and what the manifest says of it.
fn check_blocks(
    t: &Table,
    keyspace: u32,
    meta: &TableMeta,
    segment: &FindSegment<'_>,
    report: &mut VerifyReport,
    problems: &mut Vec<Finding>,
) -> Result<()> {
    report.files += 1;
    report.bytes += t.size();
    let mut values = Values::new(segment);
    let entries = &mut report.entries;
    let lost = t.salvage(&mut |_, _, _, stored| {
        *entries += 1;
        values.look_at(stored);
        Ok(())
    })?;
    problems
        .extend(lost.iter().map(|l| Finding::from(&Error::corrupt(t.path(), l.offset, l.what()))));
    report.bytes += values.bytes;
    problems.extend(contradictions(t, keyspace, meta).iter().map(Finding::from));
    problems.extend(values.problems(t));
    Ok(())
}

/// What can be read of a table that does not open.
fn check_remains(
    env: &dyn Env,
    path: &Path,
    meta: &TableMeta,
    order: &str,
    report: &mut VerifyReport,
) {
    report.files += 1;
    if let Ok(remains) = Remains::open(env, path, meta.number, Some(meta.size), [order]) {
        report.bytes += remains.len();
        report.entries += DamagedTable::Remains(Box::new(remains)).intact_entries(meta);
    }
}

/// Names in a directory that should be a store's: one that is not there is none.
pub(crate) fn list_store(env: &dyn Env, dir: &Path) -> Result<Vec<String>> {
    env.list(dir).map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => Error::NotAStore { path: dir.to_path_buf() },
        _ => Error::io("list", dir, e),
    })
}

/// The directory's lock, without making anything in a directory that is no store.
pub(crate) fn lock_existing(env: &Arc<dyn Env>, dir: &Path, mode: LockMode) -> Result<DirLock> {
    let none = || Error::NotAStore { path: dir.to_path_buf() };
    let names = list_store(&**env, dir)?;
    version::refuse_foreign(&**env, dir)?;
    if !names.iter().any(|n| filename::is_of_a_store(n)) {
        return Err(none());
    }
    lock_dir(&**env, dir, mode)?.ok_or_else(none)
}

/// All of a table; what the manifest says of it; and that every value that stayed in a log segment is there and whole, as
/// far as the blocks that point to them can be read.
fn check_table(
    t: &Arc<Table>,
    keyspace: u32,
    meta: &TableMeta,
    segment: &FindSegment<'_>,
    report: &mut VerifyReport,
    progress: &mut Progress<'_>,
) -> Result<()> {
    report.files += 1;
    let mut values = Values::new(segment);
    let mut each = |_: &[u8], _, _, stored: Stored<'_>| {
        values.look_at(stored);
        Ok(())
    };
    let problems = t.verify_with(&mut |bytes| progress.at(bytes), &mut each)?;
    progress.finish_file(meta.size);
    report.bytes += meta.size + values.bytes;
    report.entries += match problems.is_empty() {
        true => t.entries(),
        false => DamagedTable::Opened(Arc::clone(t)).intact_entries(meta),
    };
    problems.into_iter().chain(contradictions(t, keyspace, meta)).for_each(|p| report.problem(p));
    report.problems.extend(values.problems(t));
    Ok(())
}

/// What the manifest says wrong of a table that it has in this keyspace. What a read does follows from that: a key below
/// the smallest that it names is not found.
pub(crate) fn contradictions(t: &Table, keyspace: u32, meta: &TableMeta) -> Vec<Error> {
    let (own, names) = (t.keyspace(), ("the manifest says", "the table has"));
    let misplaced =
        (own != keyspace).then(|| format!("keyspace: {} {keyspace}, {} {own}", names.0, names.1));
    let of_meta = t.meta().contradictions(meta, |a, b| a == b, names);
    misplaced.into_iter().chain(of_meta).map(|what| Error::corrupt(t.path(), 0, what)).collect()
}

/// Gives the segment of a number, `None` where it is missing or damaged.
type FindSegment<'a> = dyn Fn(u64) -> Option<Arc<Segment>> + 'a;

/// So many damaged values of one table are told one by one.
const MOST_VALUES: usize = 64;

/// The values of a table that stayed in log segments.
struct Values<'a> {
    segment: &'a FindSegment<'a>,
    /// Bytes of those that there are.
    bytes: u64,
    damaged: Vec<Finding>,
    /// Damaged ones that are not among these, as there may be millions.
    more_damaged: u64,
    /// How many are in segments that are not there. One finding for all of a segment: there may be millions.
    missing: BTreeMap<u64, u64>,
}

impl<'a> Values<'a> {
    fn new(segment: &'a FindSegment<'a>) -> Values<'a> {
        Values { segment, bytes: 0, damaged: Vec::new(), more_damaged: 0, missing: BTreeMap::new() }
    }

    fn look_at(&mut self, stored: Stored<'_>) {
        let Stored::Pointer(p) = stored else { return };
        match (self.segment)(p.segment) {
            None => *self.missing.entry(p.segment).or_default() += 1,
            Some(s) => {
                self.bytes += u64::from(p.len);
                match s.value(&p) {
                    Err(e) if self.damaged.len() < MOST_VALUES => {
                        self.damaged.push(Finding::from(&e));
                    }
                    found => self.more_damaged += u64::from(found.is_err()),
                }
            }
        }
    }

    /// What is wrong with those of table `t`.
    fn problems(self, t: &Table) -> impl Iterator<Item = Finding> {
        let missing = self.missing.into_iter().map(|(segment, values)| {
            let what = format!(
                "{values} values are in log segment {segment}, which is missing or damaged"
            );
            Finding::from(&Error::corrupt(t.path(), 0, what))
        });
        let more = (self.more_damaged > 0).then(|| {
            let what =
                format!("and {} more values that it points to are damaged", self.more_damaged);
            Finding::from(&Error::corrupt(t.path(), 0, what))
        });
        self.damaged.into_iter().chain(more).chain(missing)
    }
}

/// What is wrong with a segment whose values no repair can save that is not given the comparators of the keyspaces they
/// belong to: it cannot write the tables anew that point there.
pub(crate) fn awaits_comparator(found: Finding, state: &State, segment: u64) -> Finding {
    let points_there = |t: &TableMeta| t.references.iter().any(|r| r.segment == segment);
    let unordered = state.keyspaces.values().filter(|k| k.order.is_none());
    let waiting = unordered.filter(|k| k.version.tables().any(|t| points_there(t)));
    let names = waiting.map(|k| format!("{:?} (comparator {:?})", k.name, k.order_name));
    let what = format!(
        "{}; tables of keyspace {} point there: until a repair that is given the comparator the store does not open",
        found.what,
        names.collect::<Vec<_>>().join(" and ")
    );
    Finding { what, ..found }
}

/// The segments that there are, and what is wrong with those that are none.
fn open_segments(
    env: &Arc<dyn Env>,
    dir: &Path,
    state: &State,
    names: &[String],
    report: &mut VerifyReport,
    unordered: &mut Vec<Finding>,
) -> BTreeMap<u64, Result<Arc<Segment>>> {
    let mut numbers: BTreeSet<u64> = state.value_segments();
    let ordered = state.keyspaces.values().filter(|k| k.order.is_some());
    let ordered = ordered.flat_map(|k| k.version.tables()).flat_map(|t| &t.references);
    let with_ordered: BTreeSet<u64> = ordered.map(|r| r.segment).collect();
    numbers.extend(
        names.iter().filter_map(|n| filename::segment_number(n)).filter(|n| *n >= state.log_start),
    );
    let mut segments = BTreeMap::new();
    for number in numbers {
        report.files += 1;
        match Lookup::open(env, dir, number, false) {
            Ok(Lookup::Segment(segment)) => {
                // There may be thousands.
                segment.release();
                segments.insert(number, Ok(segment));
            }
            // Made, and never used before a crash: nothing was in it.
            Ok(Lookup::Unused(behind, _)) if number >= state.log_start && !behind.frames => {}
            Ok(Lookup::Missing) => {}
            Ok(Lookup::Unused(_, e)) | Err(e) => {
                let found = Finding::from(&e);
                if number >= state.log_start || with_ordered.contains(&number) {
                    report.problems.push(found);
                } else {
                    unordered.push(awaits_comparator(found, state, number));
                }
                segments.insert(number, Err(e));
            }
        }
    }
    segments
}

/// An entry of the log for a keyspace whose number the manifest never gave out.
pub(crate) fn unknown_keyspace(segment: &Path, offset: u64, keyspace: u32) -> Error {
    let what = format!(
        "an entry of keyspace {keyspace}, of which the manifest does not know: it has lost its end"
    );
    Error::corrupt(segment, offset, what)
}

/// The log can be read from its start to its end, and nothing is behind.
fn check_log(
    dir: &Path,
    state: &State,
    segments: BTreeMap<u64, Result<Arc<Segment>>>,
    report: &mut VerifyReport,
) {
    let present: Vec<u64> = segments.keys().copied().collect();
    let told = BTreeSet::new();
    let mut reader = CheckLog { next_keyspace: state.next_keyspace, segments, told, report };
    // It takes everything for a problem, and nothing for an error.
    drop(wal::scan(dir, state.log(), &present, true, &mut reader));
}

struct CheckLog<'a> {
    next_keyspace: u32,
    segments: BTreeMap<u64, Result<Arc<Segment>>>,
    /// Segments of which it was said that they have entries of an unknown keyspace: there may be millions.
    told: BTreeSet<u64>,
    report: &'a mut VerifyReport,
}

impl LogReader for CheckLog<'_> {
    fn open(&mut self, number: u64, _: bool) -> Result<Lookup> {
        Ok(Lookup::of(self.segments.get(&number)))
    }

    fn frame(&mut self, segment: &Arc<Segment>, frame: &Frame<'_>) -> Result<()> {
        for (_, record) in frame.records() {
            self.report.entries += 1;
            if record.keyspace >= self.next_keyspace && self.told.insert(segment.number()) {
                let lost = unknown_keyspace(segment.path(), frame.offset, record.keyspace);
                self.report.problem(lost);
            }
        }
        self.report.bytes += frame.len() as u64;
        Ok(())
    }

    fn end_of_segment(&mut self, segment: &Arc<Segment>, end: &End) -> Result<()> {
        match *end {
            // The log could not go on behind it.
            End::Torn { offset, .. } => {
                segment.check_room_for_seal(offset).or_else(|e| self.damage(e))
            }
            End::Clean { .. } => Ok(()),
        }
    }

    fn damage(&mut self, what: Error) -> Result<()> {
        let found = Finding::from(&what);
        // That a file is no segment was said when it was opened.
        if !self.report.problems.contains(&found) {
            self.report.problems.push(found);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::time::Duration;

    use super::*;
    use crate::env::{File, Lock, OpenMode, OsEnv};

    /// A medium that cannot be written.
    #[derive(Debug)]
    struct ReadOnly(OsEnv, io::ErrorKind);

    impl ReadOnly {
        fn refused<T>(&self) -> io::Result<T> {
            Err(self.1.into())
        }
    }

    impl Env for ReadOnly {
        fn create_dir(&self, _: &Path) -> io::Result<()> {
            self.refused()
        }
        fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
            self.0.list(dir)
        }
        fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
            if mode == OpenMode::Read { self.0.open(path, mode) } else { self.refused() }
        }
        fn exists(&self, path: &Path) -> io::Result<bool> {
            self.0.exists(path)
        }
        fn rename(&self, _: &Path, _: &Path) -> io::Result<()> {
            self.refused()
        }
        fn remove(&self, _: &Path) -> io::Result<()> {
            self.refused()
        }
        fn remove_dir(&self, _: &Path) -> io::Result<()> {
            self.refused()
        }
        fn hard_link(&self, _: &Path, _: &Path) -> io::Result<()> {
            self.refused()
        }
        fn sync_dir(&self, _: &Path) -> io::Result<()> {
            self.refused()
        }
        fn lock(&self, _: &Path, _: LockMode) -> io::Result<Arc<dyn Lock>> {
            self.refused()
        }
        fn now(&self) -> Duration {
            self.0.now()
        }
        fn sleep(&self, how_long: Duration) {
            self.0.sleep(how_long);
        }
    }

    #[test]
    fn a_store_on_read_only_media_could_not_be_verified() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("db");
        let db = crate::Db::open(&dir).unwrap();
        db.put("key", "value").unwrap();
        db.close().unwrap();
        let verify = |kind| {
            let env: Arc<dyn Env> = Arc::new(ReadOnly(OsEnv::new(), kind));
            verify_path(env, &dir, &Orders::default(), &mut |_, _| {})
        };
        for kind in [io::ErrorKind::ReadOnlyFilesystem, io::ErrorKind::PermissionDenied] {
            let report = verify(kind).unwrap();
            assert!(report.problems.is_empty() && report.entries == 1, "{report:?}");
        }
        // A store that somebody has open stays locked.
        let e = verify(io::ErrorKind::WouldBlock).unwrap_err();
        assert!(matches!(e, Error::Locked { .. }), "{e}");
    }
}

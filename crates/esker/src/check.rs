//! Verification: reading everything there is and saying all that is wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use crate::env::{Env, LockMode};
use crate::error::{Error, Result};
use crate::key::{Cursor, Stored};
use crate::log::{self, Behind, ManifestEnd, Segment, Walk};
use crate::read::LoadedTable;
use crate::store::{DirLock, Store, lock_dir};
use crate::table::{self, Table};
use crate::version::{self, Orders, State, TableMeta};

/// What a verification found.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct VerifyReport {
    /// Files read.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Entries in intact tables and log segments.
    pub entries: u64,
    /// Everything found wrong, in words that name file and offset. Empty: the store is sound.
    pub problems: Vec<String>,
}

impl VerifyReport {
    fn problem(&mut self, e: impl std::fmt::Display) {
        self.problems.push(e.to_string());
    }
}

/// How far a verification is.
struct Progress<'a> {
    done: u64,
    total: u64,
    tell: &'a mut dyn FnMut(u64, u64),
}

impl Progress<'_> {
    fn at(&mut self, within_file: u64) {
        (self.tell)((self.done + within_file).min(self.total), self.total);
    }

    fn finish_file(&mut self, bytes: u64) {
        self.done += bytes;
        self.at(0);
    }
}

impl Store {
    /// See [`Db::verify`](crate::Db::verify).
    pub(crate) fn verify(&self, tell: &mut dyn FnMut(u64, u64)) -> Result<VerifyReport> {
        let mut report = VerifyReport::default();
        let views: Vec<_> = self.all_keyspaces().iter().map(|ks| ks.view.load_full()).collect();
        let tables: Vec<&Arc<LoadedTable>> =
            views.iter().flat_map(|v| v.version.tables()).collect();
        // Asked afterwards: the views of a store that is closed are empty.
        self.check_open()?;
        let total = tables.iter().map(|t| t.meta.size).sum();
        let mut progress = Progress { done: 0, total, tell };
        for t in tables {
            check_table(&t.table, &t.meta, &mut report, &mut progress)?;
            check_pointers(
                &t.table,
                &|n| t.segments().iter().find(|s| s.number() == n).cloned(),
                &mut report,
            );
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
            Err(Error::corrupt(&store.dir, 0, format!("{first} (and {more} more problems)")))
        }
    }
}

/// Verifies the store in `dir`, which must not be open. Changes nothing.
pub(crate) fn verify_path(
    env: Arc<dyn Env>,
    dir: &Path,
    tell: &mut dyn FnMut(u64, u64),
) -> Result<VerifyReport> {
    let _lock = lock_existing(&env, dir, LockMode::Shared)?;
    let mut report = VerifyReport::default();
    // Tables of unknown order cannot be checked for it; all else can.
    let loaded = match version::load(&*env, dir, &Orders::default()) {
        Ok(loaded) => loaded,
        Err(e @ (Error::NotAStore { .. } | Error::NewerFormat { .. })) => return Err(e),
        Err(e) => {
            report.problem(e);
            return Ok(report);
        }
    };
    report.files += 2;
    let state = &loaded.state;
    let manifest = ManifestEnd { number: loaded.number, end: loaded.end };
    if let Err(e) = check_manifest(&env, dir, manifest, state) {
        report.problem(e);
    }
    let names = env.list(dir).map_err(|e| Error::io("list", dir, e))?;
    let tables: Vec<_> =
        state.keyspaces.values().flat_map(|k| k.version.tables().map(move |t| (k, t))).collect();
    let total = tables.iter().map(|(_, t)| t.size).sum();
    let mut progress = Progress { done: 0, total, tell };
    let segments = open_segments(&env, dir, state, &names, &mut report);
    for (ks, meta) in tables {
        let Some(order) = ks.order.clone() else {
            report.problem(format!(
                "keyspace {:?} is ordered by comparator {:?}, which is not known here: its tables were not checked",
                ks.name, ks.order_name
            ));
            continue;
        };
        let path = dir.join(table::file_name(meta.number));
        match Table::open(&*env, &path, meta.number, meta.size, order, meta.base_seq) {
            Err(e) => {
                report.files += 1;
                report.problem(e);
                progress.finish_file(meta.size);
            }
            Ok(t) => {
                let t = Arc::new(t);
                check_table(&t, meta, &mut report, &mut progress)?;
                check_pointers(
                    &t,
                    &|n| segments.iter().find(|s| s.number() == n).cloned(),
                    &mut report,
                );
            }
        }
    }
    check_log(dir, state, &segments, &mut report);
    Ok(report)
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
    let ours = |n: &String| {
        n == version::CURRENT
            || version::parse_manifest_name(n).is_some()
            || table::parse_file_name(n).is_some()
            || log::parse_file_name(n).is_some()
    };
    if !names.iter().any(ours) {
        return Err(none());
    }
    lock_dir(&**env, dir, mode)?.ok_or_else(none)
}

fn check_table(
    t: &Arc<Table>,
    meta: &TableMeta,
    report: &mut VerifyReport,
    progress: &mut Progress<'_>,
) -> Result<()> {
    report.files += 1;
    report.bytes += meta.size;
    let problems = t.verify(&mut |bytes| progress.at(bytes))?;
    progress.finish_file(meta.size);
    if problems.is_empty() {
        report.entries += t.entries();
    }
    for p in problems {
        report.problem(p);
    }
    let mut differ = |what: &str, table: u64, manifest: u64| {
        if table != manifest {
            report.problem(Error::corrupt(
                t.path(),
                0,
                format!("the table has {table} {what}, the manifest says {manifest}"),
            ));
        }
    };
    differ("entries", t.entries(), meta.entries);
    differ("tombstones", t.tombstones(), meta.tombstones);
    if t.smallest() != meta.smallest || t.largest() != meta.largest {
        report.problem(Error::corrupt(t.path(), 0, "its keys do not range as the manifest says"));
    }
    Ok(())
}

/// Every value that stayed in a log segment is there and whole.
fn check_pointers(
    t: &Arc<Table>,
    segment: &dyn Fn(u64) -> Option<Arc<Segment>>,
    report: &mut VerifyReport,
) {
    if t.references().is_empty() {
        return;
    }
    let mut cursor = t.cursor();
    let mut step = cursor.first();
    while step.is_ok() && cursor.valid() {
        if let Stored::Pointer(p) = cursor.stored() {
            match segment(p.segment) {
                None => report.problem(Error::corrupt(
                    t.path(),
                    0,
                    format!("a value is in log segment {}, which is missing or damaged", p.segment),
                )),
                Some(s) => {
                    report.bytes += u64::from(p.len);
                    if let Err(e) = s.value(&p) {
                        report.problem(e);
                    }
                }
            }
        }
        step = cursor.next();
    }
    // Damage that stops the walk was reported by the table's own verification.
}

fn open_segments(
    env: &Arc<dyn Env>,
    dir: &Path,
    state: &State,
    names: &[String],
    report: &mut VerifyReport,
) -> Vec<Arc<Segment>> {
    let mut numbers: BTreeSet<u64> = state.segment_references().into_keys().collect();
    numbers.extend(
        names.iter().filter_map(|n| log::parse_file_name(n)).filter(|n| *n >= state.log_start),
    );
    let mut segments = Vec::new();
    for number in numbers {
        report.files += 1;
        match Segment::open(env, dir, number, false) {
            Ok(s) => segments.push(Arc::new(s)),
            // Made, and never used before a crash: nothing was in it.
            Err(_)
                if number >= state.log_start
                    && Segment::never_synced(env, dir, number)
                        .is_ok_and(|left| left.is_some_and(|behind| !behind.frames)) => {}
            Err(e) => report.problem(e),
        }
    }
    segments
}

/// A manifest that is shorter than it was when a segment of the log was made, or when a table was
/// written that it should know of, has lost its end: an error that says so. `manifest` is how far it
/// can be read, and `state` what it says.
pub(crate) fn check_manifest(
    env: &Arc<dyn Env>,
    dir: &Path,
    manifest: ManifestEnd,
    state: &State,
) -> Result<()> {
    let names = env.list(dir).map_err(|e| Error::io("list", dir, e))?;
    let tables = names.iter().filter_map(|n| table::parse_file_name(n));
    // While the store is open, tables are written before the manifest names them.
    let younger = tables.filter(|n| state.clean_close.is_some() && *n >= state.next_file).min();
    if let Some(number) = younger {
        let path = dir.join(version::manifest_name(manifest.number));
        let what = format!(
            "the store was closed, and yet {} is younger: the manifest's end is lost",
            table::file_name(number)
        );
        return Err(Error::corrupt(&path, manifest.end, what));
    }
    let numbers = names.iter().filter_map(|n| log::parse_file_name(n));
    for number in numbers.filter(|n| *n >= state.log_start) {
        let was = Segment::made_with(env, dir, number);
        if let Some(was) = was.filter(|was| *was > manifest) {
            let path = dir.join(version::manifest_name(manifest.number));
            let what = format!(
                "{} had {} bytes when log segment {number} was made: the manifest's end is lost",
                version::manifest_name(was.number),
                was.end,
            );
            return Err(Error::corrupt(&path, manifest.end, what));
        }
    }
    Ok(())
}

/// An entry of the log for a keyspace whose number the manifest never gave out.
pub(crate) fn unknown_keyspace(segment: &Path, offset: u64, keyspace: u32) -> Error {
    let what = format!(
        "an entry of keyspace {keyspace}, of which the manifest does not know: it has lost its end"
    );
    Error::corrupt(segment, offset, what)
}

/// The log can be read from its start to its end, and nothing is behind.
fn check_log(dir: &Path, state: &State, segments: &[Arc<Segment>], report: &mut VerifyReport) {
    let mut log: BTreeMap<u64, &Arc<Segment>> =
        segments.iter().map(|s| (s.number(), s)).filter(|s| s.0 >= state.log_start).collect();
    let closed = state.clean_close.is_some();
    let mut walk = Walk::new(state.log_start, state.log_founded, state.flushed());
    let mut behind = Behind::default();
    while let Some(number) = walk.next().filter(|_| !closed) {
        let path = dir.join(log::file_name(number));
        let Some(segment) = log.remove(&number) else {
            if walk.missing() {
                let what = "the log goes on in this file, which is missing or damaged";
                report.problem(Error::corrupt(&path, 0, what));
            }
            break;
        };
        let mut frames = segment.frames();
        let mut first = None;
        for frame in frames.by_ref() {
            first = first.or(Some(frame.seq));
            for (_, record) in frame.records() {
                report.entries += 1;
                if record.keyspace >= state.next_keyspace {
                    report.problem(unknown_keyspace(&path, frame.offset, record.keyspace));
                }
            }
            report.bytes += frame.len() as u64;
        }
        let end = frames.finish();
        if let Err(why) = walk.pass(first, end) {
            report.problem(Error::corrupt(&path, 0, why));
        }
        if !end.is_sealed() {
            behind = segment.frames().behind_their_end(true);
        }
    }
    for (number, segment) in log {
        let found = segment.frames().survey();
        behind = behind.and(found);
        if found.frames && walk.tear().is_none_or(|t| number < t.segment) {
            let what = "there are entries in this segment, which is no part of the log";
            report.problem(Error::corrupt(segment.path(), log::FIRST_FRAME, what));
        }
    }
    if let Some(tear) = walk.damage(behind, true) {
        let path = dir.join(log::file_name(tear.segment));
        let what = format!("{}, and the log went on after it", tear.why);
        report.problem(Error::corrupt(&path, tear.offset, what));
    }
}

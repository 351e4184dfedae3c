//! Reading a manifest back. Nothing here writes, so a store can be looked at on read-only media.

use std::path::Path;
use std::sync::Arc;

use super::current;
use super::record::{self, Found, HEADER_LEN};
use super::{Change, Orders, State, TableHistory, VersionEdit};
use crate::env::{Env, File, OpenMode};
use crate::error::{Error, Finding, Result};
use crate::filename::{self, CURRENT, DESTROYED, FileKind, LOST};

/// The remains of an append that a crash cut off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Torn {
    /// Where they begin.
    pub offset: u64,
    /// How many bytes there are.
    pub bytes: u64,
    /// What they look like.
    pub why: &'static str,
}

/// What the manifest in force says.
#[derive(Debug)]
pub(crate) struct Loaded {
    /// The composition of the store.
    pub state: State,
    /// Number of the manifest.
    pub number: u64,
    /// Where its last intact edit ends.
    pub end: u64,
    /// Bytes of its first edit, which is a whole state.
    pub(super) snapshot_bytes: u64,
    /// Edits after the first.
    pub edits: u64,
    /// What was dropped behind the end.
    pub torn: Option<Torn>,
}

/// What could be read of a damaged store's manifests.
#[derive(Debug)]
pub(crate) struct Salvaged {
    /// The composition after the last intact edit.
    pub state: State,
    /// Which manifest that was, and how many bytes of it.
    pub manifest: Option<(u64, u64)>,
    /// What was not read. Empty: all is well.
    pub lost: Vec<Finding>,
    /// The manifests that could not be read, or not to their end.
    pub damaged: Vec<u64>,
    /// Whether the state is that of a manifest which could be read to its end, and is the one that
    /// `CURRENT` names, or the newest.
    pub whole: bool,
    /// What its edits say of tables, also those that are no part of the store any more.
    pub history: TableHistory,
}

/// Reads the manifest in force. A record cut off by a crash at its end is left out; any other
/// damage is an error.
pub(crate) fn load(env: &dyn Env, dir: &Path, orders: &Orders) -> Result<Loaded> {
    let Some(current) = current::read(env, dir)? else { return Err(no_current(env, dir)?) };
    let number = current.number;
    let path = dir.join(filename::manifest(number));
    if !env.exists(&path).map_err(|e| Error::io("look for", &path, e))? {
        return Err(Error::corrupt(&path, 0, "CURRENT names it, and it is missing"));
    }
    let (loaded, bad) = read_manifest(env, dir, number, orders, None)?;
    match bad {
        None if loaded.end < current.end => {
            Err(Error::corrupt(&path, loaded.end, end_is_lost(current.end)))
        }
        None => Ok(loaded),
        Some(what) => Err(Error::corrupt(&path, loaded.end, what)),
    }
}

fn end_is_lost(end: u64) -> String {
    format!("it had {end} bytes when {CURRENT} was written: its end is lost")
}

/// Reads as many intact edits as there are, from the manifest in force or else the newest one that
/// can be read. Fails only where the directory itself cannot be listed, the system refuses a file
/// for the moment, or a manifest is of another version.
pub(crate) fn load_prefix(env: &dyn Env, dir: &Path, orders: &Orders) -> Result<Salvaged> {
    let names = env.list(dir).map_err(|e| Error::io("list", dir, e))?;
    let mut numbers: Vec<u64> = names.iter().filter_map(|n| filename::manifest_number(n)).collect();
    numbers.sort_unstable_by(|a, b| b.cmp(a));
    let (mut lost, mut damaged) = (Vec::new(), Vec::new());
    let newest = numbers.first().copied();
    let mut least = None;
    match current::read(env, dir) {
        // What CURRENT names comes first: a newer file is one that never came into force.
        Ok(Some(current)) => {
            let number = current.number;
            least = Some(current);
            if !numbers.contains(&number) {
                lost.push(Finding::new(
                    filename::manifest(number),
                    "missing, and CURRENT names it",
                ));
            }
            numbers.sort_by_key(|&n| n != number);
        }
        Ok(None) => lost.push(Finding::new(CURRENT, "missing")),
        Err(e) if e.is_passing() => return Err(e),
        Err(e) => lost.push(Finding::from(&e)),
    }
    for number in numbers {
        let mut history = TableHistory::default();
        match read_manifest(env, dir, number, orders, Some(&mut history)) {
            Ok((loaded, bad)) => {
                let bad = bad.or_else(|| {
                    let least = least.filter(|c| c.number == number && loaded.end < c.end)?;
                    Some(end_is_lost(least.end))
                });
                let in_force = least.is_some_and(|c| c.number == number);
                let whole = bad.is_none() && (in_force || newest == Some(number));
                if let Some(what) = bad {
                    let what = format!(
                        "{what}; it and all that follows was not used, {} edits before it were",
                        loaded.edits
                    );
                    lost.push(Finding::new(filename::manifest(number), what).at(loaded.end));
                    damaged.push(number);
                }
                let manifest = Some((number, loaded.end));
                let state = loaded.state;
                return Ok(Salvaged { state, manifest, lost, damaged, whole, history });
            }
            // That of a newer version is sound.
            Err(e) if e.is_passing() || matches!(e, Error::UnsupportedFormat { .. }) => {
                return Err(e);
            }
            Err(e) => {
                damaged.push(number);
                let found = Finding::from(&e);
                lost.push(Finding { what: format!("not used: {}", found.what), ..found });
            }
        }
    }
    lost.push(Finding::new("", "no manifest could be read"));
    let state = State::new(orders.clone());
    let history = TableHistory::default();
    Ok(Salvaged { state, manifest: None, lost, damaged, whole: false, history })
}

/// There is no `CURRENT`: is this a store at all?
///
/// A crash while a store is being created leaves manifests without `CURRENT`, and nothing else of a store's:
/// segments and tables are made after it is durable. That is no store yet, and creating it again
/// loses nothing. Nor is one that is marked as destroyed. With anything else of a store's beside it, one lost its
/// `CURRENT`, or that and its manifest.
pub(crate) fn no_current(env: &dyn Env, dir: &Path) -> Result<Error> {
    let names = env.list(dir).map_err(|e| Error::io("list", dir, e))?;
    let manifest = names.iter().find(|n| filename::manifest_number(n).is_some());
    let unfinished = |n: &String| {
        use FileKind::{CurrentTemp, Lock, Manifest};
        // What is none of a store's says nothing.
        n != LOST && matches!(filename::parse(n), None | Some(Lock | CurrentTemp | Manifest))
    };
    // Nothing is lost with an empty one.
    let holds = |n: &&String| {
        let len = || env.open(&dir.join(n), OpenMode::Read).and_then(|f| f.len());
        filename::file_number(n).is_some() && !len().is_ok_and(|n| n == 0)
    };
    let damaged = |what| Ok(Error::corrupt(&dir.join(CURRENT), 0, what));
    if names.iter().any(|n| n == DESTROYED) {
        return Ok(Error::NotAStore { path: dir.to_path_buf() });
    }
    match (manifest, names.iter().find(holds)) {
        (Some(name), _) if !names.iter().all(unfinished) => {
            damaged(format!("it is missing, though {name} is there"))
        }
        (None, Some(name)) => damaged(format!(
            "it is missing, and so is every manifest, though {name} is there: move that away if it is none of a \
             store's"
        )),
        _ => Ok(Error::NotAStore { path: dir.to_path_buf() }),
    }
}

/// Reads manifest `number` as far as it goes; the second value says what stopped it before its
/// end, if that was no crash. An error when not even the first record can be read.
fn read_manifest(
    env: &dyn Env,
    dir: &Path,
    number: u64,
    orders: &Orders,
    mut history: Option<&mut TableHistory>,
) -> Result<(Loaded, Option<String>)> {
    let path = dir.join(filename::manifest(number));
    let file: Arc<dyn File> =
        env.open(&path, OpenMode::Read).map_err(|e| Error::io("open", &path, e))?;
    let len = file.len().map_err(|e| Error::io("read the length of", &path, e))?;
    record::check_file_header(&*file, &path, number, len)?;
    let mut loaded = Loaded {
        state: State::new(orders.clone()),
        number,
        end: HEADER_LEN,
        snapshot_bytes: 0,
        edits: 0,
        torn: None,
    };
    // Where the next record is, and what those before it hold of an edit that is not complete.
    let (mut at, mut begun) = (HEADER_LEN, Vec::new());
    loop {
        let first = loaded.end == HEADER_LEN;
        let torn = |why| Torn { offset: loaded.end, bytes: len - loaded.end, why };
        let stop = match record::read(&*file, &path, number, at, len)? {
            Found::Record { payload, end } => {
                at = end;
                match accept(&mut loaded, &mut begun, &payload, end, history.as_deref_mut()) {
                    Ok(()) => continue,
                    Err(what) => what,
                }
            }
            // CURRENT never names a manifest whose first edit is not durable.
            Found::End if first => "the first record is missing".to_owned(),
            Found::Torn(what) if first => what.to_owned(),
            Found::End if begun.is_empty() => return Ok((loaded, None)),
            Found::End => {
                loaded.torn = Some(torn("the file ends between the records of an edit"));
                return Ok((loaded, None));
            }
            Found::Torn(why) => {
                loaded.torn = Some(torn(why));
                return Ok((loaded, None));
            }
            Found::Damaged(what) => what.to_owned(),
        };
        if first {
            return Err(Error::corrupt(&path, loaded.end, stop));
        }
        return Ok((loaded, Some(stop)));
    }
}

/// Takes one record, and applies the edit that it completes; says why not when it cannot be.
fn accept(
    loaded: &mut Loaded,
    begun: &mut Vec<Change>,
    payload: &[u8],
    end: u64,
    history: Option<&mut TableHistory>,
) -> std::result::Result<(), String> {
    let part = VersionEdit::decode(payload).map_err(|e| format!("a record cannot be read: {e}"))?;
    begun.extend(part.changes);
    if begun.last() == Some(&Change::Continued) {
        begun.pop();
        return Ok(());
    }
    let edit = VersionEdit::from(std::mem::take(begun));
    loaded.state.apply_in_place(&edit).map_err(|e| format!("an edit contradicts: {e}"))?;
    if let Some(history) = history {
        history.note(&edit);
    }
    if loaded.end == HEADER_LEN {
        loaded.snapshot_bytes = end - HEADER_LEN;
    } else {
        loaded.edits += 1;
    }
    loaded.end = end;
    Ok(())
}

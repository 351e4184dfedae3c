//! What a damaged store may answer.

use std::path::Path;
use std::time::Duration;

use esker::{Db, Error, Keyspace, Options};

use crate::common::files;
use crate::harm::{Harm, What};
use crate::specimen::{Contents, Kind, OTHER, Specimen, options};

/// Fails instead of hanging.
pub fn within_seconds(seconds: u64, work: impl FnOnce() + Send + 'static) {
    let (done, wait) = std::sync::mpsc::channel();
    let worker = std::thread::spawn(move || {
        work();
        let _ = done.send(());
    });
    match wait.recv_timeout(Duration::from_secs(seconds)) {
        Err(std::sync::mpsc::RecvTimeoutError::Timeout) => panic!("it hangs"),
        _ => worker.join().unwrap_or_else(|e| std::panic::resume_unwind(e)),
    }
}

/// Names the damage when a test fails by it.
struct Named<'a>(&'a Harm);

impl Drop for Named<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("with this damage: {:?}", self.0);
        }
    }
}

/// What may be missing without a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Missing {
    Nothing,
    /// Writes that were never synced, from some moment on.
    Unsynced,
}

impl Missing {
    fn allows(self, specimen: &Specimen, found: &Contents) -> bool {
        match self {
            Missing::Nothing => false,
            Missing::Unsynced => specimen.is_prefix(found),
        }
    }

    fn unless(self, not: bool) -> Missing {
        if not && self == Missing::Unsynced { Missing::Nothing } else { self }
    }
}

fn torn_by(kind: Kind, harm: &Harm) -> Missing {
    match (kind, &harm.what) {
        // Nothing of it was synced: a power cut explains lost frames, and also a lost segment, which a
        // writer in a hurry does not wait to be durable.
        (Kind::Log, _) => Missing::Unsynced,
        _ => Missing::Nothing,
    }
}

/// Damages copies of the specimen; opens, reads, verifies and repairs them.
pub fn judge(specimen: &Specimen, kind: Kind, harm: &Harm) {
    let _named = Named(harm);
    let dir = tempfile::tempdir().unwrap();
    let damaged = |name: &str| {
        let path = dir.path().join(name);
        specimen.copy_to(&path);
        harm.apply(&path);
        path
    };
    let path = damaged("db");
    let before = files::contents(&path);
    let verdict = Db::verify_path(&path);
    let sound = verdict.as_ref().is_ok_and(|report| report.problems.is_empty());
    let mut errors = Vec::new();
    let last = specimen.is_last_log(&harm.file);
    let read_only = options().read_only(true);
    let torn = torn_by(kind, harm);
    errors.extend(look(specimen, read_only.clone(), &path, torn));
    errors.extend(look(specimen, read_only.paranoid_checks(true), &path, torn.unless(!last)));
    assert!(files::contents(&path) == before, "reading changed a file");
    errors.extend(look(specimen, options(), &path, torn));
    assert!(errors.is_empty() || !sound, "verification missed: {errors:?}");
    if matches!(harm.what, What::Extra | What::ExtraDirectory | What::Nothing) {
        assert!(errors.is_empty() && sound, "{errors:?}, {verdict:?}");
        let there = matches!(harm.what, What::Nothing) || path.join(&harm.file).exists();
        assert!(there, "a file of somebody else's is gone");
    }
    repair(specimen, &damaged("repaired"), torn);
}

/// Opens and reads a damaged store. Returns the errors there were.
fn look(specimen: &Specimen, options: Options, path: &Path, torn: Missing) -> Vec<Error> {
    let model = specimen.model();
    let db = match options.open(path) {
        Ok(db) => db,
        Err(e) => return vec![e],
    };
    let keyspaces = match db.keyspace(OTHER) {
        Ok(other) => vec![db.default_keyspace().clone(), other],
        Err(e) => panic!("{e}"),
    };
    let mut errors = Vec::new();
    let mut found = Contents::new();
    let mut scans_whole = true;
    for (ks, keyspace) in (0u8..).zip(&keyspaces) {
        for backwards in [false, true] {
            match scan(keyspace, backwards) {
                Ok(entries) => {
                    found.extend(entries.into_iter().map(|(k, v)| ((ks, k), v)));
                }
                Err(e) => {
                    errors.push(e);
                    scans_whole = false;
                }
            }
        }
    }
    if scans_whole {
        let right = found == model || torn.allows(specimen, &found);
        assert!(right, "scans: {} entries, should be {}", found.len(), model.len());
    }
    for n in 0..300 {
        for (ks, keyspace) in (0u8..).zip(&keyspaces) {
            let key = (ks, format!("key-{n:03}").into_bytes());
            match keyspace.get(&key.1) {
                Err(e) => errors.push(e),
                Ok(value) => {
                    let right = if scans_whole { found.get(&key) } else { model.get(&key) };
                    let same = value.as_deref() == right.map(|v| &v[..]);
                    assert!(same, "get of {key:?}: {:?}", value.map(|v| v.len()));
                }
            }
        }
    }
    drop(keyspaces);
    if let Err(e) = db.close() {
        errors.push(e);
    }
    errors
}

fn scan(keyspace: &Keyspace, backwards: bool) -> esker::Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let all = keyspace.iter().copied_out();
    if backwards { all.rev().collect() } else { all.collect() }
}

/// All of a store that must be sound.
fn read_all(options: Options, path: &Path) -> Contents {
    let db = options.open(path).expect("a repaired store opens");
    let mut all = Contents::new();
    for name in db.keyspaces() {
        let ks = u8::from(name != "default");
        let keyspace = db.keyspace(&name).unwrap();
        let forward = scan(&keyspace, false).expect("a repaired store can be read");
        let mut backward = scan(&keyspace, true).unwrap();
        backward.reverse();
        assert!(forward == backward);
        for (key, value) in forward {
            assert_eq!(keyspace.get(&key).unwrap().unwrap(), value);
            all.insert((ks, key), value);
        }
    }
    all
}

fn repair(specimen: &Specimen, path: &Path, torn: Missing) {
    let report = Db::repair(path).expect("repair");
    let verdict = Db::verify_path(path).unwrap();
    assert!(verdict.problems.is_empty(), "after repair: {:?}", verdict.problems);
    let found = read_all(options().read_only(true), path);
    if report.lost.is_empty() {
        let right = found == specimen.model() || torn.allows(specimen, &found);
        assert!(right, "repair lost something it does not name: {} entries", found.len());
    }
    let ever = specimen.ever();
    let made_up = found.iter().find(|entry| !ever.contains(entry));
    assert!(made_up.is_none(), "{:?} never had this value", made_up.map(|e| e.0));
    let second = Db::repair(path).expect("a second repair");
    assert!(second.lost.is_empty(), "a second repair lost {:?}", second.lost);
    assert!(read_all(options(), path) == found, "a second repair changed something");
}

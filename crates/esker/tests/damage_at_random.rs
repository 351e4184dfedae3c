//! Files damaged at random, also two at once: what is read is right, or an error. Nothing panics,
//! `verify` says what is wrong, and `repair` saves the rest.
//!
//! What `damage` does bit by bit and file by file, this does with less order: sectors of zeros,
//! garbage, files in each other's place. Two stores are damaged: one that was closed (tables, separated values, manifest), and one that
//! was killed with several segments of log. Of the second a damaged log may come back shorter,
//! as after a power cut; but what comes back is always the store as it once was.
//!
//! `ESKER_SEED=n` sets the seed, `ESKER_ROUNDS=n` the number of random damages per store (150).

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use common::files::{self, copy, copy_now, names};
use common::rng::Rng;
use common::{number, seed, show};
use esker::{Compression, Db, Error, KeyOrder, KeyspaceOptions, Options};

const SPACES: [&str; 2] = ["default", "backward"];

type Map = BTreeMap<(usize, Vec<u8>), Vec<u8>>;
/// A write: keyspace, key, value or delete.
type Write = (usize, Vec<u8>, Option<Vec<u8>>);

/// A store in a directory, and everything that was ever written to it.
struct Image {
    dir: PathBuf,
    /// In order.
    history: Vec<Write>,
    /// What all of it comes to.
    last: Map,
    /// Whether there is a log to come back shorter.
    has_log: bool,
}

fn options() -> Options {
    Options::new()
        .memory(1 << 20)
        .segment_size(64 << 10)
        .blob_threshold(1000)
        .compression(Compression::Lz4)
}

fn value(rng: &mut Rng, serial: usize) -> Vec<u8> {
    let mut value = format!("{serial:08} ").into_bytes();
    let len = if rng.one_in(12) { 1000 + rng.below(4000) } else { rng.below(200) };
    value.extend(rng.bytes(len / 2));
    value.resize(9 + len, b'.');
    value
}

fn write(db: &Db, rng: &mut Rng, history: &mut Vec<Write>) {
    let space = rng.below(4) / 3;
    let key = format!("key {:04}", rng.below(500)).into_bytes();
    let keyspace = db.keyspace(SPACES[space]).unwrap();
    if rng.one_in(5) {
        keyspace.delete(&key).unwrap();
        history.push((space, key, None));
    } else {
        let value = value(rng, history.len());
        keyspace.put(&key, &value).unwrap();
        history.push((space, key, Some(value)));
    }
}

fn replay<'a>(history: impl IntoIterator<Item = &'a Write>) -> Map {
    let mut map = Map::new();
    for (space, key, value) in history {
        match value {
            Some(value) => drop(map.insert((*space, key.clone()), value.clone())),
            None => drop(map.remove(&(*space, key.clone()))),
        }
    }
    map
}

fn new_store(dir: &Path) -> Db {
    let db = options().open(dir).unwrap();
    let backward = KeyspaceOptions::new().comparator(KeyOrder::Reverse);
    db.create_keyspace(SPACES[1], backward).unwrap();
    db
}

impl Image {
    /// Some runs of tables, and values apart from them.
    fn closed(root: &Path, rng: &mut Rng) -> Image {
        let (path, dir) = (root.join("closing"), root.join("closed"));
        let db = new_store(&path);
        let mut history = Vec::new();
        for phase in [1500, 300, 100] {
            for _ in 0..phase {
                write(&db, rng, &mut history);
            }
            db.flush().unwrap();
        }
        db.close().unwrap();
        copy(&path, &dir);
        assert!(!files::ending(&dir, ".tbl").is_empty() && !files::ending(&dir, ".log").is_empty());
        Image { dir, last: replay(&history), history, has_log: false }
    }

    /// As a kill leaves it that comes while several segments wait to be flushed.
    fn killed(root: &Path, rng: &mut Rng) -> Image {
        for attempt in 0..200 {
            let path = root.join(format!("killing {attempt}"));
            let (dir, probe) = (root.join(format!("killed {attempt}")), root.join("probe"));
            let db = new_store(&path);
            let mut history = Vec::new();
            for _ in 0..600 {
                write(&db, rng, &mut history);
            }
            db.flush().unwrap();
            for _ in 0..1200 {
                write(&db, rng, &mut history);
            }
            let caught = copy_now(&path, &dir);
            drop(db);
            fs::remove_dir_all(&path).unwrap();
            if caught {
                copy(&dir, &probe);
                let opened = options().open(&probe).unwrap();
                let segments = opened.stats().log_segments;
                drop(opened);
                fs::remove_dir_all(&probe).unwrap();
                if segments >= 4 {
                    return Image { dir, last: replay(&history), history, has_log: true };
                }
            }
            drop(fs::remove_dir_all(&dir));
        }
        panic!("the log never grew to several segments");
    }

    /// The log's last frame has nothing behind it that could tell damage from a kill in its midst.
    fn lacks_only_the_last(&self, found: &Map) -> bool {
        *found == replay(&self.history[..self.history.len() - 1])
    }

    /// Every state that a log cut short may come back as.
    fn is_some_past(&self, found: &Map) -> bool {
        if *found == self.last {
            return true;
        }
        let mut map = Map::new();
        found.is_empty()
            || self.history.iter().any(|(space, key, value)| {
                match value {
                    Some(value) => drop(map.insert((*space, key.clone()), value.clone())),
                    None => drop(map.remove(&(*space, key.clone()))),
                }
                map == *found
            })
    }

    /// Whether the key ever had this value.
    fn ever_had(&self, space: usize, key: &[u8], value: &[u8]) -> bool {
        self.history.iter().any(|h| h.0 == space && h.1 == key && h.2.as_deref() == Some(value))
    }
}

/// Damages one file or the directory; says what it did.
fn damage(dir: &Path, rng: &mut Rng) -> String {
    let all = names(dir);
    let mut name = rng.pick(&all);
    if rng.one_in(3) {
        // The small files have few bytes but much to say.
        let small: Vec<String> =
            all.iter().filter(|n| n.starts_with("MANIFEST") || *n == "CURRENT").cloned().collect();
        name = rng.pick(&small);
    }
    let path = dir.join(&name);
    let mut bytes = fs::read(&path).unwrap();
    // Most of a segment may be unwritten; damage there would be none.
    let used = bytes.iter().rposition(|b| *b != 0).map_or(0, |at| at + 1);
    let what = match rng.below(11) {
        0..=4 if used > 0 => {
            let (at, bit) = (rng.below(used), 1 << rng.below(8));
            bytes[at] ^= bit;
            fs::write(&path, bytes).unwrap();
            format!("bit {bit:#x} of byte {at} flipped")
        }
        5 if used > 0 => {
            let at = rng.below(used) & !511;
            let end = bytes.len().min(at + 512);
            bytes[at..end].fill(0);
            fs::write(&path, bytes).unwrap();
            format!("512 bytes from {at} on are zeros")
        }
        6 if used > 0 => {
            let at = rng.below(used);
            let end = bytes.len().min(at + 1 + rng.below(4096));
            let garbage = rng.bytes(end - at);
            bytes[at..end].copy_from_slice(&garbage);
            fs::write(&path, bytes).unwrap();
            format!("{} bytes from {at} on are garbage", end - at)
        }
        7 => {
            let len = rng.below(bytes.len().max(1));
            fs::write(&path, &bytes[..len]).unwrap();
            format!("cut to {len} of {} bytes", bytes.len())
        }
        8 => {
            fs::write(&path, b"").unwrap();
            "emptied".to_string()
        }
        9 => {
            let suffix = name.rsplit('.').next().unwrap().to_string();
            let like: Vec<String> = all.iter().filter(|n| n.ends_with(&suffix)).cloned().collect();
            let other = rng.pick(&like);
            fs::write(&path, fs::read(dir.join(&other)).unwrap()).unwrap();
            format!("a copy of {other}")
        }
        _ => {
            fs::remove_file(&path).unwrap();
            "missing".to_string()
        }
    };
    format!("{name}: {what}")
}

/// What a damaged store gave away.
struct Found {
    /// What could be read without an error, if all could.
    whole: Option<Map>,
    /// The first error.
    error: Option<Error>,
}

/// Opens and reads by every path. Checks what is wrong in itself: answers that contradict each
/// other, and values that the key never had.
fn read(image: &Image, dir: &Path, options: Options) -> Found {
    let db = match options.open(dir) {
        Ok(db) => db,
        Err(e) => return Found { whole: None, error: Some(e) },
    };
    let mut map = Map::new();
    let mut error = None;
    for (space, name) in SPACES.iter().enumerate() {
        let keyspace = match db.keyspace(name) {
            Ok(keyspace) => keyspace,
            Err(e) => {
                error.get_or_insert(e);
                continue;
            }
        };
        let mut known = |key: &[u8], value: &[u8], by: &str| {
            assert!(image.ever_had(space, key, value), "{by}: {} never had this value", show(key));
            if let Some(before) = map.insert((space, key.to_vec()), value.to_vec()) {
                assert!(before == value, "{by}: {} has two values", show(key));
            }
        };
        let (mut forward, mut backward) = (Vec::new(), Vec::new());
        for entry in keyspace.iter().copied_out() {
            match entry {
                Ok((key, value)) => {
                    known(&key, &value, "an iterator");
                    forward.push(key);
                }
                Err(e) => drop(error.get_or_insert(e)),
            }
        }
        for entry in keyspace.iter().copied_out().rev() {
            match entry {
                Ok((key, value)) => {
                    known(&key, &value, "an iterator backward");
                    backward.push(key);
                }
                Err(e) => drop(error.get_or_insert(e)),
            }
        }
        let mut read = BTreeSet::new();
        for n in 0..500 {
            let key = format!("key {n:04}").into_bytes();
            match keyspace.get(&key) {
                Ok(Some(value)) => {
                    known(&key, &value, "get");
                    read.insert(key);
                }
                Ok(None) => {
                    let seen = forward.contains(&key) || backward.contains(&key);
                    assert!(!seen, "get misses {}, which an iterator met", show(&key));
                }
                Err(e) => drop(error.get_or_insert(e)),
            }
        }
        if error.is_none() {
            let mut all: Vec<_> = read.into_iter().collect();
            if space == 1 {
                all.reverse();
            }
            backward.reverse();
            assert!(forward == all && backward == all, "get and iterators differ without an error");
        }
    }
    Found { whole: error.is_none().then_some(map), error }
}

/// Whether this may look like a torn write at the end of the manifest: the store is then as it was
/// before its last changes (docs/format/manifest.md).
fn cuts_manifest(what: &str) -> bool {
    what.contains("MANIFEST") && (what.contains("cut to") || what.contains("zeros"))
}

/// Whether a segment of the log is gone. Nothing says that there was a newest one.
fn takes_segment(what: &str) -> bool {
    let gone = ["missing", "emptied", "cut to", "a copy of"];
    what.contains(".log") && gone.iter().any(|g| what.contains(g))
}

fn check(image: &Image, rng: &mut Rng, what: &str, dir: &Path) {
    let verified = Db::verify_path(dir);
    let reported = verified.as_ref().map_or(true, |r| !r.problems.is_empty());
    let (opened, repaired) = (dir.with_extension("opened"), dir.with_extension("repaired"));
    copy(dir, &opened);
    copy(dir, &repaired);

    let paranoid = rng.one_in(2);
    let found = read(image, &opened, options().paranoid_checks(paranoid));
    if let Some(map) = &found.whole {
        let whole = *map == image.last;
        let past = image.has_log && image.is_some_past(map);
        assert!(
            whole || past || cuts_manifest(what),
            "{what}: wrong answers and no error (paranoid: {paranoid})"
        );
        assert!(
            whole
                || reported
                || cuts_manifest(what)
                || takes_segment(what)
                || what.contains(".log") && image.lacks_only_the_last(map),
            "{what}: verify saw nothing wrong, but entries are missing"
        );
    }
    if let Some(e) = &found.error {
        let before = matches!(e, Error::UnknownKeyspace { .. }) && cuts_manifest(what);
        assert!(reported || before, "{what}: verify saw nothing wrong, but reading gave: {e}");
    }

    check_repair(image, what, &repaired, !reported);
    for dir in [&opened, &repaired] {
        fs::remove_dir_all(dir).unwrap();
    }
}

/// Repairs twice. Afterwards all is sound, and what is there was there once.
fn check_repair(image: &Image, what: &str, dir: &Path, sound: bool) {
    let report = match Db::repair(dir) {
        Ok(report) => report,
        Err(e) => panic!("{what}: repair: {e}"),
    };
    let again = Db::repair(dir).unwrap_or_else(|e| panic!("{what}: repair again: {e}"));
    assert_eq!(again.lost, [], "{what}: lost in the second repair");
    assert_eq!(again.entries, report.entries, "{what}: entries after the second repair");
    let verified = Db::verify_path(dir).unwrap();
    assert_eq!(verified.problems, [], "{what}: after repair");
    let names = |db: &Db| db.keyspaces().iter().filter(|n| !SPACES.contains(&n.as_str())).count();
    let found = read(image, dir, options().paranoid_checks(true));
    match found.error {
        None => {}
        // The names of keyspaces were lost with the manifest; their data is under other names.
        Some(Error::UnknownKeyspace { .. }) => {
            let db = options().open(dir).unwrap();
            let told = !report.lost.is_empty() || cuts_manifest(what);
            assert!(told, "{what}: a keyspace is gone, and repair lost nothing");
            assert!(names(&db) <= 1, "{what}: {:?}", db.keyspaces());
            return;
        }
        Some(e) => panic!("{what}: after repair: {e}"),
    }
    let map = found.whole.expect("no error");
    if report.lost.is_empty() && !cuts_manifest(what) {
        let past = image.has_log && image.is_some_past(&map);
        assert!(map == image.last || past, "{what}: repair said that nothing was lost");
    }
    if sound {
        assert!(report.lost.is_empty(), "{what}: {:#?} lost of a sound store", report.lost);
    }
}

fn run(name: &str, image: &Image, rng: &mut Rng) {
    let root = image.dir.parent().unwrap().to_path_buf();
    let rounds = number("ESKER_ROUNDS").unwrap_or(150);
    for round in 0..rounds {
        let dir = root.join(format!("{name}-{round}"));
        copy(&image.dir, &dir);
        let mut what = damage(&dir, rng);
        if rng.one_in(8) {
            what = format!("{what}; {}", damage(&dir, rng));
        }
        println!("{name} {round}: {what}");
        check(image, rng, &what, &dir);
        fs::remove_dir_all(&dir).unwrap();
    }
}

#[test]
fn a_closed_store_damaged_at_random() {
    let mut rng = Rng::new(seed("closed"));
    let root = tempfile::tempdir().unwrap();
    let image = Image::closed(root.path(), &mut rng);
    check(&image, &mut rng, "nothing", &image.dir);
    run("closed", &image, &mut rng);
}

#[test]
fn a_killed_store_damaged_at_random() {
    let mut rng = Rng::new(seed("killed"));
    let root = tempfile::tempdir().unwrap();
    let image = Image::killed(root.path(), &mut rng);
    check(&image, &mut rng, "nothing", &image.dir);
    run("killed", &image, &mut rng);
}

//! Tens of thousands of damages to small stores: every byte flipped, then random ones; each kind of
//! file cut, emptied, missing, in another's place, and files that should not be there.
//!
//! `damage` and `damage_at_random` try larger stores, by all ways to open them. Here each case costs
//! little: the store is verified, opened for reading and read whole; one in some is repaired, twice.
//!
//! `ESKER_SEED=n` sets the seed, `ESKER_CASES=n` the number of random damages per store (3,000).

mod common;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use common::files::{copy, copy_as_killed, names};
use common::rng::Rng;
use common::{number, seed};
use esker::{Compression, Db, Error, KeyOrder, KeyspaceOptions, Options};

const SPACES: [&str; 2] = ["default", "backward"];
const KEYS: usize = 24;

type Map = BTreeMap<(usize, Vec<u8>), Vec<u8>>;

fn options() -> Options {
    Options::new().memory(1 << 20).segment_size(64 << 10).blob_threshold(200)
}

/// A store in a directory, and what it may answer.
struct Image {
    dir: PathBuf,
    files: BTreeMap<String, Vec<u8>>,
    last: Map,
    /// What it was at each moment since its last flush, when it has a log that may come back shorter.
    pasts: HashSet<Map>,
    /// Every value that a key ever had.
    ever: BTreeSet<(usize, Vec<u8>, Vec<u8>)>,
}

/// In memory where there is a file system for that: nothing here is about the device.
fn root() -> tempfile::TempDir {
    let shm = Path::new("/dev/shm");
    if shm.is_dir() { tempfile::tempdir_in(shm).unwrap() } else { tempfile::tempdir().unwrap() }
}

impl Image {
    fn new(root: &Path, rng: &mut Rng, killed: bool, compression: Compression) -> Image {
        let (path, dir) = (root.join("alive"), root.join("image"));
        let db = options().compression(compression).open(&path).unwrap();
        let backward = KeyspaceOptions::new().comparator(KeyOrder::Reverse);
        db.create_keyspace(SPACES[1], backward).unwrap();
        let (mut last, mut pasts, mut ever) = (Map::new(), HashSet::new(), BTreeSet::new());
        for step in 0..90 {
            let (space, key) = (rng.below(2), format!("key {:02}", rng.below(KEYS)).into_bytes());
            let keyspace = db.keyspace(SPACES[space]).unwrap();
            if rng.one_in(5) {
                keyspace.delete(&key).unwrap();
                last.remove(&(space, key));
            } else {
                let len = if rng.one_in(8) { 220 } else { rng.below(60) };
                let value = format!("{step:03} {}", ".".repeat(len)).into_bytes();
                keyspace.put(&key, &value).unwrap();
                ever.insert((space, key.clone(), value.clone()));
                last.insert((space, key), value);
            }
            if step == 59 {
                db.flush().unwrap();
            }
            if step >= 59 && killed {
                pasts.insert(last.clone());
            }
        }
        if killed {
            copy_as_killed(&path, &dir);
        } else {
            db.close().unwrap();
            copy(&path, &dir);
        }
        let files = common::files::contents(&dir);
        Image { dir, files, last, pasts, ever }
    }

    /// Puts back what a damage changed.
    fn restore(&self) {
        for name in names(&self.dir) {
            if !self.files.contains_key(&name) {
                fs::remove_file(self.dir.join(name)).unwrap();
            }
        }
        for (name, bytes) in &self.files {
            let path = self.dir.join(name);
            if fs::read(&path).ok().as_ref() != Some(bytes) {
                fs::write(path, bytes).unwrap();
            }
        }
    }
}

/// How much of a file holds something.
fn used(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|b| *b != 0).map_or(0, |at| at + 1)
}

fn damage(image: &Image, rng: &mut Rng) -> String {
    let all: Vec<&String> = image.files.keys().filter(|n| *n != "LOCK").collect();
    let name = rng.pick(&all);
    let (path, mut bytes) = (image.dir.join(name), image.files[name].clone());
    let used = used(&bytes);
    let what = match rng.below(16) {
        0..=6 if used > 0 => {
            let (at, bit) = (rng.below(used), 1 << rng.below(8));
            bytes[at] ^= bit;
            format!("bit {bit:#x} of byte {at} flipped")
        }
        7 if used > 0 => {
            let at = rng.below(used) & !511;
            let end = bytes.len().min(at + 512);
            bytes[at..end].fill(0);
            format!("zeros: 512 bytes from {at} on")
        }
        8 | 9 if used > 0 => {
            let at = rng.below(used);
            let end = bytes.len().min(at + 1 + rng.below(64));
            let garbage = rng.bytes(end - at);
            bytes[at..end].copy_from_slice(&garbage);
            format!("{} bytes from {at} on are garbage", end - at)
        }
        10 => {
            let most = if rng.one_in(2) { used } else { bytes.len() };
            bytes.truncate(rng.below(most.max(1)));
            format!("cut to {}", bytes.len())
        }
        11 => {
            let more = rng.below(200);
            bytes.extend(rng.bytes(more));
            "longer".to_string()
        }
        12 => {
            bytes.clear();
            "emptied".to_string()
        }
        13 => {
            let other = rng.pick(&all);
            bytes.clone_from(&image.files[other]);
            format!("a copy of {other}")
        }
        14 => {
            let suffix = rng.pick(&[".log", ".tbl", ".log.bak", "~", ".tmp"]);
            let extra = format!("{:010}{suffix}", rng.below(40));
            if !image.files.contains_key(&extra) {
                let len = rng.below(5000);
                fs::write(image.dir.join(&extra), rng.bytes(len)).unwrap();
                return format!("{extra}: a file too many");
            }
            "nothing".to_string()
        }
        _ => {
            drop(fs::remove_file(&path));
            return format!("{name}: missing");
        }
    };
    fs::write(path, bytes).unwrap();
    format!("{name}: {what}")
}

/// Reads by every path. Contradictions, and values that never were, are bugs; errors are not.
fn read(image: &Image, dir: &Path, what: &str) -> Result<Map, Error> {
    let db = options().read_only(true).open(dir)?;
    let (mut map, mut error) = (Map::new(), None);
    for (space, name) in SPACES.iter().enumerate() {
        let keyspace = db.keyspace(name)?;
        let mut scans = Vec::new();
        for backward in [false, true] {
            let all = keyspace.iter().copied_out();
            let all: Result<Vec<_>, _> = if backward { all.rev().collect() } else { all.collect() };
            match all {
                Ok(all) => scans.push(all.into_iter().collect::<BTreeMap<_, _>>()),
                Err(e) => error = Some(e),
            }
        }
        for n in 0..KEYS {
            let key = format!("key {n:02}").into_bytes();
            match keyspace.get(&key) {
                Err(e) => error = Some(e),
                Ok(value) => {
                    let value = value.map(|v| v.to_vec());
                    for scan in &scans {
                        assert!(scan.get(&key) == value.as_ref(), "{what}: get and scan differ");
                    }
                    if let Some(value) = value {
                        let known = (space, key.clone(), value.clone());
                        assert!(image.ever.contains(&known), "{what}: a value that never was");
                        map.insert((space, key), value);
                    }
                }
            }
        }
    }
    error.map_or(Ok(map), Err)
}

/// No batch was synced, so no mark tells how far the log was durable, and a segment that was not
/// founded when it was named is one that a power cut may take.
fn takes_segment(what: &str) -> bool {
    let gone = ["missing", "emptied", "cut to", "a copy of"];
    what.contains(".log") && gone.iter().any(|g| what.contains(g))
}

/// What tells that the manifest lost its end are `CURRENT`, the headers of segments and the log's
/// entries.
fn takes_end_and_witness(what: &str) -> bool {
    let cut = ["cut to", "zeros"].iter().any(|w| what.contains(w));
    let witness = what.contains(".log") || what.contains("CURRENT");
    cut && what.contains("MANIFEST") && witness
}

/// Whether damage reaches the last frame of the log: it then looks like one that a power cut tore.
/// Damage before it must be told from that, as the log goes on behind.
fn touches_last_frame(image: &Image) -> bool {
    let mut logs = image.files.iter().filter(|(n, b)| n.ends_with(".log") && used(b) > 4096);
    let Some((name, bytes)) = logs.next_back() else { return false };
    let (mut last, mut at) = (4096, 4096);
    while at < used(bytes) {
        let word = u32::from_le_bytes(bytes[at + 4..at + 8].try_into().unwrap());
        (last, at) = (at, at + 16 + (word & !7) as usize);
    }
    let now = fs::read(image.dir.join(name)).unwrap_or_default();
    let differing = bytes.iter().enumerate().rposition(|(at, b)| now.get(at) != Some(b));
    differing.is_some_and(|at| at >= last)
}

fn check(image: &Image, rng: &mut Rng, what: &str) {
    let verified = Db::verify_path(&image.dir);
    let reported = verified.as_ref().map_or(true, |r| !r.problems.is_empty());
    match read(image, &image.dir, what) {
        Ok(map) => {
            let whole = map == image.last;
            let blind = takes_end_and_witness(what);
            let past = image.pasts.contains(&map);
            assert!(whole || past || blind, "{what}: wrong answers and no error");
            let told =
                reported || blind || past && (takes_segment(what) || touches_last_frame(image));
            assert!(whole || told, "{what}: verify saw nothing, but entries are missing");
        }
        Err(e) => {
            assert!(reported, "{what}: verify saw nothing, but reading gave: {e}");
        }
    }
    if rng.one_in(25) {
        repair(image, what, !reported);
    }
}

/// Repairs a copy, twice: the second changes nothing, and what the first gives is no worse than what
/// could be read before.
fn repair(image: &Image, what: &str, sound: bool) {
    let dir = image.dir.with_extension("repaired");
    drop(fs::remove_dir_all(&dir));
    copy(&image.dir, &dir);
    let before = read(image, &dir, what);
    let report = Db::repair(&dir).unwrap_or_else(|e| panic!("{what}: repair: {e}"));
    let after = read(image, &dir, what);
    let again = Db::repair(&dir).unwrap_or_else(|e| panic!("{what}: repair again: {e}"));
    assert_eq!(again.lost, [], "{what}: lost in the second repair");
    assert_eq!(again.entries, report.entries, "{what}: entries after the second repair");
    let verified = Db::verify_path(&dir).unwrap();
    assert_eq!(verified.problems, [], "{what}: after repair");
    match (after, read(image, &dir, what)) {
        (Ok(first), Ok(second)) => {
            assert!(first == second, "{what}: the second repair changed something");
            if let (Ok(before), true) = (before, report.lost.is_empty()) {
                assert!(first == before || first == image.last, "{what}: repair made it worse");
            }
            assert!(!sound || report.lost.is_empty(), "{what}: {:?}", report.lost);
        }
        // The names of keyspaces went with the manifest; what they held has another name now.
        (Err(Error::UnknownKeyspace { .. }), Err(Error::UnknownKeyspace { .. })) => {
            assert!(!report.lost.is_empty(), "{what}: a keyspace is gone");
        }
        (first, _) => panic!("{what}: after repair: {:?}", first.err()),
    }
}

fn run(name: &str, killed: bool, compression: Compression) {
    let mut rng = Rng::new(seed(name));
    let root = root();
    let image = Image::new(root.path(), &mut rng, killed, compression);
    let map = read(&image, &image.dir, "nothing").unwrap();
    assert!(map == image.last, "{name}: what is not damaged");
    let mut cases = 0;
    // Every byte that is used, one bit each.
    for (file, bytes) in &image.files {
        for at in 0..used(bytes) {
            let bit = 1 << rng.below(8);
            let mut damaged = bytes.clone();
            damaged[at] ^= bit;
            fs::write(image.dir.join(file), &damaged).unwrap();
            check(&image, &mut rng, &format!("{file}: bit {bit:#x} of byte {at} flipped"));
            fs::write(image.dir.join(file), bytes).unwrap();
            cases += 1;
        }
    }
    for _ in 0..number("ESKER_CASES").unwrap_or(3_000) {
        let mut what = damage(&image, &mut rng);
        if rng.one_in(10) {
            what = format!("{what}; {}", damage(&image, &mut rng));
        }
        check(&image, &mut rng, &what);
        image.restore();
        cases += 1;
    }
    println!("{name}: {cases} cases");
    check(&image, &mut rng, "all put back");
}

#[test]
fn a_closed_store() {
    run("a_closed_store", false, Compression::None);
}

#[test]
fn a_closed_store_with_compression() {
    run("a_closed_store_with_compression", false, Compression::Zstd);
}

#[test]
fn a_killed_store() {
    run("a_killed_store", true, Compression::None);
}

#[test]
fn a_killed_store_with_compression() {
    run("a_killed_store_with_compression", true, Compression::Lz4);
}

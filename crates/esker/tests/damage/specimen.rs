//! Stores to be damaged, and what is in them.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use esker::{Compression, KeyOrder, KeyspaceOptions, Options};
use esker_trust::Rng;
use tempfile::TempDir;

use crate::common::files;
use crate::harm::{Files, used};

/// What a file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Current,
    Manifest,
    Table,
    /// A log segment that only values are read from.
    Values,
    /// A log segment that is replayed.
    Log,
}

/// A key of the default keyspace (0) or the other one (1).
pub type Key = (usize, Vec<u8>);
pub type Contents = BTreeMap<Key, Vec<u8>>;

pub const OTHER: &str = "other";

/// How a store is made.
#[derive(Debug, Clone)]
pub struct Plan {
    pub options: Options,
    pub compression: Compression,
    pub killed: bool,
    pub keys: usize,
    /// Writes before each flush.
    pub flushed: &'static [usize],
    /// Writes after the last.
    pub unflushed: usize,
    /// Segments of log that a killed one has at least.
    pub segments: usize,
    /// Values at least so long stay in the log.
    pub threshold: usize,
}

impl Plan {
    /// Tables of several runs and values that stayed in the log; if killed, a log of several segments too.
    pub fn large(killed: bool) -> Plan {
        let options = Options::new().memory(16 << 20).segment_size(64 << 10).blob_threshold(1000);
        let (flushed, unflushed) = (&[600, 300, 150], if killed { 1200 } else { 0 });
        let compression = Compression::Lz4;
        Plan {
            options,
            compression,
            killed,
            keys: 400,
            flushed,
            unflushed,
            segments: 4,
            threshold: 1000,
        }
    }

    /// So small that each of its bytes can be tried.
    pub fn small(killed: bool, compression: Compression) -> Plan {
        let options = Options::new().memory(1 << 20).segment_size(64 << 10).blob_threshold(200);
        let (flushed, unflushed) = (&[60], 30);
        Plan {
            options,
            compression,
            killed,
            keys: 24,
            flushed,
            unflushed,
            segments: 1,
            threshold: 200,
        }
    }

    fn value(&self, serial: usize, rng: &mut Rng) -> Vec<u8> {
        let len = match rng.below(16) {
            0 => self.threshold + rng.index(4 * self.threshold),
            _ => rng.index(self.threshold / 4),
        };
        let mut value = format!("{serial:05} ").into_bytes();
        value.extend(rng.bytes(len / 2));
        // Half of it compresses.
        value.resize(6 + len, b'.');
        value
    }
}

pub struct Specimen {
    _root: TempDir,
    /// Where it is damaged, and put back.
    pub dir: PathBuf,
    pub files: Files,
    pub plan: Plan,
    /// All that was ever written, in order.
    history: Vec<(Key, Option<Vec<u8>>)>,
    /// How many of it were in tables when the store was left.
    flushed: usize,
    /// What all of it comes to.
    pub last: Contents,
    /// Every value that a key ever had.
    ever: HashSet<(Key, Vec<u8>)>,
}

/// In memory where there is a file system for that: nothing here is about the device.
fn root() -> TempDir {
    let shm = Path::new("/dev/shm");
    if shm.is_dir() { tempfile::tempdir_in(shm).unwrap() } else { tempfile::tempdir().unwrap() }
}

impl Specimen {
    pub fn new(plan: Plan, rng: &mut Rng) -> Specimen {
        let root = root();
        let (path, dir) = (root.path().join("alive"), root.path().join("left"));
        let db = plan.options.clone().compression(plan.compression).open(&path).unwrap();
        let other = match plan.compression {
            Compression::None => Compression::None,
            _ => Compression::Zstd,
        };
        let other = KeyspaceOptions::new().comparator(KeyOrder::Reverse).compression(other);
        let other = db.create_keyspace(OTHER, other).unwrap();
        let mut history: Vec<(Key, Option<Vec<u8>>)> = Vec::new();
        let mut flushed = 0;
        for (n, writes) in plan.flushed.iter().chain([&plan.unflushed]).enumerate() {
            for _ in 0..*writes {
                let space = usize::from(rng.one_in(3));
                let key = name_of(rng.index(plan.keys));
                let value = (!rng.one_in(6)).then(|| plan.value(history.len(), rng));
                let keyspace = if space == 0 { db.default_keyspace() } else { &other };
                match &value {
                    Some(value) => keyspace.put(&key, value).unwrap(),
                    None => keyspace.delete(&key).unwrap(),
                }
                history.push(((space, key), value));
            }
            if n < plan.flushed.len() {
                db.flush().unwrap();
                flushed = history.len();
            }
        }
        if plan.killed {
            files::copy_as_killed(&path, &dir);
        }
        drop(other);
        db.close().unwrap();
        if !plan.killed {
            files::copy(&path, &dir);
        }
        let mut last = Contents::new();
        history.iter().for_each(|write| apply(&mut last, write));
        let ever = history.iter().filter_map(|(k, v)| Some((k.clone(), v.clone()?))).collect();
        let files = files::contents(&dir);
        Specimen { _root: root, dir, files, plan, history, flushed, last, ever }
    }

    /// Puts back what a damage changed.
    pub fn restore(&self) {
        for entry in fs::read_dir(&self.dir).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                fs::remove_dir_all(entry.path()).unwrap();
            } else if !self.files.contains_key(entry.file_name().to_str().unwrap()) {
                fs::remove_file(entry.path()).unwrap();
            }
        }
        for (name, bytes) in &self.files {
            let path = self.dir.join(name);
            if fs::read(&path).ok().as_ref() != Some(bytes) {
                fs::write(path, bytes).unwrap();
            }
        }
    }

    /// All keys that can be there, by their bytes.
    pub fn keys(&self) -> impl Iterator<Item = Vec<u8>> {
        (0..self.plan.keys).map(name_of)
    }

    pub fn names(&self, kind: Kind) -> Vec<String> {
        let start = if self.plan.killed { self.log_start() } else { u64::MAX };
        let is = |name: &str| match kind {
            Kind::Current => name == "CURRENT",
            Kind::Manifest => name.starts_with("MANIFEST-"),
            Kind::Table => name.ends_with(".tbl"),
            Kind::Values => number(name).is_some_and(|n| n < start),
            Kind::Log => number(name).is_some_and(|n| n >= start),
        };
        self.files.keys().filter(|n| is(n)).cloned().collect()
    }

    /// The first segment with something that is in no table.
    fn log_start(&self) -> u64 {
        let holds = |bytes: &[u8], value: &[u8]| bytes.windows(value.len()).any(|w| w == value);
        let unflushed = self.history[self.flushed..].iter().filter_map(|(_, v)| v.as_ref());
        // Longer values stay in the log also when they are in a table.
        let mut in_log = unflushed.filter(|v| v.len() < self.plan.threshold).filter_map(|value| {
            let logs = self.files.iter().filter(|(name, _)| number(name).is_some());
            logs.filter(|(_, bytes)| holds(bytes, value)).map(|(name, _)| name).next()
        });
        in_log.next().map_or(u64::MAX, |name| number(name).unwrap())
    }

    /// Whether anything was written behind this segment.
    pub fn is_last_log(&self, file: &str) -> bool {
        let mut logs = self.files.iter().filter(|(name, _)| number(name).is_some());
        !logs.any(|(name, bytes)| name.as_str() > file && used(bytes) > 4096)
    }

    /// Whether this is what the store held at some moment after its last flush.
    pub fn is_past(&self, found: &Contents) -> bool {
        let mut state = Contents::new();
        self.history[..self.flushed].iter().for_each(|write| apply(&mut state, write));
        self.plan.killed
            && (state == *found
                || self.history[self.flushed..].iter().any(|write| {
                    apply(&mut state, write);
                    state == *found
                }))
    }

    /// Whether the key ever had this value.
    pub fn ever_had(&self, space: usize, key: &[u8], value: &[u8]) -> bool {
        self.ever.contains(&((space, key.to_vec()), value.to_vec()))
    }

    /// Whether this is all but the last write.
    pub fn lacks_last_write(&self, found: &Contents) -> bool {
        let mut before = Contents::new();
        self.history[..self.history.len() - 1].iter().for_each(|write| apply(&mut before, write));
        *found == before
    }

    /// Whether damage reaches the last frame of the log: it then looks like one that a power cut tore.
    /// Damage before it must be told from that, as the log goes on behind.
    pub fn touches_last_frame(&self) -> bool {
        let mut logs = self.files.iter().filter(|(n, b)| n.ends_with(".log") && used(b) > 4096);
        let Some((name, bytes)) = logs.next_back() else { return false };
        let (mut last, mut at) = (4096, 4096);
        while at < used(bytes) && at + 8 <= bytes.len() {
            let word = u32::from_le_bytes(bytes[at + 4..at + 8].try_into().unwrap());
            (last, at) = (at, at + 16 + (word & !7) as usize);
        }
        let now = fs::read(self.dir.join(name)).unwrap_or_default();
        let differing = bytes.iter().enumerate().rposition(|(at, b)| now.get(at) != Some(b));
        differing.is_some_and(|at| at >= last)
    }
}

fn name_of(key: usize) -> Vec<u8> {
    format!("key {key:03}").into_bytes()
}

fn apply(state: &mut Contents, (key, value): &(Key, Option<Vec<u8>>)) {
    match value {
        Some(value) => state.insert(key.clone(), value.clone()),
        None => state.remove(key),
    };
}

fn number(name: &str) -> Option<u64> {
    name.strip_suffix(".log")?.parse().ok()
}

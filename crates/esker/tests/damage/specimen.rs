//! Stores to be damaged, and what is in them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use esker::{Compression, KeyOrder, KeyspaceOptions, Options};
use tempfile::TempDir;

use crate::common::files;
use crate::common::rng::Rng;

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
    Foreign,
}

/// A key of the default keyspace (0) or the other one (1).
pub type Key = (u8, Vec<u8>);
pub type Contents = BTreeMap<Key, Vec<u8>>;

pub struct Specimen {
    dir: TempDir,
    pub contents: BTreeMap<String, Vec<u8>>,
    /// All that was ever written, in order.
    history: Vec<(Key, Option<Vec<u8>>)>,
    /// How many of it were in tables when the store was left.
    flushed: usize,
    killed: bool,
}

pub fn options() -> Options {
    // Room for several log segments that wait for a flush.
    Options::new().memory(16 << 20).segment_size(64 << 10)
}

pub const OTHER: &str = "other";

impl Specimen {
    /// A store that was closed: tables of several runs, and values that stayed in the log.
    pub fn closed(seed: u64) -> Specimen {
        Specimen::make(seed, false)
    }

    /// A store whose process was killed: some of it in tables, the rest in a log of a few segments.
    pub fn killed(seed: u64) -> Specimen {
        Specimen::make(seed, true)
    }

    fn make(seed: u64, killed: bool) -> Specimen {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("db");
        let left = dir.path().join("left");
        let mut rng = Rng::new(seed);
        let mut history = Vec::new();
        let db = options().open(&path).unwrap();
        let other =
            KeyspaceOptions::new().comparator(KeyOrder::Reverse).compression(Compression::Zstd);
        let other = db.create_keyspace(OTHER, other).unwrap();
        let mut write = |n: usize| {
            for _ in 0..n {
                let ks = u8::from(rng.one_in(4));
                let key = format!("key-{:03}", rng.below(300)).into_bytes();
                let value = (!rng.one_in(8)).then(|| {
                    let len = match rng.below(16) {
                        0 => 4096 + rng.below(1000),
                        1 => 1000 + rng.below(1000),
                        _ => rng.below(200),
                    };
                    let mut value = format!("{} ", history.len()).into_bytes();
                    value.extend(rng.bytes(len));
                    value
                });
                let keyspace = if ks == 0 { db.default_keyspace() } else { &other };
                match &value {
                    Some(value) => keyspace.put(&key, value).unwrap(),
                    None => keyspace.delete(&key).unwrap(),
                }
                history.push(((ks, key), value));
            }
            history.len()
        };
        let mut flushed = 0;
        for _ in 0..3 {
            flushed = write(150);
            db.flush().unwrap();
        }
        if killed {
            write(350);
            files::copy_as_killed(&path, &left);
        }
        drop(other);
        db.close().unwrap();
        if !killed {
            files::copy(&path, &left);
        }
        Specimen { contents: files::contents(&left), dir, history, flushed, killed }
    }

    pub fn copy_to(&self, to: &Path) {
        files::copy(&self.dir.path().join("left"), to);
    }

    pub fn files(&self, kind: Kind) -> Vec<String> {
        let start = if self.killed { self.log_start() } else { u64::MAX };
        let is = |name: &str| match kind {
            Kind::Current => name == "CURRENT",
            Kind::Manifest => name.starts_with("MANIFEST-"),
            Kind::Table => name.ends_with(".tbl"),
            Kind::Values => number(name).is_some_and(|n| n < start),
            Kind::Log => number(name).is_some_and(|n| n >= start),
            Kind::Foreign => false,
        };
        self.contents.keys().filter(|n| is(n)).cloned().collect()
    }

    /// The first segment with something that is in no table.
    fn log_start(&self) -> u64 {
        let holds = |bytes: &[u8], value: &[u8]| bytes.windows(value.len()).any(|w| w == value);
        let unflushed = self.history[self.flushed..].iter().filter_map(|(_, v)| v.as_ref());
        // Longer values stay in the log also when they are in a table.
        let mut in_log = unflushed.filter(|v| v.len() < 4096).filter_map(|value| {
            let logs = self.contents.iter().filter(|(name, _)| number(name).is_some());
            logs.filter(|(_, bytes)| holds(bytes, value)).map(|(name, _)| name).next()
        });
        let name = in_log.next().expect("the log holds something");
        number(name).unwrap()
    }

    /// Whether anything was written behind this segment.
    pub fn is_last_log(&self, file: &str) -> bool {
        let used = |name: &String| self.contents[name][4096..].iter().any(|b| *b != 0);
        !self.files(Kind::Log).iter().any(|other| other.as_str() > file && used(other))
    }

    fn after(&self, writes: usize) -> Contents {
        let mut all = Contents::new();
        for (key, value) in &self.history[..writes] {
            apply(&mut all, key, value.as_ref());
        }
        all
    }

    pub fn model(&self) -> Contents {
        self.after(self.history.len())
    }

    /// Whether this is what the store held at some moment after its last flush.
    pub fn is_prefix(&self, found: &Contents) -> bool {
        let mut state = self.after(self.flushed);
        let mut is = state == *found;
        for (key, value) in &self.history[self.flushed..] {
            apply(&mut state, key, value.as_ref());
            is |= state == *found;
        }
        is
    }

    /// Every value a key ever had.
    pub fn ever(&self) -> BTreeSet<(&Key, &Vec<u8>)> {
        self.history.iter().filter_map(|(k, v)| Some((k, v.as_ref()?))).collect()
    }
}

fn apply(state: &mut Contents, key: &Key, value: Option<&Vec<u8>>) {
    match value {
        Some(value) => state.insert(key.clone(), value.clone()),
        None => state.remove(key),
    };
}

fn number(name: &str) -> Option<u64> {
    name.strip_suffix(".log")?.parse().ok()
}

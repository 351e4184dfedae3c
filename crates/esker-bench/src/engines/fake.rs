//! An engine of known behaviour, to test the measuring itself: it takes as long as it is told, loses
//! what it is told to lose, and crashes when it is told to. Hidden: only asked for by name.
//!
//! Tuning: `delay_us` (every operation), `slow_every` and `slow_us` (each n-th operation),
//! `lose_every` (each n-th write is dropped), `corrupt_every`, `short_every` (a seek gives an entry less), `panic_at` and
//! `hang_at` (the n-th), `close_ms` (closing);
//! `on_damage` (what opening does with a log that it cannot read: panic, abort or hang, else an error);
//! `truth`: a file that each handle, when it goes, adds a line to: what its calls took by its own clock, how many operations
//! its process had done before it came, and what a reader was told of what goes on beside it.

use crate::engine::{Access, Class, Config, Direction, Engine, Hint, Reader, Sync, Writer};
use anyhow::Result;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// A sorted map with a log of `write` calls, so that it survives being killed.
pub struct Fake {
    map: Mutex<(Map, File)>,
    ops: AtomicU64,
    /// These are no operations of a number: what is lost or slow does not depend on them.
    scans: AtomicU64,
    config: Config,
}

impl Fake {
    fn tuned(&self, name: &str) -> Option<u64> {
        self.config.setting("fake", name)?.parse().ok()
    }

    /// Whether the operation of that number is one of those.
    fn every(&self, n: u64, name: &str) -> bool {
        self.tuned(name).is_some_and(|k| n.is_multiple_of(k))
    }

    /// Takes the time an operation takes; its number, from 1.
    fn operation(&self) -> u64 {
        let start = Instant::now();
        let n = self.ops.fetch_add(1, Ordering::Relaxed) + 1;
        let name = if self.every(n, "slow_every") { "slow_us" } else { "delay_us" };
        assert!(self.tuned("panic_at") != Some(n), "told to panic at operation {n}");
        while self.tuned("hang_at") == Some(n) {
            std::thread::sleep(Duration::from_secs(1));
        }
        // Spinning: a sleep is not known to a microsecond.
        let delay = Duration::from_micros(self.tuned(name).unwrap_or(0));
        while start.elapsed() < delay {
            std::hint::spin_loop();
        }
        n
    }

    fn map(&self) -> MutexGuard<'_, (Map, File)> {
        self.map.lock().expect("no operation panics while it holds the lock")
    }

    fn apply(&self, n: u64, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        if self.every(n, "lose_every") {
            return Ok(());
        }
        let mut value = value.map(<[u8]>::to_vec);
        if let (true, Some(byte)) =
            (self.every(n, "corrupt_every"), value.as_mut().and_then(|v| v.first_mut()))
        {
            *byte ^= 1;
        }
        let mut guard = self.map();
        let (map, log) = &mut *guard;
        let line = (key, &value);
        log.write_all(format!("{}\n", serde_json::to_string(&line)?).as_bytes())?;
        match value {
            Some(value) => map.insert(key.to_vec(), value),
            None => map.remove(key),
        };
        Ok(())
    }
}

impl Engine for Fake {
    type Writer<'a> = FakeWriter<'a>;
    type Reader<'a> = FakeReader<'a>;

    fn version() -> Result<String> {
        Ok("0".to_string())
    }

    fn open(dir: &Path, config: &Config) -> Result<Self> {
        std::fs::create_dir_all(dir)?;
        let path = dir.join("log");
        let mut map = Map::new();
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        // A kill may have cut the last line off.
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        for line in text[..whole].lines() {
            let (key, value): (Vec<u8>, Option<Vec<u8>>) = match serde_json::from_str(line) {
                Ok(entry) => entry,
                Err(e) => return Err(on_damage(config, e.into())),
            };
            match value {
                Some(value) => map.insert(key, value),
                None => map.remove(&key),
            };
        }
        let log = File::options().create(true).append(true).open(path)?;
        if whole < text.len() {
            log.set_len(whole as u64)?;
        }
        let (map, config) = (Mutex::new((map, log)), config.clone());
        Ok(Fake { map, ops: AtomicU64::new(0), scans: AtomicU64::new(0), config })
    }

    fn settings(&self) -> String {
        format!("{:?}", self.config.tuning)
    }
    fn class(&self) -> Class {
        if self.config.sync == Sync::Synced { Class::F } else { Class::K }
    }
    fn writer(&self, _hint: Hint) -> Result<FakeWriter<'_>> {
        Ok(FakeWriter { fake: self, batch: Vec::new(), truth: Truth::new(self, None) })
    }
    fn reader(&self, access: Access) -> Result<FakeReader<'_>> {
        Ok(FakeReader(self, Truth::new(self, Some(access))))
    }
    fn close(self) -> Result<()> {
        std::thread::sleep(Duration::from_millis(self.tuned("close_ms").unwrap_or(0)));
        Ok(())
    }
}

/// What it was told to do with a log that cannot be read.
fn on_damage(config: &Config, error: anyhow::Error) -> anyhow::Error {
    match config.setting("fake", "on_damage") {
        Some("panic") => panic!("told to panic at damage: {error:#}"),
        Some("abort") => std::process::abort(),
        Some("hang") => loop {
            std::thread::sleep(Duration::from_secs(1));
        },
        _ => error,
    }
}

/// What a handle's calls took, by its own clock.
struct Truth {
    path: Option<String>,
    access: Option<Access>,
    before: u64,
    first: Option<Instant>,
    last: Option<Instant>,
    calls_ns: Vec<u64>,
}

impl Truth {
    fn new(fake: &Fake, access: Option<Access>) -> Self {
        let path = fake.config.setting("fake", "truth").map(String::from);
        let before = fake.ops.load(Ordering::Relaxed) + fake.scans.load(Ordering::Relaxed);
        Truth { path, access, before, first: None, last: None, calls_ns: Vec::new() }
    }
    fn call<R>(&mut self, call: impl FnOnce() -> R) -> R {
        if self.path.is_none() {
            return call();
        }
        let start = Instant::now();
        let out = call();
        let end = Instant::now();
        self.first.get_or_insert(start);
        self.last = Some(end);
        self.calls_ns.push((end - start).as_nanos() as u64);
        out
    }
}

impl Drop for Truth {
    fn drop(&mut self) {
        let (Some(path), Some(first), Some(last)) = (&self.path, self.first, self.last) else {
            return;
        };
        self.calls_ns.sort_unstable();
        let calls = self.calls_ns.len();
        let line = serde_json::json!({
            "calls": calls,
            "access": self.access.map(|access| format!("{access:?}")),
            "before": self.before,
            "seconds": (last - first).as_secs_f64(),
            "p50_us": self.calls_ns[calls / 2] as f64 / 1000.0,
        });
        // A test that finds no line fails.
        let file = File::options().create(true).append(true).open(path);
        let _ = file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
    }
}

/// Writes to the fake.
pub struct FakeWriter<'a> {
    fake: &'a Fake,
    batch: Vec<(Vec<u8>, Vec<u8>)>,
    truth: Truth,
}

impl Writer for FakeWriter<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.truth.call(|| self.fake.apply(self.fake.operation(), key, Some(value)))
    }
    fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.fake.apply(self.fake.operation(), key, None)
    }
    fn batch_put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.batch.push((key.to_vec(), value.to_vec()));
        Ok(())
    }
    fn batch_commit(&mut self) -> Result<()> {
        let batch = std::mem::take(&mut self.batch);
        self.truth.call(|| {
            for (key, value) in batch {
                self.fake.apply(self.fake.operation(), &key, Some(&value))?;
            }
            Ok(())
        })
    }
}

/// Reads from the fake.
pub struct FakeReader<'a>(&'a Fake, Truth);

impl Reader for FakeReader<'_> {
    fn get<R>(&mut self, key: &[u8], see: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        self.1.call(|| {
            self.0.operation();
            Ok(self.0.map().0.get(key).map(|value| see(value)))
        })
    }
    fn seek(&mut self, key: &[u8], count: u64, mut see: impl FnMut(&[u8], &[u8])) -> Result<u64> {
        self.1.call(|| {
            let n = self.0.operation();
            let guard = self.0.map();
            let count = if self.0.every(n, "short_every") { count - 1 } else { count };
            let entries = guard.0.range(key.to_vec()..).take(count as usize);
            Ok(entries.map(|(k, v)| see(k, v)).count() as u64)
        })
    }
    fn scan(&mut self, direction: Direction, mut see: impl FnMut(&[u8], &[u8])) -> Result<u64> {
        self.1.call(|| {
            self.0.scans.fetch_add(1, Ordering::Relaxed);
            let guard = self.0.map();
            let entries = guard.0.iter();
            Ok(match direction {
                Direction::Forward => entries.map(|(k, v)| see(k, v)).count() as u64,
                Direction::Reverse => entries.rev().map(|(k, v)| see(k, v)).count() as u64,
            })
        })
    }
}

//! Writers, readers, snapshots, iterators and maintenance at once. Whatever happens, a reader sees
//! all of a batch or nothing, never goes back in time, and finds every write that was
//! acknowledged before it looked.
//!
//! `ESKER_SECONDS=n` sets how long (3, or 8), `ESKER_SEED=n` the seed.

mod common;

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use common::rng::Rng;
use common::{number, quick_or_full, seed};
use esker::{
    Compression, Db, Durability, Error, Keyspace, KeyspaceOptions, Options, Slice, WriteBatch,
};

const WRITERS: usize = 4;
const READERS: usize = 4;
/// Batches of a writer go round so many trios of keys.
const TRIOS: usize = 40;

/// Two keys of a trio are in the default keyspace, one in another; a batch gives all three the
/// same value. Values of one trio only grow.
struct Stage {
    db: Db,
    other: Keyspace,
    /// Of each trio, the last value whose write was acknowledged.
    acknowledged: Vec<AtomicU64>,
    stop: AtomicBool,
}

fn first(trio: usize) -> String {
    format!("a/{trio:04}")
}

/// Far from the first in key order, so that other tables hold it.
fn second(trio: usize) -> String {
    format!("z/{trio:04}")
}

/// The number, and bytes that follow from it: from nothing to beyond the separation threshold.
fn value(n: u64) -> Vec<u8> {
    let mut value = n.to_le_bytes().to_vec();
    value.resize(8 + Rng::new(n).below(3000), n as u8);
    value
}

fn number_of(bytes: &[u8]) -> u64 {
    let n = u64::from_le_bytes(*bytes.first_chunk().expect("eight bytes at least"));
    assert!(bytes == value(n), "the value {n} is not as it was written");
    n
}

fn options() -> Options {
    Options::new()
        .memory(2 << 20)
        .segment_size(128 << 10)
        .blob_threshold(1000)
        .compression(Compression::Lz4)
}

#[test]
fn readers_see_whole_batches_in_order_and_nothing_acknowledged_is_lost() {
    let seed = seed("concurrent");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let db = options().open(&path).unwrap();
    let other = db.create_keyspace("other", KeyspaceOptions::new()).unwrap();
    let acknowledged = (0..WRITERS * TRIOS).map(|_| AtomicU64::new(0)).collect();
    let stage = Stage { db, other, acknowledged, stop: AtomicBool::new(false) };
    for trio in 0..WRITERS * TRIOS {
        stage.write(trio, 1, Durability::Buffered);
    }

    let seconds = number("ESKER_SECONDS").unwrap_or(quick_or_full(3, 8));
    let mut rng = Rng::new(seed);
    std::thread::scope(|scope| {
        let stage = &stage;
        let mut threads = Vec::new();
        let mut start = |name: &'static str, work: fn(&Stage, &mut Rng, usize), which: usize| {
            let rng = Rng::new(rng.next());
            threads.push((name, stage.start(scope, work, rng, which)));
        };
        (0..WRITERS).for_each(|w| start("writer", Stage::writer, w));
        (0..READERS).for_each(|r| start("reader", Stage::reader, r));
        start("snapshots", Stage::snapshots, 0);
        start("loads and deletes", Stage::loads, 0);
        start("keyspaces", Stage::keyspaces, 0);
        start("maintenance", Stage::maintenance, 0);
        let end = Instant::now() + Duration::from_secs(seconds);
        while Instant::now() < end && !threads.iter().any(|(_, t)| t.is_finished()) {
            std::thread::sleep(Duration::from_millis(20));
        }
        stage.stop.store(true, Ordering::Relaxed);
        for (name, thread) in threads {
            let rounds = thread.join().unwrap_or_else(|e| std::panic::resume_unwind(e));
            println!("{name}: {rounds} rounds");
            assert!(rounds > 0, "{name} never came round");
        }
    });

    let last: Vec<u64> = stage.acknowledged.iter().map(|a| a.load(Ordering::Relaxed)).collect();
    stage.holds(&last);
    assert_eq!(stage.db.stats().halted, None);
    let Stage { db, other, .. } = stage;
    drop(other);
    db.close().unwrap();
    assert_eq!(Db::verify_path(&path).unwrap().problems, []);
    let db = options().paranoid_checks(true).open(&path).unwrap();
    let other = db.keyspace("other").unwrap();
    let stage = Stage { db, other, acknowledged: Vec::new(), stop: AtomicBool::new(true) };
    stage.holds(&last);
}

impl Stage {
    /// Repeats `work` until the end; returns how often it was done.
    fn start<'s>(
        &'s self,
        scope: &'s Scope<'s, '_>,
        work: fn(&Stage, &mut Rng, usize),
        mut rng: Rng,
        which: usize,
    ) -> ScopedJoinHandle<'s, u64> {
        scope.spawn(move || {
            let mut rounds = 0;
            while !self.stop.load(Ordering::Relaxed) {
                work(self, &mut rng, which);
                rounds += 1;
            }
            rounds
        })
    }

    fn write(&self, trio: usize, n: u64, durability: Durability) {
        let mut batch = WriteBatch::new();
        batch.put(first(trio), value(n));
        batch.put_in(&self.other, first(trio), value(n));
        batch.put(second(trio), value(n));
        self.db.write_with(batch, durability).unwrap();
        self.acknowledged[trio].store(n, Ordering::Release);
    }

    fn writer(&self, rng: &mut Rng, writer: usize) {
        for _ in 0..20 {
            let trio = writer * TRIOS + rng.below(TRIOS);
            let n = self.acknowledged[trio].load(Ordering::Relaxed) + 1;
            let durability = if rng.one_in(50) { Durability::Synced } else { Durability::Buffered };
            self.write(trio, n, durability);
        }
    }

    /// Looks at everything again and again; a number once seen is the least from then on.
    fn reader(&self, rng: &mut Rng, _: usize) {
        let mut least = vec![0; WRITERS * TRIOS];
        for _ in 0..300 {
            let trio = rng.below(least.len());
            let acknowledged = self.acknowledged[trio].load(Ordering::Acquire);
            least[trio] = least[trio].max(acknowledged);
            match rng.below(40) {
                0 => self.scan(&mut least, rng.one_in(2)),
                1 => self.walk(rng, &mut least),
                2..12 => {
                    let both = self.db.multi_get(&[second(trio), first(trio)]).unwrap();
                    let number = |v: &Option<Slice>| number_of(v.as_ref().expect("never deleted"));
                    let n = [number(&both[0]), number(&both[1])];
                    assert_eq!(n[0], n[1], "half a batch in multi_get");
                    see(&mut least, trio, n[0]);
                }
                12..20 => {
                    let at = self.db.snapshot();
                    let n = [
                        self.db.at(&at).get(second(trio)).unwrap(),
                        self.other.at(&at).get(first(trio)).unwrap(),
                        self.db.at(&at).get(first(trio)).unwrap(),
                    ];
                    let n = n.map(|v| number_of(&v.expect("never deleted")));
                    assert!(n[0] == n[1] && n[1] == n[2], "half a batch in a snapshot: {n:?}");
                    see(&mut least, trio, n[0]);
                }
                20..30 => {
                    let n =
                        number_of(&self.other.get(first(trio)).unwrap().expect("never deleted"));
                    see(&mut least, trio, n);
                }
                _ => {
                    let n = number_of(&self.db.get(second(trio)).unwrap().expect("never deleted"));
                    see(&mut least, trio, n);
                }
            }
        }
    }

    /// All trios in one iterator: both halves alike, in order, none missing.
    fn scan(&self, least: &mut [u64], backward: bool) {
        let entries: Vec<_> = if backward {
            let mut entries: Vec<_> = self.db.iter().rev().map(Result::unwrap).collect();
            entries.reverse();
            entries
        } else {
            self.db.iter().map(Result::unwrap).collect()
        };
        assert!(entries.is_sorted_by(|a, b| a.0 < b.0), "keys out of order");
        let numbers = |prefix: &[u8]| -> Vec<u64> {
            let with_prefix = entries.iter().filter(|e| e.0.starts_with(prefix));
            with_prefix.map(|e| number_of(&e.1)).collect()
        };
        let (a, z) = (numbers(b"a/"), numbers(b"z/"));
        assert_eq!(a.len(), least.len(), "keys are missing");
        assert_eq!(a, z, "half a batch in an iterator");
        a.into_iter().enumerate().for_each(|(trio, n)| see(least, trio, n));
    }

    /// A cursor to and fro between the halves of trios.
    fn walk(&self, rng: &mut Rng, least: &mut [u64]) {
        let mut cursor = self.db.cursor();
        for _ in 0..10 {
            let trio = rng.below(least.len() - 1);
            assert!(cursor.seek(first(trio)).unwrap());
            let a = number_of(cursor.value());
            assert!(cursor.next().unwrap() && cursor.prev().unwrap());
            assert_eq!(number_of(cursor.value()), a, "a cursor turned round");
            assert!(cursor.seek_for_prev(second(trio)).unwrap());
            assert_eq!(cursor.key(), second(trio).as_bytes());
            assert_eq!(number_of(cursor.value()), a, "half a batch in a cursor");
            see(least, trio, a);
        }
    }

    /// A snapshot reads the same however long it is held.
    fn snapshots(&self, rng: &mut Rng, _: usize) {
        let at = self.db.snapshot();
        let all = || -> Vec<(Vec<u8>, Vec<u8>)> {
            let both = self.db.at(&at).iter().chain(self.other.at(&at).iter());
            both.map(|e| e.unwrap()).map(|(k, v)| (k.into(), v.into())).collect()
        };
        let before = all();
        for _ in 0..rng.below(4) {
            std::thread::sleep(Duration::from_millis(rng.below(100) as u64));
            assert!(all() == before, "a snapshot changed");
        }
    }

    /// Keys between the halves that come and go, in bulk and one by one, all by this thread alone.
    fn loads(&self, rng: &mut Rng, _: usize) {
        let keys: Range<u32> = 0..rng.below(300) as u32;
        let key = |n: u32| format!("m/{n:05}");
        let n = rng.next();
        self.db.bulk_load(keys.clone().map(|k| (key(k), value(n)))).unwrap();
        for k in keys.clone() {
            assert_eq!(number_of(&self.db.get(key(k)).unwrap().expect("just loaded")), n);
        }
        for k in keys.clone() {
            self.db.delete(key(k)).unwrap();
        }
        assert_eq!(self.db.prefix("m/").count(), 0, "deleted keys came back");
    }

    fn keyspaces(&self, rng: &mut Rng, _: usize) {
        let order = rng.pick(&[esker::KeyOrder::Bytewise, esker::KeyOrder::Reverse]);
        let short =
            self.db.create_keyspace("short", KeyspaceOptions::new().comparator(order)).unwrap();
        for n in 0..rng.below(200) as u64 {
            short.put(n.to_be_bytes(), value(n)).unwrap();
        }
        for entry in short.iter() {
            number_of(&entry.unwrap().1);
        }
        self.db.drop_keyspace("short").unwrap();
        assert!(matches!(short.get("x"), Err(Error::KeyspaceDropped { .. })));
        std::thread::sleep(Duration::from_millis(rng.below(50) as u64));
    }

    fn maintenance(&self, rng: &mut Rng, _: usize) {
        match rng.below(6) {
            0 => self.db.flush().unwrap(),
            1 => self.db.compact_range(first(rng.below(80))..second(rng.below(80))).unwrap(),
            2 => self.other.compact_range::<&str>(..).unwrap(),
            3 => self.check_checkpoint(),
            4 => {
                let report = self.db.verify().unwrap();
                assert_eq!(report.problems, []);
            }
            _ => {
                let stats = self.db.stats();
                assert_eq!(stats.halted, None);
                self.db.sync().unwrap();
            }
        }
        std::thread::sleep(Duration::from_millis(rng.below(30) as u64));
    }

    /// What a checkpoint holds is of one moment too, and not before what was acknowledged.
    fn check_checkpoint(&self) {
        let least: Vec<u64> = self.acknowledged.iter().map(|a| a.load(Ordering::Acquire)).collect();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("copy");
        self.db.checkpoint(&path).unwrap();
        let db = Options::new().open(&path).unwrap();
        let other = db.keyspace("other").unwrap();
        let copy = Stage { db, other, acknowledged: Vec::new(), stop: AtomicBool::new(true) };
        copy.scan(&mut least.clone(), false);
        for (trio, entry) in copy.other.iter().enumerate() {
            let n = number_of(&entry.unwrap().1);
            assert_eq!(n, number_of(&copy.db.get(first(trio)).unwrap().unwrap()), "half a batch");
        }
        destroy(copy, &path);
    }

    /// Every trio has exactly these numbers.
    fn holds(&self, numbers: &[u64]) {
        for (trio, n) in numbers.iter().enumerate() {
            let all =
                [self.db.get(first(trio)), self.db.get(second(trio)), self.other.get(first(trio))];
            let all = all.map(|v| number_of(&v.unwrap().expect("acknowledged")));
            assert_eq!(all, [*n; 3], "trio {trio}");
        }
    }
}

fn destroy(stage: Stage, path: &Path) {
    let Stage { db, other, .. } = stage;
    drop((db, other));
    Db::destroy(path).unwrap();
}

fn see(least: &mut [u64], trio: usize, n: u64) {
    assert!(n >= least[trio], "trio {trio} went back from {} to {n}", least[trio]);
    least[trio] = n;
}

//! Code of the user's that runs inside the store: comparators that panic, lie, call back or have foreign
//! names; iterators and closures that panic; batches and snapshots of other stores; cursors after errors.

mod common;

use std::cmp::Ordering;
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use common::files::{self, copy_as_killed};
use common::rng::Rng;
use common::{no_case, seed};
use esker::{
    Comparator, Compression, Db, Durability, Error, KeyOrder, Keyspace, KeyspaceOptions, Options,
    Slice, WriteBatch,
};
use tempfile::tempdir;

/// Bytewise, but panics at one comparison: the n-th from when it was set so. And counts.
struct Touchy {
    left: AtomicI64,
    /// Whether those of the background thread count too.
    anywhere: AtomicBool,
    asked: AtomicU64,
    name: String,
}

impl Touchy {
    fn new() -> Arc<Touchy> {
        Touchy::named("test.touchy")
    }

    fn named(name: &str) -> Arc<Touchy> {
        let (left, asked) = (AtomicI64::new(0), AtomicU64::new(0));
        Arc::new(Touchy { left, anywhere: AtomicBool::new(false), asked, name: name.to_string() })
    }

    fn order(self: &Arc<Touchy>) -> KeyOrder {
        KeyOrder::Custom(Arc::clone(self) as Arc<dyn Comparator>)
    }

    /// Panics at the n-th comparison from now on that a thread of the test's asks for.
    fn panic_at(&self, n: i64) {
        self.left.store(n, SeqCst);
    }

    /// Panics at the n-th comparison from now on.
    fn panic_anywhere_at(&self, n: i64) {
        self.anywhere.store(true, SeqCst);
        self.left.store(n, SeqCst);
    }

    /// Whether it has panicked since it was told when to. Mends it.
    fn mend(&self) -> bool {
        self.left.swap(0, SeqCst) < 0
    }
}

impl Comparator for Touchy {
    fn name(&self) -> &str {
        &self.name
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        self.asked.fetch_add(1, SeqCst);
        let background = std::thread::current().name() == Some("esker-worker");
        let counts = self.anywhere.load(SeqCst) || !background;
        if counts && self.left.load(SeqCst) != 0 && self.left.fetch_sub(1, SeqCst) == 1 {
            self.left.store(-1_000_000_000, SeqCst);
            // As a panic, without a line on the terminal: there are many.
            resume_unwind(Box::new("touched"));
        }
        a.cmp(b)
    }
}

fn small() -> Options {
    Options::new()
        .memory(1 << 20)
        .segment_size(64 << 10)
        .blob_threshold(1000)
        .compression(Compression::None)
}

fn strict(order: KeyOrder) -> KeyspaceOptions {
    KeyspaceOptions::new().comparator(order)
}

/// Fails instead of hanging.
fn within_seconds(seconds: u64, work: impl FnOnce() + Send + 'static) {
    let (done, wait) = std::sync::mpsc::channel();
    let worker = std::thread::spawn(move || {
        work();
        let _ = done.send(());
    });
    match wait.recv_timeout(Duration::from_secs(seconds)) {
        Err(std::sync::mpsc::RecvTimeoutError::Timeout) => panic!("it hangs"),
        _ => worker.join().unwrap(),
    }
}

/// The result of a call that must not panic.
fn calmly<T>(work: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| panic!("the call panicked"))
}

fn is<T: Debug>(result: &Result<T, Error>, kind: &str) -> bool {
    matches!(result, Err(e) if format!("{e:?}").starts_with(kind))
}

fn key(n: u32) -> String {
    format!("key {n:03}")
}

fn count_tables(dir: &Path) -> usize {
    files::ending(dir, ".tbl").len()
}

#[test]
fn a_comparator_that_panicked_once_lost_writes_of_other_keyspaces() {
    for durability in [Durability::Buffered, Durability::Synced] {
        let dir = tempdir().unwrap();
        let (path, killed) = (dir.path().join("db"), dir.path().join("killed"));
        let db = Options::new().durability(durability).open(&path).unwrap();
        let touchy = Touchy::new();
        let ks = db.create_keyspace("strict", strict(touchy.order())).unwrap();
        ks.put("a", "1").unwrap();
        ks.put("b", "2").unwrap();
        touchy.panic_at(1);
        let put = catch_unwind(AssertUnwindSafe(|| ks.put("c", "3")));
        assert!(touchy.mend());
        for n in 0..10 {
            db.put(key(n), "acknowledged").unwrap();
        }
        copy_as_killed(&path, &killed);
        let reopened = Options::new().keyspace_comparator("strict", touchy.order()).open(&killed);
        let reopened = reopened.unwrap();
        for n in 0..10 {
            assert!(reopened.get(key(n)).unwrap().is_some(), "{durability:?}: {n} is lost");
        }
        let put = put.expect("no panic of the store");
        assert!(is(&put, "ComparatorPanicked { keyspace: \"strict\", what: \"touched"), "{put:?}");
        // As if nothing had been called.
        assert!(ks.get("c").unwrap().is_none());
        let again = reopened.keyspace("strict").unwrap();
        assert!(again.get("c").unwrap().is_none() && again.get("b").unwrap().is_some());
        ks.put("c", "3").unwrap();
        db.flush().unwrap();
        assert_eq!(ks.iter().count(), 3);
        assert!(db.verify().unwrap().problems.is_empty());
    }
}

#[test]
fn a_comparator_that_panicked_behind_the_log_lost_writes() {
    for batches in [false, true] {
        for n in 1.. {
            if !a_panic_in_a_write(batches, n) {
                assert!(n > 10, "few comparisons: {n}");
                break;
            }
        }
    }
}

/// Writes, and has the comparator panic at its n-th question. Whether it asked so many.
fn a_panic_in_a_write(batches: bool, n: i64) -> bool {
    let dir = tempdir().unwrap();
    let (path, killed) = (dir.path().join("db"), dir.path().join("killed"));
    let touchy = Touchy::new();
    let options = || Options::new().keyspace_comparator("strict", touchy.order());
    let db = options().open(&path).unwrap();
    let ks = db.create_keyspace("strict", strict(touchy.order())).unwrap();
    (0..40).for_each(|n| ks.put(key(2 * n), "old").unwrap());
    db.put("before", "1").unwrap();
    touchy.panic_at(n);
    let written = calmly(|| match batches {
        false => ks.put(key(33), "new"),
        true => {
            let mut batch = WriteBatch::new();
            batch.put("default", "new");
            batch.put_in(&ks, key(33), "new");
            batch.put_in(&ks, key(35), "new");
            batch.put_in(&ks, key(34), "new");
            db.write(batch)
        }
    });
    let panicked = touchy.mend();
    let what = format!("batches {batches}, comparison {n}: {written:?}");
    assert_eq!(panicked, written.is_err(), "{what}");
    let halted = is(&written, "Halted");
    assert!(!panicked || halted || is(&written, "ComparatorPanicked"), "{what}");
    if halted {
        assert!(is(&db.put("after", "1"), "Halted"), "{what}");
        assert!(is(&db.resume(), "Halted"), "{what}");
        assert!(is(&ks.bulk_load([("z", "z")]).map(drop), "Halted"), "{what}");
        assert_eq!(ks.iter().filter(|e| e.as_ref().unwrap().1 == b"new").count(), 0, "{what}");
        assert!(db.get("default").unwrap().is_none(), "{what}");
    } else {
        db.put("after", "1").unwrap();
    }
    copy_as_killed(&path, &killed);
    drop(ks);
    let closed = db.close();
    assert_eq!(closed.is_err(), halted, "{what}");
    for path in [killed, path] {
        let db = options().open(&path).unwrap();
        let ks = db.keyspace("strict").unwrap();
        assert!(db.get("before").unwrap().is_some(), "{what}");
        assert_eq!(db.get("after").unwrap().is_some(), !halted, "{what}");
        let new = ks.iter().filter(|e| e.as_ref().unwrap().1 == b"new").count();
        let all = if batches { 3 } else { 1 };
        // What was refused without a halt is not there; what is in the log is there whole.
        let expected = if panicked && !halted { 0 } else { all };
        assert_eq!(new, expected, "{what}");
        assert_eq!(db.get("default").unwrap().is_some(), batches && expected > 0, "{what}");
        assert!(db.verify().unwrap().problems.is_empty(), "{what}");
        db.put("more", "1").unwrap();
        db.flush().unwrap();
        assert_eq!(
            ks.iter().count(),
            if batches { 40 + expected - expected / 3 } else { 40 + expected }
        );
    }
    panicked
}

type Ask = (&'static str, fn(&Keyspace) -> Result<(), Error>);

/// Everything that reads, and is right when it gives no error.
const READS: &[Ask] = &[
    ("get", |ks| ks.get(key(20)).map(|v| assert!(v.is_some()))),
    ("get nothing", |ks| ks.get(key(21)).map(|v| assert!(v.is_none()))),
    ("contains_key", |ks| ks.contains_key(key(80)).map(|there| assert!(there))),
    ("multi_get", |ks| {
        let keys: Vec<String> = (0..20).map(|n| key(4 * n)).collect();
        ks.multi_get(&keys).map(|all| assert!(all.iter().all(|v| v.is_some())))
    }),
    ("range", |ks| count(ks.range(key(20)..key(60)), 20)),
    ("range back", |ks| count(ks.range(key(20)..key(60)).rev(), 20)),
    ("prefix", |ks| count(ks.prefix("key 0"), 50)),
    ("walk", |ks| {
        let mut cursor = ks.cursor();
        let mut on = cursor.first()?;
        let mut seen = 0;
        while on {
            seen += 1;
            on = cursor.next()?;
        }
        assert_eq!(seen, 60);
        Ok(())
    }),
    ("turns", |ks| {
        let mut cursor = ks.cursor();
        assert!(cursor.seek(key(41))? && cursor.key() == key(42).as_bytes());
        assert!(cursor.prev()? && cursor.key() == key(40).as_bytes());
        assert!(cursor.next()? && cursor.key() == key(42).as_bytes());
        assert!(cursor.seek_for_prev(key(41))? && cursor.key() == key(40).as_bytes());
        Ok(())
    }),
    ("approximate_size", |ks| ks.approximate_size(key(20)..key(60)).map(drop)),
];

fn count(
    iter: impl Iterator<Item = Result<(Slice, Slice), Error>>,
    expected: usize,
) -> Result<(), Error> {
    let mut iter = iter;
    let mut seen = 0;
    while let Some(entry) = iter.next() {
        if let Err(e) = entry {
            assert!(iter.next().is_none(), "an iterator ends after an error");
            return Err(e);
        }
        seen += 1;
    }
    assert_eq!(seen, expected);
    Ok(())
}

/// Even numbers below 120 in two runs and a memtable.
fn fill(db: &Db, ks: &Keyspace) {
    ks.bulk_load((0..20).map(|n| (key(6 * n), "1"))).unwrap();
    ks.bulk_load((0..20).map(|n| (key(6 * n + 2), "2"))).unwrap();
    (0..20).for_each(|n| ks.put(key(6 * n + 4), "3").unwrap());
    db.put("default", "there").unwrap();
}

#[test]
fn a_comparator_that_panics_in_a_read_is_an_error() {
    let dir = tempdir().unwrap();
    let touchy = Touchy::new();
    let db = Options::new().open(dir.path().join("db")).unwrap();
    let ks = db.create_keyspace("strict", strict(touchy.order())).unwrap();
    fill(&db, &ks);
    for settled in [false, true] {
        if settled {
            db.wait_for_compactions().unwrap();
        }
        for (name, read) in READS {
            for n in 1.. {
                touchy.panic_at(n);
                let result = calmly(|| read(&ks));
                let panicked = touchy.mend();
                assert_eq!(panicked, result.is_err(), "{name}, comparison {n}: {result:?}");
                if !panicked {
                    break;
                }
                assert!(is(&result, "ComparatorPanicked { keyspace: \"strict\""), "{result:?}");
            }
        }
    }
    db.put("goes", "on").unwrap();
}

#[test]
fn a_cursor_whose_comparator_panicked_was_neither_valid_nor_in_error() {
    let dir = tempdir().unwrap();
    let touchy = Touchy::new();
    let db = Options::new().open(dir.path().join("db")).unwrap();
    let ks = db.create_keyspace("strict", strict(touchy.order())).unwrap();
    fill(&db, &ks);
    let mut cursor = ks.cursor();
    assert!(cursor.first().unwrap());
    touchy.panic_at(1);
    let failed = calmly(|| cursor.next());
    assert!(touchy.mend() && is(&failed, "ComparatorPanicked"), "{failed:?}");
    assert!(!cursor.valid() && cursor.key().is_empty() && cursor.value().is_empty());
    assert!(is(&cursor.next(), "ComparatorPanicked") && is(&cursor.prev(), "ComparatorPanicked"));
    assert!(cursor.seek(key(40)).unwrap() && cursor.key() == key(40).as_bytes());
    assert!(cursor.next().unwrap() && cursor.key() == key(42).as_bytes());
}

#[test]
fn a_cursor_whose_comparator_panicked_among_dead_keys_hid_living_ones() {
    for forward in [true, false] {
        let dir = tempdir().unwrap();
        let touchy = Touchy::new();
        let db = Options::new().open(dir.path().join("db")).unwrap();
        let ks = db.create_keyspace("strict", strict(touchy.order())).unwrap();
        // Dead, alive, dead for long, alive: in the direction of the walk.
        let at = |n: u32| key(if forward { n } else { 209 - n });
        let mut keys: Vec<String> = (0..210).map(at).collect();
        keys.sort();
        ks.bulk_load(keys.iter().map(|key| (key, "1"))).unwrap();
        (0..10).chain(20..200).for_each(|n| ks.delete(at(n)).unwrap());
        let begin = |c: &mut esker::Cursor| if forward { c.first() } else { c.last() };
        for n in 1.. {
            let mut cursor = ks.cursor();
            touchy.panic_at(n);
            let begun = calmly(|| begin(&mut cursor));
            if !touchy.mend() {
                assert!(begun.unwrap());
                assert!(n > 10, "it was asked {n} times");
                break;
            }
            assert!(is(&begun, "ComparatorPanicked"), "{begun:?}");
            assert!(cursor.seek(at(10)).unwrap());
            while if forward { cursor.next() } else { cursor.prev() }.unwrap() {}
            let mut fresh = ks.cursor();
            assert!(begin(&mut fresh).unwrap());
            assert_eq!(fresh.key(), at(10).as_bytes(), "a panic at comparison {n}");
            assert_eq!(ks.iter().count(), 20, "a panic at comparison {n}");
        }
    }
}

/// What is done to a store while a comparator panics.
type Work = fn(&Db, &Keyspace, &Path) -> Result<(), Error>;

/// Everything that merges, on this thread or in the background.
const WORK: &[(&str, Work)] = &[
    ("flush", |db, _, _| db.flush()),
    ("settle", |db, _, _| db.wait_for_compactions()),
    ("compact_range", |_, ks, _| ks.compact_range::<&str>(..)),
    ("compact_range of a part", |_, ks, _| ks.compact_range(key(20)..key(60))),
    ("checkpoint", |db, _, dir| db.checkpoint(dir.join("copy"))),
    ("bulk_load", |_, ks, _| ks.bulk_load((0..30).map(|n| (key(4 * n), "4"))).map(drop)),
    ("verify", |db, _, _| {
        db.flush()?;
        db.verify().map(|report| assert!(report.problems.is_empty()))
    }),
];

#[test]
fn a_comparator_that_panics_in_a_merge_leaves_nothing_behind() {
    for (name, work) in WORK {
        for n in [1, 2, 3, 5, 8, 12, 17, 23, 30, 38, 47, 57, 70, 90, 120, 160, 220, 300, 400] {
            let dir = tempdir().unwrap();
            let path = dir.path().join("db");
            let touchy = Touchy::new();
            let db = Options::new().open(&path).unwrap();
            let ks = db.create_keyspace("strict", strict(touchy.order())).unwrap();
            fill(&db, &ks);
            touchy.panic_anywhere_at(n);
            let result = calmly(|| work(&db, &ks, dir.path()));
            let panicked = touchy.mend();
            let what = format!("{name}, comparison {n}: {result:?}");
            // The background thread may have asked more after the call's own work was done.
            assert!(panicked || result.is_ok(), "{what}");
            if let Err(e) = &result {
                let text = e.to_string();
                assert!(text.contains("strict") && text.contains("touched"), "{what}");
                assert!(!text.contains("bug"), "{what}");
            }
            calmly(|| db.resume()).unwrap();
            // Nothing is locked, and nothing counts as under way.
            ks.put(key(118), "3").unwrap();
            db.wait_for_compactions().unwrap();
            ks.compact_range::<&str>(..).unwrap();
            db.wait_for_compactions().unwrap();
            assert_eq!(ks.iter().count(), 60, "{what}");
            let tables: usize =
                db.stats().keyspaces.iter().flat_map(|k| &k.runs).map(|r| r.tables).sum();
            assert_eq!(count_tables(&path), tables, "files left: {what}");
            assert!(db.get("default").unwrap().is_some());
            if !panicked {
                break;
            }
        }
    }
}

#[test]
fn a_comparator_that_panics_at_open_is_an_error_that_names_the_keyspace() {
    let dir = tempdir().unwrap();
    let (path, killed) = (dir.path().join("db"), dir.path().join("killed"));
    let touchy = Touchy::new();
    let db = Options::new().open(&path).unwrap();
    let ks = db.create_keyspace("strict", strict(touchy.order())).unwrap();
    fill(&db, &ks);
    copy_as_killed(&path, &killed);
    let before = files::contents(&killed);
    let mut in_the_log = false;
    for n in 1.. {
        let open = || {
            let order = Options::new().keyspace_comparator("strict", touchy.order());
            order.open(&killed)
        };
        touchy.panic_at(n);
        let opened = calmly(open);
        if !touchy.mend() {
            let db = opened.unwrap();
            assert_eq!(db.keyspace("strict").unwrap().iter().count(), 60);
            break;
        }
        assert!(is(&opened, "ComparatorPanicked { keyspace: \"strict\""), "{opened:?}");
        in_the_log |= opened.unwrap_err().to_string().contains(".log");
        assert!(files::contents(&killed) == before, "comparison {n} changed the files");
    }
    assert!(in_the_log, "no error named the file of the log");
}

/// Answers at random, the same at no two times.
struct Liar(AtomicU64);

impl Comparator for Liar {
    fn name(&self) -> &str {
        "test.liar"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let n = self.0.fetch_add(0x9E37_79B9_7F4A_7C15, SeqCst);
        match (n ^ n >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 61 {
            0 => Ordering::Less,
            1 => Ordering::Equal,
            2 => Ordering::Greater,
            _ => a.cmp(b),
        }
    }
}

#[test]
fn a_comparator_that_lies_does_no_harm_to_the_store() {
    let seed = seed("a_comparator_that_lies_does_no_harm_to_the_store");
    within_seconds(120, move || {
        let mut rng = Rng::new(seed);
        for round in 0..12 {
            let dir = tempdir().unwrap();
            let path = dir.path().join("db");
            let liar = || KeyOrder::Custom(Arc::new(Liar(AtomicU64::new(seed + round))));
            let db = small().open(&path).unwrap();
            let ks = db.create_keyspace("liar", strict(liar())).unwrap();
            let mut dropped = false;
            db.put("first", "true").unwrap();
            for n in 0..3000u32 {
                let put = calmly(|| db.put(n.to_be_bytes(), "true"));
                if let Err(e) = put {
                    // A merge noticed, and stopped all writes.
                    let text = e.to_string();
                    assert!(is::<()>(&Err(e), "Halted") && !text.contains("bug"), "{text}");
                    // It may do so again at once, each time before the keyspace is dropped.
                    dropped = (0..100).any(|_| {
                        calmly(|| db.resume()).is_ok()
                            && calmly(|| db.drop_keyspace("liar")).is_ok()
                    });
                    break;
                }
                let k = rng.below(500) as u32;
                let value = vec![7; if n % 50 == 0 { 2000 } else { 40 }];
                calmly(|| if n % 7 == 0 { ks.delete(key(k)) } else { ks.put(key(k), value) }).ok();
                calmly(|| ks.get(key(k))).ok();
                if n % 300 == 299 {
                    calmly(|| ks.range(key(10)..key(90)).take(5000).count());
                    calmly(|| ks.iter().rev().take(5000).count());
                    let mut cursor = ks.cursor();
                    calmly(|| cursor.seek(key(k)).and_then(|_| cursor.prev())).ok();
                    calmly(|| cursor.next().and_then(|_| cursor.prev())).ok();
                    calmly(|| ks.compact_range(key(1)..key(40))).ok();
                    calmly(|| ks.bulk_load((0..200).map(|n| (key(n), "")))).ok();
                    calmly(|| ks.approximate_size(key(1)..key(40))).ok();
                    calmly(|| db.flush()).ok();
                    calmly(|| db.verify()).ok();
                }
            }
            if dropped {
                // The merge that was under way may have stopped writes once more.
                assert!((0..100).any(|_| db.resume().is_ok() && db.wait_for_compactions().is_ok()));
                (0..100u32).for_each(|n| db.put(n.to_be_bytes(), "goes on").unwrap());
            }
            drop(ks);
            drop(db);
            for _ in 0..3 {
                let opened = calmly(|| small().keyspace_comparator("liar", liar()).open(&path));
                if let Ok(db) = opened {
                    assert!(db.get("first").unwrap().is_some());
                }
            }
        }
    });
}

/// Writes to the store that it orders a keyspace of.
struct CallsBack(std::sync::Mutex<Option<Db>>, AtomicU64);

impl Comparator for CallsBack {
    fn name(&self) -> &str {
        "test.calls-back"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let db = self.0.lock().unwrap().clone();
        if let Some(db) = db {
            let mut batch = WriteBatch::new();
            batch.put("x", "y");
            let refused = [
                db.put("x", "y"),
                db.write(batch),
                db.flush(),
                db.wait_for_compactions(),
                db.sync(),
                db.compact_range::<&str>(..),
                db.bulk_load([("x", "y")]).map(drop),
                db.create_keyspace("x", KeyspaceOptions::new()).map(drop),
                db.drop_keyspace("x"),
                db.checkpoint("/nowhere/at/all"),
                db.resume(),
                db.close(),
            ];
            for (at, r) in refused.iter().enumerate() {
                assert!(is(r, "CalledFromComparator"), "{at}: {r:?}");
            }
            self.1.fetch_add(1, SeqCst);
        }
        a.cmp(b)
    }
}

#[test]
fn a_comparator_that_called_the_store_waited_for_itself() {
    within_seconds(60, || {
        let dir = tempdir().unwrap();
        let order = Arc::new(CallsBack(Default::default(), AtomicU64::new(0)));
        let db = Options::new().open(dir.path().join("db")).unwrap();
        let ks = KeyOrder::Custom(Arc::clone(&order) as Arc<dyn Comparator>);
        let ks = db.create_keyspace("strict", strict(ks)).unwrap();
        *order.0.lock().unwrap() = Some(db.clone());
        (0..20).for_each(|n| ks.put(key(n), "1").unwrap());
        db.flush().unwrap();
        ks.compact_range::<&str>(..).unwrap();
        assert!(ks.get(key(3)).unwrap().is_some());
        *order.0.lock().unwrap() = None;
        assert!(order.1.load(SeqCst) > 20);
        assert!(db.get("x").unwrap().is_none());
    });
}

#[test]
fn the_comparator_of_a_dropped_keyspace_was_kept_until_the_store_was_closed() {
    let dir = tempdir().unwrap();
    let db = Options::new().open(dir.path().join("db")).unwrap();
    let touchy = Touchy::new();
    for round in 0..3 {
        let ks = db.create_keyspace("temporary", strict(touchy.order())).unwrap();
        (0..100).for_each(|n| ks.put(key(n), "1").unwrap());
        db.flush().unwrap();
        db.drop_keyspace("temporary").unwrap();
        drop(ks);
        let kept = || Arc::strong_count(&touchy) > 1;
        // The background thread may be looking at it.
        for _ in 0..1000 {
            if kept() {
                db.wait_for_compactions().unwrap();
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        assert!(!kept(), "round {round}");
    }
}

/// Bytewise. One comparison of a thread named "writer", the n-th from when that was asked for, takes as long as one likes.
#[derive(Default)]
struct Slow {
    left: AtomicI64,
    waits: AtomicBool,
}

impl Comparator for Slow {
    fn name(&self) -> &str {
        "test.slow"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        if std::thread::current().name() == Some("writer") && self.left.fetch_sub(1, SeqCst) == 1 {
            self.waits.store(true, SeqCst);
            while self.waits.load(SeqCst) {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        a.cmp(b)
    }
}

#[test]
fn readers_waited_for_a_comparator_that_a_put_into_a_gap_had_asked() {
    within_seconds(100, || {
        let dir = tempdir().unwrap();
        let slow = Arc::new(Slow::default());
        let db = Options::new().open(dir.path().join("db")).unwrap();
        let order = KeyOrder::Custom(Arc::clone(&slow) as Arc<dyn Comparator>);
        let ks = db.create_keyspace("slow", strict(order)).unwrap();
        ks.bulk_load((0..300).map(|n| (key(n), "1"))).unwrap();
        (10..290).for_each(|n| ks.delete(key(n)).unwrap());
        for n in 1.. {
            // Known, and of use.
            (0..3).for_each(|_| assert_eq!(ks.iter().count(), 20));
            slow.left.store(n, SeqCst);
            let writer = std::thread::Builder::new().name("writer".into()).spawn({
                let ks = ks.clone();
                move || ks.put(key(150), "1").and_then(|()| ks.delete(key(150))).unwrap()
            });
            let writer = writer.unwrap();
            while !slow.waits.load(SeqCst) && !writer.is_finished() {
                std::thread::yield_now();
            }
            let met = slow.waits.load(SeqCst);
            for forward in [true, false] {
                let mut cursor = ks.cursor();
                let mut on = if forward { cursor.first() } else { cursor.last() }.unwrap();
                let mut seen = 0;
                while on {
                    seen += 1;
                    on = if forward { cursor.next() } else { cursor.prev() }.unwrap();
                }
                assert!(seen == 20 || seen == 21, "{seen}");
            }
            slow.waits.store(false, SeqCst);
            writer.join().unwrap();
            if !met {
                assert!(n > 8, "{n} comparisons");
                break;
            }
        }
    });
}

#[test]
fn a_load_whose_iterator_panicked_left_its_files() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("db");
    let db = small().open(&path).unwrap();
    db.put("there", "1").unwrap();
    db.wait_for_compactions().unwrap();
    let tables = count_tables(&path);
    let entries = (0..200_000u32).map(|n| {
        assert!(n < 190_000, "no more");
        (n.to_be_bytes(), [1; 100])
    });
    let load = catch_unwind(AssertUnwindSafe(|| db.bulk_load(entries)));
    assert!(load.is_err(), "the panic is the caller's own");
    assert_eq!(count_tables(&path), tables);
    assert_eq!(db.bulk_load((0..10u32).map(|n| (n.to_be_bytes(), "1"))).unwrap(), 10);
    db.wait_for_compactions().unwrap();
    assert_eq!(db.iter().count(), 11);
}

#[test]
fn an_iterator_of_a_load_may_use_the_store_and_close_it() {
    within_seconds(60, || {
        let dir = tempdir().unwrap();
        let path = dir.path().join("db");
        let db = small().open(&path).unwrap();
        let entries = (0..10u32).map(|n| {
            db.put(n.to_be_bytes(), "written during the load").unwrap();
            match n {
                3 => db.flush().unwrap(),
                5 => drop(db.bulk_load([("inner", "1")]).unwrap()),
                7 => db.compact_range::<&str>(..).unwrap(),
                _ => {}
            }
            (n.to_be_bytes(), "loaded")
        });
        assert_eq!(db.bulk_load(entries).unwrap(), 10);
        assert_eq!(db.iter().count(), 11);
        assert!(db.get(4u32.to_be_bytes()).unwrap().unwrap() == b"loaded");
        let entries = (0..200_000u32).map(|n| {
            if n == 150_000 {
                db.clone().close().unwrap();
            }
            (n.to_be_bytes(), [1; 100])
        });
        assert!(is(&db.bulk_load(entries), "Closed"));
        drop(db);
        let db = small().open(&path).unwrap();
        assert_eq!(db.iter().count(), 11);
    });
}

#[test]
fn a_closure_that_panics_during_a_verification_does_no_harm() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("db");
    let db = small().open(&path).unwrap();
    db.put("key", "value").unwrap();
    db.flush().unwrap();
    let panics = |_, _| panic!("no more");
    assert!(catch_unwind(AssertUnwindSafe(|| db.verify_with(panics))).is_err());
    // It may use the store.
    db.verify_with(|_, _| db.put("key", "value").unwrap()).unwrap();
    db.close().unwrap();
    assert!(catch_unwind(AssertUnwindSafe(|| Options::new().verify_with(&path, panics))).is_err());
    assert!(Db::verify_path(&path).unwrap().problems.is_empty());
    assert!(small().open(&path).unwrap().get("key").unwrap().is_some());
}

/// Gives other bytes each time it is asked.
struct Shifting(std::cell::Cell<usize>);

impl AsRef<[u8]> for Shifting {
    fn as_ref(&self) -> &[u8] {
        self.0.set(self.0.get() + 1);
        &[0xff; 100_000][..match self.0.get() {
            1 => 3,
            _ => 100_000,
        }]
    }
}

#[test]
fn keys_that_change_while_they_are_looked_at_do_no_harm() {
    let dir = tempdir().unwrap();
    let db = small().open(dir.path().join("db")).unwrap();
    let new = || Shifting(std::cell::Cell::new(0));
    db.put(new(), new()).unwrap();
    let mut batch = WriteBatch::new();
    batch.put(new(), new());
    batch.delete(new());
    batch.put(new(), "x");
    db.write(batch).unwrap();
    db.bulk_load([(new(), new())]).unwrap();
    assert!(db.get(new()).unwrap().is_some());
    assert!(db.multi_get(&[new(), new()]).is_ok());
    assert_eq!(db.range(new()..=new()).count(), 1);
    assert!(db.cursor().seek(new()).unwrap());
    db.compact_range(new()..new()).unwrap();
    db.delete(new()).unwrap();
    assert_eq!(db.iter().count(), 0);
}

#[test]
fn a_batch_of_another_store_was_written_to_whichever_keyspace_had_that_number() {
    let dir = tempdir().unwrap();
    let (a, b) = (dir.path().join("a"), dir.path().join("b"));
    let open = |path: &Path| {
        let db = Db::open(path).unwrap();
        let ks = match db.keyspace("ks") {
            Ok(ks) => ks,
            Err(_) => db.create_keyspace("ks", KeyspaceOptions::new()).unwrap(),
        };
        (db, ks)
    };
    let ((a, in_a), (b, in_b)) = (open(&a), open(&b));
    let nothing_written = |db: &Db| {
        assert_eq!(db.iter().count() + db.keyspace("ks").unwrap().iter().count(), 0);
    };
    let mut foreign = WriteBatch::new();
    foreign.put("plain", "1");
    foreign.put_in(&in_a, "key", "1");
    assert!(is(&b.write(foreign.clone()), "ForeignBatch"));
    nothing_written(&b);
    let mut deletes = WriteBatch::new();
    deletes.delete_in(&in_a, "key");
    assert!(is(&b.write(deletes), "ForeignBatch"));
    // The default keyspace of the other store, when it is named.
    let mut default = WriteBatch::new();
    default.put_in(a.default_keyspace(), "key", "1");
    assert!(is(&b.write(default), "ForeignBatch"));
    // Of both stores: neither takes it.
    let mut mixed = foreign.clone();
    mixed.put_in(&in_b, "key", "1");
    assert!(is(&a.write(mixed.clone()), "ForeignBatch"));
    assert!(is(&b.write_with(mixed.clone(), Durability::Synced), "ForeignBatch"));
    nothing_written(&a);
    nothing_written(&b);
    // Emptied, it is nobody's; and a clone of a handle is no other store.
    mixed.clear();
    mixed.put_in(&in_b.clone(), "key", "1");
    b.clone().write(mixed).unwrap();
    assert_eq!(in_b.iter().count(), 1);
    // The same directory, opened again: numbers of keyspaces may mean others by now.
    drop(in_a);
    a.close().unwrap();
    let (again, _ks) = open(&dir.path().join("a"));
    assert!(is(&again.write(foreign), "ForeignBatch"));
    nothing_written(&again);
    // Of a keyspace that was dropped and made anew.
    let mut old = WriteBatch::new();
    old.put_in(&in_b, "key", "2");
    b.drop_keyspace("ks").unwrap();
    let new = b.create_keyspace("ks", KeyspaceOptions::new()).unwrap();
    assert!(is(&b.write(old), "KeyspaceDropped"));
    assert_eq!(new.iter().count(), 0);
}

#[test]
fn a_batch_that_was_cleared_could_not_be_written_again() {
    let dir = tempdir().unwrap();
    let db = Db::open(dir.path().join("db")).unwrap();
    let mut batch = WriteBatch::new();
    for round in 0..3u8 {
        batch.clear();
        batch.put([round], "by reference");
        batch.put_in(db.default_keyspace(), [round + 10], "and by handle");
        db.write(&batch).unwrap();
        db.write_with(&mut batch, Durability::Synced).unwrap();
    }
    assert_eq!(batch.len(), 2);
    db.write(batch).unwrap();
    assert_eq!(db.iter().count(), 6);
}

#[test]
fn a_snapshot_of_another_store_panicked() {
    let dir = tempdir().unwrap();
    let (a, b) = (dir.path().join("a"), dir.path().join("b"));
    let (a, b) = (Db::open(a).unwrap(), Db::open(b).unwrap());
    b.put("key", "value").unwrap();
    let view = calmly(|| b.at(&a.snapshot()));
    assert!(is(&view.get("key"), "ForeignSnapshot"));
    assert!(is(&view.contains_key("key"), "ForeignSnapshot"));
    assert!(is(&view.multi_get(&["key"]), "ForeignSnapshot"));
    for mut iter in [view.iter(), view.range("a".."z"), view.prefix("k")] {
        assert!(is(&iter.next().unwrap(), "ForeignSnapshot"));
        assert!(iter.next().is_none() && iter.next_back().is_none());
    }
    for mut cursor in [view.cursor(), view.cursor_keys_only()] {
        assert!(is(&cursor.first(), "ForeignSnapshot") && is(&cursor.next(), "ForeignSnapshot"));
        assert!(!cursor.valid() && is(&cursor.seek("key"), "ForeignSnapshot"));
    }
    assert!(b.at(&b.snapshot()).get("key").unwrap().is_some());
}

#[test]
fn a_cursor_after_an_error_stayed_on_the_damaged_entry() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("db");
    let db = small().open(&path).unwrap();
    for n in 0..8u8 {
        db.put([n], vec![b'A' + n; 3000]).unwrap();
    }
    db.wait_for_compactions().unwrap();
    db.close().unwrap();
    // One byte of the fourth value, which stayed in the log.
    let mut damaged = 0;
    for file in files::ending(&path, ".log") {
        let mut bytes = std::fs::read(&file).unwrap();
        if let Some(at) = bytes.windows(100).position(|w| w == [b'D'; 100]) {
            bytes[at] ^= 1;
            std::fs::write(&file, bytes).unwrap();
            damaged += 1;
        }
    }
    assert_eq!(damaged, 1);
    let db = small().open(&path).unwrap();
    for merged in [false, true] {
        if merged {
            db.put("z", "1").unwrap();
        }
        let mut cursor = db.cursor();
        type Step = fn(&mut esker::Cursor) -> Result<bool, Error>;
        let ways: [(&str, Step); 4] = [
            ("seek", |c| c.seek([3])),
            ("seek_for_prev", |c| c.seek_for_prev([3])),
            ("next", |c| c.seek([2]).and_then(|_| c.next())),
            ("prev", |c| c.seek([4]).and_then(|_| c.prev())),
        ];
        for (name, step) in ways {
            let what = format!("merged {merged}, {name}");
            let first = step(&mut cursor);
            let text = first.as_ref().unwrap_err().to_string();
            assert!(first.unwrap_err().is_corruption(), "{what}");
            assert!(!cursor.valid(), "{what}: valid on {:?}", cursor.key());
            assert!(cursor.key().is_empty() && cursor.value().is_empty(), "{what}");
            for _ in 0..2 {
                let again = [cursor.next(), cursor.prev()];
                for again in again {
                    assert_eq!(again.unwrap_err().to_string(), text, "{what}");
                }
            }
            assert!(cursor.seek([5]).unwrap() && cursor.value() == [b'F'; 3000], "{what}");
        }
        assert!(cursor.first().unwrap() && cursor.last().unwrap());
        let mut iter = db.iter();
        let entries: Vec<_> = iter.by_ref().collect();
        assert_eq!(entries.len(), 4, "three entries and the error");
        assert!(entries[3].is_err() && iter.next().is_none() && iter.next_back().is_none());
    }
}

#[test]
fn a_cursor_after_damage_in_a_block_gives_the_error_again() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("db");
    let db = small().open(&path).unwrap();
    (0..2000u32).for_each(|n| db.put(n.to_be_bytes(), [7; 50]).unwrap());
    db.wait_for_compactions().unwrap();
    db.close().unwrap();
    for file in files::ending(&path, ".tbl") {
        let mut bytes = std::fs::read(&file).unwrap();
        bytes[5 * 4096 + 500] ^= 1;
        std::fs::write(&file, bytes).unwrap();
    }
    let db = small().open(&path).unwrap();
    for back in [false, true] {
        let mut cursor = db.cursor();
        let mut step = if back { cursor.last() } else { cursor.first() };
        while let Ok(true) = step {
            step = if back { cursor.prev() } else { cursor.next() };
        }
        let text = step.unwrap_err().to_string();
        assert!(!cursor.valid());
        assert_eq!(cursor.next().unwrap_err().to_string(), text);
        assert_eq!(cursor.prev().unwrap_err().to_string(), text);
        assert!(cursor.first().unwrap());
    }
}

#[test]
fn a_comparator_named_like_a_built_in_one_was_accepted() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("db");
    let names = ["esker.bytewise", "esker.reverse", "esker.mine", "", &"x".repeat(1025)];
    let db = Db::open(&path).unwrap();
    for name in names {
        let made = db.create_keyspace("ks", strict(Touchy::named(name).order()));
        assert!(is(&made, "InvalidOption"), "{name:?}: {made:?}");
        db.put("the store", "goes on").unwrap();
    }
    let longest = "x".repeat(1024);
    db.create_keyspace("long", strict(Touchy::named(&longest).order())).unwrap();
    db.keyspace("long").unwrap().put("key", "value").unwrap();
    db.flush().unwrap();
    db.close().unwrap();
    for name in names {
        let order = Touchy::named(name).order();
        let fresh = dir.path().join("fresh");
        let opened = [
            Options::new().comparator(order.clone()).open(&fresh),
            Options::new().keyspace_comparator("long", order).open(&path),
        ];
        assert!(opened.iter().all(|o| is(o, "InvalidOption")), "{name:?}: {opened:?}");
        assert!(!fresh.exists());
    }
    let db =
        Options::new().keyspace_comparator("long", Touchy::named(&longest).order()).open(&path);
    assert!(db.unwrap().keyspace("long").unwrap().get("key").unwrap().is_some());
}

#[test]
fn two_comparators_of_one_name_were_mixed_up() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("db");
    let db = Db::open(&path).unwrap();
    for name in ["a", "b", "c"] {
        let ks = db.create_keyspace(name, strict(Touchy::new().order())).unwrap();
        (0..10).for_each(|n| ks.put(key(n), "1").unwrap());
    }
    db.close().unwrap();
    let [a, b, c] = [Touchy::new(), Touchy::new(), Touchy::new()];
    let two =
        || Options::new().keyspace_comparator("a", a.order()).keyspace_comparator("b", b.order());
    // Which of the two would order c?
    let opened = two().open(&path);
    assert!(is(&opened, "ComparatorMissing { keyspace: \"c\""), "{opened:?}");
    let db = two().keyspace_comparator("c", c.order()).open(&path).unwrap();
    let all = [("a", &a), ("b", &b), ("c", &c)];
    for (name, _) in all {
        let before = all.map(|(_, t)| t.asked.load(SeqCst));
        assert!(db.keyspace(name).unwrap().get(key(3)).unwrap().is_some());
        for ((other, t), before) in all.iter().zip(before) {
            assert_eq!(t.asked.load(SeqCst) > before, *other == name, "{name}: {other} was asked");
        }
    }
    db.close().unwrap();
    // One object for all of them orders those it was not given for too.
    let db = Options::new().keyspace_comparator("a", a.order()).keyspace_comparator("b", a.order());
    let db = db.open(&path).unwrap();
    assert_eq!(db.keyspace("c").unwrap().iter().count(), 10);
}

#[test]
fn an_order_given_by_name_for_the_default_keyspace_was_found_wrong_in_a_new_store() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("db");
    let open = || Options::new().keyspace_comparator("default", no_case()).open(&path);
    let db = open().unwrap();
    db.put("Key", "1").unwrap();
    assert!(db.get("kEY").unwrap().is_some());
    db.close().unwrap();
    assert!(open().unwrap().get("kEY").unwrap().is_some());
}

/// With many tables a flush compares their keys too, to see where its own may end: on the threads of a bulk
/// load, a checkpoint and a compaction by hand.
#[test]
fn a_comparator_that_panics_among_many_tables_is_an_error_of_whoever_flushes() {
    for kind in 0..3 {
        let mut panics = 0;
        for n in (1..).step_by(3) {
            let dir = tempdir().unwrap();
            let touchy = Touchy::new();
            let options = small().table_size(8 << 10).keyspace_comparator("strict", touchy.order());
            let db = options.open(dir.path().join("db")).unwrap();
            let ks = db.create_keyspace("strict", strict(touchy.order())).unwrap();
            (0..300).for_each(|n| ks.put(key(n), vec![1; 300]).unwrap());
            ks.compact_range::<&str>(..).unwrap();
            assert!(count_tables(&dir.path().join("db")) > 5);
            // A second run, whose keys lie between those of the first.
            ks.bulk_load((0..20).map(|n| (format!("{}x", key(10 * n)), "loaded"))).unwrap();
            (100..110).for_each(|n| ks.put(key(n), "new").unwrap());
            touchy.panic_at(n);
            let done = calmly(|| match kind {
                0 => ks.bulk_load([("z1", "1"), ("z2", "2")]).map(drop),
                1 => db.checkpoint(dir.path().join("copy")).map(drop),
                _ => ks.compact_range::<&str>(..),
            });
            let panicked = touchy.mend();
            assert_eq!(panicked, done.is_err(), "kind {kind}, comparison {n}: {done:?}");
            if !panicked {
                break;
            }
            panics += 1;
        }
        assert!(panics > 3, "kind {kind}: {panics} panics");
    }
}

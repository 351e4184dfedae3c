//! Any call to the system may fail, once or from then on: that is an error to somebody, never a
//! panic, a hang or a lost write; and where the cause is gone, `resume` goes on.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::env::{Env, File, Lock, LockMode, Map, OpenMode, OsEnv};
use crate::fuzzing::testing::some_of;
use crate::{Compression, Db, Durability, Error, KeyspaceOptions, Options, WriteBatch};

/// Which calls fail.
#[derive(Debug)]
struct FaultPlan {
    calls: AtomicU64,
    /// The number of the call that fails; none when there are fewer.
    at: u64,
    /// Whether all later ones do too.
    on: AtomicBool,
    /// Only calls of this kind are counted.
    only: Option<&'static str>,
    kind: io::ErrorKind,
    failed: AtomicU64,
    /// Whether the device answers no sync for now.
    stuck: AtomicBool,
    /// Whether it gives no space back for now, and whether somebody waits for that.
    keeps: AtomicBool,
    kept: AtomicBool,
    stepped: bool,
}

impl FaultPlan {
    fn new(at: u64, on: bool) -> FaultPlan {
        FaultPlan {
            calls: AtomicU64::new(0),
            at,
            on: AtomicBool::new(on),
            only: None,
            kind: io::ErrorKind::StorageFull,
            failed: AtomicU64::new(0),
            stuck: AtomicBool::new(false),
            keeps: AtomicBool::new(false),
            kept: AtomicBool::new(false),
            stepped: false,
        }
    }

    fn wait_for_the_device(&self) {
        while self.stuck.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn call(&self, what: &str) -> io::Result<()> {
        if self.only.is_some_and(|only| only != what) {
            return Ok(());
        }
        let n = self.calls.fetch_add(1, Ordering::SeqCst);
        if n == self.at || n > self.at && self.on.load(Ordering::SeqCst) {
            self.failed.fetch_add(1, Ordering::SeqCst);
            return Err(io::Error::new(self.kind, format!("call {n} ({what}) was made to fail")));
        }
        Ok(())
    }
}

/// The real file system, with failures.
#[derive(Debug)]
struct FaultEnv {
    real: OsEnv,
    plan: Arc<FaultPlan>,
}

impl Env for FaultEnv {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        self.plan.call("create_dir").and_then(|()| self.real.create_dir(dir))
    }
    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.plan.call("list").and_then(|()| self.real.list(dir))
    }
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        self.plan.call("open")?;
        let manifest = path.to_string_lossy().contains("MANIFEST");
        let file = self.real.open(path, mode)?;
        Ok(Arc::new(FaultFile { real: file, plan: Arc::clone(&self.plan), manifest }))
    }
    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.plan.call("exists").and_then(|()| self.real.exists(path))
    }
    fn allocated(&self, path: &Path) -> io::Result<u64> {
        self.plan.call("allocated").and_then(|()| self.real.allocated(path))
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.plan.call("rename").and_then(|()| self.real.rename(from, to))
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.plan.call("remove").and_then(|()| self.real.remove(path))
    }
    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.plan.call("remove_dir").and_then(|()| self.real.remove_dir(path))
    }
    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.plan.call("hard_link").and_then(|()| self.real.hard_link(from, to))
    }
    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.plan.call("sync_dir").and_then(|()| self.real.sync_dir(dir))
    }
    fn lock(&self, path: &Path, mode: LockMode) -> io::Result<Arc<dyn Lock>> {
        self.plan.call("lock").and_then(|()| self.real.lock(path, mode))
    }
    fn now(&self) -> Duration {
        self.real.now()
    }
    fn sleep(&self, how_long: Duration) {
        self.real.sleep(how_long);
    }
    fn is_stepped(&self) -> bool {
        self.plan.stepped
    }
}

#[derive(Debug)]
struct FaultFile {
    real: Arc<dyn File>,
    plan: Arc<FaultPlan>,
    manifest: bool,
}

impl File for FaultFile {
    fn len(&self) -> io::Result<u64> {
        self.plan.call("len").and_then(|()| self.real.len())
    }
    fn allocated(&self) -> io::Result<u64> {
        self.plan.call("allocated").and_then(|()| self.real.allocated())
    }
    fn links(&self) -> io::Result<u64> {
        self.plan.call("links").and_then(|()| self.real.links())
    }
    fn identity(&self) -> io::Result<(u64, u64)> {
        self.plan.call("identity").and_then(|()| self.real.identity())
    }
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        self.plan.call("read").and_then(|()| self.real.read_exact_at(buf, offset))
    }
    fn write_all_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        let what = if self.manifest { "write to a manifest" } else { "write" };
        if let Err(e) = self.plan.call(what) {
            // Some of it was written.
            self.real.write_all_at(&buf[..buf.len() / 2], offset)?;
            return Err(e);
        }
        self.real.write_all_at(buf, offset)
    }
    fn allocate(&self, len: u64) -> io::Result<()> {
        self.plan.call("allocate").and_then(|()| self.real.allocate(len))
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.plan.call("set_len").and_then(|()| self.real.set_len(len))
    }
    fn punch(&self, offset: u64, len: u64) -> io::Result<bool> {
        while self.plan.keeps.load(Ordering::SeqCst) {
            self.plan.kept.store(true, Ordering::SeqCst);
            std::thread::yield_now();
        }
        self.plan.call("punch").and_then(|()| self.real.punch(offset, len))
    }
    fn sync(&self) -> io::Result<()> {
        self.plan.wait_for_the_device();
        let what = if self.manifest { "sync of a manifest" } else { "sync" };
        self.plan.call(what).and_then(|()| self.real.sync())
    }
    fn map(&self, len: u64, writable: bool) -> io::Result<Map> {
        self.plan.call("map").and_then(|()| self.real.map(len, writable))
    }
}

fn options() -> Options {
    Options::new()
        .memory(1 << 20)
        .segment_size(64 << 10)
        .blob_threshold(1000)
        .compression(Compression::None)
}

/// What each key may hold: one value when its last write was acknowledged, more after errors.
#[derive(Default)]
struct Allowed(BTreeMap<(&'static str, String), Vec<Option<Vec<u8>>>>);

impl Allowed {
    fn note(&mut self, space: &'static str, key: String, value: Option<&[u8]>, done: bool) {
        let values = self.0.entry((space, key)).or_insert_with(|| vec![None]);
        if done {
            values.clear();
        }
        values.push(value.map(<[u8]>::to_vec));
    }

    /// Reads everything and compares.
    fn check(&self, db: &Db, what: &str) -> BTreeMap<(&'static str, String), Option<Vec<u8>>> {
        let mut found = BTreeMap::new();
        for ((space, key), allowed) in &self.0 {
            let value = match db.keyspace(space) {
                Ok(keyspace) => keyspace.get(key).unwrap().map(|v| v.to_vec()),
                Err(_) => None,
            };
            assert!(
                allowed.contains(&value),
                "{what}: {space} {key} has {:?} bytes; allowed are {:?}",
                value.as_ref().map(Vec::len),
                allowed.iter().map(|v| v.as_ref().map(Vec::len)).collect::<Vec<_>>()
            );
            found.insert((*space, key.clone()), value);
        }
        found
    }
}

/// Writes of all kinds. Errors are noted, and where resuming is worth trying, it is tried.
fn work(db: &Db, allowed: &mut Allowed, resumes: bool) {
    let settle = |result: crate::Result<()>| -> bool {
        let Err(e) = result else { return true };
        assert!(!e.is_corruption(), "a failing call read as damage: {e}");
        if resumes && matches!(db.put("probe", ""), Err(Error::Halted { .. })) {
            // The cause is gone.
            db.resume().unwrap();
            db.put("probe", "").unwrap();
        }
        false
    };
    settle(db.create_keyspace("other", KeyspaceOptions::new()).map(drop));
    for round in 0..4u8 {
        for n in 0..12 {
            let (key, value) = (format!("key {n}"), vec![round; 10 + n * 150]);
            let durability = if n % 6 == 0 { Durability::Synced } else { Durability::Buffered };
            let done = settle(db.put_with(&key, &value, durability));
            allowed.note("default", key, Some(&value), done);
        }
        if let Ok(other) = db.keyspace("other") {
            let mut batch = WriteBatch::new();
            let (large, small) = (vec![round; 30_000], vec![round; 3]);
            batch.put_in(&other, "large", &large);
            batch.put_in(&other, format!("small {round}"), &small);
            batch.delete("key 3");
            let done = settle(db.write(batch));
            allowed.note("other", "large".to_string(), Some(&large), done);
            allowed.note("other", format!("small {round}"), Some(&small), done);
            allowed.note("default", "key 3".to_string(), None, done);
        }
        match round {
            0 | 2 => drop(settle(db.flush())),
            1 => {
                settle(db.compact_range::<&str>(..));
                let entries = [("load 1", vec![round; 2000]), ("load 2", vec![])];
                let loaded = settle(db.bulk_load(entries.iter().map(|e| (e.0, &e.1))).map(drop));
                for (key, value) in &entries {
                    allowed.note("default", key.to_string(), Some(value), loaded);
                }
            }
            _ => drop(settle(db.sync())),
        }
    }
}

/// Opens the store three times, and each time everything fails from some call on: as if recovery had
/// been cut off by a crash, and the recovery from that, and so on.
fn open_in_vain(path: &Path, seed: u64, allowed: &Allowed, what: &str) {
    for depth in 0..3 {
        let plan = Arc::new(FaultPlan::new((seed % 1000 * 31 + depth * 17) % 70, true));
        let env = Arc::new(FaultEnv { real: OsEnv::new(), plan });
        if let Ok(db) = Db::open_in(env, path, options()) {
            allowed.check(&db, what);
            drop(db.close());
        }
    }
}

/// The workload with failures; then the store as it is found without any.
fn run(plan: FaultPlan) -> u64 {
    let resumes = !plan.on.load(Ordering::SeqCst);
    let what = format!("call {} of {:?}, from then on: {}", plan.at, plan.only, !resumes);
    let plan = Arc::new(plan);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let env = Arc::new(FaultEnv { real: OsEnv::new(), plan: Arc::clone(&plan) });
    let mut allowed = Allowed::default();
    if let Ok(db) = Db::open_in(env, &path, options()) {
        work(&db, &mut allowed, resumes);
        allowed.check(&db, &what);
        if let Some(halted) = db.stats().halted {
            assert!(!halted.contains("panic"), "{what}: {halted}");
        }
        // An error here is no loss: the log has it.
        drop(db.close());
    }
    if !resumes {
        open_in_vain(&path, plan.at, &allowed, &what);
    }
    let db = options().paranoid_checks(true).open(&path).unwrap_or_else(|e| panic!("{what}: {e}"));
    let found = allowed.check(&db, &what);
    db.put("after", "all").unwrap();
    db.flush().unwrap();
    db.close().unwrap();
    let report = Db::verify_path(&path).unwrap();
    assert_eq!(report.problems, [], "{what}");
    let db = options().open(&path).unwrap();
    assert!(allowed.check(&db, &what) == found, "{what}: changed by opening it again");
    plan.calls.load(Ordering::SeqCst)
}

#[test]
fn any_call_may_fail_once() {
    let calls = run(FaultPlan::new(u64::MAX, false));
    assert!(calls > 100, "{calls} calls");
    for at in some_of(0..calls, 3) {
        run(FaultPlan::new(at, false));
    }
}

#[test]
fn any_call_may_fail_and_all_that_follow() {
    let calls = run(FaultPlan::new(u64::MAX, true));
    for at in some_of(0..calls, 3) {
        run(FaultPlan::new(at, true));
    }
}

#[test]
fn a_manifest_that_could_not_be_synced_takes_no_table_along() {
    for at in 0..12 {
        let kind = io::ErrorKind::Other;
        for on in [false, true] {
            let only = Some("sync of a manifest");
            let plan = FaultPlan { only, kind, ..FaultPlan::new(at, on) };
            run(plan);
        }
    }
}

/// A disk that was full when an edit was due stopped all writes until somebody resumed, though nothing was lost.
struct ByLength;

impl crate::Comparator for ByLength {
    fn name(&self) -> &str {
        "test.by_length"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
        (a.len(), a).cmp(&(b.len(), b))
    }
}

#[test]
fn a_manifest_that_finds_no_room_stops_nothing() {
    let only = Some("write to a manifest");
    for at in 0..12 {
        for on in [false, true] {
            run(FaultPlan { only, ..FaultPlan::new(at, on) });
        }
    }
    let plan = Arc::new(FaultPlan { only, ..FaultPlan::new(1, true) });
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let env = Arc::new(FaultEnv { real: OsEnv::new(), plan: Arc::clone(&plan) });
    plan.on.store(false, Ordering::SeqCst);
    plan.calls.store(2, Ordering::SeqCst);
    let db = Db::open_in(env, &path, options()).unwrap();
    db.put("before", "1").unwrap();
    plan.on.store(true, Ordering::SeqCst);
    let full = |result: crate::Result<()>| assert!(result.unwrap_err().is_no_space());
    let order = Arc::new(ByLength);
    let with_order = KeyspaceOptions::new().comparator(crate::KeyOrder::Custom(order.clone()));
    full(db.create_keyspace("other", with_order).map(drop));
    assert_eq!(Arc::strong_count(&order), 1, "the store keeps the comparator of no keyspace");
    full(db.flush());
    full(db.bulk_load([("loaded", "1")]).map(drop));
    db.put_with("synced", "1", Durability::Synced).unwrap();
    db.put("buffered", "1").unwrap();
    assert_eq!(db.stats().halted, None);
    assert!(plan.failed.load(Ordering::SeqCst) >= 3);
    plan.on.store(false, Ordering::SeqCst);
    db.flush().unwrap();
    db.create_keyspace("other", KeyspaceOptions::new()).unwrap();
    db.close().unwrap();
    assert_eq!(Db::verify_path(&path).unwrap().problems, []);
    let db = options().open(&path).unwrap();
    for (key, there) in [("before", true), ("synced", true), ("buffered", true), ("loaded", false)]
    {
        assert_eq!(db.get(key).unwrap().is_some(), there, "{key}");
    }
}

/// Once a few large values filled what a small memory allows to wait for a flush, and each further one
/// waited for the device, though nobody had asked for a sync.
#[test]
fn buffered_large_values_do_not_wait_for_the_device() {
    let plan = Arc::new(FaultPlan::new(u64::MAX, false));
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let env = Arc::new(FaultEnv { real: OsEnv::new(), plan: Arc::clone(&plan) });
    let db = Db::open_in(env, &path, Options::new().memory(1 << 20)).unwrap();
    let value = |n: u32| vec![n as u8; 100_000];
    plan.stuck.store(true, Ordering::SeqCst);
    let (done, all_done) = std::sync::mpsc::channel();
    let writer = std::thread::spawn({
        let db = db.clone();
        move || {
            (0..400u32).try_for_each(|n| db.put(n.to_le_bytes(), value(n))).unwrap();
            done.send(()).unwrap();
        }
    });
    let written = all_done.recv_timeout(Duration::from_secs(60));
    plan.stuck.store(false, Ordering::SeqCst);
    writer.join().unwrap();
    assert!(written.is_ok(), "writes of 40 MB waited for a device that does not answer");
    db.wait_for_compactions().unwrap();
    db.close().unwrap();
    let db = Options::new().open(&path).unwrap();
    assert!(
        (0..400u32).all(|n| db.get(n.to_le_bytes()).unwrap().as_deref() == Some(&value(n)[..]))
    );
}

/// Somebody else could open the store while space was given back in files that were his by then.
#[test]
fn a_dropped_keyspace_keeps_the_directory_until_its_values_are_gone() {
    let plan = Arc::new(FaultPlan { stepped: true, ..FaultPlan::new(u64::MAX, false) });
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let env = Arc::new(FaultEnv { real: OsEnv::new(), plan: Arc::clone(&plan) });
    let db = Db::open_in(Arc::<FaultEnv>::clone(&env), &path, options()).unwrap();
    let gone = db.create_keyspace("gone", KeyspaceOptions::new()).unwrap();
    db.put("stays", [1; 20_000]).unwrap();
    gone.put("goes", [2; 20_000]).unwrap();
    db.flush().unwrap();
    drop(gone);
    plan.keeps.store(true, Ordering::SeqCst);
    let dropping = std::thread::spawn({
        let db = db.clone();
        move || db.drop_keyspace("gone")
    });
    while !plan.kept.load(Ordering::SeqCst) {
        if dropping.is_finished() {
            // Or the end of the store would wait for the device.
            plan.keeps.store(false, Ordering::SeqCst);
            panic!("nothing was given back");
        }
        std::thread::yield_now();
    }
    // As a close does in the end.
    db.store().let_go_of_dir();
    let lock = || env.lock(&path.join("LOCK"), LockMode::Exclusive);
    let early = lock().map(drop).map_err(|e| e.kind());
    plan.keeps.store(false, Ordering::SeqCst);
    dropping.join().unwrap().unwrap();
    assert_eq!(early, Err(io::ErrorKind::WouldBlock));
    drop(lock().unwrap());
}

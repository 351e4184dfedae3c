//! From open to close: who owns a directory, what goes on beside a close, where files go.
//!
//! Each test is named after what was wrong. Processes are this binary, run again in a role.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio, abort};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::time::{Duration, Instant};

use common::files;
use common::rng::Rng;
use esker::{
    Comparator, Compression, Db, Error, KeyOrder, KeyspaceOptions, Options, Result, WriteBatch,
};

/// Names and contents.
type Files = BTreeMap<String, Vec<u8>>;

const ROLE: &str = "ESKER_LIFE_ROLE";
const ROOT: &str = "ESKER_LIFE_ROOT";

fn small() -> Options {
    Options::new()
        .memory(1 << 20)
        .segment_size(64 << 10)
        .blob_threshold(1000)
        .compression(Compression::None)
}

/// In memory where there is a file system for that.
fn root() -> tempfile::TempDir {
    let shm = Path::new("/dev/shm");
    if shm.is_dir() { tempfile::tempdir_in(shm).unwrap() } else { tempfile::tempdir().unwrap() }
}

/// One test at a time: between fork and exec a new process holds what its parent has locked.
fn alone() -> std::sync::MutexGuard<'static, ()> {
    static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn start(role: &str, root: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture", "--test-threads=1"])
        .env(ROLE, role)
        .env(ROOT, root)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// What a process said until it ended: the words behind `say`.
fn said(child: &mut Child) -> Vec<String> {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let said = lines.filter_map(|l| Some(l.unwrap().split_once("say ")?.1.to_string())).collect();
    child.wait().unwrap();
    said
}

/// Not a test of its own: what the other tests run in another process.
#[test]
fn child() {
    let (Ok(role), Ok(root)) = (std::env::var(ROLE), std::env::var(ROOT)) else { return };
    let root = PathBuf::from(root);
    match role.as_str() {
        "load" => close_during_a_load_and_die(&root.join("db")),
        "chdir" => leave_the_directory(&root),
        "own" => own(&root, Duration::from_millis(1500)),
        "destroy" => destroy_again_and_again(&root, Duration::from_millis(1500)),
        "read" => read_and_write(&root.join("db")),
        "late" => read_as_the_thread_ends(&root.join("db")),
        other => panic!("no role {other}"),
    }
}

fn assert_sound(dir: &Path) {
    let report = Db::verify_path(dir).unwrap();
    assert_eq!(report.problems, []);
}

fn is_closed<T>(result: Result<T>) -> bool {
    matches!(result, Err(Error::Closed))
}

/// Entries of 1000 bytes each, one after the other.
fn entries(from: u32, count: u32) -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> {
    (from..from + count).map(|n| (n.to_be_bytes().to_vec(), vec![n as u8; 1000]))
}

// ---- the end of a thread ----

/// Reads and syncs when its thread has ended, and with it what the store keeps for the thread.
struct Late(std::cell::RefCell<Option<Db>>);

impl Drop for Late {
    fn drop(&mut self) {
        let db = self.0.take().unwrap();
        let value = db.get("packed").unwrap().unwrap();
        println!("say {} {:?}", value.len(), db.sync().is_ok());
    }
}

thread_local! {
    static LATE: Late = const { Late(std::cell::RefCell::new(None)) };
}

fn read_as_the_thread_ends(dir: &Path) {
    let db = small().compression(Compression::Zstd).open(dir).unwrap();
    let thread = std::thread::spawn(move || {
        // First here, last to go.
        LATE.with(|late| late.0.replace(Some(db.clone())));
        assert_eq!(db.get("packed").unwrap().unwrap().len(), 900);
        db.sync().unwrap();
    });
    thread.join().unwrap();
}

/// What the store kept for the thread was gone, which ended the process.
#[test]
fn a_value_is_read_and_the_log_synced_by_what_goes_with_a_thread() {
    let _alone = alone();
    let root = root();
    let db = small().compression(Compression::Zstd).open(root.path().join("db")).unwrap();
    db.put("packed", "abc".repeat(300)).unwrap();
    db.close().unwrap();
    let mut child = start("late", root.path());
    assert_eq!(said(&mut child), ["900 true"]);
    assert!(child.wait().unwrap().success());
}

// ---- the last handle ----

/// Compares bytes, and holds a store that it lets go of on the background thread.
#[derive(Default)]
struct Owner(std::sync::Mutex<Option<Db>>);

impl Comparator for Owner {
    fn name(&self) -> &str {
        "test.owner"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
        if std::thread::current().name() == Some("esker-worker") {
            drop(self.0.lock().unwrap().take());
        }
        a.cmp(b)
    }
}

/// It joined itself.
#[test]
fn the_background_thread_was_the_last_to_hold_a_store_and_closed_it() {
    let root = root();
    let dir = root.path().join("db");
    let owner = Arc::new(Owner::default());
    let order = || KeyOrder::Custom(Arc::<Owner>::clone(&owner));
    {
        // It is there before there is anything to compare, and not taken while it is written to.
        let mut held = owner.0.lock().unwrap();
        let db = held.insert(small().comparator(order()).open(&dir).unwrap());
        for n in 0..100u32 {
            db.put(n.to_be_bytes(), "value").unwrap();
        }
    }
    let deadline = Instant::now() + Duration::from_secs(30);
    let db = loop {
        match small().comparator(order()).open(&dir) {
            Ok(db) => break db,
            Err(e) => assert!(Instant::now() < deadline, "{e}"),
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    assert_eq!(db.iter().filter(|e| e.is_ok()).count(), 100);
    let stats = db.stats();
    assert_eq!(stats.keyspaces[0].memtable_entries, 0, "it was closed in order: {stats:?}");
}

// ---- close beside what takes long ----

/// A load whose entries come when they are asked for.
fn close_during_a_load_and_die(dir: &Path) {
    let db = small().open(dir).unwrap();
    db.put("before", "1").unwrap();
    let (send, receive) = mpsc::channel::<u32>();
    let loading = db.clone();
    let (through, passed) = mpsc::channel();
    std::thread::spawn(move || {
        let batches = receive.into_iter().flat_map(|from| {
            through.send(()).unwrap();
            entries(from, 8000)
        });
        let result = loading.bulk_load(batches);
        println!("say load {}", is_closed(result));
    });
    send.send(0).unwrap();
    passed.recv().unwrap();
    send.send(8000).unwrap();
    passed.recv().unwrap();
    db.close().unwrap();
    println!("say closed");
    send.send(16000).unwrap();
    // It is asked for no more, once the load cannot go on.
    let _ = passed.recv_timeout(Duration::from_millis(500));
    std::thread::sleep(Duration::from_millis(50));
    abort();
}

/// A table that a load had begun was younger than the clean close.
#[test]
fn a_store_opens_that_was_closed_during_a_bulk_load_by_a_process_that_then_ended() {
    let _alone = alone();
    let root = root();
    let mut child = start("load", root.path());
    let said = said(&mut child);
    assert_eq!(said.first().map(String::as_str), Some("closed"), "{said:?}");
    assert_sound(&root.path().join("db"));
    let db = small().open(root.path().join("db")).unwrap();
    assert_eq!(db.get("before").unwrap().unwrap(), b"1");
    assert_eq!(db.iter().count(), 1);
    let tables = files::ending(&root.path().join("db"), ".tbl").len();
    assert_eq!(tables, 1, "what the load left is gone");
}

#[test]
fn a_close_does_not_wait_for_the_iterator_of_a_load() {
    let _alone = alone();
    let root = root();
    let dir = root.path().join("db");
    let db = small().open(&dir).unwrap();
    let (send, receive) = mpsc::channel::<u32>();
    let (through, passed) = mpsc::channel();
    let loading = db.clone();
    let load = std::thread::spawn(move || {
        loading.bulk_load(receive.into_iter().flat_map(|from| {
            through.send(()).unwrap();
            entries(from, 3000)
        }))
    });
    send.send(0).unwrap();
    passed.recv().unwrap();
    let start = Instant::now();
    db.close().unwrap();
    assert!(start.elapsed() < Duration::from_secs(5));
    // The load has the directory, until its iterator lets go of it.
    assert!(matches!(small().open(&dir), Err(Error::Locked { .. })));
    send.send(3000).unwrap();
    drop(send);
    assert!(is_closed(load.join().unwrap()));
    assert_sound(&dir);
    let db = small().open(&dir).unwrap();
    assert_eq!(db.iter().count(), 0);
    assert_eq!(files::ending(&dir, ".tbl"), Vec::<PathBuf>::new());
}

#[test]
fn an_iterator_of_a_load_that_closes_the_store_ends_the_load() {
    let _alone = alone();
    let root = root();
    let dir = root.path().join("db");
    let db = small().open(&dir).unwrap();
    let mut other = Some(db.clone());
    let load = db.bulk_load(entries(0, 100).inspect(|_| {
        if let Some(db) = other.take() {
            db.close().unwrap();
        }
    }));
    assert!(is_closed(load));
    assert_sound(&dir);
    assert_eq!(small().open(&dir).unwrap().iter().count(), 0);
}

/// What takes long, over and over, until the store is closed. How often it was done.
fn until_closed(db: &Db, kind: u32, root: &Path, round: usize, seed: u64) -> Result<u32, String> {
    let mut rng = Rng::new(seed);
    for n in 0u32.. {
        let mut step = || -> Result<()> {
            match kind {
                0 => db.compact_range::<&str>(..),
                1 => db.checkpoint(root.join(format!("copy {round} {n}"))),
                2 => db.flush(),
                3 => db.wait_for_compactions(),
                4 => db.resume(),
                5 => db.verify().map(drop),
                6 => {
                    let name = format!("space {n}");
                    let space = db.create_keyspace(&name, KeyspaceOptions::new())?;
                    space.put("key", vec![1; 2000])?;
                    db.drop_keyspace(&name)
                }
                7 => db.bulk_load(entries(n % 100 * 1000, 200)).map(drop),
                8 => db.sync(),
                _ => {
                    let mut batch = WriteBatch::new();
                    for k in 0..20u32 {
                        let key = (k * 7919 + n).to_be_bytes();
                        batch.put(key, rng.bytes(if k % 10 == 0 { 1500 } else { 200 }));
                    }
                    batch.put(format!("writer {kind}"), n.to_be_bytes());
                    db.write(batch)
                }
            }
        };
        match step() {
            Ok(()) => {}
            Err(Error::Closed) => return Ok(n),
            Err(e) => return Err(format!("{kind}: {e}")),
        }
    }
    Ok(u32::MAX)
}

#[test]
fn whatever_runs_beside_a_close_ends_or_is_told_and_the_store_opens() {
    let _alone = alone();
    let seed = common::seed("beside a close");
    let mut rng = Rng::new(seed);
    let end = Instant::now() + Duration::from_secs(4);
    let mut rounds = 0;
    while Instant::now() < end {
        let root = root();
        let dir = root.path().join("db");
        let db = small().open(&dir).unwrap();
        db.put("first", "1").unwrap();
        let (mut wrong, mut done) = (Vec::new(), Vec::new());
        std::thread::scope(|scope| {
            let all: Vec<_> = (0..12)
                .map(|kind| {
                    let (db, root, seed) = (db.clone(), root.path(), rng.next());
                    scope.spawn(move || until_closed(&db, kind, root, rounds, seed))
                })
                .collect();
            std::thread::sleep(Duration::from_micros(rng.below(60_000) as u64));
            wrong.extend(db.close().err().map(|e| format!("close: {e}")));
            for thread in all {
                match thread.join().unwrap() {
                    Ok(n) => done.push(n),
                    Err(e) => wrong.push(e),
                }
            }
        });
        assert_eq!(wrong, Vec::<String>::new(), "round {rounds}");
        assert_sound(&dir);
        let db = small().open(&dir).unwrap();
        assert_eq!(db.get("first").unwrap().unwrap(), b"1");
        let report = db.verify().unwrap();
        assert_eq!(report.problems, []);
        for (writer, &done) in done.iter().enumerate().skip(9) {
            // Those that returned before the close, and those between its flush and its end.
            let Some(last) = done.checked_sub(1) else { continue };
            let found = db.get(format!("writer {writer}")).unwrap().expect("it was written");
            assert_eq!(found, last.to_be_bytes(), "round {rounds}, writer {writer}");
        }
        for copy in files::names(root.path()).iter().filter(|n| n.starts_with("copy")) {
            // One that failed leaves nothing.
            assert_sound(&root.path().join(copy));
        }
        rounds += 1;
    }
    println!("{rounds} closes");
}

// ---- after close ----

#[test]
fn a_closed_store_keeps_its_directory_from_nobody_though_clones_of_it_live() {
    let _alone = alone();
    let root = root();
    let dir = root.path().join("db");
    let db = small().open(&dir).unwrap();
    let space = db.create_keyspace("space", KeyspaceOptions::new()).unwrap();
    for n in 0..500u32 {
        db.put(n.to_be_bytes(), vec![1; 1200]).unwrap();
        space.put(n.to_be_bytes(), "x").unwrap();
    }
    let snapshot = db.snapshot();
    let view = db.at(&snapshot);
    let clone = db.clone();
    db.close().unwrap();

    let again = small().open(&dir).unwrap();
    again.put("new", "1").unwrap();
    again.wait_for_compactions().unwrap();

    assert!(is_closed(clone.get("new")));
    assert!(is_closed(clone.contains_key("new")));
    assert!(is_closed(clone.multi_get(&["new"])));
    assert!(is_closed(clone.put("a", "b")));
    assert!(is_closed(clone.delete("a")));
    assert!(is_closed(clone.iter().next().unwrap()));
    assert!(is_closed(clone.cursor().first()));
    assert!(is_closed(space.get("new")));
    assert!(is_closed(view.get("new")));
    assert!(is_closed(view.iter().next().unwrap()));
    assert!(is_closed(clone.flush()));
    assert!(is_closed(clone.wait_for_compactions()));
    assert!(is_closed(clone.sync()));
    assert!(is_closed(clone.resume()));
    assert!(is_closed(clone.verify()));
    assert!(is_closed(clone.compact_range::<&str>(..)));
    assert!(is_closed(clone.bulk_load([("a", "b")])));
    assert!(is_closed(clone.approximate_size::<&str>(..)));
    assert!(is_closed(clone.checkpoint(root.path().join("copy"))));
    assert!(is_closed(clone.create_keyspace("other", KeyspaceOptions::new())));
    assert!(is_closed(clone.drop_keyspace("space")));
    clone.stats();
    clone.clone().close().unwrap();
    drop((clone, space, view, snapshot));
    assert!(matches!(small().open(&dir), Err(Error::Locked { .. })), "the second one has it");
    assert_eq!(again.get("new").unwrap().unwrap(), b"1");
    assert_eq!(again.iter().count(), 501);
    again.close().unwrap();
    assert_sound(&dir);
}

/// Segments stayed mapped and their files open while a clone of a closed store lived: removing the directory
/// gave no space back.
#[test]
#[cfg(target_os = "linux")]
fn a_closed_store_has_no_file_open_and_none_mapped_though_clones_of_it_live() {
    let _alone = alone();
    for (flush, read_only) in [(true, false), (false, false), (true, true), (false, true)] {
        let root = root();
        let dir = root.path().canonicalize().unwrap().join("db");
        let mut db = small().flush_on_close(flush).open(&dir).unwrap();
        for n in 0..600u32 {
            db.put(n.to_be_bytes(), vec![n as u8; 3000]).unwrap();
        }
        if read_only {
            db.close().unwrap();
            db = small().read_only(true).open(&dir).unwrap();
        }
        let clone = db.clone();
        db.close().unwrap();
        let name = dir.to_str().unwrap();
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        let mapped: Vec<&str> = maps.lines().filter(|l| l.contains(name)).collect();
        assert!(mapped.is_empty(), "flush {flush}, read only {read_only}: {mapped:?}");
        let open = fs::read_dir("/proc/self/fd").unwrap().flatten();
        let open: Vec<PathBuf> = open
            .filter_map(|link| fs::read_link(link.path()).ok())
            .filter(|file| file.starts_with(&dir))
            .collect();
        assert!(open.is_empty(), "flush {flush}, read only {read_only}: {open:?}");
        assert!(matches!(clone.get(b"x"), Err(Error::Closed)));
        let db = small().open(&dir).unwrap();
        assert_eq!(db.iter().count(), 600);
    }
}

#[test]
fn what_a_reader_holds_keeps_the_directory_of_a_closed_store() {
    let _alone = alone();
    let root = root();
    let dir = root.path().join("db");
    let db = small().open(&dir).unwrap();
    db.put("key", "value").unwrap();
    let clone = db.clone();
    let slice = db.get("key").unwrap().unwrap();
    let mut cursor = db.cursor();
    db.close().unwrap();
    assert!(matches!(small().open(&dir), Err(Error::Locked { .. })));
    assert!(cursor.first().unwrap());
    drop(cursor);
    assert!(matches!(small().open(&dir), Err(Error::Locked { .. })));
    assert_eq!(slice, b"value");
    drop(slice);
    small().open(&dir).unwrap();
    drop(clone);
}

// ---- one owner ----

/// Opens, and proves that nobody else has the store, until the time is up.
fn own(root: &Path, how_long: Duration) {
    let dir = root.join("db");
    let token = root.join("owner");
    let mut rng = Rng::new(u64::from(std::process::id()));
    let (end, mut won) = (Instant::now() + how_long, 0);
    while Instant::now() < end {
        if let Some(wrong) = open_and_own(&dir, &token, &mut rng, &mut won) {
            println!("say {wrong}");
        }
    }
    println!("say won {won}");
}

fn open_and_own(dir: &Path, token: &Path, rng: &mut Rng, won: &mut usize) -> Option<String> {
    // Others have their turn, too.
    std::thread::sleep(Duration::from_micros(rng.below(2000) as u64));
    let db = match small().open(dir) {
        Ok(db) => db,
        Err(Error::Locked { .. }) => return None,
        Err(e) => return Some(format!("open: {e}")),
    };
    *won += 1;
    // Made by nobody else, as long as there is one owner.
    if let Err(e) = fs::OpenOptions::new().write(true).create_new(true).open(token) {
        return Some(format!("two owners: {e}"));
    }
    let used = (|| {
        for n in 0..rng.below(4) as u32 {
            db.put(n.to_be_bytes(), vec![7; 30_000])?;
        }
        db.put("last", "1")?;
        if rng.one_in(8) {
            db.flush()?;
        }
        assert_eq!(db.get("last")?.unwrap(), b"1");
        Ok::<(), Error>(())
    })();
    let files = ["CURRENT", "LOCK"].iter().filter(|n| !dir.join(n).exists()).count();
    fs::remove_file(token).unwrap();
    let closed = db.close();
    let wrong = used.and(closed).err().map(|e| format!("use: {e}"));
    wrong.or((files > 0).then(|| "files of an open store are gone".to_string()))
}

fn destroy_again_and_again(root: &Path, how_long: Duration) {
    let end = Instant::now() + how_long;
    let mut rng = Rng::new(u64::from(std::process::id()));
    let mut destroyed = 0;
    while Instant::now() < end {
        std::thread::sleep(Duration::from_micros(rng.below(500) as u64));
        let there = root.join("db").exists();
        match Db::destroy(root.join("db")) {
            Ok(()) => destroyed += u32::from(there),
            Err(Error::Locked { .. } | Error::NotAStore { .. }) => {}
            Err(e) => println!("say destroy: {e}"),
        }
    }
    println!("say destroyed {destroyed}");
}

#[test]
fn of_processes_that_open_and_destroy_one_store_no_two_own_it() {
    let _alone = alone();
    let root = root();
    let roles = ["own", "own", "own", "destroy", "destroy"];
    let children: Vec<_> = roles.iter().map(|role| start(role, root.path())).collect();
    let said: Vec<_> = children.into_iter().map(|mut c| said(&mut c)).collect();
    println!("{said:?}");
    for lines in &said {
        assert_eq!(lines.len(), 1, "{lines:?}");
    }
    drop(fs::remove_file(root.path().join("owner")));
    let db = small().open(root.path().join("db")).unwrap();
    db.close().unwrap();
}

/// It was said that somebody removed the store each time, after as long as that is waited for.
#[test]
fn an_open_through_a_link_that_leads_nowhere_blamed_others() {
    let root = root();
    let link = root.path().join("link");
    std::os::unix::fs::symlink(root.path().join("nowhere"), &link).unwrap();
    let Err(Error::Io { path, source, .. }) = Db::open(&link) else { panic!("it opened") };
    assert_eq!((path, source.kind()), (link.clone(), std::io::ErrorKind::NotFound));
    assert!(source.to_string().contains("link"), "{source}");
    fs::create_dir(root.path().join("nowhere")).unwrap();
    Db::open(&link).unwrap().put("a", "b").unwrap();
}

#[test]
fn of_threads_that_open_and_destroy_one_store_no_two_own_it() {
    let _alone = alone();
    let root = root();
    let (dir, token) = (root.path().join("db"), root.path().join("owner"));
    let link = root.path().join("link");
    std::os::unix::fs::symlink(&dir, &link).unwrap();
    let end = Instant::now() + Duration::from_millis(1500);
    let (won, destroyed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let owners = (0..3).map(|n| {
            let (dir, token, won) = (&dir, &token, &won);
            scope.spawn(move || {
                let mut rng = Rng::new(n);
                let (mut mine, mut wrong) = (0, Vec::new());
                while Instant::now() < end {
                    wrong.extend(open_and_own(dir, token, &mut rng, &mut mine));
                }
                won.fetch_add(mine, Ordering::Relaxed);
                wrong
            })
        });
        let destroyers = (0..2).map(|n| {
            let (dir, destroyed) = (if n == 0 { &dir } else { &link }, &destroyed);
            scope.spawn(move || {
                let (mut rng, mut wrong) = (Rng::new(100 + n), Vec::new());
                while Instant::now() < end {
                    std::thread::sleep(Duration::from_micros(rng.below(500) as u64));
                    let there = dir.exists();
                    match Db::destroy(dir) {
                        Ok(()) => drop(destroyed.fetch_add(usize::from(there), Ordering::Relaxed)),
                        Err(Error::Locked { .. } | Error::NotAStore { .. }) => {}
                        Err(e) => wrong.push(format!("destroy: {e}")),
                    }
                }
                wrong
            })
        });
        let all: Vec<_> = owners.chain(destroyers).collect();
        all.into_iter().flat_map(|t| t.join().unwrap()).collect()
    });
    println!("won {won:?}, destroyed {destroyed:?}");
    assert_eq!(wrong, Vec::<String>::new());
    assert!(won.into_inner() > 0);
}

#[test]
fn a_store_has_one_owner_by_whatever_name_it_is_opened() {
    let _alone = alone();
    let root = root();
    let (dir, moved) = (root.path().join("db"), root.path().join("moved"));
    let db = small().open(&dir).unwrap();
    db.put("key", "1").unwrap();
    fs::create_dir(root.path().join("twin")).unwrap();
    for name in files::names(&dir) {
        fs::hard_link(dir.join(&name), root.path().join("twin").join(&name)).unwrap();
    }
    assert!(matches!(small().open(root.path().join("twin")), Err(Error::Locked { .. })));
    fs::rename(&dir, &moved).unwrap();
    assert!(matches!(small().open(&moved), Err(Error::Locked { .. })));
    fs::rename(&moved, &dir).unwrap();
    db.close().unwrap();
    fs::rename(&dir, &moved).unwrap();
    assert_eq!(small().open(&moved).unwrap().get("key").unwrap().unwrap(), b"1");
}

/// What is done by path was done in the directory that had come in its place.
#[test]
fn a_store_whose_directory_was_moved_leaves_the_one_in_its_place_alone() {
    let _alone = alone();
    let root = root();
    let (dir, moved) = (root.path().join("db"), root.path().join("moved"));
    let db = small().open(&dir).unwrap();
    for n in 0..100u32 {
        db.put(n.to_be_bytes(), vec![1; 500]).unwrap();
    }
    db.flush().unwrap();
    fs::rename(&dir, &moved).unwrap();
    let other = small().open(&dir).unwrap();
    for n in 0..1000u32 {
        other.put(n.to_be_bytes(), vec![2; 500]).unwrap();
    }
    other.wait_for_compactions().unwrap();
    other.close().unwrap();
    let before = files::contents(&dir);
    let mut refused = None;
    for n in 0..1000u32 {
        refused = refused.or(db.put(n.to_be_bytes(), vec![3; 500]).err());
    }
    let refused = refused.expect("a segment is full").to_string();
    assert!(refused.contains("was moved or replaced"), "{refused}");
    // The background thread may have found it first.
    let stopped = match db.flush().unwrap_err() {
        e @ Error::Halted { .. } => e,
        e => Error::Halted { cause: e.into() },
    };
    assert!(!stopped.to_string().contains("resume()"), "nothing resumes here: {stopped}");
    drop((db.flush(), db.compact_range::<&str>(..), db.bulk_load(entries(0, 10)), db.resume()));
    drop((db.wait_for_compactions(), db.create_keyspace("space", KeyspaceOptions::new())));
    drop(db.close());
    assert!(before == files::contents(&dir), "the other store was touched");
    assert_sound(&dir);
    assert_sound(&moved);
    assert!(small().open(&moved).unwrap().iter().count() >= 100);
}

/// Whoever took `LOCK` for left over, as people do, opened the store beside its writer, whose writes were lost.
#[test]
fn a_store_whose_lock_file_was_removed_was_opened_twice() {
    let _alone = alone();
    let root = root();
    let dir = root.path().join("db");
    let db = small().open(&dir).unwrap();
    db.put("key", "1").unwrap();
    fs::remove_file(dir.join("LOCK")).unwrap();
    for refused in [small().open(&dir).err(), Db::destroy(&dir).err(), Db::repair(&dir).err()] {
        assert!(matches!(refused, Some(Error::Locked { .. })), "{refused:?}");
    }
    // The store is where it was: it makes files, and removes some.
    for n in 0..1000u32 {
        db.put(n.to_be_bytes(), vec![1; 500]).unwrap();
    }
    db.put_with("key", "2", esker::Durability::Synced).unwrap();
    db.compact_range::<&str>(..).unwrap();
    db.close().unwrap();
    let again = small().open(&dir).unwrap();
    assert_eq!(again.get("key").unwrap().unwrap(), b"2");
    assert_eq!(again.iter().count(), 1001);
}

/// Moves a store away and has another take its place, with more tables: its files.
fn take_the_place_of(dir: &Path) -> Files {
    fs::rename(dir, dir.with_extension("moved")).unwrap();
    let other = small().table_size(64 << 10).open(dir).unwrap();
    other.bulk_load(entries(0, 12_000)).unwrap();
    other.close().unwrap();
    files::contents(dir)
}

/// The load gave its tables up by their paths.
#[test]
fn a_load_under_way_removed_tables_of_the_store_that_took_the_place_of_its_own() {
    let _alone = alone();
    let root = root();
    let dir = root.path().join("db");
    let db = small().table_size(64 << 10).open(&dir).unwrap();
    let mut before = None;
    let rows = entries(0, 5000).enumerate().map(|(n, entry)| {
        if n == 2500 {
            assert!(!files::ending(&dir, ".tbl").is_empty(), "no table of the load's is there");
            before = Some(take_the_place_of(&dir));
        }
        entry
    });
    let refused = db.bulk_load(rows).unwrap_err();
    assert!(matches!(refused, Error::DirectoryMoved { .. }), "{refused}");
    drop(db);
    assert!(before == Some(files::contents(&dir)), "the other store was touched");
    assert_sound(&dir);
    // What it made stays until its own store is opened where it is now.
    let moved = small().open(dir.with_extension("moved")).unwrap();
    assert!(moved.iter().next().is_none());
    assert!(files::ending(&dir.with_extension("moved"), ".tbl").is_empty());
}

/// Compares bytes. When a table is made after [`armed`](Replacing::armed) is set, the store's directory is moved and another
/// store takes its place.
#[derive(Default)]
struct Replacing {
    armed: std::sync::Mutex<Option<(PathBuf, usize)>>,
    files: std::sync::Mutex<Option<Files>>,
}

impl Comparator for Replacing {
    fn name(&self) -> &str {
        "test.replacing"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
        let mut armed = self.armed.lock().unwrap();
        if let Some((dir, _)) =
            armed.take_if(|(dir, tables)| files::ending(dir, ".tbl").len() > *tables)
        {
            let taken = std::thread::spawn(move || take_the_place_of(&dir)).join().unwrap();
            *self.files.lock().unwrap() = Some(taken);
        }
        a.cmp(b)
    }
}

/// As a load did.
#[test]
fn a_compaction_under_way_removed_tables_of_the_store_that_took_the_place_of_its_own() {
    let _alone = alone();
    let root = root();
    let dir = root.path().join("db");
    let replacing = Arc::new(Replacing::default());
    let order = KeyOrder::Custom(Arc::<Replacing>::clone(&replacing));
    let db = small().table_size(64 << 10).comparator(order).open(&dir).unwrap();
    for _ in 0..2 {
        db.bulk_load(entries(0, 500)).unwrap();
    }
    let tables = files::ending(&dir, ".tbl").len();
    *replacing.armed.lock().unwrap() = Some((dir.clone(), tables));
    let refused = db.compact_range::<&str>(..).unwrap_err();
    assert!(refused.to_string().contains("was moved or replaced"), "{refused}");
    drop(db);
    assert!(*replacing.files.lock().unwrap() == Some(files::contents(&dir)), "it was touched");
    assert_sound(&dir);
}

/// All was in tables already, so nothing made a file, which is where the move was noticed; and the other store's
/// tables have the same names.
#[test]
fn a_checkpoint_of_a_store_whose_directory_was_moved_takes_no_files_of_another() {
    let _alone = alone();
    let root = root();
    let (dir, moved) = (root.path().join("db"), root.path().join("moved"));
    let filled = |value: u8| {
        let db = small().open(&dir).unwrap();
        db.put("key", vec![value; 500]).unwrap();
        db.flush().unwrap();
        db
    };
    let db = filled(1);
    fs::rename(&dir, &moved).unwrap();
    let other = filled(2);
    let copy = root.path().join("copy");
    let refused = db.checkpoint(&copy).unwrap_err();
    assert!(matches!(refused, Error::DirectoryMoved { .. }), "{refused}");
    assert!(!copy.exists());
    other.checkpoint(&copy).unwrap();
}

/// Whatever had a name of a store's in a directory `lost` went when the one above became a store, or was destroyed.
#[test]
fn a_directory_lost_that_is_another_store_is_left_alone() {
    let _alone = alone();
    let root = root();
    let (dir, elsewhere) = (root.path().join("db"), root.path().join("elsewhere"));
    let fill = |dir: &Path| {
        let db = small().open(dir).unwrap();
        db.put("key", "value").unwrap();
        db.close().unwrap();
        files::contents(dir)
    };
    let inner = fill(&dir.join("lost"));
    fill(&dir);
    assert!(files::contents(&dir.join("lost")) == inner);
    Db::destroy(&dir).unwrap();
    assert!(files::contents(&dir.join("lost")) == inner);
    fs::remove_dir_all(&dir).unwrap();

    let outer = fill(&elsewhere);
    fill(&dir);
    fs::remove_file(elsewhere.join("CURRENT")).unwrap();
    std::os::unix::fs::symlink(&elsewhere, dir.join("lost")).unwrap();
    Db::destroy(&dir).unwrap();
    assert_eq!(files::contents(&elsewhere).len(), outer.len() - 1);
}

/// What repair put aside of a store is no part of the one that is made in its place.
#[test]
fn what_was_put_aside_stays_when_a_store_is_made_anew() {
    let _alone = alone();
    let root = root();
    let dir = root.path().join("db");
    fs::create_dir_all(dir.join("lost")).unwrap();
    fs::write(dir.join("lost/0000000007.tbl"), "damaged").unwrap();
    small().open(&dir).unwrap().close().unwrap();
    assert_eq!(files::names(&dir.join("lost")), ["0000000007.tbl"]);
    Db::destroy(&dir).unwrap();
    assert!(!dir.exists());
}

/// It was a damaged store for good.
#[test]
fn a_creation_cut_off_beside_a_file_of_the_users_begins_again() {
    let _alone = alone();
    let root = root();
    let dir = root.path().join("db");
    small().open(&dir).unwrap().close().unwrap();
    for name in files::names(&dir) {
        if !name.starts_with("MANIFEST") {
            fs::remove_file(dir.join(name)).unwrap();
        }
    }
    fs::write(dir.join("notes.txt"), "mine").unwrap();
    let db = small().open(&dir).unwrap();
    db.put("key", "value").unwrap();
    db.close().unwrap();
    assert_eq!(fs::read(dir.join("notes.txt")).unwrap(), b"mine");
}

// ---- readers ----

/// Says whether the store opens for reading, and for writing.
fn read_and_write(dir: &Path) {
    let read = small().read_only(true).open(dir).and_then(|db| db.get("key").map(|v| v.is_some()));
    println!("say {}", read.is_ok_and(|found| found));
    println!("say {}", Db::verify_path(dir).is_ok());
    println!("say {}", small().open(dir).is_ok());
}

#[test]
fn readers_of_one_store_do_not_exclude_each_other() {
    let _alone = alone();
    let root = root();
    let dir = root.path().join("db");
    let reader = || small().read_only(true).open(&dir);
    let db = small().open(&dir).unwrap();
    db.put("key", "1").unwrap();
    let refused = reader().unwrap_err();
    assert!(matches!(refused, Error::Locked { .. }));
    assert!(refused.to_string().contains("open for writing"), "{refused}");
    assert_eq!(said(&mut start("read", root.path())), ["false", "false", "false"]);
    // Also one that was not closed.
    let killed = root.path().join("killed");
    files::copy_as_killed(&dir, &killed);
    db.close().unwrap();

    for dir in [&dir, &killed] {
        let reader = || small().read_only(true).open(dir);
        let (one, two) = (reader().unwrap(), reader().unwrap());
        assert_eq!(one.get("key").unwrap().unwrap(), b"1");
        assert_eq!(two.get("key").unwrap().unwrap(), b"1");
        assert_sound(dir);
        one.close().unwrap();
        for refused in [
            small().open(dir).unwrap_err(),
            Db::destroy(dir).unwrap_err(),
            Db::repair(dir).unwrap_err(),
        ] {
            assert!(matches!(refused, Error::Locked { .. }));
            assert!(refused.to_string().contains("open for reading"), "{refused}");
        }
        two.close().unwrap();
    }
    let one = reader().unwrap();
    assert_eq!(said(&mut start("read", root.path())), ["true", "true", "false"]);
    drop(one);
    assert_eq!(said(&mut start("read", root.path())), ["true", "true", "true"]);
}

// ---- checkpoints ----

#[test]
fn of_checkpoints_into_one_directory_one_wins_and_its_copy_is_whole() {
    let _alone = alone();
    let root = root();
    let db = small().open(root.path().join("db")).unwrap();
    for n in 0..300u32 {
        db.put(n.to_be_bytes(), vec![1; if n % 3 == 0 { 1500 } else { 100 }]).unwrap();
    }
    db.flush().unwrap();
    for round in 0..25 {
        let dir = root.path().join(format!("copies/{round}"));
        let barrier = Barrier::new(3);
        let results: Vec<_> = std::thread::scope(|scope| {
            let all: Vec<_> = (0..3)
                .map(|_| {
                    scope.spawn(|| {
                        barrier.wait();
                        db.checkpoint(&dir)
                    })
                })
                .collect();
            all.into_iter().map(|t| t.join().unwrap()).collect()
        });
        let won = results.iter().filter(|r| r.is_ok()).count();
        assert_eq!(won, 1, "round {round}: {results:?}");
        assert_sound(&dir);
        assert_eq!(small().open(&dir).unwrap().iter().count(), 300);
    }
}

/// A store is opened in the directory just when a checkpoint has made it.
#[test]
fn a_checkpoint_that_fails_takes_nothing_from_the_store_that_came_before_it() {
    let _alone = alone();
    let root = root();
    let db = small().open(root.path().join("db")).unwrap();
    for n in 0..300u32 {
        db.put(n.to_be_bytes(), vec![1; 500]).unwrap();
    }
    db.flush().unwrap();
    for round in 0..40 {
        let dir = root.path().join(format!("{round}"));
        let done = AtomicBool::new(false);
        let (copied, opened) = std::thread::scope(|scope| {
            let opener = scope.spawn(|| {
                while !done.load(Ordering::Relaxed) && !dir.exists() {
                    std::hint::spin_loop();
                }
                let opened = small().open(&dir)?;
                opened.put("mine", "1")?;
                opened.flush()?;
                Ok::<Db, Error>(opened)
            });
            let copied = db.checkpoint(&dir);
            done.store(true, Ordering::Relaxed);
            (copied, opener.join().unwrap())
        });
        match (copied, opened) {
            (Err(_), Ok(opened)) => assert_eq!(opened.get("mine").unwrap().unwrap(), b"1"),
            (Ok(()), Err(Error::Locked { .. })) => {}
            (Ok(()), Ok(opened)) => assert_eq!(opened.iter().count(), 301),
            (copied, opened) => panic!("round {round}: {copied:?} {:?}", opened.map(|_| ())),
        }
        assert_sound(&dir);
    }
}

// ---- another working directory ----

/// Opens by a relative path, then works elsewhere.
fn leave_the_directory(root: &Path) {
    let (here, there) = (root.join("here"), root.join("there"));
    std::env::set_current_dir(&here).unwrap();
    let db = small().open("db").unwrap();
    std::env::set_current_dir(&there).unwrap();
    for n in 0..2000u32 {
        db.put(n.to_be_bytes(), vec![1; 500]).unwrap();
    }
    db.wait_for_compactions().unwrap();
    db.checkpoint("copy").unwrap();
    db.bulk_load(entries(10_000, 50)).unwrap();
    db.compact_range::<&str>(..).unwrap();
    db.close().unwrap();
    println!("say done");
}

#[test]
fn a_store_opened_by_a_relative_path_stays_where_it_is_when_the_process_changes_its_directory() {
    let _alone = alone();
    let root = root();
    let (here, there) = (root.path().join("here"), root.path().join("there"));
    fs::create_dir_all(&here).unwrap();
    // Another store of the same name, with files of the same names.
    let other = small().open(there.join("db")).unwrap();
    for n in 0..2000u32 {
        other.put(n.to_be_bytes(), vec![2; 500]).unwrap();
    }
    other.close().unwrap();
    for n in 0..20 {
        fs::write(there.join(format!("db/{n:010}.old")), "mine").unwrap();
    }
    let before = files::contents(&there.join("db"));
    let mut child = start("chdir", root.path());
    assert_eq!(said(&mut child), ["done"]);
    assert!(before == files::contents(&there.join("db")), "the other store was touched");
    assert_sound(&here.join("db"));
    assert_eq!(small().open(here.join("db")).unwrap().iter().count(), 2050);
    assert_eq!(small().open(there.join("copy")).unwrap().iter().count(), 2000);
}

// ---- sequences ----

/// The sequence of a copy of the store as a kill would leave it, once it is opened.
fn sequence_after_a_kill(dir: &Path, killed: &Path) -> u64 {
    files::copy_as_killed(dir, killed);
    let db = small().open(killed).unwrap();
    let sequence = db.snapshot().sequence();
    drop(db);
    fs::remove_dir_all(killed).unwrap();
    sequence
}

#[test]
fn sequences_do_not_fall_when_a_settled_store_is_killed() {
    let _alone = alone();
    let root = root();
    let (dir, killed) = (root.path().join("db"), root.path().join("killed"));
    let db = small().open(&dir).unwrap();
    let check = |what: &str| {
        let sequence = db.snapshot().sequence();
        let after = sequence_after_a_kill(&dir, &killed);
        assert!(after >= sequence, "{what}: {sequence}, after a kill {after}");
        let copy = root.path().join(what);
        db.checkpoint(&copy).unwrap();
        let copied = small().open(&copy).unwrap();
        let after = copied.snapshot().sequence();
        assert!(after >= sequence, "{what}: {sequence}, of a checkpoint {after}");
        copied.close().unwrap();
        Db::repair(&copy).unwrap();
        let after = small().open(&copy).unwrap().snapshot().sequence();
        assert!(after >= sequence, "{what}: {sequence}, after a repair {after}");
    };
    for n in 0..200u32 {
        db.put(n.to_be_bytes(), "x").unwrap();
    }
    db.wait_for_compactions().unwrap();
    check("settled");
    for n in 0..200u32 {
        db.delete(n.to_be_bytes()).unwrap();
    }
    db.wait_for_compactions().unwrap();
    check("emptied");
    db.bulk_load(entries(0, 10)).unwrap();
    check("loaded");
    db.compact_range::<&str>(..).unwrap();
    check("compacted");
    let space = db.create_keyspace("space", KeyspaceOptions::new()).unwrap();
    for n in 0..100u32 {
        space.put(n.to_be_bytes(), "x").unwrap();
    }
    db.drop_keyspace("space").unwrap();
    check("dropped");
    db.wait_for_compactions().unwrap();
    check("dropped and settled");
    db.put("key", "x").unwrap();
    db.delete("key").unwrap();
    check("not flushed");
    db.close().unwrap();
}

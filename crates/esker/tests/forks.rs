//! A store in a child that was forked while it was open: the files, the lock and the background thread are its parent's.
//!
//! Each test is named after what was wrong. The process that forks is this binary, run again: it has no other threads but the
//! store's.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio, abort};
use std::sync::atomic::{AtomicBool, Ordering};

use esker::{Compression, Db, Error, KeyspaceOptions, Options, WriteBatch};

const ROLE: &str = "ESKER_FORKS_ROLE";
const ROOT: &str = "ESKER_FORKS_ROOT";

/// Runs a role in a process of its own.
fn run(role: &str, root: &Path) -> std::process::Output {
    start(role, root).output().unwrap()
}

fn start(role: &str, root: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "child", "--nocapture", "--test-threads=1"])
        .env(ROLE, role)
        .env(ROOT, root);
    command
}

/// Not a test of its own: what the other tests run in another process.
#[test]
fn child() {
    let (Ok(role), Ok(root)) = (std::env::var(ROLE), std::env::var(ROOT)) else { return };
    let root = PathBuf::from(root);
    match role.as_str() {
        "write" => write_on_both_sides(&root.join("db")),
        "leave" => leave_a_child(&root),
        "refuse" => ask_for_everything(&root),
        "snapshots" => take_snapshots_on_both_sides(&root),
        other => panic!("no role {other}"),
    }
}

fn in_a_child(part: impl FnOnce() -> Result<(), String>) {
    beside_a_child(part, || ());
}

/// Forks; what the child's part returns, its exit says. The parent has something to do meanwhile.
fn beside_a_child(part: impl FnOnce() -> Result<(), String>, meanwhile: impl FnOnce()) {
    // SAFETY: the child runs what it is given and ends, without going back to what its parent was doing.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0);
    if pid == 0 {
        // One that waits for a thread which it does not have is not waited for.
        // SAFETY: it touches nothing.
        unsafe { libc::alarm(60) };
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(part));
        let done = done.unwrap_or_else(|_| Err("it panicked".into()));
        if let Err(what) = &done {
            eprintln!("in the child: {what}");
        }
        // SAFETY: it ends the process.
        unsafe { libc::_exit(i32::from(done.is_err())) }
    }
    meanwhile();
    let mut status = 0;
    // SAFETY: the status is written to a variable of ours.
    assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "the child: {status:#x}");
}

/// What a refusal is like.
fn is_refused<T>(what: &str, asked: Result<T, Error>) -> Result<(), String> {
    match asked {
        Err(e @ Error::Closed) if e.to_string().contains("forked") => Ok(()),
        Err(e) => Err(format!("{what}: {e}")),
        Ok(_) => Err(format!("{what} was done")),
    }
}

const PUTS: u32 = 200;

fn write_on_both_sides(dir: &Path) -> ! {
    let db = Options::new().compression(Compression::None).open(dir).unwrap();
    let put = |db: &Db, who: &str, n: u32| db.put(format!("{who} {n}"), who.repeat(20));
    (0..PUTS).for_each(|n| put(&db, "before", n).unwrap());
    let told = dir.with_file_name("told");
    let write = || {
        while !told.exists() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        (0..PUTS).for_each(|n| drop(put(&db, "the child", n)));
        // What closes a store at the end of a process does so there too.
        drop(db.clone().close());
        Ok(())
    };
    beside_a_child(write, || {
        (0..PUTS).for_each(|n| put(&db, "beside", n).unwrap());
        fs::write(&told, "").unwrap();
    });
    (0..PUTS).for_each(|n| put(&db, "after", n).unwrap());
    println!("acknowledged");
    abort()
}

/// The guard was each binding's, for forks that its language makes: a child that C forked wrote into its parent's log, where its
/// parent wrote too, and both were told that all is well.
#[test]
fn a_child_that_c_forked_wrote_over_its_parents_log() {
    let root = tempfile::tempdir().unwrap();
    let out = run("write", root.path());
    let told = format!("{out:?}");
    assert!(told.contains("acknowledged"), "{told}");
    let dir = root.path().join("db");
    assert_eq!(Db::verify_path(&dir).unwrap().problems, []);
    let db = Db::open(&dir).unwrap();
    for who in ["before", "beside", "after"] {
        for n in 0..PUTS {
            let value = db.get(format!("{who} {n}")).unwrap();
            assert_eq!(value.as_deref(), Some(who.repeat(20).as_bytes()), "{who} {n}");
        }
    }
    assert_eq!(db.iter().count(), 3 * PUTS as usize);
}

fn ask_for_everything(root: &Path) {
    let dir = root.join("db");
    let db = Db::open(&dir).unwrap();
    db.put("key", "value").unwrap();
    db.flush().unwrap();
    db.put("later", "value").unwrap();
    let other = db.create_keyspace("other", KeyspaceOptions::new()).unwrap();
    let snapshot = db.snapshot();
    let mut kept = db.cursor();
    kept.first().unwrap();
    let mut batch = WriteBatch::new();
    batch.put("batch", "value");
    // A load whose entries fork: the child goes on in it.
    let entries = (0..3u32).map(|n| {
        if n == 1 {
            // SAFETY: as in `in_a_child`; the child ends below.
            let pid = unsafe { libc::fork() };
            if pid > 0 {
                let mut status = 0;
                // SAFETY: the status is written to a variable of ours.
                assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
                assert_eq!(status, 0);
            }
        }
        (format!("load {n}"), "value")
    });
    let me = std::process::id();
    let loaded = db.bulk_load(entries);
    if std::process::id() != me {
        let refused = is_refused("a load under way", loaded);
        // SAFETY: it ends the process.
        unsafe { libc::_exit(i32::from(refused.is_err())) }
    }
    assert_eq!(loaded.unwrap(), 3);
    assert_eq!(db.iter().count(), 5);
    in_a_child(|| {
        let all = [
            ("a put", db.put("a", "b")),
            ("a put in a keyspace", other.put("a", "b")),
            ("a synced put", db.put_with("a", "b", esker::Durability::Synced)),
            ("a delete", db.delete("key")),
            ("a batch", db.write(&batch)),
            ("an empty batch", db.write(WriteBatch::new())),
            ("a load", db.bulk_load([("a", "b")]).map(drop)),
            ("a keyspace", db.create_keyspace("more", KeyspaceOptions::new()).map(drop)),
            ("a keyspace that is dropped", db.drop_keyspace("other")),
            ("a flush", db.flush()),
            ("a wait for compactions", db.wait_for_compactions()),
            ("a compaction", db.compact_range::<&[u8]>(..)),
            ("a checkpoint", db.checkpoint(root.join("copy"))),
            ("a resume", db.resume()),
            ("a sync", db.sync()),
            ("a verification", db.verify().map(drop)),
            ("a size", db.approximate_size::<&[u8]>(..).map(drop)),
            ("a get", db.get("key").map(drop)),
            ("a get at a snapshot", db.at(&snapshot).get("key").map(drop)),
            ("several gets", db.multi_get(&["key", "later"]).map(drop)),
            ("a question for a key", db.contains_key("later").map(drop)),
            ("a walk", db.iter().next().unwrap().map(drop)),
            ("a range", db.range("a"..).next().unwrap().map(drop)),
            ("a prefix", other.prefix("a").next().unwrap().map(drop)),
        ];
        all.into_iter().try_for_each(|(what, asked)| is_refused(what, asked))?;
        let mut cursor = db.cursor();
        is_refused("a cursor", cursor.first())?;
        is_refused("a cursor that was kept", kept.refresh())?;
        // A store of its own is no child's of anybody.
        let own = Db::open(root.join("own")).map_err(|e| e.to_string())?;
        own.put("a", "b").map_err(|e| e.to_string())?;
        in_a_child(|| is_refused("a put of a grandchild", own.put("e", "f")));
        own.put("c", "d").map_err(|e| e.to_string())?;
        own.close().map_err(|e| e.to_string())?;
        match db.get("key") {
            Err(Error::Closed) => Ok(()),
            got => Err(format!("{got:?} after a store of its own")),
        }
    });
    assert_eq!(db.verify().unwrap().problems, []);
    assert!(!root.join("copy").exists());
    db.put("a", "b").unwrap();
    drop(kept);
    db.close().unwrap();
    assert_eq!(Db::verify_path(&dir).unwrap().problems, []);
    assert_eq!(Db::open(root.join("own")).unwrap().iter().count(), 2);
    println!("done");
}

fn leave_a_child(root: &Path) -> ! {
    let db = Db::open(root.join("db")).unwrap();
    let reads = Db::open(root.join("reads")).unwrap();
    reads.close().unwrap();
    let _reads = Options::new().read_only(true).open(root.join("reads")).unwrap();
    db.put("key", "value").unwrap();
    let wait = || {
        fs::write(root.join("lives"), "").unwrap();
        while !root.join("end").exists() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        // The file in the place of the lock's is closed with it.
        drop(db.clone().close());
        fs::write(root.join("ended"), "").map_err(|e| e.to_string())
    };
    beside_a_child(wait, || {
        while !root.join("lives").exists() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        // It has let go of nothing that is this process's.
        assert!(matches!(Db::open(root.join("db")), Err(Error::Locked { .. })));
        abort()
    });
    unreachable!()
}

/// The lock is of the open file, which a child has too: nobody could open the store until that ended.
#[test]
fn a_child_kept_the_lock_of_a_parent_that_was_killed() {
    let root = tempfile::tempdir().unwrap();
    let mut role = start("leave", root.path());
    role.stdout(Stdio::null()).stderr(Stdio::null());
    let status = role.status().unwrap();
    let db = Db::open(root.path().join("db"));
    let reads = Db::open(root.path().join("reads"));
    fs::write(root.path().join("end"), "").unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(libc::SIGABRT));
    assert_eq!(db.unwrap().get("key").unwrap().as_deref(), Some(&b"value"[..]));
    reads.unwrap();
    let until = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while !root.path().join("ended").exists() {
        assert!(std::time::Instant::now() < until, "the child did not end");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

#[test]
fn a_forked_child_was_not_refused() {
    let root = tempfile::tempdir().unwrap();
    let out = run("refuse", root.path());
    assert!(out.status.success() && format!("{out:?}").contains("done"), "{out:?}");
}

/// A thread of the parent's had the list of snapshots at the moment of the fork, and its child waited for it.
#[test]
fn a_child_that_took_or_let_go_of_a_snapshot_waited_for_ever() {
    let root = tempfile::tempdir().unwrap();
    let done = run("snapshots", root.path());
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

fn take_snapshots_on_both_sides(root: &Path) {
    let db = Db::open(root.join("db")).unwrap();
    db.put("key", "value").unwrap();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Also where the child fails, or the scope would wait for its threads.
        let _over = Sets(&over);
        for _ in 0..2 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    drop(db.snapshot())
                }
            });
        }
        for _ in 0..3000 {
            let mut kept = Some(db.snapshot());
            in_a_child(|| {
                let taken = db.snapshot();
                let refused = is_refused("a read at a snapshot", db.at(&taken).get("key"));
                drop((taken, kept.take()));
                refused
            });
        }
    });
}

/// When it goes.
struct Sets<'a>(&'a AtomicBool);

impl Drop for Sets<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

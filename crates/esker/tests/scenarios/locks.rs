//! One process, one handle.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use esker::{Db, Error};

use super::{alone, child, small};

/// A second open or close in the same process dropped the lock (a POSIX lock goes with any
/// descriptor of its file), and another process came in. <https://github.com/facebook/rocksdb/issues/1780>,
/// <https://github.com/google/leveldb/issues/126>, <https://github.com/google/leveldb/issues/55>
#[test]
fn opens_that_fail_do_not_free_the_lock_of_the_one_that_holds_it() {
    let _alone = alone();
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("db");
    let others = || child::acknowledged(&child::run("try", &dir)) == ["true"];
    let db = small().open(&dir).unwrap();
    db.put("key", "value").unwrap();
    for round in 0..20 {
        assert!(matches!(small().open(&dir), Err(Error::Locked { .. })));
        assert!(matches!(small().read_only(true).open(&dir), Err(Error::Locked { .. })));
        assert!(matches!(Db::repair(&dir), Err(Error::Locked { .. })));
        assert!(matches!(Db::destroy(&dir), Err(Error::Locked { .. })));
        assert!(matches!(Db::verify_path(&dir), Err(Error::Locked { .. })));
        // Neither by another spelling of the path, nor through a link to it.
        assert!(matches!(small().open(dir.join("../db")), Err(Error::Locked { .. })));
        drop(std::fs::File::open(dir.join("LOCK")).unwrap());
        assert!(round % 5 > 0 || !others(), "another process came in");
    }
    let link = root.path().join("link");
    std::os::unix::fs::symlink(&dir, &link).unwrap();
    assert!(matches!(small().open(&link), Err(Error::Locked { .. })));
    assert!(!others());
    // A clone is no second open, and closing one of two is closing for both.
    let clone = db.clone();
    db.close().unwrap();
    assert!(matches!(clone.put("key", "other"), Err(Error::Closed)));
    drop(clone);
    assert!(others(), "closed, and still locked");
}

/// The same bug from the other side: what a killed process held must be free at once.
#[test]
fn a_kill_frees_the_lock() {
    let _alone = alone();
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("db");
    for _ in 0..5 {
        let mut command = Command::new("env");
        child::extend(&mut command, "hold", &dir);
        let mut holder = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(holder.stdout.take().unwrap()).lines();
        assert!(lines.any(|l| l.unwrap().contains("ack open")));
        assert!(matches!(small().open(&dir), Err(Error::Locked { .. })));
        holder.kill().unwrap();
        holder.wait().unwrap();
        small().open(&dir).unwrap().close().unwrap();
    }
}

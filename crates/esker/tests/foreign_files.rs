//! Files of others with names like ours stay as they are.

use std::fs;
use std::path::Path;

use esker::{Db, Error, Options};
use tempfile::tempdir;

/// Names and contents of all files in a directory.
fn files(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let entry =
        |e: fs::DirEntry| (e.file_name().into_string().unwrap(), fs::read(e.path()).unwrap());
    let mut all: Vec<_> = fs::read_dir(dir).unwrap().flatten().map(entry).collect();
    all.sort();
    all
}

/// The files of LevelDB are called CURRENT, LOCK and MANIFEST-000002; `repair` replaced the first, and
/// `destroy` removed the first two.
#[test]
fn repair_and_destroy_broke_the_store_of_another_engine() {
    let dir = tempdir().unwrap();
    let put = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
    put("CURRENT", "MANIFEST-000002\n");
    put("MANIFEST-000002", "not for us");
    put("LOCK", "");
    put("000003.log", "nor this");
    let before = files(dir.path());
    let refused = |what: &str, result: esker::Result<()>| {
        assert!(matches!(result, Err(Error::ForeignStore { .. })), "{what}: {result:?}");
        let message = result.unwrap_err().to_string();
        assert!(message.contains("`esker import leveldb`"), "no way out: {message}");
        assert_eq!(files(dir.path()), before, "{what} changed something");
    };
    refused("open", Db::open(dir.path()).map(drop));
    refused("read", Options::new().read_only(true).open(dir.path()).map(drop));
    refused("repair", Db::repair(dir.path()).map(drop));
    refused("verify", Db::verify_path(dir.path()).map(drop));
    refused("destroy", Db::destroy(dir.path()));
}

/// A crash had left LevelDB's CURRENT empty: all that was asked was whether it was LevelDB's line.
#[test]
fn repair_made_an_empty_store_where_current_of_another_engine_was_damaged() {
    for (current, other) in [
        ("", "000005.ldb"),
        ("x", "000005.sst"),
        ("MANIFEST-00", "000003.log"),
        ("\0\0\0\0", "MANIFEST-000002"),
    ] {
        let dir = tempdir().unwrap();
        fs::write(dir.path().join("CURRENT"), current).unwrap();
        fs::write(dir.path().join(other), "not for us").unwrap();
        let before = files(dir.path());
        for result in [
            Db::open(dir.path()).map(drop),
            Db::repair(dir.path()).map(drop),
            Db::verify_path(dir.path()).map(drop),
            Db::destroy(dir.path()),
        ] {
            assert!(matches!(result, Err(Error::ForeignStore { .. })), "{other}: {result:?}");
            assert_eq!(files(dir.path()), before, "{other}");
        }
    }
    // One file of a store beside it: the damage is ours to repair.
    let dir = tempdir().unwrap();
    let db = Db::open(dir.path()).unwrap();
    db.put("k", "v").unwrap();
    db.close().unwrap();
    fs::write(dir.path().join("000003.log"), "a line of somebody's own\n").unwrap();
    fs::write(dir.path().join("CURRENT"), "").unwrap();
    Db::repair(dir.path()).unwrap();
    assert_eq!(Db::open(dir.path()).unwrap().get("k").unwrap().as_deref(), Some(&b"v"[..]));
}

/// A backup of LevelDB's that is half there has no CURRENT: a store was made beside its files, and destroy took its LOCK.
#[test]
fn a_store_was_made_among_files_of_another_engine_without_current() {
    for theirs in [
        &["LOCK", "LOG", "MANIFEST-000004", "000005.ldb", "000003.log"][..],
        &["LOCK", "MANIFEST-000004"],
        &["LOCK", "000005.ldb"],
        &["LOCK", "IDENTITY", "OPTIONS-000007", "1000005.sst"],
        &["LOCK", "000003.log"],
    ] {
        let dir = tempdir().unwrap();
        for name in theirs {
            fs::write(dir.path().join(name), "not for us").unwrap();
        }
        let before = files(dir.path());
        for result in [
            Db::open(dir.path()).map(drop),
            Options::new().read_only(true).open(dir.path()).map(drop),
            Db::repair(dir.path()).map(drop),
            Db::verify_path(dir.path()).map(drop),
            Db::destroy(dir.path()),
        ] {
            assert!(matches!(result, Err(Error::ForeignStore { .. })), "{theirs:?}: {result:?}");
            let message = result.unwrap_err().to_string();
            assert!(message.contains(&*dir.path().to_string_lossy()), "{message}");
            assert!(message.contains("new directory"), "no way out: {message}");
            assert_eq!(files(dir.path()), before, "{theirs:?}");
        }
    }
}

/// Nor are these LevelDB's: a store is made beside them, and they outlive it.
#[test]
fn a_store_is_made_beside_files_that_are_nobodys_store() {
    for name in [
        "LOCK",
        "LOG",
        "240115.log",
        "01022024.log",
        "0000005.sst",
        "notes.ldb",
        "x.sst",
        "MANIFEST-5",
        "MANIFEST-000x05",
    ] {
        let dir = tempdir().unwrap();
        fs::write(dir.path().join(name), "").unwrap();
        fs::create_dir(dir.path().join("lost+found")).unwrap();
        Db::open(dir.path()).unwrap().close().unwrap();
        Db::destroy(dir.path()).unwrap();
        assert_eq!(dir.path().join(name).exists(), name != "LOCK", "{name}");
    }
    // A store whose files lie beside a log of that name, and which has lost its CURRENT, is ours to repair; and half
    // destroyed it is ours to destroy.
    let dir = tempdir().unwrap();
    let db = Db::open(dir.path()).unwrap();
    db.put("k", "v").unwrap();
    db.close().unwrap();
    fs::write(dir.path().join("000003.log"), "a line of somebody's own\n").unwrap();
    fs::remove_file(dir.path().join("CURRENT")).unwrap();
    Db::repair(dir.path()).unwrap();
    assert_eq!(Db::open(dir.path()).unwrap().get("k").unwrap().as_deref(), Some(&b"v"[..]));
    let half = tempdir().unwrap();
    for name in ["DESTROYED", "LOCK", "000003.log"] {
        fs::write(half.path().join(name), "").unwrap();
    }
    Db::destroy(half.path()).unwrap();
    assert_eq!(files(half.path()), [("000003.log".into(), Vec::new())]);
}

/// What is called like our files and is none of them is the user's: a new store removed it.
#[test]
fn a_new_store_removed_files_that_were_called_like_its_own() {
    for name in ["2024010112.log", "2024010113.tbl"] {
        let dir = tempdir().unwrap();
        fs::write(dir.path().join(name), "a line of somebody's own\n").unwrap();
        let e = Db::open(dir.path()).unwrap_err();
        assert!(e.to_string().contains(name), "{e}");
        assert!(dir.path().join(name).exists(), "{name} is gone");
    }
}

//! Stores whose file numbers are at the end of their range.

use std::path::Path;
use std::sync::Arc;

use crate::env::{Env, OsEnv};
use crate::util::MAX_NUMBER;
use crate::version::{self, Change, Manifest, Orders, VersionEdit};
use crate::{Db, Options};

/// A closed store with one entry whose manifest also says this.
fn store_with(dir: &Path, change: Change) {
    let db = Db::open(dir).unwrap();
    db.put("key", "value").unwrap();
    db.close().unwrap();
    let env: Arc<dyn Env> = Arc::new(OsEnv::new());
    let loaded = version::load(&*env, dir, &Orders::default()).unwrap();
    let mut manifest = Manifest::open(env, dir, loaded).unwrap();
    manifest.append(&VersionEdit::from(vec![change, Change::CleanClose])).unwrap();
}

#[test]
fn a_store_without_numbers_for_files_says_so_when_it_is_opened() {
    let dir = tempfile::tempdir().unwrap();
    for number in [MAX_NUMBER - 1, MAX_NUMBER] {
        let path = dir.path().join(number.to_string());
        store_with(&path, Change::NextFile { number });
        let e = Db::open(&path).unwrap_err().to_string();
        assert!(e.contains("MANIFEST") && e.contains(&number.to_string()), "{e}");
        // It can be read, and a repair puts it right.
        let db = Options::new().read_only(true).open(&path).unwrap();
        assert_eq!(db.get("key").unwrap().unwrap(), b"value");
        drop(db);
        Db::repair(&path).unwrap();
        let db = Db::open(&path).unwrap();
        assert_eq!(db.get("key").unwrap().unwrap(), b"value");
        db.put("another", "value").unwrap();
        db.flush().unwrap();
        db.close().unwrap();
    }
}

/// A put behind the last sequence there can be was taken, and gone after a kill.
#[test]
fn a_store_without_sequences_says_so_when_it_is_opened() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    store_with(&path, Change::LastSeq { seq: MAX_NUMBER });
    let e = Db::open(&path).unwrap_err().to_string();
    assert!(e.contains("MANIFEST") && e.contains(&MAX_NUMBER.to_string()), "{e}");
    let db = Options::new().read_only(true).open(&path).unwrap();
    assert_eq!(db.get("key").unwrap().unwrap(), b"value");
}

#[test]
fn a_file_with_the_greatest_number_is_named() {
    let dir = tempfile::tempdir().unwrap();
    // As a kill leaves it: after a clean close a newer file means that the manifest lost its end.
    let (running, path) = (dir.path().join("running"), dir.path().join("db"));
    let db = Db::open(&running).unwrap();
    std::fs::create_dir(&path).unwrap();
    for entry in std::fs::read_dir(&running).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), path.join(entry.file_name())).unwrap();
    }
    drop(db);
    let stranger = path.join(format!("{MAX_NUMBER}.tbl"));
    std::fs::write(&stranger, "").unwrap();
    let e = Db::open(&path).unwrap_err().to_string();
    assert!(e.contains(&format!("{MAX_NUMBER}.tbl")) && e.contains("move it"), "{e}");
    std::fs::remove_file(&stranger).unwrap();
    Db::open(&path).unwrap().put("key", "value").unwrap();
}

//! The empty key is as good as any.

use esker::Db;

#[test]
fn the_empty_key_survives_a_flush_beside_others() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let db = Db::open(&path).unwrap();
    db.put("k", "v").unwrap();
    db.close().unwrap();
    let db = Db::open(&path).unwrap();
    db.put("", "").unwrap();
    assert_eq!(db.get("").unwrap().unwrap(), b"");
    db.flush().unwrap();
    assert_eq!(db.get("").unwrap().unwrap(), b"");
    db.close().unwrap();
    let db = Db::open(&path).unwrap();
    assert_eq!(db.get("").unwrap().unwrap(), b"");
    assert_eq!(db.iter().count(), 2);
}

#[test]
fn a_closed_store_keeps_no_log() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let db = Db::open(&path).unwrap();
    db.put("k", "v").unwrap();
    db.close().unwrap();
    let names: Vec<_> = std::fs::read_dir(&path)
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(names.iter().all(|n| !n.ends_with(".log")), "{names:?}");
}

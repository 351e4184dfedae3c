//! Closing, and what is there afterwards. The empty key is as good as any.

use std::cmp::Ordering;
use std::sync::Arc;
use std::time::Duration;

use esker::{Comparator, Db, Options};
use parking_lot::ReentrantMutex;

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

/// A comparator as of an interpreter: it takes the lock that whoever runs the program's code holds.
struct Interpreted(Arc<ReentrantMutex<()>>);

impl Comparator for Interpreted {
    fn name(&self) -> &str {
        "interpreted"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let _running = self.0.lock();
        b.cmp(a)
    }
}

#[test]
fn closing_under_a_lock_that_the_comparator_takes_waited_for_ever() {
    let lock = Arc::new(ReentrantMutex::new(()));
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let options =
        || Options::new().comparator(Interpreted(Arc::clone(&lock))).flush_on_close(false);
    let held = lock.lock();
    for round in 0..3u32 {
        let db = options().open(&path).unwrap();
        for n in 0..100u32 {
            db.put((round * 100 + n).to_be_bytes(), "value").unwrap();
        }
        // Long enough for a store that tidies up to begin.
        std::thread::sleep(Duration::from_millis(if round == 0 { 300 } else { 0 }));
        match round {
            1 => db.close().unwrap(),
            _ => drop(db),
        }
    }
    let db = options().open(&path).unwrap();
    assert_eq!(db.iter().count(), 300);
    drop(held);
    db.flush().unwrap();
    assert_eq!(db.stats().keyspaces[0].memtable_entries, 0);
}

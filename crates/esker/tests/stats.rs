//! What the statistics say is so, counted from outside.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use esker::{Compression, Db, Options};
use tempfile::tempdir;

fn options() -> Options {
    Options::new().compression(Compression::None)
}

/// Files below `dir` that this process has open.
fn open_files(dir: &Path) -> usize {
    let links = fs::read_dir("/proc/self/fd").unwrap().flatten();
    links.filter(|e| fs::read_link(e.path()).is_ok_and(|to| to.starts_with(dir))).count()
}

/// What is done in the background comes to an end.
fn soon(what: &str, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// It was counted when a segment was sealed: of a store that had written less than one, nothing.
#[test]
fn the_log_was_counted_when_a_segment_was_full() {
    let dir = tempdir().unwrap();
    let db = options().open(dir.path().join("db")).unwrap();
    let mut last = 0;
    for n in 0..1000u32 {
        db.put(n.to_be_bytes(), [7; 100]).unwrap();
        let stats = db.stats();
        assert_eq!(stats.bytes_written, u64::from(n + 1) * 104);
        assert!(stats.log_bytes_written >= last + 104, "{n}: {} bytes", stats.log_bytes_written);
        last = stats.log_bytes_written;
    }
    let written = db.stats().bytes_written;
    assert!(last < 2 * written, "{last} bytes of log for {written}");
    let before = db.stats().write_amplification();
    assert!((1.0..2.0).contains(&before), "{before}");
    // A segment that is sealed is not counted twice, and a flush writes it all once more.
    db.flush().unwrap();
    db.put("one", "more").unwrap();
    let (now, written) = (db.stats(), written + 7);
    assert!((last + 7..last + written / 10).contains(&now.log_bytes_written), "{now:?}");
    let flushed = now.compaction_bytes_written;
    assert!((written..2 * written).contains(&flushed), "{flushed} bytes for {written}");
    let total = (now.log_bytes_written + flushed) as f64 / now.bytes_written as f64;
    assert_eq!(now.write_amplification(), total);
}

/// Two more than there are, of a store that only reads or that was closed.
#[cfg(target_os = "linux")]
#[test]
fn files_were_counted_that_are_not_open() {
    let dir = tempdir().unwrap();
    let path = dir.path().canonicalize().unwrap().join("db");
    let db = options().open(&path).unwrap();
    let agrees = |db: &Db| db.stats().open_files == open_files(&path);
    for n in 0..1000u32 {
        db.put(n.to_be_bytes(), [7; 100]).unwrap();
    }
    soon("written to", || agrees(&db));
    db.flush().unwrap();
    db.wait_for_compactions().unwrap();
    soon("flushed", || agrees(&db));
    assert!(open_files(&path) >= 4, "manifest, lock, directory and the segment that is written");
    db.clone().close().unwrap();
    assert_eq!((db.stats().open_files, open_files(&path)), (0, 0));
    let reader = options().read_only(true).open(&path).unwrap();
    assert_eq!(reader.stats().open_files, open_files(&path));
    assert_eq!(open_files(&path), 2, "the lock and the directory");
}

/// `du` of the directory, without the one below it.
#[cfg(target_os = "linux")]
#[test]
fn the_directory_of_damaged_files_was_counted() {
    use std::os::unix::fs::MetadataExt as _;
    let dir = tempdir().unwrap();
    let path = dir.path().join("db");
    let db = options().open(&path).unwrap();
    db.put("key", [7; 100_000]).unwrap();
    db.flush().unwrap();
    fs::create_dir(path.join("lost")).unwrap();
    fs::write(path.join("lost/old"), [7; 50_000]).unwrap();
    let files = || {
        let entries = fs::read_dir(&path).unwrap().map(|e| e.unwrap().metadata());
        let files = entries.flatten().filter(|m| m.is_file());
        files.map(|m| m.blocks() * 512).sum::<u64>()
    };
    soon("counted", || db.stats().disk_bytes == files());
}

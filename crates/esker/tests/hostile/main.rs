//! Directories made to do harm: links, pipes and devices in place of files, names that lead
//! elsewhere, numbers that ask for all memory. Opening, verifying and repairing them is an error,
//! soon; nothing outside of the directory is touched.

#[path = "../common/mod.rs"]
mod common;

mod memory;
mod numbers;
mod places;

use std::path::Path;
use std::time::Duration;

use esker::{Compression, Db, Options};

#[global_allocator]
static MEMORY: memory::Counted = memory::Counted;

/// More than any input here should take, and far less than what it asks for.
const MOST_BYTES: usize = 64 << 20;

fn options() -> Options {
    Options::new()
        .memory(1 << 20)
        .segment_size(64 << 10)
        .blob_threshold(1000)
        .compression(Compression::Lz4)
}

/// A closed store with a table, separated values and a manifest of several edits.
fn closed(dir: &Path) {
    let db = options().open(dir).unwrap();
    for n in 0..300u32 {
        db.put(n.to_be_bytes(), vec![7; if n % 20 == 0 { 2000 } else { 60 }]).unwrap();
    }
    db.close().unwrap();
}

/// A store as a kill leaves it: with a log too.
fn killed(root: &Path, dir: &Path) {
    let path = root.join("alive");
    closed(&path);
    let db = options().open(&path).unwrap();
    for n in 300..400u32 {
        db.put(n.to_be_bytes(), [8; 90]).unwrap();
    }
    common::files::copy_as_killed(&path, dir);
}

/// Opens, reads, verifies and repairs within a time and an amount of memory. Any answer will do.
fn survive(dir: &Path, what: &str) -> Vec<esker::Error> {
    // One at a time, so that the memory counted is that of one.
    static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let (done, wait) = std::sync::mpsc::channel();
    let path = dir.to_path_buf();
    let worker = std::thread::spawn(move || {
        let before = memory::start();
        let errors = use_all(&path);
        done.send((errors, memory::most().saturating_sub(before))).unwrap();
    });
    let waited = wait.recv_timeout(Duration::from_secs(60));
    match waited {
        Ok((errors, most)) => {
            assert!(most < MOST_BYTES, "{what}: {most} bytes of memory");
            worker.join().unwrap();
            errors
        }
        Err(std::sync::mpsc::RecvTimeoutError::Timeout) => panic!("{what}: it hangs"),
        Err(_) => panic!("{what}: {:?}", worker.join().unwrap_err().downcast_ref::<String>()),
    }
}

fn use_all(dir: &Path) -> Vec<esker::Error> {
    let mut errors = Vec::new();
    match Db::verify_path(dir) {
        Ok(report) => assert!(report.problems.iter().all(|p| !p.what.is_empty())),
        Err(e) => errors.push(e),
    }
    for options in [options().read_only(true), options().paranoid_checks(true), options()] {
        match options.open(dir) {
            Ok(db) => {
                errors.extend(db.iter().filter_map(Result::err));
                errors.extend(db.iter().rev().filter_map(Result::err));
                errors.extend((0..400u32).filter_map(|n| db.get(n.to_be_bytes()).err()));
                drop(db.put("key", "value"));
                errors.extend(db.close().err());
            }
            Err(e) => errors.push(e),
        }
    }
    errors.extend(Db::repair(dir).err());
    if let Ok(db) = options().open(dir) {
        errors.extend(db.iter().filter_map(Result::err));
    }
    for e in &errors {
        assert!(e.to_string().len() > 10, "{e}");
    }
    errors
}

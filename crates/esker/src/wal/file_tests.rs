//! Tests of segments as files: on the real file system, and where it refuses.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::testing;
use super::tests::{Entry, read_all};
use super::*;
use crate::batch::WriteBatch;
use crate::env::{Env, OsEnv};
use crate::error::Error;
use crate::filename;
use crate::key::Kind;

#[test]
#[cfg_attr(miri, ignore = "Miri knows no file mappings")]
fn on_the_real_file_system() {
    let dir = tempfile::tempdir().unwrap();
    let env: Arc<dyn Env> = Arc::new(OsEnv::new());
    let mut old: Option<std::path::PathBuf> = None;
    for number in 1..4 {
        let segment = Segment::create(&env, dir.path(), number, 1 << 20, old.as_deref()).unwrap();
        let segment = Arc::new(segment);
        let mut log_writer = LogWriter::new(segment.clone());
        let mut batch = WriteBatch::new();
        (0..900).for_each(|i| batch.push(0, Kind::Put, &[i as u8], &[2; 80]));
        let mut expected = vec![];
        let mut seq = 0;
        // Both ways of writing, by turns, so that each meets the other's bytes; and syncs.
        for size in [0usize, 100, 70_000, 8, 65_536, 4095, 100_001] {
            for value in [vec![number as u8; size], vec![0xff; 17]] {
                seq += 1;
                let r = log_writer.append_one(seq, 0, Kind::Put, b"key", &value).unwrap();
                assert_eq!(segment.record(r).value, value);
                expected.push((seq, 0, Kind::Put, b"key".to_vec(), value));
            }
            segment.sync().unwrap();
        }
        seq += 1;
        assert!(batch.byte_len() > 64 << 10);
        log_writer.append_batch(seq, &batch, |_, _, _, _, _| ()).unwrap();
        let expect_batch = |e: &Entry| e.0 == seq && e.4 == [2; 80];
        log_writer.seal(seq, 99);
        let opened = Segment::open(&env, dir.path(), number, number == 2).unwrap();
        let (entries, end) = read_all(&opened);
        assert_eq!(entries[..expected.len()], expected);
        assert_eq!(entries[expected.len()..].iter().filter(|e| expect_batch(e)).count(), 900);
        assert!(end.is_sealed());
        old = Some(segment.path().to_path_buf());
    }
    // A checkpoint's name on the file: it is left alone, and a new one made.
    let old = old.unwrap();
    env.hard_link(&old, &dir.path().join("checkpoint")).unwrap();
    let segment = Segment::create(&env, dir.path(), 4, 1 << 20, Some(&old)).unwrap();
    assert!(!segment.recycled() && env.exists(&old).unwrap());
    // Links lead nowhere.
    std::os::unix::fs::symlink(&old, dir.path().join(filename::segment(5))).unwrap();
    assert!(Segment::open(&env, dir.path(), 5, false).is_err());
}

/// Long values and batches are written with a call; where that is refused, through the mapping.
#[test]
fn a_refused_call_loses_nothing() {
    let (env, segment) = testing::segment(4, 1 << 20);
    let mut log_writer = LogWriter::new(segment.clone());
    env.file(segment.path()).fail_write.store(true, Ordering::Relaxed);
    let value = vec![7; 100_000];
    let r = log_writer.append_one(1, 0, Kind::Put, b"long", &value).unwrap();
    assert_eq!(segment.record(r).value, value);
    let mut batch = WriteBatch::new();
    (0..900).for_each(|i: u32| batch.push(0, Kind::Put, &i.to_be_bytes(), &[2; 200]));
    log_writer.append_batch(2, &batch, |_, _, _, _, _| ()).unwrap();
    let (entries, end) = read_all(&segment);
    assert_eq!(entries.len(), 901);
    assert!(entries[1..].iter().all(|e| e.4 == [2; 200]), "{end:?}");
}

/// What a file takes on the disk is asked once, and again after parts of it went back.
#[test]
#[cfg_attr(miri, ignore = "Miri knows no file mappings")]
fn space_that_went_back_is_no_longer_counted() {
    let dir = tempfile::tempdir().unwrap();
    let env: Arc<dyn Env> = Arc::new(OsEnv::new());
    let segment = Segment::create(&env, dir.path(), 3, 1 << 20, None).unwrap();
    let size = segment.allocated().unwrap();
    assert!(size >= 1 << 20, "{size}");
    drop(segment);
    let segment = Segment::open(&env, dir.path(), 3, true).unwrap();
    for _ in 0..2 {
        segment.release();
        assert_eq!(segment.allocated().unwrap(), size);
    }
    segment.punch([(64 << 10, 128 << 10), (512 << 10, 256 << 10)].into_iter()).unwrap();
    // Some file systems give back whole extents only.
    assert!(segment.allocated().unwrap() <= size - (256 << 10));
}

/// A segment that is not written any more is closed until somebody syncs it, who synced the one of that number that a store
/// in the directory's place had, or wrote what that held over it.
#[test]
#[cfg_attr(miri, ignore = "Miri knows no file mappings")]
fn a_sync_took_a_file_of_the_same_name_for_the_segments_own() {
    let root = tempfile::tempdir().unwrap();
    let (dir, moved) = (root.path().join("db"), root.path().join("moved"));
    let env: Arc<dyn Env> = Arc::new(OsEnv::new());
    let create = || {
        std::fs::create_dir(&dir).unwrap();
        Segment::create(&env, &dir, 3, 1 << 20, None).unwrap()
    };
    let segment = create();
    segment.release();
    segment.sync().unwrap();
    std::fs::rename(&dir, &moved).unwrap();
    let _other = create();
    let refused = segment.sync().unwrap_err();
    assert!(matches!(&refused, Error::DirectoryMoved { path } if *path == dir), "{refused}");
    assert_eq!(segment.syncs(), 1);
}

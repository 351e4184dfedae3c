//! Bugs there were, one test each, named after what went wrong.

mod common;

use std::path::PathBuf;
use std::time::Duration;

use common::files::{self, copy_as_killed};
use common::no_case;
use esker::{Compression, Db, Durability, Error, KeyspaceOptions, Options, WriteBatch};
use tempfile::tempdir;

/// A store of many small segments, so that everything happens soon.
fn small() -> Options {
    Options::new()
        .memory(1 << 20)
        .segment_size(64 << 10)
        .blob_threshold(1000)
        .compression(Compression::None)
}

/// Fails instead of hanging.
fn within_seconds(seconds: u64, work: impl FnOnce() + Send + 'static) {
    let (done, wait) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        work();
        done.send(()).unwrap();
    });
    wait.recv_timeout(Duration::from_secs(seconds)).expect("it goes on");
}

#[test]
fn what_was_written_by_batches_counted_more_than_by_puts() {
    let dir = tempdir().unwrap();
    let db = Options::new().open(dir.path().join("db")).unwrap();
    db.put("key", "value").unwrap();
    let mut batch = WriteBatch::new();
    (0..10u64).for_each(|n| batch.put(n.to_be_bytes(), n.to_be_bytes()));
    batch.delete("key");
    db.write(&batch).unwrap();
    db.write(batch).unwrap();
    assert_eq!(db.stats().bytes_written, 8 + 2 * (160 + 3));
}

#[test]
fn a_flush_in_the_middle_of_a_flush_wrote_its_memtables_twice() {
    let dir = tempdir().unwrap();
    let db = small().open(dir.path().join("db")).unwrap();
    for n in 0..30_000u32 {
        db.put((n * 7919 % 30_000).to_be_bytes(), [n as u8; 50]).unwrap();
    }
    db.flush().unwrap();
    assert_eq!(db.iter().count(), 30_000);
    assert_eq!(db.stats().halted, None);
}

#[test]
fn a_value_was_punched_under_a_reader_from_before_the_last_merge() {
    let dir = tempdir().unwrap();
    let db = small().open(dir.path().join("db")).unwrap();
    let old = vec![b'o'; 20_000];
    db.put("b", &old).unwrap();
    db.put("a", "").unwrap();
    db.put("c", "").unwrap();
    let from_memory = db.get("b").unwrap().unwrap();
    db.compact_range::<&str>(..).unwrap();
    let from_a_table = db.get("b").unwrap().unwrap();
    // One merge that keeps the value, one that drops it.
    db.put("b2", "").unwrap();
    db.compact_range::<&str>(..).unwrap();
    db.put("b", "new").unwrap();
    db.compact_range::<&str>(..).unwrap();
    db.wait_for_compactions().unwrap();
    db.wait_for_compactions().unwrap();
    assert!(from_memory == old && from_a_table == old);
}

#[test]
fn another_spelling_of_a_key_was_not_found_in_memory() {
    let dir = tempdir().unwrap();
    let db = Options::new().comparator(no_case()).open(dir.path().join("db")).unwrap();
    db.put("Key", "value").unwrap();
    assert_eq!(db.get("kEY").unwrap().unwrap(), b"value");
    db.flush().unwrap();
    assert_eq!(db.get("kEY").unwrap().unwrap(), b"value");
}

#[test]
fn opening_took_value_segments_of_a_later_keyspace_for_unused() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("db");
    let db = small().open(&path).unwrap();
    let other = db.create_keyspace("other", KeyspaceOptions::new()).unwrap();
    let value = vec![1; 5000];
    other.put("key", &value).unwrap();
    db.flush().unwrap();
    drop(other);
    db.close().unwrap();
    let db = small().open(&path).unwrap();
    assert_eq!(db.keyspace("other").unwrap().get("key").unwrap().unwrap(), value);
}

#[test]
fn destroy_left_the_directory_of_a_checkpoint_that_was_never_opened() {
    let dir = tempdir().unwrap();
    let db = Db::open(dir.path().join("db")).unwrap();
    db.put("key", "value").unwrap();
    let copy = dir.path().join("copy");
    db.checkpoint(&copy).unwrap();
    Db::destroy(&copy).unwrap();
    assert!(!copy.exists());
}

#[test]
fn an_open_removed_the_tables_of_a_store_without_current_and_manifest() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("db");
    let db = small().open(&path).unwrap();
    db.put("in a table", "1").unwrap();
    db.flush().unwrap();
    db.put("in the log", "2").unwrap();
    let killed = dir.path().join("killed");
    copy_as_killed(&path, &killed);
    db.close().unwrap();
    for path in [path, killed] {
        for name in files::names(&path) {
            if name == "CURRENT" || name.starts_with("MANIFEST") {
                std::fs::remove_file(path.join(name)).unwrap();
            }
        }
        for options in [small(), small().create_if_missing(false), small().read_only(true)] {
            let error = options.open(&path).map(drop).unwrap_err();
            assert!(
                error.is_corruption() && error.to_string().contains("every manifest"),
                "{error}"
            );
        }
        assert!(!Db::verify_path(&path).unwrap().problems.is_empty());
        assert!(Db::repair(&path).unwrap().changed);
        let db = small().open(&path).unwrap();
        assert_eq!(db.get("in a table").unwrap().unwrap(), b"1");
        assert_eq!(db.get("in the log").unwrap().unwrap(), b"2");
    }
}

#[test]
fn a_repair_overlooked_the_tables_of_edits_that_were_cut_off() {
    let dir = tempdir().unwrap();
    let (path, copy) = (dir.path().join("db"), dir.path().join("copy"));
    let db = small().open(&path).unwrap();
    let put = |range: std::ops::Range<u32>| {
        range.for_each(|n| db.put(n.to_be_bytes(), "value").unwrap());
        db.flush().unwrap();
    };
    put(0..300);
    let manifest = path.join("MANIFEST-0000000001");
    let before = std::fs::metadata(&manifest).unwrap().len();
    put(200..500);
    db.compact_range::<&str>(..).unwrap();
    copy_as_killed(&path, &copy);
    // The compaction's edits end between two records: nothing in the file shows it.
    let cut = std::fs::OpenOptions::new().write(true).open(copy.join("MANIFEST-0000000001"));
    cut.unwrap().set_len(before).unwrap();
    let error = small().open(&copy).map(drop).unwrap_err().to_string();
    assert!(error.contains("esker repair"), "{error}");
    let report = Db::repair(&copy).unwrap();
    assert!(!report.lost.is_empty(), "the manifest lost its end");
    assert_eq!(small().open(&copy).unwrap().iter().count(), 500);
}

#[test]
fn a_bulk_load_cut_the_log_off_for_other_keyspaces() {
    let dir = tempdir().unwrap();
    let (path, killed) = (dir.path().join("db"), dir.path().join("killed"));
    let db = small().open(&path).unwrap();
    let loaded = db.create_keyspace("loaded", KeyspaceOptions::new()).unwrap();
    db.put("before", "1").unwrap();
    assert_eq!(loaded.bulk_load([("a", "1"), ("b", "2")]).unwrap(), 2);
    db.put("after", "2").unwrap();
    copy_as_killed(&path, &killed);
    let db = small().open(&killed).unwrap();
    assert_eq!(db.get("before").unwrap().unwrap(), b"1");
    assert_eq!(db.get("after").unwrap().expect("written after the load"), b"2");
    assert_eq!(db.keyspace("loaded").unwrap().iter().count(), 2);
    // And once more: what was recovered is complete in itself.
    let again = dir.path().join("again");
    copy_as_killed(&killed, &again);
    let db = small().open(&again).unwrap();
    assert_eq!(db.iter().count(), 2);
}

#[test]
fn a_batch_that_fills_a_segment_to_the_last_bytes_was_refused() {
    let dir = tempdir().unwrap();
    let db = small().open(dir.path().join("db")).unwrap();
    let batch = |bytes: usize| {
        let mut batch = WriteBatch::new();
        batch.put("key", vec![0; bytes]);
        batch
    };
    // Somewhere here the second of two batches fits into the segment, and then no more.
    for bytes in (30_500..30_900).step_by(8) {
        db.flush().unwrap();
        db.write(batch(30_500)).unwrap();
        db.write(batch(bytes)).unwrap();
    }
}

#[test]
fn writers_waited_for_the_flush_of_recovered_segments_with_nothing_in_them() {
    let dir = tempdir().unwrap();
    let (path, killed) = (dir.path().join("db"), dir.path().join("killed"));
    let db = small().segment_size(4 << 20).open(&path).unwrap();
    db.put("key", "value").unwrap();
    db.flush().unwrap();
    copy_as_killed(&path, &killed);
    let db = small().open(&killed).unwrap();
    within_seconds(30, move || db.put("key", "new").unwrap());
}

#[test]
fn writers_waited_for_the_flush_of_a_keyspace_that_was_dropped() {
    let dir = tempdir().unwrap();
    let db = small().open(dir.path().join("db")).unwrap();
    for round in 0..10 {
        let other = db.create_keyspace("other", KeyspaceOptions::new()).unwrap();
        for n in 0..2000u32 {
            other.put(n.to_be_bytes(), [round; 800]).unwrap();
        }
        db.drop_keyspace("other").unwrap();
    }
    within_seconds(30, move || {
        for n in 0..2000u32 {
            db.put(n.to_be_bytes(), [0; 800]).unwrap();
        }
    });
}

#[test]
fn an_entry_without_a_byte_was_taken_for_no_entry_and_lost_on_close() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("db");
    let db = small().open(&path).unwrap();
    db.put("", "value").unwrap();
    db.flush().unwrap();
    db.delete("").unwrap();
    db.close().unwrap();
    let db = small().open(&path).unwrap();
    assert!(db.get("").unwrap().is_none(), "a deleted key came back");
}

#[test]
fn a_read_only_open_changes_nothing_not_even_the_lock_file() {
    let dir = tempdir().unwrap();
    let (path, copy) = (dir.path().join("db"), dir.path().join("copy"));
    let db = small().open(&path).unwrap();
    db.put("key", "value").unwrap();
    db.checkpoint(&copy).unwrap();
    let before = files::contents(&copy);
    let read_only = small().read_only(true).open(&copy).unwrap();
    assert_eq!(read_only.get("key").unwrap().unwrap(), b"value");
    drop(read_only);
    assert_eq!(
        files::contents(&copy).keys().collect::<Vec<_>>(),
        before.keys().collect::<Vec<_>>()
    );
}

/// A store as a kill leaves it: 200 synced writes in the log, which has one segment, and another that
/// was made ahead: it is younger than all of the manifest, and says so.
fn killed() -> (tempfile::TempDir, std::path::PathBuf) {
    let options = Options::new().segment_size(64 << 10).durability(Durability::Synced);
    loop {
        let dir = tempdir().unwrap();
        let left = dir.path().join("left");
        let db = options.clone().open(dir.path().join("db")).unwrap();
        db.create_keyspace("other", KeyspaceOptions::new()).unwrap();
        for n in 0..200u32 {
            db.put(n.to_be_bytes(), [n as u8; 200]).unwrap();
        }
        // Where a sync takes no time, all this is done before the next segment is there.
        while files::ending(&dir.path().join("db"), ".log").len() < 2 {
            std::thread::sleep(Duration::from_millis(1));
        }
        copy_as_killed(&dir.path().join("db"), &left);
        // On a busy machine the store may have found time to flush.
        if options.clone().read_only(true).open(&left).unwrap().stats().log_segments == 1
            && files::ending(&left, ".tbl").is_empty()
        {
            return (dir, left);
        }
    }
}

/// The segment with the entries; one made ahead has none, and may have been copied while it was still empty.
fn segment_in_use(dir: &std::path::Path) -> std::path::PathBuf {
    let used =
        |p: &std::path::PathBuf| std::fs::read(p).unwrap().iter().skip(4096).any(|b| *b != 0);
    files::ending(dir, ".log").into_iter().rfind(used).unwrap()
}

#[test]
fn the_newest_segment_of_the_log_could_vanish_without_a_word() {
    let (_dir, left) = killed();
    let newest = segment_in_use(&left);
    let bytes = std::fs::read(&newest).unwrap();
    std::fs::remove_file(&newest).unwrap();
    let e = Options::new().open(&left).unwrap_err();
    assert!(matches!(&e, Error::Corruption { path, .. } if *path == newest), "{e}");
    // Nor may it be emptied.
    std::fs::write(&newest, vec![0; bytes.len()]).unwrap();
    let e = Options::new().open(&left).unwrap_err();
    assert!(matches!(&e, Error::Corruption { path, .. } if *path == newest), "{e}");
    std::fs::write(&newest, bytes).unwrap();
    assert_eq!(Options::new().open(&left).unwrap().iter().count(), 200);
}

#[test]
fn the_newest_segment_could_vanish_without_a_word_after_a_flush() {
    let options = Options::new().segment_size(64 << 10).durability(Durability::Synced);
    let dir = tempdir().unwrap();
    let db = options.open(dir.path().join("db")).unwrap();
    for round in 0u32..6 {
        (0..100u32).for_each(|n| db.put(n.to_be_bytes(), [1; 200]).unwrap());
        // The log goes on in a segment made in a hurry, and after a rest in a small one.
        db.flush().unwrap();
        if round % 2 == 1 {
            db.wait_for_compactions().unwrap();
        }
        // Some of these values need a segment of their own.
        for (n, size) in [20, 20, 30_000, 60_000, 20, 60_000].into_iter().enumerate() {
            let text = format!("write {n} of round {round}");
            db.put(round.to_be_bytes(), format!("{text:size$}")).unwrap();
            let left = dir.path().join(format!("left {round}"));
            copy_as_killed(&dir.path().join("db"), &left);
            let holds = |path: &PathBuf| {
                let bytes = std::fs::read(path).unwrap();
                bytes.windows(text.len()).any(|w| w == text.as_bytes())
            };
            let newest = files::ending(&left, ".log").into_iter().rfind(holds).unwrap();
            std::fs::remove_file(&newest).unwrap();
            match Options::new().open(&left) {
                Err(Error::Corruption { path, .. }) => assert_eq!(path, newest),
                Err(e) => panic!("{e}"),
                Ok(_) => panic!("round {round}: {} is not missed", newest.display()),
            }
            std::fs::remove_dir_all(&left).unwrap();
        }
    }
}

#[test]
fn damage_before_synced_writes_was_taken_for_a_power_cut() {
    let (_dir, left) = killed();
    let log = segment_in_use(&left);
    let whole = std::fs::read(&log).unwrap();
    let mut bytes = whole.clone();
    bytes[10_000] ^= 4;
    std::fs::write(&log, &bytes).unwrap();
    let e = Options::new().open(&left).unwrap_err();
    assert!(matches!(&e, Error::Corruption { path, .. } if *path == log), "{e}");
    std::fs::write(&log, &whole).unwrap();
    assert_eq!(Options::new().open(&left).unwrap().iter().count(), 200);
}

#[test]
fn a_manifest_could_lose_its_end_without_a_word() {
    let (dir, left) = killed();
    let closed = dir.path().join("db");
    for path in [left.clone(), closed] {
        let name = files::names(&path).into_iter().find(|n| n.starts_with("MANIFEST-")).unwrap();
        let manifest = path.join(name);
        let whole = std::fs::read(&manifest).unwrap();
        for cut in (32..whole.len()).step_by(16) {
            std::fs::write(&manifest, &whole[..cut]).unwrap();
            // Of a store that was killed an edit may go of which all files are there, and nothing is lost.
            let found = Options::new().read_only(true).open(&path);
            let all_is_there =
                path == left && found.as_ref().is_ok_and(|db| db.iter().count() == 200);
            let what = format!("{}: cut at {cut} of {}", path.display(), whole.len());
            assert!(found.is_err() || all_is_there, "{what}");
        }
        std::fs::write(&manifest, &whole).unwrap();
        assert_eq!(Options::new().open(&path).unwrap().iter().count(), 200);
    }
}

/// Nothing of the log was durable, so that the segment it started with was missing counted as the work of a power cut;
/// what was written behind it went for good.
#[test]
fn a_killed_store_whose_manifest_lost_a_flush_opened_without_what_was_flushed() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("db");
    let db = small().open(&path).unwrap();
    let other = db.create_keyspace("other", KeyspaceOptions::new()).unwrap();
    for n in 0..60u8 {
        db.put([n], [1; 20]).unwrap();
    }
    db.flush().unwrap();
    for n in 0..60u8 {
        other.put([n], [2; 20]).unwrap();
    }
    db.flush().unwrap();
    db.put([60], [3; 20]).unwrap();
    let left = dir.path().join("left");
    copy_as_killed(&path, &left);
    // Those before were let go of, and go soon.
    let used = segment_in_use(&left);
    for segment in files::ending(&left, ".log") {
        if segment < used {
            std::fs::remove_file(segment).unwrap();
        }
    }
    let has_all = |db: &esker::Db| {
        db.iter().count() == 61
            && db.keyspace("other").is_ok_and(|other| other.iter().count() == 60)
    };
    assert!(has_all(&small().read_only(true).open(&left).unwrap()));
    let name = files::names(&left).into_iter().find(|n| n.starts_with("MANIFEST-")).unwrap();
    let whole = std::fs::read(left.join(&name)).unwrap();
    for cut in (32..whole.len()).step_by(16) {
        std::fs::write(left.join(&name), &whole[..cut]).unwrap();
        let what = format!("cut at {cut} of {}", whole.len());
        let found = esker::Db::verify_path(&left);
        let sound = found.is_ok_and(|report| report.problems.is_empty());
        let shown = small().read_only(true).open(&left).map(|db| has_all(&db));
        assert!(shown.as_ref().is_ok_and(|all| *all) || shown.is_err(), "{what}");
        assert!(!sound || shown.is_ok(), "{what}");
    }
}

#[test]
fn a_log_kept_for_its_values_hid_that_the_manifest_lost_its_end() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("db");
    let db = small().open(&path).unwrap();
    for round in 0..2u8 {
        for n in 0..60u8 {
            db.put([n], vec![round; if n == 7 { 2000 } else { 20 }]).unwrap();
        }
        db.flush().unwrap();
    }
    db.close().unwrap();
    let name = files::names(&path).into_iter().find(|n| n.starts_with("MANIFEST-")).unwrap();
    let whole = std::fs::read(path.join(&name)).unwrap();
    for cut in (32..whole.len()).step_by(16) {
        std::fs::write(path.join(&name), &whole[..cut]).unwrap();
        let opened = small().read_only(true).open(&path);
        assert!(opened.is_err(), "cut at {cut} of {}", whole.len());
    }
}

#[test]
fn iterators_and_cursors_of_what_is_gone_just_gave_nothing() {
    fn all_refused(ks: &esker::Keyspace, snapshot: &esker::Snapshot, refused: fn(&Error) -> bool) {
        let view = ks.at(snapshot);
        let iters = [ks.iter(), ks.range("a".."z"), ks.prefix("k"), view.iter(), view.prefix("k")];
        for mut iter in iters.into_iter().chain([view.range("a".."z")]) {
            assert!(refused(&iter.next().expect("an error").unwrap_err()));
            assert!(iter.next().is_none());
        }
        assert!(refused(&ks.iter().next_back().expect("an error").unwrap_err()));
        for mut cursor in
            [ks.cursor(), ks.cursor_keys_only(), view.cursor(), view.cursor_keys_only()]
        {
            for step in [cursor.first(), cursor.last(), cursor.seek("k"), cursor.seek_for_prev("k")]
            {
                assert!(refused(&step.unwrap_err()));
            }
            assert!(refused(&cursor.next().unwrap_err()) && refused(&cursor.prev().unwrap_err()));
            assert!(!cursor.valid() && cursor.key().is_empty() && cursor.value().is_empty());
        }
    }
    let dir = tempdir().unwrap();
    let db = small().open(dir.path().join("db")).unwrap();
    let other = db.create_keyspace("other", KeyspaceOptions::new()).unwrap();
    other.put("key", "value").unwrap();
    db.put("key", "value").unwrap();
    let (before, snapshot) = (other.iter(), db.snapshot());
    db.drop_keyspace("other").unwrap();
    all_refused(&other, &snapshot, |e| matches!(e, Error::KeyspaceDropped { .. }));
    // One that was there before goes on.
    assert_eq!(before.map(|e| e.unwrap().1).collect::<Vec<_>>(), [b"value"]);
    let default = db.clone();
    db.close().unwrap();
    all_refused(default.default_keyspace(), &snapshot, |e| matches!(e, Error::Closed));
}

#[test]
fn values_of_a_dropped_keyspace_beside_those_of_another_kept_their_space() {
    let dir = tempdir().unwrap();
    let db = small().segment_size(4 << 20).open(dir.path().join("db")).unwrap();
    let other = db.create_keyspace("other", KeyspaceOptions::new()).unwrap();
    for n in 0..100u32 {
        db.put(n.to_be_bytes(), [1; 32 << 10]).unwrap();
        other.put(n.to_be_bytes(), [2; 32 << 10]).unwrap();
    }
    db.wait_for_compactions().unwrap();
    let before = db.stats().disk_bytes;
    let held = other.get(50u32.to_be_bytes()).unwrap().unwrap();
    db.drop_keyspace("other").unwrap();
    db.wait_for_compactions().unwrap();
    // A reader keeps its value, and no more than that its view's.
    assert_eq!(held, [2; 32 << 10]);
    drop(held);
    // It goes in the background, one round after the last reader.
    let mut after = before;
    for _ in 0..100 {
        db.wait_for_compactions().unwrap();
        after = db.stats().disk_bytes;
        if after + (2 << 20) < before {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    assert!(after + (2 << 20) < before, "{before} bytes on disk before, {after} after");
    for n in 0..100u32 {
        assert_eq!(db.get(n.to_be_bytes()).unwrap().unwrap(), [1; 32 << 10]);
    }
    db.verify().unwrap();
}

#[test]
fn a_value_was_punched_under_a_reader_of_a_dropped_keyspace() {
    let dir = tempdir().unwrap();
    let db = small().segment_size(4 << 20).open(dir.path().join("db")).unwrap();
    for round in 0..20u8 {
        let other = db.create_keyspace("other", KeyspaceOptions::new()).unwrap();
        let value = [round; 20_000];
        other.put("key", value).unwrap();
        db.put([round], value).unwrap();
        // In a table, while the segment may still be part of the log for the sake of the other.
        other.compact_range::<&str>(..).unwrap();
        let held = other.get("key").unwrap().unwrap();
        db.drop_keyspace("other").unwrap();
        for _ in 0..3 {
            db.wait_for_compactions().unwrap();
        }
        assert_eq!(held, value);
        assert_eq!(db.get([round]).unwrap().unwrap(), value);
    }
}

/// Backwards a walk took up the value of each version before it knew whether a newer one follows, or a delete.
#[test]
fn a_walk_backwards_stumbled_over_the_damaged_value_of_an_older_version() {
    use std::os::unix::fs::FileExt;
    let dir = tempdir().unwrap();
    let path = dir.path().join("db");
    let db = small().open(&path).unwrap();
    db.put("a", "first").unwrap();
    db.put("deleted", [0xD1; 20_000]).unwrap();
    db.put("overwritten", [0xD2; 20_000]).unwrap();
    db.flush().unwrap();
    let before = db.snapshot();
    db.delete("deleted").unwrap();
    db.put("overwritten", "new").unwrap();
    for name in files::names(&path).iter().filter(|n| n.ends_with(".log")) {
        let bytes = std::fs::read(path.join(name)).unwrap();
        let file = std::fs::File::options().write(true).open(path.join(name)).unwrap();
        for value in [[0xD1; 1000], [0xD2; 1000]] {
            if let Some(at) = bytes.windows(1000).position(|part| part == value) {
                file.write_all_at(b"damage", at as u64 + 100).unwrap();
            }
        }
    }
    assert!(db.at(&before).get("deleted").is_err() && db.at(&before).get("overwritten").is_err());
    let found: Vec<_> = db.iter().rev().collect::<esker::Result<_>>().unwrap();
    let found: Vec<_> = found.iter().map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
    let entry = |key: &str, value: &str| (key.as_bytes().to_vec(), value.as_bytes().to_vec());
    assert_eq!(found, [entry("overwritten", "new"), entry("a", "first")]);
    let mut cursor = db.cursor();
    assert!(cursor.seek_for_prev("deleted").unwrap());
    assert_eq!(cursor.key(), b"a");
    // Where the damaged value is the one to be seen, it is an error.
    assert!(db.at(&before).iter().next_back().unwrap().is_err());
}

/// Backwards a walk copied each version of a value that was written again and again, and unpacked those in tables.
#[test]
fn a_walk_backwards_copied_the_values_of_all_versions() {
    let dir = tempdir().unwrap();
    let db = small().open(dir.path().join("db")).unwrap();
    for version in 0..20u8 {
        db.put("key", vec![version; 20_000]).unwrap();
    }
    let mut forward = db.cursor();
    assert!(forward.seek("key").unwrap());
    let mut back = db.cursor();
    assert!(back.seek_for_prev("key").unwrap());
    assert_eq!(back.value(), [19; 20_000]);
    // Both see it where it was written.
    assert_eq!(forward.value().as_ptr(), back.value().as_ptr());
    assert!(!back.prev().unwrap());
    // In a table and in memory: the newest visible one of each moment, packed or not, deleted or not.
    let old = db.snapshot();
    db.flush().unwrap();
    db.put("key", vec![20; 20_000]).unwrap();
    let new = db.snapshot();
    db.delete("key").unwrap();
    let last = |mut entries: esker::Iter| entries.next_back().map(|entry| entry.unwrap().1[0]);
    assert_eq!(last(db.at(&old).iter()), Some(19));
    assert_eq!(last(db.at(&new).iter()), Some(20));
    assert_eq!(last(db.iter()), None);
}

/// A range whose entries had not been flushed yet had a size of 0, so that what was said depended on how far the flushes of
/// a machine had come: LevelDB's programs ask right after they have written, and its write buffers are small.
#[test]
fn a_range_had_no_size_before_its_flush() {
    let dir = tempdir().unwrap();
    let db = Options::new().compression(Compression::None).open(dir.path().join("db")).unwrap();
    let key = |n: u32| format!("k{n:020}");
    let size = |from: u32, to: u32| db.approximate_size(key(from)..key(to)).unwrap();
    assert_eq!(db.approximate_size::<&str>(..).unwrap(), 0);
    for n in 0..20_000 {
        db.put(key(n), format!("v{n:020}")).unwrap();
    }
    db.put("large", vec![1; 200_000]).unwrap();
    let about = |bytes: u64, wanted: u64| bytes > wanted / 2 && bytes < wanted * 2;
    for state in ["in the log", "in a table", "half of each"] {
        assert!(about(size(0, 10_000), 420_000), "{state}: {}", size(0, 10_000));
        assert!(about(size(10_000, 20_000), 420_000), "{state}: {}", size(10_000, 20_000));
        let all = db.approximate_size::<&str>(..).unwrap();
        assert!(about(all, 1_040_000), "{state}: {all}");
        assert_eq!((size(30_000, 40_000), size(5, 5), size(9_000, 1_000)), (0, 0, 0), "{state}");
        match state {
            "in the log" => db.flush().unwrap(),
            _ => (0..5_000).for_each(|n| db.put(key(2 * n + 1), format!("w{n:020}")).unwrap()),
        }
    }
}

/// Each key not flushed yet counted as the average of all: one written a million times, or ten large values, were counted for
/// others too.
#[test]
fn the_size_of_a_range_was_made_of_what_lies_elsewhere() {
    let dir = tempdir().unwrap();
    let db = Options::new().compression(Compression::None).open(dir.path().join("db")).unwrap();
    (0..50_000u32).for_each(|n| db.put("counter", n.to_be_bytes()).unwrap());
    (0..1_000u32).for_each(|n| db.put(format!("index/{n:04}"), "small").unwrap());
    (0..10).for_each(|n| db.put(format!("large/{n}"), vec![n; 1 << 20]).unwrap());
    let size = |from: &str, to: &str| db.approximate_size(from..to).unwrap();
    assert_eq!((size("a", "c"), size("m", "z"), size("index/00005", "index/00006")), (0, 0, 0));
    // Some of it may be in tables by now.
    assert!((11..50_000).contains(&size("c", "d")), "{}", size("c", "d"));
    assert!((10_000..50_000).contains(&size("index", "indey")), "{}", size("index", "indey"));
    assert!((10 << 20..11 << 20).contains(&size("large", "largf")));
}

/// Behind the first thousand keys the first of each leaf stood for all of it: of each three, five or fifteen keys of a record
/// it could be always the same one.
#[test]
fn keys_in_a_rhythm_were_all_taken_for_the_first_of_each_leaf() {
    for (rhythm, place) in [(15, 0), (15, 7), (16, 4), (8, 0), (3, 1)] {
        let dir = tempdir().unwrap();
        let db = Options::new().compression(Compression::None).open(dir.path().join("db")).unwrap();
        let mut written = 0;
        for n in 0..30_000u32 {
            let len = if n % rhythm == place { 600 } else { 6 };
            db.put(n.to_be_bytes(), vec![7; len]).unwrap();
            written += 4 + len as u64;
        }
        let size = db.approximate_size::<&[u8]>(..).unwrap();
        assert!(
            (written / 3 * 2..written / 2 * 3).contains(&size),
            "{size} of {written}, {rhythm} {place}"
        );
    }
}

/// A store of up to 512 MiB was merged into one run whenever it was idle, whatever had come: 107 MB were written for 5 MB
/// of updates. And a flush of a sixteenth of it rewrote it in the middle of a burst, to be done again at the end.
#[test]
fn a_few_updates_had_the_whole_store_written_again() {
    let dir = tempdir().unwrap();
    let db = Options::new().compression(Compression::None).open(dir.path().join("db")).unwrap();
    // How much is written for so many entries, and how many runs there are then.
    let settle = |entries: u32, every: u32| {
        let before = db.stats().compaction_bytes_written;
        for n in 0..entries {
            db.put((n * every).to_be_bytes(), [7; 1000]).unwrap();
        }
        db.wait_for_compactions().unwrap();
        let stats = db.stats();
        (stats.compaction_bytes_written - before, stats.keyspaces[0].runs.len())
    };
    assert_eq!(settle(20_000, 1).1, 1);
    let (written, runs) = settle(400, 50);
    assert!(written < 1_000_000 && runs == 2, "{written} bytes, {runs} runs");
    // The same again is worth it soon.
    let (written, runs) = settle(1_600, 12);
    assert!(
        (20_000_000..30_000_000).contains(&written) && runs == 1,
        "{written} bytes, {runs} runs"
    );
    // Who wants one run all the same asks for it, and what is at rest then is not written again for the next few.
    assert_eq!(settle(400, 50).1, 2);
    (0..8_000u32).for_each(|n| db.put((n * 2).to_be_bytes(), [7; 1000]).unwrap());
    db.compact_range::<&[u8]>(..).unwrap();
    assert_eq!(db.stats().keyspaces[0].runs.len(), 1);
    let (written, runs) = settle(400, 50);
    assert!(written < 1_000_000 && runs == 2, "{written} bytes, {runs} runs");
}

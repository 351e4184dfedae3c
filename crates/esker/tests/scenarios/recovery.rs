//! What opening makes of what a crash left.

use std::fs;
use std::path::{Path, PathBuf};

use esker::{KeyspaceOptions, WriteBatch};

use super::common::files::{self, copy, copy_as_killed};
use super::trace;
use super::{alone, assert_sound, contents, small};

/// A store as a kill leaves it: tables, values apart from them, and several segments of log.
/// Returns how many keys there are.
fn killed(root: &Path) -> (PathBuf, usize) {
    let (path, dir) = (root.join("alive"), root.join("killed"));
    let db = small().memory(8 << 20).open(&path).unwrap();
    let other = db.create_keyspace("other", KeyspaceOptions::new()).unwrap();
    for n in 0..300u32 {
        db.put(n.to_be_bytes(), vec![1; if n % 3 == 0 { 2000 } else { 20 }]).unwrap();
    }
    db.flush().unwrap();
    for n in 200..700u32 {
        db.put(n.to_be_bytes(), vec![2; if n % 3 == 0 { 1500 } else { 20 }]).unwrap();
        other.put(n.to_be_bytes(), [3; 90]).unwrap();
    }
    copy_as_killed(&path, &dir);
    (dir, 700)
}

/// A crash during the recovery from a crash lost what the first crash had left.
/// <https://github.com/facebook/rocksdb/issues/7621>, <https://github.com/spacejam/sled/issues/851>,
/// and redb before 4.2.0 (<https://github.com/cberner/redb>)
#[test]
fn recovery_may_be_killed_at_any_call_and_so_may_the_next() {
    let _alone = alone();
    if !trace::works() {
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let (image, keys) = killed(root.path());
    let calls = ["pwrite64", "fdatasync", "fsync", "rename", "unlink", "fallocate", "openat"];
    let mut killed = 0;
    for (i, call) in calls.iter().enumerate() {
        for when in 1..=5 {
            let dir = root.path().join(format!("{call} {when}"));
            copy(&image, &dir);
            // Three in a row, each at a place of its own.
            for depth in 0..3 {
                let call = calls[(i + depth * (when % 3)) % calls.len()];
                // Starting the process opens a few files itself.
                let when = if call == "openat" { 8 + 3 * when } else { when };
                let inject = format!("inject={call}:signal=KILL:when={when}");
                let run = trace::run("open", &dir, &["-e", &inject]);
                killed += usize::from(!run.status.success());
            }
            let db = small().open(&dir).unwrap_or_else(|e| panic!("{call} {when}: {e}"));
            assert_eq!(contents(&db).len(), keys, "{call} {when}");
            assert_eq!(db.get(400u32.to_be_bytes()).unwrap().unwrap()[0], 2, "{call} {when}");
            assert_eq!(db.keyspace("other").unwrap().iter().count(), 500, "{call} {when}");
            db.close().unwrap();
            assert_sound(&dir);
            fs::remove_dir_all(&dir).unwrap();
        }
    }
    println!("{killed} recoveries were killed");
    assert!(killed > 25, "only {killed} recoveries were killed");
}

/// With several keyspaces, what was written to one was gone after a reopen, since another one's
/// flush had moved the end of the log. <https://github.com/fjall-rs/fjall/issues/112>
#[test]
fn a_flush_of_one_keyspace_drops_no_writes_of_another() {
    let _alone = alone();
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("db");
    let mut rounds = 0u32;
    for n in 0..5 {
        let db = small().open(&dir).unwrap();
        let spaces: Vec<_> = (0..4)
            .map(|n| {
                let name = format!("space {n}");
                db.keyspace(&name)
                    .or_else(|_| db.create_keyspace(&name, KeyspaceOptions::new()))
                    .unwrap()
            })
            .collect();
        // One writes much and flushes often, the others now and then.
        for round in 0..100 {
            spaces[0].put(round.to_string(), vec![n; 900]).unwrap();
            let one = &spaces[1 + round % 3];
            one.put(rounds.to_string(), [n]).unwrap();
            rounds += 1;
            if round % 30 == 0 {
                spaces[0].compact_range::<&str>(..).unwrap();
            }
        }
        drop(spaces);
        let killed = root.path().join(format!("killed {n}"));
        copy_as_killed(&dir, &killed);
        drop(db);
        for path in [&dir, &killed] {
            let db = small().open(path).unwrap();
            let count = |n| db.keyspace(&format!("space {n}")).unwrap().iter().count();
            assert_eq!((1..4).map(count).sum::<usize>(), rounds as usize, "{}", path.display());
            assert_eq!(count(0), 100);
        }
    }
}

/// A keyspace was cleared, and replaying the log brought its records back.
/// <https://github.com/fjall-rs/fjall/issues/241>
#[test]
fn replay_brings_nothing_back_that_was_dropped_with_its_keyspace() {
    let _alone = alone();
    let root = tempfile::tempdir().unwrap();
    let (dir, killed) = (root.path().join("db"), root.path().join("killed"));
    let db = small().memory(8 << 20).open(&dir).unwrap();
    for round in 0..3 {
        let space = db.create_keyspace("space", KeyspaceOptions::new()).unwrap();
        for n in 0..50u32 {
            space.put((round * 1000 + n).to_be_bytes(), [7; 100]).unwrap();
        }
        drop(space);
        db.drop_keyspace("space").unwrap();
    }
    let space = db.create_keyspace("space", KeyspaceOptions::new()).unwrap();
    space.put("only", "this").unwrap();
    copy_as_killed(&dir, &killed);
    let db = small().open(&killed).unwrap();
    let all: Vec<_> =
        db.keyspace("space").unwrap().iter().copied_out().collect::<Result<_, _>>().unwrap();
    assert_eq!(all, [(b"only".to_vec(), b"this".to_vec())]);
}

/// What was written after a recovery was not found by the next one.
/// <https://github.com/fjall-rs/fjall/issues/317>
#[test]
fn writes_after_a_recovery_are_kept_by_the_next() {
    let _alone = alone();
    let root = tempfile::tempdir().unwrap();
    let mut at = root.path().join("0");
    drop(small().open(&at).unwrap());
    for n in 1..12u32 {
        let db = small().open(&at).unwrap();
        assert_eq!(contents(&db).len() as u32, 3 * (n - 1), "after {} kills", n - 1);
        let mut batch = WriteBatch::new();
        batch.put([n as u8, 0], vec![n as u8; 3000]);
        batch.put([n as u8, 1], "");
        db.write(batch).unwrap();
        db.put([n as u8, 2], "last").unwrap();
        if n % 3 == 0 {
            db.flush().unwrap();
        }
        let next = root.path().join(n.to_string());
        copy_as_killed(&at, &next);
        drop(db);
        at = next;
    }
}

/// A few bad bytes at the end of the log, or an empty file that a crash had left, and the whole
/// database could not be opened any more. <https://github.com/fjall-rs/fjall/issues/68>,
/// <https://github.com/spacejam/sled/issues/1527>, <https://github.com/spacejam/sled/issues/1533>
#[test]
fn what_a_crash_leaves_does_not_keep_the_store_from_opening() {
    let _alone = alone();
    let root = tempfile::tempdir().unwrap();
    let (image, keys) = killed(root.path());
    let logs = files::ending(&image, ".log");
    let last = logs.iter().rfind(|p| fs::read(p).unwrap()[4096..].iter().any(|b| *b != 0)).unwrap();
    // A flush in the background may have made tables with higher numbers than the logs'.
    let tables = files::ending(&image, ".tbl");
    let number = |p: &PathBuf| p.file_stem().unwrap().to_str().unwrap().parse::<u64>().unwrap();
    let next = logs.iter().chain(&tables).map(number).max().unwrap() + 1;
    let empty = [
        format!("{next:010}.log"),
        format!("{:010}.tbl", next + 1),
        format!("{:010}.tbl", next + 2),
        "CURRENT.tmp".to_string(),
        "MANIFEST-0000000099".to_string(),
    ];
    for bad in 0..8 {
        let dir = root.path().join(format!("bad {bad}"));
        copy(&image, &dir);
        for name in empty.iter().take(bad) {
            fs::write(dir.join(name), b"").unwrap();
        }
        // The last frame, as a power cut tears it.
        let last = dir.join(last.file_name().unwrap());
        let mut bytes = fs::read(&last).unwrap();
        let end = bytes.iter().rposition(|b| *b != 0).unwrap();
        bytes[end - bad * 5..=end].fill(if bad % 2 == 0 { 0 } else { 0xEE });
        fs::write(&last, bytes).unwrap();
        let db = small().open(&dir).unwrap_or_else(|e| panic!("bad {bad}: {e}"));
        let found = contents(&db).len() + db.keyspace("other").unwrap().iter().count();
        assert!((keys + 498..=keys + 500).contains(&found), "bad {bad}: {found}");
        db.put("goes", "on").unwrap();
        db.close().unwrap();
        assert_sound(&dir);
    }
}

/// The header of a file was durable, its growth was not: it ended within what the header spoke of,
/// and opening failed or read beyond the end. <https://github.com/cberner/redb> (`crash_consistency.rs`)
#[test]
fn a_file_that_did_not_grow_as_its_header_says_holds_nothing_and_loses_nothing() {
    let _alone = alone();
    let root = tempfile::tempdir().unwrap();
    let (image, keys) = killed(root.path());
    let logs = files::ending(&image, ".log");
    // The segment that was made ahead, as its header says: 64 KiB.
    let highest = logs.last().unwrap().file_stem().unwrap().to_str().unwrap();
    let number = highest.parse::<u64>().unwrap() + 1;
    let mut header = b"ESKERLOG\x01\0\0\0\0\0\0\0".to_vec();
    header.extend(number.to_le_bytes());
    header.extend((64u64 << 10).to_le_bytes());
    header.extend(xxhash_rust::xxh3::xxh3_64(&header).to_le_bytes());
    for len in [0, 1, 40, 4095, 4096, 4097, 4112, 8192, 60_000] {
        let dir = root.path().join(format!("len {len}"));
        copy(&image, &dir);
        let mut bytes = header.clone();
        bytes.resize(len, 0);
        fs::write(dir.join(format!("{number:010}.log")), bytes).unwrap();
        let db = small().open(&dir).unwrap_or_else(|e| panic!("{len} bytes: {e}"));
        assert_eq!(contents(&db).len(), keys, "{len} bytes");
        db.put("goes", "on").unwrap();
        db.close().unwrap();
        assert_sound(&dir);
    }
}

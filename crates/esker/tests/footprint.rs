//! What a store takes of the disk, of memory and of descriptors follows what is in it.

mod common;

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use common::rng::Rng;
use esker::{Compression, Error, KeyspaceOptions, Options, Stats, WriteBatch};
use tempfile::{TempDir, tempdir};

/// What is held while everything is overwritten.
#[derive(Debug, Clone, Copy)]
enum Held {
    Cursor,
    Slice,
    CursorOfAnother,
    Snapshot,
}

fn live_bytes(len: usize) -> usize {
    // Of the smallest fewer, as there are so many.
    if len == 20 { 500_000 } else { 4_000_000 }
}

/// The state after all of some 4 MB of values of `len` bytes (0: of all sizes) were overwritten `rounds`
/// times, and the same once what was held is dropped.
fn overwritten(held: Held, len: usize, rounds: u32) -> (Stats, Stats) {
    let dir = tempdir().unwrap();
    let db = Options::new().memory(8 << 20).open(dir.path().join("db")).unwrap();
    let other = db.create_keyspace("other", KeyspaceOptions::new()).unwrap();
    other.put("a", [1; 5000]).unwrap();
    let mut rng = Rng::new(common::seed("what a view pins"));
    let lens = [20, 1000, 8000];
    let mut fill = |byte: u8| {
        let mut left = live_bytes(len);
        for n in 0u32.. {
            let len = if len == 0 { lens[n as usize % 3] } else { len };
            if left < len {
                break;
            }
            left -= len;
            // Nothing that packs well.
            let mut value = rng.bytes(len);
            value[0] = byte;
            db.put(n.to_be_bytes(), value).unwrap();
        }
        db.wait_for_compactions().unwrap();
    };
    fill(0);
    let (mut cursor, mut slice, mut snapshot) = (None, None, None);
    match held {
        Held::Cursor => cursor = Some(db.cursor()),
        Held::CursorOfAnother => cursor = Some(other.cursor()),
        Held::Slice => slice = db.get(7u32.to_be_bytes()).unwrap(),
        Held::Snapshot => snapshot = Some(db.snapshot()),
    }
    for round in 0..rounds {
        fill(round as u8 + 1);
    }
    let stats = db.stats();
    if let Some(cursor) = &mut cursor {
        // It still has what it saw.
        assert!(cursor.first().unwrap());
        while cursor.next().unwrap() {
            assert_eq!(cursor.value()[0], 0);
        }
    }
    if let Some(snapshot) = &snapshot {
        assert!(db.at(snapshot).iter().all(|e| e.unwrap().1[0] == 0));
    }
    drop((cursor, slice, snapshot));
    db.wait_for_compactions().unwrap();
    db.wait_for_compactions().unwrap();
    let after = db.stats();
    let show = |s: &Stats| [s.disk_bytes, s.pinned_bytes, s.blob_garbage_bytes, s.log_bytes];
    println!("{held:?} {len} {rounds}: {:?} then {:?}", show(&stats), show(&after));
    (stats, after)
}

/// Any view, of any keyspace, kept the space of all large values from coming back that died while it
/// was held: more and more the longer it was.
#[test]
fn what_a_view_keeps_on_the_disk_is_what_it_can_see() {
    let mut too_much = Vec::new();
    for len in [20, 1000, 8000, 0] {
        for held in [Held::CursorOfAnother, Held::Cursor, Held::Slice, Held::Snapshot] {
            let (then, after) = overwritten(held, len, 8);
            if then.disk_bytes > 20 << 20 {
                too_much.push((held, len, then.disk_bytes));
            }
            // And what a view keeps is told.
            let least = if let Held::Cursor | Held::Slice = held { live_bytes(len) } else { 0 };
            let pinned = then.pinned_bytes as usize;
            // Segments are kept as a whole, and that of the value in the other keyspace has others.
            assert!((least / 2..=2 * least + (3 << 20)).contains(&pinned), "{pinned} bytes");
            assert_eq!(after.pinned_bytes, 0);
        }
    }
    assert!(too_much.is_empty(), "{too_much:?}");
}

/// Bytes of memory that are no file's.
fn anonymous_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|l| l.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

/// Each keyspace that was written to had a filter for a whole segment: half a MiB.
#[test]
fn many_keyspaces_with_a_few_entries_take_little_memory() {
    const COUNT: u32 = 200;
    let dir = tempdir().unwrap();
    let db = Options::new().open(dir.path().join("db")).unwrap();
    let spaces: Vec<_> = (0..COUNT)
        .map(|n| db.create_keyspace(&format!("k{n}"), KeyspaceOptions::new()).unwrap())
        .collect();
    let (resident, used) = (anonymous_memory(), db.stats().memory_used);
    for space in &spaces {
        space.put("key", "value").unwrap();
    }
    let used = db.stats().memory_used.saturating_sub(used);
    let resident = anonymous_memory().saturating_sub(resident);
    println!("{COUNT} keyspaces: {used} bytes by its own account, {resident} resident");
    assert!(used < u64::from(COUNT) * (8 << 10), "{used} bytes");
    assert!(resident < 16 << 20, "{resident} bytes");
}

/// Each open table had made its dictionary ready for packing, which only who writes a table needs, and counted none of it:
/// some 48 KiB.
#[test]
fn many_tables_with_dictionaries_take_little_memory() {
    const COUNT: u64 = 200;
    for compression in [Compression::Lz4, Compression::Zstd] {
        // Where all have the same dictionary it is there once; one of its own each is a few KiB of bytes, which count.
        for (own, least, most) in [(0, 0, 1 << 10), (1000, 2 << 10, 4 << 10)] {
            let dir = tempdir().unwrap();
            let options = || Options::new().compression(compression);
            let db = options().open(dir.path().join("db")).unwrap();
            for space in 0..COUNT {
                let name = format!("k{space}");
                let space_of = db.create_keyspace(&name, KeyspaceOptions::new()).unwrap();
                for n in 0..400 {
                    let digits = (n + space * own).wrapping_mul(0x9E37_79B9_7F4A_7C15);
                    let value = format!("{{\"name\": \"{digits:016x}\", \"active\": true}}");
                    space_of.put(n.to_be_bytes(), value).unwrap();
                }
            }
            db.close().unwrap();
            let db = options().open(dir.path().join("db")).unwrap();
            let with_dictionary = |s: &Stats| -> u64 {
                let runs = s.keyspaces.iter().flat_map(|k| &k.runs);
                runs.map(|r| (r.lz4_tables + r.zstd_tables) as u64).sum()
            };
            assert_eq!(with_dictionary(&db.stats()), COUNT);
            let used = db.stats().memory_used / COUNT;
            println!("{compression:?}: {used} bytes a table");
            assert!((least..most).contains(&used), "{compression:?}, {own}: {used} bytes a table");
        }
    }
}

/// A segment is full as well when the memtables over it take their share of the memory.
#[test]
fn indexes_over_the_active_segment_are_bounded() {
    let dir = tempdir().unwrap();
    let options = Options::new().memory(1 << 20).segment_size(256 << 20);
    let db = options.compression(Compression::None).open(dir.path().join("db")).unwrap();
    let mut most = 0;
    for n in 0..1000u32 {
        let mut batch = WriteBatch::new();
        for m in 0..200u32 {
            batch.put((n.wrapping_mul(0x9E37_79B9) ^ m).to_be_bytes(), "");
        }
        db.write(batch).unwrap();
        if n % 10 == 0 {
            most = most.max(db.stats().memory_used);
        }
    }
    println!("{most} bytes");
    assert!(most < 16 << 20, "{most} bytes");
    assert!(db.stats().compactions > 0, "nothing was flushed");
}

/// A small file system, unmounted when dropped.
struct Disk(TempDir);

impl Disk {
    fn mount(mib: u32) -> Option<Disk> {
        let dir = tempdir().unwrap();
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={mib}m"), "tmpfs"])
            .arg(dir.path())
            .output();
        if mount.is_ok_and(|o| o.status.success()) {
            return Some(Disk(dir));
        }
        println!("skipped: mount is not permitted");
        None
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("-l").arg(self.path()).status());
    }
}

fn files_bytes(dir: &Path, end: &str) -> u64 {
    let files = common::files::ending(dir, end);
    files.iter().map(|f| fs::metadata(f).unwrap().len()).sum()
}

#[test]
fn a_tiny_store_has_a_small_log() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("db");
    let db = Options::new().open(&path).unwrap();
    db.put("key", "value").unwrap();
    assert!(files_bytes(&path, ".log") <= 512 << 10);
    // It grows with what is written, to the usual size. When depends on how fast the background thread makes spares.
    let largest = || {
        let files = common::files::ending(&path, ".log");
        files.iter().filter_map(|f| fs::metadata(f).ok()).map(|m| m.len()).max().unwrap_or(0)
    };
    for n in 0..600_000u32 {
        db.put(n.to_be_bytes(), [7; 400]).unwrap();
        if n % 10_000 == 0 && largest() >= 32 << 20 {
            break;
        }
    }
    assert_eq!(largest(), 32 << 20);
}

/// Filled to the last, a disk of 24 MiB had a log of 16 MiB on it, and nothing could be deleted.
#[test]
fn a_store_on_a_small_disk_is_filled_emptied_and_used_again() {
    for len in [100, 1000, 60_000] {
        let Some(disk) = Disk::mount(24) else { return };
        let path = disk.path().join("db");
        let open = || Options::new().compression(Compression::None).open(&path).unwrap();
        let mut db = open();
        for round in 0..3 {
            let mut written = 0u32;
            let error = loop {
                assert!(written < 1_000_000, "the disk does not fill");
                match db.put(written.to_be_bytes(), vec![written as u8; len]) {
                    Ok(()) => written += 1,
                    Err(e) => break e,
                }
            };
            let held = written as usize * len;
            println!("{len} bytes, round {round}: {written} values, {held} bytes; {error}");
            assert!(error.to_string().to_lowercase().contains("no space left"), "{error}");
            assert!(held > 4 << 20, "{held} bytes on a disk of 24 MiB");
            // All is there, and all but adding works.
            db.flush().unwrap();
            assert_eq!(
                db.iter().filter(|e| e.as_ref().unwrap().1.len() == len).count(),
                written as usize
            );
            if round == 1 {
                db.close().unwrap();
                db = open();
            }
            // What lives is to be written once more: there may be no room for that, and no harm done.
            match db.compact_range::<&[u8]>(..) {
                Ok(()) | Err(Error::Io { .. }) => {}
                Err(e) => panic!("{e}"),
            }
            for n in 0..written {
                db.delete(n.to_be_bytes()).unwrap();
            }
            db.compact_range::<&[u8]>(..).unwrap();
            db.wait_for_compactions().unwrap();
            let left = db.stats().disk_bytes;
            assert!(left < 1 << 20, "{left} bytes of nothing");
            assert_eq!(db.iter().count(), 0);
        }
        db.put("key", "value").unwrap();
        db.close().unwrap();
        assert_eq!(open().get("key").unwrap().as_deref(), Some(&b"value"[..]));
    }
}

/// A flush that found no room stopped the store until `resume`, which took another segment each time.
#[test]
fn a_flush_without_room_goes_on_by_itself() {
    let Some(disk) = Disk::mount(24) else { return };
    // Nothing is flushed while nobody writes, however long the disk takes to be filled.
    let options = Options::new().compression(Compression::None).flush_on_close(false);
    let db = options.open(disk.path().join("db")).unwrap();
    // There is room for what it takes when it is flushed, until somebody else has it.
    db.put(0u32.to_be_bytes(), [0; 100]).unwrap();
    let filler = disk.path().join("filler");
    let mut file = fs::File::create(&filler).unwrap();
    while file.write_all(&[1; 4096]).is_ok() {}
    // Enough for a segment, and not for the flush of the one before.
    file.set_len(fs::metadata(&filler).unwrap().len() - (96 << 10)).unwrap();
    drop(file);
    // Into the segment that is there.
    for n in 1..1000u32 {
        db.put(n.to_be_bytes(), [n as u8; 100]).unwrap();
    }
    // Twice: the failure costs nothing that a later attempt needs.
    for _ in 0..2 {
        let error = db.flush().unwrap_err();
        assert!(error.to_string().to_lowercase().contains("no space left"), "{error}");
        assert!(db.stats().halted.is_none(), "{error}");
        assert_eq!(db.get(7u32.to_be_bytes()).unwrap().as_deref(), Some(&[7; 100][..]));
        db.put("still", "room in the segment").unwrap();
    }
    fs::remove_file(&filler).unwrap();
    db.flush().unwrap();
    assert_eq!(db.iter().count(), 1001);
}

/// What others leave of a disk is enough for a resume: it takes a small segment, not one of the usual
/// size.
#[test]
fn a_store_goes_on_in_a_small_segment() {
    let Some(disk) = Disk::mount(24) else { return };
    let path = disk.path().join("db");
    let db = Options::new().open(&path).unwrap();
    db.put("key", "value").unwrap();
    let ballast = disk.path().join("ballast");
    let free = free_bytes(disk.path());
    fs::write(&ballast, vec![1; (free - (1500 << 10)) as usize]).unwrap();
    db.flush().unwrap();
    for n in 0..100u32 {
        db.put(n.to_be_bytes(), [1; 100]).unwrap();
    }
    db.close().unwrap();
    let db = Options::new().open(&path).unwrap();
    assert_eq!(db.iter().count(), 101);
    db.delete("key").unwrap();
    db.wait_for_compactions().unwrap();
}

/// Bytes that `df` calls available.
fn free_bytes(dir: &Path) -> u64 {
    let df = Command::new("df").args(["-B1", "--output=avail"]).arg(dir).output().unwrap();
    let text = String::from_utf8(df.stdout).unwrap();
    text.lines().nth(1).unwrap().trim().parse().unwrap()
}

/// Files below `dir` that this process has open.
fn open_files(dir: &Path) -> usize {
    let links = fs::read_dir("/proc/self/fd").unwrap().flatten();
    links.filter(|e| fs::read_link(e.path()).is_ok_and(|to| to.starts_with(dir))).count()
}

/// Each segment that waited for a flush had its file open.
#[test]
fn segments_that_wait_hold_no_descriptors() {
    let dir = tempdir().unwrap();
    let path = dir.path().canonicalize().unwrap().join("db");
    let open = || Options::new().memory(64 << 20).segment_size(64 << 10).open(&path).unwrap();
    let db = open();
    let (mut most, mut waiting) = (0, 0);
    for n in 0..60_000u32 {
        db.put(n.wrapping_mul(0x9E37_79B9).to_be_bytes(), [7; 400]).unwrap();
        if n % 100 == 0 {
            most = most.max(open_files(&path));
            waiting = waiting.max(db.stats().log_segments);
        }
    }
    println!("{waiting} segments, {most} files open");
    assert!(waiting > 5, "{waiting} segments are no test");
    assert!(most <= 10, "{most} files are open, for {waiting} segments");
}

/// A verification, and a repair, had a file open for each segment that is kept for its values.
#[test]
fn a_verification_held_a_descriptor_for_each_segment() {
    let dir = tempdir().unwrap();
    let path = dir.path().canonicalize().unwrap().join("db");
    let options = Options::new().memory(1 << 20).segment_size(64 << 10).blob_threshold(1000);
    let db = options.clone().open(&path).unwrap();
    for n in 0..2000u32 {
        db.put(n.to_be_bytes(), vec![n as u8; 20_000]).unwrap();
    }
    db.wait_for_compactions().unwrap();
    db.close().unwrap();
    let segments = fs::read_dir(&path).unwrap().flatten();
    let segments = segments.filter(|f| f.path().extension().is_some_and(|e| e == "log")).count();
    assert!(segments > 20, "{segments} segments are no test");
    let mut most = 0;
    let report = options.verify_with(&path, |_, _| most = most.max(open_files(&path))).unwrap();
    assert_eq!(report.problems, []);
    assert!((1..=10).contains(&most), "{most} files are open, for {segments} segments");
}

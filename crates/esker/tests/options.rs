//! Limits, options and refusals: each gives the error that names it, and leaves the store alone.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::{files, no_case};
use esker::{
    Compression, Db, Error, KeyOrder, KeyspaceOptions, MAX_KEY_LEN, MAX_VALUE_LEN, Options,
};
use tempfile::{TempDir, tempdir};

fn place() -> (TempDir, PathBuf) {
    let dir = tempdir().unwrap();
    let path = dir.path().join("db");
    (dir, path)
}

/// A closed store with a table and one entry.
fn made(path: &Path) {
    let db = Db::open(path).unwrap();
    db.put("k", "v").unwrap();
    db.close().unwrap();
}

macro_rules! assert_is {
    ($result:expr, $error:pat) => {
        match $result {
            Err($error) => {}
            other => panic!("{other:?} is not {}", stringify!($error)),
        }
    };
}

#[test]
fn keys_and_values_at_their_limits() {
    let (_dir, path) = place();
    let db = Db::open(&path).unwrap();
    let longest = vec![b'k'; MAX_KEY_LEN];
    let longer = vec![b'k'; MAX_KEY_LEN + 1];
    db.put(&longest, "").unwrap();
    db.put("", "of the empty key").unwrap();
    assert_is!(db.put(&longer, ""), Error::KeyTooLong { len: 65_537 });
    assert_is!(db.delete(&longer), Error::KeyTooLong { .. });
    // Never touched, so it takes no memory.
    let huge = vec![0u8; MAX_VALUE_LEN + 1];
    assert_is!(db.put("k", &huge), Error::ValueTooLong { len: 1_073_741_825 });
    db.close().unwrap();
    let db = Db::open(&path).unwrap();
    assert_eq!(db.get(&longest).unwrap().unwrap(), b"");
    assert_eq!(db.get("").unwrap().unwrap(), b"of the empty key");
    assert_eq!(db.iter().count(), 2);
}

#[test]
fn keyspaces_by_name() {
    let (_dir, path) = place();
    let db = Db::open(&path).unwrap();
    assert_is!(db.keyspace("a"), Error::UnknownKeyspace { .. });
    let a = db.create_keyspace("a", KeyspaceOptions::new()).unwrap();
    assert_is!(db.create_keyspace("a", KeyspaceOptions::new()), Error::KeyspaceExists { .. });
    assert_is!(db.create_keyspace("default", KeyspaceOptions::new()), Error::KeyspaceExists { .. });
    for name in ["", &"n".repeat(256)] {
        assert_is!(
            db.create_keyspace(name, KeyspaceOptions::new()),
            Error::InvalidKeyspaceName { .. }
        );
    }
    let small = KeyspaceOptions::new().blob_threshold(63);
    assert_is!(db.create_keyspace("b", small), Error::InvalidOption { .. });
    assert_is!(db.drop_keyspace("default"), Error::DefaultKeyspace);
    assert_is!(db.drop_keyspace("b"), Error::UnknownKeyspace { .. });
    db.drop_keyspace("a").unwrap();
    assert_is!(a.put("k", "v"), Error::KeyspaceDropped { .. });
    assert_is!(a.get("k"), Error::KeyspaceDropped { .. });
    assert_eq!(db.keyspaces(), ["default"]);
}

#[test]
fn options_that_cannot_be() {
    let (_dir, path) = place();
    let new = Options::new;
    for (options, name) in [
        (new().memory((1 << 20) - 1), "memory"),
        (new().block_size(0), "block_size"),
        (new().block_size(5000), "block_size"),
        (new().block_size(65536 + 4096), "block_size"),
        (new().segment_size(65535), "segment_size"),
        (new().segment_size((1 << 32) + 1), "segment_size"),
        (new().blob_threshold(63), "blob_threshold"),
    ] {
        match options.open(&path) {
            Err(Error::InvalidOption { option, .. }) => assert_eq!(option, name),
            other => panic!("{name}: {other:?}"),
        }
        assert_is!(options.validate(), Error::InvalidOption { .. });
    }
    assert!(!path.exists());
    assert!(new().validate().is_ok());
}

#[test]
fn what_is_not_a_store() {
    let (dir, path) = place();
    let strict = || Options::new().create_if_missing(false);
    let file = dir.path().join("file");
    fs::write(&file, "text").unwrap();
    for options in [strict(), Options::new(), Options::new().read_only(true)] {
        assert!(options.open(&file).is_err());
        assert_eq!(fs::read(&file).unwrap(), b"text");
    }
    for options in [strict(), Options::new().read_only(true)] {
        assert_is!(options.clone().open(&path), Error::NotAStore { .. });
        assert!(!path.exists());
        let empty = dir.path().join("empty");
        fs::create_dir_all(&empty).unwrap();
        assert_is!(options.clone().open(&empty), Error::NotAStore { .. });
        assert!(files::names(&empty).is_empty());
        let foreign = dir.path().join("foreign");
        fs::create_dir_all(&foreign).unwrap();
        fs::write(foreign.join("notes.txt"), "text").unwrap();
        assert_is!(options.open(&foreign), Error::NotAStore { .. });
        assert_is!(Db::verify_path(&foreign), Error::NotAStore { .. });
        assert_is!(Db::repair(&foreign), Error::NotAStore { .. });
        assert_is!(Db::destroy(&foreign), Error::NotAStore { .. });
        assert_eq!(files::names(&foreign), ["notes.txt"]);
    }
    made(&path);
    assert_is!(Options::new().error_if_exists(true).open(&path), Error::StoreExists { .. });
    let db = strict().open(&path).unwrap();
    assert_eq!(db.get("k").unwrap().unwrap(), b"v");
}

/// Sets a format number and the checksum (XXH3-64 of what is before it) that vouches for it.
fn patch_format(path: &Path, format_at: usize, sum_at: usize, from: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[format_at..format_at + 4].copy_from_slice(&77u32.to_le_bytes());
    let sum = xxhash_rust::xxh3::xxh3_64(&bytes[from..sum_at]);
    bytes[sum_at..sum_at + 8].copy_from_slice(&sum.to_le_bytes());
    fs::write(path, bytes).unwrap();
}

#[test]
fn formats_of_the_future() {
    let (dir, path) = place();
    made(&path);
    let table = dir.path().join("table");
    files::copy(&path, &table);
    let manifest =
        path.join(files::names(&path).iter().find(|n| n.starts_with("MANIFEST")).unwrap());
    patch_format(&manifest, 8, 24, 0);
    assert_is!(Db::open(&path), Error::UnsupportedFormat { found: 77, .. });
    assert_is!(Db::verify_path(&path), Error::UnsupportedFormat { .. });
    let file = files::ending(&table, ".tbl").remove(0);
    let footer = fs::metadata(&file).unwrap().len() as usize - 96;
    patch_format(&file, footer + 76, footer + 80, footer);
    assert_is!(Db::open(&table), Error::UnsupportedFormat { found: 77, .. });
}

#[test]
fn the_order_a_store_was_made_with() {
    let (_dir, path) = place();
    let db = Options::new().comparator(KeyOrder::Reverse).open(&path).unwrap();
    db.create_keyspace("words", KeyspaceOptions::new().comparator(no_case())).unwrap();
    db.put("k", "v").unwrap();
    db.close().unwrap();
    assert_is!(Db::open(&path), Error::ComparatorMissing { .. });
    let knowing = || Options::new().keyspace_comparator("words", no_case());
    assert_is!(
        knowing().comparator(KeyOrder::Bytewise).open(&path),
        Error::ComparatorMismatch { .. }
    );
    let wrong = Options::new().keyspace_comparator("words", KeyOrder::Bytewise);
    assert_is!(wrong.open(&path), Error::ComparatorMismatch { .. });
    let db = knowing().open(&path).unwrap();
    assert_eq!(db.get("k").unwrap().unwrap(), b"v");
}

#[test]
fn a_read_only_store_is_left_as_it_is() {
    let (dir, path) = place();
    let db = Db::open(&path).unwrap();
    db.put("flushed", "1").unwrap();
    db.flush().unwrap();
    db.put("k", "v").unwrap();
    let killed = dir.path().join("killed");
    files::copy_as_killed(&path, &killed);
    let before = files::contents(&killed);
    let db = Options::new().read_only(true).open(&killed).unwrap();
    assert_eq!(db.iter().count(), 2);
    assert_is!(db.put("k", "w"), Error::ReadOnly);
    assert_is!(db.delete("k"), Error::ReadOnly);
    assert_is!(db.bulk_load([("k", "w")]), Error::ReadOnly);
    assert_is!(db.create_keyspace("a", KeyspaceOptions::new()), Error::ReadOnly);
    assert_eq!(db.get("k").unwrap().unwrap(), b"v");
    db.close().unwrap();
    assert!(files::contents(&killed) == before);
}

#[test]
fn after_close_there_is_nothing_to_read() {
    let (_dir, path) = place();
    let options = || Options::new().compression(Compression::None);
    let db = options().open(&path).unwrap();
    db.put("k", [7; 5000]).unwrap();
    let (other, slice) = (db.clone(), db.get("k").unwrap().unwrap());
    db.close().unwrap();
    assert_is!(other.get("k"), Error::Closed);
    assert_is!(other.put("k", "v"), Error::Closed);
    assert_is!(other.flush(), Error::Closed);
    drop(other);
    assert_is!(options().open(&path), Error::Locked { .. });
    assert_eq!(slice, [7; 5000]);
    drop(slice);
    let db = options().open(&path).unwrap();
    assert_eq!(db.get("k").unwrap().unwrap(), [7; 5000]);
}

/// Not a test of its own: the other process of the next one.
#[test]
fn holder() {
    let Some(path) = std::env::var_os("ESKER_TEST_HOLD") else { return };
    let db = Db::open(&path).unwrap();
    db.put("held", "yes").unwrap();
    fs::write(Path::new(&path).with_extension("ready"), "").unwrap();
    std::thread::sleep(Duration::from_secs(60));
}

struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[test]
fn one_process_and_one_handle_at_a_time() {
    let (_dir, path) = place();
    let db = Db::open(&path).unwrap();
    // A refused open, of whatever kind, does not give up the lock of the first.
    for _ in 0..3 {
        assert_is!(Db::open(&path), Error::Locked { .. });
        assert_is!(Options::new().read_only(true).open(&path), Error::Locked { .. });
        assert_is!(Db::verify_path(&path), Error::Locked { .. });
        assert_is!(Db::repair(&path), Error::Locked { .. });
        assert_is!(Db::destroy(&path), Error::Locked { .. });
    }
    db.close().unwrap();

    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "holder"]).env("ESKER_TEST_HOLD", &path).stdout(Stdio::null());
    let holder = Killed(command.spawn().unwrap());
    let start = Instant::now();
    while !path.with_extension("ready").exists() {
        assert!(start.elapsed() < Duration::from_secs(30), "the other process does not start");
        std::thread::sleep(Duration::from_millis(5));
    }
    for _ in 0..3 {
        assert_is!(Db::open(&path), Error::Locked { .. });
    }
    drop(holder);
    let db = Db::open(&path).unwrap();
    assert_eq!(db.get("held").unwrap().unwrap(), b"yes");
}

#[test]
fn no_permission() {
    use std::os::unix::fs::PermissionsExt;
    let (dir, path) = place();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o555)).unwrap();
    let opened = Db::open(&path);
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    if opened.is_ok() {
        println!("no_permission: skipped, this user may do anything");
        return;
    }
    match opened {
        Err(e @ Error::Io { .. }) => assert!(e.to_string().contains("owner and mode"), "{e}"),
        other => panic!("{other:?}"),
    }
    made(&path);
}

/// A small file system, unmounted when dropped.
struct Disk(TempDir);

impl Disk {
    fn mount() -> Option<Disk> {
        let dir = tempdir().unwrap();
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=24m", "tmpfs"])
            .arg(dir.path())
            .output();
        mount.is_ok_and(|o| o.status.success()).then(|| Disk(dir))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("-l").arg(self.0.path()).status());
    }
}

#[test]
fn a_full_disk_stops_writes_until_there_is_space() {
    let Some(disk) = Disk::mount() else {
        println!("a_full_disk_stops_writes_until_there_is_space: skipped, mount is not permitted");
        return;
    };
    let path = disk.0.path().join("db");
    let ballast = disk.0.path().join("ballast");
    fs::write(&ballast, vec![1; 12 << 20]).unwrap();
    let options = || {
        let options = Options::new().memory(1 << 20).segment_size(256 << 10);
        options.compression(Compression::None)
    };
    let value = |n: u32| [&n.to_be_bytes()[..], &[n as u8; 500]].concat();
    let db = options().open(&path).unwrap();
    let mut written = 0u32;
    let error = loop {
        assert!(written < 100_000, "the disk does not fill");
        match db.put(written.to_be_bytes(), value(written)) {
            Ok(()) => written += 1,
            Err(e) => break e,
        }
    };
    let full = |e: &Error| e.to_string().to_lowercase().contains("no space left");
    assert!(full(&error), "{error}");
    let check = |db: &Db, written: u32| {
        for n in 0..written {
            assert_eq!(
                db.get(n.to_be_bytes()).unwrap().expect("it was acknowledged"),
                &value(n)[..]
            );
        }
    };
    check(&db, written);
    fs::remove_file(&ballast).unwrap();
    db.resume().unwrap();
    for _ in 0..1000 {
        db.put(written.to_be_bytes(), value(written)).unwrap();
        written += 1;
    }
    check(&db, written);
    db.close().unwrap();
    let db = options().open(&path).unwrap();
    check(&db, written);
    assert!(db.iter().count() as u32 <= written + 1);
}

/// Settings from a configuration file: what is missing is the default, and a mistake is named.
#[cfg(feature = "serde")]
#[test]
fn options_are_read_from_a_configuration_file() {
    let text = r#"{ "memory": 33554432, "durability": "synced", "compression": "none", "comparator": "reverse",
        "paranoid_checks": true, "segment_size": 1048576, "error_if_exists": true }"#;
    let options: Options = serde_json::from_str(text).unwrap();
    let written = serde_json::to_value(&options).unwrap();
    let given: serde_json::Value = serde_json::from_str(text).unwrap();
    for (name, value) in given.as_object().unwrap() {
        assert_eq!(&written[name], value, "{name}");
    }
    assert_eq!(written["blob_threshold"], 4096, "a default");
    let (_dir, path) = place();
    let db = options.open(&path).unwrap();
    db.put("a", "1").unwrap();
    db.put("b", "2").unwrap();
    assert_eq!(db.iter().next().unwrap().unwrap().0, "b", "in reverse");
    assert_is!(options.open(&path), Error::StoreExists { .. } | Error::Locked { .. });
    // Every setter of Options has its field, but the ones for comparators of the program's own and for tests.
    let source = include_str!("../src/options.rs");
    let setters = source[source.find("impl Options {").unwrap()..].split("pub fn ").skip(1);
    let names = setters.filter(|s| s.contains("(mut self,")).map(|s| s.split('(').next().unwrap());
    let mut known = 0;
    for name in names.filter(|n| !["keyspace_comparator", "table_size"].contains(n)) {
        assert!(written.get(name).is_some(), "{name}");
        known += 1;
    }
    assert_eq!(known, written.as_object().unwrap().len());
    for (wrong, named) in [
        (r#"{ "memroy": 1 }"#, "memroy"),
        (r#"{ "durability": "maybe" }"#, "maybe"),
        (r#"{ "comparator": "mine" }"#, "mine"),
        (r#"{ "memory": -1 }"#, "-1"),
    ] {
        let e = serde_json::from_str::<Options>(wrong).unwrap_err().to_string();
        assert!(e.contains(named), "{e}");
    }
}

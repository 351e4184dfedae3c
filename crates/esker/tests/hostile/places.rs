//! Things that are no files, in place of files.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use esker::{Db, Error};

use super::common::files::{self, copy};
use super::{closed, killed, options, survive};

/// What can stand in place of a file.
const PLACES: [&str; 7] = [
    "a link to a copy",
    "a dangling link",
    "a link to itself",
    "a pipe",
    "a directory",
    "a device",
    "a socket",
];

fn put(what: &str, path: &Path, outside: &Path) {
    let copy = outside.join(path.file_name().unwrap());
    match what {
        "a link to a copy" => {
            if path.exists() {
                fs::copy(path, &copy).unwrap();
            } else {
                fs::write(&copy, b"outside").unwrap();
            }
        }
        _ => fs::write(&copy, b"outside").unwrap(),
    }
    drop(fs::remove_file(path));
    match what {
        "a link to a copy" => symlink(&copy, path).unwrap(),
        "a dangling link" => symlink(outside.join("nowhere"), path).unwrap(),
        "a link to itself" => symlink(path, path).unwrap(),
        "a pipe" => assert!(Command::new("mkfifo").arg(path).status().unwrap().success()),
        "a directory" => {
            fs::create_dir(path).unwrap();
            fs::write(path.join("inside"), b"of somebody").unwrap();
        }
        "a device" => symlink("/dev/zero", path).unwrap(),
        _ => drop(std::os::unix::net::UnixListener::bind(path).unwrap()),
    }
}

/// All that is outside: nothing of it may change.
fn outside_of(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    files::contents(dir)
}

#[test]
fn links_pipes_devices_and_directories_in_place_of_files() {
    let root = tempfile::tempdir().unwrap();
    let image = root.path().join("image");
    killed(root.path(), &image);
    let mut names = files::names(&image);
    // And where a file is about to be made.
    names.extend(
        ["CURRENT.tmp", "0000000099.log", "0000000099.tbl", "MANIFEST-0000000009"]
            .map(String::from),
    );
    let mut cases = 0;
    for name in &names {
        for what in PLACES {
            let (dir, outside) = (root.path().join("db"), root.path().join("outside"));
            fs::create_dir(&outside).unwrap();
            copy(&image, &dir);
            // A socket's path is short.
            let path = dir.join(name);
            put(what, &path, &outside);
            let before = outside_of(&outside);
            let case = format!("{what} named {name}");
            survive(&dir, &case);
            assert!(outside_of(&outside) == before, "{case}: something outside was touched");
            assert_eq!(files::names(&outside), before.keys().cloned().collect::<Vec<_>>());
            fs::remove_dir_all(&dir).unwrap();
            fs::remove_dir_all(&outside).unwrap();
            cases += 1;
        }
    }
    println!("{cases} cases");
}

#[test]
fn repair_puts_nothing_aside_through_a_link() {
    let root = tempfile::tempdir().unwrap();
    let (dir, outside) = (root.path().join("db"), root.path().join("outside"));
    closed(&dir);
    fs::create_dir(&outside).unwrap();
    symlink(&outside, dir.join("lost")).unwrap();
    let table = files::ending(&dir, ".tbl").pop().unwrap();
    fs::write(&table, b"damaged").unwrap();
    let repaired = Db::repair(&dir);
    assert_eq!(files::names(&outside), Vec::<String>::new(), "a file went outside");
    let error = repaired.expect_err("what is damaged cannot be put aside").to_string();
    assert!(error.contains("lost"), "{error}");
    // Nothing is lost by it: once the link is gone, repair goes on.
    fs::remove_file(dir.join("lost")).unwrap();
    Db::repair(&dir).unwrap();
    assert!(dir.join("lost").join(table.file_name().unwrap()).exists());
    options().open(&dir).unwrap();
}

#[test]
fn a_current_that_names_a_path_is_damaged() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("db");
    closed(&dir);
    let manifest = files::names(&dir).into_iter().find(|n| n.starts_with("MANIFEST-")).unwrap();
    fs::copy(dir.join(&manifest), root.path().join("MANIFEST-0000000077")).unwrap();
    for name in [
        "../MANIFEST-0000000077",
        "/etc/passwd",
        "MANIFEST-0000000001/../../MANIFEST-0000000077",
        "MANIFEST-99999999999999999999",
        "MANIFEST-00000000000000000001",
        "MANIFEST-+000000001",
        "",
        "\0",
    ] {
        let sum = xxhash_rust::xxh3::xxh3_64(name.as_bytes());
        fs::write(dir.join("CURRENT"), format!("{name} {sum:016x}\n")).unwrap();
        let error = options().open(&dir).map(drop).expect_err(name);
        assert!(error.is_corruption(), "{name}: {error}");
    }
    // Megabytes where one line should be are not read.
    fs::write(dir.join("CURRENT"), vec![b'M'; 50 << 20]).unwrap();
    assert!(options().open(&dir).map(drop).unwrap_err().is_corruption());
}

#[test]
fn a_lock_file_that_is_none_is_an_error_and_no_wait() {
    for what in PLACES {
        let root = tempfile::tempdir().unwrap();
        let (dir, outside) = (root.path().join("db"), root.path().join("outside"));
        closed(&dir);
        fs::create_dir(&outside).unwrap();
        put(what, &dir.join("LOCK"), &outside);
        survive(&dir, what);
        if what.contains("link") || what == "a directory" || what == "a device" {
            let opened = options().open(&dir).map(drop);
            assert!(matches!(opened, Err(Error::Io { .. })), "{what}: {opened:?}");
        }
    }
}

#[test]
fn destroy_removes_what_is_the_stores_and_nothing_else() {
    let root = tempfile::tempdir().unwrap();
    let (dir, outside) = (root.path().join("db"), root.path().join("outside"));
    closed(&dir);
    fs::create_dir(&outside).unwrap();
    let target: PathBuf = outside.join("kept");
    fs::write(&target, b"kept").unwrap();
    symlink(&target, dir.join("0000000098.tbl")).unwrap();
    symlink(&outside, dir.join("elsewhere")).unwrap();
    fs::write(dir.join("notes"), b"of somebody").unwrap();
    assert!(Command::new("mkfifo").arg(dir.join("0000000097.log")).status().unwrap().success());
    assert!(fs::metadata(dir.join("0000000097.log")).unwrap().file_type().is_fifo());
    Db::destroy(&dir).unwrap();
    assert_eq!(fs::read(&target).unwrap(), b"kept");
    assert_eq!(files::names(&dir), ["elsewhere", "notes"]);
}

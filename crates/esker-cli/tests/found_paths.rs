//! Files of a store, a source or a target that are no ordinary ones: each test is named after its bug.

mod common;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::process::Command;

use common::{Dir, Ran};

/// Runs `esker` with little memory, and only for so long: what hangs or reads without end fails.
fn within_limits(dir: &Dir, line: &str) -> Ran {
    let mut command = Command::new("timeout");
    let has_prlimit = Command::new("prlimit").arg("--version").output().is_ok();
    let limit: &[&str] = if has_prlimit { &["prlimit", "--as=500000000"] } else { &[] };
    command.arg("20").args(limit).arg(env!("CARGO_BIN_EXE_esker")).args(line.split(' '));
    Ran::from(command.current_dir(dir.0.path()).output().expect("start timeout"))
}

/// Whoever can put one file into a directory stopped all that looks at it.
#[test]
fn a_current_that_is_a_pipe_or_a_device_hung_the_command() {
    for pipe in [true, false] {
        for beside in ["000005.ldb", "0000000005.tbl"] {
            let dir = Dir::new();
            fs::create_dir(dir.path("odd")).unwrap();
            dir.write(&format!("odd/{beside}"), "");
            let current = dir.path("odd/CURRENT");
            if pipe {
                assert!(Command::new("mkfifo").arg(&current).status().unwrap().success());
            } else {
                std::os::unix::fs::symlink("/dev/zero", &current).unwrap();
            }
            let reads = ["get odd k", "verify odd", "put odd k v --create"];
            let imports = ["import leveldb odd new", "import rocksdb odd new"];
            for line in reads.into_iter().chain(imports) {
                let ran = within_limits(&dir, line);
                assert_eq!(ran.code, 3, "esker {line}: {ran:?}");
            }
            // A store of our own is repaired, and what is no file put aside or replaced.
            let ran = within_limits(&dir, "repair odd");
            assert_eq!(ran.code, if beside == "000005.ldb" { 3 } else { 4 }, "{ran:?}");
        }
    }
}

/// An import into a private directory left one that everybody could read; so did a dump over the file of another user,
/// when root made it.
#[test]
fn what_replaced_a_private_directory_or_file_was_open_to_others() {
    let dir = Dir::new();
    let mut writer = esker_transfer::leveldb::Writer::create(&dir.path("ldb"), true).unwrap();
    writer.add(b"a", b"1").unwrap();
    writer.finish().unwrap();
    for (name, owner) in [("store", None), ("out.ldb", None), ("out.tsv", Some(12_345))] {
        let path = dir.path(name);
        match name {
            "out.tsv" => dir.write(name, "older"),
            _ => fs::create_dir(&path).unwrap(),
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o750)).unwrap();
        // Only root may, and not everywhere.
        let _ = chown(&path, owner, Some(12_346));
    }
    let of = |name: &str| {
        let m = fs::metadata(dir.path(name)).unwrap();
        (m.mode() & 0o7777, m.uid(), m.gid())
    };
    let before = ["store", "out.ldb", "out.tsv"].map(of);
    dir.ok("import leveldb ldb store");
    dir.ok("export leveldb store out.ldb");
    dir.ok("dump store out.tsv");
    assert_eq!(["store", "out.ldb", "out.tsv"].map(of), before);
    assert_eq!(dir.read("out.tsv"), b"a\t1\n");
}

/// It became one of the runner's, which the other could not write to any more. Nothing is read before it is refused.
#[test]
fn a_directory_of_another_user_is_not_replaced_by_the_runners() {
    let dir = Dir::new();
    dir.load("a\t1\n");
    fs::create_dir(dir.path("ldb")).unwrap();
    dir.write("ldb/CURRENT", "MANIFEST-000001\n");
    dir.write("out.tsv", "older");
    for name in ["new", "out.ldb"] {
        fs::create_dir(dir.path(name)).unwrap();
        if chown(dir.path(name), Some(65_534), Some(65_534)).is_err() {
            println!("left out: nothing can be given to another user here");
            return;
        }
    }
    for (line, name) in
        [("export leveldb db out.ldb", "out.ldb"), ("import leveldb ldb new", "new")]
    {
        dir.run(line).fails(3, "belongs to user 65534");
        assert_eq!(fs::metadata(dir.path(name)).unwrap().uid(), 65_534);
        assert!(!dir.path(&format!("{name}.partial")).exists());
    }
    assert_eq!(dir.read("out.tsv"), b"older");
}

/// It took the place of a file of the store, which did not open any more.
#[test]
fn a_dump_into_the_directory_of_its_store_replaced_a_file_of_it() {
    let dir = Dir::new();
    assert_eq!(within_limits(&dir, "put db k v --create").code, 0);
    std::os::unix::fs::symlink("db", dir.path("link")).unwrap();
    std::os::unix::fs::symlink("db/CURRENT", dir.path("out.tsv")).unwrap();
    std::os::unix::fs::symlink("db/0000000009.log", dir.path("dangling")).unwrap();
    for file in ["db/CURRENT", "db/LOCK", "db/new.tsv", "./link/CURRENT", "out.tsv", "dangling"] {
        let ran = within_limits(&dir, &format!("dump db {file}"));
        assert_eq!(ran.code, 2, "{file}: {ran:?}");
    }
    assert_eq!(within_limits(&dir, "verify db").code, 0);
    assert_eq!(within_limits(&dir, "get db k").code, 0);
    assert_eq!(within_limits(&dir, "dump db elsewhere.tsv").code, 0);
}

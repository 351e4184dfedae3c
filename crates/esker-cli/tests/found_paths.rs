//! Files of a store, a source or a target that are no ordinary ones: each test is named after its bug.

mod common;

use std::fs;
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
            for line in reads.into_iter().chain(["import leveldb odd new"]) {
                let ran = within_limits(&dir, line);
                assert_eq!(ran.code, 3, "esker {line}: {ran:?}");
            }
            // A store of our own is repaired, and what is no file put aside or replaced.
            let ran = within_limits(&dir, "repair odd");
            assert_eq!(ran.code, if beside == "000005.ldb" { 3 } else { 0 }, "{ran:?}");
        }
    }
}

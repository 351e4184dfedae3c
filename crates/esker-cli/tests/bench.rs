//! `esker bench` starts the program `esker-bench`: a script takes its place here and says what it
//! was given.

mod common;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Stdio};

use common::{Dir, Ran, make_program};

/// A place with the command in it, and nothing beside it.
fn installed() -> Dir {
    let dir = Dir::new();
    fs::create_dir(dir.path("bin")).expect("a directory");
    let (built, here) = (env!("CARGO_BIN_EXE_esker"), dir.path("bin/esker"));
    if fs::hard_link(built, &here).is_err() {
        make_program(&here, &fs::read(built).expect("the command")); // another file system
    }
    dir
}

/// A program that says its name and its arguments, and repeats what it reads.
fn fake(at: &Path, name: &str, code: u8) {
    fs::create_dir_all(at).expect("a directory");
    let script =
        format!("#!/bin/sh\nprintf '<%s>' {name} \"$@\"; cat\necho said >&2\nexit {code}\n");
    make_program(&at.join("esker-bench"), script.as_bytes());
}

/// Runs `esker bench` as installed in `dir`, with nothing on the path but the system's programs and
/// `more`.
fn bench(dir: &Dir, more: &Path, args: &[&[u8]]) -> Ran {
    fs::write(dir.path("input"), "typed").expect("a file");
    let output = Command::new(dir.path("bin/esker"))
        .arg("bench")
        .args(args.iter().map(|a| OsStr::from_bytes(a)))
        .env("PATH", format!("{}:/usr/bin:/bin", more.display()))
        .stdin(Stdio::from(fs::File::open(dir.path("input")).expect("a file")))
        .output()
        .expect("start esker");
    Ran::from(output)
}

#[test]
fn the_program_beside_the_command_gets_every_argument_and_its_exit_code_comes_back() {
    let dir = installed();
    fake(&dir.path("bin"), "beside", 7);
    fake(&dir.path("path"), "on-path", 8);
    let lists: [&[&[u8]]; 9] = [
        &[],
        &[b"--help"],
        &[b"-h", b"--version"],
        &[b"help"],
        &[b"--setup", b"--source", b"a b"],
        &[b"report", b"", b"not\xffutf8", b"--json"],
        &[b"--", b"--list", b"--"],
        &[b"compare", b"a", b"--", b"--threshold=5"],
        &[b"bench-child", b"{\"a\": 1}"],
    ];
    for args in lists {
        let ran = bench(&dir, &dir.path("path"), args);
        let mut wanted = b"<beside>".to_vec();
        for arg in args {
            wanted.extend_from_slice(&[b"<", *arg, b">"].concat());
        }
        wanted.extend_from_slice(b"typed");
        assert_eq!(String::from_utf8_lossy(&ran.out), String::from_utf8_lossy(&wanted));
        assert_eq!((ran.code, ran.err.as_str()), (7, "said\n"), "{args:?}");
    }
}

#[test]
fn otherwise_it_is_the_one_on_the_path() {
    let dir = installed();
    fake(&dir.path("path"), "on-path", 0);
    // Neither a directory of that name nor a file that nobody may run is the program.
    fs::create_dir_all(dir.path("bin/esker-bench")).expect("a directory");
    fs::create_dir(dir.path("first")).expect("a directory");
    fs::write(dir.path("first/esker-bench"), "no program").expect("a file");
    let path = format!("{}:{}", dir.path("first").display(), dir.path("path").display());
    let ran = bench(&dir, Path::new(&path), &[b"--list"]);
    assert_eq!(String::from_utf8_lossy(&ran.out), "<on-path><--list>typed");
    assert_eq!((ran.code, ran.err.as_str()), (0, "said\n"));
}

#[test]
fn without_the_program_the_error_says_where_it_was_sought_and_how_to_get_it() {
    let dir = installed();
    for args in [&[b"--quick".as_slice()][..], &[b"--help"]] {
        let ran = bench(&dir, &dir.path("nothing"), args);
        let bin = fs::canonicalize(dir.path("bin")).expect("a directory");
        ran.fails(2, &format!("esker-bench is neither in {}", bin.display()));
        ran.fails(2, "nor on PATH");
        ran.fails(2, "`cargo install --path crates/esker-bench`");
    }
    // What is said of it without running it needs no program.
    let help = Command::new(dir.path("bin/esker")).args(["help", "bench"]).output().expect("help");
    let help = String::from_utf8_lossy(&help.stdout);
    assert!(help.contains("a program of its own") && help.contains("esker-bench --help"), "{help}");
}

#[test]
fn a_program_that_cannot_be_started_is_an_error() {
    let dir = installed();
    make_program(&dir.path("bin/esker-bench"), b"#!/no/such/interpreter\n");
    bench(&dir, &dir.path("nothing"), &[]).fails(3, "cannot start");
}

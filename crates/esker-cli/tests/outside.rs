//! A system that fails, seen from outside: the command itself, with calls made to fail (strace),
//! with few descriptors, little memory and a full disk. Each ends with an answer, and what was in
//! the store before is there after it.
//!
//! Where strace or the right to mount is missing, a test says so and passes.

mod common;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use common::Dir;

const ENTRIES: usize = 400;

/// A store of some tables and separated values, and more entries to load.
fn prepared() -> Dir {
    let dir = Dir::new();
    let line = |n: usize, value: String| format!("key {n:04}\t{value}\n");
    let values = |n: usize| if n.is_multiple_of(50) { "v".repeat(5000) } else { n.to_string() };
    let tsv: String = (0..ENTRIES).map(|n| line(n, values(n))).collect();
    dir.load(&tsv);
    let more: String = (ENTRIES..2 * ENTRIES).map(|n| line(n, values(n))).collect();
    dir.write("more.tsv", more);
    dir
}

/// The command that is made to fail, with the program before it that does so.
fn run(dir: &Dir, before: &[&str], command: &[&str]) -> Output {
    let mut all = Command::new(before[0]);
    all.args(&before[1..]).arg(env!("CARGO_BIN_EXE_esker")).args(command);
    all.current_dir(dir.0.path()).output().expect("start a program")
}

fn assert_no_panic(said: &str, what: &str) {
    // Before `main` there is only the standard library, which panics when it gets no stack for signals.
    let begun = !said.contains("failed to allocate an alternative stack");
    assert!(!begun || !said.contains("panicked"), "{what}: {said}");
}

/// The command ended in order and the store is sound.
fn assert_sound(dir: &Dir, output: &Output, what: &str) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_no_panic(&said, what);
    // Without an exit code: memory for the program itself was refused.
    let code = output.status.code();
    if code == Some(3) {
        assert!(said.contains("esker: "), "{what}: {said}");
    }
    let count: usize = dir.ok("count db").trim().parse().expect("a number");
    let most = 2 * ENTRIES;
    assert!((ENTRIES..=most).contains(&count), "{what}: {count} entries");
    assert!(code != Some(0) || count == most, "{what}: done, and {count} entries");
    assert!(dir.ok("verify db").starts_with("sound: "), "{what}");
    let got = dir.run_args(&[b"get", b"db", b"key 0050"], b"");
    assert!(got.code == 0 && got.out.starts_with(b"vvvv"), "{what}: {got:?}");
}

/// A copy of the prepared store, so that each failure finds the same one.
fn copy(from: &Dir) -> Dir {
    let to = Dir::new();
    fs::create_dir(to.path("db")).expect("a directory");
    for entry in fs::read_dir(from.path("db")).expect("a store") {
        let entry = entry.expect("a file");
        fs::copy(entry.path(), to.path("db").join(entry.file_name())).expect("a copy");
    }
    fs::copy(from.path("more.tsv"), to.path("more.tsv")).expect("a copy");
    to
}

fn strace_works() -> bool {
    let run = Command::new("strace").args(["-qq", "-e", "trace=none", "true"]).output();
    let works = run.is_ok_and(|out| out.status.success());
    if !works {
        println!("left out: no strace here, or tracing is not allowed");
    }
    works
}

/// How often a command makes a call: the most of any of its threads.
fn calls(dir: &Dir, call: &str, command: &[&str]) -> usize {
    let to = dir.path("trace");
    let trace = format!("trace={call}");
    let to_text = to.to_str().expect("text");
    run(dir, &["strace", "-f", "-qq", "-o", to_text, "-e", &trace], command);
    let text = fs::read_to_string(&to).expect("a trace");
    let mut by_thread = std::collections::BTreeMap::new();
    for line in text.lines().filter(|l| l.contains(&format!("{call}("))) {
        *by_thread.entry(line.split_whitespace().next()).or_insert(0) += 1;
    }
    by_thread.into_values().max().unwrap_or(0)
}

#[test]
fn any_call_of_the_command_may_fail() {
    if !strace_works() {
        return;
    }
    let image = prepared();
    let mut failures = 0;
    let load = ["load", "db", "more.tsv", "--sync", "--memory", "1MiB"];
    let compact = ["compact", "db", "--memory", "1MiB"];
    for call in [
        "openat",
        "pwrite64",
        "fdatasync",
        "fsync",
        "fallocate",
        "ftruncate",
        "mmap",
        "rename",
        "unlink",
        "getdents64",
        "statx",
        "flock",
        "pread64",
        "clone3",
    ] {
        // What starting a process takes by itself is not ours to survive.
        let own = calls(&image, call, &["--version"]);
        for (command, most) in [(&load[..], 16), (&compact[..], 6)] {
            let dir = copy(&image);
            let all = calls(&dir, call, command);
            for when in (own + 1..=all).take(most) {
                let error = ["ENOSPC", "EIO", "EMFILE", "ENOMEM"][when % 4];
                let dir = copy(&image);
                let inject = format!("inject={call}:error={error}:when={when}");
                let before = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", &inject];
                let output = run(&dir, &before, command);
                let what = format!("{call} {when} of {all}: {error}: {command:?}");
                if command[0] == "compact" {
                    let said = String::from_utf8_lossy(&output.stderr);
                    assert_no_panic(&said, &what);
                    assert_eq!(dir.ok("count db"), format!("{ENTRIES}\n"), "{what}");
                    assert!(dir.ok("verify db").starts_with("sound: "), "{what}");
                } else {
                    assert_sound(&dir, &output, &what);
                }
                failures += usize::from(!output.status.success());
            }
        }
    }
    println!("{failures} commands ended with an error");
    assert!(failures > 20, "only {failures} commands ended with an error");
}

#[test]
fn few_descriptors() {
    let image = prepared();
    let mut failed = 0;
    for files in 3..24 {
        let dir = copy(&image);
        let limit = format!("--nofile={files}:{files}");
        let output = run(&dir, &["prlimit", &limit], &["load", "db", "more.tsv"]);
        assert_sound(&dir, &output, &limit);
        failed += usize::from(!output.status.success());
    }
    assert!((2..21).contains(&failed), "{failed} of 21 failed");
}

#[test]
fn little_memory() {
    let image = prepared();
    let mut failed = 0;
    for mib in [10, 12, 14, 16, 24, 32, 48, 64, 128, 256, 400] {
        let dir = copy(&image);
        let limit = format!("--as={}", mib << 20);
        let output = run(&dir, &["prlimit", &limit], &["load", "db", "more.tsv"]);
        assert_sound(&dir, &output, &limit);
        failed += usize::from(!output.status.success());
    }
    assert!((1..11).contains(&failed), "{failed} of 11 failed");
}

#[test]
fn files_that_may_not_grow() {
    let image = prepared();
    let mut failed = 0;
    for kib in [0, 1, 4, 40, 200, 1000, 1024, 1100, 3000, 20_000] {
        let dir = copy(&image);
        let script = format!(
            "trap '' XFSZ; exec prlimit --fsize={} \"$0\" load db more.tsv --memory 1MiB",
            kib << 10
        );
        let output = run(&dir, &["sh", "-c", &script], &[]);
        assert_sound(&dir, &output, &format!("files of {kib} KiB"));
        failed += usize::from(!output.status.success());
    }
    assert!((3..10).contains(&failed), "{failed} of 10 failed");
}

/// Runs a script with a file system of its own of some megabytes at `$2`; `$1` is the command.
fn on_a_small_disk(mib: u32, at: &Path, script: &str) -> Option<Output> {
    let script = format!("mount -t tmpfs -o size={mib}m none \"$2\" || exit 99\n{script}");
    let mut unshare = Command::new("unshare");
    unshare.args(["-m", "sh", "-c", &script, "sh", env!("CARGO_BIN_EXE_esker")]).arg(at);
    let output = unshare.output().ok()?;
    if output.status.code() == Some(99)
        || String::from_utf8_lossy(&output.stderr).contains("unshare")
    {
        println!("left out: no right to mount here");
        return None;
    }
    Some(output)
}

#[test]
fn a_full_disk() {
    let dir = Dir::new();
    let disk = dir.path("disk");
    fs::create_dir(&disk).expect("a directory");
    // Noise, which no compression makes fit.
    let mut x = 1u64;
    let mut word = || {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        format!("{x:016x}")
    };
    let lines: String =
        (0..200_000).map(|n| format!("{n:06}\t{}{}{}\n", word(), word(), word())).collect();
    dir.write("big.tsv", &lines);
    for mib in [1, 2, 4, 7] {
        let script = format!(
            "cd \"$2\" && head -n 500 {big} > few.tsv && \"$1\" load db few.tsv --memory 1MiB --sync --create; echo first $?
             \"$1\" load db {big} --memory 1MiB; echo second $?
             \"$1\" count db; echo third $?
             rm few.tsv; \"$1\" verify db; echo fourth $?
             \"$1\" get db 000499; echo fifth $?",
            big = dir.path("big.tsv").display()
        );
        let Some(output) = on_a_small_disk(mib, &disk, &script) else { return };
        let (out, err) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let all = format!("{mib} MiB:\n{out}{err}");
        assert!(!err.contains("panicked"), "{all}");
        assert!(out.contains("second 3") && err.contains("free some space"), "{all}");
        if out.contains("first 0") {
            assert!(out.contains("third 0") && out.contains("sound: "), "{all}");
            assert!(out.contains("fourth 0") && out.contains("fifth 0"), "{all}");
        }
        assert!(mib < 7 || out.contains("first 0"), "{all}");
    }
}

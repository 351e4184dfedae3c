//! What the benchmark says of engines that are not installed, or installed wrongly, and that a
//! set-up which cannot do its work says so.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn bench(engines: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_esker-bench"))
        .env("ESKER_BENCH_ENGINES", engines)
        .args(args)
        .output()
        .expect("the benchmark starts")
}

/// By another process: a file that this one writes may be held by another thread's child, and is not started then.
fn make_script(at: &Path, text: &str) {
    let mut child = Command::new("sh")
        .args(["-c", "cat >\"$0\" && chmod 755 \"$0\""])
        .arg(at)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn an_engine_that_is_not_installed_says_how_to_get_it() {
    let engines = tempfile::tempdir().unwrap();
    let stdout = text(&bench(engines.path(), &["--list"]).stdout);
    for name in ["redb", "fjall", "sled", "bf-tree", "libmdbx", "hyperleveldb", "basho"] {
        let line = format!("engine {name}: not installed: esker bench --setup");
        assert!(stdout.lines().any(|l| l == line), "{name}: {stdout}");
    }
}

/// It built all of them, whatever `--engines` said.
#[test]
fn a_set_up_makes_the_engines_that_are_asked_for() {
    let engines = tempfile::tempdir().unwrap();
    let output = bench(engines.path(), &["--setup", "--engines", "esker"]);
    let stdout = text(&output.stdout);
    assert!(output.status.success(), "{stdout}\n{}", text(&output.stderr));
    assert!(stdout.contains("done in"), "{stdout}");
    let outcomes = stdout.lines().filter(|line| line.starts_with("  "));
    assert_eq!(outcomes.count(), 0, "{stdout}");
    let output = bench(engines.path(), &["--setup", "--engines", "lmbd"]);
    assert!(!output.status.success() && text(&output.stderr).contains("no engine is called lmbd"));
}

#[test]
fn a_program_that_does_not_work_is_told_from_one_that_is_missing() {
    let engines = tempfile::tempdir().unwrap();
    let program = engines.path().join("esker-bench-engines");
    make_script(&program, "#!/bin/sh\necho wrong machine >&2\nexit 1\n");
    let stdout = text(&bench(engines.path(), &["--list"]).stdout);
    let line = stdout.lines().find(|l| l.starts_with("engine redb: ")).unwrap();
    assert!(line.contains("is of no use (wrong machine)") && line.contains("--setup"), "{line}");
}

#[test]
fn the_other_program_is_started_for_its_engines() {
    let (engines, stores) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let program = engines.path().join("esker-bench-engines");
    // It answers as the real one would, and cannot measure.
    let script = "#!/bin/sh\n[ \"$1\" = version ] && echo 7.7 && exit 0\n\
                  [ \"$1\" = bench-child ] && echo \"no $1\" >&2\nexit 1\n";
    make_script(&program, script);
    let dir = stores.path().to_string_lossy().into_owned();
    let args = ["--engines", "redb", "--rows", "fillseq", "--entries", "100", "--repeat", "1"];
    let output = bench(engines.path(), &[&args[..], &["--dir", &dir]].concat());
    let stdout = text(&output.stdout);
    assert!(!output.status.success());
    assert!(stdout.contains("no bench-child"), "{stdout}\n{}", text(&output.stderr));
}

//! Files that are there when a run begins, and those that it is to write.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

/// On the engine of known behaviour and on one that is not installed; no row has a limit of the
/// machine beside it.
fn bench(stores: &Path, out: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_esker-bench"));
    command
        .env("ESKER_BENCH_ENGINES", stores.join("none"))
        .args(["--suite", "ycsb", "--entries", "2000", "--quick"])
        .args([OsStr::new("--dir"), stores.as_os_str(), OsStr::new("--out"), out.as_os_str()])
        .args(args);
    command
}

/// Every file of a directory.
fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(dir).unwrap().map(Result::unwrap);
    entries
        .map(|e| (e.file_name().into_string().unwrap(), std::fs::read(e.path()).unwrap()))
        .collect()
}

/// A directory with what an earlier run left.
fn earlier() -> (tempfile::TempDir, BTreeMap<String, Vec<u8>>) {
    let dir = tempfile::tempdir().unwrap();
    for name in ["results.jsonl", "table.txt", "report.html"] {
        std::fs::write(dir.path().join(name), format!("{name} of an earlier run\n")).unwrap();
    }
    let before = files(dir.path());
    (dir, before)
}

#[test]
fn what_is_asked_for_wrongly_leaves_earlier_results_as_they_are() {
    let stores = tempfile::tempdir().unwrap();
    let (out, before) = earlier();
    let wrong: [(&[&str], &str); 4] = [
        (&["--engines", "typo"], "no engine is called typo"),
        (&["--engines", "fake", "--rows", "nosuch"], "no row is called nosuch"),
        (&["--engines", "fake", "--file", "/no/such/file"], "/no/such/file"),
        (&["--engines", "fake", "--scale", "500000000"], "MB free"),
    ];
    for (args, why) in wrong {
        let output = bench(stores.path(), out.path(), args).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(3) && errors.contains(why), "{errors}");
        assert!(files(out.path()) == before, "{args:?} changed {:?}", files(out.path()).keys());
    }
    let new = stores.path().join("new");
    bench(stores.path(), &new, &["--engines", "typo"]).output().unwrap();
    assert!(!new.exists());
}

#[test]
fn an_interrupt_before_the_first_result_leaves_earlier_results_as_they_are() {
    let stores = tempfile::tempdir().unwrap();
    let (out, before) = earlier();
    let args = ["--engines", "fake,redb", "--rows", "ycsb/1/*", "--set", "hang_at=1"];
    let mut child = bench(stores.path(), out.path(), &args)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let below = |dir: &Path| std::fs::read_dir(dir).into_iter().flatten().flatten();
    let is_store = |name: &OsStr| name.to_string_lossy().starts_with("store-");
    while !below(stores.path()).any(|run| below(&run.path()).any(|e| is_store(&e.file_name()))) {
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let id = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(3));
    assert!(files(out.path()) == before, "changed: {:?}", files(out.path()).keys());
}

#[test]
fn earlier_results_go_when_there_are_new_ones_and_not_before() {
    let stores = tempfile::tempdir().unwrap();
    let (out, before) = earlier();
    let output = bench(stores.path(), out.path(), &["--engines", "redb"]).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.contains("nothing was measured"), "{errors}");
    assert!(files(out.path()) == before, "changed: {:?}", files(out.path()).keys());

    let args = ["--engines", "fake,redb", "--rows", "ycsb/1/E*"];
    let output = bench(stores.path(), out.path(), &args).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(files(out.path())["results.jsonl"].clone()).unwrap();
    assert!(text.contains("\"fake\"") && !text.contains("earlier run"), "{text}");
    assert!(!out.path().join("results.new").exists());
}

#[test]
fn a_file_that_cannot_be_written_is_said_before_the_run_or_beside_its_table() {
    let dir = tempfile::tempdir().unwrap();
    let (stores, out) = (dir.path().join("stores"), dir.path().join("out"));
    let run = |engines: &str, json: &Path| {
        let args = ["--engines", engines, "--rows", "ycsb/1/E*", "--json"];
        let output = bench(&stores, &out, &args).arg(json).output().unwrap();
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (code, _, errors) = run("fake", &dir.path().join("no/such/r"));
    assert!(code == Some(3) && errors.contains("no/such/r"), "{errors}");
    assert!(!stores.exists() && !out.exists(), "it was measured all the same");

    if Path::new("/dev/full").exists() {
        let (code, table, errors) = run("fake", Path::new("/dev/full"));
        assert!(code == Some(3) && errors.contains("/dev/full"), "{errors}");
        assert!(table.contains("fake"), "{table}");
        assert!(files(&out)["results.jsonl"].starts_with(b"{"));
    }

    // What is asked for wrongly neither makes a file nor empties one; what was measured takes its place.
    let (new, old) = (dir.path().join("new.jsonl"), dir.path().join("old.jsonl"));
    std::fs::write(&old, "of an earlier run".repeat(1000)).unwrap();
    assert_eq!((run("typo", &new).0, run("typo", &old).0), (Some(3), Some(3)));
    assert!(!new.exists());
    assert!(std::fs::read_to_string(&old).unwrap().starts_with("of an earlier run"));
    assert_eq!(run("fake", &old).0, Some(0));
    let text = std::fs::read_to_string(&old).unwrap();
    assert!(text.lines().count() > 0 && text.lines().all(|line| line.starts_with('{')), "{text}");
}

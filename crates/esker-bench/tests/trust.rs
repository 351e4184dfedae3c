//! `esker bench trust`, on an engine that loses, falsifies, crashes and hangs as it is told: the
//! checks must see each. And on Esker, which must do none of it.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

fn trust(dir: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_esker-bench"))
        .args(["trust", "--dir"])
        .arg(dir)
        .args(args)
        .env("RUST_BACKTRACE", "0")
        .output()
        .expect("the command starts")
}

/// The only engine of a run.
fn engine(args: &[&str]) -> Value {
    let dir = tempfile::tempdir().unwrap();
    let output = trust(dir.path(), &[&["--json"], args].concat());
    let text = String::from_utf8_lossy(&output.stdout);
    let report: Value = serde_json::from_str(&text)
        .unwrap_or_else(|e| panic!("{e}: {text}{}", String::from_utf8_lossy(&output.stderr)));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "the stores are removed");
    assert!(report["engines"].as_array().is_some_and(|engines| engines.len() == 1));
    report["engines"][0].clone()
}

fn number(value: &Value, name: &str) -> u64 {
    value[name].as_u64().unwrap_or_else(|| panic!("no {name} in {value}"))
}

/// How many damaged copies ended so.
fn count(engine: &Value, outcome: &str) -> usize {
    let cases = engine["damages"][0]["cases"].as_array().unwrap_or_else(|| panic!("{engine}"));
    cases.iter().filter(|case| case["outcome"] == outcome).count()
}

const NO_DAMAGE: [&str; 6] = ["--engines", "fake", "--damages", "0", "--kills", "2"];
const NO_KILLS: [&str; 4] = ["--engines", "fake", "--kills", "0"];

#[test]
fn a_store_that_keeps_everything_is_not_accused() {
    let fake = engine(&["--engines", "fake", "--damages", "0", "--kills", "3"]);
    for killed in fake["kills"].as_array().unwrap() {
        assert!(number(killed, "kills") == 3 && number(killed, "acknowledged") > 10, "{killed}");
        for fault in ["lost", "half", "wrong", "unreadable", "failed"] {
            // The fake's batches are not atomic: a kill may fall into one.
            assert!(number(killed, fault) == 0 || fault == "half", "{killed}");
        }
    }
}

#[test]
fn lost_writes_are_seen() {
    let fake = engine(&[&NO_DAMAGE[..], &["--set", "lose_every=7"]].concat());
    let killed = &fake["kills"][0];
    assert!(number(killed, "lost") > 0 && number(killed, "half") > 0, "{killed}");
    assert!(number(killed, "wrong") == 0 && killed["first"].is_string(), "{killed}");
}

#[test]
fn wrong_values_are_seen() {
    let fake = engine(&[&NO_DAMAGE[..], &["--set", "corrupt_every=7"]].concat());
    assert!(number(&fake["kills"][0], "wrong") > 0, "{fake}");
}

#[test]
fn a_writer_that_ends_by_itself_is_seen() {
    // Some of these kills come too early, while it is still busy with ending.
    let args = ["--engines", "fake", "--damages", "0", "--kills", "10", "--set", "panic_at=3"];
    let fake = engine(&args);
    let failed = |n: usize| number(&fake["kills"][n], "failed");
    assert!(failed(0) + failed(1) > 0, "{fake}");
}

#[test]
fn each_outcome_of_damage_is_seen() {
    // Its log is lines of text without checksums.
    let fake = engine(&[&NO_KILLS[..], &["--damages", "80"]].concat());
    for outcome in ["error", "lost_in_silence", "wrong"] {
        assert!(count(&fake, outcome) > 0, "{outcome}: {fake}");
    }
    for how in ["panic", "abort"] {
        let setting = format!("on_damage={how}");
        let fake = engine(&[&NO_KILLS[..], &["--damages", "12", "--set", &setting]].concat());
        assert!(count(&fake, "crash") > 0 && count(&fake, "error") == 0, "{how}: {fake}");
    }
    let hang = ["--damages", "3", "--patience", "2", "--set", "on_damage=hang"];
    let fake = engine(&[&NO_KILLS[..], &hang].concat());
    assert!(count(&fake, "hang") > 0 && count(&fake, "error") == 0, "{fake}");
}

#[test]
fn a_store_that_is_wrong_undamaged_is_not_tested_and_says_so() {
    let fake = engine(&[&NO_KILLS[..], &["--damages", "3", "--set", "corrupt_every=50"]].concat());
    let why = fake["failures"][0].as_str().unwrap();
    assert!(why.contains("undamaged") && why.contains("wrong value"), "{why}");
}

#[test]
fn esker_keeps_what_it_acknowledged_and_says_what_is_damaged() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("trust.md");
    let out = file.to_str().unwrap();
    let args = ["--engines", "esker", "--kills", "4", "--damages", "24", "--out", out];
    let output = trust(&dir.path().join("stores"), &args);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
    for row in [
        "## Damaged after a kill",
        "| esker | buffered | 4 |",
        "| esker | synced | 4 |",
        "| bit flipped |",
    ] {
        assert!(text.contains(row), "no {row} in {text}");
    }
    let damaged =
        text.lines().find(|line| line.starts_with("| esker | ") && line.contains("| 24 |"));
    let cells: Vec<&str> = damaged.expect("a row of damaged copies").split('|').collect();
    let errors: u32 = cells[5].trim().parse().unwrap();
    assert!(errors > 12, "{text}");
}

#[test]
fn what_cannot_be_printed_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let run = |out: std::process::Stdio| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_esker-bench"));
        command.args(["trust", "--json", "--dir"]).arg(dir.path());
        let output = command.args(NO_DAMAGE).stdout(out).output().expect("the command starts");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let Ok(full) = std::fs::File::options().write(true).open("/dev/full") else { return };
    let (code, errors) = run(full.into());
    assert!(code == Some(3) && errors.contains("cannot print"), "{code:?}: {errors}");
    // Whoever reads may have seen enough.
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let (code, errors) = run(writer.into());
    assert_eq!((code, errors.contains("cannot print")), (Some(0), false), "{errors}");
}

#[test]
fn a_file_that_cannot_be_written_is_said_before_the_test_or_beside_its_tables() {
    let dir = tempfile::tempdir().unwrap();
    let stores = dir.path().join("stores");
    let none = dir.path().join("no/such/x.md");
    let output = trust(&stores, &[&NO_DAMAGE[..], &["--out", none.to_str().unwrap()]].concat());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(3) && errors.contains("no/such/x.md"), "{errors}");
    assert!(!stores.exists(), "it was tested all the same");

    if Path::new("/dev/full").exists() {
        let output = trust(&stores, &[&NO_DAMAGE[..], &["--out", "/dev/full"]].concat());
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(3) && errors.contains("/dev/full"), "{errors}");
        assert!(String::from_utf8_lossy(&output.stdout).contains("| fake | buffered | 2 |"));
    }

    // What is asked for wrongly neither makes a file nor empties one.
    let (new, old) = (dir.path().join("new.md"), dir.path().join("old.md"));
    std::fs::write(&old, "of an earlier run").unwrap();
    for file in [&new, &old] {
        trust(&stores, &["--engines", "nosuch", "--out", file.to_str().unwrap()]);
    }
    assert!(!new.exists());
    assert_eq!(std::fs::read_to_string(&old).unwrap(), "of an earlier run");
}

#[test]
fn what_is_not_there_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let output = trust(dir.path(), &["--engines", "nosuch"]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && text.contains("no engine is called nosuch"), "{text}");

    // An engine that is not installed is a line, not a failure.
    let output = Command::new(env!("CARGO_BIN_EXE_esker-bench"))
        .args(["trust", "--engines", "redb", "--kills", "1", "--damages", "1", "--dir"])
        .arg(dir.path())
        .env("ESKER_BENCH_ENGINES", dir.path().join("none"))
        .output()
        .expect("the command starts");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("not installed: esker bench --setup"),
        "{text}"
    );
}

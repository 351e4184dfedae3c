//! What `audit` says of rows: calls of the adapter, and calls of the library where they can be counted.

use std::process::{Command, Output};

fn audit(row: &str, engine: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_esker-bench"))
        .args(["audit", "--row", row, "--engine", engine])
        .output()
        .expect("the benchmark starts")
}

fn told(row: &str, engine: &str) -> String {
    let output = audit(row, engine);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{row} {engine}: {}", String::from_utf8_lossy(&output.stderr));
    text
}

/// How often something is called for each operation.
fn each(text: &str, call: &str) -> f64 {
    let timed = text.split("Not timed").next().unwrap();
    let line = timed.lines().find(|line| line.split_whitespace().nth(1) == Some(call));
    let line = line.unwrap_or_else(|| panic!("no {call}:\n{text}"));
    line.split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
fn a_row_times_what_it_says_and_nothing_else() {
    let text = told("readrandom", "esker");
    assert!(text.starts_with("core/core/readrandom, esker\nopened with: memory"), "{text}");
    assert_eq!(each(&text, "get"), 1.0, "{text}");
    let timed = text.split("Not timed").next().unwrap();
    assert!(timed.contains("Db::get"), "{text}");
    for other in ["open", "reader", "batch_put", "settle", "scan"] {
        assert!(
            !timed.lines().any(|l| l.split_whitespace().nth(1) == Some(other)),
            "{other}: {text}"
        );
    }
    assert!(text.contains("batch_put"), "the load is told too: {text}");

    assert_eq!(each(&told("fillseq", "esker"), "put"), 1.0);
    let batches = told("fillbatch", "esker");
    assert_eq!((each(&batches, "batch_put"), each(&batches, "batch_commit")), (1000.0, 1.0));
    assert_eq!(each(&told("readseq", "esker"), "entry"), 1.0);
    assert!(each(&told("seekrandom", "esker"), "entry") > 10.0);
    assert_eq!(each(&told("settle", "esker"), "settle"), 1.0);
    assert_eq!(each(&told("reopen", "esker"), "open"), 1.0);
    let queue = told("motion/queue/one waits", "esker");
    assert_eq!((each(&queue, "renew"), each(&queue, "seek")), (1.0, 1.0), "{queue}");
    let timed = queue.split("Not timed").next().unwrap();
    assert!(!timed.lines().any(|l| l.split_whitespace().nth(1) == Some("reader")), "{queue}");
    assert!(told("disk", "esker").contains("Nothing is called in a timed loop"));
}

#[test]
fn calls_into_a_library_are_counted() {
    let output = audit("fillseq", "sqlite");
    if String::from_utf8_lossy(&output.stderr).contains("not installed") {
        return;
    }
    let text = told("fillseq", "sqlite");
    assert!(text.contains("locking EXCLUSIVE"), "{text}");
    assert_eq!(each(&text, "put"), 1.0);
    assert_eq!(each(&text, "sqlite3_step"), 1.0, "a put is one statement: {text}");
    assert_eq!(each(&text, "sqlite3_bind_blob"), 2.0, "{text}");
    let read = told("readrandom", "sqlite");
    assert!((each(&read, "sqlite3_step") - 1.0).abs() < 0.01, "one transaction for all: {read}");
}

#[test]
fn what_cannot_be_audited_is_an_error_that_says_why() {
    for (row, engine, why) in [
        ("nosuchrow", "esker", "no row is called nosuchrow"),
        ("readrandom", "nosuchengine", "no engine is called nosuchengine"),
    ] {
        let output = audit(row, engine);
        assert_eq!(output.status.code(), Some(3));
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(text.contains(why), "{text}");
    }
}

//! The whole benchmark, run on an engine of known behaviour: figures must be what it was told to
//! cost, and what it loses, crashes on or hangs in must fail its rows and only those.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Mutex;

/// One at a time: the fake spins, and two of them on one core measure each other.
static ALONE: Mutex<()> = Mutex::new(());

fn bench(dir: &Path, args: &[&str]) -> Output {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    Command::new(env!("CARGO_BIN_EXE_esker-bench"))
        .args(["--engines", "fake", "--json", "-", "--repeat", "1", "--seconds", "1"])
        .arg("--dir")
        .arg(dir)
        .args(args)
        .output()
        .expect("the benchmark starts")
}

fn rows(output: &Output) -> Vec<Value> {
    let text = String::from_utf8_lossy(&output.stdout);
    let rows: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("a JSON line"))
        .filter(|row: &Value| row["engine"] == "fake")
        .collect();
    assert!(!rows.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    rows
}

fn row<'a>(rows: &'a [Value], name: &str) -> &'a Value {
    rows.iter().find(|row| row["row"] == name).unwrap_or_else(|| panic!("no row {name}"))
}

/// Whether a figure is no better than what the engine was told to cost. Whoever else uses the machine
/// may make it worse by any factor.
fn plausible(value: &Value, ideal: f64) -> bool {
    value.as_f64().is_some_and(|value| value > 0.0 && value <= ideal * 1.02)
}

/// What the engine's handles that were called so often took by their own clock.
fn truth(path: &Path, calls: u64) -> Vec<Value> {
    let text = std::fs::read_to_string(path).expect("the fake tells the truth");
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    lines.filter(|line| line["calls"].as_u64() == Some(calls)).collect()
}

/// Within two percent.
fn same(value: &Value, truth: f64) -> bool {
    value.as_f64().is_some_and(|value| (value / truth - 1.0).abs() < 0.02)
}

#[test]
fn throughput_and_percentiles_are_those_of_the_engine() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("truth");
    let args = ["--entries", "20k", "--rows", "readrandom,readmissing"];
    let tuning = ["--set", "delay_us=40", "--set", "slow_every=50", "--set", "slow_us=400"];
    let told = format!("truth={}", file.display());
    let output = bench(dir.path(), &[args.as_slice(), &tuning, &["--set", &told]].concat());
    let rows = rows(&output);
    // A reader each; the others of this run read less.
    let truths = truth(&file, 20_000);
    assert_eq!(truths.len(), 2, "{truths:?}");
    for (name, truth) in ["readrandom", "readmissing"].into_iter().zip(truths) {
        let row = row(&rows, name);
        assert!(
            same(&row["ops_per_s"], 20_000.0 / truth["seconds"].as_f64().unwrap()),
            "{truth} {row}"
        );
        assert!(same(&row["p50_us"], truth["p50_us"].as_f64().unwrap()), "{truth} {row}");
        let mean_us = (40.0 * 49.0 + 400.0) / 50.0;
        assert!(plausible(&row["ops_per_s"], 1e6 / mean_us), "{row}");
        for (name, least_us) in [("p50_us", 40.0), ("p99_us", 400.0), ("max_us", 400.0)] {
            assert!(row[name].as_f64().unwrap() >= least_us, "{name} {row}");
        }
    }
}

#[test]
fn synced_threads_and_batches_add_up() {
    let dir = tempfile::tempdir().unwrap();
    let args = ["--entries", "20k", "--threads", "2", "--rows", "fillsync2,fillbatch"];
    let file = dir.path().join("truth");
    let told = format!("truth={}", file.display());
    let tuning = ["--set", "delay_us=50", "--set", &told];
    let output = bench(dir.path(), &[args.as_slice(), &tuning].concat());
    let rows = rows(&output);
    let synced = row(&rows, "fillsync2");
    assert_eq!(synced["class"], "F");
    assert_eq!(synced["ops"], 200);
    let batch = row(&rows, "fillbatch");
    assert!(plausible(&batch["ops_per_s"], 20_000.0), "{batch}");
    let seconds = truth(&file, 20)[0]["seconds"].as_f64().unwrap();
    assert!(same(&batch["ops_per_s"], 20_000.0 / seconds), "{seconds} {batch}");
    assert!(batch["p50_us"].as_f64().unwrap() >= 50_000.0, "{batch}");
    assert_eq!(batch["ops"], 20_000);
}

#[test]
fn every_row_runs_and_a_run_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let output = bench(dir.path(), &["--entries", "2000", "--keys", "url", "--value-size", "zipf"]);
    for row in rows(&output) {
        assert!(row["failed"].is_null() && row["value"].is_number(), "{row}");
    }
    assert!(output.status.success());
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn lost_data_fails_its_rows() {
    let dir = tempfile::tempdir().unwrap();
    let rows_wanted = ["--entries", "2000", "--rows", "fillseq,fillsync,deleterandom,open.killed"];
    for tuning in ["lose_every=500", "corrupt_every=1999"] {
        let output = bench(dir.path(), &[&rows_wanted[..], &["--set", tuning]].concat());
        assert_eq!(output.status.code(), Some(3), "failed rows show in the exit code");
        let rows = rows(&output);
        let failed = row(&rows, "fillseq")["failed"].as_str().unwrap_or("").to_string();
        match tuning {
            "lose_every=500" => {
                assert!(failed.contains("of 2000 entries 4 are lost"), "{failed}");
                assert!(!row(&rows, "open.killed")["failed"].is_null());
            }
            _ => assert!(failed.contains("1 have a wrong value"), "{failed}"),
        }
        // 20 operations only: nothing was lost there.
        assert!(row(&rows, "fillsync")["failed"].is_null());
    }
}

#[test]
fn a_crash_or_a_hang_fails_only_its_rows() {
    let dir = tempfile::tempdir().unwrap();
    let args = ["--entries", "2000", "--rows", "fillseq,fillsync", "--timeout", "3"];
    for (tuning, why) in [("panic_at=1000", "told to panic"), ("hang_at=1000", "gave up after 3 s")]
    {
        let output = bench(dir.path(), &[&args[..], &["--set", tuning]].concat());
        let rows = rows(&output);
        let failed = row(&rows, "fillseq")["failed"].as_str().unwrap_or("").to_string();
        assert!(failed.contains(why), "{failed}");
        assert!(row(&rows, "fillsync")["failed"].is_null());
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn readers_beside_a_writer_report_both_sides() {
    let dir = tempfile::tempdir().unwrap();
    let args = ["--entries", "1000", "--rows", "readwhilewriting2", "--readers", "2"];
    let output = bench(dir.path(), &args);
    let rows = rows(&output);
    let row = row(&rows, "readwhilewriting2");
    assert!(plausible(&row["writer"]["ops_per_s"], 10_000.0), "{row}");
    assert!(row["best_quarter_ops_per_s"].as_f64() >= row["worst_quarter_ops_per_s"].as_f64());
}

#[cfg(unix)]
#[test]
fn an_interrupt_removes_the_stores_and_ends_the_child() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_esker-bench"))
        .args(["--engines", "fake", "--rows", "fillseq", "--set", "delay_us=1000", "--dir"])
        .arg(dir.path())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    while std::fs::read_dir(dir.path()).unwrap().count() == 0 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    std::thread::sleep(std::time::Duration::from_millis(300));
    let id = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(3));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

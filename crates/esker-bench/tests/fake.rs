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
        .args(["--engines", "fake", "--json", "-", "--repeat", "1", "--seconds", "0.5"])
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

/// A scan was once measured after a million random reads, and was twice as fast as alone.
#[test]
fn a_read_row_starts_from_the_same_state_whatever_else_is_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let names = ["readrandom", "readmissing", "readseq", "readreverse", "seekrandom"];
    let seconds =
        ["readrandom.second", "readseq.second", "readreverse.second", "seekrandom.second"];
    let mut wanted: Vec<String> = [&names[..], &seconds, &["disk", "settle", "memory"]]
        .concat()
        .iter()
        .map(|n| n.to_string())
        .collect();
    wanted.extend(names.map(|name| format!("{name}.settled")));
    // What every handle did, and what its process had done before.
    let handles = |rows: &str| -> Vec<(u64, u64)> {
        let file = dir.path().join("truth");
        let _ = std::fs::remove_file(&file);
        let told = format!("truth={}", file.display());
        let args = ["--quick", "--entries", "20k", "--rows", rows, "--set", &told];
        assert!(bench(&dir.path().join("stores"), &args).status.success());
        let text = std::fs::read_to_string(&file).expect("the fake tells the truth");
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        let number = |line: &Value, name: &str| line[name].as_u64().expect("a number");
        let all = lines.map(|l| (number(&l, "before"), number(&l, "calls")));
        // What verifies comes after the rows: a scan, and a thousand keys that are there and not.
        all.filter(|(_, calls)| *calls != 2001).collect()
    };
    let beside_all = handles(&wanted.join(","));
    assert!(beside_all.len() > 20, "{beside_all:?}");
    for row in &wanted {
        let mut left = beside_all.clone();
        for handle in handles(row) {
            let same = left.iter().position(|other| *other == handle);
            let at = same.unwrap_or_else(|| panic!("{row} alone has {handle:?}: {beside_all:?}"));
            left.remove(at);
        }
    }
}

/// A view that is held on to would keep an engine's old files, and its reader in many runs, while what was loaded is merged.
#[test]
fn readers_right_after_a_load_hold_no_view() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("truth");
    let told = format!("truth={}", file.display());
    let args = ["--quick", "--entries", "20k", "--rows", "seekrandom*", "--set", &told];
    assert!(bench(&dir.path().join("stores"), &args).status.success());
    let lines = std::fs::read_to_string(&file).expect("the fake tells the truth");
    let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let seeks: Vec<Value> = lines.filter(|line| line["calls"] == 500).collect();
    let said = |line: &Value| (line["before"] != 0, line["access"].as_str().unwrap().to_string());
    let said: Vec<(bool, String)> = seeks.iter().map(said).collect();
    let [fresh, settled] = [(true, "Settling".to_string()), (false, "Quiet".to_string())];
    assert_eq!(said, [fresh.clone(), fresh, settled]);
}

#[test]
fn writes_that_are_settled_too_are_never_faster() {
    let dir = tempfile::tempdir().unwrap();
    let args = ["--entries", "2000", "--rows", "fill*,overwrite*", "--set", "delay_us=5"];
    let output = bench(dir.path(), &args);
    let rows = rows(&output);
    for name in ["fillseq", "fillbatch", "fillrandom", "fillrandbatch", "overwrite", "fill100Kseq"]
    {
        let (alone, settled) = (row(&rows, name), row(&rows, &format!("{name}.settled")));
        assert!(settled["seconds"].as_f64() > Some(0.0) && settled["ops"] == alone["ops"]);
        assert!(settled["p50_us"].is_null(), "no operation is timed there");
        let (alone, settled) = (alone["value"].as_f64(), settled["value"].as_f64());
        assert!(settled.unwrap() <= alone.unwrap() * 1.001, "{name}: {alone:?} {settled:?}");
    }
}

#[test]
fn chance_is_told_in_every_line() {
    let dir = tempfile::tempdir().unwrap();
    // The same option twice is an error, so this is a run without the usual ones.
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let output = Command::new(env!("CARGO_BIN_EXE_esker-bench"))
        .args(["--engines", "fake", "--json", "-", "--entries", "100"])
        .args(["--repetitions", "3", "--rows", "fillseq,reopen", "--set", "close_ms=200", "--dir"])
        .arg(dir.path())
        .output()
        .unwrap();
    let rows = rows(&output);
    let fill = row(&rows, "fillseq");
    let runs = fill["runs"].as_array().unwrap();
    assert_eq!(
        runs.len(),
        3,
        "however often a short row is drawn, it is one figure a repetition: {fill}"
    );
    let reopen = row(&rows, "reopen");
    assert_eq!(reopen["runs"].as_array().unwrap().len(), 3);
    assert!(reopen["value"].as_f64().unwrap() >= 200.0, "closing counts: {reopen}");
    let end = |i: usize| fill["interval"][i].as_f64().unwrap();
    assert!(end(0) <= fill["value"].as_f64().unwrap() && fill["value"].as_f64().unwrap() <= end(1));
    assert!(fill["told_apart"].is_null(), "nobody is beside it");
    for row in &rows {
        assert!(row["others_cpu"].is_number() && row["restless"].is_boolean(), "{row}");
        assert!(row.get("unquiet").is_some(), "{row}");
    }
    let table = String::from_utf8_lossy(&output.stderr).to_string();
    assert!(table.contains("median of 3, engines in an order drawn from seed 301"), "{table}");
}

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

#[test]
fn numbers_that_no_machine_has_are_refused_and_say_which_it_may_have() {
    let dir = tempfile::tempdir().unwrap();
    for (option, value, said) in [
        ("--memory", "18446744073709551615", "--memory is 1 to 16777216 MiB"),
        ("--memory", "17592186044416", "--memory is 1 to 16777216 MiB"),
        ("--memory-limit", "17592186044416", "--memory-limit is 16 to"),
        ("--row-seconds", "1e300", "--row-seconds is 0.1 to"),
        ("--load-seconds", "inf", "--load-seconds is 0.001 to"),
        ("--sustained-seconds", "NaN", "--sustained-seconds is 0.1 to"),
        ("--minutes", "1e300", "--minutes is 0.001 to"),
        ("--scale", "1e300", "--scale is above 0"),
        ("--scale", "1e9", "--entries times --scale"),
        ("--threads", "18446744073709551615", "--threads is 1 to 65536"),
    ] {
        let output = bench(dir.path(), &["--rows", "fillseq", "--entries", "10k", option, value]);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "{option} {value}: {text}");
        assert!(text.contains(said), "{option} {value}: {text}");
    }
}

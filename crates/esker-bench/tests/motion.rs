//! The suite of stores in motion, run on the engine of known behaviour.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

fn bench(dir: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_esker-bench"))
        .args(["--suite", "motion", "--engines", "fake", "--repeat", "1", "--entries", "2000"])
        .args(["--json", "-", "--dir"])
        .arg(dir)
        .args(args)
        .output()
        .expect("the benchmark starts")
}

fn rows(output: &Output) -> Vec<Value> {
    let text = String::from_utf8_lossy(&output.stdout);
    let rows: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("a JSON line")).collect();
    assert!(!rows.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    rows
}

fn row<'a>(rows: &'a [Value], name: &str) -> &'a Value {
    rows.iter().find(|row| row["row"] == name).unwrap_or_else(|| panic!("no row {name}"))
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

fn most(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

#[test]
fn every_row_is_measured_and_verified() {
    let dir = tempfile::tempdir().unwrap();
    let quick = ["--seconds", "0.3", "--sustained-seconds", "0.3"];
    let output =
        bench(dir.path(), &[&["--rows", "motion/queue/*,motion/small/*"], &quick[..]].concat());
    let rows = rows(&output);
    for row in &rows {
        assert!(row["failed"].is_null() && row["value"].is_number(), "{row}");
        if row["section"] == "small" {
            assert_eq!(row["memory_bytes"].as_u64(), Some(32 << 20));
            assert_eq!((row["key_len"].as_u64(), &row["value_size"]), (Some(16), &"100".into()));
            assert_eq!(row["compression"].as_bool(), Some(false));
        }
    }
    assert!(output.status.success());
    // Queues twice; reads after load, overwriting, beside three writers; gaps, scans, and two times seven figures.
    assert_eq!(rows.len(), 2 * 3 + 5 * 3 + 2 * 2 + 3 * 2 + 2 * 7);
    // Half of the keys are gone, or every second one of that half.
    assert_eq!(row(&rows, "scan across gap")["ops"].as_u64(), Some(1000));
    assert_eq!(row(&rows, "scan across gaps")["ops"].as_u64(), Some(1500));
    for name in ["scan after ordered load", "reverse after random load", "reverse at rest"] {
        assert_eq!(row(&rows, name)["ops"].as_u64(), Some(2000), "{name}");
    }
    let rate = |name: &str| row(&rows, name)["writer"]["ops_per_s"].as_f64().unwrap();
    assert!(rate("read beside 10k") <= 10_100.0 && rate("seek10 beside 50k") <= 50_500.0);
    let flood = row(&rows, "seek50 beside flood");
    assert_eq!(flood["writer"]["wanted_per_s"].as_f64(), Some(0.0));
    assert!(flood["note"].as_str().unwrap().starts_with("the writer did "), "{flood}");
}

#[test]
fn stalls_of_readers_and_writers_show_in_their_quarters_of_a_second() {
    let dir = tempfile::tempdir().unwrap();
    let args = ["--rows", "motion/small/seek10 beside 10k,motion/small/overwrite4*"];
    let time = ["--seconds", "1.2", "--sustained-seconds", "1.2"];
    let slow = ["--set", "delay_us=20", "--set", "slow_every=5000", "--set", "slow_us=30000"];
    let rows = rows(&bench(dir.path(), &[&args[..], &time, &slow].concat()));
    let beside = &row(&rows, "seek10 beside 10k")["over_time"];
    assert_eq!(beside["window_s"].as_f64(), Some(0.25));
    for (side, name) in ["reads", "puts"].into_iter().enumerate() {
        let side = &beside["sides"][side];
        assert_eq!(side["name"], name);
        let (rates, worst) = (numbers(&side["ops_per_s"]), numbers(&side["worst_us"]));
        assert!(rates.len() >= 4 && rates.len() == worst.len(), "{side}");
        assert!(most(&worst) >= 20.0, "{side}");
    }
    let all = [0, 1].map(|side| most(&numbers(&beside["sides"][side]["worst_us"])));
    assert!(most(&all) >= 25_000.0, "{all:?}");
    let overwrite = row(&rows, "overwrite4");
    let told = &overwrite["sustained"];
    assert_eq!(told["writers"].as_u64(), Some(4));
    let worst = most(&numbers(&overwrite["over_time"]["sides"][0]["worst_us"]));
    let worst_put = told["worst_put_us"].as_f64().unwrap();
    // Between operations that are timed, the slowest is known to what the others vary by.
    assert!(worst_put >= 25_000.0 && worst <= worst_put * 1.05, "{worst} {told}");
    let figure = |name: &str| row(&rows, &format!("overwrite4{name}"))["value"].as_f64().unwrap();
    // Written with six digits behind the point, in microseconds and in milliseconds.
    assert!((figure(" worst put") - worst_put / 1000.0).abs() < 1e-6, "{told}");
    assert_eq!(figure(""), told["puts_per_s"].as_f64().unwrap());
    assert!(figure(" worst quarter") <= figure("") * 1.1);
    // The fake's log has every put, as text: no engine has more on disk for what is alive.
    let disk = numbers(&overwrite["over_time"]["disk_bytes"]);
    assert!(disk.len() >= 4 && disk.windows(2).all(|pair| pair[0] <= pair[1]), "{disk:?}");
    assert!(disk[0] >= 116.0 * 2000.0 && figure(" disk") > 2.0, "{disk:?}");
    assert!(told["disk_growth"].as_f64().unwrap() > 1.1, "{told}");
    assert_eq!(told["debt_grew"].as_bool(), Some(true), "{told}");
}

#[test]
fn what_is_lost_while_a_store_is_flooded_fails_its_row() {
    let dir = tempfile::tempdir().unwrap();
    let args = ["--rows", "motion/small/overwrite4,scan.gap", "--sustained-seconds", "0.3"];
    let output = bench(dir.path(), &[&args[..], &["--set", "lose_every=100"]].concat());
    assert_eq!(output.status.code(), Some(3));
    let rows = rows(&output);
    let why = row(&rows, "overwrite4")["failed"].as_str().unwrap();
    // A key whose last put is lost has the value of an earlier one.
    assert!(why.contains("have a wrong value") && !why.contains(" 0 have"), "{why}");
    assert!(row(&rows, "scan across gap")["failed"].as_str().unwrap().contains("entries, not"));
}

//! A device that is made slower, and what rows of synced writes say of the device beside them.

use serde_json::Value;
use std::process::Command;

fn bench(args: &[&str]) -> (Vec<Value>, String) {
    let dir = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_esker-bench"))
        .args(["--engines", "esker,fake", "--rows", "fillsync,fillsync2", "--threads", "2"])
        .args(["--entries", "2000", "--repeat", "1", "--json", "-", "--dir"])
        .arg(dir.path())
        .args(args)
        .output()
        .expect("the benchmark starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let lines = text.lines().map(|line| serde_json::from_str(line).expect("a JSON line")).collect();
    (lines, String::from_utf8_lossy(&output.stderr).into_owned())
}

fn find<'a>(lines: &'a [Value], engine: &str, row: &str) -> &'a Value {
    let found = lines.iter().find(|line| line["engine"] == engine && line["row"] == row);
    found.unwrap_or_else(|| panic!("no {row} of {engine}: {lines:?}"))
}

#[test]
fn a_slow_device_is_slow_for_all_who_wait_for_it() {
    let (lines, table) = bench(&["--sync-delay", "5"]);
    let limit = find(&lines, "machine", "limit.fdatasync")["value"].as_f64().unwrap();
    assert!(limit <= 200.0, "{limit}");
    for (row, most) in [("fillsync", 200.0), ("fillsync2", 400.0)] {
        let line = find(&lines, "esker", row);
        assert!(line["value"].as_f64().unwrap() <= most, "{line}");
        assert!(line["p50_us"].as_f64().unwrap() >= 5000.0, "{line}");
        assert!(line["device_fdatasync_us"].as_f64().unwrap() >= 5000.0, "{line}");
        assert!(line["device_waits_per_op"].as_f64().unwrap() >= 0.5, "{line}");
        assert_eq!(line["sync_delay_ms"].as_f64(), Some(5.0));
    }
    // It says that it waits, and never does: nobody is to believe a row of it.
    let liar = find(&lines, "fake", "fillsync")["failed"].as_str().unwrap();
    assert!(liar.starts_with("not supported: "), "{liar}");
    assert!(table.contains("each wait for the device made 5 ms longer"), "{table}");
}

#[test]
fn the_device_is_asked_beside_every_row() {
    let (lines, table) = bench(&[]);
    for engine in ["esker", "fake"] {
        let line = find(&lines, engine, "fillsync");
        let us = line["device_fdatasync_us"].as_f64().unwrap();
        assert!(us > 0.0, "{line}");
        let share = line["ops_per_s"].as_f64().unwrap() / (1e6 / us);
        assert!((line["ratio_limit"].as_f64().unwrap() / share - 1.0).abs() < 0.01, "{line}");
        assert!(line["device_waits_per_op"].is_null(), "nobody counts: {line}");
    }
    assert!(table.contains("fdatasync just before and after, in the same directory"), "{table}");
    assert!(!table.contains("A slow device"), "{table}");
}

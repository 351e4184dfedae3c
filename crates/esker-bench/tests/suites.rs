//! Suites, files and directories of results, run on the engine of known behaviour.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

fn bench(dir: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_esker-bench"))
        .args(["--engines", "fake", "--repeat", "1", "--seconds", "0.4", "--dir"])
        .arg(dir)
        .args(args)
        .output()
        .expect("the benchmark starts")
}

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).expect("results.jsonl is there");
    text.lines().map(|line| serde_json::from_str(line).expect("a JSON line")).collect()
}

/// Every field that readers of results rely on.
const FIELDS: &[&str] = &[
    "suite",
    "section",
    "table",
    "row",
    "engine",
    "version",
    "class",
    "unit",
    "value",
    "ops_per_s",
    "ratio_best_peer",
    "ratio_limit",
    "spread",
    "interval",
    "told_apart",
    "unquiet",
    "runs",
    "p50_us",
    "p99_us",
    "p999_us",
    "max_us",
    "hist",
    "cpu_s",
    "written_bytes",
    "read_bytes",
    "peak_memory_bytes",
    "peak_private_bytes",
    "peak_mapped_bytes",
    "peak_dirty_bytes",
    "disk_bytes",
    "raw_bytes",
    "entries",
    "key_len",
    "value_size",
    "memory_bytes",
    "memory_limit_bytes",
    "compression",
    "sync",
    "sync_delay_ms",
    "device_fdatasync_us",
    "device_waits_per_op",
    "seed",
    "threads",
    "writer",
    "over_time",
    "sustained",
    "cv",
    "settings",
    "note",
    "failed",
    "missing",
    "command",
    "cpu",
    "cores",
    "kernel",
    "date",
    "bench_version",
];

#[test]
fn every_row_of_every_document_is_measured() {
    let (dir, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let suites = "leveldb2011,wiredtiger2013,symas2014,voldemort,ycsb";
    // The rows with a limit of memory make stores of a size that the fake takes too long for.
    let rows = "leveldb2011/*,wiredtiger2013/*,symas2014/2/*,symas2014/3/*,voldemort/2/*,ycsb/*";
    let args = ["--suite", suites, "--rows", rows, "--entries", "2000", "--out"];
    let output = bench(dir.path(), &[&args[..], &[out.path().to_str().unwrap()]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let lines = lines(&out.path().join("results.jsonl"));
    for line in &lines {
        for field in FIELDS {
            assert!(line.get(field).is_some(), "no {field} in {line}");
        }
        assert!(line["failed"].is_null() && line["value"].is_number(), "{line}");
    }
    let find = |suite: &str, section: &str, row: &str| {
        let is_it = |l: &&Value| l["suite"] == suite && l["section"] == section && l["row"] == row;
        let found: Vec<&Value> = lines.iter().filter(is_it).collect();
        assert_eq!(found.len(), 1, "{suite} {section} {row}");
        found[0].clone()
    };
    let synced = find("leveldb2011", "2C", "Sequential Writes");
    assert_eq!((synced["sync"].as_bool(), synced["entries"].as_u64()), (Some(true), Some(20)));
    assert_eq!(synced["class"], "F");
    let large = find("leveldb2011", "2A", "Random Writes");
    assert_eq!(large["value_size"], "100000");
    assert_eq!(large["memory_bytes"].as_u64(), Some(4 << 20));
    let more = find("leveldb2011", "3A", "Random Reads, settled");
    assert_eq!(
        (more["compression"].as_bool(), more["memory_bytes"].as_u64()),
        (Some(true), Some(128 << 20))
    );
    assert_eq!(more["hist"].as_array().unwrap().last().unwrap()[0].as_f64(), Some(100.0));
    let race = find("symas2014", "2", "reads, all readers");
    let names: Vec<&str> =
        race["threads"].as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["reader 1", "reader 2", "reader 3", "reader 4", "writer"]);
    assert!(race["threads"][0]["ops_per_s"].as_array().unwrap().len() >= 10, "{race}");
    assert!(race["writer"]["ops_per_s"].is_number());
    assert!(find("symas2014", "3", "time to complete")["value"].as_f64().unwrap() > 0.0);
    assert!(find("symas2014", "2", "peak memory, dirty pages")["value"].is_number());
    let mixes = ["Load", "A: reads 50, updates 50", "E: scans 95, inserts 5"];
    for (clients, mix) in ["1", "4"].into_iter().flat_map(|c| mixes.map(|mix| (c, mix))) {
        let rate = |row: &str| find("ycsb", clients, row)["value"].as_f64().unwrap();
        assert!(rate(&format!("{mix}, settled")) <= rate(mix), "{clients} {mix}");
        // A tenth of the entries were loaded; there was room for more.
        assert_eq!(find("ycsb", clients, mix)["entries"].as_u64(), Some(200), "{clients} {mix}");
    }
    let table = std::fs::read_to_string(out.path().join("table.txt")).unwrap();
    assert!(table.contains("Kyoto TreeDB 1,010,000 ops/s"), "{table}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn a_scan_that_ends_too_early_fails_its_workload() {
    let dir = tempfile::tempdir().unwrap();
    let args = ["--suite", "ycsb", "--rows", "ycsb/1/E*", "--entries", "5000", "--json", "-"];
    let output = bench(dir.path(), &[&args[..], &["--set", "short_every=100"]].concat());
    assert_eq!(output.status.code(), Some(3));
    let text = String::from_utf8_lossy(&output.stdout).to_string();
    let line: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert!(line["failed"].as_str().is_some_and(|why| why.contains("a scan saw ")), "{line}");
}

/// SQLite is told that one thread has it to itself wherever a case says so.
#[test]
fn an_engine_that_relies_on_one_thread_does_every_row() {
    let (dir, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let output = Command::new(env!("CARGO_BIN_EXE_esker-bench"))
        .args(["--engines", "sqlite", "--repeat", "1", "--seconds", "0.3", "--entries", "2000"])
        .args(["--sustained-seconds", "0.3"])
        .args(["--suite", "core,motion,ycsb", "--dir", dir.path().to_str().unwrap()])
        .args(["--out", out.path().to_str().unwrap()])
        .output()
        .expect("the benchmark starts");
    let lines = lines(&out.path().join("results.jsonl"));
    for line in lines.iter().filter(|line| line["missing"].is_null()) {
        assert!(line["failed"].is_null(), "{line}");
    }
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Log-structured stores are compacted before they are read settled; a tree as a random load left it has its pages in no order,
/// with free ones between them, and two thirds full.
#[test]
fn trees_are_put_in_order_before_they_are_read_settled() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let args = ["--engines", "lmdb,sqlite,sqlite-default", "--entries", "20k"];
    let rows = ["--rows", "disk,disk.settled,settle,readseq.settled", "--out"];
    let output =
        bench(&dir.path().join("stores"), &[&args[..], &rows, &[out.to_str().unwrap()]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = lines(&out.join("results.jsonl"));
    let of = |engine: &str, row: &str| {
        let is_it = |line: &&Value| line["engine"] == engine && line["row"] == row;
        lines.iter().find(is_it).expect("a line").clone()
    };
    let times = |engine: &str, row: &str| {
        let line = of(engine, row);
        line["value"].as_f64().unwrap() / line["raw_bytes"].as_f64().unwrap()
    };
    for engine in ["lmdb", "sqlite"].into_iter().filter(|e| of(e, "disk")["missing"].is_null()) {
        assert!(times(engine, "disk.settled") < 0.95 * times(engine, "disk"), "{engine}");
        let note = of(engine, "settle")["note"].to_string();
        assert!(note.contains("s more, not counted"), "{engine}: {note}");
        assert!(of(engine, "readseq.settled")["failed"].is_null(), "{engine}");
    }
    if of("sqlite", "disk")["missing"].is_null() {
        let (filled, as_it_comes) =
            (times("sqlite", "disk.settled"), times("sqlite-default", "disk.settled"));
        assert!(filled < 1.2 && as_it_comes > 1.2, "{filled} {as_it_comes}");
    }
}

/// What the name asks for must reach the process that opens the store, and nothing of it the engine beside it.
#[test]
fn an_engine_as_it_comes_stands_beside_itself_as_its_manual_advises() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let args =
        ["--engines", "sqlite,sqlite-default", "--rows", "fillseq", "--entries", "2k", "--out"];
    let output = bench(&dir.path().join("stores"), &[&args[..], &[out.to_str().unwrap()]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = lines(&out.join("results.jsonl"));
    // By its name, wherever it lies.
    assert!(lines.iter().all(|line| line["command"][0] == "esker-bench"), "{}", lines[0]);
    let of = |engine: &str| lines.iter().find(|line| line["engine"] == engine).expect("a line");
    let (tuned, as_it_comes) = (of("sqlite"), of("sqlite-default"));
    if !tuned["missing"].is_null() {
        return println!("skipped: {}", tuned["missing"]);
    }
    let says =
        |line: &Value, words: &str| line["settings"].as_str().is_some_and(|s| s.contains(words));
    assert!(says(tuned, "checkpoint every 8192 pages, ") && says(tuned, "EXCLUSIVE"), "{tuned}");
    assert!(
        says(as_it_comes, "checkpoint every 1000 pages, ") && says(as_it_comes, "mmap 0 MiB"),
        "{as_it_comes}"
    );
}

#[test]
fn a_users_file_is_loaded_and_read_back() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("mine.jsonl");
    let text: String =
        (0..500).map(|i| format!("{{\"name\":\"k{}\",\"n\":{i}}}\n", i * 7919 % 500)).collect();
    std::fs::write(&file, text).unwrap();
    let (stores, out) = (dir.path().join("stores"), dir.path().join("out"));
    let args = ["--file", file.to_str().unwrap(), "--key", "name", "--out", out.to_str().unwrap()];
    let output = bench(&stores, &args);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = lines(&out.join("results.jsonl"));
    assert!(lines.len() > 15, "{}", lines.len());
    for line in lines.iter().filter(|line| line["engine"] == "fake") {
        assert!(line["failed"].is_null() && line["value"].is_number(), "{line}");
        assert_eq!((&line["suite"], line["entries"].as_u64()), (&Value::from("file"), Some(500)));
    }
    // What it loses fails, whatever the order it was loaded in.
    let lossy =
        [&args[..4], &["--json", "-", "--rows", "fillfile,fillrandom", "--set", "lose_every=100"]];
    let output = bench(&stores, &lossy.concat());
    assert_eq!(output.status.code(), Some(3));
    let text = String::from_utf8_lossy(&output.stdout).to_string();
    assert_eq!(text.matches("of 500 entries 5 are lost").count(), 2, "{text}");
    let output = bench(&stores, &["--suite", "file"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("--file FILE"));
}

#[test]
fn a_row_stops_at_its_time_and_counts_what_it_did() {
    let dir = tempfile::tempdir().unwrap();
    let loaded = ["--entries", "400", "--rows", "fillrandom,readrandom,deleterandom"];
    // A hundredth of the entries is written synced.
    let synced = ["--entries", "20k", "--rows", "fillsync,fillsync4", "--threads", "4"];
    let common = ["--json", "-", "--row-seconds", "0.1", "--set", "delay_us=4000"];
    let mut count = 0;
    for (args, threads) in [(&loaded[..], 1.0), (&synced[..], 4.0)] {
        let output = bench(dir.path(), &[args, &common].concat());
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            if line["engine"] == "machine" {
                continue;
            }
            count += 1;
            assert!(line["failed"].is_null(), "{line}");
            assert!(line["note"].as_str().unwrap_or("").contains("stopped by time at"), "{line}");
            assert!(line["ops_per_s"].as_f64().unwrap() <= threads * 255.0, "{line}");
            assert!(line["ops"].as_u64().unwrap() < 200, "{line}");
        }
    }
    assert_eq!(count, 5);
}

#[test]
fn a_load_that_takes_too_long_leaves_its_rows_out() {
    let dir = tempfile::tempdir().unwrap();
    let args = ["--suite", "leveldb2011", "--rows", "leveldb2011/1/Random Reads", "--json", "-"];
    let slow = ["--entries", "20k", "--load-seconds", "0.5", "--set", "delay_us=4000"];
    let output = bench(dir.path(), &[&args[..], &slow].concat());
    assert!(output.status.success(), "too slow is not failed");
    let text = String::from_utf8_lossy(&output.stdout).to_string();
    let line: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    let why = line["failed"].as_str().unwrap();
    assert!(why.starts_with("too slow: the load had done") && why.contains("after 0.5 s"), "{why}");
    assert!(line["value"].is_null() && line["spread"].is_null(), "{line}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("too slow"));
}

#[test]
fn a_timeout_later_than_any_clock_goes_is_none() {
    let dir = tempfile::tempdir().unwrap();
    let args = ["--entries", "1000", "--suite", "ycsb", "--rows", "ycsb/1/E*", "--timeout"];
    let output = bench(dir.path(), &[&args[..], &["18446744073709551615"]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn nothing_is_measured_once_more_than_there_is_time_for() {
    let dir = tempfile::tempdir().unwrap();
    let args = ["--entries", "1000", "--rows", "fillseq", "--set", "delay_us=500", "--json", "-"];
    let times = ["--repeat", "100", "--minutes", "0.05"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_esker-bench"));
    let output = command.args(["--engines", "fake", "--dir"]).arg(dir.path());
    let output = output.args(args).args(times).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).to_string();
    let line: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    let runs = line["runs"].as_array().unwrap().len();
    assert!((1..10).contains(&runs), "{runs}");
    assert_eq!(line["repetitions"].as_u64(), Some(runs as u64));
    let table = String::from_utf8_lossy(&output.stderr).to_string();
    assert!(table.contains(&format!("Measured {runs} of 100 times")), "{table}");
}

#[test]
fn a_row_larger_than_memory_is_within_its_limit_or_says_why_not() {
    let dir = tempfile::tempdir().unwrap();
    let args = ["--entries", "1000", "--memory-limit", "16", "--rows", "fillrandom.limited"];
    let output = bench(dir.path(), &[&args[..], &["--json", "-"]].concat());
    let text = String::from_utf8_lossy(&output.stdout).to_string();
    let line: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!(line["memory_bytes"].as_u64(), Some(4 << 20), "a quarter of the limit: {line}");
    assert_eq!(line["memory_limit_bytes"].as_u64(), Some(16 << 20));
    match line["failed"].as_str() {
        // The fake keeps everything in memory; the limit may well end it.
        Some(why) if why.starts_with("not supported: ") => {
            assert!(output.status.success() && why.contains("cgroup"), "{why}");
        }
        Some(why) => assert!(why.contains("needed more than the 16 MiB"), "{why}"),
        None => {
            assert!(line["note"].as_str().unwrap().contains("MiB of data within 16 MiB"), "{line}")
        }
    }
}

#[test]
fn too_little_space_is_said_before_anything_is_measured() {
    let dir = tempfile::tempdir().unwrap();
    let output = bench(dir.path(), &["--entries", "1000000m", "--rows", "fillseq"]);
    let why = String::from_utf8_lossy(&output.stderr).to_string();
    assert!(why.contains("may need") && why.contains("MB free"), "{why}");
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn an_interrupt_leaves_a_report_of_what_was_done() {
    let (dir, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut child = Command::new(env!("CARGO_BIN_EXE_esker-bench"))
        .args(["--engines", "fake", "--entries", "2000", "--rows", "fillseq,overwrite"])
        .args(["--repeat", "1000", "--set", "delay_us=20", "--dir"])
        .arg(dir.path())
        .arg("--out")
        .arg(out.path())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let results = out.path().join("results.jsonl");
    // Written as they come: both rows are there long before the run could be over.
    let count = || std::fs::read_to_string(&results).map_or(0, |text| text.lines().count());
    while count() < 6 {
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let id = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(3));
    let rows = lines(&results);
    assert!(rows.iter().any(|l| l["row"] == "fillseq" && l["runs"].as_array().unwrap().len() > 1));
    assert!(rows.iter().all(|l| l["failed"].is_null()), "what was cut short is no failure");
    let table = std::fs::read_to_string(out.path().join("table.txt")).unwrap();
    assert!(table.contains("Interrupted"), "{table}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

//! Results as a run writes them, made up: many engines, of which some fail, lack or cannot do
//! things; long names; every kind of row. Deterministic.

use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;

/// Engines: name, how fast, durability class.
const ENGINES: [(&str, f64, &str); 18] = [
    ("esker", 1.0, "K"),
    ("leveldb", 0.31, "K"),
    ("rocksdb", 0.24, "K"),
    ("rocksdb-prefix", 0.26, "K"),
    ("lmdb", 0.92, "F"),
    ("sqlite", 0.05, "K"),
    ("bdb", 0.08, "K"),
    ("kyoto", 0.12, "V"),
    ("wiredtiger", 0.33, "K"),
    ("wiredtiger-lsm", 0.21, "K"),
    ("hyperleveldb", 0.35, "K"),
    ("basho", 0.28, "K"),
    ("redb", 0.4, "K"),
    ("fjall", 0.38, "K"),
    ("bf-tree", 0.3, "V"),
    ("sled", 0.13, "K"),
    ("libmdbx", 0.9, "K"),
    ("an-engine-of-somebody-with-a-long-name", 0.17, "K"),
];

/// Suite, section, table, rows with unit and Esker's value.
type Sections = &'static [(&'static str, &'static str, &'static str, &'static [Row])];
type Row = (&'static str, &'static str, f64);

const SECTIONS: Sections = &[
    (
        "leveldb2011",
        "1",
        "Baseline: 4 MB of memory, asynchronous, compression on",
        &[
            ("Sequential Reads", "ops_per_second", 41_000_000.0),
            ("Random Reads", "ops_per_second", 2_900_000.0),
            ("Sequential Writes", "ops_per_second", 6_100_000.0),
            ("Random Writes", "ops_per_second", 2_050_000.0),
        ],
    ),
    (
        "leveldb2011",
        "2A",
        "Large values: 1,000 of 100,000 bytes",
        &[
            ("Sequential Writes", "ops_per_second", 31_000.0),
            ("Random Writes", "ops_per_second", 29_500.0),
        ],
    ),
    (
        "leveldb2011",
        "2C",
        "Synchronous writes, 10,000 of them",
        &[
            ("Sequential Writes", "ops_per_second", 9_100.0),
            ("Random Writes", "ops_per_second", 8_700.0),
        ],
    ),
    (
        "leveldb2011",
        "beyond",
        "Beyond the document",
        &[
            ("Reverse Reads", "ops_per_second", 39_000_000.0),
            ("Reopening", "milliseconds", 3.2),
            ("Settling", "seconds", 1.25),
            ("Disk", "bytes", 61_500_000.0),
        ],
    ),
    (
        "wiredtiger2013",
        "",
        "128 MB, compression on",
        &[
            ("sequential insert", "ops_per_second", 5_900_000.0),
            ("sequential read reverse", "ops_per_second", 38_000_000.0),
        ],
    ),
    ("core", "", "", &[("open", "milliseconds", 0.9), ("memory", "bytes", 3_200_000.0)]),
    (
        "symas2014",
        "small",
        "Small set: 4 readers beside a writer of 10,000/s",
        &[("readwhilewriting4", "ops_per_second", 4_800_000.0)],
    ),
    (
        "symas2014",
        "larger",
        "Larger set: 16 readers beside a writer of 10,000/s",
        &[("readwhilewriting16", "ops_per_second", 7_200_000.0)],
    ),
    (
        "motion",
        "small",
        "In motion, with 32 MiB of memory",
        &[
            ("seek50 beside flood", "ops_per_second", 310_000.0),
            ("overwrite1", "ops_per_second", 1_900_000.0),
            ("overwrite1 disk", "times", 1.6),
        ],
    ),
];

/// Numbers that look random and are the same every time.
struct Noise(u64);

impl Noise {
    /// Between 0 and 1.
    fn next(&mut self) -> f64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as f64 / (1u64 << 31) as f64
    }
    /// About 1, up to `by` to either side.
    fn around(&mut self, by: f64) -> f64 {
        1.0 + by * (2.0 * self.next() - 1.0)
    }
}

/// Writes `results.jsonl` into a directory. `factor` changes the speed of all engines but Esker.
pub fn write(dir: &Path, factor: f64) {
    let mut lines = String::new();
    let mut noise = Noise(301);
    for (suite, section, table, rows) in SECTIONS {
        for row in *rows {
            for engine in ENGINES {
                let line = record((suite, section, table), row, engine, factor, &mut noise);
                writeln!(lines, "{line}").unwrap();
            }
        }
    }
    for (row, value) in [("limit.memcpy", 62_000_000.0), ("limit.fdatasync", 11_400.0)] {
        let machine = json!({"engine": "machine", "row": row, "unit": "ops_per_second",
            "value": value, "suite": null, "section": null, "cpu": CPU, "cores": 2,
            "note": "the machine's own limit"});
        writeln!(lines, "{machine}").unwrap();
    }
    std::fs::write(dir.join("results.jsonl"), lines).unwrap();
}

const CPU: &str = "Made-up Processor 9000 @ 2.60GHz";

fn record(
    (suite, section, table): (&str, &str, &str),
    (row, unit, base): &Row,
    (engine, speed, class): (&str, f64, &str),
    factor: f64,
    noise: &mut Noise,
) -> Value {
    let skew = noise.around(0.5)
        * if engine == "lmdb" && row.to_lowercase().contains("read") { 1.3 } else { 1.0 };
    let speed = if engine == "esker" { 1.0 } else { speed * skew * factor };
    let value = if *unit == "ops_per_second" { base * speed } else { base / speed };
    let width = if engine == "sled" || section == "2C" { 0.3 } else { 0.06 };
    let mut runs: Vec<f64> = (0..3).map(|_| value * noise.around(width)).collect();
    runs.sort_by(f64::total_cmp);
    let median = runs[1];
    let p50 = 0.4 / speed;
    let rate = *unit == "ops_per_second";
    let mut line = json!({
        "suite": suite, "section": section, "title": table, "table": format!("{suite}, {section}"),
        "row": row, "engine": engine, "version": "1.23", "class": class, "unit": unit, "value": median,
        "ops_per_s": rate.then_some(median), "spread": (runs[2] - runs[0]) / median, "runs": runs,
        "ratio_limit": rate.then_some(median / (base * 1.9)),
        "cpu_s": 1.5 / speed, "written_bytes": 1.4e8 / speed, "read_bytes": 0,
        "peak_memory_bytes": 48e6 * noise.around(0.6), "disk_bytes": 6.3e7 * (1.0 + noise.next()),
        "raw_bytes": 116_000_000, "entries": 1_000_000, "key_len": 16, "value_size": "100",
        "memory_bytes": 4 << 20, "memory_limit_bytes": null, "compression": true,
        "sync": section == "2C", "seed": 301, "threads": null, "writer": null, "cv": null,
        "settings": "cache 4 MiB, write buffer 4 MiB, <compression> \"on\" & checksums off",
        "note": (engine == "sled").then_some("grows while it settles"),
        "failed": null, "missing": null,
        "command": ["esker", "bench", "--suite", "leveldb2011", "--out", "results of today"],
        "cpu": CPU, "cores": 2, "kernel": "6.1.0", "date": "2026-11-21T03:00:00Z", "bench_version": "0.1.0",
    });
    line["key"] = json!(key(row));
    line["keys"] = json!("decimal");
    if rate {
        line["hist"] = json!(histogram(p50, noise));
        for (name, factor) in
            [("p50_us", 1.0), ("p99_us", 6.0), ("p999_us", 40.0), ("max_us", 3000.0)]
        {
            line[name] = json!(p50 * factor);
        }
    }
    if suite == "symas2014" {
        let readers = if row.ends_with("16") { 16 } else { 4 };
        line["threads"] = json!(threads(readers, median / f64::from(readers), noise));
        line["cv"] = json!(0.12);
    }
    if suite == "motion" && rate {
        line["over_time"] = over_time(row.starts_with("seek"), median, noise);
    }
    refuse(&mut line, engine, section, row);
    line
}

/// What its case calls a row.
fn key(row: &str) -> &str {
    match row {
        "Sequential Reads" => "readseq",
        "Reverse Reads" | "sequential read reverse" => "readreverse",
        "Random Reads" => "readrandom",
        "Sequential Writes" | "sequential insert" => "fillseq",
        "Random Writes" => "fillrandom",
        "seek50 beside flood" => "seek50.flood",
        "overwrite1" => "overwrite",
        other => other,
    }
}

/// A minute in quarters of a second, with a stall of some seconds, and a disk that fills.
fn over_time(reads: bool, rate: f64, noise: &mut Noise) -> Value {
    let mut side = |name: &str, rate: f64| {
        let stalls = |w: i32| (100..108).contains(&w);
        let ops: Vec<f64> =
            (0..240).map(|w| if stalls(w) { 0.0 } else { rate * noise.around(0.3) }).collect();
        let worst: Vec<f64> =
            (0..240).map(|w| if stalls(w) { 2e6 } else { 300.0 * noise.around(0.9) }).collect();
        json!({"name": name, "ops_per_s": ops, "worst_us": worst})
    };
    let sides = match reads {
        true => vec![side("reads", rate), side("puts", 3e5)],
        false => vec![side("puts", rate)],
    };
    let disk: Vec<f64> = (0..240).map(|w| 1.2e8 + 1e6 * f64::from(w % 80)).collect();
    json!({"window_s": 0.25, "sides": sides, "disk_bytes": disk, "live_bytes": 1.16e8})
}

/// Some are not installed, some cannot do a row, some fail.
fn refuse(line: &mut Value, engine: &str, section: &str, row: &str) {
    let why = match (engine, section, row) {
        ("wiredtiger-lsm" | "hyperleveldb", _, _) => {
            ("missing", "install its library, or build it and say where it is with LD_LIBRARY_PATH")
        }
        ("kyoto", _, "Reverse Reads" | "sequential read reverse") => {
            ("failed", "not supported: it has no way back")
        }
        ("bf-tree", _, "Sequential Reads" | "Reverse Reads" | "sequential read reverse") => {
            ("failed", "not supported: scans are forward and by pages")
        }
        ("redb", "2A", "Random Writes") => ("failed", "lost 3 of 1,000 entries"),
        _ => return,
    };
    line[why.0] = json!(why.1);
    for field in [
        "value",
        "ops_per_s",
        "runs",
        "spread",
        "hist",
        "threads",
        "over_time",
        "p50_us",
        "ratio_limit",
    ] {
        line[field] = Value::Null;
    }
    if why.0 == "missing" {
        line["version"] = Value::Null;
        line["class"] = Value::Null;
    }
}

fn histogram(p50: f64, noise: &mut Noise) -> Vec<(f64, f64)> {
    let mut points = vec![(0.0, p50 * 0.5)];
    let mut us = p50 * 0.5;
    for step in 1..=30 {
        let nines = f64::from(step) * 0.2;
        us *= 1.0 + 0.5 * noise.next();
        points.push((100.0 - 100.0 * 10f64.powf(-nines), us));
    }
    points.push((100.0, us * 1.5));
    points
}

fn threads(readers: i32, each: f64, noise: &mut Noise) -> Vec<Value> {
    let shape = (noise.next() * 3.0) as u32;
    let mut all: Vec<Value> = (0..readers)
        .map(|i| {
            let own = noise.around(0.15);
            let ops: Vec<f64> = (0..60)
                .map(|w| {
                    let saw = match shape {
                        0 => 1.0,
                        1 => 0.4 + 0.6 * f64::from(w % 12) / 12.0,
                        _ => 1.0 / (1.0 + f64::from(w) / 15.0),
                    };
                    each * own * saw * noise.around(0.08)
                })
                .collect();
            json!({"name": format!("reader {i}"), "window_s": 0.25, "ops_per_s": ops})
        })
        .collect();
    let stalls = |w: i32| if shape == 1 && w % 12 == 0 { 0.05 } else { 1.0 };
    let ops: Vec<f64> = (0..60).map(|w| 10_000.0 * stalls(w) * noise.around(0.02)).collect();
    all.push(json!({"name": "writer", "window_s": 0.25, "ops_per_s": ops}));
    all
}

//! One JSON object per engine and row, with all that is needed to repeat it.

use crate::plan::Row;
use crate::results::{Cell, Results};
use crate::run::MACHINE;
use crate::system;
use serde_json::{Map, Value, json};
use std::io::{self, Write};

/// Writes JSON lines.
pub fn write_json_lines(results: &Results, out: &mut dyn Write) -> io::Result<()> {
    let machine = [MACHINE.to_string()];
    let command: Vec<String> = std::env::args().collect();
    for row in &results.rows {
        let engines = if results.is_limit(row) { &machine[..] } else { &results.engines[..] };
        for engine in engines {
            let mut line = common(results, row, engine, &command);
            add_figures(&mut line, results, row, engine);
            writeln!(out, "{}", Value::Object(line))?;
        }
    }
    Ok(())
}

fn common(results: &Results, row: &Row, engine: &str, command: &[String]) -> Map<String, Value> {
    let plan = &results.plan;
    let value = json!({
        "engine": engine,
        "version": results.version_of(engine),
        "row": row.name,
        "unit": row.unit,
        "entries": plan.entries,
        "keys": plan.keys,
        "value_size": plan.value_size,
        "read_ahead_kib": results.read_ahead_kib,
        "load_before": results.load_before,
        "memory_bytes": plan.memory,
        "memory_limit_bytes": plan.memory_limit,
        "compression": plan.compression,
        "seed": plan.seed,
        "repetitions": results.repetitions,
        "command": command,
        "cpu": system::cpu_name(),
        "kernel": system::kernel(),
        "os": std::env::consts::OS,
        "bench_version": env!("CARGO_PKG_VERSION"),
    });
    let Value::Object(map) = value else { unreachable!("an object was written above") };
    map
}

fn add_figures(line: &mut Map<String, Value>, results: &Results, row: &Row, engine: &str) {
    let mut set = |name: &str, value: Value| line.insert(name.to_string(), value);
    let (median, runs, spread) = match results.cell(engine, &row.name) {
        Cell::Measured { median, runs, spread } => (median, runs, spread),
        Cell::Failed(why) => {
            set("failed", json!(why));
            return;
        }
        Cell::Missing(why) => {
            set("missing", json!(why));
            return;
        }
        Cell::Nothing => {
            set("failed", json!("nothing was reported"));
            return;
        }
    };
    if let Some(shape) = &median.shape {
        // Some rows have fewer entries, or larger values.
        set("entries", json!(shape.entries));
        set("key_len", json!(shape.key_len));
        set("value_size", json!(shape.value_size));
        set("raw_bytes", json!(shape.raw_bytes));
    }
    set("value", json!(median.value));
    let is_rate = row.unit == crate::plan::Unit::OpsPerSecond;
    set("ops_per_s", if is_rate { json!(median.value) } else { Value::Null });
    set("ops", json!(median.ops));
    set("seconds", json!(median.seconds));
    let latency = median.latency.as_ref();
    set("p50_us", json!(latency.map(|l| l.p50_us)));
    set("p99_us", json!(latency.map(|l| l.p99_us)));
    set("p999_us", json!(latency.map(|l| l.p999_us)));
    set("max_us", json!(latency.map(|l| l.max_us)));
    set("timed_ops", json!(latency.map(|l| l.timed)));
    set("worst_quarter_ops_per_s", json!(median.quarters.map(|q| q.0)));
    set("best_quarter_ops_per_s", json!(median.quarters.map(|q| q.1)));
    set("writer", json!(median.writer));
    set("disk_bytes", json!(median.disk_bytes));
    set("rss_bytes", json!(median.rss_bytes));
    set("class", json!(median.class));
    set("settings", json!(median.settings));
    set("note", json!(median.note));
    set("runs", json!(runs));
    set("spread", json!(spread));
    set("ratio_to_limit", json!(results.ratio_to_limit(engine, row)));
    set("limit", json!(row.limit.map(|(name, _)| name)));
    if engine == crate::results::OURS {
        set("ratio_to_best_peer", json!(results.ratio_to_best_peer(row)));
        set("target", json!(row.target));
    }
}

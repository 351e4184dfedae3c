//! `results.jsonl`: one JSON object per engine and row, with all that is needed to repeat it. Every
//! field is always there, `null` where nothing is known.

use crate::plan::Unit;
use crate::protocol::Sample;
use crate::results::{Cell, Place, Results};
use crate::system;
use crate::turns::MACHINE;
use serde_json::{Map, Value, json};
use std::io::{self, Write};
use std::path::Path;

/// Writes everything that was measured.
pub fn write_json_lines(results: &Results, out: &mut dyn Write) -> io::Result<()> {
    let machine = [MACHINE.to_string()];
    for place in results.places() {
        let is_limit = results.is_limit(place.row);
        for engine in if is_limit { &machine[..] } else { &results.engines[..] } {
            if !matches!(results.cell(engine, place.row), Cell::Nothing) {
                write_line(results, place, engine, out)?;
            }
        }
    }
    Ok(())
}

/// Writes one line: an engine in a row, as far as it was measured.
pub fn write_line(
    results: &Results,
    place: Place<'_>,
    engine: &str,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut line = place_and_settings(results, place, engine);
    line.extend(machine_and_run(results));
    let empty = Sample::default();
    let (value, median, runs, spread, interval) = match results.cell(engine, place.row) {
        Cell::Measured { value, median, runs, spread, interval } => {
            (Some(value), median, runs, Some(spread), interval)
        }
        _ => (None, &empty, Vec::new(), None, None),
    };
    line.extend(figures(value, median, place));
    line.extend(object(json!({
        "runs": runs,
        "spread": spread,
        "interval": interval,
        "told_apart": results.told_apart(engine, place.row),
        "ratio_best_peer": results.ratio_best_peer(engine, place.row),
        "ratio_limit": results.ratio_limit(engine, place.row),
    })));
    line.extend(absence(&results.cell(engine, place.row)));
    writeln!(out, "{}", Value::Object(line))
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

fn place_and_settings(results: &Results, place: Place<'_>, engine: &str) -> Map<String, Value> {
    let Place { section, case, row } = place;
    let plan = &case.plan;
    object(json!({
        "suite": section.suite,
        "section": section.id,
        "title": section.title,
        "table": section.table,
        "row": row.name,
        "key": row.key,
        "engine": engine,
        "version": results.version_of(engine),
        "unit": row.unit,
        "limit": row.limit.map(|(name, _)| name),
        "target": row.target,
        "keys": if plan.file.is_some() { json!("file") } else { json!(plan.keys) },
        "memory_limit_bytes": plan.memory_limit,
        "compression": plan.compression,
        "seed": plan.seed,
        "sync_delay_ms": plan.sync_delay_ms,
    }))
}

fn machine_and_run(results: &Results) -> Map<String, Value> {
    // The program by its name: where it lies is its owner's affair, and says nothing of the run.
    let name = |program: String| match Path::new(&program).file_name() {
        Some(name) => name.to_string_lossy().into_owned(),
        None => program,
    };
    let mut args = std::env::args();
    let command: Vec<String> = args.next().map(name).into_iter().chain(args).collect();
    let shares = results.quiet.shares();
    object(json!({
        "read_ahead_kib": results.read_ahead_kib,
        "load_before": results.quiet.load_before,
        "others_cpu": shares.map(|s| s.others),
        "stolen_cpu": shares.map(|s| s.stolen),
        "unquiet": results.quiet.complaint(),
        "repetitions": results.repetitions,
        "command": command,
        "cpu": system::cpu_name(),
        "cores": system::cores(),
        "kernel": system::kernel(),
        "os": std::env::consts::OS,
        "date": results.date,
        "bench_version": env!("CARGO_PKG_VERSION"),
    }))
}

fn figures(figure: Option<f64>, median: &Sample, place: Place<'_>) -> Map<String, Value> {
    let (row, plan, measured) = (place.row, &place.case.plan, figure.is_some());
    let known = |value: Value| if measured { value } else { Value::Null };
    let is_rate = row.unit == Unit::OpsPerSecond;
    let latency = median.latency.as_ref();
    let usage = median.usage.as_ref();
    let shape = median.shape.as_ref();
    object(json!({
        "class": median.class,
        "value": figure,
        "ops_per_s": figure.filter(|_| is_rate),
        "ops": known(json!(median.ops)),
        "seconds": known(json!(median.seconds)),
        "p50_us": latency.map(|l| l.p50_us),
        "p99_us": latency.map(|l| l.p99_us),
        "p999_us": latency.map(|l| l.p999_us),
        "max_us": latency.map(|l| l.max_us),
        "timed_ops": latency.map(|l| l.timed),
        "hist": latency.map(|l| &l.hist),
        "worst_quarter_ops_per_s": median.quarters.map(|q| q.0),
        "best_quarter_ops_per_s": median.quarters.map(|q| q.1),
        "cv": median.cv,
        "threads": median.threads,
        "writer": median.writer,
        "over_time": median.over_time,
        "sustained": median.sustained,
        "cpu_s": usage.map(|u| u.cpu_s),
        "written_bytes": usage.map(|u| u.written_bytes),
        "read_bytes": usage.map(|u| u.read_bytes),
        "peak_memory_bytes": known(json!(median.memory.anonymous)),
        "peak_private_bytes": known(json!(median.memory.private)),
        "peak_mapped_bytes": known(json!(median.memory.mapped)),
        "peak_dirty_bytes": known(json!(median.memory.dirty)),
        "disk_bytes": known(json!(median.disk_bytes)),
        // Where nothing was measured: what was to be.
        "entries": shape.map_or(plan.entries, |s| s.entries),
        "key_len": shape.map(|s| s.key_len),
        "value_size": shape.map_or(&plan.value_size, |s| &s.value_size),
        "raw_bytes": shape.map(|s| s.raw_bytes),
        "memory_bytes": if measured { median.memory_bytes } else { plan.memory_given() },
        "sync": known(json!(median.sync)),
        "restless": known(json!(median.restless)),
        "device_fdatasync_us": median.device.map(|d| d.fdatasync_us),
        "device_waits_per_op": median.device.and_then(|d| d.waits_per_op),
        "settings": known(json!(median.settings)),
        "note": median.note,
    }))
}

fn absence(cell: &Cell<'_>) -> Map<String, Value> {
    let (failed, missing) = match cell {
        Cell::Failed(why) | Cell::Unsupported(why) => (Some(*why), None),
        Cell::Missing(why) => (None, Some(*why)),
        Cell::Measured { .. } | Cell::Nothing => (None, None),
    };
    object(json!({ "failed": failed, "missing": missing }))
}

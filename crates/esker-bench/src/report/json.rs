//! What was measured as lines of `results.jsonl`: one JSON object per engine and row. Every field is always there, `null` where
//! nothing is known.

use super::model::Row;
use super::record::{Record, Thread};
use crate::plan::Unit;
use crate::protocol::Sample;
use crate::results::{Cell, Place, Results};
use crate::system;
use crate::turns::MACHINE;
use std::io::{self, Write};
use std::path::Path;

/// Writes everything that was measured.
pub fn write_json_lines(results: &Results, out: &mut dyn Write) -> io::Result<()> {
    let records = results.places().flat_map(|place| row(results, place).records);
    records.into_iter().try_for_each(|record| write_line(&record, out))
}

/// Writes one line, its fields by name.
pub(crate) fn write_line(record: &Record, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", serde_json::to_value(record)?)
}

/// A row with all engines that were measured in it, or could not be, beside each other.
pub(crate) fn row(results: &Results, place: Place<'_>) -> Row {
    let machine = [MACHINE.to_string()];
    let is_limit = results.is_limit(place.row);
    let engines = if is_limit { &machine[..] } else { &results.engines[..] };
    let records = engines.iter().filter_map(|engine| record(results, place, engine)).collect();
    let mut row = Row { name: place.row.name.clone(), unit: place.row.unit, records };
    for at in 0..row.records.len() {
        let standing = row.beside_the_best(&row.records[at].engine, &|_| true);
        let record = &mut row.records[at];
        record.ratio_best_peer = standing.as_ref().map(|s| s.ratio).filter(|r| r.is_finite());
        record.told_apart = standing.and_then(|s| s.told_apart);
    }
    row
}

/// An engine in a row, as far as it was measured; nothing of one that said nothing.
fn record(results: &Results, place: Place<'_>, engine: &str) -> Option<Record> {
    let asked_for = Record { engine: engine.to_string(), ..of_plan(results, place, engine) };
    Some(match results.cell(engine, place.row) {
        Cell::Nothing => return None,
        Cell::Missing(why) => Record { missing: Some(why.to_string()), ..asked_for },
        Cell::Failed(why) => Record { failed: Some(why.to_string()), ..asked_for },
        Cell::Measured { value, median, runs, spread, interval } => Record {
            value: Some(value),
            ops_per_s: Some(value).filter(|_| place.row.unit == Unit::OpsPerSecond),
            runs: Some(runs),
            spread: Some(spread),
            interval,
            ratio_limit: results.ratio_limit(engine, place.row),
            ..measured(median, asked_for)
        },
    })
}

/// What was to be measured, by which command, and on which machine.
fn of_plan(results: &Results, place: Place<'_>, engine: &str) -> Record {
    let Place { section, case, row } = place;
    let plan = &case.plan;
    let shares = results.quiet.shares();
    let keys = format!("{:?}", plan.keys).to_lowercase();
    Record {
        suite: Some(section.suite.to_string()),
        section: Some(section.id.clone()),
        title: Some(section.title.clone()),
        table: section.table.clone(),
        row: row.name.clone(),
        key: Some(row.key.clone()),
        version: Some(results.version_of(engine).to_string()),
        unit: Some(row.unit),
        limit: row.limit.map(|(name, _)| name.to_string()),
        target: Some(row.target),
        runs: Some(Vec::new()),
        entries: Some(plan.entries),
        value_size: Some(plan.value_size.clone()),
        keys: Some(if plan.file.is_some() { "file".to_string() } else { keys }),
        memory_bytes: Some(plan.memory_given()),
        memory_limit_bytes: plan.memory_limit,
        compression: Some(plan.compression),
        seed: Some(plan.seed),
        sync_delay_ms: Some(plan.sync_delay_ms),
        read_ahead_kib: results.read_ahead_kib,
        load_before: results.quiet.load_before,
        others_cpu: shares.map(|s| s.others),
        stolen_cpu: shares.map(|s| s.stolen),
        unquiet: results.quiet.complaint(),
        repetitions: Some(results.repetitions),
        command: Some(command()),
        cpu: Some(system::cpu_name()),
        cores: Some(system::cores()),
        kernel: Some(system::kernel()),
        os: Some(std::env::consts::OS.to_string()),
        date: Some(results.date.clone()),
        bench_version: Some(env!("CARGO_PKG_VERSION").to_string()),
        ..Record::default()
    }
}

/// What is running. The program by its name: where it lies is its owner's affair, and says nothing of the run.
fn command() -> Vec<String> {
    let name = |program: String| match Path::new(&program).file_name() {
        Some(name) => name.to_string_lossy().into_owned(),
        None => program,
    };
    let mut args = std::env::args();
    args.next().map(name).into_iter().chain(args).collect()
}

/// What a measurement told beside its figure.
fn measured(median: &Sample, asked_for: Record) -> Record {
    let latency = median.latency.as_ref();
    let usage = median.usage.as_ref();
    let shape = median.shape.as_ref();
    Record {
        class: median.class.map(|class| format!("{class:?}")),
        ops: Some(median.ops),
        seconds: Some(median.seconds),
        p50_us: latency.map(|l| l.p50_us),
        p99_us: latency.map(|l| l.p99_us),
        p999_us: latency.map(|l| l.p999_us),
        max_us: latency.map(|l| l.max_us),
        timed_ops: latency.map(|l| l.timed),
        hist: latency.map(|l| l.hist.clone()),
        worst_quarter_ops_per_s: median.quarters.map(|q| q.0),
        best_quarter_ops_per_s: median.quarters.map(|q| q.1),
        cv: median.cv,
        threads: median.threads.as_ref().map(|threads| threads.iter().map(Thread::from).collect()),
        writer: median.writer.clone(),
        over_time: median.over_time.clone(),
        sustained: median.sustained.clone(),
        cpu_s: usage.map(|u| u.cpu_s),
        written_bytes: usage.map(|u| u.written_bytes),
        read_bytes: usage.map(|u| u.read_bytes),
        peak_memory_bytes: Some(median.memory.anonymous),
        peak_private_bytes: Some(median.memory.private),
        peak_mapped_bytes: Some(median.memory.mapped),
        peak_dirty_bytes: Some(median.memory.dirty),
        disk_bytes: Some(median.disk_bytes),
        entries: shape.map(|s| s.entries).or(asked_for.entries),
        key_len: shape.map(|s| s.key_len),
        value_size: shape.map(|s| s.value_size.clone()).or(asked_for.value_size),
        raw_bytes: shape.map(|s| s.raw_bytes),
        memory_bytes: Some(median.memory_bytes),
        sync: Some(median.sync),
        restless: Some(median.restless),
        device_fdatasync_us: median.device.map(|d| d.fdatasync_us),
        device_waits_per_op: median.device.and_then(|d| d.waits_per_op),
        settings: Some(median.settings.clone()),
        note: median.note.clone(),
        ..asked_for
    }
}

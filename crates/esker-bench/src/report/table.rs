//! The table on the terminal.

use super::columns;
use super::first;
use super::format;
use super::json;
use super::model::{Model, Row, by_key};
use super::record::Record;
use super::standing::OR_NEAR;
use crate::device;
use crate::interval::{ALIKE, WIDE};
use crate::plan::{Bound, Unit};
use crate::published::{self, Value};
use crate::results::{OURS, Place, Results};
use crate::suites::Section;
use crate::system;
use std::fmt::Write;

/// The whole table, with its legend.
pub fn table(results: &Results) -> String {
    let all: Vec<(Place<'_>, Row)> =
        results.places().map(|place| (place, json::row(results, place))).collect();
    let records = all.iter().flat_map(|(_, row)| row.records.clone()).collect();
    let mut out = preamble(results) + &first::text::render(&Model::new(records));
    for section in &results.sections {
        let here = all.iter().filter(|(place, _)| std::ptr::eq(place.section, section));
        let (limits, measured): (Vec<_>, Vec<_>) =
            here.partition(|(place, _)| results.is_limit(place.row));
        let [limits, rows]: [Vec<&Row>; 2] =
            [limits, measured].map(|of| of.into_iter().map(|(_, row)| row).collect());
        out += &of_section(results, section, &rows, &limits);
    }
    out + &remarks(results, &all)
}

fn of_section(results: &Results, section: &Section, rows: &[&Row], limits: &[&Row]) -> String {
    let mut lines = vec![header(results)];
    lines.extend(rows.iter().map(|row| line(results, row)));
    let mut out = heading(results, section) + &align(&lines);
    out += &published(section, rows);
    out += &latencies(section, rows);
    out += &device_beside(rows);
    out += &machine(limits);
    out += &settings(results, rows);
    out + "\n"
}

fn preamble(results: &Results) -> String {
    let slow = device::words(results.plan.sync_delay_ms);
    let before = [
        slow.map(|words| format!("A slow device: {words}, for all alike.\n")),
        results.quiet.complaint().map(|why| format!("{why}.\n")),
    ];
    let (done, wanted) = (results.repetitions, results.repetitions_wanted);
    let fewer =
        format!("Measured {done} of {wanted} times: once more would take it past --minutes.\n");
    let stopped = "Interrupted: not everything was measured.\n".to_string();
    let after = [(done < wanted).then_some(fewer), results.interrupted.then_some(stopped)];
    let [before, after] =
        [before, after].map(|lines| lines.into_iter().flatten().collect::<String>());
    let times = match done {
        1 => "measured once (a figure without an interval says nothing of chance)".to_string(),
        2 => "measured twice (a figure without an interval says nothing of chance)".to_string(),
        n => format!("median of {n}"),
    };
    format!(
        "{before}{}, Linux {}{}, {}, {times}, engines in an order drawn from seed {}\n{after}\n",
        system::cpu_name(),
        system::kernel(),
        results.read_ahead_kib.map_or_else(String::new, |kib| format!(", reads {kib} KiB ahead")),
        results.date,
        results.plan.seed,
    )
}

/// What a section is about and what all of its rows have in common.
fn heading(results: &Results, section: &Section) -> String {
    let plan = &section.plan;
    let source = published::source(section.suite).filter(|_| section.table.is_some());
    let table = section.table.as_ref().zip(source);
    let table = table.map_or_else(String::new, |(table, s)| format!(" ({table}, that is {s})"));
    let limit = plan
        .memory_limit
        .map_or_else(String::new, |limit| format!(" within {} MiB with page cache", limit >> 20));
    let keys = match plan.file {
        Some(_) => "keys and values of the file".to_string(),
        None => format!("{:?} keys, values of {}", plan.keys, format::value_size(&plan.value_size)),
    };
    format!(
        "{}/{} {}{table}\n{} entries, {keys}, {} MiB of memory{limit}, compression {}, seed {}{}\n",
        section.suite,
        section.id,
        section.title,
        format::grouped(plan.entries as f64),
        plan.memory_given() >> 20,
        if plan.compression { "on" } else { "off" },
        plan.seed,
        if results.sections.len() > 1 { "" } else { "\n" },
    )
}

fn header(results: &Results) -> Vec<String> {
    let mut cells = ["row", "unit", "class"].map(String::from).to_vec();
    for engine in &results.engines {
        cells.push(format!("{engine} {}", results.version_of(engine)).trim().to_string());
    }
    cells.extend([format!("{OURS}/best"), "of limit".to_string(), String::new()]);
    cells
}

fn line(results: &Results, row: &Row) -> Vec<String> {
    let mut cells = vec![row.name.clone(), unit(row.unit).to_string(), classes(row)];
    for engine in &results.engines {
        let shown = row.of(engine).map(|record| figure(row.unit, record));
        cells.push(shown.unwrap_or_else(|| "-".to_string()));
    }
    let standing = row.beside_the_best(OURS, &|_| true);
    let told = standing.as_ref().filter(|s| s.bound != Bound::Neither);
    cells.push(told.map_or_else(String::new, |s| format::bounded(s.ratio, s.bound)));
    cells.push(limit_share(row));
    let target = row.of(OURS).and_then(|r| r.target).unwrap_or_default();
    cells.push(match standing {
        Some(s) if s.alike() => ALIKE.to_string(),
        Some(s) if s.ratio < target => format!("<< below {target}x"),
        _ => String::new(),
    });
    cells
}

/// The share of the machine's limit that we reach, or, without us, the best engine.
fn limit_share(row: &Row) -> String {
    let best = || {
        let all = row.records.iter().filter_map(|r| r.ratio_limit);
        all.reduce(|a, b| row.unit.better(a, b))
    };
    match (row.of(OURS).and_then(|r| r.ratio_limit).or_else(best), row.unit) {
        (None, _) => String::new(),
        (Some(share), Unit::Bytes) => format!("{share:.2}x raw"),
        (Some(share), _) => format::of_limit(share),
    }
}

fn classes(row: &Row) -> String {
    let mut all: Vec<&str> = row.records.iter().filter_map(|r| r.class.as_deref()).collect();
    if all.windows(2).all(|w| w[0] == w[1]) {
        all.truncate(1);
    }
    all.join("/")
}

fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::OpsPerSecond => "ops/s",
        Unit::Seconds => "s",
        Unit::Milliseconds => "ms",
        Unit::Bytes => "MB",
        Unit::Times => "times",
    }
}

fn number(unit: Unit, value: f64) -> String {
    match unit {
        Unit::OpsPerSecond => format::grouped(value),
        Unit::Bytes => format!("{:.1}", value / 1e6),
        _ if value < 10.0 => format!("{value:.3}"),
        _ => format!("{value:.1}"),
    }
}

/// A figure, and how many percent below and above it the ends of its interval are; or why there is none.
fn figure(unit: Unit, record: &Record) -> String {
    let Some(value) = record.figure() else {
        return record.absent().unwrap_or("-").replace("failed", "FAILED");
    };
    let Some((low, high)) = record.interval().filter(|_| value > 0.0) else {
        return number(unit, value);
    };
    let percent = |end: f64| ((end / value - 1.0).abs() * 100.0).min(999.0);
    let unsure = if high - low > WIDE * value { "?" } else { "" };
    format!("{} -{:.0}+{:.0}%{unsure}", number(unit, value), percent(low), percent(high))
}

/// Rows beside a writer, and rows of synced writes, are about latency as much as throughput.
fn latencies(section: &Section, rows: &[&Row]) -> String {
    let head = [
        "latency, µs",
        "engine",
        "p50",
        "p99",
        "p99.9",
        "max",
        "slowest and fastest 1/4 s, ops/s",
        "writer p99, max",
    ];
    // Where nothing but a rate is asked for, ten engines' percentiles would bury it.
    let shown = |row: &Row| section.suite == "core" || ["reads", "writes"].contains(&row.key());
    let rows: Vec<&Row> = rows.iter().copied().filter(|row| shown(row)).collect();
    let lines = records(&rows).filter_map(|(row, record)| percentiles(row, record));
    let lines: Vec<Vec<String>> = lines.collect();
    let head = head.map(String::from).to_vec();
    if lines.is_empty() { String::new() } else { part("", [vec![head], lines].concat()) }
}

fn percentiles(row: &Row, record: &Record) -> Option<Vec<String>> {
    let of = [record.p50_us?, record.p99_us?, record.p999_us?, record.max_us?];
    let mut cells = vec![row.name.clone(), record.engine.clone()];
    cells.extend(of.map(|us| format!("{us:.1}")));
    let quarters = record.worst_quarter_ops_per_s.zip(record.best_quarter_ops_per_s);
    let quarters = quarters.map(|(a, b)| format!("{} {}", format::grouped(a), format::grouped(b)));
    let writer = record.writer.as_ref().map(|w| {
        format!("{:.0} {:.0} at {:.0}/s", w.latency.p99_us, w.latency.max_us, w.ops_per_s)
    });
    cells.extend([quarters.unwrap_or_default(), writer.unwrap_or_default()]);
    Some(cells)
}

/// What one wait for the device took beside each row of synced writes, in the same minute.
fn device_beside(rows: &[&Row]) -> String {
    let line = |(row, record): (&Row, &Record)| {
        let us = format!("{:.1} µs", record.device_fdatasync_us?);
        let waits = record.device_waits_per_op.map(|n| format!("{n:.2} waits a write"));
        Some(vec![row.name.clone(), record.engine.clone(), us, waits.unwrap_or_default()])
    };
    let title = "fdatasync just before and after, in the same directory:\n";
    part(title, records(rows).filter_map(line).collect())
}

fn machine(limits: &[&Row]) -> String {
    let measured = records(limits).filter(|(_, record)| record.figure().is_some());
    let line = |(row, record): (&Row, &Record)| {
        vec![row.name.clone(), unit(row.unit).to_string(), figure(row.unit, record)]
    };
    part("The machine:\n", measured.map(line).collect())
}

/// All that was measured in some rows.
fn records<'a>(rows: &'a [&Row]) -> impl Iterator<Item = (&'a Row, &'a Record)> {
    rows.iter().flat_map(|row| row.records.iter().map(move |record| (*row, record)))
}

/// Lines below a title; nothing where there are none.
fn part(title: &str, lines: Vec<Vec<String>>) -> String {
    if lines.is_empty() { String::new() } else { format!("\n{title}{}", align(&lines)) }
}

/// What the document had, on the machines of its day.
fn published(section: &Section, rows: &[&Row]) -> String {
    let mut lines = Vec::new();
    for row in rows {
        let figures = published::for_row(section.suite, &section.id, &row.name);
        let shown = figures.iter().map(|figure| match &figure.value {
            Value::OpsPerSecond(value) => {
                format!("{} {} ops/s", figure.named, format::grouped(*value))
            }
            Value::TimesLeveldb(times) => format!("{} {times}x LevelDB", figure.named),
            Value::Time(time) => format!("{} {time}", figure.named),
        });
        let shown: Vec<String> = shown.collect();
        if !shown.is_empty() {
            lines.push(format!("  {}: {}\n", row.name, shown.join(", ")));
        }
    }
    if lines.is_empty() { String::new() } else { format!("\nPublished:\n{}", lines.concat()) }
}

/// What the engines were told, in their own words: a line for each, and one more where a row has others.
fn settings(results: &Results, rows: &[&Row]) -> String {
    let mut out = String::from("\n");
    for engine in &results.engines {
        let version = results.version_of(engine);
        let of_rows =
            rows.iter().filter_map(|row| Some((row.settings_of(engine)?, row.name.as_str())));
        for (i, (settings, rows)) in by_key(of_rows).iter().enumerate() {
            let rows = if i == 0 { String::new() } else { format!(" [{}]", rows.join(", ")) };
            let _ = writeln!(out, "{engine} {version}: {settings}{rows}");
        }
    }
    if out.len() == 1 { String::new() } else { out }
}

/// What is not installed, failures and notes, each once.
fn remarks(results: &Results, all: &[(Place<'_>, Row)]) -> String {
    let mut out = String::new();
    for engine in &results.engines {
        let mut records = all.iter().filter_map(|(_, row)| row.of(engine));
        if let Some(why) = records.find_map(|record| record.missing.as_ref()) {
            let _ = writeln!(out, "{engine}: {why}");
        }
    }
    for remark in grouped_remarks(results, all) {
        let _ = writeln!(out, "{remark}");
    }
    let _ = writeln!(
        out,
        "\n-1+2%: the median lies between 1 % less and 2 % more; ?: too wide to trust.\n\
         cannot be told apart: Esker's interval and that of the best of the others overlap, {OR_NEAR}, or neither takes a millisecond to settle.\n\
         of limit: what the machine itself did in the same run is 100 %; where a store did more, the limit was measured too low.\n\
         Fast operations are timed one in 16; a stall in between is seen in max all the same.",
    );
    out
}

/// Failures and notes, each once, with the engines and rows that have them: one crash must not fill
/// the screen, and neither must a note that all engines share.
fn grouped_remarks(results: &Results, all: &[(Place<'_>, Row)]) -> Vec<String> {
    let records = all.iter().flat_map(|(place, row)| row.records.iter().map(move |r| (place, r)));
    let of_one = records.filter_map(|(place, record)| {
        let text = record.failed.as_deref().or(record.note.as_deref())?;
        let failed = if record.absent() == Some("failed") { "FAILED " } else { "" };
        let row = match place.section.suite {
            "core" => place.row.name.clone(),
            _ => place.row.path(),
        };
        Some(((format!("{failed}{}", record.engine), text), row))
    });
    let of_rows = by_key(of_one).into_iter().map(|((engine, text), rows)| ((text, rows), engine));
    let present = results.engines.iter().filter(|engine| !results.is_missing(engine)).count();
    let told = |((text, rows), engines): ((&str, Vec<String>), Vec<String>)| {
        let engines = match engines.len() {
            n if n == present && n > 1 => "all engines".to_string(),
            _ => engines.join(", "),
        };
        format!("{engines}: {text} [{}]", rows.join(", "))
    };
    by_key(of_rows).into_iter().map(told).collect()
}

/// The first column to the left, the others to the right.
fn align(lines: &[Vec<String>]) -> String {
    columns::aligned(lines, |i| i == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Sample;
    use crate::suites::{Suite, tests::base};
    use crate::turns::MACHINE;

    #[test]
    fn the_first_screen_stands_above_all_and_nothing_does_more_than_the_machine() {
        let sections = Suite::First.sections(&base());
        let engines = [OURS, "lmdb"].map(String::from);
        let mut results = Results::new(&base().plan, &sections, &engines, 1);
        let rows: Vec<_> = results.places().map(|place| place.row.clone()).collect();
        for row in &rows {
            let who: &[_] = match results.is_limit(row) {
                true => &[(MACHINE, 50.0)],
                false => &[(OURS, 100.0), ("lmdb", 400.0)],
            };
            for (engine, value) in who {
                results.add(engine, row, Sample::figure(&row.key, *value));
            }
        }
        // Lines break anywhere.
        let text = table(&results).split_whitespace().collect::<Vec<_>>().join(" ");
        let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("no {what} in {text}"));
        let order =
            ["K kill -9", "READS", "IN MOTION", "The rows in which Esker is worst", "core/core"];
        assert!(order.map(at).is_sorted(), "{text}");
        assert!(
            at("Esker: 0.25× of LMDB") < at("core/core") && text.contains("limit measured too low")
        );
        assert!(!text.contains("200 %"), "{text}");
    }
}

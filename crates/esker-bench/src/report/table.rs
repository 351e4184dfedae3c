//! The table on the terminal.

use super::first;
use super::format;
use super::input;
use super::json::write_json_lines;
use super::model::Model;
use crate::device;
use crate::engine::Unsupported;
use crate::interval::{ALIKE, WIDE};
use crate::plan::{Bound, Row, Unit};
use crate::published::{self, Value};
use crate::results::{Cell, OURS, Results};
use crate::suites::Section;
use crate::system;
use crate::turns::MACHINE;
use std::fmt::Write;

/// The whole table, with its legend.
pub fn table(results: &Results) -> String {
    let mut out = preamble(results) + &first_screen(results);
    for section in &results.sections {
        let rows: Vec<&Row> =
            section.places().map(|p| p.row).filter(|row| !results.is_limit(row)).collect();
        out.push_str(&heading(results, section));
        let mut lines = vec![header(results)];
        lines.extend(rows.iter().map(|row| line(results, row)));
        out.push_str(&align(&lines));
        out.push_str(&published(section, &rows));
        out.push_str(&latencies(results, section, &rows));
        out.push_str(&device_beside(results, &rows));
        out.push_str(&limits(results, section));
        out.push_str(&settings(results, section));
        out.push('\n');
    }
    out.push_str(&remarks(results));
    out
}

fn preamble(results: &Results) -> String {
    let busy = results.quiet.complaint().map_or_else(String::new, |why| format!("{why}.\n"));
    let stopped =
        if results.interrupted { "Interrupted: not everything was measured.\n" } else { "" };
    let fewer = if results.repetitions < results.repetitions_wanted {
        format!(
            "Measured {} of {} times: once more would take it past --minutes.\n",
            results.repetitions, results.repetitions_wanted
        )
    } else {
        String::new()
    };
    let slow = device::words(results.plan.sync_delay_ms)
        .map_or_else(String::new, |words| format!("A slow device: {words}, for all alike.\n"));
    format!(
        "{slow}{busy}{}, Linux {}{}, {}, {}, engines in an order drawn from seed {}\n{fewer}{stopped}\n",
        system::cpu_name(),
        system::kernel(),
        results.read_ahead_kib.map_or_else(String::new, |kib| format!(", reads {kib} KiB ahead")),
        results.date,
        match results.repetitions {
            n @ 1..=2 => format!(
                "measured {} (a figure without an interval says nothing of chance)",
                if n == 1 { "once" } else { "twice" }
            ),
            n => format!("median of {n}"),
        },
        results.plan.seed,
    )
}

/// What everybody wants to know first, drawn from the lines that the run writes: the other formats have them from nowhere else.
fn first_screen(results: &Results) -> String {
    let mut lines = Vec::new();
    if write_json_lines(results, &mut lines).is_err() {
        return String::new();
    }
    let records = input::parse(&String::from_utf8_lossy(&lines)).unwrap_or_default();
    first::text::render(&Model::new(records))
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
    let mut cells = vec!["row".to_string(), "unit".to_string(), "class".to_string()];
    for engine in &results.engines {
        cells.push(format!("{engine} {}", results.version_of(engine)).trim().to_string());
    }
    cells.extend([format!("{OURS}/best"), "of limit".to_string(), String::new()]);
    cells
}

fn line(results: &Results, row: &Row) -> Vec<String> {
    let mut cells = vec![row.name.clone(), unit(row.unit).to_string(), classes(results, row)];
    for engine in &results.engines {
        cells.push(match results.cell(engine, row) {
            Cell::Measured { value, interval, .. } => figure(row.unit, value, interval),
            Cell::Failed(_) => "FAILED".to_string(),
            Cell::Unsupported(why) => Unsupported::words(why).unwrap_or("-").to_string(),
            Cell::Missing(_) => "not installed".to_string(),
            Cell::Nothing => "-".to_string(),
        });
    }
    let ratio = results.ratio_best_peer(OURS, row);
    let bound = results.bound_best_peer(OURS, row).unwrap_or(Bound::Exact);
    let told = ratio.filter(|_| bound != Bound::Neither);
    cells.push(told.map_or_else(String::new, |r| format::bounded(r, bound)));
    cells.push(limit_share(results, row));
    cells.push(match ratio {
        Some(_) if results.told_apart(OURS, row) == Some(false) => ALIKE.to_string(),
        Some(r) if r < row.target => format!("<< below {}x", row.target),
        _ => String::new(),
    });
    cells
}

/// The share of the machine's limit that we reach, or, without us, the best engine.
fn limit_share(results: &Results, row: &Row) -> String {
    let share = results.ratio_limit(OURS, row).or_else(|| {
        let all = results.engines.iter().filter_map(|e| results.ratio_limit(e, row));
        all.reduce(|a, b| row.unit.better(a, b))
    });
    match (share, row.unit) {
        (None, _) => String::new(),
        (Some(share), Unit::Bytes) => format!("{share:.2}x raw"),
        (Some(share), _) => format::of_limit(share),
    }
}

fn classes(results: &Results, row: &Row) -> String {
    let mut all = Vec::new();
    for engine in &results.engines {
        if let Some((_, Some(class))) = results.figure(engine, row) {
            all.push(format!("{class:?}"));
        }
    }
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

/// A figure, and how many percent below and above it the ends of its interval are.
fn figure(unit: Unit, value: f64, interval: Option<(f64, f64)>) -> String {
    let Some((low, high)) = interval.filter(|_| value > 0.0) else { return number(unit, value) };
    let percent = |end: f64| ((end / value - 1.0).abs() * 100.0).min(999.0);
    let unsure = if high - low > WIDE * value { "?" } else { "" };
    format!("{} -{:.0}+{:.0}%{unsure}", number(unit, value), percent(low), percent(high))
}

/// Rows beside a writer, and rows of synced writes, are about latency as much as throughput.
fn latencies(results: &Results, section: &Section, rows: &[&Row]) -> String {
    let mut lines = vec![
        [
            "latency, µs",
            "engine",
            "p50",
            "p99",
            "p99.9",
            "max",
            "slowest and fastest 1/4 s, ops/s",
            "writer p99, max",
        ]
        .map(String::from)
        .to_vec(),
    ];
    // Where nothing but a rate is asked for, ten engines' percentiles would bury it.
    let shown = |row: &Row| section.suite == "core" || row.key == "reads" || row.key == "writes";
    for row in rows.iter().copied().filter(|row| shown(row)) {
        for engine in &results.engines {
            let Cell::Measured { median, .. } = results.cell(engine, row) else { continue };
            let Some(l) = &median.latency else { continue };
            let quarters = median
                .quarters
                .map(|(a, b)| format!("{} {}", format::grouped(a), format::grouped(b)));
            let writer = median.writer.as_ref().map(|w| {
                format!("{:.0} {:.0} at {:.0}/s", w.latency.p99_us, w.latency.max_us, w.ops_per_s)
            });
            let mut cells = vec![row.name.clone(), engine.clone()];
            cells.extend([l.p50_us, l.p99_us, l.p999_us, l.max_us].map(|us| format!("{us:.1}")));
            cells.extend([quarters.unwrap_or_default(), writer.unwrap_or_default()]);
            lines.push(cells);
        }
    }
    if lines.len() == 1 { String::new() } else { format!("\n{}", align(&lines)) }
}

/// What one wait for the device took beside each row of synced writes, in the same minute.
fn device_beside(results: &Results, rows: &[&Row]) -> String {
    let mut lines = Vec::new();
    for row in rows {
        for engine in &results.engines {
            let Cell::Measured { median, .. } = results.cell(engine, row) else { continue };
            let Some(device) = median.device else { continue };
            let waits =
                device.waits_per_op.map_or_else(String::new, |n| format!("{n:.2} waits a write"));
            let us = format!("{:.1} µs", device.fdatasync_us);
            lines.push(vec![row.name.clone(), engine.clone(), us, waits]);
        }
    }
    if lines.is_empty() {
        return String::new();
    }
    format!("\nfdatasync just before and after, in the same directory:\n{}", align(&lines))
}

fn limits(results: &Results, section: &Section) -> String {
    let mut lines = Vec::new();
    for row in section.places().map(|p| p.row).filter(|row| results.is_limit(row)) {
        if let Cell::Measured { value, interval, .. } = results.cell(MACHINE, row) {
            let shown = figure(row.unit, value, interval);
            lines.push(vec![row.name.clone(), unit(row.unit).to_string(), shown]);
        }
    }
    if lines.is_empty() { String::new() } else { format!("\nThe machine:\n{}", align(&lines)) }
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
fn settings(results: &Results, section: &Section) -> String {
    let mut out = String::from("\n");
    for engine in &results.engines {
        let version = results.version_of(engine);
        for (settings, rows) in results.settings_of(engine, section) {
            let rows = if rows.is_empty() { rows } else { format!(" [{rows}]") };
            let _ = writeln!(out, "{engine} {version}: {settings}{rows}");
        }
    }
    if out.len() == 1 { String::new() } else { out }
}

/// What is not installed, failures and notes, each once.
fn remarks(results: &Results) -> String {
    let mut out = String::new();
    let some_row = results.places().next().map(|place| place.row);
    for (engine, row) in results.engines.iter().zip(std::iter::repeat(some_row)) {
        if let Some(Cell::Missing(why)) = row.map(|row| results.cell(engine, row)) {
            let _ = writeln!(out, "{engine}: {why}");
        }
    }
    for remark in grouped_remarks(results) {
        let _ = writeln!(out, "{remark}");
    }
    out.push_str(
        "\n-1+2%: the median lies between 1 % less and 2 % more; ?: too wide to trust.\n\
         cannot be told apart: Esker's interval and that of the best of the others overlap, or neither takes a millisecond to settle.\n\
         of limit: what the machine itself did in the same run is 100 %; where a store did more, the limit was measured too low.\n\
         Fast operations are timed one in 16; a stall in between is seen in max all the same.\n",
    );
    out
}

/// A failure or a note, and what has it.
struct Remark {
    text: String,
    engines: Vec<String>,
    rows: Vec<String>,
}

/// Failures and notes, each once, with the engines and rows that have them: one crash must not fill
/// the screen, and neither must a note that all engines share.
fn grouped_remarks(results: &Results) -> Vec<String> {
    let mut of_one: Vec<Remark> = Vec::new();
    for place in results.places() {
        for engine in results.engines.iter().map(String::as_str).chain([MACHINE]) {
            let (text, failed) = match results.cell(engine, place.row) {
                Cell::Failed(why) => (why, "FAILED "),
                Cell::Unsupported(why) => (why, ""),
                Cell::Measured { median, .. } => match &median.note {
                    Some(note) => (note.as_str(), ""),
                    None => continue,
                },
                _ => continue,
            };
            let row = match place.section.suite {
                "core" => place.row.name.clone(),
                _ => place.row.path(),
            };
            let engine = format!("{failed}{engine}");
            match of_one.iter_mut().find(|r| r.text == text && r.engines[0] == engine) {
                Some(remark) => remark.rows.push(row),
                None => of_one.push(Remark {
                    text: text.to_string(),
                    engines: vec![engine],
                    rows: vec![row],
                }),
            }
        }
    }
    let mut all: Vec<Remark> = Vec::new();
    for one in of_one {
        match all.iter_mut().find(|r| r.text == one.text && r.rows == one.rows) {
            Some(remark) => remark.engines.extend(one.engines),
            None => all.push(one),
        }
    }
    let present = results.engines.iter().filter(|engine| !results.is_missing(engine)).count();
    let told = |r: &Remark| {
        let engines = match r.engines.len() {
            n if n == present && n > 1 => "all engines".to_string(),
            _ => r.engines.join(", "),
        };
        format!("{engines}: {} [{}]", r.text, r.rows.join(", "))
    };
    all.iter().map(told).collect()
}

/// Columns of equal width: the first to the left, the others to the right.
fn align(lines: &[Vec<String>]) -> String {
    let columns = lines.iter().map(Vec::len).max().unwrap_or(0);
    let width = |i: usize| lines.iter().filter_map(|l| Some(l.get(i)?.chars().count())).max();
    let widths: Vec<usize> = (0..columns).map(|i| width(i).unwrap_or(0)).collect();
    let mut out = String::new();
    for line in lines {
        let mut text = String::new();
        for (i, cell) in line.iter().enumerate() {
            let pad = " ".repeat(widths[i] - cell.chars().count());
            if i == 0 {
                let _ = write!(text, "{cell}{pad}");
            } else {
                let _ = write!(text, "  {pad}{cell}");
            }
        }
        out.push_str(text.trim_end());
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Sample;
    use crate::suites::{Suite, tests::base};

    #[test]
    fn the_first_screen_stands_above_all_and_nothing_does_more_than_the_machine() {
        let sections = Suite::First.sections(&base());
        let engines = [OURS, "lmdb"].map(String::from);
        let mut results = Results::new(&base().plan, &sections, &engines, 1);
        let rows: Vec<Row> = results.places().map(|place| place.row.clone()).collect();
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

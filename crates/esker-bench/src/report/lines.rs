//! Throughput over time, thread by thread: a small panel for each engine, its readers above and
//! its writer below, each on a scale from zero of its own. The shape is what counts here: flat,
//! sawtooth, lockstep, collapse.

use super::bars::Panel;
use super::format;
use super::model::Row;
use super::palette;
use super::record::{Record, Thread};
use super::scale::Scale;
use super::strips::{self, Strip};

const READERS: f64 = 74.0;
const WRITER: f64 = 24.0;
const GAP: f64 = 4.0;

/// Panels of a row, each with its engine's record; nothing where no engine has threads over time.
pub(crate) fn of_row(row: &Row) -> Vec<(&Record, Panel)> {
    row.records.iter().filter_map(|r| Some((r, panel(row, r, r.threads.as_deref()?)))).collect()
}

fn panel(row: &Row, record: &Record, threads: &[Thread]) -> Panel {
    let is_writer = |thread: &Thread| thread.name.to_ascii_lowercase().starts_with("writ");
    let (writers, readers): (Vec<Thread>, Vec<Thread>) =
        threads.iter().cloned().partition(is_writer);
    let lasts = |t: &Thread| t.window_s * t.ops_per_s.len() as f64;
    let seconds = threads.iter().map(lasts).fold(0.0, f64::max);
    let strips = [("reader", readers, READERS), ("writer", writers, WRITER)]
        .into_iter()
        .filter(|(_, of, _)| !of.is_empty())
        .map(|(what, of, height)| strip(what, of, height, palette::emphasis(&record.engine)));
    Panel {
        svg: strips::draw(&strips.collect::<Vec<_>>(), seconds, GAP),
        title: palette::shown(&record.engine).to_string(),
        desc: describe(row, threads, seconds),
    }
}

fn strip(what: &str, of: Vec<Thread>, height: f64, emphasis: &str) -> Strip {
    let values: Vec<f64> = of.iter().flat_map(|t| &t.ops_per_s).filter_map(|v| *v).collect();
    let peak = values.iter().copied().fold(0.0, f64::max);
    let (many, each) = if of.len() == 1 { ("", "") } else { ("s", " each") };
    Strip {
        what: format!("{} {what}{many}", of.len()),
        reach: format!("scale to {}/s{each}", format::short(peak)),
        scale: Scale::from_zero(&values),
        height,
        lines: of,
        class: format!("thread {what}{emphasis}"),
        mark: None,
    }
}

fn describe(row: &Row, threads: &[Thread], seconds: f64) -> String {
    let mut words = vec![format!(
        "Throughput of each thread over {} seconds in {}",
        format::rounded(seconds),
        row.name
    )];
    for t in threads {
        let known: Vec<f64> = t.ops_per_s.iter().filter_map(|v| *v).collect();
        let mean = known.iter().sum::<f64>() / known.len().max(1) as f64;
        words.push(format!("{} {} a second on average", t.name, format::rounded(mean)));
    }
    words.join("; ")
}

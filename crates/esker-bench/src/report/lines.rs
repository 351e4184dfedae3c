//! Throughput over time, thread by thread: a small panel for each engine, its readers above and
//! its writer below, each on a scale from zero of its own. The shape is what counts here: flat,
//! sawtooth, lockstep, collapse.

use super::bars::Panel;
use super::format;
use super::layout::{self, SMALL};
use super::model::Row;
use super::palette;
use super::record::{Record, Thread};
use super::scale::Scale;
use super::svg::{Anchor, Svg};
use super::text;

/// Width of a panel: four beside each other on a desk's screen.
pub(crate) const WIDTH: f64 = 270.0;
const LEFT: f64 = 2.0;
const READERS: f64 = 74.0;
const WRITER: f64 = 24.0;
/// Room above a strip for what its top means.
const HEAD: f64 = 16.0;
/// More points than pixels show nothing more.
const POINTS_MAX: usize = 240;

/// Panels of a row; nothing where no engine has threads over time.
pub(crate) fn of_row(row: &Row) -> Vec<Panel> {
    row.records.iter().filter_map(|r| Some(panel(row, r, r.threads.as_deref()?))).collect()
}

fn is_writer(thread: &Thread) -> bool {
    thread.name.to_ascii_lowercase().starts_with("writ")
}

fn panel(row: &Row, record: &Record, threads: &[Thread]) -> Panel {
    let (writers, readers): (Vec<&Thread>, Vec<&Thread>) =
        threads.iter().partition(|t| is_writer(t));
    let lasts = |t: &&Thread| t.window_s * t.ops_per_s.len() as f64;
    let seconds = readers.iter().chain(&writers).map(lasts).fold(0.0, f64::max);
    let ours = if palette::line_class(&record.engine) == "ours" { " ours" } else { "" };
    let mut svg = Svg::new(WIDTH, 0.0);
    let mut y = 0.0;
    for (what, of, height) in [("reader", readers, READERS), ("writer", writers, WRITER)] {
        if of.is_empty() {
            continue;
        }
        strip(&mut svg, what, &of, seconds, y, height, ours);
        y += HEAD + height + 4.0;
    }
    time_axis(&mut svg, seconds, y);
    svg.set_height(y + 18.0);
    Panel {
        svg,
        title: palette::shown(&record.engine).to_string(),
        desc: describe(row, threads, seconds),
    }
}

fn strip(svg: &mut Svg, what: &str, of: &[&Thread], seconds: f64, y: f64, height: f64, ours: &str) {
    let values = || of.iter().flat_map(|t| &t.ops_per_s).filter_map(|v| *v);
    let peak = values().fold(0.0, f64::max);
    let scale = Scale { log: false, from: 0.0, to: if peak > 0.0 { peak } else { 1.0 } };
    let (top, bottom) = (y + HEAD, y + HEAD + height);
    svg.line((LEFT, top), (WIDTH, top), "grid");
    let count = if of.len() == 1 { format!("1 {what}") } else { format!("{} {what}s", of.len()) };
    svg.text(LEFT, top - 4.0, Anchor::Start, "small", &count);
    let each = if of.len() > 1 { " each" } else { "" };
    let head = format!("scale to {}/s{each}", format::short(peak));
    let room = WIDTH - LEFT - text::width(&count, SMALL) - 10.0;
    svg.text(WIDTH, top - 4.0, Anchor::End, "small", &text::fit(&head, SMALL, room));
    let class = format!("thread {what}{ours}");
    for thread in of {
        let at = |(seconds_in, v): (f64, f64)| {
            let x = LEFT + (WIDTH - LEFT) * (seconds_in / seconds.max(1e-9)).min(1.0);
            (x, bottom - scale.at(v) * height)
        };
        let pieces: Vec<Vec<_>> =
            pieces(thread).into_iter().map(|p| p.into_iter().map(at).collect()).collect();
        svg.path(&pieces, &class, &thread.name);
    }
    svg.line((LEFT, bottom), (WIDTH, bottom), "axis");
}

/// Points in time, in pieces between windows without a figure; each in the middle of its window.
pub(crate) fn pieces(thread: &Thread) -> Vec<Vec<(f64, f64)>> {
    // The lowest and the highest of each group of windows: neither stall nor spike is lost.
    let group = (thread.ops_per_s.len() * 2).div_ceil(POINTS_MAX);
    let group = if group <= 2 { 1 } else { group };
    let mut pieces = vec![Vec::new()];
    for (i, chunk) in thread.ops_per_s.chunks(group).enumerate() {
        let known: Vec<(usize, f64)> =
            chunk.iter().enumerate().filter_map(|(k, v)| Some((k, (*v)?))).collect();
        let low = known.iter().min_by(|a, b| a.1.total_cmp(&b.1));
        let high = known.iter().max_by(|a, b| a.1.total_cmp(&b.1));
        let (Some(low), Some(high)) = (low, high) else {
            pieces.push(Vec::new());
            continue;
        };
        let mut both = vec![*low, *high];
        both.sort_by_key(|(k, _)| *k);
        both.dedup();
        let Some(piece) = pieces.last_mut() else { continue };
        for (k, value) in both {
            piece.push((((i * group + k) as f64 + 0.5) * thread.window_s, value));
        }
    }
    pieces
}

/// What the time below a panel is.
pub(crate) fn time_axis(svg: &mut Svg, seconds: f64, y: f64) {
    let scale = Scale { log: false, from: 0.0, to: seconds.max(1e-9) };
    let show = |v: f64| format!("{} s", format::rounded(v));
    let last = WIDTH - LEFT;
    for (x, label) in layout::ticks(&scale, LEFT, last, show) {
        let half = text::width(&label, SMALL) / 2.0;
        let (x, anchor) = match x {
            x if x - half < 0.0 => (0.0, Anchor::Start),
            x if x + half > WIDTH => (WIDTH, Anchor::End),
            x => (x, Anchor::Middle),
        };
        svg.text(x, y + 9.0, anchor, "small", &label);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_split_lines_and_extremes_survive() {
        let thread =
            |ops: Vec<Option<f64>>| Thread { name: "r".into(), window_s: 0.5, ops_per_s: ops };
        let with_gap = thread(vec![Some(1.0), None, Some(3.0)]);
        assert_eq!(pieces(&with_gap), [vec![(0.25, 1.0)], vec![(1.25, 3.0)]]);
        let mut many = vec![Some(10.0); 5000];
        (many[1234], many[4321]) = (Some(0.0), Some(99.0));
        let points: Vec<f64> = pieces(&thread(many)).concat().iter().map(|p| p.1).collect();
        assert!(points.len() <= POINTS_MAX + 8 && points.contains(&0.0) && points.contains(&99.0));
    }
}

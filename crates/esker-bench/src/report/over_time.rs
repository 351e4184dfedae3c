//! A store in motion, over time: a small panel for each engine, with strips for throughput, for the slowest
//! operation and for the disk beside what is alive. A strip has one scale in all panels of a row, so that
//! heights can be compared as well as shapes.

use super::bars::Panel;
use super::format;
use super::layout::SMALL;
use super::lines::{self, WIDTH};
use super::model::Row;
use super::palette;
use super::record::Thread;
use super::scale::Scale;
use super::svg::{Anchor, Svg};
use super::text;
use crate::over_time::OverTime;

const LEFT: f64 = 2.0;
const HEIGHT: f64 = 40.0;
/// Room above a strip for what its top means.
const HEAD: f64 = 16.0;
const GAP: f64 = 5.0;

/// What a strip shows.
#[derive(Debug, Clone, PartialEq)]
enum Strip {
    /// Operations a second of the side of that name.
    Rate(String),
    /// Microseconds of its slowest operation.
    Worst(String),
    Disk,
}

/// Strips of a row with their scales, in the order from above.
#[derive(Debug)]
struct Frame {
    strips: Vec<(Strip, Scale)>,
    seconds: f64,
}

/// Panels of a row, each with its engine; nothing where no engine has a figure over time.
pub(crate) fn of_row(row: &Row) -> Vec<(&str, Panel)> {
    let all: Vec<(&str, &OverTime)> = row
        .records
        .iter()
        .filter(|r| r.figure().is_some())
        .filter_map(|r| Some((r.engine.as_str(), r.over_time.as_ref()?)))
        .filter(|(_, over_time)| over_time.sides.iter().any(|side| side.ops_per_s.len() > 1))
        .collect();
    let frame = Frame::of(all.iter().map(|(_, over_time)| *over_time));
    all.iter().map(|(engine, over_time)| (*engine, panel(row, engine, over_time, &frame))).collect()
}

impl Strip {
    /// Values in windows, as far as an engine has them.
    fn values<'a>(&self, of: &'a OverTime) -> &'a [f64] {
        let side = |name: &str| of.sides.iter().find(|side| side.name == name);
        match self {
            Strip::Rate(name) => side(name).map_or(&[][..], |side| &side.ops_per_s[..]),
            Strip::Worst(name) => side(name).map_or(&[][..], |side| &side.worst_us[..]),
            Strip::Disk => &of.disk_bytes,
        }
    }

    /// What it is, and what its scale reaches to.
    fn head(&self, scale: &Scale, live: f64) -> (String, String) {
        match self {
            Strip::Rate(name) => (name.clone(), format!("to {}/s", format::short(scale.to))),
            Strip::Worst(name) => (
                format!("worst of {name}"),
                format!(
                    "{} to {}, logarithmic",
                    format::micros(scale.from),
                    format::micros(scale.to)
                ),
            ),
            Strip::Disk => (
                format!("disk; alive {}", format::bytes(live)),
                format!("to {}", format::bytes(scale.to)),
            ),
        }
    }
}

impl Frame {
    fn of<'a>(all: impl Iterator<Item = &'a OverTime> + Clone) -> Frame {
        let mut names: Vec<&str> = Vec::new();
        for side in all.clone().flat_map(|o| &o.sides) {
            if !names.contains(&side.name.as_str()) {
                names.push(&side.name);
            }
        }
        let rates = names.iter().map(|name| Strip::Rate(name.to_string()));
        let worst = names.iter().map(|name| Strip::Worst(name.to_string()));
        let strips = rates.chain(worst).chain([Strip::Disk]);
        let scale = |strip: &Strip| {
            let values = all.clone().flat_map(|o| strip.values(o)).copied();
            if matches!(strip, Strip::Worst(_)) {
                return Scale::decades(values);
            }
            let live = all.clone().map(|o| if *strip == Strip::Disk { o.live_bytes } else { 0.0 });
            let most = values.chain(live).fold(0.0, f64::max);
            Scale { log: false, from: 0.0, to: if most > 0.0 { most } else { 1.0 } }
        };
        let known = |strip: &Strip| all.clone().any(|o| !strip.values(o).is_empty());
        let with_scale = |strip: Strip| {
            let scale = scale(&strip);
            (strip, scale)
        };
        let strips = strips.filter(known).map(with_scale).collect();
        let windows = |o: &OverTime| o.sides.iter().map(|side| side.ops_per_s.len()).max();
        let seconds = all.map(|o| o.window_s * windows(o).unwrap_or(0) as f64).fold(0.0, f64::max);
        Frame { strips, seconds }
    }
}

fn panel(row: &Row, engine: &str, of: &OverTime, frame: &Frame) -> Panel {
    let ours = if palette::line_class(engine) == "ours" { " ours" } else { "" };
    let mut svg = Svg::new(WIDTH, 0.0);
    let mut y = 0.0;
    for (strip, scale) in &frame.strips {
        let (top, bottom) = (y + HEAD, y + HEAD + HEIGHT);
        let height = |value: f64| bottom - scale.at(value) * HEIGHT;
        let (what, reach) = strip.head(scale, of.live_bytes);
        svg.line((LEFT, top), (WIDTH, top), "grid");
        svg.text(LEFT, top - 4.0, Anchor::Start, "small", &what);
        let room = WIDTH - LEFT - text::width(&what, SMALL) - 10.0;
        svg.text(WIDTH, top - 4.0, Anchor::End, "small", &text::fit(&reach, SMALL, room));
        if *strip == Strip::Disk {
            svg.line((LEFT, height(of.live_bytes)), (WIDTH, height(of.live_bytes)), "axis");
        }
        let values = strip.values(of).iter().map(|value| Some(*value)).collect();
        let line = Thread { name: what, window_s: of.window_s, ops_per_s: values };
        let at = |(seconds, value): (f64, f64)| {
            (LEFT + (WIDTH - LEFT) * (seconds / frame.seconds.max(1e-9)).min(1.0), height(value))
        };
        let pieces: Vec<Vec<_>> =
            lines::pieces(&line).into_iter().map(|p| p.into_iter().map(at).collect()).collect();
        svg.path(&pieces, &format!("thread reader{ours}"), &line.name);
        svg.line((LEFT, bottom), (WIDTH, bottom), "axis");
        y = bottom + GAP;
    }
    lines::time_axis(&mut svg, frame.seconds, y);
    svg.set_height(y + 18.0);
    Panel { svg, title: palette::shown(engine).to_string(), desc: describe(row, of, frame.seconds) }
}

fn describe(row: &Row, of: &OverTime, seconds: f64) -> String {
    let mut words = vec![format!("{} over {} seconds", row.name, format::rounded(seconds))];
    for side in &of.sides {
        let mean = side.ops_per_s.iter().sum::<f64>() / side.ops_per_s.len().max(1) as f64;
        let worst = side.worst_us.iter().copied().fold(0.0, f64::max);
        words.push(format!(
            "{} {} a second on average, the slowest took {}",
            side.name,
            format::rounded(mean),
            format::micros(worst)
        ));
    }
    let most = of.disk_bytes.iter().copied().fold(0.0, f64::max);
    words.push(format!("{} on disk at most", format::bytes(most)));
    words.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Side;
    use crate::report::model::Model;
    use crate::report::record::Record;
    use roxmltree::Document;

    fn record(engine: &str, rate: f64, worst_us: f64, disk: f64) -> Record {
        let side = |name: &str, rate: f64| Side {
            name: name.into(),
            ops_per_s: vec![rate, rate / 2.0, rate],
            worst_us: vec![2.0, worst_us, 2.0],
        };
        let sides = vec![side("reads", rate), side("puts", rate / 10.0)];
        let disk_bytes = vec![1e6, disk, disk];
        let over_time = OverTime { window_s: 0.25, sides, disk_bytes, live_bytes: 1e6 };
        Record {
            suite: Some("motion".into()),
            engine: engine.into(),
            row: "seek50 beside flood".into(),
            value: Some(rate),
            over_time: Some(over_time),
            ..Record::default()
        }
    }

    /// Height of the point in the middle of each line, above its strip's bottom.
    fn middles(panel: &Panel) -> Vec<f64> {
        let file = panel.svg.file("t", "d", "");
        let picture = Document::parse(&file).unwrap();
        let lines = picture.descendants().filter(|n| n.has_tag_name("path"));
        let middle = |(strip, node): (usize, roxmltree::Node<'_, '_>)| {
            let d = node.attribute("d").unwrap();
            let points: Vec<&str> = d.split(['M', 'L']).filter(|p| !p.is_empty()).collect();
            let y: f64 = points[1].split(' ').nth(1).unwrap().parse().unwrap();
            (strip + 1) as f64 * (HEAD + HEIGHT) + strip as f64 * GAP - y
        };
        lines.enumerate().map(middle).collect()
    }

    #[test]
    fn panels_of_a_row_share_their_scales() {
        let mut failed = record("leveldb", 9e9, 1e9, 9e9);
        failed.failed = Some("lost".into());
        let records = vec![
            record("esker", 400.0, 100.0, 2e6),
            record("lmdb", 800.0, 10_000.0, 8e6),
            failed,
            Record { over_time: None, ..record("redb", 1.0, 1.0, 1.0) },
        ];
        let model = Model::new(records);
        let panels = of_row(&model.sections[0].rows[0]);
        let engines: Vec<&str> = panels.iter().map(|(engine, _)| *engine).collect();
        assert_eq!(engines, ["esker", "lmdb"], "what failed or has nothing is not drawn");
        // Reads, puts, the worst of both, disk: each beside the highest of both engines.
        let (ours, theirs) = (middles(&panels[0].1), middles(&panels[1].1));
        assert_eq!((ours.len(), theirs.len()), (5, 5));
        for strip in [0, 1] {
            assert!((ours[strip] / HEIGHT - 0.25).abs() < 0.01, "{ours:?}");
            assert!((theirs[strip] / HEIGHT - 0.5).abs() < 0.01, "{theirs:?}");
        }
        // From 1 µs to 10 ms are four decades.
        for strip in [2, 3] {
            assert!((ours[strip] / HEIGHT - 0.5).abs() < 0.01, "{ours:?}");
            assert!((theirs[strip] / HEIGHT - 1.0).abs() < 0.01, "{theirs:?}");
        }
        assert!((ours[4] / HEIGHT - 0.25).abs() < 0.01 && (theirs[4] / HEIGHT - 1.0).abs() < 0.01);
        let words = &panels[1].1.desc;
        assert!(
            words.contains("the slowest took 10 ms") && words.contains("8 MB on disk"),
            "{words}"
        );
    }
}

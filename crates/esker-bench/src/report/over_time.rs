//! A store in motion, over time: a small panel for each engine, with strips for throughput, for the slowest
//! operation and for the disk beside what is alive. A strip has one scale in all panels of a row, so that
//! heights can be compared as well as shapes.

use super::bars::Panel;
use super::format;
use super::model::{Row, by_key};
use super::palette;
use super::record::{Record, Thread};
use super::scale::Scale;
use super::strips::{self, Strip};
use crate::over_time::OverTime;

const HEIGHT: f64 = 40.0;
const GAP: f64 = 5.0;

/// What a strip shows.
#[derive(Debug, Clone, PartialEq)]
enum Kind {
    /// Operations a second of the side of that name.
    Rate(String),
    /// Microseconds of its slowest operation.
    Worst(String),
    Disk,
}

/// Panels of a row, each with its engine's record; nothing where no engine has a figure over time.
pub(crate) fn of_row(row: &Row) -> Vec<(&Record, Panel)> {
    let with_figure = row.records.iter().filter(|r| r.figure().is_some());
    let all: Vec<(&Record, &OverTime)> = with_figure
        .filter_map(|r| Some((r, r.over_time.as_ref()?)))
        .filter(|(_, over_time)| over_time.sides.iter().any(|side| side.ops_per_s.len() > 1))
        .collect();
    let of: Vec<&OverTime> = all.iter().map(|(_, over_time)| *over_time).collect();
    let kinds = kinds(&of);
    let windows = |o: &OverTime| o.sides.iter().map(|side| side.ops_per_s.len()).max();
    let lasts = |o: &&OverTime| o.window_s * windows(o).unwrap_or(0) as f64;
    let seconds = of.iter().map(lasts).fold(0.0, f64::max);
    let panel = |(record, of): (&'_ Record, &OverTime)| {
        let emphasis = palette::emphasis(&record.engine);
        let strips = kinds.iter().map(|(kind, scale)| kind.strip(*scale, of, emphasis));
        Panel {
            svg: strips::draw(&strips.collect::<Vec<_>>(), seconds, GAP),
            title: palette::shown(&record.engine).to_string(),
            desc: describe(row, of, seconds),
        }
    };
    all.iter().map(|(record, of)| (*record, panel((record, of)))).collect()
}

/// What there is to show of any of them, in the order from above, with scales that all share.
fn kinds(all: &[&OverTime]) -> Vec<(Kind, Scale)> {
    let sides = all.iter().flat_map(|o| &o.sides).map(|side| (side.name.clone(), ()));
    let names: Vec<String> = by_key(sides).into_iter().map(|(name, _)| name).collect();
    let rates = names.iter().cloned().map(Kind::Rate);
    let kinds = rates.chain(names.iter().cloned().map(Kind::Worst)).chain([Kind::Disk]);
    let known = kinds.filter(|kind| all.iter().any(|o| !kind.values(o).is_empty()));
    known.map(|kind| (kind.clone(), kind.scale(all))).collect()
}

impl Kind {
    /// Values in windows, as far as an engine has them.
    fn values<'a>(&self, of: &'a OverTime) -> &'a [f64] {
        let side = |name: &str| of.sides.iter().find(|side| side.name == name);
        match self {
            Kind::Rate(name) => side(name).map_or(&[][..], |side| &side.ops_per_s[..]),
            Kind::Worst(name) => side(name).map_or(&[][..], |side| &side.worst_us[..]),
            Kind::Disk => &of.disk_bytes,
        }
    }

    fn scale(&self, all: &[&OverTime]) -> Scale {
        let mut values: Vec<f64> = all.iter().flat_map(|o| self.values(o)).copied().collect();
        match self {
            Kind::Worst(_) => return Scale::decades(values.into_iter()),
            Kind::Disk => values.extend(all.iter().map(|o| o.live_bytes)),
            Kind::Rate(_) => {}
        }
        Scale::from_zero(&values)
    }

    fn strip(&self, scale: Scale, of: &OverTime, emphasis: &str) -> Strip {
        let (what, reach) = match self {
            Kind::Rate(name) => (name.clone(), format!("to {}/s", format::short(scale.to))),
            Kind::Worst(name) => {
                let [from, to] = [scale.from, scale.to].map(format::micros);
                (format!("worst of {name}"), format!("{from} to {to}, logarithmic"))
            }
            Kind::Disk => (
                format!("disk; alive {}", format::bytes(of.live_bytes)),
                format!("to {}", format::bytes(scale.to)),
            ),
        };
        let values = self.values(of).iter().map(|value| Some(*value)).collect();
        let line = Thread { name: what.clone(), window_s: of.window_s, ops_per_s: values };
        let mark = (*self == Kind::Disk).then_some(of.live_bytes);
        let class = format!("thread reader{emphasis}");
        Strip { what, reach, scale, height: HEIGHT, lines: vec![line], class, mark }
    }
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
            (strip + 1) as f64 * (strips::HEAD + HEIGHT) + strip as f64 * GAP - y
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
        let engines: Vec<&str> = panels.iter().map(|(record, _)| record.engine.as_str()).collect();
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

//! Latency distributions: microseconds by percentile, both logarithmic, the percentile towards
//! 100 %. A line for each engine, named at its end.

use super::bars::{PANEL, Panel};
use super::format;
use super::layout::{self, LABEL, SMALL};
use super::model::Row;
use super::palette;
use super::scale::Scale;
use super::svg::{Anchor, Svg};
use super::text;

/// Width where there is room for two beside each other.
pub(crate) const WIDE: f64 = 560.0;
const LEFT: f64 = 46.0;
const TOP: f64 = 8.0;
const PITCH: f64 = 13.5;

/// The picture of a row; nothing where no engine has a distribution.
pub(crate) fn of_row(row: &Row, width: f64) -> Option<Panel> {
    let hist = |r: &super::record::Record| {
        let points = r.hist.clone().filter(|_| r.figure().is_some())?;
        let sane = |(p, us): &(f64, f64)| (0.0..=100.0).contains(p) && us.is_finite() && *us > 0.0;
        let points: Vec<_> = points.into_iter().filter(sane).collect();
        (points.len() > 1).then_some(points)
    };
    let lines: Vec<(&str, Vec<(f64, f64)>)> =
        row.records.iter().filter_map(|r| Some((r.engine.as_str(), hist(r)?))).collect();
    (!lines.is_empty()).then(|| draw(&row.name, &lines, width))
}

/// How many nines a percentile has: 0 for 0, 1 for 90, 2 for 99.
fn nines(percentile: f64) -> f64 {
    -(1.0 - percentile / 100.0).log10()
}

fn draw(title: &str, lines: &[(&str, Vec<(f64, f64)>)], width: f64) -> Panel {
    let points = || lines.iter().flat_map(|(_, points)| points);
    let below = points().map(|p| nines(p.0)).filter(|n| n.is_finite()).fold(0.0, f64::max);
    // The largest value stands one step beyond the last percentile that is known.
    let last = (below + 0.4).ceil().clamp(2.0, 8.0);
    let names: Vec<String> =
        lines.iter().map(|(e, _)| text::fit(palette::shown(e), LABEL, 108.0)).collect();
    let widest = names.iter().map(|n| text::width(n, LABEL)).fold(0.0, f64::max);
    let right = width - widest - 34.0;
    let height = (lines.len() as f64 * PITCH).max(if width > PANEL { 260.0 } else { 180.0 });
    let bottom = TOP + height;
    let y_scale = Scale::decades(points().map(|p| p.1));
    let x = |p: f64| LEFT + (right - LEFT) * (nines(p).min(last) / last);
    let y = |us: f64| bottom - y_scale.at(us) * height;

    let mut svg = Svg::new(width, bottom + 34.0);
    for us in y_scale.ticks(6) {
        svg.line((LEFT, y(us)), (right, y(us)), "grid");
        svg.text(LEFT - 6.0, y(us) + 3.5, Anchor::End, "small", &format::micros(us));
    }
    for (at, label) in percentile_ticks(last, LEFT, right) {
        svg.line((at, bottom), (at, bottom + 3.0), "axis");
        svg.text(at, bottom + 14.0, Anchor::Middle, "small", &label);
    }
    svg.line((LEFT, bottom), (right, bottom), "axis");
    svg.text(
        width,
        bottom + 30.0,
        Anchor::End,
        "small",
        "percentile, logarithmic towards 100; lower is better",
    );

    let ends: Vec<f64> = lines.iter().map(|(_, p)| p.last().map_or(bottom, |p| y(p.1))).collect();
    let places = layout::apart(&ends, PITCH, TOP + 4.0, bottom - 2.0);
    // Ours last, so that it lies on top.
    for (i, (engine, points)) in lines.iter().enumerate().rev() {
        let class = palette::line_class(engine);
        let line: Vec<_> = points.iter().map(|(p, us)| (x(*p), y(*us))).collect();
        let end = line.last().copied().unwrap_or((right, bottom));
        svg.path(&[line], &format!("curve {class}"), palette::shown(engine));
        svg.line((end.0 + 1.0, end.1), (right + 28.0, places[i]), &format!("leader {class}"));
        let strong = if class == "ours" { " strong" } else { "" };
        let class = format!("label{strong} {class}");
        svg.text(right + 31.0, places[i] + 4.0, Anchor::Start, &class, &names[i]);
    }
    Panel { svg, title: title.to_string(), desc: describe(lines) }
}

/// 0, 90, 99 … and the largest, as far as their texts fit.
fn percentile_ticks(last: f64, left: f64, right: f64) -> Vec<(f64, String)> {
    let name = |n: i32| match n {
        0 => "0".to_string(),
        1 => "90".to_string(),
        n => format!("99.{}", "9".repeat(n as usize - 2)).trim_end_matches('.').to_string(),
    };
    let at = |n: i32| left + (right - left) * f64::from(n) / last;
    let end = last as i32;
    let mut ticks = vec![(at(end), "max".to_string())];
    for n in (0..end).rev() {
        let (x, label) = (at(n), name(n));
        let next = ticks.last().map_or(f64::INFINITY, |t| t.0 - text::width(&t.1, SMALL) / 2.0);
        if x + text::width(&label, SMALL) / 2.0 + 5.0 <= next {
            ticks.push((x, label));
        }
    }
    ticks.reverse();
    ticks
}

fn describe(lines: &[(&str, Vec<(f64, f64)>)]) -> String {
    let of = |(engine, points): &(&str, Vec<(f64, f64)>)| {
        let near = |p: f64| points.iter().find(|(q, _)| *q >= p).or(points.last());
        let at = |p: f64| near(p).map_or_else(String::new, |(_, us)| format::micros(*us));
        format!(
            "{}: half within {}, 99 % within {}, all within {}",
            palette::shown(engine),
            at(50.0),
            at(99.0),
            at(100.0)
        )
    };
    format!("Latency by percentile. {}.", lines.iter().map(of).collect::<Vec<_>>().join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_named_without_touching() {
        assert!((nines(99.9) - 3.0).abs() < 1e-9 && nines(100.0).is_infinite());
        for last in [2.0, 4.0, 7.0] {
            let ticks = percentile_ticks(last, 46.0, 230.0);
            assert_eq!(ticks.last().unwrap().1, "max");
            assert!(ticks.len() >= 2);
            for pair in ticks.windows(2) {
                let half = |t: &(f64, String)| text::width(&t.1, SMALL) / 2.0;
                assert!(pair[0].0 + half(&pair[0]) < pair[1].0 - half(&pair[1]), "{ticks:?}");
            }
        }
    }
}

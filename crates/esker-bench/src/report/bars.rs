//! A panel of horizontal bars: one for each engine, its value at its end.

use super::format;
use super::layout::{self, Bar, Bars, Kind, SMALL};
use super::model::Row;
use super::palette;
use super::record::Record;
use super::scale::Scale;
use super::svg::{Anchor, Svg};
use super::text;
use crate::plan::Unit;
use crate::results::OURS;

/// Width of a panel: what a phone shows, and a third of a desk's screen.
pub(crate) const PANEL: f64 = 360.0;

/// A panel, and what it shows in words.
#[derive(Debug)]
pub(crate) struct Panel {
    pub svg: Svg,
    pub title: String,
    pub desc: String,
}

/// Bars of a row: every engine but those that are not installed at all, and the published figures
/// right below the engine that they are of.
pub(crate) fn of_row(
    row: &Row,
    published: &[(&str, f64)],
    not_installed: &[(&str, &str)],
) -> Panel {
    let mut bars = Vec::new();
    let mut left = published.to_vec();
    for record in &row.records {
        if !not_installed.iter().any(|(engine, _)| *engine == record.engine) {
            bars.push(of_record(record, |value| at_end(row.unit, value)));
        }
        while let Some(i) = left.iter().position(|(engine, _)| *engine == record.engine) {
            bars.push(of_document(left.remove(i), row.unit));
        }
    }
    bars.extend(left.into_iter().map(|figure| of_document(figure, row.unit)));
    draw(&row.name, row.unit, &bars)
}

/// An engine's bar, and how its value is written.
pub(crate) fn of_record(record: &Record, show: impl Fn(f64) -> String) -> Bar {
    let figure = record.figure();
    Bar {
        name: palette::shown(&record.engine).to_string(),
        mark: record.class.clone().unwrap_or_default(),
        value: figure,
        range: figure.and(record.interval()).filter(|(low, high)| high > low),
        shown: record.shown(show),
        kind: if record.engine == OURS { Kind::Ours } else { Kind::Peer },
    }
}

/// A figure of the report of 2011, the only one with operations a second.
fn of_document((engine, value): (&str, f64), unit: Unit) -> Bar {
    Bar {
        name: format!("{} 2011", palette::shown(engine)),
        mark: String::new(),
        value: Some(value),
        range: None,
        shown: at_end(unit, value),
        kind: Kind::Published,
    }
}

/// What stands at the end of a bar; the axis names the unit where it is the same for all.
fn at_end(unit: Unit, value: f64) -> String {
    if unit == Unit::OpsPerSecond { format::rounded(value) } else { unit.show(value) }
}

/// How an axis writes its values.
fn on_axis(unit: Unit) -> impl Fn(f64) -> String {
    move |value| if unit == Unit::OpsPerSecond { format::short(value) } else { unit.show(value) }
}

/// Draws bars on an axis.
pub(crate) fn draw(title: &str, unit: Unit, bars: &[Bar]) -> Panel {
    let layout = layout::bars(bars, PANEL, 6.0, on_axis(unit), Scale::for_bars);
    let mut svg = Svg::new(PANEL, layout.height);
    let (top, bottom) = layout.axis;
    for (x, label) in &layout.ticks {
        svg.line((*x, top), (*x, bottom), "grid");
        svg.text(*x, bottom + 12.0, Anchor::Middle, "small", label);
    }
    place(&mut svg, &layout, bars);
    svg.text(PANEL, bottom + 26.0, Anchor::End, "small", &axis_text(unit, layout.scale.log));
    Panel { svg, title: title.to_string(), desc: describe(unit, bars, layout.scale.log) }
}

/// Draws bars from zero, whatever their ratios, with no other axis than their values at their ends.
pub(crate) fn plain(title: &str, unit: Unit, bars: &[Bar], width: f64) -> Panel {
    let layout = layout::bars(bars, width, 6.0, on_axis(unit), Scale::from_zero);
    let mut svg = Svg::new(width, layout.axis.1 + 2.0);
    place(&mut svg, &layout, bars);
    Panel { svg, title: title.to_string(), desc: describe(unit, bars, false) }
}

fn place(svg: &mut Svg, layout: &Bars, bars: &[Bar]) {
    let (top, bottom) = layout.axis;
    for (bar, at) in bars.iter().zip(&layout.placed) {
        let emphasis = if bar.kind == Kind::Ours { "label strong" } else { "label" };
        let muted = if bar.kind == Kind::Published || bar.value.is_none() { " muted" } else { "" };
        let class = format!("{emphasis}{muted}");
        svg.text(layout.names_end, at.baseline, Anchor::End, &class, &at.name);
        svg.text(layout.mark_x, at.baseline, Anchor::Start, "small", &bar.mark);
        if bar.value.is_some() {
            let class = match bar.kind {
                Kind::Ours => "bar ours",
                Kind::Peer => "bar peer",
                Kind::Published => "bar published",
            };
            let hint = format!("{}: {}", bar.name, bar.shown);
            // A hollow bar's outline lies within its length.
            let inset = if bar.kind == Kind::Published { 0.5 } else { 0.0 };
            let length = at.length - 2.0 * inset;
            let thickness = layout.thickness - 2.0 * inset;
            svg.rect(layout.start + inset, at.top + inset, length, thickness, class, &hint);
        }
        if let Some((low, high)) = at.range {
            let y = at.top + layout.thickness / 2.0;
            svg.line((low, y), (high, y), "whisker");
        }
        svg.text(at.value_x, at.baseline, Anchor::Start, &class, &bar.shown);
    }
    svg.line((layout.start, top), (layout.start, bottom), "axis");
}

fn axis_text(unit: Unit, log: bool) -> String {
    let direction = if unit.more_is_better() { "longer" } else { "shorter" };
    let scale = if log { "logarithmic axis: " } else { "" };
    text::fit(&format!("{scale}{}, {direction} is better", unit.name()), SMALL, PANEL)
}

/// The picture in words, for those who hear it.
fn describe(unit: Unit, bars: &[Bar], log: bool) -> String {
    let list: Vec<String> = bars.iter().map(|b| format!("{} {}", b.name, b.shown)).collect();
    format!(
        "Bars on a {} axis, {}: {}.",
        if log { "logarithmic" } else { "linear" },
        unit.name(),
        list.join(", ")
    )
}

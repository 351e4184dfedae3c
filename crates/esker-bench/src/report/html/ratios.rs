//! The tables of ratios, the worst row first.

use super::super::model::Model;
use super::super::palette;
use super::super::ratios::{self, Place, places};
use super::super::record::Record;
use super::super::svg::num;
use super::page::{Page, escape};
use crate::plan::Unit;
use crate::results::OURS;

/// The result in two sentences.
pub(super) fn summary(model: &Model) -> String {
    let places = places(model);
    let compared = places.first.len() + places.behind.len() + places.alike.len();
    let peers = model.engines.iter().filter(|e| *e != OURS).count() - peers_missing(model);
    if compared == 0 {
        return format!("{peers} engines; no row has a figure of Esker beside one of its class.");
    }
    let mut text = format!(
        "Esker is first in {} of {compared} rows, beside {peers} other engines. ",
        places.first.len()
    );
    if !places.alike.is_empty() {
        text += &format!(
            "In {} it cannot be told apart from the best of them. ",
            match places.alike.len() {
                1 => "one".to_string(),
                n => n.to_string(),
            }
        );
    }
    if let Some((place, s)) = places.behind.first().and_then(|p| Some((p, p.standing.as_ref()?))) {
        text += &format!(
            "Its worst row is {} ({}), at {} of {}.",
            place.row.name,
            place.section.place(),
            s.shown(),
            palette::shown(&s.peer)
        );
    }
    text
}

fn peers_missing(model: &Model) -> usize {
    model.not_installed().iter().filter(|(engine, _)| *engine != OURS).count()
}

/// The rows in which Esker is worst.
pub(super) fn worst(page: &mut Page, model: &Model) {
    let (rows, left) = ratios::worst(model);
    page.heading(2, "worst", "here", "Where Esker is worst");
    if rows.is_empty() {
        page.element("p", "quiet", "Esker is first in every row that compares.");
        return;
    }
    page.element("p", "quiet", &format!("{}.", ratios::worst_heading(left)));
    open_table(page);
    let is_alike = |place: &Place<'_>| place.standing.as_ref().is_some_and(|s| s.alike());
    for of in rows.chunk_by(|a, b| is_alike(a) == is_alike(b)) {
        let class = if is_alike(&of[0]) { "first" } else { "behind" };
        page.raw(&format!("<tbody class=\"{class}\">\n"));
        for place in of {
            line(page, place, true);
        }
        page.raw("</tbody>\n");
    }
    page.raw("</table>\n");
}

pub(super) fn write(page: &mut Page, model: &Model) {
    let places = places(model);
    page.heading(2, "ratios", "here", "All rows: Esker and the best of the others");
    page.element(
        "p",
        "quiet",
        "Every row, compared with the fastest engine of the same durability class; rows where Esker \
         is behind come first, the worst on top. Above 1× Esker is better, also where less is better. Where the \
         intervals of both medians overlap, or both take less than a millisecond to settle, nobody is first.",
    );
    open_table(page);
    let classes = ["behind", "behind", "first", "first", "first"];
    for ((title, list), class) in places.groups().into_iter().zip(classes) {
        if list.is_empty() {
            continue;
        }
        page.raw(&format!("<tbody class=\"{class}\">\n<tr class=\"group\"><th colspan=\"7\" scope=\"rowgroup\">{title} ({})</th></tr>\n", list.len()));
        for place in list {
            line(page, place, model.sections.len() > 1);
        }
        page.raw("</tbody>\n");
    }
    page.raw("</table>\n");
}

fn open_table(page: &mut Page) {
    page.raw("<table class=\"ratios\">\n");
    page.head(
        "",
        &[
            ("", "row"),
            ("n", "Esker"),
            ("n", "best peer"),
            ("n r", "ratio"),
            ("spark", ""),
            ("n", "of limit"),
            ("", "remarks"),
        ],
    );
}

fn line(page: &mut Page, place: &Place<'_>, name_section: bool) {
    let record = place.row.of(OURS);
    let unit = place.row.unit;
    let standing = place.standing.as_ref();
    let share = place.of_limit().unwrap_or_default();
    let own = record.and_then(|r| Some(figure(unit, r.figure()?, r))).unwrap_or_default();
    let theirs = standing.and_then(|s| {
        let peer = escape(&format!("{} ", palette::shown(&s.peer)));
        let shown = figure(unit, s.theirs, place.row.of(&s.peer)?);
        Some(format!("<span class=\"peer\">{peer}</span>{shown}"))
    });
    let ratio = standing.map(|s| s.shown()).unwrap_or_default();
    let spark = standing.filter(|s| !s.alike()).map(|s| spark(s.ratio)).unwrap_or_default();
    page.raw("<tr>");
    let section = match name_section {
        true => format!("<span class=\"where\">{}</span>", escape(&place.section.place())),
        false => String::new(),
    };
    page.raw(&format!("<th scope=\"row\">{}{section}</th>", escape(&place.row.name)));
    for (class, name, html) in [
        ("n", "Esker", own),
        ("n", "", theirs.unwrap_or_default()),
        ("n r", "", escape(&ratio)),
        ("spark", "", spark),
        ("n full", "of the machine's limit:", escape(&share)),
        ("full", "", escape(&place.remark())),
    ] {
        let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
        let name = if name.is_empty() || html.is_empty() {
            String::new()
        } else {
            format!(" data-name=\"{name}\"")
        };
        page.raw(&format!("<td{class}{name}>{html}</td>"));
    }
    page.raw("</tr>\n");
}

/// A figure, and its interval below it.
fn figure(unit: Unit, value: f64, record: &Record) -> String {
    let shown = escape(&unit.show(value));
    let Some((low, high)) = record.interval() else { return shown };
    let interval = format!("{} to {}", unit.show(low), unit.show(high));
    format!("{shown}<span class=\"range\">{}</span>", escape(&interval))
}

/// A bar to the right of the middle where Esker is ahead, a hollow one to the left where it is
/// behind; logarithmic, 8 times at either end.
fn spark(ratio: f64) -> String {
    let (width, middle) = (72.0, 36.0);
    let reach = (ratio.log2() / 3.0).clamp(-1.0, 1.0) * (middle - 1.0);
    let (x, w, class) =
        if reach >= 0.0 { (middle, reach, "better") } else { (middle + reach, -reach, "worse") };
    format!(
        "<svg aria-hidden=\"true\" width=\"{width}\" height=\"11\" viewBox=\"0 0 {width} 11\"><rect class=\"{class}\" x=\"{}\" y=\"2.5\" width=\"{}\" height=\"6\"/><line class=\"middle\" x1=\"{middle}\" y1=\"0\" x2=\"{middle}\" y2=\"11\"/></svg>",
        num(x),
        num(w.max(0.5))
    )
}

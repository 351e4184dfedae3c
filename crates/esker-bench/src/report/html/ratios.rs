//! The tables of ratios, the worst row first.

use super::super::model::{Model, Row};
use super::super::palette;
use super::super::ratios::{self, Place, Rank, places};
use super::super::standing::OR_NEAR;
use super::super::svg::num;
use super::page::{Page, attribute, escape};
use crate::results::OURS;

/// The result in two sentences.
pub(super) fn summary(model: &Model) -> String {
    let places = places(model);
    let count = |rank: Rank| places.iter().filter(|place| place.rank == rank).count();
    let [first, behind, alike] = [Rank::First, Rank::Behind, Rank::Alike].map(count);
    let compared = first + behind + alike;
    let peers = model.engines.iter().filter(|e| *e != OURS).count() - peers_missing(model);
    if compared == 0 {
        return format!("{peers} engines; no row has a figure of Esker beside one of its class.");
    }
    let mut text =
        format!("Esker is first in {first} of {compared} rows, beside {peers} other engines. ");
    if alike > 0 {
        let rows = if alike == 1 { "one".to_string() } else { alike.to_string() };
        text += &format!("In {rows} it cannot be told apart from the best of them. ");
    }
    let worst = places.iter().find(|place| place.rank == Rank::Behind);
    if let Some((place, s)) = worst.and_then(|p| Some((p, p.standing.as_ref()?))) {
        let (row, table, peer) = (&place.row.name, place.section.place(), palette::shown(&s.peer));
        text += &format!("Its worst row is {row} ({table}), at {} of {peer}.", s.shown());
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
    let bodies = rows.chunk_by(|a, b| class(a.rank) == class(b.rank));
    table(page, bodies.map(|of| (String::new(), of)), true);
}

/// Whether another engine is first.
fn class(rank: Rank) -> &'static str {
    if rank <= Rank::Behind { "behind" } else { "first" }
}

pub(super) fn write(page: &mut Page, model: &Model) {
    let places = places(model);
    page.heading(2, "ratios", "here", "All rows: Esker and the best of the others");
    page.element(
        "p",
        "quiet",
        &format!(
            "Every row, compared with the fastest engine of the same durability class; rows where Esker is behind come first, the \
             worst on top. Above 1× Esker is better, also where less is better. Where the intervals of both medians overlap, \
             {OR_NEAR}, or both take less than a millisecond to settle, nobody is first."
        ),
    );
    let with_title = |of: &[Place<'_>]| {
        let title = format!("{} ({})", of[0].rank.title(), of.len());
        let head = format!("<th colspan=\"7\" scope=\"rowgroup\">{title}</th>");
        format!("<tr class=\"group\">{head}</tr>\n")
    };
    let bodies = places.chunk_by(|a, b| a.rank == b.rank).map(|of| (with_title(of), of));
    table(page, bodies, model.sections.len() > 1);
}

/// Rows in groups, each with its head.
fn table<'a>(
    page: &mut Page,
    groups: impl Iterator<Item = (String, &'a [Place<'a>])>,
    name_section: bool,
) {
    page.raw("<table class=\"ratios\">\n");
    page.head(&[
        ("", "row"),
        ("n", "Esker"),
        ("n", "best peer"),
        ("n r", "ratio"),
        ("spark", ""),
        ("n", "of limit"),
        ("", "remarks"),
    ]);
    for (head, of) in groups {
        page.raw(&format!("<tbody class=\"{}\">\n{head}", class(of[0].rank)));
        for place in of {
            line(page, place, name_section);
        }
        page.raw("</tbody>\n");
    }
    page.raw("</table>\n");
}

fn line(page: &mut Page, place: &Place<'_>, name_section: bool) {
    let row = place.row;
    let standing = place.standing.as_ref();
    let share = place.of_limit().unwrap_or_default();
    let theirs = standing.map(|s| {
        let peer = escape(&format!("{} ", palette::shown(&s.peer)));
        format!("<span class=\"peer\">{peer}</span>{}", figure(row, &s.peer))
    });
    let ratio = standing.map(|s| s.shown()).unwrap_or_default();
    let spark = standing.filter(|s| !s.alike()).map(|s| spark(s.ratio)).unwrap_or_default();
    page.raw("<tr>");
    let section = match name_section {
        true => format!("<span class=\"where\">{}</span>", escape(&place.section.place())),
        false => String::new(),
    };
    page.raw(&format!("<th scope=\"row\">{}{section}</th>", escape(&row.name)));
    for (class, name, html) in [
        ("n", "Esker", figure(row, OURS)),
        ("n", "", theirs.unwrap_or_default()),
        ("n r", "", escape(&ratio)),
        ("spark", "", spark),
        ("n full", "of the machine's limit:", escape(&share)),
        ("full", "", escape(&place.remark())),
    ] {
        let class = attribute("class", class);
        let name = attribute("data-name", if html.is_empty() { "" } else { name });
        page.raw(&format!("<td{class}{name}>{html}</td>"));
    }
    page.raw("</tr>\n");
}

/// An engine's figure, and its interval below it; nothing where there is none.
fn figure(row: &Row, engine: &str) -> String {
    let record = row.of(engine).and_then(|record| Some((record, record.figure()?)));
    let Some((record, value)) = record else { return String::new() };
    let unit = row.unit;
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

//! The table of ratios, the worst row first.

use super::super::format;
use super::super::model::Model;
use super::super::palette;
use super::super::ratios::{Place, places};
use super::super::svg::num;
use super::page::{Page, escape};
use crate::interval::ALIKE;
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
            format::ratio(s.ratio),
            palette::shown(&s.peer)
        );
    }
    text
}

fn peers_missing(model: &Model) -> usize {
    model.not_installed().iter().filter(|(engine, _)| *engine != OURS).count()
}

pub(super) fn write(page: &mut Page, model: &Model) {
    let places = places(model);
    page.heading(2, "ratios", "here", "Esker and the best of the others");
    page.element(
        "p",
        "quiet",
        "Every row, compared with the fastest engine of the same durability class; rows where Esker \
         is behind come first, the worst on top. Above 1× Esker is better, also where less is better. Where the \
         intervals of both medians overlap, nobody is first.",
    );
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

fn line(page: &mut Page, place: &Place<'_>, name_section: bool) {
    let record = place.row.of(OURS);
    let ours = record.and_then(|r| r.figure());
    let standing = place.standing.as_ref();
    let share = match record.and_then(|r| r.ratio_limit) {
        Some(share) if place.row.unit.more_is_better() => format::percent(share),
        Some(share) => format!("{} raw", format::ratio(share)),
        None => String::new(),
    };
    let own = ours.map(|v| place.row.unit.show(v)).unwrap_or_default();
    let theirs = standing.map_or_else(String::new, |s| {
        let peer = escape(&format!("{} ", palette::shown(&s.peer)));
        format!("<span class=\"peer\">{peer}</span>{}", escape(&place.row.unit.show(s.theirs)))
    });
    let clear = standing.filter(|s| !s.alike);
    let ratio = match (standing, clear) {
        (Some(_), None) => ALIKE.to_string(),
        _ => clear.map(|s| format::ratio(s.ratio)).unwrap_or_default(),
    };
    let spark = clear.map(|s| spark(s.ratio)).unwrap_or_default();
    page.raw("<tr>");
    let section = match name_section {
        true => format!("<span class=\"where\">{}</span>", escape(&place.section.place())),
        false => String::new(),
    };
    page.raw(&format!("<th scope=\"row\">{}{section}</th>", escape(&place.row.name)));
    for (class, name, html) in [
        ("n", "Esker", escape(&own)),
        ("n", "", theirs),
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

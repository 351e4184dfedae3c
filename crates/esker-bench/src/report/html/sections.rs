//! A suite: for each of its sections the bars, then threads over time and latencies.

use super::super::bars::{self, Panel};
use super::super::documents;
use super::super::format;
use super::super::latency;
use super::super::lines;
use super::super::model::{Model, Row, Section, suite_title};
use super::super::over_time;
use super::super::record::Record;
use super::details;
use super::page::{Page, anchor};
use crate::published;
use crate::results::OURS;

pub(super) fn suite(page: &mut Page, model: &Model, suite: &str, of: &[Section]) {
    page.heading(2, &anchor(suite), "", suite_title(suite));
    for section in of {
        self::section(page, model, section);
    }
    let Some(table) = documents::of_suite(suite, of) else { return };
    page.element("h3", "", "What the document published");
    page.table("Published", &table.caption, &table.columns, &table.lines);
    page.raw("\n");
}

fn section(page: &mut Page, model: &Model, section: &Section) {
    let heading = section.heading();
    if heading != section.suite {
        page.element("h3", "", &heading);
    }
    let repeats = section.repeats().map_or_else(String::new, |sentence| sentence + " ");
    page.element("p", "quiet", &format!("{repeats}{}", section.settings_line()));
    let gone = model.not_installed();
    let rates: Vec<_> = section.rows.iter().map(|row| section.published(row)).collect();
    let is_published = rates.iter().any(|rates| !rates.is_empty());
    if let Some(document) = published::of_suite(&section.suite).filter(|_| is_published) {
        let (theirs, ours) = (&document.hardware, model.machine_line());
        let hollow = format!("Dashed, hollow bars: published in 2011, measured on {theirs}.");
        page.element("p", "quiet", &format!("{hollow} Filled bars: measured on {ours}."));
    }
    page.raw("<div class=\"panels\">\n");
    for (row, rates) in section.rows.iter().zip(&rates) {
        page.figure(&[(bars::of_row(row, rates, &gone), "")], "", &verdict(row));
    }
    page.raw("</div>\n");
    threads(page, section);
    in_motion(page, section);
    curves(page, section);
    details::figures(page, section);
}

/// Latencies of each row that has a distribution, in a width for desks and one for phones.
fn curves(page: &mut Page, section: &Section) {
    let of = |width: f64| section.rows.iter().filter_map(move |row| latency::of_row(row, width));
    let both = of(latency::WIDE).zip(of(bars::PANEL));
    let both = both.map(|(wide, narrow)| (vec![(wide, "wide"), (narrow, "narrow")], "", None));
    part(
        page,
        "curves",
        "Latency of an operation",
        "How long operations take, from the fastest to the slowest: at 99, one of a hundred took \
         longer. Both axes are logarithmic; each line is named at its end.",
        both.collect(),
    );
}

/// Threads over time, for each row that has them.
fn threads(page: &mut Page, section: &Section) {
    let steady = |record: &Record| {
        Some(format!("windows vary by {} (standard deviation)", format::percent(record.cv?)))
    };
    for row in &section.rows {
        let panels = lines::of_row(row).into_iter();
        part(
            page,
            "threads",
            &format!("{}: every thread over time", row.name),
            "A line is a thread. Each panel has scales from zero of its own, named at their top: \
             compare shapes here (flat is good; teeth are compactions, equal lines a shared lock), \
             and heights in the bars above.",
            panels.map(|(r, panel)| (vec![(panel, "")], name_class(r), steady(r))).collect(),
        );
    }
}

/// Stores in motion over time, for each row that has them.
fn in_motion(page: &mut Page, section: &Section) {
    for row in &section.rows {
        let panels = over_time::of_row(row).into_iter();
        part(
            page,
            "threads",
            &format!("{}: over time", row.name),
            "In each quarter of a second: how many operations, how long the slowest of them took, and the bytes \
             on disk; the line across is what the keys and values take that are alive. Each strip has one scale \
             in all panels of this row.",
            panels.map(|(r, panel)| (vec![(panel, "")], name_class(r), None)).collect(),
        );
    }
}

/// How the name of a panel's engine looks.
fn name_class(record: &Record) -> &'static str {
    if record.engine == OURS { "ours-name" } else { "" }
}

/// A picture in its widths, the class of its name, and its caption.
type Figure = (Vec<(Panel, &'static str)>, &'static str, Option<String>);

/// Pictures that have something in common; nothing where there are none.
fn part(page: &mut Page, class: &str, title: &str, about: &str, figures: Vec<Figure>) {
    if figures.is_empty() {
        return;
    }
    page.element("div", "part", title);
    page.element("p", "quiet", about);
    page.raw(&format!("<div class=\"{class}\">\n"));
    for (widths, name_class, caption) in figures {
        page.figure(&widths, name_class, &caption.unwrap_or_default());
    }
    page.raw("</div>\n");
}

/// How Esker stands, in a line.
fn verdict(row: &Row) -> String {
    let Some(record) = row.of(OURS) else { return String::new() };
    let Some(standing) = row.standing() else {
        return record.absent().map(|absent| format!("Esker: {absent}")).unwrap_or_default();
    };
    let limit = match record.ratio_limit.filter(|_| row.unit.more_is_better()) {
        Some(share) if share > 1.0 => format!("; the machine's {}", format::of_limit(share)),
        Some(share) => format!("; {} of the machine's limit", format::of_limit(share)),
        None => String::new(),
    };
    standing.sentence() + &limit
}

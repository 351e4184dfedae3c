//! A suite as one picture in a file of its own, for a README: two columns of panels, in colours
//! that can be read on white and on black.

use super::bars;
use super::layout::{LABEL, SMALL};
use super::model::{Section, not_installed};
use super::picture::STYLE;
use super::svg::{Anchor, Svg};
use super::text;
use crate::published;

const GAP: f64 = 36.0;
const COLUMNS: usize = 2;
const HEAD: f64 = 26.0;
/// More panels than this are too many for a README; the first tables of a document are its main ones.
const PANELS_MAX: usize = 6;
/// From line to line of what stands below.
const LINE: f64 = 14.0;

/// The name of a suite's picture.
pub(crate) fn file_name(suite: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    format!("chart-{}.svg", suite.chars().map(plain).collect::<String>())
}

/// The picture; what was not quiet on the machine stands on top of it.
pub(crate) fn of_suite(
    suite: &str,
    sections: &[Section],
    machine: &str,
    unquiet: Option<&str>,
) -> String {
    let gone = not_installed(sections);
    let mut panels = Vec::new();
    let mut hardware = None;
    for section in sections {
        for row in &section.rows {
            let rates = section.published(row);
            if !rates.is_empty() {
                hardware = published::of_suite(&section.suite).map(|document| &document.hardware);
            }
            let title = format!("{} {}", section.id, row.name);
            let panel = bars::of_row(row, &rates, &gone);
            panels.push((rates.is_empty(), title.trim().to_string(), panel));
        }
    }
    // What the document itself has comes first.
    panels.sort_by_key(|(is_ours_alone, ..)| *is_ours_alone);
    let mut panels: Vec<_> = panels.into_iter().map(|(_, title, panel)| (title, panel)).collect();
    let rows = panels.len();
    panels.truncate(PANELS_MAX);
    let columns = COLUMNS.min(panels.len().max(1));
    let width = columns as f64 * (bars::PANEL + GAP) - GAP;
    let mut svg = Svg::new(width, 0.0);
    let mut y = 0.0;
    if let Some(unquiet) = unquiet {
        svg.text(0.0, 10.0, Anchor::Start, "small", &text::fit(unquiet, SMALL, width));
        y += LINE + 4.0;
    }
    for line in panels.chunks(columns) {
        let mut height = 0f64;
        for (i, (title, panel)) in line.iter().enumerate() {
            let x = i as f64 * (bars::PANEL + GAP);
            let title = text::fit(title, LABEL + 3.5, bars::PANEL);
            svg.text(x, y + 15.0, Anchor::Start, "title", &title);
            svg.place(x, y + HEAD, &panel.svg);
            height = height.max(panel.svg.height);
        }
        y += HEAD + height + GAP / 2.0;
    }
    let mut notes = vec![format!("Measured on {machine}.")];
    if let Some(hardware) = hardware {
        notes.push(format!("Hollow: published in 2011, {hardware}."));
    }
    if rows > PANELS_MAX {
        notes.push(format!("The first {PANELS_MAX} of {rows} rows; report.html has all."));
    }
    for note in notes {
        svg.text(0.0, y + 8.0, Anchor::Start, "small", &text::fit(&note, SMALL, width));
        y += LINE;
    }
    svg.height = y + 4.0;
    let words: Vec<String> = panels.iter().map(|(t, p)| format!("{t}: {}", p.desc)).collect();
    svg.file(&format!("{suite}: Esker beside other engines"), &words.join(" "), STYLE)
}

#[cfg(test)]
#[path = "chart_tests.rs"]
mod tests;

//! The first screen on a terminal.

use super::First;
use crate::report::layout::{Bar, Kind};
use crate::report::model::Model;
use crate::report::ratios;
use crate::report::text;
use std::fmt::Write;

/// Columns of the longest bar, and of a line of words.
const BAR: usize = 30;
const LINE: usize = 110;

/// The first screen and the worst rows.
pub(crate) fn render(model: &Model) -> String {
    let first = First::of(model);
    let lines = |words: &str| text::wrapped(words, |line| line.chars().count() <= LINE);
    let mut out = String::new();
    for (heading, cards) in &first.groups {
        let _ = writeln!(out, "{}", heading.to_uppercase());
        for card in cards {
            let _ = writeln!(out, "  {}. {}", card.title, card.verdict);
            out.push_str(&bars(&card.bars(&first.peers)));
            for line in lines(&card.place) {
                let _ = writeln!(out, "    {line}");
            }
        }
        out.push('\n');
    }
    let caption = lines(&first.caption().join(" ")).join("\n");
    format!("{caption}\n\n{out}{}", worst(model))
}

fn bars(bars: &[Bar]) -> String {
    let most = bars.iter().filter_map(|b| b.value).fold(0.0, f64::max);
    let names = bars.iter().map(|b| b.name.chars().count()).max().unwrap_or(0);
    let mut out = String::new();
    for bar in bars {
        let length = bar.value.filter(|_| most > 0.0).map_or(0.0, |v| v / most * BAR as f64);
        // What is too short for a column is seen all the same.
        let cells = if bar.value.is_some() { (length.round() as usize).max(1) } else { 0 };
        let cell = if bar.kind == Kind::Ours { "█" } else { "▒" };
        let (name, mark) = (&bar.name, &bar.mark);
        let _ = writeln!(out, "    {name:names$} {mark:1} {} {}", cell.repeat(cells), bar.shown);
    }
    out
}

fn worst(model: &Model) -> String {
    let (rows, left) = ratios::worst(model);
    let mut out = String::new();
    for place in rows {
        let theirs = place.theirs().map(|theirs| format!(", {theirs}"));
        let ratio = place.standing.as_ref().map(|s| format!(": {}", s.shown()));
        let beside: String = [theirs, ratio].into_iter().flatten().collect();
        let _ = writeln!(out, "  {}\n    Esker {}{beside}", place.name(), place.own());
    }
    match out.is_empty() {
        true => String::new(),
        false => format!("{}\n{out}\n", ratios::worst_heading(left)),
    }
}

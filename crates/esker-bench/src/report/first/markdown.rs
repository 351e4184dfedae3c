//! The first screen where Markdown is read: the picture, and its figures as a table.

use super::{First, picture};
use crate::report::palette;
use crate::results::OURS;
use std::fmt::Write;

/// The picture, its caption and its figures. `cell` escapes.
pub(crate) fn render(first: &First<'_>, cell: fn(&str) -> String) -> String {
    let caption = cell(&first.caption().join(" "));
    if first.is_empty() {
        return caption + "\n\n";
    }
    let picture = picture::FILE_NAME;
    let mut out = format!("![Esker beside other engines, in bars]({picture})\n\n{caption}\n\n");
    let engines: Vec<&str> = [OURS].into_iter().chain(first.peers.iter().copied()).collect();
    let names: Vec<String> = engines.iter().map(|e| cell(palette::shown(e))).collect();
    let _ = writeln!(
        out,
        "| group | row | {} | how Esker stands | which row that is |",
        names.join(" | ")
    );
    let _ = writeln!(out, "|---|---|{}---|---|", "---:|".repeat(engines.len()));
    for (heading, cards) in &first.groups {
        for card in cards {
            let figure = |engine: &&str| match card.row.of(engine) {
                Some(record) => match record.figure() {
                    Some(value) => {
                        let class = record.class.as_deref().unwrap_or_default();
                        cell(format!("{} {class}", card.row.unit.show(value)).trim())
                    }
                    None => record.absent().unwrap_or_default().to_string(),
                },
                None => String::new(),
            };
            let figures: Vec<String> = engines.iter().map(figure).collect();
            let _ = writeln!(
                out,
                "| {} | {} | {} | {} | {} |",
                heading,
                cell(&card.title),
                figures.join(" | "),
                cell(&card.verdict),
                cell(&card.place)
            );
        }
    }
    out.push('\n');
    out
}

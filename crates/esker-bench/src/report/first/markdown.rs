//! The first screen where Markdown is read: the picture, and its figures as a table.

use super::{Card, First, picture};
use crate::report::markdown::{cell, table};
use crate::report::palette;
use crate::results::OURS;

/// The picture, its caption and its figures.
pub(crate) fn render(first: &First<'_>) -> String {
    let caption = cell(&first.caption().join(" "));
    if first.is_empty() {
        return caption + "\n\n";
    }
    let picture = picture::FILE_NAME;
    let engines: Vec<&str> = [OURS].into_iter().chain(first.peers.iter().copied()).collect();
    let names: Vec<String> = engines.iter().map(|e| cell(palette::shown(e))).collect();
    let mut columns = vec![("", "group"), ("", "row")];
    columns.extend(names.iter().map(|name| ("n", name.as_str())));
    columns.extend([("", "how Esker stands"), ("", "which row that is")]);
    let line = |heading: &str, card: &Card<'_>| {
        let mut cells = vec![heading.to_string(), cell(&card.title)];
        cells.extend(engines.iter().map(|engine| figure(card, engine)));
        cells.extend([cell(&card.verdict), cell(&card.place)]);
        cells
    };
    let cards = first.groups.iter().flat_map(|(head, cards)| cards.iter().map(|c| line(head, c)));
    let table = table(&columns, cards);
    format!("![Esker beside other engines, in bars]({picture})\n\n{caption}\n\n{table}")
}

fn figure(card: &Card<'_>, engine: &str) -> String {
    let Some(record) = card.row.of(engine) else { return String::new() };
    record.shown(|value| {
        let class = record.class.as_deref().unwrap_or_default();
        cell(format!("{} {class}", card.row.unit.show(value)).trim())
    })
}

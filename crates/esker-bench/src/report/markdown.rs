//! `report.md`, to be pasted where Markdown is read, with the pictures beside it.

use super::chart;
use super::documents;
use super::first::{self, First};
use super::format;
use super::model::{Model, Section, classes};
use super::palette;
use super::ratios::{Place, places, worst, worst_heading};
use super::standing::OR_NEAR;
use crate::published;
use crate::results::OURS;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The text.
pub(crate) fn render(model: &Model) -> String {
    let mut out = String::from("# Esker beside other embedded stores\n\n");
    let date = model.machine().and_then(|r| r.date.as_deref()).map(format::moment);
    let date = date.map_or_else(String::new, |d| format!(", measured {d}"));
    let _ = writeln!(out, "{}{date}.\n", cell(&model.machine_line()));
    if let Some(unquiet) = model.caution() {
        let _ = writeln!(out, "**{}**\n", cell(&unquiet));
    }
    out += &first::markdown::render(&First::of(model));
    ratios(&mut out, model);
    for (suite, of) in model.suites() {
        let _ = writeln!(out, "## {}\n", cell(suite));
        let _ = writeln!(out, "![{} in bars]({})\n", cell(suite), chart::file_name(suite));
        for section in of {
            self::section(&mut out, model, section);
        }
        if let Some(document) = documents::of_suite(suite, of) {
            let _ = writeln!(out, "{}:\n", cell(&document.caption));
            let columns: Vec<(&str, &str)> =
                document.columns.iter().map(|(_, name)| ("", *name)).collect();
            let escaped = |line: &Vec<String>| line.iter().map(|text| cell(text)).collect();
            out += &table(&columns, document.lines.iter().map(escaped));
        }
    }
    remarks(&mut out, model);
    out
}

/// A table: its columns by name, those of class `n` to the right, and its lines of cells; an empty line behind it.
pub(crate) fn table(columns: &[(&str, &str)], lines: impl Iterator<Item = Vec<String>>) -> String {
    let names: Vec<&str> = columns.iter().map(|(_, name)| *name).collect();
    let rule = |(class, _): &(&str, &str)| if *class == "n" { "---:|" } else { "---|" };
    let rules: String = columns.iter().map(rule).collect();
    let lines: String = lines.map(|cells| format!("| {} |\n", cells.join(" | "))).collect();
    format!("| {} |\n|{rules}\n{lines}\n", names.join(" | "))
}

/// Text as a cell of a table: what Markdown reads as markup is escaped.
pub(crate) fn cell(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '|' | '*' | '_' | '`' | '<' | '[' | ']' | '\\' | '#' => out.extend(['\\', c]),
            '\n' | '\r' => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

fn ratios(out: &mut String, model: &Model) {
    let (worst, left) = worst(model);
    if !worst.is_empty() {
        let _ = writeln!(out, "{}:\n", cell(&worst_heading(left)));
        lines(out, worst.iter());
    }
    let _ = writeln!(
        out,
        "## All rows\n\nEsker and the best of the others in the same durability class, the worst row first; above \
         1× Esker is better. A figure is a median with its interval; where both intervals overlap, {OR_NEAR}, or both take less \
         than a millisecond to settle, nobody is first.\n",
    );
    lines(out, places(model).iter());
}

fn lines<'a>(out: &mut String, places: impl Iterator<Item = &'a Place<'a>>) {
    let columns = [
        ("", "row"),
        ("n", "Esker"),
        ("n", "best peer"),
        ("n", "ratio"),
        ("n", "of limit"),
        ("", "remarks"),
    ];
    *out += &table(&columns, places.map(ratio_line));
}

fn ratio_line(place: &Place<'_>) -> Vec<String> {
    let peer = place.standing.as_ref();
    let ratio = peer.map_or_else(String::new, |s| match s.ratio < 1.0 && !s.alike() {
        true => format!("**{}**", cell(&s.shown())),
        false => cell(&s.shown()),
    });
    let share = place.of_limit().filter(|_| place.row.unit.more_is_better());
    vec![
        cell(&place.name()),
        cell(&place.own()),
        cell(&place.theirs().unwrap_or_default()),
        ratio,
        share.unwrap_or_default(),
        cell(&place.remark()),
    ]
}

/// More rows than this go down, with the engines across.
const ROWS_ACROSS: usize = 6;

fn section(out: &mut String, model: &Model, section: &Section) {
    let heading = section.heading();
    if heading != section.suite {
        let _ = writeln!(out, "### {}\n", cell(&heading));
    }
    if let Some(repeats) = section.repeats() {
        let _ = writeln!(out, "{}\n", cell(&repeats));
    }
    let settings = section.settings_line();
    if !settings.is_empty() {
        let _ = writeln!(out, "{}\n", cell(&settings));
    }
    let mut grid = vec![vec!["".to_string(), "class".to_string()]];
    grid[0].extend(section.rows.iter().map(|r| cell(&r.name)));
    let gone = model.not_installed();
    for engine in model.engines.iter().filter(|e| !gone.iter().any(|(name, _)| name == e)) {
        let name = match engine == OURS {
            true => format!("**{}**", palette::shown(engine)),
            false => cell(palette::shown(engine)),
        };
        let mut line =
            vec![name, classes(section.rows.iter().filter_map(|r| r.of(engine))).join("/")];
        line.extend(section.rows.iter().map(|row| row.shown(engine).unwrap_or_default()));
        grid.push(line);
    }
    let measured = grid.len();
    grid.extend(of_document(section));
    let is_published = grid.len() > measured;
    if section.rows.len() > ROWS_ACROSS {
        grid =
            (0..grid[0].len()).map(|i| grid.iter().map(|line| line[i].clone()).collect()).collect();
    }
    let head = grid.remove(0);
    let class = |i: usize| if i == 0 { "" } else { "n" };
    let columns: Vec<(&str, &str)> =
        head.iter().enumerate().map(|(i, name)| (class(i), name.as_str())).collect();
    *out += &table(&columns, grid.into_iter());
    if let Some(document) = published::of_suite(&section.suite).filter(|_| is_published) {
        let _ = writeln!(out, "Published figures: {}.\n", cell(&document.hardware));
    }
}

/// The figures of the document, as further lines: an engine, no class, and what it has in each row.
fn of_document(section: &Section) -> Vec<Vec<String>> {
    let mut lines = BTreeMap::new();
    for (i, row) in section.rows.iter().enumerate() {
        for (engine, value) in section.published(row) {
            let name = format!("*{}, published 2011*", palette::shown(engine));
            let line = lines.entry(palette::order(engine)).or_insert_with(|| {
                [vec![name], vec![String::new(); 1 + section.rows.len()]].concat()
            });
            line[2 + i] = format!("{}/s", format::rounded(value));
        }
    }
    lines.into_values().collect()
}

fn remarks(out: &mut String, model: &Model) {
    let columns = [("", "engine"), ("", "version"), ("", "settings")];
    let engines = model.about_engines().into_iter();
    let lines = engines.map(|[name, version, _, settings]| [name, version, settings]);
    *out += "## Engines\n\n";
    *out += &table(&columns, lines.map(|line| line.map(|text| cell(&text)).to_vec()));
    *out += "## Commands\n\n";
    let mut commands = model.commands();
    commands.sort_unstable();
    for command in commands {
        let _ = writeln!(out, "    {}\n", command.replace('\n', " "));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::record::Record;

    #[test]
    fn every_table_has_lines_of_equal_length() {
        let record = |engine: &str, row: &str, value: Option<f64>| Record {
            suite: Some("leveldb2011".into()),
            section: Some("2B".into()),
            engine: engine.into(),
            row: row.into(),
            value,
            failed: value.is_none().then(|| "not supported: a|b\nc".to_string()),
            ..Record::default()
        };
        let model = Model::new(vec![
            record(OURS, "Sequential Writes", Some(2.0)),
            record("sqlite", "Sequential Writes", None),
            record(OURS, "Random Writes", Some(1.0)),
            record("sqlite", "Random Writes", Some(3.0)),
        ]);
        let text = render(&model);
        let bars = |line: &str| line.replace("\\|", "").matches('|').count();
        let lines: Vec<&str> = text.lines().collect();
        for pair in lines.windows(2).filter(|w| w.iter().all(|l| l.starts_with('|'))) {
            assert_eq!(bars(pair[0]), bars(pair[1]), "{pair:?}");
        }
        assert!(text.contains("**0.33×**"), "{text}");
        assert!(
            text.contains("| *LevelDB, published 2011* |  | 840,000/s | 221,000/s |"),
            "{text}"
        );
        assert!(text.contains("not supported"));
    }
}

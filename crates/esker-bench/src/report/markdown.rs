//! `report.md`, to be pasted where Markdown is read, and beside it a picture of the first screen and one of each suite.

use super::chart;
use super::documents;
use super::first::{self, First};
use super::format;
use super::input;
use super::model::{Model, Row, Section};
use super::palette;
use super::ratios::{Place, places, with_interval, worst, worst_heading};
use crate::published;
use crate::results::OURS;
use anyhow::{Context, Result};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Writes `report.md`, `first.svg` and `chart-<suite>.svg` from the results in a directory, beside them.
pub fn write(dir: &Path) -> Result<Vec<PathBuf>> {
    let model = Model::new(input::read(dir)?);
    let mut written = Vec::new();
    let mut save = |name: String, content: &str| -> Result<()> {
        let path = dir.join(name);
        std::fs::write(&path, content)
            .with_context(|| format!("cannot write {}", path.display()))?;
        written.push(path);
        Ok(())
    };
    let (machine, unquiet) = (model.machine_line(), model.caution());
    for (suite, of) in model.suites() {
        save(chart::file_name(suite), &chart::of_suite(suite, of, &machine, unquiet.as_deref()))?;
    }
    if let Some(picture) = first::picture::draw(&First::of(&model), &machine, unquiet.as_deref()) {
        save(first::picture::FILE_NAME.to_string(), &picture)?;
    }
    save("report.md".to_string(), &render(&model))?;
    Ok(written)
}

/// The text.
pub(crate) fn render(model: &Model) -> String {
    let mut out = String::from("# Esker beside other embedded stores\n\n");
    let date = model.machine().and_then(|r| r.date.as_deref()).map(format::moment);
    let date = date.map_or_else(String::new, |d| format!(", measured {d}"));
    let _ = writeln!(out, "{}{date}.\n", cell(&model.machine_line()));
    if let Some(unquiet) = model.caution() {
        let _ = writeln!(out, "**{}**\n", cell(&unquiet));
    }
    out += &first::markdown::render(&First::of(model), cell);
    ratios(&mut out, model);
    for (suite, of) in model.suites() {
        let _ = writeln!(out, "## {}\n", cell(suite));
        let _ = writeln!(out, "![{} in bars]({})\n", cell(suite), chart::file_name(suite));
        for section in of {
            table(&mut out, model, section);
        }
        if let Some(table) = documents::of_suite(suite, of) {
            document(&mut out, &table);
        }
    }
    remarks(&mut out, model);
    out
}

/// Text as a cell of a table: what Markdown reads as markup is escaped.
fn cell(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '|' | '*' | '_' | '`' | '<' | '[' | ']' | '\\' | '#' => {
                out.push('\\');
                out.push(c);
            }
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
    out.push_str(
        "## All rows\n\nEsker and the best of the others in the same durability class, the worst row first; above \
         1× Esker is better. A figure is a median with its interval; where both intervals overlap, or both take less than a \
         millisecond to settle, nobody is first.\n\n",
    );
    lines(out, places(model).groups().into_iter().flat_map(|(_, list)| list));
}

fn lines<'a>(out: &mut String, places: impl Iterator<Item = &'a Place<'a>>) {
    out.push_str(
        "| row | Esker | best peer | ratio | of limit | remarks |\n|---|---:|---:|---:|---:|---|\n",
    );
    for place in places {
        let _ = writeln!(out, "{}", ratio_line(place));
    }
    out.push('\n');
}

fn ratio_line(place: &Place<'_>) -> String {
    let peer = place.standing.as_ref();
    let ratio = peer.map_or_else(String::new, |s| match s.ratio < 1.0 && !s.alike() {
        true => format!("**{}**", cell(&s.shown())),
        false => cell(&s.shown()),
    });
    let share = place.of_limit().filter(|_| place.row.unit.more_is_better());
    format!(
        "| {} | {} | {} | {ratio} | {} | {} |",
        cell(&format!("{} ({})", place.row.name, place.section.place())),
        cell(&place.own()),
        cell(&place.theirs().unwrap_or_default()),
        share.unwrap_or_default(),
        cell(&place.remark())
    )
}

/// More rows than this go down, with the engines across.
const ROWS_ACROSS: usize = 6;

fn table(out: &mut String, model: &Model, section: &Section) {
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
        let mut line = vec![name, classes(section, engine)];
        line.extend(section.rows.iter().map(|row| figure(row, engine)));
        grid.push(line);
    }
    let measured = grid.len();
    grid.extend(of_document(section));
    let is_published = grid.len() > measured;
    if section.rows.len() > ROWS_ACROSS {
        grid =
            (0..grid[0].len()).map(|i| grid.iter().map(|line| line[i].clone()).collect()).collect();
    }
    for (i, line) in grid.iter().enumerate() {
        let _ = writeln!(out, "| {} |", line.join(" | "));
        if i == 0 {
            let _ = writeln!(out, "|---|{}", "---:|".repeat(line.len() - 1));
        }
    }
    if let Some(document) = published::of_suite(&section.suite).filter(|_| is_published) {
        let _ = writeln!(out, "\nPublished figures: {}.", cell(&document.hardware));
    }
    out.push('\n');
}

/// What the suite's document published.
fn document(out: &mut String, table: &documents::Table) {
    let _ = writeln!(out, "{}:\n\n| {} |", cell(&table.caption), table.columns.join(" | "));
    let _ = writeln!(out, "|{}", "---|".repeat(table.columns.len()));
    for line in &table.lines {
        let cells: Vec<String> = line.iter().map(|text| cell(text)).collect();
        let _ = writeln!(out, "| {} |", cells.join(" | "));
    }
    out.push('\n');
}

/// The durability classes that an engine has in a section.
fn classes(section: &Section, engine: &str) -> String {
    let of = |row: &Row| row.of(engine).and_then(|r| r.class.clone());
    let mut classes: Vec<String> = section.rows.iter().filter_map(of).collect();
    classes.sort();
    classes.dedup();
    classes.join("/")
}

fn figure(row: &Row, engine: &str) -> String {
    let Some(record) = row.of(engine) else { return String::new() };
    match record.figure() {
        Some(value) => with_interval(row.unit, value, record),
        None => record.absent().unwrap_or_default().to_string(),
    }
}

/// The figures of the document, as further lines.
fn of_document(section: &Section) -> Vec<Vec<String>> {
    let of_rows: Vec<_> = section
        .rows
        .iter()
        .map(|r| published::rates(&section.suite, &section.id, &r.name))
        .collect();
    let mut engines: Vec<&str> = of_rows.iter().flatten().map(|(engine, _)| *engine).collect();
    engines.sort_by_key(|e| palette::order(e));
    engines.dedup();
    let line = |engine: &&str| {
        let name = format!("*{}, published 2011*", palette::shown(engine));
        let figure = |rates: &Vec<(&str, f64)>| {
            let found = rates.iter().find(|(of, _)| of == engine);
            found.map_or_else(String::new, |(_, value)| format!("{}/s", format::rounded(*value)))
        };
        [name, String::new()].into_iter().chain(of_rows.iter().map(figure)).collect()
    };
    engines.iter().map(line).collect()
}

fn remarks(out: &mut String, model: &Model) {
    out.push_str("## Engines\n\n| engine | version | settings |\n|---|---|---|\n");
    let gone = model.not_installed();
    for engine in &model.engines {
        let of = || model.records().filter(|r| r.engine == *engine);
        let version = of().find_map(|r| r.version.clone()).unwrap_or_default();
        let settings = match gone.iter().find(|(name, _)| name == engine) {
            Some((_, how)) => format!("not installed: {how}"),
            None => model.settings_of(engine),
        };
        let name = palette::shown(engine);
        let _ = writeln!(out, "| {} | {} | {} |", cell(name), cell(&version), cell(&settings));
    }
    out.push_str("\n## Commands\n\n");
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

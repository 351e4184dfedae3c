//! What stands beside the pictures: how to read them, all figures, the machine, the engines and
//! their settings, the commands.

use super::super::format;
use super::super::model::{Model, Row, Section};
use super::super::palette;
use super::super::record::Record;
use super::page::Page;
use crate::plan::Unit;

pub(super) fn how_to_read(page: &mut Page) {
    page.heading(2, "reading", "here", "How to read the pictures");
    page.element(
        "p",
        "",
        "Engines stand in the same order everywhere; Esker has the darker, coloured bar and a bold \
         name. The value at the end of a bar is the median of the repetitions, and the thin line \
         across the end is its interval: from the lowest to the highest of up to eight, and of more of \
         them where the median lies with 95 %. Where the largest bar of a \
         panel is more than 20 times the smallest, its axis is logarithmic and says so.",
    );
    page.element(
        "p",
        "",
        "The letter behind a name is what a finished write survives: V nothing (lost when the process is \
         killed), K kill -9, F a power cut. Engines are compared within a class: one that promises \
         more does more work. A row says by words where an engine failed, lost data or cannot do it.",
    );
}

const FIGURES: [&str; 15] = [
    "row", "engine", "class", "value", "from", "to", "p50", "p99", "p99.9", "max", "CPU",
    "written", "memory", "disk", "remarks",
];

/// All figures of a section as a table, for those who do not see the pictures or want digits.
pub(super) fn figures(page: &mut Page, section: &Section) {
    let of_row =
        |row: &Row| row.records.iter().map(|r| figure_cells(&row.name, row.unit, r)).collect();
    let lines: Vec<Vec<Vec<String>>> = section.rows.iter().map(of_row).collect();
    let is_text = |name: &str| ["row", "engine", "class", "remarks"].contains(&name);
    let columns = FIGURES.map(|name| (if is_text(name) { "" } else { "n" }, name));
    page.raw("<details class=\"figures\"><summary>All figures as a table</summary>\n");
    page.table("All figures", &section.heading(), &columns, &lines.concat());
    page.raw("</details>\n");
}

fn figure_cells(row: &str, unit: Unit, record: &Record) -> Vec<String> {
    let text =
        |value: Option<f64>, show: &dyn Fn(f64) -> String| value.map(show).unwrap_or_default();
    let bytes = |count: Option<u64>| text(count.map(|n| n as f64), &format::bytes);
    let device = record.device();
    let remarks = [record.reason(), record.note.as_deref(), device.as_deref()];
    let remarks: Vec<&str> = remarks.into_iter().flatten().collect();
    vec![
        row.to_string(),
        palette::shown(&record.engine).to_string(),
        record.class.clone().unwrap_or_default(),
        record.shown(|value| unit.show(value)),
        text(record.interval().map(|(low, _)| low), &|v| unit.show(v)),
        text(record.interval().map(|(_, high)| high), &|v| unit.show(v)),
        text(record.p50_us, &format::micros),
        text(record.p99_us, &format::micros),
        text(record.p999_us, &format::micros),
        text(record.max_us, &format::micros),
        text(record.cpu_s, &|s| format!("{} s", format::rounded(s))),
        bytes(record.written_bytes),
        bytes(record.peak_memory_bytes),
        bytes(record.disk_bytes),
        remarks.join("; "),
    ]
}

pub(super) fn machine(page: &mut Page, model: &Model) {
    page.heading(2, "machine", "", "The machine");
    page.element("p", "", &format!("{}.", model.machine_line()));
    if model.limits.is_empty() {
        return;
    }
    page.element("p", "quiet", "What it can do without any store, measured in the same run. A row's share of its limit refers to these.");
    let line = |limit: &Record| {
        let value = limit.figure().map(|v| limit.unit().show(v)).unwrap_or_default();
        let remark = limit.reason().or(limit.note.as_deref()).unwrap_or_default();
        vec![limit.row.clone(), value, remark.to_string()]
    };
    let lines: Vec<Vec<String>> = model.limits.iter().map(line).collect();
    let columns = [("", "limit"), ("n", "measured"), ("", "remarks")];
    page.table("The machine's limits", "", &columns, &lines);
    page.raw("\n");
}

pub(super) fn engines(page: &mut Page, model: &Model) {
    page.heading(2, "engines", "", "Engines and settings");
    let settings = "settings, and the rows that have others";
    let columns = [("", "engine"), ("", "version"), ("", "class"), ("", settings)];
    let lines: Vec<Vec<String>> = model.about_engines().into_iter().map(Vec::from).collect();
    page.table("Engines and settings", "", &columns, &lines);
    page.raw("\n");
}

pub(super) fn commands(page: &mut Page, model: &Model) {
    page.heading(2, "commands", "here", "Commands");
    page.element("p", "", "What measured this, to be run again:");
    let commands = model.commands();
    if commands.is_empty() {
        page.element("p", "quiet", "The results do not say.");
    }
    for command in commands {
        page.element("pre", "", &command);
    }
    page.element("p", "", "To draw this page again from its results, and to compare two runs:");
    page.raw(
        "<pre>esker bench report DIR\nesker bench compare BEFORE AFTER --threshold 10</pre>\n",
    );
}

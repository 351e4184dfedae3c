//! What stands beside the pictures: how to read them, all figures, the machine, the engines and
//! their settings, the commands.

use super::super::format;
use super::super::model::{Model, Section};
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

/// All figures of a section as a table, for those who do not see the pictures or want digits.
pub(super) fn figures(page: &mut Page, section: &Section) {
    page.raw("<details class=\"figures\"><summary>All figures as a table</summary>\n");
    page.raw(
        "<div class=\"scroll\" role=\"region\" aria-label=\"All figures\" tabindex=\"0\"><table>\n",
    );
    let columns = [
        "row", "engine", "class", "value", "from", "to", "p50", "p99", "p99.9", "max", "CPU",
        "written", "memory", "disk", "remarks",
    ];
    let class =
        |name: &&str| if ["row", "engine", "class", "remarks"].contains(name) { "" } else { "n" };
    let head: Vec<(&str, &str)> = columns.iter().map(|name| (class(name), *name)).collect();
    page.head(&section.heading(), &head);
    page.raw("<tbody>\n");
    for row in &section.rows {
        for record in &row.records {
            let cells = figure_cells(&row.name, row.unit, record);
            let cells: Vec<(&str, &str)> =
                cells.iter().zip(&head).map(|(cell, (class, _))| (*class, cell.as_str())).collect();
            page.cells(&cells);
        }
    }
    page.raw("</tbody>\n</table></div></details>\n");
}

fn figure_cells(row: &str, unit: Unit, record: &Record) -> Vec<String> {
    let text =
        |value: Option<f64>, show: &dyn Fn(f64) -> String| value.map(show).unwrap_or_default();
    let value = match record.figure() {
        Some(value) => unit.show(value),
        None => record.absent().unwrap_or_default().to_string(),
    };
    let bytes = |count: Option<u64>| text(count.map(|n| n as f64), &format::bytes);
    let device = record.device();
    let remarks = [record.reason(), record.note.as_deref(), device.as_deref()];
    let remarks: Vec<&str> = remarks.into_iter().flatten().collect();
    vec![
        row.to_string(),
        palette::shown(&record.engine).to_string(),
        record.class.clone().unwrap_or_default(),
        value,
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
    page.raw("<div class=\"scroll\" role=\"region\" aria-label=\"The machine's limits\" tabindex=\"0\"><table>\n");
    page.head("", &[("", "limit"), ("n", "measured"), ("", "remarks")]);
    page.raw("<tbody>\n");
    for limit in &model.limits {
        let value = limit.figure().map(|v| limit.unit().show(v));
        let remark = limit.reason().or(limit.note.as_deref()).unwrap_or_default();
        page.cells(&[("", &limit.row), ("n", &value.unwrap_or_default()), ("", remark)]);
    }
    page.raw("</tbody>\n</table></div>\n");
}

pub(super) fn engines(page: &mut Page, model: &Model) {
    page.heading(2, "engines", "", "Engines and settings");
    page.raw("<div class=\"scroll\" role=\"region\" aria-label=\"Engines and settings\" tabindex=\"0\"><table>\n");
    page.head(
        "",
        &[
            ("", "engine"),
            ("", "version"),
            ("", "class"),
            ("", "settings, and the rows that have others"),
        ],
    );
    page.raw("<tbody>\n");
    let gone = model.not_installed();
    for engine in &model.engines {
        let of = || model.records().filter(|r| r.engine == *engine);
        let version = of().find_map(|r| r.version.clone()).unwrap_or_default();
        let mut classes: Vec<String> = of().filter_map(|r| r.class.clone()).collect();
        classes.sort();
        classes.dedup();
        let settings = match gone.iter().find(|(name, _)| name == engine) {
            Some((_, how)) => format!("not installed: {how}"),
            None => model.settings_of(engine),
        };
        let name = palette::shown(engine);
        page.cells(&[("", name), ("", &version), ("", &classes.join(", ")), ("", &settings)]);
    }
    page.raw("</tbody>\n</table></div>\n");
}

pub(super) fn commands(page: &mut Page, model: &Model) {
    page.heading(2, "commands", "here", "Commands");
    page.element("p", "", "What measured this, to be run again:");
    let commands = model.commands();
    if commands.is_empty() {
        page.element("p", "quiet", "The results do not say.");
    }
    for command in commands {
        page.raw("<pre>");
        page.raw(&super::page::escape(&command));
        page.raw("</pre>\n");
    }
    page.element("p", "", "To draw this page again from its results, and to compare two runs:");
    page.raw(
        "<pre>esker bench report DIR\nesker bench compare BEFORE AFTER --threshold 10</pre>\n",
    );
}

//! What was seen, as tables.

use super::damage::Damaged;
use super::kill::Killed;
use super::run::{EngineReport, Report};
use super::variants;
use crate::engine::Class;
use esker_trust::damage::Outcome;
use esker_trust::harm::Kind;
use std::fmt::Write;

/// The whole of it.
pub fn write(report: &Report) -> String {
    let mut out = String::new();
    let text = &mut out;
    line(
        text,
        &format!(
            "{}, {}, kernel {}, seed {}.",
            report.date, report.machine, report.kernel, report.seed
        ),
    );
    line(text, "");
    line(text, "| engine | version | what it promises of damage, and how it was set |");
    line(text, "|---|---|---|");
    for engine in &report.engines {
        let version = match &engine.missing {
            Some(why) => format!("not installed: {}", why.trim_start_matches("not installed: ")),
            None => engine.version.clone(),
        };
        let promise = variants::promise(&engine.engine);
        line(text, &format!("| {} | {} | {promise} |", engine.engine, cell(&version)));
    }
    if report.engines.iter().any(|engine| !engine.kills.is_empty()) {
        kills(text, &report.engines);
    }
    const CLOSED: &str = "The store holds about 3,000 entries, some written over and some deleted, the \
        first half settled, and was closed. Each copy was damaged in one place and then read in full by \
        a process of its own: each key, and a scan. *Error*: a call said so, and every answer beside it \
        was right. *Writes lost*: an entry missing, an old value, or a deleted entry, from a call that \
        said nothing. *Wrong value*: what nobody ever wrote.";
    const KILLED: &str = "The same store, but its process was killed after the last write had returned. \
        All writes were synced. What ends its log may have been torn by the kill for all that an engine \
        can know, so that the last writes are dropped without a word is no fault by itself.";
    for (closed, title) in [(true, "Damaged after a clean close"), (false, "Damaged after a kill")]
    {
        let damaged = report.engines.iter().flat_map(|engine| &engine.damages);
        let damaged: Vec<&Damaged> = damaged.filter(|one| one.closed == closed).collect();
        if !damaged.is_empty() {
            line(text, &format!("\n## {title}\n"));
            line(text, &format!("{}\n", if closed { CLOSED } else { KILLED }));
            damages(text, &damaged);
            by_kind(text, &damaged);
            examples(text, &damaged);
        }
    }
    let failures = report.engines.iter().flat_map(|engine| &engine.failures);
    for (n, failure) in failures.enumerate() {
        if n == 0 {
            line(text, "\n## Not tested\n");
        }
        line(text, &format!("- {}", cell(failure)));
    }
    out
}

fn line(out: &mut String, text: &str) {
    writeln!(out, "{text}").expect("a string takes everything");
}

/// Text within a table, on one line and not without end.
fn cell(text: &str) -> String {
    const LONGEST: usize = 240;
    let text = text.replace('|', "\\|").replace(['\n', '\r'], " ");
    match text.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text,
    }
}

fn kills(out: &mut String, engines: &[EngineReport]) {
    line(out, "\n## Killed while writing\n");
    line(
        out,
        "A process writes one operation after the other (puts, deletes, atomic batches of ten) and says \
         which are done; `kill -9` comes after 10 to 300 ms, every eighth time while it opens the store. \
         Another process then reads everything: all that was acknowledged must be there, the operation \
         under way whole or not at all, and nothing else. The next writer goes on in the same store.\n",
    );
    line(
        out,
        "| engine | writes | kills | acknowledged | of these lost | half batches | wrong values | not \
         readable | writer failed |",
    );
    line(out, "|---|---|---|---|---|---|---|---|---|");
    let mut notes = Vec::new();
    for engine in engines {
        for killed in &engine.kills {
            line(out, &row_of_kills(&engine.engine, killed));
            if let Some(first) = &killed.first {
                let synced = if killed.synced { "synced" } else { "buffered" };
                notes.push(format!("- {}, {synced}: first seen: {}", engine.engine, cell(first)));
            }
        }
    }
    if !notes.is_empty() {
        line(out, "");
        notes.iter().for_each(|note| line(out, note));
    }
}

fn row_of_kills(engine: &str, killed: &Killed) -> String {
    let lost = match killed.class {
        Some(Class::V) => format!("{}, as documented", killed.lost),
        _ => killed.lost.to_string(),
    };
    format!(
        "| {engine} | {} | {} | {} | {lost} | {} | {} | {} | {} |",
        if killed.synced { "synced" } else { "buffered" },
        killed.kills,
        killed.acknowledged,
        killed.half,
        killed.wrong,
        killed.unreadable,
        killed.failed,
    )
}

fn damages(out: &mut String, damaged: &[&Damaged]) {
    let titles: Vec<&str> = Outcome::ALL.iter().map(|outcome| outcome.title()).collect();
    line(out, &format!("| engine | files | copies | {} |", titles.join(" | ")));
    line(out, &format!("|---|---|---|{}", "---|".repeat(titles.len())));
    for one in damaged {
        let counts: Vec<String> =
            Outcome::ALL.iter().map(|outcome| one.count(*outcome).to_string()).collect();
        let (files, copies) = (one.files, one.cases.len());
        line(out, &format!("| {} | {files} | {copies} | {} |", one.label, counts.join(" | ")));
    }
}

fn by_kind(out: &mut String, damaged: &[&Damaged]) {
    line(
        out,
        "\nBy what was damaged: copies that lost writes, hung, crashed or gave a wrong value, of all that were damaged in that \
         way.\n",
    );
    let titles: Vec<&str> = Kind::ALL.iter().map(|kind| kind.title()).collect();
    line(out, &format!("| engine | {} |", titles.join(" | ")));
    line(out, &format!("|---|{}", "---|".repeat(titles.len())));
    for one in damaged {
        let cells: Vec<String> = Kind::ALL
            .iter()
            .map(|kind| {
                let cases: Vec<_> = one.cases.iter().filter(|case| case.kind == *kind).collect();
                let bad = cases.iter().filter(|case| case.outcome.is_bad()).count();
                if cases.is_empty() { "-".to_string() } else { format!("{bad} / {}", cases.len()) }
            })
            .collect();
        line(out, &format!("| {} | {} |", one.label, cells.join(" | ")));
    }
}

fn examples(out: &mut String, damaged: &[&Damaged]) {
    if !damaged.iter().any(|one| one.cases.iter().any(|case| case.outcome.is_bad())) {
        return;
    }
    line(out, "\nThe first of each:\n");
    line(out, "| engine | outcome | copy | damage | what was seen |");
    line(out, "|---|---|---|---|---|");
    for one in damaged {
        for outcome in Outcome::ALL.iter().filter(|outcome| outcome.is_bad()) {
            if let Some(case) = one.cases.iter().find(|case| case.outcome == *outcome) {
                let (what, detail) = (cell(&case.what), cell(&case.detail));
                let (label, title, number) = (&one.label, outcome.title(), case.number);
                line(out, &format!("| {label} | {title} | {number} | {what} | {detail} |"));
            }
        }
    }
}

//! What was seen, as tables.

use super::damage::Damaged;
use super::kill::Killed;
use super::run::{EngineReport, Report};
use super::variants;
use crate::engine::Class;
use crate::report::markdown::table;
use esker_trust::damage::Outcome;
use esker_trust::harm::Kind;

const CLOSED: &str = "The store holds about 3,000 entries, some written over and some deleted, the \
    first half settled, and was closed. Each copy was damaged in one place and then read in full by \
    a process of its own: each key, and a scan. *Error*: a call said so, and every answer beside it \
    was right. *Writes lost*: an entry missing, an old value, or a deleted entry, from a call that \
    said nothing. *Wrong value*: what nobody ever wrote.";
const KILLED: &str = "The same store, but its process was killed after the last write had returned. \
    All writes were synced. What ends its log may have been torn by the kill for all that an engine \
    can know, so that the last writes are dropped without a word is no fault by itself.";

/// The whole of it.
pub fn write(report: &Report) -> String {
    let Report { date, machine, kernel, seed, engines } = report;
    let line = |engine: &EngineReport| {
        let version = match &engine.missing {
            Some(why) => format!("not installed: {}", why.trim_start_matches("not installed: ")),
            None => engine.version.clone(),
        };
        let promise = variants::promise(&engine.engine).to_string();
        vec![engine.engine.clone(), cell(&version), promise]
    };
    let mut out = format!("{date}, {machine}, kernel {kernel}, seed {seed}.\n\n");
    let head = ["engine", "version", "what it promises of damage, and how it was set"];
    out += &lines(&head, engines.iter().map(line));
    if engines.iter().any(|engine| !engine.kills.is_empty()) {
        out += &kills(engines);
    }
    for (closed, title, about) in
        [(true, "Damaged after a clean close", CLOSED), (false, "Damaged after a kill", KILLED)]
    {
        let damaged = engines.iter().flat_map(|engine| &engine.damages);
        let damaged: Vec<&Damaged> = damaged.filter(|one| one.closed == closed).collect();
        if !damaged.is_empty() {
            out += &format!("## {title}\n\n{about}\n\n");
            out += &(damages(&damaged) + &by_kind(&damaged) + &examples(&damaged));
        }
    }
    let failures = engines.iter().flat_map(|engine| &engine.failures);
    let failures: String = failures.map(|failure| format!("- {}\n", cell(failure))).collect();
    if !failures.is_empty() {
        out += &format!("## Not tested\n\n{failures}");
    }
    format!("{}\n", out.trim_end())
}

/// A table; an empty line behind it.
fn lines(head: &[&str], lines: impl Iterator<Item = Vec<String>>) -> String {
    let columns: Vec<(&str, &str)> = head.iter().map(|name| ("", *name)).collect();
    table(&columns, lines)
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

fn kills(engines: &[EngineReport]) -> String {
    const ABOUT: &str = "A process writes one operation after the other (puts, deletes, atomic batches of ten) and says \
        which are done; `kill -9` comes after 10 to 300 ms, every eighth time while it opens the store. \
        Another process then reads everything: all that was acknowledged must be there, the operation \
        under way whole or not at all, and nothing else. The next writer goes on in the same store.";
    const HEAD: [&str; 9] = [
        "engine",
        "writes",
        "kills",
        "acknowledged",
        "of these lost",
        "half batches",
        "wrong values",
        "not readable",
        "writer failed",
    ];
    let all = || engines.iter().flat_map(|e| e.kills.iter().map(|killed| (&e.engine, killed)));
    let table = lines(&HEAD, all().map(|(engine, killed)| line_of_kills(engine, killed)));
    let note = |(engine, killed): (&String, &Killed)| {
        let first = cell(killed.first.as_ref()?);
        Some(format!("- {engine}, {}: first seen: {first}\n", synced(killed)))
    };
    let notes: String = all().filter_map(note).collect();
    let end = if notes.is_empty() { "" } else { "\n" };
    format!("## Killed while writing\n\n{ABOUT}\n\n{table}{notes}{end}")
}

fn synced(killed: &Killed) -> &'static str {
    if killed.synced { "synced" } else { "buffered" }
}

fn line_of_kills(engine: &str, killed: &Killed) -> Vec<String> {
    let k = killed;
    let documented = if k.class == Some(Class::V) { ", as documented" } else { "" };
    let mut line = vec![engine.to_string(), synced(k).to_string()];
    line.extend([k.kills, k.acknowledged].map(|n| n.to_string()));
    line.push(format!("{}{documented}", k.lost));
    line.extend([k.half, k.wrong, k.unreadable, k.failed].map(|n| n.to_string()));
    line
}

fn damages(damaged: &[&Damaged]) -> String {
    let titles = Outcome::ALL.iter().map(|outcome| outcome.title());
    let head: Vec<&str> = ["engine", "files", "copies"].into_iter().chain(titles).collect();
    let line = |one: &&Damaged| {
        let counts = Outcome::ALL.iter().map(|outcome| one.count(*outcome));
        let numbers = [one.files, one.cases.len()].into_iter().chain(counts);
        let numbers = numbers.map(|n| n.to_string());
        [one.label.clone()].into_iter().chain(numbers).collect()
    };
    lines(&head, damaged.iter().map(line))
}

fn by_kind(damaged: &[&Damaged]) -> String {
    let titles = Kind::ALL.iter().map(|kind| kind.title());
    let head: Vec<&str> = ["engine"].into_iter().chain(titles).collect();
    let line = |one: &&Damaged| {
        let of_kind = |kind: &Kind| {
            let cases: Vec<_> = one.cases.iter().filter(|case| case.kind == *kind).collect();
            let bad = cases.iter().filter(|case| case.outcome.is_bad()).count();
            if cases.is_empty() { "-".to_string() } else { format!("{bad} / {}", cases.len()) }
        };
        [one.label.clone()].into_iter().chain(Kind::ALL.iter().map(of_kind)).collect()
    };
    format!(
        "By what was damaged: copies that lost writes, hung, crashed or gave a wrong value, of all that were damaged in that \
         way.\n\n{}",
        lines(&head, damaged.iter().map(line))
    )
}

fn examples(damaged: &[&Damaged]) -> String {
    let bad = || Outcome::ALL.iter().filter(|outcome| outcome.is_bad());
    let all = damaged.iter().flat_map(|one| bad().map(move |outcome| (one, outcome)));
    let first = |(one, outcome): (&&Damaged, &Outcome)| {
        let case = one.cases.iter().find(|case| case.outcome == *outcome)?;
        let (label, title, number) = (&one.label, outcome.title(), case.number);
        Some(
            [label, title, &number.to_string(), &cell(&case.what), &cell(&case.detail)]
                .map(String::from)
                .to_vec(),
        )
    };
    let mut found = all.filter_map(first).peekable();
    if found.peek().is_none() {
        return String::new();
    }
    let head = ["engine", "outcome", "copy", "damage", "what was seen"];
    format!("The first of each:\n\n{}", lines(&head, found))
}

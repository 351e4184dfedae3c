//! The first screen of every format: reads, writes, scans, mixed operations and stores in motion, then whatever else Esker is
//! worst in, beside the engines that everybody knows, and at which sizes. Which rows these are is decided in [`crate::first`].

pub(crate) mod markdown;
pub(crate) mod picture;
pub(crate) mod text;
mod words;

use super::bars;
use super::format;
use super::layout::Bar;
use super::model::{Model, Row, Section, by_key};
use super::palette;
use super::record::Record;
use super::settings::{self, Parts};
use crate::first::{Group, PEERS, SHOWN, Stand};
use crate::plan::Unit;
use crate::results::OURS;

/// What a letter behind a name means, which is said where one is seen first.
const CLASSES: &str = "The letter behind a name is what a finished write survives: V nothing (it is lost when the \
     process is killed), K kill -9, F a power cut. Engines are compared within a class.";

/// What "memory for each engine" is to each of them.
const MEMORY: &str = "Memory is what an engine is told to take for itself. On top of that come, for Esker, log that waits for its \
     flush, mapped and dirty, several times as much where memory is little; for LevelDB and RocksDB a second write buffer; for all of them the \
     page cache, which is where LMDB has its store. The lines of settings say how much, and rows of memory what it came to.";

/// Heading of the rows that no group shows and in which Esker is behind.
const WORST: &str = "Where else Esker is worst";

/// The first screen.
#[derive(Debug)]
pub(crate) struct First<'a> {
    /// Beside whom Esker is shown, in the fixed order.
    pub peers: Vec<&'a str>,
    /// Sizes and settings that its rows have, or most of them, in a sentence.
    pub sizes: String,
    /// The documents that they repeat, each once, in words.
    pub documents: Vec<String>,
    /// The groups that have rows, by their headings, and the worst of what none of them shows.
    pub groups: Vec<(&'static str, Vec<Card<'a>>)>,
}

/// A row of it.
#[derive(Debug)]
pub(crate) struct Card<'a> {
    pub row: &'a Row,
    /// What is done, in words.
    pub title: String,
    /// How Esker stands beside those shown; and whether that is the worst of its group.
    pub verdict: String,
    /// Which table of which suite, and the sizes and settings that are not usual.
    pub place: String,
}

impl<'a> First<'a> {
    pub fn of(model: &'a Model) -> First<'a> {
        let is_peer = |engine: &&str| is_peer(engine, &model.engines);
        let peers: Vec<&str> = model.engines.iter().map(String::as_str).filter(is_peer).collect();
        let stood = |(section, row)| Some((section, row, stand(row, &peers)?));
        let stood: Vec<Stood<'_>> = model.rows().filter_map(stood).collect();
        let mut groups = Vec::new();
        for group in Group::ALL {
            let is_of_group = |(section, row, _): &&Stood<'_>| {
                let of = Group::of(&section.suite, row.key());
                row.unit == Unit::OpsPerSecond && of == Some(group)
            };
            let places: Vec<&Stood<'_>> = stood.iter().filter(is_of_group).collect();
            let keys: Vec<(&str, Stand)> =
                places.iter().map(|(_, row, stand)| (row.key(), *stand)).collect();
            let worst_of = |is_worst: bool| Some(places.len()).filter(|n| is_worst && *n > 1);
            let chosen = group.choose(&keys).into_iter();
            let shown: Vec<Shown<'_>> =
                chosen.map(|c| (places[c.at].0, places[c.at].1, worst_of(c.is_worst))).collect();
            if !shown.is_empty() {
                groups.push((group.name(), shown));
            }
        }
        let worst = worst_of_others(stood, &groups);
        if !worst.is_empty() {
            groups.push((WORST, worst));
        }
        let all: Vec<&Row> = groups.iter().flat_map(|(_, rows)| rows).map(|r| r.1).collect();
        let settings: Vec<Parts> = all.into_iter().map(settings_of).collect();
        let (usual, for_all) = settings::usual(&settings);
        let sections = groups.iter().flat_map(|(_, rows)| rows).map(|shown| shown.0);
        let documents = by_key(sections.filter_map(|section| Some((section.document()?, ()))));
        let documents = documents.into_iter().map(|(name, _)| name).collect();
        let card = |(section, row, worst_of): Shown<'a>| Card {
            row,
            title: words::title(row.key(), &row.name),
            verdict: verdict(row, &peers, worst_of),
            place: place(section, row, &usual),
        };
        let groups = groups
            .into_iter()
            .map(|(heading, rows)| (heading, rows.into_iter().map(card).collect()))
            .collect();
        let sizes = settings::sentence(usual);
        let sizes = if for_all { sizes } else { format!("Where a row says nothing else: {sizes}") };
        First { groups, documents, sizes, peers }
    }

    /// Where nobody is beside Esker there is nothing to show.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// How to read it, in sentences; the last one is for everything below too.
    pub fn caption(&self) -> Vec<String> {
        if self.is_empty() {
            return vec![CLASSES.to_string()];
        }
        let names: Vec<&str> = self.peers.iter().map(|engine| palette::shown(engine)).collect();
        let mut sentences = vec![
            format!(
                "Esker beside {}: of each group up to three of the rows that were measured, among them the one in which Esker is \
                 worst beside these; then the worst of all others in which it is behind them, up to three, whatever they count. \
                 Operations a second, more is better, where a row says nothing else; every bar starts at zero, and \
                 each row has a scale of its own. Settled is when nothing is left to merge or to flush.",
                listed(&names)
            ),
            self.sizes.clone(),
        ];
        if self.sizes.contains("of memory") {
            sentences.push(MEMORY.to_string());
        }
        if !self.documents.is_empty() {
            sentences.push(format!("{}.", self.documents.join("; ")));
        }
        sentences.push(CLASSES.to_string());
        sentences
    }
}

/// One of the known engines, or the distribution's library of it where no other was measured.
fn is_peer(engine: &str, all: &[String]) -> bool {
    match engine.strip_suffix("-system") {
        Some(name) => PEERS.contains(&name) && !all.iter().any(|other| other == name),
        None => PEERS.contains(&engine),
    }
}

/// A row that compares, and how Esker stands in it.
type Stood<'a> = (&'a Section, &'a Row, Stand);

/// A row, and of how many it is the worst where that is to be said.
type Shown<'a> = (&'a Section, &'a Row, Option<usize>);

/// Of all rows, of groups or of none, that are not shown yet: those in which Esker is behind, the worst first.
fn worst_of_others<'a>(
    mut others: Vec<Stood<'a>>,
    groups: &[(&str, Vec<Shown<'a>>)],
) -> Vec<Shown<'a>> {
    let is_shown = |row: &Row| {
        groups.iter().flat_map(|(_, rows)| rows).any(|(_, shown, _)| std::ptr::eq(*shown, row))
    };
    others.retain(|(_, row, stand)| *stand < Stand::Alike(0.0) && !is_shown(row));
    others.sort_by(|a, b| a.2.partial_cmp(&b.2).unwrap_or(std::cmp::Ordering::Equal));
    others.into_iter().take(SHOWN).map(|(section, row, _)| (section, row, None)).collect()
}

fn stand(row: &Row, peers: &[&str]) -> Option<Stand> {
    if let Some(s) = row.standing_among(&|engine| peers.contains(&engine)) {
        return Some(match s.ratio < 1.0 {
            _ if s.alike() => Stand::Alike(s.ratio),
            true => Stand::Behind(s.ratio),
            false => Stand::First(s.ratio),
        });
    }
    let ours = row.of(OURS)?;
    let has_figure = |engine: &&str| row.of(engine).and_then(Record::figure).is_some();
    (ours.figure().is_none() && peers.iter().any(has_figure)).then_some(Stand::Nothing)
}

/// Sizes and settings of a row: Esker's, or where it has none, everybody's.
fn settings_of(row: &Row) -> Parts {
    match row.of(OURS).filter(|r| r.figure().is_some()) {
        Some(ours) => settings::parts(&[ours]),
        None => settings::parts(&row.records.iter().collect::<Vec<_>>()),
    }
}

/// Its table, and what it has that is not usual.
fn place(section: &Section, row: &Row, usual: &Parts) -> String {
    let own = settings_of(row)
        .into_iter()
        .zip(usual)
        .map(|(own, usual)| own.filter(|part| Some(part) != usual.as_ref()));
    let less = (!row.unit.more_is_better()).then(|| "Less is better.".to_string());
    let said =
        [Some(format!("{}.", section.place())), Some(settings::sentence(own)), less, flood(row)];
    let said: Vec<String> = said.into_iter().flatten().filter(|said| !said.is_empty()).collect();
    said.join(" ")
}

/// How much a writer without limit did beside each engine's readers: whoever is written to less has less to do.
fn flood(row: &Row) -> Option<String> {
    let of = |r: &Record| {
        let writer = r.writer.as_ref().filter(|w| w.wanted_per_s == 0.0)?;
        r.figure()?;
        Some(format!("{} {}/s", palette::shown(&r.engine), format::rounded(writer.ops_per_s)))
    };
    let rates: Vec<String> = row.records.iter().filter_map(of).collect();
    (!rates.is_empty()).then(|| format!("Writes beside it: {}.", rates.join(", ")))
}

fn verdict(row: &Row, peers: &[&str], worst_of: Option<usize>) -> String {
    let sentence = match row.standing_among(&|engine| peers.contains(&engine)) {
        Some(standing) => standing.sentence(),
        None => format!("Esker: {}", row.of(OURS).and_then(Record::absent).unwrap_or("no figure")),
    };
    match worst_of {
        Some(n) => format!("{sentence}, its worst of {n} rows"),
        None => sentence,
    }
}

impl Card<'_> {
    /// Its bars: Esker and those it is shown beside.
    pub fn bars(&self, peers: &[&str]) -> Vec<Bar> {
        let shown = |r: &&Record| r.engine == OURS || peers.contains(&r.engine.as_str());
        let records = self.row.records.iter().filter(shown).filter(|r| r.missing.is_none());
        records.map(|r| bars::of_record(r, |v| self.row.unit.show(v))).collect()
    }
}

/// "a, b and c".
fn listed(names: &[&str]) -> String {
    match names {
        [] => "nobody".to_string(),
        [one] => (*one).to_string(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;

//! Results in the order of the report: suites, their sections, their rows, engines.

use super::palette;
use super::record::Record;
use crate::device;
use crate::interval;
use crate::plan::Unit;
use crate::published;
use crate::turns::MACHINE;
use std::collections::{BTreeMap, BTreeSet};

/// A whole run.
#[derive(Debug)]
pub(crate) struct Model {
    /// In the order in which they were measured.
    pub sections: Vec<Section>,
    /// What the machine itself can do.
    pub limits: Vec<Record>,
    /// Engines that were asked for, in the fixed order.
    pub engines: Vec<String>,
}

/// A table of a document.
#[derive(Debug)]
pub(crate) struct Section {
    pub suite: String,
    /// Its number or name within the suite; may be empty.
    pub id: String,
    /// What it is about; may be empty.
    pub title: String,
    /// Which table of which document it repeats; may be empty.
    pub table: String,
    pub rows: Vec<Row>,
}

/// One measurement of all engines.
#[derive(Debug)]
pub(crate) struct Row {
    pub name: String,
    pub unit: Unit,
    /// By engine, in the fixed order.
    pub records: Vec<Record>,
}

impl Model {
    pub fn new(records: Vec<Record>) -> Model {
        let (limits, records): (Vec<Record>, Vec<Record>) =
            records.into_iter().partition(|record| record.engine == MACHINE);
        let mut engines: Vec<String> = records.iter().map(|r| r.engine.clone()).collect();
        engines.sort_by(|a, b| palette::order(a).cmp(&palette::order(b)));
        engines.dedup();
        let place = |r: &Record| {
            let suite = r.suite.clone().unwrap_or_else(|| "core".to_string());
            (suite, r.section.clone().unwrap_or_default())
        };
        let sections = by_key(records.into_iter().map(|record| (place(&record), record)));
        let sections = sections.into_iter().map(|((suite, id), of)| Section::new(suite, id, of));
        // A suite in one piece, however its lines were written.
        let suites = by_key(sections.map(|section| (section.suite.clone(), section)));
        let sections = suites.into_iter().flat_map(|(_, sections)| sections).collect();
        Model { sections, limits, engines }
    }

    /// Suites in order, each with its sections.
    pub fn suites(&self) -> Vec<(&str, &[Section])> {
        let same = |a: &Section, b: &Section| a.suite == b.suite;
        self.sections.chunk_by(same).map(|of| (of[0].suite.as_str(), of)).collect()
    }

    /// All rows, with the sections they are of.
    pub fn rows(&self) -> impl Iterator<Item = (&Section, &Row)> {
        self.sections.iter().flat_map(|s| s.rows.iter().map(move |row| (s, row)))
    }

    /// All records of engines.
    pub fn records(&self) -> impl Iterator<Item = &Record> {
        self.rows().flat_map(|(_, row)| &row.records)
    }

    /// Engines of which nothing is installed, with the way to get them.
    pub fn not_installed(&self) -> Vec<(&str, &str)> {
        not_installed(&self.sections)
    }

    /// Each engine: its name, its version, its classes and its settings, or how to get it.
    pub fn about_engines(&self) -> Vec<[String; 4]> {
        let gone = self.not_installed();
        let about = |engine: &String| {
            let of = || self.records().filter(|r| r.engine == *engine);
            let version = of().find_map(|r| r.version.clone()).unwrap_or_default();
            let settings = match gone.iter().find(|(name, _)| name == engine) {
                Some((_, how)) => format!("not installed: {how}"),
                None => self.settings_of(engine),
            };
            [palette::shown(engine).to_string(), version, classes(of()).join(", "), settings]
        };
        self.engines.iter().map(about).collect()
    }

    /// Each setting of an engine once, with its rows where there are several.
    fn settings_of(&self, engine: &str) -> String {
        let named = self.rows().filter_map(|(section, row)| {
            let name = format!("{} {}", section.id, row.name).trim().to_string();
            Some((row.settings_of(engine)?, name))
        });
        let settings = by_key(named);
        if let [(only, _)] = &settings[..] {
            return only.to_string();
        }
        let with_rows = settings.iter().map(|(s, rows)| format!("{s} [{}]", rows.join(", ")));
        with_rows.collect::<Vec<_>>().join("; ")
    }

    /// What measured it, each command once.
    pub fn commands(&self) -> Vec<String> {
        let commands = self.records().filter_map(|record| Some((record.command_line()?, ())));
        by_key(commands).into_iter().map(|(command, _)| command).collect()
    }

    /// What all say of the machine.
    pub fn machine(&self) -> Option<&Record> {
        self.records().chain(&self.limits).find(|r| r.cpu.is_some())
    }

    /// What to keep in mind before any figure: a machine that was not quiet, rows that were measured too few times.
    pub fn caution(&self) -> Option<String> {
        let said: Vec<String> = [self.disturbed(), self.too_few()].into_iter().flatten().collect();
        (!said.is_empty()).then(|| said.join(" "))
    }

    /// What is to be said of rows that were measured too few times.
    fn too_few(&self) -> Option<String> {
        let runs = |r: &Record| r.runs.as_ref().map_or(0, Vec::len);
        // A fast engine's short row is measured more often than the others'.
        let least: Vec<usize> = self
            .rows()
            .filter_map(|(_, row)| {
                row.records.iter().filter(|r| r.figure().is_some()).map(runs).min()
            })
            .collect();
        let few = least.iter().filter(|runs| **runs < interval::FEWEST).count();
        let which = match (few, least.len()) {
            (0, _) => return None,
            (few, all) if few == all => "Each row was".to_string(),
            (1, all) => format!("One of {all} rows was"),
            (few, all) => format!("{few} of {all} rows were"),
        };
        Some(format!(
            "{which} measured once or twice: so few draws say nothing of chance, and another run may have another first. Such \
             figures, but for sizes of files, name nobody the first where they are within a tenth of each other."
        ))
    }

    /// What was not quiet on the machine, in a sentence; of several runs what the last of them says.
    fn disturbed(&self) -> Option<String> {
        let said = self.records().chain(&self.limits).filter_map(|r| r.unquiet.as_deref());
        Some(format!("{}.", said.last()?))
    }

    /// "4 cores of …, Linux …", as far as it is known.
    pub fn machine_line(&self) -> String {
        let Some(record) = self.machine() else { return "an unnamed machine".to_string() };
        let cpu = record.cpu.clone().unwrap_or_default();
        let cores = record.cores.filter(|_| !cpu.contains(" core"));
        let parts = [
            cores.map(|n| format!("{n} {}", if n == 1 { "core" } else { "cores" })),
            record.kernel.as_ref().map(|kernel| format!("Linux {kernel}")),
            record.read_ahead_kib.map(|kib| format!("the device's read-ahead {kib} KiB")),
            record.sync_delay_ms.and_then(device::words),
        ];
        [Some(cpu)].into_iter().chain(parts).flatten().collect::<Vec<_>>().join(", ")
    }
}

impl Section {
    fn new(suite: String, id: String, records: Vec<Record>) -> Section {
        let first = records.first().cloned().unwrap_or_default();
        let rows = by_key(records.into_iter().map(|record| (record.row.clone(), record)));
        Section {
            suite,
            id,
            title: first.title.unwrap_or_default(),
            table: first.table.unwrap_or_default(),
            rows: rows.into_iter().map(|(name, records)| Row::new(name, records)).collect(),
        }
    }

    /// "2A · Large values", as far as it is named.
    pub fn heading(&self) -> String {
        let about = if self.title.is_empty() { &self.table } else { &self.title };
        match (self.id.is_empty(), about.is_empty() || *about == self.id) {
            (true, true) => self.suite.clone(),
            (true, false) => about.clone(),
            (false, true) => self.id.clone(),
            (false, false) => format!("{} · {about}", self.id),
        }
    }

    /// What the short name of its document stands for: "LevelDB 2011 is …".
    pub fn document(&self) -> Option<String> {
        let source = published::source(&self.suite)?;
        Some(format!("{} is {source}", suite_title(&self.suite)))
    }

    /// What its document published of a row, in operations a second by engine.
    pub fn published(&self, row: &Row) -> Vec<(&'static str, f64)> {
        published::rates(&self.suite, &self.id, &row.name)
    }

    /// Which table of which document it repeats, as a sentence.
    pub fn repeats(&self) -> Option<String> {
        let source = published::source(&self.suite).filter(|_| !self.table.is_empty())?;
        Some(format!("Repeats {}, that is {source}.", self.table))
    }

    /// Where to find it among all suites: "LevelDB 2011, 2A · Large values".
    pub fn place(&self) -> String {
        match (self.table.is_empty(), self.title.is_empty()) {
            (false, false) => format!("{} · {}", self.table, self.title),
            (true, _) if published::source(&self.suite).is_some() => {
                format!("{}, {}", suite_title(&self.suite), self.heading())
            }
            _ => self.heading(),
        }
    }
}

/// Engines of which nothing in these sections is installed, in the fixed order, with the way to get them.
pub(crate) fn not_installed(sections: &[Section]) -> Vec<(&str, &str)> {
    let mut engines = BTreeMap::new();
    for record in sections.iter().flat_map(|s| &s.rows).flat_map(|r| &r.records) {
        let why = record.missing.as_deref();
        let known = engines.entry(palette::order(&record.engine)).or_insert(why);
        *known = why.and(*known);
    }
    engines.into_iter().filter_map(|((_, engine), why)| Some((engine, why?))).collect()
}

/// The durability classes that some records have.
pub(crate) fn classes<'a>(records: impl Iterator<Item = &'a Record>) -> Vec<String> {
    let classes: BTreeSet<String> = records.filter_map(|r| r.class.clone()).collect();
    classes.into_iter().collect()
}

/// Values by their keys, in the order in which these come first.
pub(crate) fn by_key<K: PartialEq, V>(pairs: impl Iterator<Item = (K, V)>) -> Vec<(K, Vec<V>)> {
    let mut groups: Vec<(K, Vec<V>)> = Vec::new();
    for (key, value) in pairs {
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, values)) => values.push(value),
            None => groups.push((key, vec![value])),
        }
    }
    groups
}

/// What a suite is called in headings.
pub(crate) fn suite_title(suite: &str) -> &str {
    match suite {
        "core" => "Core rows",
        "leveldb2011" => "LevelDB 2011",
        "wiredtiger2013" => "WiredTiger 2013",
        "symas2014" => "Symas 2014",
        "voldemort" => "Voldemort",
        "ycsb" => "YCSB",
        "motion" => "In motion",
        "file" => "Your own data",
        other => other,
    }
}

impl Row {
    fn new(name: String, mut records: Vec<Record>) -> Row {
        // A missing engine may not know the unit.
        let measured = records.iter().find(|r| r.figure().is_some() && r.unit.is_some());
        let unit = measured.or(records.first()).map_or(Unit::OpsPerSecond, Record::unit);
        records.sort_by(|a, b| palette::order(&a.engine).cmp(&palette::order(&b.engine)));
        Row { name, unit, records }
    }

    /// What the case that measures it calls it; its name, where nothing says so.
    pub fn key(&self) -> &str {
        self.records.iter().find_map(|r| r.key.as_deref()).unwrap_or(&self.name)
    }

    pub fn of(&self, engine: &str) -> Option<&Record> {
        self.records.iter().find(|r| r.engine == engine)
    }

    /// An engine's figure, and from where to where its median lies, or why there is none.
    pub fn shown(&self, engine: &str) -> Option<String> {
        let record = self.of(engine)?;
        let show = |value| self.unit.show(value);
        Some(record.shown(|value| match record.interval() {
            Some((low, high)) => format!("{} ({} to {})", show(value), show(low), show(high)),
            None => show(value),
        }))
    }

    /// What an engine was told, in its own words.
    pub fn settings_of(&self, engine: &str) -> Option<&str> {
        self.of(engine)?.settings.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::OURS;

    fn record(engine: &str, row: &str, value: f64, unit: Unit, class: &str) -> Record {
        Record {
            engine: engine.into(),
            row: row.into(),
            value: Some(value),
            unit: Some(unit),
            class: Some(class.into()),
            ..Record::default()
        }
    }

    #[test]
    fn the_devices_read_ahead_is_said_of_the_machine() {
        let cpu = Some("A processor".to_string());
        let record = Record { cpu, read_ahead_kib: Some(8192), ..Record::default() };
        let text = crate::report::markdown::render(&Model::new(vec![record]));
        assert!(text.contains("A processor, the device's read-ahead 8192 KiB"), "{text}");
    }

    #[test]
    fn a_suite_is_in_one_piece() {
        let in_suite = |suite: &str, section: &str| Record {
            suite: Some(suite.into()),
            section: Some(section.into()),
            ..record(OURS, "r", 1.0, Unit::Bytes, "K")
        };
        let model = Model::new(vec![in_suite("b", "1"), in_suite("a", "1"), in_suite("b", "2")]);
        let order: Vec<_> = model.suites().iter().map(|(s, of)| (*s, of.len())).collect();
        assert_eq!(order, [("b", 2), ("a", 1)]);
    }
}

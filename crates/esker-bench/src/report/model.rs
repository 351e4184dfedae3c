//! Results in the order of the report: suites, their sections, their rows, engines.

use super::format;
use super::input::Record;
use super::palette;
use crate::device;
use crate::interval::{self, ALIKE};
use crate::plan::{Bound, Unit};
use crate::published;
use crate::results::OURS;
use crate::turns::MACHINE;
use std::cmp::Ordering;
use std::collections::BTreeMap;

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

/// Esker beside the best of the others in its class.
#[derive(Debug, Clone)]
pub(crate) struct Standing {
    /// Times better than the best peer; above 1 is first.
    pub ratio: f64,
    /// What that says.
    pub bound: Bound,
    pub peer: String,
    pub theirs: f64,
    /// Whether their intervals overlap, or both are too small to count, so that neither can be called better.
    pub alike: bool,
}

impl Standing {
    /// The ratio, or that there is none.
    pub fn shown(&self) -> String {
        if self.alike { ALIKE.to_string() } else { format::bounded(self.ratio, self.bound) }
    }

    /// "0.62× of LMDB".
    pub fn sentence(&self) -> String {
        let peer = palette::shown(&self.peer);
        match self.alike {
            true => format!("Esker and {peer} {ALIKE}"),
            false => format!("Esker: {} of {peer}", self.shown()),
        }
    }
}

impl Unit {
    /// Whether more is better.
    pub(crate) fn more_is_better(self) -> bool {
        self == Unit::OpsPerSecond
    }

    /// Its name on an axis.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Unit::OpsPerSecond => "operations a second",
            Unit::Seconds | Unit::Milliseconds => "time",
            Unit::Bytes => "bytes",
            Unit::Times => "times",
        }
    }

    /// A value with its unit, short.
    pub(crate) fn show(self, value: f64) -> String {
        use super::format::{bytes, micros, rounded};
        match self {
            Unit::OpsPerSecond => format!("{}/s", rounded(value)),
            Unit::Seconds => micros(value * 1e6),
            Unit::Milliseconds => micros(value * 1e3),
            Unit::Bytes => bytes(value),
            Unit::Times => format!("{}×", rounded(value)),
        }
    }

    /// How many times better `a` is than `b`; two figures that are none are alike.
    pub(crate) fn times_better(self, a: f64, b: f64) -> f64 {
        if a == b { 1.0 } else { self.ratio(a, b) }
    }
}

impl Model {
    pub fn new(records: Vec<Record>) -> Model {
        let mut model = Model { sections: Vec::new(), limits: Vec::new(), engines: Vec::new() };
        for record in records {
            if record.engine == MACHINE {
                model.limits.push(record);
                continue;
            }
            if !model.engines.contains(&record.engine) {
                model.engines.push(record.engine.clone());
            }
            model.section(&record).add(record);
        }
        model.engines.sort_by(|a, b| palette::order(a).cmp(&palette::order(b)));
        for row in model.sections.iter_mut().flat_map(|s| &mut s.rows) {
            row.records.sort_by(|a, b| palette::order(&a.engine).cmp(&palette::order(&b.engine)));
        }
        // A suite in one piece, however its lines were written.
        let mut first = BTreeMap::new();
        for section in &model.sections {
            let next = first.len();
            first.entry(section.suite.clone()).or_insert(next);
        }
        model.sections.sort_by_key(|s| first[&s.suite]);
        model
    }

    fn section(&mut self, record: &Record) -> &mut Section {
        let suite = record.suite.clone().unwrap_or_else(|| "core".to_string());
        let id = record.section.clone().unwrap_or_default();
        let known = self.sections.iter().position(|s| s.suite == suite && s.id == id);
        let index = known.unwrap_or_else(|| {
            let [title, table] =
                [&record.title, &record.table].map(|t| t.clone().unwrap_or_default());
            self.sections.push(Section { suite, id, title, table, rows: Vec::new() });
            self.sections.len() - 1
        });
        &mut self.sections[index]
    }

    /// Suites in order, each with its sections.
    pub fn suites(&self) -> Vec<(&str, &[Section])> {
        let same = |a: &Section, b: &Section| a.suite == b.suite;
        self.sections.chunk_by(same).map(|of| (of[0].suite.as_str(), of)).collect()
    }

    /// All records of engines.
    pub fn records(&self) -> impl Iterator<Item = &Record> {
        self.sections.iter().flat_map(|s| &s.rows).flat_map(|r| &r.records)
    }

    /// Engines of which nothing is installed, with the way to get them.
    pub fn not_installed(&self) -> Vec<(&str, &str)> {
        let of = |engine: &'_ str| -> Option<String> {
            let mut records = self.records().filter(|r| r.engine == engine);
            let first = records.next()?.missing.clone()?;
            records.all(|r| r.missing.is_some()).then_some(first)
        };
        let reason = |engine: &str| {
            self.records().find(|r| r.engine == engine).and_then(|r| r.missing.as_deref())
        };
        let gone = self.engines.iter().filter(|engine| of(engine).is_some());
        gone.map(|engine| (engine.as_str(), reason(engine).unwrap_or_default())).collect()
    }

    /// Each setting of an engine once, with its rows where there are several.
    pub fn settings_of(&self, engine: &str) -> String {
        let mut all: Vec<(String, Vec<String>)> = Vec::new();
        for section in &self.sections {
            for row in &section.rows {
                let Some(settings) = row.of(engine).and_then(|r| r.settings.clone()) else {
                    continue;
                };
                let name = format!("{} {}", section.id, row.name).trim().to_string();
                match all.iter_mut().find(|(known, _)| *known == settings) {
                    Some((_, rows)) => rows.push(name),
                    None => all.push((settings, vec![name])),
                }
            }
        }
        match all.as_slice() {
            [(only, _)] => only.clone(),
            several => {
                let with_rows =
                    several.iter().map(|(s, rows)| format!("{s} [{}]", rows.join(", ")));
                with_rows.collect::<Vec<_>>().join("; ")
            }
        }
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
        let runs = |r: &&Record| r.runs.as_ref().map_or(0, Vec::len);
        let rows = self.sections.iter().flat_map(|s| &s.rows);
        // A fast engine's short row is measured more often than the others'.
        let least = rows.filter_map(|row| {
            row.records.iter().filter(|r| r.figure().is_some()).map(|r| runs(&r)).min()
        });
        let (few, repeated): (Vec<usize>, Vec<usize>) =
            least.partition(|runs| *runs < interval::FEWEST);
        let which = match (few.len(), repeated.len()) {
            (0, _) => return None,
            (_, 0) => "Each row was".to_string(),
            (1, others) => format!("One of {} rows was", 1 + others),
            (n, others) => format!("{n} of {} rows were", n + others),
        };
        Some(format!(
            "{which} measured once or twice: so few draws say nothing of chance, and another run may have another first."
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
        let mut line = record.cpu.clone().unwrap_or_default();
        if let Some(cores) = record.cores.filter(|_| !line.contains(" core")) {
            line += &format!(", {cores} {}", if cores == 1 { "core" } else { "cores" });
        }
        if let Some(kernel) = &record.kernel {
            line += &format!(", Linux {kernel}");
        }
        if let Some(kib) = record.read_ahead_kib {
            line += &format!(", the device's read-ahead {kib} KiB");
        }
        if let Some(words) = record.sync_delay_ms.and_then(device::words) {
            line += &format!(", {words}");
        }
        line
    }
}

impl Section {
    fn add(&mut self, record: Record) {
        match self.rows.iter_mut().find(|row| row.name == record.row) {
            Some(row) => {
                // A missing engine may not know the unit.
                if row.records.iter().all(|r| r.figure().is_none()) && record.unit.is_some() {
                    row.unit = record.unit();
                }
                row.records.push(record);
            }
            None => self.rows.push(Row {
                name: record.row.clone(),
                unit: record.unit(),
                records: vec![record],
            }),
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
    /// What the case that measures it calls it; its name, where nothing says so.
    pub fn key(&self) -> &str {
        self.records.iter().find_map(|r| r.key.as_deref()).unwrap_or(&self.name)
    }

    pub fn of(&self, engine: &str) -> Option<&Record> {
        self.records.iter().find(|r| r.engine == engine)
    }

    /// Esker beside the best peer of its class; nothing where all are held to the same rate.
    pub fn standing(&self) -> Option<Standing> {
        self.standing_among(&|_| true)
    }

    /// The same where only some of the others count.
    pub fn standing_among(&self, counts: &dyn Fn(&str) -> bool) -> Option<Standing> {
        let ours = self.of(OURS)?;
        let value = ours.figure()?;
        // Sizes and times have no target either, and are compared all the same.
        if ours.target == Some(0.0) && self.unit == Unit::OpsPerSecond {
            return None;
        }
        let others = self.records.iter().filter(|r| r.engine != OURS && counts(&r.engine));
        let peers = others.filter(|r| r.class == ours.class);
        let with_ratio = |r| {
            let theirs = Record::figure(r)?;
            Some((self.unit.times_better(value, theirs), theirs, r))
        };
        let peers: Vec<(f64, f64, &Record)> = peers.filter_map(with_ratio).collect();
        // Beside none of ours all are alike.
        let sign = if self.unit.more_is_better() { -1.0 } else { 1.0 };
        let order = |p: &(f64, f64, &Record)| (p.0, sign * p.1);
        let by_order = |a: &_, b: &_| order(a).partial_cmp(&order(b)).unwrap_or(Ordering::Equal);
        let &(ratio, theirs, peer) = peers.iter().min_by(|a, b| by_order(a, b))?;
        let overlaps = |peer: &Record| {
            let both = ours.reach().zip(peer.reach());
            both.is_some_and(|(a, b)| !interval::apart(a, b, self.unit.least()))
        };
        // Who is first is so beside all others; who is behind the best is that, whomever else it may be beside.
        let overlap = overlaps(peer) || ratio >= 1.0 && peers.iter().any(|(.., r)| overlaps(r));
        let bound = self.unit.bound(value, theirs);
        let alike = overlap || bound == Bound::Neither;
        Some(Standing { ratio, bound, peer: peer.engine.clone(), theirs, alike })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn the_best_peer_is_of_our_class_and_only_rates_that_all_are_held_to_are_left_out() {
        let model = Model::new(vec![
            record("lmdb", "w", 90.0, Unit::OpsPerSecond, "F"),
            record("leveldb", "w", 40.0, Unit::OpsPerSecond, "K"),
            record(OURS, "w", 50.0, Unit::OpsPerSecond, "K"),
            record(OURS, "disk", 50.0, Unit::Bytes, "K"),
            record("lmdb", "disk", 25.0, Unit::Bytes, "K"),
            record(MACHINE, "limit.memcpy", 1.0, Unit::Bytes, "K"),
        ]);
        let rows = &model.sections[0].rows;
        let standing = rows[0].standing().unwrap();
        assert_eq!((standing.peer.as_str(), standing.ratio), ("leveldb", 1.25));
        let standing = rows[1].standing().unwrap();
        assert_eq!((standing.peer.as_str(), standing.ratio), ("lmdb", 0.5));
        let rate = |engine: &str, row: &str, unit: Unit| Record {
            target: Some(0.0),
            ..record(engine, row, 10_000.0, unit, "K")
        };
        let both = |row: &str, unit: Unit| vec![rate(OURS, row, unit), rate("lmdb", row, unit)];
        let held =
            Model::new([both("writes", Unit::OpsPerSecond), both("disk", Unit::Bytes)].concat());
        let compared = held.sections[0].rows.iter().map(|r| r.standing().is_some());
        assert_eq!(compared.collect::<Vec<_>>(), [false, true]);
        assert_eq!(model.limits.len(), 1);
        assert_eq!(model.engines, [OURS, "leveldb", "lmdb"]);
    }

    #[test]
    fn times_too_short_to_be_noticed_are_alike() {
        let shown = |unit: Unit, ours: f64, theirs: f64| {
            let of = |engine: &str, value| record(engine, "r", value, unit, "K");
            let model = Model::new(vec![of(OURS, ours), of("lmdb", theirs)]);
            model.sections[0].rows[0].standing().map(|s| s.shown())
        };
        let (nothing, something) = (40e-9, 20e-3);
        assert_eq!(shown(Unit::Seconds, nothing, 900e-6).as_deref(), Some(ALIKE));
        assert_eq!(shown(Unit::Seconds, something, nothing).as_deref(), Some("<0.050×"));
        assert_eq!(shown(Unit::Seconds, nothing, something).as_deref(), Some(">20×"));
        assert_eq!(shown(Unit::Seconds, something, 2.0 * something).as_deref(), Some("2.0×"));
        assert_eq!(shown(Unit::Seconds, 0.0, something).as_deref(), Some(">20×"));
        // A store that opens in 171 µs is three times as fast as one that takes 488.
        assert_eq!(shown(Unit::Milliseconds, 0.488, 0.171).as_deref(), Some("0.35×"));
    }

    #[test]
    fn who_needs_nothing_is_first() {
        let standing = |unit: Unit, ours: f64, lmdb: f64, leveldb: f64| {
            let of = |engine: &str, value| record(engine, "r", value, unit, "K");
            let model = Model::new(vec![of(OURS, ours), of("lmdb", lmdb), of("leveldb", leveldb)]);
            let standing = model.sections[0].rows[0].standing().unwrap();
            (standing.peer.clone(), standing.shown())
        };
        let told = |peer: &str, shown: &str| (peer.to_string(), shown.to_string());
        assert_eq!(standing(Unit::Bytes, 71.0, 0.0, 67.0), told("lmdb", "<0.001×"));
        assert_eq!(standing(Unit::Bytes, 0.0, 9.0, 67.0), told("lmdb", ">1,000×"));
        assert_eq!(standing(Unit::Bytes, 0.0, 0.0, 67.0), told("lmdb", ALIKE));
        assert_eq!(standing(Unit::OpsPerSecond, 0.0, 9.0, 3.0), told("lmdb", "<0.001×"));
        assert_eq!(standing(Unit::OpsPerSecond, 9.0, 0.0, 3.0), told("leveldb", "3.0×"));
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

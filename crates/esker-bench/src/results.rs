//! What was measured: the median of the repetitions, how sure it is, and how it compares.

use crate::engine::{Class, Unsupported};
use crate::interval;
use crate::plan::{Bound, Case, Plan, Row, limits};
use crate::protocol::Sample;
use crate::quiet::Quiet;
use crate::suites::Section;
use crate::system;
use crate::turns::MACHINE;
use std::collections::HashMap;

/// The engine that the others are compared with.
pub const OURS: &str = "esker";

/// Everything a run measured.
#[derive(Debug)]
pub struct Results {
    /// Sizes and settings, as the command line gives them.
    pub plan: Plan,
    /// Tables, with their cases and rows, in order.
    pub sections: Vec<Section>,
    /// Engines, in order.
    pub engines: Vec<String>,
    /// How often everything was measured.
    pub repetitions: u32,
    /// How often it was to be measured.
    pub repetitions_wanted: u32,
    /// Whether the machine had nothing else to do.
    pub quiet: Quiet,
    /// KiB that the stores' device reads ahead.
    pub read_ahead_kib: Option<u64>,
    /// When the run began.
    pub date: String,
    /// Whether it was ended before everything was measured.
    pub interrupted: bool,
    versions: HashMap<String, String>,
    missing: HashMap<String, String>,
    samples: HashMap<(String, String), Vec<Sample>>,
}

/// An engine's result in a row.
#[derive(Debug, Clone)]
pub enum Cell<'a> {
    /// The median, its interval, all values and their spread: (largest - smallest) / median.
    Measured {
        /// The figure: the median, of an even number the mean of the two in the middle.
        value: f64,
        /// The measurement in the middle, of two the one with the lower figure: what else is told of it.
        median: &'a Sample,
        /// The figure of each repetition, in order.
        runs: Vec<f64>,
        /// How far they lie apart.
        spread: f64,
        /// From where to where the median lies, where there were measurements enough.
        interval: Option<(f64, f64)>,
    },
    /// It failed, or lost or falsified data, in at least one repetition.
    Failed(&'a str),
    /// The engine has no such operation or is too slow for it, or the machine has no means to
    /// measure it: why.
    Unsupported(&'a str),
    /// The engine is not installed: how to change that.
    Missing(&'a str),
    /// Nothing was reported.
    Nothing,
}

/// Where a row stands: its table, its case and itself.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// The table.
    pub section: &'a Section,
    /// What measures it.
    pub case: &'a Case,
    /// The row.
    pub row: &'a Row,
}

impl Results {
    /// Nothing measured yet.
    pub fn new(plan: &Plan, sections: &[Section], engines: &[String], repetitions: u32) -> Self {
        Results {
            plan: plan.clone(),
            sections: sections.to_vec(),
            engines: engines.to_vec(),
            repetitions,
            repetitions_wanted: repetitions,
            quiet: Quiet::begin(),
            read_ahead_kib: None,
            date: system::date(),
            interrupted: false,
            versions: HashMap::new(),
            missing: HashMap::new(),
            samples: HashMap::new(),
        }
    }
    /// Notes an engine's version.
    pub fn version(&mut self, engine: &str, version: String) {
        self.versions.insert(engine.to_string(), version);
    }
    /// Notes that an engine is not installed, and why or how to change that.
    pub fn missing(&mut self, engine: &str, why: String) {
        self.missing.insert(engine.to_string(), why);
    }
    /// Whether an engine is not installed.
    pub fn is_missing(&self, engine: &str) -> bool {
        self.missing.contains_key(engine)
    }
    /// Adds a measurement of a row.
    pub fn add(&mut self, engine: &str, row: &Row, sample: Sample) {
        self.samples.entry((engine.to_string(), row.path())).or_default().push(sample);
    }
    /// Whether nothing was measured, nor failed.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }
    /// The version of an engine's library.
    pub fn version_of(&self, engine: &str) -> &str {
        self.versions.get(engine).map_or("", String::as_str)
    }
    /// Every row, in order.
    pub fn places(&self) -> impl Iterator<Item = Place<'_>> {
        let of_section = |section| Section::places(section);
        self.sections.iter().flat_map(of_section)
    }
    /// An engine's settings, as it told them in a section: those of the first row, and all others with the
    /// names of the rows that have them.
    pub fn settings_of(&self, engine: &str, section: &Section) -> Vec<(&str, String)> {
        let mut all: Vec<(&str, Vec<&str>)> = Vec::new();
        for place in section.places() {
            let Cell::Measured { median, .. } = self.cell(engine, place.row) else { continue };
            match all.iter_mut().find(|(settings, _)| *settings == median.settings) {
                Some((_, rows)) => rows.push(&place.row.name),
                None => all.push((median.settings.as_str(), vec![place.row.name.as_str()])),
            }
        }
        let with_rows = all.into_iter().enumerate();
        let rows_of = |i, rows: Vec<&str>| if i == 0 { String::new() } else { rows.join(", ") };
        with_rows.map(|(i, (settings, rows))| (settings, rows_of(i, rows))).collect()
    }
    /// Whether nothing failed. A missing engine is no failure, and neither is a missing means.
    pub fn all_well(&self) -> bool {
        let reasons = self.samples.values().flatten().filter_map(|s| s.failed.as_deref());
        reasons.into_iter().all(|why| Unsupported::part_of(why).is_some())
    }

    /// An engine's result in a row.
    pub fn cell(&self, engine: &str, row: &Row) -> Cell<'_> {
        if let Some(why) = self.missing.get(engine) {
            return Cell::Missing(why);
        }
        let Some(samples) = self.samples.get(&(engine.to_string(), row.path())) else {
            return Cell::Nothing;
        };
        if let Some(why) = samples.iter().find_map(|s| s.failed.as_deref()) {
            return Unsupported::part_of(why).map_or(Cell::Failed(why), Cell::Unsupported);
        }
        let runs: Vec<f64> = samples.iter().map(|s| s.value).collect();
        let mut sorted: Vec<&Sample> = samples.iter().collect();
        sorted.sort_by(|a, b| a.value.total_cmp(&b.value));
        let median = sorted[(sorted.len() - 1) / 2];
        let value = (median.value + sorted[sorted.len() / 2].value) / 2.0;
        let range = sorted[sorted.len() - 1].value - sorted[0].value;
        let spread = if value > 0.0 { range / value } else { 0.0 };
        let interval = interval::of_median(&runs);
        Cell::Measured { value, median, runs, spread, interval }
    }

    /// The figure of an engine in a row, and what its writes survive.
    pub fn figure(&self, engine: &str, row: &Row) -> Option<(f64, Option<Class>)> {
        match self.cell(engine, row) {
            Cell::Measured { value, median, .. } => Some((value, median.class)),
            _ => None,
        }
    }

    /// The others of an engine's class, and their figures.
    fn peers<'a>(
        &'a self,
        engine: &'a str,
        row: &'a Row,
    ) -> Option<impl Iterator<Item = (&'a str, f64)>> {
        let (_, class) = self.figure(engine, row)?;
        let peers = self.engines.iter().filter(move |name| *name != engine);
        Some(peers.filter_map(move |name| {
            let (value, theirs) = self.figure(name, row)?;
            (theirs == class).then_some((name.as_str(), value))
        }))
    }

    /// The best of them.
    fn best_peer<'a>(&'a self, engine: &'a str, row: &'a Row) -> Option<(&'a str, f64)> {
        let better = |a: f64, b: f64| row.unit.better(a, b) == b;
        self.peers(engine, row)?.reduce(|a, b| if better(a.1, b.1) { b } else { a })
    }

    /// How many times better an engine is than the best of the others of its class.
    pub fn ratio_best_peer(&self, engine: &str, row: &Row) -> Option<f64> {
        let (value, _) = self.figure(engine, row)?;
        let (_, best) = self.best_peer(engine, row)?;
        Some(row.unit.ratio(value, best)).filter(|ratio| ratio.is_finite())
    }

    /// What that ratio says.
    pub fn bound_best_peer(&self, engine: &str, row: &Row) -> Option<Bound> {
        Some(row.unit.bound(self.figure(engine, row)?.0, self.best_peer(engine, row)?.1))
    }

    /// Whether the place of an engine among those of its class is more than chance. One that is first overlaps none of the
    /// others' intervals (a peer whose median is lower may reach as far up as the best); one that is not, not that of the
    /// first. Never where both figures are too small to count, nor where one's few values reach into the other's; otherwise
    /// `None` where either's are too few to tell.
    pub fn told_apart(&self, engine: &str, row: &Row) -> Option<bool> {
        let (peer, _) = self.best_peer(engine, row)?;
        if self.bound_best_peer(engine, row) == Some(Bound::Neither) {
            return Some(false);
        }
        // How far its values reach, and whether they are enough to tell.
        let of = |name: &str| match self.cell(name, row) {
            Cell::Measured { interval, runs, .. } => {
                Some((interval.or_else(|| interval::range(&runs))?, interval.is_some()))
            }
            _ => None,
        };
        let (ours, known) = of(engine)?;
        let best = of(peer)?;
        let apart = |(theirs, _)| interval::apart(ours, theirs, row.unit.least());
        // Who is behind the best is behind it, whomever else it may be beside.
        let behind = self.ratio_best_peer(engine, row).is_some_and(|ratio| ratio < 1.0);
        let mut others = self.peers(engine, row)?.filter_map(|(name, _)| of(name));
        match if behind { apart(best) } else { others.all(apart) } {
            false => Some(false),
            true => (known && best.1).then_some(true),
        }
    }

    /// The machine's limit of a row, in the row's unit: the best of its repetitions, since the
    /// machine could do that.
    pub fn limit_of(&self, row: &Row) -> Option<f64> {
        let (name, factor) = row.limit?;
        let limit = Row { name: name.to_string(), ..row.clone() };
        let Cell::Measured { runs, .. } = self.cell(MACHINE, &limit) else { return None };
        Some(runs.into_iter().reduce(f64::max)? * factor)
    }

    /// What the device could do beside an engine's row of synced writes, in the row's unit.
    fn limit_beside(&self, engine: &str, row: &Row) -> Option<f64> {
        let (Cell::Measured { median, .. }, (_, factor)) = (self.cell(engine, row), row.limit?)
        else {
            return None;
        };
        Some(1e6 / median.device?.fdatasync_us * factor)
    }

    /// Which part of the machine's limit an engine reaches (bytes: how many times the raw data).
    pub fn ratio_limit(&self, engine: &str, row: &Row) -> Option<f64> {
        let (value, _) = self.figure(engine, row)?;
        let limit = self.limit_beside(engine, row).or_else(|| self.limit_of(row))?;
        Some(value / limit).filter(|ratio| ratio.is_finite())
    }

    /// Whether a row is one of the machine's limits.
    pub fn is_limit(&self, row: &Row) -> bool {
        row.key.starts_with("limit.") || row.key == limits::RAW
    }
}

impl Section {
    /// Its rows, in order.
    pub fn places(&self) -> impl Iterator<Item = Place<'_>> {
        let of_case = move |case| Case::places(case, self);
        self.cases.iter().flat_map(of_case)
    }
}

impl Case {
    fn places<'a>(&'a self, section: &'a Section) -> impl Iterator<Item = Place<'a>> {
        self.rows.iter().map(move |row| Place { section, case: self, row })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Unit;

    fn results() -> (Results, Row) {
        let options: Vec<String> = ["esker", "x", "y"].map(String::from).to_vec();
        let base = crate::suites::tests::base();
        let row = Row::ops("r", limits::COPY);
        (Results::new(&base.plan, &[], &options, 3), row)
    }

    #[test]
    fn the_median_counts_and_its_spread_is_told() {
        let (mut results, row) = results();
        for value in [120.0, 100.0, 90.0] {
            results.add("esker", &row, Sample::figure("r", value));
        }
        let Cell::Measured { value, runs, spread, interval, .. } = results.cell("esker", &row)
        else {
            panic!("it was measured");
        };
        assert_eq!(interval, Some((90.0, 120.0)));
        assert_eq!((value, runs), (100.0, vec![120.0, 100.0, 90.0]));
        assert!((spread - 0.3).abs() < 1e-9);
    }

    #[test]
    fn of_two_in_the_middle_the_mean_counts() {
        let (mut results, row) = results();
        for (i, value) in [120.0, 90.0, 100.0, 200.0].into_iter().enumerate() {
            results.add("esker", &row, Sample::figure("r", value));
            let figure = results.figure("esker", &row).unwrap().0;
            assert_eq!(figure, [120.0, 105.0, 100.0, 110.0][i]);
        }
    }

    #[test]
    fn ratios_are_to_the_best_of_the_class_and_to_the_best_limit() {
        let (mut results, row) = results();
        let of = |value, class| Sample { class: Some(class), ..Sample::figure("r", value) };
        results.add("esker", &row, of(300.0, Class::K));
        results.add("x", &row, of(150.0, Class::K));
        results.add("y", &row, of(900.0, Class::V));
        assert_eq!(results.ratio_best_peer("esker", &row), Some(2.0));
        assert_eq!(results.ratio_best_peer("x", &row), Some(0.5));
        assert_eq!(results.ratio_best_peer("y", &row), None);
        let limit = Row::new(limits::COPY, Unit::OpsPerSecond);
        for value in [500.0, 600.0] {
            results.add(MACHINE, &limit, Sample::figure(limits::COPY, value));
        }
        assert_eq!(results.ratio_limit("esker", &row), Some(0.5));
        let seconds = Row { unit: Unit::Seconds, ..row };
        assert_eq!(results.ratio_best_peer("esker", &seconds), Some(0.5));
    }

    /// Engines with three figures each: two, and their mean.
    fn thrice<const N: usize>(of: [(&'static str, f64, f64); N]) -> Vec<(&'static str, f64)> {
        let three =
            |(name, low, high): (_, f64, f64)| [low, (low + high) / 2.0, high].map(|v| (name, v));
        of.into_iter().flat_map(three).collect()
    }

    #[test]
    fn medians_whose_intervals_overlap_cannot_be_told_apart() {
        let (mut results, row) = results();
        for (engine, value) in thrice([("esker", 100.0, 120.0), ("x", 60.0, 70.0)]) {
            results.add(engine, &row, Sample::figure("r", value));
        }
        assert_eq!(results.told_apart("esker", &row), Some(true));
        for value in [95.0, 99.0, 101.0] {
            results.add("y", &row, Sample::figure("r", value));
        }
        assert_eq!(results.told_apart("esker", &row), Some(false));
        assert_eq!(results.told_apart("x", &row), Some(true));
        let wide = Row { name: "wide".into(), ..row.clone() };
        let best = thrice([("esker", 100.0, 120.0), ("x", 70.0, 75.0)]);
        for (engine, value) in best.into_iter().chain([("y", 40.0), ("y", 60.0), ("y", 130.0)]) {
            results.add(engine, &wide, Sample::figure("r", value));
        }
        assert_eq!(results.ratio_best_peer("esker", &wide), Some(110.0 / 72.5));
        assert_eq!(
            results.told_apart("esker", &wide),
            Some(false),
            "y is not the best, and may be"
        );
        let behind = Row { name: "behind".into(), ..row.clone() };
        for (engine, value) in thrice([("esker", 50.0, 60.0), ("x", 100.0, 110.0)]) {
            results.add(engine, &behind, Sample::figure("r", value));
        }
        for value in [40.0, 55.0, 70.0] {
            results.add("y", &behind, Sample::figure("r", value));
        }
        assert_eq!(results.told_apart("esker", &behind), Some(true), "y hides no defeat by x");
        let twice = Row { name: "twice".into(), ..row };
        for (engine, value) in [("esker", 2.0), ("x", 1.0), ("esker", 2.1), ("x", 1.1)] {
            results.add(engine, &twice, Sample::figure("r", value));
            assert_eq!(results.told_apart("esker", &twice), None, "too few draws tell nothing");
        }
    }

    #[test]
    fn a_time_is_compared_as_it_is_and_nothing_to_settle_is_no_victory() {
        let (mut results, row) = results();
        let open = Row { name: "open".into(), unit: Unit::Milliseconds, ..row.clone() };
        let settle = Row { name: "settle".into(), unit: Unit::Seconds, ..row };
        for (engine, opened, settled) in [("esker", 0.488, 40e-9), ("x", 0.171, 900e-6)] {
            results.add(engine, &open, Sample::figure("open", opened));
            results.add(engine, &settle, Sample::figure("settle", settled));
        }
        let ratio = results.ratio_best_peer("esker", &open).unwrap();
        assert!((ratio - 0.35).abs() < 0.01, "{ratio}");
        assert_eq!(results.told_apart("esker", &open), None);
        assert_eq!(results.told_apart("esker", &settle), Some(false));
        results.add("y", &settle, Sample::figure("settle", 40e-3));
        assert_eq!(results.bound_best_peer("y", &settle), Some(Bound::AtMost));
    }

    #[test]
    fn what_is_not_supported_is_no_failure() {
        let (mut results, row) = results();
        let failed = |why: &str| Sample { failed: Some(why.into()), ..Sample::figure("r", 0.0) };
        results.add("x", &row, failed("open: not supported: the engine has no reverse scan"));
        assert!(results.all_well());
        assert!(
            matches!(results.cell("x", &row), Cell::Unsupported(why) if why.starts_with("not supported: the engine"))
        );
        results.add("y", &row, failed("Operation not supported (os error 95)"));
        assert!(!results.all_well());
        assert!(matches!(results.cell("y", &row), Cell::Failed(_)));
    }
}

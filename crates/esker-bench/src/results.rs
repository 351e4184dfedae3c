//! What was measured: the median of the repetitions, how sure it is, and how it compares.

use crate::engine::Unsupported;
use crate::interval;
use crate::plan::{Case, Plan, Row, limits};
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
    /// Why it does not count: it failed, or lost or falsified data, in at least one repetition; or, in the words of
    /// [`Unsupported`], the engine has no such operation or is too slow for it, or the machine has no means to measure it.
    Failed(&'a str),
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
        self.sections.iter().flat_map(Section::places)
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
            return Cell::Failed(Unsupported::part_of(why).unwrap_or(why));
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

    /// Which part of the machine's limit an engine reaches (bytes: how many times the raw data). Beside a row of synced writes
    /// that is what the device could do in the same minute; otherwise the best of its repetitions, since the machine could do that.
    pub fn ratio_limit(&self, engine: &str, row: &Row) -> Option<f64> {
        let Cell::Measured { value, median, .. } = self.cell(engine, row) else { return None };
        let (name, factor) = row.limit?;
        let limit = Row { name: name.to_string(), ..row.clone() };
        let limit = match (median.device, self.cell(MACHINE, &limit)) {
            (Some(device), _) => 1e6 / device.fdatasync_us,
            (None, Cell::Measured { runs, .. }) => runs.into_iter().reduce(f64::max)?,
            (None, _) => return None,
        };
        Some(value / (limit * factor)).filter(|ratio| ratio.is_finite())
    }

    /// Whether a row is one of the machine's limits.
    pub fn is_limit(&self, row: &Row) -> bool {
        row.key.starts_with("limit.") || row.key == limits::RAW
    }
}

impl Section {
    /// Its rows, in order.
    pub fn places(&self) -> impl Iterator<Item = Place<'_>> {
        self.cases.iter().flat_map(move |case| {
            case.rows.iter().map(move |row| Place { section: self, case, row })
        })
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
            let Cell::Measured { value, .. } = results.cell("esker", &row) else {
                panic!("it was measured");
            };
            assert_eq!(value, [120.0, 105.0, 100.0, 110.0][i]);
        }
    }

    #[test]
    fn the_limit_is_the_best_of_its_repetitions() {
        let (mut results, row) = results();
        results.add("esker", &row, Sample::figure("r", 300.0));
        assert_eq!(results.ratio_limit("esker", &row), None);
        let limit = Row::new(limits::COPY, Unit::OpsPerSecond);
        for value in [500.0, 600.0] {
            results.add(MACHINE, &limit, Sample::figure(limits::COPY, value));
        }
        assert_eq!(results.ratio_limit("esker", &row), Some(0.5));
    }

    #[test]
    fn what_is_not_supported_is_no_failure() {
        let (mut results, row) = results();
        let failed = |why: &str| Sample { failed: Some(why.into()), ..Sample::figure("r", 0.0) };
        results.add("x", &row, failed("open: not supported: the engine has no reverse scan"));
        assert!(results.all_well());
        assert!(
            matches!(results.cell("x", &row), Cell::Failed(why) if why.starts_with("not supported: the engine"))
        );
        results.add("y", &row, failed("Operation not supported (os error 95)"));
        assert!(!results.all_well());
        assert!(
            matches!(results.cell("y", &row), Cell::Failed(why) if why.starts_with("Operation"))
        );
    }
}

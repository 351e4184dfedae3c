//! What was measured: the median of the repetitions, its spread, and how it compares.

use crate::engine::Class;
use crate::plan::{Case, Plan, Row, limits};
use crate::protocol::Sample;
use crate::run::MACHINE;
use crate::system;
use std::collections::HashMap;

/// The engine that the others are compared with.
pub const OURS: &str = "esker";

/// Everything a run measured.
#[derive(Debug)]
pub struct Results {
    /// Sizes and settings.
    pub plan: Plan,
    /// Rows, in order.
    pub rows: Vec<Row>,
    /// Engines, in order.
    pub engines: Vec<String>,
    /// How often everything was measured.
    pub repetitions: u32,
    /// Load average before the run.
    pub load_before: Option<f64>,
    /// KiB that the stores' device reads ahead.
    pub read_ahead_kib: Option<u64>,
    versions: HashMap<String, String>,
    missing: HashMap<String, String>,
    samples: HashMap<(String, String), Vec<Sample>>,
}

/// An engine's result in a row.
#[derive(Debug, Clone)]
pub enum Cell<'a> {
    /// The median measurement, all values and their spread: (largest - smallest) / median.
    Measured {
        /// The median measurement.
        median: &'a Sample,
        /// The figure of each repetition, in order.
        runs: Vec<f64>,
        /// How far they lie apart.
        spread: f64,
    },
    /// It failed, or lost or falsified data, in at least one repetition.
    Failed(&'a str),
    /// The engine is not installed: how to change that.
    Missing(&'a str),
    /// Nothing was reported.
    Nothing,
}

impl Results {
    /// Nothing measured yet.
    pub fn new(plan: &Plan, cases: &[Case], engines: &[String], repetitions: u32) -> Self {
        Results {
            plan: plan.clone(),
            rows: cases.iter().flat_map(|case| case.rows.clone()).collect(),
            engines: engines.to_vec(),
            repetitions,
            load_before: system::load_average(),
            read_ahead_kib: None,
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
    /// Adds a measurement.
    pub fn add(&mut self, engine: &str, sample: Sample) {
        let key = (engine.to_string(), sample.row.clone());
        self.samples.entry(key).or_default().push(sample);
    }
    /// The version of an engine's library.
    pub fn version_of(&self, engine: &str) -> &str {
        self.versions.get(engine).map_or("", String::as_str)
    }
    /// An engine's settings, as it told them in any row.
    pub fn settings_of(&self, engine: &str) -> Option<&str> {
        let of_row = |row: &Row| match self.cell(engine, &row.name) {
            Cell::Measured { median, .. } => Some(median.settings.as_str()),
            _ => None,
        };
        self.rows.iter().find_map(of_row)
    }
    /// Whether nothing failed. A missing engine is no failure.
    pub fn all_well(&self) -> bool {
        self.samples.values().flatten().all(|sample| sample.failed.is_none())
    }

    /// An engine's result in a row.
    pub fn cell(&self, engine: &str, row: &str) -> Cell<'_> {
        if let Some(why) = self.missing.get(engine) {
            return Cell::Missing(why);
        }
        let Some(samples) = self.samples.get(&(engine.to_string(), row.to_string())) else {
            return Cell::Nothing;
        };
        if let Some(why) = samples.iter().find_map(|s| s.failed.as_deref()) {
            return Cell::Failed(why);
        }
        let runs: Vec<f64> = samples.iter().map(|s| s.value).collect();
        let mut sorted: Vec<&Sample> = samples.iter().collect();
        sorted.sort_by(|a, b| a.value.total_cmp(&b.value));
        let median = sorted[(sorted.len() - 1) / 2];
        let range = sorted[sorted.len() - 1].value - sorted[0].value;
        let spread = if median.value > 0.0 { range / median.value } else { 0.0 };
        Cell::Measured { median, runs, spread }
    }

    /// The figure of an engine in a row, and what its writes survive.
    pub fn figure(&self, engine: &str, row: &str) -> Option<(f64, Option<Class>)> {
        match self.cell(engine, row) {
            Cell::Measured { median, .. } => Some((median.value, median.class)),
            _ => None,
        }
    }

    /// How many times better we are than the best peer of our class.
    pub fn ratio_to_best_peer(&self, row: &Row) -> Option<f64> {
        let (ours, class) = self.figure(OURS, &row.name)?;
        let peers = self.engines.iter().filter(|name| *name != OURS);
        let best = peers
            .filter_map(|name| self.figure(name, &row.name))
            .filter(|(_, theirs)| *theirs == class)
            .map(|(value, _)| value)
            .reduce(|a, b| row.unit.better(a, b))?;
        Some(row.unit.ratio(ours, best))
    }

    /// The machine's limit of a row, in the row's unit: the best of its repetitions, since the
    /// machine could do that.
    pub fn limit_of(&self, row: &Row) -> Option<f64> {
        let (name, factor) = row.limit?;
        let Cell::Measured { runs, .. } = self.cell(MACHINE, name) else { return None };
        Some(runs.into_iter().reduce(f64::max)? * factor)
    }

    /// Which part of the machine's limit an engine reaches (bytes: how many times the raw data).
    pub fn ratio_to_limit(&self, engine: &str, row: &Row) -> Option<f64> {
        let (value, _) = self.figure(engine, &row.name)?;
        Some(value / self.limit_of(row)?)
    }

    /// Whether a row is one of the machine's limits.
    pub fn is_limit(&self, row: &Row) -> bool {
        row.name.starts_with("limit.") || row.name == limits::RAW
    }
}

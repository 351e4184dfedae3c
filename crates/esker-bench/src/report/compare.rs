//! Two results side by side: what became slower or larger by more than a threshold and by more
//! than the repetitions of either differ among themselves.

use super::columns;
use super::format;
use super::input;
use super::record::Record;
use crate::plan::Unit;
use crate::turns::MACHINE;
use anyhow::{Result, bail, ensure};
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::Path;

/// What [`compare`] found.
#[derive(Debug, Serialize)]
pub struct Comparison {
    /// Percent from which on a change for the worse counts.
    pub threshold_percent: f64,
    /// Engines' rows, in the order of the first result; rows only in the second follow.
    pub lines: Vec<Line>,
}

/// One engine in one row, before and after.
#[derive(Debug, Serialize)]
pub struct Line {
    /// The suite; empty where the result does not say.
    pub suite: String,
    /// Its section.
    pub section: String,
    /// The row.
    pub row: String,
    /// The engine.
    pub engine: String,
    /// `ops_per_second`, `seconds`, `milliseconds` or `bytes`.
    pub unit: Unit,
    /// The figure of the first result.
    pub before: Option<f64>,
    /// The figure of the second.
    pub after: Option<f64>,
    /// How many times better the second is: below 1 is worse, whatever the unit.
    pub ratio: Option<f64>,
    /// The larger of the two spreads of repetitions, as a part of the median.
    pub spread: f64,
    /// What that means.
    pub verdict: Verdict,
}

/// What became of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Within the threshold or the spreads.
    Same,
    /// Better beyond both.
    Better,
    /// Worse beyond both.
    Worse,
    /// It had a figure and fails now: worse than any figure.
    Broken,
    /// Only one of the results has a figure.
    Incomparable,
}

/// Compares two results, each a directory or its `results.jsonl`. `threshold` is in percent.
///
/// # Errors
///
/// A file that is missing or broken, a threshold that is none, or nothing in common.
pub fn compare(before: &Path, after: &Path, threshold: f64) -> Result<Comparison> {
    ensure!(
        threshold.is_finite() && (0.0..100.0).contains(&threshold),
        "--threshold is a percentage from 0 to below 100, as in --threshold 10"
    );
    let old = engines_only(input::read(before)?);
    let mut new = engines_only(input::read(after)?);
    let mut lines = Vec::new();
    for record in &old {
        let found = new.iter().position(|r| r.same_cell(record));
        let other = found.map(|i| new.remove(i));
        lines.push(line(Some(record), other.as_ref(), threshold));
    }
    lines.extend(new.iter().map(|record| line(None, Some(record), threshold)));
    if !lines.iter().any(|l| l.verdict != Verdict::Incomparable) {
        bail!(
            "{} and {} have no row and engine in common that both measured; compare runs of the \
             same suite",
            before.display(),
            after.display()
        );
    }
    Ok(Comparison { threshold_percent: threshold, lines })
}

/// The machine's limits are no engine's fault.
fn engines_only(records: Vec<Record>) -> Vec<Record> {
    records.into_iter().filter(|r| r.engine != MACHINE).collect()
}

fn line(old: Option<&Record>, new: Option<&Record>, threshold: f64) -> Line {
    // One of the two is there.
    let known = old.or(new).cloned().unwrap_or_default();
    let [before, after] = [old, new].map(|r| r.and_then(Record::figure));
    // A missing engine may not know it.
    let unit = [old, new].into_iter().flatten().find_map(|r| r.unit);
    let unit = unit.unwrap_or(Unit::OpsPerSecond);
    let ratio = before.zip(after).map(|(b, a)| unit.times_better(a, b));
    let spread = [old, new].into_iter().flatten().filter_map(|r| r.spread).fold(0.0, f64::max);
    let fails = new.is_some_and(|r| r.failed.is_some() && r.missing.is_none());
    let margin = (threshold / 100.0).max(spread);
    let verdict = match (ratio, before) {
        (None, Some(_)) if fails => Verdict::Broken,
        (None, _) => Verdict::Incomparable,
        (Some(ratio), _) if ratio < 1.0 - margin => Verdict::Worse,
        (Some(ratio), _) if 1.0 / ratio < 1.0 - margin => Verdict::Better,
        (Some(_), _) => Verdict::Same,
    };
    Line {
        suite: known.suite.unwrap_or_default(),
        section: known.section.unwrap_or_default(),
        row: known.row,
        engine: known.engine,
        unit,
        before,
        after,
        ratio,
        spread,
        verdict,
    }
}

impl Comparison {
    /// Keeps one engine's rows.
    ///
    /// # Errors
    ///
    /// An engine that is in neither result.
    pub fn only(mut self, engine: &str) -> Result<Comparison> {
        let names: BTreeSet<String> = self.lines.iter().map(|l| l.engine.clone()).collect();
        let names = names.into_iter().collect::<Vec<_>>().join(", ");
        self.lines.retain(|l| l.engine == engine);
        ensure!(
            !self.lines.is_empty(),
            "no engine is called {engine} in these results; there are {names}"
        );
        Ok(self)
    }

    /// Rows that became worse beyond the threshold.
    pub fn worse(&self) -> usize {
        let bad = |l: &&Line| matches!(l.verdict, Verdict::Worse | Verdict::Broken);
        self.lines.iter().filter(bad).count()
    }

    /// For people: a line for each row and engine, and what it amounts to.
    pub fn table(&self) -> String {
        let mut cells =
            vec![["row", "engine", "before", "after", "ratio", "spread", ""].map(String::from)];
        cells.extend(self.lines.iter().map(Line::cells));
        let mut out = columns::aligned(&cells, |i| i < 2 || i == 6);
        let count = |v: Verdict| self.lines.iter().filter(|l| l.verdict == v).count();
        out += &format!(
            "\n{} worse by more than {} % and than their spread, {} better, {} the same, {} without \
             a pair of figures\n",
            self.worse(),
            format::rounded(self.threshold_percent),
            count(Verdict::Better),
            count(Verdict::Same),
            count(Verdict::Incomparable)
        );
        out
    }

    /// For programs.
    pub fn json(&self) -> String {
        // Plain numbers and strings always have a JSON form.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }
}

impl Line {
    fn cells(&self) -> [String; 7] {
        let show = |v: Option<f64>| v.map_or_else(|| "-".to_string(), |v| self.unit.show(v));
        let name = [&self.suite, &self.section, &self.row];
        let name: Vec<&str> =
            name.into_iter().map(String::as_str).filter(|s| !s.is_empty()).collect();
        let mark = match self.verdict {
            Verdict::Same | Verdict::Incomparable => "",
            Verdict::Better => "better",
            Verdict::Worse => "<< worse",
            Verdict::Broken => "<< fails now",
        };
        [
            name.join(" "),
            self.engine.clone(),
            show(self.before),
            show(self.after),
            self.ratio.map(format::ratio).unwrap_or_default(),
            if self.ratio.is_some() { format::percent(self.spread) } else { String::new() },
            mark.to_string(),
        ]
    }
}

#[cfg(test)]
#[path = "compare_tests.rs"]
mod tests;

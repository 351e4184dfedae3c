//! `results.jsonl`: one JSON object per engine and row. What is missing is `None`; what is broken
//! is an error that names file and line.

use crate::engine::Unsupported;
use crate::interval;
use crate::over_time::OverTime;
use crate::plan::Unit;
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Deserializer};
use std::path::{Path, PathBuf};

/// The file in a directory of results.
pub(crate) const FILE_NAME: &str = "results.jsonl";

/// One engine in one row.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Record {
    pub suite: Option<String>,
    pub section: Option<String>,
    /// What the section is about.
    pub title: Option<String>,
    /// Which table of which document it repeats.
    pub table: Option<String>,
    pub row: String,
    /// What the case that measures it calls it.
    pub key: Option<String>,
    pub engine: String,
    pub version: Option<String>,
    pub class: Option<String>,
    pub unit: Option<Unit>,
    pub value: Option<f64>,
    /// The ratio that is aimed at; 0 for none, as for a rate that all are held to.
    pub target: Option<f64>,
    pub ratio_limit: Option<f64>,
    pub spread: Option<f64>,
    pub interval: Option<(f64, f64)>,
    pub runs: Option<Vec<f64>>,
    pub p50_us: Option<f64>,
    pub p99_us: Option<f64>,
    pub p999_us: Option<f64>,
    pub max_us: Option<f64>,
    /// Pairs of percentile and microseconds.
    pub hist: Option<Vec<(f64, f64)>>,
    pub cpu_s: Option<f64>,
    pub written_bytes: Option<f64>,
    pub peak_memory_bytes: Option<f64>,
    pub disk_bytes: Option<f64>,
    pub entries: Option<f64>,
    pub key_len: Option<u64>,
    pub value_size: Option<String>,
    /// What keys look like.
    pub keys: Option<String>,
    pub memory_bytes: Option<f64>,
    pub memory_limit_bytes: Option<f64>,
    pub compression: Option<bool>,
    pub sync: Option<bool>,
    pub seed: Option<u64>,
    pub sync_delay_ms: Option<f64>,
    pub device_fdatasync_us: Option<f64>,
    pub device_waits_per_op: Option<f64>,
    pub threads: Option<Vec<Thread>>,
    pub writer: Option<Writer>,
    pub over_time: Option<OverTime>,
    pub cv: Option<f64>,
    pub settings: Option<String>,
    pub note: Option<String>,
    pub failed: Option<String>,
    pub missing: Option<String>,
    /// What measured it, as a shell takes it.
    #[serde(deserialize_with = "command")]
    pub command: Option<String>,
    pub cpu: Option<String>,
    pub cores: Option<u64>,
    pub kernel: Option<String>,
    pub read_ahead_kib: Option<u64>,
    pub date: Option<String>,
    pub bench_version: Option<String>,
    /// What was not quiet on the machine, in a sentence without its end.
    pub unquiet: Option<String>,
}

/// One thread's throughput over time.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Thread {
    pub name: String,
    pub window_s: f64,
    /// A window without a figure is `None`.
    pub ops_per_s: Vec<Option<f64>>,
}

/// The writer beside readers.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Writer {
    /// 0 where it was held to no rate.
    pub wanted_per_s: f64,
    pub ops_per_s: f64,
}

/// The words of a command in one line.
fn command<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let words = Option::<Vec<String>>::deserialize(from)?;
    Ok(words.map(|words| words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")))
}

/// A word, quoted where a shell needs that.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./,:+@%".contains(c);
    match word.is_empty() || !word.chars().all(plain) {
        true => format!("'{}'", word.replace('\'', r"'\''")),
        false => word.to_string(),
    }
}

/// The file of results that a path means: itself, or the one in a directory.
pub(crate) fn file_of(path: &Path) -> Result<PathBuf> {
    let file = if path.is_dir() { path.join(FILE_NAME) } else { path.to_path_buf() };
    if !file.is_file() {
        bail!(
            "{} is not there; `esker bench --out DIR` writes it, and DIR is what is asked for here",
            file.display()
        );
    }
    Ok(file)
}

/// Reads all lines. Where an engine has a row twice, the later one counts.
pub(crate) fn read(path: &Path) -> Result<Vec<Record>> {
    let file = file_of(path)?;
    let content = std::fs::read_to_string(&file)
        .with_context(|| format!("cannot read {}", file.display()))?;
    let records = parse(&content).map_err(|e| e.context(format!("in {}", file.display())))?;
    if records.is_empty() {
        bail!("{} has no results; a run that ended early leaves none", file.display());
    }
    Ok(records)
}

/// The records of a file's text.
pub(crate) fn parse(content: &str) -> Result<Vec<Record>> {
    let mut records: Vec<Record> = Vec::new();
    for (i, line) in content.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let record: Record = serde_json::from_str(line)
            .with_context(|| format!("line {} is not a result; repair or remove it", i + 1))?;
        if record.engine.is_empty() || record.row.is_empty() {
            bail!("line {} names no engine or no row; repair or remove it", i + 1);
        }
        match records.iter_mut().find(|known| known.same_cell(&record)) {
            Some(known) => *known = record,
            None => records.push(record),
        }
    }
    Ok(records)
}

impl Record {
    fn same_cell(&self, other: &Record) -> bool {
        self.row == other.row
            && self.engine == other.engine
            && self.section == other.section
            && self.suite == other.suite
    }

    /// What its value counts.
    pub fn unit(&self) -> Unit {
        self.unit.unwrap_or(Unit::OpsPerSecond)
    }

    /// The value, where there is one that counts.
    pub fn figure(&self) -> Option<f64> {
        self.value.filter(|v| v.is_finite() && *v >= 0.0 && self.absent().is_none())
    }

    /// In two words why there is no value; `None` where there is one.
    pub fn absent(&self) -> Option<&'static str> {
        if self.missing.is_some() {
            return Some("not installed");
        }
        match &self.failed {
            Some(why) => Some(Unsupported::words(why).unwrap_or("failed")),
            None if self.value.is_none() => Some("not measured"),
            None => None,
        }
    }

    /// The whole reason why there is no value.
    pub fn reason(&self) -> Option<&str> {
        self.missing.as_deref().or(self.failed.as_deref())
    }

    /// From where to where the median lies; of results of older runs, which took two for enough, by the repetitions.
    pub fn interval(&self) -> Option<(f64, f64)> {
        let told = self.runs.as_deref().map_or(self.interval, interval::of_median);
        told.filter(|(low, high)| low.is_finite() && high.is_finite())
    }

    /// The same, or of few repetitions from the lowest to the highest.
    pub fn reach(&self) -> Option<(f64, f64)> {
        self.interval().or_else(|| interval::range(self.runs.as_deref()?))
    }

    /// How wide that is, as a part of the figure.
    pub fn width(&self) -> Option<f64> {
        let (low, high) = self.interval()?;
        Some((high - low) / self.figure().filter(|value| *value > 0.0)?)
    }

    /// What the device took beside a row of synced writes.
    pub fn device(&self) -> Option<String> {
        let us = super::format::micros(self.device_fdatasync_us?);
        let waits = self
            .device_waits_per_op
            .map_or_else(String::new, |n| format!(", {n:.2} waits a write"));
        Some(format!("{us} an fdatasync beside it{waits}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_fields_are_none_and_a_command_becomes_a_line() {
        let line = r#"{"engine":"x","row":"r","value":2.5,"command":["a b","--c"],
            "threads":[{"name":"r","window_s":0.5,"ops_per_s":[1,null]}],
            "unknown":[1]}"#;
        let record = &parse(&line.replace('\n', " ")).unwrap()[0];
        assert_eq!(record.figure(), Some(2.5));
        assert_eq!(record.command.as_deref(), Some("'a b' --c"));
        assert_eq!(record.threads.as_ref().unwrap()[0].ops_per_s, [Some(1.0), None]);
        assert_eq!(record.hist, None);
    }

    #[test]
    fn a_broken_line_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(FILE_NAME);
        std::fs::write(&file, "{\"engine\":\"a\",\"row\":\"b\"}\n\n{\"engine\":\"a\",").unwrap();
        let error = format!("{:#}", read(dir.path()).unwrap_err());
        assert!(error.contains(FILE_NAME) && error.contains("line 3"), "{error}");
        std::fs::write(&file, "{\"engine\":\"a\"}\n").unwrap();
        let error = format!("{:#}", read(&file).unwrap_err());
        assert!(error.contains("line 1 names no engine or no row"), "{error}");
        std::fs::write(&file, "{\"engine\":\"a\",\"row\":\"b\",\"unit\":\"ells\"}\n").unwrap();
        let error = format!("{:#}", read(&file).unwrap_err());
        assert!(error.contains("line 1") && error.contains("`ells`"), "{error}");
        std::fs::write(&file, "\n").unwrap();
        assert!(format!("{:#}", read(&file).unwrap_err()).contains("has no results"));
        let error = format!("{:#}", read(&dir.path().join("none")).unwrap_err());
        assert!(error.contains("esker bench --out DIR"), "{error}");
    }

    #[test]
    fn the_later_of_two_counts_and_failures_have_no_figure() {
        let lines = "{\"engine\":\"a\",\"row\":\"b\",\"value\":1}\n\
                     {\"engine\":\"a\",\"row\":\"b\",\"value\":2,\"failed\":\"not supported: x\"}";
        let records = parse(lines).unwrap();
        assert_eq!(records.len(), 1);
        assert_eq!((records[0].figure(), records[0].absent()), (None, Some("not supported")));
    }
}

//! A line of `results.jsonl`: one engine in one row, with all that is needed to repeat it. It is written and read back as
//! this one type; what a file does not have, or has as `null`, is `None`.

use crate::engine::Unsupported;
use crate::interval;
use crate::measure::Series;
use crate::over_time::{OverTime, Sustained};
use crate::plan::Unit;
use crate::protocol::WriterSide;
use serde::{Deserialize, Deserializer, Serialize};

/// One engine in one row.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
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
    /// The value, where it counts operations a second.
    pub ops_per_s: Option<f64>,
    /// Operations and seconds behind it.
    pub ops: Option<u64>,
    pub seconds: Option<f64>,
    /// The ratio that is aimed at; 0 for none, as for a rate that all are held to.
    pub target: Option<f64>,
    /// Which of the machine's limits is its own.
    pub limit: Option<String>,
    pub ratio_limit: Option<f64>,
    pub ratio_best_peer: Option<f64>,
    /// Whether its place among those of its class is more than chance.
    pub told_apart: Option<bool>,
    /// How often the run measured everything.
    pub repetitions: Option<u32>,
    pub runs: Option<Vec<f64>>,
    pub spread: Option<f64>,
    pub interval: Option<(f64, f64)>,
    pub p50_us: Option<f64>,
    pub p99_us: Option<f64>,
    pub p999_us: Option<f64>,
    pub max_us: Option<f64>,
    /// How many operations were timed one by one.
    pub timed_ops: Option<u64>,
    /// Pairs of percentile and microseconds.
    pub hist: Option<Vec<(f64, f64)>>,
    pub worst_quarter_ops_per_s: Option<f64>,
    pub best_quarter_ops_per_s: Option<f64>,
    pub cv: Option<f64>,
    pub threads: Option<Vec<Thread>>,
    pub writer: Option<WriterSide>,
    pub over_time: Option<OverTime>,
    pub sustained: Option<Sustained>,
    pub cpu_s: Option<f64>,
    #[serde(deserialize_with = "whole")]
    pub written_bytes: Option<u64>,
    pub read_bytes: Option<u64>,
    #[serde(deserialize_with = "whole")]
    pub peak_memory_bytes: Option<u64>,
    pub peak_private_bytes: Option<u64>,
    pub peak_mapped_bytes: Option<u64>,
    pub peak_dirty_bytes: Option<u64>,
    #[serde(deserialize_with = "whole")]
    pub disk_bytes: Option<u64>,
    #[serde(deserialize_with = "whole")]
    pub entries: Option<u64>,
    pub key_len: Option<usize>,
    pub value_size: Option<String>,
    /// Bytes of all keys and values.
    pub raw_bytes: Option<u64>,
    /// What keys look like.
    pub keys: Option<String>,
    #[serde(deserialize_with = "whole")]
    pub memory_bytes: Option<u64>,
    #[serde(deserialize_with = "whole")]
    pub memory_limit_bytes: Option<u64>,
    pub compression: Option<bool>,
    pub sync: Option<bool>,
    pub seed: Option<u64>,
    pub sync_delay_ms: Option<f64>,
    pub device_fdatasync_us: Option<f64>,
    pub device_waits_per_op: Option<f64>,
    pub settings: Option<String>,
    pub note: Option<String>,
    pub failed: Option<String>,
    pub missing: Option<String>,
    /// What measured it, word by word.
    pub command: Option<Vec<String>>,
    pub cpu: Option<String>,
    pub cores: Option<usize>,
    pub kernel: Option<String>,
    pub os: Option<String>,
    pub read_ahead_kib: Option<u64>,
    pub date: Option<String>,
    pub bench_version: Option<String>,
    /// Processes that wanted to run before the run.
    pub load_before: Option<f64>,
    /// The share of the processors that others took during it.
    pub others_cpu: Option<f64>,
    pub stolen_cpu: Option<f64>,
    /// What was not quiet on the machine, in a sentence without its end.
    pub unquiet: Option<String>,
    /// Whether the machine had not come to rest before it.
    pub restless: Option<bool>,
}

/// One thread's throughput over time.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Thread {
    pub name: String,
    pub window_s: f64,
    /// A window without a figure is `None`.
    pub ops_per_s: Vec<Option<f64>>,
}

impl From<&Series> for Thread {
    fn from(series: &Series) -> Thread {
        let ops_per_s = series.ops_per_s.iter().map(|rate| Some(*rate)).collect();
        Thread { name: series.name.clone(), window_s: series.window_s, ops_per_s }
    }
}

/// A count, which other programs may have written as a number with a point.
fn whole<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    Ok(Option::<f64>::deserialize(from)?.map(|count| count as u64))
}

/// A word, quoted where a shell needs that.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./,:+@%".contains(c);
    match word.is_empty() || !word.chars().all(plain) {
        true => format!("'{}'", word.replace('\'', r"'\''")),
        false => word.to_string(),
    }
}

impl Record {
    /// Whether both are of one engine in one row.
    pub fn same_cell(&self, other: &Record) -> bool {
        self.row == other.row
            && self.engine == other.engine
            && self.section == other.section
            && self.suite == other.suite
    }

    /// What measured it, as a shell takes it.
    pub fn command_line(&self) -> Option<String> {
        let words = self.command.as_ref()?.iter().map(|word| quoted(word));
        Some(words.collect::<Vec<_>>().join(" "))
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

    /// The value as it is to be shown, or in two words why there is none.
    pub fn shown(&self, show: impl Fn(f64) -> String) -> String {
        match self.figure() {
            Some(value) => show(value),
            None => self.absent().unwrap_or("not measured").to_string(),
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
        let line = r#"{"engine":"x","row":"r","value":2.5,"command":["a b","--c"],"entries":2e3,
            "threads":[{"name":"r","window_s":0.5,"ops_per_s":[1,null]}],
            "unknown":[1]}"#;
        let record: Record = serde_json::from_str(line).unwrap();
        assert_eq!((record.figure(), record.entries), (Some(2.5), Some(2000)));
        assert_eq!(record.command_line().as_deref(), Some("'a b' --c"));
        assert_eq!(record.threads.as_ref().unwrap()[0].ops_per_s, [Some(1.0), None]);
        assert_eq!(record.hist, None);
    }
}

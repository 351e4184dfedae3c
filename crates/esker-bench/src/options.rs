//! The options of `esker bench`, which starts this crate's binary.

use crate::data::{FileFormat, KeyShape, ValueSize, pack};
use crate::engines;
use crate::plan::{Plan, Row};
use crate::suites::{Base, Section, Suite};
use crate::tuning;
use anyhow::{Result, bail, ensure};
use std::path::{Path, PathBuf};

/// Compares Esker with other embedded stores on this machine.
#[derive(Debug, Clone, clap::Args)]
pub struct BenchOptions {
    /// Engines to compare, by name, separated by commas; `all` stands for every one [default: all]
    ///
    /// NAME-system, such as rocksdb-system, is the same engine with the distribution's library, also where --setup
    /// made one; NAME-default, such as rocksdb-default, is the engine with its library's own defaults, memory
    /// too. `--list` shows them.
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub engines: Vec<String>,

    /// Documents to repeat, separated by commas [default: core, or file where there is a --file]
    ///
    /// The suites of documents have settings of their own; of those given here only the number of
    /// entries, the shape of keys, seeds, seconds and engines matter to them.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "SUITES")]
    pub suite: Vec<Suite>,

    /// Your own data, one entry a line: keys and values of the suite file
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,

    /// How the lines of --file are written [default: by its name, else tsv]
    #[arg(long, value_enum, requires = "file", value_name = "FORMAT")]
    pub format: Option<FileFormat>,

    /// What is the key in --file: a field of the JSON objects; a column, by number or by its name in
    /// the first line [default for tsv: 1]
    #[arg(long, requires = "file", value_name = "FIELD")]
    pub key: Option<String>,

    /// Rows to measure, by name; `*` stands for anything: `fill*`, `leveldb2011/2C/*` [default: all]
    #[arg(long, value_delimiter = ',', value_name = "ROWS")]
    pub rows: Vec<String>,

    /// List the rows and engines and stop
    #[arg(long)]
    pub list: bool,

    /// Install or build the engines that are missing, of --engines or all, say what was done, and stop
    #[arg(long)]
    pub setup: bool,

    /// Where the sources of Esker are, for --setup [default: where this was built]
    #[arg(long, value_name = "DIR", requires = "setup")]
    pub source: Option<PathBuf>,

    /// Entries in the store; k and m stand for thousands and millions
    #[arg(long, default_value = "1m", value_parser = parse_count, value_name = "N")]
    pub entries: u64,

    /// What keys look like
    #[arg(long, value_enum, default_value_t, value_name = "SHAPE")]
    pub keys: KeyShape,

    /// Bytes of a value: a number, a range as in 80..1000, or zipf:16..4096 (mostly short)
    #[arg(long, default_value = "100", value_name = "SIZE")]
    pub value_size: ValueSize,

    /// Memory for each engine's own use, in MiB: in core, file and the queues of motion; other tables have their own
    #[arg(long, default_value_t = 128, value_name = "MIB")]
    pub memory: u64,

    /// Let engines compress (the row disk.compressed does so anyway)
    #[arg(long)]
    pub compression: bool,

    /// Random fills write each key once, instead of drawing every key from all of them
    #[arg(long)]
    pub unique: bool,

    /// How often everything is measured, rows that are shorter than a second in all more often; the
    /// median counts
    #[arg(long, alias = "repetitions", default_value_t = 5, value_name = "TIMES")]
    pub repeat: u32,

    /// Minutes after which nothing is measured once more [default: none for core and file alone, else
    /// 40 for each suite]
    #[arg(long, value_name = "MINUTES")]
    pub minutes: Option<f64>,

    /// Threads of the row fillsyncN
    #[arg(long, default_value_t = 16, value_name = "N")]
    pub threads: u64,

    /// Makes each wait for the device take so many milliseconds longer, for all engines alike: what rows of synced
    /// writes are where the device is slower than this one [default: none]
    #[arg(long, default_value_t = 0.0, hide_default_value = true, value_name = "MS")]
    pub sync_delay: f64,

    /// Readers beside the throttled writer, a row for each number
    #[arg(long, value_delimiter = ',', default_values_t = [1, 4], value_name = "NUMBERS")]
    pub readers: Vec<u64>,

    /// Seconds of a row that is measured by time [default: 5, 2 with --quick; less with a --scale
    /// below 1]
    #[arg(long, value_name = "SECONDS")]
    pub seconds: Option<f64>,

    /// Seconds of a row in which a store is overwritten without limit [default: 60, 1 with --quick; less
    /// with a --scale below 1]
    #[arg(long, value_name = "SECONDS")]
    pub sustained_seconds: Option<f64>,

    /// Seconds after which a row that counts operations stops (in motion only queues do), and counts those it did [default: 1
    /// with --quick, else 4 in documents' suites and the queues of motion, and none in core and file];
    /// rows of first are as in their own suites
    #[arg(long, value_name = "SECONDS")]
    pub row_seconds: Option<f64>,

    /// Seconds that a load may take which is not measured, or the rows that need it are too slow
    /// [default: 240 in documents' suites and motion, but for its queues, and no limit in core and file]
    #[arg(long, value_name = "SECONDS")]
    pub load_seconds: Option<f64>,

    /// Multiplies the entries, and the stores that are otherwise larger than memory
    #[arg(long, default_value_t = 1.0, value_name = "FACTOR")]
    pub scale: f64,

    /// A first impression in a few minutes: a tenth of the entries, measured once
    #[arg(long)]
    pub quick: bool,

    /// Memory and page cache together for rows larger than memory, in MiB; core has such rows only if
    /// this is given, documents choose it themselves otherwise
    #[arg(long, value_name = "MIB")]
    pub memory_limit: Option<u64>,

    /// Where the stores are made [default: a temporary directory below TMPDIR, or here]
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,

    /// Writes one JSON object per engine and row to a file, or to standard output for `-`
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Writes results.jsonl and reports to a directory; each result as soon as it is there
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Seed of keys and values
    #[arg(long, default_value_t = 301, value_name = "N")]
    pub seed: u64,

    /// Seconds after which a process that measures is given up [default: by the entries]
    #[arg(long, value_name = "SECONDS")]
    pub timeout: Option<u64>,

    /// Sets an engine's own setting: for adapters that have variants
    #[arg(long = "set", value_name = "NAME=VALUE", hide = true)]
    pub tuning: Vec<String>,
}

fn parse_count(s: &str) -> Result<u64, String> {
    let lower = s.to_ascii_lowercase();
    let (digits, factor) = match lower.strip_suffix('k') {
        Some(d) => (d, 1e3),
        None => lower.strip_suffix('m').map_or((lower.as_str(), 1.0), |d| (d, 1e6)),
    };
    let number: f64 = digits.parse().map_err(|_| format!("'{s}' is not a number"))?;
    if number * factor >= 1.0 && number * factor <= 1e12 {
        Ok((number * factor) as u64)
    } else {
        Err(format!("{s} is not between 1 and 10^12"))
    }
}

impl BenchOptions {
    /// Names of the engines that take part.
    pub fn engine_names(&self) -> Result<Vec<String>> {
        let all = || engines::NAMES.iter().map(|n| n.to_string()).collect();
        let is_all = self.engines.is_empty() || self.engines.iter().any(|name| name == "all");
        let names = if is_all { all() } else { self.engines.clone() };
        for name in &names {
            if !engines::exists(name) {
                bail!("no engine is called {name}; there are {}", engines::NAMES.join(", "));
            }
        }
        Ok(names)
    }

    /// Whether a row is asked for: by its name, by what it is called elsewhere, or with its suite
    /// and section.
    pub fn wants_row(&self, row: &Row) -> bool {
        let names = [&row.name, &row.key, &row.path()];
        let wanted = |pattern: &String| names.iter().any(|name| matches(pattern, name));
        self.rows.is_empty() || self.rows.iter().any(wanted)
    }

    /// How often everything is measured.
    pub fn repetitions(&self) -> u32 {
        if self.quick { 1 } else { self.repeat.max(1) }
    }

    /// Seconds that the machine is given to come to rest before a process.
    pub fn seconds_of_rest(&self) -> f64 {
        if self.quick { 0.5 } else { 5.0 }
    }

    /// Seconds after which nothing is measured once more.
    pub fn seconds_to_repeat(&self) -> Option<f64> {
        let suites = Suite::wanted(&self.suite, self.file.is_some());
        let of_documents = suites.iter().any(|s| !matches!(s, Suite::Core | Suite::File));
        let usual = of_documents.then_some(40.0 * suites.len() as f64);
        Some(self.minutes.or(usual)? * 60.0)
    }

    /// The tables that are asked for.
    pub fn sections(&self, base: &Base) -> Vec<Section> {
        let suites = Suite::wanted(&self.suite, self.file.is_some());
        let mut all: Vec<Section> = Vec::new();
        for section in suites.into_iter().flat_map(|suite| suite.sections(base)) {
            if !all.iter().any(|known| (known.suite, &known.id) == (section.suite, &section.id)) {
                all.push(section);
            }
        }
        all
    }

    /// What suites start from. The user's file is packed into `dir`.
    pub fn base(&self, dir: &Path) -> Result<Base> {
        let mut base = self.base_without_file()?;
        if self.suite.contains(&Suite::File) {
            ensure!(self.file.is_some(), "the suite file needs your data: --file FILE");
        }
        if let Some(source) = &self.file {
            let packed = dir.join("packed");
            let entries = pack(source, self.file_format(source), self.key.as_deref(), &packed)?;
            base.file = Some((packed, entries));
        }
        Ok(base)
    }

    /// The same where the user's data does not matter.
    pub fn base_without_file(&self) -> Result<Base> {
        Ok(Base {
            plan: self.plan()?,
            file: None,
            memory_limit: self.memory_limit.map(|mib| mib << 20),
            seconds_max: 4.0,
            scale: self.scale_in_all(),
        })
    }

    fn scale_in_all(&self) -> f64 {
        self.scale * if self.quick { 0.1 } else { 1.0 }
    }

    /// Whoever asks for a part of the entries wants to wait for a part of the time.
    fn usual_seconds(&self, quick: f64, whole: f64) -> f64 {
        let seconds = if self.quick { quick } else { whole };
        (seconds * self.scale.min(1.0)).max(0.1)
    }

    fn file_format(&self, source: &Path) -> FileFormat {
        let extension = source.extension().and_then(|e| e.to_str()).unwrap_or("");
        let by_name = match extension {
            "jsonl" | "ndjson" | "json" => FileFormat::Jsonl,
            _ => FileFormat::Tsv,
        };
        self.format.unwrap_or(by_name)
    }

    /// Sizes and settings.
    fn plan(&self) -> Result<Plan> {
        // Upper bounds are of no machine and no life, and keep sums below what a number holds.
        let mib = |name: &str, value: u64, least: u64| {
            let most = 1 << 24;
            ensure!((least..=most).contains(&value), "--{name} is {least} to {most} MiB");
            Ok(())
        };
        let seconds = |name: &str, value: Option<f64>, least: f64| {
            let fits = value.is_none_or(|s| (least..=1e8).contains(&s));
            ensure!(fits, "--{name} is {least} to 100000000");
            Ok(())
        };
        mib("memory", self.memory, 1)?;
        mib("memory-limit", self.memory_limit.unwrap_or(16), 16)?;
        ensure!((1..=65_536).contains(&self.threads), "--threads is 1 to 65536");
        ensure!(self.repeat <= 10_000, "--repeat is at most 10000");
        ensure!(self.readers.iter().all(|n| *n <= 65_536), "--readers are at most 65536");
        seconds("seconds", self.seconds, 0.3)?;
        seconds("sustained-seconds", self.sustained_seconds, 0.1)?;
        seconds("row-seconds", self.row_seconds, 0.1)?;
        seconds("load-seconds", self.load_seconds, 1e-3)?;
        seconds("minutes", self.minutes, 1e-3)?;
        ensure!((0.0..=10_000.0).contains(&self.sync_delay), "--sync-delay is 0 to 10000 ms");
        ensure!(self.scale > 0.0 && self.scale <= 1e9, "--scale is above 0 and at most 10^9");
        ensure!(
            self.entries as f64 * self.scale <= 1e12,
            "--entries times --scale are more than 10^12"
        );
        let entries = ((self.entries as f64 * self.scale_in_all()) as u64).max(1);
        let seconds = self.seconds.unwrap_or_else(|| self.usual_seconds(2.0, 5.0));
        Ok(Plan {
            entries,
            keys: self.keys,
            value_size: self.value_size.to_string(),
            file: None,
            memory: self.memory << 20,
            compression: self.compression,
            unique: self.unique,
            seed: self.seed,
            batch: 1000,
            sync_ops: (entries / 100).clamp(self.threads, 10_000.max(self.threads)),
            sync_threads: self.threads,
            sync_delay_ms: self.sync_delay,
            large_ops: (entries / 1000).max(1),
            large_len: 100_000,
            readers: self.readers.clone(),
            writer_rate: 10_000.0,
            seconds,
            seconds_min: if self.quick { 0.0 } else { seconds.min(1.0) },
            seconds_max: self.row_seconds.or(self.quick.then_some(1.0)),
            load_seconds_max: self.load_seconds,
            memory_limit: None,
            tuning: tuning::parse(&self.tuning)?,
            sustained_seconds: self
                .sustained_seconds
                .unwrap_or_else(|| self.usual_seconds(1.0, 60.0)),
            writers: 1,
            remembers: false,
        })
    }
}

/// Whether `name` fits a pattern in which `*` stands for anything.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((head, tail)) => {
            let Some(rest) = name.strip_prefix(head) else { return false };
            (0..=rest.len()).any(|i| rest.is_char_boundary(i) && matches(tail, &rest[i..]))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_a_shell() {
        assert!(matches("fill*", "fillseq") && matches("*.settled", "readseq.settled"));
        assert!(matches("read*q", "readseq") && matches("*", ""));
        assert!(!matches("fill", "fillseq") && !matches("fill*x", "fillseq"));
    }

    #[test]
    fn counts_have_suffixes() {
        assert_eq!(parse_count("20M"), Ok(20_000_000));
        assert_eq!(parse_count("1.5k"), Ok(1500));
        assert!(parse_count("0").is_err() && parse_count("many").is_err());
    }
}

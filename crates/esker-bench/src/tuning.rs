//! Settings of an engine's variants, by name: which there are, and how an adapter reads its own. `--set NAME=VALUE` is for every
//! engine that has a setting of that name, `--set ENGINE.NAME=VALUE`, as documents have them, for one engine and its forks.

use crate::engine::Config;
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;

/// The settings that there are, by engine. Each adapter says what its own mean.
const SETTINGS: [(&str, &str); 8] = [
    ("lmdb", "page_size"),
    ("leveldb", "write_buffer cache verify_checksums paranoid_checks defaults"),
    ("rocksdb", "write_buffer cache mmap_reads verify_checksums wal_recovery scan_flush defaults"),
    ("sqlite", "mmap defaults"),
    ("kyoto", "psiz"),
    ("wiredtiger", "bulk leaf_page_max chunk_size table defaults"),
    ("redb", "check_integrity"),
    (
        HIDDEN,
        "delay_us slow_every slow_us lose_every corrupt_every short_every panic_at hang_at close_ms \
         on_damage truth",
    ),
];

/// The engine that is there for tests.
const HIDDEN: &str = "fake";

/// What `name` is called where it is set for this engine alone.
fn of_engine<'a>(name: &'a str, engine: &str) -> Option<&'a str> {
    name.strip_prefix(engine)?.strip_prefix('.')
}

impl Config {
    /// The setting of that name, set for all or for this engine.
    pub fn setting(&self, engine: &str, name: &str) -> Option<&str> {
        let mut all = self.tuning.iter();
        let own = || Some(all.find(|(set, _)| of_engine(set, engine) == Some(name))?.1);
        self.tuning.get(name).or_else(own).map(String::as_str)
    }

    /// The same as a number.
    pub fn number(&self, engine: &str, name: &str) -> Result<Option<u64>> {
        let parse = |text: &str| {
            let number = text.parse();
            number.with_context(|| format!("--set {name}={text}: not a number of zero or more"))
        };
        self.setting(engine, name).map(parse).transpose()
    }

    /// Whether it is a number above zero.
    pub fn is_on(&self, engine: &str, name: &str) -> Result<bool> {
        Ok(self.number(engine, name)?.unwrap_or(0) != 0)
    }

    /// Whether the engine is taken as it comes: nothing is set that its library has a default for.
    pub fn as_it_comes(&self, engine: &str) -> Result<bool> {
        self.is_on(engine, "defaults")
    }
}

/// What `--set` sets.
pub fn parse(settings: &[String]) -> Result<BTreeMap<String, String>> {
    let pair = |setting: &String| {
        let pair = setting.split_once('=');
        let (name, value) =
            pair.with_context(|| format!("--set takes NAME=VALUE, not {setting}"))?;
        if !is_known(name) {
            bail!("--set {setting}: no engine has a setting of that name; there are {}", told());
        }
        Ok((name.to_string(), value.to_string()))
    };
    settings.iter().map(pair).collect()
}

fn is_known(name: &str) -> bool {
    let has = |(engine, names): &(&str, &str)| {
        let name = of_engine(name, engine).unwrap_or(name);
        names.split_whitespace().any(|known| known == name)
    };
    SETTINGS.iter().any(has)
}

fn told() -> String {
    let shown = SETTINGS.iter().filter(|(engine, _)| *engine != HIDDEN);
    let lines: Vec<String> =
        shown.map(|(engine, names)| format!("{engine}: {}", names.replace(' ', ", "))).collect();
    lines.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_that_no_engine_has_is_refused_with_those_that_there_are() {
        let set = |setting: &str| parse(&[setting.to_string()]);
        for known in ["cache=1", "leveldb.cache=1", "kyoto.psiz=1", "wiredtiger.table=a=b"] {
            let (name, value) = known.split_once('=').unwrap();
            assert_eq!(set(known).unwrap().get(name).map(String::as_str), Some(value));
        }
        for unknown in ["cahce=1", "leveldb.psiz=1", "lmdb.cache=1", "leveldb=1", "=1"] {
            let error = set(unknown).unwrap_err().to_string();
            assert!(error.contains("no engine has a setting"), "{error}");
            assert!(error.contains("leveldb: write_buffer") && !error.contains("fake"), "{error}");
        }
        assert!(set("cache").is_err());
    }

    #[test]
    fn what_is_set_for_all_comes_before_what_a_document_has_for_one() {
        let mut config = crate::conformance::config(crate::engine::Sync::Buffered, false);
        config.tuning.insert("kyoto.psiz".to_string(), "1024".to_string());
        assert_eq!(config.number("kyoto", "psiz").unwrap(), Some(1024));
        assert_eq!(config.setting("leveldb", "psiz"), None);
        config.tuning.insert("psiz".to_string(), "8192".to_string());
        assert_eq!(config.number("kyoto", "psiz").unwrap(), Some(8192));
        config.tuning.insert("psiz".to_string(), "large".to_string());
        assert!(config.is_on("kyoto", "psiz").is_err());
    }

    /// What the suites set is a setting too.
    #[test]
    fn documents_set_what_there_is() {
        for section in crate::suites::Suite::All.sections(&crate::suites::tests::base()) {
            for case in &section.cases {
                let unknown = case.plan.tuning.keys().find(|name| !is_known(name));
                assert_eq!(unknown, None, "{}", section.id);
            }
        }
    }
}

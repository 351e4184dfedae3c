//! What all engines of a section were given alike, in a line.

use super::format;
use super::input::Record;
use super::model::Section;

impl Section {
    /// Sizes, memory, compression, durability and seed, as far as they are known.
    pub(crate) fn settings_line(&self) -> String {
        let records: Vec<&Record> = self.rows.iter().flat_map(|r| &r.records).collect();
        let mut all = parts(&records);
        all.extend(words(&records, &|r| r.seed.clone()).map(|w| format!("seed {w}")));
        sentence(&all)
    }
}

/// Sizes, memory, compression and durability that these share, each in some words.
pub(crate) fn parts(records: &[&Record]) -> Vec<String> {
    let numbers = |of: &dyn Fn(&Record) -> Option<f64>, show: &dyn Fn(f64) -> String| {
        span(records.iter().filter_map(|r| of(r)).collect(), show)
    };
    let words = |of: &dyn Fn(&Record) -> Option<String>| words(records, of);
    let keys = words(&|r| r.keys.clone()).map_or_else(String::new, |shape| format!("{shape} "));
    let parts = [
        numbers(&|r| r.entries, &format::grouped).map(|n| format!("{n} entries")),
        words(&|r| r.key_len.clone()).map(|n| format!("{keys}keys of {n} B")),
        words(&|r| r.value_size.clone()).map(|n| format!("values of {n} B")),
        numbers(&|r| r.memory_bytes, &format::memory)
            .map(|n| format!("{n} of memory for each engine")),
        numbers(&|r| r.memory_limit_bytes, &format::memory)
            .map(|n| format!("{n} of memory and page cache in all")),
        words(&|r| r.compression.clone()).map(|w| format!("compression {w}")),
        words(&|r| r.sync.clone()).map(|w| match w.as_str() {
            "on" => "every write waits for the device".to_string(),
            "off" => "writes do not wait for the device".to_string(),
            both => format!("sync {both}"),
        }),
    ];
    parts.into_iter().flatten().collect()
}

/// Those in a sentence.
pub(crate) fn sentence(parts: &[String]) -> String {
    let line = parts.join(", ");
    let mut letters = line.chars();
    let first = letters.next().map(|c| c.to_uppercase().collect::<String>());
    first.map_or_else(String::new, |first| format!("{first}{}.", letters.as_str()))
}

/// What at most three say.
fn words(records: &[&Record], of: &dyn Fn(&Record) -> Option<String>) -> Option<String> {
    let mut all: Vec<String> = records.iter().filter_map(|r| of(r)).collect();
    all.sort();
    all.dedup();
    (!all.is_empty() && all.len() <= 3).then(|| all.join(" / "))
}

/// One value, or from the least to the most.
fn span(mut values: Vec<f64>, show: &dyn Fn(f64) -> String) -> Option<String> {
    values.sort_by(f64::total_cmp);
    let (first, last) = (*values.first()?, *values.last()?);
    Some(if first == last { show(first) } else { format!("{} to {}", show(first), show(last)) })
}

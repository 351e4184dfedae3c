//! What all engines of a section were given alike, in a line.

use super::format;
use super::model::Section;
use super::record::Record;
use crate::interval;

impl Section {
    /// Sizes, memory, compression, durability and seed, as far as they are known.
    pub(crate) fn settings_line(&self) -> String {
        let records: Vec<&Record> = self.rows.iter().flat_map(|r| &r.records).collect();
        let seed = words(&records, &|r| Some(r.seed?.to_string())).map(|w| format!("seed {w}"));
        sentence(parts(&records).into_iter().chain([seed]))
    }
}

/// Sizes, memory, compression and durability: each in its place, in some words, as far as it is known.
pub(crate) type Parts = [Option<String>; 7];

/// What these have.
pub(crate) fn parts(records: &[&Record]) -> Parts {
    let numbers = |of: &dyn Fn(&Record) -> Option<u64>, show: &dyn Fn(f64) -> String| {
        let values: Vec<f64> = records.iter().filter_map(|r| Some(of(r)? as f64)).collect();
        span(&values, show)
    };
    let words = |of: &dyn Fn(&Record) -> Option<String>| words(records, of);
    let keys = words(&|r| r.keys.clone()).map_or_else(String::new, |shape| format!("{shape} "));
    [
        numbers(&|r| r.entries, &format::grouped).map(|n| format!("{n} entries")),
        words(&|r| Some(r.key_len?.to_string())).map(|n| format!("{keys}keys of {n} B")),
        words(&|r| r.value_size.as_deref().map(format::value_size))
            .map(|n| format!("values of {n}")),
        numbers(&|r| r.memory_bytes, &format::memory)
            .map(|n| format!("{n} of memory for each engine")),
        numbers(&|r| r.memory_limit_bytes, &format::memory)
            .map(|n| format!("{n} of memory and page cache in all")),
        words(&|r| r.compression.map(switch)).map(|w| format!("compression {w}")),
        words(&|r| r.sync.map(switch)).map(|w| match w.as_str() {
            "on" => "every write waits for the device".to_string(),
            "off" => "writes do not wait for the device".to_string(),
            both => format!("sync {both}"),
        }),
    ]
}

fn switch(on: bool) -> String {
    if on { "on" } else { "off" }.to_string()
}

/// What most of some rows have, of what each of them tells; and whether all of them do.
pub(crate) fn usual(rows: &[Parts]) -> (Parts, bool) {
    let mut for_all = true;
    let most = std::array::from_fn(|place| {
        let of_rows: Option<Vec<&String>> = rows.iter().map(|row| row[place].as_ref()).collect();
        let of_rows = of_rows?;
        let times = |part: &String| of_rows.iter().filter(|other| **other == part).count();
        let part = of_rows.iter().find(|part| 2 * times(part) > rows.len())?;
        for_all &= times(part) == rows.len();
        Some((*part).clone())
    });
    (most, for_all)
}

/// The known ones in a sentence.
pub(crate) fn sentence(parts: impl IntoIterator<Item = Option<String>>) -> String {
    let line = parts.into_iter().flatten().collect::<Vec<_>>().join(", ");
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
fn span(values: &[f64], show: &dyn Fn(f64) -> String) -> Option<String> {
    let (first, last) = interval::range(values)?;
    Some(if first == last { show(first) } else { format!("{} to {}", show(first), show(last)) })
}

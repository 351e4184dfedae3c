//! What a section's stores take: disk, memory, and bytes written for each byte of data.

use super::bars::{self, Panel};
use super::format;
use super::input::Record;
use super::layout::{Bar, Kind};
use super::model::{Section, Unit};
use super::palette;
use crate::results::OURS;

/// Panels of disk, memory and writing, where at least two engines have figures.
pub(crate) fn of_section(section: &Section, not_installed: &[&str]) -> Vec<Panel> {
    let mut panels = Vec::new();
    let engines = engines(section, not_installed);
    // A section with rows of its own for sizes has shown them already.
    if !section.rows.iter().any(|r| r.unit == Unit::Bytes)
        && let Some(row) = section.rows.iter().rev().find(|r| {
            r.records.iter().filter(|r| r.disk_bytes.is_some_and(|b| b > 0.0)).count() > 1
        })
    {
        let disk = |e: &str| row.of(e).and_then(|r| r.disk_bytes).filter(|b| *b > 0.0);
        let raw = row.records.iter().find_map(|r| r.raw_bytes);
        let raw =
            raw.map_or_else(String::new, |b| format!(" ({} of keys and values)", format::bytes(b)));
        panels.extend(panel(
            &format!("Disk after {}{raw}", row.name),
            &Unit::Bytes,
            &engines,
            &disk,
        ));
    }
    let mut peak = |title: &str, of: &dyn Fn(&Record) -> Option<f64>| {
        panels.extend(panel(title, &Unit::Bytes, &engines, &|e| most(section, e, of)));
    };
    let allocated = |r: &Record| r.peak_memory_bytes.filter(|b| *b > 0.0);
    peak("Peak memory that the process allocated", &allocated);
    peak("Peak of its files that it mapped", &|r| r.peak_mapped_bytes);
    peak("Peak of what was nowhere but in memory", &|r| r.peak_dirty_bytes);
    let unit = Unit::Other("bytes written for each byte put".to_string());
    let written = |e: &str| most(section, e, &|r| Some(r.written_bytes? / put_bytes(r)?));
    panels.extend(panel("Written to the device, the most in a row", &unit, &engines, &written));
    panels
}

fn engines(section: &Section, not_installed: &[&str]) -> Vec<String> {
    let mut engines: Vec<String> = Vec::new();
    for record in section.rows.iter().flat_map(|r| &r.records) {
        if !engines.contains(&record.engine) && !not_installed.contains(&record.engine.as_str()) {
            engines.push(record.engine.clone());
        }
    }
    engines.sort_by(|a, b| palette::order(a).cmp(&palette::order(b)));
    engines
}

/// Bytes of keys and values that were put in a row, where that is all it does.
fn put_bytes(record: &Record) -> Option<f64> {
    let key = record.key.as_deref().unwrap_or(&record.row);
    let puts = ["fill", "overwrite", "load"].iter().any(|name| key.starts_with(name));
    let bytes = record.ops.filter(|_| puts)? * record.raw_bytes? / record.entries?;
    (bytes > 0.0).then_some(bytes)
}

/// The largest that an engine has in any row that counts.
fn most(section: &Section, engine: &str, of: &dyn Fn(&Record) -> Option<f64>) -> Option<f64> {
    let records = section.rows.iter().filter_map(|row| row.of(engine));
    records.filter(|r| r.figure().is_some()).filter_map(of).reduce(f64::max)
}

fn panel(
    title: &str,
    unit: &Unit,
    engines: &[String],
    of: &dyn Fn(&str) -> Option<f64>,
) -> Option<Panel> {
    let bar = |engine: &String| {
        let value = of(engine).filter(|v| v.is_finite() && *v >= 0.0);
        Bar {
            name: palette::shown(engine).to_string(),
            mark: String::new(),
            value,
            range: None,
            shown: match value {
                Some(v) if *unit == Unit::Bytes => format::bytes(v),
                Some(v) => format::rounded(v),
                None => "not measured".to_string(),
            },
            kind: if engine == OURS { Kind::Ours } else { Kind::Peer },
        }
    };
    let bars: Vec<Bar> = engines.iter().map(bar).collect();
    let known = bars.iter().filter(|b| b.value.is_some()).count();
    (known > 1).then(|| bars::draw(title, unit, &bars))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_divided_by_what_was_put() {
        let of = |key: &str| Record {
            key: Some(key.into()),
            ops: Some(3000.0),
            entries: Some(1000.0),
            raw_bytes: Some(116_000.0),
            ..Record::default()
        };
        // A store of 116 kB, of which three times as much was put.
        assert_eq!(put_bytes(&of("overwrite")), Some(348_000.0));
        assert_eq!(put_bytes(&of("readrandom")), None);
    }
}

//! The figures of the documents whose tables the suites repeat, as they were published.

use serde::Deserialize;

const DATA: &str = include_str!("../../data/published.json");

/// A published figure.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Figure {
    /// By this benchmark's name of it.
    pub engine: String,
    pub year: u32,
    /// Operations a second.
    pub value: f64,
}

#[derive(Debug, Deserialize)]
struct Document {
    source: String,
    #[serde(default)]
    hardware: String,
    #[serde(default)]
    results: Vec<Published>,
}

#[derive(Debug, Deserialize)]
struct Published {
    section: String,
    config: Option<String>,
    workload: String,
    engine: String,
    ops_per_s: f64,
}

/// The report of 2011: where it says what it measured, and on what.
#[derive(Debug)]
pub(crate) struct Report2011 {
    pub hardware: String,
    results: Vec<Published>,
}

impl Report2011 {
    /// The figures that are part of this program.
    pub fn load() -> Report2011 {
        // Our own file, compiled in; a test reads it.
        let documents: Vec<Document> = serde_json::from_str(DATA).unwrap_or_default();
        let found = documents.into_iter().find(|d| d.source.contains("2011"));
        let (hardware, results) = found.map(|d| (d.hardware, d.results)).unwrap_or_default();
        Report2011 { hardware, results }
    }

    /// What it says of a row of its suite; nothing for rows beyond it.
    pub fn of_row(&self, suite: &str, section: &str, row: &str) -> Vec<Figure> {
        let Some(key) = Key::of_row(suite, section, row) else { return Vec::new() };
        let same = self.results.iter().filter(|p| Key::of_document(p).as_ref() == Some(&key));
        same.map(|p| Figure { engine: engine(&p.engine), year: 2011, value: p.ops_per_s }).collect()
    }
}

fn engine(name: &str) -> String {
    match name {
        "LevelDB" => "leveldb",
        "Kyoto TreeDB" => "kyoto",
        "SQLite3" => "sqlite",
        other => other,
    }
    .to_string()
}

/// What tells the measurements of the document apart.
#[derive(Debug, PartialEq, Eq)]
struct Key {
    /// `1`, `2A` to `2E`, `3A`, `3B`.
    table: String,
    writes: bool,
    sequential: bool,
}

impl Key {
    fn of_document(p: &Published) -> Option<Key> {
        let mut table = p.section.get(..1)?.to_string();
        table.push_str(p.config.as_deref().and_then(|c| c.get(..1)).unwrap_or_default());
        Some(Key {
            table,
            writes: p.workload.contains("Writes"),
            sequential: p.workload.contains("Sequential"),
        })
    }

    fn of_row(suite: &str, section: &str, row: &str) -> Option<Key> {
        if suite != "leveldb2011" {
            return None;
        }
        let table = table_of(section)?;
        let name = row.to_ascii_lowercase();
        // Rows have the document's names or those of its benchmark; rows beyond it have more words
        // in them, as readseq.settled.
        let (writes, order) = match name.split_once(' ') {
            Some((order, "writes")) => (true, order.to_string()),
            Some((order, "reads")) => (false, order.to_string()),
            Some(_) => return None,
            None => {
                let plain = name.replace(|c: char| !c.is_ascii_alphanumeric(), "");
                let fill = plain.strip_prefix("fill").map(|rest| (true, rest));
                let (writes, rest) =
                    fill.or_else(|| plain.strip_prefix("read").map(|rest| (false, rest)))?;
                let kinds = ["100k", "batch", "sync"];
                (writes, kinds.iter().fold(rest.to_string(), |s, kind| s.replace(kind, "")))
            }
        };
        let sequential = match order.as_str() {
            "seq" | "sequential" => true,
            "random" | "rand" => false,
            _ => return None,
        };
        Some(Key { table, writes, sequential })
    }
}

/// The table of a section's id or title: `2A`, "2A large values", "1 baseline", "baseline".
fn table_of(section: &str) -> Option<String> {
    let first = section.split(|c: char| !c.is_ascii_alphanumeric()).find(|w| !w.is_empty())?;
    let table = first.to_ascii_uppercase();
    match table.as_bytes() {
        b"BASELINE" => Some("1".to_string()),
        [b'1'] | [b'2', b'A'..=b'E'] | [b'3', b'A'..=b'B'] => Some(table),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_figures_are_all_there() {
        let report = Report2011::load();
        assert!(report.hardware.contains("X5650"));
        assert_eq!(report.results.len(), 52);
        for p in &report.results {
            assert!(Key::of_document(p).is_some(), "{p:?}");
        }
    }

    #[test]
    fn rows_find_their_figures_and_no_others() {
        let report = Report2011::load();
        let values = |section: &str, row: &str| -> Vec<f64> {
            report.of_row("leveldb2011", section, row).iter().map(|f| f.value).collect()
        };
        assert_eq!(values("1", "readseq"), [4_030_000.0, 1_010_000.0, 383_000.0]);
        assert_eq!(values("baseline", "fillrandom"), [164_000.0, 88_500.0, 9_860.0]);
        assert_eq!(values("2A", "fill100K.random"), [480.0, 1_100.0, 1_600.0]);
        assert_eq!(values("2B batches", "fillbatch.seq"), [840_000.0, 124_000.0]);
        assert_eq!(values("2C", "fillsync.seq"), [100.0, 7.0, 88.0]);
        assert_eq!(values("3B", "readrandom"), [149_000.0, 175_000.0, 134_000.0]);
        assert_eq!(values("2B", "Random Writes"), [221_000.0, 22_000.0]);
        assert_eq!(values("1", "Sequential Reads"), values("1", "readseq"));
        for beyond in
            ["Reverse Reads", "Hot Reads", "readseq.settled", "readreverse", "overwrite", "disk"]
        {
            assert!(values("1", beyond).is_empty(), "{beyond}");
        }
        assert!(report.of_row("core", "1", "readseq").is_empty());
    }
}

//! Reading `results.jsonl`: what is broken is an error that names file and line.

use super::record::Record;
use anyhow::{Context, Result, ensure};
use std::path::Path;

/// The file in a directory of results.
pub(crate) const FILE_NAME: &str = "results.jsonl";

/// Reads all lines of a file, or of the one in a directory. Where an engine has a row twice, the later one counts.
pub(crate) fn read(path: &Path) -> Result<Vec<Record>> {
    let file = if path.is_dir() { path.join(FILE_NAME) } else { path.to_path_buf() };
    let file = file.as_path();
    ensure!(
        file.is_file(),
        "{} is not there; `esker bench --out DIR` writes it, and DIR is what is asked for here",
        file.display()
    );
    let content =
        std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let records = parse(&content).with_context(|| format!("in {}", file.display()))?;
    ensure!(
        !records.is_empty(),
        "{} has no results; a run that ended early leaves none",
        file.display()
    );
    Ok(records)
}

/// The records of a file's text.
pub(crate) fn parse(content: &str) -> Result<Vec<Record>> {
    let mut records: Vec<Record> = Vec::new();
    for (i, line) in content.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let record: Record = serde_json::from_str(line)
            .with_context(|| format!("line {} is not a result; repair or remove it", i + 1))?;
        let is_named = !record.engine.is_empty() && !record.row.is_empty();
        ensure!(is_named, "line {} names no engine or no row; repair or remove it", i + 1);
        match records.iter_mut().find(|known| known.same_cell(&record)) {
            Some(known) => *known = record,
            None => records.push(record),
        }
    }
    Ok(records)
}

#[cfg(test)]
mod tests {
    use super::*;

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

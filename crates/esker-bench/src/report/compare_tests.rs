//! What counts as worse.

use super::*;

/// Row, engine, unit, value (none: it failed), spread.
type Cell<'a> = (&'a str, &'a str, &'a str, Option<f64>, f64);

fn results(cells: &[Cell<'_>]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let lines: Vec<String> = cells
        .iter()
        .map(|(row, engine, unit, value, spread)| {
            let failed = value.is_none().then_some("it lost data");
            serde_json::json!({"suite": "s", "section": "1", "row": row, "engine": engine,
                "unit": unit, "value": value, "spread": spread, "failed": failed})
            .to_string()
        })
        .collect();
    std::fs::write(dir.path().join("results.jsonl"), lines.join("\n")).unwrap();
    dir
}

fn verdict(before: Cell<'_>, after: Cell<'_>, threshold: f64) -> Verdict {
    let other = ("other", "esker", "ops_per_second", Some(1.0), 0.0);
    let (a, b) = (results(&[before, other]), results(&[after, other]));
    compare(a.path(), b.path(), threshold).unwrap().lines[0].verdict
}

#[test]
fn worse_is_beyond_the_threshold_and_the_spread() {
    let ops = |value: f64, spread: f64| ("r", "esker", "ops_per_second", Some(value), spread);
    assert_eq!(verdict(ops(100.0, 0.0), ops(89.0, 0.0), 10.0), Verdict::Worse);
    assert_eq!(verdict(ops(100.0, 0.0), ops(91.0, 0.0), 10.0), Verdict::Same);
    assert_eq!(verdict(ops(100.0, 0.0), ops(91.0, 0.0), 5.0), Verdict::Worse);
    assert_eq!(verdict(ops(100.0, 0.3), ops(80.0, 0.0), 10.0), Verdict::Same);
    assert_eq!(verdict(ops(100.0, 0.0), ops(80.0, 0.3), 10.0), Verdict::Same);
    assert_eq!(verdict(ops(100.0, 0.1), ops(80.0, 0.1), 10.0), Verdict::Worse);
    assert_eq!(verdict(ops(100.0, 0.0), ops(120.0, 0.0), 10.0), Verdict::Better);
}

#[test]
fn less_is_better_for_sizes_and_times() {
    for unit in ["bytes", "seconds", "milliseconds"] {
        let of = |value: f64| ("r", "esker", unit, Some(value), 0.0);
        assert_eq!(verdict(of(100.0), of(120.0), 10.0), Verdict::Worse, "{unit}");
        assert_eq!(verdict(of(100.0), of(80.0), 10.0), Verdict::Better, "{unit}");
    }
}

#[test]
fn a_row_that_fails_now_is_worse_and_one_that_is_new_is_not() {
    let ops = |value: Option<f64>| ("r", "esker", "ops_per_second", value, 0.0);
    assert_eq!(verdict(ops(Some(1.0)), ops(None), 10.0), Verdict::Broken);
    assert_eq!(verdict(ops(None), ops(Some(1.0)), 10.0), Verdict::Incomparable);
    let old = results(&[("a", "esker", "bytes", Some(1.0), 0.0)]);
    let new = results(&[
        ("a", "esker", "bytes", Some(1.0), 0.0),
        ("b", "esker", "bytes", Some(1.0), 0.0),
    ]);
    let comparison = compare(old.path(), new.path(), 10.0).unwrap();
    assert_eq!((comparison.lines.len(), comparison.worse()), (2, 0));
}

#[test]
fn the_table_and_the_json_say_the_same() {
    let old = results(&[
        ("a", "esker", "ops_per_second", Some(2_000_000.0), 0.02),
        ("a", "lmdb", "ops_per_second", Some(10.0), 0.02),
    ]);
    let new = results(&[
        ("a", "esker", "ops_per_second", Some(1_000_000.0), 0.02),
        ("a", "lmdb", "ops_per_second", Some(10.0), 0.02),
    ]);
    let comparison = compare(old.path(), new.path(), 10.0).unwrap();
    let table = comparison.table();
    assert!(table.contains("s 1 a") && table.contains("<< worse"), "{table}");
    assert!(table.contains("1 worse by more than 10 %"), "{table}");
    let json: serde_json::Value = serde_json::from_str(&comparison.json()).unwrap();
    assert_eq!(json["lines"][0]["verdict"], "worse");
    assert_eq!(json["lines"][0]["ratio"], 0.5);
    let only = compare(old.path(), new.path(), 10.0).unwrap().only("lmdb").unwrap();
    assert_eq!((only.lines.len(), only.worse()), (1, 0));
    let error = compare(old.path(), new.path(), 10.0).unwrap().only("lmbd").unwrap_err();
    assert!(error.to_string().contains("there are esker, lmdb"), "{error}");
}

#[test]
fn what_cannot_be_compared_is_an_error() {
    let old = results(&[("a", "esker", "bytes", Some(1.0), 0.0)]);
    let new = results(&[("b", "esker", "bytes", Some(1.0), 0.0)]);
    let error = format!("{:#}", compare(old.path(), new.path(), 10.0).unwrap_err());
    assert!(error.contains("in common"), "{error}");
    for threshold in [-1.0, 100.0, f64::NAN] {
        let error = compare(old.path(), old.path(), threshold).unwrap_err();
        assert!(error.to_string().contains("--threshold"), "{error}");
    }
}

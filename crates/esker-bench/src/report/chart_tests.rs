//! The picture read back: text boxes apart, bars within, lengths in proportion.

use super::*;
use crate::report::model::Model;
use crate::report::record::Record;
use roxmltree::{Document, Node};

fn number(node: &Node<'_, '_>, name: &str) -> f64 {
    node.attribute(name).unwrap().parse().unwrap()
}

/// How far the panel of a node is moved.
fn moved(node: &Node<'_, '_>) -> (f64, f64) {
    let group = node.ancestors().find_map(|n| n.attribute("transform"));
    let inner = group.map(|t| t.trim_start_matches("translate(").trim_end_matches(')'));
    let Some(inner) = inner else { return (0.0, 0.0) };
    let (x, y) = inner.split_once(' ').unwrap();
    (x.parse().unwrap(), y.parse().unwrap())
}

/// Left, top, right, bottom of a text.
fn text_box(node: &Node<'_, '_>) -> (f64, f64, f64, f64) {
    let class = node.attribute("class").unwrap();
    let size = match class.split(' ').next().unwrap() {
        "small" => 10.0,
        "title" => 14.0,
        _ => LABEL,
    };
    let (dx, dy) = moved(node);
    let (x, y) = (number(node, "x") + dx, number(node, "y") + dy);
    let width = text::width(node.text().unwrap_or(""), size);
    let left = match node.attribute("text-anchor") {
        Some("end") => x - width,
        Some("middle") => x - width / 2.0,
        _ => x,
    };
    (left, y - size * 0.72, left + width, y + size * 0.2)
}

fn sections() -> Vec<Section> {
    let mut records = Vec::new();
    let engines =
        [("esker", 4e6), ("leveldb", 1e6), ("lmdb", 2e6), ("kyoto", 3e5), ("redb", 2.5e6)];
    for (row, factor) in [
        ("Sequential Reads", 10.0),
        ("Random Reads", 1.0),
        ("Sequential Writes", 0.3),
        ("odd <&> \"row\"", 1e-3),
    ] {
        for (i, (engine, base)) in engines.iter().enumerate() {
            let value = base * factor;
            records.push(Record {
                suite: Some("leveldb2011".into()),
                section: Some("1".into()),
                engine: (*engine).into(),
                row: row.into(),
                class: Some("K".into()),
                // On a linear axis in the last row, logarithmic with the published ones elsewhere.
                value: Some(value),
                runs: Some(vec![value * 0.8, value, value * 1.2]),
                failed: (i == 3 && factor < 1.0).then(|| "not supported: no".into()),
                ..Record::default()
            });
        }
    }
    Model::new(records).sections
}

#[test]
fn no_text_overlaps_another_and_all_lie_within() {
    let file = of_suite("leveldb2011", &sections(), "<A & B>", Some("It was not quiet."));
    let document = Document::parse(&file).unwrap();
    let (width, height) =
        (number(&document.root_element(), "width"), number(&document.root_element(), "height"));
    let texts: Vec<Node<'_, '_>> =
        document.descendants().filter(|n| n.has_tag_name("text") && n.text().is_some()).collect();
    assert!(texts.len() > 60);
    let boxes: Vec<_> = texts.iter().map(text_box).collect();
    for (i, a) in boxes.iter().enumerate() {
        assert!(
            a.0 > -0.1 && a.1 > -0.1 && a.2 < width + 0.1 && a.3 < height,
            "{:?} {a:?}",
            texts[i].text()
        );
        for (k, b) in boxes.iter().enumerate().skip(i + 1) {
            let apart = a.2 <= b.0 || b.2 <= a.0 || a.3 <= b.1 || b.3 <= a.1;
            assert!(apart, "{:?} overlaps {:?}", texts[i].text(), texts[k].text());
        }
    }
}

#[test]
fn bars_lie_within_and_their_lengths_are_proportional() {
    let all = sections();
    let file = of_suite("leveldb2011", &all, "a machine", None);
    let document = Document::parse(&file).unwrap();
    let width = number(&document.root_element(), "width");
    let rects: Vec<Node<'_, '_>> =
        document.descendants().filter(|n| n.has_tag_name("rect")).collect();
    assert_eq!(
        rects.len(),
        5 + 5 + 4 + 4 + 9,
        "five engines, two without a row, and nine published"
    );
    let texts: Vec<_> = document.descendants().filter(|n| n.has_tag_name("text")).collect();
    for rect in &rects {
        let (dx, dy) = moved(rect);
        let (left, top) = (number(rect, "x") + dx, number(rect, "y") + dy);
        let (right, bottom) = (left + number(rect, "width"), top + number(rect, "height"));
        assert!(right <= width && number(rect, "width") > 1.0);
        for t in &texts {
            let b = text_box(t);
            let apart = b.2 <= left || right <= b.0 || b.3 <= top || bottom <= b.1;
            assert!(apart, "a bar overlaps {:?}", t.text());
        }
    }
    // The last row has no published figures and ratios below 20: a linear axis.
    let last: Vec<f64> = rects[rects.len() - 4..].iter().map(|r| number(r, "width")).collect();
    let values = [4000.0, 1000.0, 2000.0, 2500.0];
    for (width, value) in last.iter().zip(values) {
        assert!((width / last[0] - value / values[0]).abs() < 0.005, "{last:?}");
    }
}

#[test]
fn names_are_files() {
    assert_eq!(file_name("leveldb2011"), "chart-leveldb2011.svg");
    assert_eq!(file_name("../x y"), "chart----x-y.svg");
}

#[test]
fn it_stays_small_and_says_what_is_left_out() {
    let mut many = sections();
    let more = sections();
    many.extend(more);
    let file = of_suite("leveldb2011", &many, "a machine", None);
    let document = Document::parse(&file).unwrap();
    let texts: Vec<&str> = document.descendants().filter_map(|n| n.text()).collect();
    assert!(texts.contains(&"The first 6 of 8 rows; report.html has all."), "{texts:?}");
    assert!(texts.contains(&"Measured on a machine."));
}

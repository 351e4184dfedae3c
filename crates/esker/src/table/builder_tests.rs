//! What the builder says of a table: counts, lengths, where a reader is to look first.

use super::block::{HEADER_LEN, PAGE};
use super::footer::{FOOTER_LEN, Footer};
use super::model_tests::{Entry, Made, Value, make};
use super::{SegmentRef, TableBuilder, TableOptions};
use crate::key::{Kind, Seq, Stored, ValuePointer};
use crate::options::Compression;

fn entry(key: &str, seq: Option<Seq>, value: Value) -> Entry {
    Entry { key: key.into(), seq, value }
}

fn text(value: &str) -> Value {
    Value::Bytes(value.into())
}

fn footer(m: &Made) -> Footer {
    let bytes = std::fs::read(&m.path).unwrap();
    Footer::decode(&bytes[bytes.len() - FOOTER_LEN..], m.summary.size).unwrap()
}

#[test]
fn the_summary_counts_what_was_added() {
    let pointer =
        |segment, len| Value::Pointer(ValuePointer { segment, offset: 1, len, checksum: 2 });
    let m = make(
        vec![
            entry("ab", Some(9), text("newer")),
            entry("ab", Some(4), Value::Delete),
            entry("ac", Some(6), pointer(8, 1000)),
            entry("ad", Some(5), pointer(3, 10)),
            entry("ae", Some(7), pointer(8, 1)),
            entry("z", Some(8), Value::Delete),
        ],
        TableOptions::default(),
    );
    let s = &m.summary;
    assert_eq!((s.number, s.entries, s.tombstones, s.unique_keys), (7, 6, 2, false));
    assert_eq!((s.min_seq, s.max_seq), (4, 9));
    assert_eq!((&s.smallest[..], &s.largest[..]), (&b"ab"[..], &b"z"[..]));
    // Keys, the value, and pointers of 24 bytes.
    assert_eq!(s.raw_bytes, 2 * 5 + 1 + 5 + 3 * 24);
    let reference = |segment, bytes, count| SegmentRef { segment, bytes, count };
    assert_eq!(s.references, [reference(3, 10, 1), reference(8, 1001, 2)]);
    assert_eq!(s.size, std::fs::metadata(&m.path).unwrap().len());
    let table = m.open().unwrap();
    assert!(!table.unique_keys());
}

#[test]
fn an_entry_without_a_sequence_counts_as_the_oldest() {
    let none = make(vec![entry("a", None, text("1"))], TableOptions::default());
    assert_eq!((none.summary.min_seq, none.summary.max_seq), (0, 0));
    assert!(none.summary.unique_keys && none.open().unwrap().unique_keys());
    for first in [None, Some(30)] {
        let both = vec![
            entry("a", first, text("1")),
            entry("b", Some(40), text("2")),
            entry("c", None, text("3")),
            entry("d", Some(20), text("4")),
        ];
        let s = make(both, TableOptions::default()).summary;
        assert_eq!((s.min_seq, s.max_seq), (0, 40));
    }
}

#[test]
fn raw_bytes_are_those_of_unpacked_values() {
    let entries = |n: usize| -> Vec<Entry> {
        (0..n).map(|i| entry(&format!("{i:04}"), None, text(&"abc".repeat(100)))).collect()
    };
    for compression in [Compression::None, Compression::Lz4, Compression::Zstd] {
        let options = TableOptions { compression, ..TableOptions::default() };
        let s = make(entries(100), options).summary;
        assert_eq!(s.raw_bytes, 100 * 304);
        assert_eq!(s.size < 20_000, compression != Compression::None, "{}", s.size);
    }
}

/// A reader guesses where a record lies before it has seen the block's header.
#[test]
fn the_footer_says_where_records_begin_and_how_long_they_are() {
    let entries = |value: usize| -> Vec<Entry> {
        let value = "v".repeat(value);
        (0..300).map(|i| entry(&format!("key {i:04}"), None, text(&value))).collect()
    };
    for value in [1, 100, 1000] {
        let m = make(entries(value), TableOptions::default());
        let f = footer(&m);
        // All of one length: no slots, no tags; keys without the prefix of their block, which is
        // between five and eight bytes.
        let (first, stride) = (f.guess_first as usize, f.guess_stride as usize);
        assert!((HEADER_LEN + 5..=HEADER_LEN + 8).contains(&first), "{first}");
        assert!((256 * value..=256 * (value + 4)).contains(&stride), "{value}: {stride}");
        assert_eq!(f.blocks as usize, f.data_pages as usize, "one page each");
    }
    // Alone in its block, which is wide: the first record is behind the longer header.
    let m = make(vec![entry("k", None, Value::Bytes(vec![1; 100_000]))], TableOptions::default());
    let f = footer(&m);
    assert_eq!((f.blocks, f.data_pages), (1, 25));
    assert_eq!((f.guess_first as usize, f.guess_stride), (HEADER_LEN + 12, 256 * 100_001));
}

#[test]
fn the_estimate_grows_with_the_table() {
    let dir = tempfile::tempdir().unwrap();
    let env: std::sync::Arc<dyn crate::env::Env> = std::sync::Arc::new(crate::env::OsEnv::new());
    let path = dir.path().join("t");
    let mut b = TableBuilder::new(&env, &path, 1, TableOptions::default()).unwrap();
    assert!(b.size_estimate() < 200);
    let mut last = 0;
    for i in 0..10_000u32 {
        b.add(&i.to_be_bytes(), None, Kind::Put, Stored::Inline(&[7; 400])).unwrap();
        let estimate = b.size_estimate();
        assert!(estimate >= last, "entry {i}: {estimate} after {last}");
        last = estimate;
        let raw = u64::from(i + 1) * 401;
        assert!(estimate > raw && estimate < raw + raw / 10 + 5000, "entry {i}: {estimate}");
    }
    let size = b.finish().unwrap().size;
    assert!(size.abs_diff(last) < size / 50, "{last} for {size}");
}

/// A block grows by pages while it would leave more than a sixteenth of itself empty.
#[test]
fn little_of_a_block_is_left_empty() {
    for value in [0usize, 30, 100, 333, 700, 1000, 1400, 2100, 3000, 5000, 9000] {
        let n = (2 << 20) / (value + 20);
        let entries = (0..n).map(|i| entry(&format!("{i:08}"), None, text(&"v".repeat(value))));
        let m = make(entries.collect(), TableOptions::default());
        let raw = n * (value + 8);
        let data = footer(&m).data_pages as usize * PAGE;
        // Keys lose their prefix, so a table of keys alone may be shorter than they are.
        assert!(data <= raw + raw / 15 + 4 * PAGE, "values of {value}: {data} for {raw}");
    }
}

//! What the builder says of a table: counts, lengths, where a reader is to look first.

use std::sync::Arc;

use super::block::{HEADER_LEN, MAX_NARROW, PAGE, validate};
use super::block_builder::{self, Added, BlockBuilder};
use super::footer::{FOOTER_LEN, Footer};
use super::model_tests::{Entry, Made, Value, make};
use super::{Dictionary, SegmentRef, Table, TableBuilder, TableOptions};
use crate::env::{Env, OsEnv};
use crate::key::{Codec, Kind, Seq, Stored, ValuePointer};
use crate::options::Compression;

fn entry(key: &str, seq: Option<Seq>, value: Value) -> Entry {
    Entry { key: key.into(), seq, value }
}

fn text(value: &str) -> Value {
    Value::Bytes(value.into())
}

fn footer(m: &Made) -> Footer {
    let bytes = std::fs::read(&m.path).unwrap();
    Footer::decode(&bytes[bytes.len() - FOOTER_LEN..], m.meta.size).unwrap()
}

#[test]
fn the_description_counts_what_was_added() {
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
    let s = &m.meta;
    assert_eq!((s.number, s.entries, s.tombstones, s.unique_keys), (7, 6, 2, false));
    assert_eq!((s.min_seq, s.max_seq), (4, 9));
    assert_eq!((&s.smallest[..], &s.largest[..]), (&b"ab"[..], &b"z"[..]));
    // Keys, the value, and pointers of 24 bytes.
    assert_eq!(s.raw_bytes, 2 * 5 + 1 + 5 + 3 * 24);
    let reference = |segment, bytes| SegmentRef { segment, bytes };
    assert_eq!(s.references, [reference(3, 10), reference(8, 1001)]);
    assert_eq!(s.size, std::fs::metadata(&m.path).unwrap().len());
    let table = m.open().unwrap();
    assert_eq!(table.meta(), *s);
    assert_eq!((table.number(), table.path(), table.size()), (7, &*m.path, s.size));
}

/// Beside its mapping an open table has a bit for each page and each chunk of its index, and a few keys.
#[test]
fn an_open_table_says_how_much_memory_it_takes() {
    for n in [1, 3000] {
        let value = "v".repeat(100);
        let entries = (0..n).map(|i| entry(&format!("{i:08}"), None, text(&value)));
        let m = make(entries.collect(), TableOptions::default());
        let f = footer(&m);
        let words = (f.data_pages as usize).div_ceil(64) + f.geometry.chunks().div_ceil(64);
        assert!(words > 2 || n == 1);
        let table = m.open().unwrap();
        // The name of the order, the first key and the last, and what they share.
        let names = "esker.bytewise".len() + 8 + 8 + if n == 1 { 8 } else { 4 };
        assert_eq!(table.memory(), size_of::<Table>() + 8 * words + names);
    }
}

#[test]
fn an_entry_without_a_sequence_counts_as_the_oldest() {
    let none = make(vec![entry("a", None, text("1"))], TableOptions::default());
    assert_eq!((none.meta.min_seq, none.meta.max_seq), (0, 0));
    assert!(none.meta.unique_keys);
    assert_eq!(none.open().unwrap().meta(), none.meta);
    for first in [None, Some(30)] {
        let both = vec![
            entry("a", first, text("1")),
            entry("b", Some(40), text("2")),
            entry("c", None, text("3")),
            entry("d", Some(20), text("4")),
        ];
        let s = make(both, TableOptions::default()).meta;
        assert_eq!((s.min_seq, s.max_seq), (0, 40));
    }
}

#[test]
fn raw_bytes_are_those_of_unpacked_values() {
    let entries = |n: usize| -> Vec<Entry> {
        (0..n).map(|i| entry(&format!("{i:04}"), None, text(&"abc".repeat(100)))).collect()
    };
    for compression in Compression::built_in() {
        let options = TableOptions { compression, ..TableOptions::default() };
        let s = make(entries(100), options).meta;
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

fn builder(options: TableOptions) -> (tempfile::TempDir, TableBuilder) {
    let dir = tempfile::tempdir().unwrap();
    let env: Arc<dyn Env> = Arc::new(OsEnv::new());
    let builder = TableBuilder::new(&env, &dir.path().join("t"), 1, options).unwrap();
    (dir, builder)
}

/// A compaction passes values on as they are packed, where the new table can unpack them.
#[test]
fn packed_values_are_taken_where_the_table_can_unpack_them() {
    let of = |codec, n: u8| Dictionary::new(codec, &[n; 100]);
    let own = of(Codec::Lz4, 1);
    let taken = |compression, dictionary: Option<&Arc<Dictionary>>, codec, dict| {
        let dictionary = dictionary.cloned();
        let (_dir, b) = builder(TableOptions { compression, dictionary, ..Default::default() });
        b.accepts(&Stored::Compressed { codec, dict, raw_len: 9, bytes: b"packed" })
    };
    for (compression, codec, other) in
        [(Compression::Lz4, Codec::Lz4, Codec::Zstd), (Compression::Zstd, Codec::Zstd, Codec::Lz4)]
    {
        let (own, foreign) = (of(codec, 1), of(codec, 2));
        assert!(taken(compression, None, codec, 0));
        assert!(!taken(compression, None, other, 0));
        assert!(!taken(Compression::None, None, codec, 0));
        assert!(taken(compression, Some(&own), codec, own.id()));
        assert!(!taken(compression, Some(&own), other, own.id()));
        assert!(!taken(compression, Some(&foreign), codec, own.id()));
        assert!(!taken(compression, None, codec, own.id()));
        // Each table can unpack what needs no dictionary; a short value gains by one.
        let alone = |raw_len| Stored::Compressed { codec, dict: 0, raw_len, bytes: b"packed" };
        let dictionary = Some(own.clone());
        let (_dir, b) = builder(TableOptions { compression, dictionary, ..Default::default() });
        assert!(!b.accepts(&alone(100)));
        assert!(b.accepts(&alone(2000)));
    }
    // A dictionary for another codec is not the table's.
    assert!(!taken(Compression::Zstd, Some(&own), Codec::Zstd, own.id()));
    let (_dir, b) = builder(TableOptions::default());
    assert!(b.accepts(&Stored::Inline(b"value")));
}

/// Offsets in a block have 16 bits: it ends with the last byte that they reach.
#[test]
fn a_block_is_filled_to_the_last_byte_that_an_offset_reaches() {
    // Five records of one length; the first letters of their keys differ.
    let stride = (MAX_NARROW - HEADER_LEN) / 5;
    assert_eq!(HEADER_LEN + 5 * stride, MAX_NARROW);
    for (more, fits) in [(0, true), (1, false)] {
        let mut b = BlockBuilder::new(16 * PAGE);
        let entry =
            |key, payload| block_builder::BlockEntry { key, tag: Kind::Put as u8, seq: 0, payload };
        let value = vec![7; stride - 1];
        for key in [b"a", b"b", b"c", b"d"] {
            assert_eq!(b.add(entry(key, &value)), Added::Yes);
        }
        // One byte longer than the others, it brings slots and lengths with it.
        let last = vec![7; stride - 1 + more];
        assert_eq!(b.add(entry(b"e", &last)) == Added::Yes, fits);
        assert_eq!(b.count(), if fits { 5 } else { 4 });
        let mut out = Vec::new();
        b.finish(1, 0, &mut out);
        assert_eq!(validate(&out, 1), Ok(()));
        assert_eq!(out.len(), if fits { 16 * PAGE } else { 13 * PAGE });
    }
}

/// So is a block of one page, if its entries fit.
#[test]
fn a_block_is_filled_to_the_last_byte_of_its_page() {
    // Keys of two letters, of which one is the prefix.
    let (n, stride) = (25, 163);
    assert_eq!(HEADER_LEN + 1 + n * stride, PAGE);
    let mut b = BlockBuilder::new(PAGE);
    let value = vec![7; stride - 1];
    let mut add = |i: usize| {
        let key = [b'k', i as u8];
        b.add(block_builder::BlockEntry {
            key: &key,
            tag: Kind::Put as u8,
            seq: 0,
            payload: &value,
        })
    };
    assert!((0..n).all(|i| add(i) == Added::Yes));
    assert_eq!(add(n), Added::BlockFull);
    let mut out = Vec::new();
    b.finish(1, 0, &mut out);
    assert_eq!((validate(&out, 2), out.len()), (Ok(()), PAGE));
}

#[test]
fn the_estimate_grows_with_the_table() {
    let (dir, mut b) = builder(TableOptions::default());
    assert!(b.size_estimate() < 200);
    let mut last = 0;
    for i in 0..10_000u32 {
        b.add(&i.to_be_bytes(), None, Kind::Put, Stored::Inline(&[7; 400])).unwrap();
        let estimate = b.size_estimate();
        assert!(estimate >= last, "entry {i}: {estimate} after {last}");
        last = estimate;
        let raw = u64::from(i + 1) * 401;
        assert!(estimate > raw && estimate < raw + raw / 10 + 5000, "entry {i}: {estimate}");
        // Hardly more than a piece of 2 MiB is kept in memory, however large the table grows.
        let written = std::fs::metadata(dir.path().join("t")).unwrap().len();
        assert!(written <= estimate && estimate < written + (3 << 20), "{written} of {estimate}");
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

//! Tables against a sorted vector: every read, over shapes of keys, orders, encodings.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use proptest::prelude::*;

use super::{Dictionary, Table, TableBuilder, TableOptions};
use crate::env::{Env, OsEnv};
use crate::filename;
use crate::key::{
    Codec, Comparator, InternalCursor, KeyOrder, Kind, Seq, Stored, TableMeta, ValuePointer,
    key_hash,
};
use crate::options::Compression;

/// ASCII letters compare without case.
pub(super) struct NoCase;

impl Comparator for NoCase {
    fn name(&self) -> &str {
        "test.nocase"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.to_ascii_lowercase().cmp(&b.to_ascii_lowercase())
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    Delete,
    Bytes(Vec<u8>),
    Pointer(ValuePointer),
}

#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub key: Vec<u8>,
    pub seq: Option<Seq>,
    pub value: Value,
}

/// A table in a directory of its own.
pub(super) struct Made {
    pub env: Arc<dyn Env>,
    pub path: PathBuf,
    pub meta: TableMeta,
    pub entries: Vec<Entry>,
    pub order: KeyOrder,
    _dir: tempfile::TempDir,
}

pub(super) const BASE: Seq = 0;

/// Sorts the entries as a table wants them, drops doubles, and builds.
pub(super) fn make(mut entries: Vec<Entry>, options: TableOptions) -> Made {
    let order = options.order.clone();
    let seq = |e: &Entry| e.seq.unwrap_or(BASE);
    entries.sort_by(|a, b| order.compare(&a.key, &b.key).then(seq(b).cmp(&seq(a))));
    entries.dedup_by(|a, b| order.compare(&a.key, &b.key).is_eq() && seq(a) == seq(b));
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(filename::table(7));
    let env: Arc<dyn Env> = Arc::new(OsEnv::new());
    let mut b = TableBuilder::new(&env, &path, 7, options).unwrap();
    for e in &entries {
        let (kind, stored) = match &e.value {
            Value::Delete => (Kind::Delete, Stored::Inline(&[])),
            Value::Bytes(v) => (Kind::Put, Stored::Inline(v)),
            Value::Pointer(p) => (Kind::Put, Stored::Pointer(*p)),
        };
        b.add(&e.key, e.seq, kind, stored).unwrap();
    }
    let estimate = b.size_estimate();
    let meta = b.finish().unwrap();
    assert!(estimate < meta.size * 2 + 8192 && meta.size < estimate * 2 + 300_000);
    Made { env, path, meta, entries, order, _dir: dir }
}

impl Made {
    pub fn open(&self) -> crate::Result<Arc<Table>> {
        let size = self.meta.size;
        Table::open(&*self.env, &self.path, 7, size, self.order.clone(), BASE).map(Arc::new)
    }
}

pub(super) fn value_of(table: &Table, kind: Kind, stored: Stored<'_>) -> crate::Result<Value> {
    if kind == Kind::Delete {
        assert_eq!(stored, Stored::Inline(&[]));
        return Ok(Value::Delete);
    }
    if let Stored::Pointer(p) = stored {
        return Ok(Value::Pointer(p));
    }
    let mut out = vec![1, 2, 3];
    table.decompress(stored, &mut out)?;
    Ok(Value::Bytes(out))
}

fn current(c: &super::TableCursor) -> Option<(Vec<u8>, Seq, Value)> {
    c.valid().then(|| {
        let v = value_of(c.table(), c.kind(), c.stored()).unwrap();
        (c.key().to_vec(), c.seq(), v)
    })
}

/// Every read that the table can do for these probes, against the vector.
fn compare(m: &Made, probes: &[Vec<u8>], seed: u64) {
    let table = m.open().unwrap();
    assert!(table.verify(&mut |_| ()).unwrap().is_empty());
    let n = m.entries.len();
    let at = |i: usize| {
        m.entries.get(i).map(|e| (e.key.clone(), e.seq.unwrap_or(BASE), e.value.clone()))
    };
    let mut c = table.cursor();
    assert!(!c.valid());

    // Forward and back over everything.
    c.first().unwrap();
    for i in 0..n {
        assert_eq!(current(&c), at(i));
        c.next().unwrap();
    }
    assert!(!c.valid());
    c.last().unwrap();
    for i in (0..n).rev() {
        assert_eq!(current(&c), at(i));
        c.prev().unwrap();
    }
    assert!(!c.valid());

    let mut random = seed | 1;
    let mut roll = |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random >> 33) as usize % below
    };
    for (p, probe) in probes.iter().enumerate() {
        let hash = key_hash(probe);
        table.prefetch(hash);
        for seq in [0, 1, 2, 5, 50, 1 << 20, Seq::MAX] {
            let want = m
                .entries
                .iter()
                .find(|e| m.order.compare(&e.key, probe).is_eq() && e.seq.unwrap_or(BASE) <= seq);
            let got = table.get(hash, probe, seq).unwrap();
            assert_eq!(got.is_some(), want.is_some(), "get {probe:?} at {seq}");
            if let (Some(got), Some(want)) = (got, want) {
                assert_eq!(got.seq, want.seq.unwrap_or(BASE));
                assert_eq!(value_of(&table, got.kind, got.stored).unwrap(), want.value);
            }
        }
        // Seeks, and a random walk from where they lead.
        let (mut i, after) = if p % 2 == 0 {
            c.seek(probe).unwrap();
            (m.entries.partition_point(|e| m.order.compare(&e.key, probe).is_lt()), false)
        } else {
            c.seek_for_prev(probe).unwrap();
            (m.entries.partition_point(|e| m.order.compare(&e.key, probe).is_le()), true)
        };
        if after {
            i = i.wrapping_sub(1);
        }
        assert_eq!(current(&c), at(i), "seek to {probe:?}, after {after}");
        for _ in 0..roll(12) {
            if !c.valid() {
                break;
            }
            if roll(2) == 0 {
                c.next().unwrap();
                i += 1;
            } else {
                c.prev().unwrap();
                i = i.wrapping_sub(1);
            }
            assert_eq!(current(&c), at(i));
        }
        let offset = table.approximate_offset(probe);
        assert!(offset <= table.size());
    }
    assert_eq!(table.entries(), n as u64);
    // Of keys that compare equal, any stands for all.
    assert!(m.order.compare(&table.props.smallest, &m.entries[0].key).is_eq());
    assert!(m.order.compare(&table.props.largest, &m.entries[n - 1].key).is_eq());
    assert_eq!(table.references(), m.meta.references);
}

fn bytes(len: std::ops::Range<usize>) -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), len)
}

/// Keys that lie close to each other in every way that matters.
fn key() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => proptest::collection::vec(prop_oneof![Just(b'a'), Just(b'A'), Just(b'b'), Just(0), Just(255)], 0..5),
        4 => (0u32..400).prop_map(|n| format!("key{n:06}").into_bytes()),
        2 => bytes(0..20),
        2 => (0u32..64).prop_map(|n| {
            let mut k = b"a long common beginning of many keys, ".to_vec();
            k.extend(n.to_be_bytes());
            k
        }),
        1 => (0usize..200).prop_map(|n| vec![b'x'; n]),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        1 => Just(Value::Delete),
        2 => bytes(0..30).prop_map(Value::Bytes),
        3 => (0u32..1000).prop_map(|n| {
            Value::Bytes(format!("{{\"id\": {n}, \"name\": \"user {n}\", \"active\": true}}").into())
        }),
        1 => (any::<u8>(), 0usize..3000).prop_map(|(b, n)| Value::Bytes(vec![b; n])),
        1 => (0u64..3, any::<u64>(), any::<u32>(), any::<u32>()).prop_map(
            |(segment, offset, len, checksum)| {
                Value::Pointer(ValuePointer { segment, offset, len, checksum })
            }
        ),
    ]
}

fn seq() -> impl Strategy<Value = Option<Seq>> {
    prop_oneof![3 => Just(None), 3 => (1u64..8).prop_map(Some), 1 => any::<u64>().prop_map(|s| Some(s.max(1)))]
}

fn order() -> impl Strategy<Value = KeyOrder> {
    prop_oneof![
        2 => Just(KeyOrder::Bytewise),
        1 => Just(KeyOrder::Reverse),
        1 => Just(KeyOrder::Custom(Arc::new(NoCase))),
    ]
}

fn options() -> impl Strategy<Value = TableOptions> {
    let compression =
        prop_oneof![Just(Compression::None), Just(Compression::Lz4), Just(Compression::Zstd)];
    (order(), compression, any::<bool>(), 1usize..4).prop_map(
        |(order, compression, dict, pages)| {
            let dictionary = match (dict, compression) {
                (false, _) | (_, Compression::None) => None,
                (_, c) => {
                    let codec = if c == Compression::Lz4 { Codec::Lz4 } else { Codec::Zstd };
                    Some(Dictionary::new(
                        codec,
                        b"{\"id\": 12, \"name\": \"user 12\", \"active\": true}",
                    ))
                }
            };
            TableOptions { order, keyspace: 3, block_size: pages * 4096, compression, dictionary }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn reads_agree_with_a_sorted_vector(
        entries in proptest::collection::vec((key(), seq(), value()), 1..300),
        extra in proptest::collection::vec(key(), 0..40),
        options in options(),
        seed in any::<u64>(),
    ) {
        let entries: Vec<Entry> =
            entries.into_iter().map(|(key, seq, value)| Entry { key, seq, value }).collect();
        let mut probes: Vec<Vec<u8>> = entries.iter().step_by(3).map(|e| e.key.clone()).collect();
        probes.extend(extra);
        compare(&make(entries, options), &probes, seed);
    }
}

#[test]
fn versions_of_one_key_run_over_many_blocks() {
    let mut entries: Vec<Entry> = (1..3000u64)
        .map(|s| Entry { key: b"k".to_vec(), seq: Some(s * s), value: Value::Bytes(vec![7; 20]) })
        .collect();
    entries.push(Entry { key: b"k".to_vec(), seq: None, value: Value::Delete });
    entries.push(Entry { key: b"a".to_vec(), seq: None, value: Value::Delete });
    entries.push(Entry { key: b"z".to_vec(), seq: Some(1), value: Value::Delete });
    let probes = [b"k", b"a", b"z", b"j", b"l"].map(|k| k.to_vec());
    for order in [KeyOrder::Bytewise, KeyOrder::Reverse, KeyOrder::Custom(Arc::new(NoCase))] {
        let m = make(entries.clone(), TableOptions { order, ..TableOptions::default() });
        assert!(!m.meta.unique_keys);
        compare(&m, &probes, 5);
    }
}

/// The index keeps eight bytes of each block's first key: here they are the same in all, and the highest there are.
#[test]
fn keys_that_begin_with_the_highest_bytes_run_over_many_blocks() {
    let key = |n: u64| [&[0xFF; 8][..], &n.to_be_bytes()].concat();
    let value = || Value::Bytes(vec![7; 100]);
    let mut entries: Vec<Entry> =
        (0..2000).map(|n| Entry { key: key(2 * n), seq: None, value: value() }).collect();
    entries.push(Entry { key: b"a".to_vec(), seq: None, value: value() });
    let mut probes: Vec<Vec<u8>> = (0..4000).step_by(77).map(key).collect();
    probes.extend([key(u64::MAX), vec![0xFF; 8], b"b".to_vec(), Vec::new()]);
    for order in [KeyOrder::Bytewise, KeyOrder::Reverse] {
        let m = make(entries.clone(), TableOptions { order, ..TableOptions::default() });
        compare(&m, &probes, 9);
    }
}

/// Of several tables that are searched together one may be damaged: the others' searches are given up where they are.
#[test]
fn a_search_that_was_given_up_leaves_nothing_for_the_next() {
    let key = |n: u32| format!("{n:08}").into_bytes();
    let value = || Value::Bytes(vec![7; 100]);
    let entries = (0..20_000).map(|n| Entry { key: key(n), seq: None, value: value() }).collect();
    let table = make(entries, TableOptions::default()).open().unwrap();
    let mut c = table.cursor();
    for steps in 0..4 {
        c.approach();
        for _ in 0..steps {
            c.come_nearer(&key(19_000));
        }
        let wanted = key(100 + steps);
        c.approach();
        while c.come_nearer(&wanted) {}
        c.locate(&wanted, true);
        c.enter_located(&wanted).unwrap();
        while c.narrow(&wanted, true) {}
        c.arrive(true).unwrap();
        assert_eq!(c.key(), wanted, "after {steps}");
    }
}

#[test]
fn longest_keys_and_long_values() {
    let long = |b: u8, n: usize| {
        let mut k = vec![b'p'; 65536];
        k[n] = b;
        k
    };
    let mut entries: Vec<Entry> = [1, 2, 3]
        .into_iter()
        .flat_map(|b| [(b, 65535), (b, 65000), (b, 10)])
        .enumerate()
        .map(|(i, (b, n))| Entry {
            key: long(b, n),
            seq: (i % 2 == 0).then_some(i as u64 + 1),
            value: Value::Bytes(vec![b; i * 20_000]),
        })
        .collect();
    for n in [40_000usize, 65_000, 65_530, 65_535] {
        entries.push(Entry { key: vec![b'q'; n], seq: None, value: Value::Bytes(b"v".to_vec()) });
    }
    entries.push(Entry { key: Vec::new(), seq: Some(9), value: Value::Bytes(Vec::new()) });
    let mut probes: Vec<Vec<u8>> = entries.iter().map(|e| e.key.clone()).collect();
    probes.push(vec![b'q'; 65_534]);
    probes.push(vec![b'p'; 65_536]);
    for order in [KeyOrder::Bytewise, KeyOrder::Reverse, KeyOrder::Custom(Arc::new(NoCase))] {
        for compression in [Compression::None, Compression::Lz4, Compression::Zstd] {
            let options = TableOptions { order: order.clone(), compression, ..Default::default() };
            compare(&make(entries.clone(), options), &probes, 6);
        }
    }
}

#[test]
fn every_length_of_value_packs_and_unpacks() {
    for compression in [Compression::None, Compression::Lz4, Compression::Zstd] {
        let entries: Vec<Entry> = (0..600u32)
            .map(|n| {
                let text: Vec<u8> = (0..n * n / 40).flat_map(|i| [b'x', (i / 7) as u8]).collect();
                Entry { key: n.to_be_bytes().to_vec(), seq: None, value: Value::Bytes(text) }
            })
            .collect();
        let probes: Vec<Vec<u8>> = entries.iter().map(|e| e.key.clone()).collect();
        compare(&make(entries, TableOptions { compression, ..Default::default() }), &probes, 7);
    }
}

#[test]
fn packed_values_pass_through_and_references_are_counted() {
    let samples: Vec<Vec<u8>> = (0..500)
        .map(|n| format!("{{\"id\": {n}, \"colour\": \"green\", \"size\": {}}}", n * 7).into())
        .collect();
    let samples: Vec<&[u8]> = samples.iter().map(|s| &s[..]).collect();
    for compression in Compression::built_in().skip(1) {
        let dictionary = Dictionary::choose(compression, [], &samples).expect("worth it");
        let entries = (0..500usize)
            .map(|n| Entry {
                key: format!("{n:05}").into(),
                seq: None,
                value: Value::Bytes(samples[n].to_vec()),
            })
            .collect();
        let options =
            TableOptions { compression, dictionary: Some(dictionary), ..Default::default() };
        let first = make(entries, options.clone());
        let table = first.open().unwrap();

        // A second table takes the first one's values as they are.
        let path = first.path.with_extension("second");
        let mut b = TableBuilder::new(&first.env, &path, 8, options.clone()).unwrap();
        let mut c = table.cursor();
        c.first().unwrap();
        let mut compressed = 0;
        while c.valid() {
            compressed += usize::from(matches!(c.stored(), Stored::Compressed { dict: 1.., .. }));
            b.add(c.key(), None, c.kind(), c.stored()).unwrap();
            c.next().unwrap();
        }
        assert!(compressed > 400, "{compressed}");
        let p =
            |segment, len| Stored::Pointer(ValuePointer { segment, offset: 1, len, checksum: 2 });
        b.add(b"x", Some(2), Kind::Put, p(9, 10_000)).unwrap();
        b.add(b"x", Some(1), Kind::Put, p(3, 5_000)).unwrap();
        b.add(b"y", None, Kind::Put, p(9, 5)).unwrap();
        let meta = b.finish().unwrap();
        let refs: BTreeMap<u64, u64> =
            meta.references.iter().map(|r| (r.segment, r.bytes)).collect();
        assert_eq!(refs, BTreeMap::from([(3, 5_000), (9, 10_005)]));
        let env = &*first.env;
        let second = Table::open(env, &path, 8, meta.size, KeyOrder::Bytewise, 77).unwrap();
        for (n, sample) in samples.iter().enumerate() {
            let key = format!("{n:05}");
            let hash = key_hash(key.as_bytes());
            let found = second.get(hash, key.as_bytes(), 77).unwrap().unwrap();
            assert_eq!(found.seq, 77);
            let value = value_of(&second, found.kind, found.stored).unwrap();
            assert_eq!(value, Value::Bytes(sample.to_vec()));
            assert!(second.get(hash, key.as_bytes(), 76).unwrap().is_none());
        }
        // Values of a foreign dictionary are refused.
        let other = Dictionary::new(dictionary_codec(compression), b"another");
        let options = TableOptions { dictionary: Some(other), ..options };
        let path = first.path.with_extension("third");
        let mut b = TableBuilder::new(&first.env, &path, 9, options).unwrap();
        c.first().unwrap();
        while !matches!(c.stored(), Stored::Compressed { dict: 1.., .. }) {
            c.next().unwrap();
        }
        assert!(b.add(c.key(), None, c.kind(), c.stored()).is_err());
    }
}

fn dictionary_codec(compression: Compression) -> Codec {
    if compression == Compression::Zstd { Codec::Zstd } else { Codec::Lz4 }
}

#[test]
fn no_dictionary_where_none_pays() {
    let mut x = 1u64;
    let noise: Vec<Vec<u8>> = (0..300)
        .map(|_| {
            (0..100)
                .map(|_| {
                    x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                    (x >> 56) as u8
                })
                .collect()
        })
        .collect();
    let noise: Vec<&[u8]> = noise.iter().map(|s| &s[..]).collect();
    for c in [Compression::None, Compression::Lz4, Compression::Zstd] {
        assert!(Dictionary::choose(c, [], &noise).is_none());
        assert!(Dictionary::choose(c, [], &[b"few", b"and short"]).is_none());
    }
}

#[test]
fn keys_out_of_order_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let env: Arc<dyn Env> = Arc::new(OsEnv::new());
    let path = dir.path().join("t");
    let mut b = TableBuilder::new(&env, &path, 1, TableOptions::default()).unwrap();
    b.add(b"b", None, Kind::Put, Stored::Inline(b"")).unwrap();
    assert!(b.add(b"a", None, Kind::Put, Stored::Inline(b"")).unwrap_err().is_corruption());
    b.add(b"c", Some(5), Kind::Put, Stored::Inline(b"")).unwrap();
    assert!(b.add(b"c", Some(5), Kind::Put, Stored::Inline(b"")).is_err());
}

#[test]
fn space_per_entry_stays_within_a_tenth() {
    for random in [false, true] {
        let n = 200_000u64;
        let entries = (0..n)
            .map(|i| {
                let key = if random {
                    let a = key_hash(&i.to_le_bytes()).to_le_bytes();
                    let b = key_hash(&a).to_le_bytes();
                    [a, b].concat()
                } else {
                    format!("{i:016}").into_bytes()
                };
                Entry { key, seq: None, value: Value::Bytes(vec![i as u8; 100]) }
            })
            .collect();
        let m = make(entries, TableOptions::default());
        let each = m.meta.size as f64 / n as f64;
        eprintln!("random {random}: {each:.1} bytes an entry of 116");
        assert!(each < 116.0 * 1.1, "{each}");
    }
}

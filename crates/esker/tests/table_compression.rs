//! What is in a table is packed as the options say, whichever way it came there: through puts, bulk
//! loads, merges of either, compaction, or another setting than the store was made with.

use std::path::Path;

use esker::{Compression, Db, Error, KeyspaceOptions, Options, RunStats};
use tempfile::tempdir;

const N: u64 = 60_000;
const ALL: [Compression; 3] = [Compression::None, Compression::Lz4, Compression::Zstd];

fn options(compression: Compression) -> Options {
    Options::new().memory(16 << 20).compression(compression)
}

fn key(i: u64) -> Vec<u8> {
    format!("key{i:09}").into_bytes()
}

fn mix(i: u64) -> u64 {
    let z = (i ^ (i >> 30)).wrapping_add(0x9E37_79B9_7F4A_7C15).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z ^ (z >> 27)
}

/// About 80 bytes of which a dictionary knows most; alone they do not pack.
fn text(i: u64) -> Vec<u8> {
    let r = mix(i);
    let mut value = format!(
        "{{\"user\":{:07},\"country\":\"{}\",\"active\":true,\"balance\":{:05}.00,\"tag\":\"{:04x}\"}}",
        r % 10_000_000,
        ["se", "no", "fi", "dk", "is"][(r >> 24) as usize % 5],
        (r >> 32) % 100_000,
        (r >> 48) & 0xFFFF,
    );
    value.truncate(80);
    value.into_bytes()
}

/// Of another kind: nothing in common with the above.
fn other(i: u64) -> Vec<u8> {
    let r = mix(i ^ 0xABCD);
    format!(
        "GET /Shop/Basket?Item={:06}&Size=XXL HTTP/1.1 REFERER=WWW.EXAMPLE.ORG IP=10.{}.{}.7",
        r % 1_000_000,
        (r >> 32) % 250,
        (r >> 40) % 250
    )
    .into_bytes()
}

fn noise(i: u64) -> Vec<u8> {
    (0..10).flat_map(|n| mix(i * 10 + n).to_le_bytes()).collect()
}

fn table_bytes(db: &Db) -> u64 {
    db.stats().table_bytes
}

fn loaded(dir: &Path, c: Compression, n: u64, value: impl Fn(u64) -> Vec<u8>) -> Db {
    let db = options(c).open(dir).unwrap();
    assert_eq!(db.bulk_load((0..n).map(|i| (key(i), value(i)))).unwrap(), n);
    for i in [0, 1, n / 3, n / 2, n - 1].into_iter().filter(|&i| i < n) {
        assert_eq!(db.get(key(i)).unwrap().unwrap(), value(i), "{c:?} {i}");
    }
    db
}

fn put(dir: &Path, c: Compression, n: u64, value: impl Fn(u64) -> Vec<u8>) -> Db {
    let db = options(c).open(dir).unwrap();
    for i in 0..n {
        db.put(key(i), value(i)).unwrap();
    }
    db.wait_for_compactions().unwrap();
    db
}

/// Sizes with none, LZ4 and Zstandard; the figure of a store that `make` fills.
fn sizes(make: impl Fn(&Path, Compression) -> Db) -> [u64; 3] {
    ALL.map(|c| {
        let dir = tempdir().unwrap();
        let db = make(&dir.path().join("db"), c);
        let bytes = table_bytes(&db);
        assert!(db.verify().unwrap().problems.is_empty());
        db.close().unwrap();
        bytes
    })
}

/// `bytes` are within `percent` of `of`.
#[track_caller]
fn about(what: &str, bytes: u64, of: u64, percent: u64) {
    println!("{what}: {bytes} of {of}");
    assert!(bytes * 100 <= of * percent, "{what}: {bytes} bytes, not {percent} % of {of}");
}

fn by_puts() -> [u64; 3] {
    let [none, lz4, zstd] = sizes(|dir, c| put(dir, c, N, text));
    about("puts, lz4", lz4, none, 70);
    about("puts, zstd", zstd, none, 70);
    [none, lz4, zstd]
}

#[test]
fn what_is_bulk_loaded_takes_what_puts_take() {
    let puts = by_puts();
    let loads = sizes(|dir, c| loaded(dir, c, N, text));
    for (c, (load, put)) in ALL.iter().zip(loads.into_iter().zip(puts)) {
        about(&format!("bulk load, {c:?}"), load, put, 130);
    }
}

/// Even keys, then odd ones: no table moves as it stands.
#[test]
fn a_merge_of_loads_and_a_compaction_keep_values_packed() {
    let puts = by_puts();
    for compact in [false, true] {
        let merged = sizes(|dir, c| {
            let db = options(c).open(dir).unwrap();
            for odd in [0, 1] {
                let part = (0..N / 2).map(|i| 2 * i + odd);
                db.bulk_load(part.map(|i| (key(i), text(i)))).unwrap();
            }
            if compact {
                db.compact_range::<&[u8]>(..).unwrap();
            } else {
                db.wait_for_compactions().unwrap();
            }
            assert_eq!(
                db.iter().filter(|e| e.as_ref().is_ok_and(|(k, _)| !k.is_empty())).count(),
                N as usize
            );
            db
        });
        for (c, (bytes, put)) in ALL.iter().zip(merged.into_iter().zip(puts)) {
            about(&format!("merged loads, compact {compact}, {c:?}"), bytes, put, 130);
        }
    }
}

/// From each setting to each other, through nothing but `compact_range` over everything.
#[test]
fn a_compaction_leaves_what_the_options_say() {
    let puts = by_puts();
    for (from, made_with) in ALL.into_iter().enumerate() {
        let dir = tempdir().unwrap();
        let path = dir.path().join("db");
        loaded(&path, made_with, N, text).close().unwrap();
        for to in [(from + 1) % 3, (from + 2) % 3, from] {
            let db = options(ALL[to]).open(&path).unwrap();
            db.compact_range::<&[u8]>(..).unwrap();
            let what = format!("{made_with:?} to {:?}", ALL[to]);
            about(&what, table_bytes(&db), puts[to], 130);
            about(&format!("the reverse of {what}"), puts[to], table_bytes(&db), 130);
            let runs = &db.stats().keyspaces[0].runs;
            let sum = |field: fn(&RunStats) -> usize| runs.iter().map(field).sum::<usize>();
            let (tables, lz4) = (sum(|r| r.tables), sum(|r| r.lz4_tables));
            let (zstd, raw) = (sum(|r| r.zstd_tables), sum(|r| r.raw_bytes as usize));
            let all = |c| if ALL[to] == c { tables } else { 0 };
            assert_eq!((lz4, zstd), (all(Compression::Lz4), all(Compression::Zstd)), "{what}");
            let given: usize = (0..N).map(|i| key(i).len() + text(i).len()).sum();
            assert_eq!(raw, given, "{what}");
            for i in (0..N).step_by(997) {
                assert_eq!(db.get(key(i)).unwrap().unwrap(), text(i));
            }
            db.close().unwrap();
        }
    }
}

/// Table files of a dictionary's size each, and no more of them than the bytes need.
#[test]
fn a_load_whose_data_changes_is_packed_on_both_sides() {
    for c in [Compression::Lz4, Compression::Zstd] {
        let n = 4 * N;
        let size = |value: &dyn Fn(u64) -> Vec<u8>| {
            let dir = tempdir().unwrap();
            let db = loaded(&dir.path().join("db"), c, n, value);
            let tables: usize = db.stats().keyspaces[0].runs.iter().map(|r| r.tables).sum();
            (table_bytes(&db), tables as u64)
        };
        let fresh = |value: fn(u64) -> Vec<u8>| {
            let dir = tempdir().unwrap();
            table_bytes(&put(&dir.path().join("db"), c, N, value)) * (n / N)
        };
        let (texts, others, noises) = (fresh(text), fresh(other), fresh(noise));
        let kinds = |a: fn(u64) -> Vec<u8>, b: fn(u64) -> Vec<u8>| {
            let both = size(&|i| if i < n / 2 { a(i) } else { b(i) });
            assert!(both.1 <= 4 * (1 + both.0 / (4 << 20)), "{c:?}: {} tables", both.1);
            both.0
        };
        about("text, then another", kinds(text, other), (texts + others) / 2, 130);
        about("noise, then text", kinds(noise, text), (noises + texts) / 2, 130);
        about("text, then noise", kinds(text, noise), (noises + texts) / 2, 130);
        let dir = tempdir().unwrap();
        let db = loaded(&dir.path().join("db"), c, n, |i| match i / 2000 % 2 {
            0 => text(i),
            _ => other(i),
        });
        let tables = db.stats().keyspaces[0].runs[0].tables as u64;
        assert!(tables <= 4 * (1 + table_bytes(&db) / (4 << 20)), "{c:?}: {tables} tables");
    }
}

/// Each version of everything replaced by data that the dictionaries there do not know.
#[test]
fn a_dictionary_that_fits_no_more_is_given_up() {
    for c in [Compression::Lz4, Compression::Zstd] {
        let fresh = {
            let dir = tempdir().unwrap();
            table_bytes(&put(&dir.path().join("db"), c, N, other))
        };
        let dir = tempdir().unwrap();
        let db = put(&dir.path().join("db"), c, N, text);
        for i in 0..N {
            db.put(key(i), other(i)).unwrap();
        }
        db.compact_range::<&[u8]>(..).unwrap();
        db.compact_range::<&[u8]>(..).unwrap();
        about(&format!("replaced, {c:?}"), table_bytes(&db), fresh, 130);
    }
}

/// Loads too small for a dictionary, values of every size, values that grow on the way, and tables
/// of nothing but large ones: what came in comes out, and memory has nothing to do with it.
#[test]
fn loads_of_all_shapes_come_back() {
    type Shape = fn(u64) -> usize;
    let shapes: [(&str, u64, Shape); 7] = [
        ("none", 0, |_| 0),
        ("one", 1, |_| 80),
        ("few", 15, |_| 80),
        ("empty", 3000, |_| 0),
        ("growing", 3000, |i| (i * i / 200) as usize),
        ("a huge one first", 3000, |i| if i == 0 { 9 << 20 } else { 80 }),
        ("huge ones between", 2500, |i| if i % 900 == 850 { 3 << 20 } else { 80 }),
    ];
    for (what, n, len) in shapes {
        for c in ALL {
            let value = |i: u64| {
                let mut v = text(i);
                v.resize(len(i), b'.');
                v
            };
            let dir = tempdir().unwrap();
            let db = options(c).open(dir.path().join("db")).unwrap();
            let kept = db.create_keyspace("kept", KeyspaceOptions::new()).unwrap();
            assert_eq!(kept.bulk_load((0..n).map(|i| (key(i), value(i)))).unwrap(), n);
            let check = |at: &str| {
                assert_eq!(kept.iter().count() as u64, n, "{what} {c:?} {at}");
                for i in 0..n {
                    assert!(
                        kept.get(key(i)).unwrap().unwrap() == value(i),
                        "{what} {c:?} {at} {i}"
                    );
                }
            };
            check("loaded");
            kept.compact_range::<&[u8]>(..).unwrap();
            check("compacted");
            assert!(db.verify().unwrap().problems.is_empty());
        }
    }
}

/// A load that fails while entries are held back leaves nothing, and those held are checked too.
#[test]
fn a_load_that_fails_early_or_late_leaves_nothing() {
    for at in [1, 500, 1023, 1024, 1025, 30_000] {
        let dir = tempdir().unwrap();
        let db = options(Compression::Lz4).open(dir.path().join("db")).unwrap();
        let keys = (0..at).chain([at - 1]).map(|i| (key(i), text(i)));
        match db.bulk_load(keys) {
            Err(Error::NotSorted { position }) => assert_eq!(position, at),
            other => panic!("{other:?}"),
        }
        assert_eq!(db.iter().count(), 0);
        let left = |e: &std::fs::DirEntry| e.path().extension().is_some_and(|e| e == "tbl");
        let files = std::fs::read_dir(dir.path().join("db")).unwrap();
        assert_eq!(files.filter(|e| left(e.as_ref().unwrap())).count(), 0);
    }
}

/// A keyspace made with a compression of its own keeps it; one without follows the store's.
#[test]
fn a_keyspace_of_its_own_compression_keeps_it() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("db");
    let db = options(Compression::Lz4).open(&path).unwrap();
    let own = KeyspaceOptions::new().compression(Compression::None);
    db.create_keyspace("own", own).unwrap();
    db.create_keyspace("follows", KeyspaceOptions::new()).unwrap();
    db.close().unwrap();
    let db = options(Compression::Zstd).open(&path).unwrap();
    for (name, packed) in [("own", false), ("follows", true), ("default", true)] {
        let ks = db.keyspace(name).unwrap();
        ks.bulk_load((0..5000).map(|i| (key(i), text(i)))).unwrap();
        let bytes = ks.approximate_size::<&[u8]>(..).unwrap();
        assert_eq!(bytes < 5000 * 60, packed, "{name}: {bytes}");
    }
}

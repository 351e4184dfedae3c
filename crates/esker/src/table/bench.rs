//! What the read path costs, by the clock: `cargo test --release table::bench -- --ignored
//! --nocapture`, with `ESKER_BENCH_ENTRIES` for another size than a million. The figures are in
//! `docs/design/table.md`.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use super::{Dictionary, Table, TableBuilder, TableOptions};
use crate::env::{Env, OsEnv};
use crate::filename;
use crate::key::{InternalCursor, KeyOrder, Kind, Stored, key_hash};
use crate::options::Compression;

/// Keys of this many tables are spread as a store of that many partitions would.
struct BenchTable {
    tables: Vec<Arc<Table>>,
    per_table: u64,
    _dir: tempfile::TempDir,
}

fn value(i: u64, out: &mut [u8; 100]) {
    // Half of it compresses.
    let mut x = i;
    for (n, b) in out.iter_mut().enumerate() {
        if n % 2 == 0 {
            x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            *b = (x >> 58) as u8;
        } else {
            *b = b'v';
        }
    }
}

fn key(i: u64) -> [u8; 16] {
    let mut key = [b'0'; 16];
    let mut n = i;
    for b in key.iter_mut().rev() {
        *b = b'0' + (n % 10) as u8;
        n /= 10;
    }
    key
}

fn build(n: u64, per_table: u64, compression: Compression, seqs: bool) -> BenchTable {
    let dir = tempfile::tempdir().unwrap();
    let env: Arc<dyn Env> = Arc::new(OsEnv::new());
    let mut bytes = [0; 100];
    let samples: Vec<Vec<u8>> = (0..1000)
        .map(|i| {
            value(i * 77, &mut bytes);
            bytes.to_vec()
        })
        .collect();
    let samples: Vec<&[u8]> = samples.iter().map(|s| &s[..]).collect();
    let dictionary = Dictionary::choose(compression, [], &samples);
    let start = Instant::now();
    let mut size = 0;
    let tables = (0..n.div_ceil(per_table))
        .map(|t| {
            let path = dir.path().join(filename::table(t));
            let dictionary = dictionary.clone();
            let options = TableOptions { compression, dictionary, ..TableOptions::default() };
            let mut b = TableBuilder::new(&env, &path, t, options).unwrap();
            for i in t * per_table..n.min((t + 1) * per_table) {
                value(i, &mut bytes);
                let seq = seqs.then_some(1 + i * 7919 % n);
                b.add(&key(2 * i), seq, Kind::Put, Stored::Inline(&bytes)).unwrap();
            }
            let s = b.finish().unwrap();
            size += s.size;
            Arc::new(Table::open(&*env, &path, t, s.size, KeyOrder::Bytewise, 0).unwrap())
        })
        .collect();
    let ns = start.elapsed().as_nanos() as f64 / n as f64;
    println!(
        "  built {n} entries in {ns:.0} ns each, {:.1} bytes each, dictionary {:?}",
        size as f64 / n as f64,
        dictionary.map(|d| d.bytes().len())
    );
    BenchTable { tables, per_table, _dir: dir }
}

fn rate(what: &str, ops: u64, mut f: impl FnMut()) {
    let mut costs: Vec<f64> = (0..5)
        .map(|_| {
            let start = Instant::now();
            f();
            start.elapsed().as_nanos() as f64 / ops as f64
        })
        .collect();
    costs.sort_by(f64::total_cmp);
    println!("  {what:<34} {:>8.1} ns  (least {:.1})", costs[2], costs[0]);
}

fn measure(store: &BenchTable, n: u64) {
    let ops = 500_000u64;
    let mut x = 1u64;
    let mut random = move || {
        x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        (((z ^ (z >> 27)) as u128 * n as u128) >> 64) as u64
    };
    let table = |i: u64| &store.tables[(i / store.per_table) as usize];
    let mut out = Vec::new();
    // Touch everything once.
    for t in &store.tables {
        assert!(t.verify(&mut |_| ()).unwrap().is_empty());
        let mut c = t.cursor();
        c.first().unwrap();
        while c.valid() {
            c.next().unwrap();
        }
        for i in 0..200_000u64 {
            let k = key(i * 7919);
            let _ = t.get(key_hash(&k), &k, u64::MAX).unwrap();
        }
    }
    let mut gets = |what: &str, odd: u64, decompress: bool| {
        rate(what, ops, || {
            for _ in 0..ops {
                let i = random();
                let k = key(2 * i + odd);
                let found = table(i).get(key_hash(&k), &k, u64::MAX).unwrap();
                assert_eq!(found.is_some(), odd == 0);
                if let Some(f) = found {
                    match f.stored {
                        // Read all of it, as a user would.
                        Stored::Inline(v) => {
                            black_box(v.iter().step_by(64).fold(0u8, |a, b| a ^ b));
                        }
                        s if decompress => table(i).decompress(s, &mut out).unwrap(),
                        s => drop(black_box(s)),
                    }
                }
            }
        });
    };
    gets("get", 0, true);
    gets("get, not unpacked", 0, false);
    gets("get of a missing key", 1, true);

    let mut random = {
        let mut x = 99u64;
        move || {
            x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let z = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            (((z ^ (z >> 27)) as u128 * n as u128) >> 64) as u64
        }
    };
    let mut cursors: Vec<_> = store.tables.iter().map(|t| t.cursor()).collect();
    let seeks = 200_000;
    rate("seek", seeks, || {
        for _ in 0..seeks {
            let i = random();
            let c = &mut cursors[(i / store.per_table) as usize];
            c.seek(&key(2 * i)).unwrap();
            black_box(c.key());
        }
    });
    rate("seek + 10 next", seeks, || {
        for _ in 0..seeks {
            let i = random();
            let c = &mut cursors[(i / store.per_table) as usize];
            c.seek(&key(2 * i)).unwrap();
            for _ in 0..10 {
                if c.valid() {
                    black_box((c.key()[15], c.stored()));
                    c.next().unwrap();
                }
            }
        }
    });
    let walk = |c: &mut super::TableCursor, forward: bool, touch: bool| {
        let mut sum = 0u64;
        c.edge(forward).unwrap();
        while c.valid() {
            sum += u64::from(c.key_fast()[15]);
            let s = black_box(c.stored_fast());
            if let (true, Stored::Inline(v) | Stored::Compressed { bytes: v, .. }) = (touch, s) {
                sum += u64::from(v[0]) + u64::from(v[v.len() - 1]);
            }
            if forward { c.next().unwrap() } else { c.prev().unwrap() }
        }
        black_box(sum);
    };
    for (what, forward, touch) in [
        ("next", true, false),
        ("next, value touched", true, true),
        ("prev", false, false),
        ("prev, value touched", false, true),
    ] {
        rate(what, n, || cursors.iter_mut().for_each(|c| walk(c, forward, touch)));
    }
    rate("next through dyn InternalCursor", n, || {
        for c in &mut cursors {
            let c: &mut dyn InternalCursor = black_box(c);
            c.first().unwrap();
            while c.valid() {
                black_box((c.key()[15], c.stored()));
                c.next().unwrap();
            }
        }
    });
}

/// A walk over files the page cache does not hold, with the cursor's read-ahead, and the same by
/// point reads, which have none.
#[test]
#[ignore = "a benchmark"]
fn cold() {
    let n = 500_000;
    let store = build(n, n, Compression::None, false);
    let first = &store.tables[0];
    let (path, size) = (first.path().to_path_buf(), first.size());
    drop(store.tables);
    let open = || {
        let file = std::fs::File::open(&path).unwrap();
        // Pages that are not on the device cannot leave.
        file.sync_all().unwrap();
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
        Arc::new(Table::open(&OsEnv::new(), &path, 0, size, KeyOrder::Bytewise, 0).unwrap())
    };
    rate("cold next", n, || {
        let mut c = open().cursor();
        c.first().unwrap();
        while c.valid() {
            c.next().unwrap();
        }
    });
    rate("cold prev", n, || {
        let mut c = open().cursor();
        c.last().unwrap();
        while c.valid() {
            c.prev().unwrap();
        }
    });
    rate("cold gets in order", n, || {
        let t = open();
        for i in 0..n {
            let k = key(2 * i);
            assert!(t.get(key_hash(&k), &k, 0).unwrap().is_some());
        }
    });
    let faults = crate::env::major_faults();
    rate("cold gets at random", n, || {
        let t = open();
        for i in 0..n {
            let k = key(2 * (i * 7_654_321 % n));
            assert!(t.get(key_hash(&k), &k, 0).unwrap().is_some());
        }
    });
    println!("of which waited {}", crate::env::major_faults() - faults);
}

#[test]
#[ignore = "a benchmark"]
fn reads() {
    let env = |name: &str, or| std::env::var(name).map_or(or, |v| v.parse().unwrap());
    let n = env("ESKER_BENCH_ENTRIES", 1_000_000u64);
    let per_table = env("ESKER_BENCH_PER_TABLE", 500_000u64);
    let only = std::env::var("ESKER_BENCH_ONLY").unwrap_or_default();
    for (name, compression, seqs) in [
        ("none", Compression::None, false),
        ("none, explicit sequences", Compression::None, true),
        ("lz4", Compression::Lz4, false),
        ("zstd", Compression::Zstd, false),
    ] {
        if only.is_empty() || only == name {
            println!("{name}:");
            measure(&build(n, per_table, compression, seqs), n);
        }
    }
}

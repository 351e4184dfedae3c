//! Tests of segments as a whole: what is written is read again, and nothing else ever is.

use std::path::Path;
use std::sync::Arc;

use super::format::FIRST_FRAME;
use super::frames::{End, Why};
use super::testing::{self, HeapEnv};
use super::*;
use crate::batch::WriteBatch;
use crate::env::{Env, OsEnv};
use crate::key::Kind;

/// An entry as the tests remember it.
type Entry = (u64, u32, Kind, Vec<u8>, Vec<u8>);

fn read_all(segment: &Segment) -> (Vec<Entry>, End) {
    let mut frames = segment.frames();
    let mut entries = Vec::new();
    for frame in frames.by_ref() {
        for (r, record) in frame.records() {
            assert_eq!(segment.record(r), record);
            assert_eq!(segment.key(r), record.key);
            assert_eq!(segment.try_record(r), Some(record));
            let Record { key, value, seq, kind, keyspace } = record;
            assert_eq!(seq, frame.seq);
            entries.push((seq, keyspace, kind, key.to_vec(), value.to_vec()));
        }
    }
    (entries, frames.end().unwrap())
}

#[test]
fn single_puts_come_back() {
    let (env, segment) = testing::segment(7, 64 << 10);
    let mut appender = Appender::new(segment.clone());
    let mut expected = Vec::new();
    for i in 0..100u64 {
        let (key, value) = (vec![i as u8; i as usize % 20], vec![b'v'; i as usize]);
        let (kind, value) = if i % 7 == 3 { (Kind::Delete, vec![]) } else { (Kind::Put, value) };
        let r = appender.append_one(i + 5, i as u32, kind, &key, &value).unwrap();
        let record = segment.record(r);
        assert_eq!((record.seq, record.keyspace, record.kind), (i + 5, i as u32, kind));
        assert_eq!((record.key, record.value), (&key[..], &value[..]));
        expected.push((i + 5, i as u32, kind, key, value));
    }
    let (entries, end) = read_all(&segment);
    assert_eq!(entries, expected);
    assert_eq!(end, End::Torn { offset: appender.end(), why: Why::Unwritten });
    let end = appender.end();
    appender.seal(104);
    let reopened = testing::reopen(&env, 7).unwrap();
    assert_eq!(read_all(&reopened), (expected, End::Clean { offset: end, last_seq: 104 }));
}

#[test]
fn a_full_segment_refuses_and_still_has_room_for_its_seal() {
    let (env, segment) = testing::segment(1, 8192);
    let mut appender = Appender::new(segment);
    let mut seq = 0;
    while appender.append_one(seq + 1, 0, Kind::Put, b"key", &[1; 61]).is_some() {
        seq += 1;
    }
    assert!(seq > 10 && appender.remaining() < 32 + 64);
    // A smaller one may still fit, to the last byte.
    let left = appender.remaining() as usize;
    if left >= 32 {
        let value = vec![2; left - 32];
        seq += 1;
        appender.append_one(seq, 0, Kind::Put, b"", &value).unwrap();
        assert_eq!(appender.remaining(), 0);
    }
    appender.seal(seq);
    let (entries, end) = read_all(&testing::reopen(&env, 1).unwrap());
    assert_eq!(entries.len() as u64, seq);
    assert!(matches!(end, End::Clean { last_seq, .. } if last_seq == seq));
}

#[test]
fn a_batch_is_one_frame() {
    let (_, segment) = testing::segment(1, 64 << 10);
    let mut appender = Appender::new(segment.clone());
    let mut batch = WriteBatch::new();
    batch.push(1, Kind::Put, b"a", b"1");
    batch.push(2, Kind::Delete, b"bb", b"");
    batch.push(3, Kind::Put, b"", &[9; 1000]);
    let mut seen = Vec::new();
    appender
        .append_batch(42, &batch, |r, keyspace, kind, key| {
            let record = segment.record(r);
            assert_eq!((record.keyspace, record.kind, record.key), (keyspace, kind, key));
            assert_eq!(record.seq, 42);
            seen.push(record.value.to_vec());
        })
        .unwrap();
    assert_eq!(seen, [b"1".to_vec(), vec![], vec![9; 1000]]);
    assert_eq!(appender.end() as usize, FIRST_FRAME + batch.byte_len());
    let (entries, _) = read_all(&segment);
    assert_eq!(entries.len(), 3);
    assert!(entries.iter().all(|e| e.0 == 42));
}

/// What a single put costs, against a real file: `cargo test --release -p esker log_speed -- \
/// --ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn log_speed() {
    use std::time::Instant;
    let dir = std::env::var_os("ESKER_TEST_DIR").map_or_else(std::env::temp_dir, Into::into);
    let dir = tempfile::tempdir_in(dir).unwrap();
    let env: Arc<dyn Env> = Arc::new(OsEnv::new());
    let bytes = 64 << 20;
    let puts = (bytes - 8192) / 152;
    let mut refs = vec![1; puts as usize];
    let mut costs: [Vec<f64>; 6] = Default::default();
    let mut number = 0;
    let mut create = |old: Option<&Segment>| {
        number += 1;
        let old = old.map(Segment::path);
        Arc::new(Segment::create(&env, dir.path(), number, bytes, old).unwrap())
    };
    for _ in 0..9 {
        let fresh = create(None);
        let mut appender = Appender::new(fresh.clone());
        let mut fill = |appender: &mut Appender, cost: &mut Vec<f64>| {
            let start = Instant::now();
            for i in 0..puts {
                let r = appender.append_one(i, 0, Kind::Put, &format_key(i), &[7; 100]);
                refs[i as usize] = r.unwrap();
            }
            cost.push(start.elapsed().as_nanos() as f64 / puts as f64);
        };
        fill(&mut appender, &mut costs[0]);
        let recycled = create(Some(&fresh));
        let mut appender = Appender::new(recycled.clone());
        fill(&mut appender, &mut costs[1]);

        let start = Instant::now();
        let sum: u64 = refs
            .iter()
            .map(|&r| recycled.record(r))
            .map(|r| r.seq + r.key.len() as u64 + u64::from(r.value[99]))
            .sum();
        costs[2].push(start.elapsed().as_nanos() as f64 / puts as f64);
        assert_eq!(sum, puts * (puts - 1) / 2 + 23 * puts);
        let start = Instant::now();
        assert_eq!(recycled.frames().count() as u64, puts);
        costs[3].push(start.elapsed().as_nanos() as f64 / puts as f64);
        env.remove(recycled.path()).unwrap();

        let large = create(None);
        let mut appender = Appender::new(large.clone());
        let value = vec![3; 100 << 10];
        let start = Instant::now();
        let mut n = 0;
        while appender.append_one(n + 1, 0, Kind::Put, &format_key(n), &value).is_some() {
            n += 1;
        }
        costs[4].push(start.elapsed().as_nanos() as f64 / n as f64);
        assert_eq!(large.frames().count() as u64, n);
        env.remove(large.path()).unwrap();

        let batched = create(None);
        let mut appender = Appender::new(batched.clone());
        let mut batch = WriteBatch::new();
        (0..1000).for_each(|i| batch.push(0, Kind::Put, &format_key(i), &[7; 100]));
        let start = Instant::now();
        let (mut n, mut keys) = (0, 0);
        while appender.append_batch(n + 1, &batch, |_, _, _, key| keys += key.len()).is_some() {
            n += 1;
        }
        costs[5].push(start.elapsed().as_nanos() as f64 / (n * 1000) as f64);
        assert_eq!(batched.frames().count() as u64, n);
        assert_eq!(keys as u64, n * 16_000);
        env.remove(batched.path()).unwrap();
    }
    let names = [
        "put, fresh",
        "put, recycled",
        "record",
        "frame",
        "put of 100 KiB, fresh",
        "entry of a batch, fresh",
    ];
    for (name, cost) in names.iter().zip(&mut costs) {
        cost.sort_by(f64::total_cmp);
        println!("{name:>24}: median {:8.1} ns, best {:8.1} ns", cost[4], cost[0]);
    }
}

fn format_key(n: u64) -> [u8; 16] {
    let (mut key, mut n) = ([b'0'; 16], n);
    for b in key.iter_mut().rev() {
        *b += (n % 10) as u8;
        n /= 10;
    }
    key
}

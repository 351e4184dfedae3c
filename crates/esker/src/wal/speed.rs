//! Measurements of the log on a real file system; no assertions about time.
//!
//! `ESKER_TEST_DIR=/somewhere cargo test --release -p esker log_speed -- --ignored --nocapture`

use std::sync::Arc;
use std::time::Instant;

use super::*;
use crate::batch::WriteBatch;
use crate::env::{Env, OsEnv};
use crate::key::Kind;

#[test]
#[ignore = "a measurement"]
fn log_speed() {
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
        let mut log_writer = LogWriter::new(fresh.clone());
        let mut fill = |log_writer: &mut LogWriter, cost: &mut Vec<f64>| {
            let start = Instant::now();
            for i in 0..puts {
                let r = log_writer.append_one(i, 0, Kind::Put, &format_key(i), &[7; 100]);
                refs[i as usize] = r.unwrap();
            }
            cost.push(start.elapsed().as_nanos() as f64 / puts as f64);
        };
        fill(&mut log_writer, &mut costs[0]);
        let recycled = create(Some(&fresh));
        let mut log_writer = LogWriter::new(recycled.clone());
        fill(&mut log_writer, &mut costs[1]);

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
        let mut log_writer = LogWriter::new(large.clone());
        let value = vec![3; 100 << 10];
        let start = Instant::now();
        let mut n = 0;
        while log_writer.append_one(n + 1, 0, Kind::Put, &format_key(n), &value).is_some() {
            n += 1;
        }
        costs[4].push(start.elapsed().as_nanos() as f64 / n as f64);
        assert_eq!(large.frames().count() as u64, n);
        env.remove(large.path()).unwrap();

        let batched = create(None);
        let mut log_writer = LogWriter::new(batched.clone());
        let mut batch = WriteBatch::new();
        (0..1000).for_each(|i| batch.push(0, Kind::Put, &format_key(i), &[7; 100]));
        let start = Instant::now();
        let (mut n, mut keys) = (0, 0);
        while log_writer.append_batch(n + 1, &batch, |_, _, _, key, _| keys += key.len()).is_some()
        {
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

//! Experiment (g): what a reader notices of a merge that runs beside it.
//!
//! A store of 1 M entries, settled. Readers get random keys, one at a time, and note how long each
//! get took: alone, and while another thread rewrites the whole store again and again. On two cores
//! one reader has a core of its own; two readers do not.
//!
//!     cargo run --release -p experiments --bin reader_beside_merger

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use esker::{Compression, Db, Options, WriteBatch};
use experiments::{Random, key16};

const ENTRIES: u64 = 1_000_000;
const MEASURE: Duration = Duration::from_secs(3);

fn main() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let db = Options::new()
        .compression(Compression::None)
        .open(dir.path().join("db"))
        .expect("the store opens");
    for first in (0..ENTRIES).step_by(1000) {
        let mut batch = WriteBatch::new();
        for n in first..first + 1000 {
            batch.put(key16(n), [b'v'; 100]);
        }
        db.write(batch).expect("the batch is written");
    }
    db.wait_for_compactions().expect("the store settles");
    println!(
        "{:<34} {:>9} {:>8} {:>8} {:>9} {:>9}",
        "ns a get", "gets/s", "p50", "p99", "p99.9", "max"
    );
    for readers in [1, 2] {
        // Alternating, so that a machine that drifts does not decide.
        for _ in 0..2 {
            report(&format!("{readers} readers, alone"), measure(&db, readers, false));
            report(&format!("{readers} readers beside a merge"), measure(&db, readers, true));
        }
    }
}

/// All latencies in ns, sorted.
fn measure(db: &Db, readers: u64, merging: bool) -> Vec<u32> {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        if merging {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    db.compact_range::<&[u8]>(..).expect("the merge succeeds");
                }
            });
        }
        let threads: Vec<_> = (0..readers).map(|r| scope.spawn(move || read(db, r))).collect();
        let mut all: Vec<u32> =
            threads.into_iter().flat_map(|t| t.join().expect("the reader ends")).collect();
        stop.store(true, Ordering::Relaxed);
        all.sort_unstable();
        all
    })
}

fn read(db: &Db, seed: u64) -> Vec<u32> {
    let mut random = Random(seed);
    let mut latencies = Vec::with_capacity(8 << 20);
    let start = Instant::now();
    let mut before = start;
    while before - start < MEASURE {
        let value = db.get(key16(random.below(ENTRIES))).expect("the get succeeds");
        assert_eq!(value.map(|v| v.len()), Some(100));
        let now = Instant::now();
        latencies.push((now - before).as_nanos().min(u32::MAX as u128) as u32);
        before = now;
    }
    latencies
}

fn report(what: &str, sorted: Vec<u32>) {
    let at = |share: f64| sorted[((sorted.len() - 1) as f64 * share) as usize];
    println!(
        "{what:<34} {:>9.0} {:>8} {:>8} {:>9} {:>9}",
        sorted.len() as f64 / MEASURE.as_secs_f64(),
        at(0.5),
        at(0.99),
        at(0.999),
        at(1.0),
    );
}

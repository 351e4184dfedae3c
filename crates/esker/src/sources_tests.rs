//! What bounds the sources of a read: segments that wait, and runs. The background work is done by
//! whoever waits for it, so nothing here depends on how fast it is.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::env::sim::SimEnv;
use crate::{Compression, Db, Options};

/// As [`RUNS_MOST`](crate::compaction::picker::RUNS_MOST), and those that came since: of the memtables, and
/// of the load or checkpoint itself.
const RUNS: usize = 32 + 2;

fn open(options: Options) -> Db {
    let options = options.compression(Compression::None);
    Db::open_in(Arc::new(SimEnv::new(1, true)), Path::new("/db"), options).unwrap()
}

fn runs(db: &Db) -> usize {
    db.stats().keyspaces.iter().map(|k| k.runs.len()).max().unwrap()
}

#[test]
fn small_segments_waited_by_the_thousand() {
    for memory in [1 << 20, 16 << 30] {
        let db = open(Options::new().memory(memory).segment_size(64 << 10));
        let mut most = 0;
        for n in 0..7_000u32 {
            db.put(n.wrapping_mul(7919).to_be_bytes(), [n as u8; 1000]).unwrap();
            most = most.max(db.store().segments.totals().log_segments);
        }
        // Those that wait, the active one, and what came in between two looks.
        assert!((32..=66).contains(&most), "{most} segments with {memory} bytes of memory");
        assert_eq!(db.iter().filter(|e| e.is_ok()).count(), 7_000);
    }
}

#[test]
fn whoever_seals_what_is_not_full_waits_too() {
    let db = open(Options::new());
    for n in 0..150u32 {
        db.put(n.to_be_bytes(), "value").unwrap();
        db.store().seal_active().unwrap();
        let waiting = db.store().segments.totals().log_segments;
        assert!(waiting <= 66, "{waiting} segments");
    }
    assert_eq!(db.iter().filter(|e| e.is_ok()).count(), 150);
}

#[test]
fn who_searches_many_sources_is_heard_by_compactions_and_writers() {
    let pressure = |memtables: u32| {
        let db = open(Options::new());
        for n in 0..memtables {
            db.put(n.to_be_bytes(), "value").unwrap();
            db.store().seal_active().unwrap();
        }
        let mut cursor = db.cursor();
        for n in 0..30_000u32 {
            cursor.seek((n % 8).to_be_bytes()).unwrap();
        }
        // Searches ask all of them; reads of single keys do not count.
        assert!(db.get(0u32.to_be_bytes()).unwrap().is_some());
        std::thread::sleep(Duration::from_millis(30));
        db.store().step(Duration::ZERO);
        db.store().backpressure.readers()
    };
    assert_eq!(pressure(2), 0.0);
    assert!(pressure(12) > 0.0);
}

#[test]
fn loads_and_checkpoints_in_a_loop_made_a_run_each() {
    let db = open(Options::new().memory(1 << 20));
    let mut most = 0;
    for n in 0..100u32 {
        let ends = [format!("a{n:03}"), format!("z{n:03}")];
        db.bulk_load(ends.iter().map(|k| (k, "loaded"))).unwrap();
        most = most.max(runs(&db));
    }
    assert!((16..=RUNS).contains(&most), "{most} runs of loads");
    let mut most = 0;
    for n in 0..50u32 {
        db.put(format!("a{n:03}"), "put").unwrap();
        db.put(format!("z{n:03}"), "put").unwrap();
        db.checkpoint(format!("/copy{n}")).unwrap();
        most = most.max(runs(&db));
    }
    assert!(most <= RUNS, "{most} runs of checkpoints");
    assert_eq!(db.iter().filter(|e| e.is_ok()).count(), 200);
}

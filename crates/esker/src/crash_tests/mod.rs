//! Power cuts, crashes during recovery and failing calls, on a simulated disk.
//!
//! A run prints how to see a failure again. `ESKER_SEED=n` runs that seed alone, `ESKER_IMAGES=n`
//! says how many disks are looked at.

mod explore;
mod fault_campaigns;
mod faults;
mod oracle;
mod regressions;
mod workload;

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::env::sim::CrashPoints;
use crate::fuzzing::testing::quick_or_full;
use explore::{Counts, ImagePlan, explore};
use parking_lot::Mutex;

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is {text:?} and should be a number")))
}

/// Explores workload after workload, on two threads, until there were so many images.
fn campaign(
    first_seed: u64,
    want: impl Fn(&Counts) -> bool + Sync,
    plan: impl Fn(u64) -> ImagePlan + Sync,
) {
    if let Some(seed) = number("ESKER_SEED") {
        println!("{:?}", explore(plan(seed)));
        return;
    }
    let next = AtomicU64::new(first_seed);
    let failed = AtomicUsize::new(0);
    let all = Mutex::new(Counts::default());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while failed.load(Ordering::Relaxed) == 0 && want(&all.lock()) {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    let run = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                        explore(plan(seed))
                    }));
                    let Ok(c) = run else {
                        failed.store(seed as usize, Ordering::Relaxed);
                        return;
                    };
                    let mut all = all.lock();
                    all.moments += c.moments;
                    all.images += c.images;
                    all.nested += c.nested;
                    all.checkpoints += c.checkpoints;
                }
            });
        }
    });
    println!("seeds {first_seed} to {}: {:?}", next.into_inner() - 1, all.into_inner());
    let failed = failed.into_inner();
    assert!(failed == 0, "seed {failed} failed; its message is above");
}

/// How many disks are looked at.
fn images() -> usize {
    number("ESKER_IMAGES").unwrap_or(quick_or_full(1_500, 20_000)) as usize
}

/// What is explored of a seed where a test does not say otherwise.
fn plan(seed: u64) -> ImagePlan {
    let points = CrashPoints::OneIn(6);
    ImagePlan { seed, ops: 150, points, images: 9, nested: false, stepped: true }
}

#[test]
fn a_power_cut_keeps_a_prefix_with_every_synced_write() {
    let images = images();
    campaign(1, |c| c.images < images, plan);
}

#[test]
fn a_power_cut_with_the_background_thread_running_free() {
    let images = images() / 10;
    let plan = |seed| ImagePlan { stepped: false, ..plan(seed) };
    campaign(1_000_001, |c| c.images < images, plan);
}

#[test]
fn a_crash_during_recovery_loses_nothing_more() {
    let images = images() / 10;
    let points = CrashPoints::OneIn(12);
    let plan = |seed| ImagePlan { ops: 120, points, images: 8, nested: true, ..plan(seed) };
    campaign(2_000_001, |c| c.nested < images, plan);
}

#[test]
fn a_power_cut_at_every_call() {
    for seed in 3_000_001..3_000_003 {
        let points = CrashPoints::Always;
        println!("{:?}", explore(ImagePlan { ops: 60, points, images: 6, ..plan(seed) }));
    }
}

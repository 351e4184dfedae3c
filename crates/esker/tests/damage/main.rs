//! Damage to every kind of file: each answer of a damaged store is right or an error, verification
//! says what is wrong, and repair loses nothing that it does not name.
//!
//! Small stores, by tens of thousands of damages: every byte flipped, then random ones, also two at
//! once; each case is read, one in some is repaired, twice. Larger stores, file by file and at random,
//! opened in all ways and repaired. Stores that were closed, and stores that were killed with
//! several segments of log: of these a damaged log may come back shorter, as after a power cut,
//! but what comes back is always the store as it once was.
//!
//! `ESKER_SEED=n` sets the seed, `ESKER_CASES=n` the number of random damages per small store (200, or
//! 3,000), `ESKER_ROUNDS=n` that per large store (30, or 150).

#[path = "../common/mod.rs"]
mod common;
mod harm;
mod judge;
mod reading;
mod specimen;

use common::{number, quick_or_full};
use esker::Compression;
use esker_trust::Rng;
use harm::{Harm, What};
use judge::{Effort, judge};
use specimen::{Kind, Plan, Specimen};

/// A seed's store, and numbers to damage it by. Fails when the work takes too long.
fn with(test: &str, plan: Plan, work: impl FnOnce(&Specimen, &mut Rng) + Send + 'static) {
    let seed = common::seed(test);
    // A campaign's thousands share the machine with much else: ten minutes were too few beside builds.
    judge::within_seconds(quick_or_full(600, 1500), move || {
        let mut rng = Rng::new(seed);
        // The background thread flushes when it comes to it: one with less log than is wanted is made anew.
        let mut made = (0..30).map(|_| Specimen::new(plan.clone(), &mut rng));
        let wanted = if plan.killed { plan.segments } else { 0 };
        let specimen = made.find(|s| s.names(Kind::Log).len() >= wanted);
        let specimen = specimen.expect("a log of a few segments");
        judge(&specimen, &[Harm::new("nothing", What::Nothing)], Effort::All);
        work(&specimen, &mut rng);
    });
}

/// Damages the files of one kind in every way, `flips` bits among them.
fn each_file(test: &str, kind: Kind, killed: bool, flips: u64) {
    with(test, Plan::large(killed), move |specimen, rng| {
        let names = specimen.names(kind);
        assert!(!names.is_empty(), "the store has no such file");
        let each = flips.div_ceil(names.len() as u64) as usize;
        for name in &names {
            for harm in harm::all(name, &specimen.files[name], each, rng) {
                judge(specimen, &[harm], Effort::All);
            }
        }
    });
}

/// One damage at random, now and then two.
fn at_random(specimen: &Specimen, rng: &mut Rng) -> Vec<Harm> {
    let n = if rng.one_in(9) { 2 } else { 1 };
    (0..n).map(|_| harm::random(&specimen.files, rng)).collect()
}

fn thousands(test: &str, killed: bool, compression: Compression) {
    let name = test.to_string();
    with(test, Plan::small(killed, compression), move |specimen, rng| {
        let effort = |rng: &mut Rng| if rng.one_in(25) { Effort::Repair } else { Effort::Read };
        let mut cases = 0;
        let every = quick_or_full(25, 1) as usize;
        for (file, bytes) in &specimen.files {
            for at in (rng.index(every)..harm::used(bytes)).step_by(every) {
                let harm = Harm::new(file, What::Flip(at, rng.below(8) as u8));
                judge(specimen, &[harm], effort(rng));
                cases += 1;
            }
        }
        for _ in 0..number("ESKER_CASES").unwrap_or(quick_or_full(200, 3_000)) {
            judge(specimen, &at_random(specimen, rng), effort(rng));
            cases += 1;
        }
        println!("{name}: {cases} cases");
    });
}

fn rounds(test: &str, killed: bool) {
    with(test, Plan::large(killed), move |specimen, rng| {
        for _ in 0..number("ESKER_ROUNDS").unwrap_or(quick_or_full(30, 150)) {
            judge(specimen, &at_random(specimen, rng), Effort::All);
        }
    });
}

#[test]
fn nothing_wrong_is_found_for_what_is_not_of_the_store() {
    for killed in [false, true] {
        with("foreign", Plan::large(killed), |specimen, _| {
            for harm in harm::foreign() {
                judge(specimen, &[harm], Effort::All);
            }
        });
    }
}

#[test]
fn damage_to_current() {
    each_file("damage_to_current", Kind::Current, false, u64::MAX);
}

#[test]
fn damage_to_the_manifest_of_a_closed_store() {
    let name = "damage_to_the_manifest_of_a_closed_store";
    each_file(name, Kind::Manifest, false, quick_or_full(50, 150));
}

#[test]
fn damage_to_the_manifest_of_a_killed_store() {
    let name = "damage_to_the_manifest_of_a_killed_store";
    each_file(name, Kind::Manifest, true, quick_or_full(20, 60));
}

#[test]
fn damage_to_tables() {
    each_file("damage_to_tables", Kind::Table, false, quick_or_full(50, 150));
}

#[test]
fn damage_to_separated_values() {
    each_file("damage_to_separated_values", Kind::Values, false, quick_or_full(35, 100));
}

#[test]
fn damage_to_the_log_of_a_killed_store() {
    each_file("damage_to_the_log_of_a_killed_store", Kind::Log, true, quick_or_full(30, 80));
}

#[test]
fn a_large_closed_store_damaged_at_random() {
    rounds("a_large_closed_store", false);
}

#[test]
fn a_large_killed_store_damaged_at_random() {
    rounds("a_large_killed_store", true);
}

#[test]
fn a_closed_store_by_thousands() {
    thousands("a_closed_store", false, Compression::None);
}

#[test]
fn a_closed_store_with_compression_by_thousands() {
    thousands("a_closed_store_with_compression", false, Compression::Zstd);
}

#[test]
fn a_killed_store_by_thousands() {
    thousands("a_killed_store", true, Compression::None);
}

#[test]
fn a_killed_store_with_compression_by_thousands() {
    thousands("a_killed_store_with_compression", true, Compression::Lz4);
}

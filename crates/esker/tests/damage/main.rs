//! Damage to every kind of file: each answer of a damaged store is right or an error, verification
//! says what is wrong, and repair loses nothing that it does not name.

#[path = "../common/mod.rs"]
mod common;
mod harm;
mod judge;
mod specimen;

use common::rng::Rng;
use harm::Harm;
use judge::judge;
use specimen::{Kind, Specimen};

/// Damages the files of one kind in every way, `flips` bits among them, and judges each result.
fn damage(test: &str, kind: Kind, specimen: fn(u64) -> Specimen, flips: usize) {
    let seed = common::seed(test);
    judge::within_seconds(300, move || {
        let specimen = specimen(seed);
        let mut rng = Rng::new(seed);
        let files = specimen.files(kind);
        assert!(!files.is_empty(), "the store has no such file");
        let each = flips.div_ceil(files.len());
        for file in &files {
            for harm in harm::all(file, &specimen.contents[file], each, &mut rng) {
                judge(&specimen, kind, &harm);
            }
        }
    });
}

#[test]
fn nothing_wrong_is_found_in_a_sound_store_or_for_what_is_not_its_own() {
    for specimen in [Specimen::closed(1), Specimen::killed(1)] {
        judge(&specimen, Kind::Foreign, &Harm::none());
        for harm in harm::foreign() {
            judge(&specimen, Kind::Foreign, &harm);
        }
    }
}

#[test]
fn damage_to_current() {
    damage("damage_to_current", Kind::Current, Specimen::closed, usize::MAX);
}

#[test]
fn damage_to_the_manifest_of_a_closed_store() {
    damage("damage_to_the_manifest_of_a_closed_store", Kind::Manifest, Specimen::closed, 150);
}

#[test]
fn damage_to_the_manifest_of_a_killed_store() {
    damage("damage_to_the_manifest_of_a_killed_store", Kind::Manifest, Specimen::killed, 60);
}

#[test]
fn damage_to_tables() {
    damage("damage_to_tables", Kind::Table, Specimen::closed, 150);
}

#[test]
fn damage_to_separated_values() {
    damage("damage_to_separated_values", Kind::Values, Specimen::closed, 100);
}

#[test]
fn damage_to_the_log_of_a_killed_store() {
    damage("damage_to_the_log_of_a_killed_store", Kind::Log, Specimen::killed, 80);
}

//! The scenarios, one a file.

mod closures;
mod comparators;
mod compression;
mod damage;
mod directories;
mod extremes;
mod foreign;
mod held;
mod loads;
mod moments;
mod processes;
mod small;

use super::round::Round;

/// What a round may be.
pub struct Scenario {
    pub name: &'static str,
    pub play: fn(&mut Round) -> Result<(), String>,
    /// What it does in other processes, by its arguments.
    pub part: fn(&[&str]) -> Result<(), String>,
}

/// A scenario that needs no other process.
fn no_part(_: &[&str]) -> Result<(), String> {
    Err("this scenario has no part".to_string())
}

pub const ALL: &[Scenario] = &[
    closures::SCENARIO,
    comparators::SCENARIO,
    compression::SCENARIO,
    damage::SCENARIO,
    directories::SCENARIO,
    extremes::SCENARIO,
    foreign::SCENARIO,
    held::SCENARIO,
    loads::SCENARIO,
    moments::SCENARIO,
    processes::SCENARIO,
    small::SCENARIO,
];

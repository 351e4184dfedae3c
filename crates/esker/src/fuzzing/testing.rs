//! Runs of a target without libFuzzer: from its committed inputs, for some seconds of random changes,
//! on any compiler.
//!
//! `ESKER_FUZZ_SECONDS` sets how long each runs (1, or 10), `ESKER_SEED` the seed. A failure leaves its
//! input in a file that it names.
//!
//! How much tests of the library do in an ordinary run, and in a campaign, is told apart here too.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

use super::Target;
use super::mutate::mutate;
use crate::util::Rng;

pub(super) fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// A seed that is not that of the run before.
fn fresh_seed() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(1, |now| now.as_nanos() as u64 % 1_000_000_000)
}

/// How many of something a test does: `quick` while somebody waits for it, `full` in a campaign
/// (`ESKER_CAMPAIGN=1`, which `scripts/test.sh --all` sets).
pub fn quick_or_full(quick: u64, full: u64) -> u64 {
    if std::env::var_os("ESKER_CAMPAIGN").is_some() { full } else { quick }
}

/// All cases in a campaign and when a seed is run again; else every n-th, from another one on each time.
#[cfg(test)]
pub(crate) fn some_of<T>(cases: impl Iterator<Item = T>, n: u64) -> impl Iterator<Item = T> {
    let n = if number("ESKER_SEED").is_some() { 1 } else { quick_or_full(n, 1) };
    cases.skip((fresh_seed() % n) as usize).step_by(n as usize)
}

/// The committed inputs, in order: seeds, and what once failed.
fn committed(dir: &Path) -> Vec<Vec<u8>> {
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    let mut paths: Vec<_> = entries.map(|e| e.expect("an entry").path()).collect();
    paths.sort();
    paths.iter().map(|p| fs::read(p).expect("an input")).collect()
}

fn run(target: &Target, input: &[u8], what: &str) {
    let done = catch_unwind(AssertUnwindSafe(|| (target.run)(input)));
    if done.is_err() {
        let path = std::env::temp_dir().join(format!("esker-fuzz-{}.input", target.name));
        fs::write(&path, input).expect("a file for the input");
        panic!("{} fails ({what}); the input is in {}", target.name, path.display());
    }
}

/// Runs `target` on all inputs in `corpus/NAME`, and then on random changes of them.
///
/// # Panics
/// When the target does, or there are no inputs.
pub fn drive(target: &Target, corpus: &Path) {
    let dir = corpus.join(target.name);
    let inputs = committed(&dir);
    assert!(!inputs.is_empty(), "no inputs in {}", dir.display());
    for (n, input) in inputs.iter().enumerate() {
        run(target, input, &format!("committed input {n}"));
    }
    let seed = number("ESKER_SEED").unwrap_or_else(fresh_seed);
    let mut rng = Rng::new(seed);
    let time = Duration::from_secs(number("ESKER_FUZZ_SECONDS").unwrap_or(quick_or_full(1, 10)));
    let (start, mut runs) = (Instant::now(), 0u64);
    let mut slowest = Duration::ZERO;
    while start.elapsed() < time {
        let mut input = inputs[rng.below(inputs.len())].clone();
        mutate(&mut input, &inputs[rng.below(inputs.len())], &mut rng);
        let began = Instant::now();
        run(target, &input, &format!("ESKER_SEED={seed}, run {runs}"));
        slowest = slowest.max(began.elapsed());
        runs += 1;
    }
    let name = target.name;
    println!("{name}: {runs} runs, ESKER_SEED={seed}, the slowest took {slowest:?}");
}

//! What the tests of the public interface share.
#![allow(dead_code)] // each test uses a part

pub mod files;
pub mod model;
pub mod rng;

use std::cmp::Ordering;
use std::sync::Arc;

use esker::{Comparator, KeyOrder};

/// ASCII letters compare without case: keys that differ in bytes can be one key.
pub struct NoCase;

impl Comparator for NoCase {
    fn name(&self) -> &str {
        "test.nocase"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let lower = |s: &[u8]| s.iter().map(u8::to_ascii_lowercase).collect::<Vec<u8>>();
        lower(a).cmp(&lower(b))
    }
}

/// [`NoCase`] as an order.
pub fn no_case() -> KeyOrder {
    KeyOrder::Custom(Arc::new(NoCase))
}

/// The seed of a test: `ESKER_SEED`, or a new one. Printed, so that a failure can be run again.
pub fn seed(test: &str) -> u64 {
    let fresh = || {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        now.as_nanos() as u64 % 1_000_000_000
    };
    let seed = number("ESKER_SEED").unwrap_or_else(fresh);
    println!("{test}: ESKER_SEED={seed}");
    seed
}

/// A number from the environment.
pub fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text} is not a number")))
}

/// How many of something a test does: `quick` while somebody waits for it, `full` in a campaign
/// (`ESKER_CAMPAIGN=1`, which `scripts/test.sh --all` sets).
pub fn quick_or_full(quick: u64, full: u64) -> u64 {
    if std::env::var_os("ESKER_CAMPAIGN").is_some() { full } else { quick }
}

/// A short form of a key for messages.
pub fn show(key: &[u8]) -> String {
    let cut = &key[..key.len().min(40)];
    let more = if key.len() > 40 { format!("... ({} bytes)", key.len()) } else { String::new() };
    format!("\"{}\"{more}", cut.escape_ascii())
}

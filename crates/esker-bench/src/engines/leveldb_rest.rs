//! When LevelDB and its forks have nothing more to compact: by the rules of LevelDB, and for forks, which have others, by what can
//! be seen of them.

use crate::engine::Unsupported;
use crate::system;
use anyhow::Result;
use std::time::Duration;

/// Waits until a fork compacts no more, by rules that are not known here: for a step no file came or went, and the process
/// computed next to nothing, as one compaction may take longer than a step. That last step counts for whoever times this.
/// `tables` tells its files.
pub fn wait_until_quiet(tables: impl Fn() -> String) -> Result<()> {
    const STEP: Duration = Duration::from_millis(100);
    const STEPS_MAX: u32 = 6000;
    let mut before = (tables(), system::cpu_seconds());
    for _ in 0..STEPS_MAX {
        std::thread::sleep(STEP);
        let now = (tables(), system::cpu_seconds());
        if now.0 == before.0 && now.1 - before.1 < STEP.as_secs_f64() / 10.0 {
            return Ok(());
        }
        before = now;
    }
    Err(Unsupported::too_slow("it still compacts after ten minutes").into())
}

/// Whether LevelDB has something to compact by its own rules (`VersionSet::Finalize`): four files that were flushed, or ten
/// MiB in the level below them, ten times as much in the next, and so on. The last level has no limit.
pub fn owes(tables: &str) -> bool {
    const LAST: i32 = 6;
    let (mut level, mut files, mut bytes) = (0, 0, 0);
    for line in tables.lines() {
        if let Some(number) = line.strip_prefix("--- level ") {
            level = number.trim_end_matches(" ---").parse().unwrap_or(LAST);
            (files, bytes) = (0, 0);
        } else if let Some((_, file)) = line.split_once(':') {
            files += 1;
            bytes += file.split('[').next().and_then(|size| size.parse().ok()).unwrap_or(0u64);
        }
        let limit = 10.0 * 1048576.0 * 10f64.powi(level - 1);
        let full = if level == 0 { files >= 4 } else { bytes as f64 >= limit };
        if full && level < LAST {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_owes_what_its_own_rules_say() {
        let level = |number: u32, files: &[u64]| {
            let lines =
                files.iter().map(|size| format!(" 17:{size}['a:[' @ 1 : 1 .. 'd' @ 2 : 1]\n"));
            format!("--- level {number} ---\n{}", lines.collect::<String>())
        };
        let all = |zero: &[u64], one: &[u64], two: &[u64], last: &[u64]| {
            owes(&(level(0, zero) + &level(1, one) + &level(2, two) + &level(6, last)))
        };
        let mib = 1 << 20;
        assert!(!all(&[mib; 3], &[2 * mib; 4], &[2 * mib; 49], &[1 << 50]));
        assert!(all(&[1; 4], &[], &[], &[]));
        assert!(all(&[], &[2 * mib; 5], &[], &[]));
        assert!(all(&[], &[], &[2 * mib; 50], &[]));
        assert!(!owes(""));
    }
}

//! Whether the stores will fit onto the disk, before hours go by.

use crate::plan::{Case, CaseId};
use crate::system;
use anyhow::{Result, bail};
use std::path::Path;

/// How many times its keys and values a store may take while it is written: a log, old versions that
/// a merge has not removed, pages that are half full.
const TIMES: u64 = 4;
/// The same where it is overwritten without limit: as much as the worst of them was seen to take in a minute.
const TIMES_FLOODED: u64 = 12;
/// What a store takes however little is in it: logs, made ahead.
const AT_LEAST: u64 = 256 << 20;

/// An error if the largest store may not fit; one is there at a time.
pub fn check<'a>(dir: &Path, cases: impl Iterator<Item = &'a Case>) -> Result<()> {
    let mut needed = 0;
    for case in cases {
        needed = needed.max(of_case(case)?);
    }
    match system::free_bytes(dir) {
        Some(free) if free < needed => bail!(
            "the largest store may need {} MB, and {} has {} MB free: \
             take another directory (--dir) or less data (--scale, --rows)",
            needed / 1_000_000,
            dir.parent().unwrap_or(dir).display(),
            free / 1_000_000,
        ),
        _ => Ok(()),
    }
}

fn of_case(case: &Case) -> Result<u64> {
    let raw = match (case.id, case.plan.memory_limit) {
        // These are as large as the limit demands.
        (CaseId::LimitedReads | CaseId::LimitedFill, Some(limit)) => limit * 4,
        _ => case.plan.raw_bytes_about()?,
    };
    let times = match case.id {
        CaseId::Sustained | CaseId::BesideFlood => TIMES_FLOODED,
        _ => TIMES,
    };
    Ok(raw.saturating_mul(times).saturating_add(AT_LEAST))
}

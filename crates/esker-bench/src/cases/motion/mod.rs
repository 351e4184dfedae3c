//! Stores that are written to as they are read, or were until a moment ago. One row a process, so that no
//! row is measured in what another one left.

mod gaps;
mod queue;
mod reads;
mod scans;
mod sustained;

use crate::child::Ctx;
use crate::engine::Engine;
use crate::plan::CaseId;
use anyhow::Result;

/// Runs a case of a store in motion.
pub fn run<E: Engine>(ctx: &Ctx) -> Result<()> {
    match ctx.spec.case {
        CaseId::LoadedReads | CaseId::OverwrittenReads => reads::after_writes::<E>(ctx),
        CaseId::BesideWriter | CaseId::BesideFlood => reads::beside_writes::<E>(ctx),
        CaseId::Gap | CaseId::Gaps => gaps::run::<E>(ctx),
        CaseId::FreshOrdered | CaseId::FreshRandom => scans::fresh::<E>(ctx),
        CaseId::FirstScan => scans::first::<E>(ctx),
        CaseId::Sustained => sustained::run::<E>(ctx),
        _ => queue::run::<E>(ctx),
    }
}

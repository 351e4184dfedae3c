//! The calls whose form is about to change, each in one place.

use std::path::Path;

use esker::{Db, Durability, Options, RepairReport, Result, WriteBatch};

use super::tally::{Of, count};

/// Writes a batch and leaves it as it is.
pub fn write(db: &Db, batch: &WriteBatch, durability: Durability) -> Result<()> {
    db.write_with(batch.clone(), durability)
}

/// Repairs a store whose orders are those in `options`.
pub fn repair(options: Options, path: &Path) -> Result<RepairReport> {
    count(Of::Repairs, 1);
    options.repair(path)
}

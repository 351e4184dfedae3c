//! The store that is going to be damaged: half of it at rest in tables or pages, half where the engine
//! keeps what was written last; with overwritten and deleted entries, so that an old one can come back.

use super::entry;
use crate::engine::{Engine, Hint, Writer};
use anyhow::Result;

/// Keys that were ever written.
pub const KEYS: u32 = 3300;

/// Writes of a batch.
const BATCH: usize = 100;

/// Which write of a key must be found; `None` when it was deleted.
pub fn expected(key: u32) -> Option<u64> {
    match key % 10 {
        4 => None,
        0 => Some(2),
        n if n % 2 == 1 => Some(2),
        _ => Some(1),
    }
}

/// Whether a write was ever one of this key.
pub fn was_written(key: u32, version: u64) -> bool {
    key < KEYS
        && (version == 1 && key.is_multiple_of(2) || version == 2 && expected(key) == Some(2))
}

/// Makes it.
pub fn build<E: Engine>(engine: &E) -> Result<()> {
    put_all(engine, 1)?;
    engine.settle()?;
    put_all(engine, 2)?;
    let mut writer = engine.writer(Hint::Any)?;
    for key in (0..KEYS).filter(|key| expected(*key).is_none()) {
        writer.delete(&entry::key(key))?;
    }
    Ok(())
}

fn put_all<E: Engine>(engine: &E, version: u64) -> Result<()> {
    let mut writer = engine.writer(Hint::Any)?;
    let keys: Vec<u32> = (0..KEYS).filter(|key| was_written(*key, version)).collect();
    for chunk in keys.chunks(BATCH) {
        for key in chunk {
            writer.batch_put(&entry::key(*key), &entry::value(*key, version))?;
        }
        writer.batch_commit()?;
    }
    Ok(())
}

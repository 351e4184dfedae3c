//! Walking over the entries of an engine that has iterators.

use anyhow::{Error, Result};

/// Hands over entries up to `count`; how many there were.
#[inline]
pub fn walk<K, V, E>(
    entries: impl Iterator<Item = Result<(K, V), E>>,
    count: u64,
    mut see: impl FnMut(K, V),
) -> Result<u64>
where
    Error: From<E>,
{
    let mut seen = 0;
    for entry in entries {
        let (key, value) = entry?;
        see(key, value);
        seen += 1;
        if seen == count {
            break;
        }
    }
    Ok(seen)
}

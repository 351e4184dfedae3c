//! Point reads.
//!
//! A read is counted in cache misses: the key is hashed once; memtables are skipped by their
//! filters; each run has one table that can hold the key, and its hash index says "not here" in
//! one line. With several runs their index lines are fetched side by side.

use std::sync::Arc;

use super::loaded::LoadedTable;
use super::slice::Slice;
use super::super_version::SuperVersion;
use crate::Result;
use crate::key::{KeyOrder, Kind, Seq, Stored, key_hash};
use crate::table::TableEntry;
use crate::util::sync::Guard;

/// Most runs whose index lines are asked for ahead; more than a settled store ever has.
const MAX_AHEAD: usize = 16;

/// Where the newest visible version of a key was found.
enum ValueSource<'a> {
    Memory(&'a [u8]),
    Table(&'a LoadedTable, Stored<'a>),
}

#[inline]
fn find<'a>(
    super_version: &'a SuperVersion,
    order: &KeyOrder,
    key: &[u8],
    seq: Seq,
) -> Result<Option<ValueSource<'a>>> {
    let hash = key_hash(key);
    // The usual settled store: one run and empty memtables.
    if let ([run], true) =
        (super_version.runs(), super_version.memtables.iter().all(|m| m.is_empty()))
    {
        let Some(table) = run.find(order, key) else { return Ok(None) };
        return Ok(table.table.get(hash, key, seq)?.and_then(|found| live(table, found)));
    }
    let mut candidates: [Option<&Arc<LoadedTable>>; MAX_AHEAD] = [None; MAX_AHEAD];
    for (slot, run) in candidates.iter_mut().zip(super_version.runs()) {
        *slot = run.find(order, key);
        if let Some(table) = slot {
            table.table.prefetch(hash);
        }
    }
    for m in &super_version.memtables {
        if let Some(record) = m.get(key, hash, seq) {
            return Ok((record.kind == Kind::Put).then_some(ValueSource::Memory(record.value)));
        }
    }
    for (at, run) in super_version.runs().iter().enumerate() {
        let table = if at < MAX_AHEAD { candidates[at] } else { run.find(order, key) };
        if let Some(table) = table
            && let Some(found) = table.table.get(hash, key, seq)?
        {
            return Ok(live(table, found));
        }
    }
    Ok(None)
}

/// The value of a version that a table has, unless it is a deletion.
#[inline]
fn live<'a>(table: &'a LoadedTable, found: TableEntry<'a>) -> Option<ValueSource<'a>> {
    (found.kind == Kind::Put).then_some(ValueSource::Table(table, found.stored))
}

/// The value of `key` as of `seq`.
#[inline]
pub(crate) fn get(
    super_version: Guard<Arc<SuperVersion>>,
    order: &KeyOrder,
    key: &[u8],
    seq: Seq,
) -> Result<Option<Slice>> {
    let bytes = match find(&super_version, order, key, seq)? {
        None => return Ok(None),
        Some(ValueSource::Memory(bytes)) => bytes,
        Some(ValueSource::Table(_, Stored::Inline(bytes))) => bytes,
        Some(ValueSource::Table(table, Stored::Pointer(p))) => table.segment(&p)?.value(&p)?,
        Some(ValueSource::Table(table, stored)) => {
            let mut out = Vec::new();
            table.table.decompress(stored, &mut out)?;
            return Ok(Some(Slice::owned(out)));
        }
    };
    let bytes: *const [u8] = bytes;
    // SAFETY: the bytes lie in a segment or table that the super version owns, so they outlive it; records
    // and tables are never written again while a super version names them.
    Ok(Some(unsafe { Slice::pinned(&*bytes, super_version) }))
}

/// Whether `key` has a value as of `seq`.
pub(crate) fn contains(
    super_version: &SuperVersion,
    order: &KeyOrder,
    key: &[u8],
    seq: Seq,
) -> Result<bool> {
    Ok(find(super_version, order, key, seq)?.is_some())
}

/// The values of `keys` as of `seq`. Index lines of the next keys are fetched while one is read.
pub(crate) fn multi_get<K: AsRef<[u8]>>(
    super_version: &Arc<SuperVersion>,
    order: &KeyOrder,
    keys: &[K],
    seq: Seq,
) -> Result<Vec<Option<Slice>>> {
    /// How many keys ahead: enough to cover one memory access with the work of the others.
    const AHEAD: usize = 8;
    let ask = |key: &K| {
        let hash = key_hash(key.as_ref());
        for m in &super_version.memtables {
            m.prefetch(hash);
        }
        for run in super_version.runs() {
            if let Some(table) = run.find(order, key.as_ref()) {
                table.table.prefetch(hash);
            }
        }
    };
    let mut values = Vec::with_capacity(keys.len());
    keys.iter().take(AHEAD).for_each(ask);
    for (at, key) in keys.iter().enumerate() {
        if let Some(next) = keys.get(at + AHEAD) {
            ask(next);
        }
        values.push(get(Guard::from_inner(Arc::clone(super_version)), order, key.as_ref(), seq)?);
    }
    Ok(values)
}

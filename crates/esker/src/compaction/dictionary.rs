//! Which dictionary the outputs of a compaction are packed with.
//!
//! Values packed with the dictionary of the output pass as they are, so what most inputs have stays
//! as long as it fits; whether it does is asked of samples of all inputs. So loads and tables of
//! another setting come to have a dictionary, and one that knows nothing of today's data goes.

use std::collections::HashMap;
use std::sync::Arc;

use super::inputs::GroupInputs;
use crate::error::Result;
use crate::key::{InternalCursor, Stored};
use crate::memtable::Memtable;
use crate::options::Compression;
use crate::table::{Dictionary, SAMPLE};

/// One entry in so many is a sample, within these bounds: what choosing costs stays a small part of
/// the compaction.
const SHARE: usize = 8;
const LEAST: usize = 128;
const MOST: usize = 1024;
/// Blocks of tables that are looked into at most; the compaction reads them once more soon after.
const BLOCKS: u64 = 128;

/// The dictionary for what comes of these inputs. `last` is that of the part merged before.
pub(super) fn dictionary_for(
    compression: Compression,
    piece: &GroupInputs,
    last: Option<&Arc<Dictionary>>,
) -> Result<Option<Arc<Dictionary>>> {
    if compression == Compression::None {
        return Ok(None);
    }
    let tables = || piece.tables.iter().flatten();
    let in_tables: u64 = tables().map(|t| t.meta.entries).sum();
    let in_memory: usize = piece.memtables.iter().map(|m| m.len()).sum();
    let entries = in_memory.saturating_add(usize::try_from(in_tables).unwrap_or(usize::MAX));
    let wanted = (entries / SHARE).clamp(LEAST, MOST);
    let share = |of: usize| (wanted as u128 * of as u128).div_ceil(entries.max(1) as u128) as usize;
    let mut samples = Vec::new();
    for m in &piece.memtables {
        sample_memtable(m, share(m.len()), &mut samples);
    }
    sample_tables(piece, share(entries - in_memory), &mut samples)?;
    // Of the inputs' dictionaries the one that most bytes are packed with.
    let mut bytes: HashMap<u64, (u64, &Arc<Dictionary>)> = HashMap::new();
    let with = tables().filter_map(|t| Some((t.meta.size, t.table.dictionary()?)));
    for (size, d) in with.filter(|(_, d)| d.is_for(compression)) {
        bytes.entry(d.id()).or_insert((0, d)).0 += size;
    }
    let most = bytes.into_values().max_by_key(|(size, d)| (*size, d.id())).map(|(_, d)| d);
    let samples: Vec<&[u8]> = samples.iter().map(Vec::as_slice).collect();
    Ok(Dictionary::choose(compression, most.into_iter().chain(last), &samples))
}

/// Adds about `wanted` values, evenly over the memtable and not of its first keys only.
fn sample_memtable(m: &Arc<Memtable>, wanted: usize, out: &mut Vec<Vec<u8>>) {
    let mut cursor = m.cursor();
    if wanted == 0 || cursor.first().is_err() {
        return;
    }
    let step = m.len().div_ceil(wanted).max(1);
    let mut at = 0;
    while cursor.valid() {
        if at % step == 0
            && let Stored::Inline(value) = cursor.stored()
            && !value.is_empty()
            && value.len() <= SAMPLE
            && value.len() < m.blob_threshold()
        {
            out.push(value.to_vec());
        }
        at += 1;
        if cursor.next().is_err() {
            break;
        }
    }
}

/// Adds up to `wanted` values and a few, of blocks evenly over all tables.
fn sample_tables(piece: &GroupInputs, wanted: usize, out: &mut Vec<Vec<u8>>) -> Result<()> {
    let blocks: u64 = piece.tables.iter().flatten().map(|t| u64::from(t.table.blocks())).sum();
    let looks = blocks.min(BLOCKS).min(wanted as u64);
    // The blocks of a look: the one in the middle of its share of them all.
    let mut next = (0..looks).map(|i| (2 * i + 1) * blocks / (2 * looks)).peekable();
    let mut before = 0;
    for table in piece.tables.iter().flatten() {
        let end = before + u64::from(table.table.blocks());
        while let Some(at) = next.next_if(|at| *at < end) {
            table.table.sample((at - before) as u32, wanted.div_ceil(looks as usize), out)?;
        }
        before = end;
    }
    Ok(())
}

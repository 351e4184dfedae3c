//! Which inputs of a compaction meet at all.
//!
//! The inputs (memtables and tables) are cut into overlap groups that share no key. A table alone in its
//! group need not be read or written: it enters the output run as it stands. So a sequential load
//! is never rewritten, and a compaction costs what its overlaps cost.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use crate::key::KeyOrder;
use crate::version::{HasMeta, Run, TableMeta};

/// A sealed memtable that waits to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WaitingMemtable {
    /// Bytes of this keyspace's entries in it.
    pub bytes: u64,
    /// Its first user key.
    pub smallest: Vec<u8>,
    /// Its last user key.
    pub largest: Vec<u8>,
}

/// Inputs whose key ranges overlap, directly or through others of them. Groups are disjoint and
/// come in key order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct OverlapGroup {
    /// Indexes into the memtables.
    pub memtables: Vec<usize>,
    /// (run, table) as indexes into all runs and that run's tables.
    pub tables: Vec<(usize, usize)>,
    /// Bytes of the inputs.
    pub bytes: u64,
    /// Whether the one table goes into the output run as it stands.
    pub trivial_move: bool,
}

/// Bytes that cost next to nothing beside what any flush costs: four syncs, and a file.
pub(super) const TINY: u64 = 64 << 10;

struct OverlapInput<'a> {
    smallest: &'a [u8],
    largest: &'a [u8],
    bytes: u64,
    /// A memtable's index, or a run's and a table's.
    source: Result<usize, (usize, usize)>,
    rewrite: bool,
}

/// Cuts the inputs `memtables` and `runs[range]` into overlap groups.
///
/// A lone table moves unless `must_rewrite` asks for it. What is written anyway takes lone neighbours
/// below `small` bytes along, so that many small flushes do not leave a run of many small tables; each
/// neighbour is at most as large as what it joins, so a byte is written about log2(`small` / flush)
/// times on that account. A [`TINY`] one always joins: a flush of one entry is not worth a file.
pub(crate) fn groups<T: HasMeta>(
    order: &KeyOrder,
    memtables: &[WaitingMemtable],
    runs: &[Arc<Run<T>>],
    range: Range<usize>,
    small: u64,
    must_rewrite: impl Fn(&TableMeta) -> bool,
) -> Vec<OverlapGroup> {
    let mut inputs = Vec::new();
    for (i, m) in memtables.iter().enumerate() {
        let (smallest, largest) = (&m.smallest[..], &m.largest[..]);
        inputs.push(OverlapInput {
            smallest,
            largest,
            bytes: m.bytes,
            source: Ok(i),
            rewrite: true,
        });
    }
    for run in range {
        for (i, table) in runs[run].tables().iter().enumerate() {
            let t = table.meta();
            inputs.push(OverlapInput {
                smallest: &t.smallest,
                largest: &t.largest,
                bytes: t.size,
                source: Err((run, i)),
                rewrite: must_rewrite(t),
            });
        }
    }
    order.sort_by_key(&mut inputs, |input| input.smallest);
    join_crowds(join_small_neighbours(group(order, &inputs), small), small)
}

fn group(order: &KeyOrder, inputs: &[OverlapInput<'_>]) -> Vec<OverlapGroup> {
    let mut list: Vec<OverlapGroup> = Vec::new();
    let mut reach: &[u8] = &[];
    for input in inputs {
        let meets = !list.is_empty() && order.compare(input.smallest, reach) != Ordering::Greater;
        if !meets {
            list.push(OverlapGroup::default());
        }
        if !meets || order.compare(input.largest, reach) == Ordering::Greater {
            reach = input.largest;
        }
        let group = list.last_mut().expect("one was just made sure of");
        group.trivial_move = !meets && !input.rewrite;
        group.bytes = group.bytes.saturating_add(input.bytes);
        match input.source {
            Ok(memtable) => group.memtables.push(memtable),
            Err(table) => group.tables.push(table),
        }
    }
    list
}

/// What makes a group of what does not meet is at most so many times what is small: the tables that come out are not,
/// and a larger group would need more room, and time, at once.
const JOINED: u64 = 8;

fn join_small_neighbours(list: Vec<OverlapGroup>, small: u64) -> Vec<OverlapGroup> {
    // With what of it has joined the largest part.
    let mut out: Vec<(OverlapGroup, u64)> = Vec::with_capacity(list.len());
    for mut next in list {
        let mut joined = 0;
        while let Some((last, before)) = out.last() {
            let joins = match (last.trivial_move, next.trivial_move) {
                (true, false) => last.bytes < small && last.bytes <= next.bytes.max(TINY),
                (false, true) => next.bytes < small && next.bytes <= last.bytes.max(TINY),
                (false, false) => last.bytes.min(next.bytes) < small,
                (true, true) => false,
            };
            let sum = last.bytes.min(next.bytes).saturating_add(joined + before);
            if !joins || sum > small.saturating_mul(JOINED) {
                break;
            }
            joined = sum;
            // In place: one may be joined by thousands, one after the other.
            let (mut last, _) = out.pop().expect("just seen");
            last.memtables.append(&mut next.memtables);
            last.tables.append(&mut next.tables);
            last.bytes = last.bytes.saturating_add(next.bytes);
            last.trivial_move = false;
            next = last;
        }
        out.push((next, joined));
    }
    out.into_iter().map(|(group, _)| group).collect()
}

/// So many small tables beside each other are one.
const CROWD: usize = 8;

/// Joins lone small tables, [`CROWD`] of them or more beside each other, unless one of them is most of
/// what would be written: so a byte is written about log2(`small` / table) times on that account, and
/// thousands of small bulk loads do not make thousands of tables.
fn join_crowds(list: Vec<OverlapGroup>, small: u64) -> Vec<OverlapGroup> {
    let mut held = 0u64;
    let alike = |a: &OverlapGroup, b: &OverlapGroup| {
        held = held.saturating_add(a.bytes);
        let alike = a.trivial_move && b.trivial_move && a.bytes.max(b.bytes) < small;
        let joins = alike && held < small.saturating_mul(JOINED);
        held *= u64::from(joins);
        joins
    };
    let mut out: Vec<OverlapGroup> = Vec::with_capacity(list.len());
    for crowd in list.chunk_by(alike) {
        let sum = crowd.iter().fold(0u64, |sum, c| sum.saturating_add(c.bytes));
        let largest = crowd.iter().map(|c| c.bytes).max().unwrap_or(0);
        if crowd.len() < CROWD || largest > sum / 2 {
            out.extend_from_slice(crowd);
            continue;
        }
        let tables = crowd.iter().flat_map(|c| c.tables.iter().copied()).collect();
        out.push(OverlapGroup { memtables: Vec::new(), tables, bytes: sum, trivial_move: false });
    }
    out
}

/// The groups of tables from key `from` on, and around, until they write `most` bytes; and where the next
/// part begins, unless this is all. At least one group is written.
pub(crate) fn next_part<T: HasMeta>(
    order: &KeyOrder,
    runs: &[Arc<Run<T>>],
    mut list: Vec<OverlapGroup>,
    from: Option<&[u8]>,
    most: u64,
) -> (Vec<OverlapGroup>, Option<Vec<u8>>) {
    if written(&list) <= most {
        return (list, None);
    }
    let first = |g: &OverlapGroup| {
        let (run, table) = g.tables[0];
        runs[run].tables()[table].meta().smallest.clone()
    };
    let is_before =
        |g: &OverlapGroup| from.is_some_and(|from| order.compare(&first(g), from).is_lt());
    let start = list.partition_point(is_before);
    let all = list.len();
    list.rotate_left(if start == all { 0 } else { start });
    let (mut end, mut bytes) = (0, 0);
    while end < all && (bytes == 0 || bytes + written(&list[end..=end]) <= most) {
        bytes += written(&list[end..=end]);
        end += 1;
    }
    let next = list.get(end).map(first);
    list.truncate(end);
    (list, next)
}

/// Bytes that a compaction of these groups writes, at most.
pub(crate) fn written(list: &[OverlapGroup]) -> u64 {
    list.iter().filter(|c| !c.trivial_move).fold(0, |sum, c| sum.saturating_add(c.bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compaction::simulation::{Sim, WritePattern, key};

    /// Ten tables in each of two runs; each table of the one meets one of the other.
    fn groups_of_two() -> (Sim, Vec<OverlapGroup>) {
        let mut sim = Sim::new(WritePattern::Random, 64 << 20, 32 << 20);
        let tables: Vec<_> = (0..20u64)
            .map(|n| {
                let first = n % 10 * 100;
                (1 + n / 10, Arc::new(sim.table(first, first + 99, 1000, 0)))
            })
            .collect();
        sim.version = sim.version.edit(Some(&KeyOrder::Bytewise), &[], tables).unwrap();
        let runs = sim.version.runs();
        let list = groups(&KeyOrder::Bytewise, &[], runs, 0..2, 0, |_| false);
        assert_eq!(list.len(), 10);
        (sim, list)
    }

    #[test]
    fn a_large_compaction_goes_around_in_parts() {
        let (sim, list) = groups_of_two();
        let part = |from: Option<&[u8]>, most: u64| {
            let runs = sim.version.runs();
            next_part(&KeyOrder::Bytewise, runs, list.clone(), from, most)
        };
        let one = list[0].bytes;
        assert_eq!(part(None, 10 * one), (list.clone(), None));
        assert_eq!(part(Some(&key(500)), 10 * one), (list.clone(), None));
        assert_eq!(part(None, 3 * one), (list[..3].to_vec(), Some(key(300))));
        // From the next one on where there is none with this key; and around.
        let (around, next) = part(Some(&key(750)), 3 * one);
        assert_eq!(around, [&list[8..], &list[..1]].concat());
        assert_eq!(next, Some(key(100)));
        assert_eq!(part(Some(&key(5000)), 3 * one).0, list[..3]);
        // However little is asked for, one.
        assert_eq!(part(None, 1), (list[..1].to_vec(), Some(key(100))));
    }

    /// Where the tables of a store are to grow, all of it was one piece: of one step and one edit, with room for all.
    #[test]
    fn a_run_of_small_tables_was_one_piece() {
        let mut sim = Sim::new(WritePattern::Random, 64 << 20, 32 << 20);
        let one = sim.table(0, 99, 1000, 0).size;
        let tables: Vec<_> =
            (0..2000).map(|n| (1, Arc::new(sim.table(n * 100, n * 100 + 99, 1000, 0)))).collect();
        sim.version = sim.version.edit(Some(&KeyOrder::Bytewise), &[], tables).unwrap();
        for rewrite in [false, true] {
            let runs = sim.version.runs();
            let list = groups(&KeyOrder::Bytewise, &[], runs, 0..1, one * 2, |_| rewrite);
            assert_eq!(list.iter().map(|g| g.bytes).sum::<u64>(), 2000 * one);
            let largest = list.iter().map(|g| g.bytes).max().unwrap();
            assert!((8 * one..=20 * one).contains(&largest), "{} tables", largest / one);
        }
    }
}

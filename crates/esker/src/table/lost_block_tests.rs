//! Blocks that cannot be read: what lies in them is an error, and what lies in all others is found.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use super::model_tests::{Entry, Made, NoCase, Value, make};
use super::{Table, TableOptions};
use crate::key::{InternalCursor, KeyOrder, key_hash};

fn orders() -> [KeyOrder; 3] {
    [KeyOrder::Bytewise, KeyOrder::Reverse, KeyOrder::Custom(Arc::new(NoCase))]
}

/// Flips a bit in each of these blocks, of which the first is the lowest bit.
fn lose(m: &Made, whole: &[u8], pages: &[u32], lost: u32) -> Arc<Table> {
    let mut bytes = whole.to_vec();
    for (i, page) in pages.iter().enumerate() {
        bytes[*page as usize * 4096 + 30] ^= (lost >> i & 1) as u8;
    }
    std::fs::write(&m.path, bytes).unwrap();
    m.open().unwrap()
}

/// A table, and which of its blocks cannot be read.
struct Judge<'a> {
    m: &'a Made,
    table: &'a Arc<Table>,
    /// The entries of each block.
    blocks: &'a [Range<usize>],
    lost: u32,
}

impl Judge<'_> {
    fn block(&self, entry: usize) -> usize {
        self.blocks.iter().position(|b| b.contains(&entry)).unwrap()
    }

    /// Whether the entry can be read, if there is one.
    fn is_whole(&self, entry: Option<usize>) -> bool {
        entry.is_none_or(|e| self.lost >> self.block(e) & 1 == 0)
    }

    fn entry(&self, i: Option<usize>) -> Option<usize> {
        i.filter(|i| *i < self.m.entries.len())
    }

    /// Where a search for the key must come to, whatever is damaged elsewhere: to an entry that can be read, beside
    /// another that can be, or that is of the key itself where keys have one version.
    fn searches(&self, key: &[u8]) {
        let (entries, order, unique) = (&self.m.entries, &self.m.order, self.m.meta.unique_keys);
        let mut c = self.table.cursor();
        for forward in [true, false] {
            let before = |e: &Entry| {
                let side = order.compare(&e.key, key);
                side.is_lt() || !forward && side.is_eq()
            };
            let rank = entries.partition_point(before);
            let (left, right) = (self.entry(rank.checked_sub(1)), self.entry(Some(rank)));
            let (mut target, beside) = if forward { (right, left) } else { (left, right) };
            let exact = target.is_some_and(|t| order.compare(&entries[t].key, key).is_eq());
            let mut moved = if forward { c.seek(key) } else { c.seek_for_prev(key) };
            if self.is_whole(target) && (self.is_whole(beside) || exact && unique) {
                moved.as_ref().unwrap_or_else(|e| panic!("{key:?}, {forward}: {e}"));
            }
            let sought = moved.is_ok();
            // From there on one entry after the other, up to one that cannot be read.
            while moved.is_ok() {
                assert!(self.is_whole(target), "{key:?}: an entry was passed in silence");
                let found = c.valid().then(|| (c.key().to_vec(), c.seq()));
                let there = target.map(|t| (entries[t].key.clone(), entries[t].seq.unwrap()));
                assert_eq!(found, there, "the search for {key:?}, {forward}");
                let Some(at) = target else { break };
                target = self.entry(if forward { Some(at + 1) } else { at.checked_sub(1) });
                moved = if forward { c.next() } else { c.prev() };
            }
            assert!(moved.is_ok() || !sought || !self.is_whole(target), "{key:?}: {moved:?}");
        }
    }

    fn gets(&self, key: &[u8], seq: u64) {
        let (entries, order, unique) = (&self.m.entries, &self.m.order, self.m.meta.unique_keys);
        let first = entries.partition_point(|e| order.compare(&e.key, key).is_lt());
        let wanted = (first..entries.len())
            .take_while(|i| order.compare(&entries[*i].key, key).is_eq())
            .find(|i| entries[*i].seq.unwrap() <= seq);
        let (left, right) = (self.entry(first.checked_sub(1)), self.entry(Some(first)));
        let exact = right.is_some_and(|r| order.compare(&entries[r].key, key).is_eq());
        match self.table.get(key_hash(key), key, seq) {
            Ok(found) => {
                assert!(!exact || self.is_whole(right), "{key:?} is in what cannot be read");
                assert_eq!(found.map(|f| f.seq), wanted.map(|w| entries[w].seq.unwrap()));
            }
            Err(e) => {
                let whole =
                    (first..=wanted.unwrap_or(first)).all(|i| self.is_whole(self.entry(Some(i))));
                let begins = unique || wanted.is_some() && !order.is_custom();
                let sure = whole
                    && (exact && begins || self.is_whole(left) && (!exact || wanted.is_some()));
                assert!(!sure, "{key:?}: {e}");
            }
        }
    }

    fn all(&self) {
        let problems = self.table.verify(&mut |_| ()).unwrap();
        let said: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(said.len() as u32, self.lost.count_ones(), "{:b}: {said:#?}", self.lost);
        assert!(said.iter().all(|s| s.contains("block: checksum")), "{said:#?}");
        let mut keys: Vec<Vec<u8>> = self.m.entries.iter().map(|e| e.key.clone()).collect();
        keys.extend(self.m.entries.iter().map(|e| [&e.key[..], b"\0"].concat()));
        keys.extend([b"".to_vec(), b"b".to_vec(), b"~".to_vec()]);
        keys.dedup();
        for key in &keys {
            self.searches(key);
            [2, 4, u64::MAX].iter().for_each(|seq| self.gets(key, *seq));
            self.table.approximate_offset(key);
        }
    }
}

/// Whichever blocks of the table are lost.
fn lose_blocks(entries: Vec<Entry>, order: KeyOrder) {
    let m = make(entries, TableOptions { order, ..TableOptions::default() });
    let whole = std::fs::read(&m.path).unwrap();
    let (mut pages, mut blocks, mut at) = (Vec::new(), Vec::new(), 0);
    let sound = m.open().unwrap();
    for i in 0..sound.block_index.blocks {
        let page = sound.block_index.page(i);
        let count = sound.block(page).unwrap().count as usize;
        pages.push(page);
        blocks.push(at..at + count);
        at += count;
    }
    assert!((5..32).contains(&blocks.len()), "{} blocks", blocks.len());
    let all = (1 << blocks.len()) - 1;
    let one = (0..blocks.len()).map(|i| 1 << i);
    let many = [0, !0, 0x5555_5555, !0x5555_5555, 0b11_1100, !1, !0b1000, 0b1_1011, 0b110];
    let mut masks: Vec<u32> = one.chain(many.map(|mask| mask & all)).collect();
    masks.push(all >> 1);
    for lost in masks {
        let table = &lose(&m, &whole, &pages, lost);
        Judge { m: &m, table, blocks: &blocks, lost }.all();
    }
}

/// So many keys whose first eight bytes are the same, and one before and one behind them.
fn keys(n: usize, versions: u64, len: usize) -> Vec<Entry> {
    let middle = (0..n).map(|i| format!("Of a kind {i:03}"));
    let keys = ["Ahead".to_string()].into_iter().chain(middle).chain(["the last".into()]);
    let entry = |key: &str, seq| Entry {
        key: key.as_bytes().to_vec(),
        seq: Some(seq),
        value: Value::Bytes(vec![7; len]),
    };
    keys.flat_map(|key| (0..versions).map(move |v| entry(&key, 3 + 2 * v))).collect()
}

#[test]
fn what_lies_in_other_blocks_is_found() {
    for order in orders() {
        lose_blocks(keys(14, 1, 1300), order);
    }
}

/// Where the versions of a key go over from a block into the next, one that is lost may have a newer one.
#[test]
fn versions_that_may_be_lost_are_not_passed() {
    for order in orders() {
        lose_blocks(keys(6, 4, 1300), order.clone());
        lose_blocks(keys(2, 12, 1300), order);
    }
}

#[test]
fn blocks_of_one_entry_are_passed() {
    for order in orders() {
        lose_blocks(keys(5, 1, 70_000), order);
    }
}

/// Two keys with one fingerprint: the entry of the one in the hash index leads there for the other, too.
#[test]
#[cfg_attr(miri, ignore = "300,000 hashes")]
fn a_key_is_found_beside_one_that_the_index_takes_it_for() {
    let mut hashes = HashMap::new();
    let mut pairs = Vec::new();
    for n in 0..300_000 {
        let key = format!("{n:06}").into_bytes();
        if let Some(other) = hashes.insert(key_hash(&key) & 0x7FFF_FFFF, key.clone()) {
            pairs.push([other, key]);
        }
    }
    assert!(pairs.len() >= 5, "{} pairs", pairs.len());
    for pair in &pairs[..5] {
        let entry = |key: &[u8]| Entry {
            key: key.to_vec(),
            seq: Some(5),
            value: Value::Bytes(vec![7; 4000]),
        };
        let m = make(pair.iter().map(|k| entry(k)).collect(), TableOptions::default());
        let whole = std::fs::read(&m.path).unwrap();
        let sound = m.open().unwrap();
        let geometry = *sound.geometry();
        assert_eq!((geometry.lines, sound.block_index.blocks), (1, 2));
        let [a, b] = [&pair[0], &pair[1]].map(|k| geometry.fingerprint(key_hash(k)));
        assert_eq!(a, b);
        for lost in [0, 1] {
            let table = lose(&m, &whole, &[0, 1], 1 << lost);
            let get = |i: usize| table.get(key_hash(&pair[i]), &pair[i], u64::MAX);
            assert!(get(lost).unwrap_err().is_corruption());
            assert!(get(1 - lost).unwrap().is_some());
        }
    }
}

/// A line for each bad block, or for each place between two that are whole: of a large table that is damaged all over
/// they were millions.
#[test]
fn a_table_that_is_damaged_all_over_was_told_block_by_block() {
    let m = make(keys(900, 1, 1300), TableOptions::default());
    let mut bytes = std::fs::read(&m.path).unwrap();
    let sound = m.open().unwrap();
    let bad: Vec<u32> = (0..sound.block_index.blocks).skip(1).step_by(2).collect();
    assert!(bad.len() > 120, "{} blocks", bad.len());
    for i in &bad {
        bytes[sound.block_index.page(*i) as usize * 4096 + 30] ^= 1;
    }
    drop(sound);
    std::fs::write(&m.path, bytes).unwrap();
    let table = m.open().unwrap();
    let problems = table.verify(&mut |_| ()).unwrap();
    assert!(problems.len() < 80, "{} lines", problems.len());
    let more = format!("{} more problems", bad.len() + 1 - problems.len());
    assert!(problems.last().unwrap().to_string().contains(&more), "{problems:#?}");
    let (mut first, mut last) = (None, None);
    let lost = table.salvage(&mut |key, _, _, _| {
        first = first.take().or(Some(key.to_vec()));
        last = Some(key.to_vec());
        Ok(())
    });
    let lost = lost.unwrap();
    assert!(lost.len() < 80, "{} places", lost.len());
    assert_eq!(lost.iter().map(|l| l.blocks).sum::<u64>(), bad.len() as u64);

    let rest = lost.last().unwrap();
    let more = format!("{} blocks in {} places", rest.blocks, rest.blocks);
    assert!(rest.what().contains(&more), "{}", rest.what());
    assert!(rest.before.is_some() && rest.before <= last, "{rest:?}, {last:?}");
    assert!(lost.windows(2).all(|l| l[0].before <= l[1].after), "{lost:#?}");
}

//! Reads all of a table and says everything that is wrong with it.

use std::cmp::Ordering;

use super::block::Block;
use super::builder::shared_by_keys;
use super::footer::Properties;
use super::hash_index::{CHUNK, LINE, LINE_BYTES, Line};
use super::reader::Table;
use super::salvage::Visit;
use super::tally::EntryTally;
use crate::error::{Error, Result};
use crate::key::{Seq, TableMeta, key_hash};

/// So many problems of one table are told one by one: a large one that is damaged all over has millions.
const MOST_PROBLEMS: usize = 64;

/// What is wrong with a table, in its first lines, and how much more is.
struct TableProblems<'t> {
    table: &'t Table,
    told: Vec<Error>,
    /// Where the first is that was not told, and how many were not.
    more: Option<(u64, u64)>,
}

impl TableProblems<'_> {
    fn add(&mut self, at: u64, what: &str) {
        if self.told.len() < MOST_PROBLEMS {
            self.told.push(self.table.corrupt(at, what));
        } else {
            self.more.get_or_insert((at, 0)).1 += 1;
        }
    }

    fn list(mut self) -> Vec<Error> {
        if let Some((at, more)) = self.more {
            self.told
                .push(self.table.corrupt(at, &format!("and {more} more problems of the table")));
        }
        self.told
    }
}

/// What a walk over the blocks finds, to be compared with the properties.
struct BlockWalk<'a, 'v> {
    each: &'a mut Visit<'v>,
    /// Whether the hash index can be asked for all keys.
    index_whole: bool,
    tally: EntryTally,
    last: Option<(Vec<u8>, Seq)>,
    /// Whether blocks that cannot be read lie between that and what is next: they may begin the versions of its key.
    after_lost: bool,
}

impl Table {
    /// Checks every block, the order of entries, all that the properties say of them, and that the indexes agree with
    /// the data; damage found before does not hide more. `progress` is told the bytes done, and `each` is called for every
    /// entry of every intact block, in order. The errors are all of kind [`Error::Corruption`], and the last may say how
    /// many there are besides; none means the table is sound.
    pub(crate) fn verify_with(
        &self,
        progress: &mut dyn FnMut(u64),
        each: &mut Visit<'_>,
    ) -> Result<Vec<Error>> {
        let mut problems = TableProblems { table: self, told: Vec::new(), more: None };
        let mut index_whole = true;
        for chunk in 0..self.geometry().chunks() as u32 {
            if self.chunk_problem(self.index_bytes(), chunk).is_err() {
                let at = u64::from(chunk) * CHUNK as u64;
                problems.add(self.layout.index + at, "index: checksum");
                index_whole = false;
            }
        }
        let (tally, last) = (EntryTally::default(), None);
        let mut seen = BlockWalk { each, index_whole, tally, last, after_lost: false };
        let mut all_blocks = true;
        for i in 0..self.block_index.blocks {
            let page = self.block_index.page(i);
            let at = u64::from(page) * 4096;
            let end = if i + 1 < self.block_index.blocks {
                self.block_index.page(i + 1)
            } else {
                self.data_pages()
            };
            match self.block_problem(page) {
                Err(what) => {
                    problems.add(at, what);
                    all_blocks = false;
                    seen.after_lost = true;
                }
                Ok(bytes) => {
                    if bytes.len() as u64 != u64::from(end - page) * 4096 {
                        problems.add(at, "block: does not reach to the next");
                    }
                    // SAFETY: `block_problem` has just validated it.
                    let block = unsafe { self.block_at(page) };
                    self.verify_block(i, page, &block, &mut seen, &mut problems)?;
                }
            }
            progress(u64::from(end) * 4096);
        }
        if all_blocks {
            self.verify_properties(seen, &mut problems);
        }
        progress(self.size());
        Ok(problems.list())
    }

    /// The problems alone.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn verify(&self, progress: &mut dyn FnMut(u64)) -> Result<Vec<Error>> {
        self.verify_with(progress, &mut |_, _, _, _| Ok(()))
    }

    fn verify_block(
        &self,
        ordinal: u32,
        page: u32,
        block: &Block<'_>,
        seen: &mut BlockWalk<'_, '_>,
        problems: &mut TableProblems<'_>,
    ) -> Result<()> {
        let at = u64::from(page) * 4096;
        let mut key = block.prefix().to_vec();
        for slot in 0..block.count {
            let r = block.record(slot);
            key.truncate(block.prefix().len());
            key.extend_from_slice(r.suffix());
            let seq = r.seq.unwrap_or(self.base_seq());
            let side = match &seen.last {
                None => Ordering::Less,
                Some((last, last_seq)) => {
                    self.order.compare(last, &key).then_with(|| seq.cmp(last_seq))
                }
            };
            if side != Ordering::Less {
                problems.add(at, &format!("entry {slot}: out of order"));
            }
            let new_key =
                !seen.last.as_ref().is_some_and(|(last, _)| self.order.compare(last, &key).is_eq());
            if slot == 0 && !self.block_index.is_for(ordinal, &self.order, &key) {
                problems.add(at, "the block index does not lead to this block");
            }
            let stored = r.stored(self.dict_id());
            seen.tally.add(&key, new_key, r.seq, r.kind(), stored);
            (seen.each)(&key, seq, r.kind(), stored)?;
            let may_be_older = std::mem::take(&mut seen.after_lost);
            if new_key
                && !may_be_older
                && seen.index_whole
                && self.geometry().lines > 0
                && !self.indexed(&key, page, slot)
            {
                let what = format!("index: entry {slot} of the block at {at} is missing");
                problems.add(self.layout.index, &what);
            }
            match &mut seen.last {
                Some((last, last_seq)) => {
                    last.clone_from(&key);
                    *last_seq = seq;
                }
                last => *last = Some((key.clone(), seq)),
            }
        }
        Ok(())
    }

    /// Whether the index leads from the key to this place.
    fn indexed(&self, key: &[u8], page: u32, slot: u32) -> bool {
        let g = self.geometry();
        let hash = key_hash(key);
        let mut line_no = g.line(hash);
        for _ in 0..g.lines {
            let line = self.line(line_no);
            let mut matches = line.matches(g.fingerprint(hash), g.mask());
            while matches != 0 {
                if g.place(line.entry(matches.trailing_zeros())) == (page, slot) {
                    return true;
                }
                matches &= matches - 1;
            }
            if !line.overflowed() {
                return false;
            }
            line_no = (line_no + 1) % g.lines;
        }
        false
    }

    fn line(&self, i: u32) -> Line {
        let bytes = &self.index_bytes()[i as usize * LINE_BYTES..][..LINE_BYTES];
        // SAFETY: the 64 bytes are the table's.
        unsafe { Line::new(bytes.as_ptr()) }
    }

    fn verify_properties(&self, seen: BlockWalk<'_, '_>, problems: &mut TableProblems<'_>) {
        let p = &self.props;
        let found = seen.tally.finish(seen.last.map(|(key, _)| key).unwrap_or_default());
        let names = ("the properties say", "the blocks have");
        let mut check = |what: &str, found: u64, said: u64, fits: bool| {
            if !fits {
                let (sayer, holder) = names;
                let what = format!("{what}: {sayer} {said}, {holder} {found}");
                problems.add(self.layout.props, &what);
            }
        };
        for (what, found, said) in [
            ("keys", found.keys, p.keys),
            ("entries without a sequence", found.base_entries, p.base_entries),
            ("longest key", found.max_key_len.into(), p.max_key_len.into()),
        ] {
            check(what, found, said, found == said);
        }
        let shared = shared_by_keys(&self.order, &found) as u64;
        let said = u64::from(p.prefix_len);
        check("bytes that all keys begin with", shared, said, said <= shared);
        if seen.index_whole && self.geometry().lines > 0 {
            let indexed: u64 = (0..self.geometry().lines)
                .map(|i| (0..LINE as u32).filter(|&e| self.line(i).entry(e) != 0).count() as u64)
                .sum();
            check("indexed keys", indexed, p.keys, indexed == p.keys);
        }
        // The sequences that stand there, whatever the others count as.
        let explicit = |p: &Properties| TableMeta {
            min_seq: p.min_seq,
            max_seq: p.max_seq,
            ..p.meta(self.number(), self.size(), self.base_seq())
        };
        let same = |a: &[u8], b: &[u8]| self.order.compare(a, b).is_eq();
        for what in explicit(&found).contradictions(&explicit(p), same, names) {
            problems.add(self.layout.props, &what);
        }
    }
}

//! Reads all of a table and says everything that is wrong with it.

use std::cmp::Ordering;

use super::block::Block;
use super::hash_index::{CHUNK, LINE, LINE_BYTES, Line};
use super::reader::Table;
use crate::error::{Error, Result};
use crate::key::{Kind, Seq, key_hash};

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

/// What a walk over the blocks counts, to be compared with the properties.
#[derive(Default)]
struct WalkCounts {
    entries: u64,
    keys: u64,
    tombstones: u64,
    base_entries: u64,
    last: Option<(Vec<u8>, Seq)>,
    /// Whether blocks that cannot be read lie between that and what is next: they may begin the versions of its key.
    after_lost: bool,
}

impl Table {
    /// Checks every block, the order of entries, all counts, and that the indexes agree with the
    /// data; damage found before does not hide more. `progress` is told the bytes done. The errors
    /// are all of kind [`Error::Corruption`], and the last may say how many there are besides; none means the table is
    /// sound.
    pub(crate) fn verify(&self, progress: &mut dyn FnMut(u64)) -> Result<Vec<Error>> {
        let mut problems = TableProblems { table: self, told: Vec::new(), more: None };
        let mut index_whole = true;
        for chunk in 0..self.geometry().chunks() as u32 {
            if self.chunk_problem(self.index_bytes(), chunk).is_err() {
                let at = u64::from(chunk) * CHUNK as u64;
                problems.add(self.layout.index + at, "index: checksum");
                index_whole = false;
            }
        }
        let mut seen = WalkCounts::default();
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
                    self.verify_block(i, page, &block, index_whole, &mut seen, &mut problems);
                }
            }
            progress(u64::from(end) * 4096);
        }
        if all_blocks {
            self.verify_counts(&seen, index_whole, &mut problems);
        }
        progress(self.size());
        Ok(problems.list())
    }

    fn verify_block(
        &self,
        ordinal: u32,
        page: u32,
        block: &Block<'_>,
        index_whole: bool,
        seen: &mut WalkCounts,
        problems: &mut TableProblems<'_>,
    ) {
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
            seen.entries += 1;
            seen.keys += u64::from(new_key);
            seen.tombstones += u64::from(r.kind() == Kind::Delete);
            seen.base_entries += u64::from(r.seq.is_none());
            let may_be_older = std::mem::take(&mut seen.after_lost);
            if new_key
                && !may_be_older
                && index_whole
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

    fn verify_counts(
        &self,
        seen: &WalkCounts,
        index_whole: bool,
        problems: &mut TableProblems<'_>,
    ) {
        let p = &self.props;
        let mut check = |what: &str, found: u64, said: u64| {
            if found != said {
                let what = format!("properties say {said} {what}, there are {found}");
                problems.add(self.layout.props, &what);
            }
        };
        check("entries", seen.entries, p.entries);
        check("keys", seen.keys, p.keys);
        check("tombstones", seen.tombstones, p.tombstones);
        check("entries without a sequence", seen.base_entries, p.base_entries);
        if index_whole && self.geometry().lines > 0 {
            let indexed: u64 = (0..self.geometry().lines)
                .map(|i| (0..LINE as u32).filter(|&e| self.line(i).entry(e) != 0).count() as u64)
                .sum();
            check("indexed keys", indexed, p.keys);
        }
        if seen.last.as_ref().is_some_and(|(last, _)| self.order.compare(last, &p.largest).is_ne())
        {
            problems.add(self.layout.props, "properties: largest key");
        }
    }
}

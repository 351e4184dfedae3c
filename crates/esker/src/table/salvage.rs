//! What can still be read of a damaged table, for repair.
//!
//! A table that opens has a block index that leads to its blocks: [`Table::salvage`] leaves the bad ones out.
//! Of one that does not open [`Remains`] looks at every page: a block says with its own checksum that
//! it is whole, of this table, and that it belongs there. What the blocks alone do not say, which keyspace they are
//! of, in which order and with which dictionary, is in the properties; those are found by the name
//! of the order in them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::block::{self, Block, PAGE};
use super::dictionary::Dictionary;
use super::footer::{FOOTER_LEN, Properties};
use super::memory::SLACK;
use super::reader::{self, Table};
use super::wire::checksum;
use super::zstd::Problem;
use crate::env::{Env, Map, OpenMode};
use crate::error::{Error, Finding, Result};
use crate::key::{Kind, MAX_KEY_LEN, Seq, Stored, TableMeta};

/// A part of a table that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lost {
    /// Where, in bytes from the file's start.
    pub offset: u64,
    /// The last key before it that can be read, if any.
    pub after: Option<Vec<u8>>,
    /// The first key behind it that can be read, if any.
    pub before: Option<Vec<u8>>,
    /// What is wrong.
    pub why: String,
    /// With so many blocks, where they can be told apart.
    pub blocks: u64,
    /// One after the other, or in more places than one, with intact ones between them or other causes.
    pub places: u64,
}

/// So many parts of one table are told one by one, the rest together: a large one that is damaged all over has
/// millions.
const MOST_LOST: usize = 64;

impl Lost {
    /// What is wrong, and how often.
    pub(crate) fn what(&self) -> String {
        match (self.blocks, self.places) {
            (1, 1) => self.why.clone(),
            (n, 1) => format!("{} (and so of {} blocks behind it)", self.why, n - 1),
            (n, places) => format!("{} (and more: {n} blocks in {places} places)", self.why),
        }
    }
}

/// Takes an entry: key, sequence, kind, value.
pub(crate) type Visit<'v> = dyn FnMut(&[u8], Seq, Kind, Stored<'_>) -> Result<()> + 'v;

/// A walk over what is intact, which notes what is not.
struct Salvage<'a, 'v> {
    each: &'a mut Visit<'v>,
    base_seq: Seq,
    dict_id: u64,
    entries: u64,
    key: Vec<u8>,
    any: bool,
    lost: Vec<Lost>,
    /// How many of the losses have no intact block behind them yet.
    open: usize,
}

impl<'a, 'v> Salvage<'a, 'v> {
    fn new(each: &'a mut Visit<'v>, base_seq: Seq, dict_id: u64) -> Salvage<'a, 'v> {
        let (key, lost) = (Vec::new(), Vec::new());
        Salvage { each, base_seq, dict_id, entries: 0, key, any: false, lost, open: 0 }
    }

    fn last_key(&self) -> Option<&Vec<u8>> {
        self.any.then_some(&self.key)
    }

    fn lose(&mut self, offset: u64, what: &str) {
        if let Some(last) = self.lost.last_mut().filter(|l| self.open > 0 && l.why == what) {
            last.blocks += 1;
            return;
        }
        if let Some(last) = self.lost.get_mut(MOST_LOST - 1) {
            // Another cause counts as another place: what this one says is not true of it.
            last.places += u64::from(self.open == 0 || last.why != what);
            last.blocks += 1;
            (last.before, self.open) = (None, self.open.max(1));
            return;
        }
        let after = self.last_key().cloned();
        let why = what.to_string();
        self.lost.push(Lost { offset, after, before: None, why, blocks: 1, places: 1 });
        self.open += 1;
    }

    fn block(&mut self, block: &Block<'_>) -> Result<()> {
        for slot in 0..block.count {
            let r = block.record(slot);
            self.key.clear();
            self.key.extend_from_slice(block.prefix());
            self.key.extend_from_slice(r.suffix());
            self.any = true;
            let first_open = self.lost.len() - std::mem::take(&mut self.open);
            for lost in &mut self.lost[first_open..] {
                lost.before = Some(self.key.clone());
            }
            self.entries += 1;
            let seq = r.seq.unwrap_or(self.base_seq);
            (self.each)(&self.key, seq, r.kind(), r.stored(self.dict_id))?;
        }
        Ok(())
    }
}

impl Table {
    /// Calls `each` for every entry of every intact block, in order: key, sequence, kind, value.
    /// Returns what was lost.
    pub(crate) fn salvage(&self, each: &mut Visit<'_>) -> Result<Vec<Lost>> {
        let mut salvage = Salvage::new(each, self.base_seq(), self.dict_id());
        for i in 0..self.block_index.blocks {
            let page = self.block_index.page(i);
            match self.block_problem(page) {
                Err(what) => salvage.lose(u64::from(page) * PAGE as u64, what),
                // SAFETY: `block_problem` has just validated it.
                Ok(bytes) => salvage.block(&unsafe { Block::new(bytes.as_ptr()) })?,
            }
        }
        Ok(salvage.lost)
    }
}

/// A table that is read for what of it is left.
pub(crate) enum DamagedTable {
    /// It opens, and some of it cannot be read.
    Opened(Arc<Table>),
    /// It does not open.
    Remains(Box<Remains>),
}

impl DamagedTable {
    /// The dictionary of its packed values, if it has one that is not lost.
    pub(crate) fn dictionary(&self) -> Option<&Arc<Dictionary>> {
        match self {
            DamagedTable::Opened(t) => t.dictionary(),
            DamagedTable::Remains(r) => r.dictionary(),
        }
    }

    /// Unpacks a value into `out`, whose contents it replaces; or says why nobody can.
    ///
    /// # Errors
    /// When it cannot be told for want of memory.
    pub(crate) fn decompress(
        &self,
        stored: Stored<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Result<(), String>> {
        match self {
            DamagedTable::Opened(t) => unless_passing(t.decompress(stored, out)),
            DamagedTable::Remains(r) => r.decompress(stored, out),
        }
    }

    /// Calls `each` for every entry of every intact block, of a table that the manifest says this of. Returns what was lost.
    pub(crate) fn salvage(&self, meta: &TableMeta, each: &mut Visit<'_>) -> Result<Vec<Lost>> {
        match self {
            DamagedTable::Opened(t) => t.salvage(each),
            DamagedTable::Remains(r) => r.salvage(meta, each),
        }
    }

    /// How many entries of its intact blocks can be read: not those whose values are packed with what is lost.
    pub(crate) fn intact_entries(&self, meta: &TableMeta) -> u64 {
        let (mut entries, mut buf) = (0, Vec::new());
        drop(self.salvage(meta, &mut |_, _, _, stored| {
            let packed = matches!(stored, Stored::Compressed { .. });
            let lost = packed && matches!(self.decompress(stored, &mut buf), Ok(Err(_)));
            entries += u64::from(!lost);
            Ok(())
        }));
        entries
    }
}

/// What is wrong, in words, unless that says nothing of the file.
fn unless_passing(done: Result<()>) -> Result<Result<(), String>> {
    match done {
        Err(e) if e.is_passing() => Err(e),
        done => Ok(done.map_err(|e| Finding::from(&e).what)),
    }
}

/// What a table has that does not open.
pub(crate) struct Remains {
    path: PathBuf,
    map: Option<Map>,
    props: Option<Properties>,
    /// The table's number: blocks of others are none of it.
    number: u64,
    /// Where to stop looking for blocks, in bytes from the file's start.
    end: usize,
}

/// Bytes that look like properties and are none are tried so often.
const MOST_TRIES: usize = 64;
/// Pages made to look like the beginnings of blocks, each of half the file, would take a checksum of
/// half the file each. So many bytes are looked at in vain, or eight times the file if that is more.
const PATIENCE: usize = 512 << 20;
/// Bytes of the longest block that is not wide.
const NARROW: usize = 16 * PAGE;
/// Stands for the dictionary that is lost: no dictionary's identity.
const NO_DICTIONARY: u64 = 1;

impl Remains {
    /// Looks at the file `path`, and no further into it than its `expected` size if that is known.
    /// It is that of table `number`, or none: what another table left there is not. `orders` are the names of
    /// the orders that it may have.
    pub(crate) fn open<'o>(
        env: &dyn Env,
        path: &Path,
        number: u64,
        expected: Option<u64>,
        orders: impl IntoIterator<Item = &'o str>,
    ) -> Result<Remains> {
        let file = env.open(path, OpenMode::Read).map_err(|e| Error::io("open table", path, e))?;
        let size = file.len().map_err(|e| Error::io("measure table", path, e))?;
        // A hole of a terabyte is not looked through. A file system that compresses sets less aside
        // than it holds, by far less than this.
        let filled = || file.allocated().map(|n| n.saturating_mul(64).saturating_add(1 << 20));
        let limit = match expected {
            Some(bytes) => bytes,
            None => filled().map_err(|e| Error::io("measure table", path, e))?,
        };
        let map = match size {
            0 => None,
            _ => Some(file.map(size, false).map_err(|e| Error::io("map table", path, e))?),
        };
        let end = size.min(limit) as usize;
        let mut remains = Remains { path: path.to_path_buf(), end, map, props: None, number };
        if let Some((at, props)) = find_properties(&remains.bytes()[..remains.end], number, orders)
        {
            (remains.end, remains.props) = (at, Some(props));
        }
        Ok(remains)
    }

    /// Bytes that are looked at.
    pub(crate) fn len(&self) -> u64 {
        self.end as u64
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: a table is complete before it is opened and never written again.
        self.map.as_ref().map_or(&[], |map| unsafe { map.bytes() })
    }

    /// The keyspace of its entries, the name of their order, and what else it says of itself, entries without a sequence having 0;
    /// `None` when the properties cannot be found.
    pub(crate) fn described(&self) -> Option<(u32, &str, TableMeta)> {
        let props = self.props.as_ref()?;
        Some((props.keyspace, &props.order, props.meta(self.number, self.len(), 0)))
    }

    fn dictionary(&self) -> Option<&Arc<Dictionary>> {
        self.props.as_ref()?.dictionary.as_ref()
    }

    fn decompress(&self, stored: Stored<'_>, out: &mut Vec<u8>) -> Result<Result<(), String>> {
        let lost = matches!(stored, Stored::Compressed { dict: NO_DICTIONARY, .. });
        let decompressed = super::codec::decompress(stored, self.dictionary().map(|d| &**d), out);
        let what = match decompressed {
            Ok(()) => return Ok(Ok(())),
            Err(_) if lost => "the dictionary it is packed with is lost",
            Err(Problem::Damaged(what)) => what,
            Err(Problem::NoMemory) => return Err(reader::no_memory(&self.path)),
            Err(Problem::NoZstd) => "this build has no Zstandard",
        };
        Ok(Err(what.to_string()))
    }

    /// Its entries as they lie in the file.
    fn salvage(&self, meta: &TableMeta, each: &mut Visit<'_>) -> Result<Vec<Lost>> {
        let entries = meta.entries;
        let bytes = &self.bytes()[..self.end];
        let dict_id = self.dictionary().map_or(NO_DICTIONARY, |d| d.id());
        let mut salvage = Salvage::new(each, meta.base_seq, dict_id);
        let mut patience = PATIENCE.max(8 * bytes.len());
        let (mut at, mut gap, mut copy) = (0, None, Vec::new());
        while let Some(rest) = bytes.get(at..).filter(|rest| rest.len() >= PAGE) {
            let len = block::claimed_pages(rest).saturating_mul(PAGE);
            let claim = rest.get(..len).filter(|_| (1..=patience).contains(&len));
            if !claim.is_some_and(|b| is_block(b, self.number, at)) {
                // A short one is always looked at: all of them together are sixteen times the file at most.
                patience = patience.saturating_sub(claim.map_or(0, <[u8]>::len)).max(NARROW);
                gap = gap.or(Some(at));
                at += PAGE;
                continue;
            }
            if let Some(from) = gap.take() {
                salvage.lose(from as u64, "no intact block is here");
            }
            let mut start = rest.as_ptr();
            if rest.len() < len + SLACK {
                // A reader of blocks looks a little further.
                copy.clear();
                copy.extend_from_slice(&rest[..len]);
                copy.extend_from_slice(&[0; SLACK]);
                start = copy.as_ptr();
            }
            // SAFETY: `is_block` has validated these bytes, and the slack is behind them.
            salvage.block(&unsafe { Block::new(start) })?;
            at += len;
        }
        let missing = entries.saturating_sub(salvage.entries);
        if missing == 0 {
            return Ok(Vec::new());
        }
        // Behind the last block lie the index and more, which are no loss.
        if salvage.lost.is_empty() || salvage.last_key().is_none_or(|last| last != &meta.largest) {
            salvage.lose(gap.unwrap_or(at) as u64, "no intact block is from here on");
        }
        for lost in &mut salvage.lost {
            lost.why =
                format!("{} ({missing} of the table's {entries} entries are gone)", lost.why);
        }
        Ok(salvage.lost)
    }
}

/// Whether these bytes, which lie at byte `at` of the file, are a whole block of table `number`.
fn is_block(bytes: &[u8], number: u64, at: usize) -> bool {
    let sum = checksum(&bytes[8..], number, (at / PAGE) as u64).to_le_bytes();
    bytes[..8] == sum && block::validate(bytes, MAX_KEY_LEN).is_ok()
}

/// The properties of a table and where they are: they begin with a keyspace's number and the name of
/// an order, and the footer behind them, or what is left of it, vouches for them.
fn find_properties<'o>(
    bytes: &[u8],
    number: u64,
    orders: impl IntoIterator<Item = &'o str>,
) -> Option<(usize, Properties)> {
    for order in orders {
        let mark = [&(order.len() as u32).to_le_bytes()[..], order.as_bytes()].concat();
        let places = bytes.windows(mark.len()).enumerate().rev().filter(|(_, w)| *w == mark);
        for at in places.filter_map(|(at, _)| at.checked_sub(4)).take(MOST_TRIES) {
            let Some((props, len)) = Properties::decode_first(&bytes[at..]) else { continue };
            let (ours, behind) = bytes[at..].split_at(len);
            if Properties::are_vouched_for(ours, &behind[..behind.len().min(FOOTER_LEN)], number) {
                return Some((at, props));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A repair left out what it had no memory to unpack.
    #[test]
    fn want_of_memory_is_no_loss() {
        let path = Path::new("0000000007.tbl");
        let error = reader::no_memory(path);
        assert!(!error.is_corruption(), "{error}");
        assert!(matches!(unless_passing(Err(error)), Err(Error::Io { .. })));
        assert!(matches!(unless_passing(Err(Error::corrupt(path, 0, "bad"))), Ok(Err(_))));
        assert!(matches!(unless_passing(Ok(())), Ok(Ok(()))));
    }

    #[test]
    fn the_rest_of_many_losses_was_told_by_the_cause_of_its_first() {
        let mut each = |_: &[u8], _, _, _: Stored<'_>| Ok(());
        let mut salvage = Salvage::new(&mut each, 0, 0);
        for n in 0..=MOST_LOST {
            salvage.lose(n as u64, ["one cause", "another"][n % 2]);
        }
        let last = salvage.lost.last().unwrap().what();
        assert_eq!(last, "another (and more: 2 blocks in 2 places)");
    }
}

//! What can still be read of a damaged table, for repair.

use super::block::Block;
use super::reader::Table;
use crate::error::Result;
use crate::key::{Kind, Seq, Stored};

/// A part of a table that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lost {
    /// Where, in bytes from the file's start.
    pub offset: u64,
    /// The last key before it that can be read, if any.
    pub after: Option<Vec<u8>>,
    /// What is wrong.
    pub what: String,
}

/// Takes an entry: key, sequence, kind, value.
pub(crate) type Visit<'v> = dyn FnMut(&[u8], Seq, Kind, Stored<'_>) -> Result<()> + 'v;

impl Table {
    /// Calls `each` for every entry of every intact block, in order: key, sequence, kind, value.
    /// Returns what was lost.
    pub(crate) fn salvage(&self, each: &mut Visit<'_>) -> Result<Vec<Lost>> {
        let mut lost = Vec::new();
        let mut key = Vec::new();
        let mut any = false;
        for i in 0..self.fences.blocks {
            let page = self.fences.page(i);
            match self.block_problem(page) {
                Err(what) => lost.push(Lost {
                    offset: u64::from(page) * 4096,
                    after: any.then(|| key.clone()),
                    what: what.to_string(),
                }),
                Ok(bytes) => {
                    // SAFETY: `block_problem` has just validated it.
                    let block = unsafe { Block::new(bytes.as_ptr()) };
                    for slot in 0..block.count {
                        let r = block.record(slot);
                        key.clear();
                        key.extend_from_slice(block.prefix());
                        key.extend_from_slice(r.suffix());
                        any = true;
                        each(
                            &key,
                            r.seq.unwrap_or(self.base_seq()),
                            r.kind(),
                            r.stored(self.dict_id()),
                        )?;
                    }
                }
            }
        }
        Ok(lost)
    }
}

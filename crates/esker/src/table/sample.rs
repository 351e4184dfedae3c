//! Some values of a table, for a dictionary to be chosen by.

use super::dictionary::SAMPLE;
use super::reader::Table;
use crate::error::Result;
use crate::key::Stored;

/// Longer blocks hold one long value, which is no sample, and are not read for that.
const LONGEST: u32 = 32;

impl Table {
    /// Number of its blocks.
    pub(crate) fn blocks(&self) -> u32 {
        self.block_index.blocks
    }

    /// Adds up to `most` values of block `ordinal`, evenly picked and unpacked, to `out`; those
    /// longer than [`SAMPLE`] and those in the log are passed over.
    pub(crate) fn sample(&self, ordinal: u32, most: usize, out: &mut Vec<Vec<u8>>) -> Result<()> {
        let page = self.block_index.page(ordinal);
        let next = if ordinal + 1 < self.block_index.blocks {
            self.block_index.page(ordinal + 1)
        } else {
            self.data_pages()
        };
        if next - page > LONGEST {
            return Ok(());
        }
        let block = self.block(page)?;
        let step = (block.count as usize).div_ceil(most.max(1));
        for slot in (0..block.count).step_by(step) {
            let stored = block.record(slot).stored(self.dict_id());
            let len = match stored {
                Stored::Inline(value) => value.len(),
                Stored::Compressed { raw_len, .. } => raw_len as usize,
                Stored::Pointer(_) => continue,
            };
            if len > 0 && len <= SAMPLE {
                let mut value = Vec::new();
                self.decompress(stored, &mut value)?;
                out.push(value);
            }
        }
        Ok(())
    }
}

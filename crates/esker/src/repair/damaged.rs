//! A damaged table: what of it can be read, and copying that to a new one.

use std::sync::Arc;

use super::Repair;
use super::copy::Copy;
use super::losses::Losses;
use crate::error::{Error, Finding, Result};
use crate::filename;
use crate::key::{Codec, KeyOrder, Seq, Stored, ValuePointer};
use crate::table::{self, DamagedTable, Dictionary, Table};
use crate::util::sum_of;
use crate::version::TableMeta;

impl Repair<'_> {
    /// Copies what is intact to new tables in the same run, says what is not, and puts the file aside.
    pub(super) fn copy_intact(
        &mut self,
        id: u32,
        run: u64,
        order: KeyOrder,
        source: &DamagedTable,
        meta: &TableMeta,
    ) -> Result<()> {
        let name = filename::table(meta.number);
        let ranges = order.clone();
        let mut copy = self.copy(id, order, source.dictionary().cloned());
        let mut losses = Losses::default();
        let mut buf = Vec::new();
        let path = self.dir.join(&name);
        let mut each = |key: &[u8], seq: Seq, kind, stored: Stored<'_>| {
            let value = match stored {
                // Not lost: another build can read it.
                Stored::Compressed { codec: Codec::Zstd, .. } if cfg!(not(feature = "zstd")) => {
                    return Err(Error::NoZstd { path: path.clone() });
                }
                Stored::Pointer(p) => match self.segment(p.segment) {
                    None => Err(format!("log segment {} is missing or damaged", p.segment)),
                    Some(s) => match s.value(&p) {
                        // The segment cannot stay.
                        Ok(value) if self.remains.contains_key(&p.segment) => {
                            buf.clear();
                            buf.extend_from_slice(value);
                            Ok(Stored::Inline(&buf))
                        }
                        Ok(_) => Ok(stored),
                        Err(e) => Err(in_segment(&p, &e)),
                    },
                },
                Stored::Compressed { .. } => source
                    .decompress(stored, &mut buf)?
                    .map(|()| if copy.takes(&stored) { stored } else { Stored::Inline(&buf) }),
                Stored::Inline(_) => Ok(stored),
            };
            let seq = (seq != meta.base_seq).then_some(seq);
            let within = ranges.compare(&meta.smallest, key).is_le()
                && ranges.compare(key, &meta.largest).is_le();
            let saved = match value {
                _ if !within => Err("a key is outside of the table's range".to_string()),
                Err(why) => Err(format!("a value cannot be read: {why}")),
                Ok(value) if copy.add(key, seq, kind, value)? => Ok(()),
                Ok(_) => Err("an entry is out of order".to_string()),
            };
            match saved {
                Ok(()) => losses.saved(),
                Err(why) => losses.lost(key, why),
            }
            Ok(())
        };
        let lost = source.salvage(meta, &mut each)?;
        let saved = copy.finish(meta.base_seq)?;
        for l in lost {
            let from = l.after.as_ref().unwrap_or(&meta.smallest);
            let to = l.before.as_ref().unwrap_or(&meta.largest);
            self.lose(Finding::new(&name, l.what()).at(l.offset).keys(from, to));
        }
        losses.findings(&name).for_each(|lost| self.lose(lost));
        self.found.extend(saved.into_iter().map(|meta| (id, run, meta)));
        self.aside.push(name);
        Ok(())
    }

    /// Keeps a table that is sound, and copies what is intact of one that is not.
    pub(super) fn keep_or_copy(
        &mut self,
        id: u32,
        run: u64,
        order: KeyOrder,
        t: Arc<Table>,
        meta: TableMeta,
    ) -> Result<()> {
        // Whether all values that it points to are there.
        let mut whole = t
            .references()
            .iter()
            .all(|r| self.segment(r.segment).is_some() && !self.remains.contains_key(&r.segment));
        let problems = t.verify_with(&mut |_| {}, &mut |_, _, _, stored| {
            if let Stored::Pointer(p) = stored {
                let segment = self.segment(p.segment);
                whole = whole && segment.is_some_and(|s| s.value(&p).is_ok());
            }
            Ok(())
        })?;
        if problems.is_empty() && whole {
            self.found.push((id, run, meta));
            return Ok(());
        }
        self.copy_intact(id, run, order, &DamagedTable::Opened(t), &meta)
    }

    /// A copy for tables of this keyspace. With the dictionary of what is copied its values stay
    /// packed as they are, so that what comes out is no larger.
    pub(super) fn copy(
        &self,
        id: u32,
        order: KeyOrder,
        dictionary: Option<Arc<Dictionary>>,
    ) -> Copy {
        let compression = match &dictionary {
            Some(d) => d.compression(),
            None => self.compression_of(id),
        };
        let block_size = self.options.block_size;
        let options =
            table::TableOptions { order, keyspace: id, block_size, compression, dictionary };
        let tables = self.old.keyspaces.values().flat_map(|k| k.version.tables());
        let stored = sum_of(tables.map(|t| t.size));
        Copy::new(&self.files, options, self.options.table_sizes(stored).full)
    }
}

/// Why a large value is lost. Without its offset: all that one damage takes are one reason.
fn in_segment(p: &ValuePointer, e: &Error) -> String {
    format!("{} (in log segment {})", Finding::from(e).what, p.segment)
}

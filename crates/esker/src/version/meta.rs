//! What the manifest knows of a table: its bytes, and what must hold of it.

use std::sync::Arc;

use super::wire::{Reader, put_bytes, put_u64};
use super::{Invalid, MAX_NUMBER};
use crate::key::{MAX_KEY_LEN, SegmentRef, Seq, TableMeta};
use crate::util::sum_of;

impl TableMeta {
    /// Bytes of values that stayed in log segments.
    pub(crate) fn separated_bytes(&self) -> u64 {
        sum_of(self.references.iter().map(|r| r.bytes))
    }

    /// The same with a base sequence, which the builder does not know: entries without one of their own
    /// counted as 0 until now.
    pub(crate) fn based_on(self, base_seq: Seq) -> TableMeta {
        let (min_seq, max_seq) = (self.min_seq.max(base_seq), self.max_seq.max(base_seq));
        TableMeta { min_seq, max_seq, base_seq, ..self }
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        for v in [self.number, self.size, self.entries, self.tombstones, self.raw_bytes] {
            put_u64(out, v);
        }
        put_bytes(out, &self.smallest);
        put_bytes(out, &self.largest);
        for v in [self.min_seq, self.max_seq, self.base_seq, u64::from(self.unique_keys)] {
            put_u64(out, v);
        }
        put_u64(out, self.references.len() as u64);
        for r in &self.references {
            put_u64(out, r.segment);
            put_u64(out, r.bytes);
        }
    }

    pub(super) fn decode(r: &mut Reader<'_>) -> Result<TableMeta, Invalid> {
        let meta = TableMeta {
            number: r.u64()?,
            size: r.u64()?,
            entries: r.u64()?,
            tombstones: r.u64()?,
            raw_bytes: r.u64()?,
            smallest: r.bytes(MAX_KEY_LEN)?.to_vec(),
            largest: r.bytes(MAX_KEY_LEN)?.to_vec(),
            min_seq: r.u64()?,
            max_seq: r.u64()?,
            base_seq: r.u64()?,
            unique_keys: r.bool()?,
            references: {
                let n = r.count(2)?;
                let mut list = Vec::with_capacity(n);
                for _ in 0..n {
                    list.push(SegmentRef { segment: r.u64()?, bytes: r.u64()? });
                }
                list
            },
        };
        meta.check()?;
        Ok(meta)
    }

    /// What holds for every table, whatever the order of its keys. Checked before an edit is
    /// written and again after it is read.
    pub(super) fn check(&self) -> Result<(), Invalid> {
        let n = self.number;
        let fail = |what: &str| Err(Invalid::new(format!("table {n}: {what}")));
        if n > MAX_NUMBER || self.size > MAX_NUMBER {
            return fail("number or size out of range");
        }
        if self.max_seq > MAX_NUMBER || self.base_seq > MAX_NUMBER {
            return fail("sequence out of range");
        }
        if self.entries == 0 {
            return fail("no entries");
        }
        if self.tombstones > self.entries {
            return fail("more tombstones than entries");
        }
        if self.min_seq > self.max_seq {
            return fail("lowest sequence above the highest");
        }
        if self.smallest.len() > MAX_KEY_LEN || self.largest.len() > MAX_KEY_LEN {
            return fail("a key is too long");
        }
        if let Some(what) =
            TableMeta::excess(self.size, self.entries, self.raw_bytes, &self.references)
        {
            return fail(what);
        }
        if self.references.iter().any(|r| r.segment > MAX_NUMBER) {
            return fail("segment reference out of range");
        }
        if !self.references.is_sorted_by(|a, b| a.segment < b.segment) {
            return fail("segment references are not in order");
        }
        Ok(())
    }
}

/// Something that stands for a table: its description alone, or an opened table of the engine.
/// Versions and the picker are written against this, so that both run in tests without files.
pub(crate) trait HasMeta {
    /// The table's description.
    fn meta(&self) -> &TableMeta;
}

impl HasMeta for TableMeta {
    fn meta(&self) -> &TableMeta {
        self
    }
}

impl<T: HasMeta> HasMeta for Arc<T> {
    #[inline]
    fn meta(&self) -> &TableMeta {
        T::meta(self)
    }
}

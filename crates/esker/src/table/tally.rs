//! What a table says of its entries, counted as they are written and once more as they are verified.

use std::collections::BTreeMap;

use super::SegmentRef;
use super::footer::Properties;
use crate::key::{Kind, Seq, Stored, ValuePointer};

/// Properties in the making.
#[derive(Default)]
pub(super) struct EntryTally {
    /// What does not follow from the entries, or only from the last of them, is as it was given.
    pub props: Properties,
    /// Bytes by segment.
    references: BTreeMap<u64, u64>,
}

impl EntryTally {
    /// One with these properties, which count no entry.
    pub fn new(props: Properties) -> EntryTally {
        EntryTally { props, references: BTreeMap::new() }
    }

    /// Counts the entry that comes next. Whether its key is a new one the caller has found out.
    pub fn add(
        &mut self,
        key: &[u8],
        new_key: bool,
        seq: Option<Seq>,
        kind: Kind,
        value: Stored<'_>,
    ) {
        let p = &mut self.props;
        match seq {
            None => p.base_entries += 1,
            Some(s) if p.entries == p.base_entries => (p.min_seq, p.max_seq) = (s, s),
            Some(s) => {
                p.min_seq = p.min_seq.min(s);
                p.max_seq = p.max_seq.max(s);
            }
        }
        if p.entries == 0 {
            p.smallest = key.to_vec();
        }
        p.entries += 1;
        p.keys += u64::from(new_key);
        p.tombstones += u64::from(kind == Kind::Delete);
        p.max_key_len = p.max_key_len.max(key.len() as u32);
        let value_len = match value {
            _ if kind == Kind::Delete => 0,
            Stored::Inline(bytes) => bytes.len(),
            Stored::Compressed { raw_len, .. } => raw_len as usize,
            Stored::Pointer(v) => {
                *self.references.entry(v.segment).or_default() += u64::from(v.len);
                ValuePointer::ENCODED_LEN
            }
        };
        p.raw_bytes += (key.len() + value_len) as u64;
    }

    /// The properties of these entries, of which `largest` is the last key.
    pub fn finish(self, largest: Vec<u8>) -> Properties {
        let references = self.references.into_iter();
        let references = references.map(|(segment, bytes)| SegmentRef { segment, bytes }).collect();
        Properties { largest, references, ..self.props }
    }
}

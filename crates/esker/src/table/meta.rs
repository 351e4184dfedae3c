//! What is said of a table, beside what it has and what any can have.

use std::collections::BTreeMap;
use std::fmt::Display;

use crate::error::Shown;
use crate::key::{MAX_KEY_LEN, MAX_VALUE_LEN, SegmentRef, TableMeta};
use crate::util::sum_of;

impl TableMeta {
    /// What `said` says of a table that is as `self` is. Keys are the same where `same` says so. `names` are who says
    /// it, and whose `self` is: `"the manifest says"`, `"the table has"`.
    pub(crate) fn contradictions(
        &self,
        said: &TableMeta,
        same: impl Fn(&[u8], &[u8]) -> bool,
        names: (&str, &str),
    ) -> Vec<String> {
        let mut told = Vec::new();
        let mut tell = |what: &str, said: &dyn Display, is: &dyn Display| {
            told.push(format!("{what}: {} {said}, {} {is}", names.0, names.1));
        };
        for (what, said, is) in [
            ("entries", said.entries, self.entries),
            ("tombstones", said.tombstones, self.tombstones),
            ("bytes of keys and values", said.raw_bytes, self.raw_bytes),
            ("lowest sequence", said.min_seq, self.min_seq),
            ("highest sequence", said.max_seq, self.max_seq),
        ] {
            if said != is {
                tell(what, &said, &is);
            }
        }
        if self.unique_keys != said.unique_keys {
            tell("unique keys", &said.unique_keys, &self.unique_keys);
        }
        for (what, said, is) in [
            ("smallest key", &said.smallest, &self.smallest),
            ("largest key", &said.largest, &self.largest),
        ] {
            if !same(said, is) {
                tell(what, &Shown(said), &Shown(is));
            }
        }
        // By segment what is said and what is; a list that was forged may name one twice.
        let mut values = BTreeMap::<u64, [u64; 2]>::new();
        for (side, m) in [said, self].into_iter().enumerate() {
            for r in &m.references {
                let of_segment = &mut values.entry(r.segment).or_default()[side];
                *of_segment = of_segment.saturating_add(r.bytes);
            }
        }
        for (segment, [said, is]) in values.iter().filter(|(_, [said, is])| said != is) {
            tell(&format!("bytes of values in log segment {segment}"), said, is);
        }
        told
    }

    /// Why no table of `size` bytes can have so many entries, and these so much; `None` when one can. What says more
    /// is forged or damaged, and sums of it would overflow.
    pub(crate) fn excess(
        size: u64,
        entries: u64,
        raw_bytes: u64,
        references: &[SegmentRef],
    ) -> Option<&'static str> {
        let most = |of_one: usize| entries.saturating_mul(of_one as u64);
        let separated = sum_of(references.iter().map(|r| r.bytes));
        if entries > size {
            Some("more entries than bytes")
        } else if raw_bytes > most(MAX_KEY_LEN + MAX_VALUE_LEN) {
            Some("more bytes of keys and values than its entries can have")
        } else if separated > most(u32::MAX as usize) {
            // As long as a pointer can say.
            Some("more bytes in log segments than its entries can have")
        } else {
            None
        }
    }
}

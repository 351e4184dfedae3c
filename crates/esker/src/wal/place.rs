//! Records of a segment by reference: what every read of a memtable passes.
//!
//! So the little that is checked here is what keeps reads inside the mapping. The bytes themselves were
//! verified when they were written or recovered, and the invariants of [`segment`](super::segment) say
//! why nobody writes to them.

use super::format::{ALIGN, RECORD_HEADER, value_checksum};
use super::record::{self, Record};
use super::segment::Segment;
use crate::key::{Kind, Seq, ValuePointer};
use crate::util::prefetch;

/// A record taken apart: where its parts are in the segment that it is of, and the rest.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    key_at: usize,
    key_len: usize,
    value_len: usize,
    pub seq: Seq,
    pub kind: Kind,
    keyspace: u32,
}

impl Segment {
    /// The record that `r` names, a reference that this segment's log writer or its frames gave out,
    /// for a caller that needs its parts more than once.
    ///
    /// # Panics
    /// When the record reaches beyond the segment: `r` is of another segment, or the medium
    /// changed the bytes afterwards.
    #[inline(always)]
    pub(crate) fn place(&self, r: u32) -> Place {
        let at = r as usize * ALIGN;
        if at + RECORD_HEADER > self.len {
            self.bad_reference(r);
        }
        // SAFETY: in bounds as just checked, and `at` is a multiple of 8 in a mapping that starts
        // on a page; the bytes are complete (the segment's invariants).
        let fields = unsafe { record::read_fields(self.base.add(at)) };
        let key_at = at + RECORD_HEADER;
        // No overflow: 24 and 32 bits of lengths.
        if fields.key_len + fields.value_len > self.len - key_at {
            self.bad_reference(r);
        }
        // Saturating: a damaged distance must not lead out of the mapping.
        let frame = at.saturating_sub(fields.back as usize);
        // SAFETY: `frame <= at`, so with `at + 16` in bounds these 8 bytes are too. Unaligned,
        // because a damaged distance may be odd.
        let seq = unsafe { self.base.add(frame + 8).cast::<u64>().read_unaligned() };
        Place {
            key_at,
            key_len: fields.key_len,
            value_len: fields.value_len,
            seq: u64::from_le(seq),
            kind: record::known_kind(fields.kind),
            keyspace: fields.keyspace,
        }
    }

    /// The key of a record of this segment.
    ///
    /// # Panics
    /// When `p` is of another segment and reaches beyond this one.
    #[inline(always)]
    pub(crate) fn key_at(&self, p: &Place) -> &[u8] {
        self.complete(p.key_at, p.key_len)
    }

    /// The value of a record of this segment, empty for a delete.
    ///
    /// # Panics
    /// As [`key_at`](Segment::key_at).
    #[inline(always)]
    pub(crate) fn value_at(&self, p: &Place) -> &[u8] {
        self.complete(p.key_at + p.key_len, p.value_len)
    }

    /// A separated value that [`value`](Segment::value) has given, without another look at its checksum.
    ///
    /// # Panics
    /// When `p` is of another segment and reaches beyond this one.
    pub(crate) fn checked_value(&self, p: &ValuePointer) -> &[u8] {
        self.complete(p.offset as usize, p.len as usize)
    }

    /// Key and value of a record of this segment.
    ///
    /// # Panics
    /// As [`key_at`](Segment::key_at).
    #[inline(always)]
    pub(crate) fn entry_at(&self, p: &Place) -> (&[u8], &[u8]) {
        self.complete(p.key_at, p.key_len + p.value_len).split_at(p.key_len)
    }

    /// Bytes of a complete record.
    #[inline(always)]
    fn complete(&self, at: usize, len: usize) -> &[u8] {
        assert!(at <= self.len && len <= self.len - at, "a place of another segment");
        // SAFETY: in bounds as just checked; of a record, so complete, and not written again.
        unsafe { std::slice::from_raw_parts(self.base.add(at), len) }
    }

    /// The record that `r` names.
    ///
    /// # Panics
    /// As [`place`](Segment::place).
    #[inline(always)]
    pub(crate) fn record(&self, r: u32) -> Record<'_> {
        let p = self.place(r);
        Record {
            key: self.key_at(&p),
            value: self.value_at(&p),
            seq: p.seq,
            kind: p.kind,
            keyspace: p.keyspace,
        }
    }

    /// The key of a record alone: what a search in the index compares.
    ///
    /// # Panics
    /// As [`place`](Segment::place).
    #[inline(always)]
    pub(crate) fn key(&self, r: u32) -> &[u8] {
        let at = r as usize * ALIGN;
        if at + RECORD_HEADER > self.len {
            self.bad_reference(r);
        }
        // SAFETY: as in `place`.
        let fields = unsafe { record::read_fields(self.base.add(at)) };
        let key_at = at + RECORD_HEADER;
        if fields.key_len > self.len - key_at {
            self.bad_reference(r);
        }
        // SAFETY: as in `complete`.
        unsafe { std::slice::from_raw_parts(self.base.add(key_at), fields.key_len) }
    }

    /// Starts loading so many cache lines of the record that `r` names, two to four.
    #[inline]
    pub(crate) fn prefetch(&self, r: u32, lines: usize) {
        let at = self.base.wrapping_add(r as usize * ALIGN);
        prefetch(at);
        prefetch(at.wrapping_add(64));
        if lines > 2 {
            prefetch(at.wrapping_add(128));
        }
        if lines > 3 {
            prefetch(at.wrapping_add(192));
        }
    }

    /// Starts loading the first cache line of the record that `r` names.
    #[inline]
    pub(crate) fn prefetch_head(&self, r: u32) {
        prefetch(self.base.wrapping_add(r as usize * ALIGN));
    }

    /// The same of the lines behind it, so many in all.
    #[inline]
    pub(crate) fn prefetch_rest(&self, r: u32, lines: usize) {
        let at = self.base.wrapping_add(r as usize * ALIGN);
        for line in 1..lines {
            prefetch(at.wrapping_add(64 * line));
        }
    }

    /// The pointer to a record's value, for a compaction that leaves the value here.
    pub(crate) fn pointer_to(&self, r: u32) -> ValuePointer {
        let p = self.place(r);
        let value = self.value_at(&p);
        ValuePointer {
            segment: self.number(),
            offset: (p.key_at + p.key_len) as u64,
            len: value.len() as u32,
            checksum: value_checksum(value),
        }
    }

    #[cold]
    #[inline(never)]
    fn bad_reference(&self, r: u32) -> ! {
        panic!("{}: no record at byte {}", self.path().display(), r as usize * ALIGN)
    }
}

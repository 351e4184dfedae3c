//! The one writer of a segment.
//!
//! A frame is written where it stays: header and records first, its checksum last. Until that one
//! store the frame does not exist, whenever the process dies; so there is no lock, no system call
//! and no second copy on the way of a put.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use xxhash_rust::xxh3::Xxh3;

use super::format::Position;
use super::format::{
    ALIGN, FLAG_SEAL, FLAG_SYNC_MARKER, FRAME_HEADER, RECORD_HEADER, SEAL, SYNC_MARKER,
    frame_checksum, record_len, record_words,
};
use super::segment::Segment;
use crate::batch::WriteBatch;
use crate::key::{Kind, MAX_KEY_LEN, MAX_VALUE_LEN, Seq};

/// Pages are faulted in this many bytes ahead of the writer. More would gain nothing and make the
/// put that does it wait longer (64 KiB take about 10 us); figures in `docs/design/log.md`.
const AHEAD: usize = 64 << 10;
/// The same when writes are synced: a page's first sync has an extent to record as well, and this
/// many bytes share one such record.
const AHEAD_SYNCED: usize = 256 << 10;
/// From this many bytes on a value, or a batch, is written with a system call. It spares the page faults, and
/// the page cache takes it in large folios; below, the copy is faster.
const LARGE: usize = 64 << 10;

/// Appends frames to a segment. Owned inside the store's write lock.
#[derive(Debug)]
pub(crate) struct LogWriter {
    segment: Arc<Segment>,
    base: *mut u8,
    /// Where the next frame goes.
    end: usize,
    /// Where frames must stop: what follows is kept for the seal.
    limit: usize,
    /// Pages before this are faulted in.
    ready: usize,
    /// The segment's syncs when pages were last faulted in.
    syncs: u64,
    number: u64,
}

// SAFETY: `base` points into the segment's mapping, which may be used from any thread; the
// log writer is its only writer, and a value of this type is used by one thread at a time.
unsafe impl Send for LogWriter {}

impl LogWriter {
    /// The writer of a segment that was just created.
    ///
    /// # Panics
    /// When the segment has or had a writer, or was opened and not created.
    pub(crate) fn new(segment: Arc<Segment>) -> LogWriter {
        assert!(segment.take(), "{segment:?} is not to be appended to");
        let end = segment.end() as usize;
        LogWriter {
            base: segment.map().as_ptr(),
            end,
            limit: segment.capacity() as usize - SEAL,
            ready: end,
            syncs: segment.syncs(),
            number: segment.number(),
            segment,
        }
    }

    /// The segment.
    pub(crate) fn segment(&self) -> &Arc<Segment> {
        &self.segment
    }

    /// Bytes left for frames, their headers included.
    #[inline]
    pub(crate) fn remaining(&self) -> u64 {
        (self.limit - self.end) as u64
    }

    /// Takes no more frames, though there may be room: the log is to go on in another segment.
    pub(crate) fn stop(&mut self) {
        self.limit = self.end;
    }

    /// Takes frames again, as there is no other segment to be had. Whether there is room for so many
    /// bytes.
    pub(crate) fn go_on(&mut self, bytes: u64) -> bool {
        self.limit = self.segment.capacity() as usize - SEAL;
        bytes <= self.remaining()
    }

    /// Where the next frame goes, in bytes from the file's start.
    #[inline]
    pub(crate) fn end(&self) -> u64 {
        self.end as u64
    }

    /// Writes a batch of one. Returns the record's reference, `None` when it does not fit: the
    /// caller goes on in another segment.
    ///
    /// `seq` is the one before plus one. Key and value are within the limits.
    #[inline]
    pub(crate) fn append_one(
        &mut self,
        seq: Seq,
        keyspace: u32,
        kind: Kind,
        key: &[u8],
        value: &[u8],
    ) -> Option<u32> {
        assert!(key.len() <= MAX_KEY_LEN && value.len() <= MAX_VALUE_LEN);
        if value.len() >= LARGE {
            return self.append_large(seq, keyspace, kind, key, value);
        }
        let payload = record_len(key.len(), value.len());
        let len = FRAME_HEADER + payload;
        let at = self.reserve(len)?;
        let words = record_words(FRAME_HEADER as u32, kind, key.len(), value.len(), keyspace);
        // SAFETY: `reserve` gave us `[at, at + len)` of the mapping, `at` being a multiple of 8;
        // no reference into it exists yet. `len` covers both headers, key, value and padding, and
        // is a multiple of 8 and at least 32.
        unsafe {
            let frame = self.base.add(at);
            let record = frame.add(FRAME_HEADER);
            // The padding, by way of the last word; what else is in it is written below.
            frame.add(len - ALIGN).cast::<u64>().write(0);
            record.cast::<[u64; 2]>().write(words.map(u64::to_le));
            let at_key = record.add(RECORD_HEADER);
            at_key.copy_from_nonoverlapping(key.as_ptr(), key.len());
            at_key.add(key.len()).copy_from_nonoverlapping(value.as_ptr(), value.len());
        }
        self.finish(at, payload as u32, seq, len);
        Some(((at + FRAME_HEADER) / ALIGN) as u32)
    }

    /// `append_one` for a value that is better written than copied into the mapping.
    #[cold]
    #[inline(never)]
    fn append_large(
        &mut self,
        seq: Seq,
        keyspace: u32,
        kind: Kind,
        key: &[u8],
        value: &[u8],
    ) -> Option<u32> {
        let words = record_words(FRAME_HEADER as u32, kind, key.len(), value.len(), keyspace);
        let mut head = Vec::with_capacity(RECORD_HEADER + key.len());
        head.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        head.extend_from_slice(key);
        let at = self.append_bulky(seq, &head, value)?;
        Some(((at + FRAME_HEADER) / ALIGN) as u32)
    }

    /// Writes a batch, and then calls `each` for every record in order: reference, keyspace, kind,
    /// key and value. `None`, and no call, when it does not fit.
    ///
    /// The batch is not empty and passed its `check`. `seq` is the one before plus one.
    pub(crate) fn append_batch(
        &mut self,
        seq: Seq,
        batch: &WriteBatch,
        mut each: impl FnMut(u32, u32, Kind, &[u8], &[u8]),
    ) -> Option<()> {
        let bytes = batch.frame();
        assert!(!batch.is_empty() && batch.byte_len() == bytes.len(), "{batch:?} is refused");
        let at = self.end;
        if bytes.len() >= LARGE {
            self.append_bulky(seq, &[], &bytes[FRAME_HEADER..])?;
        } else {
            self.reserve(bytes.len())?;
            // SAFETY: `reserve` gave us `[at, at + bytes.len())`; no reference into it exists yet,
            // so `bytes` cannot lie there.
            unsafe { self.base.add(at).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
            self.finish(at, (bytes.len() - FRAME_HEADER) as u32, seq, bytes.len());
        }
        for (start, record) in batch.records() {
            let r = ((at + start) / ALIGN) as u32;
            each(r, record.keyspace, record.kind, record.key, record.value);
        }
        Some(())
    }

    /// Appends a frame of which most, its `bulk`, is better written than copied into the mapping. Returns where it begins.
    #[cold]
    #[inline(never)]
    fn append_bulky(&mut self, seq: Seq, head: &[u8], bulk: &[u8]) -> Option<usize> {
        let filled = FRAME_HEADER + head.len() + bulk.len();
        let len = filled.next_multiple_of(ALIGN);
        if len > self.limit - self.end {
            return None;
        }
        let at = self.end;
        let mut header = [0; FRAME_HEADER];
        header[4..8].copy_from_slice(&((len - FRAME_HEADER) as u32).to_le_bytes());
        header[8..].copy_from_slice(&seq.to_le_bytes());
        // The bulk first: a page that a store has faulted in is in its way, one by one.
        self.write_or_copy(bulk, FRAME_HEADER + head.len());
        // SAFETY: `[at, at + len)` fits as just checked, and no reference into it exists yet. Header and head lie before the
        // bulk, the padding behind it.
        unsafe {
            let frame = self.base.add(at);
            frame.copy_from_nonoverlapping(header.as_ptr(), FRAME_HEADER);
            frame.add(FRAME_HEADER).copy_from_nonoverlapping(head.as_ptr(), head.len());
            frame.add(filled).write_bytes(0, len - filled);
        }
        let mut hash = Xxh3::with_seed(self.number);
        for part in [&header[4..], head, bulk, &[0; ALIGN][..len - filled]] {
            hash.update(part);
        }
        self.publish(at, hash.digest() as u32, len);
        // What was written needs no pages in the mapping.
        self.ready = self.ready.max(self.end);
        Some(at)
    }

    /// Puts `bytes` at this distance from `self.end`, where there is room for them, with a system
    /// call.
    fn write_or_copy(&self, bytes: &[u8], distance: usize) {
        let at = self.end + distance;
        assert!(at + bytes.len() <= self.limit);
        let written = self.segment.file().is_ok_and(|f| f.write_all_at(bytes, at as u64).is_ok());
        if !written {
            // The space is set aside, so the mapping can take what the call refused.
            // SAFETY: in bounds as just checked, and no reference into it exists yet.
            unsafe { self.base.add(at).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        }
    }

    /// Notes that everything before `durable` is durable, if there is room for that. `last_seq` is
    /// the last sequence written. Recovery knows by it that frames which are not sound, and lie
    /// before, were damaged and not cut off by a crash.
    #[cold]
    pub(crate) fn mark(&mut self, last_seq: Seq, durable: Position) {
        if let Some(at) = self.reserve(SYNC_MARKER) {
            self.put_words(at, [durable.segment, durable.end]);
            self.finish(
                at,
                (SYNC_MARKER - FRAME_HEADER) as u32 | FLAG_SYNC_MARKER,
                last_seq,
                SYNC_MARKER,
            );
        }
    }

    /// Ends the segment; the log goes on in segment `next`. There is always room for it.
    pub(crate) fn seal(mut self, last_seq: Seq, next: u64) {
        let at = self.end;
        self.put_words(at, [next]);
        self.finish(at, (SEAL - FRAME_HEADER) as u32 | FLAG_SEAL, last_seq, SEAL);
    }

    /// The contents of a frame that holds no records. `at` is `self.end`; there is room for it.
    fn put_words<const N: usize>(&mut self, at: usize, words: [u64; N]) {
        assert!(at == self.end && at + FRAME_HEADER + 8 * N <= self.limit + SEAL);
        // SAFETY: inside the mapping as just checked, ours to write, a multiple of 8, and no
        // reference into it exists yet.
        unsafe { self.base.add(at + FRAME_HEADER).cast::<[u64; N]>().write(words.map(u64::to_le)) };
    }

    /// Where a frame of `len` bytes goes, `None` when it does not fit.
    #[inline(always)]
    fn reserve(&mut self, len: usize) -> Option<usize> {
        if len > self.limit - self.end {
            return None;
        }
        let end = self.end + len;
        if end > self.ready {
            self.fault_in(end);
        }
        Some(self.end)
    }

    /// Gives a frame its header, whose records are in place: it exists from here on. `at` is
    /// `self.end`, and `at + len` at most the segment's size.
    #[inline(always)]
    fn finish(&mut self, at: usize, len_flags: u32, seq: Seq, len: usize) {
        debug_assert!(at == self.end && at + len <= self.limit + SEAL);
        // SAFETY: `[at, at + len)` is inside the mapping, ours to write, and no reference into it
        // exists yet; `at` is a multiple of 8.
        let rest = unsafe {
            let frame = self.base.add(at);
            frame.add(4).cast::<u32>().write(len_flags.to_le());
            frame.add(8).cast::<u64>().write(seq.to_le());
            std::slice::from_raw_parts(frame.add(4), len - 4)
        };
        let checksum = frame_checksum(self.number, rest);
        self.publish(at, checksum, len);
    }

    /// Stores the checksum of a frame that is otherwise complete, and moves on. `at` is `self.end`,
    /// and `at + len` at most the segment's size.
    #[inline(always)]
    fn publish(&mut self, at: usize, checksum: u32, len: usize) {
        // SAFETY: inside the mapping, and a multiple of 8; nobody else accesses it. Release: the
        // compiler and the processor keep the rest of the frame before it.
        unsafe {
            AtomicU32::from_ptr(self.base.add(at).cast())
                .store(checksum.to_le(), Ordering::Release);
        }
        self.end = at + len;
        self.segment.publish_end(self.end as u64);
    }

    /// Faults pages in up to `end` and some way beyond.
    ///
    /// Doing that for many pages at once costs less than the faults do one by one. It also makes
    /// them dirty, so that the next sync writes them, zeros and all. On a fresh file that is just
    /// what synced writes want: their pages have been written when they come, and a sync has no
    /// new extents to record. On a recycled file it would be waste.
    #[cold]
    #[inline(never)]
    fn fault_in(&mut self, end: usize) {
        let syncs = self.segment.syncs();
        let synced = syncs != self.syncs;
        self.syncs = syncs;
        let ahead = if synced { AHEAD_SYNCED } else { AHEAD };
        let wasted = synced && self.segment.recycled();
        let ready = (end + ahead).min(self.limit + SEAL);
        if !wasted {
            // Best effort: a page that is not faulted in here is when it is written.
            let _ = self.segment.map().populate_write(self.ready, ready - self.ready);
        }
        self.ready = ready;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wal::testing;

    const BYTES: usize = 1 << 20;

    /// Appends a value of so many bytes; where frames end now, and how far pages are ready.
    fn append(log_writer: &mut LogWriter, seq: Seq, value: usize) -> (usize, usize) {
        log_writer.append_one(seq, 0, Kind::Put, b"key", &vec![1; value]).unwrap();
        (log_writer.end, log_writer.ready)
    }

    #[test]
    fn pages_are_made_ready_some_way_ahead_and_not_at_each_frame() {
        let (_env, segment) = testing::segment(1, BYTES as u64);
        let mut log_writer = LogWriter::new(segment);
        let (end, ready) = append(&mut log_writer, 1, 100);
        assert_eq!(ready, end + AHEAD);
        // As long as there are some, none are added.
        assert_eq!(append(&mut log_writer, 2, 60_000).1, ready);
        let left = ready - log_writer.end - FRAME_HEADER - RECORD_HEADER - b"key".len();
        assert_eq!(append(&mut log_writer, 3, left), (ready, ready));
        let (end, ready) = append(&mut log_writer, 4, 0);
        assert_eq!(ready, end + AHEAD);
        // A value that is written with a call needs none.
        let (end, after) = append(&mut log_writer, 5, 100_000);
        assert_eq!((after, end > ready), (end, true));
        // Never behind the segment's end.
        let left = log_writer.remaining() as usize;
        append(&mut log_writer, 6, left - 40_000);
        assert_eq!(append(&mut log_writer, 7, 100).1, BYTES);
    }

    #[test]
    fn synced_writes_have_more_pages_made_ready() {
        let (_env, segment) = testing::segment(1, BYTES as u64);
        let mut log_writer = LogWriter::new(Arc::clone(&segment));
        let (_, ready) = append(&mut log_writer, 1, 100);
        segment.sync().unwrap();
        // What is ready is used up first.
        assert_eq!(append(&mut log_writer, 2, 60_000).1, ready);
        let (end, ready) = append(&mut log_writer, 3, 60_000);
        assert_eq!(ready, end + AHEAD_SYNCED);
        // No sync since then.
        while append(&mut log_writer, 4, 60_000).1 == ready {}
        assert_eq!(log_writer.ready, log_writer.end + AHEAD);
    }
}

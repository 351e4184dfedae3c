//! What a segment holds, read by someone who trusts nothing.
//!
//! Reading goes on frame by frame and stops at the first thing that is not as it must be. That may
//! be the end of what was written, a frame a crash cut off, or damage; the next segment's existence
//! tells which, and that is for recovery to decide.

use std::fmt;

use super::format::{ALIGN, FLAG_SEAL, FLAGS, FRAME_HEADER, RECORD_HEADER, frame_checksum};
use super::record::{Record, decode};
use crate::key::Seq;
use crate::util::MAX_NUMBER;

/// How many bytes of what may be frames are looked at behind the end of a small segment.
const MOST_LOOKED_AT: usize = 512 << 20;

/// Why the frames of a segment stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// At a seal: the segment is complete and succeeded by another.
    Clean {
        /// Where the seal is, in bytes from the file's start.
        offset: u64,
        /// The last sequence written before it.
        last_seq: Seq,
    },
    /// At something that is no sound frame.
    Torn {
        /// Where, in bytes from the file's start.
        offset: u64,
        /// What is wrong with it.
        why: Why,
    },
}

impl End {
    /// Whether the segment is complete.
    pub(crate) fn is_sealed(&self) -> bool {
        matches!(self, End::Clean { .. })
    }

    /// Where the frames stop, in bytes from the file's start.
    #[cfg(test)]
    pub(crate) fn offset(&self) -> u64 {
        match *self {
            End::Clean { offset, .. } | End::Torn { offset, .. } => offset,
        }
    }
}

/// What is wrong with the bytes where frames stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    /// There is no such segment.
    Missing,
    /// They are zero: nothing was written there yet.
    Unwritten,
    /// The segment is over.
    NoRoom,
    /// The frame's length is none a frame can have here.
    Length,
    /// The checksum is wrong: cut off, damaged, or left from the file's former life.
    Checksum,
    /// The frame is sound, but not the one that follows.
    Sequence,
    /// The checksum is right and the records make no sense: a bug, or forged.
    Records,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Why::Missing => "the segment is missing",
            Why::Unwritten => "nothing is written here",
            Why::NoRoom => "the segment has no room for another frame",
            Why::Length => "a frame's length is impossible",
            Why::Checksum => "a frame's checksum is wrong",
            Why::Sequence => "a frame's sequence does not follow the one before",
            Why::Records => "a frame's records do not fill it",
        })
    }
}

/// One atomic batch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame<'a> {
    /// Where it starts, in bytes from the file's start.
    pub offset: u64,
    /// The sequence of all its records.
    pub seq: Seq,
    bytes: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Its records, with their references, in the order they were written.
    pub(crate) fn records(&self) -> Records<'a> {
        Records { frame: *self, at: FRAME_HEADER }
    }

    /// Its length in bytes, header included.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }
}

/// Walks the records of a frame: reference and record.
#[derive(Debug, Clone)]
pub(crate) struct Records<'a> {
    frame: Frame<'a>,
    at: usize,
}

impl<'a> Iterator for Records<'a> {
    type Item = (u32, Record<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let (record, len) = decode(self.frame.bytes, self.frame.seq, self.at)?;
        let r = (self.frame.offset as usize + self.at) / ALIGN;
        self.at += len;
        Some((r as u32, record))
    }
}

/// Walks the frames of a segment. After it returned `None`, [`end`](Frames::end) says why.
#[derive(Debug, Clone)]
pub(crate) struct Frames<'a> {
    number: u64,
    segment: &'a [u8],
    at: usize,
    last_seq: Option<Seq>,
    end: Option<End>,
}

impl<'a> Frames<'a> {
    /// Over all bytes of segment `number`, starting at `at`.
    pub(super) fn new(number: u64, segment: &'a [u8], at: usize) -> Frames<'a> {
        Frames { number, segment, at, last_seq: None, end: None }
    }

    /// Why there are no more frames; `None` while there may be some.
    #[cfg(test)]
    pub(crate) fn end(&self) -> Option<End> {
        self.end
    }

    /// Walks to the end, past frames not yet taken, and says why it is one.
    pub(crate) fn finish(mut self) -> End {
        loop {
            match self.end {
                Some(end) => return end,
                None => drop(self.next()),
            }
        }
    }

    /// Whether there is a sound frame behind the end, which then is none: the frames between were
    /// damaged, or a power cut took them and left this one, which was not synced either.
    pub(crate) fn go_on_behind_their_end(mut self) -> bool {
        self.by_ref().for_each(drop);
        let Some(End::Torn { offset, .. }) = self.end else { return false };
        let last = self.last_seq.unwrap_or(0);
        // No more frames than fit there can have been between.
        let most = last.saturating_add(self.segment.len() as u64);
        // Bytes made to look like the beginnings of frames, each of half a segment, would take a
        // checksum of half a segment each. So many doubts are taken for damage.
        let mut patience = MOST_LOOKED_AT.max(8 * self.segment.len());
        let mut at = offset as usize + ALIGN;
        while let Some(header) = self.segment.get(at..at + FRAME_HEADER) {
            let seq = u64::from_le_bytes(*header[8..].first_chunk().expect("sixteen bytes"));
            let likely =
                if self.last_seq.is_some() { (last + 1..=most).contains(&seq) } else { seq > 0 };
            if likely {
                let word = u32::from_le_bytes(*header[4..].first_chunk().expect("sixteen bytes"));
                let len = (word & !FLAGS) as usize;
                if (Frames { at, last_seq: None, end: None, ..self.clone() }).read().is_ok() {
                    return true;
                }
                // A checksum was taken only of what has the form of a frame.
                let room = self.segment.len() - at - FRAME_HEADER;
                let summed = word & FLAGS == 0 && (RECORD_HEADER..=room).contains(&len);
                let Some(left) = patience.checked_sub(if summed { len } else { 0 }) else {
                    return true;
                };
                patience = left;
            }
            at += ALIGN;
        }
        false
    }

    /// The next frame, or why there is none. Does not move.
    pub(super) fn read(&self) -> Result<Frame<'a>, End> {
        let offset = self.at as u64;
        let torn = |why| Err(End::Torn { offset, why });
        let rest = self.segment.get(self.at..).unwrap_or_default();
        let Some(header) = rest.first_chunk::<FRAME_HEADER>() else { return torn(Why::NoRoom) };
        let word = u128::from_le_bytes(*header);
        if word == 0 {
            return torn(Why::Unwritten);
        }
        let (checksum, len_flags, seq) = (word as u32, (word >> 32) as u32, (word >> 64) as u64);
        let (len, flags) = ((len_flags & !FLAGS) as usize, len_flags & FLAGS);
        let seal = flags == FLAG_SEAL && len == 0;
        if !seal && (flags != 0 || len < RECORD_HEADER) {
            return torn(Why::Length);
        }
        let Some(bytes) = rest.get(..FRAME_HEADER + len) else { return torn(Why::Length) };
        if checksum != frame_checksum(self.number, &bytes[4..]) {
            return torn(Why::Checksum);
        }
        let follows = match self.last_seq {
            // A bulk load takes a sequence without a frame.
            Some(last) if seal => seq >= last,
            Some(last) => last.checked_add(1) == Some(seq),
            None => true,
        };
        // No sequence is that high; and the one that follows must be a number too.
        if !follows || seq > MAX_NUMBER {
            return torn(Why::Sequence);
        }
        if seal {
            return Err(End::Clean { offset, last_seq: seq });
        }
        let frame = Frame { offset, seq, bytes };
        let mut records = frame.records();
        records.by_ref().for_each(drop);
        if records.at != bytes.len() {
            return torn(Why::Records);
        }
        Ok(frame)
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Frame<'a>;

    fn next(&mut self) -> Option<Frame<'a>> {
        if self.end.is_some() {
            return None;
        }
        match self.read() {
            Ok(frame) => {
                self.at += frame.len();
                self.last_seq = Some(frame.seq);
                Some(frame)
            }
            Err(end) => {
                self.end = Some(end);
                None
            }
        }
    }
}

//! What a segment holds, read by someone who trusts nothing.
//!
//! Reading goes on frame by frame and stops at the first thing that is not as it must be. That may
//! be the end of what was written, a frame a crash cut off, or damage. Markers of syncs and the
//! manifest tell which, in [`scanner`](super::scanner).

use std::fmt;

use super::format::Position;
use super::format::{
    ALIGN, FLAG_SEAL, FLAG_SYNC_MARKER, FLAGS, FRAME_HEADER, RECORD_HEADER, SEAL, SYNC_MARKER,
    frame_checksum,
};
use super::record::{Record, decode};
use crate::key::Seq;
use crate::util::MAX_NUMBER;

/// How many bytes of what may be frames are looked at behind the end of a small segment.
const MOST_LOOKED_AT: usize = 512 << 20;

/// Why the frames of a segment stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// At a seal: the segment is complete, and the log goes on in another.
    Clean {
        /// Where the seal is, in bytes from the file's start.
        offset: u64,
        /// The last sequence written before it.
        last_seq: Seq,
        /// Number of the segment that follows.
        next: u64,
    },
    /// At something that is no sound frame.
    Torn {
        /// Where, in bytes from the file's start.
        offset: u64,
        /// What is wrong with it.
        why: StopReason,
    },
}

impl End {
    /// Whether the segment is complete.
    pub(crate) fn is_sealed(&self) -> bool {
        matches!(self, End::Clean { .. })
    }

    /// Where the frames stop, in bytes from the file's start.
    pub(crate) fn offset(&self) -> u64 {
        match *self {
            End::Clean { offset, .. } | End::Torn { offset, .. } => offset,
        }
    }
}

/// What is wrong with the bytes where frames stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopReason {
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

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StopReason::Missing => "the segment is missing",
            StopReason::Unwritten => "nothing is written here",
            StopReason::NoRoom => "the segment has no room for another frame",
            StopReason::Length => "a frame's length is impossible",
            StopReason::Checksum => "a frame's checksum is wrong",
            StopReason::Sequence => "a frame's sequence does not follow the one before",
            StopReason::Records => "a frame's records do not fill it",
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

/// A sound frame of whatever kind.
enum Item<'a> {
    Batch(Frame<'a>),
    Mark(Position),
}

/// What is found behind the place where frames stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct TrailingRecords {
    /// Whether there is a sound frame.
    pub frames: bool,
    /// The highest position that a mark among them says was durable.
    pub durable: Position,
    /// The highest sequence of the frames, seals included.
    pub last_seq: Seq,
}

impl TrailingRecords {
    /// Both findings together.
    pub(crate) fn and(self, other: TrailingRecords) -> TrailingRecords {
        TrailingRecords {
            frames: self.frames || other.frames,
            durable: self.durable.max(other.durable),
            last_seq: self.last_seq.max(other.last_seq),
        }
    }
}

/// How far behind their end frames are looked for, in bytes, unless everything is asked for.
const NEAR: usize = 4 << 20;

/// Walks the frames of a segment. After it returned `None`, [`end`](Frames::end) says why. Marks
/// are passed over, and remembered.
#[derive(Debug, Clone)]
pub(crate) struct Frames<'a> {
    number: u64,
    segment: &'a [u8],
    at: usize,
    last_seq: Option<Seq>,
    durable: Position,
    end: Option<End>,
}

impl<'a> Frames<'a> {
    /// Over all bytes of segment `number`, starting at `at`.
    pub(super) fn new(number: u64, segment: &'a [u8], at: usize) -> Frames<'a> {
        let durable = Position::default();
        Frames { number, segment, at, last_seq: None, durable, end: None }
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

    /// What the frames from here to their end say; marks and the seal count as frames.
    pub(crate) fn survey(mut self) -> TrailingRecords {
        let frames = self.starts();
        self.by_ref().for_each(drop);
        TrailingRecords { frames, durable: self.durable, last_seq: self.reached() }
    }

    /// The last sequence of those taken, and of the seal.
    fn reached(&self) -> Seq {
        match self.end {
            Some(End::Clean { last_seq, .. }) => last_seq,
            _ => self.last_seq.unwrap_or(0),
        }
    }

    /// What is behind the end, if that is none: frames between were damaged, or a power cut took
    /// them and left these, which were not synced either. Looks a few megabytes far, or everywhere.
    pub(crate) fn behind_their_end(mut self, everywhere: bool) -> TrailingRecords {
        self.by_ref().for_each(drop);
        let mut found = TrailingRecords::default();
        let Some(End::Torn { offset, .. }) = self.end else { return found };
        let last = self.last_seq.unwrap_or(0);
        // No more frames than fit there can have been between.
        let most = last.saturating_add(self.segment.len() as u64);
        // Bytes made to look like the beginnings of frames, each of half a segment, would take a
        // checksum of half a segment each. So many doubts are taken for damage.
        let mut patience = MOST_LOOKED_AT.max(self.segment.len());
        let mut at = offset as usize + ALIGN;
        let far = if everywhere { self.segment.len() } else { at.saturating_add(NEAR) };
        while let Some(header) = self.segment.get(at..at + FRAME_HEADER).filter(|_| at < far) {
            let seq = u64::from_le_bytes(*header[8..].first_chunk().expect("sixteen bytes"));
            let likely =
                if self.last_seq.is_some() { (last..=most).contains(&seq) } else { seq > 0 };
            let mut rest = Frames::new(self.number, self.segment, at);
            if likely && rest.starts() {
                rest.by_ref().for_each(drop);
                let (durable, last_seq) = (rest.durable, rest.reached());
                found = found.and(TrailingRecords { frames: true, durable, last_seq });
                at = rest.at;
            } else if likely {
                // A checksum was taken only of what has the form of a frame.
                let word = u32::from_le_bytes(*header[4..].first_chunk().expect("sixteen bytes"));
                let len = (word & !FLAGS) as usize;
                let room = self.segment.len() - at - FRAME_HEADER;
                let summed = word & FLAGS == 0 && (RECORD_HEADER..=room).contains(&len);
                let Some(left) = patience.checked_sub(if summed { len } else { 0 }) else {
                    let end = Position { segment: u64::MAX, end: u64::MAX };
                    return TrailingRecords { frames: true, durable: end, last_seq: Seq::MAX };
                };
                patience = left;
            }
            at += ALIGN;
        }
        found
    }

    /// Whether a sound frame is next, a seal included.
    pub(crate) fn starts(&self) -> bool {
        match self.item() {
            Ok(_) => true,
            Err(end) => end.is_sealed(),
        }
    }

    /// The next frame, or why there is none. Does not move.
    fn item(&self) -> Result<Item<'a>, End> {
        let offset = self.at as u64;
        let torn = |why| Err(End::Torn { offset, why });
        let rest = self.segment.get(self.at..).unwrap_or_default();
        let Some(header) = rest.first_chunk::<FRAME_HEADER>() else {
            return torn(StopReason::NoRoom);
        };
        let word = u128::from_le_bytes(*header);
        if word == 0 {
            return torn(StopReason::Unwritten);
        }
        let (checksum, len_flags, seq) = (word as u32, (word >> 32) as u32, (word >> 64) as u64);
        let (len, flags) = ((len_flags & !FLAGS) as usize, len_flags & FLAGS);
        let seal = flags == FLAG_SEAL && FRAME_HEADER + len == SEAL;
        let mark = flags == FLAG_SYNC_MARKER && FRAME_HEADER + len == SYNC_MARKER;
        if !seal && !mark && (flags != 0 || len < RECORD_HEADER) {
            return torn(StopReason::Length);
        }
        let Some(bytes) = rest.get(..FRAME_HEADER + len) else { return torn(StopReason::Length) };
        if checksum != frame_checksum(self.number, &bytes[4..]) {
            return torn(StopReason::Checksum);
        }
        let follows = match self.last_seq {
            // A bulk load takes a sequence without a frame.
            Some(last) if seal => seq >= last,
            Some(last) if mark => seq == last,
            Some(last) => last.checked_add(1) == Some(seq),
            None => true,
        };
        // No sequence is that high; and the one that follows must be a number too.
        if !follows || seq > MAX_NUMBER {
            return torn(StopReason::Sequence);
        }
        let word = |at: usize| {
            let word = bytes[FRAME_HEADER + 8 * at..].first_chunk();
            u64::from_le_bytes(*word.expect("as long as a seal or a mark"))
        };
        if seal {
            return Err(End::Clean { offset, last_seq: seq, next: word(0) });
        }
        if mark {
            return Ok(Item::Mark(Position { segment: word(0), end: word(1) }));
        }
        let frame = Frame { offset, seq, bytes };
        let mut records = frame.records();
        records.by_ref().for_each(drop);
        if records.at != bytes.len() {
            return torn(StopReason::Records);
        }
        Ok(Item::Batch(frame))
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Frame<'a>;

    fn next(&mut self) -> Option<Frame<'a>> {
        while self.end.is_none() {
            match self.item() {
                Ok(Item::Batch(frame)) => {
                    self.at += frame.len();
                    self.last_seq = Some(frame.seq);
                    return Some(frame);
                }
                Ok(Item::Mark(durable)) => {
                    self.at += SYNC_MARKER;
                    self.durable = self.durable.max(durable);
                }
                Err(end) => self.end = Some(end),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::env::File;
    use crate::filename;
    use crate::key::Kind;
    use crate::wal::{FIRST_FRAME, LogWriter, testing};

    #[test]
    fn marks_are_passed_over_and_remembered() {
        let (env, segment) = testing::segment(1, 8192);
        let mut log_writer = LogWriter::new(segment);
        let durable = Position { segment: 1, end: FIRST_FRAME + 40 };
        log_writer.mark(0, Position { segment: 1, end: FIRST_FRAME });
        log_writer.append_one(1, 0, Kind::Put, b"key", b"value").unwrap();
        let torn_at = log_writer.end();
        log_writer.append_one(2, 0, Kind::Put, b"key", b"value").unwrap();
        log_writer.mark(2, durable);
        log_writer.append_one(3, 0, Kind::Put, b"key", b"value").unwrap();
        let reopened = testing::reopen(&env, 1).unwrap();
        assert_eq!((reopened.frames().count(), reopened.frames().finish().is_sealed()), (3, false));
        assert_eq!(
            reopened.frames().survey(),
            TrailingRecords { frames: true, durable, last_seq: 3 }
        );
        assert_eq!(reopened.frames().behind_their_end(true), TrailingRecords::default());
        // What a mark says is found behind a tear too.
        let file = env.file(Path::new(&filename::segment(1)));
        file.write_all_at(&[0xFF; 8], torn_at).unwrap();
        let reopened = testing::reopen(&env, 1).unwrap();
        let end = reopened.frames().finish();
        assert_eq!((reopened.frames().count(), end.offset()), (1, torn_at));
        assert_eq!(
            reopened.frames().behind_their_end(false),
            TrailingRecords { frames: true, durable, last_seq: 3 }
        );
    }

    #[test]
    fn a_frame_out_of_sequence_is_the_end_and_not_behind_it() {
        for more in [false, true] {
            let (env, segment) = testing::segment(1, 8192);
            let mut log_writer = LogWriter::new(segment);
            log_writer.append_one(1, 0, Kind::Put, b"key", b"value").unwrap();
            let end = log_writer.end();
            log_writer.append_one(3, 0, Kind::Put, b"key", b"value").unwrap();
            if more {
                log_writer.append_one(4, 0, Kind::Put, b"key", b"value").unwrap();
            }
            let reopened = testing::reopen(&env, 1).unwrap();
            let why = StopReason::Sequence;
            assert_eq!(reopened.frames().finish(), End::Torn { offset: end, why });
            assert_eq!(reopened.frames().behind_their_end(true).frames, more);
        }
    }
}

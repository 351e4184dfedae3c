//! Log segments of any bytes, for fuzzing.

use std::path::Path;
use std::sync::Arc;

use super::format::{self, FIRST_FRAME, FLAGS, FRAME_HEADER, frame_checksum};
use super::{End, Frame, LogReader, LogSpan, LogWriter, Lookup, Position, Segment, record, scan};
use crate::batch::WriteBatch;
use crate::env::{Env, OpenMode};
use crate::filename;
use crate::key::{Kind, ValuePointer};

/// Number of the segment that [`segment`] takes its bytes for.
pub(crate) const NUMBER: u64 = 5;

/// Bytes of input that are the header; frames follow. The rest of the header's page is zeros.
const HEAD: usize = format::HEADER_USED;

/// A file from the bytes of the input: header, the rest of its page, frames, and zeros up to
/// `len` bytes.
pub(crate) fn expand(data: &[u8], number: u64, sealed: bool) -> Vec<u8> {
    let (head, frames) = data.split_at(HEAD.min(data.len()));
    let mut file = vec![0; FIRST_FRAME];
    file[..head.len()].copy_from_slice(head);
    file.extend_from_slice(frames);
    file.resize((file.len() + 64).next_multiple_of(4096), 0);
    if sealed {
        let header = format::encode_header(number, file.len() as u64);
        file[..header.len()].copy_from_slice(&header);
        reseal(&mut file, number);
    }
    file
}

/// The input that [`expand`] makes this file from.
pub(crate) fn shrink(file: &[u8]) -> Vec<u8> {
    let used = file.iter().rposition(|b| *b != 0).map_or(0, |at| at + 1);
    [&file[..HEAD], &file[FIRST_FRAME..used.max(FIRST_FRAME)]].concat()
}

/// Sets the checksums of all frames right, as far as their lengths lead.
fn reseal(file: &mut [u8], number: u64) {
    let mut at = FIRST_FRAME;
    while let Some(header) = file.get(at..at + FRAME_HEADER) {
        let word = u32::from_le_bytes([header[4], header[5], header[6], header[7]]);
        let len = (word & !FLAGS) as usize;
        let Some(frame) = file.get_mut(at..at + FRAME_HEADER + len) else { return };
        if frame.iter().all(|b| *b == 0) {
            return;
        }
        let sum = frame_checksum(number, &frame[4..]);
        frame[..4].copy_from_slice(&sum.to_le_bytes());
        at += FRAME_HEADER + len;
    }
}

/// Opens the bytes as a segment in `dir` and reads it as recovery does.
pub(crate) fn segment(env: &Arc<dyn Env>, dir: &Path, file: &[u8]) {
    let path = dir.join(filename::segment(NUMBER));
    drop(env.remove(&path));
    let Ok(out) = env.open(&path, OpenMode::CreateNew) else { return };
    out.write_all_at(file, 0).expect("writing a file of the fuzzer's");
    Segment::never_synced(env, dir, NUMBER).expect("a file that is there");
    let Ok(segment) = Segment::open(env, dir, NUMBER, false) else { return };
    assert!(segment.capacity() <= file.len() as u64);
    let mut frames = segment.frames();
    let mut last_end = FIRST_FRAME as u64;
    let mut pointers = Vec::new();
    for frame in frames.by_ref() {
        assert!(frame.offset >= last_end, "frames follow each other, with marks between");
        last_end = frame.offset + frame.len() as u64;
        for (r, rec) in frame.records() {
            assert!(rec.key.len() <= crate::MAX_KEY_LEN && rec.value.len() <= crate::MAX_VALUE_LEN);
            let again = segment.record(r);
            assert!(again.key == rec.key && again.value == rec.value && again.kind == rec.kind);
            assert!(segment.key(r) == rec.key);
            pointers.push(segment.pointer_to(r));
        }
    }
    let end = frames.finish();
    let (End::Clean { offset, .. } | End::Torn { offset, .. }) = end;
    assert!(offset >= last_end);
    for p in pointers {
        assert!(segment.value(&p).is_ok());
        for other in [
            ValuePointer { checksum: !p.checksum, ..p },
            ValuePointer { offset: p.offset + file.len() as u64, ..p },
            ValuePointer { len: u32::MAX, ..p },
            ValuePointer { offset: u64::MAX, ..p },
        ] {
            assert!(segment.value(&other).is_err());
        }
    }
    // A log of this segment alone ends in it or before the next, as the manifest may know or not, and what a
    // tolerant reader takes for damage a strict one does too.
    let segment = Arc::new(segment);
    for durable in [0, end.offset(), end.offset() + 1, u64::MAX] {
        let log = LogSpan {
            start: NUMBER,
            durable: Position { segment: NUMBER, end: durable },
            closed: false,
        };
        let found = [false, true].map(|strict| {
            let mut alone = OneSegment { segment: Arc::clone(&segment), frames: 0, damages: 0 };
            let end =
                scan(dir, log, &[NUMBER], strict, &mut alone).expect("damage is no error here");
            assert_eq!(alone.frames, segment.frames().count());
            (alone.damages, end)
        });
        let [(tolerant, one), (strict, other)] = found;
        assert!(tolerant <= strict && one.damage.is_none() | other.damage.is_some());
        assert_eq!(one.last.map(|l| l.1), other.last.map(|l| l.1));
        assert!(durable < u64::MAX || strict > 0, "the manifest knows of more");
    }
}

/// Reads a log of which there is one segment.
struct OneSegment {
    segment: Arc<Segment>,
    frames: usize,
    damages: usize,
}

impl LogReader for OneSegment {
    fn open(&mut self, number: u64, _: bool) -> crate::Result<Lookup> {
        Ok(match number == NUMBER {
            true => Lookup::Segment(Arc::clone(&self.segment)),
            false => Lookup::Missing,
        })
    }
    fn frame(&mut self, _: &Arc<Segment>, _: &Frame<'_>) -> crate::Result<()> {
        self.frames += 1;
        Ok(())
    }
    fn end_of_segment(&mut self, _: &Arc<Segment>, _: &End) -> crate::Result<()> {
        Ok(())
    }
    fn damage(&mut self, _: crate::Error) -> crate::Result<()> {
        self.damages += 1;
        Ok(())
    }
}

/// Bytes as a batch: any frame can be taken apart, and writes come back as they were put in.
pub(crate) fn batch(env: &Arc<dyn Env>, dir: &Path, data: &[u8]) {
    for at in [0, FRAME_HEADER, data.len() / 2] {
        if let Some((rec, len)) = record::decode(data, 1, at) {
            assert!(len >= rec.key.len() + rec.value.len() && at + len <= data.len());
        }
    }
    let (mut batch, mut wanted) = (WriteBatch::new(), Vec::new());
    let mut rest = data;
    while let Some((&[what, klen, vlen], tail)) = rest.split_first_chunk() {
        let (key, tail) = tail.split_at(usize::from(klen).min(tail.len()));
        let (value, tail) = tail.split_at(usize::from(vlen).min(tail.len()));
        rest = tail;
        let keyspace = u32::from(what >> 5);
        match what & 7 {
            0 => batch.push(keyspace, Kind::Delete, key, b""),
            1 if what & 8 != 0 => {
                batch.clear();
                wanted.clear();
                continue;
            }
            _ => batch.push(keyspace, Kind::Put, key, value),
        }
        let kind = if what & 7 == 0 { Kind::Delete } else { Kind::Put };
        wanted.push((keyspace, kind, key, if kind == Kind::Put { value } else { b"" }));
    }
    assert!(batch.check().is_ok() && batch.len() == wanted.len());
    let found = batch.records().map(|(_, r)| (r.keyspace, r.kind, r.key, r.value));
    assert!(found.eq(wanted.iter().copied()));
    if batch.is_empty() {
        return;
    }
    drop(env.remove(&dir.join(filename::segment(NUMBER))));
    let bytes = format::segment_bytes_for(batch.payload_len());
    let made = Segment::create(env, dir, NUMBER, bytes, None).expect("a segment");
    let mut log_writer = LogWriter::new(Arc::new(made));
    let mut at = 0;
    let appended = log_writer.append_batch(9, &batch, |_, keyspace, kind, key, value| {
        assert_eq!((keyspace, kind, key, value), wanted[at]);
        at += 1;
    });
    assert!(appended.is_some() && at == wanted.len());
    log_writer.seal(9, NUMBER + 1);
    let segment = Segment::open(env, dir, NUMBER, false).expect("what was just written");
    let mut frames = segment.frames();
    let frame = frames.next().expect("one frame");
    let found = frame.records().map(|(_, r)| (r.keyspace, r.kind, r.key, r.value));
    assert!(found.eq(wanted.iter().copied()) && frame.seq == 9);
    assert!(frames.next().is_none() && frames.finish().is_sealed());
}

//! The last bytes of a segment: what just fits goes in whole, what does not changes nothing.

use super::format::{FIRST_FRAME, FRAME_HEADER, RECORD_HEADER, SEAL, SYNC_MARKER};
use super::frames::End;
use super::testing;
use super::{LogWriter, Position, segment_bytes_for};
use crate::batch::WriteBatch;
use crate::key::Kind;

const BYTES: u64 = 256 << 10;

/// A segment with so much room left for frames, and how many frames are in it.
fn with_room(room: u64) -> (std::sync::Arc<testing::HeapEnv>, LogWriter, u64) {
    let (env, segment) = testing::segment(1, BYTES);
    let mut log_writer = LogWriter::new(segment);
    let mut seq = 0;
    let overhead = (FRAME_HEADER + RECORD_HEADER) as u64;
    while log_writer.remaining() > room {
        // In pieces below the size from which values are written in another way; what is left at
        // the end is enough for one more.
        let fill = (log_writer.remaining() - room).min(60_000);
        let rest = log_writer.remaining() - room - fill;
        let fill = if rest > 0 && rest < overhead { fill - overhead } else { fill };
        seq += 1;
        let value = vec![1; (fill - overhead) as usize];
        log_writer.append_one(seq, 0, Kind::Put, b"", &value).unwrap();
    }
    assert_eq!(log_writer.remaining(), room);
    (env, log_writer, seq)
}

/// Seals the segment, and reads it as recovery would: how many frames, the last record's value.
fn sealed(
    env: &std::sync::Arc<testing::HeapEnv>,
    log_writer: LogWriter,
    seq: u64,
) -> (u64, Vec<u8>) {
    let end = log_writer.end();
    log_writer.seal(seq, 2);
    let segment = testing::reopen(env, 1).unwrap();
    let found = segment.frames().finish();
    assert_eq!(found, End::Clean { offset: end, last_seq: seq, next: 2 });
    let last = segment.frames().last().unwrap();
    assert_eq!(last.seq, seq);
    let value = last.records().last().unwrap().1.value.to_vec();
    (segment.frames().count() as u64, value)
}

#[test]
fn a_value_takes_the_last_byte_and_no_byte_more() {
    // Copied into the mapping, and from 64 KiB on written with a call.
    for len in [100usize, 4000, 70_000, 100_000] {
        let frame = (FRAME_HEADER + RECORD_HEADER + 3 + len).next_multiple_of(8);
        let value = vec![7; len];
        let (env, mut log_writer, seq) = with_room(frame as u64 - 8);
        let end = log_writer.end();
        assert_eq!(log_writer.append_one(seq + 1, 0, Kind::Put, b"key", &value), None, "{len}");
        assert_eq!((log_writer.end(), log_writer.remaining()), (end, frame as u64 - 8));
        assert_eq!(sealed(&env, log_writer, seq).0, seq, "nothing was written");

        let (env, mut log_writer, seq) = with_room(frame as u64);
        let r = log_writer.append_one(seq + 1, 0, Kind::Put, b"key", &value).unwrap();
        assert_eq!(log_writer.segment().record(r).value, value);
        assert_eq!(log_writer.remaining(), 0);
        assert_eq!(sealed(&env, log_writer, seq + 1), (seq + 1, value));
    }
}

#[test]
fn a_batch_takes_the_last_byte_and_no_byte_more() {
    for len in [100usize, 70_000] {
        let mut batch = WriteBatch::new();
        batch.push(0, Kind::Put, b"a", &vec![7; len / 2]);
        batch.push(1, Kind::Put, b"b", &vec![8; len / 2]);
        let frame = batch.byte_len() as u64;
        let (env, mut log_writer, seq) = with_room(frame - 8);
        let mut calls = 0;
        assert_eq!(log_writer.append_batch(seq + 1, &batch, |_, _, _, _, _| calls += 1), None);
        assert_eq!((calls, log_writer.remaining()), (0, frame - 8));
        assert_eq!(sealed(&env, log_writer, seq).0, seq, "nothing was written");

        let (env, mut log_writer, seq) = with_room(frame);
        log_writer.append_batch(seq + 1, &batch, |_, _, _, _, _| calls += 1).unwrap();
        assert_eq!((calls, log_writer.remaining()), (2, 0));
        assert_eq!(sealed(&env, log_writer, seq + 1), (seq + 1, vec![8; len / 2]));
    }
}

#[test]
fn a_mark_is_left_out_where_it_does_not_fit() {
    let durable = Position { segment: 1, end: FIRST_FRAME as u64 };
    for (room, fits) in [(SYNC_MARKER as u64, true), (SYNC_MARKER as u64 - 8, false)] {
        let (env, mut log_writer, seq) = with_room(room);
        log_writer.mark(seq, durable);
        assert_eq!(log_writer.remaining(), if fits { 0 } else { room });
        assert_eq!(sealed(&env, log_writer, seq).0, seq);
        let said = testing::reopen(&env, 1).unwrap().frames().survey().durable;
        assert_eq!(said, if fits { durable } else { Position::default() });
    }
}

#[test]
fn a_segment_made_for_a_batch_holds_it() {
    let pages = |n: u64| n * 4096;
    // Header page, frame header and seal beside the payload, in whole pages.
    let most = 4096 - (FRAME_HEADER + SEAL) as u64;
    assert_eq!(segment_bytes_for(0), pages(2));
    assert_eq!(segment_bytes_for(most), pages(2));
    assert_eq!(segment_bytes_for(most + 1), pages(3));
    assert_eq!(segment_bytes_for(pages(100) + most), pages(102));
    for len in [0, 4000, 100_000] {
        let mut batch = WriteBatch::new();
        batch.push(0, Kind::Put, b"a", &vec![7; len]);
        batch.push(0, Kind::Put, b"b", b"");
        let payload = (batch.byte_len() - FRAME_HEADER) as u64;
        let (_, segment) = testing::segment(1, segment_bytes_for(payload));
        let mut log_writer = LogWriter::new(segment);
        log_writer.append_batch(1, &batch, |_, _, _, _, _| ()).unwrap();
        assert!(log_writer.remaining() < 4096);
    }
}

//! How far references and sequences reach: to the last byte of a segment and the last number, and not
//! one further.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use super::format::{ALIGN, FIRST_FRAME, RECORD_HEADER, record_words};
use super::frames::{End, StopReason};
use super::{LogWriter, testing};
use crate::env::File;
use crate::filename;
use crate::key::Kind;
use crate::util::MAX_NUMBER;

const BYTES: usize = 8192;

/// The record of a file whose last bytes are a record's header and `room` more. What its header says
/// of lengths need not be true. `None` when it is refused.
fn at_the_end(room: usize, key: usize, value: usize) -> [Option<usize>; 2] {
    let (env, segment) = testing::segment(1, BYTES as u64);
    let at = BYTES - room - RECORD_HEADER;
    let words = record_words((at - FIRST_FRAME) as u32, Kind::Put, key, value, 0);
    let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
    env.file(Path::new(&filename::segment(1))).write_all_at(&bytes, at as u64).unwrap();
    let r = (at / ALIGN) as u32;
    let looked = |f: &dyn Fn() -> usize| catch_unwind(AssertUnwindSafe(f)).ok();
    [looked(&|| segment.key(r).len()), looked(&|| segment.record(r).value.len())]
}

#[test]
fn a_reference_reaches_to_the_last_byte() {
    assert_eq!(at_the_end(0, 0, 0), [Some(0), Some(0)]);
    assert_eq!(at_the_end(0, 1, 0), [None, None]);
    assert_eq!(at_the_end(0, 0, 1), [Some(0), None]);
    assert_eq!(at_the_end(8, 8, 0), [Some(8), Some(0)]);
    assert_eq!(at_the_end(8, 5, 3), [Some(5), Some(3)]);
    assert_eq!(at_the_end(8, 5, 4), [Some(5), None]);
    assert_eq!(at_the_end(8, 9, 0), [None, None]);
    // Less than a header is left.
    let (_env, segment) = testing::segment(1, BYTES as u64);
    for behind in [8, 0] {
        let r = ((BYTES - behind) / ALIGN) as u32;
        assert!(catch_unwind(AssertUnwindSafe(|| segment.key(r).len())).is_err());
        assert!(catch_unwind(AssertUnwindSafe(|| segment.record(r).seq)).is_err());
    }
}

#[test]
fn sequences_end_where_the_next_would_not_be_a_number() {
    let (env, segment) = testing::segment(1, BYTES as u64);
    let mut log_writer = LogWriter::new(segment);
    log_writer.append_one(MAX_NUMBER, 0, Kind::Put, b"last", b"").unwrap();
    let end = log_writer.end();
    log_writer.append_one(MAX_NUMBER + 1, 0, Kind::Put, b"none", b"").unwrap();
    let segment = testing::reopen(&env, 1).unwrap();
    let torn = End::Torn { offset: end, why: StopReason::Sequence };
    assert_eq!((segment.frames().count(), segment.frames().finish()), (1, torn));
    // As the first of a segment, too, which has none before it to follow.
    for seq in [MAX_NUMBER + 1, u64::MAX] {
        let (env, segment) = testing::segment(1, BYTES as u64);
        let mut log_writer = LogWriter::new(segment);
        log_writer.append_one(seq, 0, Kind::Put, b"none", b"").unwrap();
        let torn = End::Torn { offset: FIRST_FRAME as u64, why: StopReason::Sequence };
        assert_eq!(testing::reopen(&env, 1).unwrap().frames().finish(), torn);
    }
}

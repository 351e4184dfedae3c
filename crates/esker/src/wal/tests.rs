//! Tests of segments as a whole: what is written is read again, and nothing else ever is.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use proptest::prelude::*;

use super::format::FIRST_FRAME;
use super::frames::{End, StopReason};
use super::testing::{self, HeapEnv};
use super::*;
use crate::batch::WriteBatch;
use crate::env::{Env, File};
use crate::filename;
use crate::key::Kind;
use crate::util::MAX_NUMBER;

/// An entry as the tests remember it.
pub(super) type Entry = (u64, u32, Kind, Vec<u8>, Vec<u8>);

pub(super) fn read_all(segment: &Segment) -> (Vec<Entry>, End) {
    let mut frames = segment.frames();
    let mut entries = Vec::new();
    for frame in frames.by_ref() {
        for (r, record) in frame.records() {
            assert_eq!(segment.record(r), record);
            assert_eq!(segment.key(r), record.key);
            assert_eq!(segment.try_record(r), Some(record));
            let Record { key, value, seq, kind, keyspace } = record;
            assert_eq!(seq, frame.seq);
            entries.push((seq, keyspace, kind, key.to_vec(), value.to_vec()));
        }
    }
    (entries, frames.end().unwrap())
}

#[test]
fn single_puts_come_back() {
    let (env, segment) = testing::segment(7, 64 << 10);
    let mut log_writer = LogWriter::new(segment.clone());
    let mut expected = Vec::new();
    for i in 0..100u64 {
        let (key, value) = (vec![i as u8; i as usize % 20], vec![b'v'; i as usize]);
        let (kind, value) = if i % 7 == 3 { (Kind::Delete, vec![]) } else { (Kind::Put, value) };
        let r = log_writer.append_one(i + 5, i as u32, kind, &key, &value).unwrap();
        let record = segment.record(r);
        assert_eq!((record.seq, record.keyspace, record.kind), (i + 5, i as u32, kind));
        assert_eq!((record.key, record.value), (&key[..], &value[..]));
        expected.push((i + 5, i as u32, kind, key, value));
    }
    let (entries, end) = read_all(&segment);
    assert_eq!(entries, expected);
    assert_eq!(end, End::Torn { offset: log_writer.end(), why: StopReason::Unwritten });
    let end = log_writer.end();
    log_writer.seal(104, 99);
    let reopened = testing::reopen(&env, 7).unwrap();
    assert_eq!(
        read_all(&reopened),
        (expected, End::Clean { offset: end, last_seq: 104, next: 99 })
    );
}

#[test]
fn a_full_segment_refuses_and_still_has_room_for_its_seal() {
    let (env, segment) = testing::segment(1, 8192);
    let mut log_writer = LogWriter::new(segment);
    let mut seq = 0;
    while log_writer.append_one(seq + 1, 0, Kind::Put, b"key", &[1; 61]).is_some() {
        seq += 1;
    }
    assert!(seq > 10 && log_writer.remaining() < 32 + 64);
    // A smaller one may still fit, to the last byte.
    let left = log_writer.remaining() as usize;
    if left >= 32 {
        let value = vec![2; left - 32];
        seq += 1;
        log_writer.append_one(seq, 0, Kind::Put, b"", &value).unwrap();
        assert_eq!(log_writer.remaining(), 0);
    }
    log_writer.seal(seq, 99);
    let (entries, end) = read_all(&testing::reopen(&env, 1).unwrap());
    assert_eq!(entries.len() as u64, seq);
    assert!(matches!(end, End::Clean { last_seq, .. } if last_seq == seq));
}

#[test]
fn a_batch_is_one_frame() {
    let (_, segment) = testing::segment(1, 64 << 10);
    let mut log_writer = LogWriter::new(segment.clone());
    let mut batch = WriteBatch::new();
    batch.push(1, Kind::Put, b"a", b"1");
    batch.push(2, Kind::Delete, b"bb", b"");
    batch.push(3, Kind::Put, b"", &[9; 1000]);
    let mut seen = Vec::new();
    log_writer
        .append_batch(42, &batch, |r, keyspace, kind, key, _| {
            let record = segment.record(r);
            assert_eq!((record.keyspace, record.kind, record.key), (keyspace, kind, key));
            assert_eq!(record.seq, 42);
            seen.push(record.value.to_vec());
        })
        .unwrap();
    assert_eq!(seen, [b"1".to_vec(), vec![], vec![9; 1000]]);
    assert_eq!(log_writer.end() as usize, FIRST_FRAME + batch.byte_len());
    let (entries, _) = read_all(&segment);
    assert_eq!(entries.len(), 3);
    assert!(entries.iter().all(|e| e.0 == 42));
}

/// A small sealed segment with frames of all sorts: the environment, and what is in it.
fn small_segment(number: u64) -> (Arc<HeapEnv>, Vec<Entry>, End) {
    let (env, segment) = testing::segment(number, 8192);
    let mut log_writer = LogWriter::new(segment.clone());
    log_writer.append_one(10, 0, Kind::Put, b"first", b"value").unwrap();
    let mut batch = WriteBatch::new();
    batch.push(1, Kind::Put, b"k1", &[3; 40]);
    batch.push(0, Kind::Delete, b"first", b"");
    batch.push(2, Kind::Put, b"", b"");
    log_writer.append_batch(11, &batch, |_, _, _, _, _| ()).unwrap();
    log_writer.append_one(12, 9, Kind::Delete, b"k1", b"").unwrap();
    log_writer.seal(12, 99);
    let (entries, end) = read_all(&segment);
    assert_eq!(entries.len(), 5);
    assert!(end.is_sealed());
    (env, entries, end)
}

/// Opens a segment made of these bytes.
fn open_bytes(number: u64, bytes: &[u8]) -> crate::Result<Segment> {
    let env = HeapEnv::new();
    env.put(Path::new(&filename::segment(number)), bytes);
    testing::reopen(&env, number)
}

/// Whether `part` is the first frames of `whole`, each of them complete.
fn is_prefix(part: &[Entry], whole: &[Entry]) -> bool {
    let next = whole.get(part.len());
    let cuts_a_frame = next.is_some_and(|next| part.last().is_some_and(|last| last.0 == next.0));
    whole.starts_with(part) && !cuts_a_frame
}

#[test]
fn what_is_cut_off_leaves_a_prefix() {
    let (env, whole, end) = small_segment(3);
    let bytes = env.bytes(Path::new(&filename::segment(3)));
    let written = end.offset() as usize + FRAME_HEADER;
    for cut in (FIRST_FRAME..written).step_by(if cfg!(miri) { 29 } else { 1 }) {
        let mut torn = bytes.clone();
        torn[cut..].fill(0);
        if torn == bytes {
            continue; // zeros were cut off zeros
        }
        let (entries, end) = read_all(&open_bytes(3, &torn).unwrap());
        assert!(is_prefix(&entries, &whole), "cut at {cut}: {entries:?}");
        // Rounded up: a frame's last bytes may be zeros anyway.
        let limit = cut.next_multiple_of(8) as u64;
        assert!(!end.is_sealed() && end.offset() <= limit, "cut at {cut}: {end:?}");
    }
}

#[test]
fn a_short_file_is_an_error() {
    let (env, _, _) = small_segment(3);
    let bytes = env.bytes(Path::new(&filename::segment(3)));
    for len in [1, 39, 40, 4095, 4096, 5000, 8191] {
        let error = open_bytes(3, &bytes[..len]).unwrap_err();
        assert!(error.is_corruption(), "{len}: {error}");
    }
}

#[test]
fn any_flipped_bit_is_noticed() {
    let (env, whole, end) = small_segment(3);
    let bytes = env.bytes(Path::new(&filename::segment(3)));
    let written = end.offset() as usize + FRAME_HEADER;
    // Miri takes its time; a few bytes of every kind will do there.
    let step = if cfg!(miri) { 37 } else { 1 };
    let places = (0..40).chain(FIRST_FRAME..written).step_by(step);
    for at in places {
        let flips = (0..8).map(|bit| 1 << bit).chain([0xff]);
        for flip in flips.step_by(step) {
            let mut damaged = bytes.clone();
            damaged[at] ^= flip;
            if at < FIRST_FRAME {
                let error = open_bytes(3, &damaged).unwrap_err();
                assert!(error.is_corruption(), "{at}: {error}");
                continue;
            }
            let (entries, end) = read_all(&open_bytes(3, &damaged).unwrap());
            assert!(is_prefix(&entries, &whole) && !end.is_sealed(), "{flip:x} at {at}");
            assert!(end.offset() <= at as u64);
        }
    }
}

#[test]
fn lengths_out_of_this_world_are_harmless() {
    let (env, whole, _) = small_segment(3);
    let bytes = env.bytes(Path::new(&filename::segment(3)));
    for at in (FIRST_FRAME..FIRST_FRAME + 200).step_by(if cfg!(miri) { 36 } else { 4 }) {
        for word in [0, 1, 7, 8, 0x7fff_ffff, 0xffff_fff8, u32::MAX] {
            let mut damaged = bytes.clone();
            damaged[at..at + 4].copy_from_slice(&u32::to_le_bytes(word));
            let segment = open_bytes(3, &damaged).unwrap();
            assert!(is_prefix(&read_all(&segment).0, &whole));
            for r in (500..600).chain([0, 1023, 1024, u32::MAX]) {
                segment.try_record(r);
            }
        }
    }
}

#[test]
fn records_forged_under_a_right_checksum_are_refused() {
    let (env, _, _) = small_segment(3);
    let bytes = env.bytes(Path::new(&filename::segment(3)));
    let frame_len = FRAME_HEADER + record_len(5, 5);
    for at in FRAME_HEADER..FRAME_HEADER + 12 {
        // Back, kind, both lengths: no other value of their bytes is sound.
        let mut forged = bytes.clone();
        forged[FIRST_FRAME + at] ^= 0x10;
        let frame = &mut forged[FIRST_FRAME..FIRST_FRAME + frame_len];
        let sum = super::format::frame_checksum(3, &frame[4..]);
        frame[..4].copy_from_slice(&sum.to_le_bytes());
        let (entries, end) = read_all(&open_bytes(3, &forged).unwrap());
        assert!(entries.is_empty(), "byte {at}");
        assert_eq!(end, End::Torn { offset: FIRST_FRAME as u64, why: StopReason::Records });
    }
}

#[test]
fn a_recycled_file_keeps_its_past_to_itself() {
    let env = HeapEnv::new();
    let dynamic: Arc<dyn Env> = env.clone();
    let dir = Path::new("");
    let mut old: Option<std::path::PathBuf> = None;
    // The same frames in all lives, each life stopping one frame earlier: behind the last one
    // stands, at a frame's boundary, the next of the life before.
    for number in 1..if cfg!(miri) { 4 } else { 10u64 } {
        let segment = Segment::create(&dynamic, dir, number, 8192, old.as_deref()).unwrap();
        let segment = Arc::new(segment);
        assert_eq!(segment.recycled(), old.is_some());
        assert_eq!(read_all(&segment).0, [], "before the first frame of life {number}");
        let mut log_writer = LogWriter::new(segment.clone());
        for seq in 1..=(20 - number) {
            log_writer.append_one(seq, 0, Kind::Put, b"key", b"value").unwrap();
            let (entries, end) = read_all(&segment);
            assert_eq!(entries.len() as u64, seq);
            assert_eq!(end.offset(), log_writer.end());
        }
        old = Some(segment.path().to_path_buf());
    }
    assert!(!env.exists(Path::new(&filename::segment(2))).unwrap());
}

#[test]
fn recycling_extends_and_shortens() {
    let env = HeapEnv::new();
    let dynamic: Arc<dyn Env> = env.clone();
    let dir = Path::new("");
    let mut old: Option<std::path::PathBuf> = None;
    for (number, bytes) in [(1, 8192), (2, 20_000), (3, 8192)] {
        let segment = Segment::create(&dynamic, dir, number, bytes, old.as_deref()).unwrap();
        assert_eq!(segment.capacity(), bytes.next_multiple_of(4096));
        assert_eq!(env.file(segment.path()).len().unwrap(), segment.capacity());
        old = Some(segment.path().to_path_buf());
    }
}

#[test]
fn no_space_is_an_error_and_leaves_no_file() {
    let env = HeapEnv::new();
    env.fail_allocate.store(true, Ordering::Relaxed);
    let dynamic: Arc<dyn Env> = env.clone();
    let error = Segment::create(&dynamic, Path::new(""), 1, 8192, None).unwrap_err();
    assert!(error.to_string().contains("allocate 8192 bytes"), "{error}");
    assert!(!env.exists(Path::new(&filename::segment(1))).unwrap());
}

#[test]
fn an_existing_segment_is_never_replaced() {
    let (env, _, _) = small_segment(3);
    let dynamic: Arc<dyn Env> = env.clone();
    let other = Segment::create(&dynamic, Path::new(""), 4, 8192, None).unwrap();
    for recycle in [None, Some(other.path())] {
        assert!(Segment::create(&dynamic, Path::new(""), 3, 8192, recycle).is_err());
    }
    assert!(testing::reopen(&env, 3).is_ok() && testing::reopen(&env, 4).is_ok());
}

#[test]
fn a_segment_of_another_number_is_refused() {
    let (env, _, _) = small_segment(3);
    env.rename(Path::new(&filename::segment(3)), Path::new(&filename::segment(4))).unwrap();
    let error = testing::reopen(&env, 4).unwrap_err();
    assert!(error.to_string().contains("segment 3"), "{error}");
    let dynamic: Arc<dyn Env> = env.clone();
    // Just what a crash between renaming and the first sync leaves.
    let left = Segment::never_synced(&dynamic, Path::new(""), 4).unwrap();
    assert_eq!(left, Some(super::frames::TrailingRecords::default()));
}

#[test]
fn a_damaged_header_over_sound_frames_is_damage() {
    let (env, _, _) = small_segment(3);
    let path = filename::segment(3);
    env.file(Path::new(&path)).write_all_at(b"X", 0).unwrap();
    assert!(testing::reopen(&env, 3).unwrap_err().is_corruption());
    let dynamic: Arc<dyn Env> = env.clone();
    let left = || Segment::never_synced(&dynamic, Path::new(""), 3).unwrap();
    assert_eq!(left(), None);
    // A power cut takes the header whole, if it takes it; what was written behind it may be there.
    env.file(Path::new(&path)).write_all_at(&[0; 64], 0).unwrap();
    assert!(testing::reopen(&env, 3).is_err());
    assert!(left().unwrap().frames);
    // Or it leaves the header that the file had before.
    let former = super::format::encode_header(2, 4096);
    env.file(Path::new(&path)).write_all_at(&former, 0).unwrap();
    assert!(testing::reopen(&env, 3).is_err());
    assert!(left().unwrap().frames);
    // A file that was made and never written to.
    env.put(Path::new(&path), &[0; 8192]);
    assert!(testing::reopen(&env, 3).is_err());
    assert_eq!(left(), Some(super::frames::TrailingRecords::default()));
}

#[test]
fn a_newer_format_is_named_as_such() {
    let (env, _, _) = small_segment(3);
    let mut header = super::format::encode_header(3, 8192);
    header[8] = 2;
    let sum = xxhash_rust::xxh3::xxh3_64(&header[..32]);
    header[32..].copy_from_slice(&sum.to_le_bytes());
    env.file(Path::new(&filename::segment(3))).write_all_at(&header, 0).unwrap();
    let error = testing::reopen(&env, 3).unwrap_err();
    assert!(matches!(error, crate::Error::UnsupportedFormat { found: 2, .. }), "{error}");
}

#[test]
fn a_recovered_segment_is_sealed_where_it_was_torn() {
    let (env, segment) = testing::segment(1, 8192);
    let mut log_writer = LogWriter::new(segment.clone());
    let mut ends = vec![];
    for seq in 1..=3 {
        log_writer.append_one(seq, 0, Kind::Put, b"key", b"value").unwrap();
        ends.push(log_writer.end());
    }
    // The second frame is lost, the third is not.
    env.file(segment.path()).write_all_at(&[0; 4], ends[0]).unwrap();
    let recovered = testing::reopen(&env, 1).unwrap();
    let (entries, end) = read_all(&recovered);
    assert_eq!((entries.len(), end.offset()), (1, ends[0]));
    recovered.seal_recovered(end.offset(), 1, 99).unwrap();
    let (entries, end) = read_all(&testing::reopen(&env, 1).unwrap());
    assert_eq!(entries.len(), 1);
    assert_eq!(end, End::Clean { offset: ends[0], last_seq: 1, next: 99 });
    assert!(recovered.seal_recovered(8190, 1, 99).is_err());
}

#[test]
fn separated_values_are_verified_once() {
    let (env, segment) = testing::segment(1, 64 << 10);
    let mut log_writer = LogWriter::new(segment.clone());
    let large = log_writer.append_one(1, 0, Kind::Put, b"large", &[5; 5000]).unwrap();
    let small = log_writer.append_one(2, 0, Kind::Put, b"small", &[6; 100]).unwrap();
    let (large, small) = (segment.pointer_to(large), segment.pointer_to(small));
    let offset = small.offset;
    log_writer.seal(2, 99);
    let segment = testing::reopen(&env, 1).unwrap();
    assert_eq!(segment.value(&large).unwrap(), [5; 5000]);
    assert_eq!(segment.value(&small).unwrap(), [6; 100]);
    env.file(segment.path()).write_all_at(&[7], large.offset + 4000).unwrap();
    env.file(segment.path()).write_all_at(&[7], offset + 50).unwrap();
    // Verified before the damage, not again; the small one is verified each time.
    assert!(segment.value(&large).is_ok());
    let error = segment.value(&small).unwrap_err().to_string();
    assert!(error.contains("0000000001.log") && error.contains(&offset.to_string()), "{error}");
    // Whoever comes new verifies.
    assert!(testing::reopen(&env, 1).unwrap().value(&large).is_err());
    // Pointers that lead nowhere.
    for p in [
        crate::key::ValuePointer { segment: 2, ..large },
        crate::key::ValuePointer { offset: u64::MAX, ..large },
        crate::key::ValuePointer { offset: 65_000, ..large },
        crate::key::ValuePointer { offset: 8, ..small },
        crate::key::ValuePointer { len: u32::MAX, ..large },
    ] {
        assert!(segment.value(&p).unwrap_err().is_corruption());
    }
}

#[test]
fn a_failed_sync_is_final() {
    let (env, segment) = testing::segment(1, 8192);
    let file = env.file(segment.path());
    segment.sync().unwrap();
    file.fail_sync.store(true, Ordering::SeqCst);
    assert!(segment.sync().is_err());
    file.fail_sync.store(false, Ordering::SeqCst);
    assert!(segment.sync().is_err());
    assert_eq!(file.syncs.load(Ordering::SeqCst), 2);
}

#[test]
#[should_panic(expected = "not to be appended to")]
fn a_segment_has_one_log_writer() {
    let (_, segment) = testing::segment(1, 8192);
    drop(LogWriter::new(segment.clone()));
    LogWriter::new(segment);
}

#[test]
#[should_panic(expected = "no record at byte")]
fn a_reference_beyond_the_segment_is_caught() {
    let (_, segment) = testing::segment(1, 8192);
    segment.record(1024);
}

fn any_batch() -> impl Strategy<Value = Vec<(u32, Option<Vec<u8>>, Vec<u8>)>> {
    let bytes = |n| proptest::collection::vec(any::<u8>(), 0..n);
    proptest::collection::vec((any::<u32>(), proptest::option::of(bytes(300)), bytes(40)), 1..8)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 3 } else { 200 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn random_batches_come_back(
        batches in proptest::collection::vec(any_batch(), 0..12),
        first in 0..MAX_NUMBER - 100,
        damage in proptest::option::of((0..4000usize, any::<u8>())),
    ) {
        let (env, segment) = testing::segment(first ^ 5, 64 << 10);
        let mut log_writer = LogWriter::new(segment.clone());
        let mut expected = vec![];
        let mut seq = first;
        let mut batch = WriteBatch::new();
        for writes in &batches {
            batch.clear();
            seq += 1;
            for (keyspace, value, key) in writes {
                let kind = if value.is_some() { Kind::Put } else { Kind::Delete };
                let value = value.as_deref().unwrap_or_default();
                batch.push(*keyspace, kind, key, value);
                expected.push((seq, *keyspace, kind, key.clone(), value.to_vec()));
            }
            prop_assert_eq!(batch.len(), writes.len());
            if let [(keyspace, value, key)] = &writes[..] {
                // A batch of one, the short way.
                let kind = if value.is_some() { Kind::Put } else { Kind::Delete };
                let value = value.as_deref().unwrap_or_default();
                log_writer.append_one(seq, *keyspace, kind, key, value).unwrap();
            } else {
                log_writer.append_batch(seq, &batch, |_, _, _, _, _| ()).unwrap();
            }
        }
        let end = log_writer.end();
        log_writer.seal(seq, 99);
        let reopened = testing::reopen(&env, first ^ 5).unwrap();
        let (entries, found) = read_all(&reopened);
        prop_assert_eq!(&entries, &expected);
        prop_assert_eq!(found, End::Clean { offset: end, last_seq: seq, next: 99 });
        if let Some((at, with)) = damage {
            let at = FIRST_FRAME + at;
            let file = env.file(segment.path());
            file.write_all_at(&[with], at as u64).unwrap();
            let (entries, found) = read_all(&reopened);
            prop_assert!(is_prefix(&entries, &expected));
            prop_assert!(found.is_sealed() || found.offset() <= at as u64);
        }
    }

    #[test]
    fn random_bytes_are_harmless(bytes in proptest::collection::vec(any::<u8>(), 0..9000)) {
        if let Ok(segment) = open_bytes(1, &bytes) {
            read_all(&segment);
        }
        let mut segment = super::format::encode_header(1, 16384).to_vec();
        segment.resize(FIRST_FRAME, 0);
        segment.extend(&bytes);
        segment.resize(16384, 0);
        let segment = open_bytes(1, &segment).unwrap();
        read_all(&segment);
        for r in 0..2049 {
            segment.try_record(r);
        }
    }
}

/// The worked example of `docs/format/log.md`, byte by byte.
#[test]
fn the_documented_example() {
    let (env, segment) = testing::segment(7, 8192);
    let mut log_writer = LogWriter::new(segment);
    let mut batch = WriteBatch::new();
    batch.push(0, Kind::Put, b"city", b"Bern");
    batch.push(1, Kind::Delete, b"old", b"");
    log_writer.append_batch(300, &batch, |_, _, _, _, _| ()).unwrap();
    log_writer.seal(300, 8);
    let bytes = env.bytes(Path::new(&filename::segment(7)));
    let hex = |range: std::ops::Range<usize>| -> String {
        let rows = bytes[range.clone()].chunks(16).zip(range.step_by(16));
        rows.map(|(row, at)| {
            let row: Vec<String> = row.iter().map(|b| format!("{b:02x}")).collect();
            format!("{at:04x}  {}\n", row.join(" "))
        })
        .collect()
    };
    let example = hex(0..64) + &hex(4096..4192);
    let page = include_str!("../../../../docs/format/log.md");
    for line in example.lines() {
        assert!(page.contains(line), "docs/format/log.md does not show\n{example}");
    }
}

//! Reading the log: from segment to segment, to its end, and whether a crash explains that end.
//!
//! The manifest names the segment that the log starts with, and the seal of each names the next. The log
//! ends where a segment stops without a seal, or where the next one is not there. Two things say that it
//! went further, so that its end is damage: the manifest, which knows a place up to which the log was durable,
//! and the sync markers among the frames behind the end. Files made ahead and not used may lie about; frames
//! in a file that the log does not lead to are what a power cut left behind its torn tail.
//!
//! Opening, verifying and repairing a store are three [`LogReader`]s over this one walk.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::format::{FIRST_FRAME_OFFSET, Position, SEAL};
use super::frames::{End, Frame, StopReason, TrailingRecords};
use super::segment::Segment;
use crate::env::Env;
use crate::error::{Error, Result};
use crate::filename;
use crate::key::Seq;

/// What the manifest says of the log.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LogSpan {
    /// Number of the segment that it starts with.
    pub start: u64,
    /// It was durable up to here.
    pub durable: Position,
    /// The store was closed in order: there is no log.
    pub closed: bool,
}

/// What is found under a segment's name.
pub(crate) enum Lookup {
    /// A segment.
    Segment(Arc<Segment>),
    /// What a power cut may leave of one that was never synced: what its bytes say all the same, and why they are
    /// no segment.
    Unused(TrailingRecords, Error),
    /// Nothing.
    Missing,
}

impl Lookup {
    /// What is under the name of segment `number`, of which there is a file. An error where that is no segment and
    /// no power cut explains it.
    pub(crate) fn open(
        env: &Arc<dyn Env>,
        dir: &Path,
        number: u64,
        writable: bool,
    ) -> Result<Lookup> {
        match Segment::open(env, dir, number, writable) {
            Ok(segment) => Ok(Lookup::Segment(Arc::new(segment))),
            // What the system refuses, or another version made, no power cut explains.
            Err(e) if !e.is_corruption() => Err(e),
            Err(e) => match Segment::never_synced(env, dir, number)? {
                Some(left) => Ok(Lookup::Unused(left, e)),
                None => Err(e),
            },
        }
    }

    /// Of a file that was opened before.
    pub(crate) fn of(opened: Option<&Result<Arc<Segment>>>) -> Lookup {
        match opened {
            Some(Ok(segment)) => Lookup::Segment(Arc::clone(segment)),
            Some(Err(e)) => Lookup::Unused(TrailingRecords::default(), e.clone()),
            None => Lookup::Missing,
        }
    }
}

/// Who reads a log: it opens the segments, takes their frames, and decides what becomes of damage.
pub(crate) trait LogReader {
    /// The segment of this number; `in_log` tells that the log goes on in it. An error ends the walk.
    fn open(&mut self, number: u64, in_log: bool) -> Result<Lookup>;
    /// The next frame of the log.
    fn frame(&mut self, segment: &Arc<Segment>, frame: &Frame<'_>) -> Result<()>;
    /// All frames of a segment of the log were given, and this is how they end.
    fn end_of_segment(&mut self, segment: &Arc<Segment>, end: &End) -> Result<()>;
    /// Something that no crash explains. An error ends the walk.
    fn damage(&mut self, what: Error) -> Result<()>;
}

/// Where the log ends before its files do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TornTail {
    /// Number of the segment.
    pub segment: u64,
    /// Where in it, in bytes from its start.
    pub offset: u64,
    /// What is found there.
    pub why: StopReason,
}

impl TornTail {
    /// Everything before this was read.
    fn position(&self) -> Position {
        // Where it is the next segment that is missing, the seal that names it was read too.
        let seal = if self.why == StopReason::Missing && self.offset > 0 { SEAL as u64 } else { 0 };
        Position { segment: self.segment, end: self.offset + seal }
    }

    /// Whether something says that the log went on here.
    fn is_damage(&self, durable: Position, behind: TrailingRecords, strict: bool) -> bool {
        let durable = durable.max(behind.durable);
        self.position() < durable && !self.is_lost_seal(durable, behind) || strict && behind.frames
    }

    /// Whether a seal is all that is missing, as nothing else is so short. A power cut may have torn it when an open wrote
    /// it anew, to lead to a segment that was not written to yet.
    fn is_lost_seal(&self, durable: Position, behind: TrailingRecords) -> bool {
        let sealed = Position { segment: self.segment, end: self.offset + SEAL as u64 };
        self.why != StopReason::Missing && durable == sealed && !behind.frames
    }
}

/// How a log ended.
#[derive(Debug, Default)]
pub(crate) struct LogEnd {
    /// The last segment, and where its frames or, before a segment that is missing, its seal is. `None` for
    /// a log without any, and where a seal leads nowhere.
    pub last: Option<(Arc<Segment>, u64)>,
    /// The end, if no crash explains it.
    pub damage: Option<TornTail>,
    /// Files at or above the log's start that are no part of it.
    pub beyond: Vec<Beyond>,
}

/// A file that the log does not lead to.
#[derive(Debug)]
pub(crate) struct Beyond {
    pub number: u64,
    /// The segment, if it has frames that the log lacks.
    pub more: Option<Arc<Segment>>,
}

/// Reads the log. `present` are the numbers of all segments in `dir`, ascending. With `strict` any sound frame behind
/// the log's end makes that damage, wherever it is; without, a power cut may have left some, and what is looked
/// for are sync markers, some megabytes far.
pub(crate) fn scan(
    dir: &Path,
    log: LogSpan,
    present: &[u64],
    strict: bool,
    reader: &mut dyn LogReader,
) -> Result<LogEnd> {
    let mut scan = Scan {
        dir,
        reader,
        passed: HashSet::new(),
        last: None,
        last_seq: 0,
        tail: None,
        missing: None,
        start_is_gone: false,
    };
    if !log.closed {
        scan.walk(log.start)?;
    }
    let mut behind = match (&scan.last, scan.tail) {
        (Some(segment), Some(_)) => segment.frames().behind_their_end(strict),
        _ => TrailingRecords::default(),
    };
    let beyond = scan.look_beyond(log, present, &mut behind)?;
    let damage =
        scan.tail.filter(|t| scan.start_is_gone || t.is_damage(log.durable, behind, strict));
    if let Some(tail) = damage {
        let what = scan
            .missing
            .take()
            .unwrap_or_else(|| damaged_at(&scan.path(tail.segment), tail.offset, tail.why));
        scan.reader.damage(what)?;
    }
    let last = scan.tail.and_then(|t| Some((scan.last?, t.offset)));
    Ok(LogEnd { last, damage, beyond })
}

/// Gives the frames of a segment to the reader. The sequence of the first, the last sequence, and how they end.
pub(crate) fn read_segment(
    segment: &Arc<Segment>,
    reader: &mut dyn LogReader,
) -> Result<(Option<Seq>, Seq, End)> {
    let (mut first, mut last) = (None, 0);
    let mut frames = segment.frames();
    for frame in frames.by_ref() {
        first = first.or(Some(frame.seq));
        last = frame.seq;
        reader.frame(segment, &frame)?;
    }
    let end = frames.finish();
    if let End::Clean { last_seq, .. } = end {
        last = last_seq;
    }
    reader.end_of_segment(segment, &end)?;
    Ok((first, last, end))
}

/// The log of which the frames stop here goes on.
pub(crate) fn damaged_at(segment: &Path, offset: u64, why: StopReason) -> Error {
    Error::corrupt(segment, offset, format!("{why}, and the log went on after it"))
}

struct Scan<'a> {
    dir: &'a Path,
    reader: &'a mut dyn LogReader,
    passed: HashSet<u64>,
    last: Option<Arc<Segment>>,
    /// The last sequence in the log.
    last_seq: Seq,
    tail: Option<TornTail>,
    /// Why the segment that the log goes on in is none.
    missing: Option<Error>,
    /// There is no file of the segment that the log starts with. Its name was durable before the manifest had its number:
    /// the manifest has lost the edit that let go of it.
    start_is_gone: bool,
}

impl Scan<'_> {
    fn path(&self, number: u64) -> PathBuf {
        self.dir.join(filename::segment(number))
    }

    /// From the segment `start` to where the log ends.
    fn walk(&mut self, start: u64) -> Result<()> {
        let mut number = start;
        let mut expected = None;
        let mut before = TornTail { segment: start, offset: 0, why: StopReason::Missing };
        loop {
            let segment = match self.reader.open(number, true)? {
                Lookup::Segment(segment) => segment,
                other => {
                    self.tail = Some(before);
                    self.start_is_gone = before.offset == 0 && matches!(other, Lookup::Missing);
                    self.missing = Some(match other {
                        Lookup::Unused(_, why) => why,
                        _ => {
                            let what = "the log goes on in this file, which is missing";
                            Error::corrupt(&self.path(number), 0, what)
                        }
                    });
                    return Ok(());
                }
            };
            let (first, last, end) = read_segment(&segment, self.reader)?;
            self.passed.insert(number);
            self.last_seq = self.last_seq.max(last);
            self.last = Some(segment);
            if let (Some(first), Some(expected)) = (first, expected)
                && first != expected
            {
                let what = format!("it begins at sequence {first} where {expected} should follow");
                self.reader.damage(Error::corrupt(&self.path(number), 0, what))?;
            }
            match end {
                End::Torn { offset, why } => {
                    self.tail = Some(TornTail { segment: number, offset, why });
                    return Ok(());
                }
                End::Clean { next, .. } if next <= number => {
                    let what = format!("its seal says that segment {next} follows");
                    return self.reader.damage(Error::corrupt(&self.path(number), 0, what));
                }
                End::Clean { offset, last_seq, next } => {
                    before = TornTail { segment: number, offset, why: StopReason::Missing };
                    expected = Some(last_seq.saturating_add(1));
                    number = next;
                }
            }
        }
    }

    /// Looks at the files that the log does not lead to. What they say is added to what is `behind` its end.
    fn look_beyond(
        &mut self,
        log: LogSpan,
        present: &[u64],
        behind: &mut TrailingRecords,
    ) -> Result<Vec<Beyond>> {
        let mut beyond = Vec::new();
        for &number in present.iter().filter(|n| **n >= log.start) {
            if self.passed.contains(&number) {
                continue;
            }
            let (found, segment) = match self.reader.open(number, false)? {
                Lookup::Segment(segment) => (segment.frames().survey(), Some(segment)),
                Lookup::Unused(found, _) => (found, None),
                Lookup::Missing => continue,
            };
            let last = segment.as_ref().and_then(|s| s.frames().map(|f| f.seq).last());
            let passed_over = self.tail.is_none_or(|t| number < t.segment);
            if found.frames && passed_over {
                let what = match self.tail {
                    Some(_) => "there are entries in this segment, and the log passes it over",
                    None => "there are entries in this segment, and the store was closed before it",
                };
                self.reader.damage(Error::corrupt(&self.path(number), FIRST_FRAME_OFFSET, what))?;
            }
            // One that repeats what the log holds is a copy that a repair made before it was cut short.
            let copied = !passed_over && last.is_some_and(|last| last <= self.last_seq);
            if !copied {
                *behind = behind.and(found);
            }
            let more = segment.filter(|_| found.frames && !copied);
            beyond.push(Beyond { number, more });
        }
        Ok(beyond)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::key::Kind;
    use crate::wal::testing;

    /// A log of segments that each hold one frame, and what a scan of it says.
    #[derive(Default)]
    struct Log {
        segments: BTreeMap<u64, Arc<Segment>>,
        read: Vec<(u64, Seq)>,
        damages: Vec<String>,
    }

    impl Log {
        /// Segment `number` with a frame of sequence `seq`, sealed to lead to `next` if there is one; returns where
        /// its frames, or its seal, end.
        fn add(&mut self, number: u64, seq: Seq, next: Option<u64>) -> u64 {
            let (env, segment) = testing::segment(number, 8192);
            let mut writer = super::super::LogWriter::new(segment);
            writer.append_one(seq, 0, Kind::Put, b"key", b"value").unwrap();
            let end = writer.end();
            if let Some(next) = next {
                writer.seal(seq, next);
            }
            let env: Arc<dyn Env> = env;
            let opened = Segment::open(&env, Path::new(""), number, false).unwrap();
            self.segments.insert(number, Arc::new(opened));
            end + if next.is_some() { SEAL as u64 } else { 0 }
        }

        /// Where the log ends, when it starts with `start` and was durable up to `durable`.
        fn scan(&mut self, start: u64, durable: (u64, u64), strict: bool) -> LogEnd {
            let durable = Position { segment: durable.0, end: durable.1 };
            let present: Vec<u64> = self.segments.keys().copied().collect();
            (self.read, self.damages) = Default::default();
            let log = LogSpan { start, durable, closed: start == 0 };
            scan(Path::new("/db"), log, &present, strict, self).unwrap()
        }
    }

    impl LogReader for Log {
        fn open(&mut self, number: u64, _: bool) -> Result<Lookup> {
            let segment = self.segments.get(&number).cloned();
            Ok(segment.map_or(Lookup::Missing, Lookup::Segment))
        }
        fn frame(&mut self, segment: &Arc<Segment>, frame: &Frame<'_>) -> Result<()> {
            self.read.push((segment.number(), frame.seq));
            Ok(())
        }
        fn end_of_segment(&mut self, _: &Arc<Segment>, _: &End) -> Result<()> {
            Ok(())
        }
        fn damage(&mut self, what: Error) -> Result<()> {
            self.damages.push(what.to_string());
            Ok(())
        }
    }

    #[test]
    fn seals_lead_from_segment_to_segment() {
        let mut log = Log::default();
        log.add(3, 7, Some(5));
        log.add(4, 9, None);
        let end = log.add(5, 8, None);
        // Segment 4 is passed over: it holds what a log before this one did.
        let found = log.scan(3, (0, 0), false);
        assert_eq!(log.read, [(3, 7), (5, 8)]);
        assert_eq!(found.last.map(|(s, at)| (s.number(), at)), Some((5, end)));
        assert_eq!(found.beyond.len(), 1);
        assert!(log.damages.concat().contains("the log passes it over"), "{:?}", log.damages);
    }

    #[test]
    fn a_gap_in_the_sequences_and_a_seal_that_leads_back_are_named() {
        let mut log = Log::default();
        log.add(1, 9, Some(2));
        log.add(2, 11, Some(2));
        assert!(log.scan(1, (0, 0), false).last.is_none());
        assert!(
            log.damages[0].contains("begins at sequence 11 where 10 should"),
            "{:?}",
            log.damages
        );
        assert!(log.damages[1].contains("its seal says that segment 2 follows"));
    }

    #[test]
    fn a_missing_segment_is_damage_where_the_log_was_durable_behind_its_seal() {
        let mut log = Log::default();
        let sealed = log.add(4, 1, Some(6));
        for (durable, damage) in [
            ((0, 0), false),
            ((4, sealed), false),
            ((5, 0), true),
            ((6, 4096), true),
            ((9, 0), true),
        ] {
            let found = log.scan(4, durable, true);
            assert_eq!(found.damage.is_some(), damage, "{durable:?}");
            assert_eq!(found.last.map(|(s, at)| (s.number(), at)), Some((4, sealed - SEAL as u64)));
            let named = log.damages.concat().contains("0000000006.log");
            assert_eq!(named, damage, "{:?}", log.damages);
        }
        // The first, whose name was durable before the manifest had its number.
        for durable in [(0, 0), (2, 9000), (3, 4096)] {
            assert!(log.scan(3, durable, false).damage.is_some(), "{durable:?}");
        }
    }

    #[test]
    fn a_torn_tail_is_damage_where_the_manifest_or_a_marker_says_that_the_log_was_durable_there() {
        let mut log = Log::default();
        let end = log.add(4, 1, None);
        for (durable, damage) in [((4, end), false), ((4, end + 1), true), ((5, 0), true)] {
            assert_eq!(log.scan(4, durable, false).damage.is_some(), damage, "{durable:?}");
        }
        let tail = TornTail { segment: 4, offset: 5000, why: StopReason::Checksum };
        let marker = |segment, end| TrailingRecords {
            frames: true,
            durable: Position { segment, end },
            last_seq: 0,
        };
        let says = |behind, strict| tail.is_damage(Position::default(), behind, strict);
        assert!(!says(TrailingRecords::default(), true) && !says(marker(0, 0), false));
        assert!(says(marker(0, 0), true), "a strict reader takes any frame for it");
        assert!(!says(marker(4, 5000), false));
        // Of a seal nothing is lost, unless there are frames behind it.
        let seal = Position { segment: 4, end: 5000 + SEAL as u64 };
        assert!(!tail.is_damage(seal, TrailingRecords::default(), true));
        assert!(tail.is_damage(seal, marker(0, 0), false));
        assert!(says(marker(4, 5001), false) && says(marker(5, 0), false));
    }

    #[test]
    fn frames_behind_the_end_count_unless_they_repeat_the_log() {
        let mut log = Log::default();
        log.add(4, 7, None);
        log.add(6, 8, None);
        let found = log.scan(4, (0, 0), true);
        assert!(found.damage.is_some() && found.beyond[0].more.is_some());
        assert!(log.scan(4, (0, 0), false).damage.is_none(), "a power cut leaves such");
        // A copy that a repair made and did not come to use.
        log.add(6, 7, None);
        let found = log.scan(4, (0, 0), true);
        assert!(found.damage.is_none() && found.beyond[0].more.is_none());
    }

    #[test]
    fn a_log_closed_in_order_has_no_frames() {
        let mut log = Log::default();
        log.add(4, 7, None);
        assert!(log.scan(0, (0, 0), false).last.is_none());
        assert_eq!(log.read, []);
        assert!(
            log.damages.concat().contains("the store was closed before it"),
            "{:?}",
            log.damages
        );
    }
}

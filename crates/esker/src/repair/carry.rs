//! Entries of the log that cannot be ordered, into a log again.
//!
//! Repair does not know the comparator of their keyspace, so it cannot make tables of them; the next
//! open with the comparator replays them. Whole frames are copied, in the order of the log and with
//! their sequences, segment by segment; each copy is sealed and leads to the next. What frames hold
//! for other keyspaces is in tables by now: the manifest says up to which copy they are flushed.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Repair;
use crate::batch::WriteBatch;
use crate::error::{Error, Finding, Result};
use crate::filename;
use crate::key::Seq;
use crate::version::Change;
use crate::wal::{self, LogWriter, Position, Segment};

/// A segment with entries that cannot be ordered.
pub(super) struct Carried {
    segment: Arc<Segment>,
    /// By keyspace the first and the last sequence of such entries, and how many there are.
    spans: BTreeMap<u32, (Seq, Seq, u64)>,
}

impl Carried {
    pub(super) fn new(segment: &Arc<Segment>) -> Carried {
        Carried { segment: Arc::clone(segment), spans: BTreeMap::new() }
    }

    pub(super) fn note(&mut self, keyspace: u32, seq: Seq) {
        let (_, last, count) = self.spans.entry(keyspace).or_insert((seq, seq, 0));
        *last = seq;
        *count += 1;
    }

    /// The first and the last sequence of its frames.
    fn reach(&self) -> (Seq, Seq) {
        let mut frames = self.segment.frames().map(|f| f.seq);
        let first = frames.next().unwrap_or(0);
        (first, frames.last().unwrap_or(first))
    }
}

/// The log of the repaired store.
pub(super) struct NewLog {
    /// Its first segment.
    pub start: u64,
    /// Its end.
    pub durable: Position,
    /// Which segments keyspaces do not need any more.
    pub flushed: Vec<Change>,
    /// Entries in it that are not in tables.
    pub entries: u64,
}

impl Repair<'_> {
    /// Writes the log of the keyspaces that have no order here; `None` when there is nothing in it.
    pub(super) fn carry(&mut self) -> Result<Option<NewLog>> {
        let mut plan: Vec<(Arc<Segment>, (Seq, Seq))> = Vec::new();
        // How many segments of the new log keyspaces must pass over: what they have in them may be older than their
        // tables.
        let mut passed_over: BTreeMap<u32, usize> = BTreeMap::new();
        let mut entries = 0;
        for c in std::mem::take(&mut self.carried) {
            let (first, last) = c.reach();
            // A repair that was cut short has carried it before.
            if plan.iter().any(|(_, (from, to))| *from <= first && last <= *to) {
                continue;
            }
            let follows = plan.last().is_none_or(|(_, (_, to))| first > *to);
            let mut needed = 0;
            let mut refused = Vec::new();
            for (&id, &(from, to, count)) in &c.spans {
                // Where the manifest lost its end nobody knows what it said was flushed.
                if follows && (!self.manifest_damaged || from > self.newest_in_tables(id)) {
                    needed += count;
                    continue;
                }
                refused.push(id);
                let name = filename::segment(c.segment.number());
                let what = format!(
                    "{count} entries of keyspace number {id}, of sequences {from} to {to}, may be in its tables already, or older than they; repair cannot tell without its comparator"
                );
                self.lose(Finding::new(&name, what));
                self.aside.push(name);
            }
            if needed > 0 {
                entries += needed;
                let number = c.segment.number();
                let flushed = self.old.keyspaces.values().filter(|k| k.flushed >= number);
                plan.push((c.segment, (first, last)));
                // These are its first ones: sequences ascend from segment to segment.
                passed_over.extend(refused.into_iter().map(|id| (id, plan.len())));
                passed_over.extend(flushed.map(|k| (k.id, plan.len())));
            }
        }
        if plan.is_empty() {
            return Ok(None);
        }
        let mut durable = Position::default();
        // The last seal leads to a segment that does not exist: there the log ends.
        let numbers: Vec<u64> = (0..=plan.len()).map(|_| self.files.segment()).collect();
        for (at, (segment, (_, last))) in plan.iter().enumerate() {
            // A bulk load takes a sequence without a frame: seals say where the next one begins.
            let follower = plan.get(at + 1).map(|(_, (first, _))| first - 1);
            let follower = follower.unwrap_or(*last);
            durable = self.copy_frames(segment, numbers[at], numbers[at + 1], follower)?;
        }
        let ordered = self.old.keyspaces.values().filter(|k| k.order.is_some());
        passed_over.extend(ordered.map(|k| (k.id, plan.len())));
        let flushed = passed_over
            .into_iter()
            .map(|(keyspace, count)| Change::Flushed { keyspace, segment: numbers[count - 1] })
            .collect();
        Ok(Some(NewLog { start: numbers[0], durable, flushed, entries }))
    }

    /// The newest sequence of a keyspace's tables.
    fn newest_in_tables(&self, id: u32) -> Seq {
        let seqs = self.found.iter().filter(|(of, _, _)| *of == id).map(|(_, _, m)| m.max_seq);
        seqs.max().unwrap_or(0)
    }

    /// Copies all frames of a segment to a new one, which ends with `last_seq` and leads to `next`.
    /// Durable on return up to its end, which is returned; but for its name.
    fn copy_frames(
        &self,
        from: &Segment,
        number: u64,
        next: u64,
        last_seq: Seq,
    ) -> Result<Position> {
        let bytes = from.frames().map(|f| f.len() as u64).sum();
        let bytes = wal::segment_bytes_for(bytes);
        let made = Segment::create(&self.env, &self.dir, number, bytes, None)?;
        let made = Arc::new(made);
        let mut log_writer = LogWriter::new(Arc::clone(&made));
        for frame in from.frames() {
            let mut batch = WriteBatch::new();
            for (_, r) in frame.records() {
                batch.push(r.keyspace, r.kind, r.key, r.value);
            }
            batch.check()?;
            log_writer.append_batch(frame.seq, &batch, |_, _, _, _, _| {}).ok_or_else(|| {
                Error::corrupt(from.path(), frame.offset, "a batch does not fit where it should")
            })?;
        }
        log_writer.seal(last_seq, next);
        made.sync()?;
        Ok(Position { segment: number, end: made.end() })
    }
}

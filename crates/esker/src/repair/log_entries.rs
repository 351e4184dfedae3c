//! What the log still holds, into tables; and for keyspaces whose comparator is not given, into a
//! log again.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Repair;
use super::carry::Carried;
use crate::error::{Finding, Result};
use crate::key::{InternalCursor, Seq, key_hash};
use crate::memtable::Memtable;
use crate::options::Compression;
use crate::table::Dictionary;
use crate::wal::{self, End, Segment, SegmentChain, TrailingRecords};

/// Values that a dictionary is trained on.
const SAMPLES: usize = 1024;

impl Repair<'_> {
    /// The entries of the log, into tables.
    pub(super) fn log(&mut self) -> Result<()> {
        let start = if self.manifest_damaged { 0 } else { self.old.log_start };
        let segments: BTreeMap<u64, Arc<Segment>> = self
            .segments
            .iter()
            .map(|s| (s.number(), Arc::clone(s)))
            .filter(|(number, _)| *number >= start)
            .collect();
        if !self.manifest_damaged {
            return self.walk(segments);
        }
        // Nobody knows where the log starts, nor which segments only hold values.
        for segment in segments.values() {
            let (_, end) = self.save_segment(segment)?;
            let behind = segment.frames().behind_their_end(true);
            if let End::Torn { offset, why } = end
                && behind.frames
            {
                self.lose_from(segment.number(), offset, why);
            }
        }
        Ok(())
    }

    /// The log from its start to its end, and then whatever else there is.
    fn walk(&mut self, mut segments: BTreeMap<u64, Arc<Segment>>) -> Result<()> {
        let closed = self.old.clean_close.is_some();
        let mut walk =
            SegmentChain::new(self.old.log_start, self.old.durable_segment, self.old.flushed());
        let mut behind = TrailingRecords::default();
        // The last segment of the log and the last sequence in it.
        let mut newest = (0, 0);
        while let Some(number) = walk.next().filter(|_| !closed) {
            let name = wal::file_name(number);
            let Some(segment) = segments.remove(&number) else {
                if walk.missing() && !self.aside.contains(&name) {
                    self.lose(Finding::new(name, "the log goes on in this file, which is missing"));
                }
                break;
            };
            let (first, end) = self.save_segment(&segment)?;
            newest = (number, segment.frames().map(|f| f.seq).last().unwrap_or(newest.1));
            if let Err(why) = walk.pass(first, end) {
                self.lose(Finding::new(name, format!("the log before it has lost entries: {why}")));
            }
            if !end.is_sealed() {
                behind = segment.frames().behind_their_end(true);
            }
        }
        for (number, segment) in segments {
            let found = segment.frames().survey();
            // A repair that was cut short has made it, out of what was read above.
            let last = segment.frames().map(|f| f.seq).last();
            if number > newest.0 && last.is_some_and(|last| last <= newest.1) {
                continue;
            }
            behind = behind.and(found);
            if found.frames {
                if walk.tear().is_none_or(|t| number < t.segment) {
                    let what =
                        "it holds entries, and the log before them, which led to it, is lost";
                    self.lose(Finding::new(wal::file_name(number), what));
                }
                self.save_segment(&segment)?;
            }
        }
        if let Some(tear) = walk.damage(behind, true) {
            self.lose_from(tear.segment, tear.offset, tear.why);
        }
        Ok(())
    }

    /// The log is torn here and went on behind.
    fn lose_from(&mut self, segment: u64, offset: u64, why: wal::StopReason) {
        let name = wal::file_name(segment);
        let what = format!("{why}, and the log went on after it");
        self.lose(Finding::new(&name, what).at(offset));
        self.aside.push(name);
    }

    /// The sound entries of a segment, into tables. The sequence of its first frame, and its end.
    fn save_segment(&mut self, segment: &Arc<Segment>) -> Result<(Option<Seq>, End)> {
        let mut memtables: Vec<(u32, Arc<Memtable>)> = Vec::new();
        let mut carried = Carried::new(segment);
        let mut first = None;
        let mut frames = segment.frames();
        let never_used = self.old.next_keyspace;
        for frame in frames.by_ref() {
            first = first.or(Some(frame.seq));
            self.log_seq = self.log_seq.max(frame.seq);
            for (r, record) in frame.records() {
                if record.keyspace >= never_used {
                    // The manifest lost it; what it was ordered by is lost too.
                    let order = self.order_of_lost(record.keyspace);
                    self.know_keyspace(record.keyspace, &order);
                }
                let Some(ks) = self.old.keyspaces.get(&record.keyspace) else { continue };
                if ks.flushed >= segment.number() {
                    continue;
                }
                let Some(order) = &ks.order else {
                    carried.note(record.keyspace, frame.seq);
                    continue;
                };
                let known = memtables.iter().position(|m| m.0 == record.keyspace);
                let at = known.unwrap_or_else(|| {
                    let m = Memtable::new(
                        Arc::clone(segment),
                        order.clone(),
                        usize::MAX,
                        Arc::default(),
                    );
                    memtables.push((record.keyspace, Arc::new(m)));
                    memtables.len() - 1
                });
                let (key, len) = (record.key, record.value.len());
                memtables[at].1.insert(r, key, key_hash(key), frame.seq, record.kind, len);
            }
        }
        for (id, m) in memtables {
            self.write_memtable(id, &m)?;
        }
        if !carried.is_empty() {
            self.carried.push(carried);
        }
        let end = frames.finish();
        if let End::Clean { last_seq, .. } = end {
            self.log_seq = self.log_seq.max(last_seq);
        }
        Ok((first, end))
    }

    fn write_memtable(&mut self, id: u32, m: &Arc<Memtable>) -> Result<()> {
        let Some(order) = self.order_of(id) else { return Ok(()) };
        let dictionary = dictionary_for(self.compression_of(id), id, m);
        let mut copy = self.copy(id, order, dictionary);
        let mut cursor = m.cursor();
        let mut out_of_order = 0;
        cursor.first()?;
        while cursor.valid() {
            let (key, seq) = (cursor.key(), Some(cursor.seq()));
            let added = copy.add(key, seq, cursor.kind(), cursor.stored())?;
            out_of_order += u64::from(!added);
            cursor.next()?;
        }
        // Only under a comparator that contradicts itself.
        if out_of_order > 0 {
            let what = format!("{out_of_order} entries of keyspace number {id} are out of order");
            self.lose(Finding::new(wal::file_name(m.segment().number()), what));
        }
        // Newer than every table that the manifest names.
        let made = copy.finish(0)?;
        self.found.extend(made.into_iter().map(|meta| (id, u64::MAX, meta)));
        Ok(())
    }
}

/// A dictionary of what the keyspace's values in this segment have in common.
fn dictionary_for(compression: Compression, id: u32, m: &Memtable) -> Option<Arc<Dictionary>> {
    let step = (m.len() / SAMPLES).max(1);
    let records = m.segment().frames().flat_map(|f| f.records()).map(|(_, record)| record);
    let values = records.filter(|r| r.keyspace == id).map(|r| r.value).step_by(step);
    let samples: Vec<&[u8]> = values.take(SAMPLES).collect();
    Dictionary::choose(compression, None, &samples)
}

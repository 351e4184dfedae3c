//! What the log still holds, into tables; and for keyspaces whose comparator is not given, into a
//! log again.

use std::sync::Arc;

use super::Repair;
use super::carry::Carried;
use crate::error::{Error, Finding, Result};
use crate::filename;
use crate::key::{InternalCursor, key_hash};
use crate::memtable::Memtable;
use crate::options::Compression;
use crate::table::Dictionary;
use crate::wal::{self, End, Frame, LogReader, Lookup, Position, Segment, StopReason};

/// Values that a dictionary is trained on.
const SAMPLES: usize = 1024;

impl Repair<'_> {
    /// The entries of the log, into tables.
    pub(super) fn log(&mut self) -> Result<()> {
        let dir = self.dir.clone();
        let log = self.old.log();
        let present: Vec<u64> = self.segments.keys().copied().collect();
        if !self.manifest_whole {
            // Nobody knows how far the start of the log moved on, nor which segments only hold values: each is read
            // for itself. But for those that were not needed before: parts of them may be given back.
            let may_be_log = present.into_iter().filter(|n| *n >= log.start);
            let all: Vec<_> = may_be_log.filter_map(|n| self.segment(n)).collect();
            for segment in all {
                self.read_alone(&segment)?;
            }
            return Ok(());
        }
        let end = self.read_log(|save| wal::scan(&dir, log, &present, true, save))?;
        if let Some(tail) = end.damage.filter(|t| t.why != StopReason::Missing) {
            self.aside.push(filename::segment(tail.segment));
        }
        for beyond in end.beyond {
            match beyond.more {
                Some(segment) => self.read_alone(&segment)?,
                // It begins with no frame, or repeats the log: a repair that was cut short made it. A power cut may
                // have taken some frames of that, too.
                None => {
                    let Some(segment) = self.segment(beyond.number) else { continue };
                    let behind = segment.frames().behind_their_end(true);
                    if behind.durable > Position::default() || behind.last_seq > self.log_seq {
                        self.lose_behind(&segment, &segment.frames().finish());
                    }
                }
            }
        }
        Ok(())
    }

    /// Saves the entries of one segment, wherever the log leads.
    fn read_alone(&mut self, segment: &Arc<Segment>) -> Result<()> {
        let (_, _, end) = self.read_log(|save| wal::read_segment(segment, save))?;
        self.lose_behind(segment, &end);
        Ok(())
    }

    /// Says that entries are lost where there are frames behind the first bad one, and keeps the segment.
    fn lose_behind(&mut self, segment: &Arc<Segment>, end: &End) {
        let End::Torn { offset, why } = *end else { return };
        if !segment.frames().behind_their_end(true).frames {
            return;
        }
        let how = self.remains.get(&segment.number());
        if !how.is_some_and(|how| self.report.lost.contains(how)) {
            let found = Finding::from(&wal::damaged_at(segment.path(), offset, why));
            if !self.report.lost.contains(&found) {
                self.lose(found);
            }
        }
        self.aside.push(filename::segment(segment.number()));
    }

    fn read_log<T>(&mut self, read: impl FnOnce(&mut SaveLog<'_, '_>) -> Result<T>) -> Result<T> {
        read(&mut SaveLog { repair: self, memtables: Vec::new(), carried: None })
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
            self.lose(Finding::new(filename::segment(m.segment().number()), what));
        }
        // Newer than every table that the manifest names.
        let made = copy.finish(0)?;
        self.found.extend(made.into_iter().map(|meta| (id, u64::MAX, meta)));
        Ok(())
    }
}

/// Saves the sound entries of the log, segment by segment.
struct SaveLog<'a, 'o> {
    repair: &'a mut Repair<'o>,
    memtables: Vec<(u32, Arc<Memtable>)>,
    carried: Option<Carried>,
}

impl LogReader for SaveLog<'_, '_> {
    fn open(&mut self, number: u64, _: bool) -> Result<Lookup> {
        Ok(Lookup::of(self.repair.segments.get(&number)))
    }

    fn frame(&mut self, segment: &Arc<Segment>, frame: &Frame<'_>) -> Result<()> {
        let repair = &mut *self.repair;
        repair.log_seq = repair.log_seq.max(frame.seq);
        for (r, record) in frame.records() {
            let id = record.keyspace;
            if !repair.was_dropped(id) && !repair.old.keyspaces.contains_key(&id) {
                // The manifest lost it; what it was ordered by is lost too.
                let order = repair.order_of_lost(id);
                repair.know_keyspace(id, &order);
            }
            let Some(ks) = repair.old.keyspaces.get(&record.keyspace) else { continue };
            if ks.flushed >= segment.number() {
                continue;
            }
            let Some(order) = &ks.order else {
                let carried = self.carried.get_or_insert_with(|| Carried::new(segment));
                carried.note(record.keyspace, frame.seq);
                continue;
            };
            let known = self.memtables.iter().position(|m| m.0 == record.keyspace);
            let at = known.unwrap_or_else(|| {
                let (segment, order) = (Arc::clone(segment), order.clone());
                let m = Memtable::new(segment, order, usize::MAX, Arc::default());
                self.memtables.push((record.keyspace, Arc::new(m)));
                self.memtables.len() - 1
            });
            let (key, len) = (record.key, record.value.len());
            self.memtables[at].1.insert(r, key, key_hash(key), frame.seq, len);
        }
        Ok(())
    }

    fn end_of_segment(&mut self, segment: &Arc<Segment>, end: &End) -> Result<()> {
        for (id, m) in self.memtables.drain(..) {
            self.repair.write_memtable(id, &m)?;
        }
        self.repair.carried.extend(self.carried.take());
        if let End::Clean { last_seq, .. } = *end {
            self.repair.log_seq = self.repair.log_seq.max(last_seq);
        }
        // The frames of one that was cut go to where it ends: there may have been more.
        if let End::Torn { why: StopReason::NoRoom | StopReason::Length, .. } = *end
            && let Some(how) = self.repair.remains.get(&segment.number()).cloned()
            && how.offset.is_some_and(|at| at >= wal::FIRST_FRAME)
            && !self.repair.report.lost.contains(&how)
        {
            self.repair.lose(how);
        }
        Ok(())
    }

    fn damage(&mut self, what: Error) -> Result<()> {
        let found = Finding::from(&what);
        // That a file is no segment was said when it was opened, and that it was cut when it was read.
        let cut = |l: &Finding| self.repair.remains.values().any(|how| how == l);
        let lost = &self.repair.report.lost;
        if !lost.iter().any(|l| *l == found || l.file == found.file && cut(l)) {
            self.repair.lose(found);
        }
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

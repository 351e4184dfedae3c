//! What the log still holds, into tables.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Repair;
use crate::error::Result;
use crate::key::{KeyOrder, Seq, key_hash};
use crate::log::{self, Behind, End, Segment, Walk};
use crate::memtable::Memtable;
use crate::version::TableMeta;

/// Tables made of the log: keyspace and what the manifest is to say.
type Made = Vec<(u32, TableMeta)>;

impl Repair {
    /// The entries of the log, into tables.
    pub(super) fn log(&mut self) -> Result<()> {
        let start = if self.manifest_damaged { 0 } else { self.old.log_start };
        let segments: BTreeMap<u64, Arc<Segment>> = self
            .segments
            .iter()
            .map(|s| (s.number(), Arc::clone(s)))
            .filter(|(number, _)| *number >= start)
            .collect();
        let mut made = Made::new();
        if self.manifest_damaged {
            // Nobody knows where the log starts, nor which segments only hold values.
            for segment in segments.values() {
                let (_, end) = self.save_segment(segment, &mut made)?;
                let behind = segment.frames().behind_their_end(true);
                if let End::Torn { offset, why } = end
                    && behind.frames
                {
                    self.lose_from(segment.number(), offset, why);
                }
            }
        } else {
            self.walk(segments, &mut made)?;
        }
        // Newer than every table: runs above theirs, in the order of the segments.
        let newest = self.found.iter().map(|(_, run, _)| *run).max().unwrap_or(0);
        for (at, (id, meta)) in made.into_iter().enumerate() {
            self.found.push((id, newest + 1 + at as u64, meta));
        }
        Ok(())
    }

    /// The log from its start to its end, and then whatever else there is.
    fn walk(&mut self, mut segments: BTreeMap<u64, Arc<Segment>>, made: &mut Made) -> Result<()> {
        let closed = self.old.clean_close.is_some();
        let mut walk = Walk::new(self.old.log_start, self.old.log_founded, self.old.flushed());
        let mut behind = Behind::default();
        while let Some(number) = walk.next().filter(|_| !closed) {
            let name = log::file_name(number);
            let Some(segment) = segments.remove(&number) else {
                if walk.missing() && !self.aside.contains(&name) {
                    self.lose(format!("{name}: the log goes on in this file, which is missing"));
                }
                break;
            };
            let (first, end) = self.save_segment(&segment, made)?;
            if let Err(why) = walk.pass(first, end) {
                self.lose(format!("the log before {name}: {why}"));
            }
            if !end.is_sealed() {
                behind = segment.frames().behind_their_end(true);
            }
        }
        for (number, segment) in segments {
            let found = segment.frames().survey();
            behind = behind.and(found);
            if found.frames {
                if walk.tear().is_none_or(|t| number < t.segment) {
                    let name = log::file_name(number);
                    self.lose(format!("{name} holds entries, and the log does not lead to it"));
                }
                self.save_segment(&segment, made)?;
            }
        }
        if let Some(tear) = walk.damage(behind, true) {
            self.lose_from(tear.segment, tear.offset, tear.why);
        }
        Ok(())
    }

    /// The log is torn here and went on behind.
    fn lose_from(&mut self, segment: u64, offset: u64, why: log::Why) {
        let name = log::file_name(segment);
        self.lose(format!("{name} from byte {offset} on: {why}, and the log went on after it"));
        self.aside.push(name);
    }

    /// The sound entries of a segment, into tables. The sequence of its first frame, and its end.
    fn save_segment(
        &mut self,
        segment: &Arc<Segment>,
        made: &mut Made,
    ) -> Result<(Option<Seq>, End)> {
        let mut memtables: Vec<(u32, Arc<Memtable>)> = Vec::new();
        let mut first = None;
        let mut frames = segment.frames();
        let never_used = self.old.next_keyspace;
        for frame in frames.by_ref() {
            first = first.or(Some(frame.seq));
            self.log_seq = self.log_seq.max(frame.seq);
            for (r, record) in frame.records() {
                if record.keyspace >= never_used {
                    // The manifest lost it; what it was ordered by is lost too.
                    self.know_keyspace(record.keyspace, &KeyOrder::Bytewise);
                }
                let Some(ks) = self.old.keyspaces.get(&record.keyspace) else { continue };
                let (Some(order), true) = (ks.order.clone(), ks.flushed < segment.number()) else {
                    continue;
                };
                let known = memtables.iter().position(|m| m.0 == record.keyspace);
                let at = known.unwrap_or_else(|| {
                    let m = Memtable::new(Arc::clone(segment), order, usize::MAX);
                    memtables.push((record.keyspace, Arc::new(m)));
                    memtables.len() - 1
                });
                let (key, len) = (record.key, record.value.len());
                memtables[at].1.insert(r, key, key_hash(key), frame.seq, record.kind, len);
            }
        }
        for (id, m) in memtables {
            if let Some(meta) = self.write_memtable(id, &m)? {
                made.push((id, meta));
            }
        }
        let end = frames.finish();
        if let End::Clean { last_seq, .. } = end {
            self.log_seq = self.log_seq.max(last_seq);
        }
        Ok((first, end))
    }
}

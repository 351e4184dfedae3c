//! Reading the log: its records are indexed where they lie; what of its files is no part of it is found.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use super::{Recovery, blob_threshold};
use crate::comparator;
use crate::error::{Error, Result};
use crate::key::{KeyOrder, Seq, key_hash};
use crate::memtable::Memtable;
use crate::verify::unknown_keyspace;
use crate::wal::{self, End, Segment, SegmentChain, TornTail, TrailingRecords};

impl Recovery {
    /// Indexes what the log holds, and finds what of its files is no part of it.
    pub(super) fn replay(&mut self) -> Result<()> {
        let (log_start, closed, mut walk) = {
            let s = self.version_set.state();
            let walk = SegmentChain::new(s.log_start, s.durable_segment, s.flushed());
            (s.log_start, s.clean_close.is_some(), walk)
        };
        let mut passed = HashSet::new();
        let mut last: Option<Arc<Segment>> = None;
        // After a close in order there is no log.
        while let Some(number) = walk.next().filter(|_| !closed) {
            let Some(segment) = self.open_log_segment(number, &mut walk)? else { break };
            let replayed = comparator::catch(|| self.replay_segment(&segment));
            let (first, end) = replayed.map_err(|e| in_the_log(e, &segment))?;
            self.segments_add(&segment);
            passed.insert(number);
            walk.pass(first, end).map_err(|why| Error::corrupt(segment.path(), 0, why))?;
            last = Some(segment);
        }
        let behind = match &last {
            Some(segment) => segment.frames().behind_their_end(self.options.paranoid),
            None => TrailingRecords::default(),
        };
        let (behind, useless) = self.aside(log_start, &passed, walk.tear(), behind)?;
        if let Some(tear) = walk.damage(behind, self.options.paranoid) {
            let path = self.dir.join(wal::file_name(tear.segment));
            let what = format!("{}, and the log went on after it", tear.why);
            return Err(Error::corrupt(&path, tear.offset, what));
        }
        self.remove_useless(&useless)?;
        self.open_end = walk.tear().and_then(|t| Some((last?, t.offset)));
        Ok(())
    }

    /// The segment that the log goes on in. `None` when it is not there, or was never synced, and was
    /// not durable when the one before was sealed: then a power cut took it.
    fn open_log_segment(
        &self,
        number: u64,
        walk: &mut SegmentChain,
    ) -> Result<Option<Arc<Segment>>> {
        let name = wal::file_name(number);
        if !self.names.contains(&name) {
            if walk.missing() {
                let what = "the log goes on in this file, which is missing";
                return Err(Error::corrupt(&self.dir.join(name), 0, what));
            }
            return Ok(None);
        }
        match Segment::open(&self.env, &self.dir, number, !self.options.read_only) {
            Ok(segment) => Ok(Some(Arc::new(segment))),
            Err(e) => {
                let left = Segment::never_synced(&self.env, &self.dir, number)?;
                if walk.missing() || left.is_none() { Err(e) } else { Ok(None) }
            }
        }
    }

    /// Looks at the files that the log did not lead to: what frames behind its end say, and which of
    /// the files to remove.
    fn aside(
        &self,
        log_start: u64,
        passed: &HashSet<u64>,
        tear: Option<TornTail>,
        mut behind: TrailingRecords,
    ) -> Result<(TrailingRecords, Vec<u64>)> {
        let mut useless = Vec::new();
        let numbers = self.names.iter().filter_map(|n| wal::parse_file_name(n));
        for number in numbers.filter(|n| *n >= log_start && !passed.contains(n)) {
            let found = match Segment::open(&self.env, &self.dir, number, false) {
                Ok(segment) => segment.frames().survey(),
                // A power cut came before it was synced, perhaps before it was used.
                Err(e) => Segment::never_synced(&self.env, &self.dir, number)?.ok_or(e)?,
            };
            if found.frames && tear.is_none_or(|t| number < t.segment) {
                let what = match tear {
                    Some(_) => "there are entries in this segment, and the log passes it over",
                    None => "there are entries in this segment, and the store was closed before it",
                };
                let path = self.dir.join(wal::file_name(number));
                return Err(Error::corrupt(&path, wal::FIRST_FRAME, what));
            }
            behind = behind.and(found);
            useless.push(number);
        }
        Ok((behind, useless))
    }

    /// Removes files that are no part of the log, for good before its end is sealed: lest a crash in
    /// between leaves them behind a segment that looks complete.
    fn remove_useless(&mut self, useless: &[u64]) -> Result<()> {
        if self.options.read_only || useless.is_empty() {
            return Ok(());
        }
        for number in useless {
            self.remove_segment(*number);
        }
        self.env.sync_dir(&self.dir).map_err(|e| Error::io("sync", &self.dir, e))
    }

    fn segments_add(&mut self, segment: &Arc<Segment>) {
        // Its header may be in the page cache only.
        self.segments.add(Arc::clone(segment), false, true);
        for (ks, list) in &self.memtables {
            if let Some(m) = list.first().filter(|m| m.segment().number() == segment.number()) {
                self.segments.note_memtable(segment.number(), *ks, m);
            }
        }
        // There may be many: whoever syncs one opens it again.
        segment.release();
        if !self.options.read_only {
            self.sync.rotate(Arc::clone(segment), false);
        }
    }

    /// Indexes a segment's entries. The sequence of its first frame, and how it ends.
    fn replay_segment(&mut self, segment: &Arc<Segment>) -> Result<(Option<Seq>, End)> {
        let number = segment.number();
        let state = self.version_set.state();
        let never_used = state.next_keyspace;
        // Keyspaces that still miss this segment's entries; records of others were flushed, or the
        // keyspace was dropped.
        let wanted: BTreeMap<u32, (KeyOrder, usize)> = state
            .keyspaces
            .values()
            .filter(|ks| ks.flushed < number)
            .filter_map(|ks| {
                let blob_threshold = blob_threshold(&self.options, ks.separate_values_from);
                Some((ks.id, (ks.order.clone()?, blob_threshold)))
            })
            .collect();
        let mut found: HashMap<u32, Arc<Memtable>> = HashMap::new();
        let mut first = None;
        let mut frames = segment.frames();
        for frame in frames.by_ref() {
            first = first.or(Some(frame.seq));
            for (r, record) in frame.records() {
                let Some((order, blob_threshold)) = wanted.get(&record.keyspace) else {
                    if record.keyspace >= never_used {
                        let (path, id) = (segment.path(), record.keyspace);
                        return Err(unknown_keyspace(path, frame.offset, id));
                    }
                    continue;
                };
                let memtable = found.entry(record.keyspace).or_insert_with(|| {
                    Arc::new(Memtable::new(
                        Arc::clone(segment),
                        order.clone(),
                        *blob_threshold,
                        Arc::default(),
                    ))
                });
                let (key, len) = (record.key, record.value.len());
                memtable.insert(r, key, key_hash(key), frame.seq, record.kind, len);
            }
            self.last_seq = self.last_seq.max(frame.seq);
        }
        for (ks, memtable) in found {
            self.memtables.entry(ks).or_default().insert(0, memtable);
        }
        let end = frames.finish();
        segment.note_found(&end);
        if let End::Clean { last_seq, .. } = end {
            self.last_seq = self.last_seq.max(last_seq);
        }
        Ok((first, end))
    }
}

/// Says in which file of the log the key was that a comparator panicked at.
#[cold]
fn in_the_log(e: Error, segment: &Segment) -> Error {
    match e {
        Error::ComparatorPanicked { keyspace, what } => {
            let what = format!("{what} (at a key in {})", segment.path().display());
            Error::ComparatorPanicked { keyspace, what }
        }
        e => e,
    }
}

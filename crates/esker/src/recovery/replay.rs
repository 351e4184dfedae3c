//! Reading the log when a store is opened: its records are indexed where they lie, and what of its files is no part
//! of it goes.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::Recovery;
use crate::comparator;
use crate::error::{Error, Result};
use crate::filename;
use crate::key::{KeyOrder, key_hash};
use crate::keyspace_changes::threshold_of;
use crate::memtable::Memtable;
use crate::verify::unknown_keyspace;
use crate::wal::{self, End, Frame, LogReader, Lookup, Segment};

impl Recovery {
    /// Indexes what the log holds, and removes what of its files is no part of it.
    pub(super) fn replay(&mut self) -> Result<()> {
        let (dir, strict) = (self.parts.dir.clone(), self.parts.options.paranoid);
        let log = self.parts.version_set.state().log();
        let mut present: Vec<u64> =
            self.names.iter().filter_map(|n| filename::segment_number(n)).collect();
        present.sort_unstable();
        let mut replay = Replay {
            recovery: self,
            segment: None,
            wanted: BTreeMap::new(),
            memtables: HashMap::new(),
        };
        let end = comparator::catch(|| wal::scan(&dir, log, &present, strict, &mut replay));
        let end = end.map_err(|e| in_the_log(e, replay.segment.as_deref()))?;
        let (start, useless) =
            end.beyond.iter().map(|b| b.number).partition::<Vec<u64>, _>(|n| *n == log.start);
        self.remove_useless(useless)?;
        // The manifest names it until the log starts elsewhere.
        self.unused_start = start.first().copied();
        self.open_end = end.last;
        Ok(())
    }

    /// Removes files that are no part of the log, for good before its end is sealed: lest a crash in
    /// between leaves them behind a segment that looks complete.
    fn remove_useless(&mut self, useless: Vec<u64>) -> Result<()> {
        if self.parts.options.read_only || useless.is_empty() {
            return Ok(());
        }
        for number in useless {
            self.remove_segment(number);
        }
        self.parts.sync.dir_sync().sync()
    }

    fn segments_add(&mut self, segment: &Arc<Segment>) {
        // Its header may be in the page cache only.
        self.parts.segments.add(Arc::clone(segment), true);
        for (ks, list) in &self.memtables {
            if let Some(m) = list.first().filter(|m| m.segment().number() == segment.number()) {
                self.parts.segments.note_memtable(segment.number(), *ks, m);
            }
        }
        // There may be many: whoever syncs one opens it again.
        segment.release();
        if !self.parts.options.read_only {
            self.parts.sync.rotate(Arc::clone(segment), false);
        }
    }
}

/// Indexes the log segment by segment.
struct Replay<'a> {
    recovery: &'a mut Recovery,
    /// The segment that is read.
    segment: Option<Arc<Segment>>,
    /// Keyspaces that still miss its entries; records of others were flushed, or the keyspace was dropped.
    wanted: BTreeMap<u32, (KeyOrder, usize)>,
    /// What was found for them.
    memtables: HashMap<u32, Arc<Memtable>>,
}

impl LogReader for Replay<'_> {
    fn open(&mut self, number: u64, in_log: bool) -> Result<Lookup> {
        let r = &self.recovery;
        if !r.names.contains(&filename::segment(number)) {
            return Ok(Lookup::Missing);
        }
        let found =
            Lookup::open(&r.parts.env, &r.parts.dir, number, in_log && !r.parts.options.read_only)?;
        if let Lookup::Segment(segment) = &found
            && in_log
        {
            self.segment = Some(Arc::clone(segment));
            let keyspaces = r.parts.version_set.state().keyspaces.values();
            let wanted = keyspaces.filter(|ks| ks.flushed < number).filter_map(|ks| {
                let blob_threshold = threshold_of(&r.parts.options, ks.blob_threshold);
                Some((ks.id, (ks.order.clone()?, blob_threshold)))
            });
            self.wanted = wanted.collect();
        }
        Ok(found)
    }

    fn frame(&mut self, segment: &Arc<Segment>, frame: &Frame<'_>) -> Result<()> {
        for (r, record) in frame.records() {
            let Some((order, blob_threshold)) = self.wanted.get(&record.keyspace) else {
                if record.keyspace >= self.recovery.parts.version_set.state().next_keyspace {
                    let (path, id) = (segment.path(), record.keyspace);
                    return Err(unknown_keyspace(path, frame.offset, id));
                }
                continue;
            };
            let memtable = self.memtables.entry(record.keyspace).or_insert_with(|| {
                let (order, filter_level) = (order.clone(), Arc::default());
                Arc::new(Memtable::new(Arc::clone(segment), order, *blob_threshold, filter_level))
            });
            let (key, len) = (record.key, record.value.len());
            memtable.insert(r, key, key_hash(key), frame.seq, len);
        }
        self.recovery.parts.last_seq = self.recovery.parts.last_seq.max(frame.seq);
        Ok(())
    }

    fn end_of_segment(&mut self, segment: &Arc<Segment>, end: &End) -> Result<()> {
        for (ks, memtable) in self.memtables.drain() {
            self.recovery.memtables.entry(ks).or_default().insert(0, memtable);
        }
        segment.note_found(end);
        if let End::Clean { last_seq, .. } = *end {
            self.recovery.parts.last_seq = self.recovery.parts.last_seq.max(last_seq);
        }
        self.recovery.segments_add(segment);
        Ok(())
    }

    fn damage(&mut self, what: Error) -> Result<()> {
        Err(what)
    }
}

/// Says in which file of the log the key was that a comparator panicked at.
#[cold]
fn in_the_log(e: Error, segment: Option<&Segment>) -> Error {
    match (e, segment) {
        (Error::ComparatorPanicked { keyspace, what }, Some(segment)) => {
            let what = format!("{what} (at a key in {})", segment.path().display());
            Error::ComparatorPanicked { keyspace, what }
        }
        (e, _) => e,
    }
}

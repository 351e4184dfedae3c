//! Writing: append to the log, index the record, publish the sequence; wait for the device when
//! asked to.
//!
//! One writer at a time holds [`Writer`]; that takes about the time of the memory accesses, so
//! there is no queue of writers. Threads that want their write on the device wait after they let
//! go of it and share one sync.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::batch::WriteBatch;
use crate::comparator::refuse_from_comparator;
use crate::error::{Error, Result};
use crate::key::{Kind, MAX_KEY_LEN, MAX_VALUE_LEN, Seq, key_hash};
use crate::memtable::Memtable;
use crate::options::Durability;
use crate::read::SuperVersion;
use crate::store::{Counters, KeyspaceState, Store, Writer};
use crate::wal::log_segment::{SHORT_KEY, table_overhead};
use crate::wal::room::{Keep, Need};
use crate::wal::{LogWriter, Position, segment_bytes_for};

/// So much memory the memtables over the active segment may take, however little memory is given.
const LEAST_INDEX_SHARE: u64 = 3 << 20;

pub(crate) fn check_key(key: &[u8]) -> Result<()> {
    if key.len() > MAX_KEY_LEN {
        return Err(Error::KeyTooLong { len: key.len() });
    }
    Ok(())
}

pub(crate) fn check_value(value: &[u8]) -> Result<()> {
    if value.len() > MAX_VALUE_LEN {
        return Err(Error::ValueTooLong { len: value.len() });
    }
    Ok(())
}

impl Store {
    /// Writes one entry.
    pub(crate) fn write_one(
        &self,
        ks: &KeyspaceState,
        kind: Kind,
        key: &[u8],
        value: &[u8],
        durability: Durability,
    ) -> Result<()> {
        check_key(key)?;
        check_value(value)?;
        refuse_from_comparator()?;
        self.check_writable()?;
        let hash = key_hash(key);
        let bytes = (key.len() + value.len()) as u64;
        self.delay_write(|cost_model| ks.cost_of(cost_model, key, value))?;
        let position = self.with_room(|| {
            let mut w = self.writer.lock();
            // Only under the lock is it certain that the keyspace lives and that close and drop
            // have not come in between.
            self.check_writable()?;
            ks.check_alive()?;
            if ks.order.is_custom() {
                rehearse(ks, &w, key)?;
            }
            let seq = w.last_seq + 1;
            if kind == Kind::Put && ks.gaps.listening() {
                ks.note_put(seq, key)?;
            }
            self.write_sync_marker(&mut w);
            let r = self.append_one(&mut w, seq, ks, kind, key, value)?;
            let memtable = self.recent_memtable(ks, &mut w);
            let insert = || {
                memtable.insert(r, key, hash, seq, value.len());
                Ok(())
            };
            if let Err(e) = ks.order.guard(insert) {
                return Err(self.halt_unindexed(&mut w, seq, e));
            }
            let grown = memtable.growth();
            if grown > 0 {
                self.account_index_memory(&mut w, grown);
            }
            Ok(self.publish(&mut w, seq, bytes))
        })?;
        self.wait_if_synced(position, durability)
    }

    /// Puts an entry into the log, and gives its place.
    #[inline]
    fn append_one(
        &self,
        w: &mut Writer,
        seq: Seq,
        ks: &KeyspaceState,
        kind: Kind,
        key: &[u8],
        value: &[u8],
    ) -> Result<u32> {
        let mut rotated = false;
        loop {
            // The usual entry needs no look at its table: the one before was for the same.
            let as_before = matches!(&w.recent, Some((id, _)) if *id == ks.id);
            let mut claimed = 0;
            if !as_before || key.len() > SHORT_KEY {
                claimed = more_overhead(w, ks, key.len());
                self.claim_for_tables(w, claimed, keep_of(kind))?;
            }
            let log_writer = w.log_writer.as_mut().ok_or(Error::ReadOnly)?;
            if let Some(r) = log_writer.append_one(seq, ks.id, kind, key, value) {
                return Ok(r);
            }
            // No table takes it yet. As long as the log stays in this segment it is for the next attempt, or for another write.
            w.claimed_for_tables.1 += claimed;
            if rotated {
                return Err(too_large((key.len() + value.len()) as u64));
            }
            self.rotate_for(w, need_of(ks, kind, key, value))?;
            rotated = true;
        }
    }

    /// Writes a batch: all of it or, after a crash, none of it.
    pub(crate) fn write_batch(&self, batch: &WriteBatch, durability: Durability) -> Result<()> {
        batch.check()?;
        refuse_from_comparator()?;
        self.check_writable()?;
        if !batch.fits(self.id) {
            return Err(Error::ForeignBatch);
        }
        if batch.is_empty() {
            // What was written before it becomes durable all the same.
            return match durability {
                Durability::Synced => self.sync_all(),
                Durability::Buffered => Ok(()),
            };
        }
        let bytes = batch.payload_len();
        self.delay_write(|cost_model| self.cost_of_batch(cost_model, batch))?;
        let position = self.with_room(|| {
            let mut w = self.writer.lock();
            self.check_writable()?;
            // Every one is looked up before the first byte is written.
            let keyspaces = self.keyspaces_of(batch)?;
            if keyspaces.iter().any(|ks| ks.order.is_custom()) {
                rehearse_batch(&keyspaces, &w, batch)?;
            }
            let seq = w.last_seq + 1;
            if keyspaces.iter().any(|ks| ks.gaps.listening()) {
                note_batch(&keyspaces, seq, batch)?;
            }
            self.write_sync_marker(&mut w);
            if w.log_writer.as_ref().is_none_or(|log| log.remaining() < batch.byte_len() as u64) {
                let (least, keep) = (segment_bytes_for(bytes), keep_of_batch(batch));
                self.rotate_for(&mut w, Need { least, moves: bytes, keep, ahead: false })?;
            }
            let overhead = more_overhead_of_batch(&w, batch, &keyspaces);
            if overhead > 0 {
                self.claim_for_tables(&mut w, overhead, keep_of_batch(batch))?;
            }
            self.append_and_index(&mut w, seq, batch, &keyspaces)?;
            Ok(self.publish(&mut w, seq, batch.entry_bytes()))
        })?;
        self.wait_if_synced(position, durability)
    }

    /// The keyspaces of a batch, in the places that it tells.
    fn keyspaces_of(&self, batch: &WriteBatch) -> Result<Vec<Arc<KeyspaceState>>> {
        let names = self.keyspaces.read();
        let dropped = |id| Error::KeyspaceDropped { name: format!("#{id}") };
        let of = |&id: &u32| names.by_id.get(&id).cloned().ok_or_else(|| dropped(id));
        batch.keyspaces().iter().map(of).collect()
    }

    /// Puts a batch into the log as one frame, and its records into the memtables.
    fn append_and_index(
        &self,
        w: &mut Writer,
        seq: Seq,
        batch: &WriteBatch,
        keyspaces: &[Arc<KeyspaceState>],
    ) -> Result<()> {
        // One memtable for the usual batch in one keyspace.
        let memtables: Vec<(&KeyspaceState, Arc<Memtable>)> =
            keyspaces.iter().map(|ks| (&**ks, self.memtable_of(ks, w))).collect();
        let log_writer = w.log_writer.as_mut().ok_or(Error::ReadOnly)?;
        let mut at = 0;
        let mut failed = None;
        log_writer
            .append_batch(seq, batch, |r, keyspace, _, key, value| {
                if memtables[at].0.id != keyspace {
                    at = batch.place(keyspace);
                }
                let (ks, memtable) = &memtables[at];
                let insert = || {
                    memtable.insert(r, key, key_hash(key), seq, value.len());
                    Ok(())
                };
                if failed.is_none() {
                    failed = ks.order.guard(insert).err();
                }
            })
            .ok_or_else(|| too_large(batch.payload_len()))?;
        if let Some(e) = failed {
            return Err(self.halt_unindexed(w, seq, e));
        }
        let grown: usize = memtables.iter().map(|(_, m)| m.growth()).sum();
        if grown > 0 {
            self.account_index_memory(w, grown);
        }
        Ok(())
    }

    /// A frame is in the log, and a comparator panicked before all of it was in memory. Its sequence is
    /// used, and readers never see it; what is in memory of its segment has gaps and may not become
    /// tables, so nothing seals the segment. The next open reads the frame from the log.
    #[cold]
    fn halt_unindexed(&self, w: &mut Writer, seq: Seq, e: Error) -> Error {
        w.last_seq = seq;
        self.unindexed.store(true, Ordering::Release);
        let cause = match e {
            Error::ComparatorPanicked { keyspace, what } => {
                let what = format!("{what} (at a write that is in the log already)");
                Error::ComparatorPanicked { keyspace, what }
            }
            e => e,
        };
        self.halt(cause.clone());
        Error::Halted { cause: Arc::new(cause) }
    }

    /// Tells the log how far it is durable, when a sync has come to an end since it was last told.
    #[inline]
    fn write_sync_marker(&self, w: &mut Writer) {
        let rounds = self.sync.rounds();
        if rounds != w.marker_round {
            w.marker_round = rounds;
            let (last_seq, durable) = (w.last_seq, self.sync.durable());
            if let Some(log_writer) = &mut w.log_writer {
                log_writer.mark(last_seq, durable);
            }
        }
    }

    /// Makes everything written so far durable.
    pub(crate) fn sync_all(&self) -> Result<()> {
        refuse_from_comparator()?;
        self.check_open()?;
        let position = self.writer.lock().log_writer.as_ref().map(position);
        match position {
            Some(p) => self.wait_if_synced(p, Durability::Synced),
            // Open for reading only; or closed since it was asked, and whether that made all durable is its caller's to know.
            None => self.check_open(),
        }
    }

    #[inline]
    fn publish(&self, w: &mut Writer, seq: Seq, bytes: u64) -> Position {
        w.last_seq = seq;
        let position = position(w.log_writer.as_ref().expect("just appended to"));
        Counters::add_exclusive(&self.counters.user_bytes, bytes);
        self.counters.log_bytes.store(w.log_before + position.end, Ordering::Relaxed);
        self.visible.0.set(seq);
        position
    }

    #[inline]
    fn wait_if_synced(&self, position: Position, durability: Durability) -> Result<()> {
        match durability {
            Durability::Buffered => Ok(()),
            Durability::Synced => {
                self.sync.note_asked();
                self.wait_durable(position)?;
                self.sync.check_settled(position)?;
                self.track_segment(position.segment)
            }
        }
    }

    /// Waits until the log is durable up to `position`. A failed sync stops writes, also one that
    /// only what was written later needed: the log cannot be synced any more.
    pub(crate) fn wait_durable(&self, position: Position) -> Result<()> {
        let result = self.sync.wait_durable(position);
        self.halt_if_unsynced();
        result
    }

    /// The manifest must name this segment before a synced write in it returns, or its loss would go unnoticed. The
    /// first one in a segment tells it; those after it find it told.
    #[inline]
    fn track_segment(&self, segment: u64) -> Result<()> {
        match segment > self.tracked_segment.load(Ordering::Acquire) {
            true => match self.track_synced(&mut self.version_set.lock()) {
                // The write is durable. What is to be known of its segment the next one tells, or the background thread.
                Err(e) if e.is_no_space() => Ok(()),
                tracked => tracked,
            },
            false => Ok(()),
        }
    }

    #[inline]
    fn recent_memtable<'a>(&self, ks: &KeyspaceState, w: &'a mut Writer) -> &'a Memtable {
        if !matches!(&w.recent, Some((id, _)) if *id == ks.id) {
            w.recent = Some((ks.id, self.memtable_of(ks, w)));
        }
        &w.recent.as_ref().expect("just made sure of").1
    }

    /// The memtables over the active segment take more memory. When it is more than their share the
    /// segment is full, however little is in it: many keyspaces with a few entries each would take
    /// many times what one does.
    #[cold]
    fn account_index_memory(&self, w: &mut Writer, grown: usize) {
        w.index_bytes += grown as u64;
        if w.index_bytes > (self.options.memory / 8).max(LEAST_INDEX_SHARE)
            && let Some(log_writer) = &mut w.log_writer
        {
            log_writer.stop();
        }
    }

    fn memtable_of(&self, ks: &KeyspaceState, w: &Writer) -> Arc<Memtable> {
        let super_version = ks.super_version.load();
        match super_version.memtables.first() {
            Some(m) if m.segment().number() == w.active_number() => Arc::clone(m),
            _ => self.add_memtable(ks, w),
        }
    }

    /// The keyspace's first write in this segment.
    #[cold]
    fn add_memtable(&self, ks: &KeyspaceState, w: &Writer) -> Arc<Memtable> {
        let segment = w.segment.as_ref().expect("a writable store has an active segment");
        let (order, blob_threshold) = (ks.order.clone(), ks.blob_threshold);
        let level = Arc::clone(&ks.filter_level);
        let memtable = Arc::new(Memtable::new(Arc::clone(segment), order, blob_threshold, level));
        self.segments.note_memtable(segment.number(), ks.id, &memtable);
        ks.publish(|super_version| {
            let mut next = SuperVersion::clone(super_version);
            next.memtables.insert(0, Arc::clone(&memtable));
            next
        });
        memtable
    }
}

/// Makes the comparisons that writing `key` will make, before anything is written.
#[cold]
fn rehearse(ks: &KeyspaceState, w: &Writer, key: &[u8]) -> Result<()> {
    ks.order.guard(|| {
        ks.order.compare(key, key);
        match ks.super_version.load().memtables.first() {
            Some(m) if m.segment().number() == w.active_number() => m.rehearse(key),
            _ => {}
        }
        Ok(())
    })
}

/// The same for a batch, whose keyspaces these are.
#[cold]
fn rehearse_batch(keyspaces: &[Arc<KeyspaceState>], w: &Writer, batch: &WriteBatch) -> Result<()> {
    for (_, record) in batch.records() {
        let ks = &keyspaces[batch.place(record.keyspace)];
        if ks.order.is_custom() {
            rehearse(ks, w, record.key)?;
        }
    }
    Ok(())
}

/// Tells of all puts of a batch, whose keyspaces these are.
#[cold]
fn note_batch(keyspaces: &[Arc<KeyspaceState>], seq: Seq, batch: &WriteBatch) -> Result<()> {
    for (_, record) in batch.records().filter(|(_, r)| r.kind == Kind::Put) {
        keyspaces[batch.place(record.keyspace)].note_put(seq, record.key)?;
    }
    Ok(())
}

#[inline]
fn position(log_writer: &LogWriter) -> Position {
    Position { segment: log_writer.segment().number(), end: log_writer.end() }
}

/// What a segment for this entry needs.
#[cold]
fn need_of(ks: &KeyspaceState, kind: Kind, key: &[u8], value: &[u8]) -> Need {
    let record = crate::wal::record_len(key.len(), value.len()) as u64;
    let stays = value.len() >= ks.blob_threshold;
    let moves = if stays { record - value.len() as u64 } else { record };
    Need { least: segment_bytes_for(record), moves, keep: keep_of(kind), ahead: false }
}

/// What such a write leaves free.
fn keep_of(kind: Kind) -> Keep {
    if kind == Kind::Delete { Keep::Flush } else { Keep::Reserve }
}

#[cold]
fn keep_of_batch(batch: &WriteBatch) -> Keep {
    let adds = batch.records().any(|(_, r)| r.kind != Kind::Delete);
    if adds { Keep::Reserve } else { Keep::Flush }
}

/// How much more the table of a keyspace's entries in the active segment takes beside these with a key of so many bytes.
fn more_overhead(w: &Writer, ks: &KeyspaceState, key_len: usize) -> u64 {
    let super_version = ks.super_version.load();
    let active = |m: &&Arc<Memtable>| m.segment().number() == w.active_number();
    match super_version.memtables.first().filter(active) {
        None => table_overhead(key_len),
        Some(m) => table_overhead(key_len).saturating_sub(table_overhead(m.longest_key())),
    }
}

/// The same for a batch, whose keyspaces these are.
fn more_overhead_of_batch(w: &Writer, batch: &WriteBatch, keyspaces: &[Arc<KeyspaceState>]) -> u64 {
    if batch.longest_key() <= SHORT_KEY {
        return keyspaces.iter().map(|ks| more_overhead(w, ks, 0)).sum();
    }
    let mut longest = vec![0; keyspaces.len()];
    for (_, record) in batch.records() {
        let longest = &mut longest[batch.place(record.keyspace)];
        *longest = record.key.len().max(*longest);
    }
    keyspaces.iter().zip(longest).map(|(ks, longest)| more_overhead(w, ks, longest)).sum()
}

fn too_large(len: u64) -> Error {
    Error::BatchTooLarge { len, max: crate::wal::MAX_FRAME_PAYLOAD }
}

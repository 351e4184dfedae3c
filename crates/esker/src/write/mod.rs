//! Writing: append to the log, index the record, publish the sequence; wait for the device when
//! asked to.
//!
//! One writer at a time holds [`Writer`]; that takes about the time of the memory accesses, so
//! there is no queue of writers. Threads that want their write on the device wait after they let
//! go of it and share one sync.

pub(crate) mod room;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use room::{Keep, Need};

use crate::batch::WriteBatch;
use crate::comparator::refuse_from_comparator;
use crate::error::{Error, Result};
use crate::key::{Kind, MAX_KEY_LEN, MAX_VALUE_LEN, Seq, key_hash};
use crate::log::record::Record;
use crate::log::{Appender, Position, segment_bytes_for};
use crate::memtable::Memtable;
use crate::merge::pacing::Admission;
use crate::merge::weight::Scale;
use crate::options::Durability;
use crate::read::SuperVersion;
use crate::store::{Control, Counters, KeyspaceState, NewSegment, Store, Writer};
use crate::version::{Change, Edit};

/// Size of the first segment, and of the active one of an idle store, in bytes.
const IDLE_SEGMENT: u64 = 256 << 10;
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
        self.slow_down(|scale| ks.weigh(scale, key, value))?;
        let position = self.with_room(|| {
            let mut w = self.writer.lock();
            // Only under the lock is it certain that the keyspace lives and that close and drop
            // have not come in between.
            self.check_writable()?;
            ks.check_alive()?;
            if ks.order.is_custom() {
                rehearse(ks, &w, key)?;
            }
            self.mark_synced(&mut w);
            let seq = w.last_seq + 1;
            let appender = w.appender.as_mut().ok_or(Error::ReadOnly)?;
            let r = match appender.append_one(seq, ks.id, kind, key, value) {
                Some(r) => r,
                None => {
                    self.rotate_for(&mut w, need_of(ks, kind, key, value))?;
                    let appender = w.appender.as_mut().ok_or(Error::ReadOnly)?;
                    appender
                        .append_one(seq, ks.id, kind, key, value)
                        .ok_or_else(|| too_large(bytes))?
                }
            };
            let memtable = self.recent_memtable(ks, &mut w);
            let insert = || {
                memtable.insert(r, key, hash, seq, kind, value.len());
                Ok(())
            };
            if let Err(e) = ks.order.guard(insert) {
                return Err(self.halt_unindexed(&mut w, seq, e));
            }
            let grown = memtable.growth();
            if grown > 0 {
                self.weigh_indexes(&mut w, grown);
            }
            Ok(self.publish(&mut w, seq, bytes))
        })?;
        self.wait_if_synced(position, durability)
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
            return Ok(());
        }
        let bytes = batch.payload_len();
        self.slow_down(|scale| self.weigh_batch(scale, batch))?;
        let position = self.with_room(|| {
            let mut w = self.writer.lock();
            self.check_writable()?;
            // Every keyspace is looked up before the first byte is written.
            let keyspaces = {
                let names = self.keyspaces.read();
                let mut found = Vec::new();
                for &id in batch.keyspaces() {
                    let ks = names.by_id.get(&id).cloned();
                    let ks = ks.ok_or_else(|| Error::UnknownKeyspace { name: format!("#{id}") })?;
                    found.push(ks);
                }
                found
            };
            if keyspaces.iter().any(|ks| ks.order.is_custom()) {
                rehearse_batch(&keyspaces, &w, batch)?;
            }
            self.mark_synced(&mut w);
            let seq = w.last_seq + 1;
            if w.appender.as_ref().is_none_or(|a| a.remaining() < batch.byte_len() as u64) {
                let adds = batch.records().any(|(_, r)| r.kind != Kind::Delete);
                let keep = if adds { Keep::Reserve } else { Keep::Flush };
                let least = segment_bytes_for(bytes);
                self.rotate_for(&mut w, Need { least, moves: bytes, keep, ahead: false })?;
            }
            // One memtable for the usual batch in one keyspace.
            let memtables: Vec<(&KeyspaceState, Arc<Memtable>)> =
                keyspaces.iter().map(|ks| (&**ks, self.memtable_of(ks, &w))).collect();
            let appender = w.appender.as_mut().ok_or(Error::ReadOnly)?;
            let mut at = 0;
            let mut failed = None;
            appender
                .append_batch(seq, batch, |r, keyspace, kind, key, value| {
                    if memtables[at].0.id != keyspace {
                        at = memtables
                            .iter()
                            .position(|m| m.0.id == keyspace)
                            .expect("collected from the batch");
                    }
                    let (ks, memtable) = &memtables[at];
                    let insert = || {
                        memtable.insert(r, key, key_hash(key), seq, kind, value.len());
                        Ok(())
                    };
                    if failed.is_none() {
                        failed = ks.order.guard(insert).err();
                    }
                })
                .ok_or_else(|| too_large(bytes))?;
            if let Some(e) = failed {
                return Err(self.halt_unindexed(&mut w, seq, e));
            }
            let grown: usize = memtables.iter().map(|(_, m)| m.growth()).sum();
            if grown > 0 {
                self.weigh_indexes(&mut w, grown);
            }
            Ok(self.publish(&mut w, seq, bytes))
        })?;
        self.wait_if_synced(position, durability)
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
                let what = format!(
                    "{what} (at a write that is in the log already: resume() cannot help, close the \
                     store and open it again)"
                );
                Error::ComparatorPanicked { keyspace, what }
            }
            e => e,
        };
        self.halt(cause.clone());
        Error::Halted { cause: Arc::new(cause) }
    }

    /// Lets a writer wait when flushes do not keep up.
    #[inline]
    fn slow_down(&self, weight: impl FnOnce(Scale) -> u64) -> Result<()> {
        match self.pressure.due(weight) {
            None => Ok(()),
            Some(together) => self.wait_for_flushes(together),
        }
    }

    #[cold]
    fn weigh_batch(&self, scale: Scale, batch: &WriteBatch) -> u64 {
        let names = self.keyspaces.read();
        let weigh = |r: Record<'_>| match names.by_id.get(&r.keyspace) {
            Some(ks) => ks.weigh(scale, r.key, r.value),
            None => 0,
        };
        batch.records().map(|(_, r)| weigh(r)).sum()
    }

    #[cold]
    fn wait_for_flushes(&self, weight: u64) -> Result<()> {
        let start = self.env.now();
        let mut admission = self.pressure.admit(weight);
        loop {
            match admission {
                Admission::Go => break,
                Admission::Wait(slice) => {
                    self.env.sleep(slice);
                    self.check_writable()?;
                    admission = self.pressure.more();
                }
                Admission::Full => {
                    self.room.forget();
                    self.signal.wake();
                    let stuck = || self.room.why_no_flush().map_or(Ok(()), Err);
                    self.signal.wait_until(|| {
                        match self.check_writable().and_then(|()| stuck()) {
                            Err(e) => Some(Err(e)),
                            Ok(()) => {
                                (self.pressure.pending() < self.pressure.cap()).then_some(Ok(()))
                            }
                        }
                    })?;
                    admission = self.pressure.admit(weight);
                }
            }
        }
        let waited = self.env.now().saturating_sub(start);
        Counters::add(&self.counters.slowdown_ns, waited.as_nanos() as u64);
        Ok(())
    }

    /// Tells the log how far it is durable, when a sync has come to an end since it was last told.
    #[inline]
    fn mark_synced(&self, w: &mut Writer) {
        let rounds = self.sync.rounds();
        if rounds != w.marked {
            w.marked = rounds;
            let (last_seq, durable) = (w.last_seq, self.sync.durable());
            if let Some(appender) = &mut w.appender {
                appender.mark(last_seq, durable);
            }
        }
    }

    /// Makes everything written so far durable.
    pub(crate) fn sync_all(&self) -> Result<()> {
        refuse_from_comparator()?;
        let position = self.writer.lock().appender.as_ref().map(position);
        match position {
            Some(p) => self.wait_if_synced(p, Durability::Synced),
            None => Ok(()),
        }
    }

    #[inline]
    fn publish(&self, w: &mut Writer, seq: Seq, bytes: u64) -> Position {
        w.last_seq = seq;
        Counters::add_exclusive(&self.counters.user_bytes, bytes);
        self.visible.0.set(seq);
        position(w.appender.as_ref().expect("just appended to"))
    }

    #[inline]
    fn wait_if_synced(&self, position: Position, durability: Durability) -> Result<()> {
        match durability {
            Durability::Buffered => Ok(()),
            Durability::Synced => {
                self.wait_durable(position)?;
                self.witness(position.segment)
            }
        }
    }

    /// Waits until the log is durable up to `position`. A failed sync stops writes, also one that
    /// only what was written later needed: the log cannot be synced any more.
    pub(crate) fn wait_durable(&self, position: Position) -> Result<()> {
        let result = self.sync.wait_durable(position);
        if let Some(e) = result.as_ref().err().cloned().or_else(|| self.sync.failed()) {
            self.halt(e);
        }
        result
    }

    /// A synced write is done: that the segment which it is in exists is to be known elsewhere, or
    /// nobody would miss that file. Mostly the seal before it says so.
    #[inline]
    fn witness(&self, segment: u64) -> Result<()> {
        match segment > self.witnessed.load(Ordering::Acquire) {
            true => self.witness_synced(&mut self.control.lock()),
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
    fn weigh_indexes(&self, w: &mut Writer, grown: usize) {
        w.index_bytes += grown as u64;
        if w.index_bytes > (self.options.memory / 8).max(LEAST_INDEX_SHARE)
            && let Some(appender) = &mut w.appender
        {
            appender.stop();
        }
    }

    fn memtable_of(&self, ks: &KeyspaceState, w: &Writer) -> Arc<Memtable> {
        let view = ks.view.load();
        match view.memtables.first() {
            Some(m) if m.segment().number() == w.active_number() => Arc::clone(m),
            _ => self.add_memtable(ks, w),
        }
    }

    /// The keyspace's first write in this segment.
    #[cold]
    fn add_memtable(&self, ks: &KeyspaceState, w: &Writer) -> Arc<Memtable> {
        let segment = w.segment.as_ref().expect("a writable store has an active segment");
        let (order, stays_from) = (ks.order.clone(), ks.separate_values_from);
        let level = Arc::clone(&ks.filter_level);
        let memtable = Arc::new(Memtable::new(Arc::clone(segment), order, stays_from, level));
        self.segments.note_memtable(segment.number(), ks.id, &memtable);
        ks.publish(|view| {
            let mut next = SuperVersion::clone(view);
            next.memtables.insert(0, Arc::clone(&memtable));
            next
        });
        memtable
    }

    /// Seals the active segment and goes on in a new one. When none can be had (a full disk), nothing
    /// has changed.
    pub(crate) fn rotate(&self, w: &mut Writer) -> Result<()> {
        self.rotate_to(w, self.next_segment_bytes(), Need::SEAL)
    }

    /// The same for a write that does not fit into the active segment.
    fn rotate_for(&self, w: &mut Writer, need: Need) -> Result<()> {
        self.rotate_to(w, self.next_segment_bytes().max(need.least), need).or_else(|e| {
            // It may have been full only because of the memory that it takes.
            let goes_on = w.appender.as_mut().is_some_and(|a| a.go_on(need.least));
            if goes_on { Ok(()) } else { Err(e) }
        })
    }

    /// Takes the space of an empty active segment back: an idle store should not hold a log that
    /// is a good part of its size. Writing goes on in a small segment first.
    pub(crate) fn trim_log(&self) -> Result<()> {
        {
            let mut w = self.writer.lock();
            if w.has_entries() || self.check_writable().is_err() {
                return Ok(());
            }
            if w.segment.as_ref().is_none_or(|s| s.capacity() <= IDLE_SEGMENT) {
                return Ok(());
            }
            if let Some(spare) = self.spare.lock().take() {
                self.segments.discard(spare.segment);
            }
            self.rotate_to(&mut w, IDLE_SEGMENT, Need::SEAL)?;
        }
        self.advance_log()
    }

    /// Gives up segments at the log's start that nothing waits for. Flushes do that by the way;
    /// this is for what was written to keyspaces since dropped, or never.
    pub(crate) fn advance_log(&self) -> Result<()> {
        let mut control = self.control.lock();
        let active = self.active_number();
        let (log_start, founded) = self.segments.log_start_after(active, &[]);
        self.note_pending(active);
        if log_start > control.state().log_start {
            let changes = self.log_starts_in(&control, log_start, founded);
            self.commit(&mut control, Edit::from(changes.to_vec()))?;
            self.segments.advance(log_start, || self.old_views());
            self.sync.retire(log_start);
        }
        self.witness_synced(&mut control)
    }

    /// Tells the manifest how far the log was synced, in segments: that one is gone, or cut short,
    /// would pass for a power cut otherwise.
    #[cold]
    fn witness_synced(&self, control: &mut Control) -> Result<()> {
        let synced = self.sync.newest_synced().filter(|_| self.check_writable().is_ok());
        let Some(founded) = synced else { return Ok(()) };
        let (segment, known) = (control.state().log_start, control.state().log_founded);
        if segment < self.distrusted.load(Ordering::Acquire) {
            // After a failed sync no seal leads on to what was synced since.
            return Ok(());
        }
        if founded > known && founded > self.witnessed.load(Ordering::Acquire) {
            self.commit(control, Edit::from(vec![Change::LogStart { segment, founded }]))?;
        }
        self.witnessed.fetch_max(founded, Ordering::AcqRel);
        Ok(())
    }

    /// Goes on in the spare segment if it is large enough, else in a new one of `want` bytes.
    fn rotate_to(&self, w: &mut Writer, want: u64, need: Need) -> Result<()> {
        let next = match self.take_spare(w.active_number(), need.least) {
            Some(spare) => spare,
            // The writer is in a hurry: it does not wait for the device.
            None => NewSegment { segment: self.new_segment(want, need)?, founded: false },
        };
        if let Some(appender) = w.appender.take() {
            let old = Arc::clone(appender.segment());
            Counters::add_exclusive(&self.counters.log_bytes, appender.end());
            self.segments.note_sealed(old.number(), appender.end());
            appender.seal(w.last_seq, next.segment.number(), next.founded);
            // Whoever syncs it opens it again: many may wait for a flush.
            old.release();
        }
        self.go_on_in(w, next);
        Ok(())
    }

    fn next_segment_bytes(&self) -> u64 {
        self.segments.next_bytes(self.options.segment_bytes(), self.pressure.scale())
    }

    /// Tells the pacing what waits, when the segment `active` is not sealed yet.
    pub(crate) fn note_pending(&self, active: u64) {
        self.pressure.set_pending(self.segments.pending_weight(active, self.pressure.scale()));
    }

    /// The segment made ahead, if it is one that can follow `active`.
    fn take_spare(&self, active: u64, bytes: u64) -> Option<NewSegment> {
        let spare = self.spare.lock().take()?;
        // A larger segment was made in between for a large batch: the numbers must ascend.
        let follows = active == u64::MAX || spare.segment.number() > active;
        if follows && spare.segment.capacity() >= bytes {
            return Some(spare);
        }
        self.segments.discard(spare.segment);
        None
    }

    /// Makes the next segment ahead, so that the writer that fills the present one need not. A
    /// failure is left for that writer to meet.
    pub(crate) fn prepare_spare(&self) {
        if self.spare.lock().is_some()
            || !self.segments.next_is_due()
            || self.check_writable().is_err()
        {
            return;
        }
        let bytes = self.next_segment_bytes();
        let need = Need { least: bytes, moves: bytes, keep: Keep::Reserve, ahead: true };
        if let Ok(segment) = self.found_segment(bytes, need) {
            *self.spare.lock() = Some(segment);
        }
    }

    /// Goes on in a new segment after a sync failed: the old one is never written again, not even
    /// its seal. The caller writes all memtables into tables before it lets go of the writer.
    pub(crate) fn rotate_after_failure(&self, w: &mut Writer) -> Result<()> {
        let next = self.first_segment()?;
        if let Some(appender) = w.appender.take() {
            self.segments.note_sealed(appender.segment().number(), appender.end());
            appender.segment().release();
        }
        self.distrusted.store(next.segment.number(), Ordering::Release);
        self.sync.reset(Arc::clone(&next.segment), next.founded);
        self.start_in(w, next);
        Ok(())
    }

    /// Goes on in `next`, which the segment before leads to.
    pub(crate) fn go_on_in(&self, w: &mut Writer, next: NewSegment) {
        self.sync.rotate(Arc::clone(&next.segment), next.founded);
        self.start_in(w, next);
    }

    fn start_in(&self, w: &mut Writer, next: NewSegment) {
        let NewSegment { segment, founded } = next;
        let number = segment.number();
        self.segments.add(Arc::clone(&segment), founded, false);
        let before = self.active.swap(number, Ordering::AcqRel);
        if founded && before == self.witnessed.load(Ordering::Acquire) {
            // The seal says so, in a segment that something else bears witness of.
            self.witnessed.store(number, Ordering::Release);
        }
        w.recent = None;
        w.index_bytes = 0;
        w.appender = Some(Appender::new(Arc::clone(&segment)));
        w.segment = Some(segment);
        self.note_pending(number);
        self.signal.wake();
    }
}

/// Makes the comparisons that writing `key` will make, before anything is written.
#[cold]
fn rehearse(ks: &KeyspaceState, w: &Writer, key: &[u8]) -> Result<()> {
    ks.order.guard(|| {
        ks.order.compare(key, key);
        match ks.view.load().memtables.first() {
            Some(m) if m.segment().number() == w.active_number() => m.rehearse(key),
            _ => {}
        }
        Ok(())
    })
}

#[cold]
fn rehearse_batch(keyspaces: &[Arc<KeyspaceState>], w: &Writer, batch: &WriteBatch) -> Result<()> {
    for (_, record) in batch.records() {
        let ks = keyspaces.iter().find(|ks| ks.id == record.keyspace && ks.order.is_custom());
        ks.map_or(Ok(()), |ks| rehearse(ks, w, record.key))?;
    }
    Ok(())
}

#[inline]
fn position(appender: &Appender) -> Position {
    Position { segment: appender.segment().number(), end: appender.end() }
}

/// What a segment for this entry needs.
#[cold]
fn need_of(ks: &KeyspaceState, kind: Kind, key: &[u8], value: &[u8]) -> Need {
    let record = crate::log::record_len(key.len(), value.len()) as u64;
    let stays = value.len() >= ks.separate_values_from;
    let moves = if stays { record - value.len() as u64 } else { record };
    let keep = if kind == Kind::Delete { Keep::Flush } else { Keep::Reserve };
    Need { least: segment_bytes_for(record), moves, keep, ahead: false }
}

fn too_large(len: u64) -> Error {
    Error::BatchTooLarge { len, max: crate::log::MAX_FRAME_PAYLOAD }
}

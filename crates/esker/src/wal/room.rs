//! Room for the log on a disk that may be nearly full.
//!
//! A segment of the usual size is what is wanted, not what is needed. Where there is no room for it,
//! what is kept for speed goes first (the spare segment, the pool), and then a smaller one does.
//!
//! What is in the log must be able to get into tables: without room for that nothing can be deleted
//! either. So a write is refused before it takes the room that the flush of it needs; and one that adds
//! something before it takes what deletes need.

use crate::error::{Error, Result};
use crate::store::{NewSegment, Store};
use crate::wal::Segment;

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Size of the first segment, and of the active one of an idle store, in bytes.
pub(crate) const IDLE_SEGMENT: u64 = 256 << 10;
/// The smallest segment, unless even smaller ones are asked for.
const SMALLEST: u64 = 64 << 10;
/// What writes leave free for deletes: so much, and what tombstones of all that is in tables take, up to
/// `RESERVE_MOST`.
const RESERVE: u64 = 512 << 10;
const RESERVE_MOST: u64 = 64 << 20;
/// What a tombstone takes in the log and in a table beside its key, in bytes.
const TOMBSTONE: u64 = 32;

/// What is to stay free behind a new segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    /// Nothing: the segment itself is needed to get space back.
    Nothing,
    /// What flushing the log needs.
    Flush,
    /// That, and what deletes need.
    Reserve,
}

/// What a new segment is for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Need {
    /// Bytes that it has at least.
    pub least: u64,
    /// Of these, what a flush moves into tables.
    pub moves: u64,
    pub keep: Keep,
    /// It is made ahead: the active one will be filled before.
    pub ahead: bool,
}

impl Need {
    /// Of a segment without which the store cannot be opened.
    pub(crate) const NONE: Need = Need { least: 0, moves: 0, keep: Keep::Nothing, ahead: false };
    /// Of one that lets the one before be flushed: that is of no use without room for the flush.
    pub(crate) const SEAL: Need = Need { keep: Keep::Flush, ..Need::NONE };
}

impl Store {
    /// Does `write`; where there is no room for it, waits for the compaction under way, which holds room
    /// until it ends, or flushes what waits, and does it once more.
    #[inline]
    pub(crate) fn with_room<T>(&self, mut write: impl FnMut() -> Result<T>) -> Result<T> {
        let mut tries = 3;
        loop {
            match write() {
                Err(e) if tries > 0 && e.is_no_space() && self.wait_for_room(&mut tries) => {}
                done => return done,
            }
        }
    }

    #[cold]
    fn wait_for_room(&self, tries: &mut u32) -> bool {
        *tries -= 1;
        if self.room.is_claimed() {
            let over = || !self.room.is_claimed() || self.check_writable().is_err();
            self.signal.wait_until(|| over().then_some(()));
            return true;
        }
        *tries = 0;
        self.flush_for_room()
    }

    /// Whether something waited that is in tables now.
    fn flush_for_room(&self) -> bool {
        let active = self.active_number();
        self.segments.waits_below(active) && self.wait_flushed(active).is_ok()
    }

    /// A segment of `want` bytes, or fewer where there is no room for so many.
    pub(crate) fn new_segment(&self, want: u64, need: Need) -> Result<Arc<Segment>> {
        let number = self.new_file_number()?;
        let least = need.least.max(SMALLEST).min(want);
        let (mut bytes, mut gave) = (want, false);
        loop {
            // One that is larger than it must be leaves room for everything.
            let keep = if bytes > least { Keep::Reserve } else { need.keep };
            let room = self.check_room(bytes, Need { keep, ..need });
            match room.and_then(|()| self.segments.create(number, bytes)) {
                Err(e) if e.is_no_space() && !gave => {
                    gave = true;
                    self.discard_spare();
                }
                Err(e) if e.is_no_space() && bytes > least => bytes = (bytes / 4).max(least),
                done => return done,
            }
        }
    }

    /// Makes a segment that the log can go on in: it is durable, though nothing is in it.
    pub(crate) fn create_durable_segment(&self, want: u64, need: Need) -> Result<NewSegment> {
        let segment = self.new_segment(want, need)?;
        self.sync.sync_new(&segment).inspect_err(|_| {
            // After a failed sync it is not to be used, not even again for another.
            drop(self.env.remove(segment.path()));
        })?;
        Ok(NewSegment { segment, durable: true })
    }

    /// The first segment of a store that was just opened; those after it grow to the usual size.
    pub(crate) fn first_segment(&self) -> Result<NewSegment> {
        self.create_durable_segment(IDLE_SEGMENT.min(self.options.segment_bytes()), Need::NONE)
    }

    /// Gives the space back that is kept for speed only.
    pub(crate) fn discard_spare(&self) {
        if let Some(spare) = self.spare.lock().take() {
            self.segments.discard(spare.segment);
        }
        self.delete_obsolete(true);
    }

    /// Whether a segment of so many bytes leaves free what is to be kept.
    fn check_room(&self, bytes: u64, need: Need) -> Result<()> {
        if need.keep == Keep::Nothing {
            return Ok(());
        }
        let free = self.env.available(&self.dir);
        let moves = if bytes > need.least { bytes } else { need.moves };
        let merging = self.room.merging.load(Ordering::Relaxed);
        let wanted = bytes + moves + merging + self.segments.unflushed_bytes(need.ahead);
        if free >= wanted.saturating_add(RESERVE + RESERVE_MOST) {
            return Ok(());
        }
        let reserve = if need.keep == Keep::Reserve { self.reserve_bytes() } else { 0 };
        if free >= wanted.saturating_add(reserve) {
            return Ok(());
        }
        let why = format!(
            "no space left: {free} bytes are free, and {} are to be, for the log and for the tables \
             that it goes to; deleting takes less",
            wanted + reserve
        );
        Err(Error::io("write to", &self.dir, io::Error::new(io::ErrorKind::StorageFull, why)))
    }

    fn reserve_bytes(&self) -> u64 {
        let mut tombstones = 0;
        for ks in self.all_keyspaces() {
            for table in ks.view.load().version.tables() {
                let meta = &table.meta;
                let key = (meta.smallest.len() + meta.largest.len()) as u64 / 2;
                tombstones += meta.entries * (key + TOMBSTONE);
            }
        }
        RESERVE + tombstones.min(RESERVE_MOST)
    }

    /// What a compaction that writes so many bytes leaves free beside what flushes need.
    fn to_spare(&self, writes: u64) -> i128 {
        let needed = i128::from(writes) + i128::from(self.segments.unflushed_bytes(true));
        i128::from(self.env.available(&self.dir)) - needed - i128::from(RESERVE)
    }

    /// Whether a compaction that writes so many bytes would leave too little for writes and flushes.
    pub(crate) fn is_tight(&self, writes: u64) -> bool {
        self.to_spare(writes) < 0
    }

    /// Whether to try a compaction that has room for what is likely to be left, `writes` bytes, though not
    /// for all that may be.
    pub(crate) fn may_hope(&self, writes: u64) -> bool {
        let spare = self.to_spare(writes);
        spare >= 0 && self.room.hope_failed.lock().is_none_or(|failed| spare > failed)
    }

    /// It did not come true.
    pub(crate) fn hope_failed(&self, writes: u64) {
        *self.room.hope_failed.lock() = Some(self.to_spare(writes));
    }
}
